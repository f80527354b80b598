"""The regression run has teeth: whatever is changed in a lesson turns it red.

Nbval judges each cell by itself, so one run tries one changed output in every cell at once, and
each of these cells must be red, and no other. Scores, data and the ledger have a run each.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest

from labkit.lessons import ROOT, lesson_names
from labkit.lessons.regression import pytest_command
from labkit.tests.notebooks.test_sanitize import sanitize


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of all that a lesson reads, which may be changed."""
    for part in ("labkit", "notebooks", "data"):
        leave = shutil.ignore_patterns("__pycache__", "tests", ".ipynb_checkpoints")
        shutil.copytree(ROOT / part, tmp_path / part, ignore=leave)
    return tmp_path


def red_cells(copy: Path, lesson: str) -> set[int]:
    """The code cells of a copied lesson, by their number, that strict nbval finds fault with."""
    command = [*pytest_command([str(copy / "notebooks" / f"{lesson}.ipynb")]), "-q", "-rfE"]
    command[command.index(f"--rootdir={ROOT}")] = f"--rootdir={copy}"
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider"],
        capture_output=True,
        text=True,
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy)},
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout[-3000:] + done.stderr[-1000:]
    assert " error" not in done.stdout.splitlines()[-1], done.stdout[-3000:]
    return {int(n) for n in re.findall(r"^FAILED \S+\.ipynb::Cell (\d+)", done.stdout, re.M)}


def change(copy: Path, lesson: str, edit: Callable[[list[Any]], object]) -> Any:
    """Let ``edit`` change a copied lesson's code cells; gives what ``edit`` returns."""
    path = copy / "notebooks" / f"{lesson}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    said = edit([cell for cell in notebook.cells if cell.cell_type == "code"])
    nbformat.write(notebook, path)
    return said


def mutant(text: str) -> str:
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


def compared(cell: Any) -> list[tuple[Any, str]]:
    """Every stored text of a cell that nbval compares, as its holder and its key there."""
    if "nbval-ignore-output" in cell.metadata.get("tags", []):
        return []
    holders = [o if o.output_type == "stream" else o.data for o in cell.outputs]
    return [(holder, key) for holder in holders for key in sorted(holder) if key.startswith("text")]


def mutate(cells: list[Any], turn: int) -> set[int]:
    """Change the first (turn 0) or the second text (turn 1) of each cell; the numbers of those."""
    changed = set()
    for number, cell in enumerate(cells):
        texts = sorted(compared(cell), key=lambda text: text[1] == "text/html")
        for holder, key in texts[turn : turn + 1]:
            holder[key] = mutant(holder[key])
            changed.add(number)
    return changed


# That a second text (the HTML of a table) is compared too needs showing in one lesson only.
@pytest.mark.parametrize(("lesson", "turn"), [*((n, 0) for n in lesson_names()), ("01_model", 1)])
def test_a_changed_output_is_red_and_nothing_else(copy: Path, lesson: str, turn: int) -> None:
    changed = change(copy, lesson, lambda cells: mutate(cells, turn))
    assert len(changed) >= 3
    assert red_cells(copy, lesson) == changed


def test_a_changed_score_is_red(copy: Path) -> None:
    def edit(cells: list[Any]) -> None:
        first = next(cell for cell in cells if cell.source.startswith("%%redis"))
        assert " 12 9780441013593" in first.source
        first.source = first.source.replace(" 12 9780441013593", " 13 9780441013593")

    change(copy, "01_model", edit)
    assert red_cells(copy, "01_model")


def test_changed_data_is_red(copy: Path) -> None:
    sales = copy / "data" / "sales.csv"
    lines = sales.read_text().splitlines(keepends=True)
    moment, book, copies = lines[100].strip().split(",")
    lines[100] = f"{moment},{book},{int(copies) + 50}\n"
    sales.write_text("".join(lines))
    assert red_cells(copy, "03_paging_drift")


def test_a_changed_verdict_of_the_ledger_is_red(copy: Path) -> None:
    def edit(cells: list[Any]) -> None:
        for cell in cells:
            for output in cell.outputs:
                kept = output.get("metadata", {}).get("labkit", {}).get("claim", {})
                if kept.get("id") == "C04":
                    assert kept["verdict"] == "refuted"
                    kept["verdict"] = "confirmed"

    change(copy, "01_model", edit)
    assert red_cells(copy, "99_claims")
