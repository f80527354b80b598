"""What was answered is counted once, whatever fails on the way.

A real server that syncs its append-only file, a proxy that fails in five ways, and the service in
a process of its own. Server and service are stopped, killed and started again while clients send
orders, each with its key until it is answered. Then every order is looked for. What a kill does not
test is the disk: the kernel keeps what the server has written, whether it was synced or not.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import itertools
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis.asyncio
from redis.exceptions import RedisError

from labkit.bookstore import process
from labkit.bookstore.load import ISBNS
from labkit.bookstore.scripts import RECORD
from labkit.errors import LabError
from labkit.servers import embedded
from labkit.servers.space import open_client
from labkit.tests.bookstore.proxy import Proxy
from labkit.tests.servers.processes import server_process

ORDERS, CLIENTS = 320, 12
SALES, WEEK = "{bookstore}:sales:20261114", "{bookstore}:week:20261114"
NOW = "2026-11-14T12:00:00Z"
TIMEOUT = 0.1  # s that the service waits for a reply
PATIENCE = 0.4  # s that a client waits for the service
STARTS = 30  # of a service: on a busy machine TIMEOUT is short
LIMIT = 240  # s for all of it; 15 on a calm machine
HOLD = 0.15  # s that the proxy holds what comes too late
MARKER = hashlib.sha1(RECORD.encode()).hexdigest().encode()  # an order by EVALSHA


@dataclass
class Store:
    """A server on a folder that outlives it."""

    role: str
    folder: Path
    server: embedded.Embedded = field(init=False)

    def start(self) -> Path:
        """Start it on what is there; gives its socket."""
        lasting = ["--appendonly", "yes", "--appendfsync", "always", "--dir", str(self.folder)]
        self.server = embedded.start(self.role, *lasting)
        return self.server.socket

    def signal(self, number: int) -> None:
        server_process(self.server).send_signal(number)

    def restart(self) -> Path:
        """Kill it at once, and start another on its file."""
        self.signal(signal.SIGKILL)
        self.server.guard.wait()
        self.server.stop()
        return self.start()


@pytest.fixture(params=["redis", "valkey"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    with tempfile.TemporaryDirectory(prefix="aof-") as folder:
        made = Store(request.param, Path(folder))
        made.start()
        yield made
        made.server.stop()


@dataclass
class Run:
    """Orders, their answers, and what was done to them."""

    store: Store
    proxy: Proxy
    service: process.Service = field(init=False)
    answers: dict[int, dict[str, Any]] = field(default_factory=dict)
    requests: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    builds: int = 0
    hit: int = 0  # of these faults: those that met an order on its way

    async def start_service(self) -> None:
        url = f"redis://127.0.0.1:{self.proxy.port}"
        options = ("--at", NOW, "--timeout", str(TIMEOUT), "--durable")
        for left in reversed(range(STARTS)):
            try:
                self.service = await asyncio.to_thread(process.start, url, *options)
                return
            except LabError:
                if not left:
                    raise

    async def client(self, http: httpx.AsyncClient, numbers: Iterator[int]) -> None:
        """Send orders, each until it is answered."""
        for number in numbers:
            while number not in self.answers:
                self.requests += 1
                try:
                    answer = await http.post(
                        f"{self.service.url}/orders",
                        json=order(number),
                        headers={"Idempotency-Key": f"order-{number}"},
                    )
                except httpx.TransportError:  # the service is away, or slower than we wait
                    await asyncio.sleep(0.1)
                    continue
                if answer.status_code == 200:
                    self.answers[number] = answer.json()
                else:
                    assert answer.status_code == 503, answer.text
                    await asyncio.sleep(0.02)

    async def reader(self, http: httpx.AsyncClient) -> None:
        """Have the week's snapshot built again and again."""
        while True:
            with contextlib.suppress(httpx.TransportError):
                answer = await http.get(f"{self.service.url}/bestsellers/week")
                assert answer.status_code in (200, 503), answer.text
                self.builds += answer.status_code == 200
            with contextlib.suppress(RedisError, OSError):
                async with redis.asyncio.Redis(unix_socket_path=str(self.proxy.target)) as client:
                    await client.unlink(WEEK)
            await asyncio.sleep(0.05)

    async def trouble(self) -> None:
        """Stop and kill the server, and kill the service, one after the other, to the end."""
        acts = [self.stall, self.kill_stopped, self.stall, self.kill] * 2 + [self.kill_service]
        for act in itertools.cycle(acts):
            await asyncio.sleep(0.1)
            if len(self.answers) == ORDERS:
                return
            await act()

    async def stall(self) -> None:
        self.store.signal(signal.SIGSTOP)
        await asyncio.sleep(HOLD)
        self.note("server stopped and continued", self.proxy.in_flight)
        self.store.signal(signal.SIGCONT)

    async def kill_stopped(self) -> None:
        """Killed with commands that it has not read."""
        self.store.signal(signal.SIGSTOP)
        await asyncio.sleep(TIMEOUT / 2)
        await self.kill()

    async def kill(self) -> None:
        self.note("server killed", self.proxy.in_flight)
        self.proxy.target = await asyncio.to_thread(self.store.restart)

    async def kill_service(self) -> None:
        self.note("service killed", self.proxy.in_flight)
        await asyncio.to_thread(self.service.kill)
        await self.start_service()

    def note(self, fault: str, in_flight: int) -> None:
        self.faults[fault] += 1
        self.hit += in_flight > 0


def order(number: int) -> dict[str, Any]:
    """A customer of its own for each, so that each is found again."""
    return {"customerId": number, "isbn": ISBNS[number % 5], "quantity": number % 4 + 1}


async def under_fire(store: Store) -> Run:
    async with Proxy(store.server.socket, MARKER, share=0.45, hold=HOLD) as proxy:
        run = Run(store, proxy)
        await run.start_service()
        numbers = iter(range(1, ORDERS + 1))
        try:
            async with (
                asyncio.timeout(LIMIT),
                httpx.AsyncClient(timeout=PATIENCE) as http,
                asyncio.TaskGroup() as reading,
            ):
                reader = reading.create_task(run.reader(http))
                async with asyncio.TaskGroup() as work:  # the first to fail ends all of them
                    work.create_task(run.trouble())
                    for _ in range(CLIENTS):
                        work.create_task(run.client(http, numbers))
                reader.cancel()
        finally:
            process.stop(run.service.process)
        await asyncio.sleep(2 * HOLD)  # what is late arrives
    run.hit += proxy.done.total()
    run.faults += proxy.done
    return run


class Broken(Exception):
    """What fails in the test below."""


def test_trouble_that_fails_ends_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def stall(_: Run) -> None:
        raise Broken

    monkeypatch.setattr(Run, "stall", stall)
    made = Store("redis", tmp_path)
    made.start()
    try:
        with pytest.raises(ExceptionGroup) as seen:
            asyncio.run(under_fire(made))
        assert seen.group_contains(Broken)
    finally:
        made.server.stop()


def counted(run: Run) -> tuple[int, int]:
    """How many answered orders are lost, and how many are counted more than once."""
    with open_client(run.store.server.url) as client:
        points = dict(client.zrange("{bookstore}:players", 0, -1, withscores=True))
        sold = dict(client.zrange(SALES, 0, -1, withscores=True))
        recent = client.zrange("{bookstore}:recent", 0, -1)
        number = int(client.get("{bookstore}:orders"))
        keys = {key for key in client.scan_iter(count=1000) if ":order:" not in key}
    wanted: Counter[str] = Counter()
    for one in run.answers:
        wanted[order(one)["isbn"]] += order(one)["quantity"]
    ids = {str(answer["orderId"]) for answer in run.answers.values()}
    due = {str(one): 10 * order(one)["quantity"] for one in run.answers}
    lost = sum(points.get(customer, 0) < held for customer, held in due.items())
    twice = sum(points.get(customer, 0) > held for customer, held in due.items())
    places = {f"{{bookstore}}:{name}" for name in ("recent", "players", "orders")}
    assert places <= keys <= {*places, SALES, WEEK, f"{WEEK}:name"}  # nothing temporary
    if not lost and not twice:
        assert points == due
        assert sold == wanted
        assert sorted(ids, key=int) == sorted(recent, key=int) == [*map(str, range(1, number + 1))]
        assert len(ids) == ORDERS
    return lost, twice


async def naive(store: Store, sales: int) -> tuple[int, int]:
    """The same proxy before ZINCRBY with redis-py as it comes: faults, sales counted twice."""
    async with Proxy(store.server.socket, b"ZINCRBY", share=0.45, hold=HOLD) as proxy:
        client = redis.asyncio.Redis(port=proxy.port, socket_timeout=TIMEOUT)  # 10 retries

        async def sell(number: int) -> None:
            with contextlib.suppress(RedisError):
                await client.zincrby("naive", 1, f"sale-{number}")

        for start in range(0, sales, CLIENTS):
            await asyncio.gather(*map(sell, range(start, min(start + CLIENTS, sales))))
        await client.aclose()
        await asyncio.sleep(2 * HOLD)
    with open_client(store.server.url) as plain:
        scores = [score for _, score in plain.zrange("naive", 0, -1, withscores=True)]
    return proxy.done.total(), sum(score > 1 for score in scores)


def test_no_order_is_lost_or_counted_twice(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    run = asyncio.run(under_fire(store))
    lost, twice = counted(run)
    faults, wrong = asyncio.run(naive(store, 60))
    injected = run.faults.total()
    kinds = ", ".join(f"{name} {times}" for name, times in sorted(run.faults.items()))
    with capsys.disabled():
        print(
            f"\n{store.role}: {injected} faults ({kinds}), of which {run.hit} met an order on its "
            f"way; {len(run.answers)} orders answered in {run.requests} requests: {lost} lost, "
            f"{twice} counted twice. ZINCRBY alone: {faults} faults, {wrong} of 60 sales counted "
            "twice."
        )
    assert (lost, twice) == (0, 0)
    assert injected >= 200
    assert run.hit >= 200
    assert run.builds > 0
    assert set(run.faults) >= {"server killed", "service killed", "server stopped and continued"}
    assert wrong > 0
