"""One lesson's servers: connect, use, reset, close, and what a student sees when it fails."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis
from click.testing import CliRunner
from jupyter_client.manager import KernelManager

from labkit import connect
from labkit.cli import main
from labkit.errors import LabError
from labkit.lessons import report
from labkit.servers import binaries, embedded, lab
from labkit.servers.features import FEATURES, has
from labkit.servers.lab import Lab, current
from labkit.servers.space import Space, own_space
from labkit.tests.servers.processes import cli, environment, owner, said, shared_server

NOBODY = "redis://:s3cret@localhost:1"  # nothing listens on port 1


@pytest.fixture
def _closed() -> Iterator[None]:
    yield
    lab._close()


@pytest.mark.usefixtures("_closed")
def test_the_clients_are_plain_and_of_one_reply_shape() -> None:
    opened = connect("redis")
    for client in (opened.redis, opened.valkey):
        assert type(client) is redis.Redis
        client.zadd("z", {"a": 1, "b": 2})
        assert client.zrange("z", 0, -1, withscores=True) == [["a", 1.0], ["b", 2.0]]
        assert client.zpopmin("z") == [["a", 1.0]]
        assert client.zrandmember("z", 1, withscores=True) == [["b", 2.0]]
        retry = client.get_retry()
        assert retry is not None
        assert retry.get_retries() == 0
    assert list(opened.servers) == [opened._main.label, opened._other.label]
    assert opened.servers[opened._main.label] is opened.redis
    stats = opened.redis.info("commandstats")
    assert not [name for name in stats if name.startswith("cmdstat_client")]  # no CLIENT SETINFO


@pytest.mark.usefixtures("_closed")
def test_valkey_alone_is_one_server() -> None:
    opened = connect("valkey")
    assert list(opened.servers) == [opened._main.label]
    assert opened._main.label.startswith("Valkey 9.")
    assert opened.valkey is opened.redis
    assert len(opened._repr_mimebundle_()[1]["labkit"]["servers"]) == 1  # type: ignore[index]


@pytest.mark.parametrize("server", ["valkey", "URL"])
def test_a_shared_valkey_is_opened_once(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its one database can have one lab."""
    with shared_server(role="valkey") as url:
        monkeypatch.setenv("LABKIT_VALKEY_URL", f"{url}/3")
        opened = Lab(server.replace("URL", f"{url}/3"))
        assert opened.valkey is opened.redis
        opened.redis.set("k", 1)
        opened.reset()
        data, _ = opened._repr_mimebundle_()
        assert data["text/plain"].count("Valkey") == 1
        opened.close()
        with contextlib.closing(redis.Redis.from_url(url)) as client:
            assert client.info("keyspace") == {}


def test_a_server_that_tells_little_of_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def shy(url: str) -> Space:
        return replace(own_space(url), info={"server_name": "valkey"})

    monkeypatch.setattr(lab, "own_space", shy)
    opened = Lab("valkey")
    assert opened.redis.ping()
    assert (opened._main.label, opened._main.allocator) == ("Valkey unknown", "unknown")
    opened.close()


def test_labkit_is_imported_where_nothing_forks() -> None:
    """As on Windows, whose os has neither of these."""
    code = "import os; del os.fork, os.register_at_fork, os.getuid, os.memfd_create\n"
    code += "import labkit.cli, labkit.servers.doctor, labkit.lessons.report, labkit.bench\n"
    code += "from labkit.servers import embedded\n"
    code += "print(embedded.alive(os.getpid()), embedded.running())"
    with tempfile.TemporaryDirectory(prefix=f"labkit-redis-{os.getpid()}-"), owner(code) as process:
        assert said(process) == "True []"


@pytest.mark.usefixtures("_closed")
def test_the_other_server_starts_when_it_is_asked_for() -> None:
    before = _mine()
    opened = connect("redis")
    assert _mine() - before == 1
    opened.valkey.ping()
    assert _mine() - before == 2
    opened.close()
    assert _mine() == before


def _mine() -> int:
    return sum("server" in p.name() for p in psutil.Process().children(recursive=True))


@pytest.mark.usefixtures("_closed")
def test_connecting_again_closes_the_one_before() -> None:
    first = connect("redis")
    second = connect("redis")
    assert current() is second
    with pytest.raises(redis.ConnectionError):
        first.redis.ping()
    assert second.redis.ping()


@pytest.mark.usefixtures("_closed")
def test_a_failed_connect_leaves_no_lab_and_the_next_one_works() -> None:
    connect("redis")
    with pytest.raises(LabError):
        connect(NOBODY)
    with pytest.raises(LabError, match="No lab is open"):
        current()
    assert connect("redis").redis.ping()


@pytest.mark.usefixtures("_closed")
def test_a_lab_that_cannot_be_closed_does_not_block_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = connect("redis")

    def broken() -> None:
        raise OSError("broken")

    monkeypatch.setattr(first, "close", broken)
    with pytest.raises(OSError, match="broken"):
        connect("redis")
    assert connect("redis").redis.ping()
    monkeypatch.undo()
    first.close()


@pytest.mark.usefixtures("_closed")
def test_reset_empties_both_servers() -> None:
    opened = connect("redis")
    opened.redis.set("k", 1)
    opened.valkey.set("k", 1)
    opened.reset()
    assert opened.redis.dbsize() == opened.valkey.dbsize() == 0


@pytest.mark.usefixtures("_closed")
def test_a_server_that_was_stopped_is_no_obstacle() -> None:
    opened = connect("redis")
    path = Path(opened.redis.connection_pool.connection_kwargs["path"])
    embedded.stop_at(path.parent)
    with pytest.raises(redis.ConnectionError):
        opened.redis.ping()
    assert connect("redis").redis.ping()
    assert not path.parent.exists()


@pytest.mark.usefixtures("_closed")
def test_close_may_be_repeated() -> None:
    opened = connect("redis")
    opened.close()
    opened.close()


def test_features_are_found_by_asking(
    both: dict[str, redis.Redis], capsys: pytest.CaptureFixture[str]
) -> None:
    newest, valkey = both.values()
    assert {name for name in FEATURES if has(newest, name)} == set(FEATURES)
    assert not has(valkey, "aggregate-count")
    assert has(valkey, "zmpop")
    assert newest.dbsize() == valkey.dbsize() == 0  # a probe changes nothing
    opened = Lab("redis")
    assert opened.supports("aggregate-count")
    assert capsys.readouterr().out == ""
    assert not opened.supports("aggregate-count", opened.valkey)
    assert capsys.readouterr().out == (
        f"{opened._other.label} has no AGGREGATE COUNT (Redis 8.8): left out here.\n"
    )
    with pytest.raises(LabError, match="There is no feature 'agregate-count'"):
        opened.supports("agregate-count")
    opened.close()


def test_shown_in_a_notebook_without_machine_paths_or_passwords() -> None:
    with shared_server() as url:
        with contextlib.closing(redis.Redis.from_url(url)) as client:
            client.config_set("requirepass", "s3cret")
        opened = Lab(url.replace("//", "//:s3cret@"))
        data, metadata = opened._repr_mimebundle_()
        assert "s3cret" not in f"{data}{metadata}"
        assert "redis://:***@127.0.0.1" in data["text/plain"]
        facts: Any = metadata["labkit"]
        assert [f["role"] for f in facts["servers"]] == ["redis", "valkey"]
        assert [f["allocator"] for f in facts["servers"]] == ["libc", "libc"]
        assert "/" not in data["text/plain"].splitlines()[1].replace("s (", "")
        opened.close()


def _outputs(code: str, **variables: str) -> list[dict[str, Any]]:
    """What a real kernel shows for a cell."""
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(env=environment(**variables))
    client = manager.blocking_client()
    client.start_channels()
    shown: list[dict[str, Any]] = []
    try:
        client.wait_for_ready(timeout=60)
        client.execute_interactive(code, timeout=60, output_hook=shown.append)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    return [m["content"] for m in shown if m["msg_type"] in ("error", "stream")]


@pytest.mark.parametrize(
    "code", ["lab = connect()", "connect('redis://:s3cret@localhost:1')", "lab = connect('rediss')"]
)
def test_a_kernel_shows_one_sentence_and_no_traceback(code: str) -> None:
    (error,) = _outputs(f"from labkit import connect\n{code}", LABKIT_REDIS_URL=NOBODY)
    assert error["ename"] == "LabError"
    assert error["traceback"] == [f"LabError: {error['evalue']}"]
    assert "s3cret" not in str(error)
    assert "Traceback" not in str(error)
    assert "\n" not in error["evalue"]


def test_doctor_says_it_in_one_sentence() -> None:
    done = cli("doctor", LABKIT_REDIS_URL=NOBODY)
    assert done.returncode == 1
    wrong = [line for line in done.stdout.splitlines() if line.startswith("wrong")]
    assert [w for w in wrong if "No server answers at redis://:***@localhost:1" in w]
    assert "s3cret" not in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_doctor_says_what_can_not_be_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))  # no compiler
    monkeypatch.setattr(binaries, "_wheel_fits", lambda _: False)
    done = CliRunner().invoke(main, ["doctor"])
    assert done.exit_code == 1
    assert re.search(r"^wrong +No ready-made Redis .* make is missing", done.output, re.M)
    assert re.search(r"^wrong +There is no embedded valkey for this machine", done.output, re.M)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("server", "variables", "roles"),
    [
        ("redis", {}, {"redis", "valkey"}),
        ("valkey", {}, {"valkey"}),
        (NOBODY, {}, {"valkey"}),
        (NOBODY, {"LABKIT_VALKEY_URL": NOBODY}, set()),
        ("redis", {"LABKIT_REDIS_URL": NOBODY}, {"valkey"}),
    ],
)
def test_a_report_fetches_only_what_it_uses(
    server: str, variables: dict[str, str], roles: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: set[str] = set()
    monkeypatch.setattr(binaries, "ensure", fetched.add)
    monkeypatch.setattr(report, "run", lambda *_, **__: True)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    done = CliRunner().invoke(main, ["report", "--server", server])
    assert done.exit_code == 0, done.output
    assert fetched == roles


def test_every_option_has_its_help() -> None:
    for command in ("report", "bench"):
        text = CliRunner().invoke(main, [command, "--help"]).output
        options = text.partition("Options:")[2].strip().splitlines()
        assert [line for line in options if not re.search(r"\S  +\S", line.strip())] == []


def test_labkits_own_tests_do_not_meet_the_users_server() -> None:
    test = f"{Path(__file__)}::test_close_may_be_repeated"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test],
        env=environment(LABKIT_REDIS_URL=NOBODY, LABKIT_VALKEY_URL=NOBODY),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    # Nor containers that are up: no engine is asked, by this process and by those it starts.
    assert os.environ["DOCKER_HOST"] == f"unix://{os.devnull}"


def test_doctor_leaves_nothing_on_a_server_of_the_user() -> None:
    with shared_server() as url:
        done = cli("doctor", LABKIT_REDIS_URL=url)
        assert f"url {url}" in done.stdout
        with contextlib.closing(redis.Redis.from_url(url)) as client:
            assert client.info("keyspace") == {}


@pytest.mark.parametrize("command", [("report",), ("refresh",)])
def test_a_wrong_variable_is_one_line_of_the_command_line(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    done = cli(*command, LABKIT_REDIS_URL="localhost:6380", LABKIT_CACHE=tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "labkit: LABKIT_REDIS_URL is 'localhost:6380', which is neither redis nor valkey nor a "
        "server's URL. A URL looks like redis://localhost:6380/0 (or rediss://, unix://)."
    ]
