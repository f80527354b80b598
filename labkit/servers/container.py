"""compose.yaml's services: known by their label, used when they run and are healthy."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_WORKING_DIR = "com.docker.compose.project.working_dir"
_ROOT = Path(__file__).resolve().parents[2]  # where compose.yaml is
_HOST, _TIMEOUT = "127.0.0.1", 5.0  # seconds: a daemon that hangs must not hang a lesson
_LOCAL = re.compile(r"(unix|npipe|fd)://|tcp://(localhost|127\.)")  # a DOCKER_HOST of this machine


@dataclass(frozen=True)
class ContainerServer:
    """A healthy container of compose.yaml, as reached from this machine.

    Attributes:
        host, port: where it is published; the host is always 127.0.0.1.
        name, id: the container's, the id in full.
        image: the image's name as compose.yaml gives it.
    """

    host: str
    port: int
    name: str
    id: str
    image: str


class _NotFound(Exception):
    """Why no container serves, in one sentence."""


def find(role: str, root: Path = _ROOT) -> ContainerServer | None:
    """The container that serves a role, or None; asks Docker, never a port.

    Of several with the role's label, running ones come first, then those of ``root``'s
    compose.yaml (another clone may be up as well), then the newest.

    Args:
        role: "redis" or "valkey", the value of the label ``labkit.role``.
        root: the folder of compose.yaml.
    """
    try:
        return _look(role, root)
    except _NotFound:
        return None


def status(role: str, root: Path = _ROOT) -> str:
    """One sentence on the container of a role: what serves, or why none does."""
    try:
        server = _look(role, root)
    except _NotFound as why:
        return str(why)
    return f"container {server.name} ({server.image}) is healthy at {server.host}:{server.port}"


def _look(role: str, root: Path) -> ContainerServer:
    ids = _docker("ps", "-aq", "--no-trunc", f"--filter=label=labkit.role={role}").split()
    if not ids:
        raise _NotFound("not up (`docker compose up -d --wait` starts it)")
    engine = _docker("context", "inspect", "--format", "{{.Endpoints.docker.Host}}").strip()
    if not _LOCAL.match(engine):
        raise _NotFound(f"the Docker engine is on another machine ({engine})")
    try:
        found: list[dict[str, Any]] = json.loads(_docker("container", "inspect", *ids))
        return _server(max(found, key=lambda box: _preference(box, root)))
    except (ValueError, KeyError, TypeError) as error:
        raise _NotFound(f"docker inspect answers in an unknown form ({error!r})") from error


def _preference(box: dict[str, Any], root: Path) -> tuple[bool, bool, str]:
    home = box["Config"]["Labels"].get(_WORKING_DIR)
    ours = home is not None and Path(home).resolve() == root.resolve()
    return box["State"]["Running"], ours, box["Created"]  # ISO 8601 in UTC: sorts as text


def _server(box: dict[str, Any]) -> ContainerServer:
    name, state = box["Name"].lstrip("/"), box["State"]
    if state["Status"] != "running":
        how = f"{state['Status']}, exit code {state['ExitCode']}"
        raise _NotFound(f"container {name} is not running ({how})")
    health = state.get("Health", {}).get("Status", "without a health check")
    if health != "healthy":
        yet = " (not healthy yet)" if health == "starting" else ""
        raise _NotFound(f"container {name} is {health}{yet}")
    published = [b for bindings in box["NetworkSettings"]["Ports"].values() for b in bindings or ()]
    if len(published) != 1 or published[0]["HostIp"] != _HOST:
        raise _NotFound(f"container {name} does not publish one port, and that on {_HOST} alone")
    port = int(published[0]["HostPort"])
    return ContainerServer(_HOST, port, name, box["Id"], box["Config"]["Image"])


def _docker(*arguments: str) -> str:
    """What a docker command prints; _NotFound for whatever keeps it from answering."""
    try:
        done = subprocess.run(
            ["docker", *arguments], stdin=subprocess.DEVNULL, capture_output=True,
            encoding="utf-8", errors="replace", timeout=_TIMEOUT,
        )  # fmt: skip
    except FileNotFoundError:
        raise _NotFound("no docker command") from None
    except subprocess.TimeoutExpired:
        raise _NotFound(f"the Docker engine does not answer within {_TIMEOUT:.0f} s") from None
    except OSError as error:
        raise _NotFound(f"the docker command does not start ({error.strerror})") from None
    if done.returncode == 0:
        return done.stdout
    said = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    if "permission denied" in said.lower():
        raise _NotFound("this user may not talk to the Docker engine (see the group docker)")
    what = "the Docker engine does not answer" if arguments[0] == "ps" else "docker fails"
    raise _NotFound(f"{what} ({said})")
