"""Sweeps over sizes: exact counts, the same numbers for both servers, fits that find a growth."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import pytest
import redis

from labkit.errors import LabError
from labkit.measure import exponent, load, server_time, sweep
from labkit.measure.sweep import Operation, _run

SCRIPT = "return redis.call('zrange', KEYS[1], 0, ARGV[1])"


def fill(client: redis.Redis, size: int) -> None:
    client.delete("k")
    load(client, "k", ((f"m{i}", i) for i in range(size)), show=False)


def test_every_call_is_made_and_no_other(both: dict[str, redis.Redis]) -> None:
    for client in both.values():
        with server_time(client) as took:
            sweep(
                {"it": client},
                [10, 300],
                fill,
                {
                    "score": lambda pipe, i: pipe.zscore("k", f"m{i}"),
                    "pair": lambda pipe, i: (pipe.zcard("k"), pipe.zrank("k", f"m{i}")),
                },
                calls=50,
                repeats=3,
            )
        runs = 2 * (3 * 50 + 5)  # sizes, repeats and calls, a tenth as a warm-up
        assert {name: time.calls for name, time in took.items()} == {
            **{"del": 2, "zadd": 2, "zscore": runs, "zcard": runs, "zrank": runs}
        }


def test_the_frame_is_tidy_and_in_order(both: dict[str, redis.Redis]) -> None:
    operations = {
        "b": lambda pipe, i: pipe.zscore("k", f"m{i}"),
        "a": lambda pipe, i: pipe.zrange("k", 0, i),
    }
    frame = sweep(both, [400, 200], fill, operations, calls=40, repeats=4)
    assert list(frame.columns) == [
        *("server", "members", "operation", "calls", "usec_per_call", "low", "high")
    ]
    assert list(zip(frame["members"], frame["server"], frame["operation"], strict=True)) == [
        (size, label, name) for size in (400, 200) for label in both for name in "ba"
    ]
    assert (frame["calls"] == 40).all()
    assert (frame["low"] <= frame["usec_per_call"]).all()
    assert (frame["usec_per_call"] <= frame["high"]).all()


def numbers(both: dict[str, redis.Redis], seed: int) -> dict[str, list[int]]:
    seen: dict[str, list[int]] = {label: [] for label in both}

    def note(pipe: Any, i: int) -> None:
        label = next(name for name, c in both.items() if c.connection_pool is pipe.connection_pool)
        seen[label].append(i)
        pipe.zcard("k")

    sweep(both, [7], lambda *_: None, {"note": note}, calls=700, repeats=2, seed=seed)
    return seen


def test_i_is_uniform_below_the_size_seeded_and_the_same_everywhere(
    both: dict[str, redis.Redis],
) -> None:
    first = numbers(both, 1)
    redis_numbers, valkey_numbers = first.values()
    assert redis_numbers == valkey_numbers
    assert first == numbers(both, 1)
    assert first != numbers(both, 2)
    counts = Counter(redis_numbers)
    assert set(counts) == set(range(7))
    assert max(counts.values()) < 1.4 * min(counts.values())


def test_operations_may_depend_on_the_size(redis_client: redis.Redis) -> None:
    asked = []

    def at(size: int) -> dict[str, Any]:
        asked.append(size)
        return {"middle": lambda pipe, _: pipe.zrange("k", size // 2, size // 2)}

    frame = sweep({"it": redis_client}, [10, 20], fill, at, calls=5, repeats=1)
    assert asked == [10, 20]
    assert list(frame["members"]) == [10, 20]


@pytest.mark.parametrize(
    ("operation", "counted"),
    [
        (lambda pipe, i: pipe.zrange("k", 0, i), ["zrange"]),
        (lambda pipe, i: (pipe.zrange("k", 0, i), pipe.zrank("k", f"m{i}")), ["zrange", "zrank"]),
        (lambda pipe, _: (pipe.zrange("k", 0, 9), pipe.zrange("k", 0, 99)), ["zrange"]),
        # A script is counted once, although the server lists what it calls as well.
        (lambda pipe, i: pipe.eval(SCRIPT, 1, "k", i), ["eval"]),
    ],
)
def test_the_time_is_that_of_the_commands_sent(
    either: redis.Redis, operation: Operation, counted: list[str]
) -> None:
    fill(either, 300)
    with server_time(either) as took:
        each = _run(either, operation, 300, 200, random.Random(1))
    assert each * 200 == pytest.approx(sum(took[name].usec for name in counted))


def test_subcommands_and_commands_written_in_bytes(either: redis.Redis) -> None:
    either.zadd("k", {"a": 1})
    operations = {
        "encoding": lambda pipe, _: pipe.object("encoding", "k"),
        "setting": lambda pipe, _: pipe.config_get("maxmemory"),
        "bytes": lambda pipe, _: pipe.execute_command(b"zScore", "k", "a"),
        "info": lambda pipe, _: pipe.info("server"),
    }
    frame = sweep({"it": either}, [1], lambda *_: None, operations, calls=20, repeats=1)
    assert len(frame) == 4


@pytest.mark.parametrize(
    "change",
    [{"servers": {}}, {"sizes": []}, {"sizes": [0]}, {"calls": 0}, {"repeats": 0}],
)
def test_nothing_to_sweep_over(redis_client: redis.Redis, change: dict[str, Any]) -> None:
    arguments: dict[str, Any] = {"servers": {"it": redis_client}, "sizes": [1]} | change
    with pytest.raises(LabError, match="A sweep needs"):
        sweep(prepare=fill, operations={"c": lambda pipe, _: pipe.zcard("k")}, **arguments)


def test_an_operation_that_sends_nothing(redis_client: redis.Redis) -> None:
    with pytest.raises(LabError, match="sends no command"):
        sweep({"it": redis_client}, [1], fill, {"idle": lambda *_: None})


def test_an_operation_that_the_server_refuses(redis_client: redis.Redis) -> None:
    redis_client.set("text", "")
    operation = {"wrong": lambda pipe, _: pipe.zcard("text")}
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        sweep({"it": redis_client}, [1], lambda *_: None, operation)


SIZES = [10**k for k in range(3, 8)]


@pytest.mark.parametrize("k", [-1.0, 0.0, 0.5, 1.0, 2.0])
def test_exponent_finds_the_power(k: float) -> None:
    assert exponent(SIZES, [3.5 * n**k for n in SIZES]) == pytest.approx(k, abs=1e-9)


def test_exponent_of_a_logarithm_is_small() -> None:
    assert 0 < exponent(SIZES, [math.log(n) for n in SIZES]) < 0.2


@pytest.mark.parametrize(
    ("n", "t", "cure"),
    [
        ([], [], "at another size"),
        ([10], [1], "at another size"),
        ([10, 10], [1, 2], "at another size"),
        ([1, 2], [0, 1], "with more calls"),
        ([0, 2], [1, 1], "above zero"),
    ],
)
def test_exponent_of_what_has_none(n: list[float], t: list[float], cure: str) -> None:
    with pytest.raises(LabError, match=cure):
        exponent(n, t)
