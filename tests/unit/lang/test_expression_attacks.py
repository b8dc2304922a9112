"""Hostile expressions: each is refused in our words, or evaluated within bounds of time and memory, on hostile data."""

from __future__ import annotations

import random
import time
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from situ.lang.expr.checker.check import check
from situ.lang.expr.emit.python import compile_value
from situ.lang.expr.emit.spark import emit_spark
from situ.lang.expr.format import print_expression
from situ.lang.expr.interpret import interpret
from situ.lang.expr.runtime import FAILURES
from situ.lang.expr.simplify import simplify
from situ.lang.problems import SituError
from tests.expressions import make_row, row_scope

SECONDS = 5.0
MEGABYTES = 200

REFUSED: dict[str, str | Callable[[], str]] = {
    "nodes": lambda: " + ".join(["d"] * 100_000),
    "nodes with AND": lambda: " AND ".join(["b"] * 100_000),
    "brackets": lambda: "(" * 50_000 + "d" + ")" * 50_000,
    "brackets left open": lambda: "(" * 1000,
    "negations": lambda: "NOT " * 5000 + "b",
    "signs": lambda: "-" * 5000 + "d",
    "cases": lambda: "CASE WHEN b THEN " * 500 + "1" + " END" * 500,
    "calls": lambda: "abs(" * 500 + "d" + ")" * 500,
    "structs": lambda: "struct(" * 200 + "1" + " AS a)" * 200,
    "lambdas": lambda: "transform(ns, x -> " * 100 + "x" + ")" * 100,
    "arrows": lambda: "exists(ns, " + "x -> " * 200 + "b)",
    "values": lambda: "i IN (" + ", ".join(map(str, range(1_000_000))) + ")",
    "digits": lambda: "d > " + "9" * 100_000,
    "exponent": "d > 1e999999",
    "text": lambda: "s = '" + "x" * 1_000_000 + "'",
    "unclosed text": "s = 'abc",
    "python import": "__import__('os').system('true')",
    "python classes": "().__class__.__bases__[0].__subclasses__()",
    "python lambda": "(lambda: 1)()",
    "python attribute": "d.__class__ = 1",
    "python f-string": "f'{d}' = 'a'",
    "python walrus": "(x := 1) > 0",
    "file path": "/etc/passwd = s",
    "open a file": "open('/etc/passwd') = s",
    "select": "SELECT * FROM data",
    "drop": "DROP TABLE data",
    "subquery": "d > (SELECT max(d) FROM data)",
    "exists subquery": "EXISTS (SELECT 1)",
    "union": "d > 1 UNION SELECT 1",
    "with": "WITH x AS (SELECT 1) SELECT 1",
    "two statements": "d > 1; d > 2",
    "comment": "d > 1 -- AND b",
    "block comment": "d /* > 1 */ > 2",
    "cast": "CAST(s AS INT) > 1",
    "colons": "s::int > 1",
    "json path": "s:a.b = 1",
    "reflection": "java_method('java.lang.System', 'exit', 0) = s",
    "reflect": "reflect('java.util.UUID', 'randomUUID') = s",
    "raise": "raise_error('x') = s",
    "assert": "assert_true(b)",
    "clock": "current_timestamp() > ts",
    "random": "rand() > 0.5",
    "user": "current_user() = s",
    "file name": "input_file_name() = s",
    "variable": "@@version = s",
    "parameter": ":name = s",
    "placeholder": "? = s",
    "star": "* = 1",
    "brace": "{d} > 1",
    "regular expression": "s RLIKE '(a+)+$'",
    "pattern from data": "s LIKE s_",
    "unit power": "m > 5 [m**999999]",
    "unit prefixes": "m > 5 kkkkkkkm",
    "unit text": lambda: "m > 5 [" + "m*" * 5000 + "m]",
    "zone path": "hour(ts, '../../etc/passwd') = 1",
    "zone with nul": "hour(ts, 'UTC\0') = 1",
    "time pattern": lambda: "format_time(ts, '" + "yyyy" * 5000 + "') = 'a'",
    "division by zero": "d / 0 > 1",
    "constant overflow": "9223372036854775807 * 9223372036854775807 > l",
    "comma": "d > 3,5",
    "list copied": "transform(ns, x -> struct(x AS x, lines AS l))",
    "list times list": "exists(lines, x -> exists(lines_, y -> x.qty = y.qty))",
    "half a character": "s = '\ud800'",
    "nul name": "\0 = 1",
}

BOUNDED: dict[str, str | Callable[[], str]] = {
    "dollars": "s = '${env:HOME}' OR s = '${spark.driver.host}'",
    "quotes": "s = '''; DROP TABLE x; --'",
    "backslashes": "s = '\\' OR s = '\\''x' OR s = '\\u0027'",
    "line breaks": "s = '\n\r\t' OR s = '\0'",
    "quoted name": '`d` > 1 AND "d" < 5',
    "internal names": "exists(ns, t1 -> t1 > 0) AND exists(ns, _c0 -> _c0 > 0) AND exists(ns, part1 -> part1 > 1)",
    "names of python": "exists(ns, lambda -> lambda > 0) OR exists(ns, __import__ -> __import__ > 0)",
    "names of spark": "exists(lines, _situ_p -> kv(_situ_p.sku, 'a') = 'b') OR exists(ns, x_x -> x_x > 1)",
    "shadowing": "exists(lines, lines -> lines.qty > 1) AND exists(ns, data -> data > 1)",
    "many wildcards": lambda: "s LIKE '" + "%a" * 200 + "%b'",
    "underscores": lambda: "s LIKE '%" + "_" * 200 + "%x'",
    "text doubling": lambda: "length(" + "replace(" * 20 + "s" + ", 'a', 'aaaaaaaa')" * 20 + ") > 1",
    "text doubling in a list": "transform(transform(lines, x -> x.sku || x.sku || x.sku), y -> y || y || y)",
    "text into every element": "transform(ns, x -> s || s)",
    "widest chain": lambda: " OR ".join(f"d = {n}" for n in range(300)),
    "deepest choice": lambda: "CASE WHEN b THEN " * 30 + "d" + " ELSE 1 END" * 30 + " > 1",
    "deepest failure": lambda: "(" * 30 + "d" + " / e_)" * 30 + " > 1",
    "deep logic that may fail": lambda: "(" * 15 + "1 / d > 1" + " AND 1 / e_ > 2 OR 1 / d_ > 3)" * 15,
    "many values": lambda: "i IN (" + ", ".join(map(str, range(4000))) + ")",
    "overflow everywhere": "l * l + i * i - l > l AND d * d * d * d > 1 AND dec * dec * dec > 1",
    "extreme times": "ts + dur + dur > ts AND year(ts, 'Pacific/Apia') > 1 AND dur * 1e300 > dur",
    "right to left": "s = '\u202eabc\u202c' OR s = '\uff41' OR s = 'e\u0301'",
    "beyond the basic plane": "length(s || '😀') > 1 AND substring('😀😀', 2, 1) = '😀'",
    "confusable": "s = '\u0430dmin'",
    "element text into every element": "transform(lines, x -> transform(x.tags, y -> x.sku || y))",
    "list into every element": "transform(ns, x -> size(lines) + x)",
}


def text_of(attack: str | Callable[[], str]) -> str:
    return attack if isinstance(attack, str) else attack()


class Bounds:
    """Time and memory of what runs inside must stay within reason."""

    def __enter__(self) -> None:
        tracemalloc.start()
        self.started = time.process_time()

    def __exit__(self, *_: object) -> None:
        took = time.process_time() - self.started
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert took < SECONDS, f"took {took:.1f} s"
        assert peak < MEGABYTES * 2**20, f"took {peak / 2**20:.0f} MB"


@pytest.mark.parametrize("name", REFUSED)
def test_refused_at_once_and_in_our_words(name: str) -> None:
    text = text_of(REFUSED[name])
    with Bounds():
        checked = check(text, row_scope())
    assert checked.node is None, name
    assert checked.problems
    assert all(problem.location is not None and problem.message for problem in checked.problems)
    assert any(problem.hint for problem in checked.problems)


HOSTILE_ROW: dict[str, Any] = {
    **make_row(random.Random(1)),
    "s": "a" * 500_000,
    "s_": "%a" * 1000,
    "b_": True,
    "d_": 1e300,
    "e_": 5e-324,
    "lines": [{"qty": 2**62, "sku": "ab" * 50, "tags": ["x"] * 10, "price": 0.0}] * 900,
    "lines_": [None] * 1000,
    "ns": [1e308, None, -0.0] * 300,
}


@pytest.mark.parametrize("name", BOUNDED)
def test_evaluated_within_bounds(name: str) -> None:
    text = text_of(BOUNDED[name])
    with Bounds(), suppress(SituError):
        node = check(text, row_scope()).tree()
        simpler = simplify(node)
        assert check(print_expression(node), row_scope()).node == node
        emit_spark(simpler)
        function = compile_value(simpler, ("data",))
        for row in (HOSTILE_ROW, make_row(random.Random(2))):
            with suppress(*FAILURES):
                interpret(node, {"data": row})
            with suppress(*FAILURES):
                function.call(row)


@pytest.mark.parametrize("name", ["dollars", "quotes", "backslashes", "line breaks"])
def test_text_cannot_leave_its_quotes(name: str) -> None:
    """Outside of its literals the Spark text holds only what we wrote."""
    spark = emit_spark(check(text_of(BOUNDED[name]), row_scope()).tree()).value
    outside, inside, escaped = "", False, False
    for character in spark:
        if escaped:
            escaped = False
        elif inside and character == "\\":
            escaped = True
        elif character == "'":
            inside = not inside
        elif not inside:
            outside += character
    assert not inside
    assert "$" not in spark
    assert set(outside.replace("`data`.`s`", "").replace("OR", "")) <= set("()= ")


def test_there_are_enough_attacks() -> None:
    assert len(REFUSED) + len(BOUNDED) >= 50
