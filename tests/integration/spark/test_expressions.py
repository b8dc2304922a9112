"""Spark as the second judge: the emitted SQL equals the reference on generated expressions and rows.

Many expressions go into one query, and one frame of rows serves them all: a few queries judge thousands of pairs.
"""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from situ.lang.expr.checker.check import check
from situ.lang.expr.emit.spark import emit_spark
from situ.lang.expr.functions.table import FUNCTIONS
from situ.lang.expr.interpret import interpret
from situ.lang.expr.runtime import FAILURES
from situ.lang.expr.scope import NameScope
from situ.lang.expr.simplify import simplify
from situ.lang.expr.tree import Node
from situ.lang.records import replace
from situ.lang.types.model import Decimal, ListOf, Struct, Type, plain
from tests.expressions import ROW, Generator, make_row, row_scope
from tests.property.lang.test_unit_conversions import doubles, halves

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

A_QUERY = 60
FAILED = "failed"
_ARROW = {
    "boolean": pa.bool_(), "int": pa.int32(), "long": pa.int64(), "double": pa.float64(), "string": pa.string(),
    "bytes": pa.binary(), "date": pa.date32(), "timestamp": pa.timestamp("us", "UTC"), "duration": pa.int64(),
}  # fmt: skip


def arrow(type: Type) -> pa.DataType:
    match plain(type):
        case Decimal(precision=precision, scale=scale):
            return pa.decimal128(precision, scale)
        case ListOf(element=element):
            return pa.list_(arrow(element))
        case Struct(attributes=attributes):
            return pa.struct([pa.field(a.name, arrow(a.type)) for a in attributes])
        case primitive:
            return _ARROW[str(primitive)]


def stored(value: Any) -> Any:
    """As Spark keeps it: durations in microseconds, absent attributes as nulls."""
    match value:
        case dt.timedelta():
            return value // dt.timedelta(microseconds=1)
        case dict():
            return {name: stored(part) for name, part in value.items() if part is not None}
        case list():
            return [stored(part) for part in value]
        case _:
            return value


def without_nulls(value: Any) -> Any:
    match value:
        case dict():
            return {name: without_nulls(part) for name, part in value.items() if part is not None}
        case list():
            return [without_nulls(part) for part in value]
        case _:
            return value


def frame_of(spark: SparkSession, rows: list[dict[str, Any]]) -> DataFrame:
    columns = {"n": pa.array(range(len(rows))), "data": pa.array([stored(row) for row in rows], type=arrow(ROW))}
    return spark.createDataFrame(pa.table(columns)).coalesce(1).cache()


def expected(node: Node, row: dict[str, Any]) -> Any:
    try:
        return stored(interpret(node, {"data": row}))
    except FAILURES:
        return FAILED


def evaluate(frame: DataFrame, nodes: Mapping[str, Node], keep: Sequence[str] = ()) -> DataFrame:
    """A struct of ``value`` and ``failed`` for each named expression; where one failed its value means nothing."""
    texts = [f"`{name}`" for name in keep]
    for name, node in nodes.items():
        made = emit_spark(node)
        texts.append(f"named_struct('value', {made.value}, 'failed', {made.fails or 'FALSE'}) AS `{name}`")
    return frame.selectExpr(*texts)


def judged(
    frame: DataFrame, rows: list[dict[str, Any]], nodes: dict[str, Node]
) -> Iterable[tuple[str, dict[str, Any], Any, Any]]:
    """For each pair: text, row, what Spark says, what the reference says."""
    texts = list(nodes)
    for start in range(0, len(texts), A_QUERY):
        part = {f"e{place}": text for place, text in enumerate(texts[start : start + A_QUERY])}
        found = evaluate(frame, {name: nodes[text] for name, text in part.items()}, ["n"]).toArrow().to_pylist()
        for record in found:
            row = rows[record["n"]]
            for name, text in part.items():
                result = FAILED if record[name]["failed"] else without_nulls(record[name]["value"])
                yield text, row, result, expected(nodes[text], row)


def same(a: Any, b: Any) -> bool:
    return (type(a) is type(b) and a == b) or repr(a) == repr(b)


def nodes_of(seeds: range, scope: NameScope, *, simplified: bool = False) -> dict[str, Node]:
    found: dict[str, Node] = {}
    for seed in seeds:
        text = Generator(seed).any(random.Random(seed).randrange(1, 4))
        node = check(text, scope).node
        if node is not None:
            found[text] = simplify(node) if simplified else node
    return found


def judge(spark: SparkSession, seeds: range, rows: int, *, strange: bool = False, simplified: bool = False) -> int:
    given = [make_row(random.Random(f"{seeds}{n}"), strange=strange) for n in range(rows)]
    frame = frame_of(spark, given)
    nodes = nodes_of(seeds, row_scope(trusted=not strange), simplified=simplified)
    pairs = 0
    for text, row, found, wanted in judged(frame, given, nodes):
        assert same(found, wanted), (
            text,
            {k: v for k, v in row.items() if k in text},
            found,
            wanted,
            emit_spark(nodes[text]),
        )
        pairs += 1
    frame.unpersist()
    return pairs


def test_spark_equals_the_reference(spark: SparkSession) -> None:
    assert judge(spark, range(60), 14) >= 650


def test_spark_equals_the_reference_on_simplified_expressions(spark: SparkSession) -> None:
    assert judge(spark, range(7000, 7030), 10, simplified=True) >= 250


def test_spark_equals_the_reference_on_doubles_nobody_checked(spark: SparkSession) -> None:
    assert judge(spark, range(8000, 8030), 10, strange=True) >= 250


CONVERTED = [
    *(f"to_unit({name}, '{unit}')" for name, unit in (("m", "mm"), ("m", "km"), ("m", "ft"), ("m", "mi"), ("m", "au"))),
    *(f"to_unit(t, '{unit}')" for unit in ("degF", "K")),
    "to_unit(m, 'mm') <= 946 [mm]", "to_unit(m, 'ft') > 3 [ft]", "to_unit(t, 'degF') = 68 [degF]",
    *(f"round(d, {digits})" for digits in range(5)), "round(m)", "format_number(d, 2)", "to_decimal(d, 20, 3)",
]  # fmt: skip


def test_spark_converts_units_and_rounds_as_the_reference_does(spark: SparkSession) -> None:
    """Whole numbers, halves of a digit and their neighbours, and the largest and smallest there are."""
    pairs = [*halves(11, 60), *((value, 0) for value in doubles(12, 60))]
    rows = [{**make_row(random.Random(n)), **dict.fromkeys("dmt", value)} for n, (value, _) in enumerate(pairs)]
    frame = frame_of(spark, rows)
    for simplified in (False, True):
        written = {text: check(text, row_scope()).tree() for text in CONVERTED}
        nodes = {text: simplify(node) if simplified else node for text, node in written.items()}
        for text, row, found, wanted in judged(frame, rows, nodes):
            assert same(found, wanted), (text, row["d"], found, wanted)
    frame.unpersist()


@pytest.mark.soak
def test_spark_equals_the_reference_at_length(spark: SparkSession) -> None:
    pairs = 0
    for start in range(200_000, 204_800, 400):
        pairs += judge(spark, range(start, start + 400), 50)
    assert pairs >= 200_000
    assert judge(spark, range(7000, 7400), 10, simplified=True) >= 3_000
    assert judge(spark, range(8000, 8400), 10, strange=True) >= 3_000


def test_examples_of_the_function_table_hold_on_spark(spark: SparkSession) -> None:
    examples = [example for function in FUNCTIONS.values() for example in function.examples]
    nodes = {f"e{place}": check(text, NameScope()).tree() for place, (text, _) in enumerate(examples)}
    (record,) = evaluate(spark.range(1), nodes).toArrow().to_pylist()
    for place, (text, result) in enumerate(examples):
        found = record[f"e{place}"]
        assert not found["failed"], text
        assert same(found["value"], interpret(check(result, NameScope()).tree(), {})), text


INEXACT = [
    "sin(d)", "cos(d)", "tan(d)", "atan2(d, e_)", "exp(d)", "ln(d)", "power(d, e_)", "power(d, 2)",
    "exp(d) * sin(e_) + 1",
    "geo_distance(t / 1 [degC], d, 47, 8)", "distance(struct(d AS lat, e_ AS lon), struct(47 AS lat, 8 AS lon))",
]  # fmt: skip


def test_inexact_functions_agree_to_the_last_digits(spark: SparkSession) -> None:
    """The table marks functions whose last digit is the engine's own; failure and null must agree all the same."""
    given = [make_row(random.Random(n)) for n in range(60)]
    frame = frame_of(spark, given)
    nodes = {text: check(text, row_scope()).tree() for text in INEXACT}
    values = 0
    for text, row, found, wanted in judged(frame, given, nodes):
        if isinstance(wanted, float):
            assert math.isclose(found, wanted, rel_tol=1e-12, abs_tol=1e-300), (text, row, found, wanted)
            values += 1
        else:
            assert found == wanted, (text, row)
    assert values > 200


AREAS = [
    "in_polygon(d, e_, transform(ns, x -> struct(x AS x, (x * 7.3) % 97 AS y)))",
    "inside(at, struct(transform(ns, x -> struct(x AS x, (x * 7.3) % 97 AS y)) AS points))",
    "inside(struct(d AS lat, e_ AS lon), struct(transform(ns, x -> struct(x % 97 AS lat, x AS lon)) AS points))",
]


def test_polygons_agree(spark: SparkSession) -> None:
    given = [make_row(random.Random(f"area{n}")) for n in range(400)]
    frame = frame_of(spark, given)
    scope = replace(row_scope(), with_units=False)
    nodes = {text: check(text, scope).tree() for text in AREAS}
    outcomes = set()
    for text, row, found, wanted in judged(frame, given, nodes):
        assert same(found, wanted), (text, row, found, wanted)
        outcomes.add(wanted)
    assert outcomes >= {True, False, None, FAILED}


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_the_text_does_not_depend_on_ansi_mode(spark: SparkSession, ansi: str) -> None:
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        assert judge(spark, range(9000, 9030), 8) > 150
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before or "true")
