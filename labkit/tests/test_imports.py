"""Who may know whom, what an import brings along, and how big files are."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

LABKIT = Path(__file__).resolve().parents[1]
# What each part may import of the others; `labkit` is the package's own front, __init__.py.
MAY = {
    "errors": set(),
    "servers": {"errors"},
    "measure": {"errors"},
    "boards": {"errors"},
    "bookstore": {"errors", "boards"},
    "lessons": {"errors", "servers"},
    "bench": {"errors", "servers", "measure", "bookstore"},
    "cli": {"errors", "servers", "lessons", "bench"},
    "labkit": {"errors", "servers", "lessons"},
    "__main__": {"cli"},
}


def _files() -> list[Path]:
    return [p for p in sorted(LABKIT.rglob("*.py")) if "tests" not in p.relative_to(LABKIT).parts]


def _part(path: Path) -> str:
    first = path.relative_to(LABKIT).parts[0].removesuffix(".py")
    return "labkit" if first == "__init__" else first


def _imports(path: Path, text: str | None = None) -> Iterator[str]:
    """Modules of labkit that a file (or this text in its place) imports, in functions too."""
    package = ("labkit", *path.relative_to(LABKIT).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text() if text is None else text)):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.split(".")[0] == "labkit")
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            name = ".".join(filter(None, (base, node.module)))
            if name.split(".")[0] == "labkit":
                yield from (_module(name, alias.name) for alias in node.names)


def _module(name: str, inside: str) -> str:
    """``name`` or, where ``inside`` is a module of its own, that."""
    path = LABKIT.parent / Path(*name.split("."), inside)
    return f"{name}.{inside}" if path.is_dir() or path.with_suffix(".py").is_file() else name


def _wings() -> set[str]:
    return {_part(path) for path in _files()}


def test_every_part_is_known_here() -> None:
    assert _wings() <= set(MAY)
    assert {"errors", "servers", "measure", "lessons", "cli"} <= _wings()


def _wrong(path: Path, text: str | None = None) -> list[str]:
    here, allowed = _part(path), MAY[_part(path)]
    names = [[*name.split("."), "labkit"][1] for name in _imports(path, text)]
    return [name for name in names if name != here and name not in allowed]


@pytest.mark.parametrize("path", _files(), ids=lambda p: str(p.relative_to(LABKIT)))
def test_imports_run_one_way(path: Path) -> None:
    assert _wrong(path) == []


@pytest.mark.parametrize(
    "text",
    [
        "from labkit.servers import lab",
        "from labkit.servers.lab import connect",
        "import labkit.servers.lab",
        "def f():\n    from labkit import servers",
        "from ..servers import lab",
        "from .. import servers",
        "from labkit import connect",
    ],
)
def test_a_wrong_import_is_seen(text: str) -> None:
    assert _wrong(LABKIT / "measure" / "sweep.py", text)
    assert not _wrong(LABKIT / "measure" / "sweep.py", "from labkit.measure import load")


def test_no_circle_of_modules() -> None:
    def dotted(path: Path) -> str:
        parts = ("labkit", *path.relative_to(LABKIT).with_suffix("").parts)
        return ".".join(parts).removesuffix(".__init__")

    graph = {dotted(path): set(_imports(path)) - {dotted(path)} for path in _files()}
    assert len(tuple(TopologicalSorter(graph).static_order())) >= len(graph)


def test_an_import_is_light_and_starts_nothing() -> None:
    """Neither a process nor the libraries that only tables, figures and reports need."""
    code = """
import subprocess, sys
def refuse(*_, **__): raise AssertionError("a process was started")
subprocess.Popen.__init__ = refuse
import labkit, labkit.measure, labkit.cli
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"pandas", "numpy", "matplotlib", "papermill", "nbconvert", "nbformat", "nbclient"}
    heavy |= {"IPython", "jupyter_client", "scipy", "tornado", "zmq", "jinja2"}
    assert set(done.stdout.split()) & heavy == set()


def test_files_are_short() -> None:
    long = {p.name: n for p in _files() if (n := len(p.read_text().splitlines())) > 260}
    assert long == {}


def _code_lines(path: Path) -> int:
    """Lines that say something to Python: no blank ones, comments or docstrings."""
    text = path.read_text()
    silent = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            silent |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(text.splitlines(), start=1)
    return sum(bool(s := line.strip()) and s[0] != "#" and n not in silent for n, line in lines)


def test_labkit_is_small() -> None:
    """2,500 lines of code: blank lines, comments and docstrings are not counted.

    Nor is what a new lesson brings along: its exercises, its data sets, and what it builds for
    later lessons, which has a limit of its own.
    """
    tasks, data = LABKIT / "lessons" / "tasks", LABKIT / "lessons" / "data.py"
    built = {"boards", "bookstore"}
    counted = [p for p in _files() if _part(p) not in built and tasks not in p.parents]
    assert sum(_code_lines(path) for path in counted if path != data) <= 2500
    assert sum(_code_lines(path) for path in _files() if _part(path) == "boards") <= 600
