"""The checkers of lesson 04 against right answers of several styles and the wrong ones."""

# ruff: noqa: ARG001 (an answer has the arguments of its stub, used or not)

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from redis import ResponseError, WatchError

from labkit.lessons.exercises import exercise

Client = Any  # an answer is written without types
Function = Callable[..., Any]


# ---- steady: right answers


def stored_and_read(r: Client, days: list[str]) -> Any:
    with r.pipeline() as step:
        step.zinterstore("exercise:tmp", days, aggregate="min")
        step.zrange("exercise:tmp", 0, -1, desc=True, withscores=True)
        step.delete("exercise:tmp")
        return step.execute()[1]


def raw_command(r: Client, days: list[str]) -> Any:
    args = ("ZINTER", len(days), *days, "AGGREGATE", "MIN", "WITHSCORES")
    return tuple(r.execute_command(*args)[::-1])


def in_python(r: Client, days: list[str]) -> Any:
    boards = [dict(r.zrange(day, 0, -1, withscores=True)) for day in days]
    every = set(boards[0]).intersection(*boards)
    rows = [(min(board[book] for board in boards), book) for book in every]
    return [[book, copies] for copies, book in sorted(rows, reverse=True)]


# ---- steady: wrong answers


def as_it_comes(r: Client, days: list[str]) -> Any:
    return r.zinter(days, aggregate="MIN", withscores=True)


def total_of_all_days(r: Client, days: list[str]) -> Any:
    return r.zinter(days, withscores=True)[::-1]


def best_day(r: Client, days: list[str]) -> Any:
    return r.zinter(days, aggregate="MAX", withscores=True)[::-1]


def union(r: Client, days: list[str]) -> Any:
    return r.zunion(days, aggregate="MIN", withscores=True)[::-1]


def without_scores(r: Client, days: list[str]) -> Any:
    return r.zinter(days, aggregate="MIN")[::-1]


def days_that_are_there(r: Client, days: list[str]) -> Any:
    there = [day for day in days if r.exists(day)]
    return r.zinter(there, aggregate="MIN", withscores=True)[::-1]


def sold_something(r: Client, days: list[str]) -> Any:
    rows = r.zinter(days, aggregate="MIN", withscores=True)
    return [row for row in rows if row[1] > 0][::-1]


def ties_by_name(r: Client, days: list[str]) -> Any:
    rows = r.zinter(days, aggregate="MIN", withscores=True)
    return sorted(rows, key=lambda row: (-row[1], row[0]))


def into_the_first(r: Client, days: list[str]) -> Any:
    r.zinterstore(days[0], days, aggregate="MIN")
    return r.zrange(days[0], 0, -1, desc=True, withscores=True)


def forgot_return(r: Client, days: list[str]) -> None:
    r.zinter(days, aggregate="MIN", withscores=True)


# ---- close_day: right answers


def restored_by_time(r: Client, total: str, day: str, done: str) -> Any:
    """Another order in the script, another kind of note, and the deadline in place of the rest."""
    script = """
    if redis.call('HSETNX', KEYS[3], KEYS[2], 1) == 0 then return redis.error_reply('TWICE') end
    local ttl = redis.call('PTTL', KEYS[1])
    redis.call('ZUNIONSTORE', KEYS[1], 2, KEYS[2], KEYS[1])
    if ttl >= 0 then redis.call('PEXPIRE', KEYS[1], ttl) end"""
    try:
        r.eval(script, 3, total, day, done)
    except ResponseError:
        return False
    return True


def by_zincrby(r: Client, total: str, day: str, done: str) -> Any:
    """ZINCRBY keeps the time to live by itself."""
    script = """
    if redis.call('SADD', KEYS[3], KEYS[2]) == 0 then return 0 end
    local rows = redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES')
    for n = 1, #rows, 2 do redis.call('ZINCRBY', KEYS[1], rows[n + 1], rows[n]) end
    return 1"""
    return r.register_script(script)(keys=[total, day, done]) == 1


def watched(r: Client, total: str, day: str, done: str) -> Any:
    with r.pipeline() as step:
        while True:
            try:
                step.watch(total, day, done)
                if step.sismember(done, day):
                    return False
                left = step.pttl(total)
                step.multi()
                step.zunionstore(total, [total, day])
                if left > 0:
                    step.pexpire(total, left)
                step.sadd(done, day)
                step.execute()
                return True
            except WatchError:
                continue


# ---- close_day: wrong answers


def no_note(r: Client, total: str, day: str, done: str) -> Any:
    left = r.pttl(total)
    r.zunionstore(total, [total, day])
    if left > 0:
        r.pexpire(total, left)
    return True


def loses_the_ttl(r: Client, total: str, day: str, done: str) -> Any:
    script = """
    if redis.call('SADD', KEYS[3], KEYS[2]) == 0 then return 0 end
    redis.call('ZUNIONSTORE', KEYS[1], 2, KEYS[1], KEYS[2])
    return 1"""
    return bool(r.eval(script, 3, total, day, done))


def always_a_day_to_live(r: Client, total: str, day: str, done: str) -> Any:
    added = loses_the_ttl(r, total, day, done)
    r.expire(total, 86_400)
    return added


def five_thousand_for_all(r: Client, total: str, day: str, done: str) -> Any:
    added = loses_the_ttl(r, total, day, done)
    r.expire(total, 5_000)
    return added


def one_note_for_all_days(r: Client, total: str, day: str, done: str) -> Any:
    script = """
    if redis.call('SETNX', KEYS[3], 1) == 0 then return 0 end
    local ttl = redis.call('PTTL', KEYS[1])
    redis.call('ZUNIONSTORE', KEYS[1], 2, KEYS[1], KEYS[2])
    if ttl > 0 then redis.call('PEXPIRE', KEYS[1], ttl) end
    return 1"""
    return bool(r.eval(script, 3, total, day, done))


def note_first(r: Client, total: str, day: str, done: str) -> Any:
    """Dies after the note: the day is lost."""
    if not r.sadd(done, day):
        return False
    return no_note(r, total, day, done)


def note_last(r: Client, total: str, day: str, done: str) -> Any:
    if r.sismember(done, day):
        return False
    no_note(r, total, day, done)
    r.sadd(done, day)
    return True


def looks_then_multi(r: Client, total: str, day: str, done: str) -> Any:
    if r.sismember(done, day):
        return False
    with r.pipeline() as step:
        step.pttl(total).zunionstore(total, [total, day]).sadd(done, day)
        left, *_ = step.execute()
    if left > 0:
        r.pexpire(total, left)
    return True


def union_then_note(r: Client, total: str, day: str, done: str) -> Any:
    """The union and the expiry in one step, the note in the next: a job that dies counts twice."""
    script = """
    if redis.call('SISMEMBER', KEYS[3], KEYS[2]) == 1 then return 0 end
    local ttl = redis.call('PTTL', KEYS[1])
    redis.call('ZUNIONSTORE', KEYS[1], 2, KEYS[1], KEYS[2])
    if ttl > 0 then redis.call('PEXPIRE', KEYS[1], ttl) end
    return 1"""
    added = bool(r.eval(script, 3, total, day, done))
    return bool(r.sadd(done, day)) and added


def takes_the_larger(r: Client, total: str, day: str, done: str) -> Any:
    """MAX may run any number of times, and is not a sum."""
    left = r.pttl(total)
    r.zunionstore(total, [total, day], aggregate="MAX")
    if left > 0:
        r.pexpire(total, left)
    return bool(r.sadd(done, day))


def eats_the_day(r: Client, total: str, day: str, done: str) -> Any:
    """No note is needed when the day is gone, but a day shall stay."""
    added = r.exists(day)
    script = """
    local rows = redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES')
    for n = 1, #rows, 2 do redis.call('ZINCRBY', KEYS[1], rows[n + 1], rows[n]) end
    redis.call('DEL', KEYS[2])"""
    r.eval(script, 2, total, day)
    return bool(added)


def silent_day_is_not_added(r: Client, total: str, day: str, done: str) -> Any:
    script = """
    if redis.call('EXISTS', KEYS[2]) == 0 then return 0 end
    if redis.call('SADD', KEYS[3], KEYS[2]) == 0 then return 0 end
    local ttl = redis.call('PTTL', KEYS[1])
    redis.call('ZUNIONSTORE', KEYS[1], 2, KEYS[1], KEYS[2])
    if ttl > 0 then redis.call('PEXPIRE', KEYS[1], ttl) end
    return 1"""
    return bool(r.eval(script, 3, total, day, done))


def replaces_the_total(r: Client, total: str, day: str, done: str) -> Any:
    r.zunionstore(total, [day])
    return True


def number_for_bool(r: Client, total: str, day: str, done: str) -> Any:
    return int(by_zincrby(r, total, day, done))


def overwrites_with_text(r: Client, total: str, day: str, done: str) -> Any:
    r.set(total, "text")
    return True


RIGHT: list[tuple[str, Function]] = [
    ("steady", stored_and_read),
    ("steady", raw_command),
    ("steady", in_python),
    ("close_day", restored_by_time),
    ("close_day", by_zincrby),
    ("close_day", watched),
]
WRONG: list[tuple[str, Function, str]] = [
    ("steady", as_it_comes, "one day: gave [['a', 2.0], ['c', 2.0], ['b', 5.0]]; right is [('b',"),
    ("steady", as_it_comes, "The order is another one."),
    ("steady", total_of_all_days, "These are the copies of all days."),
    ("steady", best_day, "three days: gave [['b', 7.0]]; right is [('b', 5)]."),
    ("steady", union, "three days: gave"),
    ("steady", union, "c did not sell on every day."),
    ("steady", without_scores, "A row is (book, copies)."),
    ("steady", days_that_are_there, "two days of which one has no key: gave"),
    ("steady", sold_something, "a is in every day's set."),
    ("steady", ties_by_name, "one day: gave"),
    ("steady", into_the_first, "a day was changed; right is to read only."),
    ("steady", forgot_return, "gave None"),
    ("close_day", no_note, "the first day again: the total is {"),
    ("close_day", loses_the_ttl, "the total had 5000 s to live and has a TTL of -1."),
    ("close_day", always_a_day_to_live, "has a TTL of 86400."),
    ("close_day", five_thousand_for_all, "a new total: has a TTL of 5000; right is none, -1."),
    ("close_day", one_note_for_all_days, "the second day: the total is {"),
    ("close_day", note_first, "a job that died after its first command, then ran again: the total"),
    ("close_day", note_last, "two jobs at once, the second between two commands of the first:"),
    ("close_day", looks_then_multi, "two jobs at once, the second between two commands of the"),
    ("close_day", union_then_note, "two jobs at once"),
    ("close_day", takes_the_larger, "the first day: the total is {"),
    ("close_day", eats_the_day, "the day was changed; right is to read it only."),
    ("close_day", silent_day_is_not_added, "a day without sales: gave False; right is True."),
    ("close_day", replaces_the_total, "the first day: the total is {"),
    ("close_day", number_for_bool, "the first day: gave 1; right is True."),
    ("close_day", overwrites_with_text, "a sorted set became a string."),
]


@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_right_answers_of_every_style(name: str, answer: Function, either: Client) -> None:
    assert exercise(name).judge(answer, either) == "Right."
    assert either.dbsize() == 0


@pytest.mark.parametrize(("name", "answer", "reason"), WRONG)
def test_wrong_answers_are_told_what_was_seen(
    name: str, answer: Function, reason: str, either: Client
) -> None:
    either.set("exercise:mine", "stays")
    line = exercise(name).judge(answer, either)
    assert line.startswith("Not yet: ")
    assert reason in line
    assert "\n" not in line
    assert either.keys("*") == ["exercise:mine"], "the check left or took keys"


@pytest.mark.parametrize("name", ["steady", "close_day"])
def test_stub_and_solution_are_one(
    name: str, either: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    task = exercise(name)
    space: dict[str, Any] = {}
    exec(task.stub(), space)
    assert task.judge(space[name], either) == "Not attempted."
    task.solution()
    text = capsys.readouterr().out
    assert text.startswith(task.stub().removesuffix("    return ..."))
    exec(text, space)
    assert task.judge(space[name], either) == "Right."
    assert either.dbsize() == 0
