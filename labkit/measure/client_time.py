"""What a call costs the one who waits for it."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from labkit.errors import LabError

if TYPE_CHECKING:
    import pandas as pd

FEWEST = 1000  # so that the 99.9th percentile is an observed call, not the slowest one
PERCENTILES = (50, 90, 99, 99.9, 100)


@dataclass(frozen=True)
class Latencies:
    """Times of single calls, in the order in which they were made."""

    microseconds: Any  # numpy array of float, shape (samples,)

    def percentile(self, q: float) -> float:
        """The shortest observed time, in microseconds, within which q per cent of calls ended."""
        import numpy as np

        rank = ceil(q * len(self.microseconds) / 100 - 1e-9)  # 99.9 of 1,000 is 999, not 1,000
        return float(np.sort(self.microseconds)[max(rank, 1) - 1])

    def table(self) -> pd.DataFrame:
        """Percentiles 50, 90, 99, 99.9 and the maximum, in microseconds."""
        import pandas as pd

        names = [f"p{q:g}" if q < 100 else "max" for q in PERCENTILES]
        values = [self.percentile(q) for q in PERCENTILES]
        return pd.DataFrame({"microseconds": values}, index=pd.Index(names, name="percentile"))


def client_time(
    call: Callable[[], object], *, samples: int = FEWEST, warmup: int = 100
) -> Latencies:
    """Wall time of each of many calls, seen by the client: network, waiting and parsing included.

    Between the two readings of the clock (`time.perf_counter_ns`) nothing runs but the call.
    The array for the times is made before; the cyclic garbage collector is off during the loop
    and as it was afterwards. What the loop itself allocates is the integers of the clock and the
    counter, each freed before the next; the reply is freed after the second reading. The time
    of reading the clock, some 0.1 us, is part of each sample.

    Args:
        call: ``lambda: client.zscore("board", "alice")``.
        samples: calls that are timed, 1,000 or more.
        warmup: calls ahead of them that are not.

    Raises:
        LabError: fewer than 1,000 samples.
    """
    import numpy as np

    if samples < FEWEST:
        raise LabError(f"{samples} samples hold no 99.9th percentile.", f"Take {FEWEST:,} or more.")
    for _ in range(warmup):
        call()
    nanoseconds = np.zeros(samples, np.int64)
    collecting = gc.isenabled()
    gc.disable()
    try:
        for i in range(samples):
            start = perf_counter_ns()
            reply = call()
            end = perf_counter_ns()
            nanoseconds[i] = end - start
            del reply
    finally:
        if collecting:
            gc.enable()
    return Latencies(nanoseconds / 1000)
