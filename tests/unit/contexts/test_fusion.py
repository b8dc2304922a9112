"""From one context straight to another, without the root event in between."""

from __future__ import annotations

import decimal
from typing import Any

import pytest

from situ.contexts.model import Direction
from situ.contexts.transform.fusion import FusedConverter, FusedTransformation, fuse
from situ.contexts.transform.transformation import transformations
from situ.lang.expr.format import print_expression
from situ.lang.expr.runtime import FAILURES
from situ.lang.problems import Problems
from tests.context_files import fused_transformations, load

ENVELOPE = {"id": "1", "source": "gate", "type": "Read", "time": None}


def between(types: str, producer: str, consumer: str, event: str) -> FusedTransformation:
    contexts, problems = load({"types/t.yaml": types, "contexts/p.yaml": producer, "contexts/c.yaml": consumer})
    assert not [problem for problem in problems if problem.is_error], "\n".join(map(str, problems))
    inbound = transformations(contexts.by_id["p"], Direction.IN, Problems())
    outbound = transformations(contexts.by_id["c"], Direction.OUT, Problems())
    return fused_transformations(inbound, outbound)[event]


TYPES = """
types:
  Spot: {x: double m, y: double m}
events:
  Sighting: {who: string, at: Spot, near: [Spot], note: optional string, weight: double kg}
"""
FEET = """
context: p
types: {Place: {x: double ft, y: double ft}}
events: {Read: {tag: string, at: Place, near: [Place], grams: double g}}
maps:
  - in: Read -> Sighting
    attributes: {who: {expr: "upper(tag)"}, weight: grams, note: {default: seen}}
"""
INCHES = """
context: c
types: {Where: {x: double in, y: double in}}
events: {Seen: {person: string, at: Where, near: [Where], note: optional string, what: string}}
maps:
  - out: Sighting -> Seen
    attributes: {person: who, what: {expr: "event.type || '/' || event.source"}}
"""
EVENT: dict[str, Any] = {"tag": "a7", "at": {"x": 1.0, "y": 2.0}, "near": [{"x": 3.0, "y": 1.0}, None], "grams": 5.0}


def test_what_is_made_only_to_be_taken_apart_is_not_made() -> None:
    way = between(TYPES, FEET, INCHES, "Read")
    shown = print_expression(way.node)
    assert "upper(tag) AS person" in shown
    assert "'Sighting' || '/' || event.source AS what" in shown, "on the way out the type is that of root"
    assert shown.count("transform(") == 1, "one loop over the list, not two"
    assert "'seen' AS note" in shown
    found = FusedConverter(way).data(ENVELOPE, EVENT)
    assert found["at"]["x"] == pytest.approx(12.0)
    assert [each and each["x"] for each in found["near"]] == [pytest.approx(36.0), None]
    assert {name: found[name] for name in ("person", "note", "what")} == {
        "person": "A7",
        "note": "seen",
        "what": "Sighting/gate",
    }


def test_what_fails_on_the_way_in_fails_even_if_the_consumer_does_not_ask_for_it() -> None:
    way = between(TYPES, FEET.replace("grams", "kilos").replace("double g}", "double t}"), INCHES, "Read")
    converter = FusedConverter(way)
    heavy = {"tag": "a7", "at": {"x": 1.0, "y": 2.0}, "near": [], "kilos": 1.7e308}
    with pytest.raises(FAILURES):
        converter.data(ENVELOPE, heavy)
    assert [(each.code.code, each.values["path"]) for each in converter.faults(ENVELOPE, heavy)] == [
        ("INT704", "weight")
    ]
    assert converter.data(ENVELOPE, {**heavy, "kilos": 1.0})["person"] == "A7"


def test_nothing_is_looked_at_twice_if_the_consumer_asks_for_it() -> None:
    way = between(
        "events: {E: {a: double m, b: optional double m}}",
        "context: p\nevents: {F: {a: double ft, b: optional double ft}}\nmaps: [in: F -> E]",
        "context: c\nevents: {G: {a: double ft, b: optional double ft}}\nmaps: [out: E -> G]",
        "F",
    )
    shown = print_expression(way.node)
    assert shown.startswith("struct(")
    assert "IS NULL" not in shown


def test_what_neither_changes_stays_the_same_text() -> None:
    way = between("events: {E: {a: double m}}", "context: p\n", "context: c\n", "E")
    assert way.is_identity
    assert FusedConverter(way).text(ENVELOPE, b'{"a":1}') == b'{"a":1}'


def test_a_type_that_does_not_lead_there_has_no_way() -> None:
    contexts, _ = load(
        {
            "types/t.yaml": "events: {E: {a: double m}, O: {a: string}}",
            "contexts/p.yaml": "context: p\nevents: {F: {a: double ft}}\nmaps: [in: F -> E]",
            "contexts/c.yaml": "context: c\nevents: {E: {a: string}}",
        }
    )
    inbound = transformations(contexts.by_id["p"], Direction.IN, Problems())
    outbound = transformations(contexts.by_id["c"], Direction.OUT, Problems())
    assert list(fused_transformations(inbound, outbound)) == ["O"]


def test_rows_of_tables_are_looked_up_by_what_the_other_way_would_have_made() -> None:
    contexts, problems = load(
        {
            "types/t.yaml": """
                units: {EUR: currency, USD: currency}
                types:
                  Money: {currency: string, amount: "decimal(18,2)"}
                events:
                  E: {prices: "[Money] EUR"}
                """,
            "contexts/p.yaml": """
                context: p
                types: {Sum: {code: string, amount: "decimal(18,2)"}}
                events: {F: {prices: "[Sum] EUR"}}
                maps: [in: F -> E]
                rules: {in: [Sum -> to_money]}
                functions:
                  to_money: Sum -> Money = struct(upper(value.code) AS currency, value.amount AS amount)
                """,
            "contexts/c.yaml": """
                context: c
                events: {E: {prices: "[Money] USD"}}
                maps: [out: E -> E]
                functions:
                  to_dollars:
                    signature: Money EUR -> Money USD
                    time: event
                    lookup: {fx: {source: fx_rates, key: {base: value.currency, quote: "'USD'"}, as_of: valid_from}}
                    expr: struct('USD' AS currency, round(value.amount * fx.rate, 2) AS amount)
                """,
        }
    )
    assert not [problem for problem in problems if problem.is_error], "\n".join(map(str, problems))
    inbound = transformations(contexts.by_id["p"], Direction.IN, Problems())["F"]
    outbound = transformations(contexts.by_id["c"], Direction.OUT, Problems())["E"]
    assert not fused_transformations({"F": inbound}, {"E": outbound}), "nobody says how rows are found"
    with pytest.raises(ValueError, match="nobody finds"):
        fuse(inbound, outbound)

    def find(base: str, quote: str, time: Any) -> dict[str, Any] | None:
        assert (quote, time) == ("USD", ENVELOPE["time"])
        return {"rate": decimal.Decimal("1.100000")} if base == "EUR" else None

    way = fuse(inbound, outbound, ({}, dict.fromkeys(outbound.externals, find)))
    converter = FusedConverter(way)
    text = b'{"prices":[{"code":"eur","amount":"10.00"},null]}'
    assert converter.text(ENVELOPE, text) == b'{"prices":[{"currency":"USD","amount":"11.00"},null]}'
    with pytest.raises(FAILURES):
        converter.text(ENVELOPE, text.replace(b"eur", b"xxx"))
    bad = {"prices": [{"code": "xxx", "amount": decimal.Decimal("1.00")}]}
    assert [(each.code.code, each.values["path"]) for each in converter.faults(ENVELOPE, bad)] == [
        ("INT705", "prices[0]")
    ]
