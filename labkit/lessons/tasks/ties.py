"""The exercise of lesson 05: the rank that tied members share."""

from __future__ import annotations

import math
from numbers import Real

from labkit.lessons.tasks import RACES, Attempt, Client, NotYetError, Task, cut, same, shown

BOARDS: dict[str, dict[str, float]] = {
    "scores 100 90 90 80": {"ann": 100, "bob": 90, "cid": 90, "dan": 80},
    "five members tied at 0": dict.fromkeys(("Z", "a", "é", "a:10", "a:9"), 0.0),
    "scores 0.1 + 0.2 and 0.3": {"a": 0.1 + 0.2, "b": 0.1 + 0.2, "c": 0.3, "d": 0.3, "e": 1 / 3},
    "scores around 2^53": {f"{n}{side}": 2.0**53 - n for n in range(1, 4) for side in "lr"},
    "scores inf, 0 and -inf": {
        f"{score}, {n}": score for score in (math.inf, 0.0, -math.inf) for n in range(2)
    },
    "200 members over seven scores": {f"m{n:03d}": float(n * n % 13) for n in range(200)},
}


def standing(r: Client, key: str, member: str) -> int | None:
    """Competition rank (1 2 2 4) of a member, the highest score being rank 1.

    Members with equal scores share a rank: one more than the number of members that score
    higher. Returns a whole number, or None when the sorted set has no such member. When other
    clients write during the call, it is a rank that the member had at one moment. Nothing is
    written.
    """
    script = """
    local score = redis.call('ZSCORE', KEYS[1], ARGV[1])
    return score and redis.call('ZCOUNT', KEYS[1], '(' .. score, '+inf') + 1
    """
    rank: int | None = r.eval(script, 1, key, member)
    return rank


def check(attempt: Attempt) -> None:
    """Every member of boards of several kinds, absent ones, and a player who jumps meanwhile."""
    r, nowhere = attempt.server, attempt.key()
    for name, scores in BOARDS.items():
        key = attempt.key()
        r.zadd(key, scores)
        before = r.zrange(key, 0, -1, desc=True, withscores=True)
        for place, (member, score) in enumerate(before, 1):
            given = f"{member} on a board with {name}"
            seen = attempt(key, member, given=given)
            right = 1 + sum(other > score for other in scores.values())
            if not same(seen, right):
                clue = _clue(seen, [*scores.values()], score, place)
                raise NotYetError(f"{given} gave {shown(seen)}; right is {right}.{clue}")
        _absent(attempt, key, f"a member that is not on the board with {name}")
        if r.zrange(key, 0, -1, desc=True, withscores=True) != before:
            raise NotYetError("the board was changed by asking for a rank; right is to read only.")
    _absent(attempt, nowhere, "an empty key")
    if r.exists(nowhere):
        raise NotYetError("asking for a rank made the key; right is to read only.")
    _jump(attempt)


def _absent(attempt: Attempt, key: str, given: str) -> None:
    seen = attempt(key, "faust", given=given)
    if seen is not None:
        raise NotYetError(f"{given} gave {shown(seen)}; right is None.")


def _jump(attempt: Attempt) -> None:
    """Before each round trip but the first, one call for each."""
    key, jumped = attempt.key(), list[int]()

    def jump() -> None:
        jumped.append(attempt.server.zadd(key, {"bob": 110}))

    for trip in RACES:
        jumped.clear()
        attempt.server.zadd(key, {"ann": 100, "bob": 90, "cid": 80})
        given = "bob with 90 under ann with 100"
        seen = attempt(key, "bob", given=given, meanwhile=jump, before=trip)
        if not same(seen, 2) and not (jumped and same(seen, 1)):
            moved = ", who gets 110 between two of your commands," if jumped else ""
            right = "2 or 1, his ranks before and after. Let one step read both" if jumped else "2"
            raise NotYetError(f"{given}{moved} gave {shown(seen)}; right is {right}.")
        if not jumped:
            return


def _clue(seen: object, scores: list[float], score: float, place: int) -> str:
    if seen is None:
        return " Only an absent member gives None; score 0 and rank 1 are answers like any other."
    if not isinstance(seen, Real):
        return f" One whole number is asked for, not {cut(type(seen).__name__)}."
    higher = {other for other in scores if other > score}
    clues: dict[float, str] = {  # where two give the same number, the later one is the likelier
        1 + sum(other < score for other in scores): "That counts from the lowest score.",
        sum(other >= score for other in scores): "That counts the member's own tie.",
        1 + len(higher): "That is the dense rank: a tie of two fills two ranks here.",
        place: "That is the ordinal rank: equal scores share theirs here.",
        0: "So many score higher; the rank is one more.",
    }
    return f" {clues[float(seen)]}" if float(seen) in clues else ""


TASKS = (
    Task(
        stars=2,
        question=(
            "Two players with equal scores want the same place beside their names; the next player "
            "counts them both: 1 2 2 4. Write `standing`, the competition rank of one "
            "member, for a board to which others write all the time."
        ),
        hints=(
            "The rank is one more than the number of members with a higher score. Which command "
            "counts them, and how is a bound left out?",
            "ZSCORE, then ZCOUNT from ( and that score, with all its digits, to +inf. What do the "
            "two say together when the member's score changes between them?",
            "A pipeline cannot use the first reply in the second command. A script can: "
            "r.eval(script, 1, key, member), in which the score stays the text that ZSCORE gave.",
        ),
        solution=standing,
        check=check,
    ),
)
