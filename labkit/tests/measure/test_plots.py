"""Figures: everything inside, nothing on top of anything, always the same size."""

from __future__ import annotations

import struct
from collections.abc import Callable
from itertools import combinations
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from IPython.core.pylabtools import print_figure
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text

from labkit.measure import memory_by_members, new_figure, time_by_size

mpl.use("agg")
LONG = "ZSCORE and ZCARD do not notice the size; ZADD and ZREVRANK grow with its logarithm, " * 2
OPERATIONS = ["ZSCORE", "ZCARD", "ZADD", "ZREVRANK", "page of 50 in the middle", "ZCOUNT"]


@pytest.fixture(autouse=True)
def _closed() -> object:
    yield
    plt.close("all")


def swept(servers: int = 2, operations: int = 6, spread: float = 1.3) -> pd.DataFrame:
    """Curves that lie close together, which is what labels find hard."""
    rows = [
        (f"Server {s}", 10**k, OPERATIONS[o], 1000, t, t / spread, t * spread)
        for s in range(servers)
        for k in range(3, 7)
        for o in range(operations)
        for t in [(0.3 + 0.01 * o + 0.02 * s) * k]
    ]
    columns = ["server", "members", "operation", "calls", "usec_per_call", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def weighed(step: int, largest: int) -> pd.DataFrame:
    rows = [(s, n, 90 * n) for s in ("Redis", "Valkey") for n in range(step, largest + 1, step)]
    return pd.DataFrame(rows, columns=["server", "members", "bytes"])


FIGURES: dict[str, Callable[[], tuple[Figure, Axes]]] = {
    "crowded": lambda: time_by_size(swept(), LONG),
    "linear": lambda: time_by_size(swept(), "A finding", log_y=False),
    "one line": lambda: time_by_size(swept(1, 1), "A finding"),
    "three servers": lambda: time_by_size(swept(3, 2), LONG),
    "five decades": lambda: time_by_size(swept(2, 3, 300.0), LONG),
    "memory": lambda: memory_by_members(weighed(1, 200), LONG),
    "memory of millions": lambda: memory_by_members(weighed(10**6, 10**7), "A finding"),
    "memory, logarithmic": lambda: memory_by_members(weighed(10**6, 10**7), LONG, log=True),
    "empty": lambda: new_figure(LONG, x="members", y="time (µs)"),
}


def texts(fig: Figure) -> list[Text]:
    """Every text that is drawn, the title among them."""
    fig.draw_without_rendering()
    (ax,) = fig.axes
    ticks = [t for axis in (ax.xaxis, ax.yaxis) for t in _shown(axis)]
    every = [*fig.texts, *ticks, *legend(ax), *ax.texts, ax.xaxis.label, ax.yaxis.label]
    return [t for t in every if t.get_text() and t.get_visible()]


def legend(ax: Axes) -> list[Text]:
    found = ax.get_legend()
    return found.get_texts() if found else []


def _shown(axis: mpl.axis.Axis) -> list[Text]:
    low, high = sorted(axis.get_view_interval())
    return [t.label1 for t in axis.get_major_ticks() if low <= t.get_loc() <= high]


@pytest.mark.parametrize("name", FIGURES)
def test_every_text_is_inside_and_covers_no_other(name: str) -> None:
    fig, _ = FIGURES[name]()
    boxes = [(t.get_text(), t.get_window_extent()) for t in texts(fig)]
    assert len(boxes) > 4
    width, height = fig.get_size_inches() * fig.dpi
    for text, box in boxes:
        assert box.x0 >= 0, text
        assert box.y0 >= 0, text
        assert box.x1 <= width + 0.5, text
        assert box.y1 <= height + 0.5, text
    for (one, box), (other, its) in combinations(boxes, 2):
        over = min(box.x1, its.x1) - max(box.x0, its.x0), min(box.y1, its.y1) - max(box.y0, its.y0)
        assert min(over) < 1.5, (one, other)


def test_stored_pictures_have_one_size() -> None:
    """Jupyter crops to the content, so the size would differ with every label."""
    picture: Any = print_figure  # as the inline backend calls it; IPython leaves it untyped
    sizes = set()
    for make in FIGURES.values():
        fig, _ = make()
        sizes.add(struct.unpack(">II", picture(fig, fmt="png")[16:24]))
    assert len(sizes) == 1


def test_time_by_size_shows_every_curve_in_its_colour_and_line() -> None:
    frame = swept(2, 3)
    _, ax = time_by_size(frame, "A finding")
    curves = ax.lines
    assert len(curves) == 6
    assert len({to_rgb(line.get_color()) for line in curves}) == 3
    assert len({line.get_marker() for line in curves}) == 2
    first = frame[(frame["operation"] == "ZSCORE") & (frame["server"] == "Server 0")]
    assert (
        np.column_stack(curves[0].get_data()).tolist()
        == first[["members", "usec_per_call"]].values.tolist()
    )
    assert [t.get_text() for t in legend(ax)] == [*("Server 0", "Server 1", "all repeats")]
    assert {t.get_text() for t in ax.texts} == set(OPERATIONS[:3])
    assert ax.get_xlabel() == "members in the set"
    assert ax.get_ylabel() == "server time per call (µs)"


def test_the_first_four_colours_differ_in_grey() -> None:
    """Seven do not: in grey print, what tells more than four curves apart is their names.

    A step of 5 % of the way from black to white can be seen side by side, hardly from memory.
    """
    new_figure()
    colours = plt.rcParams["axes.prop_cycle"].by_key()["color"]
    assert len(set(colours)) == 7
    grey = [sum(w * c for w, c in zip((0.3, 0.59, 0.11), to_rgb(x), strict=True)) for x in colours]
    assert min(abs(a - b) for a, b in combinations(grey[:4], 2)) > 0.05


def test_no_figure_is_shown_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    before = plt.get_fignums()
    fig, ax = new_figure("A finding")
    assert ax.figure is fig
    assert plt.get_fignums() == [*before, fig.number]
    assert capsys.readouterr() == ("", "")
