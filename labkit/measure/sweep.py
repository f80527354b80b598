"""Server time against size: the curves of the lessons."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from labkit.errors import LabError
from labkit.measure.progress import progress
from labkit.measure.server_time import server_time

if TYPE_CHECKING:
    import pandas as pd
    from redis import Redis
    from redis.client import Pipeline

Operation = Callable[["Pipeline", int], object]
Operations = Mapping[str, Operation]
COLUMNS = ["server", "members", "operation", "calls", "usec_per_call", "low", "high"]


def sweep(
    servers: Mapping[str, Redis],
    sizes: Sequence[int],
    prepare: Callable[[Redis, int], object],
    operations: Operations | Callable[[int], Operations],
    *,
    calls: int = 1000,
    repeats: int = 5,
    seed: int = 1,
    show: bool = True,
) -> pd.DataFrame:
    """Server time per run of each operation, on each server, at each size.

    ::

        sweep(lab.servers, [1_000, 10_000], fill, {
            "ZSCORE": lambda pipe, i: pipe.zscore("board", f"player:{i}"),
        })

    At each size every server is prepared once; then, ``repeats`` times, each operation runs
    ``calls`` times in one pipeline (no MULTI) on one server after the other, so that a slow
    moment of the machine meets them alike. A tenth of the calls goes ahead as a warm-up. What
    an operation writes stays for the next one: leave the size as it was.

    The time of a run is the sum, over the commands that the operation puts into the pipeline,
    of the mean ``usec_per_call`` in INFO commandstats (see `server_time`). A script or a
    function counts once, with what it calls inside it.

    Args:
        servers: label to client, in the order of the figure.
        sizes: the sizes, in members.
        prepare: ``prepare(client, size)`` fills one server; not measured.
        operations: name to ``operation(pipeline, i)``, which adds its commands to the pipeline.
            ``i`` is drawn uniformly from ``range(size)`` by a seeded generator, anew for each
            run; every server gets the same numbers in the same order. A function
            ``size -> operations`` where the commands depend on the size.
        calls: runs of an operation in one repeat.
        repeats: repeats of which the median is taken.
        seed: seed of the numbers ``i``.
        show: False draws no progress bar.

    Returns:
        A row for each server, size and operation: ``server``, ``members``, ``operation``,
        ``calls`` (in one repeat); ``usec_per_call``, the median of the repeats, ``low`` and
        ``high``, the smallest and the largest, in microseconds.

    Raises:
        LabError: nothing to sweep over; an operation that sends no command.
    """
    import pandas as pd

    if not (servers and sizes and calls > 0 and repeats > 0 and min(sizes) > 0):
        raise LabError(
            "A sweep needs a server, sizes above zero, and at least one call and one repeat.",
            "Look at what was passed for servers, sizes, calls and repeats.",
        )
    rows = []
    with progress(len(sizes) * len(servers) * (repeats + 1), "rounds", show=show) as advance:
        for size in sizes:
            for client in servers.values():
                prepare(client, size)
                advance(1)
            chosen = operations(size) if callable(operations) else operations
            times: dict[tuple[str, str], list[float]] = {
                (label, name): [] for label in servers for name in chosen
            }
            for repeat in range(repeats):
                for label, client in servers.items():
                    for name, operation in chosen.items():
                        numbers = random.Random(f"{seed} {size} {name} {repeat}")
                        if repeat == 0:
                            _run(client, operation, size, -(-calls // 10), numbers)
                        taken = _run(client, operation, size, calls, numbers)
                        times[label, name].append(taken)
                    advance(1)
            rows += [
                (label, size, name, calls, median(taken), min(taken), max(taken))
                for (label, name), taken in times.items()
            ]
    return pd.DataFrame(rows, columns=COLUMNS)


def _run(
    client: Redis, operation: Operation, size: int, calls: int, numbers: random.Random
) -> float:
    """Server microseconds per run of one operation."""
    pipe = client.pipeline(transaction=False)
    for _ in range(calls):
        operation(pipe, numbers.randrange(size))
    sent = Counter(_words(arguments) for arguments, _ in pipe.command_stack)
    if not sent:
        raise LabError(
            "An operation of this sweep sends no command.",
            "Let it add its commands to the pipeline that it is given.",
        )
    with server_time(client, info=True) as took:
        pipe.execute()
    total = 0.0
    for (command, subcommand), count in sent.items():
        full = f"{command}|{subcommand}"
        # The mean, times what was sent here: what others send meanwhile is not added on top.
        total += took[full if full in took else command].usec_per_call * count
    return total / calls


def _words(arguments: Sequence[Any]) -> tuple[str, str]:
    """The command, and what would be its subcommand: ``object``, ``encoding``."""
    texts = [a.decode(errors="replace") if isinstance(a, bytes) else str(a) for a in arguments[:2]]
    command, subcommand, *_ = [*" ".join(texts).lower().split(" ", 2), ""]
    return command, subcommand


def exponent(n: Iterable[float], t: Iterable[float]) -> float:
    """The k of t = a * n**k: slope of the least-squares line through log n and log t.

    About 0 for O(1), little more for what grows like log n, 1 for O(n). Any units.

    Raises:
        LabError: fewer than two sizes, or a value that is not above zero.
    """
    import numpy as np

    x, y = np.array(list(n), float), np.array(list(t), float)
    if len(set(x)) < 2:
        raise LabError("A growth needs two or more sizes.", "Measure at another size as well.")
    if min(x.min(), y.min()) <= 0:
        raise LabError("A growth needs values above zero.", "Measure with more calls.")
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])
