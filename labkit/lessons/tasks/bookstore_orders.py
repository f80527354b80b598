"""The second exercise of lesson 10: an order that is counted once, whoever repeats it."""

from __future__ import annotations

from typing import Any

from labkit.lessons.tasks import RACES, Attempt, Client, NotYetError, Task, same, shown
from labkit.lessons.tasks.bookstore import DAY, DIED, died, lives
from labkit.lessons.tasks.traces import deadline, no_other_keys, same_deadline


def take_order(
    r: Client, keys: tuple[str, str, str], attempt: str, isbn: str, copies: int
) -> tuple[int, bool]:
    """Count an order once; its number, and whether another attempt has counted it before.

    `keys` are the day's sales (a sorted set: ISBN, copies), the counter of orders (a number), and
    the note of this order, which is yours. A customer who gets no answer makes another `attempt`,
    with another name. Within an attempt your client may send a command twice, and your process
    may die between two commands and be called again. The order counts once all the same. Orders
    are numbered 1, 2, 3 without a gap. The attempt that has counted one is told False, however
    often it asks; any other is told True. The note is kept for a day, the sales for 8 days from
    their first one.
    """
    script = """
    local known = redis.call('HMGET', KEYS[3], 'order', 'attempt')
    if known[1] then
      return {tonumber(known[1]), known[2] == ARGV[1] and 0 or 1}
    end
    local order = redis.call('INCR', KEYS[2])
    redis.call('HSET', KEYS[3], 'order', order, 'attempt', ARGV[1])
    redis.call('EXPIRE', KEYS[3], 86400)
    redis.call('ZINCRBY', KEYS[1], ARGV[3], ARGV[2])
    if redis.call('TTL', KEYS[1]) == -1 then redis.call('EXPIRE', KEYS[1], 691200) end
    return {order, 0}
    """
    order, replayed = r.eval(script, 3, *keys, attempt, isbn, copies)
    return order, bool(replayed)


# The note (0 or 1), the attempt, copies; the answer, the copies on the day's list.
TAKEN: tuple[tuple[str, int, str, int, tuple[int, bool], int], ...] = (
    ("a new order", 0, "t-1", 2, (1, False), 2),
    ("the same attempt again", 0, "t-1", 2, (1, False), 2),
    ("a second attempt", 0, "t-10", 2, (1, True), 2),
    ("the second attempt again", 0, "t-10", 2, (1, True), 2),
    ("the first attempt after the second", 0, "t-1", 2, (1, False), 2),
    ("another order, by an attempt of the same name", 1, "t-1", 3, (2, False), 5),
    ("a repeat of the older order", 0, "t-3", 2, (1, True), 5),
)


def check_take_order(attempt: Attempt) -> None:
    """Orders in a row; then each attempt twice at once, or dead and called again; two orders."""
    r, keys = attempt.server, [attempt.key() for _ in range(6)]
    day, counter, one, two, three, tomorrow = keys
    ends = 0.0
    with no_other_keys(r, keys):
        for name, note, who, copies, answer, total in TAKEN:
            seen = attempt((day, counter, (one, two)[note]), who, "a", copies, given=name)
            _counted(r, name, (day, counter), {"a": total}, 2 if total == 5 else 1)
            _answers(name, [seen], [answer])
            lives(r, (one, two)[note], f"{name}, the note", DAY)
            if not ends:
                lives(r, day, f"{name}, the sales", 8 * DAY)
                r.pexpire(day, 5_000_400)
                ends = deadline(r, day)
            same_deadline(r, day, name, ends)
        name = "the first order of the next day, of another book"
        seen = attempt((tomorrow, counter, three), "t-1", "b", 4, given=name)
        _counted(r, name, (tomorrow, counter), {"b": 4}, 3)
        _answers(name, [seen], [(3, False)])
        lives(r, tomorrow, f"{name}, the sales", 8 * DAY)
        for race in (_sent_twice, _called_again):
            for second in ("t-1", "t-2"):
                for trip in RACES:
                    if not race(attempt, (day, counter, one), second, trip):
                        break
        for trip in RACES:
            if not _another_order(attempt, (day, counter, one), two, trip):
                break


def _sent_twice(attempt: Attempt, keys: tuple[str, ...], second: str, trip: int) -> bool:
    r, said = attempt.server, list[object]()
    who = "the same" if second == "t-1" else "another"
    name = f"{who} attempt comes between two commands"
    r.unlink(*keys)

    def twin() -> None:
        said.append(attempt(keys, second, "a", 2, given=name))

    said.append(attempt(keys, "t-1", "a", 2, given=name, meanwhile=twin, before=trip))
    _counted(r, name, keys, {"a": 2}, 1)
    if len(said) == 1:
        return False
    right = [(1, False), (1, second != "t-1")]  # whichever of the two came first
    _answers(name, said, right[:: 1 if _is(said[0], right[0]) else -1])
    return True


def _called_again(attempt: Attempt, keys: tuple[str, ...], second: str, trip: int) -> bool:
    r = attempt.server
    who = "by the same attempt" if second == "t-1" else "by another attempt"
    name = f"{DIED}, and the order was sent again {who}"
    r.unlink(*keys)
    dead = died(attempt, (keys, "t-1", "a", 2), trip, list(keys))
    done = bool(r.zscore(keys[0], "a")) if r.type(keys[0]) == "zset" else False
    seen = attempt(keys, second, "a", 2, given=name)
    _counted(r, name, keys, {"a": 2}, 1)
    _answers(name, [seen], [(1, done and second != "t-1")])
    lives(r, keys[0], f"{name}, the sales", 8 * DAY)
    lives(r, keys[2], f"{name}, the note", DAY)
    return dead


def _another_order(attempt: Attempt, keys: tuple[str, str, str], note: str, trip: int) -> bool:
    r, said = attempt.server, list[Any]()
    name = "another order comes between two commands"
    r.unlink(*keys, note)

    def other() -> None:
        said.append(attempt((*keys[:2], note), "t-1", "b", 3, given=name))

    said.append(attempt(keys, "t-1", "a", 2, given=name, meanwhile=other, before=trip))
    if len(said) == 1:
        return False
    right = [(1, False), (2, False)]  # in either order
    if not any(all(map(_is, said, way)) for way in (right, right[::-1])):
        raise NotYetError(f"{name}: they gave {shown(said)}; right is (1, False) and (2, False).")
    _counted(r, name, keys, {"a": 2, "b": 3}, 2)
    return True


def _counted(
    r: Client, name: str, keys: tuple[str, ...], right: dict[str, int], orders: int
) -> None:
    for what, key, kind in (("day", keys[0], "zset"), ("counter of orders", keys[1], "string")):
        if (seen := r.type(key)) not in (kind, "none"):
            raise NotYetError(f"{name}: the {what} became a {seen}.")
    sold = dict(r.zrange(keys[0], 0, -1, withscores=True))
    if sold != right:
        raise NotYetError(f"{name}: the day's sales are {shown(sold)}; right is {right}.")
    if (number := r.get(keys[1])) != str(orders):
        raise NotYetError(f"{name}: the counter of orders is {shown(number)}; right is {orders}.")


def _is(seen: Any, right: tuple[int, bool]) -> bool:
    pair = isinstance(seen, list | tuple) and len(seen) == 2
    return pair and same(seen[0], right[0]) and seen[1] is right[1]


def _answers(name: str, seen: list[object], right: list[tuple[int, bool]]) -> None:
    for one, answer in zip(seen, right, strict=True):
        if not _is(one, answer):
            raise NotYetError(f"{name}: gave {shown(one)}; right is {answer}.")


TASKS = (
    Task(
        stars=2,
        question=(
            "redis-py sent an order twice, and the customer was told *replayed* at the first try. "
            "Write `take_order`: the order counts once, and the word is right as well."
        ),
        hints=(
            "The script of the lesson has all but one field. What must the note hold, so that it "
            "knows who has counted the order?",
            "Note the order's number and the attempt's name in one hash. A known order: give its "
            "number, and 0 or 1 for `the same attempt` or `another one`.",
            "A True of Lua becomes 1, a False becomes None: let the script give 0 or 1, and make "
            "the bool in Python. A note's deadline and the day's belong into the script too.",
        ),
        solution=take_order,
        check=check_take_order,
    ),
)
