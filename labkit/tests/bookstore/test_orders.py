"""An order is counted once, and either all of it is there or nothing."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
import redis.asyncio

from labkit.boards.scores import LIMIT
from labkit.bookstore import Shop
from labkit.bookstore.commands import MOST_A_DAY, SCORE
from labkit.bookstore.scripts import RECORD
from labkit.errors import LabError
from labkit.servers import embedded
from labkit.servers.space import open_client
from labkit.tests.bookstore.api import AUSTEN, DAY, DUNE, NOON, ORWELL, Api, api

SALES = "{bookstore}:sales:20261114"


def test_an_order_is_written_to_every_place(shop: Api) -> None:
    answer = shop.order(DUNE, 3, customer=7, key="k-06-1")
    assert (answer.status_code, answer.json()) == (200, {"orderId": 1, "replayed": False})
    record = shop.client.get("{bookstore}:order:k-06-1")
    assert shop.content() == {
        SALES: [[DUNE, 3.0]],
        "{bookstore}:recent": [["1", float(NOON)]],
        "{bookstore}:players": [["7", 30.0]],
        "{bookstore}:orders": "1",
        "{bookstore}:order:k-06-1": record,
    }
    assert shop.client.ttl(SALES) == 8 * 86_400
    assert shop.client.ttl("{bookstore}:order:k-06-1") == 86_400
    assert shop.client.ttl("{bookstore}:recent") == 3_600
    assert shop.client.ttl("{bookstore}:orders") == shop.client.ttl("{bookstore}:players") == -1


def test_a_repeated_order_is_answered_and_changes_nothing(shop: Api) -> None:
    shop.order(DUNE, 3, key="a")
    before = shop.content()
    shop.now += 5_000
    spaced = b'{ "quantity": 3, "isbn": "9780441013593", "customerId": 7 }'
    headers = {"Idempotency-Key": "a", "Content-Type": "application/json; charset=utf-8"}
    for answer in (
        shop.order(DUNE, 3, key="a"),
        shop.ask("POST", "/orders", content=spaced, headers=headers),
    ):
        assert (answer.status_code, answer.json()) == (200, {"orderId": 1, "replayed": True})
    assert shop.content() == before


@pytest.mark.parametrize("other", [(ORWELL, 3, 7), (DUNE, 2, 7), (DUNE, 3, 8)])
def test_a_key_is_for_one_order(shop: Api, other: tuple[str, int, int]) -> None:
    shop.order(DUNE, 3, 7, key="a")
    before = shop.content()
    answer = shop.order(*other, key="a")
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("This Idempotency-Key was used for another order.")
    assert shop.content() == before


def test_a_key_is_forgotten_after_a_day(shop: Api) -> None:
    shop.order(key="a")
    shop.client.pexpire("{bookstore}:order:a", 1)
    while shop.client.exists("{bookstore}:order:a"):
        pass
    assert shop.order(key="a").json() == {"orderId": 2, "replayed": False}


def test_64_at_once_under_one_key_are_one_order(shop: Api) -> None:
    body = {"customerId": 7, "isbn": DUNE, "quantity": 2}
    headers = {"Idempotency-Key": "same"}
    answers = shop.together(64, "POST", "/orders", json=body, headers=headers)
    seen = Counter((answer.status_code, *answer.json().values()) for answer in answers)
    assert seen == {(200, 1, False): 1, (200, 1, True): 63}
    assert shop.client.zscore(SALES, DUNE) == 2
    assert shop.client.zcard("{bookstore}:recent") == 1
    assert shop.client.zscore("{bookstore}:players", "7") == 20


def test_a_command_that_redis_py_sends_again_is_no_replay(store: str) -> None:
    """The one who asked has asked once; who asks again is told so."""
    with api(store) as shop:
        shop.order(DUNE, 2, key="a")
        _, body, request = str(shop.client.get("{bookstore}:order:a")).split()
        sale: list[Any] = [DUNE, 2, 7, 20, MOST_A_DAY, LIMIT, 1000, 1000, 1000]
        keys = ["{bookstore}:order:a", SALES]
        keys += [f"{{bookstore}}:{name}" for name in ("recent", "players", "orders")]
        script = shop.client.register_script(RECORD)
        assert script(keys, [body, request, NOON, *sale]) == ["new", 1]
        assert script(keys, [body, "f" * 16, NOON, *sale]) == ["replayed", 1]
        assert shop.client.zscore(SALES, DUNE) == 2


def test_the_days_end_is_set_once(shop: Api) -> None:
    shop.client.zadd(SALES, {DUNE: 1})  # by the seed: without an end
    shop.order()
    assert shop.client.ttl(SALES) == 8 * 86_400
    shop.client.expire(SALES, 1_000)
    shop.order()
    assert shop.client.ttl(SALES) in (999, 1_000)


def test_a_day_ends_at_midnight_utc(shop: Api) -> None:
    shop.now = NOON + DAY // 2 - 1
    shop.order()
    shop.now += 1
    shop.order()
    assert shop.client.zscore(SALES, DUNE) == 1
    assert shop.client.zscore("{bookstore}:sales:20261115", DUNE) == 1


def test_what_a_score_cannot_hold_is_refused(shop: Api) -> None:
    assert SCORE.encode(7 * MOST_A_DAY, 7) < LIMIT
    shop.client.zadd(SALES, {DUNE: MOST_A_DAY - 3})
    assert shop.order(DUNE, 3).status_code == 200
    assert shop.client.zscore(SALES, DUNE) == MOST_A_DAY
    before = shop.content()
    assert shop.order(DUNE, 1).status_code == 409
    shop.client.zadd("{bookstore}:players", {"9": LIMIT - 10})
    assert shop.order(ORWELL, 1, customer=9).status_code == 200
    assert shop.order(ORWELL, 1, customer=9).status_code == 409
    assert shop.client.zscore("{bookstore}:players", "9") == LIMIT
    assert shop.content().keys() - before.keys() == {"{bookstore}:order:k-2"}


@pytest.mark.parametrize("name", ["recent", "players", "orders", "sales:20261114", "order:k"])
def test_a_key_of_another_type_leaves_nothing_half_done(shop: Api, name: str) -> None:
    shop.client.set(f"{{bookstore}}:{name}", "x") if name != "order:k" else None
    if name == "order:k":
        shop.client.zadd("{bookstore}:order:k", {"x": 1})
    before = shop.content()
    answer = shop.order(key="k")
    assert answer.status_code == 503
    assert "it counts once" in answer.json()["detail"]
    assert shop.content() == before


WRITES = ("incr", "set", "zincrby", "ttl", "expire", "zadd", "zremrangebyscore", "pexpire")
LESS = [[f"-{command}"] for command in WRITES]
LESS += [["-zincrby", f"(+zincrby ~{{bookstore}}:{place})"] for place in ("sales:*", "players")]
LESS += [["resetkeys", "%R~*"]]


def test_who_may_not_do_every_write_does_none(store: str) -> None:
    """Rights that change while the service runs: no answer, and nothing of the order."""
    with open_client(store) as admin:
        try:
            admin.execute_command("ACL SETUSER", "clerk", "on", ">pw", "~*", "+@all")
            with api(store.replace("unix://", "unix://clerk:pw@")) as shop:
                for n, less in enumerate(LESS, 1):
                    admin.execute_command("ACL SETUSER", "clerk", *less)
                    before = [admin.dump(key) for key in sorted(admin.scan_iter())]
                    answer = shop.order(key=f"k-{n}")
                    assert answer.status_code == 503
                    words = "The store does not let this service in. Send the order again"
                    assert answer.json()["detail"].startswith(words)
                    assert [admin.dump(key) for key in sorted(admin.scan_iter())] == before
                    admin.execute_command("ACL SETUSER", "clerk", "clearselectors", "~*", "+@all")
                    answer = shop.order(key=f"k-{n}")
                    assert answer.json() == {"orderId": n, "replayed": False}
                    assert admin.zscore(SALES, DUNE) == n
                    admin.persist(SALES)  # so that the next order needs EXPIRE
        finally:
            admin.execute_command("ACL DELUSER", "clerk")


def test_a_server_without_one_of_the_commands() -> None:
    server = embedded.start("redis", "--rename-command", "ZINCRBY", "")
    try:
        with api(server.url) as shop:
            for _ in range(2):
                assert shop.order(key="k").status_code == 503
            assert shop.content() == {}
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"maxmemory": "1"}, "The store is full. Send the order again"),
        ({"replicaof": "127.0.0.1 1"}, "a replica, which takes no writes. Send"),
        ({"min-replicas-to-write": "1"}, "(NOREPLICAS). Send"),
    ],
    ids=["full", "replica", "too few replicas"],
)
def test_a_server_that_takes_no_writes(shop: Api, settings: dict[str, str], words: str) -> None:
    shop.order(DUNE, 2, key="before")
    before = shop.content()
    try:
        for name, value in settings.items():
            if name == "replicaof":
                shop.client.replicaof(*value.split())
            else:
                shop.client.config_set(name, value)
        answer = shop.order(ORWELL, 1, key="a")
        assert answer.status_code == 503
        assert words in answer.json()["detail"]
        assert answer.headers["retry-after"] == "1"
        replay = shop.order(DUNE, 2, key="before")  # that needs no write
        assert (replay.status_code, replay.json()["replayed"]) == (200, True)
    finally:
        shop.client.replicaof("NO", "ONE")
        shop.client.config_set("maxmemory", "0")
        shop.client.config_set("min-replicas-to-write", "0")
    assert shop.content() == before
    assert shop.order(ORWELL, 1, key="a").json() == {"orderId": 2, "replayed": False}


def test_numbers_of_another_writer(shop: Api) -> None:
    shop.client.set("{bookstore}:orders", -5)
    answer = shop.order()
    assert answer.status_code == 503
    assert "not this service's" in answer.json()["detail"]


def test_scripts_that_the_server_has_forgotten(shop: Api) -> None:
    shop.order()
    shop.client.script_flush()
    assert shop.order().json() == {"orderId": 2, "replayed": False}


def test_recent_orders_have_an_open_and_a_closed_end(shop: Api) -> None:
    for age in (300_001, 300_000, 299_999, 1, 0, -1):
        shop.now = NOON - age
        shop.order()
    shop.now = NOON
    assert shop.get("/orders/recent", minutes=5) == {"minutes": 5, "orders": 3}
    assert shop.get("/orders/recent") == {"minutes": 5, "orders": 3}
    assert shop.get("/orders/recent", minutes=6)["orders"] == 5
    shop.now += 1
    assert shop.get("/orders/recent", minutes=5)["orders"] == 3


def test_recent_orders_are_kept_for_an_hour(shop: Api) -> None:
    for age in (3_600_001, 3_600_000, 3_599_999, 0):
        shop.now = NOON - age
        shop.order()
    assert shop.get("/orders/recent", minutes=60)["orders"] == 2
    assert shop.client.zrange("{bookstore}:recent", 0, -1) == ["3", "4"]


def test_ranks_start_at_1_and_equal_points_share_the_better(shop: Api) -> None:
    for customer, copies in ((1, 5), (2, 3), (3, 3), (4, 1)):
        shop.order(AUSTEN, copies, customer)
    ranks = [shop.get(f"/players/{n}/rank") for n in (1, 2, 3, 4)]
    assert [(row["rank"], row["points"]) for row in ranks] == [(1, 50), (2, 30), (2, 30), (4, 10)]
    answer = shop.ask("GET", "/players/5/rank")
    assert (answer.status_code, answer.json()) == (404, {"detail": "Customer 5 has no points yet."})


def test_many_orders_add_up(shop: Api) -> None:
    choose, sold, points = random.Random(1), Counter[str](), Counter[str]()
    for _ in range(60):
        isbn, copies = choose.choice([DUNE, ORWELL, AUSTEN]), choose.randint(1, 9)
        customer = choose.randint(1, 4)
        shop.order(isbn, copies, customer)
        sold[isbn] += copies
        points[str(customer)] += 10 * copies
    assert dict(shop.client.zrange(SALES, 0, -1, withscores=True)) == sold
    held = shop.client.zrange("{bookstore}:players", 0, -1, withscores=True)
    assert dict(held) == points
    assert shop.client.zcard("{bookstore}:recent") == int(shop.client.get("{bookstore}:orders"))


def test_a_client_that_gives_bytes_is_refused(store: str) -> None:
    with pytest.raises(LabError, match="gives bytes"):
        Shop(redis.asyncio.Redis.from_url(store))
