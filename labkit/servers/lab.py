"""One lesson's clients and its own space on the servers."""

from __future__ import annotations

import atexit
import contextlib
import os
from functools import cached_property
from typing import Any

from redis import ConnectionPool, Redis

from labkit.errors import LabError
from labkit.servers import embedded
from labkit.servers.features import FEATURES, has
from labkit.servers.find import Source, find
from labkit.servers.space import own_space, shared_space

_current: Lab | None = None


class Server:
    """A server in use: its client, its name, and the lesson's space on it.

    Attributes:
        source: where it comes from.
        client: a plain redis-py client; text in and out, RESP3 with one reply shape for all
            commands (``legacy_responses=False``), and no retries, because a command that is sent
            twice counts twice.
        name, version, allocator: of the server, as it states them itself.
    """

    def __init__(self, source: Source, allow_foreign: bool = False) -> None:
        self.source = source
        with contextlib.ExitStack() as ending:  # what was begun is ended, if a later step fails
            if source.kind == "embedded":
                process = embedded.start(source.role)
                ending.callback(process.stop)
                self.space = own_space(process.url)
            else:
                # What stands in the containers of compose.yaml is the lab's own affair.
                refuse = source.kind == "url" and not allow_foreign
                self.space = shared_space(source.url, refuse_foreign=refuse)
            ending.callback(self.space.close)
            self._ending = ending.pop_all()
        self.client: Redis = self.space.client
        info = self.space.info
        name = str(info.get("server_name", "redis"))  # Valkey calls itself so, Redis has no name
        self.name = name.capitalize()
        self.version = str(info.get(f"{name}_version", info.get("redis_version", "unknown")))
        self.allocator = str(info.get("mem_allocator", "unknown"))

    @property
    def label(self) -> str:
        """Name and version, e.g. ``Redis 8.10.2``."""
        return f"{self.name} {self.version}"

    def close(self) -> None:
        """Empty the lesson's space; end the server when it is the lab's own."""
        self._ending.close()


class Lab:
    """The servers of one lesson. Made by :func:`connect`.

    Attributes:
        replies: what the commands of the last ``%%redis`` cell gave, as redis-cli shows it.
    """

    def __init__(self, server: str = "redis", *, allow_foreign: bool = False) -> None:
        self._allow_foreign = allow_foreign
        self._main = Server(find(server), allow_foreign)
        self.replies: list[str] = []

    @property
    def redis(self) -> Redis:
        """The client of the server that the lesson runs on."""
        return self._main.client

    @cached_property
    def _other(self) -> Server:
        source, main = find("valkey"), self._main.source
        if (source.url or source.role) == (main.url or main.role):
            return self._main
        return Server(source, self._allow_foreign)

    @property
    def valkey(self) -> Redis:
        """The client of the Valkey that the lesson compares with; started when first asked for.

        The same as :attr:`redis` where the lesson runs on that Valkey.
        """
        return self._other.client

    @property
    def servers(self) -> dict[str, Redis]:
        """Name and version -> client: the lesson's own server, then Valkey if that is another."""
        return {server.label: server.client for server in self._compared()}

    def client(self, **settings: Any) -> Redis:
        """Another client of the lesson's server and space, with redis-py settings of its own.

        Args:
            settings: redis-py's connection settings, in place of those of :attr:`redis`.
        """
        like = self.redis.connection_pool
        kwargs = {**like.connection_kwargs, **settings}
        return Redis.from_pool(ConnectionPool(like.connection_class, **kwargs))

    def reset(self) -> None:
        """Empty the lesson's space on its servers, and nothing else."""
        for server in self._opened():
            server.space.reset()

    def supports(self, feature: str, client: Redis | None = None) -> bool:
        """Whether a server has a feature; where it is missing, one printed line says so.

        Args:
            feature: a name of :data:`labkit.servers.features.FEATURES`.
            client: which server; the lesson's own by default.
        """
        if feature not in FEATURES:
            raise LabError(f"There is no feature {feature!r}.", f"Known: {', '.join(FEATURES)}.")
        server = next((s for s in self._opened() if s.client is client), self._main)
        there = has(server.client, feature)
        if not there:
            print(f"{server.label} has no {FEATURES[feature].shown}: left out here.")
        return there

    def close(self) -> None:
        """Empty the lesson's space and end what the lab started."""
        for server in self._opened():
            server.close()

    def _opened(self) -> list[Server]:
        return list(dict.fromkeys([self._main, self.__dict__.get("_other", self._main)]))

    def _compared(self) -> list[Server]:
        return [self._main, *([self._other] if self._other.label != self._main.label else [])]

    def _repr_mimebundle_(self, **_: object) -> tuple[dict[str, str], dict[str, object]]:
        servers = self._compared()
        lines = [f"{s.label} ({s.source.shown}, {s.allocator})" for s in servers]
        facts = [
            {"role": s.source.role, "source": s.source.shown, "name": s.name}
            | {"version": s.version, "allocator": s.allocator}
            for s in servers
        ]
        return {"text/plain": "\n".join(lines)}, {"labkit": {"servers": facts}}


def connect(server: str = "redis", *, allow_foreign: bool = False) -> Lab:
    """Open a lesson's servers; a lab that is open already is closed first.

    Args:
        server: ``redis``, ``valkey`` or a URL: what the lesson runs on.
        allow_foreign: say yes to a server of yours that holds keys of somebody else. The lesson
            then works in a database of that server that is empty, and touches no other.

    Raises:
        LabError: nothing can serve, the server does not answer, or it holds foreign keys.
    """
    global _current
    _close()
    allow = allow_foreign or os.environ.get("LABKIT_ALLOW_FOREIGN", "0") not in ("", "0")
    _current = Lab(server, allow_foreign=allow)
    return _current


def current() -> Lab:
    """The lab that is open.

    Raises:
        LabError: no lab is open.
    """
    if _current is None:
        raise LabError("No lab is open.", "Run the cell with `connect(server)` first.")
    return _current


@atexit.register
def _close() -> None:
    global _current
    open_lab, _current = _current, None
    if open_lab is not None:
        open_lab.close()


def _forget() -> None:
    global _current
    _current = None


# A forked child that ends must not end its parent's servers.
if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_forget)
