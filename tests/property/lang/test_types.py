"""Generated types and values: every form reads back, and no input whatever gets anything but an answer of ours."""

from __future__ import annotations

import decimal
import json
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import Any

import jsonschema
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from situ.lang.documents import parse_json, parse_yaml
from situ.lang.problems import Problems, SituError, render
from situ.lang.quantities import parse_duration, parse_instant, parse_quantity, parse_size
from situ.lang.types.arrow_schema import arrow_schema
from situ.lang.types.declaration import print_types
from situ.lang.types.json_codec import check_value, decode, decoder, encode
from situ.lang.types.json_schema import export_event, export_types, import_schema
from situ.lang.types.layout import spark_schema
from situ.lang.types.model import (
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    DURATION,
    INT,
    LONG,
    PLANAR,
    STRING,
    TIMESTAMP,
    Attribute,
    Decimal,
    ListOf,
    Named,
    Primitive,
    Struct,
    Type,
    combine,
    format_attribute,
    format_type,
    is_subtype,
    parse_attribute,
    parse_type,
    plain,
)
from situ.lang.types.resolve import load_types
from situ.lang.types.table import Types
from situ.lang.units import NO_UNIT, Units
from tests.types_files import types_of
from tests.volume import examples

UNITS = Units({"EUR": "currency", "floor": "label"})
NUMBERS = (INT, LONG, DOUBLE, Decimal(5, 2), Decimal(38, 10))
PRIMITIVES = (BOOLEAN, STRING, BYTES, DATE, TIMESTAMP, DURATION, *NUMBERS)
UNIT_TEXTS = ("m", "km/h", "EUR", "%", "degC", "kg*m/s^2", "1/s", "EUR/kWh", "floor")

TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=8)  # files have no NUL
DAYS = st.dates(date(1, 1, 2), date(9999, 12, 30))
LONGEST = timedelta(microseconds=2**63 - 1)
SINGLE: dict[Primitive, st.SearchStrategy[Any]] = {
    BOOLEAN: st.booleans(),
    INT: st.integers(-(2**31), 2**31 - 1),
    LONG: st.integers(-(2**63), 2**63 - 1),
    DOUBLE: st.floats(allow_nan=False, allow_infinity=False),
    STRING: TEXT,
    BYTES: st.binary(max_size=8),
    DATE: DAYS,
    TIMESTAMP: st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC)),  # noqa: DTZ001
    DURATION: st.timedeltas(-LONGEST, LONGEST),
}


def values(type: Type, types: Types) -> st.SearchStrategy[Any]:
    """Values of the type as the engines hold them, some of subtypes."""
    bare = plain(type)
    if isinstance(bare, Decimal):
        limit = 10**bare.precision - 1
        exact = decimal.Context(prec=bare.precision + 1)
        return st.integers(-limit, limit).map(lambda digits: exact.scaleb(decimal.Decimal(digits), -bare.scale))
    if isinstance(bare, ListOf):
        return st.lists(st.none() | values(bare.element, types), max_size=2)
    if isinstance(bare, Primitive):
        return SINGLE[bare]
    choices = [each for each in types.subtypes(bare) if isinstance(each, Struct)]
    return st.sampled_from(choices).flatmap(lambda each: struct_values(each, each is not bare, types))


def struct_values(struct: Struct, named: bool, types: Types) -> st.SearchStrategy[dict[str, Any]]:
    required = {a.name: values(a.type, types) for a in struct.attributes if not a.nullable}
    optional = {a.name: values(a.type, types) for a in struct.attributes if a.nullable}
    fixed = {"$type": st.just(struct.name)} if named else {}
    return st.fixed_dictionaries({**required, **fixed}, optional=optional)


@st.composite
def tables(draw: st.DrawFn) -> Types:
    """Tables of types without faults: supertypes are of the same level, attributes of lower ones."""
    types: dict[str, Named | Struct] = {}
    for number in range(draw(st.integers(0, 2))):
        base = draw(st.sampled_from([*PRIMITIVES, *(each for each in types.values() if isinstance(each, Named))]))
        types[f"N{number}"] = Named(f"N{number}", base)
    below: list[Type] = [*PRIMITIVES, *types.values(), *PLANAR]
    for level in range(draw(st.integers(1, 3))):
        same: list[Struct] = []
        for number in range(draw(st.integers(1, 3))):
            name = draw(st.sampled_from((f"T{level}_{number}", f"a.b{level}.T{number}")))
            supers = tuple(draw(st.lists(st.sampled_from(same), max_size=2, unique=True))) if same else ()
            own = [draw(attributes(f"{'true' * (level == 0)}x{level}_{number}_{i}", below))
                   for i in range(draw(st.integers(0, 3)))]  # fmt: skip
            same.append(Struct(name, combine(supers, own), supers))
        types |= {each.name: each for each in same}
        below += same
    events = draw(st.sets(st.sampled_from([name for name, each in types.items() if isinstance(each, Struct)])))
    return Types(types=types, events=frozenset(events), units=UNITS)


@st.composite
def attributes(draw: st.DrawFn, name: str, below: list[Type]) -> Attribute:
    type = draw(st.sampled_from(below))
    unit = NO_UNIT
    if plain(type) in NUMBERS or isinstance(type, Struct):
        unit = UNITS.parse(text) if (text := draw(st.sampled_from(("", *UNIT_TEXTS)))) else NO_UNIT
    default = None
    if draw(st.booleans()):
        default = draw(values(type, Types(types={})))
    if draw(st.booleans()):
        type, default = ListOf(type), None if default is None else [default]
    return Attribute(name=name, type=type, unit=unit, optional=draw(st.booleans()), default=default)


few = settings(examples(10, 4_000), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@given(tables())
@few
def test_a_table_reads_back_from_every_form(types: Types) -> None:
    assert types_of(print_types(types)) == types
    stored = json.dumps(types.as_json(), sort_keys=True)
    assert Types.from_json(json.loads(stored)) == types
    problems = Problems()
    again = import_schema(parse_json(json.dumps(export_types(types)), "schema.json"), "x", problems)
    assert [str(problem) for problem in problems] == []
    assert again == types


@given(tables())
@few
def test_attributes_and_types_read_back_from_their_text(types: Types) -> None:
    for type in types.declared:
        assert parse_type(format_type(type)) == parse_type(type.name)
        for attribute in type.attributes if isinstance(type, Struct) else ():
            text = parse_attribute(format_attribute(attribute))
            assert text.optional == attribute.optional
            assert (UNITS.parse(text.unit) if text.unit else NO_UNIT) == attribute.unit
            assert text.type == parse_type(format_type(attribute.type))


@given(tables())
@few
def test_subtypes_are_those_the_model_says(types: Types) -> None:
    for type in types.types.values():
        expected = {each.name for each in types.types.values() if is_subtype(each, type)}
        assert {str(each) for each in types.subtypes(type)} == expected


@given(tables(), st.data())
@few
def test_values_read_back(types: Types, data: st.DataObject) -> None:
    for struct in (each for each in types.declared if isinstance(each, Struct)):
        value = data.draw(values(struct, types))
        written = encode(struct, value, types)
        text = json.dumps(written, allow_nan=False)
        assert decode(struct, json.loads(text), types) == value
        assert encode(struct, decode(struct, json.loads(text), types), types) == written
        validator = jsonschema.Draft202012Validator(export_event(types, struct))
        assert [error.message for error in validator.iter_errors(_without_nulls(written))] == []


def _without_nulls(value: Any) -> Any:
    """Elements of lists may be null in Situ; the exported schema asks producers not to send that."""
    if isinstance(value, list):
        return [_without_nulls(item) for item in value if item is not None]
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items()}
    return value


@given(tables())
@few
def test_every_struct_has_schemas_for_the_engines(types: Types) -> None:
    for struct in (each for each in types.declared if isinstance(each, Struct)):
        names = arrow_schema(struct, types).names
        assert len(names) == len(set(names))
        assert spark_schema(struct, types).count("`") % 2 == 0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=10,
)


@given(tables(), st.data())
@few
def test_any_json_gets_a_value_or_problems(types: Types, data: st.DataObject) -> None:
    for struct in (each for each in types.declared if isinstance(each, Struct)):
        keys = st.sampled_from([*(a.name for a in struct.attributes), "$type", "$extra", "other"])
        given_value = data.draw(JSON | st.dictionaries(keys, JSON | st.sampled_from(types.names), max_size=4))
        for extra in ("drop", "keep", "reject"):
            decoded = decoder(struct, types, extra)(given_value)  # type: ignore[arg-type]
            assert (decoded.value is None) == bool(decoded.problems)
            assert {problem.code.code for problem in decoded.problems} <= {"INT703", "INT707", "INT708", "INT709"}
            for problem in decoded.problems:
                render(problem).encode()
            if not decoded.problems:
                assert check_value(struct, encode(struct, decoded.value, types), types, extra) == ()  # type: ignore[arg-type]


WORDS = st.sampled_from(
    "types events units version type unit optional default A B C(A) B(C) A(B,C) Point Polygon P(Point) string int "
    "double decimal(5,2) decimal( [A] [[B]] [ ] optional A m km/h EUR currency foo $type 1 null true".split()
)
PHRASES = st.lists(WORDS, min_size=1, max_size=3).map(" ".join)
DECLARATIONS = st.recursive(
    PHRASES | st.none() | st.integers(-5, 5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(PHRASES, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(("types", "events", "units", "version", "other")), DECLARATIONS))
@examples(75, 30_000)
def test_any_declarations_get_a_table_and_problems(declarations: dict[str, Any]) -> None:
    problems = Problems()
    types = load_types([parse_yaml(json.dumps(declarations), "types/a.yaml")], problems)
    for problem in problems:
        assert render(problem)
        assert problem.location is not None
    for type in types.types.values():
        decoder(type, types)
        if isinstance(type, Struct):
            spark_schema(type, types)
    if not problems:
        assert types_of(print_types(types)) == types


KEYWORDS = st.sampled_from(
    "type properties items $ref $defs definitions allOf anyOf oneOf required enum default format x-situ-unit "
    "x-situ-any x-situ-type x-situ-base x-situ-built-in x-situ-events x-situ-units title nullable "
    "additionalProperties a b".split()
)
SCHEMA_VALUES = st.sampled_from(
    [
        "object",
        "array",
        "string",
        "integer",
        "null",
        "#/$defs/a",
        "#/$defs/b",
        "#",
        "m",
        "[",
        "a",
        "date",
        True,
        5,
        None,
    ]
)
SCHEMAS = st.recursive(
    SCHEMA_VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYWORDS, inner, max_size=5),
    max_leaves=25,
)


@given(st.dictionaries(KEYWORDS, SCHEMAS, max_size=6))
@examples(75, 30_000)
def test_any_schema_gets_types_and_problems(schema: dict[str, Any]) -> None:
    problems = Problems()
    types = import_schema(parse_json(json.dumps(schema), "schema.json"), "Thing", problems)
    if not any(problem.is_error for problem in problems):
        assert types_of(print_types(types)) == types


@given(st.text(max_size=30) | st.from_regex(r"[-+]?[0-9.,]{1,5} ?[a-zA-Z%°/^*0-9]{0,8}", fullmatch=True))
@examples(75, 30_000)
def test_any_text_gets_a_quantity_or_a_problem(text: str) -> None:
    assume("\ud800" not in text)
    for parse in (parse_quantity, parse_duration, parse_instant, parse_size):
        with suppress(SituError):
            parse(text)  # type: ignore[operator]
