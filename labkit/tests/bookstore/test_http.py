"""Bad input and a server in trouble: one status for one cause, a sentence, and an end in time."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from labkit.bookstore import serving
from labkit.bookstore.app import LARGEST_BODY
from labkit.servers import embedded
from labkit.tests.bookstore.api import DUNE, Api, api
from labkit.tests.servers.processes import server_process

# What is refused before the store is asked needs no second server: `one` and not `shop`.
GOOD = {"customerId": 7, "isbn": DUNE, "quantity": 2}
JSON = "application/json"


def refused(answer: httpx.Response, status: int, words: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == JSON
    (detail,) = answer.json().values()
    assert words in detail
    assert detail.endswith((".", "...}")), detail
    assert len(detail) < 300


def body(**changes: Any) -> bytes:
    return json.dumps({**GOOD, **changes}).encode()


BODIES: list[tuple[str, bytes, str]] = [
    ("empty", b"", "The body: Invalid JSON"),
    ("broken", b'{"customerId": 7,', "The body: Invalid JSON"),
    ("no UTF-8", b'{"isbn": "\xff"}', "The body: Invalid JSON"),
    ("half a pair", b'{"isbn": "\\ud800"}', "Invalid JSON"),
    ("two orders", body() + body(), "Invalid JSON"),
    ("null", b"null", "The body: "),
    ("list", b"[]", "The body: "),
    ("deep", b"[" * 1000, "Invalid JSON"),
    ("missing", b'{"customerId": 7, "quantity": 2}', "isbn is missing."),
    ("score", body(score=9), "There is no field 'score' in an order."),
    ("points", body(points=9), "There is no field 'points' in an order."),
    ("our name", b'{"customer_id":7,"isbn":"9780441013593","quantity":2}', "customer"),
    ("last digit", body(isbn="9780441013594"), "isbn: its last digit does not fit"),
    ("hyphens", body(isbn="978-0-441-01359-3"), "isbn: "),
    ("ISBN-10", body(isbn="0441013597"), "isbn: "),
    ("other digits", body(isbn="978044101359٣"), "isbn: "),
    ("new line", body(isbn=DUNE + "\n"), "isbn: "),
    ("number for text", body(isbn=9780441013593), "isbn: "),
    ("none", body(quantity=0), "quantity: "),
    ("negative", body(quantity=-1), "quantity: "),
    ("many", body(quantity=1001), "quantity: "),
    ("fraction", body(quantity=1.5), "quantity: "),
    ("text for number", body(quantity="2"), "quantity: "),
    ("bool", body(quantity=True), "quantity: "),
    ("NaN", b'{"customerId":7,"isbn":"9780441013593","quantity":NaN}', ""),
    ("1e999", b'{"customerId":7,"isbn":"9780441013593","quantity":1e999}', "quantity: "),
    (
        "long",
        b'{"customerId":7,"isbn":"9780441013593","quantity":1' + b"0" * 900 + b"}",
        "quantity",
    ),
    ("customer 0", body(customerId=0), "customerId: "),
    ("customer 2^53", body(customerId=2**53), "customerId: "),
]


@pytest.mark.parametrize(("sent", "words"), [b[1:] for b in BODIES], ids=[b[0] for b in BODIES])
def test_a_body_that_is_no_order(one: Api, sent: bytes, words: str) -> None:
    headers = {"Idempotency-Key": "a", "Content-Type": JSON}
    refused(one.ask("POST", "/orders", content=sent, headers=headers), 400, words)
    assert one.content() == {}


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (None, "Idempotency-Key is missing."),
        (b"", "Idempotency-Key: "),
        (b"a" * 101, "Idempotency-Key: "),
        (b"a b", "Idempotency-Key: "),
        (b"\xc3\xa9", "Idempotency-Key: "),
        (b"a\x7f", "Idempotency-Key: "),
        (b"a\n", "Idempotency-Key: "),
    ],
    ids=repr,
)
def test_a_key_that_is_none(one: Api, key: bytes | None, words: str) -> None:
    headers: Any = {b"Content-Type": b"application/json"}
    if key is not None:
        headers[b"Idempotency-Key"] = key
    refused(one.ask("POST", "/orders", content=body(), headers=headers), 400, words)
    assert one.content() == {}


def test_two_keys(one: Api) -> None:
    headers: Any = [("Idempotency-Key", "a"), ("Idempotency-Key", "b"), ("Content-Type", JSON)]
    answer = one.ask("POST", "/orders", content=body(), headers=headers)
    refused(answer, 400, "There is more than one Idempotency-Key.")


@pytest.mark.parametrize("key", ["a" * 100, "{x}", "}{", "*", "a:b", '"8e03978e"', "$(x)"])
def test_a_key_of_any_visible_characters(shop: Api, key: str) -> None:
    assert shop.order(key=key).json()["replayed"] is False
    assert shop.order(key=key).json()["replayed"] is True
    assert shop.client.exists("{bookstore}:order:" + key)


@pytest.mark.parametrize(
    "kind", [None, "text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""]
)
def test_a_body_that_is_not_declared_as_json(one: Api, kind: str | None) -> None:
    headers = {"Idempotency-Key": "a"} | ({} if kind is None else {"Content-Type": kind})
    answer = one.ask("POST", "/orders", content=body(), headers=headers)
    refused(answer, 415, "The body is not declared as JSON.")


@pytest.mark.parametrize("size", [LARGEST_BODY, LARGEST_BODY + 1, 10**6])
def test_a_body_that_is_too_large(one: Api, size: int) -> None:
    headers = {"Idempotency-Key": "a", "Content-Type": JSON}
    answer = one.ask("POST", "/orders", content=body().ljust(size), headers=headers)
    if size == LARGEST_BODY:
        assert answer.status_code == 200
    else:
        refused(answer, 413, "The body is larger than 1,024 bytes.")


QUERIES = [
    ("/bestsellers/{}?page=0", "page: "),
    ("/bestsellers/{}?page=-1", "page: "),
    ("/bestsellers/{}?page=%2B1", "page: "),
    ("/bestsellers/{}?page=1.0", "page: "),
    ("/bestsellers/{}?page=1_0", "page: "),
    ("/bestsellers/{}?page=%201", "page: "),
    ("/bestsellers/{}?page=%D9%A3", "page: "),
    ("/bestsellers/{}?page=", "page: "),
    ("/bestsellers/{}?page=1000001", "page: "),
    (f"/bestsellers/{{}}?page={10**30}", "page: "),
    ("/bestsellers/{}?page=1&page=2", "The parameter page is there more than once."),
    ("/bestsellers/{}?pageSize=0", "pageSize: "),
    ("/bestsellers/{}?pageSize=101", "pageSize: "),
    ("/bestsellers/{}?pagesize=3", "There is no parameter 'pagesize' here."),
    ("/bestsellers/{}?cursor=", "cursor: "),
    ("/bestsellers/{}?cursor=x", "This cursor was not made here"),
    ("/bestsellers/{}?cursor=%00%C3%A9", "This cursor was not made here"),
    (f"/bestsellers/{{}}?cursor={'A' * 401}", "cursor: "),
    ("/bestsellers/{}?cursor=x&page=2", "There are a page and a cursor."),
]
PATHS = [
    ("/orders/recent?minutes=nan", "minutes: "),
    ("/orders/recent?minutes=0", "minutes: "),
    ("/orders/recent?minutes=61", "minutes: "),
    ("/orders/recent?minutes=1e1", "minutes: "),
    ("/orders/recent?hours=1", "There is no parameter 'hours' here. Known: minutes."),
    ("/players/x/rank", "id: "),
    ("/players/0/rank", "id: "),
    ("/players/-1/rank", "id: "),
    (f"/players/{2**53}/rank", "id: "),
    ("/players/%00/rank", "id: "),
    ("/players/7/rank?x=1", "There is no parameter 'x' here. Known: none."),
    ("/health?x=1", "There is no parameter 'x' here."),
]


@pytest.mark.parametrize(
    ("path", "words"),
    [(path.format(which), words) for path, words in QUERIES for which in ("today", "week")] + PATHS,
)
def test_a_url_that_asks_for_nothing_there_is(one: Api, path: str, words: str) -> None:
    refused(one.ask("GET", path), 400, words)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/orders", 405),
        ("DELETE", "/orders", 405),
        ("POST", "/bestsellers/week", 405),
        ("POST", "/orders/recent", 405),
        ("PUT", "/players/7/rank", 405),
        ("GET", "/", 404),
        ("POST", "/orders/", 404),
        ("GET", "/health/", 404),
        ("GET", "/docs", 404),
        ("GET", "/redoc", 404),
        ("GET", "/bestsellers", 404),
        ("GET", "/players/7/8/rank", 404),
    ],
)
def test_a_place_or_a_method_that_is_not_there(
    one: Api, method: str, path: str, status: int
) -> None:
    answer = one.ask(method, path)
    refused(answer, status, "Method Not Allowed." if status == 405 else "Not Found.")
    assert ("allow" in answer.headers) == (status == 405)


@pytest.fixture(scope="module")
def address(_redis_server: embedded.Embedded) -> Iterator[tuple[str, int]]:
    with serving(_redis_server.url) as service:
        host, port = service.url.removeprefix("http://").split(":")
        yield host, int(port)


@pytest.mark.parametrize(
    "header",
    [
        b"Idempotency-Key: a\0b",
        b"Idempotency-Key: \xf0\x9f\x93\x9a",
        b"Idempotency-Key: \xff\xfe",
        b"Idempotency-Key:",
        b"Idempotency-Key: a\r\nContent-Length: 5",
        b"Idempotency-Key: " + b"a" * 70_000,
        b"Idempotency\0Key: a",
        b"Idempotency-Key: a\r\nContent-Type: \xff",
    ],
    ids=lambda header: repr(header[:40]),
)
def test_headers_that_no_library_would_send(address: tuple[str, int], header: bytes) -> None:
    order = body()
    with socket.create_connection(address, timeout=10) as link:
        link.sendall(
            b"POST /orders HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
            b"Content-Length: %d\r\n%s\r\n\r\n%s" % (len(order), header, order)
        )
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while part := link.recv(65_536):
                answer += part
    assert answer[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 415", b"HTTP/1.1 431"), answer[:200]


def test_a_body_that_ends_early(address: tuple[str, int]) -> None:
    head = b"POST /orders HTTP/1.1\r\nHost: x\r\nIdempotency-Key: a\r\n"
    head += b"Content-Type: application/json\r\nContent-Length: 80\r\n\r\n{"
    with socket.create_connection(address, timeout=10) as link:
        link.sendall(head)
    with httpx.Client(base_url="http://{}:{}".format(*address)) as http:
        assert http.get("/health").status_code == 200


def test_a_connection_is_kept_after_a_refusal(address: tuple[str, int]) -> None:
    headers = {"Idempotency-Key": "k", "Content-Type": JSON}
    with httpx.Client(base_url="http://{}:{}".format(*address)) as http:
        for content, status in ((b"{", 400), (b"x" * 2_000, 413), (body(), 200), (body(), 200)):
            answer = http.post("/orders", content=content, headers=headers)
            assert answer.status_code == status


@pytest.mark.parametrize("role", ["redis", "valkey"])
def test_a_server_that_stands_still(role: str) -> None:
    """An answer in time, the order once, and no reply that belongs to another request."""
    server = embedded.start(role)
    try:
        with api(server.url, timeout=0.2, retries=1, deadline=0.5) as shop:
            for customer in range(1, 9):
                shop.order(copies=customer, customer=customer)
            server_process(server).send_signal(signal.SIGSTOP)
            begun = time.monotonic()
            stalled = shop.order(customer=99, key="late")
            asked = [("GET", "/players/3/rank"), ("GET", "/bestsellers/week"), ("GET", "/health")]
            answers = [shop.ask(*one) for one in asked]
            taken = time.monotonic() - begun
            server_process(server).send_signal(signal.SIGCONT)
            refused(stalled, 503, "The store did not answer in time. Send the order again")
            for answer in answers:
                refused(answer, 503, "store")
                assert answer.headers["retry-after"] == "1"
            assert taken < 4 * 0.5 + 0.5
            for customer in range(1, 9):
                assert shop.get(f"/players/{customer}/rank")["playerId"] == customer
            for customer in range(1, 9):
                assert shop.get(f"/players/{customer}/rank")["rank"] == 9 - customer
            assert shop.order(customer=99, key="late").json()["orderId"] == 9
            assert shop.client.zcard("{bookstore}:recent") == 9
    finally:
        server.stop()


def test_no_server(tmp_path: Any) -> None:
    with api(f"unix://{tmp_path}/none") as shop:
        refused(shop.order(), 503, "The connection to the store failed. Send the order again")
        refused(shop.ask("GET", "/health"), 503, "The connection to the store failed.")


@contextlib.contextmanager
def fake(reply: bytes) -> Iterator[int]:
    """A port where something answers every command with the same."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer(link: socket.socket) -> None:
            with link, contextlib.suppress(OSError):
                while asked := link.recv(65_536):
                    link.sendall(reply * (1 + asked.count(b"\r\n*")))

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    link, _ = listening.accept()
                    threading.Thread(target=answer, args=[link], daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (b"-LOADING Redis is loading the dataset in memory\r\n", "The store is loading its data."),
        (b"-NOAUTH Authentication required.\r\n", "The store does not let this service in."),
        (
            b"-MISCONF Errors writing to the AOF file\r\n",
            "The store refused the command (MISCONF).",
        ),
        (b"-MOVED 1 127.0.0.1:1\r\n", "The store refused the command (MovedError)."),
        (b"-BUSY Redis is busy running a script\r\n", "The store refused the command (BUSY)."),
        (b"HTTP/1.1 400 Bad Request\r\n", "What answers there is no Redis."),
    ],
)
def test_a_server_that_refuses(reply: bytes, words: str) -> None:
    with fake(reply) as port, api(f"redis://127.0.0.1:{port}", timeout=0.3) as shop:
        refused(shop.order(), 503, words)
        refused(shop.ask("GET", "/bestsellers/week"), 503, words)


@pytest.mark.parametrize(
    "reply",
    [b"+OK\r\n", b":1\r\n", b"$-1\r\n", b"*0\r\n", b"$0\r\n\r\n", b"*4" + b"\r\n:1" * 4 + b"\r\n"],
    ids=repr,
)
def test_what_answers_is_no_redis(reply: bytes) -> None:
    with fake(reply) as port, api(f"redis://127.0.0.1:{port}", timeout=0.3) as shop:
        refused(shop.ask("GET", "/health"), 503, "What answers there is no Redis.")
        answers = [shop.order()]
        answers += [shop.ask("GET", f"/bestsellers/{which}") for which in ("today", "week")]
        answers += [shop.ask("GET", path) for path in ("/orders/recent", "/players/7/rank")]
        for answer in answers:
            if answer.status_code not in (200, 404, 410):  # as a Redis may answer too
                refused(answer, 503, "The store holds data that is not this service's.")
        assert answers[0].status_code == answers[1].status_code == 503


def test_more_clients_than_connections(store: str) -> None:
    with api(store, connections=3) as shop:
        headers = {"Idempotency-Key": "a"}
        answers = shop.together(200, "POST", "/orders", json=GOOD, headers=headers)
        assert {answer.status_code for answer in answers} == {200}
        assert shop.client.zcard("{bookstore}:recent") == 1


def test_no_connection_becomes_free(store: str) -> None:
    with api(store, connections=1, timeout=0.1) as shop:
        shop.order()
        with shop.held():
            refused(shop.order(), 503, "All connections to the store are busy. Send the order")
        assert shop.order().status_code == 200


def test_the_loop_is_free_while_a_request_waits(store: str) -> None:
    """One slow body keeps nobody else waiting."""
    with api(store, deadline=1.0) as shop:

        async def slow() -> Any:
            yield b"{"
            await asyncio.sleep(30)

        headers = {"Idempotency-Key": "a", "Content-Type": JSON}
        answers: list[httpx.Response] = []
        waiting = threading.Thread(
            target=lambda: answers.append(
                shop.ask("POST", "/orders", content=slow(), headers=headers)
            )
        )
        waiting.start()
        assert shop.order().status_code == 200
        waiting.join()
        refused(answers[0], 408, "The body did not come within 1 s.")
