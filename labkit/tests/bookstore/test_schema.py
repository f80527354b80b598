"""The OpenAPI document against the service: what it promises holds, and bad input is refused.

All of schemathesis's checks. What the document cannot say is told here: the last digit of an ISBN,
that a key is for one order, and which cursor is of which list.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from labkit.bookstore import create_app, open_store, serving
from labkit.bookstore.load import ISBNS
from labkit.servers import embedded
from labkit.servers.space import open_client

EXAMPLES = 60  # of each operation, beyond schemathesis's own list of edge cases
CONFIG = schemathesis.Config.from_dict(
    {
        "generation": {"deterministic": True, "max-examples": EXAMPLES, "database": "none"},
        "checks": {
            # 413 is what a body gets that is wrong in its length first.
            "negative_data_rejection": {
                "expected-statuses": [400, 404, 405, 408, 413, 415, 422],
            },
            "positive_data_acceptance": {"expected-statuses": [200, 404]},
            "missing_required_header": {"expected-statuses": [400]},
        },
    }
)
document = create_app(open_store("unix:///nowhere")).openapi()
shown = schemathesis.openapi.from_dict(document, config=CONFIG)
schemathesis.openapi.format("isbn-13", st.sampled_from(ISBNS))
keys = itertools.count()
cursors: dict[str, str] = {}  # path -> one of the service that is asked
tried: Counter[tuple[str, bool]] = Counter()  # path, whether the input was meant to be wrong


@pytest.fixture(scope="module", params=["redis", "valkey"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A service with thirty books."""
    server: embedded.Embedded = request.getfixturevalue(f"_{request.param}_server")
    with open_client(server.url) as client:
        client.flushall()
    with serving(server.url) as service, httpx.Client(base_url=service.url) as http:
        for number, isbn in enumerate(ISBNS[:30], 1):
            order = {"customerId": number, "isbn": isbn, "quantity": 1}
            http.post("/orders", json=order, headers={"Idempotency-Key": f"seed-{number}"})
        for path in ("/bestsellers/today", "/bestsellers/week"):
            cursors[path] = http.get(path, params={"pageSize": 3}).json()["nextCursor"]
        tried.clear()
        yield service.url
    for path in {path for path, _ in tried} - {"/health"}:  # which asks for nothing
        assert tried[path, True] > 20
        assert tried[path, False] > 20


def mend(case: schemathesis.Case[Any]) -> None:
    """Make right what is meant to be right."""
    if case.meta is None or case.meta.generation.mode.is_negative:
        return
    if case.path == "/orders" and "Idempotency-Key" in case.headers:
        case.headers["Idempotency-Key"] = f"{next(keys)}-{case.headers['Idempotency-Key']}"[:100]
    if "cursor" in case.query:
        case.query["cursor"] = cursors[case.path]
        case.query.pop("page", None)


@shown.parametrize()
@settings(
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_the_service_does_what_its_document_says(case: schemathesis.Case[Any], url: str) -> None:
    mend(case)
    tried[case.path, case.meta is not None and case.meta.generation.mode.is_negative] += 1
    case.call_and_validate(base_url=url)
