"""What a command costs the server, by the server's own clock."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from labkit.errors import LabError

if TYPE_CHECKING:
    import pandas as pd
    from redis import Redis


@dataclass(frozen=True)
class CommandTime:
    """One command's calls and the whole microseconds that the server spent inside them."""

    calls: int
    usec: int

    @property
    def usec_per_call(self) -> float:
        """Mean microseconds per call."""
        return self.usec / self.calls


class ServerTime(dict[str, CommandTime]):
    """Time by command, sorted by name; asking for one that was not called is a `LabError`."""

    def __missing__(self, command: str) -> CommandTime:
        called = ", ".join(self) or "nothing so far"
        raise LabError(f"{command!r} was not called.", f"Called were: {called}.")

    def table(self) -> pd.DataFrame:
        """One row a command: calls, usec, usec_per_call (microseconds)."""
        import pandas as pd

        rows = [(name, took.calls, took.usec, took.usec_per_call) for name, took in self.items()]
        columns = ["command", "calls", "usec", "usec_per_call"]
        return pd.DataFrame(rows, columns=columns).set_index("command")


@contextmanager
def server_time(client: Redis, *, info: bool = False) -> Iterator[ServerTime]:
    """Server time of every command called inside a ``with`` block, known when it has ended.

    ::

        with server_time(client) as took:
            client.zscore("board", "alice")
        took["zscore"].usec_per_call

    Names are those of INFO commandstats: ``zrange``, ``config|get`` (before Redis 7 ``config``).
    ``usec`` is wall time inside the command by the server's own clock: neither network, nor
    parsing, nor waiting for other clients is in it. The clock ticks in whole microseconds, so
    one call says little and a thousand say much. EVAL, FCALL and EXEC contain the time of the
    commands they run, which are listed as well. What other clients call meanwhile counts too.

    Args:
        client: any redis-py client of the server; one INFO before the block and one after.
        info: keep ``info`` in the result; the first of these two is one of its calls.

    Raises:
        LabError: the server's statistics were reset inside the block.

    Source: https://redis.io/docs/latest/commands/info/ (commandstats).
    """
    took = ServerTime()
    before = _read(client)
    yield took
    after = _read(client)
    for name in sorted(before | after):
        calls, usec = (b - a for a, b in zip(before[name], after[name], strict=True))
        if calls < 0:
            raise LabError(
                "The server's command statistics were reset during the measurement.",
                "Leave CONFIG RESETSTAT out of the measured block.",
            )
        if calls and (info or name != "info"):
            took[name] = CommandTime(calls, usec)


def _read(client: Redis) -> defaultdict[str, tuple[int, int]]:
    stats: Any = client.info("commandstats")
    read = {n.removeprefix("cmdstat_"): (row["calls"], row["usec"]) for n, row in stats.items()}
    return defaultdict(lambda: (0, 0), read)
