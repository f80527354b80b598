"""The first exercise of lesson 06: the players of a packed board who have equal points."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from numbers import Real

from labkit.lessons.tasks import RACES, Attempt, Client, NotYetError, Task, cut, same, shown

UNIT = 2**32  # one point
MOST = 2**21 - 1  # points; with all 32 bits of the time this score is 2^53 - 1
NOW = 1_795_000_000

# Player -> (points, second): ties, neighbours, both ends of the clock, and both of the points.
BOARDS: dict[str, dict[str, tuple[int, int]]] = {
    "three players with 500 points": {
        "ann": (500, NOW),
        "bob": (500, NOW + 60),
        "cid": (500, NOW + 1),
        "dan": (499, NOW),
        "eve": (501, NOW),
    },
    "players at both ends of the clock": {
        f"{points}, {n}": (points, t)
        for points in (7, 8, 9)
        for n, t in enumerate((0, 0, 1, NOW, UNIT - 1))  # more at one end: the clue can tell
    },
    "very many points": {
        f"{points} at {t}": (points, t)
        for points in (MOST - 2, MOST - 1, MOST)
        for t in (0, 1, 2, NOW, UNIT - 2, UNIT - 1)
    },
    "no points at all": {"ann": (0, 0), "bob": (0, NOW), "cid": (0, UNIT - 1), "dan": (1, 5)},
    "200 players": {f"p{n}": (n * n % 7 + 1_000_000, NOW + n * 7919 % 500) for n in range(200)},
}


def tied(r: Client, key: str, points: int) -> int:
    """How many players have exactly these points on a packed board.

    Scores are points * 2**32 + (2**32 - 1 - t): points are whole numbers below 2**21, t is in
    whole seconds, from 0 to 2**32 - 1. The number is that of one moment, and the players are not
    sent over the network.
    """
    low = points * 2**32
    count: int = r.zcount(key, low, low + 2**32 - 1)
    return count


def pack(points: int, t: int) -> int:
    """The score of these points at the second t."""
    return points * UNIT + (UNIT - 1 - t)


def check_tied(attempt: Attempt) -> None:
    """Every number of points on boards of several kinds, and the numbers beside them."""
    r = attempt.server
    for name, players in BOARDS.items():
        key = attempt.key()
        r.zadd(key, {player: pack(*pair) for player, pair in players.items()})
        counts = Counter(points for points, _ in players.values())
        before = r.zrange(key, 0, -1, withscores=True)
        around = {points + step for points in counts for step in (-1, 0, 1)}
        for points in sorted(counts, key=counts.__getitem__, reverse=True) + sorted(around):
            if 0 <= points <= MOST:
                given = f"{points:,} points on a board with {name}"
                seen = attempt(key, points, given=given)
                if not same(seen, counts[points]):
                    clue = _tied_clue(seen, points, players)
                    raise NotYetError(
                        f"{given} gave {shown(seen)}; right is {counts[points]}.{clue}"
                    )
        if r.zrange(key, 0, -1, withscores=True) != before:
            raise NotYetError("the board was changed by counting; right is to read only.")
    seen = attempt(attempt.key(), 5, given="an empty key")
    if not same(seen, 0):
        raise NotYetError(f"an empty key gave {shown(seen)}; right is 0.")
    _no_rows(attempt)
    _one_moment(attempt)


def _no_rows(attempt: Attempt) -> None:
    """A board of 3,000 tied players: one number comes over the network, not 3,000 names."""
    r, key = attempt.server, attempt.key()
    r.zadd(key, {f"player {n}": pack(5, n) for n in range(3000)})
    given = "5 points on a board with 3,000 players, all tied"
    sent = []
    for _ in range(3):  # others may use the server meanwhile: the least counts
        before = r.info("stats")["total_net_output_bytes"]
        seen = attempt(key, 5, given=given)
        sent.append(r.info("stats")["total_net_output_bytes"] - before)
        if not same(seen, 3000):
            raise NotYetError(f"{given} gave {shown(seen)}; right is 3000.")
    if min(sent) > 45_000:  # one INFO is among them; names of 3,000 players are more
        raise NotYetError(f"{given}: the server sent the players; right is to let it count.")


def _one_moment(attempt: Attempt) -> None:
    """Others come with more points and with fewer, between any two round trips."""
    r, key, came = attempt.server, attempt.key(), list[int]()
    others = {"more": pack(6, NOW), "many more": pack(MOST, 0), "fewer": pack(4, 0)}
    given = "5 points on a board with 3 such players"

    def come() -> None:
        came.append(r.zadd(key, others))

    for trip in RACES:
        came.clear()
        r.delete(key)
        r.zadd(key, {"ann": pack(5, 0), "bob": pack(5, NOW), "cid": pack(5, UNIT - 1)})
        seen = attempt(key, 5, given=given, meanwhile=come, before=trip)
        if not same(seen, 3):
            met = ", while others with 4 and with 6 come between two of your commands," * bool(came)
            raise NotYetError(f"{given}{met} gave {shown(seen)}; right is 3. Let one step count.")
        if not came:
            return


def _tied_clue(seen: object, points: int, players: dict[str, tuple[int, int]]) -> str:
    if not isinstance(seen, Real) or isinstance(seen, bool):
        return f" One whole number is asked for, not {cut(type(seen).__name__)}."

    def count(rule: Callable[[int, int], bool]) -> int:
        return sum(rule(have, t) for have, t in players.values())

    clues: dict[float, str] = {  # where two give the same number, the later one is the likelier
        count(lambda have, t: have == points and t != UNIT - 1): (
            "The lowest score of these points has t = 2**32 - 1."
        ),
        count(lambda have, t: have == points and t != 0): (
            "The highest score of these points has t = 0."
        ),
        count(lambda have, t: have == points or (have, t) == (points + 1, UNIT - 1)): (
            "The next points begin at (points + 1) * 2**32."
        ),
        count(lambda have, _: have >= points): "That counts those with more, too.",
    }
    return f" {clues[float(seen)]}" if float(seen) in clues else ""


# Points and seconds of awards to one player; the last totals need all 53 bits.
TASKS = (
    Task(
        stars=1,
        question=(
            "The board keeps points and time in one score. The page of a player says *17 others "
            "have as many points*. Write `tied`, which lets the server count."
        ),
        hints=(
            "All players with these points lie in one range of scores. Which is the lowest score "
            "in it, and which is the highest?",
            "ZCOUNT includes both bounds when they are bare numbers. t = 2**32 - 1 gives the "
            "lowest score, t = 0 the highest.",
        ),
        solution=tied,
        check=check_tied,
    ),
)
