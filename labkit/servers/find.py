"""Where the server of a role comes from: a URL, the container, or a private process."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Literal

from labkit.errors import LabError
from labkit.servers import container

ROLES = ("redis", "valkey")
_SCHEMES = ("redis", "rediss", "unix", "valkey", "valkeys")


@dataclass(frozen=True)
class Source:
    """What will serve a role.

    Attributes:
        role: ``redis`` or ``valkey``; what was asked for, not what answers.
        kind: ``url`` (the user gave it), ``container`` (of compose.yaml) or ``embedded``.
        url: where it listens; empty for an embedded server, which is not started yet.
    """

    role: str
    kind: Literal["url", "container", "embedded"]
    url: str = ""

    @property
    def shown(self) -> str:
        """The source in words, without a password."""
        if self.kind == "embedded":
            return "embedded"
        return f"{self.kind} {redact(self.url)}"


def find(server: str) -> Source:
    """The source of a role, by the first that is there: URL, container, embedded.

    Args:
        server: ``redis``, ``valkey``, or a URL (then the role is ``redis``).

    Raises:
        LabError: neither a role nor a URL that redis-py knows.
    """
    if server not in ROLES:
        return Source("redis", "url", _checked(server, "The server"))
    variable = f"LABKIT_{server.upper()}_URL"
    if given := os.environ.get(variable):
        return Source(server, "url", _checked(given, variable))
    if found := container.find(server):
        return Source(server, "container", f"redis://{found.host}:{found.port}")
    return Source(server, "embedded")


def redact(url: str) -> str:
    """The URL without its passwords: all between ``:`` and the last ``@``, and ``password=``."""
    url = re.sub(r"(?<=://)([^:@]*):.*(?=@)", r"\1:***", url)
    return re.sub(r"(?<=password=)[^&]*", "***", url)


def _checked(url: str, name: str) -> str:
    scheme, mark, rest = url.partition("://")
    # Without a host redis-py would take localhost:6379, which may be anybody's.
    place = rest if scheme == "unix" else re.split("[/?]", rest.rpartition("@")[2])[0]
    if mark and scheme in _SCHEMES and place.partition(":")[0]:
        # redis-py knows only Redis' own two names for the same protocol.
        return re.sub("^valkey", "redis", url)
    raise LabError(
        f"{name} is {redact(url)!r}, which is neither redis nor valkey nor a server's URL.",
        "A URL looks like redis://localhost:6380/0 (or rediss://, unix://).",
    )
