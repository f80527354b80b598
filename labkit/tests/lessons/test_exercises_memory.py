"""The checker of lesson 08's exercise against right answers and the wrong ones that people give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from redis import WatchError

from labkit.lessons.exercises import exercise
from labkit.tests.lessons.judging import assert_refused, assert_stub_and_solution_are_one

Client = Any  # an answer is written without types
Function = Callable[..., Any]


def fits(rows: Any) -> bool:
    """By the limits as they are when nobody has changed them."""
    return 0 < len(rows) <= 128 and all(len(member.encode()) <= 64 for member, _ in rows)


# ---- right answers


def script_with_fixed_limits(r: Client, key: str) -> Any:
    script = """
    local n = redis.call('ZCARD', KEYS[1])
    if n == 0 or n > 128 then return 0 end
    for _, member in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
      if string.len(member) > 64 then return 0 end
    end
    if redis.call('OBJECT', 'ENCODING', KEYS[1]) == 'listpack' then return 1 end
    local left = redis.call('PTTL', KEYS[1])
    redis.call('ZUNIONSTORE', KEYS[1], 1, KEYS[1])
    if left >= 0 then redis.call('PEXPIRE', KEYS[1], left) end
    return 1"""
    return r.register_script(script)(keys=[key]) == 1


def deleted_and_added_in_a_script(r: Client, key: str) -> Any:
    """With scores as the text that the server gave."""
    script = """
    local rows = redis.call('ZRANGE', KEYS[1], 0, 128, 'WITHSCORES')
    if #rows == 0 or #rows > 256 then return 0 end
    for i = 1, #rows, 2 do if #rows[i] > 64 then return 0 end end
    if redis.call('OBJECT', 'ENCODING', KEYS[1]) == 'listpack' then return 1 end
    local left = redis.call('PTTL', KEYS[1])
    redis.call('DEL', KEYS[1])
    for i = 1, #rows, 2 do redis.call('ZADD', KEYS[1], rows[i + 1], rows[i]) end
    if left >= 0 then redis.call('PEXPIRE', KEYS[1], left) end
    return 1"""
    return bool(r.eval(script, 1, key))


def watched(r: Client, key: str) -> Any:
    with r.pipeline() as trip:
        while True:
            trip.watch(key)
            rows, left = trip.zrange(key, 0, 128, withscores=True), trip.pttl(key)
            if not fits(rows) or trip.object("encoding", key) == "listpack":
                return fits(rows)
            trip.multi()
            trip.zrangestore(key, key, 0, -1)
            if left > 0:
                trip.pexpire(key, left)
            try:
                trip.execute()
            except WatchError:
                continue
            return True


def another_key_and_rename(r: Client, key: str) -> Any:
    other = f"{key}:packed"
    with r.pipeline() as trip:
        while True:
            trip.watch(key)
            rows, left = trip.zrange(key, 0, -1, withscores=True), trip.pttl(key)
            if not fits(rows) or trip.object("encoding", key) == "listpack":
                return fits(rows)
            trip.multi()
            trip.delete(other)
            trip.zadd(other, dict(rows))
            if left > 0:
                trip.pexpire(other, left)
            trip.rename(other, key)
            try:
                trip.execute()
            except WatchError:
                continue
            return True


def limits_first_then_watch(r: Client, key: str) -> Any:
    entries = int(r.config_get("zset-max-ziplist-entries").popitem()[1])
    return watched(r, key) if r.zcard(key) <= entries else False


def restored(r: Client, key: str) -> Any:
    """RESTORE looks at the limits too."""
    with r.pipeline() as trip:
        while True:
            trip.watch(key)
            rows, left = trip.zrange(key, 0, -1, withscores=True), trip.pttl(key)
            if not fits(rows) or trip.object("encoding", key) == "listpack":
                return fits(rows)
            dumped = trip.execute_command("DUMP", key, NEVER_DECODE=True)
            trip.multi()
            trip.restore(key, max(left, 0), dumped, replace=True)
            try:
                trip.execute()
            except WatchError:
                continue
            return True


# ---- wrong answers


def one_command(r: Client, key: str) -> Any:
    r.zrangestore(key, key, 0, -1)
    return r.object("encoding", key) == "listpack"


def nothing(r: Client, key: str) -> Any:
    return r.object("encoding", key) == "listpack"


def copied(r: Client, key: str) -> Any:
    r.copy(key, f"{key}:copy")
    r.rename(f"{key}:copy", key)
    return True


def guarded(r: Client, key: str) -> bool:
    rows = r.zrange(key, 0, -1, withscores=True)
    return fits(rows) and r.object("encoding", key) != "listpack"


def packed(r: Client, key: str) -> bool:
    return bool(r.object("encoding", key) == "listpack")


def whole_seconds(r: Client, key: str) -> Any:
    left = r.ttl(key)
    if guarded(r, key):
        r.zrangestore(key, key, 0, -1)
        if left > 0:
            r.expire(key, left)
    return packed(r, key)


def two_steps(r: Client, key: str) -> Any:
    """Right, as long as nobody else writes."""
    rows, left = r.zrange(key, 0, -1, withscores=True), r.pttl(key)
    if guarded(r, key):
        with r.pipeline() as trip:
            trip.delete(key).zadd(key, dict(rows))
            if left > 0:
                trip.pexpire(key, left)
            trip.execute()
    return packed(r, key)


def time_to_live_in_two_steps(r: Client, key: str) -> Any:
    left = r.pttl(key)
    if guarded(r, key):
        with r.pipeline() as trip:
            trip.zrangestore(key, key, 0, -1)
            if left > 0:
                trip.pexpire(key, left)
            trip.execute()
    return packed(r, key)


def multi_without_watch(r: Client, key: str) -> Any:
    rows, left = r.zrange(key, 0, 128, withscores=True), r.pttl(key)
    if not guarded(r, key):
        return packed(r, key)
    with r.pipeline() as trip:
        trip.delete(key)
        trip.zadd(key, dict(rows))
        if left > 0:
            trip.pexpire(key, left)
        trip.execute()
    return True


def watches(what: str, *, again: bool = True) -> Function:
    """``watched``, on another key, or without a second try."""

    def answer(r: Client, key: str) -> Any:
        with r.pipeline() as trip:
            while True:
                trip.watch(what.format(key=key))
                rows, left = trip.zrange(key, 0, 128, withscores=True), trip.pttl(key)
                if not fits(rows) or trip.object("encoding", key) == "listpack":
                    return fits(rows)
                trip.multi()
                trip.zrangestore(key, key, 0, -1)
                if left > 0:
                    trip.pexpire(key, left)
                try:
                    trip.execute()
                except WatchError:
                    if again:
                        continue
                    return False
                return True

    return answer


def expiry_in_a_step_of_its_own(r: Client, key: str) -> Any:
    if guarded(r, key):
        left = r.pttl(key)
        r.zrangestore(key, key, 0, -1)
        if left > 0:
            r.pexpire(key, left)
    return packed(r, key)


def gone_for_a_moment(r: Client, key: str) -> Any:
    if guarded(r, key):
        rows, left = r.zrange(key, 0, -1, withscores=True), r.pttl(key)
        r.delete(key)
        r.zadd(key, dict(rows))
        if left > 0:
            r.pexpire(key, left)
    return packed(r, key)


def time_to_live_read_before(r: Client, key: str) -> Any:
    """All in one script, but for what it read before."""
    left = r.pttl(key)
    script = SCRIPT.format(over="> 128", longer="> 64", already="1")
    script = script.replace("redis.call('PTTL', KEYS[1])", "tonumber(ARGV[1])")
    return bool(r.eval(script, 1, key, left))


def looked_then_any(r: Client, key: str) -> Any:
    """Whether it fits is asked in Python; what follows is done whatever it is by then."""
    script = """
    local left = redis.call('PTTL', KEYS[1])
    redis.call('ZRANGESTORE', KEYS[1], KEYS[1], 0, -1)
    if left >= 0 then redis.call('PEXPIRE', KEYS[1], left) end
    return 1"""
    return bool(r.eval(script, 1, key)) if guarded(r, key) else packed(r, key)


def always_a_time_to_live(r: Client, key: str) -> Any:
    left = r.pttl(key)
    if guarded(r, key):
        r.zrangestore(key, key, 0, -1)
        r.pexpire(key, left if left > 0 else 86_400_000)
    return packed(r, key)


def through_lua_numbers(r: Client, key: str) -> Any:
    script = """
    local rows = redis.call('ZRANGE', KEYS[1], 0, 128, 'WITHSCORES')
    if #rows == 0 or #rows > 256 then return 0 end
    for i = 1, #rows, 2 do if #rows[i] > 64 then return 0 end end
    if redis.call('OBJECT', 'ENCODING', KEYS[1]) == 'listpack' then return 1 end
    local left = redis.call('PTTL', KEYS[1])
    redis.call('DEL', KEYS[1])
    for i = 1, #rows, 2 do
      redis.call('ZADD', KEYS[1], string.format('%.14g', tonumber(rows[i + 1])), rows[i])
    end
    if left >= 0 then redis.call('PEXPIRE', KEYS[1], left) end
    return 1"""
    return bool(r.eval(script, 1, key))


SCRIPT = """
local members = redis.call('ZRANGE', KEYS[1], 0, -1)
if #members == 0 or #members {over} then return 0 end
for _, member in ipairs(members) do if #member {longer} then return 0 end end
if redis.call('OBJECT', 'ENCODING', KEYS[1]) == 'listpack' then return {already} end
local left = redis.call('PTTL', KEYS[1])
redis.call('ZRANGESTORE', KEYS[1], KEYS[1], 0, -1)
if left >= 0 then redis.call('PEXPIRE', KEYS[1], left) end
return 1"""


def scripted(over: str = "> 128", longer: str = "> 64", already: str = "1") -> Function:
    script = SCRIPT.format(over=over, longer=longer, already=already)
    return lambda r, key: bool(r.eval(script, 1, key))


def letters_counted(r: Client, key: str) -> Any:
    """Python's len of a text counts letters."""
    members = r.zrange(key, 0, 128)
    if not members or len(members) > 128 or max(map(len, members)) > 64:
        return False
    return scripted(longer="> 1000")(r, key)


def also_what_is_packed(r: Client, key: str) -> Any:
    script = SCRIPT.format(over="> 128", longer="> 64", already="1").replace(
        "== 'listpack'", "== 'x'"
    )
    return bool(r.eval(script, 1, key))


def also_what_does_not_fit(r: Client, key: str) -> Any:
    script = """
    local left = redis.call('PTTL', KEYS[1])
    redis.call('ZRANGESTORE', KEYS[1], KEYS[1], 0, -1)
    if left >= 0 then redis.call('PEXPIRE', KEYS[1], left) end"""
    if not packed(r, key):
        r.eval(script, 1, key)
    return packed(r, key)


def trimmed_to_fit(r: Client, key: str) -> Any:
    r.zremrangebyrank(key, 128, -1)
    return watched(r, key)


def leaves_a_copy(r: Client, key: str) -> Any:
    answer = watched(r, key)
    r.zrangestore(f"{key}:packed", key, 0, -1)
    return answer


def an_integer(r: Client, key: str) -> Any:
    return int(watched(r, key))


def the_encoding(r: Client, key: str) -> Any:
    return (watched(r, key) and "listpack") or False


def forgot_return(r: Client, key: str) -> None:
    watched(r, key)


def empty_raises(r: Client, key: str) -> Any:
    rows = r.zrange(key, 0, -1, withscores=True)
    longest = max(len(member.encode()) for member, _ in rows)
    return watched(r, key) if longest <= 64 else False


def says_yes(r: Client, key: str) -> Any:
    return bool(r.zcard(key))


RIGHT = [
    script_with_fixed_limits,
    deleted_and_added_in_a_script,
    watched,
    another_key_and_rename,
    limits_first_then_watch,
    restored,
    scripted(),
]

GONE = "the time to live is gone; right is to keep it as it is"

WRONG: list[tuple[Function, str]] = [
    (one_command, f"five members, with a time to live: {GONE}"),
    (nothing, "five members: the set is still a skip list, and it fits into a listpack"),
    (copied, "your function raised ResponseError"),
    (whole_seconds, "with a time to live: the time to live ends 0."),
    (
        two_steps,
        "another client adds a member between two of your steps: the member late is lost",
    ),
    (
        time_to_live_in_two_steps,
        "gives it another time to live between two of your steps: the time",
    ),
    (always_a_time_to_live, "five members: a set without a time to live has one now"),
    (through_lua_numbers, "others: the score -9007199254740992.0 became"),
    (scripted(over="> 1000"), "129 members: the set was written; it does not fit"),
    (scripted(over=">= 128"), "128 members: the set is still a skip list, and it fits"),
    (scripted(longer="> 1000"), "a member of 65 bytes: the set was written; it does not fit"),
    (scripted(longer=">= 64"), "a member of 64 bytes: the set is still a skip list"),
    (scripted(already="0"), "three members, a listpack already gave False; right is True"),
    (letters_counted, "a member of 33 letters é: the set was written"),
    (
        also_what_is_packed,
        "three members, a listpack already: the set was written; it is a listpack",
    ),
    (
        multi_without_watch,
        "another client adds a member between two of your steps: the member late",
    ),
    (watches("nothing"), "the time to live ends 2000.80 s sooner; right is to keep it as it is"),
    (watches("{key}", again=False), "adds a member between two of your steps: the set is still"),
    (
        expiry_in_a_step_of_its_own,
        f"as another client sees them between two of your steps: {GONE}",
    ),
    (gone_for_a_moment, "adds a member between two of your steps: the member late is lost"),
    (time_to_live_read_before, "gives it another time to live between two of your steps: the time"),
    (looked_then_any, "until it does not fit between two of your steps: the set was written"),
    (also_what_does_not_fit, "129 members: the set was written; it does not fit"),
    (trimmed_to_fit, "129 members: the member 9780000000128 is lost"),
    (leaves_a_copy, ":packed' was left behind; right is none"),
    (an_integer, "an empty key gave 0; right is False"),
    (the_encoding, "five members gave 'listpack'; right is True: it is a listpack now"),
    (forgot_return, "an empty key gave None; right is False"),
    (empty_raises, "an empty key: your function raised ValueError"),
    (says_yes, "five members: the set is still a skip list"),
]


@pytest.mark.parametrize("answer", RIGHT)
def test_right_answers_of_every_style(answer: Function, either: Client) -> None:
    assert exercise("compact").judge(answer, either) == "Right."
    assert either.dbsize() == 0


@pytest.mark.parametrize(("answer", "reason"), WRONG)
def test_wrong_answers_are_told_what_was_seen(
    answer: Function, reason: str, either: Client
) -> None:
    assert_refused("compact", answer, reason, either)


def test_stub_and_solution_are_one(either: Client, capsys: pytest.CaptureFixture[str]) -> None:
    assert_stub_and_solution_are_one("compact", either, capsys)


def test_other_limits_of_a_server_are_asked_for(either: Client) -> None:
    usual = either.config_get("zset-max-ziplist-entries")["zset-max-ziplist-entries"]
    either.config_set("zset-max-ziplist-entries", 50)
    try:
        assert exercise("compact").judge(scripted(over="> 50"), either) == "Right."
        assert "51 members" in exercise("compact").judge(scripted(), either)
    finally:
        either.config_set("zset-max-ziplist-entries", usual)
