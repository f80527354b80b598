"""The pages of the report: one for each executed lesson, an index, and the ledger of claims.

Every page is one file: style, figures and formulas are inside it, and its content security policy
lets a browser fetch nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from labkit import lessons as _lessons
from labkit.lessons import write
from labkit.lessons.claims import Row, ledger


@dataclass
class Lesson:
    """What the report knows of one lesson; without `cells` it has not been run."""

    name: str
    title: str
    cells: list[Any] = field(default_factory=list)  # to the one that failed, if one did
    failed: bool = False
    servers: list[dict[str, str]] = field(default_factory=list)
    parameters: dict[str, str] = field(default_factory=dict)
    started: datetime | None = None
    wall: str = ""


def read(source: Path, executed: Path) -> Lesson:
    """The lesson in the notebook `source`, and its last run in `executed`, if there was one."""
    import nbformat
    import papermill

    done = executed.exists()
    notebook = nbformat.read(executed if done else source, as_version=4)
    heading = re.search(r"^# (.+)$", "\n".join(cell.source for cell in notebook.cells), re.M)
    lesson = Lesson(source.stem, heading[1].replace("`", "") if heading else source.stem)
    if not done:
        return lesson
    for cell in notebook.cells:
        lesson.cells.append(cell)
        for output in cell.get("outputs", []):
            ours = output.get("metadata", {}).get("labkit", {})
            lesson.servers = ours.get("servers", lesson.servers)
            lesson.failed = lesson.failed or output.output_type == "error"
        if lesson.failed:
            break
    about = notebook.metadata.papermill
    defaults = papermill.inspect_notebook(str(executed))
    lesson.parameters = {name: parameter["default"] for name, parameter in defaults.items()}
    lesson.parameters |= {name: repr(value) for name, value in about.parameters.items()}
    lesson.started = datetime.fromisoformat(about.start_time).astimezone()
    minutes, seconds = divmod(about.duration or 0.0, 60)
    lesson.wall = f"{minutes:.0f} min {int(seconds)} s" if minutes else f"{seconds:.1f} s"
    return lesson


def render(folder: Path) -> None:
    """Writes a page for every notebook of `folder`/executed, ``index.html`` and ``claims.html``."""
    import jinja2

    from labkit.lessons import prose

    def verdict(row: Row) -> str:  # the one word; what it depends on stands after it there
        return (row.verdict or "open").partition(":")[0]

    def page(name: str, template: str, **values: Any) -> None:
        text = environment.get_template(f"{template}.html.j2").render(values)
        write(folder / f"{name}.html", text)

    executed = folder / "executed"
    sources = [_lessons.find_lesson(name) for name in _lessons.lesson_names()]
    book = [read(source, executed / source.name) for source in sources]
    rows = ledger(executed)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= prose.FILTERS | {"verdict": verdict}
    environment.globals |= {
        "book": book,
        "ledger": rows,
        "verdicts": ("confirmed", "refuted", "depends", "open"),
        "counts": Counter((row.topic, verdict(row)) for row in rows),
        "total": Counter(map(verdict, rows)),
        "colours": prose.colours(),
    }
    run = [lesson for lesson in book if lesson.cells]
    for before, lesson, after in zip([None, *run], run, [*run[1:], None], strict=False):
        words = prose.Prose(_lessons.NOTEBOOKS, {lesson.name for lesson in run})
        texts = [words.html(c) if c.cell_type == "markdown" else "" for c in lesson.cells]
        about = {"lesson": lesson, "before": before, "after": after}
        page(lesson.name, "lesson", texts=texts, headings=words.headings, **about)
    page("index", "index")
    page("claims", "claims")
