"""The second exercise of lesson 04: a total to which each day is added once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import permutations
from typing import Any

from labkit.lessons.tasks import RACES, Attempt, Client, NotYetError, Task, shown
from labkit.lessons.tasks.traces import deadline, no_other_keys, same_deadline

Sold = dict[str, float]
Shop = tuple[str, str, str]  # the keys total, day, done

Race = Callable[[Attempt, Shop, int], bool]

LEFT = 5_000_400  # a time to live in ms that is no whole number of seconds
PREFIX = "key with which the first one's begins"


def close_day(r: Client, total: str, day: str, done: str) -> bool:
    """Add the copies of a finished day to the total, once. True when this call added them.

    `total` and `day` are keys of sorted sets; `done` is a key for notes of your own, and no other
    key is left behind. A day that is in the total already is not added again, however late:
    False. This holds also when two jobs do it at once, and when a job that died is started again:
    whatever happens between two commands, the day ends up in the total once. A day without sales
    has no key, and counts as added. The total keeps its time to live, if it has one, and what
    other clients write to it; the day stays as it is.
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


def check(attempt: Attempt) -> None:
    """Days in a row into totals with and without a TTL; then two jobs, deaths, other clients."""
    r, keys = attempt.server, [attempt.key() for _ in range(16)]
    with no_other_keys(r, keys):
        _row(attempt, keys, 0)
    with no_other_keys(r, keys):
        _row(attempt, keys, LEFT)
        _fresh(attempt, keys)
        shop = (keys[0], keys[1], keys[2])
        races: list[Race] = [_two_at_once, _died, _another_day]
        races += [_change(words, change, more) for words, change, more in CHANGES]
        for race in races:
            for trip in RACES:
                if not race(attempt, shop, trip):
                    break


def _row(attempt: Attempt, keys: list[str], left: int) -> None:
    """Five days, of which some come again."""
    r = attempt.server
    first, second = next((a, b) for b, a in permutations(keys, 2) if a.startswith(b))
    total, silent, done = keys[-3:]
    r.delete(*keys)
    r.zadd(total, {"a": 40, "b": 1})
    r.zadd(first, {"b": 2, "c": 3})
    r.zadd(second, {"a": 0.5, "c": 1})
    if left:
        r.pexpire(total, left)
    runs: list[tuple[str, str, bool, Sold]] = [
        ("the first day", first, True, {"a": 40, "b": 3, "c": 3}),
        ("the first day again", first, False, {"a": 40, "b": 3, "c": 3}),
        (f"the second day, a {PREFIX}", second, True, {"a": 40.5, "b": 3, "c": 4}),
        ("a day without sales", silent, True, {"a": 40.5, "b": 3, "c": 4}),
        ("the first day a third time", first, False, {"a": 40.5, "b": 3, "c": 4}),
        ("the day without sales again", silent, False, {"a": 40.5, "b": 3, "c": 4}),
    ]
    ends = deadline(r, total)
    for words, day, added, right in runs:
        name = f"{words}, the total with a time to live" if left else words
        before = _scores(r, day)
        seen = attempt(total, day, done, given=name)
        _compare(r, (total, day, done), name, right, ends)
        if seen is not added:
            raise NotYetError(f"{name}: gave {shown(seen)}; right is {added}.")
        if _scores(r, day) != before or r.pttl(day) >= 0:
            raise NotYetError(f"{name}: the day was changed; right is to read it only.")


def _fresh(attempt: Attempt, keys: list[str]) -> None:
    r, name = attempt.server, "a total that does not exist yet"
    r.delete(*keys)
    r.zadd(keys[1], {"a": 0.5, "c": 1})
    attempt(*keys[:3], given=name)
    _compare(r, (keys[0], keys[1], keys[2]), name, {"a": 0.5, "c": 1}, float("inf"))


def _open(r: Client, shop: Shop) -> float:
    """A total with a time to live and a day that is not in it; gives the deadline."""
    total, day, _ = shop
    r.delete(*shop)
    r.zadd(total, {"a": 40, "b": 1})
    r.pexpire(total, LEFT)
    r.zadd(day, {"b": 2})
    return deadline(r, total)


def _two_at_once(attempt: Attempt, shop: Shop, trip: int) -> bool:
    """Whether there is such a trip, before which another job adds the same day."""
    r, others = attempt.server, list[object]()
    name = "two jobs at once, the second between two commands of the first"
    ends = _open(r, shop)

    def second() -> None:
        others.append(attempt(*shop, given=name))

    answers = [attempt(*shop, given=name, meanwhile=second, before=trip), *others]
    _compare(r, shop, name, {"a": 40, "b": 3}, ends)
    if sum(answer is True for answer in answers) != 1 or {*map(type, answers)} != {bool}:
        raise NotYetError(f"{name}: they gave {shown(answers)}; right is True once.")
    return bool(others)


def _another_day(attempt: Attempt, shop: Shop, trip: int) -> bool:
    """The same with another day: both are added."""
    r, others = attempt.server, list[object]()
    name = "another job adds another day between two commands"
    ends, other = _open(r, shop), attempt.key()
    r.zadd(other, {"a": 1})

    def second() -> None:
        others.append(attempt(shop[0], other, shop[2], given=name))

    answers = [attempt(*shop, given=name, meanwhile=second, before=trip), *others]
    r.delete(other)
    _compare(r, shop, name, {"a": 40 + len(others), "b": 3}, ends)
    if not all(answer is True for answer in answers):
        raise NotYetError(f"{name}: they gave {shown(answers)}; right is True for both.")
    return bool(others)


def _died(attempt: Attempt, shop: Shop, trip: int) -> bool:
    """The job dies before such a trip, and is started again."""
    r, left = attempt.server, dict[str, tuple[int, Any]]()
    mine = f"{shop[0].rpartition(':')[0]}*"
    ends, name = _open(r, shop), f"a job that died after command {trip - 1}, then ran again"

    def die() -> None:
        for key in r.scan_iter(match=mine, count=1000):
            left[key] = r.pttl(key), r.execute_command("DUMP", key, NEVER_DECODE=True)
        raise _DiedError

    with suppress(_DiedError):
        attempt(*shop, given=name, meanwhile=die, before=trip)
    if not left:
        return False
    r.delete(*r.scan_iter(match=mine, count=1000))  # a dead process runs no "finally"
    for key, (lives, dumped) in left.items():
        r.restore(key, max(lives, 0), dumped)
    open_still = _scores(r, shop[0]) == {"a": 40, "b": 1}
    seen = attempt(*shop, given=name)
    _compare(r, shop, name, {"a": 40, "b": 3}, ends)
    if seen is not open_still:
        raise NotYetError(f"{name}: gave {shown(seen)}; right is {open_still}.")
    return True


Change = Callable[[Client, str], object]
CHANGES: tuple[tuple[str, Change, int], ...] = (
    ("adds to the total", lambda r, total: r.zincrby(total, 10, "b"), 10),
    ("gives the total another time to live", lambda r, total: r.pexpire(total, 3 * LEFT), 0),
    ("takes the total's time to live away", lambda r, total: r.persist(total), 0),
)


def _change(words: str, change: Change, more: int) -> Race:
    """What another client does to the total meanwhile, by which b has so many more."""

    def race(attempt: Attempt, shop: Shop, trip: int) -> bool:
        r, name = attempt.server, f"another client {words} between two commands"
        ends = [_open(r, shop)]

        def meanwhile() -> None:
            change(r, shop[0])
            ends.append(deadline(r, shop[0]))

        seen = attempt(*shop, given=name, meanwhile=meanwhile, before=trip)
        came = len(ends) > 1
        _compare(r, shop, name, {"a": 40, "b": 3 + more * came}, ends[-1])
        if seen is not True:
            raise NotYetError(f"{name}: gave {shown(seen)}; right is True.")
        return came

    return race


def _scores(r: Client, key: str) -> Any:
    if r.type(key) not in ("zset", "none"):
        raise NotYetError(f"a sorted set became a {r.type(key)}.")
    return dict(r.zrange(key, 0, -1, withscores=True))


def _compare(r: Client, shop: Shop, name: str, right: Sold, ends: float) -> None:
    """Total, its deadline, and a note that stays."""
    seen = _scores(r, shop[0])
    if seen != right:
        raise NotYetError(f"{name}: the total is {shown(seen)}; right is {right}.")
    same_deadline(r, shop[0], name, ends, "total")
    if r.pttl(shop[2]) >= 0:
        raise NotYetError(f"{name}: the note has a time to live; then the day is added again.")


TASKS = (
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
        check=check,
    ),
)
