"""Compiled converters: values and text, what is read and what is not, and what fails."""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
from typing import Any

import msgspec
import pytest

from situ.contexts.model import Direction, TableLookup
from situ.contexts.transform.converter import Converter
from situ.contexts.transform.transformation import transformations
from situ.lang.expr.runtime import FAILURES
from situ.lang.problems import Problems
from situ.lang.types.json_codec import encode
from tests.context_files import load
from tests.oracles.transformation import transform

ENVELOPE = {"id": "7", "source": "gate", "type": "E", "time": dt.datetime(2026, 11, 1, tzinfo=dt.UTC)}


def converter(types: str, context: str) -> Converter:
    contexts, problems = load({"types/t.yaml": types, "contexts/c.yaml": f"context: c\n{context}"})
    assert not [problem for problem in problems if problem.is_error], "\n".join(map(str, problems))
    found = Problems()
    made = transformations(contexts.by_id["c"], Direction.OUT, found)
    assert "E" in made, "\n".join(map(str, found))
    return Converter(made["E"])


EVERYTHING = """
types:
  Inner: {when: timestamp, how: "decimal(9,2)", n: long}
  More(Inner): {extra: duration}
events:
  E: {b: boolean, i: int m, d: double degC, s: string, raw: bytes, day: date, at: timestamp, for: duration,
      price: "decimal(9,2) km", inner: Inner, list: "[Inner]", opt: optional timestamp}
"""
INNER = {"when": "2026-11-01T08:30:00.500000Z", "how": "1.50", "n": 3}
JSON: dict[str, Any] = {
    "b": True,
    "i": 5,
    "d": 20.0,
    "s": "straße",
    "raw": "AP8=",
    "day": "2026-11-01",
    "at": "2026-11-01T08:30:00Z",
    "for": "PT1H30M",
    "price": "1.25",
    "inner": {"$type": "More", **INNER, "extra": "PT5S"},
    "list": [INNER, None],
}


def test_text_becomes_text_in_the_order_of_the_target_and_in_canonical_form() -> None:
    made = converter(
        EVERYTHING,
        """
events:
  E: {list: "[Inner]", inner: Inner, price: "decimal(12,1) m", for: duration, at: timestamp, day: date, raw: bytes,
      s: string, d: double K, i: double cm, b: boolean, opt: optional timestamp, later: timestamp, late: duration}
maps:
  - out: E -> E
    attributes: {later: {expr: "at + DURATION 'PT0.5S'"}, late: {expr: "for * 2"}}
""",
    )
    found = msgspec.json.decode(made.text(ENVELOPE, msgspec.json.encode(JSON)))
    assert list(found.items()) == [
        ("list", [INNER, None]),
        ("inner", JSON["inner"]),
        ("price", "1250.0"),
        ("for", "PT1H30M"),
        ("at", "2026-11-01T08:30:00Z"),
        ("day", "2026-11-01"),
        ("raw", "AP8="),
        ("s", "straße"),
        ("d", 293.15),
        ("i", 500.0),
        ("b", True),
        ("later", "2026-11-01T08:30:00.500000Z"),
        ("late", "PT3H"),
    ]


def test_what_is_only_copied_is_not_read() -> None:
    """Text that no reader takes comes through unharmed where it is copied, and is noticed where it is used."""
    types = "types:\n  T: {a: int}\nevents:\n  E: {t: T, n: int, unused: T}\n"
    made = converter(types, "events:\n  E: {n: long, t: T}\nmaps: [{out: E -> E}]\n")
    assert made.text(ENVELOPE, b'{"t":{"a": "odd" },"n":1,"unused":7}') == b'{"n":1,"t":{"a": "odd" }}'
    made = converter(types, "events:\n  E: {n: double, t: T}\nmaps: [{out: E -> E}]\n")
    with pytest.raises(msgspec.ValidationError):
        made.text(ENVELOPE, b'{"t":{"a":1},"n":"odd","unused":{"a":1}}')


def test_an_event_that_does_not_change_stays_the_same_bytes() -> None:
    made = converter(EVERYTHING, "rules: []\n")
    text = b' {"any": "text"} '
    assert made.text(ENVELOPE, text) is text
    data = {"any": object()}
    assert made.data(ENVELOPE, data) is data


def test_what_was_there_and_is_null_now_is_left_out_of_the_text() -> None:
    types = "types:\n  T: {a: int, b: string}\nevents:\n  E: {s: string, t: T, of: T, n: int}\n"
    context = """
types:
  U: {a: optional int, b: string}
events:
  E: {s: optional string, t: optional T, of: U, n: int}
maps: [{out: E -> E, attributes: {s: {expr: "CASE WHEN s <> '' THEN s END"}, t: {expr: "CASE WHEN n > 1 THEN t END"}}}]
rules: [E.of -> less]
functions:
  less: {signature: T -> U, expr: "struct(CASE WHEN value.a > 0 THEN value.a END AS a, value.b AS b)"}
"""
    made = converter(types, context)
    text = b'{"s":"","t":{"a":1,"b":"x"},"of":{"a":0,"b":"y"},"n":1}'
    assert made.text(ENVELOPE, text) == b'{"of":{"b":"y"},"n":1}'
    kept = b'{"s":"z","t":{"a":1,"b":"x"},"of":{"a":2,"b":"y"},"n":2}'
    assert made.text(ENVELOPE, kept) == kept


def test_values_that_are_copied_and_used_are_written_canonically() -> None:
    types = 'events:\n  E: {at: timestamp, list: "[timestamp]", n: optional int}\n'
    context = """
events:
  E: {at: timestamp, ms: long, list: "[timestamp]", first: optional timestamp}
maps:
  - out: E -> E
    attributes: {ms: {expr: epoch_ms(at)}, first: {expr: "element_at(list, 1)"}}
"""
    text = b'{"at":"1970-01-01T00:00:01Z","list":["1970-01-01T00:00:00.250000Z",null]}'
    assert converter(types, context).text(ENVELOPE, text) == (
        b'{"at":"1970-01-01T00:00:01Z","ms":1000,"list":["1970-01-01T00:00:00.250000Z",null],'
        b'"first":"1970-01-01T00:00:00.250000Z"}'
    )


def test_subtypes_that_disagree_on_an_attribute_are_converted_by_way_of_values() -> None:
    types = """
    types:
      Base: {n: int}
      One(Base): {x: timestamp}
      Two(Base): {x: string}
    events:
      E: {v: Base}
    """
    context = """
types:
  Out: {n: long, x: optional string}
events:
  E: {v: Out}
maps: [{out: E -> E}]
rules:
  out: [One -> named]
functions:
  named: One -> Out = struct(value.n AS n, format_time(value.x, 'yyyy', 'UTC') AS x)
"""
    made = converter(types, context)
    one = b'{"v":{"$type":"One","n":1,"x":"2026-11-01T08:30:00Z"}}'
    assert made.text(ENVELOPE, one) == b'{"v":{"n":1,"x":"2026"}}'
    assert made.text(ENVELOPE, b'{"v":{"$type":"Two","n":1,"x":"text"}}') == b'{"v":{"n":1,"x":"text"}}'
    assert made.text(ENVELOPE, b'{"v":{"n":1}}') == b'{"v":{"n":1}}'


def test_functions_read_the_envelope_and_the_event() -> None:
    types = "types:\n  Tag(string): {}\nevents:\n  E: {tag: Tag, id: string}\n"
    context = """
events:
  E: {tag: string, id: string}
maps: [{out: E -> E}]
rules:
  out: [Tag -> full]
functions:
  full: Tag -> string = event.source || '/' || event.id || '/' || data.id || '/' || value
"""
    made = converter(types, context)
    assert made.transformation.reads_envelope
    assert made.text(ENVELOPE, b'{"tag":"t","id":"mine"}') == b'{"tag":"gate/7/mine/t","id":"mine"}'


def test_nothing_is_looked_up_by_name_while_it_runs() -> None:
    context = """
events:
  E: {a: double km, b: string}
maps: [{out: E -> E}]
rules:
  out: [string -> shout]
functions:
  shout: string -> string = upper(value)
"""
    source = converter("events:\n  E: {a: double m, b: string}\n", context).function.source
    assert source.count("def ") == 1
    assert "shout" not in source
    assert "data['a'] / 1000.0" in source


def test_all_failing_places_are_found_from_text_too() -> None:
    types = 'types:\n  Line: {qty: int m, n: optional int}\nevents:\n  E: {lines: "[Line]", n: optional int}\n'
    context = """
types:
  Row: {qty: int cm, n: int}
events:
  E: {lines: "[Row]", n: int}
maps: [{out: E -> E}]
"""
    made = converter(types, context)
    text = b'{"lines":[{"qty":40000000,"n":1},{"qty":1},null]}'
    with pytest.raises(FAILURES):
        made.text(ENVELOPE, text)
    found = made.text_faults(ENVELOPE, text)
    assert [(each.code.code, each.values["path"]) for each in found] == [
        ("INT704", "lines[0].qty"),
        ("INT707", "lines[1].n"),
        ("INT707", "n"),
    ]
    assert found[0].values["function"] == "m → cm"
    assert made.text(ENVELOPE, b'{"lines":[],"n":3}') == b'{"lines":[],"n":3}'
    assert made.text_faults(ENVELOPE, b'{"lines":[],"n":3}') == ()


@pytest.mark.parametrize(
    ("type", "value", "into", "expected"),
    [
        ("double m", 1.0, "double km", 0.001),
        ("double degC", 20.0, "double degF", 68.0),
        ("int m", 3, "int cm", 300),
        ("int m", 3, "long mm", 3000),
        ("long h", 2, "double min", 120.0),
        ('"decimal(9,2) m"', decimal.Decimal("1.25"), '"decimal(9,1) dm"', decimal.Decimal("12.5")),
        ('"decimal(9,2) m"', decimal.Decimal("1.25"), '"decimal(9,0) dm"', decimal.Decimal(12)),
        ('"decimal(9,2) m"', decimal.Decimal("1.35"), '"decimal(9,0) dm"', decimal.Decimal(14)),
        ("int ft", 3, '"decimal(9,4) m"', decimal.Decimal("0.9144")),
        ('"decimal(9,2) degC"', decimal.Decimal("-40.00"), '"decimal(9,2) degF"', decimal.Decimal("-40.00")),
    ],
)
def test_numbers_in_other_units(type: str, value: Any, into: str, expected: Any) -> None:
    made = converter(f"events:\n  E: {{a: {type}}}\n", f"events:\n  F: {{a: {into}}}\nmaps: [{{out: E -> F}}]\n")
    found = made.data(ENVELOPE, {"a": value})
    assert (found["a"], str(found["a"])) == (expected, str(expected))
    text = msgspec.json.encode(encode(made.transformation.source, {"a": value}))
    assert made.text(ENVELOPE, text) == msgspec.json.encode(encode(made.transformation.target, {"a": expected}))


def test_a_struct_s_unit_is_a_label_that_only_a_function_changes_and_a_point_s_that_of_its_coordinates() -> None:
    types = """
    units: {EUR: currency, USD: currency}
    types:
      Money: {amount: double}
    events:
      E: {price: Money EUR, at: Point m, list: "[double] m"}
    """
    context = """
events:
  E: {price: Money USD, at: Point cm, list: "[double] cm"}
maps: [{out: E -> E}]
functions:
  exchange: {signature: Money EUR -> Money USD, time: event, expr: struct(value.amount * 2 AS amount)}
"""
    data = {"price": {"amount": 1.5}, "at": {"x": 1.0, "y": 2.0}, "list": [1.0, None]}
    assert converter(types, context).data(ENVELOPE, data) == {
        "price": {"amount": 3.0},
        "at": {"x": 100.0, "y": 200.0},
        "list": [100.0, None],
    }


def test_the_reference_says_the_same() -> None:
    contexts, _ = load(
        {
            "types/t.yaml": "events:\n  E: {a: double m, b: optional int}\n",
            "contexts/c.yaml": "context: c\nevents:\n  E: {a: double km, b: int}\nmaps: [{out: E -> E}]\n",
        }
    )
    context = contexts.by_id["c"]
    event = context.root.types.event("E")
    assert event is not None
    good = transform(context, Direction.OUT, event, ENVELOPE, {"a": 5.0, "b": 1})
    assert (good.target.name, good.data, good.faults) == ("E", {"a": 0.005, "b": 1}, ())
    bad = transform(context, Direction.OUT, event, ENVELOPE, {"a": 5.0})
    assert (bad.data, bad.faults) == (None, (("b", "INT707"),))


def test_values_are_computed_before_what_they_read_is_changed() -> None:
    """Whichever way the parts refer to each other, nothing reads what was already converted."""
    types = """
    types:
      Tag(string): {}
      Line: {tag: Tag, n: int}
      Part: {tag: Tag}
    events:
      E: {one: optional Part, head: Tag, lines: "[Line]", two: optional Part}
    """
    context = """
types:
  Row: {n: double, tag: string}
  Piece: {tag: string}
events:
  E: {lines: "[Row]", two: optional Piece, one: optional Piece, head: string, was: string}
maps:
  - out: E -> E
    attributes: {was: {expr: "head || '?'"}}
rules:
  out: [Tag -> joined]
functions:
  joined: Tag -> string = value || '+' || event.head || '+' || coalesce(event.%s.tag, '-')
"""
    text = b'{"one":{"tag":"o"},"head":"h","lines":[{"tag":"a","n":1},null,{"tag":"b","n":2}],"two":{"tag":"t"}}'
    for name in ("one", "two"):
        tag = name[0]
        made = converter(types, context % name)
        assert msgspec.json.decode(made.text(ENVELOPE, text)) == {
            "lines": [{"n": 1.0, "tag": f"a+h+{tag}"}, None, {"n": 2.0, "tag": f"b+h+{tag}"}],
            "two": {"tag": f"t+h+{tag}"},
            "one": {"tag": f"o+h+{tag}"},
            "head": f"h+h+{tag}",
            "was": "h?",
        }


def test_rows_of_tables_are_found_by_functions_of_the_host_in_lists_too() -> None:
    types = """
    units: {EUR: currency, USD: currency}
    types:
      Money: {currency: string, amount: "decimal(18,2)"}
    events:
      E: {prices: "[Money] EUR"}
    """
    context = """
events:
  E: {prices: "[Money] USD"}
maps: [{out: E -> E}]
functions:
  to_dollars:
    signature: Money EUR -> Money USD
    time: event
    lookup: {fx: {source: fx_rates, key: {base: value.currency, quote: "'USD'"}, as_of: valid_from}}
    expr: struct('USD' AS currency, round(value.amount * fx.rate, 2) AS amount)
"""
    asked: list[Any] = []

    def find(base: str, quote: str, time: dt.datetime) -> dict[str, Any] | None:
        asked.append((base, quote, time))
        rate = {"EUR": "1.100000", "GBP": "1.300000"}.get(base)
        return None if rate is None else {"rate": decimal.Decimal(rate)}

    made = converter(types, context).transformation
    (external,) = made.externals.values()
    assert external.in_list
    finding = Converter(made, {external.variable: find})
    text = b'{"prices":[{"currency":"EUR","amount":"10.00"},null,{"currency":"GBP","amount":"2.00"}]}'
    assert finding.text(ENVELOPE, text) == (
        b'{"prices":[{"currency":"USD","amount":"11.00"},null,{"currency":"USD","amount":"2.60"}]}'
    )
    assert set(asked) == {("EUR", "USD", ENVELOPE["time"]), ("GBP", "USD", ENVELOPE["time"])}
    bad = b'{"prices":[{"currency":"EUR","amount":"10.00"},{"currency":"XXX","amount":"2.00"}]}'
    with pytest.raises(FAILURES):
        finding.text(ENVELOPE, bad)
    found = finding.text_faults(ENVELOPE, bad)
    assert [(each.code.code, each.values["path"], each.values["name"]) for each in found] == [
        ("INT705", "prices[1]", "fx")
    ]


def test_a_key_that_cannot_be_computed_is_what_is_told_of() -> None:
    types = "events:\n  E: {n: long, of: long}\n"
    context = """
events:
  E: {n: string, of: long}
maps: [{out: E -> E}]
rules: [E.n -> named]
functions:
  named:
    signature: long -> string
    lookup: {row: {source: fx_rates, key: {base: "CASE WHEN value % event.of > 0 THEN 'odd' ELSE 'even' END"}}}
    value: row.quote
"""
    made = converter(types, context).transformation
    (external,) = made.externals.values()
    finding = Converter(
        made, {external.variable: lambda base: {"base": base, "quote": "USD"} if base == "odd" else None}
    )
    assert finding.text(ENVELOPE, b'{"n":5,"of":2}') == b'{"n":"USD","of":2}'
    for text, code in ((b'{"n":4,"of":2}', "INT705"), (b'{"n":4,"of":0}', "INT704")):
        with pytest.raises(FAILURES):
            finding.text(ENVELOPE, text)
        (found,) = finding.text_faults(ENVELOPE, text)
        assert (found.code.code, found.values["path"]) == (code, "n")


def test_structs_are_made_of_rows_that_are_looked_up_once_for_an_event() -> None:
    types = """
    types:
      Badge(string): {}
      Person(string): {}
      Ahead: {dx: double}
      Place: {x: double, turned: double}
    events:
      E: {badge: Badge, door: string, at: Ahead}
    """
    context = """
events:
  E: {badge: Person, at: Place}
maps: [{out: E -> E}]
rules: [Badge -> person_of, Ahead -> place_of]
functions:
  person_of: {signature: Badge -> Person, lookup: {known: {source: badges, key: {tag: value}}}, value: known.id}
  place_of:
    signature: Ahead -> Place
    lookup: {mount: {source: doors, key: {id: event.door}}}
    expr: struct(mount.x + 0.01 * value.dx AS x, cos(mount.turned) * mount.x AS turned)
"""
    made = converter(types, context).transformation
    rows: dict[str, dict[Any, Any]] = {
        "badges": {"b1": {"tag": "b1", "id": "p1"}},
        "doors": {"d1": {"id": "d1", "x": 4.5, "turned": 0.25}, "d2": {"id": "d2", "x": 1e308, "turned": 1.0}},
    }
    asked: list[str] = []

    def finder(source: str) -> Any:
        def find(key: str) -> Any:
            asked.append(source)
            return rows[source].get(key)

        return find

    find = {name: finder(each.of.source) for name, each in made.externals.items() if isinstance(each.of, TableLookup)}
    finding = Converter(made, find)
    plan = finding.structs
    assert plan is not None
    for badge, door, ahead in itertools.product(("b1", "b2"), ("d1", "d2", "d3"), (120.0, 1.5e308)):
        text = msgspec.json.encode({"badge": badge, "door": door, "at": {"dx": ahead}})
        value = msgspec.json.decode(text, type=plan.takes)
        try:
            expected = finding.text(ENVELOPE, text)
        except FAILURES:
            assert badge == "b2" or door == "d3"
            with pytest.raises(FAILURES):
                plan.call({}, value)
        else:
            asked.clear()
            assert msgspec.json.encode(plan.call({}, value)) == expected
            assert sorted(asked) == ["badges", "doors"]
