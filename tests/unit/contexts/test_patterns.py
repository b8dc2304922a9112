"""Patterns: what is read, its normal form, what is refused and where, and which places one matches."""

from __future__ import annotations

import pytest

from situ.contexts.model import Pattern, Qualifier
from situ.contexts.patterns import Traversal, TraversalStep, matches, print_pattern, read_pattern
from situ.lang.expr.syntax import locate_in
from situ.lang.problems import Problems, render
from situ.lang.types.model import DOUBLE, Decimal, ListOf, Struct, Type
from situ.lang.types.table import Types
from tests.types_files import types_of

SHIPPING = """
    types:
      Position: {x: double, y: double}
      PositionWithHeight(Position): {z: double}
      Money: {currency: string, amount: "decimal(18,2)"}
      TagId(string): {}
      Goods: {at: Position, worth: Money, tag: TagId}
      Cold: {celsius: double}
      Drug(Goods): {cold: Cold}
      Crate: {goods: Goods, spare: Position, Position: Position}
      acme.Lid: {width: double}
    events:
      Shipment: {main: Crate, crates: [Crate], grid: [[Position]], notes: [string], origin: Position, lid: acme.Lid}
      AirShipment(Shipment): {at: Position}
      acme.Order: {acme: acme.Lid, total: Money}
"""
TYPES = types_of(SHIPPING)


def type_of(name: str) -> Type:
    found = TYPES.get(name)
    assert found is not None
    return found


def event(name: str) -> Struct:
    found = TYPES.event(name)
    assert found is not None
    return found


def read(text: str, types: Types = TYPES, root: Types | None = None) -> Pattern:
    problems = Problems()
    pattern = read_pattern(text, types, problems, locate_in(text), root=root)
    assert pattern is not None, "\n".join(map(render, problems))
    return pattern


def faults(text: str) -> list[str]:
    """Each problem with the part of the text that it is about."""
    problems = Problems()
    pattern = read_pattern(text, TYPES, problems, locate_in(text))
    assert (pattern is None) == bool(problems.errors)
    return [
        f"{problem.code.code} {text[problem.location.column - 1 :][: problem.location.length]}"
        for problem in problems
        if problem.location is not None
    ]


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("Position", "Position"),
        (" Shipment . origin ", "Shipment.origin(Position)"),
        ("Shipment.origin(PositionWithHeight)", "Shipment.origin(PositionWithHeight)"),
        ("Shipment.origin.x", "Shipment.origin(Position).x(double)"),
        ("Shipment.Position", "Shipment.Position"),
        ("Shipment.Crate.Goods.Position", "Shipment.Crate.Goods.Position"),
        ("Shipment.crates", "Shipment.crates([Crate])"),
        ("Shipment.crates[]", "Shipment.crates[](Crate)"),
        ("Shipment.crates[](Crate)", "Shipment.crates[](Crate)"),
        ("Shipment.crates.spare", "Shipment.crates[](Crate).spare(Position)"),
        ("Shipment.crates([Crate]).spare", "Shipment.crates[](Crate).spare(Position)"),
        ("Shipment.crates[].spare(Position)", "Shipment.crates[](Crate).spare(Position)"),
        ("Shipment.crates[].Goods", "Shipment.crates[](Crate).Goods"),
        ("[Crate]", "[Crate]"),
        ("Shipment.[Crate]", "Shipment.[Crate]"),
        ("Shipment.grid", "Shipment.grid([[Position]])"),
        ("Shipment.grid[]", "Shipment.grid[]([Position])"),
        ("Shipment.grid[](PositionWithHeight)", "Shipment.grid[](PositionWithHeight)"),
        ("Shipment.grid.x", "Shipment.grid[](Position).x(double)"),
        ("Shipment.grid[].x", "Shipment.grid[](Position).x(double)"),
        ("Shipment.[Position]", "Shipment.[Position]"),
        ("Shipment.notes[]", "Shipment.notes[](string)"),
        ("Shipment.Cold", "Shipment.Cold"),  # only where the goods are drugs
        ("Shipment.Crate.Drug.Cold", "Shipment.Crate.Drug.Cold"),
        ("Shipment.Crate.:Position", "Shipment.Crate.Position"),
        ("Shipment.:[Crate]", "Shipment.[Crate]"),
        ("decimal(18,2)", "decimal(18,2)"),
        ("Shipment.decimal( 18 , 2 )", "Shipment.decimal(18,2)"),
        ("Shipment.:decimal(18,2)", "Shipment.decimal(18,2)"),
        ("acme.Lid", "acme.Lid"),
        ("acme.Order.acme", "acme.Order.acme(acme.Lid)"),
        ("acme.Order.acme.width", "acme.Order.acme(acme.Lid).width(double)"),
        ("acme.Order.:acme.Lid", "acme.Order.acme.Lid"),
        ("acme.Order.total.amount(decimal(18,2))", "acme.Order.total(Money).amount(decimal(18,2))"),
        ("Shipment.acme.Lid.width", "Shipment.acme.Lid.width(double)"),
        ("Shipment.lid(acme.Lid).double", "Shipment.lid(acme.Lid).double"),
        ("root:Shipment.root:Position", "Shipment.Position"),
        ("Shipment.origin(root:Position)", "Shipment.origin(Position)"),
        ("string", "string"),
        ("situ.deadletter.code", "situ.deadletter.code(string)"),
    ],
)
def test_patterns_are_read_into_their_normal_form(written: str, normal: str) -> None:
    pattern = read(written)
    assert str(pattern) == normal
    assert pattern.text == written.strip()
    again = read(print_pattern(pattern))
    assert again == pattern
    assert len(print_pattern(pattern)) <= len(written.replace(" ", "").replace("root:", ""))


def test_patterns_are_identical_by_their_normal_form() -> None:
    assert read("Shipment.crates.spare") == read("Shipment.crates[](Crate).spare(Position)")
    assert read("Shipment.origin") != read("Shipment.Position")
    assert read("Shipment.crates") != read("Shipment.crates[]")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("", "INT201 "),
        ("Shipment.", "INT201 "),
        ("Shipment..origin", "INT201 ."),
        (".Shipment", "INT201 ."),
        ("Shipment origin", "INT201 origin"),
        ("Shipment.origin(", "INT201 "),
        ("Shipment.origin(Position", "INT201 "),
        ("Shipment.origin(Position) x", "INT201 x"),
        ("Shipment.crates[0]", "INT201 0"),
        ("[Crate", "INT201 "),
        ("[Crate]]", "INT201 ]"),
        ("Shipment.*", "INT201 *"),
        ("decimal(0,2)", "INT201 0"),
        ("Shipment.:origin(Position)", "INT201 ("),
        ("[" * 65 + "Crate", "INT201 ["),
        (".".join(["a"] * 300), "INT201 a"),
        ("Shipment.origin" + "x" * 200, "INT201 origin" + "x" * 200),
        ("Shipmint", "INT202 Shipmint"),
        ("[Krate]", "INT202 Krate"),
        ("Shipment.orign", "INT202 orign"),
        ("Shipment.:origin", "INT202 origin"),
        ("Shipment.orign[]", "INT202 orign"),
        ("Shipment.Crate(Crate)", "INT202 Crate"),
        ("Shipment.origin(Posision)", "INT202 Posision"),
        ("root:Nothing.x", "INT202 Nothing"),
        ("decimal", "INT202 decimal"),
        ("Shipment.origin[]", "INT203 origin[]"),
        ("Shipment.at", "INT202 at"),  # only AirShipment has it
        ("Shipment.notes.string", "INT203 notes"),
        ("Shipment.[Crate].spare", "INT203 [Crate]"),
        ("[Crate].spare", "INT203 [Crate]"),
        ("double.x", "INT203 double"),
        ("Shipment[]", "INT203 Shipment[]"),
        ("Shipment(AirShipment).at", "INT203 Shipment(AirShipment)"),
        ("Position.Money", "INT203 Money"),
        ("Shipment.Goods.Position", "INT203 Goods"),  # only the last part skips levels
        ("Shipment.Shipment", "INT203 Shipment"),
        ("Shipment.main(Goods)", "INT204 Goods"),
        ("Shipment.crates(Crate)", "INT204 Crate"),
        ("Shipment.crates[]([Crate])", "INT204 [Crate]"),
        ("AirShipment.origin(PositionWithHeight).x(string)", "INT204 string"),
    ],
)
def test_patterns_that_cannot_be_are_refused_at_the_place(written: str, expected: str) -> None:
    assert faults(written) == [expected]


def test_nearest_names_are_offered_and_remedies_named() -> None:
    problems = Problems()
    read_pattern("Shipment.crate", TYPES, problems)
    read_pattern("Shipment.crates(Crate)", TYPES, problems)
    read_pattern("Shipment.[Crate].spare", TYPES, problems)
    read_pattern("Shipment.Goods.Position", TYPES, problems)
    assert [(problem.message, problem.hint) for problem in problems] == [
        ("There is no attribute `crate` in `Shipment`, and no type of this name.", "Did you mean `Crate` or `crates`?"),
        (
            "`Crate` is no subtype of `[Crate]`, which `Shipment` declares for `crates`.",
            "Possible types are `[Crate]`; `crates` alone means any of them.",
        ),
        (
            "`[Crate]` cannot occur here: a `[Crate]` has no attributes, so nothing can follow it.",
            "For the elements write `Crate`.",
        ),
        (
            "`Goods` cannot occur here: no attribute of `Shipment` can be a `Goods`.",
            "Only the last part of a pattern skips levels: name those that lie between.",
        ),
    ]


def test_name_of_an_attribute_and_a_type_is_the_attribute_with_a_warning() -> None:
    assert faults("Shipment.main.Position") == ["INT107 Position"]
    assert read("Shipment.main.Position").qualifiers[-1].attribute == "Position"
    assert faults("Shipment.main.:Position") == []
    assert read("Shipment.main.:Position").qualifiers[-1] == Qualifier(type=type_of("Position"))
    assert faults("Shipment.main.Position(Position)") == []
    assert faults("Shipment.Position") == []


def test_hidden_types_are_reached_through_root() -> None:
    own = types_of("types:\n  Position: {lat: double, lon: double}\nevents:\n  Seen: {at: Position}\n")
    pattern = read("root:Position", own, TYPES)
    assert pattern.head == type_of("Position") != own.get("Position")
    assert print_pattern(pattern, own) == "root:Position"
    assert print_pattern(read("Position", own, TYPES), own) == "Position"
    assert read("Seen.at(:Position)", own, TYPES) == read("Seen.at", own, TYPES)


def test_printed_patterns_read_back_without_a_warning_where_names_run_into_each_other() -> None:
    types = types_of("""
        types:
          acme: {Lid: double, Order: string, date: date, pair: [acme.Lid]}
          acme.Lid: {x: double}
          Order: {total: double, lid: acme.Lid}
        events:
          E: {acme: acme, Order: Order, orders: [Order], own: acme}
    """)
    written = [
        *("acme.Lid(double)", "acme.:double", "E.own.Lid", "E.:acme.Lid(double)", "E.:acme.:acme.Lid.x", "E.:acme.Lid"),
        *("E.acme(acme).date(date)", "E.:Order.total", "E.orders.lid", "E.orders[]", "E.own.pair.x", "E.own.pair"),
        *("E.Order(Order)", "E.:Order", "E.own.:acme.Lid", "E.own.date(date)", "E.own.:date"),
    ]
    for text in written:
        problems = Problems()
        pattern = read_pattern(text, types, problems)
        assert pattern is not None, (text, list(map(str, problems)))
        printed = print_pattern(pattern, types)
        assert read_pattern(printed, types, problems) == pattern, (text, printed)
        assert not list(problems), (text, printed, list(map(str, problems)))
    hidden = read("root:Shipment.origin", own_shipments(), TYPES)
    assert print_pattern(hidden, own_shipments()) == "root:Shipment.origin(root:Position)"
    assert read("root:Shipment.origin(root:Position)", own_shipments(), TYPES) == hidden


def own_shipments() -> Types:
    return types_of("types:\n  Position: {lat: double}\nevents:\n  Shipment: {at: Position}\n")


def way(name: str, *steps: tuple[str, str]) -> Traversal:
    """A place: ``crates[]`` with the type of the value there, and so on."""
    return Traversal(
        event=event(name),
        steps=tuple(
            TraversalStep(
                attribute=attribute.removesuffix("[]"), elements=attribute.endswith("[]"), type=read(type).head
            )
            for attribute, type in steps
        ),
    )


EVENT = way("Shipment")
AIR = way("AirShipment")
ORIGIN = way("Shipment", ("origin", "Position"))
HIGH = way("AirShipment", ("origin", "PositionWithHeight"))
CRATES = way("Shipment", ("crates", "[Crate]"))
CRATE = way("Shipment", ("crates[]", "Crate"))
SPARE = way("Shipment", ("crates[]", "Crate"), ("spare", "Position"))
AT = way("Shipment", ("main", "Crate"), ("goods", "Drug"), ("at", "Position"))
TAG = way("Shipment", ("main", "Crate"), ("goods", "Goods"), ("tag", "TagId"))
ROW = way("Shipment", ("grid[]", "[Position]"))
CELL = way("Shipment", ("grid[]", "Position"))
PLACES = (EVENT, AIR, ORIGIN, HIGH, CRATES, CRATE, SPARE, AT, TAG, ROW, CELL)


def test_places_print_as_paths() -> None:
    assert [str(place) for place in PLACES] == [
        *("", "", "origin", "origin", "crates", "crates[]", "crates[].spare"),
        *("main.goods.at", "main.goods.tag", "grid[]", "grid[][]"),
    ]
    assert AT.type == type_of("Position")
    assert AIR.type == AIR.event
    assert AT.types == (type_of("Shipment"), type_of("Crate"), type_of("Drug"), type_of("Position"))


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("Shipment", [EVENT, AIR]),
        ("AirShipment", [AIR]),
        ("Position", [ORIGIN, HIGH, SPARE, AT, CELL]),
        ("PositionWithHeight", [HIGH]),
        ("[Crate]", [CRATES]),
        ("[Position]", [ROW]),
        ("Crate", [CRATE]),
        ("string", [TAG]),
        ("TagId", [TAG]),
        ("Shipment.Position", [ORIGIN, HIGH, SPARE, AT, CELL]),
        ("AirShipment.Position", [HIGH]),
        ("Crate.Position", []),
        ("Shipment.origin", [ORIGIN, HIGH]),
        ("Shipment.origin(PositionWithHeight)", [HIGH]),
        ("Shipment.crates", [CRATES]),
        ("Shipment.crates[]", [CRATE]),
        ("Shipment.crates.spare", [SPARE]),
        ("Shipment.crates.:Position", [SPARE]),
        ("Shipment.main.:Position", [AT]),
        ("Shipment.Crate.:Position", [SPARE, AT]),
        ("Shipment.Crate.Drug.Position", [AT]),
        ("Shipment.Crate.Goods.tag", [TAG]),
        ("Shipment.grid[]", [ROW]),
        ("Shipment.grid[](Position)", [CELL]),
        ("Shipment.[[Position]]", []),
    ],
)
def test_patterns_match_places(pattern: str, expected: list[Traversal]) -> None:
    assert [place for place in PLACES if matches(read(pattern), place)] == expected


def test_decimals_and_lists_in_patterns_are_types() -> None:
    assert read("decimal(18,2)").head == Decimal(18, 2)
    assert read("[[double]]").head == ListOf(ListOf(DOUBLE))
