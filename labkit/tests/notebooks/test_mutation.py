"""The regression run has teeth: whatever is changed in a lesson turns it red.

Every run of a lesson tries its outputs itself, see teeth.py. Here is shown that this is so, and
that pytest says it: nbval judges each cell by itself, so one run of a lesson tries one changed
output in every cell at once, and each of these cells must be red, and no other. Scores, data and
the ledger have a run each.
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
from labkit.tests.notebooks.teeth import compared, mutant
from labkit.tests.notebooks.test_sanitize import sanitize


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of all that a lesson reads, which may be changed."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for part in ("labkit", "notebooks", "data"):
        leave = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
        shutil.copytree(ROOT / part, tmp_path / part, ignore=leave)
    return tmp_path


def red_cells(copy: Path, lesson: str) -> set[int]:
    """The code cells of a copied lesson, by their number, that strict nbval finds fault with."""
    python, *options = pytest_command(
        [f"{ROOT}/notebooks/{lesson}.ipynb", "-qrfE", "-pno:cacheprovider"]
    )
    done = subprocess.run(
        [python, *(option.replace(str(ROOT), str(copy)) for option in options)],
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


def mutate(cells: list[Any], turn: int) -> set[int]:
    """Change the first (turn 0) or the second text (turn 1) of each cell; the numbers of those."""
    changed = set()
    for number, cell in enumerate(cells):
        texts = sorted(compared(cell), key=lambda text: text[1] == "text/html")
        for holder, key in texts[turn : turn + 1]:
            holder[key] = mutant(holder[key], sanitize)
            changed.add(number)
    return changed


@pytest.mark.parametrize("lesson", lesson_names())
def test_every_lesson_has_outputs_to_try(lesson: str) -> None:
    cells = nbformat.read(ROOT / "notebooks" / f"{lesson}.ipynb", as_version=4).cells
    assert sum(bool(compared(cell)) for cell in cells if cell.cell_type == "code") >= 3


@pytest.mark.parametrize("turn", [0, 1])  # 1: the HTML of a table is compared too
def test_a_changed_output_is_red_and_nothing_else(copy: Path, turn: int) -> None:
    changed = change(copy, "01_model", lambda cells: mutate(cells, turn))
    assert len(changed) >= 3
    assert red_cells(copy, "01_model") == changed


def test_an_output_that_may_change_unseen_is_red(copy: Path) -> None:
    """Both cells are as stored, and nbval alone is content; but a rule overlooks one of them."""
    rules = copy / "labkit" / "lessons" / "sanitize.cfg"
    rules.write_text(rules.read_text() + "\n[too wide]\nregex: rank \\w+\nreplace: RANK\n")
    kernel = {"name": "python3", "display_name": "Python 3"}
    notebook = nbformat.v4.new_notebook(metadata={"kernelspec": kernel})
    for text in ("seen", "rank True"):
        said = nbformat.v4.new_output("stream", text=f"{text}\n")
        code = nbformat.v4.new_code_cell(f"print({text!r})", outputs=[said], execution_count=1)
        notebook.cells.append(code)
    nbformat.write(notebook, copy / "notebooks" / "small.ipynb")
    assert red_cells(copy, "small") == {1}


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
