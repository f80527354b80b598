"""The report, made by real papermill runs of small lessons that are written here."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import psutil
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from labkit.errors import LabError
from labkit.lessons import report

VALUES = """server = "redis"
sizes = [10**2, 10**3]
seed = 1
share = 0.5
quick = False"""

MODEL = [
    "# What `ZSCORE` costs\n\n[Options](02_zadd_options.ipynb#Guess-first), [start](00_x.ipynb).",
    "parameters:" + VALUES,
    """from labkit.lessons.claims import claim
from labkit.servers.lab import connect
from labkit.lessons.transcript import register
import matplotlib.pyplot as plt, pandas as pd
%matplotlib inline
register()""",
    "lab = connect(server)\nlab",
    "## Guess first\n\nIs it $O(\\log N)$?\n\n$$\\frac{1}{2}$$",
    "%%redis\nZADD k 1 <b>\nZSCORE k <b>",
    'claim("A03", len(lab.replies) == 2, measured="two replies")',
    'claim("A05", {"small sets": seed == 1, "large sets": seed != 1}, measured=12.5)',
    "pd.DataFrame({'members': sizes, 'time': [1.5, 2.5]})",
    "fig, ax = plt.subplots()\nax.plot([1, 2])\nplt.show()",
    "The time grows with `N`. More words.",
    "print(sizes, seed, share, quick)",
    "## Guess first\n\nA second heading of that name.",
]
FAILS = [
    "# Options",
    'parameters:server = "redis"\ndepth = 3',
    "## Guess first",
    "print('before')",
    "{'a': 1}['b']",
    "print('never')",
]
REFUSES = [
    "# Paging",
    "from labkit.errors import LabError\nraise LabError('It is closed.', 'Open.')",
]
DIES = ["# Ties", "import os", "os._exit(1)", "print('never')"]
WAITS = ["# Waiting", "import signal\nopen('begun', 'w').close()\nsignal.pause()"]


def lesson(folder: Path, name: str, cells: list[str]) -> None:
    """Writes a notebook: texts that begin with # or a capital letter are Markdown."""
    made = []
    for text in cells:
        if text.startswith("parameters:"):
            tags = {"tags": ["parameters"]}
            made.append(new_code_cell(text.removeprefix("parameters:"), metadata=tags))
        else:
            prose = re.match(r"#|[A-Z]", text)
            made.append(new_markdown_cell(text) if prose else new_code_cell(text))
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(new_notebook(cells=made, metadata={"kernelspec": kernel}), folder / name)


@pytest.fixture
def notebooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "notebooks"
    folder.mkdir()
    monkeypatch.setattr("labkit.lessons.NOTEBOOKS", folder)
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, bool]]:
    """A report of four lessons, of which three fail in ways of their own, two at a time."""
    folder = tmp_path_factory.mktemp("notebooks")
    out = tmp_path_factory.mktemp("out")
    lesson(folder, "01_model.ipynb", MODEL)
    lesson(folder, "02_zadd_options.ipynb", FAILS)
    lesson(folder, "03_paging_drift.ipynb", REFUSES)
    lesson(folder, "05_ties.ipynb", DIES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("labkit.lessons.NOTEBOOKS", folder)
        yield out, report.run(out=out, jobs=2)


class Page(HTMLParser):
    """What a page refers to and what can be referred to in it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.text = path.read_text()
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                assert value not in self.anchors
                self.anchors.add(value or "")
            elif tag == "a" and name == "href":
                self.links.append(value or "")
            elif name in ("src", "href", "srcset", "data", "poster", "action"):
                self.loads.append(value or "")


def test_failing_lessons_do_not_stop_the_others(made: tuple[Path, bool]) -> None:
    out, well = made
    assert not well
    names = ["01_model", "02_zadd_options", "03_paging_drift", "05_ties"]
    assert sorted(p.stem for p in out.glob("*.html")) == [*names, "claims", "index"]
    assert sorted(p.stem for p in (out / "executed").iterdir()) == names
    assert [p.name for p in out.iterdir() if p.name.startswith(".")] == []
    rows = (out / "index.html").read_text().split("<tr>")[2:]
    assert ["failed" in row for row in rows] == [False, True, True, True]


def test_page_of_a_lesson(made: tuple[Path, bool]) -> None:
    text = Page(made[0] / "01_model.html").text
    assert "redis&gt; ZADD k 1 &lt;b&gt;\n(integer) 1" in text
    assert re.search(r"Redis [\d.]+ <small>", text)
    assert "<code>sizes = [10**2, 10**3]</code>" in text
    assert re.search(r'<div class="table">\s*<div>\s*<style.*?<table', text, re.S)
    assert 'alt="The time grows with N"' in text
    assert 'href="02_zadd_options.html#Guess-first"' in text
    assert "00_x" not in text
    assert text.count('class="math"') == 3  # two pictures, one paragraph around the second
    assert '<details class="source">' in text
    assert '<details class="source" open>' not in text


def test_pages_of_failed_lessons_show_the_cell_and_nothing_after_it(
    made: tuple[Path, bool],
) -> None:
    raised, refused, died = (
        (made[0] / f"{name}.html").read_text()
        for name in ("02_zadd_options", "03_paging_drift", "05_ties")
    )
    for text in (raised, refused, died):
        assert text.count('id="failed"') == 1
        assert "never" not in text
        assert "papermill-error" not in text
    assert "before\n" in raised
    assert re.search(r"KeyError</code>.*<summary>traceback</summary>", raised, re.S)
    assert "It is closed. Open." in refused
    assert "traceback</summary>" not in refused
    assert "DeadKernelError</code> Kernel died" in died
    executed = nbformat.read(made[0] / "executed" / "02_zadd_options.ipynb", as_version=4)
    assert executed.cells[0].source == "# Options"


def test_claims_lead_to_their_cards(made: tuple[Path, bool]) -> None:
    text = (made[0] / "claims.html").read_text()
    rows = dict(re.findall(r'<tr id="(\w+)" data-verdict="(\w+)"', text))
    assert (rows["A03"], rows["A05"], rows["A04"]) == ("confirmed", "depends", "open")
    assert 'href="01_model.html#claim-A03"' in text
    assert "holds for small sets; not for large sets" in text
    assert "1 confirmed" in (made[0] / "index.html").read_text()


def test_every_link_leads_somewhere(made: tuple[Path, bool]) -> None:
    read = {path.name: Page(path) for path in made[0].glob("*.html")}
    followed = 0
    for name, page in read.items():
        for link in page.links:
            target, _, anchor = link.partition("#")
            assert not anchor or anchor in read[target or name].anchors
            assert (target or name) in read
            followed += 1
    assert followed > 20


def test_nothing_is_fetched(made: tuple[Path, bool]) -> None:
    for path in made[0].glob("*.html"):
        page = Page(path)
        assert [load for load in page.loads if not load.startswith("data:")] == []
        assert not re.search(r"@import|url\(|<script|<link|<iframe", page.text)
        assert "default-src 'none'" in page.text


def test_values_reach_the_lessons_that_have_them(notebooks: Path, tmp_path: Path) -> None:
    show = [MODEL[0], MODEL[1], "print([sizes, seed, share, quick, server])"]
    lesson(notebooks, "01_model.ipynb", show)
    lesson(notebooks, "02_zadd_options.ipynb", ["# Two", "parameters:depth = 3", "print(depth)"])
    out = tmp_path / "new" / "out"
    given = {"sizes": "[10, 10**2]", "seed": "1e3", "share": "2", "quick": "true"}
    url = "redis://:sekret@localhost:1/0"
    assert report.run(out=out, server=url, parameters=given)
    cells = nbformat.read(out / "executed" / "01_model.ipynb", as_version=4).cells
    assert cells[-1].outputs[0].text == (
        "[[10, 100], 1000, 2.0, True, 'redis://:***@localhost:1/0']\n"
    )
    assert all(b"sekret" not in p.read_bytes() for p in out.rglob("*") if p.is_file())
    # A later run of one lesson keeps the page of the other, and one that is gone is not listed.
    assert report.run(["zadd_options"], out=out)
    assert "01_model.html" in (out / "index.html").read_text()
    shutil.rmtree(out / "executed")
    assert report.run(["zadd_options"], out=out)
    assert "not run" in (out / "index.html").read_text()


@pytest.mark.parametrize(
    "url",
    [
        "redis://localhost:1?password=s3kret",
        "redis://user:s3kret@localhost:1/0",
        "unix:///tmp/s?db=2&password=s3kret&username=u",
        "redis://user:a\"s3kret\\é'@localhost:1?password=s3kret",
    ],
)
def test_no_password_is_written_anywhere(notebooks: Path, tmp_path: Path, url: str) -> None:
    show = [
        "# One",
        'parameters:server = "redis"',
        "print(server)\nserver",
        "raise OSError(server)",
    ]
    lesson(notebooks, "01_model.ipynb", show)
    assert not report.run(out=tmp_path / "out", server=url)
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert len(files) == 4
    assert [path.name for path in files if b"s3kret" in path.read_bytes()] == []
    assert "***" in (tmp_path / "out" / "01_model.html").read_text()


def test_pipes_are_not_waited_for_together(
    notebooks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows can wait for several sockets, not for several pipes."""
    monkeypatch.delattr("selectors.DefaultSelector")
    lesson(notebooks, "01_model.ipynb", ["# One", "print(1)"])
    lesson(notebooks, "02_zadd_options.ipynb", ["# Two", "print(2)"])
    assert report.run(out=tmp_path / "out", jobs=2)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("sizs", "1", "no.*'sizs'.*Near it: sizes"),
        ("zzz", "1", "There are: depth, quick, seed, server, share, sizes"),
        ("seed", "abc", r"seed takes a value like 1, and 'abc'"),
        ("seed", "1.5", "seed takes"),
        ("seed", "1e999", "seed takes"),
        ("seed", "True", "seed takes"),
        ("share", "[1]", "share takes"),
        ("quick", "1", "quick takes"),
        ("sizes", "1000", "sizes takes"),
        ("sizes", "[10, 'x']", "sizes takes"),
        ("server", 1, "server takes"),
    ],
)
def test_unfit_parameters_are_refused(
    notebooks: Path, tmp_path: Path, name: str, value: object, said: str
) -> None:
    lesson(notebooks, "01_model.ipynb", MODEL)
    lesson(notebooks, "02_zadd_options.ipynb", FAILS)
    with pytest.raises(LabError, match=f"(?i){said}"):
        report.run(out=tmp_path / "out", parameters={name: value})
    assert not (tmp_path / "out").exists()


def test_folders_that_cannot_be_written_are_refused(notebooks: Path, tmp_path: Path) -> None:
    lesson(notebooks, "01_model.ipynb", MODEL)
    (tmp_path / "file").write_text("mine")
    for out in (tmp_path / "file", Path("/proc/report")):
        with pytest.raises(LabError, match="cannot be written"):
            report.run(out=out)
    assert (tmp_path / "file").read_text() == "mine"
    with pytest.raises(LabError, match="0 lessons at a time"):
        report.run(out=tmp_path / "out", jobs=0)


@pytest.mark.parametrize("way", [signal.SIGINT, signal.SIGKILL])
def test_no_process_outlives_the_report(notebooks: Path, tmp_path: Path, way: int) -> None:
    lesson(notebooks, "01_model.ipynb", WAITS)
    os.mkfifo(notebooks / "begun")
    code = (
        "import sys; from pathlib import Path; import labkit.lessons as all\n"
        "all.NOTEBOOKS = Path(sys.argv[1]); from labkit.lessons import report\n"
        "report.run(out=Path(sys.argv[2]))"
    )
    out = tmp_path / "out"
    process = subprocess.Popen([sys.executable, "-c", code, str(notebooks), str(out)])
    with (notebooks / "begun").open():  # opens when the lesson opens it too
        family = psutil.Process(process.pid).children(recursive=True)
    assert len(family) >= 2  # the lesson's process and its kernel
    process.send_signal(way)
    assert process.wait(30) != 0
    assert psutil.wait_procs(family, timeout=30)[1] == []
    assert list(out.glob("*.html")) == []
    if way == signal.SIGINT:
        assert [p.name for p in out.iterdir()] == ["executed"]
        assert list((out / "executed").iterdir()) == []


@pytest.mark.browser
def test_pages_in_a_browser(made: tuple[Path, bool]) -> None:
    from playwright.sync_api import sync_playwright

    path = os.environ.get("LABKIT_CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 844})
        asked: list[str] = []
        said: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: said.append(message.text))
        files = sorted(made[0].glob("*.html"))
        for file in files:
            page.goto(file.as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") == 390
        fetched = [url for url in asked if not url.startswith("data:")]
        assert fetched == [file.as_uri() for file in files]
        assert said == []
        page.goto((made[0] / "claims.html").as_uri())
        page.check("#only-depends")
        assert page.locator("tbody tr:visible").count() == 1
        browser.close()
