"""A lesson's own key space, and how it is taken and given back."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.connection import ConnectionPool, parse_url
from redis.maint_notifications import MaintNotificationsConfig
from redis.retry import Retry

from labkit.errors import LabError
from labkit.servers.embedded import alive
from labkit.servers.fence import Fence
from labkit.servers.find import redact

MARKER = "labkit:space"  # in a database that a lab has taken; its value names the holder
_BATCH = 1000
_PATIENCE = 5.0  # seconds for a server's first answers; a lesson's own commands may take longer


@dataclass(frozen=True)
class Space:
    """Where a lesson's keys live.

    Attributes:
        client: a client that sees this space.
        info: what the server says of itself (INFO).
        reset: empties the space and nothing else.
        close: gives the space back, empty.
    """

    client: redis.Redis
    info: dict[str, Any]
    reset: Callable[[], object]
    close: Callable[[], None]


def open_client(url: str, *, database: int | None = None, **options: Any) -> redis.Redis:
    """A redis-py client in the one reply shape that all lessons use.

    Text in and out, RESP3, ``legacy_responses=False``, no retries, nothing sent on connect but
    the handshake. ``options`` are redis-py's connection options and win over these.

    Raises:
        LabError: redis-py cannot read the URL.
    """
    fixed = {"protocol": 3, "legacy_responses": False, "decode_responses": True, **options}
    settings: dict[str, Any] = {
        "retry": Retry(NoBackoff(), 0),
        "socket_timeout": None,
        "driver_info": None,
    }
    if not url.startswith("unix:"):
        settings["maint_notifications_config"] = MaintNotificationsConfig(enabled=False)
        settings["socket_connect_timeout"] = _PATIENCE
    if database is not None:
        fixed["db"] = database
    try:
        pool = ConnectionPool.from_url(url, **settings)
        pool.connection_kwargs.update(fixed)  # what the URL says must not change the reply shape
        pool.connection_class(**pool.connection_kwargs)  # knows which options there are
    except (ValueError, TypeError):  # their text may hold the password
        raise LabError(
            f"The URL {redact(url)} cannot be read.",
            "A URL looks like redis://:PASSWORD@host:6380/0, with / as %2F in the password.",
        ) from None
    return redis.Redis.from_pool(pool)


def own_space(url: str) -> Space:
    """The space of a server that the lab started: all of it."""
    client = open_client(url)
    return Space(client, client.info(), client.flushall, client.close)


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
        with open_client(url, socket_timeout=_PATIENCE) as look:
            info = look.info()
        foreign = _foreign_keys(url, info)
        if foreign and refuse_foreign:
            raise LabError(
                f"The server at {redact(url)} holds keys that are not the lab's "
                f"({foreign:,} of them); nothing was written.",
                "If lessons may use an empty database beside them, set LABKIT_ALLOW_FOREIGN=1.",
            )
        client, fence, holder = _take_database(url)
    except redis.RedisError as error:
        raise _unusable(redact(url), error) from error
    settings: dict[Any, Any] = {}
    with contextlib.suppress(redis.ResponseError):  # where CONFIG is forbidden, SET is as well
        settings = client.config_get("*")

    def reset() -> None:
        cursor = -1
        while cursor:
            cursor, keys = client.scan(max(cursor, 0), count=_BATCH)
            if batch := [key for key in keys if key != MARKER]:
                client.unlink(*batch)

    def close() -> None:
        # A server that has gone away in the meantime has nothing left to tidy.
        with contextlib.suppress(redis.ConnectionError, redis.TimeoutError):
            if fence.closed:
                return
            fence.marker = ""
            for name in fence.configured & settings.keys():
                if client.config_get(name).get(name) != settings[name]:
                    client.config_set(name, settings[name])
            # The lesson deleted a marker that is gone, unless the server was started anew.
            same = client.info("server").get("run_id") == info.get("run_id")
            if client.get(MARKER) in (holder, None if same else holder):
                reset()
                client.delete(MARKER)
        fence.closed = True
        client.close()

    return Space(client, info, reset, close)


def _databases(url: str) -> list[int]:
    named = parse_url(url).get("db")
    # From the top, because programs that say nothing of databases use the first.
    return list(range(15, -1, -1)) if named is None else [named]


def _foreign_keys(url: str, info: dict[str, Any]) -> int:
    """How many keys lie in databases that no lab has taken."""
    count = 0
    for number in [int(name[2:]) for name in info if re.fullmatch(r"db\d+", name)]:
        with open_client(url, database=number, socket_timeout=_PATIENCE) as one:
            count += 0 if one.exists(MARKER) else one.dbsize()
    return count


def _take_database(url: str) -> tuple[redis.Redis, Fence, str]:
    holder = f"labkit-{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(8)}"
    refusals: list[redis.ResponseError] = []
    numbers = _databases(url)
    for number in numbers:
        fence = Fence(number)
        client = open_client(url, database=number, client_name=holder, command_packer=fence)
        try:
            if _mark(client, holder):
                fence.marker = MARKER
                return client, fence, holder
        except redis.ResponseError as error:
            if not re.search("DB index|SELECT", str(error)):  # there are fewer databases
                raise
            refusals.append(error)
        client.close()
    if len(refusals) == len(numbers):
        raise refusals[-1]
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
        if before is not None and _holds(str(before), [c["name"] for c in steps.client_list()]):
            return False
        steps.multi()
        steps.set(MARKER, holder)
        try:
            steps.execute()
        except redis.WatchError:
            return False
    return True


def _holds(holder: str, connected: list[str]) -> bool:
    """Whether a holder is alive; one of this machine may have lost an idle connection."""
    host, _, process = holder.rpartition("-")[0].removeprefix("labkit-").rpartition("-")
    return holder in connected or (host == socket.gethostname() and alive(int(process)))


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
