"""The exercise of lesson 01: the place of a member."""

from __future__ import annotations

from labkit.lessons.tasks import Attempt, Client, NotYetError, Task, shown

BOARD = {"dune": 12.0, "emma": 7.0, "ilias": 7.0, "odes": 0.0, "walden": -3.5}


def place(r: Client, key: str, member: str) -> tuple[int, float] | None:
    """Place and score of a member, the highest score being place 1.

    Returns (place, score), or None when the sorted set has no such member. Members with equal
    scores have different places, in the order that ZRANGE REV gives them. Nothing is written.
    """
    with r.pipeline() as trip:  # both answers of one moment, in one round trip
        trip.zrevrank(key, member)
        trip.zscore(key, member)
        rank, score = trip.execute()
    return None if rank is None else (rank + 1, score)


def check(attempt: Attempt) -> None:
    """Every member of a small board, one that is absent, and a key that is."""
    r, key, nowhere = attempt.server, attempt.key(), attempt.key()
    r.zadd(key, BOARD)
    before = r.zrange(key, 0, -1, desc=True, withscores=True)
    board = ", ".join(f"{member} {score:g}" for member, score in before)
    for number, (member, score) in enumerate(before, 1):
        given = f"{member} on the board {board}"
        seen = attempt(key, member, given=given)
        if _pair(seen) != (number, score):
            clue = _clue(seen, number)
            raise NotYetError(f"{given} gave {shown(seen)}; right is {(number, score)}.{clue}")
    for name, where in ((key, "a member that is not on the board"), (nowhere, "an empty key")):
        seen = attempt(name, "faust", given=where)
        if seen is not None:
            raise NotYetError(f"{where} gave {shown(seen)}; right is None.")
    after = r.zrange(key, 0, -1, desc=True, withscores=True)
    if after != before or r.exists(nowhere):
        raise NotYetError("the board was changed by asking for a place; right is to read only.")


def _pair(seen: object) -> tuple[float, float] | None:
    try:
        number, score = seen  # type: ignore[misc]
        return float(number), float(score)  # type: ignore[has-type]
    except (TypeError, ValueError):
        return None


def _clue(seen: object, right: int) -> str:
    if seen is None:
        return " Only an absent member gives None; rank 0 and score 0 are answers like any other."
    pair = _pair(seen)
    if pair is None:
        return " Two values are asked for: the place, then the score."
    if right == 1:  # asked first
        low = " That counts from the lowest score."
        return " Ranks start at 0, places at 1." if pair[0] == 0 else low if pair[0] > 1 else ""
    return " Equal scores do not share a place here." if pair[0] < right else ""


TASKS = (
    Task(
        stars=1,
        question=(
            "A reader asks: *which place has my book, and with how many copies?* Write `place`. "
            "One round trip is enough, also on servers older than 7.2, where ZREVRANK has no "
            "WITHSCORE."
        ),
        hints=(
            "ZREVRANK counts from the highest score and starts at 0.",
            "What do ZREVRANK and ZSCORE reply for a member that is not there, and what does "
            "Python make of a rank of 0 in an `if`?",
            "A pipeline sends both commands together: r.pipeline(), then zrevrank, zscore and "
            "execute().",
        ),
        solution=place,
        check=check,
    ),
)
