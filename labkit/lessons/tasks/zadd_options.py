"""The exercise of lesson 02: keep the best score."""

from __future__ import annotations

from labkit.lessons.tasks import Attempt, Client, NotYetError, Task, shown

# Player, score handed in, right answer: also out of order, twice the same, below zero, and zero.
GAMES = (
    ("ann", 100.0, True),
    ("ann", 101.0, True),
    ("ann", 50.0, False),
    ("ann", 101.0, False),
    ("ann", 101.5, True),
    ("bob", -5.0, True),
    ("bob", 0.0, True),
    ("bob", 0.0, False),
    ("bob", 0.5, True),
    ("cid", 0.0, True),
)


def keep_best(r: Client, key: str, player: str, score: float) -> bool:
    """Record a game; the board keeps each player's best score.

    Returns True when the player's stored score changed (a first game counts), False otherwise.
    Right also when two clients record games of one player at the same moment.
    """
    return bool(r.zadd(key, {player: score}, gt=True, ch=True))


def check(attempt: Attempt) -> None:
    """Replay games out of order, then let a second client in between two round trips."""
    r, key = attempt.server, attempt.key()
    best: dict[str, float] = {}
    for player, score, changes in GAMES:
        given = f"{score:g} for {player}, whose best is {_points(best.get(player))}"
        seen = attempt(key, player, score, given=given)
        best[player] = max(score, best.get(player, score))
        stored = r.zrange(key, 0, -1, withscores=True)
        wrong = [name for name, points in stored if points != best.get(name)]
        if wrong or len(stored) != len(best):
            name = wrong[0] if wrong else player
            raise NotYetError(
                f"{given}: the board then held {_points(r.zscore(key, name))} for {name}; "
                f"right is {_points(best.get(name))}."
            )
        if not isinstance(seen, int) or seen != changes:
            stays = "and the stored score did change" if changes else "as nothing changed"
            clue = " The reply of ZADD counts additions, unless CH." if seen == 0 != changes else ""
            raise NotYetError(f"{given} gave {shown(seen)}; right is {changes}, {stays}.{clue}")
    _check_race(attempt)


def _check_race(attempt: Attempt) -> None:
    r, key = attempt.server, attempt.key()
    found: list[float | None] = []

    def rival() -> None:
        found.append(r.zscore(key, "ann"))
        r.zadd(key, {"ann": 900})

    r.zadd(key, {"ann": 100})
    given = "500 for ann, whose best is 100, while another client stores 900 for her"
    seen = attempt(key, "ann", 500, given=given, meanwhile=rival)
    stored, right = r.zscore(key, "ann"), 900 if found else 500
    if stored != right:
        raise NotYetError(
            f"{given} between two of your commands: the board then held {_points(stored)}; "
            f"right is {right}. Let one command read, compare and write."
        )
    if found and bool(seen) != (found[0] == 500):
        raise NotYetError(
            f"{given} between two of your commands gave {shown(seen)}; right is {not seen}: "
            "say what your own command changed."
        )


def _points(score: float | None) -> str:
    return "no score" if score is None else f"{score:g}"


TASKS = (
    Task(
        stars=2,
        question=(
            "Games arrive late, twice and out of order. Write `keep_best`, which records one game "
            "and says whether the player's stored score changed."
        ),
        hints=(
            "Which option of ZADD lets a score only go up, and still adds a new player?",
            "Look at the truth table: what does ZADD GT reply when it raised a score? One more "
            "option changes what is counted.",
        ),
        solution=keep_best,
        check=check,
    ),
)
