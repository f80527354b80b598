"""The checkers of lesson 04 against right answers of several styles and the wrong ones."""

# ruff: noqa: ARG001 (an answer has the arguments of its stub, used or not)

from __future__ import annotations

from collections.abc import Callable
from time import sleep
from typing import Any

import pytest
from redis import ResponseError, WatchError

from labkit.lessons.exercises import exercise
from labkit.tests.lessons.judging import assert_refused, assert_stub_and_solution_are_one

Client = Any  # an answer is written without types
Function = Callable[..., Any]


# ---- steady: right answers


def raw_command(r: Client, days: list[str]) -> Any:
    args = ("ZINTER", len(days), *days, "AGGREGATE", "MIN", "WITHSCORES")
    return tuple(r.execute_command(*args)[::-1])


def in_python(r: Client, days: list[str]) -> Any:
    boards = [dict(r.zrange(day, 0, -1, withscores=True)) for day in days]
    every = set(boards[0]).intersection(*boards)
    rows = [(min(board[book] for board in boards), book) for book in every]
    return [[book, copies] for copies, book in sorted(rows, reverse=True)]


# ---- steady: wrong answers


def stored_and_read(r: Client, days: list[str]) -> Any:
    with r.pipeline() as step:
        step.zinterstore("exercise:tmp", days, aggregate="min")
        step.zrange("exercise:tmp", 0, -1, desc=True, withscores=True)
        step.delete("exercise:tmp")
        return step.execute()[1]


def leaves_a_key(r: Client, days: list[str]) -> Any:
    r.zinterstore(f"{days[0]}:tmp", days, aggregate="min")
    return r.zrange(f"{days[0]}:tmp", 0, -1, desc=True, withscores=True)


def days_end_tomorrow(r: Client, days: list[str]) -> Any:
    for day in days:
        r.expire(day, 86_400, nx=True)
    return in_python(r, days)


def lists_for_books(r: Client, days: list[str]) -> Any:
    return [([book], copies) for book, copies in in_python(r, days)]


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


def deadline_kept(r: Client, total: str, day: str, done: str) -> Any:
    """A transaction by redis-py's own loop, with the deadline in place of the rest."""

    def add(step: Client) -> bool:
        if step.hexists(done, day):
            step.multi()
            return False
        ends = step.pexpiretime(total)
        step.multi()
        step.zunionstore(total, [day, total])
        if ends > 0:
            step.pexpireat(total, ends)
        step.hset(done, day, "added")
        return True

    return r.transaction(add, total, done, value_from_callable=True)


def pieces_then_one_step(r: Client, total: str, day: str, done: str) -> Any:
    """Other trips before the one that counts do no harm."""
    r.ping()
    if r.sismember(done, day):
        return False
    return by_zincrby(r, total, day, done)


# ---- close_day: wrong answers


UNION = """
if redis.call('SISMEMBER', KEYS[3], KEYS[2]) == 1 then return 0 end
local ttl = redis.call({ask})
redis.call('ZUNIONSTORE', KEYS[1], 2, KEYS[1], KEYS[2])
{keep}
redis.call('SADD', KEYS[3], KEYS[2])
return 1"""
ASK, KEEP = "'PTTL', KEYS[1]", "if ttl > 0 then redis.call('PEXPIRE', KEYS[1], ttl) end"


def scripted(ask: str = ASK, keep: str = KEEP, after: str = "") -> Function:
    """The right script, with another part."""
    script = UNION.format(ask=ask, keep=f"{keep}\n{after}")
    return lambda r, *keys: bool(r.eval(script, 3, *keys))


def ping_first(r: Client, total: str, day: str, done: str) -> Any:
    r.ping()
    return note_first(r, total, day, done)


def watched_with(
    *what: str, early: bool = False, unwatch: bool = False, plain: bool = False, again: bool = True
) -> Function:
    """``watched`` with a fault in it: other keys, or nothing watched when it counts."""

    def answer(r: Client, total: str, day: str, done: str) -> Any:
        keys = {"total": total, "day": day, "done": done}
        with r.pipeline() as step:
            while True:
                try:
                    step.watch(*(keys[name] for name in what))
                    if step.sismember(done, day):
                        return False
                    left = step.pttl(total)
                    if unwatch:
                        step.unwatch()
                    if not plain:
                        step.multi()
                    step.zunionstore(total, [total, day])
                    if left > 0:
                        step.pexpire(total, left)
                    step.sadd(done, day)
                    if not plain:
                        step.execute()
                    return True
                except WatchError:
                    if not again:
                        return False

    return answer


def sums_in_python(r: Client, total: str, day: str, done: str) -> Any:
    """Watches its note only, and writes scores that it read before."""
    with r.pipeline() as step:
        while True:
            try:
                step.watch(done)
                if step.sismember(done, day):
                    return False
                old = dict(step.zrange(total, 0, -1, withscores=True))
                sold = step.zrange(day, 0, -1, withscores=True)
                step.multi()
                if sold:
                    step.zadd(total, {book: old.get(book, 0) + n for book, n in sold})
                step.sadd(done, day)
                step.execute()
                return True
            except WatchError:
                continue


def locked(*, ends: int | None, freed: bool) -> Function:
    """One at a time by a lock that ends by itself, or when the job is over."""

    def answer(r: Client, total: str, day: str, done: str) -> Any:
        lock = f"{done}:lock"
        while not r.set(lock, 1, nx=True, px=ends):
            if freed:
                return False
            sleep(0.005)
        try:
            if r.sismember(done, day):
                return False
            left = r.pttl(total)
            with r.pipeline() as step:
                step.zunionstore(total, [total, day])
                if left > 0:
                    step.pexpire(total, left)
                step.sadd(done, day).execute()
            return True
        finally:
            r.delete(lock)

    return answer


def expiry_sent_afterwards(r: Client, total: str, day: str, done: str) -> Any:
    """The script gives back what there was to live."""
    script = UNION.format(ask=ASK, keep="").replace("return 1", "return {ttl}")
    seen = r.eval(script, 3, total, day, done)
    if seen == 0:
        return False
    if seen[0] > 0:
        r.pexpire(total, seen[0])
    return True


def ttl_read_before(r: Client, total: str, day: str, done: str) -> Any:
    left = r.pttl(total)
    script = UNION.format(ask=ASK, keep=KEEP).replace(
        "redis.call('PTTL', KEYS[1])", "tonumber(ARGV[1])"
    )
    return bool(r.eval(script, 3, total, day, done, left))


def a_key_for_each_day(r: Client, total: str, day: str, done: str) -> Any:
    script = UNION.format(ask=ASK, keep=KEEP)
    script = script.replace("SISMEMBER', KEYS[3], KEYS[2]", "EXISTS', KEYS[3] .. KEYS[2]")
    script = script.replace("SADD', KEYS[3], KEYS[2]", "SET', KEYS[3] .. KEYS[2], '1'")
    return bool(r.eval(script, 3, total, day, done))


def one_long_text(r: Client, total: str, day: str, done: str) -> Any:
    script = UNION.format(ask=ASK, keep=KEEP)
    script = script.replace(
        "redis.call('SISMEMBER', KEYS[3], KEYS[2]) == 1",
        "string.find(redis.call('GET', KEYS[3]) or '', KEYS[2], 1, true)",
    )
    script = script.replace("SADD", "APPEND")
    return bool(r.eval(script, 3, total, day, done))


def silent_days_leave_no_note(r: Client, total: str, day: str, done: str) -> Any:
    return scripted()(r, total, day, done) if r.exists(day) else True


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
    ("steady", raw_command),
    ("steady", in_python),
    ("close_day", restored_by_time),
    ("close_day", by_zincrby),
    ("close_day", watched),
    ("close_day", deadline_kept),
    ("close_day", pieces_then_one_step),
    ("close_day", scripted()),
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
    ("steady", into_the_first, "one day: something was written; right is to read only."),
    ("steady", stored_and_read, "one day: something was written; right is to read only."),
    ("steady", leaves_a_key, "one day: something was written; right is to read only."),
    ("steady", days_end_tomorrow, "one day: a day was changed; right is to read only."),
    ("steady", lists_for_books, "A row is (book, copies)."),
    ("steady", forgot_return, "gave None"),
    ("close_day", no_note, "the first day again: the total is {"),
    (
        "close_day",
        loses_the_ttl,
        "with a time to live: the time to live is gone; right is to keep it",
    ),
    ("close_day", always_a_day_to_live, "a total without a time to live has one now"),
    ("close_day", five_thousand_for_all, "a total without a time to live has one now"),
    (
        "close_day",
        one_note_for_all_days,
        "the second day, a key with which the first one's begins: the to",
    ),
    ("close_day", note_first, "a job that died after command 1, then ran again: the total"),
    ("close_day", ping_first, "a job that died after command 2, then ran again: the total"),
    ("close_day", watched_with("total", "done", unwatch=True), "two jobs at once, the second"),
    ("close_day", watched_with("day"), "two jobs at once, the second between two commands"),
    ("close_day", watched_with("total", "day", "done", plain=True), "two jobs at once"),
    ("close_day", watched_with("total", "done", again=False), "another job adds another day"),
    ("close_day", watched_with("done"), "gives the total another time to live between two"),
    ("close_day", sums_in_python, "another client adds to the total between two commands: the tot"),
    ("close_day", locked(ends=30, freed=False), "two jobs at once"),
    ("close_day", locked(ends=None, freed=True), "a job that died after command 1, then ran again"),
    ("close_day", locked(ends=9_000, freed=True), "a job that died after command 1, then ran ag"),
    ("close_day", expiry_sent_afterwards, "a job that died after command 1, then ran again: the t"),
    ("close_day", ttl_read_before, "gives the total another time to live between two commands"),
    ("close_day", scripted(after="redis.call('PEXPIRE', KEYS[3], 60000)"), "note has a time to"),
    (
        "close_day",
        scripted(keep="if ttl > 0 then redis.call('EXPIRE', KEYS[1], 5000) end"),
        "the time to live ends 0.",
    ),
    (
        "close_day",
        scripted(ask="'TTL', KEYS[1]", keep=KEEP.replace("PEXPIRE", "EXPIRE")),
        "the time to live ends 0.",
    ),
    ("close_day", a_key_for_each_day, "was left behind; right is none."),
    ("close_day", one_long_text, "a key with which the first one's begins: the total is {"),
    ("close_day", silent_days_leave_no_note, "the day without sales again: gave True; right is F"),
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
    assert_refused(name, answer, reason, either)


@pytest.mark.parametrize("name", ["steady", "close_day"])
def test_stub_and_solution_are_one(
    name: str, either: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_stub_and_solution_are_one(name, either, capsys)
