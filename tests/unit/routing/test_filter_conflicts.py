"""Filters that no event is true of together: what is said, and what is left open."""

from __future__ import annotations

import pytest

from situ.lang.expr.limits import DEFAULT_LIMITS
from situ.lang.expr.simplify import simplify
from situ.lang.expr.tree import Node
from situ.routing.filter import read_filter
from situ.routing.normal_form import contradict
from tests.types_files import types_of

TYPES = types_of("events: {Seen: {room: string, name: optional string, speed: double m/s, floor: int, open: boolean}}")


def node(where: str) -> Node:
    event = TYPES.event("Seen")
    assert event is not None
    return simplify(read_filter("a/b", event, where, TYPES, {}, DEFAULT_LIMITS))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("room = 'lab'", "room = 'hall'"),
        ("room IN ('lab', 'hall')", "room IN ('yard', 'roof')"),
        ("speed > 5 [m/s]", "speed < 5 [m/s]"),
        ("speed > 5 [m/s]", "speed <= 5 [m/s]"),
        ("speed > 36 [km/h]", "speed < 9 [m/s]"),
        ("floor = 3", "floor < 3"),
        ("floor > 1", "floor < 2"),
        ("floor <> 2", "floor = 2"),
        ("room NOT IN ('lab', 'hall')", "room = 'lab'"),
        ("name IS NULL", "name IS NOT NULL"),
        ("name IS NULL", "name <> 'Ada'"),
        ("open", "NOT open"),
        ("name IS NULL", "name = 'Ada'"),
        ("room LIKE 'lab%'", "room LIKE 'hall%'"),
        ("room LIKE 'lab%'", "room = 'hall 7'"),
        ("room = 'lab' OR room = 'hall'", "room = 'yard' AND floor > 1"),
        ("FALSE", ""),
    ],
)
def test_contradictions_are_found_whoever_says_what(one: str, other: str) -> None:
    assert contradict(node(one), node(other))
    assert contradict(node(other), node(one))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("", ""),
        ("room = 'lab'", ""),
        ("room IN ('lab', 'hall')", "room IN ('hall', 'roof')"),
        ("speed >= 5 [m/s]", "speed <= 5 [m/s]"),
        ("room LIKE 'la%'", "room LIKE 'lab%'"),
        ("room LIKE 'lab%'", "room = 'lab 7'"),
        ("room = 'lab' OR floor = 1", "room = 'hall'"),
        ("name IS NULL", "room = 'lab'"),
        ("length(room) > 3", "length(room) < 3"),  # not understood
    ],
)
def test_what_is_possible_or_not_understood_contradicts_nothing(one: str, other: str) -> None:
    assert not contradict(node(one), node(other))
    assert not contradict(node(other), node(one))
