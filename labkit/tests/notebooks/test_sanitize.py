"""Each rule of sanitize.cfg changes what it must and leaves what teaches alone."""

from __future__ import annotations

import re

import pytest

from labkit.lessons.regression import SANITIZE

# As nbval reads the file: pairs of adjacent lines; a blank line between them disables a rule.
RULES = re.findall(r"^regex: (.*)$\n^replace: (.*)$", SANITIZE.read_text(), flags=re.MULTILINE)

CHANGED = [
    (0, "Redis 8 (embedded, libc)", "Redis 8 (SOURCE, ALLOCATOR)"),
    (0, "x (container redis://127.0.0.1:63790, jemalloc-5.3.0)", "x (SOURCE, ALLOCATOR)"),
    (0, "x (url redis://:***@db.example:6380/2, libc)", "x (SOURCE, ALLOCATOR)"),
    (1, "Redis 8.10.2 has no ZMPOP", "Redis VERSION has no ZMPOP"),
    (1, "Valkey 9.1.2", "Valkey VERSION"),
]
KEPT = [
    '1) "9780441013593"\n2) "12"',
    "(integer) 4",
    "[['player:1', 1500.0], ['player:2', 0.30000000000000004]]",
    "rank 7 of 100",
    "2026-11-01 12.5.3",
    "A03  confirmed",
    "A40  refuted\npublished: 1,593 -> 11,681 bytes",
    "(embedded in a list, twice)",
    "Redis 8.10",
]


def sanitize(text: str) -> str:
    for pattern, replacement in RULES:
        text = re.sub(pattern, replacement, text)
    return text


def test_rules_are_few_and_all_of_them_are_read() -> None:
    lines = SANITIZE.read_text().splitlines()
    assert len(RULES) == sum(line.startswith("regex:") for line in lines) <= 6


def test_every_rule_has_a_line_that_it_changes() -> None:
    assert {rule for rule, _, _ in CHANGED} == set(range(len(RULES)))


@pytest.mark.parametrize(("rule", "before", "after"), CHANGED)
def test_changes(rule: int, before: str, after: str) -> None:
    pattern, replacement = RULES[rule]
    assert re.sub(pattern, replacement, before) == after


@pytest.mark.parametrize("text", KEPT)
def test_keeps(text: str) -> None:
    assert sanitize(text) == text
