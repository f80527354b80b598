"""The exercises of lesson 06: count the players of a packed score, and add to one."""

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


def award(r: Client, key: str, player: str, points: int, t: int) -> int:
    """Add points to a player's total at the second t, and return the new total.

    Scores are total * 2**32 + (2**32 - 1 - t): of two equal totals the one that was reached first
    is ahead. The t of this call replaces the one before, also where it is an earlier second.
    Totals stay below 2**21, points are 1 or more, and a player who is not on the board has 0.
    Right also when other clients award points to the same player at the same moment.
    """
    script = """
    local score = redis.call('ZSCORE', KEYS[1], ARGV[1]) or 0
    local total = math.floor(tonumber(score) / 2^32) + tonumber(ARGV[2])
    local packed = total * 2^32 + (2^32 - 1 - tonumber(ARGV[3]))
    redis.call('ZADD', KEYS[1], string.format('%.0f', packed), ARGV[1])
    return total
    """
    total: int = r.eval(script, 1, key, player, points, t)
    return total


def _pack(points: int, t: int) -> int:
    return points * UNIT + (UNIT - 1 - t)


def check_tied(attempt: Attempt) -> None:
    """Every number of points on boards of several kinds, and the numbers beside them."""
    r = attempt.server
    for name, players in BOARDS.items():
        key = attempt.key()
        r.zadd(key, {player: _pack(*pair) for player, pair in players.items()})
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
    r.zadd(key, {f"player {n}": _pack(5, n) for n in range(3000)})
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
    others = {"more": _pack(6, NOW), "many more": _pack(MOST, 0), "fewer": _pack(4, 0)}
    given = "5 points on a board with 3 such players"

    def come() -> None:
        came.append(r.zadd(key, others))

    for trip in RACES:
        came.clear()
        r.delete(key)
        r.zadd(key, {"ann": _pack(5, 0), "bob": _pack(5, NOW), "cid": _pack(5, UNIT - 1)})
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
AWARDS = ((5, NOW), (1, NOW + 60), (10, NOW + 61), (4, NOW + 60), (1, 3), (1, 2), (1, UNIT - 1))
STARTS = (None, (500, NOW), (0, UNIT - 1), (MOST - 23, 1), (1_234_567, 0))


def check_award(attempt: Attempt) -> None:
    """Awards in a row from several starts, then another client between two round trips."""
    r = attempt.server
    for start in STARTS:
        key = attempt.key()
        r.zadd(key, {"rival": _pack(7, NOW)})
        if start:
            r.zadd(key, {"zoe": _pack(*start)})
        total, last = start or (0, 0)
        for points, t in AWARDS:
            who = f"zoe with {total:,} points" if r.zscore(key, "zoe") is not None else "a new zoe"
            given = f"{who}, awarded {points} at t = {t}"
            seen = attempt(key, "zoe", points, t, given=given)
            total += points
            stored = dict(r.zrange(key, 0, -1, withscores=True))
            if stored.pop("rival", None) != _pack(7, NOW) or stored.keys() != {"zoe"}:
                names = ", ".join(sorted(r.zrange(key, 0, -1))) or "nobody"
                raise NotYetError(f"{given}: then on the board: {names}; right: rival, zoe.")
            if stored["zoe"] != _pack(total, t):
                clue = _award_clue(stored["zoe"], total, points, t, last)
                raise NotYetError(
                    f"{given}: the score is then {stored['zoe']:.0f}; "
                    f"right is {_pack(total, t)}.{clue}"
                )
            if not same(seen, total):
                raise NotYetError(f"{given} gave {shown(seen)}; right is {total}, the new total.")
            last = t
    for points in (500, 0):
        for trip in RACES:
            if not _race(attempt, points, trip):
                break


def _race(attempt: Attempt, start: int, trip: int) -> bool:
    """Whether there is such a round trip, before which another client awards points, too."""
    r, key, came = attempt.server, attempt.key(), list[int]()
    if start:
        r.zadd(key, {"zoe": _pack(start, NOW)})

    def other() -> None:
        total = int(r.zscore(key, "zoe") or 0) // UNIT + 30
        r.zadd(key, {"zoe": _pack(total, NOW + 90)})
        came.append(total)

    given = f"{f'zoe with {start} points' if start else 'a new zoe'}, awarded 10"
    seen = attempt(key, "zoe", 10, NOW + 80, given=given, meanwhile=other, before=trip)
    total, left = divmod(int(r.zscore(key, "zoe") or 0), UNIT)
    t, right = UNIT - 1 - left, start + 40
    if not came:
        return False
    given += ", while another client awards her 30 between two of your commands,"
    if total != right:
        raise NotYetError(
            f"{given} left {total:,} points; right is {right}. Let one step read and write."
        )
    # Either award may have been the later one; time and answer must fit together.
    if not any(
        same(seen, answer) and t == NOW + after for answer, after in ((right, 80), (start + 10, 90))
    ):
        raise NotYetError(
            f"{given} gave {shown(seen)} and left t = {t}; right is {right} and t = {NOW + 80}. "
            "Let one step read and write."
        )
    return True


def _award_clue(score: float, total: int, points: int, t: int, last: int) -> str:
    if score == _pack(total, last):
        return " The total is right, and the time is still that of the award before."
    if abs(score - _pack(total, t)) < 1000:
        return " Some digits were lost. How does Lua write a long number as text?"
    if score == _pack(points, t):
        return " These points were set, not added."
    if score == _pack(total - points, last) + points:
        return " Seconds were added. One point is 2**32."
    if score == total * UNIT + t:
        return " An earlier award must be ahead: store the time that is left."
    return ""


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
    Task(
        stars=3,
        question=(
            "Players collect points through the whole season, many of them at once. Write `award`: "
            "it adds points to a packed score and gives it the time of this award."
        ),
        hints=(
            "ZINCRBY by points * 2**32 adds the points. What does it leave as it was?",
            "The new score depends on the old one, so reading and writing must be one step: a "
            "script, or WATCH and MULTI.",
            "In Lua, tostring and .. write 14 digits, and this score has up to 16. "
            "string.format('%.0f', score) writes all of them; a total below 2^53 may be returned "
            "as a number.",
        ),
        solution=award,
        check=check_award,
    ),
)
