"""The checkers of lesson 12 against right answers of several styles and the wrong ones."""

# ruff: noqa: ARG001 (an answer has the arguments of its stub, used or not)

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from redis import ResponseError, WatchError

from labkit.boards.periods import iso_week
from labkit.lessons.exercises import exercise
from labkit.tests.lessons.judging import assert_refused, assert_stub_and_solution_are_one

Client = Any  # an answer is written without types
Function = Callable[..., Any]
Sale = tuple[str, str, int]
BERLIN = ZoneInfo("Europe/Berlin")
KEEP = 14 * 24 * 3_600_000


# ---- hand_over: right


def by_script(r: Client, current: str, closed: str) -> bool:
    lua = """if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
    return redis.call('RENAMENX', KEYS[1], KEYS[2])"""
    return bool(r.eval(lua, 2, current, closed))


def watched(r: Client, current: str, closed: str) -> bool:
    with r.pipeline() as step:
        step.watch(current, closed)
        if not step.exists(current) or step.exists(closed):
            return False
        try:
            step.multi()
            step.rename(current, closed).execute()
        except WatchError:
            return watched(r, current, closed)
        return True


def any_error(r: Client, current: str, closed: str) -> bool:
    try:
        return bool(r.execute_command("RENAMENX", current, closed))
    except ResponseError:
        return False


def both_in_one_request(r: Client, current: str, closed: str) -> bool:
    step = r.pipeline(transaction=False).exists(current).renamenx(current, closed)
    there, moved = step.execute(raise_on_error=False)
    return bool(there) and moved is True


# ---- hand_over: wrong


def one_request_that_raises(r: Client, current: str, closed: str) -> bool:
    step = r.pipeline(transaction=False).exists(current).renamenx(current, closed)
    return step.execute()[1] is True


def looks_for_the_board_only(r: Client, current: str, closed: str) -> bool:
    return bool(r.exists(current)) and bool(r.renamenx(current, closed))


def overwrites(r: Client, current: str, closed: str) -> bool:
    try:
        return bool(r.rename(current, closed))
    except ResponseError:
        return False


def expects_no_quiet_day(r: Client, current: str, closed: str) -> bool:
    return bool(r.renamenx(current, closed))


def looks_first(r: Client, current: str, closed: str) -> bool:
    if not r.exists(current) or r.exists(closed):
        return False
    try:
        return bool(r.rename(current, closed))
    except ResponseError:
        return False


def copies(r: Client, current: str, closed: str) -> bool:
    done = bool(r.copy(current, closed)) if r.exists(current) else False
    if done:
        r.delete(current)
    return done


def union(r: Client, current: str, closed: str) -> bool:
    if not r.exists(current) or r.exists(closed):
        return False
    with r.pipeline() as step:
        step.zunionstore(closed, [current]).delete(current).execute()
    return True


def always_true(r: Client, current: str, closed: str) -> bool:
    any_error(r, current, closed)
    return True


def one_or_zero(r: Client, current: str, closed: str) -> Any:
    return int(any_error(r, current, closed))


def wrong_way(r: Client, current: str, closed: str) -> bool:
    return any_error(r, closed, current)


def nothing(r: Client, *args: Any) -> None:
    return None


# ---- count_sale: right


def by_periods(r: Client, prefix: str, at: int, book: str, copies: int) -> Any:
    week = iso_week(at, "Europe/Berlin")
    key = f"{prefix}:{week.name}"
    with r.pipeline() as step:
        step.zincrby(key, copies, book)
        step.pexpireat(key, week.expire_at(timedelta(days=14)))
        return step.execute()[0]


def by_isocalendar(r: Client, prefix: str, at: int, book: str, copies: int) -> Any:
    year, week, _ = datetime.fromtimestamp(at / 1000, BERLIN).isocalendar()
    after = date.fromisocalendar(year, week, 1) + timedelta(days=7)
    end = datetime(after.year, after.month, after.day, tzinfo=BERLIN).timestamp()
    lua = """local sum = redis.call('ZINCRBY', KEYS[1], ARGV[1], ARGV[2])
    redis.call('PEXPIREAT', KEYS[1], ARGV[3])
    return sum"""
    key = f"{prefix}:{year}-W{week:02d}"
    return int(r.eval(lua, 1, key, copies, book, int(end * 1000) + KEEP))


def set_once(r: Client, prefix: str, at: int, book: str, copies: int) -> Any:
    week = iso_week(at, "Europe/Berlin")
    key = f"{prefix}:{week.name}"
    with r.pipeline() as step:
        step.zincrby(key, copies, book).pexpireat(key, week.end + KEEP, nx=True)
        step.zscore(key, book)
        return step.execute()[-1]


# ---- count_sale: wrong


def _write(r: Client, key: str, copies: int, book: str, deadline: int) -> Any:
    with r.pipeline() as step:
        step.zincrby(key, copies, book).pexpireat(key, deadline)
        return step.execute()[0]


def _named(form: str) -> Function:
    def answer(r: Client, prefix: str, at: int, book: str, copies: int) -> Any:
        name = datetime.fromtimestamp(at / 1000, BERLIN).strftime(form)
        end = iso_week(at, "Europe/Berlin").end
        return _write(r, f"{prefix}:{name}", copies, book, end + KEEP)

    return answer


def in_utc(r: Client, prefix: str, at: int, book: str, copies: int) -> Any:
    week = iso_week(at, "UTC")
    return _write(r, f"{prefix}:{week.name}", copies, book, week.end + KEEP)


def from_the_sale(r: Client, prefix: str, at: int, book: str, copies: int) -> Any:
    key = f"{prefix}:{iso_week(at, 'Europe/Berlin').name}"
    return _write(r, key, copies, book, at + KEEP)


def from_now(r: Client, prefix: str, at: int, book: str, copies: int) -> Any:
    key = f"{prefix}:{iso_week(at, 'Europe/Berlin').name}"
    with r.pipeline() as step:
        step.zincrby(key, copies, book).expire(key, 14 * 24 * 3600)
        return step.execute()[0]


def seven_days_of_24_hours(r: Client, prefix: str, at: int, book: str, copies: int) -> Any:
    week = iso_week(at, "Europe/Berlin")
    end = week.start + 7 * 24 * 3_600_000
    return _write(r, f"{prefix}:{week.name}", copies, book, end + KEEP)


def no_deadline(r: Client, prefix: str, at: int, book: str, copies: int) -> Any:
    return r.zincrby(f"{prefix}:{iso_week(at, 'Europe/Berlin').name}", copies, book)


def two_requests(r: Client, prefix: str, at: int, book: str, copies: int) -> Any:
    week = iso_week(at, "Europe/Berlin")
    key = f"{prefix}:{week.name}"
    total = r.zincrby(key, copies, book)
    r.pexpireat(key, week.end + KEEP)
    return total


def one_request_without_multi(r: Client, prefix: str, at: int, book: str, copies: int) -> Any:
    week = iso_week(at, "Europe/Berlin")
    key = f"{prefix}:{week.name}"
    step = r.pipeline(transaction=False).zincrby(key, copies, book).pexpireat(key, week.end + KEEP)
    return step.execute()[0]


def tries_again(r: Client, prefix: str, at: int, book: str, copies: int) -> Any:
    """As if a process that has died could go on."""
    week = iso_week(at, "Europe/Berlin")
    key = f"{prefix}:{week.name}"
    try:
        return r.zincrby(key, copies, book)
    finally:
        for _ in range(3):
            with suppress(BaseException):
                r.pexpireat(key, week.end + KEEP)


def calendar_days(r: Client, prefix: str, at: int, book: str, copies: int) -> Any:
    week = iso_week(at, "Europe/Berlin")
    ends = datetime.fromtimestamp(week.end / 1000, BERLIN) + timedelta(days=14)
    return _write(r, f"{prefix}:{week.name}", copies, book, int(ends.timestamp()) * 1000)


def a_moment_early(r: Client, prefix: str, at: int, book: str, copies: int) -> Any:
    week = iso_week(at, "Europe/Berlin")
    return _write(r, f"{prefix}:{week.name}", copies, book, week.end + KEEP - 499)


def deadline_first(r: Client, prefix: str, at: int, book: str, copies: int) -> Any:
    week = iso_week(at, "Europe/Berlin")
    key = f"{prefix}:{week.name}"
    with r.pipeline() as step:
        step.pexpireat(key, week.end + KEEP).zincrby(key, copies, book)
        return step.execute()[1]


def overwrites_the_score(r: Client, prefix: str, at: int, book: str, copies: int) -> Any:
    week = iso_week(at, "Europe/Berlin")
    key = f"{prefix}:{week.name}"
    with r.pipeline() as step:
        step.zadd(key, {book: copies}).pexpireat(key, week.end + KEEP).zscore(key, book)
        return step.execute()[2]


def gives_true(r: Client, prefix: str, at: int, book: str, copies: int) -> Any:
    by_periods(r, prefix, at, book, copies)
    return True


def forgets_zero(r: Client, prefix: str, at: int, book: str, copies: int) -> Any:
    week = iso_week(at, "Europe/Berlin")
    total = by_periods(r, prefix, at, book, copies)
    r.zremrangebyscore(f"{prefix}:{week.name}", "-inf", 0)
    return total


def other_prefix(r: Client, prefix: str, at: int, book: str, copies: int) -> Any:
    return by_periods(r, f"{prefix}:week", at, book, copies)


def one_key(r: Client, prefix: str, at: int, book: str, copies: int) -> Any:
    return _write(r, prefix, copies, book, iso_week(at, "Europe/Berlin").end + KEEP)


# ---- file_event: right


def sismember_script(
    r: Client, board: str, seen: str, late: str, sale: Sale, now: int, closes: int
) -> Any:
    lua = """if redis.call('SISMEMBER', KEYS[1], ARGV[1]) == 1 then return 'again' end
    redis.call('ZINCRBY', KEYS[2], ARGV[3], ARGV[2])
    redis.call('SADD', KEYS[1], ARGV[1])
    return ARGV[4]"""
    key, answer = (board, "counted") if now < closes else (late, "late")
    return r.eval(lua, 2, seen, key, *sale, answer)


def watched_event(
    r: Client, board: str, seen: str, late: str, sale: Sale, now: int, closes: int
) -> Any:
    event, book, copies = sale
    key, answer = (board, "counted") if now < closes else (late, "late")
    with r.pipeline() as step:
        step.watch(seen)
        if step.sismember(seen, event):
            return "again"
        try:
            step.multi()
            step.sadd(seen, event).zincrby(key, copies, book).execute()
        except WatchError:
            return watched_event(r, board, seen, late, sale, now, closes)
    return answer


# ---- file_event: wrong


def _file(r: Client, key: str, seen: str, sale: Sale) -> bool:
    lua = """if redis.call('SADD', KEYS[1], ARGV[1]) == 0 then return 0 end
    redis.call('ZINCRBY', KEYS[2], ARGV[3], ARGV[2])
    return 1"""
    return bool(r.eval(lua, 2, seen, key, *sale))


def no_ids(r: Client, board: str, seen: str, late: str, sale: Sale, now: int, closes: int) -> Any:
    r.zincrby(board if now < closes else late, sale[2], sale[1])
    return "counted" if now < closes else "late"


def edge_is_open(
    r: Client, board: str, seen: str, late: str, sale: Sale, now: int, closes: int
) -> Any:
    new = _file(r, board if now <= closes else late, seen, sale)
    return ("counted" if now <= closes else "late") if new else "again"


def as_text(r: Client, board: str, seen: str, late: str, sale: Sale, now: int, closes: int) -> Any:
    lua = """if redis.call('SADD', KEYS[2], ARGV[1]) == 0 then return 'again' end
    local open = ARGV[4] < ARGV[5]
    redis.call('ZINCRBY', open and KEYS[1] or KEYS[3], ARGV[3], ARGV[2])
    return open and 'counted' or 'late'"""
    return r.eval(lua, 3, board, seen, late, *sale, now, closes)


def ids_of_each_side(
    r: Client, board: str, seen: str, late: str, sale: Sale, now: int, closes: int
) -> Any:
    side = "counted" if now < closes else "late"
    key = board if now < closes else late
    return side if _file(r, key, seen, (f"{side}:{sale[0]}", *sale[1:])) else "again"


def book_is_the_id(
    r: Client, board: str, seen: str, late: str, sale: Sale, now: int, closes: int
) -> Any:
    new = _file(r, board if now < closes else late, seen, (sale[1], *sale[1:]))
    return ("counted" if now < closes else "late") if new else "again"


def id_first(r: Client, board: str, seen: str, late: str, sale: Sale, now: int, closes: int) -> Any:
    if not r.sadd(seen, sale[0]):
        return "again"
    return no_ids(r, board, seen, late, sale, now, closes)


def id_last(r: Client, board: str, seen: str, late: str, sale: Sale, now: int, closes: int) -> Any:
    if r.sismember(seen, sale[0]):
        return "again"
    said = no_ids(r, board, seen, late, sale, now, closes)
    r.sadd(seen, sale[0])
    return said


def undone(r: Client, board: str, seen: str, late: str, sale: Sale, now: int, closes: int) -> Any:
    """A process that has died undoes nothing."""
    if not r.sadd(seen, sale[0]):
        return "again"
    try:
        return no_ids(r, board, seen, late, sale, now, closes)
    except BaseException:
        r.srem(seen, sale[0])
        raise


def corrected_afterwards(
    r: Client, board: str, seen: str, late: str, sale: Sale, now: int, closes: int
) -> Any:
    event, book, copies = sale
    key = board if now < closes else late
    if r.sismember(seen, event):
        return "again"
    step = r.pipeline(transaction=False).sadd(seen, event).zincrby(key, copies, book)
    if not step.execute()[0]:
        r.zincrby(key, -copies, book)
        return "again"
    return "counted" if now < closes else "late"


def looks_then_multi(
    r: Client, board: str, seen: str, late: str, sale: Sale, now: int, closes: int
) -> Any:
    if r.sismember(seen, sale[0]):
        return "again"
    with r.pipeline() as step:
        step.sadd(seen, sale[0]).zincrby(board if now < closes else late, sale[2], sale[1])
        step.execute()
    return "counted" if now < closes else "late"


def drops_late_ones(
    r: Client, board: str, seen: str, late: str, sale: Sale, now: int, closes: int
) -> Any:
    if now >= closes:
        return "again" if r.sismember(seen, sale[0]) else "late"
    return "counted" if _file(r, board, seen, sale) else "again"


def all_on_the_board(
    r: Client, board: str, seen: str, late: str, sale: Sale, now: int, closes: int
) -> Any:
    new = _file(r, board, seen, sale)
    return ("counted" if now < closes else "late") if new else "again"


def bytes_of_words(
    r: Client, board: str, seen: str, late: str, sale: Sale, now: int, closes: int
) -> Any:
    return sismember_script(r, board, seen, late, sale, now, closes).encode()


RIGHT: dict[str, list[Function]] = {
    "hand_over": [by_script, watched, any_error, both_in_one_request],
    "count_sale": [by_periods, by_isocalendar, set_once],
    "file_event": [sismember_script, watched_event],
}
WRONG: list[tuple[str, Function, str]] = [
    ("hand_over", overwrites, "the name is taken: stored is {} and {'a': 5.0}; right is {'a': 5}"),
    ("hand_over", expects_no_quiet_day, "nobody has written: your function raised ResponseError"),
    ("hand_over", looks_first, "another job comes between two commands"),
    ("hand_over", one_request_that_raises, "nobody has written: your function raised ResponseErr"),
    ("hand_over", looks_for_the_board_only, "and then nobody: your function raised ResponseErr"),
    ("hand_over", copies, "a sale comes between two commands"),
    ("hand_over", union, "the board had a time to live, and has another one now"),
    ("hand_over", always_true, "nobody has written: gave True; right is False."),
    ("hand_over", one_or_zero, "a board of two players: gave 1; right is True."),
    ("hand_over", wrong_way, "a board of two players: stored is {"),
    ("hand_over", nothing, "a board of two players: stored is {"),
    ("count_sale", _named("%Y-W%V"), "Sunday, 3 January 2100, 23:59:59.999: the boards are ['21"),
    ("count_sale", _named("%Y-W%W"), "right is ['2099-W53']"),
    ("count_sale", _named("%G-%V"), "the boards are ['2099-53']; right is ['2099-W53']"),
    ("count_sale", _named("%G-W%V-%u"), "the boards are ['2099-W53-1']"),
    ("count_sale", in_utc, "Monday, 28 December 2099, 00:00: the boards are ['2099-W52']"),
    ("count_sale", from_the_sale, "the key ends 7 days after the week; right is 14 days"),
    ("count_sale", from_now, "days after the week; right is 14 days after the week."),
    ("count_sale", seven_days_of_24_hours, "Sunday, 29 March 2099, a day of 23 hours: the key en"),
    ("count_sale", no_deadline, "the key ends never; right is 14 days after the week."),
    ("count_sale", two_requests, "the process died between two commands: the key is there, and"),
    ("count_sale", one_request_without_multi, "the process died between two commands: the key is"),
    ("count_sale", tries_again, "the process died between two commands: the key is there, and"),
    (
        "count_sale",
        calendar_days,
        "Wednesday, 18 March 2099, noon: the key ends 13.958333 da",
    ),
    ("count_sale", calendar_days, "days after the week; right is 14 days"),
    ("count_sale", a_moment_early, "the key ends 13.999994 days after the week; right is 14"),
    ("count_sale", deadline_first, "the key ends never; right is 14 days after the week."),
    ("count_sale", overwrites_the_score, "00:00, again: stored is {'a': 1.0}; right is {'a': 3}"),
    ("count_sale", gives_true, "gave True; right is 2."),
    ("count_sale", forgets_zero, "a return: the boards are []; right is ['2099-W53']"),
    ("count_sale", other_prefix, "the boards are ['week:2099-W53']; right is ['2099-W53']"),
    ("count_sale", one_key, "the boards are []; right is ['2099-W53']"),
    ("count_sale", nothing, "the boards are []; right is ['2099-W53']"),
    ("file_event", no_ids, "the same sale again: stored is {'a': 4.0} and {}; right is {'a': 2}"),
    ("file_event", edge_is_open, "in the millisecond of the close: stored is"),
    ("file_event", as_text, "a sale in time: stored is {} and {'a': 2.0}"),
    ("file_event", ids_of_each_side, "the same sale after the close: stored is"),
    ("file_event", book_is_the_id, "an equal sale with another id: stored is {'a': 2.0}"),
    ("file_event", id_first, "the process died between two commands, and the sale was sent again"),
    ("file_event", id_last, "two clients send the same sale, the second between two commands of"),
    ("file_event", undone, "the process died between two commands, and the sale was sent again"),
    ("file_event", corrected_afterwards, "the process died between two commands, and the sale"),
    ("file_event", looks_then_multi, "two clients send the same sale"),
    ("file_event", drops_late_ones, "in the millisecond of the close: stored is"),
    ("file_event", all_on_the_board, "in the millisecond of the close: stored is"),
    ("file_event", bytes_of_words, "a sale in time: gave b'counted'; right is 'counted'."),
    ("file_event", nothing, "a sale in time: stored is {} and {}; right is {'a': 2} and {}"),
]


@pytest.mark.parametrize(("name", "answer"), [(n, a) for n, some in RIGHT.items() for a in some])
def test_right_answers_of_every_style(name: str, answer: Function, either: Client) -> None:
    assert exercise(name).judge(answer, either) == "Right."
    assert either.dbsize() == 0


@pytest.mark.parametrize(("name", "answer", "reason"), WRONG)
def test_wrong_answers_are_told_what_was_seen(
    name: str, answer: Function, reason: str, either: Client
) -> None:
    assert_refused(name, answer, reason, either)


@pytest.mark.parametrize("name", RIGHT)
def test_stub_and_solution_are_one(
    name: str, either: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_stub_and_solution_are_one(name, either, capsys)


def test_the_weeks_of_the_checker_are_those_of_the_calendar() -> None:
    from labkit.lessons.tasks.rotation import FAR, WEEKS

    for words, (at, name, end) in WEEKS.items():
        week = iso_week(at, "Europe/Berlin")
        assert (week.name, week.end) == (name, end)
        when = datetime.fromtimestamp(at / 1000, BERLIN)
        assert f"{when:%A}, {when.day} {when:%B %Y}" in words
    assert datetime.fromtimestamp(FAR / 1000, UTC).year == 2099
