"""The speed table of the README: every row a ratio against a named peer, in the same run."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from urllib.parse import quote

import redis

from labkit.errors import LabError
from labkit.measure import client_time, load
from labkit.servers import binaries, embedded
from labkit.servers.space import open_client

PAIRS = 5  # each row: this many turns of ours and theirs, one after the other
LOAD_LIMIT = 1.3  # what the load may take, in times of its peer
CLIENTS, TURN = 64, 2.0  # of the bookstore, and how many seconds they ask at a time
PATIENCE = 10.0  # seconds for a bare server to answer

Row = tuple[str, str, list[tuple[float, float]]]


def table(members: int) -> str:
    """Measure every row; gives the table as Markdown.

    A ratio is the median over the pairs of a row, between the smallest and the largest of them.
    Seconds are those of the median pair, for scale only.

    Args:
        members: size of the sorted set that is loaded.

    Raises:
        LabError: the load took more than 1.3 times its peer; the table is printed before.
    """
    from tqdm import tqdm

    lines = ["| what | ours | peer | ratio (smallest to largest) |", "|---|---|---|---|"]
    middles = []
    rows = [partial(_load, members), _start, _timer, _import, _bookstore]
    for measure in tqdm(rows, unit="row"):
        what, peer, pairs = measure()
        ratios = sorted(ours / theirs for ours, theirs in pairs)
        middles.append(median(ratios))
        ours, theirs = min(pairs, key=lambda pair: abs(pair[0] / pair[1] - middles[-1]))
        spread = f"{middles[-1]:.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        lines.append(f"| {what} | {ours:.3g} s | {peer}: {theirs:.3g} s | {spread} |")
    text = "\n".join(lines)
    if middles[0] > LOAD_LIMIT:
        print(text)
        what = f"The load took {middles[0]:.2f} times its peer, more than {LOAD_LIMIT}."
        raise LabError(what, "Run it again while nothing else runs.")
    return text


def _seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


@contextmanager
def _server() -> Iterator[tuple[embedded.Embedded, redis.Redis]]:
    server = embedded.start("redis")
    try:
        with open_client(server.url) as client:
            yield server, client
    finally:
        server.stop()


def _load(members: int) -> Row:
    """``load`` against ``redis-cli --pipe`` with a ready-made file, one ZADD a member."""
    names = [f"97804{number:08d}" for number in range(members)]
    scores = [float(number * 7919 % members) for number in range(members)]
    cli = binaries.ensure("redis").with_name("redis-cli")
    pairs = []
    with _server() as (server, client), tempfile.NamedTemporaryFile("w") as file:
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
    return f"load {members:,} members", "redis-cli --pipe, ready-made file", pairs


def _start() -> Row:
    """A guarded embedded server to its first PING against the bare server program."""

    def ours() -> float:
        begun = time.perf_counter()
        with _server():
            return time.perf_counter() - begun

    return "start a private server", "redis-server alone", [(ours(), _bare()) for _ in range(PAIRS)]


def _bare() -> float:
    """Seconds until the server program, started with nothing around it, answers."""
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        command = [str(binaries.ensure("redis")), "--port", "0", "--save", ""]
        command += ["--unixsocket", f"{folder}/s"]
        with (
            open_client(f"unix://{quote(folder)}/s") as client,
            subprocess.Popen(command, stdout=subprocess.DEVNULL) as bare,
        ):
            try:
                while not _answers(client):
                    if bare.poll() is not None or time.perf_counter() > begun + PATIENCE:
                        raise LabError("redis-server alone did not start.", "Run `labkit doctor`.")
                    time.sleep(0.002)
                return time.perf_counter() - begun
            finally:
                bare.kill()


def _answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


def _timer() -> Row:
    """``client_time`` against a bare loop around the same calls."""
    with _server() as (_, client):
        client.zadd("z", {"a": 1})

        def theirs() -> None:
            for _ in range(5_100):
                client.zscore("z", "a")

        def ours() -> None:
            client_time(lambda: client.zscore("z", "a"), samples=5_000, warmup=100)

        pairs = [(_seconds(ours), _seconds(theirs)) for _ in range(PAIRS)]
    return "time 5,000 calls", "a bare loop of the calls", pairs


def _import() -> Row:
    """``import labkit`` against ``import redis``, each in a fresh Python."""

    def run(module: str) -> float:
        command = [sys.executable, "-c", f"import {module}"]
        return _seconds(lambda: subprocess.run(command, check=True))

    return "import labkit", "import redis", [(run("labkit"), run("redis")) for _ in range(PAIRS)]


def _bookstore() -> Row:
    """Orders, lists and ranks: through the service, and the same commands without it."""
    from labkit.bookstore.load import Load, alone, drive
    from labkit.bookstore.process import serving

    def thousand(clients: Callable[..., Load], url: str) -> float:
        return 1000 / clients(url, clients=CLIENTS, seconds=TURN).rate

    with _server() as (server, _), serving(server.url) as service:
        thousand(drive, service.url)  # the first turn finds no books
        pairs = []
        for turn in range(PAIRS):  # each is first in every other turn
            theirs = thousand(alone, server.url) if turn % 2 else 0.0
            ours = thousand(drive, service.url)
            pairs.append((ours, theirs or thousand(alone, server.url)))
    return f"1,000 requests of {CLIENTS} bookstore clients", "redis-py asyncio alone", pairs
