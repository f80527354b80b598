"""Exercises: a stub, hints, a solution, and a check on the live server.

Stub and shown solution are both made from one function in :mod:`labkit.lessons.tasks`, so they
cannot drift apart; a test runs every solution through its own check.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import pkgutil
import textwrap
from contextlib import closing
from functools import cache
from importlib import import_module

import redis

from labkit.errors import LabError
from labkit.lessons import tasks
from labkit.lessons.tasks import Attempt, NotAttemptedError, NotYetError, Task
from labkit.servers import lab


class Exercise:
    """One exercise of a lesson. Made by :func:`exercise`."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self.name = task.solution.__name__

    def __repr__(self) -> str:
        return f"{'*' * self._task.stars} {self._task.question}"

    def _repr_markdown_(self) -> str:
        return f"**{self.name}** {'★' * self._task.stars}\n\n{self._task.question}"

    def stub(self) -> str:
        """The text of the cell to start from: signature, docstring and an open body."""
        header, docstring, _ = self._parts()
        return "\n".join([header, *docstring, "    return ..."])

    def check(self, attempt: object, client: redis.Redis | None = None) -> None:
        """Print *Right*, *Not yet* with what was seen on the server, or *Not attempted*.

        Args:
            attempt: the function that was written.
            client: the server to try it on, the lab's own by default. Only keys under
                ``exercise:`` are written there, and gone afterwards.
        """
        print(self.judge(attempt, client))

    def judge(self, attempt: object, client: redis.Redis | None = None) -> str:
        """The line that :meth:`check` prints."""
        if attempt is None or attempt is ...:
            return "Not attempted."
        if not callable(attempt):
            return f"Not yet: check takes the function itself: check({self.name})."
        try:
            with closing(Attempt(attempt, client or lab.current().redis)) as tried:
                self._task.check(tried)
        except NotAttemptedError:
            return "Not attempted."
        except NotYetError as reason:
            return f"Not yet: {reason}"
        except redis.ConnectionError as error:
            raise LabError("The server is gone.", "Run the cell with `connect` again.") from error
        return "Right."

    def hint(self, n: int = 1) -> None:
        """Print the n-th hint; each says more than the one before."""
        hints = self._task.hints
        if not 1 <= n <= len(hints):
            raise LabError(f"There is no hint {n}.", f"There are {len(hints)}: hint(1) and on.")
        print(textwrap.fill(f"Hint {n} of {len(hints)}: {hints[n - 1]}", 88))

    def solution(self) -> None:
        """Print a solution."""
        header, docstring, body = self._parts()
        print("\n".join([header, *docstring, *body]))

    def _parts(self) -> tuple[str, list[str], list[str]]:
        """Header, docstring lines and body lines of the solution."""
        source = inspect.getsource(self._task.solution)
        function = ast.parse(source).body[0]
        assert isinstance(function, ast.FunctionDef)
        for node in ast.walk(function.args):
            if isinstance(node, ast.arg):
                node.annotation = None  # their names need not be known in a notebook
        header = f"def {function.name}({ast.unparse(function.args)}):"
        first, last = function.body[0].lineno - 1, function.body[0].end_lineno
        lines = source.splitlines()
        return header, lines[first:last], lines[last:]


@cache
def exercises() -> dict[str, Exercise]:
    """Every exercise by its name."""
    modules = [
        import_module(f"{tasks.__name__}.{m.name}") for m in pkgutil.iter_modules(tasks.__path__)
    ]
    found = [Exercise(task) for module in modules for task in module.TASKS]
    return {item.name: item for item in found}


def exercise(name: str) -> Exercise:
    """The exercise of this name.

    Raises:
        LabError: there is none; the nearest name is given.
    """
    known = exercises()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.5) or sorted(known)
        raise LabError(f"There is no exercise {name!r}.", f"There is {', '.join(near)}.")
    return known[name]
