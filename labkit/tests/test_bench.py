"""The speed table: all its rows, and a status that tells when the load is too slow."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from labkit import bench
from labkit.errors import LabError
from labkit.servers import binaries


def test_a_load_above_the_limit_fails_and_shows_the_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "PAIRS", 1)
    monkeypatch.setattr(bench, "TURN", 0.2)
    monkeypatch.setattr(bench, "LOAD_LIMIT", 0.0)
    with pytest.raises(LabError, match=r"The load took [\d.]+ times its peer"):
        bench.table(2_000)
    shown = capsys.readouterr()
    rows = [line.split(" | ")[0] for line in shown.out.splitlines()[2:]]
    assert rows == [
        "| load 2,000 members",
        "| start a private server",
        "| time 5,000 calls",
        "| import labkit",
        "| 1,000 requests of 64 bookstore clients",
    ]
    assert "5/5" in shown.err


def test_a_bare_server_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    program = shutil.which("false")
    assert program
    monkeypatch.setattr(binaries, "ensure", lambda _: Path(program))
    with pytest.raises(LabError, match="did not start"):
        bench._bare()
