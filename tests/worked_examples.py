"""Two projects with what comes out of them: logistics in four contexts, and rules that compete for one place."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from situ.contexts.model import Context, Direction
from situ.contexts.patterns import read_pattern
from situ.contexts.transform.transformation import Transformation, transformations
from situ.lang.problems import Problems
from situ.lang.types.json_codec import TYPE_KEY
from situ.lang.types.model import Struct, Type, is_subtype
from situ.lang.types.table import Types
from tests.context_files import LOGISTICS, load
from tests.types_files import types_of
from tests.unit.contexts.test_resolve_rules import ROWS, Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """An event and what becomes of it: at each of these places, this value."""

    name: str
    context: Context
    made: Transformation
    data: dict[str, Any]
    expected: Mapping[str, Any]


def at(value: Any, path: str) -> Any:
    """The value at a place; of a list, those of all its elements, which must be the same."""
    for step in path.split(".") if path else ():
        value = value.get(step.removesuffix("[]"))
        if step.endswith("[]"):
            value = the_only(value)
    return value


def the_only(values: list[Any]) -> Any:
    assert values
    assert all(each == values[0] for each in values), values
    return values[0]


Way = tuple[Context, Transformation]


def way_of(files: Mapping[str, str], context: str, event: str, direction: Direction = Direction.OUT) -> Way:
    contexts, problems = load(files)
    assert not [str(each) for each in problems if each.is_error]
    found = Problems()
    ways = transformations(contexts.by_id[context], direction, found)
    assert not [str(each) for each in found.errors]
    return contexts.by_id[context], ways[event]


# ── logistics ─────────────────────────────────────────────────────────────────────────────────────

ADDRESS = {"firstName": "Ada", "lastName": "Byron", "specifics": "street=Main;number=3791;zip=30834"}
US_ADDRESS = {"firstName": "Ada", "lastName": "Byron", "street": "Main", "number": "3791", "zip": "30834"}
EU_ADDRESS = {"firstName": "Ada", "lastName": "Byron", "street": "Main", "number": "3791", "postcode": "30834"}
WHERE = {"x": 30.48303, "y": 20.3084}
UPDATE = {"coordinates": WHERE, "distanceRemaining": 3082.0, "destAddress": ADDRESS}
ABROAD = {"coordinates": WHERE, "distanceRemaining": 3.082, "destAddress": EU_ADDRESS}
LOG = {"at": dt.datetime(2026, 11, 1, 8, 30, tzinfo=dt.UTC), "address": ADDRESS}
HIGH = {TYPE_KEY: "PositionWithHeight", "x": 1.0, "y": 2.0, "z": 3.0}
WITHOUT_FUNCTION = {
    **LOGISTICS,
    "contexts/root.yaml": LOGISTICS["contexts/root.yaml"].replace("meters_to_yards: double m", "unused: double s"),
}


def logistics() -> Iterator[Example]:
    def example(name: str, way: Way, data: dict[str, Any], expected: Mapping[str, Any] | None = None) -> Example:
        wanted = {"": data} if expected is None else expected
        return Example(name=name, context=way[0], made=way[1], data=data, expected=wanted)

    us = {event: way_of(LOGISTICS, "us", event) for event in ("PositionUpdate", "LogInfo", "DangerCheck")}
    generic = way_of(WITHOUT_FUNCTION, "us", "PositionUpdate")
    yield example(
        "declared_factor",
        us["PositionUpdate"],
        UPDATE,
        {"": {"coordinates": WHERE, "distanceRemaining": 3359.38, "destAddress": US_ADDRESS}},
    )
    yield example(
        "generic_factor",
        generic,
        UPDATE,
        {"distanceRemaining": pytest.approx(3370.516185, abs=1e-6), "coordinates": WHERE},
    )
    yield example("untouched_address", us["LogInfo"], LOG)
    yield example("kept_position", us["DangerCheck"], {"productId": "p", "pos": {"x": 1.0, "y": 2.0}})
    yield example("kept_high_position", us["DangerCheck"], {"productId": "p", "pos": HIGH})
    for context in ("europe", "german"):
        yield example(f"{context}_out", way_of(LOGISTICS, context, "PositionUpdate"), UPDATE, {"": ABROAD})
        into = way_of(LOGISTICS, context, "PositionUpdate", Direction.IN)
        yield example(f"{context}_in", into, ABROAD, {"": UPDATE})
    yield example("german_log", way_of(LOGISTICS, "german", "LogInfo"), LOG)


# ── competing rules ───────────────────────────────────────────────────────────────────────────────

# Who converted a value is written into it.
TYPES = """
types:
  Position: {by: string}
  PositionWithHeight(Position): {}
  Money: {by: string}
  Named: {by: string}
  Billable: {by: string}
  Taxed(Billable): {}
  Goods(Named, Billable): {at: Position, worth: Money}
  Drug(Goods): {}
  Sample(Named, Taxed): {}
  Odd(Billable, Taxed): {}
  Crate: {by: string, goods: Goods, spare: Position}
events:
  StatusEvent: {by: string, pos: Position, price: Money, cost: Money}
  DangerCheck(StatusEvent): {}
  Shipment: {main: Crate, crates: [Crate], tag: Named, fee: Billable, origin: Position}
  AirShipment(Shipment): {}
"""
NOBODY = "nobody"
INSIDE = "inside"
MONEY = f"struct('{INSIDE}' AS by)"
GOODS = f"struct('{{by}}' AS by, {MONEY} AS at, {MONEY} AS worth)"
RESULTS = {  # parameter → result, which suits every attribute that can hold the parameter, and its expression
    "Position": ("PositionWithHeight", "struct('{by}' AS by)"),
    "Money": ("Money", "struct('{by}' AS by)"),
    "Named": ("Goods", GOODS),
    "Billable": ("Goods", GOODS),
    "Crate": ("Crate", f"struct('{{by}}' AS by, {GOODS.format(by=INSIDE)} AS goods, {MONEY} AS spare)"),
    "[Crate]": (
        "[Crate]",
        "transform(value, each -> struct('{by}' AS by, each.goods AS goods, each.spare AS spare))",
    ),
    "StatusEvent": (
        "StatusEvent",
        f"struct('{{by}}' AS by, {MONEY} AS pos, {MONEY} AS price, {MONEY} AS cost)",
    ),
}
ABOVE = {"18": ("main.goods", "b"), "19": ("main.goods", "a"), "25": ("", "a")}
"""Where nobody converts the place itself: which value around it is converted, and by whom."""


def _result(type: Type, types: Types) -> tuple[str, str]:
    if str(type) in RESULTS:
        return RESULTS[str(type)]
    return next(
        result for name, result in RESULTS.items() if name in types.types and is_subtype(type, types.types[name])
    )


def _contexts(row: Row, types: Types) -> dict[str, str]:
    """The rules of the row, with a function each; those of a child in a context below."""
    letters = iter("abc")
    files: dict[str, str] = {}
    for number, rules in enumerate(row.rules):
        declared, functions = [], []
        for text in rules:
            letter = next(letters)
            pattern = read_pattern(text, types, Problems())
            assert pattern is not None
            result, expression = _result(pattern.target, types)
            declared.append(f'"{text} -> {letter}"')
            functions.append(f'  {letter}: "{pattern.target} -> {result} = {expression.format(by=letter)}"')
        above = "extends: c0\n" if number else "maps: [out: StatusEvent -> StatusEvent, out: Shipment -> Shipment]\n"
        files[f"contexts/c{number}.yaml"] = (
            f"context: c{number}\n{above}rules: {{out: [{', '.join(declared)}]}}\nfunctions:\n" + "\n".join(functions)
        )
    return files


def _value(struct: Struct, dynamic: Mapping[str, str], types: Types, path: str = "") -> dict[str, Any]:
    """A value of the type, with subtypes at the places that have one."""
    found: dict[str, Any] = {}
    for attribute in struct.attributes:
        place = f"{path}.{attribute.name}".removeprefix(".")
        is_list = str(attribute.type).startswith("[")
        declared = types.types.get(str(attribute.type).strip("[]"))
        if not isinstance(declared, Struct):
            found[attribute.name] = NOBODY
            continue
        exact = types.types[dynamic[place]] if place in dynamic else declared
        assert isinstance(exact, Struct)
        value = _value(exact, dynamic, types, place)
        marked = value if exact == declared else {TYPE_KEY: exact.name, **value}
        found[attribute.name] = [marked, marked] if is_list else marked
    return found


def competing(number: str) -> Example:
    row, types = ROWS[number], types_of(TYPES)
    steps = [re.fullmatch(r"(\w+(?:\[\])?)(?:\((\w+)\))?", step) for step in row.way.split(".")]
    path, dynamic = "", {}
    for step in steps:
        assert step is not None
        path = f"{path}.{step[1]}".removeprefix(".")
        if step[2]:
            dynamic[path.replace("[]", "")] = step[2]
    files = {"types/t.yaml": TYPES, **_contexts(row, types)}
    context, made = way_of(files, f"c{len(row.rules) - 1}", row.event)
    event = types.types[row.event]
    assert isinstance(event, Struct)
    expected = {path: row.winner}
    if number == "20":
        expected = {path: "a"}  # the list as a whole, and so what is in it
    elif row.winner == "–":
        above, winner = ABOVE[number]
        expected = {above: winner, path: INSIDE}
    return Example(
        name=f"row_{number}",
        context=context,
        made=made,
        data=_value(event, dynamic, types),
        expected={f"{place}.by".removeprefix("."): letter for place, letter in expected.items()},
    )
