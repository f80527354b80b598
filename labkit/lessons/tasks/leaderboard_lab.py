"""The exercises of lesson 09: the trim that keeps the best, and the window around a member."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from labkit.lessons.tasks import RACES, Attempt, Client, NotYetError, Task, same, shown
from labkit.lessons.tasks.traces import no_other_keys

Board = dict[str, float]
Row = tuple[int, str, float]
Change = Callable[[str], object]  # of the board at a key

BOARDS: dict[str, Board] = {
    "five members, scores 1 to 5": {f"m{n}": n for n in range(1, 6)},
    "scores 100 90 90 90 80": {"ann": 100, "bob": 90, "cid": 90, "dan": 90, "eve": 80},
    "four members tied at 0": dict.fromkeys(("Z", "a", "é", "a:10"), 0.0),
    "scores inf, 0, 0.5 and -inf": {"up": math.inf, "o": 0.0, "half": 0.5, "down": -math.inf},
    "25 players": {f"p{n:02d}": 1000.0 - 10 * n for n in range(1, 26)},
    "200 members over seven scores": {f"m{n:03d}": float(n * n % 13) for n in range(200)},
    "an empty key": {},
}
KEPT = (3, 1, 2, 4, 5, 7, 199, 300)


def trim_to(r: Client, key: str, n: int) -> int:
    """Remove all members of a sorted set but the best `n`; returns how many were removed.

    The best have the highest scores; among equal scores those that ZRANGE REV shows first. `n`
    is 1 or more; with less, ValueError is raised and nothing is changed. Where the set has no
    more than `n` members, none is removed. Others may write during the call: whatever comes or
    goes meanwhile, none of the best `n` is removed, and the best `n` of one moment are left.
    """
    if n < 1:
        raise ValueError(f"n is {n}; at least one member is kept.")
    removed: int = r.zremrangebyrank(key, 0, -n - 1)
    return removed


def check_trim_to(attempt: Attempt) -> None:
    """Boards of several kinds, a missing key, n below 1, and another who trims or adds."""
    r = attempt.server
    for name, board in BOARDS.items():
        for n in KEPT:
            key, given = attempt.key(), f"{name}, n = {n}"
            if board:
                r.zadd(key, board)
            before = r.zrange(key, 0, -1, desc=True)
            gone = attempt(key, n, given=given)
            left, right = r.zrange(key, 0, -1, desc=True), before[:n]
            if left != right:
                seen = f"{given}: {shown(left)} are left; right is {shown(right)}."
                raise NotYetError(seen + _trim_clue(left, before, n))
            if not same(gone, too_many := len(before) - len(right)):
                raise NotYetError(f"{given} gave {shown(gone)}; right is {too_many}.")
    for n in (0, -1, -3):
        _refused(attempt, n)
    _others_trim(attempt)


def _trim_clue(left: list[str], before: list[str], n: int) -> str:
    if left == before[-n:] and len(before) > n:
        return " Those are the worst: rank 0 is the lowest score."
    one_off = len(left) in (n - 1, n + 1)
    return " That is one off: rank -1 is the best, so the best n begin at -n." if one_off else ""


def _refused(attempt: Attempt, n: int) -> None:
    key, raised = attempt.key(), f"n = {n} raised nothing; right is ValueError and no change."
    size = attempt.server.zadd(key, BOARDS["25 players"])
    try:
        attempt(key, n, given=f"n = {n}")
    except NotYetError as error:
        raised = str(error)
    if attempt.server.zcard(key) != size:
        raised = f"n = {n}: members were removed; right is ValueError and no change."
    if "raised ValueError" not in raised:
        raise NotYetError(raised)


def _others_trim(attempt: Attempt) -> None:
    """Another client trims, adds or removes before each round trip but the first."""
    r, three = attempt.server, ["p01", "p02", "p03"]
    # What is right: trimmed first and changed then, or the other way round.
    added, gone = [["new", "p01", "p02"], ["new", *three]], [["p02", "p03", "p04"], three[1:]]
    changes: list[tuple[str, Change, list[list[str]]]] = [
        ("another client trims to the best 3", lambda k: r.zremrangebyrank(k, 0, -4), [three]),
        ("a new best member is added", lambda k: r.zadd(k, {"new": 5000}), added),
        ("the best member is removed", lambda k: r.zrem(k, "p01"), gone),
    ]
    for words, change, allowed in changes:
        given = f"25 players, n = 3; between two of your commands {words}"
        for race in _races(attempt, change):
            attempt(race.key, 3, given=given, meanwhile=race, before=race.trip)
            left = r.zrange(race.key, 0, -1, desc=True)
            possible = allowed if race.happened else [three]
            if left not in possible:
                right = " or ".join(map(str, possible))
                raise NotYetError(f"{given}: {shown(left)} are left; right is {right}.")


@dataclass
class _Race:
    """What another client does to a key, before one trip of the function."""

    change: Change
    key: str
    trip: int
    happened: bool = False

    def __call__(self) -> None:
        self.happened = True
        self.change(self.key)


def _races(attempt: Attempt, change: Change) -> Iterator[_Race]:
    """A race on a fresh board, trip after trip, until the function has no such trip."""
    for trip in RACES:
        race = _Race(change, attempt.key(), trip)
        attempt.server.zadd(race.key, BOARDS["25 players"])
        yield race
        if not race.happened:
            return


def neighbours(r: Client, key: str, member: str, each: int) -> list[Row]:
    """The window around a member: rows (rank, member, score), highest score first, rank from 1.

    `each` rows above the member and as many below. Near an end the window is moved, so that it
    has 2 * each + 1 rows wherever the board has so many; a smaller board is shown whole. The
    member is always in it; a member that is not on the board gives []. Equal scores stand in the
    order of ZRANGE REV, and each row has a rank of its own. Others may write during the call: the
    rows are a window of one moment. Nothing is written.
    """
    script = """
    local place = redis.call('ZREVRANK', KEYS[1], ARGV[1])
    if not place then return {0, {}} end
    local rows, size = 2 * ARGV[2] + 1, redis.call('ZCARD', KEYS[1])
    local first = math.max(0, math.min(place - ARGV[2], size - rows))
    return {first, redis.call('ZREVRANGE', KEYS[1], first, first + rows - 1, 'WITHSCORES')}
    """
    first, flat = r.eval(script, 1, key, member, each)
    pairs = zip(flat[::2], flat[1::2], strict=True)
    return [(rank, name, float(score)) for rank, (name, score) in enumerate(pairs, first + 1)]


def check_neighbours(attempt: Attempt) -> None:
    """Every member of boards of several kinds, absent ones, and a member who moves meanwhile."""
    r = attempt.server
    for name, board in BOARDS.items():
        with no_other_keys(r, [key := attempt.key()]):
            if board:
                r.zadd(key, board)
            rows = _rows(r, key)
            few = {*range(0, len(rows), max(1, len(rows) // 25)), 1, len(rows) - 2, len(rows) - 1}
            for each, place in itertools.product((2, 0, 5, 40), sorted(few & {*range(len(rows))})):
                member = rows[place][1]
                given = f"{member}, number {place + 1} of {name}, {each} each side"
                seen = attempt(key, member, each, given=given)
                right = _window(rows, member, each)
                if _read(seen) != right:
                    said = f"{given}: gave {shown(seen)}; right is {shown(right)}."
                    raise NotYetError(said + _window_clue(_read(seen), rows, place, each))
            given = f"a member that is not among {name}"
            if (seen := attempt(key, "faust", 2, given=given)) != []:
                raise NotYetError(f"{given} gave {shown(seen)}; right is [].")
            if _rows(r, key) != rows:
                raise NotYetError(f"{name}: the board was changed; right is to read only.")
    _moves(attempt)


def _rows(r: Client, key: str) -> list[Row]:
    pairs = r.zrange(key, 0, -1, desc=True, withscores=True)
    return [(rank, member, score) for rank, (member, score) in enumerate(pairs, 1)]


def _window(rows: list[Row], member: str, each: int) -> list[Row]:
    place = next((n for n, row in enumerate(rows) if row[1] == member), None)
    if place is None:
        return []
    first = max(0, min(place - each, len(rows) - 2 * each - 1))
    return rows[first : first + 2 * each + 1]


def _read(seen: object) -> list[Row] | None:
    try:
        rows = [(rank, member, float(score)) for rank, member, score in seen]  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        return None
    return rows if all(same(rank, rank) for rank, *_ in rows) else None


def _window_clue(seen: list[Row] | None, rows: list[Row], place: int, each: int) -> str:
    if seen is None:
        return " A row is (rank, member, score)."
    if not seen:
        return " A start below 0 counts from the other end." if place < each else ""
    if rows[place][1] not in [member for _, member, _ in seen]:
        return f" {rows[place][1]} is not in it."
    if seen == rows[max(0, place - each) : place + each + 1]:
        return " Near an end the window is moved, not cut."
    orders = [[row[1:] for row in some] for some in (seen, _window(rows, rows[place][1], each))]
    return " Ranks start at 1, and go on from row to row." if orders[0] == orders[1] else ""


def _moves(attempt: Attempt) -> None:
    """The member jumps, falls, is passed or goes before each round trip but the first."""
    r = attempt.server
    changes: list[tuple[str, Change]] = [
        ("gets the highest score", lambda key: r.zadd(key, {"p13": 5000})),
        ("gets the lowest score", lambda key: r.zadd(key, {"p13": 0})),
        ("is removed", lambda key: r.zrem(key, "p13")),
        ("is passed by a new best player", lambda key: r.zadd(key, {"new": 5000})),
    ]
    for words, change in changes:
        given = f"p13 of 25 players, who {words} between two of your commands"
        for race in _races(attempt, change):
            key, before = race.key, _window(_rows(r, race.key), "p13", 2)
            seen = _read(attempt(key, "p13", 2, given=given, meanwhile=race, before=race.trip))
            if seen not in (before, _window(_rows(r, key), "p13", 2)):
                raise NotYetError(f"{given}: gave {shown(seen)}; right is that of one moment.")


TASKS = (
    Task(
        stars=1,
        question=(
            "A board is to hold its best `n` members and no more. Write `trim_to`. Others write "
            "to the board all the time, and a second job may trim it in the same moment."
        ),
        hints=(
            "ZREMRANGEBYRANK counts from the lowest score: rank 0 is the worst member, rank -1 "
            "the best. Which ranks do the best n have?",
            "The best n have the ranks -n to -1. So what goes is 0 to -(n + 1), in one command "
            "that needs no ZCARD before it. And for n = 0 that is 0 to -1: everything.",
        ),
        solution=trim_to,
        check=check_trim_to,
    ),
    Task(
        stars=2,
        question=(
            "The game shows every player the players around them: `each` rows above, `each` "
            "below, and always a full list. Write `neighbours`, for the first and for the last "
            "player too, on a board to which others write all the time."
        ),
        hints=(
            "From the member's rank to the first row of the window: what may this number never "
            "be below, and what may it never be above?",
            "max(0, min(rank - each, size - rows)), rows being 2 * each + 1. All of one moment.",
            "A pipeline cannot use the rank in its next command. A script can: ZREVRANK, ZCARD "
            "and ZREVRANGE ... WITHSCORES in one r.eval, which also gives `first` back.",
        ),
        solution=neighbours,
        check=check_neighbours,
    ),
)
