"""The report: every lesson executed by papermill and rendered as a page of its own.

Each lesson runs in a process of its own (``python -m labkit.lessons.report``, the last function
here), which lives as long as its standard input stays open: however the report ends, the pipe
closes, the process interrupts itself, and papermill takes its kernel down.
"""

from __future__ import annotations

import ast
import difflib
import errno
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any
from urllib.parse import quote

from labkit import lessons as _lessons
from labkit.errors import LabError
from labkit.lessons.pages import render
from labkit.servers.find import redact

_GRACE = 10.0  # seconds a lesson's process gets to end its kernel before it is killed

Work = dict[Path, dict[str, object]]  # notebook -> the parameters it is run with
Events = SimpleQueue[tuple[Path, bool]]  # a cell of this notebook has begun; or, True: it has ended


def run(
    lessons: Sequence[str] = (),
    *,
    out: Path | None = None,
    server: str = "redis",
    parameters: Mapping[str, object] | None = None,
    jobs: int = 1,
) -> bool:
    """Executes lessons and renders their pages, the index and the claims page.

    Args:
        lessons: names as `find_lesson` takes them; none means all.
        out: the folder of the report, ``reports/`` of the repository by default.
        server: passed as the parameter ``server`` to the lessons that have it.
        parameters: name to value; a text is read as a literal of the default's type.
        jobs: how many lessons run at a time.

    Returns:
        Whether every lesson reached its end. A failing lesson does not stop the others.

    Raises:
        LabError: an unknown lesson or parameter, a value of the wrong type, or a folder that
            cannot be written.
    """
    names = lessons or _lessons.lesson_names()
    if not names or jobs < 1:
        what = f"{jobs} lessons at a time are none" if names else "There are no lessons"
        raise LabError(f"{what}: nothing to report.")
    folder = (out or _lessons.ROOT / "reports").absolute()
    # Plain in every notation of the notebook, so that a password in it can be found there.
    server = quote(server, safe=":/?#[]@!$&'()*+,;=%")
    values = {"server": server, "executed": str(folder / "executed"), **(parameters or {})}
    work = _plan([_lessons.find_lesson(name) for name in names], values, parameters or {})
    try:
        (folder / "executed").mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".running-") as scratch:
            failures = list(_execute_all(work, folder, Path(scratch), jobs))
        render(folder)
    except OSError as error:
        raise LabError(
            f"The report cannot be written to {folder}: {error.strerror or error}.",
            "Make room there, or name another folder with --out.",
        ) from error
    print(folder / "index.html")
    return not any(failures)


def _plan(paths: list[Path], values: Mapping[str, object], given: Mapping[str, object]) -> Work:
    """The parameters of each lesson: those it has, in the types of its defaults.

    Args:
        paths: the lessons.
        values: name to value, for the lessons that have such a parameter.
        given: those of them that the user named; one that no lesson has is an error.
    """
    import papermill

    known: dict[Path, dict[str, Any]] = {p: papermill.inspect_notebook(str(p)) for p in paths}
    names = sorted({name for defaults in known.values() for name in defaults})
    for name in given:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=2)
            hint = f"Near it: {', '.join(near)}." if near else f"There are: {', '.join(names)}."
            raise LabError(f"No lesson of this run has a parameter {name!r}.", hint)
    return {
        path: {n: _value(n, values[n], p["default"]) for n, p in defaults.items() if n in values}
        for path, defaults in known.items()
    }


def _value(name: str, value: object, default: str) -> object:
    """`value` in the type of a parameter whose default is Python source such as ``[10**3]``."""
    wanted = _literal(default)
    if isinstance(value, str) and not isinstance(wanted, str):
        value = _literal({"true": "True", "false": "False"}.get(value, value), value)
    try:
        return _fitted(value, wanted)
    except ValueError:
        text = f"The parameter {name} takes a value like {default}, and {value!r} is not one."
        raise LabError(text, "Write it as in Python.") from None


def _literal(source: str, otherwise: object = None) -> object:
    """The value of a Python literal, in which numbers may be powers."""
    powers = re.sub(r"(\d+)\s*\*\*\s*(\d+)", lambda m: str(int(m[1]) ** int(m[2])), source)
    try:
        return ast.literal_eval(powers.strip())
    except (ValueError, SyntaxError):
        return otherwise


def _fitted(value: Any, wanted: object) -> object:
    """`value` in the type of `wanted`, of which None is any; ``1e6`` is a whole number."""
    if wanted is None:
        return value
    if isinstance(wanted, list | tuple) and isinstance(value, list | tuple):
        return [_fitted(item, wanted[0] if wanted else None) for item in value]
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if type(wanted) is float and number:
        return float(value)
    if type(wanted) is int and number and value % 1 == 0:
        return int(value)
    if type(value) is not type(wanted):
        raise ValueError
    return value


def _execute_all(work: Work, folder: Path, scratch: Path, jobs: int) -> Iterator[str]:
    """Runs the lessons, `jobs` at a time; gives for each what went wrong, or an empty text."""
    import nbformat
    from tqdm import tqdm

    notebooks = (nbformat.read(path, as_version=4) for path in work)
    cells = sum(cell.cell_type == "code" for notebook in notebooks for cell in notebook.cells)
    cells += sum(map(bool, work.values()))  # papermill puts the values into a cell of their own
    waiting, running = deque(work), dict[Path, subprocess.Popen[bytes]]()
    events: Events = SimpleQueue()
    with tqdm(total=cells, unit="cell") as bar:
        try:
            while waiting or running:
                # What reads the executed lessons waits for all of them.
                while waiting and len(running) < (1 if "executed" in work[waiting[0]] else jobs):
                    path = waiting.popleft()
                    running[path] = _start(path, work, scratch, events)
                bar.set_description(", ".join(path.stem for path in running))
                path, ended = events.get()
                if not ended:
                    bar.update()
                    continue
                status = running.pop(path).wait()
                failure = _collect(path.name, status, work[path], folder, scratch)
                bar.write(f"{path.stem}: {failure or 'done'}")
                yield failure
        finally:
            for process in running.values():
                process.stdin.close()  # type: ignore[union-attr]
            for process in running.values():
                try:
                    process.wait(_GRACE)
                except subprocess.TimeoutExpired:
                    process.kill()


def _start(path: Path, work: Work, scratch: Path, events: Events) -> subprocess.Popen[bytes]:
    # The values go by a file that only this user can read: a server's URL may hold a password.
    (scratch / f"{path.name}.values").write_text(json.dumps(work[path]))
    words = [sys.executable, "-m", __name__, str(path), str(scratch)]
    pipe = subprocess.PIPE
    with (scratch / f"{path.name}.log").open("wb") as log:
        # In a session of its own Ctrl-C reaches the report alone, which then ends the lessons.
        child = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=log, start_new_session=True)

    def listen() -> None:  # a thread, because Windows cannot wait for several pipes
        for _ in child.stdout or ():
            events.put((path, False))
        events.put((path, True))

    threading.Thread(target=listen, daemon=True).start()
    return child


def _collect(name: str, status: int, values: dict[str, object], folder: Path, scratch: Path) -> str:
    """Moves an executed notebook into the report; gives what went wrong as one line, or nothing."""
    import nbformat

    if status == errno.ENOSPC:
        raise OSError(status, os.strerror(status))
    notebook = nbformat.read(scratch / name, as_version=4)
    marks = "papermill-error-cell-tag"
    notebook.cells = [c for c in notebook.cells if marks not in c.metadata.get("tags", [])]
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    if status:  # the kernel died or never started: say so in the cell that was to run
        log = (scratch / f"{name}.log").read_text(errors="replace").strip()
        kind, _, reason = log.rpartition("\n")[2].partition(": ")
        begun = [c for c in code if c.metadata.get("papermill", {}).get("start_time")] or code
        error = nbformat.v4.new_output("error", ename=kind.split(".")[-1], evalue=reason)
        begun[-1].outputs.append(error)
    text = nbformat.writes(notebook)
    for value in map(str, values.values()):
        text = text.replace(value, redact(value))
    _lessons.write(folder / "executed" / name, text)
    errors = [out for cell in code for out in cell.outputs if out.output_type == "error"]
    return f"{errors[0].ename}: {errors[0].evalue}".partition("\n")[0] if errors else ""


def _execute(path: Path, scratch: Path) -> None:
    """The process of one lesson; a line on its standard output for each code cell that begins."""
    import papermill

    # Kernels inherit 0, 1 and 2, and would hold the report's pipes open.
    lifeline, progress = os.dup(0), os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)

    def live_with_the_report() -> None:
        os.read(lifeline, 1)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=live_with_the_report, daemon=True).start()
    try:
        papermill.execute_notebook(
            str(path),
            str(scratch / path.name),
            json.loads((scratch / f"{path.name}.values").read_text()),
            cwd=str(path.parent),
            kernel_name="python3",
            progress_bar=False,
            on_cell_start=lambda cell, **_: cell.cell_type == "code" and progress.write("\n"),
        )
    except papermill.PapermillExecutionError:
        return  # it stands in the notebook
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        sys.exit(errno.ENOSPC)  # there may be no room for words


if __name__ == "__main__":
    _execute(Path(sys.argv[1]), Path(sys.argv[2]))
