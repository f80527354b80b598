"""The exercise of lesson 03: a cursor that skips nothing (claim A46)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from labkit.lessons.tasks import Attempt, Client, NotYetError, Task, cut, shown

Row = tuple[str, float]

TIED = {f"book-{n}": 7.0 for n in range(1, 6)}
SPREAD = {f"book-{n}": 70.0 - 10 * n for n in range(1, 7)}
ODD_NAMES = ("Z", "a", "é", "a:10", "a:9", "1|2", "x,y", "(b", "[c", "a b", "+", "-")
BOARDS: dict[str, dict[str, float]] = {
    "five books tied at 7": TIED,
    "six books scored 60 to 10": SPREAD,
    "scores 10, 10, 10, 9, 9": {"a": 10, "b": 10, "c": 10, "d": 9, "e": 9},
    "scores 0.1 + 0.2 and 0.3": {"a": 0.1 + 0.2, "b": 0.1 + 0.2, "c": 0.3, "d": 0.3, "e": 1 / 3},
    "scores inf, 0 and -inf": {
        f"{score}, {n}": score for score in (math.inf, 0.0, -math.inf) for n in range(3)
    },
    "members with signs, accents and capitals": dict.fromkeys(ODD_NAMES, 3.0),
    "61 books over four scores": {f"book-{n}": float(n * n % 7) for n in range(61)},
    "an empty set": {},
}
SIZES = (1, 2, 3, 7)
# What happens to a board after its first page of two was read.
CHANGES: dict[str, Callable[[Client, str], object]] = {
    "a new book enters at the top": lambda r, key: r.zadd(key, {"new": 99}),
    "its first book is removed": lambda r, key: r.zpopmax(key),
    "its last book is removed": lambda r, key: r.zremrangebyrank(key, -2, -2),
    "its last book moves to the top": lambda r, key: r.zadd(
        key, dict.fromkeys(r.zrange(key, 1, 1, desc=True), 99)
    ),
    "the next book is removed": lambda r, key: r.zremrangebyrank(key, -3, -3),
    "its books and the next one are removed": lambda r, key: r.zpopmax(key, 3),
    "all that follows is removed": lambda r, key: r.zremrangebyrank(key, 0, -3),
}


def next_page(
    r: Client, key: str, size: int, cursor: Any = None
) -> tuple[list[tuple[str, float]], Any]:
    """One page from the highest score down, equal scores in the order of ZRANGE REV.

    Returns (rows, next_cursor). A row is (member, score); every page but the last has `size`
    rows. The cursor is what you make it: None asks for the first page, and next_cursor is None
    when nothing follows. Every member comes once. A cursor keeps its place also when members
    have moved or gone since, its own one included. Nothing is written.
    """
    rows, top = [], "+inf"
    if cursor is not None:
        member, score = cursor
        tied = r.zrange(key, score, score, desc=True, byscore=True, withscores=True)
        # Python orders text by code point, which is the order of its UTF-8 bytes.
        rows = [row for row in tied if row[0] < member]
        top = f"({score!r}"
    rows += r.zrange(  # one more than a page, to know whether anything follows
        key, top, "-inf", desc=True, byscore=True, withscores=True, offset=0, num=size + 1
    )
    page = rows[:size]
    return page, page[-1] if len(rows) > size else None


def check(attempt: Attempt) -> None:
    """Walk boards of every kind in pages of every size, then change a board during the walk."""
    r = attempt.server
    for name, board in BOARDS.items():
        for size in SIZES:
            key = attempt.key()
            if board:
                r.zadd(key, board)
            _walk(attempt, key, size, f"{name}, pages of {size}")
            if r.exists(key) != bool(board):
                raise NotYetError(f"{name}: reading a page made the key; right is to read only.")
    for name in ("five books tied at 7", "six books scored 60 to 10"):
        for words, change in CHANGES.items():
            key, given = attempt.key(), f"{name}, pages of 2; after page 1 {words}"
            r.zadd(key, BOARDS[name])
            _, last = _board(r, key)[:2]
            _, cursor = _page(attempt, key, 2, None, given)
            change(r, key)
            _walk(attempt, key, 2, given, cursor, last)


def _walk(
    attempt: Attempt, key: str, size: int, given: str, cursor: Any = None, last: Row | None = None
) -> None:
    """Follow the cursor to its end; right is what stands on the board after ``last``."""
    right = [row for row in _board(attempt.server, key) if last is None or row[::-1] < last[::-1]]
    seen: list[Row] = []
    while True:
        rows, cursor = _page(attempt, key, size, cursor, given)
        seen += rows
        # A walk that does not end repeats something, or has a page that is not full.
        if seen != right[: len(seen)]:
            raise NotYetError(f"{given}: {_difference(seen, right, last)}")
        if cursor is None:
            break
        came = f"{given}: a page of {len(rows)} came with the cursor {shown(cursor)}"
        if len(seen) == len(right):
            raise NotYetError(f"{came}; right is None, as nothing follows.")
        if len(rows) < size:
            raise NotYetError(f"{came}; right is a full page, as {right[len(seen)][0]} follows.")
    if seen != right:
        names = ", ".join(member for member, _ in right[len(seen) :])
        raise NotYetError(f"{given}: the walk ended with {cut(names)} skipped.")


def _board(r: Client, key: str) -> list[Row]:
    return [(member, score) for member, score in r.zrange(key, 0, -1, desc=True, withscores=True)]


def _page(attempt: Attempt, key: str, size: int, cursor: Any, given: str) -> tuple[list[Row], Any]:
    seen = attempt(key, size, cursor, given=given)
    try:
        page, following = seen
        rows = [(member, float(score)) for member, score in page]
    except (TypeError, ValueError):
        right = "(rows, next_cursor), where a row is (member, score)"
        raise NotYetError(f"{given} gave {shown(seen)}; right is {right}.") from None
    if len(rows) > size:
        raise NotYetError(f"{given}: one page held {len(rows)} rows; right is at most {size}.")
    return rows, following


def _difference(seen: list[Row], right: list[Row], last: Row | None) -> str:
    at = next(n for n, row in enumerate(seen) if right[n : n + 1] != [row])
    member, score = seen[at]
    if seen[at] in seen[:at]:
        return f"{member} came twice."
    if last is not None and seen[at][::-1] >= last[::-1]:
        return f"{member} came, which stands before the cursor's place."
    if seen[at] in right[at:]:
        names = ", ".join(name for name, _ in right[at : right.index(seen[at])])
        return f"{member} came with {cut(names)} skipped before it."
    expected = f"right is {right[at]!r}" if at < len(right) else "right is nothing more"
    return f"({member!r}, {score!r}) came; {expected}."


TASKS = (
    Task(
        stars=2,
        question=(
            "The shop's list has a button *next page*. Write `next_page` so that no book is "
            "skipped and none comes twice, on any board and any page size, also when five books "
            "are tied at 7, and when the last book seen is gone by the time of the click."
        ),
        hints=(
            "A score alone does not say where in a tie the page ended. What does?",
            "With the pair (score, member) the rest has two parts: what is left of the tie, and "
            "all that scores less. ZRANGE BYSCORE REV reads both; ( excludes a bound.",
            "Do not look the last member up by its rank: it may have moved. Compare members as "
            "the server does, and read one row more than a page to know whether anything follows.",
        ),
        solution=next_page,
        check=check,
    ),
)
