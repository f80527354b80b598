"""A student's way in: JupyterLab in a real browser, Run All, and the figures are there."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import psutil
import pytest
from playwright.sync_api import Page, expect, sync_playwright

from labkit.lessons import find_lesson
from labkit.servers import embedded

pytestmark = pytest.mark.browser
MINUTES = 60_000  # milliseconds


@pytest.fixture
def lab_url(tmp_path: Path) -> Iterator[str]:
    """JupyterLab on a copy of the lesson without its outputs."""
    lesson = nbformat.read(find_lesson("01_model"), as_version=4)
    for cell in lesson.cells:
        if cell.cell_type == "code":
            cell.update(outputs=[], execution_count=None)
    nbformat.write(lesson, tmp_path / "01_model.ipynb")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "labkit", "lab", "--no-browser", f"--port={port}"]
    command += [f"--notebook-dir={tmp_path}", "--IdentityProvider.token=t", "--allow-root"]
    quiet = subprocess.DEVNULL
    server = subprocess.Popen(
        command, stdout=quiet, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert server.stderr is not None
    said = []
    for line in server.stderr:  # it names its address when it is ready
        said.append(line)
        if f":{port}/lab" in line:
            break
    else:
        raise AssertionError("".join(said)[-2000:])
    threads = subprocess.Popen(["cat"], stdin=server.stderr, stdout=subprocess.DEVNULL)
    yield f"http://127.0.0.1:{port}"
    kernels = psutil.Process(server.pid).children(recursive=True)
    os.killpg(server.pid, signal.SIGTERM)
    server.wait(timeout=30)
    psutil.wait_procs(kernels, timeout=10)
    threads.wait(timeout=10)


@pytest.fixture
def page() -> Iterator[Page]:
    chromium = os.environ.get("LABKIT_CHROMIUM") or shutil.which("chromium")
    assert chromium, "install chromium, or name one in LABKIT_CHROMIUM"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield browser.new_page(viewport={"width": 1280, "height": 1000})
        browser.close()


def test_run_all(lab_url: str, page: Page) -> None:
    before = {folder for _, _, folder in embedded.running()}
    page.goto(f"{lab_url}/lab/tree/01_model.ipynb?token=t&reset")
    notebook = page.locator(".jp-Notebook")
    expect(notebook).to_be_visible(timeout=MINUTES)
    expect(page.get_by_text("| Idle")).to_be_visible(timeout=MINUTES)
    page.locator(".lm-MenuBar-itemLabel", has_text="Run").first.click()
    page.locator(".lm-Menu-itemLabel", has_text="Run All Cells").first.click()

    # The last cell has run when the kernel has counted all of them; read it from the saved file.
    saved = _wait_until_run(page, lab_url)
    cells = [cell for cell in saved["cells"] if cell["cell_type"] == "code"]
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert [o for o in outputs if o["output_type"] == "error" or o.get("name") == "stderr"] == []
    assert sum("image/png" in o.get("data", {}) for o in outputs) >= 5
    assert {folder for _, _, folder in embedded.running()} - before
    figures = page.locator(".jp-RenderedImage img")
    assert figures.count() >= 5
    for number in range(figures.count()):
        figure = figures.nth(number)
        figure.scroll_into_view_if_needed()
        expect(figure).to_be_in_viewport()
        assert figure.evaluate("image => image.decode().then(() => image.naturalWidth)") > 0
        if folder := os.environ.get("LABKIT_SCREENSHOTS"):
            page.screenshot(path=f"{folder}/jupyterlab-{number}.png")


def _wait_until_run(page: Page, lab_url: str) -> Any:
    """Save until every code cell of the file has a number; give the notebook."""
    for _ in range(180):
        page.keyboard.press("Control+s")
        page.wait_for_timeout(1000)
        with urllib.request.urlopen(f"{lab_url}/api/contents/01_model.ipynb?token=t") as reply:
            notebook = json.load(reply)["content"]
        code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        if all(cell["execution_count"] for cell in code):
            return notebook
        broken = [o for cell in code for o in cell["outputs"] if o["output_type"] == "error"]
        assert not broken, broken[0]
    raise AssertionError("the lesson did not reach its end in three minutes")
