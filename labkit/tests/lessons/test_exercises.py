"""Every checker against right answers of several styles and the wrong ones that people give."""

# ruff: noqa: ARG001 (an answer has the arguments of its stub, used or not)

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from labkit.errors import LabError
from labkit.lessons.exercises import exercise, exercises
from labkit.servers import embedded, lab
from labkit.servers.space import open_client
from labkit.tests.lessons.judging import assert_refused

NAMES = ["place", "keep_best", "next_page"]
Client = Any  # an answer is written without types
Function = Callable[..., Any]


# ---- place: right answers


def place_two_calls(r: Client, key: str, member: str) -> Any:
    rank = r.zrevrank(key, member)
    return None if rank is None else (rank + 1, r.zscore(key, member))


def place_with_score(r: Client, key: str, member: str) -> Any:
    reply = r.zrevrank(key, member, withscore=True)
    return [reply[0] + 1, reply[1]] if reply else None


def place_whole_list(r: Client, key: str, member: str) -> Any:
    for number, (name, score) in enumerate(r.zrange(key, 0, -1, desc=True, withscores=True), 1):
        if name == member:
            return number, score
    return None


def place_from_below(r: Client, key: str, member: str) -> Any:
    rank, size = r.zrank(key, member), r.zcard(key)
    return None if rank is None else (size - rank, r.zscore(key, member))


def place_script(r: Client, key: str, member: str) -> Any:
    script = """local rank = redis.call('ZREVRANK', KEYS[1], ARGV[1])
    return rank and {rank + 1, redis.call('ZSCORE', KEYS[1], ARGV[1]) .. ''}"""
    reply: Any = r.eval(script, 1, key, member)
    return (reply[0], float(reply[1])) if reply else None


# ---- place: wrong answers


def place_from_rank_0(r: Client, key: str, member: str) -> Any:
    rank = r.zrevrank(key, member)
    return None if rank is None else (rank, r.zscore(key, member))


def place_ascending(r: Client, key: str, member: str) -> Any:
    rank = r.zrank(key, member)
    return None if rank is None else (rank + 1, r.zscore(key, member))


def place_rank_0_is_false(r: Client, key: str, member: str) -> Any:
    rank = r.zrevrank(key, member)
    return (rank + 1, r.zscore(key, member)) if rank else None


def place_score_0_is_false(r: Client, key: str, member: str) -> Any:
    score = r.zscore(key, member)
    return (r.zrevrank(key, member) + 1, score) if score else None


def place_absent_raises(r: Client, key: str, member: str) -> Any:
    return r.zrevrank(key, member) + 1, r.zscore(key, member)


def place_adds_absent(r: Client, key: str, member: str) -> Any:
    known = r.zscore(key, member) is not None
    score = r.zincrby(key, 0, member)
    return (r.zrevrank(key, member) + 1, score) if known else None


def place_shared_by_ties(r: Client, key: str, member: str) -> Any:
    score = r.zscore(key, member)
    return None if score is None else (r.zcount(key, f"({score}", "+inf") + 1, score)


def place_alone(r: Client, key: str, member: str) -> Any:
    rank = r.zrevrank(key, member)
    return None if rank is None else rank + 1


def place_absent_is_last(r: Client, key: str, member: str) -> Any:
    rank = r.zrevrank(key, member)
    return (0, 0) if rank is None else (rank + 1, r.zscore(key, member))


def forgot_return(r: Client, key: str, member: str) -> None:
    place_two_calls(r, key, member)


def too_few_arguments(r: Client, key: str) -> Any:
    return r.zcard(key)


# ---- keep_best: right answers


def best_gt_ch(r: Client, key: str, player: str, score: float) -> Any:
    return r.zadd(key, {player: score}, gt=True, ch=True) == 1


def best_reply_as_it_is(r: Client, key: str, player: str, score: float) -> Any:
    return r.execute_command("ZADD", key, "GT", "CH", score, player)


def best_script(r: Client, key: str, player: str, score: float) -> Any:
    script = """local old = redis.call('ZSCORE', KEYS[1], ARGV[1])
    if old and tonumber(old) >= tonumber(ARGV[2]) then return 0 end
    redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])
    return 1"""
    return bool(r.register_script(script)(keys=[key], args=[player, score]))


def best_watch(r: Client, key: str, player: str, score: float) -> Any:
    def change(trip: Any) -> bool:
        old = trip.zscore(key, player)
        trip.multi()
        if old is None or score > old:
            trip.zadd(key, {player: score})
            return True
        return False

    return r.transaction(change, key, value_from_callable=True)


def best_two_options(r: Client, key: str, player: str, score: float) -> Any:
    with r.pipeline() as trip:
        trip.zadd(key, {player: score}, nx=True)
        trip.zadd(key, {player: score}, xx=True, gt=True, ch=True)
        return any(trip.execute())


# ---- keep_best: wrong answers


def best_gt_alone(r: Client, key: str, player: str, score: float) -> Any:
    return bool(r.zadd(key, {player: score}, gt=True))


def best_xx(r: Client, key: str, player: str, score: float) -> Any:
    return bool(r.zadd(key, {player: score}, xx=True, gt=True, ch=True))


def best_nx(r: Client, key: str, player: str, score: float) -> Any:
    return bool(r.zadd(key, {player: score}, nx=True))


def best_overwrites(r: Client, key: str, player: str, score: float) -> Any:
    return bool(r.zadd(key, {player: score}, ch=True))


def best_lowest(r: Client, key: str, player: str, score: float) -> Any:
    return bool(r.zadd(key, {player: score}, lt=True, ch=True))


def best_added_up(r: Client, key: str, player: str, score: float) -> Any:
    return r.zincrby(key, score, player) == score


def best_read_then_write(r: Client, key: str, player: str, score: float) -> Any:
    old = r.zscore(key, player)
    if old is None or score > old:
        r.zadd(key, {player: score})
        return True
    return False


def best_read_then_pipeline(r: Client, key: str, player: str, score: float) -> Any:
    old = r.zscore(key, player)
    with r.pipeline() as trip:
        trip.zadd(key, {player: max(score, score if old is None else old)})
        trip.execute()
    return old is None or score > old


def best_0_is_false(r: Client, key: str, player: str, score: float) -> Any:
    old = r.zscore(key, player)
    if not old or score > old:
        return bool(r.zadd(key, {player: score}, ch=True))
    return False


def best_zero_is_missing(r: Client, key: str, player: str, score: float) -> Any:
    if not r.zscore(key, player):
        r.zadd(key, {player: score})
        return True
    return bool(r.zadd(key, {player: score}, gt=True, ch=True))


def best_compares_around(r: Client, key: str, player: str, score: float) -> Any:
    old = r.zscore(key, player)
    r.zadd(key, {player: score}, gt=True)
    return r.zscore(key, player) != old


def best_new_score(r: Client, key: str, player: str, score: float) -> Any:
    return r.zadd(key, {player: score}, gt=True, incr=True)


# ---- next_page: right answers


def page_reversed_range(r: Client, key: str, size: int, cursor: Any = None) -> Any:
    """ZREVRANGEBYSCORE, one filter over the tie and what follows; text cursor with repr."""
    top, name = ("+inf", None) if cursor is None else cursor.split(" ", 1)
    rows = r.zrevrangebyscore(key, top, "-inf", withscores=True)
    rows = [(m, s) for m, s in rows if cursor is None or s < float(top) or m < name]
    following = f"{rows[size - 1][1]!r} {rows[size - 1][0]}" if len(rows) > size else None
    return rows[:size], following


def page_counts_its_place(r: Client, key: str, size: int, cursor: Any = None) -> Any:
    """Rank of the place, from ZCOUNT and the tie: no look at the member's own rank."""
    start = 0
    if cursor:
        score, name = cursor["score"], cursor["member"]
        tied = r.zrange(key, score, score, byscore=True)
        start = r.zcount(key, f"({score!r}", "+inf") + sum(member >= name for member in tied)
    rows = r.zrange(key, start, start + size, desc=True, withscores=True)
    page = [(member, str(score)) for member, score in rows[:size]]
    more = len(rows) > size
    last = rows[size - 1] if more else ["", 0]
    return (page, {"score": last[1], "member": last[0]} if more else None)


def page_next_first(r: Client, key: str, size: int, cursor: Any = None) -> Any:
    """The cursor is the first row of the next page, inclusive."""
    top, name = cursor or ("+inf", None)
    rows = r.zrange(key, top, "-inf", desc=True, byscore=True, withscores=True)
    rows = [tuple(row) for row in rows if name is None or row[1] < top or row[0] <= name]
    return rows[:size], (rows[size][1], rows[size][0]) if len(rows) > size else None


def page_in_python(r: Client, key: str, size: int, cursor: Any = None) -> Any:
    """Everything, sorted by (score, bytes of the member)."""
    rows = sorted(((s, m.encode()) for m, s in r.zrange(key, 0, -1, withscores=True)), reverse=True)
    rows = [row for row in rows if cursor is None or row < cursor]
    page = [[member.decode(), score] for score, member in rows[:size]]
    return [page, rows[size - 1] if len(rows) > size else None]


def page_in_batches(r: Client, key: str, size: int, cursor: Any = None) -> Any:
    """Walks over the tie in batches and stops as soon as the page is full."""
    top, offset = cursor[0] if cursor else "+inf", 0
    rows: list[Any] = []
    while len(rows) <= size:
        batch = r.zrange(
            key, top, "-inf", desc=True, byscore=True, offset=offset, num=size, withscores=True
        )
        rows += [(m, s) for m, s in batch if not cursor or (s, m) < cursor]
        offset += size
        if len(batch) < size:
            break
    return rows[:size], rows[size - 1][::-1] if len(rows) > size else None


# ---- next_page: wrong answers


def page_offset(r: Client, key: str, size: int, cursor: Any = None) -> Any:
    start = cursor or 0
    rows = r.zrange(key, start, start + size, desc=True, withscores=True)
    return rows[:size], start + size if len(rows) > size else None


def _by_score(r: Client, key: str, size: int, top: Any) -> Any:
    rows = r.zrange(
        key, top, "-inf", desc=True, byscore=True, offset=0, num=size + 1, withscores=True
    )
    return rows[:size], rows[size - 1][1] if len(rows) > size else None


def page_score_exclusive(r: Client, key: str, size: int, cursor: Any = None) -> Any:
    return _by_score(r, key, size, "+inf" if cursor is None else f"({cursor!r}")


def page_score_inclusive(r: Client, key: str, size: int, cursor: Any = None) -> Any:
    return _by_score(r, key, size, "+inf" if cursor is None else cursor)


def page_by_rank_of_member(r: Client, key: str, size: int, cursor: Any = None) -> Any:
    rank = r.zrevrank(key, cursor) if cursor is not None else None
    start = 0 if rank is None else rank + 1
    rows = r.zrange(key, start, start + size, desc=True, withscores=True)
    return rows[:size], rows[size - 1][0] if len(rows) > size else None


def page_ends_when_gone(r: Client, key: str, size: int, cursor: Any = None) -> Any:
    if cursor is not None and r.zrevrank(key, cursor) is None:
        return [], None
    return page_by_rank_of_member(r, key, size, cursor)


def page_empty_at_the_end(r: Client, key: str, size: int, cursor: Any = None) -> Any:
    rows = page_in_python(r, key, size, cursor)[0]
    return rows, (rows[-1][1], rows[-1][0].encode()) if len(rows) == size else None


def page_short_score(r: Client, key: str, size: int, cursor: Any = None) -> Any:
    """A pair cursor as text, whose score has lost its last digits."""
    score, name = cursor.split(" ", 1) if cursor else ("+inf", "")
    rows = r.zrange(key, score, "-inf", desc=True, byscore=True, withscores=True)
    rows = [row for row in rows if not cursor or row[1] != float(score) or row[0] < name]
    following = f"{rows[size - 1][1]:.15g} {rows[size - 1][0]}" if len(rows) > size else None
    return rows[:size], following


def page_split_at_colon(r: Client, key: str, size: int, cursor: Any = None) -> Any:
    """A text cursor that a member with a colon in it breaks."""
    pair = None
    if cursor:
        name, score = cursor.split(":")
        pair = (float(score), name.encode())
    rows, pair = page_in_python(r, key, size, pair)
    return rows, None if pair is None else f"{pair[1].decode()}:{pair[0]!r}"


def page_case_order(r: Client, key: str, size: int, cursor: Any = None) -> Any:
    """Compares members as people do, not as bytes."""
    rows = r.zrange(key, 0, -1, desc=True, withscores=True)
    if cursor:
        name, score = cursor
        rows = [x for x in rows if x[1] < score or (x[1] == score and x[0].lower() < name.lower())]
    return rows[:size], rows[size - 1] if len(rows) > size else None


def page_never_ends(r: Client, key: str, size: int, cursor: Any = None) -> Any:
    return r.zrange(key, 0, size - 1, desc=True, withscores=True), 1


def page_empty_for_ever(r: Client, key: str, size: int, cursor: Any = None) -> Any:
    rows, following = page_in_python(r, key, size, cursor)
    return rows, following or (-float("inf"), b"")


def page_half_full(r: Client, key: str, size: int, cursor: Any = None) -> Any:
    """Reads a page of the tie and filters it afterwards."""
    top, name = cursor or ("+inf", None)
    rows = r.zrange(
        key, top, "-inf", desc=True, byscore=True, offset=0, num=size + 1, withscores=True
    )
    page = [(m, s) for m, s in rows if name is None or s < top or m < name]
    return page[:size], page[:size][-1][::-1] if len(rows) > size and page else None


def page_loops_inside(r: Client, key: str, size: int, cursor: Any = None) -> Any:
    rows: list[Any] = []
    while len(rows) < size:
        rows += r.zrange(key, 90, 80, desc=True, byscore=True, withscores=True)
    return rows, None


def page_ascending(r: Client, key: str, size: int, cursor: Any = None) -> Any:
    return r.zrange(key, 0, size - 1, withscores=True), None


def page_without_scores(r: Client, key: str, size: int, cursor: Any = None) -> Any:
    return r.zrange(key, 0, size - 1, desc=True), None


def page_without_cursor(r: Client, key: str, size: int, cursor: Any = None) -> Any:
    return r.zrange(key, 0, -1, desc=True, withscores=True)


RIGHT: list[tuple[str, Function]] = [
    *[
        ("place", f)
        for f in (
            place_two_calls,
            place_with_score,
            place_whole_list,
            place_from_below,
            place_script,
        )
    ],
    *[
        ("keep_best", f)
        for f in (best_gt_ch, best_reply_as_it_is, best_script, best_watch, best_two_options)
    ],
    *[
        ("next_page", f)
        for f in (
            page_reversed_range,
            page_counts_its_place,
            page_next_first,
            page_in_python,
            page_in_batches,
        )
    ],
]

WRONG: list[tuple[str, Function, str]] = [
    ("place", place_from_rank_0, "gave (0, 12.0); right is (1, 12.0). Ranks start at 0"),
    ("place", place_ascending, "gave (5, 12.0); right is (1, 12.0). That counts from the lowest"),
    ("place", place_rank_0_is_false, "gave None; right is (1, 12.0). Only an absent member"),
    ("place", place_score_0_is_false, "odes on the board"),
    ("place", place_absent_raises, "not on the board: your function raised TypeError"),
    ("place", place_adds_absent, "the board was changed"),
    ("place", place_shared_by_ties, "right is (3, 7.0). Equal scores do not share a place"),
    ("place", place_alone, "Two values are asked for"),
    ("place", place_absent_is_last, "a member that is not on the board gave (0, 0); right is None"),
    ("place", forgot_return, "gave None"),
    ("place", too_few_arguments, "your function raised TypeError"),
    ("keep_best", best_gt_alone, "101 for ann, whose best is 100 gave False; right is True"),
    ("keep_best", best_xx, "held no score for ann; right is 100"),
    ("keep_best", best_nx, "held 100 for ann; right is 101"),
    ("keep_best", best_overwrites, "50 for ann, whose best is 101: the board then held 50"),
    ("keep_best", best_lowest, "held 100 for ann; right is 101"),
    ("keep_best", best_added_up, "held 201 for ann; right is 101"),
    ("keep_best", best_read_then_write, "another client stores 900"),
    ("keep_best", best_read_then_pipeline, "another client stores 900"),
    ("keep_best", best_0_is_false, "another client stores 900"),
    ("keep_best", best_zero_is_missing, "0 for bob, whose best is 0 gave True; right is False"),
    ("keep_best", best_compares_around, "gave True; right is False: say what your own"),
    ("keep_best", best_new_score, "gave 100.0; right is True"),
    ("next_page", page_offset, "a new book enters at the top: book-4 came"),
    ("next_page", page_score_exclusive, "book-4, book-3, book-2, book-1 skipped"),
    ("next_page", page_score_inclusive, "five books tied at 7, pages of 1: book-5 came twice"),
    ("next_page", page_by_rank_of_member, "its last book is removed: book-5 came"),
    ("next_page", page_ends_when_gone, "its last book is removed: the walk ended with book-3"),
    ("next_page", page_empty_at_the_end, "right is None, as nothing follows"),
    ("next_page", page_short_score, "scores 0.1 + 0.2"),
    ("next_page", page_split_at_colon, "signs, accents and capitals"),
    ("next_page", page_case_order, "signs, accents and capitals"),
    ("next_page", page_never_ends, "book-5 came twice"),
    ("next_page", page_empty_for_ever, "right is None, as nothing follows"),
    ("next_page", page_half_full, "skipped"),
    ("next_page", page_loops_inside, "sent more than 1000 commands"),
    ("next_page", page_ascending, "book-1 came with"),
    ("next_page", page_without_scores, "a row is (member, score)"),
    ("next_page", page_without_cursor, "right is (rows, next_cursor)"),
]


@pytest.mark.parametrize("name", NAMES)
def test_the_solution_is_right_and_leaves_nothing(name: str, either: Client) -> None:
    assert exercise(name).judge(exercise(name)._task.solution, either) == "Right."
    assert either.dbsize() == 0


@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_right_answers_of_every_style(name: str, answer: Function, either: Client) -> None:
    assert exercise(name).judge(answer, either) == "Right."


@pytest.mark.parametrize(("name", "answer", "reason"), WRONG)
def test_wrong_answers_are_told_what_was_seen(
    name: str, answer: Function, reason: str, either: Client
) -> None:
    assert_refused(name, answer, reason, either)


@pytest.mark.parametrize("name", NAMES)
def test_the_untouched_stub_is_not_attempted(name: str, either: Client) -> None:
    space: dict[str, Any] = {}
    exec(exercise(name).stub(), space)
    assert exercise(name).judge(space[name], either) == "Not attempted."
    assert exercise(name).judge(..., either) == "Not attempted."


@pytest.mark.parametrize("name", NAMES)
def test_the_shown_solution_stands_alone_and_is_right(
    name: str, either: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    exercise(name).solution()
    text = capsys.readouterr().out
    assert text.startswith(exercise(name).stub().removesuffix("    return ..."))
    space: dict[str, Any] = {}
    exec(text, space)
    assert exercise(name).judge(space[name], either) == "Right."


def test_the_result_instead_of_the_function(redis_client: Client) -> None:
    assert exercise("place").judge((1, 2.0), redis_client).startswith("Not yet: check takes")


def test_check_prints_one_line(redis_client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    exercise("place").check(place_two_calls, redis_client)
    assert capsys.readouterr().out == "Right.\n"


def test_the_lab_that_is_open_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "_current", None)
    with pytest.raises(LabError, match="No lab is open"):
        exercise("place").judge(place_two_calls)
    opened = lab.connect("redis")
    try:
        assert exercise("place").judge(place_two_calls) == "Right."
        assert opened.redis.keys("exercise:*") == []
    finally:
        opened.close()


def test_a_server_that_is_gone_is_no_wrong_answer() -> None:
    server = embedded.start("valkey")
    client = open_client(f"unix://{server.socket}")

    def stops_the_server(*_: object) -> None:
        server.stop()

    for _ in range(2):  # gone during the check, and gone before it
        with pytest.raises(LabError, match="The server is gone"):
            exercise("place").judge(stops_the_server, client)


def test_hints_grow_and_end(capsys: pytest.CaptureFixture[str]) -> None:
    exercise("keep_best").hint()
    exercise("keep_best").hint(2)
    assert capsys.readouterr().out.count("of 2:") == 2
    with pytest.raises(LabError, match="no hint 3"):
        exercise("keep_best").hint(3)


def test_an_interrupt_is_not_an_answer(redis_client: Client) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        exercise("place").judge(interrupted, redis_client)
    assert redis_client.dbsize() == 0


def test_the_client_is_as_before(redis_client: Client) -> None:
    exercise("next_page").judge(page_loops_inside, redis_client)
    assert redis_client.ping()
    assert "execute_command" not in vars(redis_client)


def test_a_mistyped_name_is_told_the_near_one() -> None:
    with pytest.raises(LabError, match="next_page"):
        exercise("nextpage")
    assert set(NAMES) <= set(exercises())
