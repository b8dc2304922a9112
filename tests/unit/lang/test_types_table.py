"""The table of types: what is below what, its stored form, its printed form."""

from __future__ import annotations

import json
from typing import Any

import pytest

from situ.lang.types.declaration import print_type, print_types
from situ.lang.types.dependency_order import Circle, dependency_order, entangled
from situ.lang.types.model import DOUBLE, STRING, ListOf, Named, Struct
from situ.lang.types.table import Types
from tests.types_files import types_of

BUILDING = """
    types:
      Position: {x: double m, y: double m}
      High(Position): {z: double m}
      Higher(High): {}
      Moving(Position): {speed: double km/h}
      TagId(string): {}
      Badge(TagId): {}
      Price(decimal(18,2)): {}
      Seen: {by: Badge, at: Position}
    events:
      Sighting(Seen): {at: High, note: {type: string, optional: true, default: "a \\"quote\\",\\n: é😀"}}
      Sale:
        price: Price EUR
        rates: "optional [decimal(5,2)] %"
        parts: [[Position]]
        corners: {type: "[Position]", default: [{x: 1, y: 1.0e-7}]}
        until: {type: timestamp, default: "2026-11-01T01:00:00+01:00"}
        raw: {type: bytes, default: AP8=}
        "true": boolean
        fee: {type: Price, unit: EUR, default: "1.5"}
        zone: {type: GeoPoint, default: {lat: 1, lon: 2}}
        flag: {type: boolean, default: false}
        area: Box m
    units: {EUR: currency, building_a: label}
    """


@pytest.fixture(scope="module")
def types() -> Types:
    return types_of(BUILDING)


def names(found: tuple[Any, ...]) -> list[str]:
    return [str(type) for type in found]


def test_subtypes_come_with_the_type_itself_first(types: Types) -> None:
    position, tag = types.types["Position"], types.types["TagId"]
    assert names(types.subtypes(position)) == ["Position", "High", "Higher", "Moving"]
    assert names(types.subtypes(ListOf(position))) == ["[Position]", "[High]", "[Higher]", "[Moving]"]
    assert names(types.subtypes(tag)) == ["TagId", "Badge"]
    assert names(types.subtypes(STRING)) == ["string", "Badge", "TagId"]
    assert types.subtypes(DOUBLE) == (DOUBLE,)
    unnamed = Struct("", ())
    assert types.subtypes(unnamed) == (unnamed,)


def test_types_are_found_by_name(types: Types) -> None:
    assert types.get("double") is DOUBLE
    assert types.get("Nope") is None
    assert types.event("Seen") is None
    assert types.event("Sighting") is types.get("Sighting")
    assert "GeoBox" in types.names
    assert list(types.names) == sorted(types.names)
    assert "GeoBox" not in names(types.declared)


def test_the_stored_form_gives_the_table_back(types: Types) -> None:
    stored = json.dumps(types.as_json(), sort_keys=True)
    again = Types.from_json(json.loads(stored))
    assert again == types
    assert hash(again) == hash(types)
    assert json.dumps(again.as_json(), sort_keys=True) == stored


def test_tables_that_differ_are_not_equal(types: Types) -> None:
    for change in (("double km/h", "double m/s"), ("optional: true, ", ""), ("building_a: label", "building_b: label")):
        assert types_of(BUILDING.replace(*change)) != types
    assert types != object()


@pytest.mark.parametrize(
    "stored",
    [
        None,
        {},
        {"types": {}, "events": [], "units": 5},
        {"types": {"A": {}}, "events": [], "units": {}},
        {"types": {"A": {"base": "A"}}, "events": [], "units": {}},
        {"types": {"A": {"base": "Point"}}, "events": [], "units": {}},
        {"types": {"A": {"attributes": [{"name": "x", "type": "B"}]}}, "events": [], "units": {}},
        {"types": {"A": {"attributes": [{"name": "x", "type": "[A]"}]}}, "events": [], "units": {}},
        {"types": {"A": {"attributes": [{"name": "x", "type": "[["}]}}, "events": [], "units": {}},
        {"types": {"A": {"attributes": [{"name": "x", "type": "int", "unit": "foo"}]}}, "events": [], "units": {}},
        {"types": {"A": {"attributes": [{"name": "x", "type": "int", "default": "x"}]}}, "events": [], "units": {}},
        {"types": {"A": {"attributes": [], "supers": ["string"]}}, "events": [], "units": {}},
    ],
)
def test_what_is_no_stored_table_is_refused(stored: Any) -> None:
    with pytest.raises(ValueError, match="this is no table of types"):
        Types.from_json(stored)


def test_the_printed_form_gives_the_table_back(types: Types) -> None:
    text = print_types(types)
    assert types_of(text) == types
    assert print_types(types_of(text)) == text


def test_the_printed_form_is_short_where_that_is_possible(types: Types) -> None:
    assert print_type(types.types["High"]) == "High(Position): {z: double m}"
    assert print_type(Named("Badge", Named("TagId", STRING))) == "Badge(TagId): {}"
    text = print_types(types)
    assert '  "Price(decimal(18,2))": {}\n' in text
    assert "    parts: [[Position]]\n" in text
    assert '    rates: "optional [decimal(5,2)] %"\n' in text
    assert '    "true": boolean\n' in text
    assert '    fee: {type: Price, unit: EUR, default: "1.50"}\n' in text
    assert "  Sighting(Seen):\n    at: High\n" in text
    assert print_types(Types(types={})) == "version: 1\n"


def test_an_inherited_attribute_is_not_declared_again() -> None:
    plain = types_of("types:\n  A: {x: double m}\n  B(A): {y: int}\n")
    again = types_of("types:\n  A: {x: double m}\n  B(A): {x: double m, y: int}\n")
    assert plain == again
    both = types_of("types:\n  P: {}\n  Q(P): {}\n  A: {x: Q}\n  B: {x: P}\n  C(A, B): {x: Q}\n")
    assert "C(A, B): {x: Q}" in print_types(both), "the supertypes disagree, so it must say which"


def test_order_and_circles() -> None:
    order, circles = dependency_order({"a": ["b", "c", "x"], "b": ["c"], "c": []})
    assert (order, circles) == (["c", "b", "a"], [])
    order, circles = dependency_order({"a": ["b"], "b": ["c"], "c": ["b", "a"], "d": ["d"]})
    assert [circle.names for circle in circles] == [("b", "c"), ("a", "b", "c"), ("d",)]
    assert [circle.closing for circle in circles] == [("c", "b"), ("c", "a"), ("d", "d")]
    assert sorted(order) == ["a", "b", "c", "d"]
    long = {number: [(number + 1) % 100_000] for number in range(100_000)}
    [circle] = dependency_order(long)[1]
    assert circle.closing == (99_999, 0)
    assert str(circle) == "0 → 1 → 2 → 3 → 4 → 5 → 6 → 7 → 8 → 9 → 10 → … → 99999 → 0"
    assert str(Circle(("a", "b"))) == "a → b → a"


def test_what_is_entangled_is_in_or_between_circles() -> None:
    needs = {"in": ["a"], "a": ["b"], "b": ["a", "between"], "between": ["c"], "c": ["c", "out"], "out": []}
    assert entangled(needs) == {"a", "b", "between", "c"}
    assert entangled({"a": ["b"], "b": []}) == set()
