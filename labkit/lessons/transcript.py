"""The ``%%redis`` cell magic: commands in, redis-cli's own rendering out."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import redis
from noteredis.client import CommandLine, is_blocking, split_cell
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
    try:
        return [(line.source, _reply(link, line)) for line in split_cell(cell)]
    except redis.ConnectionError as error:
        raise LabError(
            f"The {role} server ended: {error}.", "Run `connect(server)` again."
        ) from None
    finally:
        link.disconnect()


def _reply(link: redis.Connection, line: CommandLine) -> str:
    if not line.args:
        return "Invalid argument(s)"  # what redis-cli says of unbalanced quotes
    if is_blocking(line.args):
        raise LabError(f"{line.name} would wait for ever in a cell.", "Use redis-py for it.")
    link.send_command(*line.args)
    try:
        text: str = format_reply(link.read_response(disable_decoding=True))
    except redis.ResponseError as error:
        text = format_error(error)
    return text.removesuffix("\n")


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
