"""Functions of a project: how they are written, in which order they are checked, what they must give."""

from __future__ import annotations

import random
import time
from decimal import Decimal
from functools import cache
from textwrap import dedent

import pytest

from situ.lang.documents import parse_yaml
from situ.lang.expr.checker.check import check_condition
from situ.lang.expr.definitions import (
    DefinedFunction,
    Functions,
    functions_as_json,
    functions_from_json,
    load_functions,
)
from situ.lang.expr.emit.python import compile_value
from situ.lang.expr.emit.spark import emit_spark
from situ.lang.expr.interpret import interpret
from situ.lang.expr.limits import DEFAULT_LIMITS, ExpressionLimits
from situ.lang.expr.runtime import FAILURES
from situ.lang.expr.scope import event_scope, parse_signature, split_definition
from situ.lang.expr.simplify import simplify
from situ.lang.expr.syntax import Syntax, locate_in, parse_syntax, spell
from situ.lang.problems import Problem, Problems, render
from situ.lang.types.model import BOOLEAN, DOUBLE, Struct
from situ.lang.types.table import Types
from tests.expressions import Generator
from tests.types_files import types_of

TYPES = types_of(
    """
    types:
      TagId(string): {}
      Money: {currency: string, amount: "decimal(18,2)"}
      Address: {street: string, number: optional string}
      Polar: {r: double ft, theta: double deg}
      Line: {sku: string, qty: long}
    events:
      Seen: {tag: TagId, at: Point m, temperature: double °C, lines: [Line]}
    units: {EUR: currency, USD: currency}
    """
)


def load(*texts: str, limits: ExpressionLimits = DEFAULT_LIMITS) -> tuple[Functions, tuple[Problem, ...]]:
    problems = Problems()
    documents = [parse_yaml(dedent(text), f"functions/{number}.yaml") for number, text in enumerate(texts, 1)]
    return load_functions(documents, TYPES, problems, limits=limits), problems.sorted()


def one(definition: str) -> DefinedFunction:
    """The function of that one line."""
    functions, problems = load(f"functions:\n  f: {definition!r}\n")
    assert not problems, "\n".join(map(render, problems))
    return functions.defined["f"]


def faults(*texts: str) -> list[str]:
    """Place, code, and the code of the cause."""
    found = []
    for problem in load(*texts)[1]:
        cause = f" {problem.cause.code.code}" if problem.cause else ""
        found.append(f"{problem.location} {problem.code.code}{cause}".removeprefix("functions/"))
    return found


def fault(definition: str) -> list[str]:
    """What is wrong with one function: column in its text, codes, and what stands there."""
    result = []
    for problem in load(f"functions:\n  f: {definition!r}\n")[1]:
        place = problem.location
        assert place is not None
        assert place.line == 2
        cause = f" {problem.cause.code.code}" if problem.cause else ""
        column = place.column - len("  f: '")
        result.append(
            f"{column} {problem.code.code}{cause} {definition[column - 1 : column - 1 + place.length]}".rstrip()
        )
    return result


# ── the two forms ─────────────────────────────────────────────────────────────────────────────────


def test_a_function_of_several_parameters_works_with_units() -> None:
    near = one("(a: Point m, b: Point m, limit: double m) -> boolean = distance(a, b) <= limit")
    assert [name for name, _ in near.parameters] == ["a", "b", "limit"]
    assert (near.result.type, near.converts) == (BOOLEAN, False)
    assert near.parameters[2][1].unit == TYPES.units.parse("m")
    point = {"x": 0.0, "y": 0.0}
    assert interpret(near.body, {"a": point, "b": {"x": 3.0, "y": 4.0}, "limit": 5.0}) is True


def test_the_result_is_converted_to_the_declared_unit() -> None:
    far = one("(a: Point m, b: Point m) -> double km = distance(a, b)")
    assert interpret(far.body, {"a": {"x": 0.0, "y": 0.0}, "b": {"x": 1500.0, "y": 0.0}}) == 1.5


def test_a_conversion_counts_with_plain_numbers() -> None:
    yards = one("double m -> double yd = value * 1.09")
    assert yards.converts
    assert (yards.parameters[0][0], yards.result.type) == ("value", DOUBLE)
    assert (yards.parameters[0][1].unit, yards.result.unit) == (TYPES.units.parse("m"), TYPES.units.parse("yd"))
    assert interpret(yards.body, {"value": 100.0}) == 100.0 * 1.09


def test_a_conversion_sees_who_sent_the_event_and_when() -> None:
    tagged = one("string -> string = event.source || '/' || value")
    assert interpret(tagged.body, {"value": "7", "event": {"source": "r1"}}) == "r1/7"
    assert fault("double -> double = event.confidence * value") == ["20 INT401 X102 event.confidence"]


def test_the_long_form_says_the_same() -> None:
    functions, problems = load(
        """
        functions:
          short: double m -> double yd = value * 1.09
          long: {signature: double m -> double yd, expr: value * 1.09}
        """
    )
    assert not problems
    short, long = functions.defined["short"], functions.defined["long"]
    assert (short.signature, short.text, short.body) == (long.signature, long.text, long.body)


def test_expressions_over_several_lines() -> None:
    functions, problems = load(
        """
        functions:
          label: Address -> string = concat(value.street, ' ',
            coalesce(value.number, '?'))
          other: >
            (a: double m) -> boolean =
              a > 5 m
        """
    )
    assert not problems
    assert functions.defined["label"].text == "concat(value.street, ' ', coalesce(value.number, '?'))"
    assert functions.defined["other"].text == "a > 5 m"


def test_spelling_does_not_matter() -> None:
    one_way = one("(a:Point  m,b: Point m)->double m=distance( a,b )")
    other = one("( a: Point m, b: Point m ) -> double m = distance(a, b)")
    assert one_way == other
    assert other.signature == "(a: Point m, b: Point m) -> double m"


@pytest.mark.parametrize(
    "signature",
    [
        "(a: Point m, b: optional decimal(18,2) EUR) -> [Line]",
        "[double] km/h -> decimal(3,1)",
        "() -> boolean",
        "TagId -> optional string",
    ],
)
def test_signatures_read_back(signature: str) -> None:
    parsed = parse_signature(signature)
    assert parse_signature(f"  {signature} ") == parsed


def test_the_first_equals_sign_behind_the_arrow_begins_the_expression() -> None:
    text = "(a: double) -> boolean = a = 1 OR a >= 2"
    end, start = split_definition(text)
    assert (text[:end].strip(), text[start:]) == ("(a: double) -> boolean", "a = 1 OR a >= 2")


def test_empty_files_and_sections_are_fine() -> None:
    functions, problems = load("", "functions:\n", "version: 1\n", "functions: {}\n")
    assert not problems
    assert not functions.defined


# ── what a declaration promises ───────────────────────────────────────────────────────────────────


def test_a_decimal_that_has_too_many_digits_fails_as_in_a_cast() -> None:
    """A product has the digits of both factors: without this no amount times a rate were an amount."""
    amount = one("decimal(4,2) -> decimal(4,2) = value * to_decimal(10, 3, 0)")
    money = one("Money -> Money = struct(value.currency AS currency, round(value.amount * 1.5, 2) AS amount)")
    assert interpret(amount.body, {"value": Decimal("9.99")}) == Decimal("99.90")
    assert compile_value(amount.body, ("value",)).call(Decimal("9.99")) == Decimal("99.90")
    with pytest.raises(FAILURES):
        interpret(amount.body, {"value": Decimal("10.00")})
    assert interpret(money.body, {"value": {"currency": "EUR", "amount": Decimal("1.01")}}) == {
        "currency": "EUR",
        "amount": Decimal("1.52"),
    }
    assert faults("functions: {f: 'decimal(4,2) -> decimal(4,1) = value'}") == ["1.yaml:1:48 INT401 X103"]
    assert faults("functions: {f: 'double -> decimal(4,1) = value'}") == ["1.yaml:1:42 INT401 X103"]


def test_a_struct_made_in_the_expression_takes_the_declared_shape() -> None:
    to_money = one("double EUR -> Money = struct('USD' AS currency, to_decimal(value, 18, 2) AS amount)")
    assert str(interpret(to_money.body, {"value": 1.5})["amount"]) == "1.50"
    to_point = one("Polar -> Point = struct(value.r * 0.3048 AS x, 1 AS y)")
    assert interpret(to_point.body, {"value": {"r": 10.0, "theta": 0.0}}) == {"x": 3.048, "y": 1.0}
    moved = one("(a: Point m, by: double ft) -> Point m = struct(a.x + by AS x, a.y AS y)")
    assert interpret(moved.body, {"a": {"x": 1.0, "y": 2.0}, "by": 10.0}) == {"x": 4.048, "y": 2.0}


def test_what_an_optional_attribute_lacks_is_no_mistake() -> None:
    assert one("string -> Address = struct(value AS street)").result.type == TYPES.get("Address")


def test_structs_in_lists_fit_by_their_attributes() -> None:
    lines = one("[Line] -> [Line] = transform(value, l -> struct(l.sku AS sku, l.qty * 2 AS qty))")
    assert interpret(lines.body, {"value": [{"sku": "a", "qty": 2}]}) == [{"sku": "a", "qty": 4}]


@pytest.mark.parametrize(
    ("definition", "found"),
    [
        ("(a: double m) -> boolean = a", ["28 INT401 X103 a"]),
        ("(a: double m) -> double s = a", ["29 INT401 X104 a"]),
        ("(a: double m) -> double = a", ["27 INT401 X104 a"]),
        ("(a: double) -> int = a", ["22 INT401 X103 a"]),
        ("double m -> TagId = value", ["21 INT401 X103 value"]),
        ("(a: double) -> boolean = a > 5 AND b < 3 AND c", ["36 INT401 X102 b", "46 INT401 X102 c"]),
        ("(a: double) -> boolean = a >", ["28 INT401 X101 >"]),
        ("(a: double) -> double = 1 / 0", ["29 INT401 X105 0"]),
        ("(a: double) -> boolean = a > 5 kmh", ["30 INT401 X102 5 kmh"]),
        ("(a: double) -> double = __import__('os')", ["25 INT401 X102 __import__('os'"]),
        ("Polar -> Point = struct(value.r AS x)", ["18 INT401 X103 struct(value.r"]),
        ("Polar -> Point = struct(value.r AS x, 1 AS y, 2 AS z)", ["18 INT401 X103 struct(value.r AS x, 1 AS y, 2"]),
        ("Polar -> Point = struct('a' AS x, 1 AS y)", ["25 INT401 X103 'a'"]),
        ("Polar -> Point = value", ["18 INT401 X103 value"]),
        ("Address -> Address = struct(value.number AS street)", ["29 INT401 X103 value.number"]),
        ("(a: double ft) -> Point m = struct(a AS x, 1 s AS y)", ["44 INT401 X104 1 s"]),
        ("(a: Point m) -> Point ft = a", ["28 INT401 X104 a"]),
        ("[Line] -> [Line] = transform(value, l -> l.sku)", ["20 INT401 X103 transform(value, l -> l.sku"]),
        ("(a: Pint m) -> boolean = a.x > 1 m", ["5 INT101 Pint"]),
        ("(a: double mm2) -> boolean = a > 1", ["12 INT105 mm2"]),
        ("(a: string m) -> boolean = a = 'x'", ["12 INT112 m"]),
        ("double m -> doubel yd = value", ["13 INT101 doubel"]),
        ("(a: double, a: double) -> boolean = a > 1", ["13 INT106 a"]),
    ],
)
def test_what_does_not_fit_is_reported_inside_the_expression(definition: str, found: list[str]) -> None:
    assert fault(definition) == found


@pytest.mark.parametrize(
    ("definition", "found"),
    [
        ("distance(a, b) > 1", ["19 INT416"]),
        ("(a: double) boolean = a", ["24 INT416"]),
        ("(a: double) -> boolean", ["23 INT416"]),
        ("(a: double) -> boolean =", ["25 INT416"]),
        ("(a: double -> boolean = a > 1", ["12 INT416 ->"]),
        ("(a) -> boolean = a", ["3 INT416 )"]),
        ("(a: double, ) -> boolean = a > 1", ["13 INT416 )"]),
        ("(1a: double) -> boolean = TRUE", ["2 INT416 1a:"]),
        ("(a: ) -> boolean = TRUE", ["5 INT416 )"]),
        ("(a: double) -> = TRUE", ["16 INT416 ="]),
        (" -> double = 1", ["2 INT416 ->"]),
        ("a: double m -> boolean = a > 1 m", ["1 INT416 a:"]),
        ("(a: [double) -> boolean = TRUE", ["12 INT109 )"]),
        ("(a: decimal(40,2)) -> boolean = TRUE", ["13 INT109 40"]),
    ],
)
def test_signatures_that_cannot_be_read(definition: str, found: list[str]) -> None:
    assert fault(definition) == found


def test_too_many_parameters_are_refused() -> None:
    parameters = ", ".join(f"p{number}: int" for number in range(65))
    assert [each.split()[1] for each in fault(f"({parameters}) -> boolean = TRUE")] == ["INT416"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("functions: [a]", ["1.yaml:1:12 P105"]),
        ("function: {}", ["1.yaml:1:1 P103"]),
        ("functions:\n  f: 5\n", ["1.yaml:2:6 P105"]),
        ("functions:\n  f: {signature: int -> int}\n", ["1.yaml:2:3 P104"]),
        ("functions:\n  f: {expr: value, time: now, signature: int -> int}\n", ["1.yaml:2:20 P103"]),
        ("functions:\n  f: {expr: 5, signature: [a]}\n", ["1.yaml:2:13 P105", "1.yaml:2:27 P105"]),
        ("functions:\n  my-f: int -> int = value\n", ["1.yaml:2:3 INT110"]),
        ("functions:\n  distance: int -> int = value\n", ["1.yaml:2:3 INT110"]),
        ("functions:\n  Struct: int -> int = value\n", ["1.yaml:2:3 INT110"]),
        ("functions:\n  identity: int -> int = value\n", ["1.yaml:2:3 INT110"]),
        ("functions:\n  case: int -> int = value\n", ["1.yaml:2:3 INT110"]),
    ],
)
def test_files_that_declare_wrongly(text: str, found: list[str]) -> None:
    assert faults(text) == found


def test_the_same_name_twice_is_refused_even_in_capitals() -> None:
    found = load("functions:\n  f: int -> int = value\n", "functions:\n  F: int -> int = value\n")[1]
    assert [f"{problem.location} {problem.code.code}" for problem in found] == ["functions/2.yaml:2:3 INT106"]
    assert "functions/1.yaml:2:3" in found[0].message


def test_limits_of_the_project_hold() -> None:
    _, problems = load("functions:\n  f: int -> int = value + 1 + 2 + 3\n", limits=ExpressionLimits(nodes=5))
    assert [problem.cause.code.code for problem in problems if problem.cause] == ["X108"]


# ── functions that call functions ─────────────────────────────────────────────────────────────────


def test_functions_call_each_other_in_any_order_over_all_files() -> None:
    functions, problems = load(
        'functions:\n  a: "(x: double) -> double = b(x) + B(1)"\n',
        'functions:\n  c: "(x: double) -> double = x * 2"\n  b: "(x: double) -> double = c(x) + 1"\n',
    )
    assert not problems
    assert interpret(functions.defined["a"].body, {"x": 3.0}) == 10.0


def test_a_circle_is_reported_once_where_it_closes() -> None:
    text = """
    functions:
      a: "(x: double) -> double = b(x)"
      b: "(x: double) -> double = 1 + c(x)"
      c: "(x: double) -> double = a(x)"
      d: "(x: double) -> double = d(x)"
      e: "(x: double) -> double = a(x) + x"
      f: "(x: double) -> double = e(x) + x"
    """
    functions, problems = load(text)
    assert [f"{problem.location} {problem.code.code}" for problem in problems] == [
        "functions/1.yaml:5:31 INT417",
        "functions/1.yaml:6:31 INT417",
    ]
    assert "a → b → c → a" in problems[0].message
    assert functions.faulty == {"a", "b", "c", "d", "e", "f"}, "those that call them cannot be used either"


def test_a_name_in_a_text_is_no_call() -> None:
    assert faults("functions:\n  f: \"(x: double) -> boolean = 'f(x)' = 'g' AND x > 1\"\n") == []


def test_what_a_faulty_function_causes_is_not_reported_again() -> None:
    found = faults(
        """
        functions:
          a: "(x: double) -> double = y"
          b: "(x: double) -> double = a(x) + z"
        """
    )
    assert found == ["1.yaml:3:31 INT401 X102", "1.yaml:4:38 INT401 X102"]


def test_a_conversion_cannot_be_called() -> None:
    found = faults('functions:\n  c: int -> int = value\n  f: "(x: int) -> int = c(x)"\n')
    assert found == ["1.yaml:3:25 INT401 X102"]


def test_filters_can_call_them() -> None:
    functions, _ = load('functions:\n  warm: "(t: double °C) -> boolean = t > 30 °C"\n')
    seen = TYPES.event("Seen")
    assert isinstance(seen, Struct)
    scope = event_scope(seen, types=TYPES, functions=functions.callable)
    node = check_condition("warm(temperature) AND tag = 'x'", scope).tree()
    data = {"tag": "x", "temperature": 31.0, "at": {"x": 0.0, "y": 0.0}, "lines": []}
    assert interpret(node, {"event": {}, "data": data}) is True


# ── bounds ────────────────────────────────────────────────────────────────────────────────────────

DEEP = {
    "a tower of calls": 'f0: "(x: double) -> double = x + 1"\n'
    + "".join(f'  f{n}: "(x: double) -> double = f{n - 1}(x) + 1"\n' for n in range(1, 300)),
    "calls in calls": f'f: "(x: double) -> double = x{" + 1" * 60}"\n'
    f'  g: "(x: double) -> double = {"f(" * 30}x{")" * 30}"\n',
    "doubling": 'f0: "(x: double) -> double = x + x"\n'
    + "".join(f'  f{n}: "(x: double) -> double = f{n - 1}(x) + f{n - 1}(x)"\n' for n in range(1, 100)),
    "squaring": 'f0: "(x: double) -> double = x + x"\n'
    + "".join(f'  f{n}: "(x: double) -> double = f{n - 1}(f{n - 1}(x))"\n' for n in range(1, 100)),
}


@cache
def loaded(name: str) -> tuple[Functions, tuple[Problem, ...]]:
    return load(f"functions:\n  {DEEP[name]}")


@pytest.mark.parametrize("name", DEEP)
def test_what_grows_without_end_is_cut_off(name: str) -> None:
    start = time.process_time()
    _, problems = loaded(name)
    assert time.process_time() - start < 20
    assert {problem.cause.code.code for problem in problems if problem.cause} == {"X108"}
    assert len(problems) == 1, "the others only call what is too large"


def test_the_deepest_that_is_accepted_can_be_executed() -> None:
    functions, _ = loaded("a tower of calls")
    last = functions.defined[f"f{len(functions.defined) - 1}"]
    assert emit_spark(simplify(last.body))
    assert compile_value(last.body, ("x",)).call(0.0) == len(functions.defined)


# ── as JSON ───────────────────────────────────────────────────────────────────────────────────────


def test_functions_read_back_from_json() -> None:
    functions, problems = load(
        """
        functions:
          near: "(a: Point m, b: Point m, limit: double m) -> boolean = distance(a, b) <= limit"
          nearer: "(a: Point m, b: Point m) -> boolean = near(a, b, 3 ft)"
          yards: double m -> double yd = value * 1.09
        """
    )
    assert not problems
    written = functions_as_json(functions.defined)
    assert functions_from_json(written, TYPES, DEFAULT_LIMITS) == functions.defined
    assert list(written) == ["near", "nearer", "yards"]


@pytest.mark.parametrize("value", [[], 5, {"f": {}}, {"f": "int -> boolean = value"}, {"1": "int -> int = value"}])
def test_what_was_never_written_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="functions"):
        functions_from_json(value, Types(types={}), DEFAULT_LIMITS)


# ── spelling ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("written", "spelled"),
    [
        ("a  <5 m", "a < 5 m"),
        ("a!=b and not(c)", "a <> b AND NOT (c)"),
        ("x not between - 1 and 2", "x NOT BETWEEN -1 AND 2"),
        ("f ( a,b )", "f(a, b)"),
        ("x in(1,2)", "x IN (1, 2)"),
        ("90[ km/h ]", "90 [km/h]"),
        ("60%", "60 %"),
        ("a - -b", "a - -b"),
        ("case when a then 1 else+2 end", "CASE WHEN a THEN 1 ELSE +2 END"),
        ("date'2026-11-01' > d", "DATE '2026-11-01' > d"),
        ("name = 'it''s   and'", "name = 'it''s   and'"),
        ("`my  name` = data . and", "`my  name` = data.and"),
        ("exists(l,x->x.a>1)", "exists(l, x -> x.a > 1)"),
        ("a\n  OR b", "a OR b"),
        (" what; is this ", "what; is this"),
    ],
)
def test_the_one_spelling(written: str, spelled: str) -> None:
    assert spell(written) == spelled
    assert spell(spelled) == spelled


def test_spelling_keeps_what_is_said() -> None:
    for seed in range(500):
        text = Generator(seed).any(random.Random(seed).randrange(1, 5))
        spelled = spell(text)
        assert spell(spelled) == spelled
        assert _shape(parse_syntax(text, locate_in(text))) == _shape(parse_syntax(spelled, locate_in(spelled))), text


def test_blanks_make_no_difference() -> None:
    for seed in range(200):
        text = Generator(seed).any(3)
        if "'" not in text and "`" not in text:
            assert spell(text.replace(" ", " \t\n")) == spell(text)


def _shape(syntax: Syntax) -> object:
    return syntax.kind, syntax.text, tuple(_shape(part) for part in syntax.parts)
