"""What makes a notebook a lesson: transcript, claims, exercises, data and reports."""

from __future__ import annotations

import difflib
import tempfile
from pathlib import Path

from labkit.errors import LabError

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "notebooks"
DATA = ROOT / "data"


def lesson_names() -> list[str]:
    """Names of the lessons that exist, in their order: ``01_model``, ..."""
    return sorted(path.stem for path in NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))


def find_lesson(name: str) -> Path:
    """The notebook of a lesson, named in full (``01_model``), without its number, or as a file.

    Raises:
        LabError: no lesson has this name; the nearest ones are named.
    """
    names = lesson_names()
    wanted = Path(name).name.removesuffix(".ipynb")
    found = [n for n in names if wanted in (n, n[3:], n[:2])]
    if found:
        return NOTEBOOKS / f"{found[0]}.ipynb"
    near = difflib.get_close_matches(wanted, names + [n[3:] for n in names], n=2, cutoff=0.5)
    hint = f"Did you mean {' or '.join(near)}?" if near else f"There are: {', '.join(names)}."
    raise LabError(f"There is no lesson {wanted!r}.", hint)


def write(path: Path, text: str) -> None:
    """Replace a text file in one step: an interrupted run leaves the old one, never half of one.

    Raises:
        LabError: the system does not let it be written.
    """
    try:
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as folder:
            new = Path(folder, path.name)
            new.write_text(text, encoding="utf-8", newline="\n")
            new.replace(path)
    except OSError as error:
        raise LabError(f"{path.name} cannot be written: {error.strerror}.") from error
