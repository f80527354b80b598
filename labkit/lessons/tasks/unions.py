"""The first exercise of lesson 04: the books that sold every day. The second is in ``totals``."""

from __future__ import annotations

import math

from labkit.lessons.tasks import Attempt, Client, NotYetError, Task, shown
from labkit.lessons.tasks.traces import no_other_keys

Sold = dict[str, float]
Rows = list[tuple[str, float]]

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


def check(attempt: Attempt) -> None:
    """Weeks of several kinds, each compared with Python; and nothing is written."""
    r, keys = attempt.server, list[str]()
    with no_other_keys(r, keys):
        for name, week in WEEKS.items():
            days = [attempt.key() for _ in week]
            keys += days
            for key, sold in zip(days, week, strict=True):
                if sold:
                    r.zadd(key, sold)
            worst = {book: min(sold.get(book, math.inf) for sold in week) for book in week[0]}
            every = [(b, copies) for b, copies in worst.items() if all(b in sold for sold in week)]
            right = sorted(every, key=lambda row: row[::-1], reverse=True)
            seen, wrote = _asked(attempt, days, name)
            if _rows(seen) != right:
                clue = _clue(seen, right, week)
                raise NotYetError(f"{name}: gave {shown(seen)}; right is {shown(right)}.{clue}")
            for key, sold in zip(days, week, strict=True):
                if dict(r.zrange(key, 0, -1, withscores=True)) != sold or r.pttl(key) >= 0:
                    raise NotYetError(f"{name}: a day was changed; right is to read only.")
            # Others may use the server meanwhile: a function that writes does so every time.
            if wrote and all(_asked(attempt, days, name)[1] for _ in range(4)):
                raise NotYetError(f"{name}: something was written; right is to read only.")


def _asked(attempt: Attempt, days: list[str], name: str) -> tuple[object, bool]:
    """The answer, and whether the server counts more changes after it."""
    r, counter = attempt.server, "rdb_changes_since_last_save"
    before = r.info("persistence")[counter]
    seen = attempt(list(days), given=name)
    return seen, r.info("persistence")[counter] > before


def _rows(seen: object) -> Rows | None:
    try:
        rows = [(book, float(copies)) for book, copies in seen]  # type: ignore[attr-defined]
    except (TypeError, ValueError, OverflowError):
        return None
    return rows if all(isinstance(book, str) for book, _ in rows) else None


def _clue(seen: object, right: Rows, week: list[Sold]) -> str:
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
        check=check,
    ),
)
