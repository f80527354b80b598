"""What the tests of every exercise ask of its checker."""

from __future__ import annotations

from typing import Any

import pytest

from labkit.lessons.exercises import exercise


def assert_refused(name: str, answer: Any, reason: str, client: Any) -> None:
    """The answer is told why not, in one line, and no key of somebody else is touched."""
    client.set("exercise:mine", "stays")
    line = exercise(name).judge(answer, client)
    assert line.startswith("Not yet: ")
    assert reason in line
    assert "\n" not in line
    assert client.keys("*") == ["exercise:mine"], "the check left or took keys"


def assert_stub_and_solution_are_one(
    name: str, client: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """The stub is not attempted, the solution begins like it and is right."""
    task = exercise(name)
    space: dict[str, Any] = {}
    exec(task.stub(), space)
    assert task.judge(space[name], client) == "Not attempted."
    task.solution()
    text = capsys.readouterr().out
    assert text.startswith(task.stub().removesuffix("    return ..."))
    exec(text, space)
    assert task.judge(space[name], client) == "Right."
    assert client.dbsize() == 0
