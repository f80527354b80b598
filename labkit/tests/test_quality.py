"""Lint, format and types, as everybody's editor shows them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from labkit.lessons import ROOT

COMMANDS = [
    ["ruff", "check", "labkit", "notebooks"],
    ["ruff", "format", "--check", "labkit"],
    ["mypy", "labkit"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_clean(command: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
