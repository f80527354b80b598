"""Owner processes, shared servers and waiting, for the tests of this folder."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from labkit.servers import embedded

GONE_SECONDS = 2.0  # what the issue allows between an owner's end and the server's
NOT_OURS = ("LABKIT_REDIS_URL", "LABKIT_VALKEY_URL", "LABKIT_ALLOW_FOREIGN")


def until(condition: Callable[[], object], seconds: float = 10.0) -> bool:
    """Whether a condition comes true before the deadline."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def environment(**more: str | Path) -> dict[str, str]:
    """This process's variables (conftest.py has removed those that choose a server) and more."""
    return {**os.environ, **{name: str(value) for name, value in more.items()}}


@contextlib.contextmanager
def owner(code: str, **more: str | Path) -> Iterator[subprocess.Popen[str]]:
    """A Python process that runs ``code``; killed at the end, with its own children."""
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", code],
        env=environment(**more),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, 9)
        process.communicate()


def said(process: subprocess.Popen[str]) -> str:
    """The next line of a process; its errors when it ended without one."""
    assert process.stdout is not None
    assert process.stderr is not None
    line = process.stdout.readline()
    assert line, process.stderr.read()
    return line.strip()


def cli(*arguments: str, **more: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the ``labkit`` command."""
    return subprocess.run(
        [sys.executable, "-c", "from labkit.cli import main; main()", *arguments],
        env=environment(**more),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def server_process(server: embedded.Embedded) -> psutil.Process:
    """The server behind a guard."""
    (child,) = psutil.Process(server.guard.pid).children()
    return child


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on, and that is not Redis' own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@contextlib.contextmanager
def shared_server(*options: str, role: str = "redis") -> Iterator[str]:
    """A server that plays the one of a user; gives its URL."""
    port = free_port()
    server = embedded.start(role, "--port", str(port), *options)
    try:
        yield f"redis://127.0.0.1:{port}"
    finally:
        server.stop()
