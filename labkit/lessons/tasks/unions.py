"""The exercises of lesson 04: an intersection, and a total to which each day is added once."""

from __future__ import annotations

import math
from typing import Any

from labkit.lessons.tasks import Attempt, Client, NotYetError, Task, shown

Sold = dict[str, float]

WEEKS: dict[str, list[Sold]] = {
    "one day": [{"a": 2, "b": 5, "c": 2}],
    "three days": [{"a": 40, "b": 5}, {"b": 6, "c": 4}, {"b": 7, "c": 9, "a": 1}],
    "three days with ties": [dict.fromkeys(("Z", "a", "é", "b"), n) for n in (3.0, 2.0, 2.5)],
    "two days of which one has no key": [{"a": 2, "b": 5}, {}],
    "two days, with a book at 0 and one below it": [{"a": 0, "b": -2, "c": 3}] * 2,
    "seven days of 300 books": [
        {f"b{n:03d}": float((n + 3 * day) ** 2 % 17) for n in range(20 * day, 300)}
        for day in range(7)
    ],
}


def steady(r: Client, days: list[str]) -> list[tuple[str, float]]:
    """The books that sold on every day, as (book, copies) rows: the copies of its worst day.

    `days` are the keys of sorted sets, one or more, with the copies of that day as scores; a
    day without sales has no key. Most copies first, equal ones in the order of ZRANGE REV.
    Nothing is written.
    """
    rows = r.zinter(days, aggregate="MIN", withscores=True)
    return [(book, copies) for book, copies in reversed(rows)]


def check_steady(attempt: Attempt) -> None:
    """Weeks of several kinds, each compared with Python."""
    r = attempt.server
    for name, week in WEEKS.items():
        days = [attempt.key() for _ in week]
        for key, sold in zip(days, week, strict=True):
            if sold:
                r.zadd(key, sold)
        worst = {book: min(sold.get(book, math.inf) for sold in week) for book in week[0]}
        every = [(b, copies) for b, copies in worst.items() if all(b in sold for sold in week)]
        right = sorted(every, key=lambda row: row[::-1], reverse=True)
        seen = attempt(list(days), given=name)
        if _rows(seen) != right:
            clue = _steady_clue(seen, right, week)
            raise NotYetError(f"{name}: gave {shown(seen)}; right is {shown(right)}.{clue}")
        for key, sold in zip(days, week, strict=True):
            if dict(r.zrange(key, 0, -1, withscores=True)) != sold:
                raise NotYetError(f"{name}: a day was changed; right is to read only.")


def _rows(seen: object) -> list[tuple[str, float]] | None:
    try:
        return [(book, float(copies)) for book, copies in seen]  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        return None


def _steady_clue(seen: object, right: list[tuple[str, float]], week: list[Sold]) -> str:
    rows = _rows(seen)
    if rows is None:
        return " A row is (book, copies)."
    if extra := [book for book, _ in rows if not all(book in sold for sold in week)]:
        return f" {extra[0]} did not sell on every day."
    if sorted(rows) == sorted(right):
        return " The order is another one."
    if left_out := [book for book, _ in right if book not in dict(rows)]:
        return f" {left_out[0]} is in every day's set."
    totals = {book: sum(sold[book] for sold in week) for book, _ in rows}
    return " These are the copies of all days." if dict(rows) == totals else ""


def close_day(r: Client, total: str, day: str, done: str) -> bool:
    """Add the copies of a finished day to the total, once. True when this call added them.

    `total` and `day` are keys of sorted sets; `done` is a key for notes of your own. A day that
    is in the total already is not added again: False. This holds also when two jobs do it at
    once, and when a job that died is started again: whatever happens between two commands, the
    day ends up in the total once. A day without sales has no key, and counts as added. The
    total keeps its time to live, if it has one, and the day stays as it is.
    """
    script = """
    if redis.call('SISMEMBER', KEYS[3], KEYS[2]) == 1 then return 0 end
    local lives = redis.call('PTTL', KEYS[1])
    redis.call('ZUNIONSTORE', KEYS[1], 2, KEYS[1], KEYS[2])
    if lives > 0 then redis.call('PEXPIRE', KEYS[1], lives) end
    redis.call('SADD', KEYS[3], KEYS[2])
    return 1
    """
    return bool(r.eval(script, 3, total, day, done))


class _DiedError(BaseException):
    """The job's process ends here; not an Exception, so that no job can catch it by accident."""


def check_close_day(attempt: Attempt) -> None:
    """Days into totals with and without a TTL, repeated, at the same time, and interrupted."""
    r, done = attempt.server, attempt.key()
    total, first, second, silent = (attempt.key() for _ in range(4))
    r.zadd(total, {"a": 40, "b": 1})
    r.expire(total, 5_000)
    r.zadd(first, {"b": 2, "c": 3})
    r.zadd(second, {"a": 0.5, "c": 1})
    runs: list[tuple[str, str, bool, Sold]] = [
        ("the first day", first, True, {"a": 40, "b": 3, "c": 3}),
        ("the first day again", first, False, {"a": 40, "b": 3, "c": 3}),
        ("the second day", second, True, {"a": 40.5, "b": 3, "c": 4}),
        ("a day without sales", silent, True, {"a": 40.5, "b": 3, "c": 4}),
        ("the first day a third time", first, False, {"a": 40.5, "b": 3, "c": 4}),
    ]
    for name, day, added, right in runs:
        before = _scores(r, day)
        seen = attempt(total, day, done, given=name)
        _compare(name, _scores(r, total), right)
        if seen is not added:
            raise NotYetError(f"{name}: gave {shown(seen)}; right is {added}.")
        if not 4_000 < r.ttl(total) <= 5_000:
            raise NotYetError(
                f"{name}: the total had 5000 s to live and has a TTL of {r.ttl(total)}."
            )
        if _scores(r, day) != before:
            raise NotYetError(f"{name}: the day was changed; right is to read it only.")
    fresh = attempt.key()
    attempt(fresh, second, attempt.key(), given="a total that does not exist yet")
    _compare("a total that does not exist yet", _scores(r, fresh), {"a": 0.5, "c": 1})
    if r.ttl(fresh) != -1:
        raise NotYetError(f"a new total: has a TTL of {r.ttl(fresh)}; right is none, -1.")
    _two_at_once(attempt)
    _died(attempt)


def _two_at_once(attempt: Attempt) -> None:
    keys, answers = _shop(attempt), list[object]()
    name = "two jobs at once, the second between two commands of the first"
    answers.append(
        attempt(*keys, given=name, meanwhile=lambda: answers.append(attempt(*keys, given=name)))
    )
    _compare(name, _scores(attempt.server, keys[0]), {"a": 40, "b": 3})
    if sum(answer is True for answer in answers) != 1:
        raise NotYetError(f"{name}: they gave {shown(answers)}; right is True once.")


def _died(attempt: Attempt) -> None:
    def die() -> None:
        raise _DiedError

    keys, name = _shop(attempt), "a job that died after its first command, then ran again"
    try:
        attempt(*keys, given=name, meanwhile=die)
    except _DiedError:
        attempt(*keys, given=name)
    _compare(name, _scores(attempt.server, keys[0]), {"a": 40, "b": 3})


def _shop(attempt: Attempt) -> tuple[str, str, str]:
    total, day, done = (attempt.key() for _ in range(3))
    attempt.server.zadd(total, {"a": 40, "b": 1})
    attempt.server.zadd(day, {"b": 2})
    return total, day, done


def _scores(r: Client, key: str) -> Any:
    if r.type(key) not in ("zset", "none"):
        raise NotYetError(f"a sorted set became a {r.type(key)}.")
    return dict(r.zrange(key, 0, -1, withscores=True))


def _compare(name: str, seen: Sold, right: Sold) -> None:
    if seen != right:
        raise NotYetError(f"{name}: the total is {shown(seen)}; right is {right}.")


TASKS = (
    Task(
        stars=1,
        question=(
            "The shop wants a shelf for books that sell every single day, ordered by what they "
            "sell on their worst one. Write `steady`."
        ),
        hints=(
            "A union has the books of any day. Which command has only those of every day?",
            "ZINTER with AGGREGATE MIN. Its reply is lowest first and knows no REV.",
        ),
        solution=steady,
        check=check_steady,
    ),
    Task(
        stars=3,
        question=(
            "A nightly job adds the finished day to the total of all time. It may be started "
            "twice, by two machines at once, and it may die in the middle. Write `close_day` so "
            "that each day is in the total once, whatever happens, and the total keeps its time "
            "to live."
        ),
        hints=(
            "A set of the days that are in the total can say whether a day is in. What if the job "
            "dies between the union and that note, or another job looks in between?",
            "Looking, adding and noting have to be one step, and what is done depends on what was "
            "seen. MULTI cannot decide; a script can.",
            "In the script: SISMEMBER of the day's name in `done`; PTTL of the total; ZUNIONSTORE "
            "total 2 total day; PEXPIRE if there was a time to live; SADD; return 1 or 0.",
        ),
        solution=close_day,
        check=check_close_day,
    ),
)
