"""A private server: what it lets out, and that it ends with its owner in every way."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from labkit.cli import main
from labkit.errors import LabError
from labkit.servers import embedded
from labkit.servers.binaries import cache
from labkit.servers.space import open_client
from labkit.tests.servers.processes import (
    GONE_SECONDS,
    environment,
    owner,
    said,
    server_process,
    until,
)

START = """
import os, sys, signal, threading
from labkit import connect
from labkit.servers import embedded
server = embedded.start("valkey")
print(server.socket, server.guard.pid, flush=True)
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A temporary folder with a short path; pytest's own is too long for a socket."""
    with tempfile.TemporaryDirectory(prefix="t-") as name:
        yield Path(name)


@pytest.fixture(params=["redis", "valkey"])
def server(request: pytest.FixtureRequest) -> Iterator[embedded.Embedded]:
    started = embedded.start(request.param)
    yield started
    started.stop()


def _gone(folder: Path, *processes: psutil.Process) -> bool:
    return until(lambda: not folder.exists() and all(map(_dead, processes)), GONE_SECONDS)


def _dead(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)  # nobody has asked how it ended
    except psutil.NoSuchProcess:
        return True


def _family(line: str) -> tuple[Path, psutil.Process, psutil.Process]:
    """Folder, guard and server of an owner that has printed where they are."""
    path, guard = line.rsplit(" ", 1)
    process = psutil.Process(int(guard))
    return Path(path).parent, process, process.children()[0]


def test_answers_after_start(server: embedded.Embedded) -> None:
    with open_client(f"unix://{server.socket}") as client:
        assert client.ping()
        assert client.info()["redis_version"]


def test_only_its_user_can_reach_it(server: embedded.Embedded) -> None:
    assert stat.S_IMODE(server.socket.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(server.socket.stat().st_mode) == 0o700
    kinds = {c.status for c in server_process(server).net_connections("inet")}
    assert kinds == set()


def test_writes_nothing_to_disk(server: embedded.Embedded) -> None:
    with open_client(f"unix://{server.socket}") as client:
        client.zadd("board", {f"m{i}": i for i in range(20_000)})
        client.save()  # asked for: the one way to get a file
        assert sorted(p.name for p in server.socket.parent.iterdir()) == ["dump.rdb", "s"]
        (server.socket.parent / "dump.rdb").unlink()
        client.zadd("board", {f"n{i}": i for i in range(20_000)})
        assert [p.name for p in server.socket.parent.iterdir()] == ["s"]
        settings = client.config_get("save", "appendonly")
    assert settings == {"save": "", "appendonly": "no"}
    opened = {Path(file.path) for file in server_process(server).open_files()}
    assert not [p for p in opened if p.exists()]


def test_stop_leaves_nothing_and_may_be_repeated(server: embedded.Embedded) -> None:
    process = server_process(server)
    server.stop()
    assert _dead(process)
    assert not server.socket.parent.exists()
    server.stop()


def test_stop_after_a_shutdown_leaves_nothing(server: embedded.Embedded) -> None:
    with open_client(f"unix://{server.socket}") as client:
        client.shutdown(nosave=True)
    server.stop()
    assert not server.socket.parent.exists()


def test_options_win() -> None:
    server = embedded.start("redis", "--maxmemory", "7mb", "--appendonly", "yes")
    with open_client(f"unix://{server.socket}") as client:
        assert client.config_get("maxmemory", "appendonly") == {
            "maxmemory": str(7 * 2**20),
            "appendonly": "yes",
        }
    server.stop()
    assert not server.socket.parent.exists()


def test_a_wrong_option_gives_the_servers_own_words() -> None:
    before = _folders()
    with pytest.raises(LabError, match=r"did not start; its last words: .*no-such-option"):
        embedded.start("redis", "--no-such-option", "1")
    assert _folders() == before


def _folders() -> set[Path]:
    return {folder for _, owner, folder in embedded._folders() if owner == os.getpid()}


def test_an_interrupted_start_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = _folders()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(embedded, "_wait_for_ping", interrupt)
    with pytest.raises(KeyboardInterrupt):
        embedded.start("redis")
    assert _folders() == before


def test_ten_owners_each_have_their_own() -> None:
    code = """
import sys
import tempfile
from labkit import connect
lab = connect("redis")
lab.redis.set("mine", sys.stdin.readline().strip())
print("set"); sys.stdin.readline()
print(lab.redis.get("mine"), lab.redis.dbsize())
"""
    with contextlib.ExitStack() as stack:
        owners = [stack.enter_context(owner(code)) for _ in range(10)]
        for number, process in enumerate(owners):
            print(number, file=process.stdin, flush=True)
        assert [said(process) for process in owners] == ["set"] * 10
        assert len({o for _, o, _ in embedded.running()} & {p.pid for p in owners}) == 10
        for process in owners:
            print("", file=process.stdin, flush=True)
        assert [said(process) for process in owners] == [f"{n} 1" for n in range(10)]


ENDS = {
    "normal end": "",
    "exception": "raise RuntimeError",
    "sys.exit": "sys.exit(3)",
    "os._exit": "os._exit(3)",
    "end while a thread that called sys.exit is gone": (
        "t = threading.Thread(target=sys.exit); t.start(); t.join()"
    ),
    "SIGTERM": "os.kill(os.getpid(), signal.SIGTERM)",
    "SIGKILL": "os.kill(os.getpid(), signal.SIGKILL)",
    "SIGHUP": "os.kill(os.getpid(), signal.SIGHUP)",
    "abort": "os.abort()",
    "exec of another program": "os.execv('/bin/true', ['/bin/true'])",
}


@pytest.mark.parametrize("way", ENDS)
def test_ends_with_its_owner(way: str) -> None:
    code = f"{START}\nsys.stdin.readline()\n{ENDS[way]}"
    with owner(code) as process:
        family = _family(said(process))
        print("", file=process.stdin, flush=True)
        process.wait(timeout=30)
        assert _gone(*family)


def test_ends_with_an_owner_whose_forked_child_holds_the_pipe() -> None:
    code = f"""{START}
if os.fork() == 0:
    signal.pause()
print(sys.stdin.readline())
"""
    with owner(code) as process:
        family = _family(said(process))
        children = psutil.Process(process.pid).children
        assert until(lambda: len(children()) == 2)  # the owner forks after it has spoken
        (child,) = [p for p in children() if p.pid != family[1].pid]
        process.kill()
        process.wait(timeout=30)
        assert _gone(*family)
        assert child.is_running()
        child.kill()


def test_a_forked_childs_end_is_not_its_parents() -> None:
    code = """
import os, sys
from labkit import connect
lab = connect("redis")
lab.redis.set("kept", "1")
if os.fork() == 0:
    sys.exit()  # runs the exit handlers
os.wait()
print(lab.redis.get("kept"))
"""
    with owner(code) as process:
        assert said(process) == "1"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_lives_through_a_signal_to_the_owners_group(number: signal.Signals) -> None:
    code = START.replace("server =", f"signal.signal({int(number)}, signal.SIG_IGN); server =")
    with owner(f"{code}\nsys.stdin.readline()\nprint(embedded._ping(server.socket))") as process:
        family = _family(said(process))
        os.killpg(process.pid, number)  # as Jupyter interrupts a kernel
        print("", file=process.stdin, flush=True)
        assert said(process) == "True"
        process.wait(timeout=30)
        assert _gone(*family)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills a child with its parent")
def test_ends_when_the_guard_is_killed() -> None:
    server = embedded.start("redis")
    process = server_process(server)
    server.guard.kill()
    server.guard.wait()
    assert until(lambda: _dead(process), GONE_SECONDS)
    server.stop()
    assert not server.socket.parent.exists()


def test_what_a_killed_guard_and_owner_leave_goes_at_the_next_start() -> None:
    with owner(f"{START}\nsys.stdin.readline()") as process:
        folder, guard, server = _family(said(process))
        os.kill(process.pid, signal.SIGSTOP)
        guard.kill()
        process.kill()
        process.wait(timeout=30)
        assert until(lambda: _dead(server), GONE_SECONDS)
    assert folder.exists()
    embedded.start("valkey").stop()
    assert not folder.exists()


def test_list_and_stop_of_the_command_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with owner(f"{START}\nsys.stdin.readline()", TMPDIR=folder) as process:
        family = _family(said(process))
        # Only those in this folder: the other servers of this user are not the test's to stop.
        everything = embedded._folders
        monkeypatch.setattr(tempfile, "gettempdir", lambda: str(folder))
        monkeypatch.setattr(
            embedded, "_folders", lambda: [f for f in everything() if f[2].parent == folder]
        )
        listed = CliRunner().invoke(main, ["servers", "list"])
        assert listed.output.splitlines() == [
            f"valkey  owner {process.pid}  {family[0]}",
            "Embedded servers that run: 1.",
        ]
        (folder / "labkit-redis-999999999-left").mkdir()  # of an owner that is gone
        stopped = CliRunner().invoke(main, ["servers", "stop"])
        assert stopped.output == "Embedded servers ended: 1. Folders cleared: 1.\n"
        assert _gone(*family)
        listed = CliRunner().invoke(main, ["servers", "list"])
        assert listed.output == "Embedded servers that run: 0.\n"


WORK = """
from labkit import connect
lab = connect("redis")
lab.valkey.ping()
print(lab.redis.ping(), flush=True)
for start in range(0, 100_000_000, 10_000):
    lab.redis.zadd("board", {f"m{n}": n for n in range(start, start + 10_000)})
    lab.redis.zcard("board")
"""


@pytest.fixture
def kernel(folder: Path) -> Iterator[tuple[BlockingKernelClient, psutil.Process]]:
    """A real Jupyter kernel whose temporary folder is the test's own."""
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(env=environment(TMPDIR=folder))
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    yield client, psutil.Process(manager.provisioner.process.pid)  # type: ignore[union-attr]
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def test_kill_9_of_a_kernel_in_mid_work_leaves_nothing(
    folder: Path, kernel: tuple[BlockingKernelClient, psutil.Process]
) -> None:
    """No server, no socket, no lock, although the kernel is in the middle of a load."""
    client, process = kernel
    client.execute(WORK)
    while client.get_iopub_msg(timeout=60)["msg_type"] != "stream":
        pass
    homes = list(folder.glob("labkit-*"))
    servers = [p for p in process.children(recursive=True) if "server" in p.name()]
    assert len(servers) == len(homes) == 2
    (busy,) = [f for f in homes if "-redis-" in f.name]
    with open_client(f"unix://{busy / 's'}") as look:
        assert until(lambda: look.zcard("board") > 50_000)
    process.kill()
    assert until(lambda: all(map(_dead, servers)), GONE_SECONDS)
    assert until(lambda: not list(folder.glob("labkit-*")), GONE_SECONDS)
    assert not [f for p in psutil.process_iter() for f in _files(p) if f.parent == cache()]


def test_an_interrupt_of_a_kernel_leaves_its_server(
    folder: Path, kernel: tuple[BlockingKernelClient, psutil.Process]
) -> None:
    client, process = kernel
    client.execute(WORK, stop_on_error=False)
    while client.get_iopub_msg(timeout=60)["msg_type"] != "stream":
        pass
    os.killpg(process.pid, signal.SIGINT)
    while (message := client.get_iopub_msg(timeout=60))["msg_type"] != "error":
        pass
    assert message["content"]["ename"] == "KeyboardInterrupt"
    (home,) = folder.glob("labkit-redis-*")
    assert embedded._ping(home / "s")
    reply = client.execute_interactive("assert lab.redis.ping() is True", timeout=60)
    assert reply["content"]["status"] == "ok"


def _files(process: psutil.Process) -> list[Path]:
    try:
        mine = process.uids().real == os.getuid()
        return [Path(file.path) for file in process.open_files()] if mine else []
    except psutil.Error:
        return []


def test_a_rerun_cell_leaks_nothing() -> None:
    code = """
import os, psutil
from labkit import connect
def state():
    me = psutil.Process()
    return len(me.children(recursive=True)), me.num_fds()
for turn in range(6):
    lab = connect("redis"); lab.redis.ping(); lab.valkey.ping()
    if turn == 1: before = state()
print(state() == before, before, state())
"""
    with owner(code) as process:
        assert said(process).startswith("True")


@pytest.mark.parametrize("name", ["with space and ünïcödé ☃", "50%41? #x", "x" * 120])
def test_any_temporary_folder_will_do(folder: Path, name: str) -> None:
    (named := folder / name).mkdir()
    code = f"{START}\nlab = connect('valkey')\nprint(sys.stdin.readline() + str(lab.redis.ping()))"
    with owner(code, TMPDIR=named) as process:
        family = _family(said(process))
        assert len(os.fsencode(family[0] / "s")) < 104  # the limit of macOS
        assert (named in family[0].parents) == (len(name) < 100)
        print("that it answers:", file=process.stdin, flush=True)
        assert said(process) == "that it answers:"
        assert said(process) == "True"
        process.wait(timeout=30)
        assert _gone(*family)


def test_no_temporary_folder_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing can be written, tempfile itself raises."""

    def nowhere() -> str:
        raise FileNotFoundError

    monkeypatch.setattr(tempfile, "gettempdir", nowhere)
    monkeypatch.setattr(tempfile, "mkdtemp", lambda **_: os.mkdir("/no-such/x"))
    with pytest.raises(LabError, match=r"No folder for a server's socket can be made in /tmp"):
        embedded.start("redis")
