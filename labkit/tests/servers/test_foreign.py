"""A Redis at 127.0.0.1:6379 that holds somebody's keys is never written to by anything."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
import redis
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from labkit.lessons import ROOT
from labkit.servers import binaries
from labkit.servers.guarded import spawn
from labkit.servers.space import open_client
from labkit.tests.servers.processes import environment, free_port, until

# Loaded by every Python that the commands start, kernels too: writes down who knocks.
WATCH = """
import os, sys
def watch(event, arguments):
    if event == "socket.connect" and isinstance(arguments[1], tuple) and arguments[1][1] == 6379:
        with open(os.environ["KNOCKS"], "a") as file:
            file.write(f"{arguments[1]} {sys.argv}\\n")
sys.addaudithook(watch)
"""


@dataclass
class Theirs:
    """Somebody's server, and what tells whether it was met."""

    url: str
    client: redis.Redis

    def met(self) -> int:
        """How many connections it has ever accepted."""
        return int(self.client.info("stats")["total_connections_received"])

    def contents(self) -> list[object]:
        dumps = [(key, repr(self.client.dump(key))) for key in sorted(self.client.keys())]
        return [self.client.info("keyspace"), dumps]

    def calls(self) -> dict[str, int]:
        stats = self.client.info("commandstats")
        return {name.removeprefix("cmdstat_"): facts["calls"] for name, facts in stats.items()}


def _taken() -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", 6379))
        except OSError:
            return True
    return False


@pytest.fixture(scope="module")
def theirs() -> Iterator[Theirs]:
    """On 6379; where that port is somebody's already, beside it."""
    port = free_port() if _taken() else 6379
    folder = Path(tempfile.mkdtemp(prefix="theirs-"))
    path = folder / "s"
    words = ["--port", str(port), "--unixsocket", str(path), "--save", "", "--dir", str(folder)]
    # By the guard, so that it ends with the tests; not as an embedded server, which labkit knows.
    guard = spawn([str(binaries.ensure("redis")), *words], folder, output=subprocess.DEVNULL)
    assert until(path.exists)
    # Through the socket, so that connections to the port are not the test's own.
    client = open_client(f"unix://{path}", decode_responses=False)
    client.zadd("board", {"somebody": 1})
    client.set("text", "somebody's")
    yield Theirs(f"redis://127.0.0.1:{port}", client)
    assert guard.stdin is not None
    guard.stdin.close()
    guard.wait(timeout=30)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of labkit with one small lesson, which commands may run and rewrite."""
    leave = shutil.ignore_patterns("tests", "__pycache__")
    shutil.copytree(ROOT / "labkit", tmp_path / "labkit", ignore=leave)
    shutil.copytree(ROOT / "data", tmp_path / "data")
    (tmp_path / "notebooks").mkdir()
    parameters = new_code_cell('server = "redis"', metadata={"tags": ["parameters"]})
    sources = [
        "from labkit import connect\nlab = connect(server)\nlab",
        'lab.redis.zadd("board", {"mine": 1})\nlab.valkey.ping()\nlab.redis.flushall()',
        "%%redis\nFLUSHALL\nZADD board 2 mine",
        "%%redis valkey\nFLUSHALL",
        "lab.reset()\nlab.close()",
    ]
    cells = [new_markdown_cell("# Small"), parameters, *map(new_code_cell, sources)]
    metadata = {"kernelspec": {"name": "python3", "display_name": "", "language": "python"}}
    notebook = new_notebook(cells=cells, metadata=metadata)
    nbformat.write(notebook, tmp_path / "notebooks" / "01_small.ipynb")
    (tmp_path / "watch").mkdir()
    (tmp_path / "watch" / "sitecustomize.py").write_text(WATCH)
    return tmp_path


def _run(
    checkout: Path, *arguments: str, code: str = "from labkit.cli import main; main()", **more: str
) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(map(str, (checkout, checkout / "watch")))
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=checkout,
        env=environment(PYTHONPATH=path, KNOCKS=checkout / "knocks", **more),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_the_watch_sees_who_knocks(checkout: Path) -> None:
    code = "import socket; socket.socket().connect_ex(('127.0.0.1', 6379))"
    _run(checkout, code=code)
    assert "6379" in (checkout / "knocks").read_text()


CONNECT = """
from labkit import connect
for server in ("redis", "valkey"):
    lab = connect(server)
    lab.redis.set("mine", 1); lab.valkey.ping(); lab.reset(); lab.redis.flushall(); lab.close()
"""


def test_nothing_meets_a_server_that_nobody_named(theirs: Theirs, checkout: Path) -> None:
    met, contents, calls = theirs.met(), theirs.contents(), theirs.calls()
    small = checkout / "notebooks" / "01_small.ipynb"
    assert _run(checkout, code=CONNECT).returncode == 0
    for command in ("doctor", "servers list", "report --out pages", "refresh"):
        done = _run(checkout, *command.split())
        if command != "doctor":  # which may find fault with this machine's packages
            assert done.returncode == 0, done.stderr
    assert "ZADD board 2 mine" in small.read_text()
    stored = json.loads(small.read_text())["cells"][4]["outputs"][0]["text"]
    assert "".join(stored).startswith("redis> FLUSHALL\nOK")  # the lessons did run
    assert not (checkout / "knocks").exists()
    assert theirs.met() == met
    assert theirs.contents() == contents
    after = theirs.calls()
    assert {name for name in after if after[name] != calls.get(name, 0)} <= {
        *("info", "keys", "dump", "hello")  # the test's own looks
    }


def _failure(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_server_that_was_named_is_looked_at_and_left(theirs: Theirs, checkout: Path) -> None:
    contents = theirs.contents()
    theirs.client.config_resetstat()
    named = {"LABKIT_REDIS_URL": theirs.url, "LABKIT_VALKEY_URL": theirs.url}
    words = "holds keys that are not the lab's (2 of them); nothing was written."
    done = _run(checkout, code=CONNECT, **named)
    assert words in done.stderr
    assert done.returncode == 1
    done = _run(checkout, "doctor", **named)
    assert done.stdout.count(words) == 2
    assert words in _failure(_run(checkout, "refresh", **named))
    assert words in _failure(_run(checkout, "report", "--out", "p", "--server", theirs.url))
    calls = theirs.calls()
    assert theirs.contents() == contents
    assert calls["exists"] > 0  # it was asked
    assert set(calls) <= {
        *("config|resetstat", "hello", "info", "select", "exists", "dbsize", "client|setname"),
        *("config", "keys", "dump"),
    }


def test_a_yes_leaves_their_keys_too(theirs: Theirs, checkout: Path) -> None:
    contents = theirs.contents()
    code = CONNECT.replace("lab.redis.flushall(); ", "")
    done = _run(checkout, code=code, LABKIT_REDIS_URL=theirs.url, LABKIT_ALLOW_FOREIGN="1")
    assert done.returncode == 0, done.stderr
    assert theirs.calls()["set"] > 0
    assert theirs.contents() == contents
