"""The bookstore without HTTP: orders that count once, and the lists made of them."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

from redis.asyncio import Redis

from labkit.boards.cursors import check_secret, seal, unseal
from labkit.boards.scores import LIMIT
from labkit.bookstore.commands import DAYS, SCORE, Commands
from labkit.bookstore.shapes import Order, Recorded, Sold, SoldInWeek, Standing, Today, Week
from labkit.errors import LabError

POINTS = 10  # that a customer gets for a copy
_FOREIGN = "Look for a writer other than the shop."


class Refused(LabError):
    """What the shop does not do, and why.

    Attributes:
        status: of the HTTP answer.
    """

    def __init__(self, status: int, what: str, cure: str = "") -> None:
        super().__init__(what, cure)
        self.status = status


def unix_ms() -> int:
    """Milliseconds since 1970 by this machine's clock."""
    return time.time_ns() // 1_000_000


def utc_day(ms: int) -> date:
    """The day, in UTC, of a Unix time in ms."""
    return datetime.fromtimestamp(ms / 1000, UTC).date()


class Shop:
    """Orders and lists; each method is one round trip.

    Days are those of UTC. Any number of shops may share a store; give them one ``secret`` and
    clocks that agree.

    Args:
        client: as for `Commands`.
        clock: gives Unix milliseconds.
        secret: what cursors are signed with, 16 bytes or more; without one, cursors end with
            this object.

    Raises:
        LabError: a client that gives bytes, a short secret. Methods: a score in the store that
            the shop has not written; `Refused` where it says so; redis-py's errors.
    """

    def __init__(
        self, client: Redis, *, clock: Callable[[], int] = unix_ms, secret: bytes | None = None
    ) -> None:
        self._commands = Commands(client)
        self._clock = clock
        self._secret = check_secret(secrets.token_bytes(32) if secret is None else secret)

    async def record(self, key: str, order: Order) -> Recorded:
        """Count an order, once for each Idempotency-Key.

        A key is remembered for a day after its order, in about 140 bytes; sent later, it orders
        again. What is remembered is what the order says, not how its JSON was written.

        Raises:
            Refused: 422, the key was used for another order; 409, a total would be inexact.
        """
        body = hashlib.sha256(order.model_dump_json().encode()).hexdigest()[:32]
        now = self._clock()
        sale = order.isbn, order.quantity, order.customer_id, order.quantity * POINTS
        request = secrets.token_hex(8)
        happened, *number = await self._commands.record(key, body, request, now, utc_day(now), sale)
        if happened == "other body":
            what = "This Idempotency-Key was used for another order."
            raise Refused(422, what, "Send a new order with a new key.")
        if happened == "too many":
            raise Refused(409, "So many copies or points cannot be counted exactly.")
        replayed = {"new": False, "replayed": True}[happened]
        return Recorded(order_id=number[0], replayed=replayed)

    async def today(self, page: int = 1, size: int = 10, cursor: str | None = None) -> Today:
        """A page of the copies sold today; with a cursor, the page after the one that gave it.

        A cursor is the last row's score and member. Books that do not sell meanwhile are neither
        skipped nor repeated, at equal scores too; a book that sells and so passes the cursor
        is not met. A list is read to its end after midnight; when the day has expired, what is
        left of it is empty. Pages by number drift.

        Raises:
            Refused: 400, no cursor of this list.
        """
        day, place = utc_day(self._clock()), [(page - 1) * size]
        if cursor is not None:
            text, *place = self._opened(cursor, "today")
            day = date.fromisoformat(text)
        first, flat = await self._commands.today(day, size + 1, *place)
        rows = list(zip(flat[::2], flat[1::2], strict=True))
        items = [
            Sold(rank=rank, isbn=isbn, sold=_whole(score))
            for rank, (isbn, score) in enumerate(rows[:size], first + 1)
        ]
        after = None
        if len(rows) > size:
            isbn, score = rows[size - 1]
            after = seal(self._secret, "today", day.isoformat(), score, isbn)
        return Today(day=day.isoformat(), items=items, next_cursor=after)

    async def week(self, page: int = 1, size: int = 10, cursor: str | None = None) -> Week:
        """A page of the last seven days, from a snapshot that is kept for ten minutes.

        Whoever asks first has it built, in one step that holds the server: some 10 ms with 2,000
        books (measured on a small machine). With 100,000 it takes Redis 1.0 s and Valkey 1.5 s,
        longer than the service waits for a reply; it asks again, and then the list is there. A
        week without sales is not kept: to look at seven keys that are not there costs no more than
        to look at a snapshot. A cursor names its snapshot; pages by number may come from two.

        Raises:
            Refused: 400, no cursor of this list; 410, its snapshot has ended.
        """
        day, asked, first = utc_day(self._clock()), "", (page - 1) * size
        if cursor is not None:
            text, asked, first = self._opened(cursor, "week")
            day = date.fromisoformat(text)
        reply = await self._commands.week(day, secrets.token_hex(8), asked, first, size)
        if reply is None:
            raise Refused(410, "The list that this cursor reads has ended.", "Start at page 1.")
        name, total, left, flat = reply
        items = []
        for rank, (isbn, score) in enumerate(zip(flat[::2], flat[1::2], strict=True), first + 1):
            sold, days = SCORE.decode(score)
            if days > DAYS:
                raise LabError(f"There is a score {score} in the week.", _FOREIGN)
            items.append(SoldInWeek(rank=rank, isbn=isbn, sold=sold, days_with_sales=days))
        more = first + size < total
        after = seal(self._secret, "week", day.isoformat(), name, first + size) if more else None
        return Week(
            day=day.isoformat(),
            items=items,
            total=total,
            expires_in=max(0, left) // 1000,
            next_cursor=after,
        )

    async def recent(self, minutes: int) -> int:
        """Orders of the last minutes: those at ``now - minutes < t <= now``.

        Orders are kept for an hour; each new order removes those that are older. An order later
        than now comes from a clock that is ahead; it counts when its time has come.
        """
        now = self._clock()
        return await self._commands.recent(now - 60_000 * minutes, now)

    async def rank(self, customer: int) -> Standing | None:
        """Where a customer stands by points; None before the first order.

        Ranks start at 1; customers with equal points share the best of their places (1 2 2 4).
        """
        reply = await self._commands.rank(customer)
        if reply is None:
            return None
        return Standing(player_id=customer, rank=reply[0], points=_whole(reply[1]))

    def _opened(self, cursor: str, which: str) -> list[Any]:
        try:
            name, *rest = unseal(self._secret, cursor)
        except LabError as error:
            raise Refused(400, str(error)) from None
        if name != which:
            raise Refused(400, "This cursor belongs to another list.", "Start at page 1.")
        return rest


def _whole(score: str) -> int:
    number = float(score)
    if not (number.is_integer() and 0 <= number <= LIMIT):
        raise LabError(f"There is a score {score:.30} in the store.", _FOREIGN)
    return int(number)
