"""What goes in and out of the shop, with its bounds."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

MOST_COPIES = 1_000  # of one order
LARGEST_CUSTOMER = 2**53 - 1  # what every JSON reader keeps exactly
ISBN = r"^97[89][0-9]{10}$"


def checked_isbn(text: str) -> str:
    """An ISBN-13 whose last digit fits the others.

    Raises:
        ValueError: it does not fit.

    Source: ISBN Users' Manual, 7th edition, section 5 (weights 1 and 3, sum divisible by 10).
    """
    if sum(int(digit) * (1, 3)[place % 2] for place, digit in enumerate(text)) % 10:
        raise ValueError("its last digit does not fit the others")
    return text


def _whole(number: Any) -> Any:
    """2.0 is a whole number in JSON, as JSON Schema has it.

    A number with a point is read as a double: 2.00000000000000001 is 2 too.
    """
    return int(number) if isinstance(number, float) and number.is_integer() else number


Whole = Annotated[int, BeforeValidator(_whole)]
Isbn = Annotated[
    str,
    Field(pattern=ISBN, json_schema_extra={"format": "isbn-13", "examples": ["9780441013593"]}),
    AfterValidator(checked_isbn),
]


class _Shape(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        serialize_by_alias=True,
        extra="forbid",
        frozen=True,
        strict=True,
    )


class Order(_Shape):
    """Copies of one book for one customer. What they are worth in points, the shop decides.

    Of a field that is there twice, the last one counts, as in most readers of JSON.
    """

    customer_id: Whole = Field(ge=1, le=LARGEST_CUSTOMER, examples=[7])
    isbn: Isbn
    quantity: Whole = Field(ge=1, le=MOST_COPIES, description="Copies.", examples=[2])


class Recorded(_Shape):
    """An order that is counted: once, however often it was sent."""

    order_id: int = Field(ge=1)
    replayed: bool = Field(description="Whether an earlier request has recorded this order.")


class Sold(_Shape):
    """A book of today's list."""

    rank: int = Field(ge=1, description="From 1; equal numbers of copies by ISBN, highest first.")
    isbn: str
    sold: int = Field(ge=0, description="Copies.")


class SoldInWeek(Sold):
    """A book of the week's list."""

    rank: int = Field(
        ge=1, description="From 1, by copies, then by days with sales, then by ISBN, highest first."
    )
    days_with_sales: int = Field(ge=0, le=7)


class Today(_Shape):
    """A page of a day's list."""

    day: str = Field(description="The day (UTC): YYYY-MM-DD.")
    items: list[Sold]
    next_cursor: str | None = Field(description="Of the page after this one; null at the end.")


class Week(_Shape):
    """A page of a snapshot of the week's list."""

    day: str = Field(description="The last of its seven days (UTC): YYYY-MM-DD.")
    items: list[SoldInWeek]
    total: int = Field(ge=0, description="Books in the snapshot.")
    expires_in: int = Field(ge=0, description="Seconds for which the snapshot is still there.")
    next_cursor: str | None = Field(description="Of the page after this one; null at the end.")


class Recent(_Shape):
    """How many orders came in lately."""

    minutes: int
    orders: int = Field(ge=0)


class Standing(_Shape):
    """Where a customer stands by points."""

    player_id: int
    rank: int = Field(ge=1, description="From 1; equal points share the better rank: 1 2 2 4.")
    points: int = Field(ge=0)


class Problem(_Shape):
    """Why there is no other answer."""

    detail: str = Field(description="One or two sentences: what is wrong and what to do.")


class Health(_Shape):
    """What the store is, and what an answered order may count on."""

    server: str
    durable: bool = Field(
        description="Whether no crash of the store or its machine loses an answered order. A "
        "replica that takes over may lack the last orders (replication is asynchronous)."
    )
    sentence: str
