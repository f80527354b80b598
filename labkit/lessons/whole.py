"""A plugin of pytest: a run that names no path takes labkit's tests and all lessons.

Only pytest itself can tell a path from the value of an option, as in ``-k data``.
"""

from __future__ import annotations

import pytest

from labkit.lessons import NOTEBOOKS, ROOT


def pytest_configure(config: pytest.Config) -> None:
    """Pytest calls this after it has read its arguments and before it collects."""
    if config.args_source is not config.ArgsSource.ARGS:
        config.args[:] = [f"{ROOT}/labkit/tests", str(NOTEBOOKS)]
