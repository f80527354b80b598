"""``python -m labkit.bookstore``: serve the bookstore."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import Callable
from datetime import UTC, datetime

import click
import uvicorn
from redis.asyncio import Redis
from redis.exceptions import RedisError

from labkit.bookstore.app import DEADLINE, create_app
from labkit.bookstore.process import READY, end_with_owner
from labkit.bookstore.shop import unix_ms
from labkit.bookstore.store import TIMEOUT, Promise, open_store, promise, trouble
from labkit.errors import LabError

_LEFT_OPEN = int(2 * DEADLINE) + 1  # s for what runs when the service ends: a body, the store


@click.command(context_settings={"max_content_width": 100})
@click.option(
    "--url",
    envvar="BOOKSTORE_URL",
    show_envvar=True,  # where other users of the machine do not see the password
    required=True,
    help="The store: redis://, rediss:// or unix://.",
)
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=5080, show_default=True, type=click.IntRange(0, 65535))
@click.option("--durable", is_flag=True, help="Start only on a store that syncs each order.")
@click.option(
    "--timeout",
    default=TIMEOUT,
    show_default=True,
    type=click.FloatRange(0.01, 60),
    help="Seconds that the store has for a connection, and for a reply.",
)
@click.option("--at", help="Let the clock stand at this time: 2026-11-14T12:00:00Z.")
@click.option("--until-stdin-ends", is_flag=True, help="End when standard input does.")
def main(
    url: str,
    host: str,
    port: int,
    durable: bool,
    timeout: float,
    at: str | None,
    until_stdin_ends: bool,
) -> None:
    """Serve the bookstore over HTTP.

    \b
    Example: python -m labkit.bookstore --url redis://127.0.0.1:6379/0 --port 5080
    Cursors live as long as the secret in BOOKSTORE_SECRET, or else as long as this process.

    For clients that are not trusted, put a proxy in front: here, a client may be as slow with its
    headers as it likes, and have any number of connections.
    """
    if until_stdin_ends:
        end_with_owner(os.getppid())
    try:
        clock = _clock(at)
        found = asyncio.run(_examine(open_store(url, timeout=timeout), durable))
        listening = _listen(host, port)
        words = os.environ.get("BOOKSTORE_SECRET")
        client = open_store(url, timeout=timeout)  # another event loop's
        app = create_app(client, clock=clock, secret=words.encode() if words else None)
    except LabError as error:
        click.echo(f"bookstore: {error}", err=True)
        sys.exit(1)
    click.echo(found.sentence)
    shown = f"[{host}]" if ":" in host else host
    click.echo(f"{READY}http://{shown}:{listening.getsockname()[1]}")
    sys.stdout.flush()
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, timeout_graceful_shutdown=_LEFT_OPEN
    )
    with contextlib.suppress(KeyboardInterrupt):  # uvicorn has ended well and passes it on
        uvicorn.Server(config).run(sockets=[listening])


async def _examine(client: Redis, durable: bool) -> Promise:
    try:
        found = await promise(client)
    except (RedisError, OSError) as error:
        place = client.get_connection_kwargs()
        where = place.get("path") or f"{place.get('host') or 'localhost'}:{place.get('port', 6379)}"
        cure = "Is the --url right, with name and password if the server wants them?"
        raise LabError(f"{trouble(error).rstrip('.')}: {where}.", cure) from None
    finally:
        await client.aclose()
    if durable and not found.durable:
        raise LabError(found.sentence, found.cure)
    return found


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # asyncio sets TCP_NODELAY only where the protocol is named; without it, each answer on
        # a connection that is kept waits 40 ms for the client's ACK.
        listening = socket.socket(family, kind, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(1024)
    except (OSError, UnicodeError) as error:  # the latter: a label that no name of a host has
        why = error.strerror if isinstance(error, OSError) else "This is no name of a host"
        what = f"Nothing can be served on {host}:{port}: {why}."
        raise LabError(what, "Name another --host or --port.") from None
    return listening


def _clock(at: str | None) -> Callable[[], int]:
    if at is None:
        return unix_ms
    try:
        when = datetime.fromisoformat(at)
    except ValueError:
        when = None
    if when is None or when.tzinfo is None:
        raise LabError(f"{at!r} is no time.", "Write 2026-11-14T12:00:00Z.")
    if not 1970 < when.year <= 2100:
        raise LabError(f"{at!r} does not lie in the years 1971 to 2100.")
    fixed = int(when.astimezone(UTC).timestamp() * 1000)
    return lambda: fixed


if __name__ == "__main__":
    main()
