"""Memory of a key, with what it depends on."""

from __future__ import annotations

import pytest
import redis

from labkit.errors import LabError
from labkit.measure import memory


def test_it_is_the_servers_figure_over_every_member(either: redis.Redis) -> None:
    either.zadd("k", {f"m{i}": i for i in range(5_000)})
    short = memory(either, "k")
    # Five samples would miss this member or take it for a fifth of the set.
    either.zadd("k", {"x" * 100_000: -1})
    found = memory(either, "k")
    assert found.bytes == either.memory_usage("k", samples=0)
    assert 100_000 < found.bytes - short.bytes < 120_000


def test_it_names_server_version_and_allocator(both: dict[str, redis.Redis]) -> None:
    for label, client in both.items():
        client.set("text", "value")
        found = memory(client, b"text")
        assert f"{found.server} {found.version}" == label
        assert found.allocator == client.info("memory")["mem_allocator"]


def test_a_missing_key_is_an_error(either: redis.Redis) -> None:
    with pytest.raises(LabError, match="no key 'absent'"):
        memory(either, "absent")
