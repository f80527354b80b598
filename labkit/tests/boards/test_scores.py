"""The codec against both servers: order and round trip, up to 2^53, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labkit.boards import scores
from labkit.boards.scores import LIMIT, Composite, TieInMember, exact, text
from labkit.errors import LabError

Client = Any
Pair = tuple[int, int]
# A server stays the same for all examples of a test; each example empties its key.
live = settings(
    deadline=None, max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
firsts: st.SearchStrategy[Any] = st.sampled_from(["low", "high"])


@st.composite
def ranges(draw: st.DrawFn) -> tuple[Pair, Pair]:
    """Points and ties whose pairs fit: as many as a double has, about as many, or few."""
    ties = draw(st.one_of(st.integers(1, LIMIT), st.integers(0, 53).map(lambda k: 2**k)))
    most = LIMIT // ties
    points = draw(st.one_of(st.just(most), st.integers(1, most)))
    low, start = draw(st.integers(-(10**12), 10**12)), draw(st.integers(-(10**12), 10**12))
    return (low, low + points - 1), (start, start + ties - 1)


def near(span: Pair) -> st.SearchStrategy[int]:
    """Numbers of a range, mostly at its ends."""
    low, high = span
    edge = min(3, high - low)
    ends = st.integers(low, low + edge), st.integers(high - edge, high)
    return st.one_of(*ends, st.integers(low, high))


@st.composite
def boards(draw: st.DrawFn) -> tuple[Composite, list[Pair]]:
    """A codec and different pairs of its ranges."""
    points, tie = draw(ranges())
    codec = Composite(points, tie, draw(firsts))
    pairs = st.lists(st.tuples(near(points), near(tie)), min_size=1, max_size=30, unique=True)
    return codec, draw(pairs)


def by_rule(codec: Composite | TieInMember, pairs: Iterable[Pair]) -> list[Pair]:
    """Ascending, as the docstring of the codec says it; nothing of its code is used."""
    sign = -1 if codec.first == "low" else 1
    return sorted(pairs, key=lambda pair: (pair[0], sign * pair[1]))


def check(client: Client, codec: Composite, pairs: list[Pair]) -> None:
    """Order and round trip on a server, in both encodings of a sorted set.

    The members' own order is against the rule, so two scores that melt into one show.
    """
    right = by_rule(codec, pairs)
    members = {f"{len(right) - n:03d}": pair for n, pair in enumerate(right)}
    for filler in (0, 200):
        client.delete("t")
        client.zadd("t", {name: codec.encode(*pair) for name, pair in members.items()})
        if filler:
            client.zadd("t", {f"below {n}": -1 for n in range(filler)})
        assert [members[name] for name in client.zrange("t", filler, -1)] == right
        replies = client.zmscore("t", list(members))
        assert [codec.decode(score) for score in replies] == right
        assert len(set(replies)) == len(right)


@live
@given(board=boards())
def test_the_server_keeps_order_and_pairs(either: Client, board: tuple[Composite, Any]) -> None:
    check(either, *board)


EDGES = [
    ((0, 2**21 - 1), (0, 2**32 - 1)),
    ((0, LIMIT - 1), (0, 0)),
    ((5, 5), (1, LIMIT)),
    ((-(2**26), 2**26 - 1), (-(2**25), 2**25 - 1)),
    ((0, 900_718), (0, 10**10 - 1)),
    ((0, 6_361 - 1), (1, 69_431 * 20_394_401)),  # one pair less than fits: 2^53 - 1
]


def corners(points: Pair, tie: Pair) -> list[Pair]:
    """The pairs of the six lowest and the six highest scores, or all there are."""

    def few(span: Pair) -> set[int]:
        return {n for k in range(6) for n in (span[0] + k, span[1] - k) if span[0] <= n <= span[1]}

    return [(upper, lower) for upper in few(points) for lower in few(tie)]


@pytest.mark.parametrize("first", ["low", "high"])
@pytest.mark.parametrize(("points", "tie"), EDGES)
def test_the_edge_of_2_53(either: Client, points: Pair, tie: Pair, first: Any) -> None:
    codec = Composite(points, tie, first)
    pairs = corners(points, tie)
    check(either, codec, pairs)
    assert max(codec.encode(*pair) for pair in pairs) == codec.range_of(points[1])[1] < LIMIT


@pytest.mark.parametrize(("points", "tie"), EDGES[:4])
def test_one_bit_more_would_fail(
    either: Client, points: Pair, tie: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is not on the safe side: with one bit more the check above sees it."""
    twice = (points[0], points[1] + points[1] - points[0] + 1)
    with pytest.raises(LabError, match="keeps 9,007,199,254,740,992 whole numbers apart"):
        Composite(twice, tie)
    monkeypatch.setattr(scores, "LIMIT", 2 * LIMIT)
    with pytest.raises(AssertionError):
        check(either, Composite(twice, tie), corners(twice, tie))


@given(spans=ranges(), first=firsts)
def test_the_ranges_that_are_said_to_fit_do(spans: Any, first: Any) -> None:
    """For too many pairs, the error names the widest range of each part: it fits, one more no."""
    points, tie = spans
    too_many = (points[0], points[0] + LIMIT // (tie[1] - tie[0] + 1))
    with pytest.raises(LabError) as refused:
        Composite(too_many, tie, first)
    most = LIMIT // (tie[1] - tie[0] + 1)
    widest = (points[0], points[0] + most - 1)
    assert f"points ({widest[0]}, {widest[1]}) with these ties" in str(refused.value)
    Composite(widest, tie, first)
    ties = LIMIT // (most + 1)
    if ties:
        fits = (tie[0], tie[0] + ties - 1)
        assert f"ties ({fits[0]}, {fits[1]}) with these points" in str(refused.value)
        Composite(too_many, fits, first)
        with pytest.raises(LabError):
            Composite(too_many, (fits[0], fits[1] + 1), first)


@pytest.mark.parametrize("k", range(54))
def test_k_bits_for_the_tie_leave_53_less_k(k: int) -> None:
    tie, largest = (0, 2**k - 1), 2 ** (53 - k) - 1
    assert Composite((0, largest), tie).encode(largest, 0) == LIMIT - 1
    with pytest.raises(LabError, match=rf"points \(0, {largest}\) with these ties"):
        Composite((0, largest + 1), tie)


def test_a_tie_that_no_score_holds_is_sent_to_the_member() -> None:
    with pytest.raises(LabError, match=r"What fits: the tie-break in the member \(TieInMember\)"):
        Composite((0, LIMIT), (0, LIMIT))
    with pytest.raises(LabError, match=r"fits: ties \(0, 8191\) with these points; the tie-break"):
        Composite((0, 2**40 - 1), (0, 2**64 - 1))


@live
@given(board=boards())
def test_range_of_counts_the_members_with_these_points(
    either: Client, board: tuple[Composite, list[Pair]]
) -> None:
    codec, pairs = board
    either.delete("t")
    either.zadd("t", {str(pair): codec.encode(*pair) for pair in pairs})
    for points in {pair[0] for pair in pairs} | set(codec.points):
        count = either.zcount("t", *codec.range_of(points))
        assert count == sum(pair[0] == points for pair in pairs)


def test_zincrby_of_a_unit_is_one_point(either: Client) -> None:
    codec = Composite((0, 2**21 - 1), (0, 2**32 - 1))
    either.zadd("t", {"zoe": codec.encode(500, 12_345)})
    score = either.zincrby("t", 10 * codec.unit, "zoe")
    assert codec.decode(score) == (510, 12_345)


REFUSED: list[Any] = [
    (-1, 0, "The points are -1, outside the declared 0 to 9"),
    (10, 0, "outside the declared 0 to 9. Declare a wider range"),
    pytest.param(10**5000, 0, "so long a number, outside", id="10**5000"),
    (5, 0, r"The ties are 0, outside the declared 1 to 7"),
    (5, 8, r"The ties are 8, outside"),
    (True, 5, "The points are True. Pass a whole number"),
    (5, 5.0, r"The ties are 5\.0. Pass a whole number"),
    (5, "5", "The ties are '5'. Pass a whole number"),
    (None, 5, "The points are None"),
    (5, np.float64(5), "The ties are np.float64"),
    (np.timedelta64(5), 5, r"The points are np\.timedelta64\(5\)\. Pass a whole number"),
    ("5" * 1000, 5, r"The points are '5{56}\.{4} Pass a whole number"),
]


@pytest.mark.parametrize(("points", "tie", "reason"), REFUSED)
def test_what_encode_refuses(points: Any, tie: Any, reason: str) -> None:
    with pytest.raises(LabError, match=reason):
        Composite((0, 9), (1, 7)).encode(points, tie)


def test_numpy_integers_become_python_integers() -> None:
    numbers: Any = (np.int64(5), np.uint8(3))
    score = Composite((0, 9), (1, 7)).encode(*numbers)
    assert type(score) is int
    assert Composite((0, 9), (1, 7)).decode(score) == (5, 3)


NARROW = [(np.uint8(0), np.uint8(255)), (np.int8(-128), np.int8(127)), (np.int32(0), np.int32(9))]


@pytest.mark.parametrize("span", NARROW)
def test_ranges_of_numpy_do_not_wrap_around(span: Any) -> None:
    low, high = map(int, span)
    for codec in (Composite((0, 9), span), Composite(span, (0, 9)), TieInMember(span)):
        ours, ties = (codec, (low, high)), (0, 9)
        assert all(type(end) is int for end in codec.tie)
        if isinstance(codec, TieInMember):
            assert codec.decode(codec.encode(span[1], "zoe")) == (high, "zoe")
        elif codec.tie == ties:
            assert ours == (Composite((low, high), ties), (low, high))
            assert codec.decode(codec.encode(high, 3)) == (high, 3)
            assert codec.range_of(high) == (10 * (high - low), 10 * (high - low) + 9)
        else:
            assert codec == Composite(ties, (low, high))
            assert codec.unit == high - low + 1
            assert codec.decode(codec.encode(9, low)) == (9, low)
            assert codec.encode(9, low) == 10 * codec.unit - 1


def test_the_widest_range_of_numpy_is_refused() -> None:
    widest: Any = (np.int64(-(2**63)), np.int64(2**63 - 1))
    for spans in ((widest, (0, 0)), ((0, 0), widest)):
        with pytest.raises(LabError, match=r"9223372036854775807\).* make too many pairs"):
            Composite(*spans)
    assert TieInMember(widest).width == 20


def test_numbers_of_thousands_of_digits_get_an_answer() -> None:
    for spans in (((0, 10**5000), (0, 9)), ((0, 9), (0, 10**5000))):
        with pytest.raises(LabError, match=r"so long a number.* make too many pairs"):
            Composite(*spans)
    far = Composite((0, 9), (10**5000, 10**5000 + 9))
    assert far.decode(far.encode(5, 10**5000 + 4)) == (5, 10**5000 + 4)
    with pytest.raises(LabError, match="The ties are 4, outside the declared so long a number"):
        far.encode(5, 4)
    with pytest.raises(LabError, match="The ties have over 1,000 digits"):
        TieInMember((0, 10**1000))
    longest = TieInMember((0, 10**1000 - 1))
    assert longest.decode(longest.encode(7, "zoe")) == (7, "zoe")
    span: Any = ([10**5000], 1)
    with pytest.raises(LabError, match="The range of points is so long a number"):
        Composite(span, (0, 1))


@pytest.mark.parametrize(
    ("score", "reason"),
    [
        (1.5, r"1\.5 is not one of this codec's scores, 0 to 69\. Look for"),
        (-1, "-1 is not one"),
        (70, "70 is not one"),
        (math.inf, "inf is not one"),
        ("69.5", "'69.5' is not one"),
        ("-1", "'-1' is not one"),
        ("1e400", "A score cannot hold 1e400"),
        ("6_9", "'6_9' is not a number"),
        ("69\n", r"'69\\n' is not a number"),
        (" 5 ", "' 5 ' is not a number"),
        ("\u0663", "is not a number"),
        ("x" * 10**6, r"'x{56}\.\.\. is not a number"),
        (np.timedelta64(5), r"np\.timedelta64\(5\) is not a number"),
        (math.nan, "NaN has no place"),
        (True, "True is not a number"),
        (None, "None is not a number"),
        ("zoe", "'zoe' is not a number"),
        (b"5", "b'5' is not a number"),
        (2**53 + 1, "A score cannot hold 9007199254740993"),
    ],
)
def test_what_decode_refuses(score: Any, reason: str) -> None:
    with pytest.raises(LabError, match=reason):
        Composite((0, 9), (1, 7)).decode(score)


def test_decode_reads_replies_of_every_kind() -> None:
    codec = Composite((0, 9), (1, 7))
    replies: list[Any] = [69, 69.0, "69", "69.0", np.float64(69), np.int8(69)]
    assert {codec.decode(score) for score in replies} == {(9, 1)}


@pytest.mark.parametrize(
    "span", [(2, 1), (0, 1.0), (0,), [0, 1], (False, True), None, "01", (0, 1, 2)]
)
def test_a_range_that_is_none(span: Any) -> None:
    for name, spans in (("points", (span, (0, 1))), ("ties", ((0, 1), span))):
        with pytest.raises(LabError, match=rf"The range of {name} is .*\(lowest, highest\)"):
            Composite(*spans)
    with pytest.raises(LabError, match="The range of ties is"):
        TieInMember(span)


def test_first_is_low_or_high() -> None:
    wrongs: list[Any] = ["earlier", "", None, np.array(["low", "high"]), ["low"]]
    for wrong in wrongs:
        with pytest.raises(LabError, match=r"First is .* It is 'low' or 'high'"):
            Composite((0, 1), (0, 1), wrong)
        with pytest.raises(LabError, match="First is"):
            TieInMember((0, 1), wrong)


# ---- the tie-break in the member


@st.composite
def tagged(draw: st.DrawFn) -> tuple[TieInMember, list[tuple[int, Pair]]]:
    """A codec of any size up to 64 bits and more, and (points, (tie, id)) rows."""
    low = draw(st.integers(-(2**63), 2**63))
    high = low + draw(st.one_of(st.just(2**64 - 1), st.integers(0, 2**70)))
    codec = TieInMember((low, high), draw(firsts))
    rows = st.tuples(st.integers(0, 2), st.tuples(near((low, high)), st.integers(0, 99)))
    key = st.lists(rows, min_size=1, max_size=30, unique_by=lambda row: (row[0], row[1][0]))
    return codec, draw(key)


@live
@given(board=tagged())
def test_members_keep_the_order_of_any_tie(either: Client, board: Any) -> None:
    codec, rows = board
    either.delete("t")
    # Points of one tie-break and id would be one member: the points are part of the id here.
    either.zadd("t", {codec.encode(tie, f"{id}:{points}"): points for points, (tie, id) in rows})
    seen = [(int(score), codec.decode(m)) for m, score in either.zrange("t", 0, -1, withscores=1)]
    assert [(points, tie) for points, (tie, _) in seen] == by_rule(
        codec, ((points, tie) for points, (tie, _) in rows)
    )
    assert {(p, tie, id) for p, (tie, id) in seen} == {(p, t, f"{i}:{p}") for p, (t, i) in rows}


@given(tie=st.integers(0, 2**64 - 1), id=st.text(), first=firsts)
def test_any_id_comes_back(tie: int, id: str, first: Any) -> None:
    codec = TieInMember(first=first)
    assert codec.decode(codec.encode(tie, id)) == (tie, id)
    assert len(codec.encode(tie, id)) == 20 + 1 + len(id)


FORMS = ["", "zoe", "5:zoe", "005:zoe", "99:zoe", "21:zoe", "05zoe", "-5:zoe", b"05:zoe", None, 5]


@pytest.mark.parametrize("member", FORMS)
def test_a_member_of_another_form(member: Any) -> None:
    with pytest.raises(LabError, match="does not begin with a tie-break of 2 digits"):
        TieInMember((0, 20)).decode(member)


def test_digits_of_other_scripts_are_no_digits() -> None:
    with pytest.raises(LabError, match="of 2 digits"):
        TieInMember((0, 20)).decode("\u0661\u0662:zoe")


@pytest.mark.parametrize("id", [b"x", 5, None, "\ud800", ["zoe"]])
def test_an_id_is_text_that_can_be_sent(id: Any) -> None:
    with pytest.raises(LabError, match=r"The id is .*\. Pass text"):
        TieInMember().encode(5, id)


def test_an_id_may_have_colons_and_lines() -> None:
    codec = TieInMember((0, 20))
    assert codec.decode("20:a:b\nc\n") == (0, "a:b\nc\n")
    assert codec.decode(codec.encode(20, "")) == (20, "")


@pytest.mark.parametrize("tie", [-1, 2**64, 1.0, True, "1"])
def test_a_tie_outside_of_its_range(tie: Any) -> None:
    with pytest.raises(LabError, match="The ties are"):
        TieInMember().encode(tie, "zoe")


# ---- plain scores


@live
@given(value=st.one_of(st.integers(-(2**70), 2**70), st.integers(LIMIT - 9, LIMIT + 9)))
def test_an_integer_is_accepted_exactly_when_it_comes_back(either: Client, value: int) -> None:
    either.zadd("t", {"m": value})
    if either.zscore("t", "m") == value:
        assert exact(value) == value
    else:
        with pytest.raises(LabError, match="A score cannot hold"):
            exact(value)


@live
@given(value=st.floats(allow_nan=False))
def test_the_text_of_a_score_finds_it(either: Client, value: float) -> None:
    shown = text(value)
    assert float(shown) == value
    either.delete("t")
    either.zadd("t", {"m": value})
    assert either.zrange("t", shown, shown, byscore=True) == ["m"]
    either.execute_command("ZADD", "t", shown, "m")
    assert either.zscore("t", "m") == value
    assert len(shown) <= 24


def test_texts() -> None:
    values = [5, 5.0, -0.0, LIMIT, 0.1 + 0.2, 1e300, math.inf, -math.inf, np.float64(0.5)]
    right = "5 5 0 9007199254740992 0.30000000000000004 1e+300 inf -inf 0.5"
    assert " ".join(map(text, values)) == right


@live
@given(value=st.floats(allow_nan=False))
def test_the_text_of_a_reply_is_the_double_it_names(either: Client, value: float) -> None:
    """What servers write: the new ones a short text, those up to Redis 7.0 one of 17 digits."""
    either.zadd("t", {"m": value})
    reply = either.eval("return redis.call('ZSCORE', 't', 'm')", 0)
    assert text(reply) == text(f"{value:.17g}") == text(value)


@pytest.mark.parametrize("reply", ["0.30000000000000004", "0.1", "5000.8204999999998", "-1e-7"])
def test_text_is_a_reply_to_text_and_a_number_to_exact(reply: str) -> None:
    assert float(text(reply)) == float(reply)
    with pytest.raises(LabError, match="A score cannot hold"):
        exact(reply)


def test_a_long_whole_reply_becomes_its_double() -> None:
    assert text(str(LIMIT + 1)) == str(LIMIT)


@pytest.mark.parametrize(
    "value",
    [
        *(3, -0.5, "0.5", "-7", "inf", Decimal("0.25"), Decimal(2) ** 60, Fraction(3, 4), 10**22),
        *(np.int64(5), np.float64(0.1), np.float32(0.1), math.inf, LIMIT, str(LIMIT + 2)),
        *(np.int64(-LIMIT), np.uint64(2**63), ".5", "5.", "+1E3", "-Infinity"),
    ],
)
def test_what_a_double_holds_is_accepted(value: Any, either: Client) -> None:
    score = exact(value)
    assert type(score) is float
    either.zadd("t", {"m": score})
    kept = either.zscore("t", "m")
    assert kept == score == (Decimal(value) if isinstance(value, str) else value)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (LIMIT + 1, "A score cannot hold 9007199254740993; the nearest double is 9007199254740992"),
        (1009651914519660511, "the nearest double is 1009651914519660544"),
        (np.int64(LIMIT + 1), "hold 9007199254740993; the nearest double is 9007199254740992"),
        (np.int64(-LIMIT - 1), "hold -9007199254740993; the nearest double is -9007199254740992"),
        (np.uint64(2**64 - 1), "hold 18446744073709551615; the nearest double is 184467440737095"),
        (np.longdouble(LIMIT) + 1, "A score cannot hold 9007199254740993"),
        (Decimal(LIMIT + 1), "A score cannot hold 9007199254740993"),
        (Decimal("0.1"), "whole numbers up to 2.53, such as cents"),
        (Fraction(1, 3), "A score cannot hold 1/3"),
        (10**400, "the nearest double is Infinity"),
        (-(10**400), "the nearest double is -Infinity"),
        ("-1e400", "A score cannot hold -1e400; the nearest double is -Infinity"),
        pytest.param(10**5000, "A score cannot hold so long a number", id="10**5000"),
        ("1e400", "A score cannot hold 1e400; the nearest double is Infinity"),
        (Decimal("1e-999999"), "the nearest double is 0"),
        (math.nan, "NaN has no place in an order"),
        (Decimal("nan"), "NaN has no place"),
        ("sNaN", "'sNaN' is not a number"),
        ("1e99999999999999999999", "is not a number"),
        (True, "True is not a number. Pass a number"),
        (np.timedelta64(5, "s"), r"np\.timedelta64\(5,'s'\) is not a number"),
        ([10**5000], "so long a number is not a number"),
        ("x" * 10**6, r"^'x{56}\.\.\. is not a number"),
        (np.True_, "is not a number"),
        (None, "None is not a number"),
        ("", "'' is not a number"),
        *((odd, "is not a number") for odd in ("0x10", "6_9", "69\n", " 5 ", "\u0663", "--5", ".")),
        (b"5", "b'5' is not a number"),
        (1j, "1j is not a number"),
    ],
)
def test_what_a_double_does_not_hold_is_refused(value: Any, reason: str) -> None:
    for guard in (exact, text):
        with pytest.raises(LabError, match=reason):
            guard(value)


@pytest.mark.parametrize("value", ["0.1", str(LIMIT + 1), "1e-999"])
def test_exact_takes_text_at_its_word(value: str) -> None:
    with pytest.raises(LabError, match=f"A score cannot hold {value}; the nearest double is"):
        exact(value)
