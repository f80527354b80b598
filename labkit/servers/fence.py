"""What keeps a lesson inside its own database of a server that is not the lab's."""

from __future__ import annotations

import re
from typing import Any

from redis._parsers import Encoder
from redis.connection import PythonRespSerializer

from labkit.errors import LabError

# Commands that reach outside of one database, forget which one it is, or end the server.
_REFUSED = {"FLUSHALL", "FLUSHDB", "SHUTDOWN", "SWAPDB", "MOVE", "MIGRATE", "REPLICAOF", "SLAVEOF"}
_REFUSED |= {"FAILOVER", "RESET", "DEBUG"}
_SCRIPTS = {"EVAL", "EVAL_RO", "SCRIPT", "FUNCTION"}
_LOOKED_AT = {"SELECT", "COPY", "CONFIG", *_SCRIPTS}  # whose arguments tell
_IN_SCRIPT = re.compile(rf"""['"]({"|".join(_REFUSED)}|SELECT)['"]""")


class Fence(PythonRespSerializer):
    """Packs commands for the wire, and refuses those that would leave the lesson's space.

    Attributes:
        configured: settings of the server that the lesson has changed.
        closed: whether the space was given back.
    """

    def __init__(self, database: int) -> None:
        super().__init__(6000, Encoder("utf-8", "strict", True).encode)
        self._database = database
        self.configured: set[str] = set()
        self.closed = False

    def pack(self, *args: Any) -> list[bytes]:
        """The bytes of a command; redis-py calls this for each one that it sends.

        Raises:
            LabError: the command would leave the space, or the lab is closed.
        """
        if self.closed:
            raise LabError("This lab is closed.", "Run `connect(server)` again.")
        name, *words = _text(args[0]).upper().split() or [""]
        if name in _REFUSED or (name in _LOOKED_AT and self._leaves(name, *words, *args[1:])):
            raise LabError(
                f"{name} was not sent: it reaches beyond this lesson's keys, and the server "
                "is not the lab's own.",
                "`lab.reset()` empties the lesson's space.",
            )
        packed: list[bytes] = super().pack(*args)  # type: ignore[no-untyped-call]
        return packed

    def _leaves(self, name: str, *arguments: Any) -> bool:
        words = [_text(argument).upper() for argument in arguments]
        if name == "SELECT":
            return words != [str(self._database)]
        if name == "COPY":
            return "DB" in words[2:]
        if name == "CONFIG":
            self.configured.update(word.lower() for word in words[1::2] if words[0] == "SET")
            return words[:1] in (["REWRITE"], ["RESETSTAT"])
        return words[:1] == ["FLUSH"] or bool(_IN_SCRIPT.search(" ".join(words)))


def _text(argument: Any) -> str:
    return argument.decode(errors="replace") if isinstance(argument, bytes) else str(argument)
