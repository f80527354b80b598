"""The shop's commands, with their raw replies: what redis-py alone does for each request."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from redis.asyncio import Redis

from labkit.boards.scores import LIMIT, Composite
from labkit.boards.scripts import ROWS
from labkit.bookstore.scripts import RECORD, TODAY, WEEK
from labkit.errors import LabError

DAYS = 7  # of a week's list
KEY_KEPT = 86_400_000  # ms: an Idempotency-Key is remembered for a day after its order
DAY_KEPT = 8 * 86_400  # s from a day's first sale: the week, and a day of slack
WEEK_KEPT = 600  # s
RECENT_KEPT = 3_600_000  # ms
SCORE = Composite(points=(0, LIMIT // 10 - 1), tie=(0, 9), first="high")  # copies x 10 + days
MOST_A_DAY = SCORE.points[1] // DAYS  # copies of one book: no sum of seven days is too large


class Commands:
    """One script or command for each method, so one round trip and one moment of the store.

    The first use of a script on a server takes two round trips more, after a restart too.

    Args:
        client: ``redis.asyncio`` with ``decode_responses=True``; Redis 6.2 on, any Valkey.
    """

    def __init__(self, client: Redis) -> None:
        if not client.get_encoder().decode_responses:
            raise LabError("This client gives bytes.", "Make it with decode_responses=True.")
        self._client: Any = client
        scripts = map(self._client.register_script, (RECORD, TODAY, WEEK, ROWS))
        self._record, self._today, self._week, self._rows = scripts

    async def record(
        self,
        key: str,
        body: str,
        request: str,
        now: int,
        day: date,
        sale: tuple[str, int, int, int],
    ) -> list[Any]:
        """What happened (``new``, ``replayed``, ``other body``, ``too many``) and the order's id.

        Args:
            key: the Idempotency-Key.
            body: what two orders under one key must have in common, in hexadecimal digits.
            request: who asks, in hexadecimal digits: one request may be sent more than once.
            now: Unix ms.
            day: the day that this is.
            sale: ISBN, copies, customer, points.
        """
        names = [KEYS["recent"], KEYS["players"], KEYS["orders"]]
        keys = [f"{KEYS['order']}:{key}", sales_key(day), *names]
        kept = MOST_A_DAY, LIMIT, KEY_KEPT, DAY_KEPT, RECENT_KEPT
        reply: list[Any] = await self._record(keys, [body, request, now, *sale, *kept])
        return reply

    async def today(self, day: date, size: int, *place: str | int) -> tuple[int, list[str]]:
        """The first place (from 0), and ISBN, score, ISBN, score... of up to ``size`` rows.

        Args:
            day: whose sales.
            size: rows.
            place: a place from 0, or the score and member of the row before.
        """
        first, rows = await self._today([sales_key(day)], [size, *place])
        return first, rows

    async def week(
        self, day: date, fresh: str, asked: str, first: int, size: int
    ) -> tuple[str, int, int, list[str]] | None:
        """The snapshot's name, its size, the ms it is still there, rows as `today` gives them.

        Args:
            day: the last of the seven.
            fresh: the name of the snapshot if it must be built.
            asked: the name of one that must be there already, or '' for any; None if it is not.
            first: place from 0.
            size: rows.
        """
        days = [sales_key(day - timedelta(days=n)) for n in range(DAYS)]
        keys = [week_key(day), f"{week_key(day)}:name", *days]
        reply = await self._week(keys, [WEEK_KEPT, fresh, asked, first, size])
        return None if reply is None else (reply[0], reply[1], reply[2], reply[3])

    async def recent(self, after: int, until: int) -> int:
        """How many orders have a time in ``after < t <= until``, in Unix ms."""
        return int(await self._client.zcount(KEYS["recent"], f"({after}", until))

    async def rank(self, customer: int) -> tuple[int, str] | None:
        """Rank by points from 1 (equal points: 1 2 2 4) and score; None for one without orders."""
        ask: list[str | int] = ["competition", 0, 0, 0, "clamp", customer]
        reply: Any = await self._rows([KEYS["players"]], ask)
        return None if reply is None else (reply[1], reply[3][1])


KEYS = {name: f"{{bookstore}}:{name}" for name in ("order", "recent", "players", "orders")}


def sales_key(day: date) -> str:
    """Where the sales of a day are: ISBN -> copies."""
    return f"{{bookstore}}:sales:{day:%Y%m%d}"


def week_key(day: date) -> str:
    """Where the snapshot is of the seven days that end with this one."""
    return f"{{bookstore}}:week:{day:%Y%m%d}"
