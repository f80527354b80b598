"""The order of sources, what counts as a URL, and that no password is ever shown."""

from __future__ import annotations

import pytest

from labkit.errors import LabError
from labkit.servers import container
from labkit.servers.find import find, redact
from labkit.servers.space import open_client


@pytest.fixture
def _container_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if Docker had said so; the real engine is the container tests' affair."""
    up = container.ContainerServer("127.0.0.1", 16379, "lab-redis-1", "1", "redis")
    monkeypatch.setattr(container, "find", lambda _: up)


@pytest.fixture
def _no_container(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "find", lambda _: None)


@pytest.mark.usefixtures("_container_up")
def test_a_url_comes_first_then_the_container(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find("redis").kind == "container"
    assert find("redis").url == "redis://127.0.0.1:16379"
    assert find("redis://elsewhere:7000").kind == "url"
    monkeypatch.setenv("LABKIT_REDIS_URL", "redis://elsewhere:7000/2")
    assert find("redis").kind == "url"
    assert find("redis").url == "redis://elsewhere:7000/2"
    assert find("valkey").kind == "container"  # each role has its own variable


@pytest.mark.usefixtures("_no_container")
def test_embedded_comes_last() -> None:
    assert [find(role).kind for role in ("redis", "valkey")] == ["embedded", "embedded"]
    assert find("redis").shown == "embedded"


@pytest.mark.usefixtures("_no_container")
def test_an_empty_variable_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABKIT_REDIS_URL", "")
    assert find("redis").kind == "embedded"


@pytest.mark.parametrize("url", ["valkey://h:1", "valkeys://h:1", "redis://h:1", "rediss://h:1"])
def test_every_name_of_the_protocol_is_one_that_redis_py_knows(url: str) -> None:
    with open_client(find(url).url):  # no connection is made
        assert find(url).url == url.replace("valkey", "redis")


@pytest.mark.parametrize(
    "url",
    [
        "localhost:6379",
        "localhost",
        "http://localhost:6380",
        "Redis",
        "redis:/localhost",
        "redis://",
        "redis:///0",  # redis-py would take localhost:6379 here and in the next ones
        "redis://?db=3",
        "redis://:secret@/0",
        "redis://:6379",
        "unix://",
        " redis://localhost:1",
        "",
    ],
)
def test_what_is_no_url_of_a_server_is_refused(url: str) -> None:
    with pytest.raises(LabError, match="neither redis nor valkey nor a server's URL") as caught:
        find(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "redis://localhost:99999",
        "redis://:secret/x@localhost:1",
        "redis://localhost:port",
        "redis://[::1",
        "redis://localhost:1?db=secret",
        "redis://localhost:1?no_such_option=secret",
    ],
)
def test_what_redis_py_cannot_read_is_one_sentence(url: str) -> None:
    with pytest.raises(LabError, match="cannot be read") as caught:
        open_client(find(url).url)
    assert "secret" not in str(caught.value).replace("=secret", "")
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://localhost:1", "redis://localhost:1"),
        ("redis://user@localhost:1", "redis://user@localhost:1"),
        ("redis://:s3cret@localhost:1/2", "redis://:***@localhost:1/2"),
        ("redis://user:s3cret@localhost:1", "redis://user:***@localhost:1"),
        ("redis://user:s3:cret@localhost:1", "redis://user:***@localhost:1"),
        ("redis://user:s3@cret@localhost:1", "redis://user:***@localhost:1"),
        ("redis://user:s3/cret@localhost:1", "redis://user:***@localhost:1"),
        ("rediss://user:s3%40cret@h", "rediss://user:***@h"),
        ("unix:///tmp/s?db=2&password=s3cret", "unix:///tmp/s?db=2&password=***"),
        ("redis://h?ssl_password=s3cret&db=1", "redis://h?ssl_password=***&db=1"),
    ],
)
def test_passwords_are_not_shown(url: str, shown: str) -> None:
    assert redact(url) == shown


def test_a_url_cannot_change_the_reply_shape() -> None:
    with open_client("redis://h:1?protocol=2&decode_responses=no&legacy_responses=yes") as client:
        settings = client.connection_pool.connection_kwargs
    assert settings["protocol"] == 3
    assert settings["decode_responses"] is True
    assert settings["legacy_responses"] is False
