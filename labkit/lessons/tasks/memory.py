"""The exercise of lesson 08: a small set gets its listpack back (claim A45)."""

from __future__ import annotations

import math
from collections.abc import Callable

from labkit.lessons.tasks import RACES, Attempt, Client, NotYetError, Task, cut, shown
from labkit.lessons.tasks.traces import Watch, deadline, no_other_keys, same_deadline

Board = dict[str, float]
Row = tuple[str, float]

ODD = (math.inf, -math.inf, 0.1 + 0.2, 1 / 3, 2.0**53 - 1, -(2.0**53), 5e-324, 1.7e308, 0.0, -7.0)
LEFT = 1_000_400  # a time to live in ms that is no whole number of seconds


def compact(r: Client, key: str) -> bool:
    """Give a sorted set its listpack back, where it fits into one.

    It fits when it holds no more members than the server's limit for listpacks, and no member
    with more bytes than the other limit. Returns True when the set is a listpack afterwards, and
    False when it does not fit or is not there. Members, scores and time to live stay as they
    are, also when other clients write during the call. A set that does not fit, or that is a
    listpack already, is not written. No other key is left behind.
    """
    script = """
    local members = redis.call('ZRANGE', KEYS[1], 0, ARGV[1])  -- at most one more than fits
    if #members == 0 or #members > tonumber(ARGV[1]) then return 0 end
    for _, member in ipairs(members) do
      if #member > tonumber(ARGV[2]) then return 0 end
    end
    if redis.call('OBJECT', 'ENCODING', KEYS[1]) == 'skiplist' then
      local left = redis.call('PTTL', KEYS[1])
      redis.call('ZRANGESTORE', KEYS[1], KEYS[1], 0, -1)
      if left > 0 then redis.call('PEXPIRE', KEYS[1], left) end
    end
    return 1
    """
    limits = r.config_get("zset-max-ziplist-*")  # the old names, which all versions know
    entries, value = limits["zset-max-ziplist-entries"], limits["zset-max-ziplist-value"]
    return bool(r.eval(script, 1, key, entries, value))


def check(attempt: Attempt) -> None:
    """Sets that fit and sets that do not, odd scores, deadlines, and other writers meanwhile."""
    r, keys = attempt.server, [attempt.key()]
    with no_other_keys(r, keys):
        if (seen := attempt(keys[0], given="an empty key")) is not False:
            raise NotYetError(f"an empty key gave {shown(seen)}; right is False.")
        for name, board in _boards(r).items():
            for left in (0, LEFT):
                given = f"{name}, with a time to live" if left else name
                keys.append(attempt.key())
                _fill(r, keys[-1], board, left, spread="already" not in name)
                _try(attempt, keys[-1], given)
        for words, change in CHANGES.items():
            for trip in RACES:
                if not _race(attempt, keys[0], words, change, trip):
                    break


def _limits(r: Client) -> tuple[int, int]:
    """Members, and bytes of a member, that a listpack of this server may have."""
    limits = r.config_get("zset-max-ziplist-*")  # the old names, which all versions know
    return int(limits["zset-max-ziplist-entries"]), int(limits["zset-max-ziplist-value"])


def _boards(r: Client) -> dict[str, Board]:
    entries, value = _limits(r)
    many = [f"978{n:010d}" for n in range(entries + 1)]
    return {
        "five members": {member: 1.5 * n for n, member in enumerate(many[:5])},
        "one member": {"a": 1.0},
        "scores inf, -inf, 0.1 + 0.2 and others": {f"{n}": score for n, score in enumerate(ODD)},
        f"{entries} members": dict.fromkeys(many[:-1], 7.0),
        f"{entries + 1} members": dict.fromkeys(many, 7.0),
        f"{4 * entries} members": {f"{n}": -n for n in range(4 * entries)},
        f"a member of {value} bytes": {"x" * value: 1.0, "b": 2.0},
        f"a member of {value + 1} bytes": {"x" * (value + 1): 1.0, "b": 2.0},
        f"a member of {value // 2 + 1} letters é": {"é" * (value // 2 + 1): 1.0, "b": 2.0},
        "three members, a listpack already": {"a": 1.0, "b": 2.0, "c": 3.0},
    }


def _fill(r: Client, key: str, board: Board, left: int, *, spread: bool = True) -> None:
    """Make the set; when ``spread``, as a skip list, whatever its size."""
    too_long = "x" * (_limits(r)[1] + 1) + "!"
    if spread:
        r.zadd(key, {too_long: 0})
    r.zadd(key, board)
    r.zrem(key, too_long)
    if left:
        r.pexpire(key, left)


def _state(r: Client, key: str) -> tuple[list[Row], float]:
    """Rows and deadline."""
    rows = r.zrange(key, 0, -1, withscores=True)
    return [(member, score) for member, score in rows], deadline(r, key)


def _fits(r: Client, rows: list[Row]) -> bool:
    entries, value = _limits(r)
    return 0 < len(rows) <= entries and all(len(member.encode()) <= value for member, _ in rows)


def _try(attempt: Attempt, key: str, given: str) -> None:
    """One set that nobody else writes."""
    r = attempt.server
    rows, ends = _state(r, key)
    fits, spread = _fits(r, rows), r.object("encoding", key) == "skiplist"
    watch = Watch(r, key)
    seen = attempt(key, given=given)
    written = watch.written()
    _same(r, key, given, rows, ends)
    if written and not (fits and spread):
        why = "is a listpack already" if fits else "does not fit"
        raise NotYetError(f"{given}: the set was written; it {why}, so right is to leave it.")
    _answer(r, key, given, seen, fits=fits)


def _same(r: Client, key: str, given: str, rows: list[Row], ends: float) -> None:
    now, _ = _state(r, key)
    if not now:
        raise NotYetError(f"{given}: the set is gone.")
    if now != rows:
        raise NotYetError(f"{given}: {_changed(dict(rows), dict(now))}.")
    same_deadline(r, key, given, ends)


def _changed(rows: Board, now: Board) -> str:
    for member in rows | now:
        if member not in now:
            return f"the member {cut(member)} is lost"
        if member not in rows:
            return f"the member {cut(member)} is there and should not be"
        if rows[member] != now[member]:
            return f"the score {rows[member]!r} became {now[member]!r}"
    return "the members are in another order"


def _answer(r: Client, key: str, given: str, seen: object, *, fits: bool) -> None:
    encoding = r.object("encoding", key)
    if fits and encoding == "skiplist":
        raise NotYetError(f"{given}: the set is still a skip list, and it fits into a listpack.")
    if not isinstance(seen, bool) or seen != fits:
        what = "it is a listpack" if fits else "it does not fit"
        raise NotYetError(f"{given} gave {shown(seen)}; right is {fits}: {what} now.")


# What another client does between two steps of the function, to a set of five members.
CHANGES: dict[str, Callable[[Client, str], object]] = {
    "adds a member": lambda r, key: r.zadd(key, {"late": 99}),
    "adds to a score": lambda r, key: r.zincrby(key, 10, "m3"),
    "removes a member": lambda r, key: r.zrem(key, "m1"),
    "gives it another time to live": lambda r, key: r.pexpire(key, 3 * LEFT),
    "removes its time to live": lambda r, key: r.persist(key),
    "adds members until it does not fit": lambda r, key: r.zadd(
        key, {f"late:{n}": n for n in range(_limits(r)[0])}
    ),
    "adds a member that is too long": lambda r, key: r.zadd(key, {"x" * (_limits(r)[1] + 1): 99}),
}


def _race(
    attempt: Attempt, key: str, words: str, change: Callable[[Client, str], object], trip: int
) -> bool:
    """Whether there is such a trip, before which another client looks at five members, and writes.

    A set may become a skip list for good after the function was done with it: both answers are
    right then.
    """
    r = attempt.server
    r.delete(key)
    _fill(r, key, {f"m{n}": float(n) for n in range(5)}, LEFT)
    (rows, ends), packed, watches = _state(r, key), False, list[Watch]()
    given = f"five members, and another client {words} between two of your steps"

    def meanwhile() -> None:
        nonlocal rows, ends, packed
        _same(
            r,
            key,
            "five members, as another client sees them between two of your steps",
            rows,
            ends,
        )
        packed = r.object("encoding", key) == "listpack"
        change(r, key)
        rows, ends = _state(r, key)
        watches.append(Watch(r, key))

    seen = attempt(key, given=given, meanwhile=meanwhile, before=trip)
    written, fits = any(watch.written() for watch in watches), _fits(r, rows)
    _same(r, key, given, rows, ends)
    if written and not fits:
        raise NotYetError(f"{given}: the set was written; it does not fit any more.")
    if fits:
        _answer(r, key, given, seen, fits=True)
    elif not isinstance(seen, bool) or (seen and not packed):
        raise NotYetError(f"{given} gave {shown(seen)}; right is False: it never was a listpack.")
    return bool(watches)


TASKS = (
    Task(
        stars=2,
        question=(
            "Thousands of small sets had a long member or a busy day once, and have been skip "
            "lists since. Write `compact`, which a nightly job calls for each of them while the "
            "shop is open: a set that fits gets its listpack back, and nothing else changes."
        ),
        hints=(
            "One command stores a whole range of a sorted set in a key, and makes that key anew. "
            "The key may be the one that it reads. What does a new key not have?",
            "ZRANGESTORE key key 0 -1 takes the time to live away. PTTL before it and PEXPIRE "
            "after it, all in one step: what another client writes between them must not be lost.",
            "A script: r.eval(script, 1, key, entries, value) with the two limits of CONFIG GET "
            "zset-max-ziplist-* (the old names, which all versions know). In Lua # counts bytes, "
            "and one look at entries + 1 members says whether a set is too large.",
        ),
        solution=compact,
        check=check,
    ),
)
