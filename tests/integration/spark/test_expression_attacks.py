"""Attacks that are evaluated and not refused, on Spark: it neither raises nor hangs, and agrees with the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from situ.lang.expr.checker.check import check
from situ.lang.expr.emit.spark import emit_spark
from situ.lang.expr.tree import Node
from situ.lang.problems import SituError
from tests.expressions import row_scope
from tests.integration.spark.test_expressions import FAILED, frame_of, judged, same
from tests.unit.lang.test_expression_attacks import BOUNDED, HOSTILE_ROW, text_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL_ROW = {**HOSTILE_ROW, "s": "${env:HOME}", "lines": HOSTILE_ROW["lines"][:2], "ns": [1.5, None]}


def accepted() -> dict[str, Node]:
    found: dict[str, Node] = {}
    for attack in BOUNDED.values():
        node = check(text_of(attack), row_scope()).node
        if node is None:
            continue
        try:
            emit_spark(node)
        except SituError:  # more than Spark can take, said in our words
            continue
        found[text_of(attack)] = node
    return found


def test_attacks_are_harmless_on_spark(spark: SparkSession) -> None:
    nodes = accepted()
    assert len(nodes) >= 20
    rows = [HOSTILE_ROW, SMALL_ROW]
    outcomes = []
    for text, _, found, wanted in judged(frame_of(spark, rows), rows, nodes):
        assert same(found, wanted), (text[:200], found, wanted)
        outcomes.append(found)
    assert FAILED in outcomes


def test_text_comes_back_as_it_was_written(spark: SparkSession) -> None:
    """No setting, variable or escape of Spark's gets into a literal."""
    texts = ["${env:HOME}", "${spark.app.name}", "it''s", "\\", "\\u0041", "\n\t\r", "--", "/* */", "{{x}}", "😀"]
    nodes = {f"s = '{text}' OR '{text}' = s": check(f"'{text}' || ''", row_scope()).tree() for text in texts}
    rows = [SMALL_ROW]
    for text, _, found, wanted in judged(frame_of(spark, rows), rows, nodes):
        assert found == wanted, text
