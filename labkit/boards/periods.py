"""Days, ISO weeks, months and seasons as keys, in one named time zone.

A period is a half-open span of instants, ``start <= at < end``, between two midnights of the
calendar of its zone. Instants are whole milliseconds since 1970, or aware datetimes. Nothing here
asks a clock or a server.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

from labkit.boards.scores import as_int, shown
from labkit.errors import LabError

Instant = int | datetime
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MS = timedelta(milliseconds=1)
END = (datetime(2101, 1, 1, tzinfo=UTC) - EPOCH) // MS  # time zones are not known beyond
ONE_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Period:
    """One day, week, month or season. Made by `day`, `iso_week`, `month` and `season`.

    Attributes:
        kind: ``day``, ``week``, ``month`` or ``season``.
        name: ``2026-12-28``, ``2026-W53``, ``2026-12``; a season is named by its first day.
            Names of a kind sort as text in the order of time.
        zone: the IANA zone whose calendar decides.
        start, end: milliseconds since 1970; ``end`` is the first one that is not in it.
    """

    kind: str
    name: str
    zone: str
    start: int
    end: int
    _at: Callable[[Instant], Period] = field(repr=False, compare=False)

    def key(self, prefix: str = "lb") -> str:
        """The key of this period: ``lb:week:2026-W53``."""
        return f"{prefix}:{self.kind}:{self.name}"

    def expire_at(self, keep: timedelta) -> int:
        """The deadline, in ms, of a key that is kept so long after the end; for PEXPIREAT.

        Raises:
            LabError: a time below zero, or no timedelta.
        """
        if not isinstance(keep, timedelta) or keep < timedelta(0):
            raise LabError(f"A board cannot be kept for {keep}.", "Take a timedelta of 0 or more.")
        return self.end + keep // MS

    def next(self) -> Period:
        """The period of this kind that begins where this one ends; LabError after 2100."""
        return self._at(self.end)

    def previous(self) -> Period:
        """The period of this kind that ends where this one begins; LabError before 1970."""
        return self._at(self.start - 1)

    def days(self) -> list[Period]:
        """Its days, oldest first: none is missing, and none is of another period.

        Raises:
            LabError: the period began before 1970.
        """
        found = [day(self.start, self.zone)]
        while found[-1].end < self.end:
            found.append(found[-1].next())
        return found

    def last(self, n: int) -> list[Period]:
        """The n periods of this kind of which this is the newest, oldest first.

        Raises:
            LabError: fewer than one; no whole number; one that ended before 1970.
        """
        if (number := as_int(n)) is None or number < 1:
            raise LabError(f"There are no last {shown(n)} periods.", "Ask for 1 or more.")
        found = [self]
        while len(found) < number:
            found.append(found[-1].previous())
        return found[::-1]


def day(at: Instant, zone: str) -> Period:
    """The calendar day that holds an instant: 23, 24 or 25 hours where clocks are changed.

    Where a clock is put back over midnight, a day begins when its date is reached first.

    Raises:
        LabError: a naive datetime, an instant outside 1970 to 2100, a zone that is unknown.
    """
    return _period(
        "day", at, zone, lambda d: (d.isoformat(), d, d + ONE_DAY), partial(day, zone=zone)
    )


def iso_week(at: Instant, zone: str) -> Period:
    """The ISO week that holds an instant, Monday to Sunday: named ``2026-W53``.

    A week belongs to the year of its Thursday (ISO 8601-1:2019, week date), so the year in the
    name may be another than that of the date.

    Raises:
        LabError: as `day`.
    """
    return _period("week", at, zone, _week_of, partial(iso_week, zone=zone))


def month(at: Instant, zone: str) -> Period:
    """The calendar month that holds an instant: named ``2026-12``.

    Raises:
        LabError: as `day`.
    """
    return _period("month", at, zone, _month_of, partial(month, zone=zone))


def season(at: Instant, zone: str, starts: Sequence[date]) -> Period:
    """The season that holds an instant, named by its first day: ``2026-12-01``.

    Args:
        at: milliseconds since 1970, or an aware datetime.
        zone: the IANA zone in which the starts are midnights.
        starts: the first day of each season, in order; the last is the day after the last one.

    Raises:
        LabError: as `day`; starts that are no dates or not in order; an instant in no season.
    """
    if len(starts) < 2 or any(type(d) is not date for d in starts):
        raise LabError("A season needs two dates or more: its start and the next one's.")
    if any(a >= b for a, b in pairwise(starts)):
        raise LabError(
            "The starts of the seasons are not in order.", "Each is after the one before."
        )

    def season_of(d: date) -> tuple[str, date, date]:
        for first, after in pairwise(starts):
            if first <= d < after:
                return first.isoformat(), first, after
        raise LabError(
            f"{d} is in no season: they go from {starts[0]} to {starts[-1] - ONE_DAY}.",
            "Add the start of the next season in time.",
        )

    return _period("season", at, zone, season_of, partial(season, zone=zone, starts=tuple(starts)))


def _week_of(d: date) -> tuple[str, date, date]:
    year, week, weekday = d.isocalendar()
    monday = d - timedelta(days=weekday - 1)
    return f"{year}-W{week:02d}", monday, monday + timedelta(days=7)


def _month_of(d: date) -> tuple[str, date, date]:
    first = d.replace(day=1)
    return f"{d:%Y-%m}", first, (first + timedelta(days=31)).replace(day=1)


def _period(
    kind: str,
    at: Instant,
    zone: str,
    of: Callable[[date], tuple[str, date, date]],
    again: Callable[[Instant], Period],
) -> Period:
    """The period by a rule ``of``: date -> name, first day, day after the last."""
    ms, tz = _milliseconds(at), _zone(zone)
    name, first, after = of((EPOCH + ms * MS).astimezone(tz).date())
    if ms >= _midnight(after, tz):  # the clock was put back over midnight: the date came before
        name, first, after = of(after)
    return Period(kind, name, zone, _midnight(first, tz), _midnight(after, tz), again)


def _midnight(d: date, tz: ZoneInfo) -> int:
    """The first instant of a date, or of the next one where it was left out (Samoa, 2011)."""
    return (datetime(d.year, d.month, d.day, tzinfo=tz) - EPOCH) // MS


def _milliseconds(at: Instant) -> int:
    if isinstance(at, datetime):
        if at.tzinfo is None or at.utcoffset() is None:  # no tzinfo: pandas' NaT as well
            raise LabError(
                f"{at} has no time zone, so it is no instant.",
                "Make it aware: datetime.now(UTC), or .replace(tzinfo=...).",
            )
        at = (at - EPOCH) // MS
    if (ms := as_int(at)) is None:
        what = f"{shown(at, repr)} is no instant."
        raise LabError(what, "Pass whole milliseconds, or an aware datetime.")
    if not 0 <= ms < END:
        what = f"{shown(ms, '{:,}'.format)} ms is not in the years 1970 to 2100."
        raise LabError(what, "Pass milliseconds, not µs." if ms > 10 * END else "")
    return ms


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError, TypeError):
        near = difflib.get_close_matches(str(name), available_timezones(), n=3, cutoff=0.5)
        raise LabError(
            f"There is no time zone {name!r}.", f"Near it: {', '.join(near) or 'none'}."
        ) from None
