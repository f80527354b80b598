"""Figures in one style: calm, fixed in size, readable for the colour-blind and in print."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = tuple(f"C{i}" for i in range(7))  # those of the style, in its order
# The servers of a figure, in order: told apart without any colour.
LINES: tuple[dict[str, Any], ...] = (
    {"linestyle": "-", "marker": "o"},
    {"linestyle": (0, (4, 1.6)), "marker": "s", "markerfacecolor": "white"},
    {"linestyle": ":", "marker": "^"},
)
# A legend in one row between title and data, where it can hide nothing.
ABOVE: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.3}


def new_figure(
    title: str = "", *, x: str = "", y: str = "", size: tuple[float, float] = (8, 4.5)
) -> tuple[Figure, Axes]:
    """An empty figure in the style of the lessons, which is matplotlib's style from then on.

    Args:
        title: the finding, one sentence; it is wrapped.
        x: label of the x axis, with its unit.
        y: label of the y axis, with its unit.
        size: width and height in inches of 110 pixels; best the same for every figure.
    """
    import matplotlib.pyplot as plt
    from matplotlib.patches import Rectangle

    # Not for this figure alone: what a lesson draws into it next has to look the same.
    plt.style.use(Path(__file__).with_name("style.mplstyle"))
    fig, ax = plt.subplots(figsize=size, dpi=110, layout="constrained")
    # Jupyter crops figures to their content; this makes the whole figure content.
    fig.add_artist(Rectangle((0, 0), 1, 1, transform=fig.transFigure, alpha=0))
    if title:
        # Flush with the figure, not with the axes, whose left edge moves with the tick labels.
        text = fig.suptitle(title, x=0.012, ha="left")
        width = len(title)
        while text.get_window_extent().x1 > fig.bbox.width - 8 and width > 20:
            width -= 1
            text.set_text(textwrap.fill(title, width))
    ax.set(xlabel=x, ylabel=y)
    return fig, ax


def time_by_size(
    frame: pd.DataFrame,
    title: str,
    *,
    x: str = "members in the set",
    y: str = "server time per call (µs)",
    log_y: bool = True,
) -> tuple[Figure, Axes]:
    """Time against size, from a result of `sweep`: colour is the operation, line the server.

    The band goes from the fastest to the slowest repeat. Each operation is named at the end
    of the first server's line; the servers stand in a legend above.

    Args:
        frame: columns ``server``, ``members``, ``operation``, ``usec_per_call``, ``low``, ``high``.
        title: the finding.
        x: label of the x axis (logarithmic), for sweeps over something else.
        y: label of the y axis.
        log_y: False for a y axis that starts at zero.
    """
    fig, ax = new_figure(title, x=x, y=y)
    ends = {}
    servers, operations = _names(frame["server"]), _names(frame["operation"])
    for operation, colour in _styled(operations, COLOURS):
        for server, line in _styled(servers, LINES):
            part = frame[(frame["operation"] == operation) & (frame["server"] == server)]
            ax.fill_between(
                part["members"], part["low"], part["high"], color=colour, alpha=0.1, lw=0
            )
            ax.plot(part["members"], part["usec_per_call"], color=colour, **line)
            if server == servers[0]:
                ends[operation] = (*part.iloc[-1][["members", "usec_per_call"]], colour)
    ax.set_xscale("log")
    _plain_ticks(ax.xaxis, (1,))
    if log_y:
        ax.set_yscale("log")
        low, high = ax.get_ylim()
        _plain_ticks(ax.yaxis, (1, 2, 5) if high < 2000 * low else (1,))
    else:
        ax.set_ylim(bottom=0)
    _label_ends(fig, ax, ends)
    _legend(ax, servers)
    return fig, ax


def memory_by_members(
    frame: pd.DataFrame,
    title: str,
    *,
    x: str = "members in the set",
    y: str = "memory of the key (bytes)",
    log: bool = False,
) -> tuple[Figure, Axes]:
    """Memory against members: columns ``server``, ``members``, ``bytes``; a line a server.

    Args:
        frame: one row for each server and size.
        title: the finding.
        x: label of the x axis.
        y: label of the y axis; bytes per member go here as well.
        log: both axes logarithmic.
    """
    fig, ax = new_figure(title, x=x, y=y)
    servers = _names(frame["server"])
    dense = len(frame) > 30 * len(servers)
    for (server, line), colour in zip(_styled(servers, LINES), COLOURS, strict=False):
        part = frame[frame["server"] == server]
        style = {**line, "marker": ""} if dense else line
        ax.plot(part["members"], part["bytes"], color=colour, label=server, **style)
    if log:
        ax.set(xscale="log", yscale="log")
        _plain_ticks(ax.xaxis, (1,))
        _plain_ticks(ax.yaxis, (1,))
    else:
        ax.set_ylim(bottom=0)
        ax.xaxis.set_major_formatter("{x:,.10g}")
        ax.yaxis.set_major_formatter("{x:,.10g}")
    ax.legend(**ABOVE, ncols=len(servers))
    return fig, ax


def _names(column: Any) -> list[str]:
    """The distinct values, in the order in which they come."""
    return list(dict.fromkeys(column))


def _styled(names: list[str], styles: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    return zip(names, itertools.cycle(styles), strict=False)


def _plain_ticks(axis: Any, steps: tuple[int, ...]) -> None:
    """0.1, 1, 1,000 in place of powers of ten, at these steps in each decade."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=steps, numticks=12))
    axis.set_major_formatter("{x:,.10g}")
    axis.set_minor_formatter(NullFormatter())


def _label_ends(
    fig: Figure, ax: Axes, ends: Mapping[str, tuple[float, float, str]], gap: float = 14
) -> None:
    """Write names beside the ends of lines (x, y, colour), at least ``gap`` points apart."""
    from matplotlib.colors import to_rgb

    fig.draw_without_rendering()  # fixes the limits, on which the positions depend
    floor = float("-inf")
    for name, (x, y, colour) in sorted(ends.items(), key=lambda item: item[1][1]):
        at = ax.transData.transform((x, y))[1] * 72 / fig.dpi
        floor = max(at, floor + gap)
        ax.annotate(
            name,
            (x, y),
            xytext=(10, floor - at),
            textcoords="offset points",
            color=[0.75 * part for part in to_rgb(colour)],  # thin letters need more contrast
            va="center",
            annotation_clip=False,
        )


def _legend(ax: Axes, servers: list[str]) -> None:
    """The servers' lines without a colour, and what the bands are."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [
        Line2D([], [], color="#333333", label=server, **line)
        for server, line in _styled(servers, LINES)
    ]
    handles.append(Patch(color="#333333", alpha=0.15, lw=0, label="all repeats"))
    ax.legend(handles=handles, **ABOVE, ncols=len(handles))
