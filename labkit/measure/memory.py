"""What a key costs in memory, by the server's own account."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from labkit.errors import LabError

if TYPE_CHECKING:
    from redis import Redis


@dataclass(frozen=True)
class Memory:
    """Bytes of one key, and what they depend on: the server and its allocator."""

    bytes: int
    server: str
    version: str
    allocator: str


def memory(client: Redis, key: str | bytes) -> Memory:
    """Memory of a key and its value: MEMORY USAGE with SAMPLES 0, so every member is counted.

    The default of five samples is an estimate, some per cent off where members differ. The
    figure holds the allocator's overhead, so compare only figures with the same allocator.

    Raises:
        LabError: there is no such key.

    Source: https://redis.io/docs/latest/commands/memory-usage/
    """
    used: Any = client.memory_usage(key, samples=0)
    if used is None:
        raise LabError(f"There is no key {key!r} to weigh.", "Fill it first, or look at its name.")
    info: Any = client.info("server")
    # Valkey calls itself so; Redis and its old relatives have no such field.
    name = str(info.get("server_name", "redis"))
    version = str(info.get(f"{name}_version", info["redis_version"]))
    allocator = str(client.info("memory")["mem_allocator"])
    return Memory(int(used), name.capitalize(), version, allocator)
