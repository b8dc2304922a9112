"""Expressions from text to both engines, one file a case: what is read, simplified, and run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from situ.lang.expr.checker.check import check
from situ.lang.expr.emit.python import compile_test, compile_value
from situ.lang.expr.emit.spark import emit_spark
from situ.lang.expr.format import print_expression
from situ.lang.expr.simplify import simplify
from situ.lang.types.model import BOOLEAN
from tests.expressions import row_scope

CASES = {
    "unit-literal": "m < 5 ft",
    "threshold": "d * 1.09 > 109",
    "threshold-equal": "d * 1.09 = 109",
    "threshold-range": "d / 3 = 0.1",
    "integer-threshold": "i > 2.5 AND l_ = 2.5",
    "negation": "NOT (i > 3 AND (l_ < 4 OR d_ > 1))",
    "case-constants": "CASE WHEN i > 3 THEN 'a' WHEN b_ THEN 'b' ELSE 'c' END = 'a'",
    "struct-field": "struct(i AS a, l_ AS b).a > 3",
    "struct-field-that-may-fail": "struct(i AS a, 1 / d AS b).a > 3",
    "division": "d / e_ > 3",
    "two-failures": "d / e_ > 1 AND i / l_ < 3",
    "null-logic": "l_ > 3 OR b_",
    "like": "s LIKE 'a%' AND s LIKE '%b' AND s LIKE '%c%' AND s LIKE 'a_b%c'",
    "not-like": "s NOT LIKE 'a%' AND NOT s NOT LIKE '%b' AND s NOT LIKE 'a!%%' ESCAPE '!' AND s_ NOT LIKE 'a_b%c'",
    "in": "i IN (1, 2, 3, 4) OR s_ IN ('a')",
    "between": "d BETWEEN 2 AND 8",
    "inside-box": "inside(at, struct(0 AS x1, 0 AS y1, 500 AS x2, 8 AS y2))",
    "within": "within(at, at_, 3 m)",
    "list": "exists(lines_, x -> x.qty > 3 AND x.sku LIKE 'a%')",
    "list-copies-text": "transform(lines, x -> struct(x.qty * 2 AS q, s AS t))",
    "decimal": "dec * 1.09 > 100.5",
    "time": "ts - ts_ > 5 min AND hour(ts, 'Europe/Zurich') >= 18",
    "coalesce": "coalesce(l_, 0) + coalesce(i, 5) > 3",
    "null-itself": "NULL IS NOT NULL OR i > 3",
    "constants": "1 + 2 * 3 > i AND TRUE",
    "text-is-quoted": "s = 'it''s \\ ${x} \"y\"'",
}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, golden: Callable[[str, str], None]) -> None:
    node = check(CASES[name], row_scope()).tree()
    simpler = simplify(node)
    spark = emit_spark(simpler)
    python = (compile_test if node.type == BOOLEAN else compile_value)(simpler, ("data",))
    outcome = f"{node.type}{' or null' if node.nullable else ''}{', can fail' if node.can_fail else ''}"
    sections = {
        "written": CASES[name],
        "checked": f"{print_expression(node)}\n: {outcome}",
        "simplified": print_expression(simpler),
        "spark": spark.value,
        "spark fails": spark.fails or "never",
        "python": python.source.rstrip(),
    }
    golden(f"expressions/{name}.txt", "".join(f"-- {title}\n{text}\n\n" for title, text in sections.items()))
