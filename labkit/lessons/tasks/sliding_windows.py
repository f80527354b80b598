"""The exercise of lesson 07: what trends in the last hour (claim A47)."""

from __future__ import annotations

from collections import defaultdict

from labkit.lessons.tasks import RACES, Attempt, Client, NotYetError, Task, shown

LIVES = range(50, 61)  # seconds that the stored list may live when the check asks
KEPT = 5_000  # seconds that the minutes of the check live
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
    nothing. Most points first, equal points in the order of ZRANGE REV.

    The whole ranking is stored in the key `into`, in place of what was there, with 60 seconds to
    live. Who reads `into` meanwhile meets the old list or the new one. Nothing else is written.
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
    others, ours = set(r.scan_iter(count=1000)), {into}
    for name, sales in SALES.items():
        minutes = [attempt.key() for _ in range(MINUTES.get(name, 60))]
        ours.update(minutes)
        for age, sold in sales.items():
            r.zadd(minutes[age], sold)
            r.expire(minutes[age], KEPT)
        rows = _ranking(sales)
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
            if rows and r.ttl(into) not in LIVES:
                raise NotYetError(f"{name}: the list has a TTL of {r.ttl(into)}; right is 60.")
            _minutes(r, name, minutes, sales)
        if left := set(r.scan_iter(count=1000)) - others - ours:
            raise NotYetError(f"{name}: a key is left: {shown(min(left))}; right is `into` alone.")
    _readers(attempt)


def _ranking(sales: dict[int, dict[str, float]]) -> list[tuple[str, float]]:
    points: defaultdict[str, float] = defaultdict(float)
    for age, sold in sales.items():
        for book, copies in sold.items() if age < 60 else ():
            points[book] += (60 - age) * copies
    return sorted(points.items(), key=lambda row: row[::-1], reverse=True)


def _minutes(r: Client, name: str, minutes: list[str], sales: dict[int, dict[str, float]]) -> None:
    """They are as they were, and no key is made for a silent one."""
    for age, key in enumerate(minutes):
        stored = dict(r.zrange(key, 0, -1, withscores=True))
        if stored != sales.get(age, {}):
            raise NotYetError(
                f"{name}: the minute {age} before the newest holds {shown(stored)} afterwards, and "
                f"held {shown(sales.get(age, {}))}; right is to read the minutes only."
            )
        if stored and not KEPT - 100 < r.ttl(key) <= KEPT:
            raise NotYetError(
                f"{name}: a minute had {KEPT} s to live and has a TTL of {r.ttl(key)} afterwards; "
                "right is to read the minutes only."
            )


def _readers(attempt: Attempt) -> None:
    """Somebody reads the list before each round trip but the first, one call for each."""
    r, into, name = attempt.server, attempt.key(), "three minutes, the shop has just opened"
    met = list[object]()
    minutes, old = [attempt.key() for _ in range(3)], [("b", 7.0), ("a", 5.0)]
    for age, sold in SALES[name].items():
        r.zadd(minutes[age], sold)

    def read() -> None:
        met.append(_rows(r.zrange(into, 0, -1, desc=True, withscores=True)))

    for trip in RACES:
        met.clear()
        r.delete(into)
        r.zadd(into, dict(old))
        attempt(list(minutes), into, 10, given=name, meanwhile=read, before=trip)
        if not met:
            return
        if met[0] not in (old, _ranking(SALES[name])):
            raise NotYetError(
                f"{name}: who reads the list between two of your commands meets {shown(met[0])}; "
                "right is the old list or the new one. Let one step replace it."
            )


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
