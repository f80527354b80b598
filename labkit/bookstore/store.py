"""The connection to the server, and what an answered order may count on there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.connection import BlockingConnectionPool, UnixDomainSocketConnection
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    InvalidResponse,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
)
from redis.exceptions import ConnectionError as LinkError
from redis.exceptions import TimeoutError as ReplyTimeout
from redis.maint_notifications import MaintNotificationsConfig

from labkit.errors import LabError

TIMEOUT = 1.0  # s for a connection, and for each reply
RETRIES = 2  # of a command, after the first time
PAUSE = 0.02, 0.2  # s between them: the first, and the longest
CONNECTIONS = 64
WAITS = 5  # times the timeout: how long a command waits for a connection that is free
OLDEST = (6, 2)


def open_store(
    url: str,
    *,
    timeout: float = TIMEOUT,
    retries: int = RETRIES,
    connections: int = CONNECTIONS,
) -> Redis:
    """A client for the shop: text in and out, with an end to every wait.

    A command ends within ``(1 + retries) x (2 x timeout + 0.2)`` seconds, for a connection and a
    reply each time: 6.6 by default, and 5 more when all connections are in use. The first use of a
    script on a server is three commands. The service ends a request earlier (`create_app`). A retry
    is safe because of the record that each order leaves.

    Args:
        url: as redis-py reads it: ``redis://``, ``rediss://`` or ``unix://``.
        timeout: seconds.
        retries: of a command whose connection failed or whose reply did not come.
        connections: the most at a time; who finds none free waits, for 5 times ``timeout``.

    Raises:
        LabError: redis-py cannot read the URL.
    """
    settings: dict[str, Any] = {
        "retry": Retry(ExponentialBackoff(base=PAUSE[0], cap=PAUSE[1]), retries),
        "socket_timeout": timeout,
        "socket_connect_timeout": timeout,
        "max_connections": connections,
        "timeout": WAITS * timeout,
    }
    if not url.startswith("unix:"):  # they need RESP3, and this service no more than RESP2
        settings["maint_notifications_config"] = MaintNotificationsConfig(enabled=False)
    try:
        pool = BlockingConnectionPool.from_url(url, **settings)
        pool.connection_kwargs.update(decode_responses=True, encoding="utf-8", protocol=2)
        pool.connection_kwargs.update(driver_info=None)  # two commands less for each connection
        pool.connection_class(**pool.connection_kwargs)  # knows which options there are
        if pool.connection_class is UnixDomainSocketConnection:
            pool.connection_kwargs["path"]  # a KeyError if there is none
    except (ValueError, TypeError, LookupError, AttributeError):  # may say the password
        raise LabError(
            "The URL of the store cannot be read.",
            "It looks like redis://:PASSWORD@host:6379/0, with / as %2F in the password.",
        ) from None
    return Redis.from_pool(pool)


@dataclass(frozen=True)
class Promise:
    """What the server does with an order that was answered.

    Attributes:
        server: its name and version.
        durable: whether no crash of the server or of its machine loses such an order. A replica
            that takes over may lack the last orders all the same: replication is asynchronous.
        sentence: the same in words.
        cure: what would make it durable.
    """

    server: str
    durable: bool
    sentence: str
    cure: str = ""


async def promise(client: Redis) -> Promise:
    """Ask the server what it does; needs INFO, and CONFIG GET to promise the most.

    Raises:
        LabError: a server that is too old.
        RedisError: it does not answer, refuses INFO, or is no Redis.
    """
    try:
        return await _promise(client)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise InvalidResponse(f"INFO or CONFIG GET is odd: {error!r}") from error


async def _promise(client: Redis) -> Promise:
    info: dict[str, Any] = await client.info()
    kind = "Valkey" if info.get("server_name") == "valkey" else "Redis"
    version = str(info.get("valkey_version") or info["redis_version"])
    server = f"{kind} {version}"
    if kind == "Redis" and tuple(map(int, version.split(".")[:2])) < OLDEST:
        raise LabError(f"{server} is too old.", "The bookstore needs Redis 6.2 or newer.")
    if info.get("role") != "master":
        what, cure = "is a replica: it takes no orders.", "Name its primary."
        return Promise(server, False, f"{server} {what}", cure)
    if info.get("maxmemory") and info.get("maxmemory_policy") != "noeviction":
        policy = info.get("maxmemory_policy")
        what, cure = f"evicts keys ({policy}): orders can vanish.", "Set noeviction there."
        return Promise(server, False, f"{server} {what}", cure)
    cure = "Set appendonly yes and appendfsync always there."
    if not info.get("aof_enabled"):
        what = "writes no append-only file: orders live while it lives."
        return Promise(server, False, f"{server} {what}", cure)
    # After CONFIG SET appendonly yes, the file counts from the end of its first rewrite. INFO does
    # not tell that one from a later one, in which nothing can be lost.
    pending = info.get("aof_rewrite_in_progress") or info.get("aof_rewrite_scheduled")
    if pending or info.get("aof_last_bgrewrite_status") != "ok":
        what = "has not finished writing its append-only file anew: orders may be in no file."
        return Promise(server, False, f"{server} {what}", "Try again when it has.")
    try:
        settings: dict[Any, Any] = await client.config_get("*appendfsync*")
    except (NoPermissionError, ResponseError):
        settings = {}
    if settings.get("appendfsync") == "always":
        if settings.get("no-appendfsync-on-rewrite") == "no":
            what = "syncs its append-only file before it answers an order."
            return Promise(server, True, f"{server} {what}")
        cure = "Set no-appendfsync-on-rewrite no there."
        what = "does not sync its append-only file while it rewrites it"
    else:
        what = f"syncs its append-only file later (appendfsync {settings.get('appendfsync')})"
    what += ": a crash of the machine can lose the last seconds."
    return Promise(server, False, f"{server} {what}", cure)


def trouble(error: RedisError | OSError) -> str:
    """What is wrong with the store, as a sentence.

    It does not say whether a command was done: even after an error that the server has replied
    with, an earlier attempt of redis-py may have been, and its reply lost.
    """
    inner = error.__cause__ or error.__context__
    if type(error) is LinkError and isinstance(inner, RedisError):
        error = inner  # what redis-py met when it said hello
    if isinstance(error, BusyLoadingError):
        return "The store is loading its data."
    words = str(error)
    in_script = "no permissions" in words or "can't run this command" in words  # the latter by 6.2
    if in_script or isinstance(error, AuthenticationError | NoPermissionError):
        return "The store does not let this service in."
    if isinstance(error, ReadOnlyError):
        return "The store is a replica, which takes no writes."
    if isinstance(error, OutOfMemoryError):
        return "The store is full."
    if isinstance(error, InvalidResponse):
        return "What answers there is no Redis."
    if isinstance(error, ResponseError):
        code = words.partition(" ")[0]
        if not code.isupper():  # redis-py has taken it away
            code = type(error).__name__
        return f"The store refused the command ({code:.20})."
    if isinstance(error, ReplyTimeout | TimeoutError):
        return "The store did not answer in time."
    if "No connection available" in words:
        return "All connections to the store are busy."
    return "The connection to the store failed."
