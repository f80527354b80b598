"""Bestsellers by page and by cursor; the snapshot of the week."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labkit.bookstore import commands
from labkit.bookstore.load import ISBNS
from labkit.bookstore.scripts import WEEK as WEEK_SCRIPT
from labkit.servers import embedded
from labkit.tests.bookstore.api import AUSTEN, DAY, DUNE, ORWELL, TOLKIEN, Api, api
from labkit.tests.servers.test_space import OLD

DAYS = [f"{{bookstore}}:sales:202611{day:02d}" for day in range(8, 15)]
TODAY, WEEK = DAYS[-1], "{bookstore}:week:20261114"
FOUND, ASIMOV, OTHER = "9780060850524", "9780553293357", "9780000000002"


def seed_week(shop: Api) -> None:
    """Six days before the five orders, such that the week's list is the published one."""
    sold = {DUNE: [4] * 6, ORWELL: [5, 5, 5, 5, 6, 0], TOLKIEN: [6, 7, 0, 0, 0, 0]}
    sold |= {AUSTEN: [2, 0, 0, 0, 0, 0], FOUND: [0, 3, 0, 0, 0, 0], ASIMOV: [0, 0, 2, 0, 0, 0]}
    for n, day in enumerate(DAYS[:-1]):
        shop.client.zadd(day, {isbn: copies[n] for isbn, copies in sold.items() if copies[n]})
    for isbn, copies in ((DUNE, 2), (ORWELL, 1), (AUSTEN, 3), (DUNE, 1), (TOLKIEN, 2)):
        shop.order(isbn, copies)


def test_the_published_pages(shop: Api) -> None:
    seed_week(shop)
    today = shop.get("/bestsellers/today", page=1, pageSize=3)
    assert today["items"] == [
        {"rank": 1, "isbn": DUNE, "sold": 3},
        {"rank": 2, "isbn": AUSTEN, "sold": 3},
        {"rank": 3, "isbn": TOLKIEN, "sold": 2},
    ]
    pages = [shop.get("/bestsellers/week", page=n, pageSize=3) for n in (1, 2, 3)]
    rows = [tuple(row.values()) for page in pages for row in page["items"]]
    assert rows == [
        (1, DUNE, 27, 7),
        (2, ORWELL, 27, 6),
        (3, TOLKIEN, 15, 3),
        (4, AUSTEN, 5, 2),
        (5, FOUND, 3, 1),
        (6, ASIMOV, 2, 1),
    ]
    assert [(page["total"], page["day"]) for page in pages] == [(6, "2026-11-14")] * 3
    assert shop.client.zscore(WEEK, DUNE) == 277
    assert shop.client.ttl(WEEK) == shop.client.ttl(f"{WEEK}:name") == 600


@pytest.mark.skipif(OLD is None, reason="no old redis-server here (LABKIT_OLD_SERVER names one)")
def test_an_older_server_gives_the_same_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labkit.servers.binaries.ensure", lambda _: OLD)
    server = embedded.start("redis")
    try:
        with api(server.url) as shop:
            assert int(shop.client.info("server")["redis_version"].split(".")[0]) < 8
            test_the_published_pages(shop)
            assert len(shop.walk("/bestsellers/today", 2)) == 4
            assert shop.order(key="k-0").status_code == 422
            assert shop.get("/players/7/rank")["points"] == 90
    finally:
        server.stop()


sales = st.dictionaries(st.sampled_from(ISBNS[:12]), st.integers(1, 40), max_size=12)


@pytest.fixture(params=["redis", "valkey", "redis without COUNT"])
def counting(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    """Servers that count days by COUNT, by the loop, and by the loop though they have COUNT."""
    role, _, without = str(request.param).partition(" ")
    if without:
        monkeypatch.setattr(commands, "WEEK", WEEK_SCRIPT.replace("'COUNT'", "'NO'"))
    server = request.getfixturevalue(f"_{role}_server")
    with api(server.url) as shop:
        yield shop


@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(sales, min_size=7, max_size=7), st.integers(1, 5))
def test_the_week_is_that_of_a_model(counting: Api, days: list[Any], size: int) -> None:
    shop = counting
    shop.client.flushall()
    for key, day in zip(DAYS, days, strict=True):
        if day:
            shop.client.zadd(key, day)
    books = {isbn for day in days for isbn in day}
    total = {b: (sum(day.get(b, 0) for day in days), sum(b in day for day in days)) for b in books}
    order = sorted(books, key=lambda b: (*total[b], b), reverse=True)
    right = [(n, b, *total[b]) for n, b in enumerate(order, 1)]
    assert [tuple(row.values()) for row in shop.walk("/bestsellers/week", size)] == right
    left = set(shop.client.scan_iter())
    assert left == {key for key, day in zip(DAYS, days, strict=True) if day} | (
        {WEEK, f"{WEEK}:name"} if books else set()
    )


def test_a_week_of_many_books(counting: Api) -> None:
    """More than go into one ZADD of the loop."""
    shop = counting
    shop.client.flushall()
    for n, key in enumerate(DAYS):
        shop.client.zadd(key, {f"97800{i:08d}": i % 7 + 1 for i in range(n * 100, 2_800)})
    shop.get("/bestsellers/week")
    found = dict(shop.client.zrange(WEEK, 0, -1, withscores=True))
    days = [min(7, i // 100 + 1) for i in range(2_800)]
    right = {f"97800{i:08d}": (i % 7 + 1) * d * 10 + d for i, d in enumerate(days)}
    assert found == right


def test_nothing_of_an_older_snapshot_is_left(counting: Api) -> None:
    """One whose name is gone: the loop adds to a key that is there."""
    shop = counting
    shop.client.flushall()
    shop.client.zadd(TODAY, {DUNE: 3, ORWELL: 2})
    shop.get("/bestsellers/week")
    shop.client.delete(f"{WEEK}:name")
    shop.client.zrem(TODAY, ORWELL)
    assert [row["isbn"] for row in shop.get("/bestsellers/week")["items"]] == [DUNE]


def test_a_week_without_sales(shop: Api) -> None:
    empty: Any = {"day": "2026-11-14", "items": [], "total": 0, "expiresIn": 0, "nextCursor": None}
    assert shop.get("/bestsellers/week") == empty
    assert shop.content() == {}
    shop.order(DUNE)
    assert len(shop.get("/bestsellers/week")["items"]) == 1


def test_a_day_without_sales(shop: Api) -> None:
    empty: Any = {"day": "2026-11-14", "items": [], "nextCursor": None}
    assert shop.get("/bestsellers/today") == shop.get("/bestsellers/today", page=9) == empty


def _builds(shop: Api) -> int:
    """Snapshots built since the statistics were reset: each is two unions.

    Where there is no COUNT, the first of them fails, and the loop does its work.
    """
    told: dict[str, int] = shop.client.info("commandstats").get("cmdstat_zunionstore", {})
    return told.get("calls", 0) // 2


def test_the_snapshot_is_kept_and_built_once(shop: Api) -> None:
    shop.order(DUNE)
    shop.get("/bestsellers/week")
    shop.client.pexpire(WEEK, 40)
    shop.client.pexpire(f"{WEEK}:name", 40)
    shop.order(ORWELL, 5)
    assert len(shop.get("/bestsellers/week")["items"]) in (1, 2)
    shop.client.config_resetstat()
    for _ in range(100):  # 64 at a time, across the moment of its end
        answers = shop.together(64, "GET", "/bestsellers/week")
        assert {answer.status_code for answer in answers} == {200}
        if _builds(shop):
            break
    tails = {answer.text.partition('"total"')[0] for answer in answers}
    answers = shop.together(64, "GET", "/bestsellers/week")
    assert _builds(shop) == 1
    assert len({answer.text.partition('"total"')[0] for answer in answers} | tails) <= 2
    assert shop.get("/bestsellers/week")["items"][0] == {
        "rank": 1,
        "isbn": ORWELL,
        "sold": 5,
        "daysWithSales": 1,
    }


@pytest.mark.parametrize("turn", range(3))
def test_64_at_the_moment_of_its_end(shop: Api, turn: int) -> None:
    shop.order(DUNE, turn + 1)
    shop.get("/bestsellers/week")
    shop.client.delete(WEEK, f"{WEEK}:name")  # the same to all who look as its end
    shop.client.config_resetstat()
    answers = shop.together(64, "GET", "/bestsellers/week")
    assert {answer.json()["items"][0]["sold"] for answer in answers} == {turn + 1}
    assert _builds(shop) == 1
    names = {"{bookstore}:orders", "{bookstore}:recent", "{bookstore}:players", TODAY}
    names |= {"{bookstore}:order:k-0", WEEK, f"{WEEK}:name"}
    assert set(shop.client.scan_iter()) == names


def test_a_cursor_of_the_week_stays_in_its_snapshot(shop: Api) -> None:
    for n, isbn in enumerate(ISBNS[:4]):
        shop.order(isbn, n + 1)
    first = shop.get("/bestsellers/week", pageSize=2)
    shop.order(ISBNS[0], 99)
    shop.now += DAY  # midnight has passed; the snapshot is still there
    second = shop.get("/bestsellers/week", pageSize=2, cursor=first["nextCursor"])
    assert second["day"] == "2026-11-14"
    rows = [(row["rank"], row["isbn"], row["sold"]) for row in first["items"] + second["items"]]
    assert rows == [(4 - n, ISBNS[n], n + 1) for n in (3, 2, 1, 0)]
    assert second["nextCursor"] is None


@pytest.mark.parametrize("again", [False, True])
def test_a_cursor_whose_snapshot_has_ended_is_refused(shop: Api, again: bool) -> None:
    for isbn in ISBNS[:4]:
        shop.order(isbn)
    cursor = shop.get("/bestsellers/week", pageSize=2)["nextCursor"]
    shop.client.delete(WEEK)
    if again:
        shop.get("/bestsellers/week")
    before = shop.content()
    answer = shop.ask("GET", "/bestsellers/week", params={"cursor": cursor})
    assert answer.status_code == 410
    assert answer.json()["detail"] == "The list that this cursor reads has ended. Start at page 1."
    assert shop.content() == before


Sale = tuple[str, int]
moves = st.lists(st.tuples(st.sampled_from(ISBNS[:9]), st.integers(1, 6)), max_size=3)


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.dictionaries(st.sampled_from(ISBNS[:9]), st.integers(1, 3), min_size=1),
    st.integers(1, 4),
    st.lists(moves, max_size=6),
)
def test_a_cursor_of_today_skips_and_repeats_nothing(
    shop: Api, start: dict[str, int], size: int, between: list[list[Sale]]
) -> None:
    """Sales between the pages: who has not sold is met once, who has sold at most once."""
    shop.client.flushall()
    shop.client.zadd(TODAY, start)
    page, seen, moved = shop.get("/bestsellers/today", pageSize=size), [], set()
    seen += page["items"]
    while page["nextCursor"]:
        for isbn, copies in between.pop() if between else []:
            shop.client.zincrby(TODAY, copies, isbn)
            moved.add(isbn)
        page = shop.get("/bestsellers/today", pageSize=size, cursor=page["nextCursor"])
        now = shop.client.zrevrange(TODAY, 0, -1)
        assert all(now[row["rank"] - 1] == row["isbn"] for row in page["items"])
        seen += page["items"]
    met = [row["isbn"] for row in seen]
    assert len(met) == len(set(met))
    assert set(start) - moved <= set(met)


def test_five_books_with_seven_copies(shop: Api) -> None:
    shop.client.zadd(TODAY, dict.fromkeys(ISBNS[:5], 7) | {ISBNS[5]: 9, ISBNS[6]: 1})
    order = [ISBNS[5], *sorted(ISBNS[:5], reverse=True), ISBNS[6]]
    for size in range(1, 8):
        assert [row["isbn"] for row in shop.walk("/bestsellers/today", size)] == order


@pytest.mark.parametrize("which", ["today", "week"])
def test_a_member_that_is_no_text(shop: Api, which: str) -> None:
    shop.client.zadd(TODAY, {b"\xff\xfe": 1, DUNE: 2, ORWELL: 3})
    answer = shop.ask("GET", f"/bestsellers/{which}")
    assert answer.status_code == 503
    assert answer.json() == {"detail": "The store holds data that is not this service's."}
    first = shop.get(f"/bestsellers/{which}", pageSize=1)  # the reply belongs to this request
    assert [row["isbn"] for row in first["items"]] == [ORWELL]


def test_members_of_another_writer_stand_in_the_order_of_their_bytes(shop: Api) -> None:
    names = ["", "-", "Z", "a", "a b", "aa", "é", "𝄞", "_", "B-2", "b1", "B1"]
    shop.client.zadd(TODAY, dict.fromkeys(names, 7))
    order = shop.client.zrevrange(TODAY, 0, -1)
    page = shop.get("/bestsellers/today", pageSize=1)
    met = [page["items"][0]["isbn"]]
    while page["nextCursor"]:
        shop.client.zrem(TODAY, met[-1])  # so that the pair has to be looked for
        page = shop.get("/bestsellers/today", pageSize=1, cursor=page["nextCursor"])
        met.append(page["items"][0]["isbn"])
    assert met == order


def test_a_list_of_today_is_read_to_its_end_after_midnight(shop: Api) -> None:
    for isbn in ISBNS[:4]:
        shop.order(isbn)
    page = shop.get("/bestsellers/today", pageSize=3)
    shop.now += DAY
    rest = shop.get("/bestsellers/today", cursor=page["nextCursor"])
    assert (rest["day"], len(rest["items"])) == ("2026-11-14", 1)
    assert shop.get("/bestsellers/today")["day"] == "2026-11-15"


@pytest.mark.parametrize(
    ("path", "key", "score"),
    [
        ("/bestsellers/today", TODAY, 1.5),
        ("/bestsellers/week", TODAY, 1.25),
        ("/bestsellers/week", TODAY, 1.8),
        ("/bestsellers/week", TODAY, 2**53),
        ("/bestsellers/today", TODAY, float("inf")),
        ("/bestsellers/week", TODAY, -1),
        ("/players/7/rank", "{bookstore}:players", 0.5),
    ],
)
def test_a_score_of_another_writer_is_no_crash(
    shop: Api, path: str, key: str, score: float
) -> None:
    shop.client.zadd(key, {"7": score})
    answer = shop.ask("GET", path)
    assert answer.status_code == 503
    assert answer.json() == {"detail": "The store holds data that is not this service's."}


@pytest.mark.parametrize("which", ["today", "week"])
def test_cursors_are_of_one_list_and_of_one_secret(store: str, which: str) -> None:
    with (
        api(store, secret=b"s" * 16) as one,
        api(store, secret=b"s" * 16) as same,
        api(store) as stranger,
    ):
        for isbn in ISBNS[:3]:
            one.order(isbn)
        path, other = (
            f"/bestsellers/{which}",
            f"/bestsellers/{'week' if which == 'today' else 'today'}",
        )
        cursor = one.get(path, pageSize=2)["nextCursor"]
        assert same.get(path, cursor=cursor)["items"]
        for shop, where, text in (
            (stranger, path, cursor),
            (one, other, cursor),
            (one, path, cursor[:-1] + ("A" if cursor[-1] != "A" else "B")),
            (one, path, cursor + "="),
            (one, path, "é\0"),
        ):
            answer = shop.ask("GET", where, params={"cursor": text})
            assert answer.status_code == 400, answer.text
