"""What becomes of events on the way into a context and out of it, and what is said about it."""

from __future__ import annotations

import decimal
from collections.abc import Mapping
from typing import Any

import pytest

from situ.contexts.model import Direction
from situ.contexts.table import Contexts
from situ.contexts.transform.converter import Converter
from situ.contexts.transform.transformation import Transformation, transformations
from situ.lang.expr.tree import Read
from situ.lang.problems import Problems
from tests.context_files import LOGISTICS, load

ENVELOPE: Mapping[str, Any] = {"id": "1", "source": "truck-7", "type": "T"}


def contexts_of(files: Mapping[str, str]) -> Contexts:
    contexts, problems = load(files)
    assert not [problem for problem in problems if problem.is_error], "\n".join(map(str, problems))
    return contexts


def compiled(
    contexts: Contexts, id: str, direction: Direction = Direction.OUT
) -> tuple[Mapping[str, Transformation], Problems]:
    problems = Problems()
    return transformations(contexts.by_id[id], direction, problems), problems


def out(types: str, context: str, event: str = "E") -> tuple[Transformation | None, list[str]]:
    """The way of an event type out to a small context, and the codes of what is said about it."""
    contexts = contexts_of({"types/t.yaml": types, "contexts/c.yaml": f"context: c\n{context}"})
    made, problems = compiled(contexts, "c")
    return made.get(event), [problem.code.code for problem in problems]


def converted(types: str, context: str, data: dict[str, Any], event: str = "E") -> Any:
    made, codes = out(types, context, event)
    assert made is not None, codes
    return Converter(made).data(ENVELOPE, data)


def rows(made: Transformation) -> dict[str, str]:
    return {each.target: each.function for each in made.places}


# ── logistics ─────────────────────────────────────────────────────────────────────────────────────

UPDATE = {
    "coordinates": {"x": 30.48303, "y": 20.3084},
    "distanceRemaining": 3082.0,
    "destAddress": {"firstName": "Ada", "lastName": "Byron", "specifics": "street=Main;number=3791;zip=30834"},
}
LOG = {"address": UPDATE["destAddress"]}


def test_a_declared_function_beats_the_generic_conversion_of_units() -> None:
    made = compiled(contexts_of(LOGISTICS), "us")[0]["PositionUpdate"]
    assert Converter(made).data(ENVELOPE, UPDATE)["distanceRemaining"] == 3359.38
    assert rows(made) == {
        "coordinates": "copied",
        "distanceRemaining": "meters_to_yards",
        "destAddress": "to_us_address",
    }
    assert [each.units for each in made.places] == ["", "m → yd", ""]


def test_without_one_units_convert_exactly() -> None:
    text = LOGISTICS["contexts/root.yaml"].replace("meters_to_yards: double m", "unused: double s")
    made = compiled(contexts_of({**LOGISTICS, "contexts/root.yaml": text}), "us")[0]["PositionUpdate"]
    assert Converter(made).data(ENVELOPE, UPDATE)["distanceRemaining"] == pytest.approx(3370.516185, abs=1e-6)
    assert rows(made)["distanceRemaining"] == "m → yd"


def test_an_address_becomes_the_context_s_own_but_not_in_log_entries() -> None:
    made = compiled(contexts_of(LOGISTICS), "us")[0]
    address = {"firstName": "Ada", "lastName": "Byron", "street": "Main", "number": "3791", "zip": "30834"}
    assert Converter(made["PositionUpdate"]).data(ENVELOPE, UPDATE)["destAddress"] == address
    assert Converter(made["LogInfo"]).data(ENVELOPE, LOG) == LOG
    assert made["LogInfo"].is_identity
    address_row = next(each for each in made["LogInfo"].places if each.target == "address")
    assert str(address_row.rule) == "LogInfo.UniversalAddress -> identity"
    assert [str(rule) for rule in address_row.beaten] == ["UniversalAddress -> to_us_address"]


def test_a_danger_check_keeps_its_position() -> None:
    made = compiled(contexts_of(LOGISTICS), "us")[0]["DangerCheck"]
    data = {"productId": "p", "pos": {"$type": "PositionWithHeight", "x": 1.0, "y": 2.0, "z": 3.0}}
    assert Converter(made).data(ENVELOPE, data) == data


def test_what_no_expression_gives_is_left_to_the_host() -> None:
    made = compiled(contexts_of(LOGISTICS), "us")[0]["ProductStatusEvent"]
    assert not made.native
    found = {each.function.name: each for each in made.externals.values()}
    assert {name: each.path for name, each in found.items()} == {"to_latlon": "pos", "to_dollars": "price"}
    assert [column for column, _ in found["to_dollars"].keys] == ["base", "quote"]
    bound = {
        found["to_latlon"].variable: {"lat": 48.0, "lon": 8.0},
        found["to_dollars"].variable: {"rate": decimal.Decimal("1.100000")},
    }
    money = {"currency": "EUR", "amount": decimal.Decimal("10.00")}
    data = {"productId": "p", "pos": {"x": 0.0, "y": 0.0}, "dynamicPrice": money, "dynamicCost": money}
    assert Converter(made).data(ENVELOPE, data, bound) == {
        "productId": "p",
        "pos": {"lat": 48.0, "lon": 8.0},
        "price": {"currency": "USD", "amount": decimal.Decimal("11.00")},
        "dynamicCost": money,
    }
    codes = [problem.code.code for problem in Converter(made).faults(ENVELOPE, data)]
    assert codes == ["INT706", "INT705"]


def test_german_equals_europe_except_log_entries() -> None:
    contexts = contexts_of(LOGISTICS)
    for direction in Direction:
        europe, german = (compiled(contexts, id, direction)[0] for id in ("europe", "german"))
        same = {name: german[name].node == made.node for name, made in europe.items() if name in german}
        assert all(same.values())
        extra = german.keys() - europe.keys()
        assert extra == ({"LogInfo"} if direction is Direction.OUT else set())


def test_the_way_in_undoes_the_way_out() -> None:
    contexts = contexts_of(LOGISTICS)
    there, back = (
        compiled(contexts, "europe", direction)[0]["PositionUpdate"] for direction in (Direction.OUT, Direction.IN)
    )
    assert (there.direction, back.direction) == (Direction.OUT, Direction.IN)
    abroad = Converter(there).data(ENVELOPE, UPDATE)
    assert abroad["distanceRemaining"] == 3.082
    assert abroad["destAddress"]["postcode"] == "30834"
    assert Converter(back).data(ENVELOPE, abroad) == UPDATE


# ── structure ─────────────────────────────────────────────────────────────────────────────────────


def test_whole_subtrees_that_do_not_change_are_copied_whole() -> None:
    types = """
    types:
      Inner: {a: double m, b: [string]}
      Outer: {inner: Inner, list: [Inner]}
    events:
      E: {outer: Outer, n: int}
    """
    context = "events:\n  E: {outer: Outer, n: long}\nmaps: [{out: E -> E}]\n"
    made, _ = out(types, context)
    assert made is not None
    copied = {each.target: each.node for each in made.places}
    assert isinstance(copied["outer"], Read)
    assert copied["outer"].path == ("outer",)


def test_rename_flatten_nest_merge_split_default_and_drop() -> None:
    types = """
    types:
      Address: {city: string, zip: string}
    events:
      E: {name: string, address: Address, x: double, y: double, gone: int}
    """
    context = """
types:
  At: {x: double, y: double, z: optional double}
events:
  F:
    title: string
    city: string
    at: At
    both: string
    first: string
    rest: string
    kind: string
    level: {type: int, default: 3}
maps:
  - out: E -> F
    attributes:
      title: name
      city: address.city
      at.x: x
      at.y: y
      both: {expr: "name || '@' || address.zip"}
      first: {expr: "split_part(name, ' ', 1)"}
      rest: {expr: "split_part(name, ' ', 2)"}
      kind: {default: person}
"""
    data = {"name": "Ada Byron", "address": {"city": "Ulm", "zip": "89"}, "x": 1.0, "y": 2.0, "gone": 1}
    assert converted(types, context, data) == {
        "title": "Ada Byron",
        "city": "Ulm",
        "at": {"x": 1.0, "y": 2.0},
        "both": "Ada Byron@89",
        "first": "Ada",
        "rest": "Byron",
        "kind": "person",
        "level": 3,
    }
    made, codes = out(types, context)
    assert made is not None
    assert made.dropped == ("gone",)
    assert codes == ["INT305"]


def test_rules_apply_to_the_source_of_a_renamed_attribute_and_below_one_that_is_converted() -> None:
    types = """
    types:
      Tag(string): {}
      Box: {tag: Tag, n: int}
    events:
      E: {box: Box}
    """
    context = """
events:
  F: {tag: string}
maps:
  - out: E -> F
    attributes: {tag: box.tag}
rules:
  out:
    - Box -> shrink
    - Tag -> shout
functions:
  shrink: Box -> Box = struct(value.tag AS tag, 0 AS n)
  shout: Tag -> string = upper(value)
"""
    assert converted(types, context, {"box": {"tag": "ab", "n": 1}}) == {"tag": "AB"}


def test_exchanged_attributes_of_one_type_are_not_taken_for_unchanged() -> None:
    types = "events:\n  E: {a: double, b: double}\n"
    context = "maps:\n  - out: E -> E\n    attributes: {a: b, b: a}\n"
    assert converted(types, context, {"a": 1.0, "b": 2.0}) == {"a": 2.0, "b": 1.0}


# ── odd input ─────────────────────────────────────────────────────────────────────────────────────

LISTS = """
types:
  Line: {qty: int, price: double}
events:
  E: {lines: "optional [Line]", note: optional string}
"""
LISTS_CONTEXT = """
events:
  E: {lines: "optional [Line]", note: optional string}
maps: [{out: E -> E}]
rules:
  out: [Line -> invert]
functions:
  invert: Line -> Line = struct(value.qty AS qty, 1 / value.price AS price)
"""


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {}),
        ({"lines": []}, {"lines": []}),
        ({"lines": [None]}, {"lines": [None]}),
        ({"lines": [{"qty": 1, "price": 2.0}, None]}, {"lines": [{"qty": 1, "price": 0.5}, None]}),
        ({"note": "x"}, {"note": "x"}),
    ],
)
def test_nothing_stays_nothing(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert converted(LISTS, LISTS_CONTEXT, given) == expected


def test_every_place_that_fails_is_named() -> None:
    made, _ = out(LISTS, LISTS_CONTEXT)
    assert made is not None
    assert made.can_fail
    data = {"lines": [{"qty": 1, "price": 0.0}, {"qty": 1, "price": 1.0}, {"qty": 2, "price": 0.0}]}
    converter = Converter(made)
    with pytest.raises(ArithmeticError):
        converter.data(ENVELOPE, data)
    found = converter.faults(ENVELOPE, data)
    assert [(each.code.code, each.values["path"]) for each in found] == [("INT704", "lines[0]"), ("INT704", "lines[2]")]
    assert found[0].values["function"] == "invert"
    assert found[0].values["rule"] == "Line -> invert"
    assert found[0].values["context"] == "c@1"


def test_functions_are_called_for_nulls_only_if_they_say_so() -> None:
    types = "types:\n  Tag(string): {}\nevents:\n  E: {a: optional Tag}\n"
    context = """
events:
  E: {a: optional string}
maps: [{out: E -> E}]
rules:
  out: [Tag -> named]
functions:
  named: {signature: Tag -> string, %sexpr: "coalesce(value, 'nobody')"}
"""
    assert converted(types, context % "", {}) == {}
    assert converted(types, context % "nulls: call, ", {}) == {"a": "nobody"}
    assert converted(types, context % "nulls: call, ", {"a": "x"}) == {"a": "x"}


def test_a_default_stands_in_for_null_and_a_required_attribute_fails() -> None:
    types = "events:\n  E: {a: optional int, b: optional int}\n"
    context = "events:\n  E: {a: {type: int, default: 7}, b: int}\nmaps: [{out: E -> E}]\n"
    assert converted(types, context, {"b": 1}) == {"a": 7, "b": 1}
    made, codes = out(types, context)
    assert made is not None
    assert codes == ["INT310"]
    with pytest.raises(ArithmeticError):
        Converter(made).data(ENVELOPE, {"a": 1})
    found = Converter(made).faults(ENVELOPE, {"a": 1})
    assert [(each.code.code, each.values["path"]) for each in found] == [("INT707", "b")]


@pytest.mark.parametrize(("missing", "codes"), [("error", []), ("'null'", ["INT310"]), ("{default: '?'}", [])])
def test_a_row_that_must_be_there_feeds_a_required_attribute(missing: str, codes: list[str]) -> None:
    context = f"""
events:
  F: {{quote: string}}
maps: [{{out: E -> F, attributes: {{quote: base}}}}]
rules: [Base -> quoted]
functions:
  quoted: {{signature: Base -> string, lookup: {{fx: {{source: fx_rates, key: {{base: value, quote: "'USD'"}}}}}},
    missing: {missing}, value: fx.quote}}
"""
    assert out("types:\n  Base(string): {}\nevents:\n  E: {base: Base}\n", context)[1] == codes


# ── subtypes ──────────────────────────────────────────────────────────────────────────────────────

SHAPES = """
types:
  Position: {x: double m, y: double m}
  High(Position): {z: double m}
events:
  E: {at: Position}
  Sub(E): {more: int}
"""


def test_a_value_of_a_subtype_stays_one_where_the_type_is_the_same() -> None:
    context = "events:\n  F: {at: Position, n: {type: int, default: 0}}\nmaps: [{out: E -> F}]\n"
    high = {"$type": "High", "x": 1.0, "y": 2.0, "z": 3.0}
    assert converted(SHAPES, context, {"at": high}) == {"at": high, "n": 0}


def test_and_is_rebuilt_by_name_where_it_is_another() -> None:
    context = "types:\n  Place: {x: double m, y: double cm}\nevents:\n  F: {at: Place}\nmaps: [{out: E -> F}]\n"
    high = {"$type": "High", "x": 1.0, "y": 2.0, "z": 3.0}
    assert converted(SHAPES, context, {"at": high}) == {"at": {"x": 1.0, "y": 200.0}}


def test_an_event_of_a_subtype_becomes_the_mapped_type() -> None:
    context = "events:\n  F: {at: Position}\nmaps: [{out: E -> F}]\n"
    data = {"at": {"x": 1.0, "y": 2.0}, "more": 1}
    made, _ = out(SHAPES, context, "Sub")
    assert made is not None
    assert made.target.name == "F"
    assert Converter(made).data(ENVELOPE, data) == {"at": {"x": 1.0, "y": 2.0}}
    made, _ = out(SHAPES, "rules: []\n", "Sub")
    assert made is not None
    assert made.is_identity


def test_rules_see_the_dynamic_type_and_results_of_a_subtype_say_so() -> None:
    context = """
rules:
  out:
    - Position -> raised
    - High -> identity
functions:
  raised: Position -> High = struct(value.x AS x, value.y AS y, 0.0 AS z)
"""
    high = {"$type": "High", "x": 1.0, "y": 2.0, "z": 3.0}
    assert converted(SHAPES, context, {"at": high}) == {"at": high}
    assert converted(SHAPES, context, {"at": {"x": 1.0, "y": 2.0}}) == {
        "at": {"$type": "High", "x": 1.0, "y": 2.0, "z": 0.0}
    }


def test_a_subtype_that_the_other_side_does_not_know_becomes_what_is_declared_there() -> None:
    files = {
        "types/t.yaml": SHAPES,
        "contexts/c.yaml": "context: c\ntypes:\n  Mine(Position): {w: int}\nmaps: [{in: E -> E}]\n",
    }
    made, _ = compiled(contexts_of(files), "c", Direction.IN)
    data = {"at": {"$type": "Mine", "x": 1.0, "y": 2.0, "w": 4}}
    assert Converter(made["E"]).data(ENVELOPE, data) == {"at": {"x": 1.0, "y": 2.0}}


# ── types without mapping ─────────────────────────────────────────────────────────────────────────


def test_an_event_type_without_mapping_passes_or_is_not_available() -> None:
    contexts = contexts_of(LOGISTICS)
    made, problems = compiled(contexts, "europe")
    said = {problem.values["type"]: problem.code.code for problem in problems if "type" in problem.values}
    assert said["TruckPosition"] == "INT306"
    assert said["LogInfo"] == "INT307"
    assert "TruckPosition" in made
    assert "LogInfo" not in made


def test_types_can_be_derived_from_what_rules_give() -> None:
    types = """
    types:
      Name: {first: string, last: string}
      Party: {who: Name, age: optional int}
    events:
      E: {sender: Party, names: [Name]}
    """
    context = """
derive: true
types:
  Text: {text: string}
rules:
  out: [Name -> joined]
  in: [Text -> split]
functions:
  joined: Name -> Text = struct(value.first || ' ' || value.last AS text)
  split: Text -> Name = struct(coalesce(split_part(value.text, ' ', 1), '') AS first,
    coalesce(split_part(value.text, ' ', 2), '') AS last)
"""
    contexts = contexts_of({"types/t.yaml": types, "contexts/c.yaml": f"context: c\n{context}"})
    there, back = compiled(contexts, "c")[0]["E"], compiled(contexts, "c", Direction.IN)[0]["E"]
    name = {"first": "Ada", "last": "Byron"}
    data = {"sender": {"who": name}, "names": [name, None]}
    abroad = Converter(there).data(ENVELOPE, data)
    assert abroad == {"sender": {"who": {"text": "Ada Byron"}}, "names": [{"text": "Ada Byron"}, None]}
    assert there.target.name == "E"
    assert str(there.target.attributes[1].type) == "[Text]"
    assert Converter(back).data(ENVELOPE, abroad) == data


def test_plans_tell_what_comes_out() -> None:
    first, again = (compiled(contexts_of(LOGISTICS), "us")[0]["PositionUpdate"].plan for _ in range(2))
    text = LOGISTICS["contexts/root.yaml"].replace("1.09", "1.1")
    other = compiled(contexts_of({**LOGISTICS, "contexts/root.yaml": text}), "us")[0]["PositionUpdate"].plan
    assert first == again != other


# ── what is said ──────────────────────────────────────────────────────────────────────────────────

UNITS = "units: {EUR: currency, USD: currency}\n"


@pytest.mark.parametrize(
    ("code", "types", "context", "well"),
    [
        (
            "INT303",
            "events:\n  E: {a: string}\n",
            "events:\n  F: {a: %s}\nmaps: [{out: E -> F}]\n",
            ("int", "string"),
        ),
        (
            "INT303",
            "types:\n  Tag(string): {}\nevents:\n  E: {a: Tag}\n",
            (
                "events:\n  F: {a: %s}\nmaps: [{out: E -> F}]\nrules: [Tag -> f]\n"
                "functions: {f: Tag -> long = length(value)}\n"
            ),
            ("string", "long"),
        ),
        (
            "INT304",
            "events:\n  E: {a: string}\n",
            "events:\n  F: {a: string, b: %s}\nmaps: [{out: E -> F}]\n",
            ("int", "optional int"),
        ),
        (
            "INT305",
            "events:\n  E: {a: string, b: int}\n",
            "events:\n  F: {a: string, %s: int}\nmaps: [{out: E -> F}]\n",
            ("c", "b"),
        ),
        (
            "INT309",
            "types:\n  Tag(string): {}\nevents:\n  E: {a: Tag, b: string}\n",
            ("events:\n  F: {a: string}\nmaps: [{out: E -> F, attributes: {a: {expr: %s}}}]\nrules: [Tag -> f]\n"
            "functions: {f: Tag -> string = upper(value)}\n"),
            ("lower(a)", "lower(b)"),
        ),
        (
            "INT310",
            "events:\n  E: {a: optional string}\n",
            "events:\n  F: {a: %s}\nmaps: [{out: E -> F}]\n",
            ("string", "optional string"),
        ),
        (
            "INT402",
            "types:\n  Tag(string): {}\nevents:\n  E: {a: Tag, b: string}\n  G: {a: Tag, c: string}\n",
            ("events:\n  F: {a: string}\nmaps: [{out: E -> F}]\nrules: [E.Tag -> f]\n"
            "functions: {f: Tag -> string = value || event.%s}\n"),
            ("c", "b"),
        ),
        (
            "INT403",
            "events:\n  E: {a: double m}\n",
            "events:\n  F: {a: double %s}\nmaps: [{out: E -> F}]\n",
            ("s", "km"),
        ),
        (
            "INT404",
            UNITS + "events:\n  E: {a: double EUR}\n",
            "events:\n  F: {a: double %s}\nmaps: [{out: E -> F}]\n",
            ("USD", "EUR"),
        ),
        (
            "INT407",
            "events:\n  E: {a: double m}\n",
            "events:\n  F: {a: double %s}\nmaps: [{out: E -> F}]\nrules: [E.a -> identity]\n",
            ("km", "m"),
        ),
        (
            "INT407",
            "events:\n  E: {a: double m}\n",
            (
                "events:\n  F: {a: double %s}\nmaps: [{out: E -> F}]\nrules: [E.a -> f]\n"
                "functions: {f: double m -> double km = value / 1000}\n"
            ),
            ("cm", "km"),
        ),
        (
            "INT409",
            "events:\n  E: {a: int m}\n",
            "events:\n  F: {a: int %s}\nmaps: [{out: E -> F}]\n",
            ("km", "cm"),
        ),
        (
            "INT413",
            "types:\n  Tag(string): {}\nevents:\n  E: {a: Tag}\n",
            ("events:\n  F: {a: string}\nmaps: [{out: E -> F}]\nrules: [Tag -> f]\n"
            "functions: {f: {signature: Tag -> string, lossy: %s, expr: upper(value)}}\n"),
            ("true", "false"),
        ),
        (
            "INT413",
            "events:\n  E: {a: 'decimal(9,2) m'}\n",
            "events:\n  F: {a: 'decimal(18,%s) km'}\nmaps: [{out: E -> F}]\n",
            ("4", "5"),
        ),
        (
            "INT415",
            "events:\n  E: {a: double m}\n",
            "events:\n  F: {a: double%s}\nmaps: [{out: E -> F}]\n",
            ("", " m"),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and value.startswith("INT") else "",
)  # fmt: skip
def test_each_code_has_a_case_that_provokes_it_and_one_that_just_does_not(
    code: str, types: str, context: str, well: tuple[str, str]
) -> None:
    bad, good = well
    assert code in out(types, context % bad)[1]
    assert code not in out(types, context % good)[1]


def test_errors_take_out_one_event_type_and_all_of_them_are_told() -> None:
    types = "events:\n  E: {a: string, b: double m, c: string}\n  G: {a: string}\n"
    context = "events:\n  F: {a: int, b: double s, d: int}\nmaps: [{out: E -> F}]\n"
    made, codes = out(types, context)
    assert made is None
    assert codes == ["INT303", "INT403", "INT304", "INT305", "INT306"]
    assert out(types, context, "G")[0] is not None
