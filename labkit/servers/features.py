"""What a server can do, found by asking it and not by its version."""

from __future__ import annotations

from dataclasses import dataclass

import redis


@dataclass(frozen=True)
class Feature:
    """One feature.

    Attributes:
        probe: a command that succeeds only where the feature is there, and changes nothing;
            subcommands stand with their command, or redis-py would read the reply as COMMAND's.
        shown: its name for people, with the first version that has it.
    """

    probe: tuple[str, ...]
    shown: str


_NONE = "labkit:no-such-key"
FEATURES = {
    "rank-withscore": Feature(
        ("ZRANK", _NONE, "member", "WITHSCORE"), "ZRANK ... WITHSCORE (Redis 7.2)"
    ),
    "aggregate-count": Feature(
        ("ZUNION", "1", _NONE, "AGGREGATE", "COUNT"), "AGGREGATE COUNT (Redis 8.8)"
    ),
    "command-docs": Feature(("COMMAND DOCS", "ZADD"), "COMMAND DOCS (Redis 7.0)"),
    "zmpop": Feature(("ZMPOP", "1", _NONE, "MIN"), "ZMPOP (Redis 7.0)"),
    "expire-nx": Feature(("EXPIRE", _NONE, "1", "NX"), "EXPIRE ... NX (Redis 7.0)"),
}


def has(client: redis.Redis, name: str) -> bool:
    """Whether this server has a feature of :data:`FEATURES`."""
    try:
        client.execute_command(*FEATURES[name].probe)
    except redis.ResponseError:
        return False
    return True
