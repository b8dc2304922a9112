"""Files of types → a table, and all that can be wrong in them."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

from situ.lang.problems import render
from situ.lang.types.json_codec import decoder
from situ.lang.types.model import DOUBLE, PLANAR, STRING, Decimal, ListOf, Named, Struct
from situ.lang.types.table import built_in
from situ.lang.units import Units
from tests.types_files import faults, load, types_of
from tests.volume import cases

LOGISTICS = """
    version: 1
    types:
      Coordinates: {x: double deg, y: double deg}
      Position: {x: double m, y: double m}
      PositionWithHeight(Position): {z: double m}
      Money: {currency: string, amount: "decimal(18,2)"}
      TagId(string): {}
      Line: {qty: int, tag: TagId}
    events:
      ProductStatusEvent: {productId: string, pos: Position, dynamicPrice: Money EUR, dynamicCost: Money EUR}
      Order:
        at: timestamp
        lines: [Line]
        more: "optional [Line]"
        limit: {type: double, unit: km/h, optional: true, default: 50}
        wait: {type: duration, default: PT5S}
        where: Point m
    units: {EUR: currency}
    """


def test_the_notation_of_the_reference_is_read() -> None:
    types = types_of(LOGISTICS)
    units = Units({"EUR": "currency"})
    assert types.events == {"ProductStatusEvent", "Order"}
    higher = types.get("PositionWithHeight")
    assert isinstance(higher, Struct)
    assert [attribute.name for attribute in higher.attributes] == ["x", "y", "z"]
    assert higher.supers == (types.get("Position"),)
    assert types.get("TagId") == Named("TagId", STRING)
    order = types.event("Order")
    assert order is not None
    assert {attribute.name: str(attribute.type) for attribute in order.attributes} == {
        "at": "timestamp", "lines": "[Line]", "more": "[Line]", "limit": "double", "wait": "duration", "where": "Point",
    }  # fmt: skip
    limit, wait, where = (order.attribute(name) for name in ("limit", "wait", "where"))
    assert limit is not None
    assert wait is not None
    assert where is not None
    assert (limit.default, limit.unit, limit.optional) == (50.0, units.parse("km/h"), True)
    assert wait.default == timedelta(seconds=5)
    assert (where.type, where.unit) == (PLANAR[0], units.parse("m"))
    price = types.types["ProductStatusEvent"]
    assert isinstance(price, Struct)
    assert [str(attribute.unit) for attribute in price.attributes] == ["", "", "EUR", "EUR"]


def test_built_in_types_are_there_unless_hidden() -> None:
    assert built_in().keys() == {"Point", "Box", "Polygon", "GeoPoint", "GeoBox", "GeoPolygon"}
    types = types_of("types:\n  Point: {r: double m}\n  Far(Point): {}\nevents:\n  E: {at: Point, area: Polygon m}\n")
    own = types.get("Point")
    assert isinstance(own, Struct)
    assert own.attribute("r") is not None
    polygon = types.get("Polygon")
    assert isinstance(polygon, Struct)
    assert polygon.attributes[0].type == ListOf(PLANAR[0])
    assert types.subtypes(own) == (own, types.get("Far"))
    assert types.subtypes(PLANAR[0]) == (PLANAR[0],)


def test_declared_order_makes_no_difference() -> None:
    forth = types_of("types: {A: {x: int}}\nevents: {E: {a: A}}", "types: {B(A): {y: int}}")
    back = types_of("types: {B(A): {y: int}}", "events: {E: {a: A}}\ntypes: {A: {x: int}}")
    assert forth == back
    assert forth.as_json() == back.as_json()


def test_an_inherited_attribute_can_be_narrowed() -> None:
    types = types_of(
        """
        types:
          Position: {x: double m}
          High(Position): {z: double m}
          Thing: {at: optional Position, n: int}
          Plane(Thing): {at: High, speed: double}
        """
    )
    plane = types.types["Plane"]
    assert isinstance(plane, Struct)
    assert [(a.name, str(a.type), a.optional) for a in plane.attributes] == [
        ("at", "High", False), ("n", "int", False), ("speed", "double", False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "text", "places"),
    [
        ("INT101", "types:\n  A: {x: strin, y: [Nope]}\n  B(Nope): {}\n", ["2:10", "2:21", "3:5"]),
        ("INT102", "types:\n  A(B): {}\n  B(C): {}\n  C(A): {}\n", ["4:5"]),
        ("INT102", "types:\n  A(A): {}\n", ["2:5"]),
        ("INT103", "types:\n  A: {x: double}\n  B(A): {x: string}\n", ["3:10"]),
        ("INT103", "types:\n  A: {x: double m}\n  B(A): {x: double ft}\n", ["3:10"]),
        ("INT103", "types:\n  A: {x: double}\n  B(A): {x: optional double}\n", ["3:10"]),
        ("INT103", "types:\n  A: {x: double}\n  B: {x: string}\n  C(A, B): {}\n", ["4:3"]),
        ("INT104", "types:\n  A: {x: A}\n", ["2:7"]),
        ("INT104", "types:\n  A: {x: [[A]]}\n", ["2:7"]),
        ("INT104", "types:\n  A: {b: B}\n  B: {a: A}\n", ["3:7"]),
        ("INT104", "types:\n  A: {b: B}\n  B: {}\n  C(B): {a: A}\n", ["4:10"]),
        ("INT104", "types:\n  A: {x: int}\n  B(A): {a: A}\n", ["3:10"]),
        ("INT104", "types:\n  Shape(Point): {around: Polygon}\n", ["2:18"]),
        ("INT104", "types:\n  Odd(Point, Polygon): {}\n", ["2:3"]),
        ("INT105", "types:\n  A: {x: double foo, y: double m/}\n", ["2:17", "2:32"]),
        ("INT106", "types:\n  A: {}\nevents:\n  A: {}\n", ["4:3"]),
        ("INT106", "types:\n  A: {}\n  B(A, A): {}\n", ["3:8"]),
        ("INT109", "types:\n  A: {x: '[int', y: [a, b], z: decimal(3}\n  Käse: {}\n", ["2:15", "2:21", "2:41", "3:3"]),
        ("INT110", "types:\n  string: {}\n  situ.x: {}\n  situ: {}\n", ["2:3", "3:3", "4:3"]),
        ("INT110", "types:\n  A: {$type: int, a-b: int, 9a: int}\n", ["2:7", "2:19", "2:29"]),
        ("INT110", "units: {a-b: label, c: a b}\n", ["1:9", "1:24"]),
        ("INT111", "types:\n  A: {x: {type: int, default: 3.5}}\n", ["2:31"]),
        ("INT111", "types:\n  A: {x: {type: double, default: null}}\n", ["2:34"]),
        ("INT112", "types:\n  A: {a: string m, b: timestamp s, c: '[duration] s'}\n", ["2:17", "2:33", "2:51"]),
        ("INT114", "types:\n  A(string, int): {}\n", ["2:5", "2:13"]),
        ("INT114", "types:\n  A(string): {x: int}\n", ["2:5"]),
        ("INT114", "types:\n  A: {}\n  T(string): {}\n  B(A, T): {}\n", ["4:8"]),
        ("INT114", "events:\n  E(string): {}\n", ["2:5"]),
        ("P103", "type: {}\n", ["1:1"]),
        ("P103", "types:\n  A: {x: {type: int, units: m}}\n", ["2:22"]),
        ("P104", "types:\n  A: {x: {unit: m}}\n", ["2:7"]),
        ("P105", "types:\n  A: {x: 5, y: null}\n  B: 5\n", ["2:10", "2:16", "3:6"]),
        ("P111", "version: 2\n", ["1:10"]),
    ],
)
def test_each_fault_is_found_at_its_place(code: str, text: str, places: list[str]) -> None:
    assert faults(text) == [f"types/1.yaml:{place} {code}" for place in places]


@pytest.mark.parametrize(
    "text",
    [
        "types:\n  A: {x: double}\n  B: {x: string}\n  C: {a: A, b: B}\n",
        "types:\n  A: {x: double}\n  B(A): {y: int}\n  C(A): {z: int}\n  D(B, C): {}\n",
        "types:\n  P: {}\n  Q(P): {}\n  A: {x: P}\n  B: {x: Q}\n  C(A, B): {x: Q}\n",
        "types:\n  A: {b: B}\n  B: {}\n  C(B): {d: D}\n  D: {}\n",
        "types:\n  A: {x: string EUR, y: '[string] EUR', z: boolean EUR}\nunits: {EUR: currency}\n",
        "types:\n  T(string): {}\n  U(T): {}\n  A: {t: T}\n  B(A): {t: U}\n",
        "types:\n  A:\n  B: {}\nevents:\n  E(A): {}\n",
        "types:\n  A: {x: {type: Point, unit: m, default: {x: 1, y: 2.5}}}\n",
        "",
        "# nothing yet\n",
        "types:\nevents:\nunits:\n",
    ],
)
def test_what_is_just_right_is_no_fault(text: str) -> None:
    assert faults(text) == []


def test_names_are_declared_once_over_all_files() -> None:
    _, [unit, type] = load("types: {A: {}}\nunits: {EUR: currency}", "units: {EUR: label}\nevents: {A: {}}")
    assert (unit.code.code, type.code.code) == ("INT106", "INT106")
    assert "types/1.yaml:2:9" in unit.message
    assert "types/1.yaml:1:9" in type.message


def test_problems_name_what_was_meant() -> None:
    _, [unknown] = load("types:\n  Position: {x: double}\nevents:\n  E: {at: Positon}\n")
    assert unknown.hint == "Did you mean `Position` or `Point`?"
    _, [around] = load("types:\n  A: {b: B}\n  B: {}\n  C(B): {a: [A]}\n")
    assert around.message == "`C` contains itself: A.b holds B, B may be C, C.a holds A."
    _, [cycle] = load("types:\n  A(B): {}\n  B(A): {}\n")
    assert cycle.message == "`B` is a supertype of itself: A → B → A."
    _, [default] = load("types:\n  A: {x: {type: double, default: '3,5'}}\n")
    assert render(default) == (
        "types/1.yaml:2:34: error INT111: The default of `x` does not fit its type `double`.\n"
        "  |   A: {x: {type: double, default: '3,5'}}\n"
        "  |                                  ^^^^^\n"
        '  because INT703: `$` is the text "3,5", expected `double`.\n'
        "  hint: Write the default as it would be in an event."
    )


def test_one_fault_hides_no_other_and_spoils_no_neighbour() -> None:
    types, problems = load(
        """
        types:
          A: {self: A m/foo, x: Nope, y: double foo, z: {type: int, default: x}, fine: double m}
          B(A, Nope): {fine: string, more: int}
        """
    )
    codes = sorted(problem.code.code for problem in problems)
    assert codes == ["INT101", "INT101", "INT103", "INT104", "INT105", "INT105", "INT111"]
    b = types.types["B"]
    assert isinstance(b, Struct)
    assert [attribute.name for attribute in b.attributes] == ["y", "z", "fine", "more"]


def test_a_table_with_faults_can_be_worked_with() -> None:
    types, problems = load("types:\n  A: {b: B}\n  B: {}\n  C(B): {a: A}\n  D(Point, Polygon): {}\n")
    assert [problem.code.code for problem in problems] == ["INT104", "INT104"]
    for type in types.types.values():
        decoder(type, types)


def chain(count: int, line: str) -> str:
    return "types:\n" + "".join(f"  {line.format(i=i, above=i - 1)}\n" for i in range(count))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (chain(4_000, "T{i}(T{above}): {{a{i}: int}}").replace("(T-1)", ""), "INT113"),
        (chain(4_000, "T{i}(T{above}): {{}}").replace("(T-1)", "(string)"), "INT113"),
        (chain(4_000, "T{i}: {{a: T{above}}}").replace("T-1", "int"), "INT113"),
        (chain(4_000, "T{i}: {{a: T{above}}}").replace("T-1", "T3999"), "INT104"),
        (f"types:\n  A: {{x: {'[' * 40}B{']' * 40}}}\n  B: {{x: {'[' * 30}int{']' * 30}}}\n", "INT113"),
        ("types:\n  A0: {}\n" + "".join(f"  B{i}(A{i}): {{}}\n  C{i}(A{i}): {{}}\n  A{i + 1}(B{i}, C{i}): {{}}\n"
                                        for i in range(20)), "INT113"),
        ("types:\n  A0: {x: int}\n" + "".join(f"  A{i + 1}: {{a: A{i}, b: A{i}}}\n" for i in range(40)), "INT108"),
        ("types:\n  B: {x: int}\n" + "".join(f"  T{i}(B): {{y: int}}\n" for i in range(3_000))
         + "events:\n  E: {b: B, c: B}\n", "INT108"),
        ("types:\n  B: {" + ", ".join(f"a{i}: int" for i in range(2_000)) + "}\n"
         + "".join(f"  T{i}(B): {{}}\n" for i in range(1_000)), "INT113"),
    ],
    ids=["supertypes", "names", "nesting", "circle", "lists", "diamonds", "doubling", "subtypes", "attributes"],
)  # fmt: skip
def test_what_is_too_large_is_refused_once_and_soon(text: str, code: str) -> None:
    started = time.process_time()
    types, problems = load(text)
    assert [problem.code.code for problem in problems] == [code]
    assert time.process_time() - started < 10
    for type in types.declared[:20]:
        assert types.subtypes(type)[0] is type


def test_limits_are_not_reached_from_below() -> None:
    deep = chain(64, "T{i}(T{above}): {{a{i}: int}}").replace("(T-1)", "")
    assert faults(deep) == []
    assert faults(deep + "  One(T63): {}\n  More(One): {}\n") == ["types/1.yaml:66:7 INT113"]
    wide = "events:\n  E: {" + ", ".join(f"a{i}: int" for i in range(9_999)) + "}\n"
    assert faults(wide) == []
    assert faults(wide.replace("}", ", z: int}")) == ["types/1.yaml:2:3 INT108"]


def test_many_unknown_names_stay_cheap() -> None:
    text = "types:\n" + "".join(f"  T{i}: {{a: Unknown{i}, b: double unit{i}}}\n" for i in range(2_000))
    started = time.process_time()
    _, problems = load(text)
    assert len(problems) == 4_000
    assert time.process_time() - started < 10


@cases(2_500, 10_000)
def test_thousands_of_types_are_loaded_in_seconds(cases: int) -> None:
    text = "types:\n" + "".join(f"  T{i}: {{x: double m, at: timestamp, tags: [string]}}\n" for i in range(cases))
    started = time.process_time()
    types = types_of(text)
    assert len(types.declared) == cases
    assert time.process_time() - started < cases / 250


def test_decimals_can_be_named() -> None:
    price = types_of("types:\n  Price(decimal(18,2)): {}\n  A: {p: Price EUR, q: double}\nunits: {EUR: currency}")
    assert price.get("Price") == Named("Price", Decimal(18, 2))
    assert price.subtypes(Decimal(18, 2)) == (Decimal(18, 2), Named("Price", Decimal(18, 2)))
    assert price.get("double") is DOUBLE
