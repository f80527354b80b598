"""The third exercise of lesson 10: the list of the week, built once by whoever asks first."""

from __future__ import annotations

from labkit.lessons.tasks import RACES, Attempt, Client, NotYetError, Task, shown
from labkit.lessons.tasks.bookstore import DIED, died, lives
from labkit.lessons.tasks.traces import deadline, no_other_keys, same_deadline

Board = dict[str, float]
SECONDS = 600


def build_week(r: Client, week: str, days: list[str], seconds: int) -> bool:
    """Build the list of the week, once. True when this call has built it.

    `days` are sorted sets of copies by book; a day without sales has no key. The score on the
    list is the copies of all days x 10 + the number of days that have the book, also with 0
    copies. There is nothing else to use: no AGGREGATE COUNT, no plain sets of titles. A list that
    is there stays as it is, with its deadline: False. Without any sales there is no list: False.
    The list shows one moment of the days and lives for `seconds`. Whatever happens between two
    commands, there is never a part of a list, a list without a deadline, or another key.
    """
    script = """
    if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
    for day = 2, #KEYS do
      local rows = redis.call('ZRANGE', KEYS[day], 0, -1, 'WITHSCORES')
      for n = 1, #rows, 2 do
        redis.call('ZINCRBY', KEYS[1], 10 * rows[n + 1] + 1, rows[n])
      end
    end
    return redis.call('EXPIRE', KEYS[1], ARGV[1])
    """
    return bool(r.eval(script, 1 + len(days), week, *days, seconds))


WEEKS: dict[str, list[Board]] = {
    "seven days": [{"a": n + 1, "b": 5} if n % 2 else {"a": 2} for n in range(7)],
    "a week without sales": [{} for _ in range(7)],
    "days without sales": [{}, {"a": 3}, {}, {}, {"a": 1, "b": 4}, {}, {}],
    "all copies of a day came back": [{"a": 0}, {"a": 2, "b": 0}],
    "one day": [{"a": 9}],
    "sixty books": [{f"b{n:02d}": n + k for n in range(k, 60)} for k in range(7)],
    "billions of copies": [{"a": 2**40 + k} for k in range(7)],
}


def check_build_week(attempt: Attempt) -> None:
    """Weeks of several shapes; then another builder, a sale and a death between the trips."""
    r, keys = attempt.server, [attempt.key() for _ in range(8)]
    week, *days = keys
    with no_other_keys(r, keys):
        for number, (name, boards) in enumerate(WEEKS.items()):
            right = _open(r, keys, boards)
            asked = (week, days[: len(boards)], (SECONDS, 1_800)[number % 2])
            _builds(r, name, week, attempt(*asked, given=name), right, seconds=asked[2])
            if right:
                _there(attempt, name, asked, right)
            if [_board(r, day) for day in asked[1]] != boards:
                raise NotYetError(f"{name}: a day was changed; right is to read it only.")
        for race in (_builder_dies, _two_builders, _sale_comes):
            for trip in RACES:
                if not race(attempt, keys, trip):
                    break


def _there(attempt: Attempt, name: str, asked: tuple[str, list[str], int], right: Board) -> None:
    """A list that is there, after a sale: it stays."""
    r, name = attempt.server, f"{name}, the list is there already"
    r.pexpire(asked[0], 5_000_400)
    ends = deadline(r, asked[0])
    r.zincrby(asked[1][-1], 1, "new")
    seen = attempt(*asked, given=name)
    r.zrem(asked[1][-1], "new")
    same_deadline(r, asked[0], name, ends, "list")
    _builds(r, name, asked[0], seen, right, built=False)


def _two_builders(attempt: Attempt, keys: list[str], trip: int) -> bool:
    r, said = attempt.server, list[object]()
    name = "another builder comes between two commands"
    right = _open(r, keys, WEEKS["seven days"])

    def second() -> None:
        said.append(attempt(keys[0], keys[1:], SECONDS, given=name))

    said.append(attempt(keys[0], keys[1:], SECONDS, given=name, meanwhile=second, before=trip))
    _builds(r, name, keys[0], True, right)
    if sum(answer is True for answer in said) != 1 or {*map(type, said)} != {bool}:
        raise NotYetError(f"{name}: they gave {shown(said)}; right is True once.")
    return len(said) > 1


def _sale_comes(attempt: Attempt, keys: list[str], trip: int) -> bool:
    """On the last day, and with it a late one on the first day: in one step."""
    r, came = attempt.server, list[object]()
    name = "sales of the first and the last day come in between two commands"
    before = _open(r, keys, WEEKS["seven days"])
    after = before | {"a": before["a"] + 10, "new": 11}

    def sales() -> None:
        with r.pipeline() as step:
            came.append(step.zincrby(keys[1], 1, "a").zincrby(keys[-1], 1, "new").execute())

    seen = attempt(keys[0], keys[1:], SECONDS, given=name, meanwhile=sales, before=trip)
    there = _board(r, keys[0])
    if came and not there:
        raise NotYetError(
            f"{name}: there is no list, and the answer was {shown(seen)}; build again."
        )
    if came and there not in (before, after):
        raise NotYetError(f"{name}: the list has one of them and lacks the other.")
    _builds(r, name, keys[0], seen, there if came else before)
    return bool(came)


def _builder_dies(attempt: Attempt, keys: list[str], trip: int) -> bool:
    r, right = attempt.server, _open(attempt.server, keys, WEEKS["seven days"])
    asked = (keys[0], keys[1:], 1_800)
    dead = died(attempt, asked, trip, keys)
    space = keys[0].rpartition(":")[0]
    if strange := sorted(set(r.scan_iter(f"*{space}*", count=1000)) - set(keys)):
        raise NotYetError(f"{DIED}: the key {shown(strange[0])} was left behind; right is none.")
    if r.exists(keys[0]):
        _builds(r, DIED, keys[0], True, right, seconds=1_800)
    r.unlink(keys[0])
    name = f"{DIED}, and another builds"
    _builds(r, name, keys[0], attempt(*asked, given=name), right, seconds=1_800)
    return dead


def _open(r: Client, keys: list[str], boards: list[Board]) -> Board:
    """Days and no list; gives the right one."""
    r.unlink(*keys)
    right: Board = {}
    for key, board in zip(keys[1:], boards, strict=False):
        if board:
            r.zadd(key, board)
        for book, copies in board.items():
            right[book] = right.get(book, 0) + 10 * copies + 1
    return right


def _builds(
    r: Client,
    name: str,
    week: str,
    seen: object,
    right: Board,
    built: bool | None = None,
    seconds: int = SECONDS,
) -> None:
    there = _board(r, week)
    if there != right:
        wrong = [book for book in sorted(there | right) if there.get(book) != right.get(book)][:3]
        pairs = [{book: board.get(book) for book in wrong} for board in (there, right)]
        raise NotYetError(f"{name}: on the list is {shown(pairs[0])}; right is {shown(pairs[1])}.")
    answer = bool(right) if built is None else built
    if seen is not answer:
        raise NotYetError(f"{name}: gave {shown(seen)}; right is {answer}.")
    if right and answer:
        lives(r, week, f"{name}, the list", seconds)


def _board(r: Client, key: str) -> Board:
    """The scores of a key; none where it is no sorted set."""
    return dict(r.zrange(key, 0, -1, withscores=True)) if r.type(key) == "zset" else {}


TASKS = (
    Task(
        stars=3,
        question=(
            "Many ask for the list of the week at the moment in which the old one ends, on a "
            "server without COUNT, and nobody has kept sets of titles. Write `build_week`."
        ),
        hints=(
            "A day gives each of its books 10 x copies + 1. What is the sum over the days?",
            "In one script: look whether the list is there, ZRANGE each day WITHSCORES, ZINCRBY "
            "the list. Or in Python: WATCH the list and the days, read, and write in MULTI.",
            "EXPIRE replies 0 where there is no key: that is the answer for a week without sales.",
        ),
        solution=build_week,
        check=check_build_week,
    ),
)
