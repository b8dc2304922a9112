"""Contexts in Python are those of the equal YAML: decorators collect, and what they collect loads as data."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any

import pytest

import situ
from situ import Typed, Unit, context, conv_function, declared_contexts, maps_to, transform_with
from situ.contexts import decorators as python_form
from situ.contexts.load import load_contexts
from situ.contexts.model import Direction
from situ.contexts.table import Contexts
from situ.contexts.transform.transformation import transformations
from situ.lang.documents import Document, parse_json, parse_yaml
from situ.lang.problems import Problems, SituError
from situ.lang.types.resolve import load_types
from tests.context_files import SOURCES

TYPES = """\
types:
  Coordinates: {x: double deg, y: double deg}
  Position: {x: double m, y: double m}
  Money: {currency: string, amount: "decimal(18,2)"}
  UniversalAddress: {firstName: string, lastName: string, specifics: string}
events:
  ProductStatusEvent: {productId: string, pos: Position, dynamicPrice: Money EUR, dynamicCost: Money EUR}
  PositionUpdate: {coordinates: Coordinates, distanceRemaining: double m, destAddress: UniversalAddress}
units: {EUR: currency, USD: currency}
"""

EQUAL = """\
context: us
extends: root
types:
  LatLonPosition: {lat: double deg, lon: double deg}
  USAddress: {firstName: string, lastName: string, zip: optional string}
events:
  CustomerProductStatusEvent: {productId: string, pos: LatLonPosition, price: Money USD, dynamicCost: Money EUR}
  PositionUpdate: {coordinates: Coordinates, distanceRemaining: double mi, destAddress: USAddress}
maps:
  - out: ProductStatusEvent -> CustomerProductStatusEvent
    attributes: {price: dynamicPrice}
  - out: PositionUpdate -> PositionUpdate
rules:
  out:
    - Position -> to_latlon
    - UniversalAddress -> to_us_address
functions:
  to_latlon: Position -> LatLonPosition = struct(value.y / 111320 AS lat, value.x / 111320 AS lon)
  to_us_address: UniversalAddress -> USAddress = struct(value.firstName AS firstName, value.lastName AS lastName,
    kv(value.specifics, 'zip') AS zip)
  meters: double m -> double mi = value * 0.000621371
  to_dollars:
    signature: Money EUR -> Money USD
    time: event
    lookup: {fx: {source: fx_rates, key: {base: value.currency, quote: "'USD'"}, as_of: valid_from}}
    expr: struct('USD' AS currency, round(value.amount * fx.rate, 2) AS amount)
"""


@pytest.fixture(autouse=True)
def _nothing_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    """What tests declare does not stay."""
    monkeypatch.setattr(python_form, "_members", {})


@dataclass
class Money:
    currency: str
    amount: Annotated[Decimal, Typed("decimal(18,2)")]


@dataclass
class Coordinates:
    x: Annotated[float, Unit("deg")]
    y: Annotated[float, Unit("deg")]


@dataclass
class LatLonPosition:
    lat: Annotated[float, Unit("deg")]
    lon: Annotated[float, Unit("deg")]


@dataclass
class USAddress:
    firstName: str  # noqa: N815
    lastName: str  # noqa: N815
    zip: str | None


@dataclass
class CustomerProductStatusEvent:
    productId: str  # noqa: N815
    pos: LatLonPosition
    price: Annotated[Money, Unit("USD")]
    dynamicCost: Annotated[Money, Unit("EUR")]  # noqa: N815


@dataclass
class PositionUpdate:
    coordinates: Coordinates
    distanceRemaining: Annotated[float, Unit("mi")]  # noqa: N815
    destAddress: USAddress  # noqa: N815


@dataclass
class Base:
    at: datetime
    tags: list[str] = field(default_factory=list)


@dataclass
class Everything(Base):
    flag: bool = True
    count: int = 3
    small: Annotated[int, Typed("int")] = 1
    share: float = 0.5
    raw: bytes | None = None
    day: date | None = None
    took: Annotated[timedelta | None, Typed("duration")] = None
    price: Annotated[Decimal, Typed("decimal(18,2)")] = Decimal("1.50")
    ways: Annotated[list[float] | None, Unit("km")] = None
    where: LatLonPosition = field(default_factory=lambda: LatLonPosition(1.0, 2.0))


@dataclass
class Strange:
    """Has attributes that events do not have."""

    by_name: dict[str, int]


@dataclass
class Bare:
    amount: Decimal


@dataclass
class Lost:
    what: Nowhere  # type: ignore[name-defined]  # noqa: F821  the name is not there, and that is the case


@dataclass
class Odd:
    at: complex | None = None


def declare() -> None:
    context("us")(LatLonPosition)
    context("us")(USAddress)
    context("us", extends="root")(
        maps_to("ProductStatusEvent", direction="out", price="dynamicPrice")(
            transform_with("to_latlon")(CustomerProductStatusEvent)
        )
    )
    context("us")(maps_to("PositionUpdate")(transform_with("to_us_address")(PositionUpdate)))
    position = "struct(value.y / 111320 AS lat, value.x / 111320 AS lon)"
    context("us")(conv_function(name="to_latlon", type="Position", result="LatLonPosition", expr=position))
    address = "struct(value.firstName AS firstName, value.lastName AS lastName, kv(value.specifics, 'zip') AS zip)"
    conv_function(name="to_us_address", type="UniversalAddress", result="USAddress", expr=address, context="us")
    conv_function("m", "mi", name="meters", expr="value * 0.000621371", context="us")
    conv_function(
        "EUR",
        "USD",
        name="to_dollars",
        type="Money",
        time="event",
        lookup={
            "fx": {"source": "fx_rates", "key": {"base": "value.currency", "quote": "'USD'"}, "as_of": "valid_from"}
        },
        expr="struct('USD' AS currency, round(value.amount * fx.rate, 2) AS amount)",
        context="us",
    )


@pytest.fixture(autouse=True)
def _unmarked() -> Iterator[None]:
    """Decorators mark classes; those of this module are plain again for the next test."""
    yield
    for cls in (LatLonPosition, USAddress, CustomerProductStatusEvent, PositionUpdate, Base, Everything):
        if python_form._MARK in vars(cls):
            delattr(cls, python_form._MARK)


def load(*documents: Document) -> Contexts:
    problems = Problems()
    types = load_types([parse_yaml(TYPES, "types/t.yaml")], problems)
    contexts = load_contexts(documents, types, {}, problems, sources=SOURCES)
    assert not [str(problem) for problem in problems.errors]
    return contexts


def sent(*members: Any) -> list[Document]:
    """The declarations as they travel."""
    return [parse_json(json.dumps(each), each["context"]) for each in declared_contexts(*members)]


def plans(contexts: Contexts) -> dict[tuple[str, str], str]:
    return {
        (direction.value, name): each.plan
        for direction in Direction
        for name, each in transformations(contexts.by_id["us"], direction, Problems()).items()
    }


def test_decorators_declare_what_the_equal_yaml_does() -> None:
    declare()
    in_python = load(*sent())
    in_yaml = load(parse_yaml(EQUAL, "contexts/us.yaml"))
    assert in_python.as_json() == in_yaml.as_json()
    assert plans(in_python) == plans(in_yaml)
    assert {name for _, name in plans(in_python)} >= {"ProductStatusEvent", "PositionUpdate"}


def test_what_is_collected_is_data() -> None:
    declare()
    (us,) = declared_contexts()
    assert json.loads(json.dumps(us)) == us
    assert us["events"]["CustomerProductStatusEvent"]["price"] == "Money USD"
    assert us["maps"][0] == {
        "out": "ProductStatusEvent -> CustomerProductStatusEvent",
        "attributes": {"price": "dynamicPrice"},
    }


def test_decorators_stand_in_any_order() -> None:
    maps_to("PositionUpdate")(context("us")(PositionUpdate))
    (us,) = declared_contexts()
    assert us["maps"] == [{"out": "PositionUpdate -> PositionUpdate"}]
    assert list(us["events"]) == ["PositionUpdate"]


@pytest.mark.parametrize(
    ("direction", "expected"),
    [
        ("out", {"out": "Root -> PositionUpdate"}),
        ("in", {"in": "PositionUpdate -> Root"}),
        ("both", {"both": "Root <-> PositionUpdate"}),
    ],
)
def test_a_mapping_names_the_type_of_root(direction: Any, expected: dict[str, str]) -> None:
    context("us")(maps_to("Root", direction=direction)(PositionUpdate))
    assert declared_contexts()[0]["maps"] == [expected]


def test_a_mapping_goes_some_way() -> None:
    with pytest.raises(ValueError, match="'outward'"):
        maps_to("Root", direction="outward")  # type: ignore[arg-type]  # that is the case


def test_attributes_of_all_kinds() -> None:
    context("us", event=True, units={"crates": "label"})(Everything)
    context("us")(Base)
    (us,) = declared_contexts()
    assert us["units"] == {"crates": "label"}
    assert us["types"] == {"Base": {"at": "timestamp", "tags": {"type": "[string]", "default": []}}}
    assert us["events"] == {
        "Everything(Base)": {
            "flag": {"type": "boolean", "default": True},
            "count": {"type": "long", "default": 3},
            "small": {"type": "int", "default": 1},
            "share": {"type": "double", "default": 0.5},
            "raw": "optional bytes",
            "day": "optional date",
            "took": "optional duration",
            "price": {"type": "decimal(18,2)", "default": "1.50"},
            "ways": "optional [double] km",
            "where": {"type": "LatLonPosition", "default": {"lat": 1.0, "lon": 2.0}},
        }
    }


@pytest.mark.parametrize(
    ("cls", "message"),
    [
        (Strange, r"Strange\.by_name: dict\[str, int\] is no type"),
        (Bare, r"Bare\.amount: say which type"),
        (Lost, "Lost: 'Nowhere' is not known"),
        (Odd, r"Odd\.at: <class 'complex'> is no type"),
    ],
)
def test_what_events_cannot_have_is_refused(cls: type, message: str) -> None:
    context("us")(cls)
    with pytest.raises(TypeError, match=message):
        declared_contexts()


# ── functions ─────────────────────────────────────────────────────────────────────────────────────


def test_a_function_between_units_is_an_expression() -> None:
    conv_function("mi", "km", expr="value * 1.609344", context="us")
    (us,) = declared_contexts()
    assert us["functions"] == {"mi_to_km": {"signature": "double mi -> double km", "expr": "value * 1.609344"}}
    assert load(*sent()).by_id["us"].conversion("mi_to_km") is not None


def test_a_function_belongs_to_the_class_it_stands_on() -> None:
    context("us")(conv_function("mi", "km", expr="value * 1.609344")(LatLonPosition))
    assert list(declared_contexts(LatLonPosition)[0]["functions"]) == ["mi_to_km"]


def miles(value: Any) -> Any:
    return value * 1.609344


def test_python_from_a_client_is_refused() -> None:
    assert conv_function("mi", "km", context="us")(miles) is miles
    with pytest.raises(SituError) as refused:
        declared_contexts()
    assert [problem.code.code for problem in refused.value.problems] == ["INT411"]
    assert "miles" in refused.value.problems[0].message


def test_python_is_refused_whichever_decorator_says_where_it_belongs() -> None:
    context("us")(conv_function("mi", "km")(miles))
    with pytest.raises(SituError) as refused:
        declared_contexts()
    assert [problem.code.code for problem in refused.value.problems] == ["INT411"]


def test_a_python_function_without_a_context_is_no_declaration() -> None:
    conv_function("mi", "km")(miles)
    assert declared_contexts() == ()


# ── rules ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_rule_for_a_function_from_elsewhere_says_what_it_is_about() -> None:
    with_rule = transform_with("shorten", pattern="PositionUpdate.destAddress", direction="in")
    context("us")(with_rule(PositionUpdate))
    assert declared_contexts()[0]["rules"] == {"in": ["PositionUpdate.destAddress -> shorten"]}


def test_a_rule_needs_to_know_what_its_function_converts() -> None:
    conv_function("m", "yd", name="shorter", expr="value", context="us")
    context("us")(transform_with("shorten")(PositionUpdate))
    with pytest.raises(SituError) as refused:
        declared_contexts()
    (problem,) = refused.value.problems
    assert problem.code.code == "INT208"
    assert "`shorter`" in problem.hint


def test_a_rule_goes_the_way_of_its_class_or_of_its_context() -> None:
    context("us")(maps_to("Root", direction="both")(transform_with("f", pattern="A")(PositionUpdate)))
    assert declared_contexts()[0]["rules"] == {"out": ["A -> f"], "in": ["A -> f"]}
    context("us")(transform_with("g", pattern="B")(USAddress))
    with pytest.raises(SituError) as refused:
        declared_contexts()
    assert [problem.code.code for problem in refused.value.problems] == ["INT210"]


def test_a_rule_without_mappings_is_left_to_those_above() -> None:
    context("us", extends="eu")(transform_with("g", pattern="B")(USAddress))
    (us,) = declared_contexts()
    assert us["rules"] == ["B -> g"]
    assert us["extends"] == "eu"


def test_a_rule_of_a_part_goes_the_one_way_there_is() -> None:
    context("us")(maps_to("Root", direction="in")(transform_with("f", pattern="A")(PositionUpdate)))
    context("us")(transform_with("g", pattern="B")(USAddress))
    assert declared_contexts()[0]["rules"] == {"in": ["A -> f", "B -> g"]}


# ── collecting ────────────────────────────────────────────────────────────────────────────────────


def test_contexts_are_told_apart_and_classes_can_be_chosen() -> None:
    context("us")(LatLonPosition)
    context("eu")(LatLonPosition)
    context("eu")(USAddress)
    assert [each["context"] for each in declared_contexts()] == ["us", "eu"]
    assert [each["context"] for each in declared_contexts(USAddress)] == ["eu"]


def test_declaring_again_replaces() -> None:
    conv_function("mi", "km", expr="value * 1.6", context="us")
    conv_function("mi", "km", expr="value * 1.609344", context="us")
    assert declared_contexts()[0]["functions"]["mi_to_km"]["expr"] == "value * 1.609344"


def test_a_context_extends_one_other() -> None:
    context("us", extends="eu")(LatLonPosition)
    context("us")(USAddress)
    assert declared_contexts()[0]["extends"] == "eu"
    context("us", extends="asia")(PositionUpdate)
    with pytest.raises(ValueError, match="asia and eu"):
        declared_contexts()


def test_a_context_has_one_class_of_a_name() -> None:
    @dataclass
    class USAddress:
        city: str

    context("us")(globals()["USAddress"])
    context("us")(USAddress)
    with pytest.raises(ValueError, match="two classes of the name USAddress"):
        declared_contexts()


def test_only_dataclasses_are_declared() -> None:
    with pytest.raises(TypeError, match="dataclasses"):
        context("us")(int)


def test_root_has_no_parent() -> None:
    context("root")(LatLonPosition)
    assert "extends" not in declared_contexts()[0]


def test_all_of_it_is_found_in_the_package_and_nothing_is_loaded_before() -> None:
    assert situ.conv_function is python_form.conv_function
    code = "import sys, situ; assert not any(m.startswith('situ.') for m in sys.modules); situ.context; situ.Unit"
    subprocess.run([sys.executable, "-c", code], check=True)
