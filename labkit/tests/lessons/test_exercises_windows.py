"""The checker of lesson 07 against right answers of several styles and the wrong ones."""

# ruff: noqa: ARG001 (an answer has the arguments of its stub, used or not)

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from labkit.lessons.exercises import exercise
from labkit.tests.lessons.judging import assert_refused

Client = Any  # an answer is written without types
Function = Callable[..., Any]


def _weights(minutes: list[str]) -> dict[str, float]:
    return {key: 60 - age for age, key in enumerate(minutes[:60])}


def _best(r: Client, into: str, size: int) -> Any:
    return r.zrange(into, 0, size - 1, desc=True, withscores=True)


# ---- right answers


def single_calls(r: Client, minutes: list[str], into: str, size: int) -> Any:
    r.zunionstore(into, dict(zip(minutes, range(60, 0, -1), strict=False)))
    r.expire(into, 60)
    return _best(r, into, size)


def raw_command(r: Client, minutes: list[str], into: str, size: int) -> Any:
    keys = minutes[:60]
    weights = range(60, 60 - len(keys), -1)
    r.execute_command("ZUNIONSTORE", into, len(keys), *keys, "WEIGHTS", *weights)
    r.pexpire(into, 59_000)
    return r.zrevrange(into, 0, size - 1, withscores=True)


def in_python(r: Client, minutes: list[str], into: str, size: int) -> Any:
    points: dict[str, float] = defaultdict(float)
    for age, key in enumerate(minutes[:60]):
        for book, copies in r.zrange(key, 0, -1, withscores=True):
            points[book] += copies * (60 - age)
    with r.pipeline() as step:
        step.delete(into)
        if points:
            step.zadd(into, points).expire(into, 60)
        step.execute()
    rows = sorted(((n, book.encode()) for book, n in points.items()), reverse=True)
    return [[book.decode(), n] for n, book in rows[:size]]


def union_then_write(r: Client, minutes: list[str], into: str, size: int) -> Any:
    rows = r.zunion(_weights(minutes), withscores=True)
    with r.pipeline() as step:
        step.unlink(into)
        if rows:
            step.zadd(into, dict(rows))
        step.expire(into, 60)
        step.execute()
    return tuple((book, points) for book, points in rows[::-1][:size])


def script(r: Client, minutes: list[str], into: str, size: int) -> Any:
    lua = """local keys = {}
    for i = 2, math.min(#KEYS, 61) do keys[#keys + 1] = KEYS[i] end
    local call = {'ZUNIONSTORE', KEYS[1], #keys}
    for _, key in ipairs(keys) do call[#call + 1] = key end
    call[#call + 1] = 'WEIGHTS'
    for age = 0, #keys - 1 do call[#call + 1] = 60 - age end
    redis.call(unpack(call))
    redis.call('EXPIRE', KEYS[1], 60)"""
    r.eval(lua, 1 + len(minutes), into, *minutes)
    return _best(r, into, size)


def beside_it_then_renamed(r: Client, minutes: list[str], into: str, size: int) -> Any:
    if r.zunionstore(f"{into}:next", _weights(minutes)):
        r.expire(f"{into}:next", 60)
        r.rename(f"{into}:next", into)
    else:
        r.delete(into)
    return _best(r, into, size)


# ---- wrong answers


def _store(r: Client, weights: Any, into: str, size: int, **options: Any) -> Any:
    r.zunionstore(into, weights, **options)
    r.expire(into, 60)
    return _best(r, into, size)


def no_weights(r: Client, minutes: list[str], into: str, size: int) -> Any:
    return _store(r, minutes[:60], into, size)


def oldest_counts_most(r: Client, minutes: list[str], into: str, size: int) -> Any:
    return _store(r, {key: n for n, key in enumerate(minutes[:60], 1)}, into, size)


def weight_by_number_of_keys(r: Client, minutes: list[str], into: str, size: int) -> Any:
    last = minutes[:60]
    return _store(r, {key: len(last) - n for n, key in enumerate(last)}, into, size)


def fractions(r: Client, minutes: list[str], into: str, size: int) -> Any:
    return _store(r, {key: w / 60 for key, w in _weights(minutes).items()}, into, size)


def all_keys(r: Client, minutes: list[str], into: str, size: int) -> Any:
    return _store(r, {key: max(60 - age, 1) for age, key in enumerate(minutes)}, into, size)


def sixty_one(r: Client, minutes: list[str], into: str, size: int) -> Any:
    return _store(r, {key: 61 - age for age, key in enumerate(minutes[:61])}, into, size)


def fifty_nine(r: Client, minutes: list[str], into: str, size: int) -> Any:
    return _store(r, {key: 60 - age for age, key in enumerate(minutes[:59])}, into, size)


def best_minute_only(r: Client, minutes: list[str], into: str, size: int) -> Any:
    return _store(r, _weights(minutes), into, size, aggregate="MAX")


def with_the_old_list(r: Client, minutes: list[str], into: str, size: int) -> Any:
    return _store(r, {into: 1, **_weights(minutes)}, into, size)


def adds_up(r: Client, minutes: list[str], into: str, size: int) -> Any:
    for key, weight in _weights(minutes).items():
        for book, copies in r.zrange(key, 0, -1, withscores=True):
            r.zincrby(into, weight * copies, book)
    r.expire(into, 60)
    return _best(r, into, size)


def no_expire(r: Client, minutes: list[str], into: str, size: int) -> Any:
    r.zunionstore(into, _weights(minutes))
    return _best(r, into, size)


def expire_too_early(r: Client, minutes: list[str], into: str, size: int) -> Any:
    r.expire(into, 60)
    r.zunionstore(into, _weights(minutes))
    return _best(r, into, size)


def an_hour_to_live(r: Client, minutes: list[str], into: str, size: int) -> Any:
    r.zunionstore(into, _weights(minutes))
    r.expire(into, 3600)
    return _best(r, into, size)


def ascending(r: Client, minutes: list[str], into: str, size: int) -> Any:
    _store(r, _weights(minutes), into, size)
    return r.zrange(into, 0, size - 1, withscores=True)


def without_scores(r: Client, minutes: list[str], into: str, size: int) -> Any:
    _store(r, _weights(minutes), into, size)
    return r.zrange(into, 0, size - 1, desc=True)


def one_row_more(r: Client, minutes: list[str], into: str, size: int) -> Any:
    return _store(r, _weights(minutes), into, size + 1)


def only_the_best_are_stored(r: Client, minutes: list[str], into: str, size: int) -> Any:
    rows = _store(r, _weights(minutes), into, size)
    r.zremrangebyrank(into, 0, -size - 1)
    return rows


def nothing_is_stored(r: Client, minutes: list[str], into: str, size: int) -> Any:
    return r.zunion(_weights(minutes), withscores=True)[::-1][:size]


def eats_the_minutes(r: Client, minutes: list[str], into: str, size: int) -> Any:
    rows = _store(r, _weights(minutes), into, size)
    r.unlink(*minutes)
    return rows


def stale_when_silent(r: Client, minutes: list[str], into: str, size: int) -> Any:
    rows = r.zunion(_weights(minutes), withscores=True)
    return _store(r, _weights(minutes), into, size) if rows else _best(r, into, size)


def doubles_the_minutes(r: Client, minutes: list[str], into: str, size: int) -> Any:
    rows = _store(r, _weights(minutes), into, size)
    for key in minutes[:60]:
        r.zunionstore(key, {key: 2})
        r.expire(key, 5_000)
    return rows


def minutes_get_a_deadline(r: Client, minutes: list[str], into: str, size: int) -> Any:
    for key in minutes:
        r.expire(key, 3_600)
    return _store(r, _weights(minutes), into, size)


def minutes_stay_for_ever(r: Client, minutes: list[str], into: str, size: int) -> Any:
    r.persist(minutes[0])
    return _store(r, _weights(minutes), into, size)


def silent_minutes_get_a_book(r: Client, minutes: list[str], into: str, size: int) -> Any:
    rows = _store(r, _weights(minutes), into, size)
    for key in minutes[:60]:
        r.zadd(key, {"none": 0})
    return rows


def lives_five_seconds(r: Client, minutes: list[str], into: str, size: int) -> Any:
    rows = _store(r, _weights(minutes), into, size)
    r.expire(into, 5)
    return rows


def step_by_step(r: Client, minutes: list[str], into: str, size: int) -> Any:
    rows = r.zunion(_weights(minutes), withscores=True)
    r.delete(into)
    for book, points in rows:
        r.zadd(into, {book: points})
    r.expire(into, 60)
    return rows[::-1][:size]


def emptied_first(r: Client, minutes: list[str], into: str, size: int) -> Any:
    r.delete(into)
    return _store(r, _weights(minutes), into, size)


def leaves_a_helper(r: Client, minutes: list[str], into: str, size: int) -> Any:
    r.zunionstore(f"{into}:helper", _weights(minutes))
    return _store(r, [f"{into}:helper"], into, size)


def forgot_return(r: Client, minutes: list[str], into: str, size: int) -> Any:
    _store(r, _weights(minutes), into, size)


RIGHT = [single_calls, raw_command, in_python, union_then_write, script, beside_it_then_renamed]
WRONG: list[tuple[Function, str]] = [
    (no_weights, "one minute, the best 2: gave [['c', 5.0], ['b', 2.0]]; right is [('c', 300.0), "),
    (no_weights, "no minute weighs more than another"),
    (oldest_counts_most, "right is [('c', 300.0), ('b', 120.0)]"),
    (weight_by_number_of_keys, "one minute"),
    (fractions, "no minute weighs more than another"),
    (all_keys, "75 minutes, the best 2: gave [['gone', 5000.0]"),
    (all_keys, "Only the newest 60 keys count."),
    (sixty_one, "one minute"),
    (fifty_nine, "a full hour, the best 2"),
    (best_minute_only, "a full hour, the best 2"),
    (with_the_old_list, "one minute, the best 10: gave [['c', 600.0]"),
    (adds_up, "one minute, the best 10: gave [['c', 600.0]"),
    (no_expire, "one minute: the list has a TTL of -1; right is 60."),
    (expire_too_early, "the list has a TTL of -1; right is 60."),
    (an_hour_to_live, "the list has a TTL of 3600; right is 60."),
    (ascending, "one minute, the best 2: gave [['a', 120.0]"),
    (without_scores, "A row is (book, points)."),
    (one_row_more, "one minute, the best 2"),
    (only_the_best_are_stored, "one minute: stored was"),
    (nothing_is_stored, "one minute: stored was []"),
    (eats_the_minutes, "the minute 0 before the newest holds {} afterwards, and held {'a': 2"),
    (doubles_the_minutes, "one minute: the minute 0 before the newest holds {'a': 4.0"),
    (minutes_get_a_deadline, "one minute: a minute had 5000 s to live and has a TTL of 3600"),
    (minutes_stay_for_ever, "a minute had 5000 s to live and has a TTL of -1 afterwards; right"),
    (silent_minutes_get_a_book, "holds {'none': 0.0"),
    (lives_five_seconds, "one minute: the list has a TTL of 5; right is 60."),
    (step_by_step, "who reads the list between two of your commands meets []; right is the old"),
    (emptied_first, "who reads the list between two of your commands meets []; right is the old"),
    (stale_when_silent, "a full hour in which nothing was sold, the best 2: gave"),
    (forgot_return, "gave None"),
]


@pytest.mark.parametrize("answer", [exercise("trending")._task.solution, *RIGHT])
def test_right_answers_of_every_style(answer: Function, either: Client) -> None:
    assert exercise("trending").judge(answer, either) == "Right."
    assert either.dbsize() == 0


@pytest.mark.parametrize(("answer", "reason"), WRONG)
def test_wrong_answers_are_told_what_was_seen(
    answer: Function, reason: str, either: Client
) -> None:
    assert_refused("trending", answer, reason, either)


def test_a_key_beside_into_is_named(either: Client) -> None:
    line = exercise("trending").judge(leaves_a_helper, either)
    assert line.startswith("Not yet: one minute: a key is left: 'exercise:")
    assert line.endswith(":helper'; right is `into` alone.")
    assert [key.rpartition(":")[2] for key in either.keys("*")] == ["helper"], "it is the answer's"


def test_the_untouched_stub_is_not_attempted(either: Client) -> None:
    space: dict[str, Any] = {}
    exec(exercise("trending").stub(), space)
    assert exercise("trending").judge(space["trending"], either) == "Not attempted."


def test_the_shown_solution_stands_alone_and_is_right(
    either: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    exercise("trending").solution()
    text = capsys.readouterr().out
    assert text.startswith(exercise("trending").stub().removesuffix("    return ..."))
    space: dict[str, Any] = {}
    exec(text, space)
    assert exercise("trending").judge(space["trending"], either) == "Right."
