"""Scores that say no: two numbers in one score, or a tie-break in the member.

A score is an IEEE 754 double. It holds every whole number up to 2^53 and, above, only some of
them; the server rounds the others and says nothing. What is built here refuses them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from numbers import Integral, Real
from operator import index
from typing import Any, Literal

from labkit.errors import LabError

LIMIT = 2**53  # how many whole numbers, from 0 on, a double keeps apart
Range = tuple[int, int]  # lowest and highest, both included
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?)", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True)
class Composite:
    """Two whole numbers as one score: points first, a tie-break among equal points.

    ::

        board = Composite(points=(0, 2_000_000), tie=(0, 2**32 - 1))
        client.zadd("board", {"zoe": board.encode(500, now)})
        points, when = board.decode(client.zscore("board", "zoe"))

    The score is ``(points - lowest points) * unit + place of the tie-break``, where ``unit`` is
    the number of tie-breaks; no number between 0 and the highest score is left unused. Adding
    ``n * unit`` with ZINCRBY adds n points and leaves the tie-break; nothing checks the range
    then before `decode` does.

    Attributes:
        points: lowest and highest points, both included; any unit, below zero too.
        tie: lowest and highest tie-break, both included; any unit, such as Unix seconds.
        first: which tie-break is first where the highest score is (ZRANGE REV, ZPOPMAX): the
            ``low`` (who was there earlier) or the ``high``. A queue, which is taken from the low
            end and serves the earlier one first, has ``high``.

    Raises:
        LabError: more pairs than a double has whole numbers; a range that is none.

    Source: whole numbers up to 2^53 are exact in a double (IEEE 754-2019, table 3.5: p = 53).
    """

    points: Range
    tie: Range
    first: Literal["low", "high"] = "low"

    def __post_init__(self) -> None:
        low, high = points = _span("points", self.points)
        start, _ = tie = _span("ties", self.tie, self.first)
        vars(self).update(points=points, tie=tie)  # numpy's integers would wrap around
        size = high - low + 1
        if size * self.unit > LIMIT:
            most, ties = LIMIT // self.unit, LIMIT // size
            fits = [f"points {shown((low, low + most - 1))} with these ties"] * (most > 0)
            fits += [f"ties {shown((start, start + ties - 1))} with these points"] * (ties > 0)
            raise LabError(
                f"Points {shown(points)} and ties {shown(tie)} make too many pairs: a double "
                f"keeps {LIMIT:,} whole numbers apart.",
                f"What fits: {'; '.join([*fits, 'the tie-break in the member (TieInMember)'])}.",
            )

    @property
    def unit(self) -> int:
        """What one point is worth in the score."""
        return self.tie[1] - self.tie[0] + 1

    def encode(self, points: int, tie: int) -> int:
        """The score of a pair: a whole number from 0 to 2^53 - 1.

        Raises:
            LabError: not a whole number, or outside its declared range.
        """
        upper = _inside("points", points, self.points) - self.points[0]
        return upper * self.unit + _place(tie, self.tie, self.first)

    def decode(self, score: float | str) -> tuple[int, int]:
        """Points and tie-break of a score, as ZSCORE replies it (float or text).

        Raises:
            LabError: no score of this codec: a fraction, a sign, too large, no number.
        """
        value = _reply(score)
        highest = (self.points[1] - self.points[0] + 1) * self.unit - 1
        if not (value.is_integer() and 0 <= value <= highest):
            what = f"{shown(score, repr)} is not one of this codec's scores, 0 to {highest:,}."
            raise LabError(what, "Look for a writer without it, or for ZINCRBY past a range.")
        upper, place = divmod(int(value), self.unit)
        return upper + self.points[0], _tie(place, self.tie, self.first)

    def range_of(self, points: int) -> tuple[int, int]:
        """Lowest and highest score of these points, both included: for ZCOUNT, ZRANGE BYSCORE."""
        low = (_inside("points", points, self.points) - self.points[0]) * self.unit
        return low, low + self.unit - 1


@dataclass(frozen=True)
class TieInMember:
    """A tie-break in front of the member: for what does not fit into a score.

    ::

        board = TieInMember()
        client.zadd("board", {board.encode(nanoseconds, "zoe"): 500})

    Equal scores stand in the order of their members' bytes, and digits of one width stand in
    the order of their numbers. The score stays plain points.

    What it costs: the member is another one with every new tie-break, so an update is ZREM and
    ZADD in one step; ZSCORE, ZINCRBY and ZADD GT by the id alone find nobody, and a hash from id
    to member is needed; unions do not see that two members are one id.

    Attributes:
        tie: lowest and highest tie-break, both included; any unit, up to 1,000 digits.
        first: as for `Composite`.
    """

    tie: Range = (0, 2**64 - 1)
    first: Literal["low", "high"] = "low"

    def __post_init__(self) -> None:
        vars(self).update(tie=_span("ties", self.tie, self.first))
        if self.tie[1] - self.tie[0] >= 10**1000:
            raise LabError("The ties have over 1,000 digits.", "Declare a narrower range.")

    @property
    def width(self) -> int:
        """Digits of the tie-break in every member."""
        return len(str(self.tie[1] - self.tie[0]))

    def encode(self, tie: int, id: str) -> str:
        """The member: ``width`` digits, a colon, the id (any text that UTF-8 can write).

        Raises:
            LabError: the tie-break is not a whole number of its range; the id is no such text.
        """
        return f"{_place(tie, self.tie, self.first):0{self.width}d}:{check_text('id', id)}"

    def decode(self, member: str) -> tuple[int, str]:
        """Tie-break and id of a member; LabError for one that `encode` has not made."""
        form = rf"([0-9]{{{self.width}}}):(.*)"
        parts = re.fullmatch(form, member, re.DOTALL) if isinstance(member, str) else None
        if not parts or int(parts[1]) > self.tie[1] - self.tie[0]:
            what = f"{shown(member, repr)} does not begin with a tie-break of {self.width} digits."
            raise LabError(what, "Look for a writer that does not use this form.")
        return _tie(int(parts[1]), self.tie, self.first), parts[2]


def exact(value: Any) -> float:
    """A plain score as the double that the server will keep, if that is the number itself.

    Whole numbers, fractions and decimal text that no double holds are refused, so what is
    accepted comes back from ZSCORE equal. A float is a double already; of numpy's numbers a
    Python float is made, which redis-py can send. Text is taken at its word: ``"0.1"`` is
    refused, as no double is a tenth. A server's text, which names a double, goes to `text`.

    Args:
        value: int, float, Fraction, Decimal, a numpy number, or a decimal number as text.

    Raises:
        LabError: no double is equal to it; NaN; a bool or another type.
    """
    number: Any = as_int(value) if isinstance(value, Integral) else value
    try:
        if isinstance(value, str) and _NUMBER.fullmatch(value):
            number = Decimal(value)
        if not isinstance(number, Real | Decimal):
            raise InvalidOperation
        score = float(number)
    except (InvalidOperation, ValueError):  # a signalling NaN is a ValueError
        raise LabError(f"{shown(value, repr)} is not a number.", "Pass a number.") from None
    except OverflowError:
        score = math.inf if number > 0 else -math.inf
    if math.isnan(score):
        raise LabError("NaN has no place in an order, so it is no score.", "Leave it out.")
    if score != number:  # Python compares int, Fraction and Decimal with a float exactly
        raise LabError(
            f"A score cannot hold {shown(value)}; the nearest double is {shown(Decimal(score))}.",
            "Take whole numbers up to 2^53, such as cents; keep a longer id in the member.",
        )
    return score


def text(score: Any) -> str:
    """The shortest decimal text that is read back as the same double; fit for a bound.

    A score is taken as by `exact`, text as a server writes it: it stands for the nearest double.
    """
    value = _reply(score)
    return str(int(value)) if value.is_integer() and abs(value) <= LIMIT else repr(value)


def as_int(value: Any) -> int | None:
    """An integer of any kind as Python's own, with which it is compared exactly."""
    try:
        return index(value) if isinstance(value, Integral) and not isinstance(value, bool) else None
    except TypeError:  # numpy counts its time spans among the integers
        return None


def shown(value: object, write: Callable[[Any], str] = str) -> str:
    """A value as it may stand in an error, cut where it gets long."""
    try:
        return cut if len(cut := write(value)) <= 60 else f"{cut[:57]}..."
    except ValueError:  # Python writes no int of thousands of digits
        return "so long a number"


def check_text(name: str, value: Any) -> str:
    """A member or an id, any text that UTF-8 can write; LabError for what would be another one."""
    try:
        str.encode(value)
    except (TypeError, UnicodeEncodeError):
        raise LabError(f"The {name} is {shown(value, repr)}.", "Pass text (a str).") from None
    return str.__str__(value)  # str() of an Enum is its name


def _reply(score: Any) -> float:
    known = isinstance(score, str) and _NUMBER.fullmatch(score) and math.isfinite(float(score))
    return float(score) if known else exact(score)


def _span(name: str, span: Any, first: Any = "low") -> Range:
    ends: list[Any] = [*map(as_int, span)] if isinstance(span, tuple) else []
    if len(ends) != 2 or None in ends or ends[0] > ends[1]:
        what = f"The range of {name} is {shown(span, repr)}."
        raise LabError(what, "It is two whole numbers: (lowest, highest).")
    if not isinstance(first, str) or first not in ("low", "high"):
        raise LabError(f"First is {shown(first, repr)}.", "It is 'low' or 'high'.")
    return ends[0], ends[1]


def _inside(name: str, value: Any, span: Range) -> int:
    if (whole := as_int(value)) is None:
        raise LabError(f"The {name} are {shown(value, repr)}.", "Pass a whole number (an int).")
    if not span[0] <= whole <= span[1]:
        low, high = (shown(end, "{:,}".format) for end in span)
        what = f"The {name} are {shown(whole)}, outside the declared {low} to {high}."
        raise LabError(what, "Declare a wider range, and write all scores anew.")
    return whole


def _place(tie: Any, span: Range, first: str) -> int:
    """How many tie-breaks of the range stand below this one."""
    value = _inside("ties", tie, span)
    return span[1] - value if first == "low" else value - span[0]


def _tie(place: int, span: Range, first: str) -> int:
    return span[1] - place if first == "low" else span[0] + place
