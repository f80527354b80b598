"""What a function leaves behind besides its answer: keys, deadlines, writes. No exercises here."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from redis import WatchError

from labkit.lessons.tasks import Client, NotYetError, Task, shown

SLACK = 200  # ms by which a deadline may move: a step on a busy machine, not a rounded second
TASKS: tuple[Task, ...] = ()


@contextmanager
def no_other_keys(r: Client, keys: list[str]) -> Iterator[None]:
    """Keys that are new after the body, and not among ``keys``, are unlinked and refused."""
    before = set(r.scan_iter(count=1000))
    strange: list[str] = []
    try:
        yield
    finally:
        strange += sorted(set(r.scan_iter(count=1000)) - before - set(keys))
        if strange:
            r.unlink(*strange)
    if strange:
        raise NotYetError(f"the key {shown(strange[0])} was left behind; right is none.")


def deadline(r: Client, key: str) -> float:
    """When it ends, in ms of the server's clock; inf where it has no time to live."""
    with r.pipeline() as step:
        left, (seconds, micros) = step.pttl(key).time().execute()
    return int(seconds) * 1000 + int(micros) / 1000 + left if left >= 0 else math.inf


def same_deadline(r: Client, key: str, given: str, right: float, what: str = "set") -> None:
    """Refuse a deadline that is another one than before."""
    ends = deadline(r, key)
    if ends == right or abs(ends - right) <= SLACK:
        return
    if math.isinf(ends):
        moved = "the time to live is gone"
    elif math.isinf(right):
        moved = f"a {what} without a time to live has one now"
    else:
        moved = f"the time to live ends {abs(ends - right) / 1000:.2f} s "
        moved += "later" if ends > right else "sooner"
    raise NotYetError(f"{given}: {moved}; right is to keep it as it is.")


class Watch:
    """Whether a key is written after this was made."""

    def __init__(self, r: Client, key: str) -> None:
        self._pipe = r.pipeline()
        self._pipe.watch(key)

    def written(self) -> bool:
        """Asked once, at the end; by then the connection is given back."""
        with self._pipe as pipe:
            pipe.multi()
            try:
                pipe.ping().execute()
            except WatchError:
                return True
        return False
