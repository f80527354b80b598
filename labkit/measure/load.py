"""Bulk load of a sorted set, about as fast as the server can take it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Any

from labkit.errors import LabError
from labkit.measure.progress import progress

if TYPE_CHECKING:
    from redis import Redis

IN_FLIGHT = 8  # commands sent ahead of their replies, so that the server never waits
LOOKUPS = "for _ = 1, ARGV[1] do redis.call('ZSCORE', KEYS[1], '') end"
AGAIN = "Mend this and load again: members that are there already are only overwritten."


def load(
    client: Redis,
    key: str | bytes,
    members: Iterable[Any],
    scores: Iterable[float] | None = None,
    *,
    total: int | None = None,
    batch: int = 1000,
    show: bool = True,
) -> int:
    """Add members with their scores to a sorted set; of a repeated member the last score stays.

    ZADDs of ``batch`` pairs are sent ahead of their replies on one connection: the server is
    held for one of them at a time, and the client holds a few of them however long the input.

    Args:
        client: any redis-py client.
        key: the sorted set; made if it is missing.
        members: str, bytes or int: a list, an array, any iterable. Without ``scores``: a
            mapping of member to score, or an iterable of (member, score) pairs.
        scores: one number a member, in the same order; the server gets exactly that double.
        total: length of the input, for the progress bar, where it has no ``len``.
        batch: pairs in one ZADD.
        show: False draws no progress bar.

    Returns:
        How many members were new.

    Raises:
        LabError: lengths that differ; a score that is NaN or that no double holds; a member of
            another type; and, in its own words, what the server or the connection objects to.
            The error says how many members were new until then.
    """
    from redis.exceptions import RedisError, ResponseError

    columns: tuple[Any, ...] = (members,) if scores is None else (members, scores)
    sizes = [len(column) for column in columns if hasattr(column, "__len__")]
    if len(set(sizes)) > 1:
        raise LabError(
            f"There are {sizes[0]:,} members and {sizes[1]:,} scores.", "Give each member a score."
        )
    if batch < 1:
        raise LabError(f"A batch of {batch} pairs loads nothing.", "Some 1,000 are right.")
    pool = client.connection_pool
    try:
        connection: Any = pool.get_connection()
    except RedisError as error:
        raise LabError(f"Loading {key!r} failed: {str(error).rstrip('.')}.", AGAIN) from error
    waiting: deque[int] = deque()
    added = 0
    failure: Exception | None = None

    def settle(limit: int) -> None:
        """Read replies until no more than ``limit`` are outstanding."""
        nonlocal added, failure
        while len(waiting) > limit:
            try:
                added += connection.read_response(disconnect_on_error=False)
            except ResponseError as error:
                failure = failure or error
            advance(waiting.popleft())

    try:
        with progress(total or max(sizes, default=None), "members", show=show) as advance:
            try:
                batches = _batches(members, scores, batch)
                for pairs, command in _commands(key, batches, connection.encoder.encode):
                    waiting.append(pairs)
                    connection.send_packed_command([command])
                    settle(IN_FLIGHT)
                    if failure:
                        break
            except LabError as error:
                failure = error
            settle(0)
    except RedisError as error:
        failure = LabError(f"The connection was lost ({str(error).rstrip('.')})")
    finally:
        if waiting:  # somebody else's next command would read these replies
            connection.disconnect()
        pool.release(connection)
    if failure:
        what = f"Loading {key!r} stopped after {added:,} new members: {str(failure).rstrip('.')}."
        raise LabError(what, AGAIN) from failure
    return added


def finish_rehash(client: Redis, key: str | bytes) -> None:
    """Let the hash table of a sorted set finish growing, so that what follows finds it at rest.

    A table that has doubled moves its entries a step at a time, in the commands that come after:
    as many lookups as there are members end that. They are made inside the server.
    """
    left: Any = client.zcard(key)
    for done in range(0, left, 1_000_000):  # in parts, so that nobody else waits for all of them
        client.eval(LOOKUPS, 1, key, min(left - done, 1_000_000))


def _commands(
    key: str | bytes,
    batches: Iterator[tuple[list[Any], list[Any]]],
    encode: Callable[[Any], bytes],
) -> Iterator[tuple[int, bytes]]:
    """Each batch as the bytes of one ZADD, and its number of pairs.

    Built by whole lists rather than pair by pair, which would take longer than the server.
    """
    name = encode(key)
    for members, scores in batches:
        count = len(members)
        if count != len(scores):
            raise LabError("There are not as many scores as members.")
        texts, names = _texts(scores), _names(members, encode)
        parts = [b"\r\n"] * (6 * count)
        parts[0::6], parts[1::6] = map(_length, map(len, texts)), texts
        parts[3::6], parts[4::6] = map(_length, map(len, names)), names
        head = b"*%d\r\n$4\r\nZADD\r\n$%d\r\n%b\r\n" % (2 + 2 * count, len(name), name)
        yield count, head + b"".join(parts)


@cache
def _length(size: int) -> bytes:
    return b"$%d\r\n" % size


def _texts(scores: list[Any]) -> list[bytes]:
    """Scores as the shortest decimal numbers that are read back as the same doubles."""
    try:
        doubles = list(map(float, scores))
    except (TypeError, ValueError, OverflowError) as error:
        raise LabError(f"A score is not a number that a double holds ({error}).") from error
    text = repr(doubles)
    if doubles != scores or "nan" in text:
        bad = next(s for s, d in zip(scores, doubles, strict=True) if s != d)
        raise LabError(f"The score {bad!r} is not a number that a double holds.")
    return text[1:-1].encode().split(b", ")


def _names(members: list[Any], encode: Callable[[Any], bytes]) -> list[bytes]:
    kinds = set(map(type, members))
    if strange := kinds - {bytes, str, int}:
        name = strange.pop().__name__
        raise LabError(f"A member is of type {name}; str, bytes and int are members.")
    return members if kinds == {bytes} else list(map(encode, members))


def _batches(
    members: Iterable[Any], scores: Iterable[Any] | None, batch: int
) -> Iterator[tuple[list[Any], list[Any]]]:
    if scores is not None:
        yield from zip_longest(_chunks(members, batch), _chunks(scores, batch), fillvalue=[])
        return
    for pairs in _chunks(members.items() if isinstance(members, Mapping) else members, batch):
        try:
            some, theirs = zip(*pairs, strict=True)
        except (TypeError, ValueError) as error:
            raise LabError("Without scores, the members must be (member, score) pairs.") from error
        yield list(some), list(theirs)


def _chunks(values: Iterable[Any], batch: int) -> Iterator[list[Any]]:
    """Lists of plain Python values, from an array without a copy of the whole."""
    array: Any = values.to_numpy() if hasattr(values, "to_numpy") else values
    if hasattr(array, "tolist"):
        yield from (array[i : i + batch].tolist() for i in range(0, len(array), batch))
    else:
        source = iter(array)
        while chunk := list(islice(source, batch)):
            yield chunk
