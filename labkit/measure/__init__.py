"""Numbers and figures: server time, client time, memory, sweeps over sizes, bulk load.

Every function takes a plain redis-py client. pandas, matplotlib and numpy are imported
where they are used, so importing this package is cheap.
"""

from __future__ import annotations

from labkit.measure.client_time import Latencies, client_time
from labkit.measure.load import finish_rehash, load
from labkit.measure.memory import Memory, memory
from labkit.measure.plots import memory_by_members, new_figure, time_by_size
from labkit.measure.server_time import CommandTime, ServerTime, server_time
from labkit.measure.sweep import exponent, sweep

__all__ = [
    "CommandTime",
    "Latencies",
    "Memory",
    "ServerTime",
    "client_time",
    "exponent",
    "finish_rehash",
    "load",
    "memory",
    "memory_by_members",
    "new_figure",
    "server_time",
    "sweep",
    "time_by_size",
]
