"""The exercise of lesson 07: what trends in the last hour (claim A47)."""

from __future__ import annotations

from collections import defaultdict

from labkit.lessons.tasks import Attempt, Client, NotYetError, Task, shown

LIVES = 60  # seconds that the stored list lives
# Sales by minute, newest first: the books, and how many minutes ago each of them sold how much.
RISING: dict[int, dict[str, float]] = {
    0: {"new": 3, "odd": 1},
    1: {"new": 2, "even": 1},
    59: {"old": 200, "odd": 7},
}
SALES: dict[str, dict[int, dict[str, float]]] = {
    "one minute": {0: {"a": 2, "b": 2, "c": 5}},
    "three minutes, the shop has just opened": {0: {"a": 10}, 1: {"b": 10}, 2: {"c": 11}},
    "a full hour": RISING,
    "an hour with 57 silent minutes": RISING | {30: {"mid": 6, "new": 1}},
    "75 minutes": RISING | {60: {"gone": 5_000}, 74: {"old": 900}},
    "a full hour in which nothing was sold": {},
}
MINUTES = {"one minute": 1, "three minutes, the shop has just opened": 3, "75 minutes": 75}


def trending(r: Client, minutes: list[str], into: str, size: int) -> list[tuple[str, float]]:
    """What trends now: the best `size` books of the last 60 minutes, as (book, points) rows.

    `minutes` are the keys of sorted sets, newest first, one or more; each holds the copies that
    were sold in that minute, and a minute without sales has no key. A copy in the newest minute
    counts 60 points, in the one before 59, and so on; what is older than 60 minutes counts
    nothing. The whole ranking is stored in the key `into`, in place of what was there, for at
    most 60 seconds. Most points first, equal points in the order of ZRANGE REV.
    """
    weights = {key: 60 - age for age, key in enumerate(minutes[:60])}
    with r.pipeline() as step:  # MULTI: nobody meets the list without its time to live
        step.zunionstore(into, weights)
        step.expire(into, 60)
        step.zrange(into, 0, size - 1, desc=True, withscores=True)
        *_, rows = step.execute()
    return [(book, points) for book, points in rows]


def check(attempt: Attempt) -> None:
    """Minutes of several kinds into one key, one after the other, each compared with Python."""
    r, into = attempt.server, attempt.key()
    for name, sales in SALES.items():
        minutes = [attempt.key() for _ in range(MINUTES.get(name, 60))]
        for age, sold in sales.items():
            r.zadd(minutes[age], sold)
        points: defaultdict[str, float] = defaultdict(float)
        for age, sold in sales.items():
            for book, copies in sold.items() if age < 60 else ():
                points[book] += (60 - age) * copies
        rows = sorted(points.items(), key=lambda row: row[::-1], reverse=True)
        for size in (2, 10):
            seen = attempt(list(minutes), into, size, given=name)
            if _rows(seen) != rows[:size]:
                clue = _clue(seen, sales)
                raise NotYetError(
                    f"{name}, the best {size}: gave {shown(seen)}; right is {rows[:size]}.{clue}"
                )
            stored = _rows(r.zrange(into, 0, -1, desc=True, withscores=True))
            if stored != rows:
                raise NotYetError(f"{name}: stored was {shown(stored)}; right is {rows}.")
            if rows and not 0 < r.ttl(into) <= LIVES:
                raise NotYetError(f"{name}: the list has a TTL of {r.ttl(into)}; right is 60.")
            if r.exists(*minutes) != len(sales):
                raise NotYetError(f"{name}: a minute was removed; right is to read them only.")


def _rows(seen: object) -> list[tuple[str, float]] | None:
    try:
        return [(book, float(points)) for book, points in seen]  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        return None


def _clue(seen: object, sales: dict[int, dict[str, float]]) -> str:
    rows = _rows(seen)
    if rows is None:
        return " A row is (book, points)."
    books = dict(rows)
    if "gone" in books or books.get("old", 0) > 100_000:
        return " Only the newest 60 keys count."
    for book, points in books.items():
        copies = sum(sold.get(book, 0) for sold in sales.values())
        if points == copies:
            return " These are copies: no minute weighs more than another."
    return ""


TASKS = (
    Task(
        stars=3,
        question=(
            "The shop's front page shows *trending now*. Every minute has a sorted set of its own. "
            "Write `trending`: it combines the last 60 of them so that recent minutes count more, "
            "and stores the list for the readers of the next minute."
        ),
        hints=(
            "One command unites any number of sets, each with a weight, and stores the result.",
            "redis-py takes a dict of key and weight. The weight follows from the age of the "
            "minute and not from the number of keys: a shop that opened now has few.",
            "ZUNIONSTORE drops the time to live of what it writes. Send ZUNIONSTORE, EXPIRE and "
            "ZRANGE REV together, in one MULTI.",
        ),
        solution=trending,
        check=check,
    ),
)
