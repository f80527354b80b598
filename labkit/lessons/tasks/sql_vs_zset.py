"""Exercises of lesson 11, on SQLite in memory: a rank, and the neighbours of a player."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from labkit.lessons.tasks import Attempt, NotYetError, Task, cut, same, shown
from labkit.lessons.tasks.kept_counts import MANY, STEPS, OnSql, database

BOARDS: dict[str, dict[str, int]] = {
    "scores 100 90 90 80": {"ann": 100, "cid": 90, "bob": 90, "dan": 80},
    "five players tied at 0": dict.fromkeys(("Z", "a", "é", "a:10", "a:9"), 0),
    "scores above and below 0": {"up": 5, "zero": 0, "nil": 0, "down": -5, "last": -2_000},
    "quotes in the names": {"o'neill": 7, "x' OR '1'='1": 5, '"': 5, "100%s?": 3},
    "200 players over seven scores": {f"p{n:03d}": n * n % 13 for n in range(200)},
}


def shared_place(db: sqlite3.Connection, player: str) -> int | None:
    """Competition rank (1 2 2 4) of a player in the table board (player, score), by SQL.

    The highest score is rank 1, and players with equal scores share a rank: one more than the
    number of players who score higher. Returns a whole number, or None when the player is not
    on the board. A name may hold any character. Nothing is written.
    """
    row = db.execute(
        """SELECT 1 + (SELECT count(*) FROM board WHERE score > me.score)
        FROM board AS me WHERE player = ?""",
        (player,),
    ).fetchone()
    return row[0] if row else None


def check_place(attempt: Attempt) -> None:
    """Every player of boards of several kinds, and absent ones."""
    function = OnSql(attempt)
    for name, board in BOARDS.items():
        with database(board) as db:
            before = _state(db)
            for player, score in board.items():
                given = f"{player} on a board with {name}"
                seen = function(db, player, given=given)
                right = 1 + sum(other > score for other in board.values())
                if not same(seen, right):
                    clue = _place_clue(seen, player, board)
                    raise NotYetError(f"{given} gave {shown(seen)}; right is {right}.{clue}")
            for absent in ("faust", ""):
                seen = function(db, absent, given=f"{absent!r}, who is not on the board,")
                if seen is not None:
                    clue = " count(*) is 0 where it compares with NULL." if same(seen, 1) else ""
                    raise NotYetError(
                        f"{absent!r}, who is not on the board, gave {shown(seen)}; "
                        f"right is None.{clue}"
                    )
            _unchanged(db, before)


def _place_clue(seen: object, player: str, board: Mapping[str, int]) -> str:
    if seen is None:
        return " Only an absent player gives None."
    score = board[player]
    clues = {  # where two give the same number, the later one is the likelier
        1 + sum(other < score for other in board.values()): "That counts from the lowest score.",
        sum(other > score for other in board.values()): (
            "So many score higher; the rank is one more."
        ),
        sum(other >= score for other in board.values()): "That counts the player's own tie.",
        1 + len({other for other in board.values() if other > score}): (
            "That is the dense rank: a tie of two fills two ranks here."
        ),
        1 + sum(pair > (score, player) for pair in _pairs(board)): (
            "That is the ordinal rank: equal scores share theirs here."
        ),
    }
    return next((f" {clue}" for number, clue in clues.items() if same(seen, number)), "")


def neighbours_sql(db: sqlite3.Connection, player: str, n: int) -> list[tuple[str, int]]:
    """The n players before a player, the player, and the n after, as (player, score) rows.

    The table is board (player, score) with an index on (score, player). The order is the one of
    ZREVRANGE: the highest score first, equal scores by the name, downwards. At either end there
    are fewer rows, and for an absent player none: []. One statement, whose work does not grow
    with the board or with the depth. Nothing is written.
    """
    sql = """
    SELECT * FROM (SELECT player, score FROM board
      WHERE (score, player) > ((SELECT score FROM board WHERE player = :player), :player)
      ORDER BY score, player LIMIT :n)
    UNION ALL
    SELECT * FROM (SELECT player, score FROM board
      WHERE (score, player) <= ((SELECT score FROM board WHERE player = :player), :player)
      ORDER BY score DESC, player DESC LIMIT :n + 1)
    ORDER BY score DESC, player DESC
    """
    return db.execute(sql, {"player": player, "n": n}).fetchall()


def check_neighbours(attempt: Attempt) -> None:
    """Every player of small boards, and three of a large one, where the work is counted."""
    function = OnSql(attempt)
    for name, board in [*BOARDS.items(), ("20,000 players", MANY)]:
        ranked = [(player, score) for score, player in sorted(_pairs(board), reverse=True)]
        with database(board) as db:
            before = _state(db)
            depths = (0, 10_000, 19_999) if board is MANY else range(len(ranked))
            for place in depths:
                for n in (1, 2) if board is MANY else (0, 1, 3):
                    player = ranked[place][0]
                    given = f"{player} (place {place}) on a board with {name}, n = {n}"
                    right = ranked[max(place - n, 0) : place + n + 1]
                    _same_rows(_one_cheap_statement(function, db, player, n, given), right, given)
            given = "faust, who is not on the board,"
            _same_rows(_one_cheap_statement(function, db, "faust", 2, given), [], given)
            _unchanged(db, before)


def _one_cheap_statement(
    function: OnSql, db: sqlite3.Connection, player: str, n: int, given: str
) -> object:
    said = list[str]()
    db.set_trace_callback(said.append)
    seen = function(db, player, n, given=given)
    db.set_trace_callback(None)
    if len(said) > 1:
        raise NotYetError(f"{given}: you sent {len(said)} statements; right is one.")
    if function.steps > STEPS:
        raise NotYetError(
            f"{given}: the right way takes a few hundred steps of SQLite, yours more than {STEPS:,}"
            ". Let no part walk over the board: begin at the player's pair, and give its score as "
            "(SELECT ...), because a pair that is joined makes SQLite sort all that is ahead."
        )
    return seen


def _same_rows(seen: Any, right: list[tuple[str, int]], given: str) -> None:
    try:
        rows = [tuple(row) for row in seen]
    except TypeError:
        raise NotYetError(f"{given} gave {shown(seen)}; a list of rows is asked for.") from None
    if rows == right:
        return
    clue = ""
    if rows == right[::-1]:
        clue = " Those are upside down."
    elif sorted(rows, key=str) == sorted(right, key=str):
        clue = " The rows are right, their order is not."
    elif sorted(set(rows), key=str) == sorted(right, key=str):
        clue = " A row came twice."
    raise NotYetError(f"{given} gave {cut(str(rows))}; right is {cut(str(right))}.{clue}")


def _pairs(board: Mapping[str, int]) -> list[tuple[int, str]]:
    return [(score, player) for player, score in board.items()]


def _state(db: sqlite3.Connection) -> tuple[object, ...]:
    """The tables and indexes, the rows ever written, and what stands in the board."""
    made = db.execute("SELECT * FROM sqlite_master").fetchall()
    return made, db.total_changes, db.execute("SELECT * FROM board").fetchall()


def _unchanged(db: sqlite3.Connection, before: tuple[object, ...]) -> None:
    if db.in_transaction:
        raise NotYetError("a transaction is left open; right is to read only.")
    if _state(db) != before:
        raise NotYetError("a table or an index was changed; right is to read only.")


TASKS = (
    Task(
        stars=1,
        question=(
            "Two players with equal scores want the same place beside their names; the next player "
            "counts them both: 1 2 2 4. Write `shared_place`: the place of one player, from the "
            "table `board (player, score)`, in SQL."
        ),
        hints=(
            "One more than the number of players with a higher score. Which score is it higher "
            "than, when there is no such player?",
            "A comparison with NULL is never true, so count(*) gives 0. Make the row of the player "
            "the outer query: SELECT ... FROM board AS me WHERE player = ? gives no row then.",
            "SELECT 1 + (SELECT count(*) FROM board WHERE score > me.score) FROM board AS me "
            "WHERE player = ?, and fetchone() gives None without a row.",
        ),
        solution=shared_place,
        check=check_place,
    ),
    Task(
        stars=2,
        question=(
            "The app shows a player between the neighbours. Write `neighbours_sql` in **one** "
            "statement, without a rank and without OFFSET: it has to be as fast for the last of "
            "20,000 players as for the first."
        ),
        hints=(
            "Two walks along the index, both from the player's own pair: one up, one down. UNION "
            "ALL puts them together.",
            "Above: (score, player) > ((SELECT score ...), ?) ORDER BY score, player LIMIT ?. The "
            "nearest come first, so this part is upside down.",
            "ORDER BY and LIMIT belong to each part, so each stands in SELECT * FROM (...). The "
            "order of the whole comes last. Let one of the parts take the player as well.",
        ),
        solution=neighbours_sql,
        check=check_neighbours,
    ),
)
