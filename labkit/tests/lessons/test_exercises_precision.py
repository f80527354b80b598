"""The checkers of lesson 06's exercises against right answers and the wrong ones people give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from redis import WatchError

from labkit.boards.scores import Composite
from labkit.lessons.exercises import exercise
from labkit.tests.lessons.judging import assert_refused, assert_stub_and_solution_are_one

Client = Any  # an answer is written without types
Function = Callable[..., Any]

UNIT = 2**32
BOARD = Composite(points=(0, 2**21 - 1), tie=(0, UNIT - 1))


# ---- tied: right answers


def codec_bounds(r: Client, key: str, points: int) -> Any:
    return r.zcount(key, *BOARD.range_of(points))


def open_bound(r: Client, key: str, points: int) -> Any:
    return r.zcount(key, points * UNIT, f"({(points + 1) * UNIT}")


def two_counts(r: Client, key: str, points: int) -> Any:
    with r.pipeline() as step:  # MULTI: both of one moment
        step.zcount(key, points * UNIT, "+inf")
        step.zcount(key, (points + 1) * UNIT, "+inf")
        with_more, more = step.execute()
    return with_more - more


def script(r: Client, key: str, points: int) -> Any:
    text = """local low = tonumber(ARGV[1]) * 2^32
    return redis.call('ZCOUNT', KEYS[1], low, low + 2^32 - 1)"""
    return r.eval(text, 1, key, points)


def float_bounds(r: Client, key: str, points: int) -> Any:
    return r.zcount(key, float(points * UNIT), float(points * UNIT + UNIT - 1))


def reads_until_it_is_still(r: Client, key: str, points: int) -> Any:
    with r.pipeline() as step:
        while True:
            step.watch(key)
            more = step.zcount(key, f"({BOARD.range_of(points)[1]}", "+inf")
            with_more = step.zcount(key, points * UNIT, "+inf")
            step.multi()
            step.ping()
            try:
                step.execute()
            except WatchError:
                continue
            return with_more - more


def as_float(r: Client, key: str, points: int) -> Any:
    return float(codec_bounds(r, key, points))


def of_numpy(r: Client, key: str, points: int) -> Any:
    return np.int64(codec_bounds(r, key, points))


# ---- tied: wrong answers


def two_moments(r: Client, key: str, points: int) -> Any:
    return r.zcount(key, points * UNIT, "+inf") - r.zcount(key, (points + 1) * UNIT, "+inf")


def two_moments_from_below(r: Client, key: str, points: int) -> Any:
    r.exists(key)
    low, high = BOARD.range_of(points)
    return r.zcount(key, "-inf", high) - r.zcount(key, "-inf", f"({low}")


def all_but_the_others(r: Client, key: str, points: int) -> Any:
    low, high = BOARD.range_of(points)
    with r.pipeline() as step:
        everyone = step.zcard(key).execute()[0]
        below, above = step.zcount(key, "-inf", f"({low}").zcount(key, f"({high}", "+inf").execute()
    return everyone - below - above


def both_ends_open(r: Client, key: str, points: int) -> Any:
    return r.zcount(key, f"({points * UNIT}", f"({(points + 1) * UNIT}")


def highest_left_out(r: Client, key: str, points: int) -> Any:
    return r.zcount(key, points * UNIT, f"({points * UNIT + UNIT - 1}")


def next_points_too(r: Client, key: str, points: int) -> Any:
    return r.zcount(key, points * UNIT, (points + 1) * UNIT)


def and_more(r: Client, key: str, points: int) -> Any:
    return r.zcount(key, points * UNIT, "+inf")


def short_bounds(r: Client, key: str, points: int) -> Any:
    return r.zcount(key, f"{points * UNIT:.6g}", f"{points * UNIT + UNIT - 1:.6g}")


def lua_text(r: Client, key: str, points: int) -> Any:
    text = """local low = tonumber(ARGV[1]) * 2^32
    return redis.call('ZCOUNT', KEYS[1], tostring(low), tostring(low + 2^32 - 1))"""
    return r.eval(text, 1, key, points)


def rounded(r: Client, key: str, points: int) -> Any:
    return sum(round(s / UNIT) == points for _, s in r.zrange(key, 0, -1, withscores=True))


def plain_score(r: Client, key: str, points: int) -> Any:
    return r.zcount(key, points, points)


def reads_all(r: Client, key: str, points: int) -> Any:
    return sum(s // UNIT == points for _, s in r.zrange(key, 0, -1, withscores=True))


def reads_the_tie(r: Client, key: str, points: int) -> Any:
    return len(r.zrange(key, *BOARD.range_of(points), byscore=True))


def names(r: Client, key: str, points: int) -> Any:
    return r.zrange(key, *BOARD.range_of(points), byscore=True)


def as_text(r: Client, key: str, points: int) -> Any:
    return str(codec_bounds(r, key, points))


def is_it(r: Client, key: str, points: int) -> Any:
    return codec_bounds(r, key, points) > 0


def none_for_nobody(r: Client, key: str, points: int) -> Any:
    return codec_bounds(r, key, points) or None


def leaves_a_mark(r: Client, key: str, points: int) -> Any:
    r.zadd(key, {"looked at": -1})
    return codec_bounds(r, key, points)


def forgot_return(r: Client, key: str, points: int) -> None:
    codec_bounds(r, key, points)


TIED_RIGHT = [codec_bounds, open_bound, two_counts, script, float_bounds]
TIED_RIGHT += [reads_until_it_is_still, as_float, of_numpy]
TIED_WRONG: list[tuple[Function, str]] = [
    (both_ends_open, "gave 4; right is 5. The lowest score of these points has t = 2**32 - 1"),
    (highest_left_out, "gave 3; right is 5. The highest score of these points has t = 0"),
    (next_points_too, "gave 6; right is 5. The next points begin at (points + 1) * 2**32"),
    (and_more, "500 points on a board with three players with 500 points gave 4; right is 3. That"),
    (short_bounds, "; right is"),
    (lua_text, "very many points gave"),
    (rounded, "500 points on a board with three players with 500 points gave"),
    (plain_score, "gave 0; right is 3"),
    (reads_all, "the server sent the players; right is to let it count"),
    (reads_the_tie, "the server sent the players; right is to let it count"),
    (names, "One whole number is asked for, not list"),
    (as_text, "gave '3'; right is 3. One whole number is asked for, not str"),
    (is_it, "gave True; right is 3. One whole number is asked for, not bool"),
    (two_moments, "while others with 4 and with 6 come between two of your commands, gave 1"),
    (two_moments_from_below, "come between two of your commands, gave 2; right is 3. Let one step"),
    (all_but_the_others, "come between two of your commands, gave 0; right is 3. Let one step"),
    (none_for_nobody, "gave None; right is 0. One whole number is asked for"),
    (leaves_a_mark, "right is to read only"),
    (forgot_return, "gave None; right is 3"),
]


# ---- award: right answers


def by_numbers(r: Client, key: str, player: str, points: int, t: int) -> Any:
    """A number that is passed to redis.call as it is keeps its digits."""
    award = r.register_script("""
    local old = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or '0')
    local total = (old - old % 2^32) / 2^32 + ARGV[2]
    redis.call('ZADD', KEYS[1], total * 2^32 + 2^32 - 1 - ARGV[3], ARGV[1])
    return total""")
    return award(keys=[key], args=[player, points, t])


def by_increment(r: Client, key: str, player: str, points: int, t: int) -> Any:
    text = """
    local old = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or '0')
    local left = old % 2^32
    local by = ARGV[2] * 2^32 + (2^32 - 1 - ARGV[3]) - left
    local new = redis.call('ZINCRBY', KEYS[1], string.format('%.0f', by), ARGV[1])
    return math.floor(tonumber(new) / 2^32)"""
    return int(r.eval(text, 1, key, player, points, t))


def watched(r: Client, key: str, player: str, points: int, t: int) -> Any:
    with r.pipeline() as step:
        while True:
            step.watch(key)
            score = step.zscore(key, player)
            total = points + (0 if score is None else BOARD.decode(score)[0])
            step.multi()
            step.zadd(key, {player: BOARD.encode(total, t)})
            try:
                step.execute()
            except WatchError:
                continue
            return total


def with_transaction(r: Client, key: str, player: str, points: int, t: int) -> Any:
    def add(step: Client) -> int:
        score = step.zscore(key, player)
        total = points + (0 if score is None else int(score) // UNIT)
        step.multi()
        step.zadd(key, {player: BOARD.encode(total, t)})
        return total

    return r.transaction(add, key, value_from_callable=True)


def after_a_ping(r: Client, key: str, player: str, points: int, t: int) -> Any:
    r.ping()
    total = by_numbers(r, key, player, points, t)
    r.ping()
    return float(total)


def text_of_total(r: Client, key: str, player: str, points: int, t: int) -> Any:
    """Whole numbers below 2^53 are exact; '%d' of Lua 5.1 takes them."""
    text = """
    local old = redis.call('ZSCORE', KEYS[1], ARGV[1]) or '0'
    local total = math.floor(old / 4294967296) + ARGV[2]
    local new = string.format('%.17g', total * 4294967296 + 4294967295 - ARGV[3])
    redis.call('ZREM', KEYS[1], ARGV[1])
    redis.call('ZADD', KEYS[1], new, ARGV[1])
    return tostring(total)"""
    return int(r.eval(text, 1, key, player, points, t))


# ---- award: wrong answers


def read_then_write(r: Client, key: str, player: str, points: int, t: int) -> Any:
    score = r.zscore(key, player)
    total = points + (0 if score is None else int(score) // UNIT)
    r.zadd(key, {player: total * UNIT + UNIT - 1 - t})
    return total


def adds_then_reads(r: Client, key: str, player: str, points: int, t: int) -> Any:
    r.zadd(key, {player: UNIT - 1 - t}, nx=True)
    return read_then_write(r, key, player, points, t)


def guarded(r: Client, key: str, player: str, points: int, t: int) -> Any:
    if r.zrank(key, player) is None:
        return by_numbers(r, key, player, points, t)
    return read_then_write(r, key, player, points, t)


def only_the_new_one_races(r: Client, key: str, player: str, points: int, t: int) -> Any:
    if r.zrank(key, player) is None:
        r.zadd(key, {player: points * UNIT + UNIT - 1 - t})
        return points
    return by_numbers(r, key, player, points, t)


def one_pipeline_twice(r: Client, key: str, player: str, points: int, t: int) -> Any:
    step = r.pipeline()
    score = step.zscore(key, player).execute()[0]
    total = points + (0 if score is None else int(score) // UNIT)
    step.zadd(key, {player: total * UNIT + UNIT - 1 - t}).execute()
    return total


def watches_in_vain(r: Client, key: str, player: str, points: int, t: int) -> Any:
    with r.pipeline() as step:
        step.watch(key)
        return read_then_write(step, key, player, points, t)


def pings_first(r: Client, key: str, player: str, points: int, t: int) -> Any:
    r.ping()
    return read_then_write(r, key, player, points, t)


def locks(r: Client, key: str, player: str, points: int, t: int) -> Any:
    """Others do not take the lock."""
    with r.lock(f"{key}:lock", timeout=5):
        return read_then_write(r, key, player, points, t)


def increment_then_time(r: Client, key: str, player: str, points: int, t: int) -> Any:
    total = int(r.zincrby(key, points * UNIT, player)) // UNIT
    r.zadd(key, {player: total * UNIT + UNIT - 1 - t})
    return total


def two_increments(r: Client, key: str, player: str, points: int, t: int) -> Any:
    total, left = divmod(int(r.zincrby(key, points * UNIT, player)), UNIT)
    r.zincrby(key, UNIT - 1 - t - left, player)
    return total


def old_time(r: Client, key: str, player: str, points: int, t: int) -> Any:
    if r.zscore(key, player) is None:
        r.zadd(key, {player: UNIT - 1 - t})
    return int(r.zincrby(key, points * UNIT, player)) // UNIT


def plain_points(r: Client, key: str, player: str, points: int, t: int) -> Any:
    if r.zscore(key, player) is None:
        return read_then_write(r, key, player, points, t)
    return int(r.zincrby(key, points, player)) // UNIT


def lua_digits(r: Client, key: str, player: str, points: int, t: int) -> Any:
    text = """
    local old = redis.call('ZSCORE', KEYS[1], ARGV[1]) or '0'
    local total = math.floor(tonumber(old) / 2^32) + ARGV[2]
    redis.call('ZADD', KEYS[1], tostring(total * 2^32 + 2^32 - 1 - ARGV[3]), ARGV[1])
    return total"""
    return r.eval(text, 1, key, player, points, t)


def set_not_added(r: Client, key: str, player: str, points: int, t: int) -> Any:
    r.zadd(key, {player: points * UNIT + UNIT - 1 - t})
    return points


def time_added(r: Client, key: str, player: str, points: int, t: int) -> Any:
    score = r.zscore(key, player)
    total = points + (0 if score is None else int(score) // UNIT)
    r.zadd(key, {player: total * UNIT + t})
    return total


def rounds_points(r: Client, key: str, player: str, points: int, t: int) -> Any:
    score = r.zscore(key, player)
    total = points + (0 if score is None else round(score / UNIT))
    r.zadd(key, {player: total * UNIT + UNIT - 1 - t})
    return total


def only_later(r: Client, key: str, player: str, points: int, t: int) -> Any:
    score = r.zscore(key, player)
    total = points + (0 if score is None else int(score) // UNIT)
    r.zadd(key, {player: total * UNIT + UNIT - 1 - t}, nx=True)
    return total


def returns_score(r: Client, key: str, player: str, points: int, t: int) -> Any:
    by_numbers(r, key, player, points, t)
    return r.zscore(key, player)


def returns_nothing(r: Client, key: str, player: str, points: int, t: int) -> None:
    by_numbers(r, key, player, points, t)


def packed_member(r: Client, key: str, player: str, points: int, t: int) -> Any:
    r.zadd(key, {f"{t}:{player}": points})
    return points


def new_player_raises(r: Client, key: str, player: str, points: int, t: int) -> Any:
    total = int(r.zscore(key, player)) // UNIT + points
    r.zadd(key, {player: total * UNIT + UNIT - 1 - t})
    return total


AWARD_RIGHT = [by_numbers, by_increment, watched, text_of_total, with_transaction, after_a_ping]
RACY = [adds_then_reads, guarded, one_pipeline_twice, watches_in_vain, pings_first, locks]
AWARD_WRONG: list[tuple[Function, str]] = [
    *((answer, "left 510 points; right is 540. Let one step read and write") for answer in RACY),
    (only_the_new_one_races, "a new zoe, awarded 10, while another client awards her 30 between"),
    (only_the_new_one_races, "left 10 points; right is 40"),
    (read_then_write, "left 510 points; right is 540. Let one step read and write"),
    (increment_then_time, "left 510 points; right is 540. Let one step"),
    (two_increments, "Let one step read and write"),
    (old_time, "The total is right, and the time is still that of the award before"),
    (plain_points, "Seconds were added. One point is 2**32"),
    (lua_digits, "Some digits were lost. How does Lua write a long number as text?"),
    (set_not_added, "zoe with 5 points, awarded 1 at t = 1795000060: the score is then"),
    (set_not_added, "These points were set, not added"),
    (time_added, "a new zoe, awarded 5 at t = 1795000000: the score is then"),
    (time_added, "An earlier award must be ahead: store the time that is left"),
    (rounds_points, "the score is then"),
    (only_later, "zoe with 5 points, awarded 1"),
    (returns_score, "the new total"),
    (returns_nothing, "gave None; right is 5, the new total"),
    (packed_member, "then on the board: 1795000000:zoe, rival; right: rival, zoe"),
    (new_player_raises, "a new zoe, awarded 5 at t = 1795000000: your function raised TypeError"),
]

RIGHT = [("tied", a) for a in TIED_RIGHT] + [("award", a) for a in AWARD_RIGHT]
WRONG = [("tied", *w) for w in TIED_WRONG] + [("award", *w) for w in AWARD_WRONG]


@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_right_answers_of_every_style(name: str, answer: Function, either: Client) -> None:
    assert exercise(name).judge(answer, either) == "Right."
    assert either.dbsize() == 0


@pytest.mark.parametrize(("name", "answer", "reason"), WRONG)
def test_wrong_answers_are_told_what_was_seen(
    name: str, answer: Function, reason: str, either: Client
) -> None:
    assert_refused(name, answer, reason, either)


@pytest.mark.parametrize("name", ["tied", "award"])
def test_stub_and_solution_are_one(
    name: str, either: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_stub_and_solution_are_one(name, either, capsys)
