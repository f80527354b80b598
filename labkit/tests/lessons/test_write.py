"""One way to write a file: whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from labkit.errors import LabError
from labkit.lessons import write


def test_the_new_text_replaces_the_old_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    for text in ("a longer old text\n", "café\n"):
        write(path, text)
        assert path.read_bytes() == text.encode()
    assert os.listdir(tmp_path) == ["page.html"]


def test_an_interrupted_write_leaves_the_old_text(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    write(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write(path, "new \ud800")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["page.html"]


@pytest.mark.parametrize("folder", ["missing", "file"])
def test_where_nothing_can_be_written(tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LabError, match=r"page\.html cannot be written: N"):
        write(tmp_path / folder / "page.html", "new")
