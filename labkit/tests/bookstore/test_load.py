"""64 clients for half a minute: no error; and how much of redis-py's own speed is left."""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from itertools import islice
from statistics import median

import psutil
import pytest
import redis

from labkit.bookstore import serving
from labkit.bookstore.load import MIX, Load, alone, drive, wishes
from labkit.bookstore.shapes import checked_isbn
from labkit.errors import LabError
from labkit.servers.space import open_client

CLIENTS = 64
PAIRS, TURN = {"Redis": 4, "Valkey": 2}, 2.0  # turns of both, and seconds of each
WHOLE = {"Redis": 30.0, "Valkey": 0.0}  # s that the service is asked in all, at the least
QUIET = 0.1  # of the machine: what others may take when the share is a figure to quote


def busy(service: int, client: redis.Redis) -> tuple[float, float]:
    """CPU seconds of the machine until now, and those of this test, its service and its server."""
    machine = psutil.cpu_times()
    ours = sum(sum(psutil.Process(pid).cpu_times()[:2]) for pid in (os.getpid(), service))
    told = client.info("cpu")
    ours += told["used_cpu_user"] + told["used_cpu_sys"]
    return sum(machine) - machine.idle - getattr(machine, "iowait", 0.0), ours


def test_64_clients_meet_no_error(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    ours: list[Load] = []
    theirs: list[Load] = []
    with serving(store) as service, open_client(store) as client:
        name = "Valkey" if "valkey_version" in client.info("server") else "Redis"
        warm = drive(service.url, clients=CLIENTS, seconds=0.3)
        begun, before = time.monotonic(), busy(service.process.pid, client)
        for turn in range(PAIRS[name]):  # each is first in every other turn
            if turn % 2:
                theirs.append(alone(store, clients=CLIENTS, seconds=TURN, seed=turn))
            ours.append(drive(service.url, clients=CLIENTS, seconds=TURN, seed=turn))
            if not turn % 2:
                theirs.append(alone(store, clients=CLIENTS, seconds=TURN, seed=turn))
        after = busy(service.process.pid, client)
        room = (time.monotonic() - begun) * (os.cpu_count() or 1)
        shares = [one.rate / other.rate for one, other in zip(ours, theirs, strict=True)]
        paired = PAIRS[name] * TURN
        if (rest := WHOLE[name] - paired) > 0:
            ours.append(drive(service.url, clients=CLIENTS, seconds=rest, seed=9))
        counted = client.zcard("{bookstore}:recent")
    asked, lasted = sum(one.statuses.total() for one in ours), sum(one.seconds for one in ours)
    errors = sum(load.errors for load in (*ours, *theirs))
    others = max(0.0, after[0] - before[0] - (after[1] - before[1])) / room
    quiet = "" if others < QUIET else " (no figure to quote: the machine is not quiet)"
    with capsys.disabled():
        print(
            f"\n{name}, {CLIENTS} clients, {lasted:.0f} s: {asked:,} requests, {errors} errors, "
            f"{asked / lasted:,.0f} a second: {median(shares):.2f} of redis-py asyncio alone "
            f"({min(shares):.2f} to {max(shares):.2f}) while others took {others:.0%} of the "
            f"machine{quiet}; half of the last turn in {1000 * ours[-1].quantile(0.5):.0f} ms, "
            f"99 of 100 in {1000 * ours[-1].quantile(0.99):.0f} ms."
        )
    assert lasted >= max(WHOLE[name], paired)
    assert errors == 0
    loads = [warm, *ours, *theirs]
    assert counted == sum(len(load.latencies["order"]) for load in loads)
    assert all(load.statuses.total() >= CLIENTS for load in loads)


def test_the_mix_is_as_stated() -> None:
    seen = Counter(wish.kind for wish in islice(wishes(1, 1), 1, 20_001))
    for kind, times in Counter(MIX).items():
        assert abs(seen[kind] / 20_000 - times / len(MIX)) < 0.02
    first, *rest = islice(wishes(1, 1), 500)
    assert first.kind == "order"  # so that there is a rank to ask for
    keys = [wish.key for wish in (first, *rest) if wish.kind == "order"]
    assert len(set(keys)) == len(keys)
    assert all(checked_isbn(wish.isbn) and wish.customer for wish in rest)
    plain = [wish.kind for wish in islice(wishes(1, 1), 50)]
    assert plain == [wish.kind for wish in islice(wishes(1, 1), 50)]


def test_errors_are_counted() -> None:
    with pytest.raises(LabError, match="No service answers at http"):
        drive("http://127.0.0.1:1", clients=2, seconds=0.1)
    assert Load().rate == 0
    assert math.isnan(Load().quantile(0.5))
    load = Load(seconds=2.0)
    for status in (200, 200, 503, 0):
        load.note("order", status, 0.1 * len(load.latencies["order"]))
    assert (load.errors, load.rate) == (2, 2.0)
    assert load.quantile(0.5) == pytest.approx(0.2)
    assert load.quantile(1.0) == pytest.approx(0.3)
