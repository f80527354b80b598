"""``python -m labkit.bookstore``: one clear message, or a service that leaves nothing behind."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest
from click.testing import CliRunner

from labkit.bookstore import Service, serving
from labkit.bookstore.__main__ import _listen, main
from labkit.errors import LabError
from labkit.servers import embedded
from labkit.servers.space import open_client
from labkit.tests.bookstore.api import DUNE, ORWELL
from labkit.tests.bookstore.test_http import fake
from labkit.tests.servers.processes import GONE_SECONDS, owner, said, until

LASTING = ("--appendonly", "yes", "--appendfsync", "always")


def run(*options: str, **environment: str) -> tuple[int, str]:
    """Status and all words of a service that ends by itself; in this process, which is faster."""
    done = CliRunner(env=environment).invoke(main, options)
    assert done.exception is None or isinstance(done.exception, SystemExit)
    return done.exit_code, done.output


def test_as_a_process_it_says_the_same() -> None:
    command = [sys.executable, "-m", "labkit.bookstore", "--url", "unix:///nowhere/s"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == run(*command[3:])[1]


def test_help_has_an_example() -> None:
    status, words = run("--help")
    assert status == 0
    assert "Example: python -m labkit.bookstore --url redis://127.0.0.1:6379/0 --port 5080" in words


@pytest.fixture(scope="module")
def plain() -> Iterator[str]:
    server = embedded.start("redis")
    yield server.url
    server.stop()


def _one_line(options: list[str], words: str, **environment: str) -> None:
    status, said = run(*options, **environment)
    assert status == 1
    assert said.startswith("bookstore: ")
    assert words in said
    assert said.count("\n") == 1
    assert "hushhush" not in said


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("nonsense", "The URL of the store cannot be read."),
        ("http://127.0.0.1:6379", "The URL of the store cannot be read."),
        ("redis://:hushhush@127.0.0.1:x", "The URL of the store cannot be read."),
        ("redis://:hushhush@127.0.0.1:1", "The connection to the store failed: 127.0.0.1:1."),
        ("unix:///nowhere/s", "The connection to the store failed: /nowhere/s."),
        ("redis://no.such.host.invalid", "The connection to the store failed: no.such.host"),
    ],
)
def test_a_url_that_leads_nowhere(url: str, words: str) -> None:
    _one_line(["--url", url, "--port", "0"], words)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n", "What answers there is no Redis: 127.0.0.1:"),
        (b"$20\r\nredis_version:5.0.14\r\n", "Redis 5.0.14 is too old."),
        (b"-NOPERM no permissions\r\n", "The store does not let this service in: 127.0.0.1:"),
        (b"", "The store did not answer in time: 127.0.0.1:"),
    ],
)
def test_a_server_that_will_not_do(reply: bytes, words: str) -> None:
    with fake(reply) as port:
        url = f"redis://127.0.0.1:{port}"
        _one_line(["--url", url, "--port", "0", "--timeout", "0.3"], words)


def test_a_password() -> None:
    server = embedded.start("valkey")
    try:
        with open_client(server.url) as client:
            client.config_set("requirepass", "hushhush")
        _one_line(["--url", server.url, "--port", "0"], "The store does not let this service in")
    finally:
        server.stop()


def test_a_port_that_is_taken(plain: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = f"Nothing can be served on 127.0.0.1:{port}: Address already in use."
        _one_line(["--url", plain, "--port", port], words)
    _one_line(["--url", plain, "--port", "0", "--host", "no.invalid"], "Nothing can be served on")


def test_other_options_that_will_not_do(plain: str) -> None:
    _one_line(["--url", plain, "--port", "0", "--at", "noon"], "'noon' is no time.")
    _one_line(["--url", plain, "--port", "0", "--at", "2026-11-14T12:00:00"], "is no time.")
    words = "A cursor needs a secret"
    _one_line(["--url", plain, "--port", "0"], words, BOOKSTORE_SECRET="short")


@pytest.mark.parametrize("role", ["redis", "valkey"])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "writes no append-only file: orders live while it lives."),
        (("--appendonly", "yes"), "later (appendfsync everysec): a crash of the machine can lose"),
        ((*LASTING, "--no-appendfsync-on-rewrite", "yes"), "while it rewrites it"),
        (
            (*LASTING, "--maxmemory", "99mb", "--maxmemory-policy", "allkeys-lru"),
            "evicts keys (allkeys-lru): orders can vanish.",
        ),
        (LASTING, ""),
    ],
    ids=["nothing", "everysec", "rewrite", "evicts", "always"],
)
def test_what_an_answered_order_may_count_on(
    role: str, options: tuple[str, ...], words: str
) -> None:
    server = embedded.start(role, *options)
    try:
        if words:
            _one_line(["--url", server.url, "--port", "0", "--durable"], words)
            return
        with serving(server.url, "--durable") as service:
            health = httpx.get(f"{service.url}/health").json()
            assert health["durable"] is True
            assert health["sentence"].endswith(
                "syncs its append-only file before it answers an order."
            )
            with open_client(server.url) as client:
                client.config_set("appendfsync", "everysec")
            assert httpx.get(f"{service.url}/health").json()["durable"] is False
    finally:
        server.stop()


def test_it_ends_on_an_interrupt(plain: str) -> None:
    command = [sys.executable, "-m", "labkit.bookstore", "--url", plain, "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as one:
        assert one.stdout is not None
        sentence, serves = one.stdout.readline(), one.stdout.readline()
        assert "orders live while it lives" in sentence
        url = serves.split()[-1]
        with httpx.Client(base_url=url) as http:  # which keeps its connection open
            assert http.get("/health").status_code == 200
            begun = time.monotonic()
            one.send_signal(signal.SIGINT)
            assert one.stdout.read() == ""
            assert one.wait(10) == 0
        assert time.monotonic() - begun < 5
        with pytest.raises(httpx.ConnectError):
            httpx.get(url)


def _order(service: Service, key: str, isbn: str = DUNE) -> dict[str, object]:
    order = {"customerId": 7, "isbn": isbn, "quantity": 1}
    headers = {"Idempotency-Key": key}
    answer = httpx.post(f"{service.url}/orders", json=order, headers=headers)
    made: dict[str, object] = answer.json()
    return made


def test_a_service_that_was_killed_has_forgotten_nothing(store: str) -> None:
    secret = "0123456789abcdef"
    with serving(store, "--at", "2026-11-14T12:00:00Z", secret=secret) as first:
        assert _order(first, "a") == {"orderId": 1, "replayed": False}
        assert _order(first, "b", ORWELL) == {"orderId": 2, "replayed": False}
        page = httpx.get(f"{first.url}/bestsellers/week?pageSize=1").json()
        first.kill()
    assert not psutil.pid_exists(first.process.pid)
    with serving(store, "--at", "2026-11-14T12:00:00Z", secret=secret) as second:
        assert _order(second, "a") == {"orderId": 1, "replayed": True}
        query = {"pageSize": "1", "cursor": page["nextCursor"]}
        rest = httpx.get(f"{second.url}/bestsellers/week", params=query).json()
        assert [rest["items"][0]["rank"], rest["day"]] == [2, "2026-11-14"]


def test_it_says_why_it_does_not_start(tmp_path: Path) -> None:
    with (
        pytest.raises(LabError, match="did not start: bookstore: The connection to the store"),
        serving(f"unix://{tmp_path}/none"),
    ):
        pass


def test_it_ends_with_its_block(plain: str) -> None:
    with pytest.raises(ZeroDivisionError), serving(plain) as service:
        raise ZeroDivisionError
    assert service.process.returncode is not None
    with pytest.raises(httpx.ConnectError):
        httpx.get(service.url)


def _dead(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)  # nobody has asked how it ended
    except psutil.NoSuchProcess:
        return True


@pytest.mark.parametrize("how", ["os._exit(0)", "os.kill(os.getpid(), 9)", "1 / 0"])
def test_it_ends_with_its_owner(plain: str, how: str) -> None:
    code = f"""
import os, sys
from labkit.bookstore import serving
with serving({plain!r}) as service:
    print(service.process.pid, flush=True)
    sys.stdin.readline()
    {how}
"""
    with owner(code) as process:
        service = psutil.Process(int(said(process)))
        assert service.is_running()
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
        assert until(lambda: _dead(service), GONE_SECONDS)


def test_on_an_address_of_version_6(plain: str) -> None:
    if not socket.has_ipv6:
        pytest.fail("no IPv6")
    command = [sys.executable, "-m", "labkit.bookstore", "--url", plain, "--port", "0"]
    command += ["--host", "::1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as one:
        assert one.stdout is not None
        _, serves = one.stdout.readline(), one.stdout.readline()
        assert httpx.get(f"{serves.split()[-1]}/health").status_code == 200
        one.terminate()


def test_answers_do_not_wait_for_an_acknowledgement() -> None:
    """asyncio sets TCP_NODELAY on what it accepts only where the protocol is named."""
    with _listen("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.proto == socket.IPPROTO_TCP
