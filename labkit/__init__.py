"""What a lesson imports; the plumbing behind it is in the wings.

>>> from labkit import claim, connect, exercise
>>> from labkit.measure import server_time, sweep
"""

from labkit.errors import LabError
from labkit.lessons.claims import claim
from labkit.lessons.exercises import exercise
from labkit.lessons.transcript import register
from labkit.servers.lab import connect

__all__ = ["LabError", "claim", "connect", "exercise"]

register()
