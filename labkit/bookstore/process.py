"""The service in a process of its own, gone with its owner."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import IO

from labkit.errors import LabError

START_SECONDS = 20.0
END_SECONDS = 13.0  # what runs in the service has 11
READY = "Serving on "


@dataclass(frozen=True)
class Service:
    """A service that runs.

    Attributes:
        url: ``http://127.0.0.1:PORT``.
        process: where it runs.
    """

    url: str
    process: subprocess.Popen[str]

    def kill(self) -> None:
        """End it as a crash would: at once, whatever it is doing."""
        self.process.kill()
        self.process.wait(END_SECONDS)


def start(url: str, *options: str, environment: Mapping[str, str] | None = None) -> Service:
    """Start ``python -m labkit.bookstore`` on a free port of 127.0.0.1; see `serving`."""
    command = [sys.executable, "-m", "labkit.bookstore", "--port", "0"]
    process = subprocess.Popen(
        [*command, *options, "--until-stdin-ends"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # Not by --url: everyone on the machine can read the command line, password included.
        env={**os.environ, "BOOKSTORE_URL": url, **(environment or {})},
        start_new_session=True,  # an interrupt of a notebook's kernel is not one of the service
    )
    assert process.stdout is not None
    words = []
    alarm = threading.Timer(START_SECONDS, process.kill)
    alarm.start()
    try:
        for line in process.stdout:
            if line.startswith(READY):
                threading.Thread(target=_drain, args=[process.stdout], daemon=True).start()
                return Service(line.removeprefix(READY).split()[0], process)
            words.append(line.strip())
    except BaseException:  # an interrupt of the cell too: nobody would know of the service
        process.kill()
        process.wait()
        raise
    finally:
        alarm.cancel()
    stop(process)
    process.stdout.close()
    raise LabError(f"The bookstore did not start: {' '.join(words)[-400:] or 'it said nothing'}")


def _drain(words: IO[str]) -> None:
    """Read its later words (warnings), so that it never waits for a reader."""
    with words:
        for _ in words:
            pass


def stop(process: subprocess.Popen[str]) -> None:
    """End a service in good order; nothing happens when it has ended already."""
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextlib.contextmanager
def serving(url: str, *options: str, secret: str | None = None) -> Iterator[Service]:
    """A service on this store while the block runs.

    It ends with the block, and within a second of its owner, kill -9 included.

    Args:
        url: of the store.
        options: of ``python -m labkit.bookstore``, such as ``"--at", "2026-11-14T12:00:00Z"``.
        secret: what its cursors are signed with, for services that share them.

    Raises:
        LabError: it does not start; with its own words.
    """
    service = start(url, *options, environment={"BOOKSTORE_SECRET": secret} if secret else None)
    try:
        yield service
    finally:
        stop(service.process)


def end_with_owner(owner: int) -> None:
    """In the service: end well when standard input ends, and at once when the owner is gone.

    The pipe closes however the owner ends; a forked child that holds it too is caught by the
    parent's number.
    """

    def read() -> None:
        if sys.stdin is not None:  # else it was closed from the start: 0 may be anything now
            with contextlib.suppress(OSError):
                while os.read(0, 1):
                    pass
        os.kill(os.getpid(), signal.SIGTERM)

    def watch() -> None:
        while os.getppid() == owner:  # for ever on Windows, where the number stays
            time.sleep(0.2)
        os._exit(1)

    for work in (read, watch):
        threading.Thread(target=work, daemon=True).start()
