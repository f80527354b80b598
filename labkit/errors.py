"""The one error that labkit raises for what a user can mend."""

from __future__ import annotations


class LabError(Exception):
    """Says in one or two sentences what is wrong and what to do.

    Args:
        what: what is wrong, a whole sentence.
        cure: what the reader can do about it, a whole sentence.
    """

    def __init__(self, what: str, cure: str = "") -> None:
        super().__init__(f"{what} {cure}".strip())

    def _render_traceback_(self) -> list[str]:
        """IPython shows these lines in place of a traceback."""
        return [f"LabError: {self}"]
