"""The bar is seen by a live reader and leaves nothing where nobody watches."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
import termios
from typing import Any

import nbformat
import redis
from jupyter_client.manager import start_new_kernel
from nbclient import NotebookClient

CELL = """
import redis
from labkit.measure import load, sweep
client = redis.Redis(unix_socket_path={path!r}, protocol=3)
print("before")
load(client, "k", ((str(i), i) for i in range(60_000)), total=60_000)
sweep({{"it": client}}, [10], lambda *_: None, {{"card": lambda p, _: p.zcard("k")}}, calls=20_000)
print("after")
"""


def cell(client: redis.Redis) -> str:
    return CELL.format(path=client.connection_pool.connection_kwargs["path"])


def test_an_executed_notebook_stores_nothing_of_it(redis_client: redis.Redis) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell(redis_client))])
    NotebookClient(notebook, kernel_name="python3", timeout=120).execute()
    outputs = notebook.cells[0].outputs
    assert {(output["output_type"], output["name"]) for output in outputs} == {("stream", "stdout")}
    assert "".join(output["text"] for output in outputs) == "before\nafter\n"


def test_a_live_reader_sees_it_and_it_ends_empty(redis_client: redis.Redis) -> None:
    manager, kernel = start_new_kernel(kernel_name="python3")
    messages: list[tuple[str, dict[str, Any]]] = []
    try:
        kernel.execute_interactive(
            cell(redis_client),
            allow_stdin=True,  # as every front end with a person does
            timeout=120,
            output_hook=lambda m: messages.append((m["msg_type"], m["content"])),
        )
    finally:
        kernel.stop_channels()
        manager.shutdown_kernel(now=True)
    shown: dict[str, list[str]] = {}
    for kind, content in messages:
        if kind in ("display_data", "update_display_data"):
            text = content["data"]["text/plain"]
            shown.setdefault(content["transient"]["display_id"], []).append(text)
    assert len(shown) == 2
    assert all(any("%|" in text for text in texts) for texts in shown.values())
    assert all(texts[-1] == "" for texts in shown.values())
    assert all(content["name"] == "stdout" for kind, content in messages if kind == "stream")


def test_a_terminal_shows_it_on_stderr(redis_client: redis.Redis) -> None:
    reader, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (24, 80))  # on a screen of no lines tqdm draws nothing
    command = [sys.executable, "-c", cell(redis_client)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=terminal) as process:
        os.close(terminal)
        shown = b""
        with contextlib.suppress(OSError):  # how Linux reports the end of a terminal
            while part := os.read(reader, 100_000):
                shown += part
        stdout, _ = process.communicate(timeout=60)
    os.close(reader)
    assert process.returncode == 0
    assert stdout == b"before\nafter\n"
    assert b"%|" in shown
    assert b"100%" not in shown.rsplit(b"\r", 1)[-1]  # the line is wiped at the end


def test_a_pipe_shows_nothing(redis_client: redis.Redis) -> None:
    command = [sys.executable, "-c", cell(redis_client)]
    done = subprocess.run(command, capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"before\nafter\n", b"")
