"""The ``%%redis`` cell magic: commands in, redis-cli's own rendering out."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable

import redis
from noteredis.client import is_blocking
from noteredis.formatter import format_error, format_reply
from noteredis.resp import FaithfulRESP2Parser

from labkit.errors import LabError
from labkit.servers.lab import Lab, current


def replay(lab: Lab, cell: str, role: str = "redis") -> list[tuple[str, str]]:
    """Send the commands of a cell one after the other over one connection.

    Args:
        lab: whose servers.
        cell: one command a line, quoted as for redis-cli; blank lines and ``#`` lines are left
            out.
        role: ``redis`` (the lesson's server) or ``valkey``.

    Returns:
        (command, reply) for each command; the reply as redis-cli renders it on a terminal,
        without the last line end, errors included. A later command runs even if an earlier one
        was refused, as in redis-cli.
    """
    if role not in ("redis", "valkey"):
        raise LabError(f"%%redis knows no server {role!r}.", "Say `%%redis` or `%%redis valkey`.")
    client = lab.redis if role == "redis" else lab.valkey
    settings = client.connection_pool.connection_kwargs
    # redis-cli speaks RESP2 unless told otherwise; bytes stay bytes so that they can be escaped.
    link = client.connection_pool.connection_class(
        **{**settings, "protocol": 2, "parser_class": FaithfulRESP2Parser}
    )
    lines = [line.strip() for line in cell.split("\n")]
    commands = [(line, _split(line)) for line in lines if line and not line.startswith("#")]
    for line, words in commands:  # before anything is sent
        if is_blocking([word.decode(errors="replace") for word in words or ()]):
            raise LabError(f"{line!r} would wait for ever in a cell.", "Use redis-py for it.")
    try:
        return [(line, _reply(link, words)) for line, words in commands]
    except (redis.ConnectionError, redis.TimeoutError) as error:
        raise LabError(
            f"The {role} server ended: {error}.", "Run `connect(server)` again."
        ) from None
    finally:
        link.disconnect()


# One word as redis-cli reads it: plain text, then perhaps a quoted part that ends the word.
_WORD = re.compile(
    rb"""\s*+([^\s"']*)(?:"((?:\\.|[^"\\])*+)"|'((?:\\'|[^'])*+)')?(?=\s|$)""", re.DOTALL
)
_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|(.))", re.DOTALL)
# Replies that redis-cli prints as they are: text for people, of several lines.
_AS_TEXT = {b"INFO", b"LOLWUT", b"MEMORY MALLOC-STATS", b"MEMORY DOCTOR", b"CLUSTER NODES"}
_AS_TEXT |= {b"CLUSTER INFO", b"CLIENT LIST", b"CLIENT INFO", b"LATENCY GRAPH", b"LATENCY DOCTOR"}
_CONTROL = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"a": b"\a"}


def _split(line: str) -> list[bytes] | None:
    """The words of a command line by redis-cli's rules of quoting; None: unbalanced quotes."""
    text, words, at = line.encode(), [], 0
    while at < len(text):
        if not (word := _WORD.match(text, at)):
            return None
        plain, double, single = word.groups()
        double = _ESCAPE.sub(_unescape, double or b"")
        words.append(plain + double + (single or b"").replace(b"\\'", b"'"))
        at = word.end()
    return words


def _unescape(found: re.Match[bytes]) -> bytes:
    code, letter = found.groups()
    return bytes.fromhex(code.decode()) if code else _CONTROL.get(letter, letter)


def _reply(link: redis.Connection, words: list[bytes] | None) -> str:
    if words is None:
        return "Invalid argument(s)"  # what redis-cli says of unbalanced quotes
    link.send_command(*words)
    try:
        reply = link.read_response(disable_decoding=True)
    except redis.ResponseError as error:
        return str(format_error(error)).removesuffix("\n")
    if isinstance(reply, bytes) and _AS_TEXT & {b" ".join(words[:n]).upper() for n in (1, 2)}:
        return reply.decode(errors="replace").replace("\r\n", "\n").rstrip("\n")
    return str(format_reply(reply)).removesuffix("\n")


def show(steps: Iterable[tuple[str, str]], role: str = "redis") -> str:
    """The transcript as text: each command behind a prompt, its reply below."""
    return "\n".join(f"{role}> {command}\n{reply}" for command, reply in steps)


def _magic(line: str, cell: str) -> None:
    lab = current()
    role = line.strip() or "redis"
    steps = replay(lab, cell, role)
    lab.replies = [reply for _, reply in steps]
    print(show(steps, role))


def register() -> None:
    """Make ``%%redis`` known to the IPython that runs this, if one does."""
    if "IPython" in sys.modules and (shell := sys.modules["IPython"].get_ipython()):
        shell.register_magic_function(_magic, magic_kind="cell", magic_name="redis")
