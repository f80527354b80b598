"""compose.yaml says what it must, without an engine."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

COMPOSE = Path(__file__).resolve().parents[3] / "compose.yaml"
UNITS = {"m": 2**20, "g": 2**30}  # docker's and, with the b, the servers'
IMAGES = {
    "redis": "${LABKIT_REDIS_IMAGE:-redis:8.10.3}",
    "valkey": "${LABKIT_VALKEY_IMAGE:-valkey/valkey:9.1.3}",
}
PORTS = {"redis": 63790, "valkey": 63791}


def size(text: str) -> int:
    number, unit = re.fullmatch(r"(\d+)([mg])b?", text).groups()  # type: ignore[union-attr]
    return int(number) * UNITS[unit]


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())["services"]
    return found


@pytest.fixture(params=["redis", "valkey"])
def role(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def service(role: str, services: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = services[role]
    return found


def option(service: dict[str, Any], name: str) -> str:
    words = service["command"].split()
    return str(words[words.index(f"--{name}") + 1])


def test_the_two_roles_and_nothing_else(services: dict[str, Any]) -> None:
    assert set(services) == {"redis", "valkey"}


def test_image_and_its_override(role: str, service: dict[str, Any]) -> None:
    assert service["image"] == IMAGES[role]


def test_label_is_the_role(role: str, service: dict[str, Any]) -> None:
    assert service["labels"] == {"labkit.role": role}


def test_published_on_loopback_alone_and_not_where_others_are(
    role: str, service: dict[str, Any]
) -> None:
    (published,) = service["ports"]
    assert published == f"127.0.0.1:${{LABKIT_{role.upper()}_PORT:-{PORTS[role]}}}:6379"
    assert "network_mode" not in service


def test_health_check_looks_for_the_pong(role: str, service: dict[str, Any]) -> None:
    check = service["healthcheck"]
    assert check["test"] == ["CMD-SHELL", f"{role}-cli ping | grep -q PONG"]
    # Debian 12's docker-compose refuses a file with any other key here.
    assert set(check) == {"test", "interval", "timeout", "retries", "start_period"}


def test_memory_is_limited_and_the_server_knows_first(service: dict[str, Any]) -> None:
    assert option(service, "maxmemory-policy") == "noeviction"
    maxmemory, limit = size(option(service, "maxmemory")), size(service["mem_limit"])
    assert 2**30 <= maxmemory <= 0.8 * limit


def test_nothing_persists(service: dict[str, Any]) -> None:
    assert option(service, "save") == '""'
    assert option(service, "appendonly") == "no"
    assert "volumes" not in service
    assert service["read_only"] is True
    assert service["restart"] == "no"


def test_no_more_rights_than_needed(service: dict[str, Any]) -> None:
    assert service["user"] == "999:999"
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges=true"]
    # The valkey image's entry point refuses a folder that its user may not write.
    assert service["tmpfs"][0].split(":")[0] == service["working_dir"]


def test_no_key_that_compose_1_29_refuses() -> None:
    top = yaml.safe_load(COMPOSE.read_text())
    assert {key for key in top if not key.startswith("x-")} == {"services"}
