"""Periods against the calendar of the standard library, for every zone, 1970 to 2100."""

from __future__ import annotations

import copy
import pickle
from bisect import bisect_right
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from labkit.boards.periods import END, EPOCH, Period, day, iso_week, month, season
from labkit.errors import LabError

Maker = Callable[[Any, str], Period]
HOUR, DAY = 3_600_000, 86_400_000
QUARTERS = [date(1969 + n // 4, 1 + n % 4 * 3, 1) for n in range(133 * 4)]


def quarter(at: Any, zone: str) -> Period:
    return season(at, zone, QUARTERS)


MAKERS: list[Maker] = [day, iso_week, month, quarter]
ZONES = sorted(available_timezones())
# Clocks put back over midnight, half hours, a day left out, the far ends of the earth.
ODD = [
    "America/St_Johns",
    "America/Sao_Paulo",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Asia/Beirut",
]
ODD += ["Pacific/Kiritimati", "Etc/GMT+12", "America/Havana", "Africa/Monrovia", "Europe/Berlin"]
zones = st.sampled_from(ODD) | st.sampled_from(ZONES)
# Far enough from the ends that the neighbours are inside as well.
instants = st.integers(400 * DAY, END - 400 * DAY)
many = settings(deadline=None, max_examples=600)


def utc(year: int, month: int, day: int, hour: int = 0, minute: int = 0) -> int:
    return (datetime(year, month, day, hour, minute, tzinfo=UTC) - EPOCH) // timedelta(
        milliseconds=1
    )


def local(at: int, zone: str) -> datetime:
    return (EPOCH + timedelta(milliseconds=at)).astimezone(ZoneInfo(zone))


def name_of(kind: str, d: date) -> str:
    """By the standard library, and nothing of the code under test."""
    if kind == "week":
        return "{}-W{:02d}".format(*d.isocalendar())
    if kind == "season":
        return QUARTERS[bisect_right(QUARTERS, d) - 1].isoformat()
    return d.isoformat()[: {"day": 10, "month": 7}[kind]]


@many
@given(instants, zones)
@example(utc(2027, 1, 1), "UTC")
@example(utc(1987, 10, 25, 2, 40), "America/St_Johns")  # its clock says 00:10, then 23:10 again
@example(utc(1987, 10, 25, 2, 31), "America/St_Johns")
def test_an_instant_is_in_one_period_of_each_kind(at: int, zone: str) -> None:
    for make in MAKERS:
        found = make(at, zone)
        assert found.start <= at < found.end
        for neighbour in (found.previous(), found.next()):
            assert neighbour.name != found.name
            assert not neighbour.start <= at < neighbour.end
        for edge in (found.start, found.end - 1):
            assert make(edge, zone) == found


@many
@given(instants, zones)
def test_it_has_the_name_that_the_calendar_gives(at: int, zone: str) -> None:
    dates = {local(at + shift, zone).date() for shift in range(-2 * HOUR, 2 * HOUR + 1, HOUR)}
    here = local(at, zone).date()
    for make in MAKERS:
        found = make(at, zone)
        assert found.name == name_of(found.kind, here) or len(dates) == 2  # near midnight: below
        assert found.name in {name_of(found.kind, d) for d in dates}


@many
@given(instants, zones)
def test_it_begins_when_its_date_is_reached_first(at: int, zone: str) -> None:
    for make in MAKERS:
        start = make(at, zone).start
        first = local(start, zone).date()
        assert local(start - 1, zone).date() < first
        before = [local(start - n * HOUR // 4, zone).date() for n in range(1, 13)]
        assert max(before) < first
        assert name_of(make(at, zone).kind, first) == make(at, zone).name


@many
@given(instants, zones, st.sampled_from(MAKERS))
def test_neighbours_touch_and_their_keys_sort_by_time(at: int, zone: str, make: Maker) -> None:
    row = make(at, zone).last(4)
    row += [row[-1].next(), row[-1].next().next()]
    assert [p.end for p in row[:-1]] == [p.start for p in row[1:]]
    keys = [p.key() for p in row]
    assert keys == sorted(set(keys))
    assert [p.previous() for p in row[1:]] == row[:-1]


@settings(many, max_examples=100)
@given(instants, zones)
def test_days_make_up_every_longer_period(at: int, zone: str) -> None:
    for make in MAKERS:
        found = make(at, zone)
        days = found.days()
        assert (days[0].start, days[-1].end) == (found.start, found.end)
        assert all(a.end == b.start for a, b in pairwise(days))
        assert all(make(d.start, zone) == found for d in days)


def test_every_day_of_131_years_has_the_week_of_isocalendar() -> None:
    d, seen = date(1970, 1, 1), dict[str, list[date]]()
    while d < date(2101, 1, 1):
        name = iso_week(utc(d.year, d.month, d.day, 12), "UTC").name
        assert name == "{}-W{:02d}".format(*d.isocalendar()) == d.strftime("%G-W%V")
        seen.setdefault(name, []).append(d)
        d += timedelta(days=1)
    whole = list(seen.values())[1:-1]
    assert all(len(days) == 7 and days[0].weekday() == 0 for days in whole)
    assert list(seen) == sorted(seen)


@pytest.mark.parametrize(
    ("d", "name"),
    [
        ((2026, 8, 23), "2026-W34"),
        ((2026, 12, 27), "2026-W52"),
        ((2026, 12, 28), "2026-W53"),
        ((2027, 1, 3), "2026-W53"),
        ((2027, 1, 4), "2027-W01"),
        ((2024, 12, 30), "2025-W01"),
        ((2021, 1, 3), "2020-W53"),
    ],
)
def test_weeks_around_new_year(d: tuple[int, int, int], name: str) -> None:
    assert iso_week(datetime(*d, 12, tzinfo=UTC), "UTC").key() == f"lb:week:{name}"


def test_one_instant_two_days() -> None:
    at = datetime(2027, 1, 1, 0, 30, tzinfo=ZoneInfo("Pacific/Auckland"))
    assert day(at, "Pacific/Auckland").key("{shop}") == "{shop}:day:2027-01-01"
    assert day(at, "America/Los_Angeles").name == "2026-12-31"
    assert month(at, "America/Los_Angeles").name == "2026-12"
    assert iso_week(at, "Pacific/Auckland").name == "2026-W53"


@pytest.mark.parametrize(
    ("d", "zone", "hours"),
    [
        ((2026, 3, 29), "Europe/Berlin", 23),
        ((2026, 10, 25), "Europe/Berlin", 25),
        ((2026, 10, 26), "Europe/Berlin", 24),
        ((2026, 4, 5), "Australia/Lord_Howe", 24.5),
        ((2018, 11, 4), "America/Sao_Paulo", 23),  # it begins at 01:00
        ((1987, 10, 25), "America/St_Johns", 25),  # from 00:00 on, back to 23:01 at 00:01
        ((2011, 12, 29), "Pacific/Apia", 24),
    ],
)
def test_hours_of_a_day(d: tuple[int, int, int], zone: str, hours: float) -> None:
    found = day(datetime(*d, 12, tzinfo=ZoneInfo(zone)), zone)
    assert found.name == date(*d).isoformat()
    assert (found.end - found.start) / HOUR == hours


def test_the_day_that_samoa_left_out() -> None:
    after = day(datetime(2011, 12, 31, 12, tzinfo=ZoneInfo("Pacific/Apia")), "Pacific/Apia")
    assert after.previous().name == "2011-12-29"
    assert len(month(after.start, "Pacific/Apia").days()) == 30


def test_a_season_is_what_its_starts_say() -> None:
    starts = [date(2026, 3, 1), date(2026, 9, 1), date(2027, 3, 1)]
    found = season(datetime(2026, 9, 1, tzinfo=UTC), "UTC", starts)
    assert found.key() == "lb:season:2026-09-01"
    assert (found.start, found.end) == (utc(2026, 9, 1), utc(2027, 3, 1))
    assert found.previous().name == "2026-03-01"
    starts[1] = date(2026, 10, 1)  # the caller's own list may change afterwards
    assert found.previous().end == found.start
    with pytest.raises(
        LabError, match=r"2027-03-01 is in no season: they go from 2026-03-01 to 20"
    ):
        found.next()


def test_a_deadline_is_counted_from_the_end() -> None:
    found = day(utc(2026, 10, 25, 12), "Europe/Berlin")
    assert found.expire_at(timedelta(hours=48)) == found.end + 48 * HOUR
    assert found.expire_at(timedelta(0)) == found.end
    for keep, says in ((timedelta(hours=-24), "-1 day"), (5, "5. Take a timedelta")):
        with pytest.raises(LabError, match=f"cannot be kept for {says}"):
            found.expire_at(keep)  # type: ignore[arg-type]


@pytest.mark.parametrize("make", MAKERS)
def test_ms_and_aware_datetimes_are_the_same(make: Maker) -> None:
    at = datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin"))
    ms = (at - EPOCH) // timedelta(milliseconds=1)
    assert ms == utc(2026, 10, 25, 1, 30)
    assert make(at, "Asia/Tokyo") == make(ms, "Asia/Tokyo")
    assert make(at + timedelta(microseconds=999), "UTC") == make(ms, "UTC")
    assert make(np.int64(ms), "UTC") == make(pd.Timestamp(at), "UTC") == make(ms, "UTC")
    assert type(make(np.int64(ms), "UTC").start) is int


def test_the_first_and_the_last_instant() -> None:
    assert day(0, "America/Los_Angeles").name == "1969-12-31"
    assert day(END - 1, "UTC").name == "2100-12-31"
    assert month(END - 1, "Pacific/Auckland").name == "2101-01"
    for zone, days in {"UTC": 31, "America/Los_Angeles": 31}.items():
        assert len(month(END - 1, zone).days()) == days
    assert len(day(END - 1, "UTC").days()) == len(day(0, "UTC").days()) == 1
    for outside in (day(END - 1, "UTC").next, day(0, "UTC").previous, iso_week(0, "UTC").days):
        with pytest.raises(LabError, match=r"not in the years 1970 to 2100\.$"):
            outside()


@pytest.mark.parametrize(
    ("at", "says"),
    [
        (datetime(2026, 12, 28), "has no time zone, so it is no instant"),
        (-1, "-1 ms is not in the years 1970 to 2100"),
        (END, "is not in the years"),
        (1_793_534_400_000_000, "000 ms is not in the years 1970 to 2100. Pass milliseconds, not"),
        pytest.param(10**5000, "so long a number ms is not in the years", id="long"),
        (pd.NaT, "NaT has no time zone, so it is no instant"),
        (np.timedelta64(1, "D"), "is no instant"),
        (datetime(2101, 1, 1, tzinfo=UTC), "is not in the years"),
        (datetime(1969, 12, 31, tzinfo=UTC), "is not in the years"),
        (1.5, "1.5 is no instant"),
        (True, "True is no instant"),
        ("2026-12-28", "'2026-12-28' is no instant"),
        (date(2026, 12, 28), "is no instant"),
        (None, "None is no instant"),
    ],
)
def test_what_is_no_instant_is_refused(at: Any, says: str) -> None:
    for make in MAKERS:
        with pytest.raises(LabError) as error:
            make(at, "UTC")
        assert says in str(error.value)


@pytest.mark.parametrize("zone", ["Europe/Berln", "America", "../etc/passwd", "", None, 5, "CEST"])
def test_an_unknown_zone_is_refused(zone: Any) -> None:
    with pytest.raises(LabError, match="There is no time zone"):
        day(0, zone)


def test_a_near_zone_is_named() -> None:
    with pytest.raises(LabError, match="Near it: Europe/Berlin"):
        day(0, "Europe/Berln")


@pytest.mark.parametrize(
    ("starts", "says"),
    [
        ([], "needs two dates"),
        ([date(2026, 1, 1)], "needs two dates"),
        ([datetime(2026, 1, 1), datetime(2027, 1, 1)], "needs two dates"),
        (["2026-01-01", "2027-01-01"], "needs two dates"),
        ([date(2026, 2, 1), date(2026, 1, 1)], "not in order"),
        ([date(2026, 1, 1), date(2026, 1, 1)], "not in order"),
        ([date(2026, 1, 1), date(2026, 2, 1)], "is in no season"),
    ],
)
def test_seasons_that_are_none_are_refused(starts: Any, says: str) -> None:
    with pytest.raises(LabError, match=says):
        season(utc(2027, 1, 1), "UTC", starts)


@pytest.mark.parametrize("n", [0, -1, 2.0, True, "2"])
def test_last_of_none_is_refused(n: Any) -> None:
    with pytest.raises(LabError, match=f"no last {n} periods"):
        day(utc(2026, 1, 1), "UTC").last(n)


@pytest.mark.parametrize("make", MAKERS)
def test_a_period_is_a_value(make: Maker) -> None:
    found = make(utc(2026, 12, 28), "Europe/Berlin")
    assert {found, copy.deepcopy(found), pickle.loads(pickle.dumps(found))} == {found}
    assert pickle.loads(pickle.dumps(found)).next() == found.next()
    assert "partial" not in repr(found)
    with pytest.raises(AttributeError):
        found.start = 0  # type: ignore[misc]
