"""An exercise of lesson 11: counts that are kept, so that a rank need not be counted."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing

from labkit.lessons.tasks import Attempt, NotYetError, Task, shown
from labkit.lessons.tasks.sql_vs_zset import MANY, STEPS, counted, database, on_sql


def set_score(db: sqlite3.Connection, player: str, score: int) -> None:
    """Give a player, old or new, a score in the table board, and keep the table buckets right.

    board is (player, score), buckets is (bucket, players) with the key bucket: bucket b counts
    the players with scores from 100 * b to 100 * b + 99, also below zero. A bucket without
    players has no row, or the count 0. The work does not grow with the board. Both tables change
    together: when a statement fails, its error comes out of the function, nothing has changed,
    and no transaction is open. db is in autocommit mode: BEGIN and COMMIT are yours.
    """
    db.execute("BEGIN IMMEDIATE")
    try:
        old = db.execute("SELECT score FROM board WHERE player = ?", (player,)).fetchone()
        db.execute(
            """INSERT INTO board VALUES (?, ?)
            ON CONFLICT (player) DO UPDATE SET score = excluded.score""",
            (player, score),
        )
        if old:
            db.execute(
                "UPDATE buckets SET players = players - 1 WHERE bucket = ?", (old[0] // 100,)
            )
        db.execute(
            """INSERT INTO buckets VALUES (?, 1)
            ON CONFLICT (bucket) DO UPDATE SET players = players + 1""",
            (score // 100,),
        )
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise


def check_set_score(attempt: Attempt) -> None:
    """Moves of every kind, failures of every statement, and a large board."""
    function = on_sql(attempt)
    chance = random.Random(11)
    for start in ({}, {"ann": 250, "bob": 250, "cid": -1}):
        board = dict(start)
        with closing(database(board)) as db:
            moves = [("ann", 99), ("ann", 99), ("ann", 100), ("zoe", 0), ("zoe", -1), ("bob", -100)]
            moves += [(chance.choice("abcdef"), chance.randrange(-500, 500)) for _ in range(60)]
            for player, score in moves:
                had = f"with {board[player]}" if player in board else "new on the board"
                given = f"{player}, {had}, who gets {score}"
                function(db, player, score, given=given)
                board[player] = score
                _kept(db, board, given)
    _failures(attempt)
    with closing(database(MANY)) as db:
        _, steps = counted(db, lambda: function(db, "p00007", 77, given="a board of 20,000"))
        if steps > STEPS:
            raise NotYetError(
                "on a board of 20,000 players your function walked over the board; "
                "right is to change two buckets."
            )


def _failures(attempt: Attempt) -> None:
    """A statement that fails on the way, in either table: all or nothing."""
    board = {"ann": 250, "bob": 950}

    def caught(_: object, *args: object) -> object:
        try:
            attempt.function(*args)
        except sqlite3.Error:
            return True
        return False

    for table, when in (("buckets", "new.bucket = 13"), ("board", "new.score = 1350")):
        for player in ("ann", "zoe"):
            with closing(database(board)) as db:
                for event in ("INSERT", "UPDATE"):
                    db.execute(
                        f"CREATE TRIGGER no_{event} BEFORE {event} ON {table} WHEN {when} "
                        "BEGIN SELECT RAISE(ABORT, 'no more room'); END"
                    )
                given = f"{player} gets 1350, and the table {table} refuses the write"
                if not Attempt(caught, attempt.server)(db, player, 1350, given=given):
                    raise NotYetError(f"{given}: your function kept the error to itself.")
                _kept(db, board, given)


def _kept(db: sqlite3.Connection, board: Mapping[str, int], given: str) -> None:
    """Both tables are what they have to be, for everybody."""
    if db.in_transaction:
        raise NotYetError(f"{given}: a transaction is left open; right is COMMIT or ROLLBACK.")
    rows = dict(db.execute("SELECT player, score FROM board").fetchall())
    if rows != board:
        raise NotYetError(f"{given}: the board is then {shown(rows)}; right is {shown(board)}.")
    seen = dict(db.execute("SELECT bucket, players FROM buckets WHERE players <> 0"))
    right = Counter(score // 100 for score in board.values())
    if seen != right:
        clue = ""
        if seen == Counter(int(score / 100) for score in board.values()):
            clue = " SQL divides towards zero: -1 / 100 is 0, and -1 lies in bucket -1."
        raise NotYetError(
            f"{given}: the buckets are then {shown(dict(sorted(seen.items())))}; "
            f"right is {shown(dict(sorted(right.items())))}.{clue}"
        )


TASKS = (
    Task(
        stars=3,
        question=(
            "A rank is the sum of the buckets above and a short walk, as long as the buckets are "
            "right. Write `set_score`: one player gets a score, and both tables change together or "
            "not at all."
        ),
        hints=(
            "The old score says which bucket loses a player, the new one which bucket gets one. A "
            "player who is new loses none.",
            "In autocommit mode `with db:` begins nothing. Send BEGIN IMMEDIATE, then the "
            "statements, then COMMIT; on any error ROLLBACK, and raise it again.",
            "Python's // rounds down, also below zero; the / of SQL rounds towards zero. INSERT "
            "... ON CONFLICT (bucket) DO UPDATE SET players = players + 1 makes a bucket that is "
            "not there.",
        ),
        solution=set_score,
        check=check_set_score,
    ),
)
