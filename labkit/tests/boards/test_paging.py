"""Reading any sorted set: policies, bounds, and cursors that nobody can change unseen."""

from __future__ import annotations

import hmac
import math
from base64 import urlsafe_b64decode
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labkit.boards.cursors import SHORTEST, _text, seal, unseal
from labkit.boards.paging import Pages, Standing, places, whole
from labkit.boards.scores import TieInMember
from labkit.errors import LabError

Client = Any
SECRET = b"0123456789abcdef"
SCORES = {"a": -math.inf, "b": 0.1 + 0.2, "c": 0.3, "d": 0.3, "e": 7.0, "f": math.inf, "g": 7.0}


def pages_of(client: Client, **settings: Any) -> Pages:
    settings = {"ties": "competition", "window": "clamp", "secret": SECRET, **settings}
    return Pages(client, settings.pop("key", "b"), **settings)


def test_any_scores_are_read(either: Client) -> None:
    """Fractions that differ in their last bit are no tie; infinite scores are scores."""
    either.zadd("b", SCORES)
    ranks = {
        "ordinal": [1, 2, 3, 4, 5, 6, 7],
        "competition": [1, 2, 2, 4, 5, 5, 7],
        "dense": [1, 2, 2, 3, 4, 4, 5],
    }
    for ties, numbers in ranks.items():
        board = pages_of(either, ties=ties)
        rows = [Standing(n, p, SCORES[p]) for n, p in zip(numbers, "fgebdca", strict=True)]
        assert board.top(9) == rows
        for row in rows:
            assert board.rank(row.player) == row
        for start in range(1, 8):
            assert board.page(start, 1) == rows[start - 1 : start]
    assert board.percentile("g") == board.percentile("e") == 100 * 6 / 7
    assert isinstance(board.top(2)[1].points, int)
    assert either.keys("*") == ["b"]


@pytest.mark.parametrize(
    ("place", "clamped", "filled"),
    [
        (1, [1, 2, 3], [1, 2, 3, 4, 5]),
        (2, [1, 2, 3, 4], [1, 2, 3, 4, 5]),
        (13, [11, 12, 13, 14, 15], [11, 12, 13, 14, 15]),
        (24, [22, 23, 24, 25], [21, 22, 23, 24, 25]),
        (25, [23, 24, 25], [21, 22, 23, 24, 25]),
    ],
)
def test_the_window_around_a_player(
    either: Client, place: int, clamped: list[int], filled: list[int]
) -> None:
    """Field report F16."""
    either.zadd("b", {f"p{n:02d}": -n for n in range(1, 26)})
    for window, right in (("clamp", clamped), ("fill", filled)):
        board = pages_of(either, window=window)
        rows = board.around(f"p{place:02d}", 2)
        assert [row.rank for row in rows] == right
        assert [row.player for row in rows] == [f"p{n:02d}" for n in right]
        assert [row.rank for row in board.around(f"p{place:02d}", 0)] == [place]
        assert len(board.around(f"p{place:02d}", 30)) == 25
        assert board.around("nobody", 2) == []


def test_one_round_trip_each(either: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    either.zadd("b", SCORES)
    board = pages_of(either)
    calls: list[Callable[[], Any]] = [
        lambda: board.rank("a"),
        lambda: board.page(1, 3),
        lambda: board.around("a", 2),
        lambda: board.percentile("a"),
        lambda: board.snapshot(2, 60),
    ]
    cursor = board.snapshot(2, 60)
    calls.append(lambda: board.follow(cursor))
    sent: list[object] = []
    link: Any = either.connection_pool.connection_class
    send = link.send_packed_command

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        sent.append(args)
        return send(self, *args, **kwargs)

    for call in calls:
        call()
        with monkeypatch.context() as patch:
            patch.setattr(link, "send_packed_command", counted)
            call()
        assert len(sent) == 1
        sent.clear()


def walk(board: Pages, cursor: str | None) -> list[list[str]]:
    pages = []
    while cursor is not None:
        rows, cursor = board.follow(cursor)
        pages.append([row.player for row in rows])
    return pages


def test_a_snapshot_stands_still(either: Client) -> None:
    either.zadd("b", SCORES)
    board = pages_of(either)
    cursor = board.snapshot(3, 600)
    before = board.page(2, 3)
    either.zadd("b", {"a": 99, "new": 98})
    either.zrem("b", "e")
    assert walk(board, cursor) == walk(board, cursor) == [["f", "g", "e"], ["b", "d", "c"], ["a"]]
    _, following = board.follow(cursor)
    assert following is not None
    assert board.follow(following)[0] == before
    [copy] = either.keys("*copy*")
    assert 0 < either.ttl(copy) <= 600
    either.pexpireat(copy, 1)
    for old in (cursor, following):
        with pytest.raises(LabError, match=r"has ended\. Start at the first page\."):
            board.follow(old)


@pytest.mark.parametrize("size", [1, 3, 7, 8])
def test_no_page_is_empty_but_that_of_an_empty_board(either: Client, size: int) -> None:
    board = pages_of(either)
    assert board.follow(board.snapshot(size, 60)) == ([], None)
    either.zadd("b", SCORES)
    names, pages = list(SCORES), walk(board, board.snapshot(size, 60))
    assert [len(page) for page in pages] == [len(names[n : n + size]) for n in range(0, 7, size)]


def test_a_cursor_is_of_one_board_and_one_secret(either: Client) -> None:
    either.zadd("b", SCORES)
    either.zadd("c", SCORES)
    cursor = pages_of(either).snapshot(3, 600)
    assert walk(pages_of(either), cursor), "another process with the same secret goes on"
    with pytest.raises(LabError, match="belongs to another board"):
        pages_of(either, key="c").follow(cursor)
    with pytest.raises(LabError, match="was not made here, or was changed"):
        pages_of(either, secret=SECRET[::-1]).follow(cursor)
    for secret in (None, b"", b"short", "0123456789abcdef"):
        with pytest.raises(LabError, match=f"Pass {SHORTEST} bytes or more"):
            pages_of(either, secret=secret).snapshot(3, 600)
        with pytest.raises(LabError, match="needs a secret"):
            pages_of(either, secret=secret).follow(cursor)


def test_every_change_of_a_cursor_is_seen() -> None:
    """Every character in turn, what is left out or put in, and other texts of the same bytes."""
    for fields in (("b", "00ff", 20, 10, 200), ("b", "", 0, 1, 0), ("bé{}", "x", 1, 2, 3)):
        cursor = seal(SECRET, *fields)
        assert tuple(unseal(SECRET, cursor)) == fields
        assert cursor.isascii()
        assert cursor.replace("-", "").replace("_", "").isalnum()
        others = {f"{cursor}=", f"{cursor}==", f" {cursor}", f"{cursor}\n", f"{cursor}A", ""}
        for n, old in enumerate(cursor):
            others |= {cursor[:n] + cursor[n + 1 :], cursor[:n] + "!" + cursor[n:], cursor[:n]}
            others |= {cursor[:n] + new + cursor[n + 1 :] for new in "ABab01-_+/.é" if new != old}
        for other in others - {cursor}:
            with pytest.raises(LabError, match="was not made here, or was changed"):
                unseal(SECRET, other)


@given(st.text() | st.binary() | st.none() | st.integers())
def test_anything_else_is_no_cursor(thing: Any) -> None:
    with pytest.raises(LabError, match=r"was changed\. Start at the first page\."):
        unseal(SECRET, thing)


def test_a_signature_of_another_use_is_no_cursor() -> None:
    payload = b'["b","",0,1,0]'
    signed = hmac.new(SECRET, payload, "sha256").digest() + payload
    with pytest.raises(LabError):
        unseal(SECRET, _text(signed))
    assert urlsafe_b64decode(f"{seal(SECRET, 'b', '', 0, 1, 0)}===").endswith(payload)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(number=st.integers(1, 10**9), size=st.integers(1, 1000))
def test_places_never_count_from_the_other_end(number: int, size: int) -> None:
    start, stop = places(number, size, 1000)
    assert 0 <= start <= stop
    assert stop - start + 1 == size
    assert start == (places(number - 1, size, 1000)[1] + 1 if number > 1 else 0)


WRONG: list[tuple[Callable[[Any], object], str]] = [
    (lambda b: b.page(0, 10), "The page is 0. Pages, like ranks, start at 1."),
    (lambda b: b.page(-1, 10), "The page is -1. Pages, like ranks, start at 1."),
    (lambda b: b.page(-(10**5000), 10), "The page is so long a number. Pages, like ranks, start"),
    (lambda b: b.page(10**5000, 10), "The page is so long a number. It goes from 1 to 9,0"),
    (lambda b: b.page(2**60, 10), "The page is 1152921504606846976. It goes from 1 to 9,0"),
    (lambda b: b.page(np.timedelta64(3, "s"), 10), "Pass a whole number (an int)."),
    (lambda b: b.page(Fraction(10**5000, 3), 10), "The page is so long a number. Pass a whole"),
    (lambda b: b.page("x" * 10**5, 10), f"The page is '{'x' * 56}.... Pass a whole number"),
    (lambda b: b.page(1.0, 10), "The page is 1.0. Pass a whole number (an int)."),
    (lambda b: b.page(True, 10), "The page is True. Pass a whole number (an int)."),
    (lambda b: b.page("1", 10), "The page is '1'. Pass a whole number"),
    (lambda b: b.page(1, 0), "The size of a page is 0. It goes from 1 to 1,000."),
    (lambda b: b.page(1, -5), "The size of a page is -5. It goes from 1 to 1,000."),
    (lambda b: b.page(1, 1001), "The size of a page is 1001. It goes from 1 to 1,000."),
    (lambda b: b.top(0), "The size of a page is 0."),
    (lambda b: b.around("a", -1), "The number of rows on each side is -1. It goes from 0 to 499."),
    (lambda b: b.around("a", 500), "The number of rows on each side is 500."),
    (lambda b: b.around("a", True), "is True. Pass a whole number"),
    (lambda b: b.rank(None), "The player is None. Pass text (a str)."),
    (lambda b: b.around(7, 2), "The player is 7. Pass text (a str)."),
    (lambda b: b.percentile(b"a"), "The player is b'a'. Pass text (a str)."),
    (lambda b: b.snapshot(0, 60), "The size of a page is 0."),
    (lambda b: b.snapshot(10, 0), "The lifetime is 0. It goes from 1 to 86,400."),
    (lambda b: b.snapshot(10, 1.5), "The lifetime is 1.5. Pass a whole number"),
    (lambda b: b.follow("b:0"), "This cursor was not made here, or was changed."),
]


@pytest.mark.parametrize(("call", "sentence"), WRONG)
def test_bounds(either: Client, call: Callable[[Any], object], sentence: str) -> None:
    either.zadd("b", SCORES)
    with pytest.raises(LabError) as error:
        call(pages_of(either))
    assert sentence in str(error.value)
    assert either.keys("*") == ["b"]


def test_whole_numbers_of_numpy_are_taken() -> None:
    for number in (np.int64(3), np.uint8(3)):
        taken = whole("n", number, 1, 3)
        assert (taken, type(taken)) == (3, int)


class Known(str):
    """As a class of str and Enum: its letters are one thing, what str() gives is another."""

    def __str__(self) -> str:
        return "Known.ZOE"


def test_a_text_of_a_kind_of_its_own_is_its_letters(either: Client) -> None:
    either.zadd("b", {"zoe": 5})
    assert pages_of(either).rank(Known("zoe")) == Standing(1, "zoe", 5)
    assert TieInMember((0, 9)).encode(0, Known("zoe")) == "9:zoe"
