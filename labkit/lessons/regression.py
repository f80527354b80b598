"""Lessons against their stored outputs: refreshing them, and the run that compares."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from labkit.errors import LabError
from labkit.lessons import ROOT, find_lesson, lesson_names, write

STORED_ON = "Redis 8.10."  # the stored outputs are those of this server
# A cell that loads a million members takes seconds here; on a busy machine, minutes. Past this
# a cell hangs: without a limit nbval would wait for ever.
CELL_SECONDS = 300
SANITIZE = Path(__file__).with_name("sanitize.cfg")


def pytest_command(args: Sequence[str]) -> list[str]:
    """The command line of the whole regression run; ``args`` are pytest's own.

    Without a path among ``args`` it takes labkit's tests and all lessons.
    """
    command = [sys.executable, "-m", "pytest", f"--rootdir={ROOT}", "-c", f"{ROOT}/pyproject.toml"]
    command += ["--nbval", "--nbval-current-env", f"--nbval-cell-timeout={CELL_SECONDS}"]
    return [*command, f"--nbval-sanitize-with={SANITIZE}", "-p", "labkit.lessons.whole", *args]


def refresh_lessons(names: Sequence[str] = ()) -> bool:
    """Run lessons in place and store their outputs.

    A lesson that fails keeps the outputs it had; the others are still run.

    Args:
        names: lessons; all of them when empty.

    Returns:
        Whether all lessons ran to their end.
    """
    from tqdm import tqdm

    paths = [find_lesson(name) for name in names or lesson_names()]
    failed = []
    for path in (bar := tqdm(paths, unit="lesson")):
        bar.set_postfix_str(path.stem)
        try:
            _refresh(path)
        except LabError as error:
            failed.append(f"{path.stem}: {error}")
    print("\n".join(failed) or f"{len(paths)} lessons refreshed.")
    return not failed


def _refresh(path: Path) -> None:
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=CELL_SECONDS,
        kernel_name="python3",
        extra_arguments=["--log-level=ERROR"],  # it warns of TCP, which is on loopback here
        resources={"metadata": {"path": str(path.parent)}},
        record_timing=False,
        coalesce_streams=True,
    )
    try:
        client.execute()
    except CellExecutionError as error:
        raise LabError(f"{error.ename}: {error.evalue}", "Nothing was stored.") from error
    _check_server(notebook)
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    write(path, nbformat.writes(notebook) + "\n")


def _check_server(notebook: Any) -> None:
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            for server in output.get("metadata", {}).get("labkit", {}).get("servers", [])[:1]:
                label = f"{server['name']} {server['version']}"
                if not label.startswith(STORED_ON):
                    raise LabError(
                        f"It ran on {label}, and stored outputs are those of {STORED_ON}x.",
                        "Unset LABKIT_REDIS_URL, or bring up the containers.",
                    )
