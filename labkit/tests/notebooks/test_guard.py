"""What nbval does not look at: every lesson ran whole, in order, and left clean outputs."""

from __future__ import annotations

import json
import re
import statistics
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import nbformat
import pytest
from IPython.core.inputtransformer2 import TransformerManager

from labkit.lessons import NOTEBOOKS, ROOT
from labkit.lessons.exercises import exercise
from labkit.lessons.regression import pytest_command

LESSONS = sorted(NOTEBOOKS.glob("*.ipynb"))
CORE = [path for path in LESSONS if path.stem != "99_claims"]
MACHINE_PATH = re.compile(r"/(home|root|Users|work|tmp|var|private)/|[A-Z]:\\")
SHELLS = {"sh", "bash", "script", "system", "sx", "capture"}
TEXT_TYPES = {"text/plain", "text/html", "image/png", "text/markdown"}


def code_cells(path: Path) -> list[Any]:
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def outputs(path: Path) -> list[Any]:
    return [output for cell in code_cells(path) for output in cell.outputs]


def ignored(cell: Any) -> bool:
    return "nbval-ignore-output" in cell.metadata.get("tags", [])


def gives_verdict(cell: Any) -> bool:
    """A claim, or a printed True or False; never an ignored cell."""
    shown = "".join(str(o.get("text") or o.get("data", {}).get("text/plain")) for o in cell.outputs)
    said = re.search(r"\b(True|False)\b", shown) or re.search(r"\bclaim\(", cell.source)
    return not ignored(cell) and bool(said)


def headings(path: Path) -> list[str]:
    """Every heading of the prose in order, without what stands in fences of code."""
    cells = nbformat.read(path, as_version=4).cells
    prose = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    return re.findall(r"^#{1,6} +(.+)$", re.sub(r"^```.*?^```", "", prose, flags=re.M | re.S), re.M)


def test_there_are_lessons() -> None:
    assert [path.stem for path in LESSONS][:3] == ["01_model", "02_zadd_options", "03_paging_drift"]


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
class TestEveryLesson:
    def test_every_code_cell_was_executed_in_order(self, path: Path) -> None:
        cells = code_cells(path)
        assert all(cell.source.strip() for cell in cells), "a code cell is empty"
        counts = [cell.execution_count for cell in cells]
        assert counts == list(range(1, len(cells) + 1))

    def test_outputs_are_clean(self, path: Path) -> None:
        for output in outputs(path):
            assert output.output_type in ("stream", "display_data", "execute_result")
            assert output.get("name", "stdout") == "stdout", output.get("text")
            assert set(output.get("data", {})) <= TEXT_TYPES

    def test_no_output_shows_a_path_of_a_machine(self, path: Path) -> None:
        for output in outputs(path):
            data = {k: v for k, v in output.get("data", {}).items() if k != "image/png"}
            shown = json.dumps([data, output.get("text", ""), output.get("metadata", {})])
            assert not MACHINE_PATH.search(shown), shown[:300]

    def test_no_shell_and_no_trailing_semicolon(self, path: Path) -> None:
        for cell in code_cells(path):
            python = TransformerManager().transform_cell(cell.source)
            assert not re.search(r"get_ipython\(\)\.(system|getoutput)\(", python)
            assert not SHELLS & set(re.findall(r"run_\w+_magic\('(\w+)'", python))
            assert not cell.source.rstrip().endswith(";")

    def test_no_cell_is_skipped_or_allowed_to_fail(self, path: Path) -> None:
        known = {"parameters", "nbval-ignore-output"}
        for cell in code_cells(path):
            assert set(cell.metadata.get("tags", [])) <= known
            assert "NBVAL" not in cell.source

    def test_one_kernel(self, path: Path) -> None:
        assert nbformat.read(path, as_version=4).metadata.kernelspec.name == "python3"

    def test_ignored_cells_are_few_and_each_is_followed_by_a_verdict(self, path: Path) -> None:
        cells = code_cells(path)
        assert 5 * sum(map(ignored, cells)) <= len(cells)
        waiting = None
        for cell in cells:
            if ignored(cell):
                assert waiting is None, f"no verdict follows: {waiting}"
                waiting = cell.source
            elif gives_verdict(cell):
                waiting = None
        assert waiting is None, f"no verdict follows: {waiting}"

    def test_claims_stand_in_strict_cells(self, path: Path) -> None:
        for cell in code_cells(path):
            assert not (ignored(cell) and re.search(r"\bclaim\(", cell.source))

    def test_cells_are_calm(self, path: Path) -> None:
        sizes = [len(cell.source.strip().splitlines()) for cell in code_cells(path)]
        assert max(sizes) <= 15
        assert statistics.median(sizes) <= 4


@pytest.mark.parametrize("path", CORE, ids=lambda path: path.stem)
class TestShape:
    def test_it_opens_and_ends_as_every_lesson_does(self, path: Path) -> None:
        _title, second, *others, last = headings(path)
        assert (second, last) == ("Guess first", "Where next")
        assert "Pitfalls" in others
        assert any(heading.startswith("Exercise") for heading in others)

    def test_parameters_and_connection_stand_in_a_cell_each(self, path: Path) -> None:
        cells = code_cells(path)
        assert sum("parameters" in cell.metadata.get("tags", []) for cell in cells) == 1
        assert sum("connect(server)" in cell.source for cell in cells) == 1

    def test_it_has_a_measured_figure(self, path: Path) -> None:
        sources = [cell.source for cell in code_cells(path)]
        assert any(source.endswith("plt.show()") for source in sources)
        assert sum(map(ignored, code_cells(path))) >= 1

    def test_stubs_are_made_from_the_solutions(self, path: Path) -> None:
        sources = [cell.source for cell in code_cells(path)]
        names = re.findall(r'\bexercise\("(\w+)"\)', "\n".join(sources))
        assert names
        assert {exercise(name).stub() for name in names} <= set(sources)
        shown = [o.get("text") for c in code_cells(path) for o in c.outputs if "check(" in c.source]
        assert shown.count("Not attempted.\n") == len(set(names))


@pytest.mark.parametrize(
    ("args", "with_tests"),
    [(["notebooks"], False), ([], True), (["--ignore", "data"], True)],
    ids=["a path", "no path", "a folder as the value of an option"],
)
def test_every_code_cell_is_collected(args: list[str], with_tests: bool) -> None:
    command = pytest_command([*args, "--collect-only", "-q"])
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    collected = Counter(re.findall(r"^notebooks/(\w+)\.ipynb::", done.stdout, re.MULTILINE))
    assert collected == {path.stem: len(code_cells(path)) for path in LESSONS}
    assert ("labkit/tests/test_imports.py::" in done.stdout) is with_tests
