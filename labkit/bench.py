"""The speed table of the README: every row a ratio against a named peer, in the same run."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from urllib.parse import quote

from labkit.measure import client_time, load
from labkit.servers import binaries, embedded
from labkit.servers.space import open_client

PAIRS = 5  # each row: this many turns of ours and theirs, one after the other


def table(members: int) -> str:
    """Measure every row; gives the table as Markdown.

    A ratio is the median over the pairs of a row, between the smallest and the largest of them.
    Seconds are those of the median pair, for scale only.

    Args:
        members: size of the sorted set that is loaded.
    """
    lines = ["| what | ours | peer | ratio (smallest to largest) |", "|---|---|---|---|"]
    rows = [_load(members), _start(), _timer(), _import()]
    for what, peer, pairs in rows:
        ratios = sorted(ours / theirs for ours, theirs in pairs)
        middle = min(pairs, key=lambda pair: abs(pair[0] / pair[1] - median(ratios)))
        spread = f"{median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        lines.append(f"| {what} | {middle[0]:.3g} s | {peer}: {middle[1]:.3g} s | {spread} |")
    return "\n".join(lines)


Row = tuple[str, str, list[tuple[float, float]]]


def _seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _load(members: int) -> Row:
    """``load`` against ``redis-cli --pipe`` with a ready-made file, one ZADD a member."""
    server = embedded.start("redis")
    client = open_client(server.url)
    names = [f"97804{number:08d}" for number in range(members)]
    scores = [float(number * 7919 % members) for number in range(members)]
    cli = binaries.ensure("redis").with_name("redis-cli")
    pairs = []
    with tempfile.NamedTemporaryFile("w") as file:
        for name, score in zip(names, scores, strict=True):
            number = f"{score:.0f}"
            file.write(f"*4\r\n$4\r\nZADD\r\n$1\r\nt\r\n${len(number)}\r\n{number}\r\n")
            file.write(f"${len(name)}\r\n{name}\r\n")
        file.flush()
        pipe = [str(cli), "-s", str(server.socket), "--pipe"]

        def theirs() -> object:
            with Path(file.name).open("rb") as ready:
                return subprocess.run(pipe, stdin=ready, stdout=subprocess.DEVNULL, check=True)

        def alone(work: Callable[[], object]) -> float:
            client.delete("t")
            taken = _seconds(work)
            if client.zcard("t") != members:
                raise AssertionError("a load lost members: its time means nothing")
            return taken

        for _ in range(PAIRS):
            ours = alone(lambda: load(client, "t", names, scores, show=False))
            pairs.append((ours, alone(theirs)))
    client.close()
    server.stop()
    return f"load {members:,} members", "redis-cli --pipe, ready-made file", pairs


def _start() -> Row:
    """A guarded embedded server to its first PING against the bare server program."""

    def ours() -> None:
        servers.append(embedded.start("redis"))

    def theirs() -> None:
        folder = Path(tempfile.mkdtemp(prefix="bench-"))
        command = [str(binaries.ensure("redis")), "--port", "0", "--save", ""]
        command += ["--unixsocket", str(folder / "s")]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as bare:
            client = open_client(f"unix://{quote(str(folder))}/s")
            while not _answers(client):
                time.sleep(0.002)
            taken.append(time.perf_counter())
            bare.kill()
        shutil.rmtree(folder)

    pairs = []
    for _ in range(PAIRS):
        servers: list[embedded.Embedded] = []
        taken: list[float] = []
        mine = _seconds(ours)
        servers[0].stop()
        begun = time.perf_counter()
        theirs()
        pairs.append((mine, taken[0] - begun))
    return "start a private server", "redis-server alone", pairs


def _answers(client: object) -> bool:
    import redis

    try:
        return bool(client.ping())  # type: ignore[attr-defined]
    except redis.ConnectionError:
        return False


def _timer() -> Row:
    """``client_time`` against a bare loop around the same calls."""
    server = embedded.start("redis")
    client = open_client(server.url)
    client.zadd("z", {"a": 1})

    def theirs() -> None:
        for _ in range(5_100):
            client.zscore("z", "a")

    def ours() -> None:
        client_time(lambda: client.zscore("z", "a"), samples=5_000, warmup=100)

    pairs = [(_seconds(ours), _seconds(theirs)) for _ in range(PAIRS)]
    client.close()
    server.stop()
    return "time 5,000 calls", "a bare loop of the calls", pairs


def _import() -> Row:
    """``import labkit`` against ``import redis``, each in a fresh Python."""

    def run(module: str) -> float:
        return _seconds(lambda: subprocess.run([sys.executable, "-c", f"import {module}"]))

    return "import labkit", "import redis", [(run("labkit"), run("redis")) for _ in range(PAIRS)]
