"""Numbers and figures: server time, client time, memory, sweeps over sizes, bulk load.

Every function takes a plain redis-py client. pandas, matplotlib and numpy are imported
where they are used, so importing this package is cheap.
"""

from __future__ import annotations

from labkit.measure.load import load
from labkit.measure.plots import memory_by_members, new_figure, time_by_size
from labkit.measure.server_time import CommandTime, ServerTime, server_time
from labkit.measure.sweep import exponent, growth, sweep

__all__ = [
    "CommandTime",
    "ServerTime",
    "exponent",
    "growth",
    "load",
    "memory_by_members",
    "new_figure",
    "server_time",
    "sweep",
    "time_by_size",
]
