"""Reading a board: one rank, the top, a page, a window, a walk over a snapshot."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from labkit.boards.cursors import check_secret, seal, unseal
from labkit.boards.scores import Composite, as_int, check_text, shown
from labkit.boards.scripts import ROWS
from labkit.errors import LabError

if TYPE_CHECKING:
    from redis import Redis

Ties = Literal["ordinal", "competition", "dense"]
Window = Literal["clamp", "fill"]
DAY = 86_400  # seconds
LARGEST = 1000  # rows of a page, unless the caller says another number


@dataclass(frozen=True)
class Standing:
    """One row of a board.

    Attributes:
        rank: from 1.
        player: the member.
        points: an int where it is a whole number.
        at: when they were reached; None on a board without a codec, which does not know.
    """

    rank: int
    player: str
    points: float
    at: int | None = None


class Pages:
    """Any sorted set of UTF-8 members, read from the highest score down, in checked bounds.

    ::

        client.zunionstore("{game}:all", {"{game}:1": 1, "{game}:2": 3})
        Pages(client, "{game}:all", ties="competition", window="fill").page(3, 25)

    Each method is one round trip and one moment of the board; the first use of a script takes two
    trips more. Ranks and pages start at 1. No number that a caller passes counts from the other
    end of the board.

    Args:
        client: `redis.Redis` with ``decode_responses=True``, also to one node of a cluster
            (``RedisCluster`` cannot rebuild); any server from Redis 6.2 on, any Valkey.
        key: the sorted set. Copies of it lie in the same slot of a cluster.
        ties: which rank players with equal points have: a place each (``ordinal``), that of the
            first of them (``competition``: 1 2 2 4), or without gaps (``dense``: 1 2 2 3). A dense
            rank costs one search for each different number of points above it.
        window: what `around` does at the ends: ``clamp`` gives fewer rows, ``fill`` moves on.
        codec: what the scores were packed with; plain points without one.
        secret: what cursors are signed with, 16 bytes or more; needed for `snapshot` only.
        largest: the most rows that one call may ask for.

    Raises:
        LabError: a policy, key, number or secret that is none of these, a client of bytes.
            Methods: an argument out of its bounds.
    """

    def __init__(
        self,
        client: Redis,
        key: str,
        *,
        ties: Ties,
        window: Window,
        codec: Composite | None = None,
        secret: bytes | None = None,
        largest: int = LARGEST,
    ) -> None:
        one_of("ties", ties, get_args(Ties))
        one_of("window", window, get_args(Window))
        if not client.get_encoder().decode_responses:
            raise LabError("This client gives bytes.", "Make it with decode_responses=True.")
        before, _, rest = check_text("key", key).partition("{")
        tag, end, _ = rest.partition("}")
        if not (tag and end) and (rest or not key or "}" in before or key.endswith("{")):
            what = "has braces and no hash tag" if key else "is empty"
            raise LabError(f"The key {key!r} {what}.", "Write {tag}:name.")
        self.key = key
        self._prefix = key if end else f"{{{key}}}"
        self._client: Any = client
        self._ties, self._window, self._codec, self._secret = ties, window, codec, secret
        self._unit = codec.unit if codec else 0
        self._largest = whole("largest page", largest, 1, 10**6)
        self._rows = self._client.register_script(ROWS)

    def rank(self, player: str) -> Standing | None:
        """The row of a player; None when the board has no such player."""
        rows, _ = self._beside(player, 0)
        return rows[0] if rows else None

    def page(self, number: int, size: int) -> list[Standing]:
        """A page; the first is number 1. Past the end it is empty."""
        return self._read(self.key, *places(number, size, self._largest), self._ties)[0]

    def top(self, n: int) -> list[Standing]:
        """The best n, fewer when there are fewer."""
        return self.page(1, n)

    def around(self, player: str, each: int) -> list[Standing]:
        """A player with up to ``each`` rows above and below; empty when there is no such player.

        ``clamp``: fewer rows at the ends. ``fill``: as many on the other side instead, so that
        there are 2 x each + 1 rows wherever the board has so many.
        """
        whole("number of rows on each side", each, 0, (self._largest - 1) // 2)
        return self._beside(player, each)[0]

    def percentile(self, player: str) -> float | None:
        """Per cent of the players who have at most this player's points; the first has 100."""
        rows, size = self._beside(player, 0, "competition")
        return 100 * (size - rows[0].rank + 1) / size if rows else None

    def snapshot(self, size: int, seconds: int) -> str:
        """Copy the board for readers who page, for some seconds; the cursor of its first page.

        The cursor may be given to any number of readers, each of whom sees the board of this
        moment, every player once. It costs a copy of the board, so share it.
        """
        secret = check_secret(self._secret)
        whole("size of a page", size, 1, self._largest)
        copy = secrets.token_hex(8)
        with self._client.pipeline() as both:  # MULTI: no copy without an end
            both.zrangestore(f"{self._prefix}:copy:{copy}", self.key, 0, -1)
            both.expire(f"{self._prefix}:copy:{copy}", whole("lifetime", seconds, 1, DAY))
            total, _ = both.execute()
        return seal(secret, self.key, copy, 0, size, total)

    def follow(self, cursor: str) -> tuple[list[Standing], str | None]:
        """The page of a cursor, and the cursor of the next page: None when nothing follows.

        Raises:
            LabError: a cursor that was changed or is another board's; a copy that has ended.
        """
        secret = check_secret(self._secret)
        key, copy, start, size, total = unseal(secret, cursor)
        if key != self.key:
            raise LabError("This cursor belongs to another board.", "Start at the first page.")
        after = start + size
        rows, left = self._read(f"{self._prefix}:copy:{copy}", start, after - 1, self._ties)
        if left != total:
            raise LabError("The copy that this cursor reads has ended.", "Start at the first page.")
        return rows, seal(secret, key, copy, after, size, total) if after < total else None

    def _beside(self, player: str, each: int, ties: str = "") -> tuple[list[Standing], int]:
        who = check_text("player", player)
        return self._read(self.key, -each, each, ties or self._ties, who)

    def _read(
        self, key: str, start: int, stop: int, ties: str, *who: str
    ) -> tuple[list[Standing], int]:
        """Rows from place to place, or relative to a player's, and the size of the board."""
        reply = self._rows([key], [ties, self._unit, start, stop, self._window, *who])
        if reply is None:
            return [], 0
        first, rank, size, flat = reply
        rows: list[Standing] = []
        for place, (name, score) in enumerate(zip(flat[::2], flat[1::2], strict=True), first + 1):
            points, at = self._decoded(score)
            if rows and (ties == "ordinal" or points != rows[-1].points):
                rank = rank + 1 if ties == "dense" else place
            rows.append(Standing(rank, name, points, at))
        return rows, size

    def _decoded(self, score: str) -> tuple[float, int | None]:
        if self._codec is not None:
            return self._codec.decode(score)
        points = float(score)
        return (int(points) if points.is_integer() else points), None


def whole(name: str, value: Any, least: int, most: int, cure: str = "") -> int:
    """A whole number within bounds, both included; the cure is for one below 1.

    Raises:
        LabError: a bool, a float or anything else that is no int; a number out of bounds.
    """
    if (number := as_int(value)) is None:
        raise LabError(f"The {name} is {shown(value, repr)}.", "Pass a whole number (an int).")
    if not least <= number <= most:
        span = f"It goes from {least:,} to {most:,}."
        raise LabError(f"The {name} is {shown(number)}.", cure if cure and number < 1 else span)
    return number


def places(number: Any, size: Any, largest: int) -> tuple[int, int]:
    """First and last place of a page, from 0, both included: what ZRANGE takes.

    Page 2 of 25 is (25, 49). Neither is ever below 0, which would count from the other end, and
    no size is 0, which would make the last place -1 and the page the whole board.

    Args:
        number: the page, from 1.
        size: rows on it, 1 to ``largest``.

    Raises:
        LabError: as `whole`.
    """
    rows = whole("size of a page", size, 1, largest)
    cure = "Pages, like ranks, start at 1."
    start = (whole("page", number, 1, 2**53 // largest, cure) - 1) * rows
    return start, start + rows - 1


def one_of(name: str, value: object, known: tuple[str, ...]) -> None:
    """Refuse what is none of the known words."""
    if value not in known:
        words = " or ".join(map(repr, known))
        raise LabError(f"The policy of {name} is {value!r}.", f"Say {words}.")
