"""The ledger: verdicts from bools, and what is read back from notebooks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat as _nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

from labkit.errors import LabError
from labkit.lessons import claims
from labkit.lessons.claims import claim

nbformat: Any = _nbformat  # its functions carry no types
MEMORY = [item.id for item in claims.claims().values() if item.topic == "memory"]


def notebook(folder: Path, name: str, *cells: str | tuple[str, list[str]]) -> Path:
    """A notebook of code cells, each a source or (source, tags), run to its end."""
    book = nbformat.v4.new_notebook()
    for cell in cells:
        source, tags = cell if isinstance(cell, tuple) else (cell, [])
        book.cells.append(nbformat.v4.new_code_cell(source, metadata={"tags": tags}))
    NotebookClient(book, timeout=60, kernel_name="python3").execute()
    path = folder / f"{name}.ipynb"
    nbformat.write(book, path)
    return path


SERVERS = """
class Servers:
    def _repr_mimebundle_(self, **_):
        facts = {"role": "redis", "name": "Redis", "version": "8.10.2",
                 "source": "embedded", "allocator": "libc"}
        return {"text/plain": "Redis"}, {"labkit": {"servers": [facts]}}
Servers()
"""


@pytest.fixture(scope="module")
def lessons(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lesson on memory in which every claim of that topic has a cell."""
    folder = tmp_path_factory.mktemp("lessons")
    rest = [f'claim("{id}", ratio > 7)' for id in MEMORY if id not in ("A40", "A41")]
    notebook(
        folder,
        "08_memory",
        "from labkit.lessons.claims import claim\nratio = 7.33",
        SERVERS,
        '%%writefile /dev/null\nclaim("A01", ratio > 7)',
        '!true\n%time ratio + 1\nclaim("A40", ratio > 7, measured={"bytes": 11681}, note="So.")',
        'claim("A41", {"Redis": ratio > 7, "Valkey": ratio > 8}, measured=77.73)',
        "\n".join(rest),
    )
    return folder


@pytest.mark.parametrize(
    ("agrees", "verdict"),
    [
        (True, "confirmed"),
        (False, "refuted"),
        (np.float64(1.0) < 2, "confirmed"),
        ({"Redis": True, "Valkey": np.bool_(True)}, "confirmed"),
        ({"Redis": False, "Valkey": False}, "refuted"),
        (
            {"Redis": True, "Valkey": False, "old": True},
            "depends: holds for Redis, old; not for Valkey",
        ),
    ],
)
def test_verdict_is_computed(agrees: Any, verdict: str, capsys: pytest.CaptureFixture[str]) -> None:
    claim("A40", agrees, measured={"bytes": 11682}, note="A ratio is compared.")
    assert capsys.readouterr().out == (
        f"A40  {verdict}\n"
        "claim: 128 members are a listpack, the 129th makes a skip list 7.3 times larger\n"
        "published: 1,593 -> 11,681 bytes\n"
        "A ratio is compared.\n"
    )


@pytest.mark.parametrize("agrees", [1, "yes", None, {}, {"Redis": 1}, np.array([True, False])])
def test_a_verdict_that_is_no_bool_is_refused(agrees: Any) -> None:
    with pytest.raises(LabError, match="expression that gives True or False"):
        claim("A40", agrees)


def test_an_unknown_id_names_the_near_ones() -> None:
    with pytest.raises(LabError, match=r"no claim 'a40'.*A40"):
        claim("a40", True)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (np.int64(11681), "11,681"),
        (7.33333, "7.333"),
        (np.float32(0.5), "0.5"),
        (True, "True"),
        ({"Redis": 17, "Valkey": [1, "us"]}, "Redis: 17, Valkey: 1, us"),
    ],
)
def test_measured_values_are_readable(value: object, text: str) -> None:
    assert claims.readable(value) == text


def test_the_ledger_reads_executed_notebooks(lessons: Path) -> None:
    assert claims.check(lessons) == []
    rows = {row.id: row for row in claims.ledger(lessons)}
    assert list(rows) == list(claims.claims())
    a40 = rows["A40"]
    assert (a40.status, a40.verdict, a40.measured, a40.note) == (
        "measured",
        "confirmed",
        "bytes: 11,681",
        "So.",
    )
    assert (a40.lesson, a40.cell, a40.server) == ("08_memory", 3, "Redis 8.10.2 (libc)")
    assert rows["A41"].verdict == "depends: holds for Redis; not for Valkey"
    assert (rows["A01"].status, rows["A01"].lesson) == ("open", None)


def test_a_verdict_never_shows_what_was_measured(lessons: Path) -> None:
    book = nbformat.read(lessons / "08_memory.ipynb", as_version=4)
    [output] = [o for o in book.cells[3].outputs if "labkit" in o.get("metadata", {})]
    assert output.metadata["labkit"]["claim"]["measured"] == "bytes: 11,681"
    assert "bytes: 11,681" not in output.data["text/plain"]


def test_table_and_summary_hold_every_claim(lessons: Path) -> None:
    rows = claims.ledger(lessons)
    table = claims.table(rows)
    assert len(table) == len(claims.claims())
    assert table.loc["A41", "measured"] == "77.73"
    assert table.loc["A01", "verdict"] == "open"
    text = claims.summary(rows)
    assert "A41  depends" in text
    assert "open  unions: A20 A21" in text
    open_ones = len(rows) - len(MEMORY)
    assert f"{len(rows)} claims: {open_ones} open" in text


def changed(lessons: Path, to: Path, change: Any) -> list[str]:
    """The problems of the lesson after a change of its notebook."""
    book = nbformat.read(lessons / "08_memory.ipynb", as_version=4)
    change(book)
    nbformat.write(book, to / "08_memory.ipynb")
    return claims.check(to)


def source(index: int, text: str) -> Any:
    return lambda book: book.cells[index].update(source=text)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (source(3, "ratio"), "A40 has 0 cells, not one"),
        (source(0, 'claim("A40", ratio > 7)'), "A40 has 2 cells, not one"),
        (source(0, 'claim("A01", ratio > 7)'), "A01 belongs to the lesson paging_drift"),
        (source(0, 'claim("Z99", ratio > 7)'), "the ledger has no claim Z99"),
        (source(0, "claim(some_id, ratio > 7)"), "id is written out"),
        (source(0, 'claim("A40" ratio)'), "cannot be read as Python"),
        (source(3, 'claim("A40", True)'), "the verdict of A40 is typed in"),
        (source(3, 'claim("A40", agrees=not False)'), "the verdict of A40 is typed in"),
        (source(3, 'labkit.claim("A40", {"a": ratio > 7, "b": False})'), "A40 is typed in"),
        (source(3, 'claim("A40")'), "the verdict of A40 is typed in"),
        (lambda book: book.cells[3].update(outputs=[]), "no verdict of A40 is stored"),
        (
            lambda book: book.cells[3].metadata.update(tags=["nbval-ignore-output"]),
            "the output of A40 is not compared",
        ),
        (
            lambda book: [
                o.metadata["labkit"]["claim"].update(verdict="refuted")
                for o in book.cells[3].outputs
                if "labkit" in o.get("metadata", {})
            ],
            "the stored text of A40 is not what its verdict prints",
        ),
    ],
)
def test_what_is_wrong_with_a_claim_is_found(
    lessons: Path, tmp_path: Path, change: Any, problem: str
) -> None:
    assert any(problem in found for found in changed(lessons, tmp_path, change))


def test_the_shipped_ledger_has_all_claims() -> None:
    ids = list(claims.claims())
    assert len(ids) == len(set(ids)) == 48 + 22 + 21 + 14
    assert all(item.claim and item.published and item.topic for item in claims.claims().values())
