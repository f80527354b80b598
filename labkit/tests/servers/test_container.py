"""Containers are found by their label, when healthy; whatever is wrong is one sentence."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]
from redis import Redis

from labkit.servers import container

COMPOSE = Path(__file__).resolve().parents[3] / "compose.yaml"


def test_without_docker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert container.find("redis") is None
    assert container.status("redis") == "no docker command"


def test_daemon_down(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/dead.sock")
    assert container.find("redis") is None
    expected = "the Docker engine does not answer (" if shutil.which("docker") else "no docker comm"
    assert container.status("redis").startswith(expected)
    assert "\n" not in container.status("redis")


def test_daemon_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "_TIMEOUT", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{silent.getsockname()[1]}")
        assert container.find("redis") is None
        expected = "does not answer within" if shutil.which("docker") else "no docker command"
        assert expected in container.status("redis")


def docker(*arguments: str) -> str:
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def wait_until(box: str, health: str) -> None:
    """Waits for the engine's own event that a container's health has changed to this."""
    since = time.time()
    if docker("inspect", "--format", "{{.State.Health.Status}}", box) == health:
        return
    arguments = [
        *("docker", "events", "--filter", f"container={box}", "--format", "{{.Action}}"),
        *("--since", f"{since:.6f}", "--until", f"{since + 30:.0f}"),
    ]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as events:
        assert events.stdout is not None
        for line in events.stdout:
            if line.strip() == f"health_status: {health}":
                events.kill()
                return
    pytest.fail(f"{box} did not become {health}; {docker('logs', box)}")


@dataclass(frozen=True)
class Clone:
    """compose.yaml in a folder of its own, with labels and ports of its own."""

    root: Path
    role: str
    port: int

    def compose(self, *arguments: str) -> str:
        known = subprocess.run(["docker", "compose", "version"], capture_output=True).returncode
        command = ["docker-compose"] if known else ["docker", "compose"]
        ports = {"LABKIT_REDIS_PORT": str(self.port), "LABKIT_VALKEY_PORT": str(free_port())}
        done = subprocess.run(
            [*command, "--project-name", self.root.name, *arguments],
            cwd=self.root,
            env={**os.environ, **ports},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def up(self) -> str:
        """Starts redis, waits until it is healthy and gives its id."""
        self.compose("up", "-d", "redis")
        box = self.compose("ps", "-q", "redis")
        wait_until(box, "healthy")
        return box

    def client(self, password: str | None = None) -> Redis:
        return Redis(port=self.port, password=password, decode_responses=True)


def clone(folder: Path, role: str) -> Iterator[Clone]:
    content = yaml.safe_load(COMPOSE.read_text())
    redis = content["services"]["redis"]
    redis["labels"]["labkit.role"] = role
    redis["command"] += " --enable-debug-command yes"  # to make loading last
    (folder / "compose.yaml").write_text(yaml.safe_dump(content))
    here = Clone(folder, role, free_port())
    try:
        yield here
    finally:
        here.compose("down", "--timeout", "0")


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    name = uuid.uuid4().hex[:8]
    yield from clone(tmp_path_factory.mktemp(f"labkit-{name}-first"), f"test-{name}")


@pytest.fixture
def second(first: Clone, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    yield from clone(tmp_path_factory.mktemp(first.root.name + "-second"), first.role)


@pytest.mark.containers
def test_healthy_is_found_by_its_label(first: Clone) -> None:
    box = first.up()
    server = container.find(first.role, first.root)
    assert server is not None
    assert (server.id, server.host, server.port) == (box, "127.0.0.1", first.port)
    assert server.name in container.status(first.role, first.root)
    # What answers at that port is the process in that container.
    inside = docker("exec", box, "redis-cli", "INFO", "server")
    assert first.client().info("server")["run_id"] in inside


@pytest.mark.containers
def test_the_limits_are_those_of_compose_yaml(first: Clone) -> None:
    box = first.up()
    config = first.client().config_get("*")
    assert (config["save"], config["appendonly"]) == ("", "no")
    assert (config["maxmemory"], config["maxmemory-policy"]) == (str(3 * 2**30), "noeviction")
    assert docker("inspect", "--format", "{{.HostConfig.Memory}}", box) == str(4 * 2**30)
    # Even root writes nowhere but in memory.
    tries = "! (: >/a) && : >/tmp/a && echo read-only"
    assert docker("exec", "--user", "0", box, "sh", "-c", tries) == "read-only"


@pytest.mark.containers
def test_another_role_is_not_taken(first: Clone) -> None:
    first.up()
    assert container.find(first.role + "-other", first.root) is None
    assert container.status(first.role + "-other", first.root).startswith("not up")


@pytest.mark.containers
def test_no_password_no_health(first: Clone) -> None:
    box = first.up()
    first.client().config_set("requirepass", "secret")
    try:
        wait_until(box, "unhealthy")
        assert container.find(first.role, first.root) is None
        assert "is unhealthy" in container.status(first.role, first.root)
    finally:
        first.client("secret").config_set("requirepass", "")
    wait_until(box, "healthy")
    assert container.find(first.role, first.root) is not None


@pytest.mark.containers
def test_loading_is_not_healthy(first: Clone) -> None:
    box = first.up()
    client = first.client()
    client.mset({f"k{i}": i for i in range(3000)})
    # A minute, during which clients are answered once in about a second.
    client.config_set("key-load-delay", 20_000)
    client.config_set("loading-process-events-interval-bytes", 1024)
    docker("exec", "--detach", box, "redis-cli", "DEBUG", "RELOAD")
    try:
        wait_until(box, "unhealthy")
        # The exit status alone would have been green.
        assert docker("exec", box, "redis-cli", "ping").startswith("LOADING")
        assert container.find(first.role, first.root) is None
    finally:
        docker("exec", box, "redis-cli", "CONFIG", "SET", "key-load-delay", "0")
    wait_until(box, "healthy")
    assert first.client().dbsize() == 3000


@pytest.mark.containers
def test_starting_is_not_taken_yet(first: Clone) -> None:
    box = first.up()
    docker("restart", "--time", "0", box)
    assert container.find(first.role, first.root) is None
    assert container.status(first.role, first.root).endswith("is starting (not healthy yet)")
    wait_until(box, "healthy")
    assert container.find(first.role, first.root) is not None


@pytest.mark.containers
def test_of_two_clones_each_takes_its_own(first: Clone, second: Clone, tmp_path: Path) -> None:
    boxes = first.up(), second.up()
    found = [container.find(first.role, root) for root in (first.root, second.root, tmp_path)]
    assert [server.id for server in found if server] == [boxes[0], boxes[1], boxes[1]]
    # A clone's own container that is stopped does not hide the other's that runs.
    second.compose("stop", "--timeout", "0")
    server = container.find(first.role, second.root)
    assert server is not None
    assert server.id == boxes[0]


@contextmanager
def stranger(like: str, *options: str) -> Iterator[str]:
    """A healthy server from the image of a container, which no compose.yaml started."""
    image = docker("inspect", "--format", "{{.Config.Image}}", like)
    health = ("--health-cmd", "redis-cli ping | grep PONG", "--health-interval", "1s")
    server = ("redis-server", "--protected-mode", "no")
    box = docker("run", "-d", "--rm", *health, *options, image, *server)
    try:
        wait_until(box, "healthy")
        yield box
    finally:
        docker("rm", "--force", box)


@pytest.mark.containers
def test_published_elsewhere_is_not_taken(first: Clone) -> None:
    role = first.role + "-elsewhere"
    # 127.0.0.2 stands for every address that is not 127.0.0.1, and harms nobody.
    options = ("--label", f"labkit.role={role}", "--publish", "127.0.0.2::6379")
    with stranger(first.up(), *options):
        assert container.find(role) is None
        assert "127.0.0.1 alone" in container.status(role)


@pytest.mark.containers
def test_stopped_is_not_found_and_no_stranger_takes_its_place(first: Clone) -> None:
    box = first.up()
    first.compose("stop", "--timeout", "0")
    with stranger(box, "--publish", f"127.0.0.1:{first.port}:6379"):  # the very port of ours
        assert first.client().ping()
        assert container.find(first.role, first.root) is None
        assert "is not running (exited" in container.status(first.role, first.root)
