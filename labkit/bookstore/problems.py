"""Answers that are no success: one status for one cause, and a sentence."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import ValidationError
from redis.exceptions import RedisError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from labkit.bookstore.shapes import Problem
from labkit.bookstore.shop import Refused
from labkit.bookstore.store import trouble
from labkit.errors import LabError

RETRY_AFTER = 1  # s
_LOG = logging.getLogger("labkit.bookstore")
_CAUSES = {
    400: "Something in the request is not as it must be.",
    404: "This customer has no points yet.",
    408: "The body did not come in time.",
    409: "The order would make a total that cannot be counted exactly.",
    410: "The snapshot that the cursor reads has ended.",
    413: "The body is too large.",
    415: "The body is not declared as JSON.",
    422: "The Idempotency-Key was used for another order.",
    503: "The store cannot answer now. An order may be sent again with the same key.",
}


class BadRequest(Refused):
    """What a client must change before it asks again."""

    def __init__(self, what: str, cure: str = "") -> None:
        super().__init__(400, what, cure)


def answers(*codes: int) -> dict[int | str, dict[str, Any]]:
    """These answers for the OpenAPI document."""
    found: dict[int | str, dict[str, Any]] = {}
    for code in codes:
        found[code] = {"model": Problem, "description": _CAUSES[code]}
    if 503 in found:
        found[503]["headers"] = {
            "Retry-After": {"description": "Seconds.", "schema": {"type": "integer"}}
        }
    return found


def sentence(errors: Sequence[Any]) -> str:
    """The first of pydantic's errors in words, without what was sent."""
    first = errors[0]
    place = [str(part) for part in first["loc"] if part not in ("query", "header", "path", "body")]
    where = place[-1][:40] if place else "The body"
    if first["type"] == "missing":
        return f"{where} is missing."
    if first["type"] == "extra_forbidden":
        return f"There is no field {where!r} in an order."
    what = str(first["msg"]).removeprefix("Value error, ").rstrip(".")
    return f"{where}: {what[:200]}."


def install(app: FastAPI) -> None:
    """Make every failure of this app an answer with a sentence."""
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RedisError, _store)
    app.add_exception_handler(OSError, _store)  # asyncio.timeout's TimeoutError too
    app.add_exception_handler(LabError, _foreign)
    app.add_exception_handler(ValidationError, _foreign)  # of an answer
    app.add_exception_handler(ClientDisconnect, _gone)


def _say(status: int, detail: str, **headers: str) -> Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return JSONResponse({"detail": detail}, status, named)


async def _refused(_: Request, error: Any) -> Response:
    return _say(error.status, str(error))


async def _invalid(_: Request, error: Any) -> Response:
    return _say(400, sentence(error.errors()))


async def _http(_: Request, error: Any) -> Response:
    return JSONResponse({"detail": f"{error.detail}."}, error.status_code, error.headers)


async def _store(request: Request, error: Any) -> Response:
    what = trouble(error)
    if request.method == "POST":
        what += " Send the order again with the same key: it counts once."
    _LOG.warning("%s (%s)", what, type(error).__name__)
    return _say(503, what, Retry_After=str(RETRY_AFTER))


async def _foreign(_: Request, error: Any) -> Response:
    """A score that this service has not written, or a reply that its scripts do not make."""
    _LOG.error("%s", error)
    return _say(503, "The store holds data that is not this service's.", Retry_After="60")


async def _gone(_: Request, __: Any) -> Response:
    return _say(400, "The request ended before its body.")
