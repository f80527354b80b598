"""A private PostgreSQL: what it lets out, and that it ends with its owner."""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import os
import shutil
import signal
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import psycopg
import pytest

from labkit.errors import LabError
from labkit.servers import embedded, postgres
from labkit.tests.servers.processes import GONE_SECONDS, owner, said, until

SEGMENTS = Path("/proc/sysvipc/shm")
BUSY = """
import os, sys, threading
import psycopg
from labkit.servers import postgres
server = postgres.start()
def connect(): return psycopg.connect(host=str(server.socket), user="postgres", autocommit=True)
asking = connect()
work = threading.Thread(target=lambda: connect().execute(
    "CREATE TABLE big AS SELECT n, repeat('x', 100) FROM generate_series(1, 1000000000) n"))
work.daemon = True
work.start()
while not asking.execute(
    "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'CREATE%'").fetchall():
    pass
print(server.guard.pid, server.socket, flush=True)
sys.stdin.readline()
"""


@pytest.fixture(scope="module")
def server() -> Iterator[embedded.Embedded]:
    started = postgres.start("shared_buffers=16MB")
    yield started
    started.stop()


def _ask(server: embedded.Embedded, sql: str) -> Any:
    with psycopg.connect(host=str(server.socket), user="postgres") as link:
        return link.execute(sql).fetchall()


def _family(guard: int) -> list[psutil.Process]:
    process = psutil.Process(guard)
    return [process, *process.children(recursive=True)]


def _dead(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)  # nobody has asked how it ended
    except psutil.NoSuchProcess:
        return True


def _creators() -> set[int]:
    """The processes that made the System V segments of this machine."""
    if not SEGMENTS.exists():
        return set()
    return {int(line.split()[4]) for line in SEGMENTS.read_text().splitlines()[1:]}


def _folders() -> set[Path]:
    return {folder for role, _, folder in embedded._folders() if role == "pg"}


def test_answers_with_its_settings(server: embedded.Embedded) -> None:
    assert _ask(server, "SHOW server_version")[0][0].startswith("18.")
    assert _ask(server, "SHOW shared_buffers") == [("16MB",)]
    assert _ask(server, "SELECT x FROM (VALUES ('a'), ('B'), ('é')) v (x) ORDER BY x") == [
        ("B",),
        ("a",),
        ("é",),
    ]


def test_only_its_user_can_reach_it(server: embedded.Embedded) -> None:
    assert stat.S_IMODE(server.socket.stat().st_mode) == 0o700
    for process in _family(server.guard.pid):
        with contextlib.suppress(psutil.NoSuchProcess):
            assert not process.net_connections("inet")
    assert _ask(server, "SHOW listen_addresses") == [("",)]


@pytest.mark.skipif(not Path("/dev/shm").exists(), reason="no such folder here")
def test_it_keeps_nothing_in_shared_memory_files(server: embedded.Embedded) -> None:
    assert _ask(server, "SHOW dynamic_shared_memory_type") == [("mmap",)]
    seen = set()
    for process in _family(server.guard.pid):
        with contextlib.suppress(psutil.NoSuchProcess):  # a worker that has just ended
            seen |= {file.path for file in process.open_files()}
    assert any("/d/" in path for path in seen)
    assert not [path for path in seen if path.startswith("/dev/shm")]


def test_stop_leaves_nothing_and_may_be_repeated() -> None:
    server = postgres.start()
    family = _family(server.guard.pid)
    assert len(family) > 3
    server.stop()
    assert until(lambda: all(map(_dead, family)), GONE_SECONDS)
    assert not server.socket.parent.exists()
    assert not _creators() & {process.pid for process in family}
    server.stop()


def test_is_gone_when_its_owner_is_killed_in_mid_work() -> None:
    with owner(BUSY) as process:
        guard, socket = said(process).split(" ", 1)
        family = _family(int(guard))
        os.kill(process.pid, signal.SIGKILL)
        process.wait(timeout=30)
        assert until(lambda: all(map(_dead, family)), GONE_SECONDS)
        assert until(lambda: not _creators() & {p.pid for p in family}, GONE_SECONDS)
        embedded.sweep()  # what a statement still wrote while the folder was removed
        assert not Path(socket).parent.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills a child with its parent")
def test_ends_when_the_guard_is_killed() -> None:
    server = postgres.start()
    family = _family(server.guard.pid)
    server.guard.kill()
    server.guard.wait()
    assert until(lambda: all(map(_dead, family)), GONE_SECONDS)
    server.stop()
    assert not server.socket.parent.exists()


def test_a_wrong_setting_gives_the_servers_own_words() -> None:
    before = _folders()
    with pytest.raises(LabError, match=r'did not start.*"no_such_setting"'):
        postgres.start("no_such_setting=1")
    assert _folders() == before


def test_an_interrupted_start_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = _folders()

    def interrupt(*_: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(postgres, "_comes_up", interrupt)
    with pytest.raises(KeyboardInterrupt):
        postgres.start()
    assert _folders() == before


def test_a_full_disk_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    before = _folders()

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(postgres, "spawn", full)
    with pytest.raises(LabError, match=r"did not start.*No space left on device"):
        postgres.start()
    assert _folders() == before


def test_no_build_for_this_system_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda *_: None)
    with pytest.raises(LabError, match="There is no embedded PostgreSQL for this system"):
        postgres.start()


def test_any_temporary_folder_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(prefix="t-") as name:
        odd = Path(name, "with space and 'ünïcödé' ☃")
        odd.mkdir()
        Path(name).chmod(0o711)
        monkeypatch.setattr(tempfile, "gettempdir", lambda: str(odd))
        server = postgres.start()
        assert _ask(server, "SELECT 1") == [(1,)]
        server.stop()
        assert not list(odd.iterdir())


@pytest.mark.skipif(os.getuid() != 0, reason="only root starts it as another user")
@pytest.mark.parametrize(("name", "mode"), [("closed", 0o700), ('a $x "y" `z` \\', 0o755)])
def test_where_nobody_cannot_start_it_the_folder_is_in_tmp(
    name: str, mode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory(prefix="t-") as base:
        Path(base).chmod(0o755)
        odd = Path(base, name)
        odd.mkdir(mode)
        monkeypatch.setattr(tempfile, "gettempdir", lambda: str(odd))
        server = postgres.start()
        assert server.socket.parent.parent == Path("/tmp")
        assert _ask(server, "SELECT 1") == [(1,)]
        server.stop()
        assert not server.socket.parent.exists()
        assert not list(odd.iterdir())


@pytest.mark.skipif(os.getuid() != 0, reason="only root starts it as another user")
def test_nobody_may_run_the_programs_and_not_change_them(server: embedded.Embedded) -> None:
    for path in (server.socket.parent, *server.socket.parent.glob("embedded_postgre*s/**/*")):
        assert (path.stat().st_uid, stat.S_IMODE(path.stat().st_mode)) == (0, 0o755)
    assert server.socket.stat().st_uid != 0


def test_without_setpriv_root_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(LabError, match=r"As root, PostgreSQL needs setpriv \(of util-linux\)"):
        postgres.start()


def test_a_user_without_a_name_is_told_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless(*_: object, **__: object) -> None:
        raise OSError("initdb: error: could not look up effective user ID 4711: no such user")

    monkeypatch.setattr(postgres, "spawn", nameless)
    with pytest.raises(LabError, match=r"ID 4711: no such user Be a user who has a name"):
        postgres.start()


def test_a_memory_segment_that_cannot_be_marked_stops_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = _folders()
    refuses = SimpleNamespace(shmctl=lambda *_: -1)
    monkeypatch.setattr(postgres, "ctypes", SimpleNamespace(CDLL=lambda _: refuses))
    with pytest.raises(LabError, match="did not start"):
        postgres.start()
    assert _folders() == before
