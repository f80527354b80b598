"""64 clients for half a minute: no error; and how much of redis-py's own speed is left."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest

from labkit.bookstore import serving
from labkit.bookstore.load import MIX, Load, alone, drive, wishes
from labkit.bookstore.shapes import checked_isbn
from labkit.errors import LabError
from labkit.servers.space import open_client

CLIENTS = 64
TURNS = {"Redis": (6, 5.0), "Valkey": (3, 1.0)}  # how many, and seconds of each


def test_64_clients_meet_no_error(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    ours: list[Load] = []
    theirs: list[Load] = []
    with serving(store) as service, open_client(store) as client:
        name = "Valkey" if "valkey_version" in client.info("server") else "Redis"
        turns, seconds = TURNS[name]
        warm = drive(service.url, clients=CLIENTS, seconds=0.3)
        for turn in range(turns):
            theirs.append(alone(store, clients=CLIENTS, seconds=1.0, seed=turn))
            ours.append(drive(service.url, clients=CLIENTS, seconds=seconds, seed=turn))
        counted = client.zcard("{bookstore}:recent")
    shares = [one.rate / other.rate for one, other in zip(ours, theirs, strict=True)]
    asked, alone_asked = (sum(one.statuses.total() for one in many) for many in (ours, theirs))
    errors = sum(load.errors for load in (*ours, *theirs))
    lasted, alone_lasted = (sum(one.seconds for one in many) for many in (ours, theirs))
    share = asked / lasted / (alone_asked / alone_lasted)
    with capsys.disabled():
        print(
            f"\n{name}, {CLIENTS} clients, {lasted:.0f} s: {asked:,} requests, {errors} errors, "
            f"{asked / lasted:,.0f} a second: {share:.2f} of redis-py asyncio alone "
            f"({min(shares):.2f} to {max(shares):.2f}); half of them in "
            f"{1000 * ours[-1].quantile(0.5):.0f} ms, 99 of 100 in "
            f"{1000 * ours[-1].quantile(0.99):.0f} ms."
        )
    assert lasted >= turns * seconds
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
    load = Load(seconds=2.0)
    for status in (200, 200, 503, 0):
        load.note("order", status, 0.1 * len(load.latencies["order"]))
    assert (load.errors, load.rate) == (2, 2.0)
    assert load.quantile(0.5) == pytest.approx(0.2)
    assert load.quantile(1.0) == pytest.approx(0.3)
