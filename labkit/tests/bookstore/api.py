"""The service inside the test's own process, with a clock that the test sets."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import httpx

from labkit.bookstore.app import create_app
from labkit.bookstore.store import open_store
from labkit.servers.space import open_client

Result = TypeVar("Result")
DAY = 86_400_000  # ms
NOON = 1_794_657_600_000  # 2026-11-14T12:00:00Z
DUNE, ORWELL, AUSTEN, TOLKIEN = "9780441013593", "9780451524935", "9780141439518", "9780547928227"


class Api:
    """Requests to an app of its own, from this thread or from many at once.

    An error that the app does not turn into an answer comes up in the test.
    """

    def __init__(self, url: str, **options: Any) -> None:
        self.now = NOON
        self.url = url
        self.client: Any = open_client(url)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._keys = itertools.count()
        self._run(self._open(options))

    async def _open(self, options: dict[str, Any]) -> None:
        ours = {name: options.pop(name) for name in ("deadline", "secret") if name in options}
        self._store = open_store(self.url, **options)
        app = create_app(self._store, clock=lambda: self.now, **ours)
        transport = httpx.ASGITransport(app)
        self._http = httpx.AsyncClient(transport=transport, base_url="http://shop", timeout=60)

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        """End its loop, thread and connections."""

        async def end() -> None:
            await self._http.aclose()
            await self._store.aclose()

        self._run(end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self.client.close()

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        """One request."""
        return self._run(self._http.request(method, path, **more))

    def get(self, path: str, **parameters: Any) -> Any:
        """The JSON of a page that must be there."""
        answer = self.ask("GET", path, params=parameters)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def order(
        self, isbn: str = DUNE, copies: int = 1, customer: int = 7, key: str | None = None
    ) -> httpx.Response:
        """An order, under a key of its own unless it is named."""
        body = {"customerId": customer, "isbn": isbn, "quantity": copies}
        key = f"k-{next(self._keys)}" if key is None else key
        return self.ask("POST", "/orders", json=body, headers={"Idempotency-Key": key})

    def together(self, times: int, method: str, path: str, **more: Any) -> list[httpx.Response]:
        """The same request so many times at once."""

        async def all_of_them() -> list[httpx.Response]:
            work = (self._http.request(method, path, **more) for _ in range(times))
            return await asyncio.gather(*work)

        return self._run(all_of_them())

    def walk(self, path: str, size: int) -> list[dict[str, Any]]:
        """All rows, cursor by cursor."""
        page = self.get(path, pageSize=size)
        rows: list[dict[str, Any]] = page["items"]
        while page["nextCursor"]:
            page = self.get(path, pageSize=size, cursor=page["nextCursor"])
            rows += page["items"]
        return rows

    @contextmanager
    def held(self) -> Iterator[None]:
        """One of its connections is in use while the block runs."""
        pool = self._store.connection_pool
        connection = self._run(pool.get_connection())
        yield
        self._run(pool.release(connection))

    def content(self) -> dict[str, Any]:
        """Every key with what it holds."""
        found: dict[str, Any] = {}
        for name in self.client.scan_iter():
            kind = self.client.type(name)
            if kind == "zset":
                found[name] = self.client.zrange(name, 0, -1, withscores=True)
            else:
                found[name] = self.client.get(name)
        return found


@contextmanager
def api(url: str, **options: Any) -> Iterator[Api]:
    """An app while the block runs."""
    made = Api(url, **options)
    try:
        yield made
    finally:
        made.close()
