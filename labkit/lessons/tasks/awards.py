"""The second exercise of lesson 06: points added to a packed score."""

from __future__ import annotations

from labkit.lessons.tasks import RACES, Attempt, Client, NotYetError, Task, same, shown
from labkit.lessons.tasks.precision import MOST, NOW, UNIT, pack

AWARDS = ((5, NOW), (1, NOW + 60), (10, NOW + 61), (4, NOW + 60), (1, 3), (1, 2), (1, UNIT - 1))
STARTS = (None, (500, NOW), (0, UNIT - 1), (MOST - 23, 1), (1_234_567, 0))


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


def check_award(attempt: Attempt) -> None:
    """Awards in a row from several starts, then another client between two round trips."""
    r = attempt.server
    for start in STARTS:
        key = attempt.key()
        r.zadd(key, {"rival": pack(7, NOW)})
        if start:
            r.zadd(key, {"zoe": pack(*start)})
        total, last = start or (0, 0)
        for points, t in AWARDS:
            who = f"zoe with {total:,} points" if r.zscore(key, "zoe") is not None else "a new zoe"
            given = f"{who}, awarded {points} at t = {t}"
            seen = attempt(key, "zoe", points, t, given=given)
            total += points
            stored = dict(r.zrange(key, 0, -1, withscores=True))
            if stored.pop("rival", None) != pack(7, NOW) or stored.keys() != {"zoe"}:
                names = ", ".join(sorted(r.zrange(key, 0, -1))) or "nobody"
                raise NotYetError(f"{given}: then on the board: {names}; right: rival, zoe.")
            if stored["zoe"] != pack(total, t):
                clue = _award_clue(stored["zoe"], total, points, t, last)
                raise NotYetError(
                    f"{given}: the score is then {stored['zoe']:.0f}; "
                    f"right is {pack(total, t)}.{clue}"
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
        r.zadd(key, {"zoe": pack(start, NOW)})

    def other() -> None:
        total = int(r.zscore(key, "zoe") or 0) // UNIT + 30
        r.zadd(key, {"zoe": pack(total, NOW + 90)})
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
    if score == pack(total, last):
        return " The total is right, and the time is still that of the award before."
    if abs(score - pack(total, t)) < 1000:
        return " Some digits were lost. How does Lua write a long number as text?"
    if score == pack(points, t):
        return " These points were set, not added."
    if score == pack(total - points, last) + points:
        return " Seconds were added. One point is 2**32."
    if score == total * UNIT + t:
        return " An earlier award must be ahead: store the time that is left."
    return ""


TASKS = (
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
