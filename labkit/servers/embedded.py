"""A private server process, gone with its owner."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import quote

from labkit.errors import LabError
from labkit.servers import binaries
from labkit.servers.guarded import spawn

START_SECONDS = 10.0
_PREFIX = "labkit-"
_SOCKET_LIMIT = 100  # bytes; the kernel's own limit for a socket's path is 104 (macOS) or 108


@dataclass(frozen=True)
class Embedded:
    """A running private server.

    Attributes:
        role: ``redis`` or ``valkey``.
        socket: the Unix socket, in a folder that only this user can open.
        guard: the process whose end is the server's end.
    """

    role: str
    socket: Path
    guard: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        """The socket as a URL that redis-py reads."""
        return f"unix://{quote(str(self.socket))}"

    def stop(self) -> None:
        """End the server and remove its folder; nothing happens when it has ended already."""
        if self.guard.stdin and not self.guard.stdin.closed:
            self.guard.stdin.close()
        self.guard.wait(timeout=START_SECONDS)
        shutil.rmtree(self.socket.parent, ignore_errors=True)  # after a SHUTDOWN it is still there


def start(role: str, *options: str) -> Embedded:
    """Start a server of this role for the calling process alone.

    It listens on a Unix socket in a 0700 folder and on nothing else, keeps nothing on disk unless
    ``options`` ask for it, and ends within a second of its owner, however that ends.

    Args:
        role: ``redis`` or ``valkey``.
        options: further server options, e.g. ``"--appendonly", "yes"``; the last one wins.

    Raises:
        LabError: no build for this machine, or the server does not start; with the reason.
    """
    if sys.platform == "win32":
        raise LabError(
            "An embedded server needs Linux or macOS.",
            "On Windows, run `docker compose up -d --wait` and try again.",
        )
    program = binaries.ensure(role)
    sweep()
    folder = private_folder(role)
    path = folder / "s"
    command = [str(program), "--port", "0", "--unixsocket", str(path), "--unixsocketperm", "700"]
    command += ["--save", "", "--appendonly", "no", "--dir", str(folder), "--loglevel", "warning"]
    with memory_file() as log:
        try:
            guard = spawn([*command, *options], folder, output=log)
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise LabError(f"The embedded {role} cannot be started: {error.strerror}.") from error
        server = Embedded(role, path, guard)
        try:
            _wait_for_ping(server, log)
        except BaseException:  # an interrupt of the cell too: nobody would know of the server
            server.stop()
            raise
    return server


def running() -> list[tuple[str, int, Path]]:
    """This user's embedded servers that answer: role, process number of the owner, folder."""
    return [(role, owner, folder) for role, owner, folder in _folders() if _ping(folder / "s")]


def sweep() -> int:
    """End embedded servers of this user whose owner is gone, and remove what they left.

    The guard does this by itself; here is for the case that the guard was killed too.

    Returns:
        How many folders were removed.
    """
    stale = [folder for _, owner, folder in _folders() if not alive(owner)]
    if sys.platform == "linux":
        # There the server dies with its guard; one that answers has an owner whom we cannot see
        # (a container that shares this /tmp).
        stale = [folder for folder in stale if not _ping(folder / "s")]
    for folder in stale:
        stop_at(folder)
    return len(stale)


def stop_at(folder: Path) -> None:
    """End the embedded server of a folder that :func:`running` gave, and remove the folder."""
    _ask(folder / "s", b"SHUTDOWN NOSAVE\r\n")
    shutil.rmtree(folder, ignore_errors=True)


def alive(process: int) -> bool:
    """Whether there is a process of this number."""
    import psutil  # because os.kill(process, 0) ends a process on Windows

    return bool(psutil.pid_exists(process))


def private_folder(role: str) -> Path:
    """A new folder for this user's eyes, whose name says its owner, for :func:`sweep`.

    Raises:
        LabError: none can be made; with the reason.
    """
    base = _temporary()
    if len(os.fsencode(base)) > _SOCKET_LIMIT - 40:
        base = "/tmp"
    try:
        return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{role}-{os.getpid()}-", dir=base))
    except OSError as error:
        raise LabError(
            f"No folder for a server's socket can be made in {base}: {error.strerror}.",
            "Free some space there, or point TMPDIR to a folder that you can write to.",
        ) from error


def _temporary() -> str:
    try:
        return tempfile.gettempdir()
    except FileNotFoundError:  # no such folder can be written to, and tempfile names all it tried
        return "/tmp"


def memory_file() -> IO[bytes]:
    """Where the server's few words go: memory where the system has it, so that no disk is used."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("labkit-log"), "w+b")
    return tempfile.TemporaryFile()


def _wait_for_ping(server: Embedded, log: IO[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while server.guard.poll() is None:
        if _ping(server.socket):
            return
        if time.monotonic() > deadline:
            server.stop()
            break
        time.sleep(0.002)
    log.seek(0)
    words = " ".join(log.read()[-600:].decode(errors="replace").split()) or "it said nothing"
    raise LabError(
        f"The embedded {server.role} did not start; its last words: {words}",
        "`labkit servers install --again` fetches a fresh copy.",
    )


def _folders() -> list[tuple[str, int, Path]]:
    found = []
    for base in {_temporary(), "/tmp"} if hasattr(os, "getuid") else ():  # not on Windows
        for folder in Path(base).glob(f"{_PREFIX}*-*-*"):
            role, _, rest = folder.name.removeprefix(_PREFIX).partition("-")
            owner = rest.partition("-")[0]
            with contextlib.suppress(OSError):  # it went away between the two looks
                if owner.isdigit() and folder.stat().st_uid == os.getuid():
                    found.append((role, int(owner), folder))
    return found


def _ping(path: Path) -> bool:
    return _ask(path, b"PING\r\n").startswith(b"+PONG")


def _ask(path: Path, line: bytes) -> bytes:
    """One inline command over the socket; empty when nothing answers there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        link.settimeout(1.0)
        try:
            link.connect(str(path))
            link.sendall(line)
            return link.recv(64)
        except OSError:
            return b""
