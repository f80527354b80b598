"""Real servers for the tests: one private Redis and one private Valkey a session."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import redis

from labkit.servers import embedded
from labkit.servers.space import open_client
from labkit.tests.servers.processes import NOT_OURS


@pytest.fixture(scope="module", autouse=True)
def _no_server_of_the_user(request: pytest.FixtureRequest) -> Iterator[None]:
    """Neither a URL that the user has set nor containers that are up serve labkit's own tests.

    By the environment, so that it holds for the processes that tests start as well. The tests
    that want containers are the exception.
    """
    mine = (item for item in request.session.items if item.path == request.path)
    with pytest.MonkeyPatch.context() as patch:
        for name in NOT_OURS:
            patch.delenv(name, raising=False)
        if not any(item.get_closest_marker("containers") for item in mine):
            patch.setenv("DOCKER_HOST", f"unix://{os.devnull}")
        yield


@pytest.fixture(scope="session")
def _redis_server() -> Iterator[embedded.Embedded]:
    server = embedded.start("redis")
    yield server
    server.stop()


@pytest.fixture(scope="session")
def _valkey_server() -> Iterator[embedded.Embedded]:
    server = embedded.start("valkey")
    yield server
    server.stop()


def _fresh(server: embedded.Embedded) -> Iterator[redis.Redis]:
    client = open_client(server.url)
    client.flushall()
    yield client
    client.close()


@pytest.fixture
def redis_client(_redis_server: embedded.Embedded) -> Iterator[redis.Redis]:
    """A plain client of an empty Redis."""
    yield from _fresh(_redis_server)


@pytest.fixture
def valkey_client(_valkey_server: embedded.Embedded) -> Iterator[redis.Redis]:
    """A plain client of an empty Valkey."""
    yield from _fresh(_valkey_server)


@pytest.fixture
def both(redis_client: redis.Redis, valkey_client: redis.Redis) -> dict[str, redis.Redis]:
    """Name and version -> client, as ``Lab.servers`` gives them."""
    return {"Redis 8.10.2": redis_client, "Valkey 9.1.2": valkey_client}


@pytest.fixture(params=["redis", "valkey"])
def either(request: pytest.FixtureRequest) -> redis.Redis:
    """The test runs once on each server."""
    client: redis.Redis = request.getfixturevalue(f"{request.param}_client")
    return client
