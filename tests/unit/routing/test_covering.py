"""Covering: which filters follow from which, what only looks like it, and what a neighbour is told of entries."""

from __future__ import annotations

import pytest

from situ.lang.expr.limits import DEFAULT_LIMITS
from situ.lang.expr.simplify import simplify
from situ.routing.covering import CoveringTable, InterestChange, WantedEvents, covers, wanted_events
from situ.routing.filter import read_filter
from tests.types_files import types_of

TYPES = types_of(
    """
    types:
      Place: {x: double m, y: double m}
    events:
      Seen:
        room: optional string
        speed: double m/s
        floor: int
        open: optional boolean
        at: optional Place
        since: timestamp
        price: optional decimal(8, 2)
      Tracked(Seen): {by: string}
      Filmed(Tracked): {camera: int}
      Heard: {room: string, floor: double}
    """
)


def wanted(where: str, *names: str) -> WantedEvents:
    conditions = {}
    for name in names or ("Seen",):
        event = TYPES.event(name)
        assert event is not None
        conditions[name] = simplify(read_filter("a/b", event, where, TYPES, {}, DEFAULT_LIMITS))
    return wanted_events(conditions, TYPES)


@pytest.mark.parametrize(
    ("wider", "narrower"),
    [
        ("", ""),
        ("", "floor = 3"),
        ("floor = 3", "FALSE"),
        # sets
        ("room IN ('a', 'b')", "room = 'a'"),
        ("room <> 'a'", "room = 'b'"),
        ("room <> 'a'", "room NOT IN ('a', 'b')"),
        ("room NOT IN ('a', 'b')", "room IN ('c', 'd')"),
        ("room <> 'a'", "room LIKE 'b%'"),
        ("room <> 'a'", "room > 'b'"),
        ("open", "open AND floor = 1"),
        ("NOT (open AND floor = 1)", "floor = 2"),
        # intervals
        ("speed > 1 [m/s]", "speed > 2 [m/s]"),
        ("speed >= 1 [m/s]", "speed > 1 [m/s]"),
        ("speed > 18 [km/h]", "speed BETWEEN 6 [m/s] AND 7 [m/s]"),
        ("speed <> 3 [m/s]", "speed < 2 [m/s]"),
        ("floor BETWEEN 1 AND 5", "floor IN (2, 5)"),
        ("floor IN (1, 2, 3)", "floor > 0 AND floor < 4"),
        ("floor >= 3", "floor > 2"),
        ("floor = 2", "floor BETWEEN 2 AND 2"),
        ("since > TIMESTAMP '2026-01-01T00:00:00Z'", "since > TIMESTAMP '2026-02-01T00:00:00Z'"),
        ("price < 5", "price <= 4.25"),
        # prefixes
        ("room LIKE 'a%'", "room LIKE 'ab%'"),
        ("room LIKE 'a%'", "room LIKE 'ab%c'"),
        ("room LIKE 'a%'", "room IN ('a', 'abc')"),
        ("room LIKE 'a%'", "room BETWEEN 'ab' AND 'ac'"),
        ("room >= 'a' AND room < 'b'", "room LIKE 'ab%'"),
        ("starts_with(room, 'a')", "room LIKE 'ab_'"),
        # NULL
        ("room IS NOT NULL", "room = 'a'"),
        ("room IS NOT NULL", "room <> 'a'"),
        ("room IS NOT NULL", "room LIKE 'a%'"),
        ("room IS NULL", "room IS NULL AND floor = 1"),
        ("at IS NOT NULL", "at.x > 1 m"),
        ("at.x IS NULL", "at IS NULL"),
        # several attributes, and alternatives
        ("floor = 1 OR room = 'a'", "room = 'a' AND speed > 1 [m/s]"),
        ("floor IN (1, 2) OR open", "floor = 1 OR floor = 2 AND room = 'a'"),
        ("(floor = 1 OR floor = 2) AND open", "open AND floor = 2"),
        # what is not understood, but the same
        ("length(room) > 3", "length(room) > 3 AND floor = 1"),
        ("room LIKE '%a'", "floor = 1 AND room LIKE '%a'"),
        ("floor + floor > 2 OR open", "floor + floor > 2"),
        # nothing is left of one of the alternatives
        ("floor = 1", "floor = 1 OR (room = 'a' AND room = 'b')"),
        ("floor = 1", "floor = 1 OR (room IS NULL AND room = 'b')"),
        ("floor = 1", "floor = 1 OR (at IS NULL AND at.x > 1 m)"),
    ],
)
def test_one_follows_from_the_other(wider: str, narrower: str) -> None:
    assert covers(wanted(wider), wanted(narrower))


@pytest.mark.parametrize(
    ("wider", "narrower"),
    [
        ("floor = 3", ""),
        ("room = 'a'", "room IN ('a', 'b')"),
        ("room <> 'a'", ""),
        ("room <> 'a'", "room IS NULL"),
        ("room <> 'a'", "room LIKE 'a%'"),
        ("speed > 1 [m/s]", "speed >= 1 [m/s]"),
        ("speed > 1 [m/s]", "speed > 1 [km/h]"),
        ("speed < 2 [m/s]", "speed > 1 [m/s]"),
        ("floor IN (1, 3)", "floor BETWEEN 1 AND 3"),
        ("room LIKE 'ab%'", "room LIKE 'a%'"),
        ("room LIKE 'ab%c'", "room LIKE 'ab%'"),
        ("room < 'ab'", "room LIKE 'a%'"),
        ("room > 'ab'", "room LIKE 'ab%'"),
        ("room IS NULL", "room <> 'a'"),
        ("room IS NOT NULL", "floor = 1"),
        ("at IS NOT NULL", "at.x IS NULL"),
        ("at.x > 1 m", "at IS NOT NULL"),
        ("floor = 1 AND room = 'a'", "room = 'a'"),
        ("length(room) > 3", "length(room) > 4"),  # not understood
        ("floor < 5 OR floor > 3", ""),  # two alternatives that only do together
    ],
)
def test_one_does_not_follow_from_the_other(wider: str, narrower: str) -> None:
    assert not covers(wanted(wider), wanted(narrower))


def test_subtypes_are_covered_and_supertypes_are_not() -> None:
    assert covers(wanted("floor > 1"), wanted("floor > 2", "Tracked"))
    assert covers(wanted("floor > 1"), wanted("camera = 1 AND floor > 2", "Filmed"))
    assert not covers(wanted("floor > 1", "Tracked"), wanted("floor > 2"))
    assert covers(wanted("floor > 1", "Tracked"), wanted("floor > 2 AND type IS Filmed"))
    assert covers(wanted("type IS Tracked"), wanted("", "Filmed"))
    assert not covers(wanted("NOT type IS Filmed"), wanted("", "Tracked"))
    assert covers(wanted("NOT type IS Filmed"), wanted("event.type = 'Tracked'"))


def test_several_types_are_covered_together() -> None:
    assert covers(wanted("floor > 1", "Seen", "Heard"), wanted("floor > 2"))
    assert not covers(wanted("floor > 1"), wanted("floor > 2", "Seen", "Heard"))
    assert not covers(wanted("", "Heard"), wanted(""))


def test_attributes_of_different_types_are_not_compared() -> None:
    assert not covers(wanted("floor > 1", "Heard"), wanted("floor > 2", "Seen"))
    both = wanted("floor > 1", "Seen", "Heard")
    assert covers(both, wanted("floor > 2"))
    assert not covers(both, wanted("floor > 2", "Heard")), "a whole number there, and none here"


def test_what_has_too_many_alternatives_covers_nothing_but_itself() -> None:
    long = " AND ".join(f"(room = 'a{n}' OR floor = {n})" for n in range(5))
    assert covers(wanted(long), wanted(long))
    assert covers(wanted(""), wanted(long))
    assert not covers(wanted(long), wanted(long + " AND open"))


# ── the table of one neighbour ────────────────────────────────────────────────────────────────────

Numbers = frozenset[int]
NOTHING: InterestChange[Numbers] = InterestChange({}, ())


def table(**entries: str) -> CoveringTable[Numbers]:
    new: CoveringTable[Numbers] = CoveringTable(frozenset.issuperset)
    return new.changed({id: digits(text) for id, text in entries.items()})[0]


def digits(text: str) -> Numbers:
    return frozenset(map(int, text))


def test_what_is_covered_is_remembered_and_not_sent() -> None:
    known, change = table(a="123").changed({"b": digits("12")})
    assert change == NOTHING
    assert not change
    assert known.sent.keys() == {"a"}
    assert known.remembered.keys() == {"b"}
    assert known.entries.keys() == {"a", "b"}


def test_taking_the_coverer_back_sends_what_it_covered_in_the_same_change() -> None:
    known, change = table(a="123", b="12", c="1", d="3").changed(remove=("a",))
    assert change == InterestChange({"b": digits("12"), "d": digits("3")}, ("a",))
    assert known.remembered.keys() == {"c"}


def test_what_something_else_covers_too_stays_remembered() -> None:
    known, change = table(a="123", b="12", e="124").changed(remove=("a",))
    assert change == InterestChange({}, ("a",))
    assert known.remembered.keys() == {"b"}


def test_a_wider_entry_takes_the_place_of_those_it_covers() -> None:
    known, change = table(a="12", b="3", c="1").changed({"d": digits("123")})
    assert change == InterestChange({"d": digits("123")}, ("a", "b"))
    assert known.remembered.keys() == {"a", "b", "c"}


def test_of_entries_that_say_the_same_the_first_by_its_id_is_sent() -> None:
    known, change = table(b="12").changed({"a": digits("12"), "c": digits("12")})
    assert change == InterestChange({"a": digits("12")}, ("b",))
    assert known.remembered.keys() == {"b", "c"}


def test_an_entry_may_be_replaced_and_what_is_there_already_is_no_change() -> None:
    known = table(a="123", b="12")
    assert known.changed({"a": digits("123")})[1] == NOTHING
    assert known.changed({"a": digits("123")}, remove=("a", "nobody"))[1] == NOTHING
    changed, change = known.changed({"a": digits("3")})
    assert change == InterestChange({"a": digits("3"), "b": digits("12")}, ())
    assert known.sent == {"a": digits("123")}, "what was made before stays as it was"
    assert changed.changed(remove=("a", "b"))[1] == InterestChange({}, ("a", "b"))


def test_covering_may_be_turned_off_and_on() -> None:
    known = table(a="123", b="12")
    flooded, change = known.related(None)
    assert change == InterestChange({"b": digits("12")}, ())
    assert flooded.changed({"c": digits("1")})[1] == InterestChange({"c": digits("1")}, ())
    assert flooded.related(frozenset.issuperset)[1] == InterestChange({}, ("b",))
