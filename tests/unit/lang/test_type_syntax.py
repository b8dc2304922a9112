"""How types and attributes are written."""

from __future__ import annotations

import pytest

from situ.lang.problems import Location, SituError
from situ.lang.types.model import (
    AttributeText,
    Decimal,
    DecimalRef,
    HeadText,
    ListRef,
    NameRef,
    parse_attribute,
    parse_head,
    parse_type,
)


def locate(offset: int, length: int) -> Location:
    return Location(file="t.yaml", column=offset + 1, length=length)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("double", AttributeText(type=NameRef("double"))),
        ("double m", AttributeText(type=NameRef("double"), unit="m")),
        ("  double   km/h ", AttributeText(type=NameRef("double"), unit="km/h")),
        ("optional [Line]", AttributeText(type=ListRef(NameRef("Line")), optional=True)),
        ("decimal(18,2)", AttributeText(type=DecimalRef(Decimal(18, 2)))),
        ("decimal( 18 , 2 ) EUR", AttributeText(type=DecimalRef(Decimal(18, 2)), unit="EUR")),
        ("Money EUR", AttributeText(type=NameRef("Money"), unit="EUR")),
        ("[double] km/h", AttributeText(type=ListRef(NameRef("double")), unit="km/h")),
        ("Point m", AttributeText(type=NameRef("Point"), unit="m")),
        ("[[a.b.C]]", AttributeText(type=ListRef(ListRef(NameRef("a.b.C"))))),
        ("optionalThing", AttributeText(type=NameRef("optionalThing"))),
    ],
)
def test_attributes_are_read(text: str, expected: AttributeText) -> None:
    assert parse_attribute(text) == expected


@pytest.mark.parametrize(
    ("text", "column", "length", "found"),
    [
        ("", 1, 1, "the end"),
        ("optional", 9, 1, "the end"),
        ("[Line", 6, 1, "the end"),
        ("Line[]", 5, 1, "`[`"),
        ("string(20)", 7, 1, "`(`"),
        ("decimal", 8, 1, "the end"),
        ("decimal(18", 11, 1, "the end"),
        ("decimal(40,2)", 9, 2, "`40`"),
        ("decimal(2,3)", 9, 1, "`2`"),
        ("decimal(0,0)", 9, 1, "`0`"),
        ("decimal(x,2)", 9, 1, "`x`"),
        ("9lives", 1, 6, "`9lives`"),
        ("a..b", 1, 4, "`a..b`"),
        ("x" * 201, 1, 201, f"`{'x' * 201}`"),
    ],
)
def test_what_is_no_attribute_is_refused_at_its_place(text: str, column: int, length: int, found: str) -> None:
    with pytest.raises(SituError) as caught:
        parse_attribute(text, locate)
    [problem] = caught.value.problems
    assert problem.code.code == "INT109"
    assert problem.location == Location(file="t.yaml", column=column, length=length)
    assert problem.values["found"] == found


def test_lists_in_lists_have_a_limit() -> None:
    assert parse_type("[" * 64 + "int" + "]" * 64)
    with pytest.raises(SituError, match="INT109"):
        parse_type("[" * 65 + "int" + "]" * 65)
    with pytest.raises(SituError, match="INT109"):
        parse_type("[" * 1_000_000)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Name", HeadText(name="Name")),
        ("Name(Super, Other)", HeadText(name="Name", supers=(NameRef("Super"), NameRef("Other")))),
        ("Price(decimal(18,2))", HeadText(name="Price", supers=(DecimalRef(Decimal(18, 2)),))),
        ("a.B( C )", HeadText(name="a.B", supers=(NameRef("C"),))),
    ],
)
def test_heads_are_read(text: str, expected: HeadText) -> None:
    assert parse_head(text) == expected


@pytest.mark.parametrize("text", ["", "Käse", "A(", "A()", "A(B", "A(B,)", "A(B) C", "A B", "A([B])", "$type", "9"])
def test_what_is_no_head_is_refused(text: str) -> None:
    with pytest.raises(SituError, match="INT109"):
        parse_head(text)


def test_a_unit_knows_its_place() -> None:
    text = parse_attribute("optional double  km/h", locate)
    assert text.unit_place() == Location(file="t.yaml", column=18, length=4)


def test_a_type_alone_takes_nothing_else() -> None:
    with pytest.raises(SituError, match="a type alone"):
        parse_type("double m")
