"""Client latencies: exact counts, observed percentiles, an undisturbed loop."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest
import redis

from labkit.errors import LabError
from labkit.measure import client_time
from labkit.measure.client_time import Latencies


def test_every_sample_is_one_call_after_the_warm_up(redis_client: redis.Redis) -> None:
    took = client_time(lambda: redis_client.zincrby("k", 1, "m"), samples=1500, warmup=70)
    assert redis_client.zscore("k", "m") == 1570
    assert took.microseconds.shape == (1500,)
    assert took.microseconds.min() > 0


def test_fewer_than_a_thousand_samples_are_refused() -> None:
    calls: list[int] = []
    with pytest.raises(LabError, match="999 samples"):
        client_time(lambda: calls.append(1), samples=999)
    assert not calls


def test_percentiles_are_observed_values() -> None:
    took = Latencies(np.random.default_rng(1).permutation(np.arange(1.0, 1001.0)))
    assert [took.percentile(q) for q in (50, 90, 99, 99.9, 100)] == [500, 900, 990, 999, 1000]
    table = took.table()
    assert list(table.index) == ["p50", "p90", "p99", "p99.9", "max"]
    assert list(table["microseconds"]) == [500, 900, 990, 999, 1000]


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_is_off_in_the_loop_and_as_before_after_it(enabled: bool) -> None:
    seen: set[bool] = set()
    (gc.enable if enabled else gc.disable)()
    try:
        client_time(lambda: seen.add(gc.isenabled()), warmup=0)
        assert seen == {False}
        assert gc.isenabled() is enabled
        with pytest.raises(ZeroDivisionError):
            client_time(lambda: 1 // 0, warmup=0)
        assert gc.isenabled() is enabled
    finally:
        gc.enable()


def test_the_loop_keeps_nothing_from_one_call_to_the_next() -> None:
    sizes: list[int] = [0] * 2000
    position = iter(range(2000))

    def call() -> None:
        sizes[next(position)] = tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    client_time(call, samples=2000, warmup=0)
    tracemalloc.stop()
    # The integers that `call` itself stores are 32 bytes each.
    assert sizes[-1] - sizes[100] <= 1900 * 40


def test_a_reply_is_freed_outside_of_the_measured_time() -> None:
    class Slow:
        def __del__(self) -> None:
            sum(range(2_000))

    kept = Slow()
    kept_time = client_time(lambda: kept).percentile(50)
    freed_time = client_time(Slow).percentile(50)
    sum_time = client_time(lambda: sum(range(2_000))).percentile(50)
    assert freed_time - kept_time < sum_time / 2
