"""The checkers of lesson 11's exercises against right answers and wrong ones that people give."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from labkit.lessons.exercises import exercise
from labkit.tests.lessons.judging import assert_refused, assert_stub_and_solution_are_one

Client = Any  # an answer is written without types
Database = sqlite3.Connection
Function = Callable[..., Any]

# ---- shared_place: right answers


def two_statements(db: Database, player: str) -> Any:
    row = db.execute("SELECT score FROM board WHERE player = ?", [player]).fetchone()
    if row is None:
        return None
    (ahead,) = db.execute("SELECT count(*) FROM board WHERE score > ?", row).fetchone()
    return ahead + 1


def by_window(db: Database, player: str) -> Any:
    sql = """SELECT place
    FROM (SELECT player, rank() OVER (ORDER BY score DESC) AS place FROM board)
    WHERE player = :name"""
    row = db.execute(sql, {"name": player}).fetchone()
    return np.int64(row[0]) if row else None


def by_join(db: Database, player: str) -> Any:
    sql = """SELECT count(other.player) + 1 FROM board AS me
    LEFT JOIN board AS other ON other.score > me.score WHERE me.player = ? GROUP BY me.player"""
    return next((place for (place,) in db.execute(sql, (player,))), None)


def all_places(db: Database, player: str) -> Any:
    sql = """SELECT player, (SELECT count(*) FROM board WHERE score > me.score) FROM board AS me"""
    db.row_factory = sqlite3.Row  # a setting of the connection, no change of a table
    db.text_factory = bytes
    places = {name.decode(): place for name, place in db.execute(sql)}
    return places[player] + 1 if player in places else None


# ---- shared_place: wrong answers


def null_is_first(db: Database, player: str) -> Any:
    sql = """SELECT count(*) + 1 FROM board
    WHERE score > (SELECT score FROM board WHERE player = ?)"""
    return db.execute(sql, (player,)).fetchone()[0]


def from_zero(db: Database, player: str) -> Any:
    place = two_statements(db, player)
    return place and place - 1


def ordinal(db: Database, player: str) -> Any:
    sql = """SELECT count(*) + 1 FROM board, (SELECT * FROM board WHERE player = ?) AS me
    WHERE (board.score, board.player) > (me.score, me.player)"""
    return db.execute(sql, (player,)).fetchone()[0]


def dense(db: Database, player: str) -> Any:
    sql = """SELECT 1 + (SELECT count(DISTINCT score) FROM board WHERE score > me.score)
    FROM board AS me WHERE player = ?"""
    row = db.execute(sql, (player,)).fetchone()
    return row and row[0]


def upwards(db: Database, player: str) -> Any:
    sql = """SELECT 1 + (SELECT count(*) FROM board WHERE score < me.score)
    FROM board AS me WHERE player = ?"""
    row = db.execute(sql, (player,)).fetchone()
    return row and row[0]


def own_tie(db: Database, player: str) -> Any:
    sql = """SELECT (SELECT count(*) FROM board WHERE score >= me.score)
    FROM board AS me WHERE player = ?"""
    row = db.execute(sql, (player,)).fetchone()
    return row and row[0]


def pasted(db: Database, player: str) -> Any:
    sql = f"""SELECT 1 + (SELECT count(*) FROM board WHERE score > me.score)
    FROM board AS me WHERE player = '{player}'"""
    row = db.execute(sql).fetchone()
    return row and row[0]


def absent_raises(db: Database, player: str) -> Any:
    row = db.execute("SELECT score FROM board WHERE player = ?", [player]).fetchone()
    return db.execute("SELECT count(*) + 1 FROM board WHERE score > ?", row).fetchone()[0]


def absent_is_minus_one(db: Database, player: str) -> Any:
    return two_statements(db, player) or -1


def zero_is_nothing(db: Database, player: str) -> Any:
    row = db.execute("SELECT score FROM board WHERE player = ?", [player]).fetchone()
    return two_statements(db, player) if row and row[0] else None


def whole_row(db: Database, player: str) -> Any:
    place = two_statements(db, player)
    return place and (place,)


def tidies_up(db: Database, player: str) -> Any:
    place = two_statements(db, player)
    db.execute("DELETE FROM board WHERE player = ?", (player,))
    return place


def drops_the_index(db: Database, player: str) -> Any:
    db.execute("DROP INDEX IF EXISTS by_score")
    return two_statements(db, player)


def drops_the_board(db: Database, player: str) -> Any:
    place = two_statements(db, player)
    if player == "":
        db.execute("DROP TABLE board")
    return place


def closes(db: Database, player: str) -> Any:
    place = two_statements(db, player)
    if player == "":
        db.close()
    return place


def empties_the_buckets(db: Database, player: str) -> Any:
    db.execute("DELETE FROM buckets")
    return two_statements(db, player)


def begins(db: Database, player: str) -> Any:
    if not db.in_transaction:
        db.execute("BEGIN")
    return two_statements(db, player)


def endless(db: Database, *_: object) -> Any:
    sql = "WITH RECURSIVE n AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"
    return db.execute(sql).fetchone()


def forgot_return(db: Database, player: str) -> None:
    two_statements(db, player)


# ---- neighbours_sql: right answers


def with_player_above(db: Database, player: str, n: int) -> Any:
    sql = """WITH me AS (SELECT score, player FROM board WHERE player = ?1)
    SELECT player, score FROM (
      SELECT * FROM (SELECT player, score FROM board
        WHERE (score, player) >= ((SELECT score FROM me), ?1) ORDER BY score, player LIMIT ?2 + 1)
      UNION ALL SELECT * FROM (SELECT player, score FROM board
        WHERE (score, player) < ((SELECT score FROM me), ?1)
        ORDER BY score DESC, player DESC LIMIT ?2))
    ORDER BY score DESC, player DESC"""
    return list(db.execute(sql, (player, n)))


def three_parts(db: Database, player: str, n: int) -> Any:
    sql = """SELECT player, score FROM board WHERE player = :p
    UNION SELECT * FROM (SELECT player, score FROM board
      WHERE score >= (SELECT score FROM board WHERE player = :p)
      AND (score, player) > ((SELECT score FROM board WHERE player = :p), :p)
      ORDER BY score, player LIMIT :n)
    UNION SELECT * FROM (SELECT player, score FROM board
      WHERE (score, player) < ((SELECT score FROM board WHERE player = :p), :p)
      ORDER BY score DESC, player DESC LIMIT :n)
    ORDER BY 2 DESC, 1 DESC"""
    return [[player, score] for player, score in db.execute(sql, {"p": player, "n": n})]


def one_by_one(db: Database, player: str, n: int) -> Any:
    yield from with_player_above(db, player, n)


def sorted_here(db: Database, player: str, n: int) -> Any:
    rows = with_player_above(db, player, n)[::-1]
    return sorted(rows, key=lambda row: row[::-1], reverse=True)


# ---- neighbours_sql: wrong answers


def reads_later(db: Database, player: str, n: int) -> Any:
    rows = db.execute("SELECT player, score FROM board ORDER BY score DESC, player DESC").fetchall()
    at = next((place for place, row in enumerate(rows) if row[0] == player), None)
    if at is not None:
        yield from rows[max(at - n, 0) : at + n + 1]


def hides_two(db: Database, player: str, n: int) -> Any:
    for name in (player, "nobody"):
        db.execute("-- who\nSELECT score FROM board WHERE player = ?", (name,)).fetchone()
    return with_player_above(db, player, n)


def joined(db: Database, player: str, n: int) -> Any:
    sql = """WITH me AS (SELECT score, player FROM board WHERE player = ?1)
    SELECT * FROM (SELECT b.player, b.score FROM board AS b, me
      WHERE (b.score, b.player) >= (me.score, me.player) ORDER BY b.score, b.player LIMIT ?2 + 1)
    UNION ALL SELECT * FROM (SELECT b.player, b.score FROM board AS b, me
      WHERE (b.score, b.player) < (me.score, me.player)
      ORDER BY b.score DESC, b.player DESC LIMIT ?2)
    ORDER BY 2 DESC, 1 DESC"""
    return db.execute(sql, (player, n)).fetchall()


def closes_it(db: Database, player: str, n: int) -> Any:
    rows = with_player_above(db, player, n)
    db.close()
    return rows


def by_rank(db: Database, player: str, n: int) -> Any:
    sql = """WITH ranked AS (SELECT player, score,
      row_number() OVER (ORDER BY score DESC, player DESC) AS place FROM board),
    me AS (SELECT place FROM ranked WHERE player = :p)
    SELECT player, score FROM ranked WHERE place BETWEEN (SELECT place FROM me) - :n
      AND (SELECT place FROM me) + :n ORDER BY place"""
    return db.execute(sql, {"p": player, "n": n}).fetchall()


def asks_twice(db: Database, player: str, n: int) -> Any:
    db.execute("SELECT score FROM board WHERE player = ?", (player,)).fetchone()
    return with_player_above(db, player, n)


def upside_down(db: Database, player: str, n: int) -> Any:
    return with_player_above(db, player, n)[::-1]


def above_stays_upwards(db: Database, player: str, n: int) -> Any:
    rows = with_player_above(db, player, n)
    at = next((i for i, row in enumerate(rows) if row[0] == player), 0)
    return rows[:at][::-1] + rows[at:]


def twice_in_it(db: Database, player: str, n: int) -> Any:
    rows = with_player_above(db, player, n)
    return [row for row in rows for _ in range(1 + (row[0] == player))]


def by_score_alone(db: Database, player: str, n: int) -> Any:
    sql = """SELECT * FROM (SELECT player, score FROM board
      WHERE score > (SELECT score FROM board WHERE player = :p) ORDER BY score, player LIMIT :n)
    UNION ALL SELECT * FROM (SELECT player, score FROM board
      WHERE score <= (SELECT score FROM board WHERE player = :p)
      ORDER BY score DESC, player DESC LIMIT :n + 1)
    ORDER BY score DESC, player DESC"""
    return db.execute(sql, {"p": player, "n": n}).fetchall()


def one_too_few(db: Database, player: str, n: int) -> Any:
    return with_player_above(db, player, max(n - 1, 0))


def names_only(db: Database, player: str, n: int) -> Any:
    return [name for name, _ in with_player_above(db, player, n)]


def absent_is_none(db: Database, player: str, n: int) -> Any:
    return with_player_above(db, player, n) or None


def a_number(db: Database, player: str, n: int) -> Any:
    return len(with_player_above(db, player, n))


# ---- set_score: right answers


def move(db: Database, player: str, score: int) -> None:
    """The statements alone."""
    row = db.execute("SELECT score FROM board WHERE player = ?", (player,)).fetchone()
    db.execute("INSERT OR REPLACE INTO board VALUES (?, ?)", (player, score))
    for bucket, change in ((row and row[0] // 100, -1), (score // 100, 1)):
        if bucket is not None:
            db.execute("INSERT OR IGNORE INTO buckets VALUES (?, 0)", (bucket,))
            sql = "UPDATE buckets SET players = players + ? WHERE bucket = ?"
            db.execute(sql, (change, bucket))


def explicit_begin(db: Database, player: str, score: int) -> None:
    db.execute("BEGIN")
    with db:  # commits, or rolls back what was begun
        move(db, player, score)


def savepoint(db: Database, player: str, score: int) -> None:
    db.execute("SAVEPOINT here")
    try:
        move(db, player, score)
    except sqlite3.Error:
        if db.in_transaction:
            db.execute("ROLLBACK TO here")
        raise
    finally:
        if db.in_transaction:
            db.execute("RELEASE here")


def drops_empty_buckets(db: Database, player: str, score: int) -> None:
    db.execute("BEGIN")
    try:
        move(db, player, score)
        row = (score // 100,)
        db.execute("DELETE FROM buckets WHERE players = 0 AND bucket <> ?", row)
    except BaseException:
        db.rollback()
        raise
    db.commit()


# ---- set_score: wrong answers


def no_transaction(db: Database, player: str, score: int) -> None:
    move(db, player, score)


def with_db_alone(db: Database, player: str, score: int) -> None:
    with db:
        move(db, player, score)


def never_commits(db: Database, player: str, score: int) -> None:
    if not db.in_transaction:
        db.execute("BEGIN")
    move(db, player, score)


def never_rolls_back(db: Database, player: str, score: int) -> None:
    db.execute("BEGIN")
    move(db, player, score)
    db.execute("COMMIT")


def swallows(db: Database, player: str, score: int) -> None:
    db.execute("BEGIN")
    try:
        move(db, player, score)
        db.execute("COMMIT")
    except sqlite3.Error:
        db.execute("ROLLBACK")


def commits_half(db: Database, player: str, score: int) -> None:
    db.execute("BEGIN")
    try:
        move(db, player, score)
    finally:
        db.execute("COMMIT")


def sql_division(db: Database, player: str, score: int) -> None:
    db.execute("BEGIN")
    with db:
        sql = """UPDATE buckets SET players = players - 1
        WHERE bucket = (SELECT score FROM board WHERE player = ?) / 100"""
        db.execute(sql, (player,))
        db.execute("INSERT OR REPLACE INTO board VALUES (?, ?)", (player, score))
        sql = """INSERT INTO buckets VALUES (? / 100, 1)
        ON CONFLICT (bucket) DO UPDATE SET players = players + 1"""
        db.execute(sql, (score,))


def forgets_the_old_bucket(db: Database, player: str, score: int) -> None:
    db.execute("BEGIN")
    with db:
        db.execute("INSERT OR REPLACE INTO board VALUES (?, ?)", (player, score))
        sql = """INSERT INTO buckets VALUES (?, 1)
        ON CONFLICT (bucket) DO UPDATE SET players = players + 1"""
        db.execute(sql, (score // 100,))


def only_known_buckets(db: Database, player: str, score: int) -> None:
    db.execute("BEGIN")
    with db:
        row = db.execute("SELECT score FROM board WHERE player = ?", (player,)).fetchone()
        db.execute("INSERT OR REPLACE INTO board VALUES (?, ?)", (player, score))
        sql = "UPDATE buckets SET players = players + ? WHERE bucket = ?"
        if row:
            db.execute(sql, (-1, row[0] // 100))
        db.execute(sql, (1, score // 100))


def only_known_players(db: Database, player: str, score: int) -> None:
    db.execute("BEGIN")
    with db:
        if db.execute("SELECT 1 FROM board WHERE player = ?", (player,)).fetchone():
            move(db, player, score)


def takes_away_later(db: Database, player: str, score: int) -> None:
    row = db.execute("SELECT score FROM board WHERE player = ?", (player,)).fetchone()
    db.execute("BEGIN")
    with db:
        db.execute("INSERT OR REPLACE INTO board VALUES (?, ?)", (player, score))
        sql = """INSERT INTO buckets VALUES (?, 1)
        ON CONFLICT (bucket) DO UPDATE SET players = players + 1"""
        db.execute(sql, (score // 100,))
    if row:
        sql = "UPDATE buckets SET players = players - 1 WHERE bucket = ?"
        db.execute(sql, (row[0] // 100,))


def always_rolls_back(db: Database, player: str, score: int) -> None:
    db.execute("BEGIN")
    try:
        move(db, player, score)
        db.execute("COMMIT")
    except sqlite3.Error:
        db.execute("ROLLBACK")
        raise


def drops_the_buckets(db: Database, player: str, score: int) -> None:
    explicit_begin(db, player, score)
    db.execute("DROP TABLE buckets")


def closes_after(db: Database, player: str, score: int) -> None:
    explicit_begin(db, player, score)
    db.close()


def endless_move(db: Database, player: str, score: int) -> None:
    try:
        endless(db, player)
    except sqlite3.Error:
        explicit_begin(db, player, score)


def counts_anew(db: Database, player: str, score: int) -> None:
    db.execute("BEGIN")
    with db:
        move(db, player, score)
        db.execute("DELETE FROM buckets")
        sql = """INSERT INTO buckets SELECT (score - (score % 100 + 100) % 100) / 100, count(*)
        FROM board GROUP BY 1"""
        db.execute(sql)


def adds(db: Database, player: str, score: int) -> None:
    row = db.execute("SELECT score FROM board WHERE player = ?", (player,)).fetchone()
    explicit_begin(db, player, score + (row[0] if row else 0))


RIGHT: list[tuple[str, Function]] = [
    *(("shared_place", answer) for answer in (two_statements, by_window, by_join, all_places)),
    *(("neighbours_sql", answer) for answer in (with_player_above, three_parts, sorted_here)),
    ("neighbours_sql", one_by_one),
    *(("set_score", answer) for answer in (explicit_begin, savepoint, drops_empty_buckets)),
]

WRONG: list[tuple[str, Function, str]] = [
    ("shared_place", null_is_first, "not on the board, gave 1; right is None. count(*) is 0 where"),
    ("shared_place", from_zero, "gave 0; right is 1. So many score higher; the rank is one more."),
    ("shared_place", ordinal, "gave 3; right is 2. That is the ordinal rank"),
    ("shared_place", dense, "gave 3; right is 4. That is the dense rank"),
    ("shared_place", upwards, "gave 4; right is 1. That counts from the lowest score."),
    ("shared_place", own_tie, "gave 3; right is 2. That counts the player's own tie."),
    ("shared_place", pasted, "o'neill on a board with quotes in the names: your function raised"),
    ("shared_place", absent_raises, "'faust', who is not on the board,: your function raised"),
    ("shared_place", absent_is_minus_one, "not on the board, gave -1; right is None."),
    ("shared_place", zero_is_nothing, "gave None; right is 1. Only an absent player"),
    ("shared_place", whole_row, "gave (1,); right is 1."),
    ("shared_place", tidies_up, "gave"),
    ("shared_place", forgot_return, "gave None; right is 1."),
    ("shared_place", drops_the_index, "a table or an index was changed; right is to read only."),
    ("shared_place", drops_the_board, "cannot be read (no such table: board); right is to leave"),
    ("shared_place", closes, "cannot be read (Cannot operate on a closed database); right is to"),
    ("shared_place", empties_the_buckets, "a table or an index was changed"),
    ("shared_place", begins, "a transaction is left open; right is to read only."),
    (
        "shared_place",
        endless,
        "ann on a board with scores 100 90 90 80: your statement does not end",
    ),
    ("neighbours_sql", reads_later, "yours more than 10,000. Let no part walk over the board"),
    ("neighbours_sql", hides_two, "you sent 3 statements; right is one."),
    ("neighbours_sql", joined, "a pair that is joined makes SQLite sort all that is ahead"),
    ("neighbours_sql", endless, "your statement does not end"),
    ("neighbours_sql", closes_it, "cannot be read (Cannot operate on a closed database); right is"),
    ("neighbours_sql", by_rank, "yours more than 10,000. Let no part walk over the board"),
    ("neighbours_sql", asks_twice, "you sent 2 statements; right is one."),
    ("neighbours_sql", upside_down, "Those are upside down."),
    ("neighbours_sql", above_stays_upwards, "The rows are right, their order is not."),
    ("neighbours_sql", twice_in_it, "A row came twice."),
    ("neighbours_sql", by_score_alone, "; right is"),
    ("neighbours_sql", one_too_few, "n = 1 gave"),
    ("neighbours_sql", names_only, "; right is"),
    ("neighbours_sql", absent_is_none, "gave None; a list of rows is asked for."),
    ("neighbours_sql", a_number, "gave 1; a list of rows is asked for."),
    ("set_score", no_transaction, "refuses the write: the b"),
    ("set_score", with_db_alone, "refuses the write: the b"),
    ("set_score", never_commits, "ann, new on the board, who gets 99: a transaction is left open"),
    ("set_score", never_rolls_back, "refuses the write: a transaction is left open"),
    ("set_score", swallows, "your function kept the error to itself."),
    ("set_score", commits_half, "refuses the write: the b"),
    ("set_score", sql_division, "SQL divides towards zero: -1 / 100 is 0"),
    ("set_score", forgets_the_old_bucket, "ann, with 99, who gets 99: the buckets are then {0: 2}"),
    ("set_score", only_known_buckets, "the buckets are then {}; right is {0: 1}"),
    ("set_score", only_known_players, "the board is then {}; right is {'ann': 99}"),
    ("set_score", takes_away_later, "the table buckets refuses the write: the board is then"),
    ("set_score", always_rolls_back, "ends the transaction: the error that came out is 'cannot"),
    ("set_score", drops_the_buckets, "cannot be read (no such table: buckets); right is to leave"),
    ("set_score", closes_after, "cannot be read (Cannot operate on a closed database); right is"),
    ("set_score", endless_move, "your statement does not end"),
    ("set_score", counts_anew, "on a board of 20,000 players your function walked over the board"),
    ("set_score", adds, "the board is then {'ann': 198}; right is {'ann': 99}"),
]


@pytest.mark.parametrize(("name", "answer"), RIGHT, ids=lambda x: getattr(x, "__name__", x))
def test_right_answers_are_accepted(name: str, answer: Function, redis_client: Client) -> None:
    assert exercise(name).judge(answer, redis_client) == "Right."


@pytest.mark.parametrize(
    ("name", "answer", "reason"), WRONG, ids=lambda x: getattr(x, "__name__", "")
)
def test_wrong_answers_are_told_why(
    name: str, answer: Function, reason: str, redis_client: Client
) -> None:
    assert_refused(name, answer, reason, redis_client)


@pytest.mark.parametrize("name", ["shared_place", "neighbours_sql", "set_score"])
def test_stub_and_solution(
    name: str, redis_client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_stub_and_solution_are_one(name, redis_client, capsys)
