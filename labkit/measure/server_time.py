"""What a command costs the server, by the server's own clock."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from labkit.errors import LabError

if TYPE_CHECKING:
    import pandas as pd
    from redis import Redis

PREFIX = "cmdstat_"


@dataclass(frozen=True)
class CommandTime:
    """One command's calls and the whole microseconds that the server spent inside them."""

    calls: int
    usec: int

    @property
    def usec_per_call(self) -> float:
        """Mean microseconds per call."""
        return self.usec / self.calls


class ServerTime:
    """The commands that a server ran while a ``with`` block was open; see `server_time`."""

    def __init__(self, client: Redis, *, info: bool = False) -> None:
        self._client = client
        self._info = info
        self._before: dict[str, tuple[int, int]] = {}
        self._took: dict[str, CommandTime] | None = None

    def __enter__(self) -> Self:
        self._took = None
        self._before = _read(self._client)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self._took = self._difference(_read(self._client))

    def _difference(self, after: dict[str, tuple[int, int]]) -> dict[str, CommandTime]:
        took = {}
        if any(after.get(name, (0, 0))[0] < calls for name, (calls, _) in self._before.items()):
            raise LabError(
                "The server's command statistics were reset during the measurement.",
                "Leave CONFIG RESETSTAT out of the measured block.",
            )
        for name, (calls, usec) in after.items():
            earlier_calls, earlier_usec = self._before.get(name, (0, 0))
            if calls > earlier_calls and (self._info or name != "info"):
                took[name] = CommandTime(calls - earlier_calls, usec - earlier_usec)
        return took

    def _result(self) -> dict[str, CommandTime]:
        if self._took is None:
            raise LabError(
                "The measurement has no result yet.", "Read it after the `with` block has ended."
            )
        return self._took

    def __getitem__(self, command: str) -> CommandTime:
        took = self._result()
        if command.lower() not in took:
            called = ", ".join(sorted(took)) or "nothing"
            raise LabError(f"{command!r} was not called.", f"Called were: {called}.")
        return took[command.lower()]

    def __contains__(self, command: str) -> bool:
        return command.lower() in self._result()

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._result()))

    def table(self) -> pd.DataFrame:
        """One row a command, sorted by name: calls, usec, usec_per_call (microseconds)."""
        import pandas as pd

        rows = [(t.calls, t.usec, t.usec_per_call) for t in map(self.__getitem__, self)]
        return pd.DataFrame(
            rows,
            columns=["calls", "usec", "usec_per_call"],
            index=pd.Index(list(self), name="command"),
        )


def server_time(client: Redis, *, info: bool = False) -> ServerTime:
    """Server time of every command called inside a ``with`` block.

    ::

        with server_time(client) as took:
            client.zscore("board", "alice")
        took["zscore"].usec_per_call

    The result maps the names of INFO commandstats (``zrange``, ``config|get``; before Redis 7
    ``config``) to calls and microseconds. ``usec`` is wall time inside the command by the
    server's own clock: neither network, nor parsing, nor waiting for other clients is in it.
    The clock ticks in whole microseconds, so one call says little and a thousand say much.
    EVAL, FCALL and EXEC contain the time of the commands they run, which are listed as well.
    The counters are the server's: what other clients call meanwhile is counted too.

    Args:
        client: any redis-py client of the server; two calls of INFO are made with it.
        info: keep ``info`` in the result, the first of these two calls included.

    Raises:
        LabError: on reading a command that was not called; statistics reset in the block.

    Source: https://redis.io/docs/latest/commands/info/ (commandstats).
    """
    return ServerTime(client, info=info)


def _read(client: Redis) -> dict[str, tuple[int, int]]:
    stats: dict[str, Any] = client.info("commandstats")
    return {
        name.removeprefix(PREFIX): (row["calls"], row["usec"])
        for name, row in stats.items()
        if name.startswith(PREFIX)
    }
