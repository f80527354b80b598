"""A progress bar that a live reader sees and a stored notebook does not."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class _Display:
    """A text file whose last line is shown, and replaced, in one notebook output."""

    encoding = "utf-8"  # tqdm asks before it draws with block characters

    def __init__(self) -> None:
        from IPython.display import display

        show: Any = display  # IPython leaves it untyped
        self._handle = show({"text/plain": ""}, raw=True, display_id=True)

    def write(self, text: str) -> None:
        if text:
            self._handle.update({"text/plain": text.strip()}, raw=True)

    def flush(self) -> None:
        """Every write is shown at once."""


def _kernel() -> Any:
    if "ipykernel" not in sys.modules:
        return None
    from IPython.core.getipython import get_ipython

    return getattr(get_ipython(), "kernel", None)


@contextmanager
def progress(total: int | None, unit: str, *, show: bool = True) -> Iterator[Callable[[int], Any]]:
    """A tqdm bar; calling what it yields with ``n`` advances it by ``n``.

    In a terminal the bar is drawn on stderr. In a notebook it is one display that is updated
    in place and ends empty: never stderr, never a widget. Where nobody watches (a pipe, nbval,
    papermill, nbclient) nothing is written at all, so stored outputs stay as they are.

    Args:
        total: how many steps there will be; None when that is not known.
        unit: what is counted, for the rate: ``members``.
        show: False draws nothing.
    """
    from tqdm import tqdm

    kernel = _kernel()
    # A front end with a person in front of it lets the kernel ask for input; runners do not.
    watched = kernel is None or getattr(kernel, "_allow_stdin", False)
    file = _Display() if kernel is not None and show and watched else None
    with tqdm(
        total=total,
        unit=f" {unit}",
        unit_scale=True,
        leave=False,
        ncols=80,
        file=file,
        disable=None if show and watched else True,
    ) as bar:
        yield bar.update
