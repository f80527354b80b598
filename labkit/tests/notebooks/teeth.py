"""A plugin of pytest, loaded by pyproject.toml: a cell that passes is asked whether it could fail.

Nbval has just found what the cell said equal to what is stored. Each stored text that it compared
is now changed, one at a time, and compared again by nbval itself: the cell fails if a changed one
passes as well. So every lesson is tried whenever it is run, and need not run once more for it.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from nbval.plugin import IPyNbCell, coalesce_streams


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Pytest calls this around each test, and around each cell of a lesson."""
    yield
    if isinstance(item, IPyNbCell):
        for place, (_, key) in enumerate(compared(item.cell)):
            changed = copy.deepcopy(item.cell)
            holder, _ = compared(changed)[place]
            holder[key] = mutant(holder[key], item.sanitize)
            if item.compare_outputs(item.test_outputs, coalesce_streams(changed.outputs)):
                pytest.fail(f"A change of this output passes unseen:\n{holder[key]}", pytrace=False)


def compared(cell: Any) -> list[tuple[Any, str]]:
    """Every stored text of a cell that nbval compares, as its holder and its key there."""
    if "nbval-ignore-output" in cell.metadata.get("tags", []):
        return []
    holders = [o if o.output_type == "stream" else o.data for o in cell.outputs]
    return [(holder, key) for holder in holders for key in sorted(holder) if key.startswith("text")]


def mutant(text: str, sanitize: Callable[[str], str]) -> str:
    """The text with one verdict, one True or one digit changed."""
    words = {"confirmed": "refuted", "refuted": "confirmed", "depends": "confirmed"}
    words |= {"True": "False", "False": "True"}
    for old, new in words.items():
        if re.search(rf"\b{old}\b", text):
            return re.sub(rf"\b{old}\b", new, text, count=1)
    for digit in re.finditer(r"\d", text):
        other = text[: digit.start()] + str((int(digit[0]) + 1) % 10) + text[digit.end() :]
        if sanitize(other) != sanitize(text):
            return other
    return text + "x"
