"""The shop over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any, TypeVar

from fastapi import FastAPI, Header, Path, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, BeforeValidator, Field, ValidationError
from redis.asyncio import Redis

from labkit.bookstore.problems import BadRequest, answers, install, sentence
from labkit.bookstore.shapes import (
    LARGEST_CUSTOMER,
    Health,
    Order,
    Recent,
    Recorded,
    Standing,
    Today,
    Week,
)
from labkit.bookstore.shop import Refused, Shop, unix_ms
from labkit.bookstore.store import promise
from labkit.errors import LabError

DEADLINE = 5.0  # s for the store, and for a body to come
LARGEST_BODY = 1_024  # bytes; an order takes about 80
LARGEST_PAGE = 10**6
LARGEST_SIZE = 100
Reply = TypeVar("Reply")


def _digits(text: Any) -> Any:
    """Plain digits only: a number in a URL has no sign, no blank and no point."""
    if isinstance(text, str) and not (text.isascii() and text.isdigit() and len(text) <= 20):
        raise ValueError("a whole number in plain digits is expected")
    return text


_PLAIN = BeforeValidator(_digits)
Page = Annotated[int | None, Field(ge=1, le=LARGEST_PAGE), _PLAIN, Query(description="From 1.")]
Size = Annotated[int, Field(ge=1, le=LARGEST_SIZE), _PLAIN, Query(alias="pageSize")]
Cursor = Annotated[
    str | None,
    Query(min_length=1, max_length=400, description="The nextCursor of a page, in place of page."),
]
Minutes = Annotated[int, Field(ge=1, le=60), _PLAIN, Query()]
Player = Annotated[int, Field(ge=1, le=LARGEST_CUSTOMER), _PLAIN, Path()]
Key = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=100,
        pattern="^[!-~]+$",
        description="One for each order, such as a UUID; the same when the order is sent again.",
    ),
]


class Bookstore(FastAPI):
    """FastAPI whose OpenAPI document leaves out the 422 that `install` has replaced."""

    def openapi(self) -> dict[str, Any]:
        """The document."""
        document = super().openapi()
        for path in document["paths"].values():
            for operation in path.values():
                if "HTTPValidationError" in str(operation["responses"].get("422", "")):
                    del operation["responses"]["422"]
        for name in ("HTTPValidationError", "ValidationError"):
            document["components"]["schemas"].pop(name, None)
        return document


def create_app(
    client: Redis,
    *,
    clock: Callable[[], int] = unix_ms,
    secret: bytes | None = None,
    deadline: float = DEADLINE,
) -> FastAPI:
    """The service on a store.

    Args:
        client: ``redis.asyncio`` with ``decode_responses=True``, such as `open_store` makes;
            closed when the service ends.
        clock: gives Unix milliseconds; what "today" and "the last minutes" mean.
        secret: what cursors are signed with, 16 bytes or more, the same in every process that
            serves this store; without one, cursors end with this service.
        deadline: seconds that a request waits for its body (then 408), and after that for the
            store (then 503), whatever the store does.
    """
    shop = Shop(client, clock=clock, secret=secret)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await client.aclose()

    about: dict[str, Any] = {"title": "Bookstore", "version": "1", "lifespan": lifespan}
    # No /docs and /redoc, whose pages load scripts from elsewhere; /openapi.json needs nothing.
    about |= {"redirect_slashes": False, "docs_url": None, "redoc_url": None}
    app = Bookstore(**about, responses=answers(400, 503))
    app.state.shop = shop
    install(app)

    async def within(work: Awaitable[Reply]) -> Reply:
        try:
            async with asyncio.timeout(deadline):
                return await work
        except (LookupError, TypeError, ValueError) as error:  # bytes that are no text, too
            why = str(error).partition("\n")[0]
            what = f"A reply of the store cannot be read: {type(error).__name__}, {why}."
            raise LabError(what) from error

    @app.post(
        "/orders",
        response_model=Recorded,
        responses=answers(408, 409, 413, 415, 422),
        openapi_extra=_BODY,
    )
    async def record(request: Request, idempotency_key: Key) -> Response:
        """Count an order once, however often it is sent with its key."""
        _only(request)
        if len(request.headers.getlist("idempotency-key")) > 1:
            raise BadRequest("There is more than one Idempotency-Key.")
        order = await _order(request, deadline)
        return _json(await within(shop.record(idempotency_key, order)))

    @app.get("/bestsellers/today", response_model=Today)
    async def today(
        request: Request, page: Page = None, size: Size = 10, cursor: Cursor = None
    ) -> Response:
        """Books by copies sold today (UTC). Pages by number drift while books sell; a cursor
        neither skips nor repeats a book that does not sell meanwhile."""
        _only(request, "page", "pageSize", "cursor")
        return _json(await within(shop.today(_page(page, cursor), size, cursor)))

    @app.get("/bestsellers/week", response_model=Week, responses=answers(410))
    async def week(
        request: Request, page: Page = None, size: Size = 10, cursor: Cursor = None
    ) -> Response:
        """Books by copies sold in seven days (UTC), then by days with sales: a list that is made
        anew after ten minutes. A cursor stays in its list, and ends with it."""
        _only(request, "page", "pageSize", "cursor")
        return _json(await within(shop.week(_page(page, cursor), size, cursor)))

    @app.get("/orders/recent", response_model=Recent)
    async def recent(request: Request, minutes: Minutes = 5) -> Response:
        """How many orders came in after ``now - minutes``, up to now."""
        _only(request, "minutes")
        return _json(Recent(minutes=minutes, orders=await within(shop.recent(minutes))))

    @app.get("/players/{id}/rank", response_model=Standing, responses=answers(404))
    async def rank(request: Request, id: Player) -> Response:
        """Where a customer stands by points."""
        _only(request)
        standing = await within(shop.rank(id))
        if standing is None:
            raise Refused(404, f"Customer {id} has no points yet.")
        return _json(standing)

    @app.get("/health", response_model=Health)
    async def health(request: Request) -> Response:
        """What the store is, and what an answered order may count on."""
        _only(request)
        found = await within(promise(client))
        return _json(Health(server=found.server, durable=found.durable, sentence=found.sentence))

    return app


def _json(answer: BaseModel) -> Response:
    return Response(answer.model_dump_json(), media_type="application/json")


def _page(page: int | None, cursor: str | None) -> int:
    if page is not None and cursor is not None:
        raise BadRequest("There are a page and a cursor.", "Send one of them.")
    return page or 1


def _only(request: Request, *names: str) -> None:
    """Refuse a parameter that is not known, such as ``pagesize``, or is there twice."""
    seen = [name for name, _ in request.query_params.multi_items()]
    for name in seen:
        if name not in names:
            known = ", ".join(names) or "none"
            raise BadRequest(f"There is no parameter {name[:40]!r} here.", f"Known: {known}.")
        if seen.count(name) > 1:
            raise BadRequest(f"The parameter {name} is there more than once.")


async def _order(request: Request, seconds: float) -> Order:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        what = "The body is not declared as JSON."
        raise Refused(415, what, "Send Content-Type: application/json.")
    body = b""
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                body += part
                if len(body) > LARGEST_BODY:
                    raise Refused(413, f"The body is larger than {LARGEST_BODY:,} bytes.")
    except TimeoutError:
        raise Refused(408, f"The body did not come within {seconds:g} s.") from None
    try:
        return Order.model_validate_json(body, by_alias=True, by_name=False)
    except ValidationError as error:
        raise BadRequest(sentence(error.errors())) from None


_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": Order.model_json_schema()}},
    }
}
