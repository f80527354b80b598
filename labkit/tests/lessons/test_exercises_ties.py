"""The checker of lesson 05's exercise against right answers and the wrong ones that people give."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from redis import WatchError

from labkit.lessons.exercises import exercise
from labkit.tests.lessons.judging import assert_refused, assert_stub_and_solution_are_one

Client = Any  # an answer is written without types
Function = Callable[..., Any]


# ---- right answers


def registered_script(r: Client, key: str, member: str) -> Any:
    script = r.register_script("""
    local score = redis.call('ZSCORE', KEYS[1], ARGV[1])
    if not score then return nil end
    return 1 + redis.call('ZCOUNT', KEYS[1], '(' .. score, 'inf')""")
    return script(keys=[key], args=[member])


def first_of_the_tie(r: Client, key: str, member: str) -> Any:
    """The ordinal rank of the tie's first member is the rank of all of it."""
    script = """
    local s = redis.call('ZSCORE', KEYS[1], ARGV[1])
    if not s then return end
    local first = redis.call('ZREVRANGEBYSCORE', KEYS[1], s, s, 'LIMIT', 0, 1)[1]
    return redis.call('ZREVRANK', KEYS[1], first) + 1"""
    return r.eval(script, 1, key, member)


def whole_list(r: Client, key: str, member: str) -> Any:
    board = dict(r.zrange(key, 0, -1, withscores=True))
    if member not in board:
        return None
    return sum(score > board[member] for score in board.values()) + 1


def sorted_scores(r: Client, key: str, member: str) -> Any:
    rows = r.zrange(key, "-inf", "+inf", byscore=True, withscores=True)
    scores = [score for _, score in rows]
    for name, score in rows:
        if name == member:
            return len(scores) - bisect_right(scores, score) + 1
    return None


def watched(r: Client, key: str, member: str) -> Any:
    with r.pipeline() as trip:
        while True:
            trip.watch(key)
            score = trip.zscore(key, member)
            if score is None:
                return None
            trip.multi()
            trip.zcount(key, f"({score!r}", "+inf")
            try:
                return trip.execute()[0] + 1
            except WatchError:
                continue


def asks_until_it_stands_still(r: Client, key: str, member: str) -> Any:
    score = r.zscore(key, member)
    while score is not None:
        with r.pipeline() as trip:
            trip.zcount(key, f"({score}", "+inf")
            trip.zscore(key, member)
            higher, now = trip.execute()
        if now == score:
            return higher + 1
        score = now
    return None


def watched_without_an_end(r: Client, key: str, member: str) -> Any:
    """Reads inside WATCH, and a transaction that only confirms them."""

    def look(trip: Client) -> Any:
        score = trip.zscore(key, member)
        rank = None if score is None else trip.zcount(key, f"({score!r}", "+inf") + 1
        trip.multi()
        trip.ping()
        return rank

    return r.transaction(look, key, value_from_callable=True)


def guarded_script(r: Client, key: str, member: str) -> Any:
    return registered_script(r, key, member) if r.exists(key) else None


def numpy_rank(r: Client, key: str, member: str) -> Any:
    rank = whole_list(r, key, member)
    return rank if rank is None else np.int64(rank)


def by_card(r: Client, key: str, member: str) -> Any:
    script = """local s = redis.call('ZSCORE', KEYS[1], ARGV[1])
    return s and redis.call('ZCARD', KEYS[1]) - redis.call('ZCOUNT', KEYS[1], '-inf', s) + 1"""
    rank = r.eval(script, 1, key, member)
    return rank if rank is None else float(rank)


# ---- wrong answers


def ordinal(r: Client, key: str, member: str) -> Any:
    rank = r.zrevrank(key, member)
    return None if rank is None else rank + 1


def from_zero(r: Client, key: str, member: str) -> Any:
    score = r.zscore(key, member)
    return None if score is None else r.zcount(key, f"({score}", "+inf")


def own_tie(r: Client, key: str, member: str) -> Any:
    score = r.zscore(key, member)
    return None if score is None else r.zcount(key, score, "+inf")


def own_tie_and_one(r: Client, key: str, member: str) -> Any:
    score = r.zscore(key, member)
    return None if score is None else r.zcount(key, score, "+inf") + 1


def dense(r: Client, key: str, member: str) -> Any:
    board = dict(r.zrange(key, 0, -1, withscores=True))
    score = board.get(member)
    return None if score is None else len({s for s in board.values() if s > score}) + 1


def ascending(r: Client, key: str, member: str) -> Any:
    score = r.zscore(key, member)
    return None if score is None else r.zcount(key, "-inf", f"({score}") + 1


def two_moments(r: Client, key: str, member: str) -> Any:
    score = r.zscore(key, member)
    return None if score is None else r.zcount(key, f"({score!r}", "+inf") + 1


def guarded(r: Client, key: str, member: str) -> Any:
    return None if r.zrank(key, member) is None else two_moments(r, key, member)


def looks_twice(r: Client, key: str, member: str) -> Any:
    r.zscore(key, member)
    return two_moments(r, key, member)


def one_pipeline_twice(r: Client, key: str, member: str) -> Any:
    trip = r.pipeline()
    score = trip.zscore(key, member).execute()[0]
    if score is None:
        return None
    return trip.zcount(key, f"({score!r}", "+inf").execute()[0] + 1


def watches_in_vain(r: Client, key: str, member: str) -> Any:
    with r.pipeline() as trip:
        trip.watch(key)
        return two_moments(trip, key, member)


def asks_three_times(r: Client, key: str, member: str) -> Any:
    """Sure that nothing moves, and then it moves."""
    if r.zscore(key, member) != (score := r.zscore(key, member)) or score is None:
        return whole_list(r, key, member)
    r.ping()
    return r.zcount(key, f"({score!r}", "+inf") + 1


def short_bound(r: Client, key: str, member: str) -> Any:
    score = r.zscore(key, member)
    return None if score is None else r.zcount(key, f"({score:.15g}", "+inf") + 1


def whole_numbers(r: Client, key: str, member: str) -> Any:
    score = r.zscore(key, member)
    return None if score is None else r.zcount(key, f"({int(score)}", "+inf") + 1


def lua_number(r: Client, key: str, member: str) -> Any:
    """Lua writes a number with 14 digits."""
    script = """local s = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or nil)
    return s and redis.call('ZCOUNT', KEYS[1], '(' .. s, '+inf') + 1"""
    return r.eval(script, 1, key, member)


def zero_is_missing(r: Client, key: str, member: str) -> Any:
    board = dict(r.zrange(key, 0, -1, withscores=True))
    score = board.get(member)
    return sum(s > score for s in board.values()) + 1 if score else None


def absent_raises(r: Client, key: str, member: str) -> Any:
    board = dict(r.zrange(key, 0, -1, withscores=True))
    return sum(s > board[member] for s in board.values()) + 1


def absent_is_last(r: Client, key: str, member: str) -> Any:
    board = dict(r.zrange(key, 0, -1, withscores=True))
    return sum(s > board.get(member, float("-inf")) for s in board.values()) + 1


def absent_is_added(r: Client, key: str, member: str) -> Any:
    known = r.zscore(key, member) is not None
    score = r.zincrby(key, 0, member)
    return r.zcount(key, f"({score}", "+inf") + 1 if known else None


def as_text(r: Client, key: str, member: str) -> Any:
    rank = whole_list(r, key, member)
    return None if rank is None else f"{rank}."


def is_it_the_first(r: Client, key: str, member: str) -> Any:
    rank = whole_list(r, key, member)
    return True if rank == 1 else rank


def with_score(r: Client, key: str, member: str) -> Any:
    return whole_list(r, key, member), r.zscore(key, member)


def forgot_return(r: Client, key: str, member: str) -> None:
    whole_list(r, key, member)


RIGHT = [
    registered_script,
    first_of_the_tie,
    whole_list,
    sorted_scores,
    watched,
    asks_until_it_stands_still,
    by_card,
    watched_without_an_end,
    guarded_script,
    numpy_rank,
]

WRONG: list[tuple[Function, str]] = [
    (ordinal, "bob on a board with scores 100 90 90 80 gave 3; right is 2. That is the ordinal"),
    (from_zero, "gave 0; right is 1. So many score higher"),
    (own_tie, "cid on a board with scores 100 90 90 80 gave 3; right is 2. That counts the member"),
    (own_tie_and_one, "gave 2; right is 1"),
    (dense, "dan on a board with scores 100 90 90 80 gave 3; right is 4. That is the dense rank"),
    (ascending, "gave 4; right is 1. That counts from the lowest"),
    (
        two_moments,
        "bob with 90 under ann with 100, who gets 110 between two of your commands, gave",
    ),
    *(
        (answer, ", who gets 110 between two of your commands, gave 3; right is 2 or 1")
        for answer in (guarded, looks_twice, one_pipeline_twice, watches_in_vain, asks_three_times)
    ),
    (short_bound, "a board with scores 0.1 + 0.2 and 0.3 gave"),
    (whole_numbers, "a board with scores 0.1 + 0.2 and 0.3 gave"),
    (lua_number, "a board with scores 0.1 + 0.2 and 0.3 gave"),
    (zero_is_missing, "tied at 0 gave None; right is 1. Only an absent member gives None"),
    (absent_raises, "a member that is not on the board with scores 100 90 90 80: your function"),
    (absent_is_last, "a member that is not on the board with scores 100 90 90 80 gave 5; right is"),
    (absent_is_added, "the board was changed"),
    (as_text, "gave '1.'; right is 1. One whole number is asked for, not str"),
    (is_it_the_first, "gave True; right is 1"),
    (with_score, "One whole number is asked for, not tuple"),
    (forgot_return, "gave None; right is 1"),
]


@pytest.mark.parametrize("answer", RIGHT)
def test_right_answers_of_every_style(answer: Function, either: Client) -> None:
    assert exercise("standing").judge(answer, either) == "Right."
    assert either.dbsize() == 0


@pytest.mark.parametrize(("answer", "reason"), WRONG)
def test_wrong_answers_are_told_what_was_seen(
    answer: Function, reason: str, either: Client
) -> None:
    assert_refused("standing", answer, reason, either)


def test_stub_and_solution_are_one(either: Client, capsys: pytest.CaptureFixture[str]) -> None:
    assert_stub_and_solution_are_one("standing", either, capsys)
