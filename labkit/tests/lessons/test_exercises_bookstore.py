"""The checkers of lesson 10 against right answers of several styles and the wrong ones."""

# ruff: noqa: ARG001 (an answer has the arguments of its stub, used or not)

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from redis import WatchError

from labkit.lessons.exercises import exercise
from labkit.tests.lessons.judging import assert_refused, assert_stub_and_solution_are_one

Client = Any  # an answer is written without types
Function = Callable[..., Any]
Keys = tuple[str, str, str]


def _text(body: Any) -> str:
    return json.dumps(body, sort_keys=True)


# ---- remember: right


def by_digest(r: Client, record: str, body: Any, seconds: int) -> str:
    """One script, a hash that holds a digest."""
    lua = """local was = redis.call('HGET', KEYS[1], 'digest')
    if was then return was == ARGV[1] and 'replayed' or 'refused' end
    redis.call('HSET', KEYS[1], 'digest', ARGV[1])
    redis.call('EXPIRE', KEYS[1], ARGV[2])
    return 'new'"""
    return str(r.eval(lua, 1, record, hashlib.sha256(_text(body).encode()).hexdigest(), seconds))


def set_nx_get(r: Client, record: str, body: Any, seconds: int) -> str:
    was = r.set(record, _text(body), nx=True, get=True, ex=seconds)
    return "new" if was is None else "replayed" if json.loads(was) == body else "refused"


def watched_record(r: Client, record: str, body: Any, seconds: int) -> str:
    with r.pipeline() as step:
        while True:
            step.watch(record)
            was = step.get(record)
            if was is not None:
                return "replayed" if was == _text(body) else "refused"
            step.multi()
            try:
                step.set(record, _text(body), px=seconds * 1000).execute()
            except WatchError:
                continue
            return "new"


# ---- remember: wrong


def _remember(text: Callable[[Any], str], **options: Any) -> Function:
    """The right commands with another text of the body."""

    def answer(r: Client, record: str, body: Any, seconds: int) -> str:
        while not r.set(record, text(body), nx=True, ex=seconds):
            found = r.get(record)
            if found is not None:
                return "replayed" if found == text(body) else "refused"
        return "new"

    return answer


def two_commands(r: Client, record: str, body: Any, seconds: int) -> str:
    if r.setnx(record, _text(body)):
        r.expire(record, seconds)
        return "new"
    return "replayed" if r.get(record) in (None, _text(body)) else "refused"


def looks_first(r: Client, record: str, body: Any, seconds: int) -> str:
    was = r.get(record)
    if was is None:
        r.set(record, _text(body), ex=seconds)
        return "new"
    return "replayed" if was == _text(body) else "refused"


def no_deadline(r: Client, record: str, body: Any, seconds: int) -> str:
    was = r.set(record, _text(body), nx=True, get=True)
    return "new" if was is None else "replayed" if was == _text(body) else "refused"


def moves_the_deadline(r: Client, record: str, body: Any, seconds: int) -> str:
    said = set_nx_get(r, record, body, seconds)
    r.expire(record, seconds)
    return said


def overwrites(r: Client, record: str, body: Any, seconds: int) -> str:
    said = set_nx_get(r, record, body, seconds)
    if said == "refused":
        r.set(record, _text(body), keepttl=True)
    return said


def any_body(r: Client, record: str, body: Any, seconds: int) -> str:
    return "new" if r.set(record, _text(body), nx=True, ex=seconds) else "replayed"


def gone_is_refused(r: Client, record: str, body: Any, seconds: int) -> str:
    if r.set(record, _text(body), nx=True, ex=seconds):
        return "new"
    return "replayed" if r.get(record) == _text(body) else "refused"


def true_or_false(r: Client, record: str, body: Any, seconds: int) -> Any:
    return set_nx_get(r, record, body, seconds) == "new"


def minutes(r: Client, record: str, body: Any, seconds: int) -> str:
    return set_nx_get(r, record, body, seconds // 60)


def always_a_day(r: Client, record: str, body: Any, seconds: int) -> str:
    return set_nx_get(r, record, body, 86_400)


def another_key(r: Client, record: str, body: Any, seconds: int) -> str:
    return set_nx_get(r, f"{record}:note", body, seconds)


def nothing(r: Client, *args: Any) -> None:
    return None


# ---- take_order: right


def by_text(r: Client, keys: Keys, attempt: str, isbn: str, copies: int) -> Any:
    """A note in one string; a list for a tuple."""
    lua = """local was = redis.call('GET', KEYS[3])
    if was then
      local order, who = string.match(was, '^(%d+) (.*)$')
      return {tonumber(order), who ~= ARGV[1] and 1 or 0}
    end
    redis.call('ZINCRBY', KEYS[1], ARGV[3], ARGV[2])
    if redis.call('PTTL', KEYS[1]) < 0 then redis.call('EXPIRE', KEYS[1], 8 * 86400) end
    local order = redis.call('INCR', KEYS[2])
    redis.call('SET', KEYS[3], order .. ' ' .. ARGV[1], 'EX', 86400)
    return {order, 0}"""
    order, replayed = r.eval(lua, 3, *keys, attempt, isbn, copies)
    return [order, replayed == 1]


def watched_order(r: Client, keys: Keys, attempt: str, isbn: str, copies: int) -> Any:
    day, counter, note = keys
    with r.pipeline() as step:
        while True:
            step.watch(day, counter, note)
            was = step.hgetall(note)
            if was:
                return int(was["order"]), was["attempt"] != attempt
            order, first = int(step.get(counter) or 0) + 1, not step.exists(day)
            step.multi()
            step.set(counter, order).zincrby(day, copies, isbn)
            step.hset(note, mapping={"order": order, "attempt": attempt}).expire(note, 86_400)
            if first:
                step.expire(day, 8 * 86_400)
            try:
                step.execute()
            except WatchError:
                continue
            return order, False


def watched_note_and_counter(r: Client, keys: Keys, attempt: str, isbn: str, copies: int) -> Any:
    return _watched(r, keys, attempt, isbn, copies, keys[1:])


def _watched(r: Client, keys: Keys, attempt: str, isbn: str, copies: int, watch: Any) -> Any:
    """The day by commands that add; the number by GET and SET."""
    day, counter, note = keys
    with r.pipeline() as step:
        while True:
            step.watch(*watch)
            was = step.hgetall(note)
            if was:
                return int(was["order"]), was["attempt"] != attempt
            order, ends = int(step.get(counter) or 0) + 1, step.ttl(day) >= 0
            step.multi()
            step.set(counter, order).zincrby(day, copies, isbn)
            step.hset(note, mapping={"order": order, "attempt": attempt}).expire(note, 86_400)
            if not ends:
                step.expire(day, 8 * 86_400)
            try:
                step.execute()
            except WatchError:
                continue
            return order, False


# ---- take_order: wrong


def watches_the_note_only(r: Client, keys: Keys, attempt: str, isbn: str, copies: int) -> Any:
    return _watched(r, keys, attempt, isbn, copies, keys[2:])


def number_from_python(r: Client, keys: Keys, attempt: str, isbn: str, copies: int) -> Any:
    """The script is given a number that was read before it."""
    lua = """local known = redis.call('HMGET', KEYS[3], 'order', 'attempt')
    if known[1] then return {tonumber(known[1]), known[2] == ARGV[1] and 0 or 1} end
    redis.call('SET', KEYS[2], ARGV[4])
    redis.call('HSET', KEYS[3], 'order', ARGV[4], 'attempt', ARGV[1])
    redis.call('EXPIRE', KEYS[3], 86400)
    redis.call('ZINCRBY', KEYS[1], ARGV[3], ARGV[2])
    if redis.call('TTL', KEYS[1]) == -1 then redis.call('EXPIRE', KEYS[1], 691200) end
    return {tonumber(ARGV[4]), 0}"""
    number = int(r.get(keys[1]) or 0) + 1
    order, replayed = r.eval(lua, 3, *keys, attempt, isbn, copies, number)
    return order, bool(replayed)


def always_one_book(r: Client, keys: Keys, attempt: str, isbn: str, copies: int) -> Any:
    return by_text(r, keys, attempt, "a", copies)


def _order(note: str, *, test: str = "known[2] == ARGV[1] and 0 or 1") -> Function:
    """The solution's script with another middle part, or another test of who asks."""
    lua = f"""local known = redis.call('HMGET', KEYS[3], 'order', 'attempt')
    if known[1] then return {{tonumber(known[1]), {test}}} end
    local order = redis.call('INCR', KEYS[2])
    redis.call('HSET', KEYS[3], 'order', order, 'attempt', ARGV[1])
    redis.call('ZINCRBY', KEYS[1], ARGV[3], ARGV[2])
    {note}
    return {{order, 0}}"""

    def answer(r: Client, keys: Keys, attempt: str, isbn: str, copies: int) -> Any:
        order, replayed = r.eval(lua, 3, *keys, attempt, isbn, copies)
        return order, bool(replayed)

    return answer


NOTE_ENDS = "redis.call('EXPIRE', KEYS[3], 86400)"
DAY_ENDS = "redis.call('EXPIRE', KEYS[1], 691200)"
DAY_OF_ORDER_1 = f"if order == 1 then {DAY_ENDS} end"
DAY_ONCE = f"if redis.call('TTL', KEYS[1]) == -1 then {DAY_ENDS} end"


def _sell(r: Client, keys: Keys, attempt: str, isbn: str, copies: int) -> int:
    day, counter, _ = keys
    with r.pipeline() as step:
        step.incr(counter).zincrby(day, copies, isbn)
        order = step.execute()[0]
    if r.ttl(day) == -1:
        r.expire(day, 8 * 86_400)
    return int(order)


def no_note(r: Client, keys: Keys, attempt: str, isbn: str, copies: int) -> Any:
    return _sell(r, keys, attempt, isbn, copies), False


def note_first(r: Client, keys: Keys, attempt: str, isbn: str, copies: int) -> Any:
    if not r.set(keys[2], attempt, nx=True, ex=86_400):
        return int(r.get(keys[1]) or 1), r.get(keys[2]) != attempt
    return _sell(r, keys, attempt, isbn, copies), False


def note_last(r: Client, keys: Keys, attempt: str, isbn: str, copies: int) -> Any:
    was = r.hgetall(keys[2])
    if was:
        return int(was["order"]), was["attempt"] != attempt
    order = _sell(r, keys, attempt, isbn, copies)
    with r.pipeline() as step:
        step.hset(keys[2], mapping={"order": order, "attempt": attempt}).expire(keys[2], 86_400)
        step.execute()
    return order, False


def number_first(r: Client, keys: Keys, attempt: str, isbn: str, copies: int) -> Any:
    """A number is drawn, and lost with the process."""
    was = r.hgetall(keys[2])
    if was:
        return int(was["order"]), was["attempt"] != attempt
    order = r.incr(keys[1])
    lua = """if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
    redis.call('HSET', KEYS[2], 'order', ARGV[1], 'attempt', ARGV[2])
    redis.call('EXPIRE', KEYS[2], 86400)
    redis.call('ZINCRBY', KEYS[1], ARGV[4], ARGV[3])
    if redis.call('TTL', KEYS[1]) == -1 then redis.call('EXPIRE', KEYS[1], 691200) end
    return 1"""
    r.eval(lua, 2, keys[0], keys[2], order, attempt, isbn, copies)
    return order, False


def keeps_the_last_attempt(r: Client, keys: Keys, attempt: str, isbn: str, copies: int) -> Any:
    order, replayed = by_text(r, keys, attempt, isbn, copies)
    if replayed:
        r.set(keys[2], f"{order} {attempt}", keepttl=True)
    return order, replayed


def names_by_their_beginning(r: Client, keys: Keys, attempt: str, isbn: str, copies: int) -> Any:
    order, replayed = by_text(r, keys, attempt, isbn, copies)
    who = r.get(keys[2]).partition(" ")[2]
    return order, replayed and not attempt.startswith(who)


def a_number_for_a_bool(r: Client, keys: Keys, attempt: str, isbn: str, copies: int) -> Any:
    order, replayed = by_text(r, keys, attempt, isbn, copies)
    return order, int(replayed)


def order_only(r: Client, keys: Keys, attempt: str, isbn: str, copies: int) -> Any:
    return by_text(r, keys, attempt, isbn, copies)[0]


def order_as_text(r: Client, keys: Keys, attempt: str, isbn: str, copies: int) -> Any:
    order, replayed = by_text(r, keys, attempt, isbn, copies)
    return str(order), replayed


def one_copy(r: Client, keys: Keys, attempt: str, isbn: str, copies: int) -> Any:
    return by_text(r, keys, attempt, isbn, 1)


def counter_is_a_hash(r: Client, keys: Keys, attempt: str, isbn: str, copies: int) -> Any:
    r.zincrby(keys[0], copies, isbn)
    return r.hincrby(keys[1], "orders", 1), False


def a_key_beside(r: Client, keys: Keys, attempt: str, isbn: str, copies: int) -> Any:
    answer = by_text(r, keys, attempt, isbn, copies)
    r.set(f"{keys[2]}:lock", 1, ex=60)
    return answer


# ---- build_week: right


def in_python(r: Client, week: str, days: list[str], seconds: int) -> bool:
    with r.pipeline() as step:
        while True:
            step.watch(week, *days)
            if step.exists(week):
                return False
            scores: dict[str, float] = {}
            for day in days:
                for book, copies in step.zrange(day, 0, -1, withscores=True):
                    scores[book] = scores.get(book, 0) + 10 * copies + 1
            if not scores:
                return False
            step.multi()
            try:
                step.zadd(week, scores).expire(week, seconds).execute()
            except WatchError:
                continue
            return True


def union_and_days(r: Client, week: str, days: list[str], seconds: int) -> bool:
    """The sum by ZUNIONSTORE, the days by counting."""
    lua = """if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
    local sum = {#KEYS - 1}
    for n = 2, #KEYS do sum[n] = KEYS[n] end
    sum[#sum + 1] = 'WEIGHTS'
    for n = 2, #KEYS do sum[#sum + 1] = 10 end
    redis.call('ZUNIONSTORE', KEYS[1], unpack(sum))
    for n = 2, #KEYS do
      for _, book in ipairs(redis.call('ZRANGE', KEYS[n], 0, -1)) do
        redis.call('ZINCRBY', KEYS[1], 1, book)
      end
    end
    return redis.call('EXPIRE', KEYS[1], ARGV[1])"""
    return bool(r.eval(lua, 1 + len(days), week, *days, seconds) == 1)


# ---- build_week: wrong

LOOK = "if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end"
RETURN = "return redis.call('EXPIRE', KEYS[1], ARGV[1])"


def _week(each: str, look: str = LOOK, last: str = RETURN) -> Function:
    """The solution's script with one part that is another."""
    lua = f"""{look}
    for day = 2, #KEYS do
      local rows = redis.call('ZRANGE', KEYS[day], 0, -1, 'WITHSCORES')
      for n = 1, #rows, 2 do redis.call({each}) end
    end
    {last}"""

    def answer(r: Client, week: str, days: list[str], seconds: int) -> Any:
        return bool(r.eval(lua, 1 + len(days), week, *days, seconds))

    return answer


EACH = "'ZINCRBY', KEYS[1], 10 * rows[n + 1] + 1, rows[n]"


def _scores(r: Client, days: list[str]) -> dict[str, float]:
    scores: dict[str, float] = {}
    for day in days:
        for book, copies in r.zrange(day, 0, -1, withscores=True):
            scores[book] = scores.get(book, 0) + 10 * copies + 1
    return scores


def looks_then_builds(r: Client, week: str, days: list[str], seconds: int) -> bool:
    if r.exists(week):
        return False
    return _week(EACH, look="")(r, week, days, seconds) is True


def reads_day_by_day(r: Client, week: str, days: list[str], seconds: int) -> bool:
    scores = _scores(r, days)
    if not scores:
        return False
    lua = """if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
    redis.call('ZADD', KEYS[1], unpack(ARGV, 2))
    return redis.call('EXPIRE', KEYS[1], ARGV[1])"""
    pairs = [part for book, score in scores.items() for part in (score, book)]
    return bool(r.eval(lua, 1, week, seconds, *pairs))


def deadline_apart(r: Client, week: str, days: list[str], seconds: int) -> bool:
    built = _week(EACH, last="return 1")(r, week, days, seconds)
    return bool(built and r.expire(week, seconds))


def watches_the_list_only(r: Client, week: str, days: list[str], seconds: int) -> bool:
    return _watched_once(r, week, days, seconds, [week])


def does_not_build_again(r: Client, week: str, days: list[str], seconds: int) -> bool:
    return _watched_once(r, week, days, seconds, [week, *days])


def _watched_once(r: Client, week: str, days: list[str], seconds: int, watch: list[str]) -> bool:
    with r.pipeline() as step:
        step.watch(*watch)
        if step.exists(week):
            return False
        scores = _scores(step, days)
        if not scores:
            return False
        step.multi()
        try:
            step.zadd(week, scores).expire(week, seconds).execute()
        except WatchError:
            return False
        return True


def ten_minutes(r: Client, week: str, days: list[str], seconds: int) -> bool:
    return in_python(r, week, days, 600)


def a_lock_and_waiting(r: Client, week: str, days: list[str], seconds: int) -> bool:
    """Right in the end; but a dead builder leaves its lock, and the others wait."""
    while not r.set(f"{week}:lock", 1, nx=True, ex=5):
        time.sleep(0.05)
    built = not r.exists(week) and _week(EACH)(r, week, days, seconds) is True
    r.delete(f"{week}:lock")
    return built


def temporary_key(r: Client, week: str, days: list[str], seconds: int) -> bool:
    """Built aside, with a deadline, and renamed."""
    if r.exists(week):
        return False
    r.zunionstore(f"{week}:tmp", dict.fromkeys(days, 10))
    for day in days:
        for book in r.zrange(day, 0, -1):
            r.zincrby(f"{week}:tmp", 1, book)
    r.expire(f"{week}:tmp", seconds)
    return bool(r.exists(f"{week}:tmp") and r.renamenx(f"{week}:tmp", week))


def a_lock(r: Client, week: str, days: list[str], seconds: int) -> bool:
    """The lock keeps the dead builder's turn for it."""
    if r.exists(week) or not r.set(f"{week}:lock", 1, nx=True, ex=60):
        return False
    built = _week(EACH)(r, week, days, seconds)
    r.delete(f"{week}:lock")
    return built is True


def clears_the_days(r: Client, week: str, days: list[str], seconds: int) -> bool:
    built = in_python(r, week, days, seconds)
    if built:
        r.delete(*days[:-1])
    return built


def by_count(r: Client, week: str, days: list[str], seconds: int) -> bool:
    r.zunionstore(week, days, aggregate="COUNT")
    return True


RIGHT: dict[str, list[Function]] = {
    "remember": [by_digest, set_nx_get, watched_record],
    "take_order": [by_text, watched_order, watched_note_and_counter],
    "build_week": [in_python, union_and_days],
}
WRONG: list[tuple[str, Function, str]] = [
    ("remember", _remember(json.dumps), "the fields in another order: gave 'refused'; right is"),
    ("remember", _remember(str), "the fields in another order: gave 'refused'"),
    ("remember", _remember(lambda b: "".join(map(str, b.values()))), "gave 'refused'; right is"),
    (
        "remember",
        _remember(lambda b: "".join(f"{b[k]}" for k in sorted(b))),
        "the quantity as text: gave 'replayed'; right is 'refused'",
    ),
    ("remember", _remember(lambda b: str(sorted(map(repr, b.values())))), "gave 'replayed'"),
    ("remember", _remember(lambda b: repr(sorted(b.items()))), "inner fields in another order"),
    ("remember", _remember(lambda b: _text(b)[:200]), "a long note that differs at its end"),
    (
        "remember",
        _remember(lambda b: _text(b).replace(" ", "")),
        "a space inside a value: gave 'replayed'; right is 'refused'.",
    ),
    ("remember", _remember(lambda b: _text(b).lower()), "a capital letter: gave 'replayed'; right"),
    ("remember", two_commands, "the process died between two commands: ends never; right is in"),
    ("remember", looks_first, "another client sends the same order between two commands: they"),
    ("remember", no_deadline, "a new key: ends never; right is in 7,200 s."),
    ("remember", moves_the_deadline, "the same body: the time to live ends"),
    ("remember", overwrites, "then the first body again: gave 'refused'; right is 'replayed'"),
    ("remember", any_body, "another quantity: gave 'replayed'; right is 'refused'."),
    ("remember", gone_is_refused, "the record's time is over between two commands: gave 'refused'"),
    ("remember", true_or_false, "a new key: gave True; right is 'new'."),
    ("remember", minutes, "a new key: ends in 120 s; right is in 7,200 s."),
    ("remember", always_a_day, "a new key: ends in 86,400 s; right is in 7,200 s."),
    ("remember", another_key, "a new key: the key given for it is not there."),
    ("remember", nothing, "a new key: gave None; right is 'new'."),
    ("take_order", no_note, "a new order, the note: the key given for it is not there."),
    ("take_order", note_first, "a repeat of the older order: gave (2, True); right is (1, True)"),
    ("take_order", note_last, "the same attempt comes between two commands: the day's sales are"),
    ("take_order", number_first, "comes between two commands: the counter of orders is '2'"),
    (
        "take_order",
        _order(NOTE_ENDS + "\n" + DAY_ONCE, test="1"),
        "the same attempt again: gave (1, True); right is (1, False).",
    ),
    (
        "take_order",
        _order(NOTE_ENDS + "\n" + DAY_ONCE, test="0"),
        "a second attempt: gave (1, False); right is (1, True).",
    ),
    ("take_order", _order(DAY_ONCE), "a new order, the note: ends never; right is in 86,400 s."),
    ("take_order", _order(NOTE_ENDS), "a new order, the sales: ends never; right is in 691,200"),
    ("take_order", _order(NOTE_ENDS + "\n" + DAY_ENDS), "of the same name: the time to live ends"),
    ("take_order", watches_the_note_only, "they gave [(1, False), (1, False)]; right is"),
    ("take_order", number_from_python, "another order comes between two commands: they gave"),
    ("take_order", always_one_book, "of another book: the day's sales are {'a': 4.0}; right is"),
    (
        "take_order",
        _order(NOTE_ENDS + "\n" + DAY_OF_ORDER_1),
        "the first order of the next day, of another book, the sales: ends never; right is",
    ),
    ("take_order", keeps_the_last_attempt, "the second attempt again: gave (1, False); right is"),
    ("take_order", names_by_their_beginning, "a second attempt: gave (1, False); right is"),
    ("take_order", a_number_for_a_bool, "a new order: gave (1, 0); right is (1, False)."),
    ("take_order", order_only, "a new order: gave 1; right is (1, False)."),
    ("take_order", order_as_text, "a new order: gave ('1', False); right is (1, False)."),
    ("take_order", one_copy, "a new order: the day's sales are {'a': 1.0}; right is {'a': 2}."),
    ("take_order", counter_is_a_hash, "a new order: the counter of orders became a hash."),
    ("take_order", a_key_beside, "was left behind; right is none."),
    ("take_order", nothing, "a new order: the day's sales are {}; right is {'a': 2}."),
    ("build_week", looks_then_builds, "another builder comes between two commands: on the list"),
    ("build_week", reads_day_by_day, "come in between two commands: the list has one"),
    ("build_week", watches_the_list_only, "come in between two commands: the list has one"),
    ("build_week", deadline_apart, "the process died between two commands, the list: ends never"),
    ("build_week", does_not_build_again, "there is no list, and the answer was False; build"),
    ("build_week", ten_minutes, "the list: ends in 600 s; right is in 1,800 s."),
    ("build_week", temporary_key, "the process died between two commands: the key 'exercise:"),
    ("build_week", a_lock, "the process died between two commands: the key 'exercise:"),
    ("build_week", a_lock_and_waiting, ":lock' was left behind; right is none."),
    ("build_week", clears_the_days, "seven days: a day was changed; right is to read it only."),
    ("build_week", by_count, "seven days: "),
    ("build_week", _week(EACH, look=""), "the list is there already: the time to live ends"),
    (
        "build_week",
        _week(EACH, look="redis.call('DEL', KEYS[1])"),
        "the list is there already: the time to live ends",
    ),
    ("build_week", _week(EACH, last="return 1"), "seven days, the list: ends never; right is in"),
    (
        "build_week",
        _week(EACH, last=f"redis.call('EXPIRE', KEYS[1], ARGV[1])\nreturn {1}"),
        "a week without sales: gave True; right is False.",
    ),
    (
        "build_week",
        _week("'ZINCRBY', KEYS[1], 10 * rows[n + 1], rows[n]"),
        "seven days: on the list is {'a': 200.0, 'b': 150.0}; right is",
    ),
    (
        "build_week",
        _week("'ZADD', KEYS[1], 10 * rows[n + 1] + 1, rows[n]"),
        "seven days: on the list is",
    ),
    (
        "build_week",
        _week("'ZINCRBY', KEYS[1], 10 * rows[n + 1] + (rows[n + 1] == '0' and 0 or 1), rows[n]"),
        "all copies of a day came back: on the list is",
    ),
    (
        "build_week",
        _week("'ZINCRBY', KEYS[1], string.format('%.7g', 10 * rows[n + 1] + 1), rows[n]"),
        "billions of copies: on the list is",
    ),
    ("build_week", nothing, "seven days: on the list is {'a': None, 'b': None}; right is"),
]


@pytest.mark.parametrize(("name", "answer"), [(n, a) for n, some in RIGHT.items() for a in some])
def test_right_answers_of_every_style(name: str, answer: Function, either: Client) -> None:
    assert exercise(name).judge(answer, either) == "Right."
    assert either.dbsize() == 0


@pytest.mark.parametrize(("name", "answer", "reason"), WRONG)
def test_wrong_answers_are_told_what_was_seen(
    name: str, answer: Function, reason: str, either: Client
) -> None:
    assert_refused(name, answer, reason, either)


@pytest.mark.parametrize("name", RIGHT)
def test_stub_and_solution_are_one(
    name: str, either: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_stub_and_solution_are_one(name, either, capsys)
