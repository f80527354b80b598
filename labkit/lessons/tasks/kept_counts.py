"""Exercises of lesson 11: how SQLite is watched, and counts that are kept."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import Any

from labkit.lessons.tasks import Attempt, NotYetError, Task, shown

MANY = {f"p{n:05d}": n * 7_919 % 9_973 for n in range(20_000)}
STEPS = 10_000  # of SQLite's machine; a walk over half of MANY takes more, a few look-ups far fewer
ENDLESS = 20_000_000  # steps in one call: part of a second, and nobody can interrupt a statement
INDEX = "CREATE INDEX by_score ON board (score, player)"


def set_score(db: sqlite3.Connection, player: str, score: int) -> None:
    """Give a player, old or new, a score in the table board, and keep the table buckets right.

    board is (player, score), buckets is (bucket, players) with the key bucket: bucket b counts
    the players with scores from 100 * b to 100 * b + 99, also below zero. A bucket without
    players has no row, or the count 0. The work does not grow with the board. Both tables change
    together: when a statement fails, its error comes out of the function, nothing has changed,
    and no transaction is open (some errors end it by themselves). db is in autocommit mode: BEGIN
    and COMMIT are yours.
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
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def check_set_score(attempt: Attempt) -> None:
    """Moves of every kind, failures of every statement, and a large board."""
    function = OnSql(attempt)
    chance = random.Random(11)
    for start in ({}, {"ann": 250, "bob": 250, "cid": -1}):
        board = dict(start)
        with database(board) as db:
            moves = [("ann", 99), ("ann", 99), ("ann", 100), ("zoe", 0), ("zoe", -1), ("bob", -100)]
            moves += [(chance.choice("abcdef"), chance.randrange(-500, 500)) for _ in range(60)]
            for player, score in moves:
                had = f"with {board[player]}" if player in board else "new on the board"
                given = f"{player}, {had}, who gets {score}"
                function(db, player, score, given=given)
                board[player] = score
                _kept(db, board, given)
    _failures(attempt)
    with database(MANY) as db:
        function(db, "p00007", 77, given="a board of 20,000")
        if function.steps > STEPS:
            raise NotYetError(
                "on a board of 20,000 players your function walked over the board; "
                "right is to change two buckets."
            )


def _failures(attempt: Attempt) -> None:
    """A statement that fails on the way, in either table: all or nothing."""
    board = {"ann": 250, "bob": 250, "cid": 950}  # a bucket that ann leaves is not empty then

    def caught(db: sqlite3.Connection, *args: object) -> object:
        try:
            attempt.function(db, *args)
        except sqlite3.Error as error:
            return str(error)
        return None

    function = OnSql(Attempt(caught, attempt.server))
    places = [("buckets", "new.bucket = 13"), ("board", "new.score = 1350")]
    cases = [("ABORT", *place, player) for place in places for player in ("ann", "zoe")]
    cases += [("ABORT", "buckets", "new.bucket = 2", "ann"), ("ROLLBACK", *places[0], "ann")]
    for way, table, when, player in cases:
        with database(board) as db:
            for event in ("INSERT", "UPDATE"):
                db.execute(
                    f"CREATE TRIGGER no_{event} BEFORE {event} ON {table} WHEN {when} "
                    f"BEGIN SELECT RAISE({way}, 'no more room'); END"
                )
            given = f"{player} gets 1350, and the table {table} refuses the write"
            if way == "ROLLBACK":
                given += " and ends the transaction"
            said = function(db, player, 1350, given=given)
            if said is None:
                raise NotYetError(f"{given}: your function kept the error to itself.")
            _kept(db, board, given)
            if said != "no more room":
                raise NotYetError(
                    f"{given}: the error that came out is {said!r}; right is 'no more room'. Roll "
                    "back only if db.in_transaction."
                )


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


class OnSql:
    """A student's function, called with a connection to SQLite in place of a Redis client.

    Attributes:
        steps: what SQLite took for the last call, in steps of its machine, counted in hundreds.
    """

    def __init__(self, attempt: Attempt) -> None:
        self.steps = 0
        self._function = attempt.function
        self._attempt = Attempt(lambda _, *args: self._call(*args), attempt.server)

    def __call__(self, db: sqlite3.Connection, *args: object, given: str) -> Any:
        """What the function returns; what it would read later is read now.

        Raises:
            NotAttemptedError: the first call returned Ellipsis, as the stub does.
            NotYetError: the function raised, or a statement does not end.
        """
        return self._attempt(db, *args, given=given)

    def _call(self, db: sqlite3.Connection, *args: object) -> object:
        self.steps = 0

        def step() -> bool:
            self.steps += 100
            return self.steps > ENDLESS

        db.set_progress_handler(step, 100)
        try:
            seen = self._function(db, *args)
            return list(seen) if isinstance(seen, Iterator) else seen
        finally:
            with suppress(sqlite3.Error):  # it is closed: the next look at the tables says so
                db.set_progress_handler(None, 0)
            db.row_factory, db.text_factory = None, str
            if self.steps > ENDLESS:
                raise NotYetError(
                    f"your statement does not end: it was stopped after {ENDLESS:,} steps of SQLite"
                ) from None


@contextmanager
def database(board: Mapping[str, int]) -> Iterator[sqlite3.Connection]:
    """The board, its index, and its buckets, in memory and in autocommit mode.

    Raises:
        NotYetError: in the block, a statement of the checker itself failed.
    """
    with closing(_made(board)) as db:
        try:
            yield db
        except sqlite3.Error as error:
            raise NotYetError(
                f"after your function the tables cannot be read ({str(error).rstrip('.')}); right "
                "is to leave the tables and the connection as they are."
            ) from None


def _made(board: Mapping[str, int]) -> sqlite3.Connection:
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.execute("CREATE TABLE board (player text PRIMARY KEY, score bigint NOT NULL)")
    db.execute(INDEX)
    db.execute("CREATE TABLE buckets (bucket bigint PRIMARY KEY, players bigint NOT NULL)")
    db.execute("BEGIN")
    db.executemany("INSERT INTO board VALUES (?, ?)", board.items())
    counts = Counter(score // 100 for score in board.values())
    db.executemany("INSERT INTO buckets VALUES (?, ?)", counts.items())
    db.execute("COMMIT")
    return db


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
            "statements, then COMMIT; on any error ROLLBACK, and raise it again. Some errors end "
            "the transaction by themselves (a full disk is one): ask db.in_transaction first.",
            "Python's // rounds down, also below zero; the / of SQL rounds towards zero. INSERT "
            "... ON CONFLICT (bucket) DO UPDATE SET players = players + 1 makes a bucket that is "
            "not there.",
        ),
        solution=set_score,
        check=check_set_score,
    ),
)
