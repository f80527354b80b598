"""The checks of lesson 09's exercises: right answers of several styles, and wrong ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from labkit.lessons.exercises import exercise
from labkit.tests.lessons.judging import assert_refused, assert_stub_and_solution_are_one

Client = Any
Function = Callable[..., Any]


# ---- trim_to: right answers


def one_command(r: Client, key: str, n: int) -> int:
    if n < 1:
        raise ValueError(n)
    return int(r.zremrangebyrank(key, 0, -(n + 1)))


def script(r: Client, key: str, n: int) -> int:
    if n <= 0:
        raise ValueError("n")
    text = """local over = redis.call('ZCARD', KEYS[1]) - ARGV[1]
    if over <= 0 then return 0 end
    return redis.call('ZREMRANGEBYRANK', KEYS[1], 0, over - 1)"""
    return int(r.eval(text, 1, key, n))


def in_a_pipeline(r: Client, key: str, n: int) -> int:
    if n < 1:
        raise ValueError
    [gone] = r.pipeline().zremrangebyrank(key, 0, -1 - n).execute()
    return int(gone)


def two_commands_in_one_request(r: Client, key: str, n: int) -> int:
    """A pipeline without MULTI: what others do in between changes nothing."""
    if n < 1:
        raise ValueError
    _, gone = r.pipeline(transaction=False).zcard(key).zremrangebyrank(key, 0, -1 - n).execute()
    return int(gone)


def popped_in_a_script(r: Client, key: str, n: int) -> int:
    if n < 1:
        raise ValueError
    text = """local n = math.max(0, redis.call('ZCARD', KEYS[1]) - ARGV[1])
    if n > 0 then redis.call('ZPOPMIN', KEYS[1], n) end
    return n"""
    return int(r.eval(text, 1, key, n))


# ---- trim_to: wrong answers


def best_go(r: Client, key: str, n: int) -> int:
    if n < 1:
        raise ValueError
    return int(r.zremrangebyrank(key, n, -1))


def off_by_one(r: Client, key: str, n: int) -> int:
    if n < 1:
        raise ValueError
    return int(r.zremrangebyrank(key, 0, -n))


def one_too_many(r: Client, key: str, n: int) -> int:
    if n < 1:
        raise ValueError
    return int(r.zremrangebyrank(key, 0, -n - 2))


def order_of_the_list(r: Client, key: str, n: int) -> int:
    """F14: the first and the last rank of a list from the top."""
    if n < 1:
        raise ValueError
    return int(r.zremrangebyrank(key, -1, -n))


def from_n(r: Client, key: str, n: int) -> int:
    return int(r.zremrangebyrank(key, n, -1))


def counted_before(r: Client, key: str, n: int) -> int:
    if n < 1:
        raise ValueError
    over = r.zcard(key) - n
    return int(r.zremrangebyrank(key, 0, over - 1)) if over > 0 else 0


def counted_before_unclamped(r: Client, key: str, n: int) -> int:
    if n < 1:
        raise ValueError
    return int(r.zremrangebyrank(key, 0, r.zcard(key) - n - 1))


def no_bounds(r: Client, key: str, n: int) -> int:
    return int(r.zremrangebyrank(key, 0, -(n + 1)))


def clamps_n(r: Client, key: str, n: int) -> int:
    return int(r.zremrangebyrank(key, 0, -(max(n, 1) + 1)))


def zero_is_ignored(r: Client, key: str, n: int) -> int:
    return int(r.zremrangebyrank(key, 0, -(n + 1))) if n > 0 else 0


def by_score(r: Client, key: str, n: int) -> int:
    """Keeps the whole tie at the edge."""
    if n < 1:
        raise ValueError
    rows = r.zrange(key, n - 1, n - 1, desc=True, withscores=True)
    return int(r.zremrangebyscore(key, "-inf", f"({rows[0][1]!r}")) if rows else 0


def left_over(r: Client, key: str, n: int) -> int:
    one_command(r, key, n)
    return int(r.zcard(key))


def truth(r: Client, key: str, n: int) -> bool:
    return one_command(r, key, n) > 0


def says_nothing(r: Client, key: str, n: int) -> None:
    one_command(r, key, n)


def written_anew(r: Client, key: str, n: int) -> int:
    if n < 1:
        raise ValueError
    rows, size = r.zrange(key, 0, n - 1, desc=True, withscores=True), r.zcard(key)
    r.delete(key)
    if rows:
        r.zadd(key, dict(rows))
    return int(size - len(rows))


def too_late(r: Client, key: str, n: int) -> int:
    gone = int(r.zremrangebyrank(key, 0, -(n + 1)))
    if n < 1:
        raise ValueError
    return gone


# ---- neighbours: right answers

WINDOW = """
local place = redis.call('ZREVRANK', KEYS[1], ARGV[1])
if not place then return nil end
local each, size = tonumber(ARGV[2]), redis.call('ZCARD', KEYS[1])
local from, to = place - each, place + each
if to > size - 1 then from, to = from - (to - size + 1), size - 1 end
if from < 0 then from, to = 0, to - from end
return {from, redis.call('ZREVRANGE', KEYS[1], from, to, 'WITHSCORES')}
"""


def nested(r: Client, key: str, member: str, each: int) -> Any:
    reply = r.register_script(WINDOW)([key], [member, each])
    if reply is None:
        return []
    first, flat = reply
    return [[first + n + 1, flat[2 * n], flat[2 * n + 1]] for n in range(len(flat) // 2)]


def whole_board(r: Client, key: str, member: str, each: int) -> Any:
    rows = r.zrange(key, 0, -1, desc=True, withscores=True)
    names = [name for name, _ in rows]
    if member not in names:
        return []
    first = max(0, min(names.index(member) - each, len(rows) - 2 * each - 1))
    part = rows[first : first + 2 * each + 1]
    return tuple((first + n + 1, name, score) for n, (name, score) in enumerate(part))


def watched(r: Client, key: str, member: str, each: int) -> Any:
    from redis import WatchError

    with r.pipeline() as pipe:
        while True:
            try:
                pipe.watch(key)
                place, size = pipe.zrevrank(key, member), pipe.zcard(key)
                if place is None:
                    return []
                first = max(0, min(place - each, size - 2 * each - 1))
                pipe.multi()
                pipe.zrange(key, first, first + 2 * each, desc=True, withscores=True)
                [rows] = pipe.execute()
                return [(first + n, m, s) for n, (m, s) in enumerate(rows, 1)]
            except WatchError:
                continue


def script_in_a_pipeline(r: Client, key: str, member: str, each: int) -> Any:
    pipe = r.pipeline(transaction=False)
    r.register_script(WINDOW)([key], [member, each], client=pipe)
    [reply] = pipe.execute()
    first, flat = reply or (0, [])
    pairs = zip(flat[::2], flat[1::2], strict=True)
    return [(rank, name, float(score)) for rank, (name, score) in enumerate(pairs, first + 1)]


def compared(r: Client, key: str, member: str, each: int) -> Any:
    """Reads until rank and size are those of the rows, all in one MULTI."""
    while True:
        place, size = r.pipeline().zrevrank(key, member).zcard(key).execute()
        if place is None:
            return []
        first = max(0, min(place - each, size - 2 * each - 1))
        step = r.pipeline().zrange(key, first, first + 2 * each, desc=True, withscores=True)
        rows, *again = step.zrevrank(key, member).zcard(key).execute()
        if again == [place, size]:
            return [(first + n, name, score) for n, (name, score) in enumerate(rows, 1)]


# ---- neighbours: wrong answers


def until_inside(r: Client, key: str, member: str, each: int) -> Any:
    """The member may be in it and not in its middle."""
    for _ in range(10):
        rows = two_moments(r, key, member, each)
        if not rows or member in [name for _, name, _ in rows]:
            return rows
    return []


def without_multi(r: Client, key: str, member: str, each: int) -> Any:
    pipe = r.pipeline(transaction=False).zrevrank(key, member)
    place, rows = pipe.zrange(key, 0, -1, desc=True, withscores=True).execute()
    if place is None:
        return []
    first = max(0, min(place - each, len(rows) - 2 * each - 1))
    part = rows[first : first + 2 * each + 1]
    return [(first + n, name, score) for n, (name, score) in enumerate(part, 1)]


def copied(r: Client, key: str, member: str, each: int) -> Any:
    r.zrangestore("exercise:copy", key, 0, -1)
    return whole_board(r, "exercise:copy", member, each)


def clamped(r: Client, key: str, member: str, each: int) -> Any:
    rows = whole_board(r, key, member, 10**6)
    places = [n for n, row in enumerate(rows) if row[1] == member]
    return rows[max(0, places[0] - each) : places[0] + each + 1] if places else []


def wraps(r: Client, key: str, member: str, each: int) -> Any:
    """F15: a start below 0 counts from the other end."""
    place = r.zrevrank(key, member)
    if place is None:
        return []
    rows = r.zrevrange(key, place - each, place + each, withscores=True)
    return [(place - each + n + 1, name, score) for n, (name, score) in enumerate(rows)]


def two_moments(r: Client, key: str, member: str, each: int) -> Any:
    place, size = r.zrevrank(key, member), r.zcard(key)
    if place is None:
        return []
    first = max(0, min(place - each, size - 2 * each - 1))
    rows = r.zrevrange(key, first, first + 2 * each, withscores=True)
    return [(first + n + 1, name, score) for n, (name, score) in enumerate(rows)]


def from_zero(r: Client, key: str, member: str, each: int) -> Any:
    return [(rank - 1, name, score) for rank, name, score in whole_board(r, key, member, each)]


def ascending(r: Client, key: str, member: str, each: int) -> Any:
    return whole_board(r, key, member, each)[::-1]


def pairs(r: Client, key: str, member: str, each: int) -> Any:
    return [row[1:] for row in whole_board(r, key, member, each)]


def without_the_player(r: Client, key: str, member: str, each: int) -> Any:
    return [row for row in whole_board(r, key, member, each) if row[1] != member]


def absent_is_none(r: Client, key: str, member: str, each: int) -> Any:
    return whole_board(r, key, member, each) or None


def absent_is_the_top(r: Client, key: str, member: str, each: int) -> Any:
    rows = whole_board(r, key, member, each)
    top = r.zrevrange(key, 0, 2 * each, withscores=True)
    return rows or [(n, name, score) for n, (name, score) in enumerate(top, 1)]


def absent_is_added(r: Client, key: str, member: str, each: int) -> Any:
    rows = whole_board(r, key, member, each)
    r.zincrby(key, 0, member)
    return rows


def no_float(r: Client, key: str, member: str, each: int) -> Any:
    return [(rank, name, int(score)) for rank, name, score in whole_board(r, key, member, each)]


def filled_above_only(r: Client, key: str, member: str, each: int) -> Any:
    rows = whole_board(r, key, member, 10**6)
    places = [n for n, row in enumerate(rows) if row[1] == member]
    first = max(0, places[0] - each) if places else 0
    return rows[first : first + 2 * each + 1] if places else []


def negative_first(r: Client, key: str, member: str, each: int) -> Any:
    """Moves the window at the end, also where the board is smaller than the window."""
    rows = whole_board(r, key, member, 10**6)
    places = [n for n, row in enumerate(rows) if row[1] == member]
    if not places:
        return []
    first = min(max(0, places[0] - each), len(rows) - 2 * each - 1)
    return rows[first : first + 2 * each + 1]


RIGHT: dict[str, list[Function]] = {
    "trim_to": [
        one_command,
        script,
        in_a_pipeline,
        popped_in_a_script,
        two_commands_in_one_request,
    ],
    "neighbours": [nested, whole_board, watched, script_in_a_pipeline, compared],
}

FIVE = "five members, scores 1 to 5, n = 3"
THREE = "25 players, n = 3; between two of your commands"
WRONG: list[tuple[str, Function, str]] = [
    ("trim_to", best_go, f"{FIVE}: ['m3', 'm2', 'm1'] are left; right is ['m5', 'm4', 'm3']."),
    ("trim_to", best_go, "Those are the worst: rank 0 is the lowest score."),
    ("trim_to", off_by_one, f"{FIVE}: ['m5', 'm4'] are left; right is ['m5', 'm4', 'm3']."),
    ("trim_to", off_by_one, "That is one off: rank -1 is the best"),
    ("trim_to", one_too_many, "['m5', 'm4', 'm3', 'm2'] are left"),
    ("trim_to", order_of_the_list, "['m5', 'm4', 'm3', 'm2', 'm1'] are left; right is"),
    ("trim_to", from_n, "Those are the worst"),
    ("trim_to", counted_before, f"{THREE} another client trims to the best 3: [] are left"),
    ("trim_to", counted_before_unclamped, "five members, scores 1 to 5, n = 5: [] are left"),
    ("trim_to", no_bounds, "n = 0: members were removed; right is ValueError and no change."),
    ("trim_to", clamps_n, "n = 0: members were removed; right is ValueError"),
    ("trim_to", zero_is_ignored, "n = 0 raised nothing; right is ValueError and no change."),
    ("trim_to", by_score, "scores 100 90 90 90 80, n = 3: ['ann', 'dan', 'cid', 'bob'] are left"),
    ("trim_to", left_over, f"{FIVE} gave 3; right is 2."),
    ("trim_to", truth, f"{FIVE} gave True; right is 2."),
    ("trim_to", says_nothing, f"{FIVE} gave None; right is 2."),
    ("trim_to", written_anew, f"{THREE} a new best member is added: ['p01', 'p02', 'p03'] are"),
    ("trim_to", too_late, "n = 0: members were removed"),
    ("neighbours", clamped, "Near an end the window is moved, not cut."),
    (
        "neighbours",
        wraps,
        "m5, number 1 of five members, scores 1 to 5, 2 each side: gave []; right",
    ),
    ("neighbours", wraps, "A start below 0 counts from the other end."),
    ("neighbours", two_moments, "p13 of 25 players, who gets the highest score between two of"),
    ("neighbours", until_inside, "p13 of 25 players, who is passed by a new best player between"),
    ("neighbours", without_multi, "p13 of 25 players, who gets the highest score between two of"),
    ("neighbours", copied, "the key 'exercise:copy' was left behind; right is none."),
    ("neighbours", from_zero, "Ranks start at 1, and go on from row to row."),
    ("neighbours", ascending, "m5, number 1 of five members, scores 1 to 5, 2 each side: gave"),
    ("neighbours", pairs, "A row is (rank, member, score)."),
    ("neighbours", without_the_player, "m5 is not in it."),
    ("neighbours", absent_is_none, "a member that is not among five members, scores 1 to 5 gave"),
    ("neighbours", absent_is_the_top, "right is []."),
    ("neighbours", absent_is_added, "five members, scores 1 to 5: the board was changed"),
    ("neighbours", no_float, "of scores inf, 0, 0.5 and -inf, 2 each side: your function raised"),
    ("neighbours", filled_above_only, "m2, number 4 of five members, scores 1 to 5, 2 each side"),
    ("neighbours", negative_first, "number 1 of four members tied at 0, 2 each side"),
]


@pytest.mark.parametrize(
    ("name", "answer"), [(name, answer) for name, answers in RIGHT.items() for answer in answers]
)
def test_right_answers_of_every_style(name: str, answer: Function, either: Client) -> None:
    assert exercise(name).judge(answer, either) == "Right."
    assert either.dbsize() == 0


@pytest.mark.parametrize(("name", "answer", "reason"), WRONG)
def test_wrong_answers_are_told_what_was_seen(
    name: str, answer: Function, reason: str, either: Client
) -> None:
    assert_refused(name, answer, reason, either)


@pytest.mark.parametrize("name", list(RIGHT))
def test_stub_and_solution_are_one(
    name: str, either: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_stub_and_solution_are_one(name, either, capsys)
