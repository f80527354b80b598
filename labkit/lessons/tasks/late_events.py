"""The third exercise of lesson 12: events that come late, or twice, count once."""

from __future__ import annotations

from labkit.lessons.tasks import RACES, Attempt, Client, NotYetError, Task, shown
from labkit.lessons.tasks.rotation import DIED, Board, compare, died

# A sale (id, book, copies), when it arrives, when the board closes, the answer.
FILED: list[tuple[str, tuple[str, str, int], int, int, str]] = [
    ("a sale in time", ("s1", "a", 2), 500, 1_000, "counted"),
    ("the same sale again", ("s1", "a", 2), 501, 1_000, "again"),
    ("the same sale after the close", ("s1", "a", 2), 2_000, 1_000, "again"),
    ("an equal sale with another id", ("s2", "a", 2), 502, 1_000, "counted"),
    ("a return", ("s3", "a", -1), 503, 1_000, "counted"),
    ("in the last millisecond", ("s4", "b", 1), 999, 1_000, "counted"),
    ("in the millisecond of the close", ("s5", "b", 1), 1_000, 1_000, "late"),
    ("a late sale", ("s6", "a", 3), 1_000, 999, "late"),
    ("the late sale again", ("s6", "a", 3), 5_000, 999, "again"),
    ("times of 13 digits", ("s7", "c", 1), 4_102_355_999_999, 4_102_356_000_000, "counted"),
]


def file_event(
    r: Client, board: str, seen: str, late: str, sale: tuple[str, str, int], now: int, closes: int
) -> str:
    """Count a sale once: on the board while it is open, afterwards among the corrections.

    `board` and `late` are sorted sets of copies by book, `seen` is a plain set of ids. A sale is
    (id, book, copies) and arrives at `now`; the board closes at `closes`, and does not move from
    that millisecond on. Gives "counted", "late", or, for an id that was filed before, on
    whichever side, "again". A sale is filed wholly or not at all, even when two clients send it
    at once, or when your process dies between two commands and the sale is sent again.
    """
    script = """
    if redis.call('SADD', KEYS[2], ARGV[1]) == 0 then return 'again' end
    local open = tonumber(ARGV[4]) < tonumber(ARGV[5])
    redis.call('ZINCRBY', open and KEYS[1] or KEYS[3], ARGV[3], ARGV[2])
    return open and 'counted' or 'late'
    """
    return str(r.eval(script, 3, board, seen, late, *sale, now, closes))


def check_file_event(attempt: Attempt) -> None:
    """Sales in a row; then the same sale twice at once, and a death between the trips."""
    r, keys = attempt.server, (attempt.key(), attempt.key(), attempt.key())
    board: Board = {}
    late: Board = {}
    for name, sale, now, closes, answer in FILED:
        seen = attempt(*keys, sale, now, closes, given=name)
        if answer != "again":
            side = board if answer == "counted" else late
            side[sale[1]] = side.get(sale[1], 0) + sale[2]
        compare(r, name, {keys[0]: board, keys[2]: late})
        if seen != answer:
            raise NotYetError(f"{name}: gave {shown(seen)}; right is {answer!r}.")
    for now, where in ((5, "counted"), (15, "late")):
        for race in (_sent_twice, _sent_again):
            for trip in RACES:
                if not race(attempt, keys, now, where, trip):
                    break


def _sent_twice(
    attempt: Attempt, keys: tuple[str, str, str], now: int, side: str, trip: int
) -> bool:
    """Whether there was such a trip, before which another client files the same sale."""
    r, others = attempt.server, list[object]()
    name = "two clients send the same sale, the second between two commands of the first"
    r.unlink(*keys)

    def second() -> None:
        others.append(attempt(*keys, ("s", "a", 2), now, 10, given=name))

    seen = attempt(*keys, ("s", "a", 2), now, 10, given=name, meanwhile=second, before=trip)
    _filed_once(r, name, keys, side)
    if others and sorted(map(str, [seen, *others])) != sorted(["again", side]):
        raise NotYetError(f"{name}: they gave {shown([*others, seen])}; right is {side!r} once.")
    return bool(others)


def _sent_again(
    attempt: Attempt, keys: tuple[str, str, str], now: int, side: str, trip: int
) -> bool:
    """Whether there was such a trip; the process dies before it, and the sale is sent again."""
    r, args = attempt.server, (*keys, ("s", "a", 2), now, 10)
    r.unlink(*keys)
    dead = died(attempt, args, keys[0], trip)
    attempt(*args, given=DIED)
    _filed_once(r, f"{DIED}, and the sale was sent again", keys, side)
    return dead


def _filed_once(r: Client, name: str, keys: tuple[str, str, str], side: str) -> None:
    board, late = ({"a": 2.0}, {}) if side == "counted" else ({}, {"a": 2.0})
    compare(r, name, {keys[0]: board, keys[2]: late})


TASKS = (
    Task(
        stars=3,
        question=(
            "Sales may come late, and more than once. Write `file_event`: on the board while it "
            "is open, among the corrections afterwards, and once in any case."
        ),
        hints=(
            "A plain set knows the ids that were filed. SADD says whether the id is new.",
            "What if the process dies between SADD and ZINCRBY? The sale is sent again, and its "
            "id is known. Both have to be one step, and what is done depends on a reply.",
            "A script: SADD; if it gives 0, return 'again'. Compare now and closes as numbers, "
            'with tonumber: as text "999" is more than "1000". Then one ZINCRBY.',
        ),
        solution=file_event,
        check=check_file_event,
    ),
)
