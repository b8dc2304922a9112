"""Mediated subscriptions with Spark as the second judge: transformed and then filtered, and asked before that.

What engines ask of root events is compiled; it is held to what Spark finds among the events that it has transformed.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from situ.contexts.model import Direction
from situ.contexts.transform.columns import in_columns
from situ.contexts.transform.converter import Converter
from situ.contexts.transform.filter_rewrite import rewrite_subscription
from situ.contexts.transform.steps import ValueStep
from situ.contexts.transform.transformation import Transformation, transformations
from situ.lang.expr.checker.check import check_condition
from situ.lang.expr.emit.python import compile_test
from situ.lang.expr.emit.spark import SparkExpression, emit_spark
from situ.lang.expr.overload import spark_name
from situ.lang.expr.runtime import FAILURES
from situ.lang.expr.scope import event_scope
from situ.lang.expr.tree import Field, MakeStruct, Node, Read, walk
from situ.lang.problems import Problems, SituError
from situ.lang.records import replace
from situ.lang.types.arrow_schema import arrow_type
from situ.lang.types.model import BOOLEAN, Attribute, Struct
from situ.lang.types.table import Types
from tests.integration.spark.test_expressions import stored
from tests.property.contexts.test_filter_rewrite import EVENTS, FILTERS, Filters, holds, outcome
from tests.transformations import ENVELOPE, Case, generated_case, laid_out, make_attributes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

A_QUERY = 50
ANSWER = Struct("Answer", (Attribute(name="holds", type=BOOLEAN, optional=True),))


@dataclass(frozen=True, slots=True)
class Asked:
    """A filter on what is delivered, what is asked of root events instead, and whether each event should be wanted."""

    column: str
    where: str
    made: Transformation
    before: SparkExpression | None
    """Asked of root events; not if it is about parts of what is put together first, of which Spark has no columns."""
    transformed: SparkExpression
    after: SparkExpression
    events: list[dict[str, Any]]
    wanted: list[bool | None]
    """Nothing of those that are dead letters in the context, wanted or not."""

    def envelope(self, type: Struct) -> dict[str, Any]:
        return {name: ENVELOPE[name] for name in ("id", "source", "time")} | {"type": type.name}


def filters(seeds: range) -> Iterator[Asked]:
    for seed in seeds:
        case = generated_case(seed)
        if case is None or case.direction is not Direction.OUT:
            continue
        outbound = dict(transformations(case.context, Direction.OUT, Problems()))
        for made in outbound.values():
            if made.target.name in case.context.types.events and not made.externals:
                with suppress(SituError):  # what Spark cannot compute exactly it is not asked to
                    yield from filters_on(seed, case, made, outbound)


def filters_on(seed: int, case: Case, made: Transformation, outbound: dict[str, Transformation]) -> Iterator[Asked]:
    dice = random.Random(seed)
    converter = Converter(made)
    sent = [make_attributes(dice, made.source, made.types) for _ in range(EVENTS)]
    delivered = [outcome(converter, data) for data in sent]
    some = Filters(dice, made.target, delivered)
    if not some.places or not some.delivered:
        return
    scope = event_scope(made.target, types=made.targets)
    for number in range(FILTERS):
        where = some.text()
        checked = check_condition(where, scope)
        if checked.node is None:
            continue  # numbers with units are compared with quantities, which this does not write
        asked = rewrite_subscription("a/b", [made.target.name], where, case.context, outbound, {})[made.source.name]
        received = {**ENVELOPE, "type": made.target.name}
        wanted = [None if data is None else holds(checked.node, received, data) for data in delivered]
        column = f"c{seed}_{made.source.name}_{number}"
        found = Asked(
            column,
            where,
            made,
            before=None
            if any(isinstance(each, Field) for each in walk(asked))
            else asked_in_columns(column, asked, made),
            transformed=emit_spark(in_columns(made), reading(column)),
            after=asked_in_columns(
                f"{column}_out", checked.node, replace(made, source=made.target, types=made.targets)
            ),
            events=sent,
            wanted=wanted,
        )
        hold_compiled(asked, found)
        yield found


def reading(column: str) -> Callable[[Read], str]:
    """From a column of data and one of envelopes."""

    def reader(node: Read) -> str:
        first = column if node.variable == "data" else f"{column}_{node.variable}"
        return ".".join(spark_name(name) for name in (first, *node.path))

    return reader


def asked_in_columns(column: str, condition: Node, made: Transformation) -> SparkExpression:
    """The condition over the columns of the source, as the one attribute of a struct."""
    answer = ValueStep(node=MakeStruct((("holds", condition),), ANSWER), function="asked")
    types = Types(types={ANSWER.name: ANSWER})
    return emit_spark(in_columns(replace(made, step=answer, target=ANSWER, targets=types)), reading(column))


def hold_compiled(condition: Node, asked: Asked) -> None:
    """The function that an engine would index or call."""
    test = compile_test(condition, ("event", "data")).call
    for data, wanted in zip(asked.events, asked.wanted, strict=True):
        try:
            found = bool(test(asked.envelope(asked.made.source), data))
        except FAILURES:
            found = False
        assert wanted is None or found == wanted, (asked.column, asked.where, data)


def judge(spark: SparkSession, found: Sequence[Asked]) -> Counter[str]:
    """How many answers were compared, how many of them were yes, and how many were given before transforming."""
    counts: Counter[str] = Counter()
    for start in range(0, len(found), A_QUERY):
        some = found[start : start + A_QUERY]
        columns: dict[str, pa.Array] = {"n": pa.array(range(EVENTS))}
        transformed, answers = ["*"], ["n"]
        for each in some:
            values = [stored(laid_out(data, each.made.source, each.made.types)) for data in each.events]
            columns[each.column] = pa.array(values, arrow_type(each.made.source, each.made.types))
            columns[f"{each.column}_event"] = pa.array([each.envelope(each.made.source)] * EVENTS)
            columns[f"{each.column}_out_event"] = pa.array([each.envelope(each.made.target)] * EVENTS)
            transformed.append(f"{each.transformed.value} AS {spark_name(each.column + '_out')}")
            before = "NULL" if each.before is None else answer(each.before)
            answers.append(f"struct({before} AS before, {answer(each.after)} AS after) AS {spark_name(each.column)}")
        frame = spark.createDataFrame(pa.table(columns)).coalesce(1).selectExpr(*transformed).selectExpr(*answers)
        for record in frame.toArrow().to_pylist():
            for each in some:
                wanted = each.wanted[record["n"]]
                if wanted is None:
                    continue
                told = record[each.column]
                assert told["after"] == wanted, (each.column, each.where, each.events[record["n"]], each.after)
                if each.before is not None:
                    assert told["before"] == wanted, (each.column, each.where, each.events[record["n"]], each.before)
                    counts["before"] += 1
                counts["all"] += 1
                counts["yes"] += wanted
    return counts


def answer(asked: SparkExpression) -> str:
    return f"coalesce(NOT ({asked.fails or 'FALSE'}) AND ({asked.value}).holds, FALSE)"


def test_spark_asks_root_events_as_one_would_ask_what_is_delivered(spark: SparkSession) -> None:
    found = list(islice(filters(range(400)), 60))
    assert len(found) == 60
    counts = judge(spark, found)
    assert counts["all"] > 275
    assert counts["before"] > counts["all"] / 2
    assert counts["all"] / 4 < counts["yes"] < counts["all"] * 3 / 4


@pytest.mark.soak
def test_spark_asks_root_events_as_one_would_ask_what_is_delivered_at_length(spark: SparkSession) -> None:
    """For all the cases that the generated functions are asked about."""
    for start in range(0, 8_000, 500):
        assert judge(spark, list(filters(range(start, start + 500))))["all"] > 1000
