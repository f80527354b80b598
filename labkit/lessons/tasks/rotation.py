"""The first exercises of lesson 12: a hand-over, and a sale in its ISO week."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from redis import ResponseError

from labkit.lessons.tasks import RACES, Attempt, Client, NotYetError, Task, same, shown

Board = dict[str, float]
HOUR = 3_600_000
FAR = 4_102_354_800_000  # a deadline ahead of every server's clock: 31 December 2099
FORTNIGHT = 14 * 24 * HOUR
# In Berlin's time: a sale (ms), its week, the end of that week (ms).
WEEKS = {
    "Monday, 28 December 2099, 00:00": (4_102_095_600_000, "2099-W53", 4_102_700_400_000),
    "Sunday, 3 January 2100, 23:59:59.999": (4_102_700_399_999, "2099-W53", 4_102_700_400_000),
    "Monday, 4 January 2100, 00:00": (4_102_700_400_000, "2100-W01", 4_103_305_200_000),
    "Monday, 31 December 2096, noon": (4_007_790_000_000, "2097-W01", 4_008_351_600_000),
    "Wednesday, 18 March 2099, noon": (4_077_514_800_000, "2099-W12", 4_077_903_600_000),
    "Sunday, 29 March 2099, a day of 23 hours": (4_078_461_600_000, "2099-W13", 4_078_504_800_000),
    "Sunday, 25 October 2099, of 25 hours": (4_096_609_200_000, "2099-W43", 4_096_652_400_000),
}
DIED = "the process died between two commands"


class _DiedError(BaseException):
    """The process ends here; not an Exception, so that no function can catch it by accident."""


# ---- hand_over


def hand_over(r: Client, current: str, closed: str) -> bool:
    """Give the board `current` the name `closed`. True when this call did it.

    No score is lost: not those of `current`, not what other clients write meanwhile, and not
    those of a board that has the name `closed` already. When there is such a board, or nobody has
    written to `current`, nothing is done: False. Two jobs may come at the same time. The board
    keeps its time to live, if it has one.
    """
    from redis import ResponseError

    try:
        return bool(r.renamenx(current, closed))
    except ResponseError as error:
        if "no such key" not in str(error):
            raise
        return False


def check_hand_over(attempt: Attempt) -> None:
    """A board, none, a name that is taken; then another job and a writer between the trips."""
    r, current, closed = attempt.server, attempt.key(), attempt.key()
    cases: list[tuple[str, Board, Board, bool, Board, Board]] = [
        ("a board of two players", {"a": 5, "b": 1}, {}, True, {}, {"a": 5, "b": 1}),
        ("nobody has written", {}, {}, False, {}, {}),
        ("the name is taken", {"a": 5}, {"a": 100}, False, {"a": 5}, {"a": 100}),
        ("nobody has written, the name is taken", {}, {"a": 100}, False, {}, {"a": 100}),
        ("a board of 300 players", _many(), {}, True, {}, _many()),
    ]
    for name, now, before, done, left, moved in cases:
        _set(r, {current: now, closed: before})
        if now:
            r.pexpireat(current, FAR)
        seen = attempt(current, closed, given=name)
        compare(r, name, {current: left, closed: moved})
        _says(name, seen, done)
        if done and _deadline(r, closed) != FAR:
            raise NotYetError(f"{name}: the board had a time to live, and has another one now.")
    for race in (_second_job, partial(_second_job, sold=0), _writer):
        for trip in RACES:
            if not race(attempt, current, closed, trip):
                break


def _second_job(attempt: Attempt, current: str, closed: str, trip: int, *, sold: int = 3) -> bool:
    """Whether there was such a trip, before which another job hands over and a new day begins."""
    r, other = attempt.server, list[object]()
    after = "a sale of the new day" if sold else "nobody"
    name = f"another job comes between two commands, and then {after}"
    _set(r, {current: {"a": 100}, closed: {}})

    def meanwhile() -> None:
        other.append(bool(r.exists(current)) and bool(r.renamenx(current, closed)))
        if sold:
            r.zincrby(current, sold, "a")

    seen = attempt(current, closed, given=name, meanwhile=meanwhile, before=trip)
    if other == [True]:
        compare(r, name, {current: {"a": 3} if sold else {}, closed: {"a": 100}})
        _says(name, seen, False)
    return bool(other)


def _writer(attempt: Attempt, current: str, closed: str, trip: int) -> bool:
    r, came = attempt.server, list[int]()
    name = "a sale comes between two commands"
    _set(r, {current: {"a": 100}, closed: {}})

    def meanwhile() -> None:
        came.append(r.zincrby(current, 1, "a"))

    attempt(current, closed, given=name, meanwhile=meanwhile, before=trip)
    found = sum(sum(_scores(r, key).values()) for key in (current, closed))
    if found != 100 + len(came):
        raise NotYetError(
            f"{name}: {100 + len(came)} points were written, and {found:g} are found."
        )
    return bool(came)


# ---- count_sale


def count_sale(r: Client, prefix: str, at: int, book: str, copies: int) -> float:
    """Add the copies of a sale to the board of its ISO week; gives the book's copies this week.

    `at` is the time of the sale, in milliseconds since 1970. The key is the prefix, a colon, and
    the week by the calendar of Berlin: `{prefix}:2026-W53`. It ends 14 days (of 24 hours) after
    its week has ended, whenever the first sale is written and whatever is written later. At no
    moment is there a key without this deadline, even when your process dies between two commands.
    """
    from datetime import datetime, timedelta
    from zoneinfo import ZoneInfo

    berlin = ZoneInfo("Europe/Berlin")
    when = datetime.fromtimestamp(at / 1000, berlin)
    monday = when.date() + timedelta(days=7 - when.weekday())
    end = datetime(monday.year, monday.month, monday.day, tzinfo=berlin)
    key = f"{prefix}:{when:%G-W%V}"
    with r.pipeline() as step:  # MULTI: both or nothing
        step.zincrby(key, copies, book)
        step.expireat(key, int(end.timestamp()) + 14 * 24 * 3600)
        total, _ = step.execute()
    return float(total)


def check_count_sale(attempt: Attempt) -> None:
    """Sales on the edges of weeks, repeated; then a death between the trips."""
    r = attempt.server
    for name, (at, week, end) in WEEKS.items():
        prefix = attempt.key()
        try:
            for words, copies, right in (("", 2, 2), (", again", 1, 3), (", a return", -3, 0)):
                seen = attempt(prefix, at, "a", copies, given=name + words)
                _one_week(r, prefix, name + words, week, end)
                compare(r, name + words, {f"{prefix}:{week}": {"a": right}})
                if not same(seen, right):
                    raise NotYetError(f"{name + words}: gave {shown(seen)}; right is {right}.")
            key = f"{prefix}:{week}"
            for trip in RACES:
                if not died(attempt, (prefix, at, "a", 1), key, trip):
                    break
                if r.exists(key) and _deadline(r, key) != end + FORTNIGHT:
                    raise NotYetError(f"{DIED}: the key is there, and its deadline is not.")
        finally:
            r.unlink(prefix, *r.scan_iter(match=f"{prefix}:*"))


def _one_week(r: Client, prefix: str, name: str, week: str, end: int) -> None:
    keys = sorted(key.removeprefix(f"{prefix}:") for key in r.scan_iter(match=f"{prefix}:*"))
    if keys != [week]:
        raise NotYetError(f"{name}: the boards are {shown(keys)}; right is [{week!r}].")
    left = _deadline(r, f"{prefix}:{week}")
    if left != end + FORTNIGHT:
        days = "never" if left < 0 else f"{(left - end) / 24 / HOUR:.8g} days after the week"
        raise NotYetError(f"{name}: the key ends {days}; right is 14 days after the week.")


def died(attempt: Attempt, args: tuple[object, ...], key: str, trip: int) -> bool:
    """Whether there was such a trip; the process dies before it, with no ``key`` to begin with."""
    attempt.server.unlink(key)
    dead = list[bool]()

    def die() -> None:
        dead.append(True)
        raise _DiedError

    with suppress(_DiedError):  # also where the function goes on: nothing comes through any more
        attempt(*args, given=DIED, meanwhile=die, before=trip)
    return bool(dead)


# ---- what they share


def _many() -> Board:
    return {f"p{n:03d}": float(n) for n in range(300)}


def _set(r: Client, boards: dict[str, Board]) -> None:
    r.unlink(*boards)
    for key, scores in boards.items():
        if scores:
            r.zadd(key, scores)


def _scores(r: Client, key: str) -> Board:
    if (kind := r.type(key)) not in ("zset", "none"):
        raise NotYetError(f"a board became a {kind}.")
    return dict(r.zrange(key, 0, -1, withscores=True))


def compare(r: Client, name: str, right: dict[str, Board]) -> None:
    """Refuse boards that are other than ``right``, key by key."""
    seen = [_scores(r, key) for key in right]
    if seen != list(right.values()):
        wanted = " and ".join(map(shown, right.values()))
        raise NotYetError(f"{name}: stored is {' and '.join(map(shown, seen))}; right is {wanted}.")


def _says(name: str, seen: object, right: bool) -> None:
    if seen is not right:
        raise NotYetError(f"{name}: gave {shown(seen)}; right is {right}.")


def _deadline(r: Client, key: str) -> int:
    """In ms; -1 for never. By whole seconds of PTTL on a server without PEXPIRETIME (6.2)."""
    with suppress(ResponseError):
        return int(r.pexpiretime(key))
    left: int
    left, (seconds, micros) = r.pipeline().pttl(key).time().execute()
    return round(seconds + micros / 1e6 + left / 1e3) * 1000 if left >= 0 else left


TASKS = (
    Task(
        stars=1,
        question=(
            "Everybody writes to one board. At midnight a job gives it another name, and a new "
            "one begins. Write `hand_over`, so that nothing is lost when the job runs twice or "
            "nobody has written."
        ),
        hints=(
            "RENAME overwrites a name that is taken. Is there a form of it that does not?",
            "RENAMENX replies 0 then. A source that is missing is an error with the words *no "
            "such key*: catch it. Looking with EXISTS before leaves a gap.",
        ),
        solution=hand_over,
        check=check_hand_over,
    ),
    Task(
        stars=2,
        question=(
            "Write `count_sale`: the board of a week, right around New Year and in the shop's "
            "time zone, with a deadline that no later sale moves."
        ),
        hints=(
            "`iso_week(at, zone)` of labkit.boards.periods gives the name and the end; "
            "`expire_at` the deadline. Without it: %G-W%V, and the midnight of the next Monday.",
            "An EXPIRE counts from now. Which command takes an instant?",
            "ZINCRBY and PEXPIREAT in one MULTI: r.pipeline(). The first reply is the sum.",
        ),
        solution=count_sale,
        check=check_count_sale,
    ),
)
