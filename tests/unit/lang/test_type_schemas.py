"""Types in the words of others: JSON Schema there and back, Spark, Arrow."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pyarrow as pa
import pytest

from situ.lang.documents import parse_json
from situ.lang.problems import Problem, Problems
from situ.lang.types.arrow_schema import arrow_schema, arrow_type
from situ.lang.types.declaration import print_types
from situ.lang.types.json_codec import check_value
from situ.lang.types.json_schema import export_event, export_types, import_schema
from situ.lang.types.layout import columns, spark_schema, spark_type
from situ.lang.types.model import Struct
from situ.lang.types.table import Types
from tests.types_files import types_of

PLANT = """
    types:
      Base: {n: int}
      Wide(Base): {size: double m, k: int}
      Tall(Base): {size: double ft, k: string, wide: optional Other}
      Other: {fine: boolean}
      Health: {ok: boolean}
      TagId(string): {}
      Price(decimal(18,2)): {}
      Net(Price): {}
    events:
      Reading(Health):
        tag: TagId
        net: Net EUR
        of: Base
        more: "optional [Base]"
        grid: [[double]]
        speed: {type: double, unit: km/h, optional: true, default: 5}
        rate: {type: "decimal(5,2)", default: "1.50"}
        at: timestamp
        day: optional date
        wait: optional duration
        raw: optional bytes
        big: long
        where: Point m
        area: optional GeoPolygon
    units: {EUR: currency}
    """


@pytest.fixture(scope="module")
def types() -> Types:
    return types_of(PLANT)


def event(types: Types) -> Struct:
    found = types.event("Reading")
    assert found is not None
    return found


def imported(schema: Any, name: str = "Thing") -> tuple[Types, tuple[Problem, ...]]:
    problems = Problems()
    text = schema if isinstance(schema, str) else json.dumps(schema, indent=1)
    return import_schema(parse_json(text, "schema.json"), name, problems), problems.sorted()


def test_an_export_is_imported_as_it_was(types: Types) -> None:
    schema = export_types(types)
    jsonschema.Draft202012Validator.check_schema(schema)
    again, problems = imported(schema)
    assert [str(problem) for problem in problems] == []
    assert again == types


def test_an_event_is_exported_with_what_it_needs(types: Types) -> None:
    schema = export_event(types, event(types))
    assert schema["$ref"] == "#/$defs/Reading"
    assert schema["x-situ-events"] == ["Reading"]
    assert {"any:Base", "Base", "Wide", "Tall", "Net", "Price", "Point", "GeoPoint"} <= schema["$defs"].keys()
    assert "Box" not in schema["$defs"]
    again, problems = imported(schema)
    assert not problems
    assert again.event("Reading") == event(types)


READING = {
    "ok": True, "tag": "T1", "net": "5.00", "of": {"n": 1}, "grid": [[1.5], []], "at": "2026-11-01T08:30:00Z",
    "big": 2**40, "where": {"x": 1, "y": 2.5},
}  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"more": [{"n": 1, "$type": "Wide", "size": 2.5, "k": 3}], "speed": None, "raw": "AP8=", "rate": 2.25},
        {"of": {"n": 1, "$type": "Tall", "size": 2.5, "k": "x", "wide": {"fine": False}}},
        {"net": 5, "extra": 1},
    ],
)
def test_schema_and_types_accept_the_same(types: Types, change: dict[str, Any]) -> None:
    validator = jsonschema.Draft202012Validator(export_event(types, event(types)))
    value = {**READING, **change}
    assert list(validator.iter_errors(value)) == []
    assert check_value(event(types), value, types) == ()


@pytest.mark.parametrize(
    "change",
    [
        {"ok": None},
        {"of": {"n": "1"}},
        {"of": {"n": 1, "$type": "Wide", "size": 2.5, "k": "no number"}},
        {"of": {"n": 1, "$type": "Wide"}},
        {"of": {"n": 1, "$type": "Other", "fine": True}},
        {"grid": [1]},
        {"big": 2**63},
        {"big": 1.5},
        {"net": "5.001"},
        {"net": "x"},
        {"where": {"x": 1}},
    ],
)
def test_schema_and_types_refuse_the_same(types: Types, change: dict[str, Any]) -> None:
    validator = jsonschema.Draft202012Validator(export_event(types, event(types)))
    value = {**READING, **change}
    assert list(validator.iter_errors(value)) != []
    assert check_value(event(types), value, types) != ()


FOREIGN = """{
 "$schema": "http://json-schema.org/draft-07/schema#", "title": "Purchase Order", "type": "object",
 "required": ["id", "lines", "count"],
 "definitions": {
  "line": {"type": "object", "required": ["qty"], "properties": {
    "qty": {"type": "integer", "format": "int32"},
    "sku": {"$ref": "#/definitions/sku"},
    "note": {"type": ["string", "null"]}}},
  "gift": {"allOf": [{"$ref": "#/definitions/line"}, {"properties": {"to": {"type": "string"}}, "required": ["to"]}]},
  "sku": {"type": "string"},
  "skus": {"type": "array", "items": {"$ref": "#/definitions/sku"}},
  "also skus": {"$ref": "#/definitions/skus"}},
 "properties": {
  "id": {"type": "string", "format": "uuid"},
  "at": {"type": "string", "format": "date-time"},
  "lines": {"type": "array", "items": {"$ref": "#/definitions/line"}},
  "first": {"anyOf": [{"$ref": "#/definitions/gift"}, {"type": "null"}]},
  "skus": {"$ref": "#/definitions/also%20skus"},
  "count": {"type": "integer", "nullable": true},
  "weight": {"type": ["integer", "number"], "x-situ-unit": "kg", "default": 0},
  "stamp": {"type": "string", "contentEncoding": "base64"},
  "ref": {"allOf": [{"$ref": "#/definitions/sku"}], "description": "as a note"},
  "to": {"type": "object", "properties": {"city": {"type": "string"}, "geo": {"type": "object", "title": "Geo",
    "properties": {"lat": {"type": "number"}}}}},
  "back": {"type": "object", "properties": {}}}}"""


def test_a_foreign_schema_is_imported() -> None:
    types, problems = imported(FOREIGN)
    assert [str(problem) for problem in problems] == []
    assert print_types(types) == (
        "version: 1\n"
        "types:\n"
        "  Geo: {lat: optional double}\n"
        "  Purchase_OrderBack: {}\n"
        "  Purchase_OrderTo: {city: optional string, geo: optional Geo}\n"
        "  gift(line): {to: string}\n"
        "  line: {qty: int, sku: optional sku, note: optional string}\n"
        "  sku(string): {}\n"
        "events:\n"
        "  Purchase_Order:\n"
        "    id: string\n"
        "    at: optional timestamp\n"
        "    lines: [line]\n"
        "    first: optional gift\n"
        '    skus: "optional [sku]"\n'
        "    count: optional long\n"
        "    weight: {type: double, unit: kg, default: 0.0}\n"
        "    stamp: optional bytes\n"
        "    ref: optional sku\n"
        "    to: optional Purchase_OrderTo\n"
        "    back: optional Purchase_OrderBack\n"
    )


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"x": {"oneOf": [{"type": "string"}, {"type": "integer"}]}}, ["INT120"]),
        ({"x": {"anyOf": [{"type": "string"}]}}, ["INT120"]),
        ({"x": {"type": "object", "properties": {}, "patternProperties": {"^a": {}}}}, ["INT120"]),
        ({"x": {"type": "object", "additionalProperties": {"type": "string"}}}, ["INT120"]),
        ({"x": {"type": "object"}}, ["INT120"]),
        ({"x": {"type": "array"}}, ["INT120"]),
        ({"x": {"type": "array", "items": [{"type": "string"}]}}, ["INT120"]),
        ({"x": {"type": "array", "items": {"type": "string"}, "prefixItems": []}}, ["INT120"]),
        ({"x": {"type": ["string", "integer"]}}, ["INT120"]),
        ({"x": {"type": "text"}}, ["INT120"]),
        ({"x": {"enum": ["a", 1]}}, ["INT120", "INT122"]),
        ({"x": {}, "y": True, "z": 5}, ["INT120", "INT120", "INT120"]),
        ({"x": {"$ref": "#"}}, ["INT120"]),
        ({"x": {"$ref": "#/$defs/Lne"}}, ["INT121"]),
        ({"x": {"$ref": "other.json"}}, ["INT121"]),
        ({"x": {"$ref": "#/$defs/Loop"}}, ["INT120"]),
        ({"x": {"$ref": "#/$defs/Self"}}, ["INT104"]),
        ({"x-y": {"type": "string"}}, ["INT110"]),
        ({"x": {"type": "number", "x-situ-unit": "foo"}}, ["INT105"]),
        ({"x": {"type": "integer", "default": "five"}}, ["INT111"]),
        ({"x": {"enum": ["a", "b"]}}, ["INT122"]),
        ({"x": {"const": "a"}, "y": {"type": "string", "pattern": "^a"}}, ["INT122", "INT122"]),
        ({"x": {"type": "integer", "minimum": 0, "maximum": 9}}, ["INT122"]),
    ],
)
def test_what_types_cannot_say_is_reported(schema: dict[str, Any], expected: list[str]) -> None:
    definitions: dict[str, Any] = {"Line": {"type": "object", "properties": {}}}
    if "Loop" in json.dumps(schema):
        definitions["Loop"] = {"$ref": "#/$defs/Loop"}
    if "Self" in json.dumps(schema):
        definitions["Self"] = {"properties": {"a": {"type": "array", "items": {"$ref": "#/$defs/Self"}}}}
    _, problems = imported({"properties": {"fine": {"type": "string"}, **schema}, "$defs": definitions})
    assert [problem.code.code for problem in problems] == expected
    assert all(problem.location and problem.location.line > 1 for problem in problems)
    assert all(problem.is_error != (problem.code.code == "INT122") for problem in problems)


def test_a_reference_that_leads_nowhere_gets_a_suggestion() -> None:
    _, [problem] = imported({"properties": {"x": {"$ref": "#/$defs/Lne"}}, "$defs": {"Line": {"properties": {}}}})
    assert problem.hint == "Did you mean `#/$defs/Line`?"


@pytest.mark.parametrize("text", ["[]", "5", '{"type": "string"}', "{}", "{", '{"$ref": "#/$defs/A"}'])
def test_what_is_no_schema_of_objects_is_refused(text: str) -> None:
    types, problems = imported(text)
    assert problems
    assert types.declared == ()


def test_hostile_schemas_stay_bounded() -> None:
    stacked = {f"d{i}": {"type": "array", "items": {"$ref": f"#/$defs/d{i + 1}"}} for i in range(10_000)}
    _, problems = imported({"$defs": stacked, "properties": {"x": {"$ref": "#/$defs/d0"}}})
    assert "INT120" in {problem.code.code for problem in problems}
    doubled: dict[str, Any] = {
        f"d{i}": {"type": "array", "items": {"properties": {key: {"$ref": f"#/$defs/d{i + 1}"} for key in "ab"}}}
        for i in range(40)
    }
    types, problems = imported({"$defs": {**doubled, "d40": {"type": "string"}}})
    assert {problem.code.code for problem in problems} == {"INT108", "INT120"}
    same = {f"p{i}": {"title": "Same", "properties": {}} for i in range(5_000)}
    types, problems = imported({"properties": same})
    assert len(types.declared) == 5_001


def test_names_that_types_cannot_have_are_changed() -> None:
    definitions = {name: {"properties": {}} for name in ("a b", "a_b", "9", "string", "situ.x", "ü", "a/b")}
    types, problems = imported({"$defs": definitions, "properties": {"x": {"$ref": "#/$defs/a~1b"}}})
    assert problems == ()
    assert [type.name for type in types.declared] == [
        "Thing", "Type", "Type_9", "Type_situ_x", "a_b", "a_b2", "a_b3", "string2",
    ]  # fmt: skip


def test_spark_schemas(types: Types) -> None:
    base = types.types["Base"]
    assert spark_type(base, types) == (
        "STRUCT<`$type`: STRING, `n`: INT, `size`: DOUBLE, `size$Wide`: DOUBLE, "
        "`k`: STRING, `k$Wide`: INT, `wide`: STRUCT<`fine`: BOOLEAN>>"
    )
    schema = spark_schema(event(types), types)
    assert schema.startswith("`ok` BOOLEAN, `tag` STRING, `net` DECIMAL(18,2), ")
    assert "`speed` DOUBLE, `rate` DECIMAL(5,2), `at` TIMESTAMP, `day` DATE" in schema
    assert "`wait` BIGINT, `raw` BINARY, `big` BIGINT" in schema
    assert "`grid` ARRAY<ARRAY<DOUBLE>>" in schema


def test_arrow_schemas(types: Types) -> None:
    schema = arrow_schema(event(types), types)
    assert schema.field("at").type == pa.timestamp("us", tz="UTC")
    assert schema.field("wait").type == pa.int64()
    assert schema.field("rate").type == pa.decimal128(5, 2)
    assert schema.field("grid").type == pa.list_(pa.list_(pa.float64()))
    assert all(field.nullable for field in schema)
    assert schema.field("speed").metadata == {b"situ.unit": b"km/h"}
    assert schema.field("net").metadata == {b"situ.unit": b"EUR", b"situ.type": b"Net"}
    base = arrow_type(types.types["Base"], types)
    assert [field.name for field in base] == ["$type", "n", "size", "size$Wide", "k", "k$Wide", "wide"]


def test_values_lie_in_the_columns_of_the_arrow_schema(types: Types) -> None:
    row = {"n": 1, "$type": "Wide", "size$Wide": 2.5, "k$Wide": 3}
    table = pa.Table.from_pylist([row, {"n": 2}], schema=arrow_schema(types.types["Base"], types))  # type: ignore[arg-type]
    assert table.column("k$Wide").to_pylist() == [3, None]


def test_attributes_of_one_name_share_a_column_if_they_can() -> None:
    types = types_of(
        """
        types:
          P: {x: int}
          Q(P): {y: int}
          Base: {at: optional P}
          One(Base): {at: Q, with: Q}
          Two(Base): {with: P}
        """
    )
    base = types.types["Base"]
    assert isinstance(base, Struct)
    assert [(column.name, str(column.type)) for column in columns(base, types)] == [
        ("$type", "string"), ("at", "P"), ("with", "P"),
    ]  # fmt: skip
