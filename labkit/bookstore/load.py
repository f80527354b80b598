"""Clients that ask all the time, over HTTP or by redis-py alone, and how long they wait."""

from __future__ import annotations

import asyncio
import random
import re
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from math import nan
from time import perf_counter
from typing import TypeVar
from urllib.parse import urlsplit

from redis.asyncio import ConnectionPool, Redis

from labkit.bookstore.commands import Commands
from labkit.bookstore.shop import POINTS, unix_ms, utc_day
from labkit.errors import LabError

# Of ten requests; a rank is that of the customer who ordered last.
MIX = ("order",) * 4 + ("today",) * 2 + ("week",) * 2 + ("recent", "rank")
SIZE = 10  # rows of a page
BOOKS = 1_000
CUSTOMERS = 1_000
PATIENCE = 30.0  # s for the last answers
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
Result = TypeVar("Result")


@dataclass
class Load:
    """What clients have seen.

    Attributes:
        seconds: from the first request to the last answer.
        statuses: HTTP status -> answers; 0 for a connection that broke or stayed silent. By
            redis-py alone: 200.
        latencies: kind of request -> seconds of each, in the order of the answers.
    """

    seconds: float = 0.0
    statuses: Counter[int] = field(default_factory=Counter)
    latencies: dict[str, list[float]] = field(default_factory=lambda: {kind: [] for kind in MIX})

    @property
    def rate(self) -> float:
        """Answers a second."""
        return self.statuses.total() / self.seconds if self.seconds else 0.0

    @property
    def errors(self) -> int:
        """Answers that are no success."""
        return sum(number for status, number in self.statuses.items() if status != 200)

    def note(self, kind: str, status: int, seconds: float) -> None:
        """Count an answer."""
        self.statuses[status] += 1
        self.latencies[kind].append(seconds)

    def quantile(self, q: float) -> float:
        """Seconds within which a share ``q`` of all answers came; NaN if none came."""
        waits = sorted(wait for kind in self.latencies.values() for wait in kind) or [nan]
        return waits[min(len(waits) - 1, int(q * len(waits)))]


@dataclass(frozen=True)
class Wish:
    """One request: its kind, and the order or the customer that it is about."""

    kind: str
    key: str
    isbn: str
    copies: int
    customer: int


def wishes(seed: int, client: int) -> Iterator[Wish]:
    """What a client asks, without end: the same for the same numbers, but for the keys."""
    choose, run = random.Random(f"{seed} {client}"), secrets.token_hex(4)
    kind, customer, number = "order", 0, 0
    while True:
        if kind == "order":
            customer, number = choose.randrange(CUSTOMERS) + 1, number + 1
        isbn = ISBNS[min(int(choose.expovariate(8 / BOOKS)), BOOKS - 1)]
        yield Wish(kind, f"{run}-{client}-{number}", isbn, choose.randint(1, 3), customer)
        kind = choose.choice(MIX)


def drive(url: str, *, clients: int = 64, seconds: float = 30.0, seed: int = 1) -> Load:
    """Ask a service for some seconds: each client has a connection, and asks when it is answered.

    Args:
        url: of the service: ``http://127.0.0.1:PORT``.
        clients: connections at a time.
        seconds: for which new requests are made.
        seed: what is asked.

    Raises:
        LabError: nothing answers there.
    """
    return _apart(lambda: _drive(url, clients, seconds, seed))


def alone(url: str, *, clients: int = 64, seconds: float = 30.0, seed: int = 1) -> Load:
    """The same commands by redis-py's asyncio client, without the service: one task a client.

    Args:
        url: of the store.
        clients, seconds, seed: as for `drive`.

    Raises:
        RedisError: a command fails.
    """
    return _apart(lambda: _alone(url, clients, seconds, seed))


def _apart(work: Callable[[], Awaitable[Result]]) -> Result:
    """In a thread, since a notebook has an event loop that runs already."""

    async def run() -> Result:
        return await work()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(run())).result()


async def _drive(url: str, clients: int, seconds: float, seed: int) -> Load:
    load, address = Load(), urlsplit(url)
    connect = asyncio.get_running_loop().create_connection
    links = [_Link(wishes(seed, number), load) for number in range(clients)]
    try:
        for link in links:
            await connect(partial(_same, link), address.hostname or "", address.port or 80)
    except OSError:
        raise LabError(f"No service answers at {url}.") from None
    begun = perf_counter()
    for link in links:
        link.start(begun + seconds)
    await asyncio.wait([link.ended for link in links], timeout=seconds + PATIENCE)
    for link in links:
        link.transport.abort()  # one that waits still has had no answer
    await asyncio.gather(*(link.ended for link in links))
    load.seconds = perf_counter() - begun
    return load


def _same(link: _Link) -> _Link:
    return link


class _Link(asyncio.Protocol):
    """A connection that is kept: one request at a time."""

    transport: asyncio.Transport

    def __init__(self, asked: Iterator[Wish], load: Load) -> None:
        self.asked, self.load = asked, load
        self.kind, self.begun, self.until, self.answer = "", 0.0, 0.0, b""
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def start(self, until: float) -> None:
        self.until = until
        self._ask()

    def _ask(self) -> None:
        wish = next(self.asked)
        self.kind, self.answer = wish.kind, b""
        self.begun = perf_counter()
        self.transport.write(_request(wish))

    def data_received(self, data: bytes) -> None:
        self.answer += data
        head, end, body = self.answer.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not end or (length and len(body) < int(length[1])):
            return
        now = perf_counter()
        self.load.note(self.kind, int(head[9:12]), now - self.begun)
        if now < self.until:
            self._ask()
        else:
            self.kind = ""
            self.transport.close()

    def connection_lost(self, _: Exception | None) -> None:
        if self.kind:
            self.load.note(self.kind, 0, perf_counter() - self.begun)
        if not self.ended.done():
            self.ended.set_result(None)


def _request(wish: Wish) -> bytes:
    if wish.kind != "order":
        path = {
            "today": f"/bestsellers/today?pageSize={SIZE}",
            "week": f"/bestsellers/week?pageSize={SIZE}",
            "recent": "/orders/recent?minutes=5",
            "rank": f"/players/{wish.customer}/rank",
        }[wish.kind]
        return f"GET {path} HTTP/1.1\r\nHost: bookstore\r\n\r\n".encode()
    body = f'{{"customerId":{wish.customer},"isbn":"{wish.isbn}","quantity":{wish.copies}}}'
    return (
        f"POST /orders HTTP/1.1\r\nHost: bookstore\r\nContent-Type: application/json\r\n"
        f"Idempotency-Key: {wish.key}\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    ).encode()


async def _alone(url: str, clients: int, seconds: float, seed: int) -> Load:
    pool = ConnectionPool.from_url(url, max_connections=clients, decode_responses=True)
    load, store = Load(), Redis.from_pool(pool)
    commands = Commands(store)
    await asyncio.gather(*(store.ping() for _ in range(clients)))  # connections, as HTTP has them
    begun = perf_counter()

    async def client(number: int) -> None:
        for wish in wishes(seed, number):
            before = perf_counter()
            await _command(commands, wish)
            now = perf_counter()
            load.note(wish.kind, 200, now - before)
            if now >= begun + seconds:
                return

    await asyncio.gather(*map(client, range(clients)))
    load.seconds = perf_counter() - begun
    await store.aclose()
    return load


async def _command(commands: Commands, wish: Wish) -> object:
    now = unix_ms()
    day = utc_day(now)
    if wish.kind == "order":
        sale = wish.isbn, wish.copies, wish.customer, wish.copies * POINTS
        return await commands.record(wish.key, "0" * 32, "0" * 16, now, day, sale)
    if wish.kind == "today":
        return await commands.today(day, SIZE + 1, 0)
    if wish.kind == "week":
        return await commands.week(day, "0" * 16, "", 0, SIZE)
    if wish.kind == "recent":
        return await commands.recent(now - 300_000, now)
    return await commands.rank(wish.customer)


def _isbn(number: int) -> str:
    """The ISBN-13 of a number up to 999,999,999; see `checked_isbn`."""
    front = f"978{number:09d}"
    return front + str(-sum(int(digit) * (1, 3)[n % 2] for n, digit in enumerate(front)) % 10)


ISBNS = [_isbn(number) for number in range(BOOKS)]
