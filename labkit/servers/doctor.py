"""What would be used on this machine, what is wrong, and the mend."""

from __future__ import annotations

import contextlib
import platform
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from labkit.errors import LabError
from labkit.servers import binaries, container
from labkit.servers.find import ROLES, find
from labkit.servers.lab import Server


def examine() -> tuple[list[str], bool]:
    """Look at both servers and at the packages.

    Returns:
        Lines for people, and whether all is well. A line that starts with ``wrong`` says what is
        wrong and what to do. Nothing is installed and nothing is written to a server of yours
        but the marker of an empty database, which is taken away again.
    """
    lines = [f"Python     {platform.python_version()} on {platform.platform()}"]
    wrong = _packages()
    lines.append(f"packages   {'as pinned' if not wrong else 'differ from requirements.txt'}")
    for role in ROLES:
        try:
            lines.append(f"{role:10} {_server(role)}")
        except LabError as error:
            lines.append(f"{role:10} none: see below")
            wrong.append(str(error))
        lines.append(f"{'':10} containers: {container.status(role)}")
        at = binaries.installed(role)
        lines.append(f"{'':10} embedded build: {at or 'not fetched yet (labkit servers install)'}")
    lines += [f"wrong      {problem}" for problem in wrong]
    return lines, not wrong


def _server(role: str) -> str:
    source = find(role)
    if source.kind == "embedded" and not binaries.installed(role):
        binaries.by_wheel(role)
        return f"would be embedded {binaries.BUILDS[role].version}, once it is fetched"
    with contextlib.closing(Server(source)) as server:
        return f"{server.label}, {source.shown}, malloc={server.allocator}"


def _packages() -> list[str]:
    """What differs from the pins of requirements.txt."""
    problems = []
    pins = Path(__file__).resolve().parents[2] / "requirements.txt"
    text = pins.read_text() if pins.is_file() else ""
    for name, wanted in re.findall(r"^([A-Za-z0-9_.-]+)==([^\s;#]+)\s*(?:#.*)?$", text, re.M):
        try:
            here = version(name)
        except PackageNotFoundError:
            here = "missing"
        if here != wanted:
            problems.append(
                f"{name} is {here}, pinned is {wanted}: run `pip install -r requirements.txt`."
            )
    return problems
