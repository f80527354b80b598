"""The ledger: what was published, what was measured here, and the verdict.

A verdict is computed in a lesson by ``claim``; the ledger reads it back from the stored outputs
of the notebooks. Nothing here runs a notebook.
"""

from __future__ import annotations

import ast
import csv
import difflib
import json
import numbers
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labkit.errors import LabError
from labkit.lessons import DATA, NOTEBOOKS

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Claim:
    """One line of ``data/claims.csv``."""

    id: str
    source: str
    topic: str
    kind: str
    claim: str
    published: str
    check: str


@dataclass(frozen=True)
class Row(Claim):
    """A claim and what the lessons say of it; ``status`` is measured, missing or open.

    ``missing``: the lesson exists, but no stored verdict does. ``open``: no such lesson yet.
    ``cell`` is the index of the verdict cell in its notebook, ``cell_id`` the id it can be
    linked by.
    """

    status: str = "open"
    lesson: str | None = None
    verdict: str | None = None
    measured: str | None = None
    note: str = ""
    server: str = ""
    cell: int | None = None
    cell_id: str = ""


@cache
def claims() -> dict[str, Claim]:
    """Every claim by its id, in the order of ``data/claims.csv``."""
    with (DATA / "claims.csv").open(encoding="utf-8", newline="") as lines:
        return {line["id"]: Claim(**line) for line in csv.DictReader(lines)}


def claim(
    id: str, agrees: bool | Mapping[str, bool], *, measured: object = None, note: str = ""
) -> None:
    """Print the verdict on a published claim; its measured value goes to the output's metadata.

    Args:
        id: the claim's id in ``data/claims.csv``, such as ``A40``.
        agrees: whether the measurement agrees with what was published, computed from it; or one
            bool a condition: all True is *confirmed*, all False *refuted*, both *depends*.
        measured: what was measured; kept as text and not printed, as it differs from run to run.
        note: what a reader should know beside the verdict; printed, so without measured values.

    Raises:
        LabError: the id is unknown, or ``agrees`` is not made of bools.
    """
    known = claims()
    if id not in known:
        near = difflib.get_close_matches(str(id).upper(), known, n=3, cutoff=0.3)
        raise LabError(f"There is no claim {id!r}.", f"Near it: {', '.join(near) or 'none'}.")
    item, verdict = known[id], _verdict(agrees)
    kept = {"id": id, "verdict": verdict, "measured": readable(measured), "note": note}
    kept |= {"claim": item.claim, "published": item.published}
    text = _text(item, verdict, note)
    ipython = sys.modules.get("IPython")
    if ipython is None or (shell := ipython.get_ipython()) is None:
        print(text)
    else:
        shell.display_pub.publish({"text/plain": text}, {"labkit": {"claim": kept}})


def readable(value: object) -> str:
    """A measured value as text: numbers to four digits, mappings and lists by commas."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {readable(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(readable, value))
    if isinstance(value, numbers.Real) and not isinstance(value, bool):  # numpy's numbers too
        return f"{value:,}" if isinstance(value, numbers.Integral) else f"{value:,.4g}"
    return "" if value is None else str(value)


def ledger(folder: Path = NOTEBOOKS) -> list[Row]:
    """Every claim, in the order of the csv, with what the notebooks of ``folder`` say of it.

    The folder holds the lessons, or a report's executed copies of them.
    """
    found = {row.id: row for row, _ in _claim_cells(folder)}
    lessons = {path.stem[3:] for path in _notebooks(folder)}
    unmeasured = {True: "missing", False: "open"}
    return [
        found.get(item.id, Row(**asdict(item), status=unmeasured[item.topic in lessons]))
        for item in claims().values()
    ]


def check(folder: Path = NOTEBOOKS) -> list[str]:
    """What is wrong with the claims of the notebooks in ``folder``, a sentence each."""
    problems = []
    times: Counter[str] = Counter()
    for row, faults in _claim_cells(folder):
        times[row.id] += 1
        problems += [f"{row.lesson}, cell {row.cell}: {fault}" for fault in faults]
    for path in _notebooks(folder):
        for item in claims().values():
            if item.topic == path.stem[3:] and times[item.id] != 1:
                problems.append(f"{path.stem}: {item.id} has {times[item.id]} cells, not one.")
    return problems


def table(rows: Sequence[Row]) -> pd.DataFrame:
    """The ledger as a table, one row a claim: what was published, what was found, and where."""
    import pandas as pd

    shown = ["topic", "claim", "published", "verdict", "measured", "server", "lesson"]
    frame = pd.DataFrame([asdict(row) for row in rows]).set_index("id")
    return frame.assign(verdict=frame.verdict.fillna(frame.status))[shown].fillna("")


def summary(rows: Sequence[Row]) -> str:
    """The ledger for a terminal: verdicts with their measured values, then what is open."""
    words = {row.id: (row.verdict or row.status).partition(":")[0] for row in rows}
    closed = [row for row in rows if row.status != "open"]
    topics = dict.fromkeys(row.topic for row in rows if row.status == "open")
    lines = [f"{r.id}  {words[r.id]:<10} {r.topic:<14} {r.measured or ''}".rstrip() for r in closed]
    lines += [f"open  {t}: {' '.join(r.id for r in rows if r.topic == t)}" for t in topics]
    counts = ", ".join(f"{n} {word}" for word, n in Counter(words.values()).items())
    return "\n".join([*lines, f"{len(rows)} claims: {counts}"])


def _verdict(agrees: object) -> str:
    numpy = sys.modules.get("numpy")  # whoever passes a numpy bool has imported it
    bools = (bool, numpy.bool_) if numpy else bool
    cases = agrees if isinstance(agrees, Mapping) else {"": agrees}
    if not cases or not all(isinstance(value, bools) for value in cases.values()):
        raise LabError(
            "A verdict is an expression that gives True or False.",
            "Compare what was measured with what was published.",
        )
    holds = [str(name) for name, value in cases.items() if value]
    fails = [str(name) for name, value in cases.items() if not value]
    if holds and fails:
        return f"depends: holds for {', '.join(holds)}; not for {', '.join(fails)}"
    return "confirmed" if holds else "refuted"


def _text(item: Claim, verdict: str, note: str) -> str:
    lines = [f"{item.id}  {verdict}", f"claim: {item.claim}", f"published: {item.published}", note]
    return "\n".join(line for line in lines if line)


def _notebooks(folder: Path) -> list[Path]:
    return sorted(folder.glob("[0-9][0-9]_*.ipynb"))


def _claim_cells(folder: Path) -> Iterator[tuple[Row, list[str]]]:
    """Yield each call of ``claim`` in the notebooks, as a row, with what is wrong with it."""
    for path in _notebooks(folder):
        server = ""
        for index, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
            if cell["cell_type"] != "code":
                continue
            stored = {}
            for output in cell["outputs"]:
                kept = output.get("metadata", {}).get("labkit", {})
                if "servers" in kept:
                    parts = ("{name} {version} ({allocator})".format(**s) for s in kept["servers"])
                    server = ", ".join(parts)
                if "claim" in kept:
                    stored[kept["claim"]["id"]] = kept["claim"], output["data"]["text/plain"]
            for id, faults in _calls("".join(cell["source"])):
                item = claims().get(id)
                said, shown = stored.get(id, ({}, ""))
                if "nbval-ignore-output" in cell["metadata"].get("tags", []):
                    faults.append(f"the output of {id} is not compared (nbval-ignore-output).")
                if item is None:
                    faults += [f"the ledger has no claim {id}."] if id else []
                elif item.topic != path.stem[3:]:
                    faults.append(f"{id} belongs to the lesson {item.topic}.")
                elif not said:
                    faults.append(f"no verdict of {id} is stored; run the lesson.")
                elif "".join(shown) != _text(item, said["verdict"], said["note"]):
                    faults.append(f"the stored text of {id} is not what its verdict prints.")
                row = Row(
                    **asdict(item or Claim(id, "", "", "", "", "", "")),
                    **{name: said[name] for name in ("verdict", "measured", "note") if said},
                    status="measured" if said else "missing",
                    lesson=path.stem,
                    server=server,
                    cell=index,
                    cell_id=cell.get("id", ""),
                )
                yield row, faults


def _calls(source: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the id of each ``claim(...)`` in a cell, with what is wrong with the call."""
    if "claim(" not in source:
        return
    from IPython.core import inputtransformer2

    inputs: Any = inputtransformer2  # it carries no types
    try:  # magics and ! lines become calls of get_ipython(), a %% cell one single call
        tree = ast.parse(inputs.TransformerManager().transform_cell(source))
    except SyntaxError:
        yield "", ["the cell cannot be read as Python."]
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or ast.unparse(node.func) not in (
            "claim",
            "labkit.claim",
        ):
            continue
        given = {word.arg: word.value for word in node.keywords}
        given |= dict(zip(("id", "agrees"), node.args, strict=False))
        id, agrees = given.get("id"), given.get("agrees")
        if not (isinstance(id, ast.Constant) and isinstance(id.value, str)):
            yield "", ["a claim's id is written out in the call of claim."]
            continue
        cases = agrees.values if isinstance(agrees, ast.Dict) else [agrees] if agrees else []
        # An expression in which no name occurs cannot have looked at a measurement.
        looked = [any(isinstance(part, ast.Name) for part in ast.walk(case)) for case in cases]
        computed = bool(looked) and all(looked)
        yield id.value, [] if computed else [f"the verdict of {id.value} is typed in."]
