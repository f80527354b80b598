"""A shop on an empty server, once on each of the two."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from labkit.servers import embedded
from labkit.servers.space import open_client
from labkit.tests.bookstore.api import Api, api


@pytest.fixture(params=["redis", "valkey"])
def store(request: pytest.FixtureRequest) -> str:
    """The URL of an empty server."""
    server: embedded.Embedded = request.getfixturevalue(f"_{request.param}_server")
    with open_client(server.url) as client:
        client.flushall()
        client.script_flush()
    return server.url


@pytest.fixture
def shop(store: str) -> Iterator[Api]:
    """The service on it."""
    with api(store) as made:
        yield made


@pytest.fixture
def one(_redis_server: embedded.Embedded) -> Iterator[Api]:
    """The service on Redis alone."""
    with api(_redis_server.url) as made:
        made.client.flushall()
        yield made
