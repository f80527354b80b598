"""What keeps a lesson inside its own database of a server that is not the lab's."""

from __future__ import annotations

import re
from typing import Any

from redis._parsers import Encoder
from redis.connection import PythonRespSerializer

from labkit.errors import LabError

# Commands that reach outside of one database, forget which one it is, burden or end the server,
# or run what others may have written (functions are the whole server's).
_REFUSED = {"FLUSHALL", "FLUSHDB", "SHUTDOWN", "SWAPDB", "MOVE", "MIGRATE", "REPLICAOF", "SLAVEOF"}
_REFUSED |= {"FAILOVER", "RESET", "DEBUG", "MODULE", "SAVE", "BGSAVE", "BGREWRITEAOF"}
_REFUSED |= {"SYNC", "PSYNC", "FCALL", "FCALL_RO"}
# Of these only what reads, stays with its connection, or is undone at the end.
_FAMILIES = {"ACL", "CLIENT", "CLUSTER", "COMMANDLOG", "CONFIG", "FUNCTION", "LATENCY", "SLOWLOG"}
_SENT = re.compile(
    "ACL (CAT|DRYRUN|GENPASS|GETUSER|LIST|USERS|WHOAMI)|CONFIG [GS]ET|SCRIPT (EXISTS|LOAD|SHOW)|"
    "CLIENT (CACHING|CAPA|[GS]ETNAME|GETREDIR|ID|INFO|LIST|MAINT_NOTIFICATIONS|NO-TOUCH|REPLY|"
    "SETINFO|TRACKING(INFO)?)|(COMMAND|SLOW)LOG (GET|LEN)|CLUSTER (INFO|KEYSLOT|MYID|NODES|SHARDS|"
    "SLOTS)|LATENCY (DOCTOR|GRAPH|HISTOGRAM|HISTORY|LATEST)|FUNCTION (DUMP|LIST|STATS)|[A-Z]+ HELP"
)
_SCRIPTS = {"EVAL", "EVAL_RO", "SCRIPT"}
_LOOKED_AT = {"SELECT", "COPY", *_FAMILIES, *_SCRIPTS}  # whose arguments tell
# In a script: a call of a command that stands there in plain letters.
_CALL = re.compile(r"""\b(?:redis|server)\.p?call\s*\(\s*(["'])([\w.-]+)\1\s*(?=[,)])""")
_READS = {"EXISTS", "GET", "TTL", "TYPE"}  # what a lesson may do with the marker


class Fence(PythonRespSerializer):
    """Packs commands for the wire, and refuses those that would leave the lesson's space.

    Attributes:
        configured: settings of the server that the lesson has changed.
        marker: a key that the lesson may only read; none while it is empty.
        closed: whether the space was given back.
    """

    def __init__(self, database: int) -> None:
        super().__init__(6000, Encoder("utf-8", "strict", True).encode)
        self._database = database
        self.configured: set[str] = set()
        self.marker = ""
        self.closed = False

    def pack(self, *args: Any) -> list[bytes]:
        """The bytes of a command; redis-py calls this for each one that it sends.

        Raises:
            LabError: the command would leave the space, or the lab is closed.
        """
        if self.closed:
            raise LabError("This lab is closed.", "Run `connect(server)` again.")
        name, *words = _text(args[0]).upper().split() or [""]
        if name in _LOOKED_AT:  # others may have a million
            words += map(_text, args[1:])
        reason = self._reason(name, words)
        if self.marker and (self.marker in args or self.marker.encode() in args):
            marks = f"{self.marker} marks this database as the lesson's"
            reason = reason if name in _READS else marks
        if reason:
            cure = "`lab.reset()` empties the lesson's space."
            raise LabError(f"{name} was not sent: {reason}.", cure)
        if name == "CONFIG" and words[0].upper() == "SET":
            self.configured.update(word.lower() for word in words[1::2])
        packed: list[bytes] = super().pack(*args)  # type: ignore[no-untyped-call]
        return packed

    def _reason(self, name: str, words: list[str]) -> str:
        """Why a command would leave the space; empty when it stays there."""
        first, *others = [*(word.upper() for word in words), ""]
        known = name not in _FAMILIES | {"SCRIPT"} or _SENT.fullmatch(f"{name} {first}")
        away = name == "SELECT" and first != str(self._database)
        if name in _REFUSED or not known or away or (name == "COPY" and "DB" in others[1:]):
            return "it reaches beyond this lesson's keys, and the server is not the lab's own"
        script = [*words, ""][name == "SCRIPT"] if name in _SCRIPTS else ""
        called = {found[2].upper() for found in _CALL.finditer(script)}
        if called & (_REFUSED | _LOOKED_AT) or re.search(r"\bp?call\b", _CALL.sub("", script)):
            return "its calls must read redis.call('GET', ...) and stay with this lesson's keys"
        return ""


def _text(argument: Any) -> str:
    return argument.decode(errors="replace") if isinstance(argument, bytes) else str(argument)
