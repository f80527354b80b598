"""Between a client and a server: passes everything on, and fails when its plan says so."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from pathlib import Path
from types import TracebackType

# What happens to a command, and what the client sees:
FAULTS = {
    "cut before": "the connection ends before the server has the command",
    "cut after": "the server has done it; the connection ends instead of the reply",
    "cut within": "the connection ends within the reply",
    "reply late": "the reply comes when the client has given up",
    "command late": "the command comes when the client has given up, and has perhaps sent another",
}
BEFORE = ("cut before", "command late")  # the others are about the reply


class Proxy:
    """A TCP port of 127.0.0.1 in front of a server's Unix socket.

    Attributes:
        target: the server's socket; may change, as a new server has another one.
        marker: what the commands that may fail have in them.
        done: fault -> how often.
        in_flight: commands with the marker that the server has got and not answered.
    """

    def __init__(self, target: Path, marker: bytes, *, share: float, hold: float) -> None:
        self.target, self.marker = target, marker
        self.done: Counter[str] = Counter()
        self.in_flight = 0
        self._share, self.hold = share, hold
        self._choose = random.Random(1)
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Proxy:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            above, up = await asyncio.open_unix_connection(str(self.target))
        except OSError:  # no server at the moment
            writer.close()
            return
        link = _Link(self, writer, up)
        ways = [asyncio.create_task(link.ask(reader)), asyncio.create_task(link.answer(above))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            link.settle()
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            for end in (writer, up):
                end.close()

    def plan(self) -> str:
        """The fate of the next command: a fault, or nothing."""
        if self._choose.random() >= self._share:
            return ""
        return self._choose.choice(list(FAULTS))


class _Link:
    """One connection, with at most one command at a time."""

    def __init__(self, proxy: Proxy, down: asyncio.StreamWriter, up: asyncio.StreamWriter) -> None:
        self.proxy, self.down, self.up = proxy, down, up
        self.fate, self.waits = "", False

    def settle(self) -> None:
        """The command that was on its way is so no more."""
        self.proxy.in_flight -= self.waits
        self.waits = False

    async def ask(self, reader: asyncio.StreamReader) -> None:
        """From the client to the server; returns when the connection is to end."""
        with contextlib.suppress(OSError):
            while part := await reader.read(65_536):
                if self.proxy.marker in part:
                    self.fate = self.proxy.plan()
                    if self.fate in BEFORE:
                        self.proxy.done[self.fate] += 1
                    if self.fate == "cut before":
                        return
                    if self.fate == "command late":
                        await asyncio.sleep(self.proxy.hold)
                    self.waits = True
                    self.proxy.in_flight += 1
                self.up.write(part)
                await self.up.drain()

    async def answer(self, reader: asyncio.StreamReader) -> None:
        """From the server to the client; returns when the connection is to end."""
        with contextlib.suppress(OSError):
            while part := await reader.read(65_536):
                self.settle()
                if self.fate not in BEFORE:
                    if part.startswith(b"-NOSCRIPT"):  # no order was on its way
                        self.fate = ""
                    self.proxy.done[self.fate] += bool(self.fate)
                if self.fate == "cut within":
                    self.down.write(part[: len(part) // 2])
                    await self.down.drain()
                if self.fate == "reply late":
                    await asyncio.sleep(self.proxy.hold)
                    self.down.write(part)
                if self.fate:
                    return
                self.down.write(part)
                await self.down.drain()
