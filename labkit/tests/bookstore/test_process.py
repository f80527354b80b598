"""``python -m labkit.bookstore``: one clear message, or a service that leaves nothing behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest
from click.testing import CliRunner

from labkit.bookstore import Service, process, serving
from labkit.bookstore.__main__ import _listen, main
from labkit.errors import LabError
from labkit.servers import embedded
from labkit.servers.space import open_client
from labkit.tests.bookstore.api import DUNE, ORWELL, api
from labkit.tests.bookstore.test_http import fake
from labkit.tests.servers.processes import GONE_SECONDS, owner, said, server_process, until

LASTING = ("--appendonly", "yes", "--appendfsync", "always")


def run(*options: str, **environment: str) -> tuple[int, str]:
    """Status and all words of a service that ends by itself; in this process, which is faster."""
    alarm = threading.Timer(20, os.kill, [os.getpid(), signal.SIGINT])  # it serves: status 0
    alarm.start()
    done = CliRunner(env=environment).invoke(main, options)
    alarm.cancel()
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
        ("redis://:hushhush@127.0.0.1?retry=3", "The URL of the store cannot be read."),
        ("redis://127.0.0.1:1?encoding=nonsense", "The connection to the store failed: 127"),
        (f"redis://{'a' * 70}.example", f"{'a' * 70}.example:6379."),
        ("unix://", "The URL of the store cannot be read."),
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
        (b"+OK\r\n", "What answers there is no Redis: 127.0.0.1:"),
        (b":1\r\n", "What answers there is no Redis: 127.0.0.1:"),
        (b"$22\r\nredis_version:unstable\r\n", "What answers there is no Redis: 127.0.0.1:"),
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
    for host in ("no.invalid", "a..b", "a" * 70):
        _one_line(["--url", plain, "--port", "0", "--host", host], "Nothing can be served on")


def test_other_options_that_will_not_do(plain: str) -> None:
    _one_line(["--url", plain, "--port", "0", "--at", "noon"], "'noon' is no time.")
    _one_line(["--url", plain, "--port", "0", "--at", "2026-11-14T12:00:00"], "is no time.")
    for at in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "1970-12-31T12:00:00Z"):
        _one_line(["--url", plain, "--port", "0", "--at", at], "in the years 1971 to 2100.")
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


@pytest.mark.parametrize("role", ["redis", "valkey"])
def test_a_file_that_is_not_yet_whole(role: str, tmp_path: Path) -> None:
    """After CONFIG SET appendonly yes, until the end of the first rewrite: a kill loses all."""
    server = embedded.start(role, "--dir", str(tmp_path), "--appendfsync", "always")
    try:
        with api(server.url) as shop:
            shop.client.mset({f"x{n}": "y" for n in range(300)})
            for _ in range(2):  # the second time there is a file, but not with these orders
                shop.client.config_set("rdb-key-save-delay", 5_000)  # us a key
                shop.client.config_set("appendonly", "yes")
                words = "has not finished writing its append-only file anew"
                _one_line(["--url", server.url, "--port", "0", "--durable"], words)
                assert shop.get("/health")["durable"] is False
                assert until(lambda: shop.get("/health")["durable"])
                shop.client.config_set("appendonly", "no")
    finally:
        server.stop()


def test_the_command_line_holds_no_password(plain: str) -> None:
    with open_client(plain) as client:
        client.execute_command("ACL SETUSER", "clerk", "on", ">hushhush", "~*", "+@all")
    with serving(plain.replace("unix://", "unix://clerk:hushhush@")) as service:
        line = psutil.Process(service.process.pid).cmdline()
        assert "labkit.bookstore" in line
        assert "hushhush" not in " ".join(line)


def test_it_ends_well_while_the_store_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    words: list[str] = []
    monkeypatch.setattr(process, "_drain", words.extend)
    server = embedded.start("redis")
    try:
        with serving(server.url, "--timeout", "10") as service, ThreadPoolExecutor(1) as thread:
            server_process(server).send_signal(signal.SIGSTOP)
            answer = thread.submit(_order, service, "a")
            time.sleep(0.3)  # the order is there
            process.stop(service.process)
            assert "Send the order again with the same key" in str(answer.result()["detail"])
        assert "Traceback" not in "".join(words)
    finally:
        server_process(server).send_signal(signal.SIGCONT)
        server.stop()


def test_it_ends_without_a_standard_input(plain: str) -> None:
    command = [sys.executable, "-m", "labkit.bookstore", "--url", plain, "--port", "0"]
    shell = ["sh", "-c", 'exec "$@" 0<&-', "sh", *command, "--until-stdin-ends"]
    done = subprocess.run(shell, capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGTERM, "")


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
    answer = httpx.post(f"{service.url}/orders", json=order, headers=headers, timeout=20)
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


def _dead(one: psutil.Process) -> bool:
    try:
        return bool(one.status() == psutil.STATUS_ZOMBIE)  # nobody has asked how it ended
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
    with owner(code) as one:
        service = psutil.Process(int(said(one)))
        assert service.is_running()
        assert one.stdin is not None
        one.stdin.write("\n")
        one.stdin.flush()
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
