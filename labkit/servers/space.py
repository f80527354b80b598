"""A lesson's own key space, and the guards that keep everything else untouched."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import redis
from redis._parsers import Encoder
from redis.backoff import NoBackoff
from redis.connection import ConnectionPool, PythonRespSerializer, parse_url
from redis.maint_notifications import MaintNotificationsConfig
from redis.retry import Retry

from labkit.errors import LabError
from labkit.servers.find import redact

MARKER = "labkit:space"  # in a database that a lab has taken; its value names the holder
_BATCH = 1000
# Commands that reach outside of one database, or end the server.
_REFUSED = {"FLUSHALL", "FLUSHDB", "SHUTDOWN", "SWAPDB", "MOVE", "MIGRATE", "REPLICAOF", "SLAVEOF"}


@dataclass(frozen=True)
class Space:
    """Where a lesson's keys live.

    Attributes:
        client: a client that sees this space.
        reset: empties the space and nothing else.
        close: gives the space back, empty.
    """

    client: redis.Redis
    reset: Callable[[], None]
    close: Callable[[], None]


class _Guarding(PythonRespSerializer):
    """Packs commands for the wire, and refuses those that would leave the lesson's space."""

    def __init__(self, database: int) -> None:
        super().__init__(6000, Encoder("utf-8", "strict", True).encode)
        self._database = database

    def pack(self, *args: Any) -> list[bytes]:
        name = args[0].decode() if isinstance(args[0], bytes) else str(args[0])
        words = [*name.upper().split(), *(str(a) for a in args[1:2])]
        if words[0] in _REFUSED or (words[0] == "SELECT" and words[1] != str(self._database)):
            raise LabError(
                f"{words[0]} was not sent: it reaches beyond this lesson's keys, and the server "
                "is not the lab's own.",
                "`lab.reset()` empties the lesson's space.",
            )
        packed: list[bytes] = super().pack(*args)  # type: ignore[no-untyped-call]
        return packed


def open_client(url: str, *, database: int | None = None, **options: Any) -> redis.Redis:
    """A redis-py client in the one reply shape that all lessons use.

    Text in and out, RESP3, ``legacy_responses=False``, no retries, nothing sent on connect but
    the handshake. ``options`` are redis-py's connection options and win over these.

    Raises:
        LabError: redis-py cannot read the URL.
    """
    settings: dict[str, Any] = {
        "protocol": 3,
        "legacy_responses": False,
        "decode_responses": True,
        "retry": Retry(NoBackoff(), 0),
        "socket_timeout": None,
        "driver_info": None,
    }
    if not url.startswith("unix:"):
        settings["maint_notifications_config"] = MaintNotificationsConfig(enabled=False)
        settings["socket_connect_timeout"] = 5
    if database is not None:
        options["db"] = database
    try:
        pool = ConnectionPool.from_url(url, **settings)
        pool.connection_kwargs.update(options)
    except ValueError as error:
        raise LabError(f"The URL {redact(url)} cannot be read: {error}.") from error
    return redis.Redis.from_pool(pool)


def own_space(url: str) -> Space:
    """The space of a server that the lab started: all of it."""
    client = open_client(url)

    def reset() -> None:
        client.flushall()

    return Space(client, reset, client.close)


def shared_space(url: str, *, refuse_foreign: bool) -> Space:
    """A database of its own on a server that the lab did not start.

    The database is one that is empty, or one that a lab left behind which is connected no more:
    a marker key names its holder, and the holder's connections carry the same name, so that the
    server itself knows who is alive.

    Args:
        url: the server; a database named in it is the only one that is considered.
        refuse_foreign: whether keys of others anywhere on the server are a reason to stop.

    Raises:
        LabError: no answer, foreign keys, or no database is free.
    """
    try:
        if refuse_foreign and (foreign := _foreign_keys(url)):
            raise LabError(
                f"The server at {redact(url)} holds {foreign:,} keys that are not the "
                "lab's; nothing was written.",
                "If lessons may use an empty database beside them, set LABKIT_ALLOW_FOREIGN=1.",
            )
        client, holder = _take_database(url)
    except redis.RedisError as error:
        raise _unusable(redact(url), error) from error

    def reset() -> None:
        batch = []
        for key in client.scan_iter(count=_BATCH):
            if key != MARKER:
                batch.append(key)
            if len(batch) >= _BATCH:
                client.unlink(*batch)
                batch.clear()
        if batch:
            client.unlink(*batch)

    def close() -> None:
        # A server that has gone away in the meantime has nothing left to tidy.
        with contextlib.suppress(redis.ConnectionError, redis.TimeoutError):
            if client.get(MARKER) == holder:
                reset()
                client.delete(MARKER)
        client.close()

    return Space(client, reset, close)


def _databases(url: str) -> range:
    named = parse_url(url).get("db")
    return range(16) if named is None else range(named, named + 1)


def _foreign_keys(url: str) -> int:
    """How many keys lie in databases that no lab has taken."""
    count = 0
    look = open_client(url)
    for name, facts in look.info("keyspace").items():
        one = open_client(url, database=int(name.removeprefix("db")))
        count += 0 if one.exists(MARKER) else int(facts["keys"])
        one.close()
    look.close()
    return count


def _take_database(url: str) -> tuple[redis.Redis, str]:
    holder = f"labkit-{secrets.token_hex(8)}"
    for number in _databases(url):
        guard = _Guarding(number)
        client = open_client(url, database=number, client_name=holder, command_packer=guard)
        try:
            taken = _mark(client, holder)
        except redis.ResponseError as error:
            if "out of range" not in str(error):
                raise
            break
        if taken:
            return client, holder
        client.close()
    raise LabError(
        f"No database of the server at {redact(url)} is free for this lesson.",
        "Close other lessons, name an empty database in the URL (redis://host:port/3), or leave "
        "the URL out to use a private server.",
    )


def _mark(client: redis.Redis, holder: str) -> bool:
    """Take this client's database for ``holder`` if it is empty or its holder is gone."""
    with client.pipeline() as steps:
        steps.watch(MARKER)
        before = steps.get(MARKER)
        if before is None and steps.dbsize():
            return False
        if before is not None and any(c["name"] == before for c in steps.client_list()):
            return False
        steps.multi()
        steps.set(MARKER, holder)
        try:
            steps.execute()
        except redis.WatchError:
            return False
    return True


def _unusable(shown: str, error: redis.RedisError) -> LabError:
    if isinstance(error, redis.AuthenticationError):
        return LabError(
            f"The server at {shown} refuses the password: {error}.",
            "Put the right one into the URL: redis://:PASSWORD@host:port.",
        )
    if isinstance(error, redis.BusyLoadingError):
        return LabError(f"The server at {shown} is still loading its data.", "Try again soon.")
    if isinstance(error, redis.ConnectionError | redis.TimeoutError):
        return LabError(
            f"No server answers at {shown}.",
            "Start it, mend the URL, or leave the URL out to use a private server.",
        )
    return LabError(f"The server at {shown} does not let the lab work: {error}.")
