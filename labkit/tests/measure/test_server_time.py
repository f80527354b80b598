"""INFO commandstats differences, against calls that the test counts itself."""

from __future__ import annotations

import random
from collections import Counter

import pytest
import redis

from labkit.errors import LabError
from labkit.measure import server_time


def test_a_known_mix_of_commands_is_counted_exactly(either: redis.Redis) -> None:
    rng = random.Random(4)
    made: Counter[str] = Counter()
    either.zadd("before", {"a": 1})
    with server_time(either) as took:
        for _ in range(500):
            name = rng.choice(["zadd", "zscore", "zrange", "object|encoding"])
            made[name] += 1
            match name:
                case "zadd":
                    either.zadd("k", {"a": 1, "b": 2})
                case "zscore":
                    either.zscore("k", "a")
                case "zrange":
                    either.zrange("k", 0, -1)
                case _:
                    either.object("encoding", "before")
    assert {name: time.calls for name, time in took.items()} == made


def test_info_is_left_out_unless_asked_for(either: redis.Redis) -> None:
    with server_time(either) as without:
        either.info("server")
    with server_time(either, info=True) as kept:
        either.info("server")
    assert "info" not in without
    assert kept["info"].calls == 2  # the test's own and the first of the two readings


def test_usec_is_the_servers_time_for_the_work(either: redis.Redis) -> None:
    either.zadd("big", {f"m{i}": i for i in range(20_000)})
    with server_time(either) as took:
        for _ in range(20):
            either.zrange("big", 0, -1)
            either.zcard("big")
    assert took["zrange"].usec > 20 * took["zcard"].usec
    assert took["zrange"].usec_per_call == took["zrange"].usec / 20


def test_a_command_that_was_not_called_names_those_that_were(either: redis.Redis) -> None:
    with server_time(either) as took:
        either.zcard("k")
        either.zadd("k", {"a": 1})
    with pytest.raises(LabError, match=r"'zscore' was not called\. Called were: zadd, zcard\."):
        took["zscore"]


def test_nothing_is_known_before_the_block_ends(either: redis.Redis) -> None:
    with server_time(either) as took:
        either.zcard("k")
        with pytest.raises(LabError, match="nothing so far"):
            took["zcard"]


def test_statistics_reset_in_the_block_are_noticed(either: redis.Redis) -> None:
    either.zcard("k")
    with pytest.raises(LabError, match="were reset"), server_time(either):
        either.config_resetstat()


def test_an_error_in_the_block_stays_itself(either: redis.Redis) -> None:
    with pytest.raises(ZeroDivisionError), server_time(either):
        _ = 1 / 0


def test_a_script_contains_the_time_of_what_it_calls(either: redis.Redis) -> None:
    either.zadd("big", {f"m{i}": i for i in range(5_000)})
    with server_time(either) as took:
        either.eval("return #redis.call('zrange', KEYS[1], 0, -1)", 1, "big")
    assert took["zrange"].calls == took["eval"].calls == 1
    assert took["eval"].usec >= took["zrange"].usec


def test_the_table_is_sorted_by_command(either: redis.Redis) -> None:
    with server_time(either) as took:
        either.zscore("k", "a")
        either.zadd("k", {"a": 1})
        either.zcard("k")
        either.zcard("k")
    table = took.table()
    assert list(table.index) == ["zadd", "zcard", "zscore"]
    assert list(table["calls"]) == [1, 2, 1]
    assert list(table.columns) == ["calls", "usec", "usec_per_call"]
