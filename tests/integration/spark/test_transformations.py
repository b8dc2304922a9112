"""Spark as the second judge of transformations: generated contexts and events, many in one query; the case studies."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from situ.contexts.model import Direction
from situ.contexts.transform.columns import in_columns
from situ.contexts.transform.converter import Converter
from situ.contexts.transform.transformation import Transformation, transformations
from situ.lang.expr.emit.spark import SparkExpression, emit_spark
from situ.lang.expr.overload import spark_name
from situ.lang.expr.runtime import FAILURES
from situ.lang.expr.tree import Read
from situ.lang.problems import Problems, SituError
from situ.lang.types.arrow_schema import arrow_type
from tests.case_studies import CONTEXTS, VARIANTS, Sample, context_of, deployed, folder_of, samples
from tests.integration.spark.test_expressions import FAILED, same, stored, without_nulls
from tests.transformations import ENVELOPE, generated_case, laid_out, make_attributes, make_struct

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

A_QUERY, EVENTS = 25, 6


@dataclass(frozen=True, slots=True)
class Judged:
    """A transformation in Spark SQL, events, and what the compiled converter makes of them."""

    column: str
    made: Transformation
    sql: SparkExpression
    events: list[dict[str, Any]]
    expected: list[Any]


def cases(seeds: range) -> Iterator[Judged]:
    for seed in seeds:
        case = generated_case(seed)
        if case is None:
            continue
        names = {event.name for event in case.events}
        for name, made in transformations(case.context, case.direction, Problems()).items():
            if name in names:
                with suppress(SituError):  # what Spark cannot compute exactly it is not asked to
                    yield judged(f"d{seed}_{name}", made, make_events(seed, made))


def make_events(seed: int, made: Transformation) -> list[dict[str, Any]]:
    dice = random.Random(seed)
    makes = [make_struct if dice.random() < 0.2 else make_attributes for _ in range(EVENTS)]
    return [make(dice, made.source, made.types) for make in makes]


def case_studies(scratch: Path) -> Iterator[Judged]:
    """Their samples, as often as the others have events; what patches do not change once."""
    seen: set[str] = set()
    for study, variant in itertools.product(CONTEXTS, VARIANTS):
        folder = folder_of(study, variant, scratch / variant)
        context = context_of(study, deployed(folder))
        for direction in Direction:
            found: dict[str, list[Sample]] = {}
            for each in samples(folder, context, direction):
                found.setdefault(each.way.source.name, []).append(each)
            for name, some in found.items():
                if some[0].way.plan in seen:
                    continue
                seen.add(some[0].way.plan)
                events = [each.value for each in itertools.islice(itertools.cycle(some), EVENTS)]
                column = f"{study}_{variant}_{direction.value}_{name}"
                yield judged(re.sub(r"\W", "_", column), some[0].way, events)


def judged(column: str, made: Transformation, events: list[dict[str, Any]]) -> Judged:
    def reader(node: Read) -> str:
        first = column if node.variable == "data" else node.variable
        return ".".join(spark_name(name) for name in (first, *node.path))

    converter = Converter(made)
    results = [expected(converter, each) for each in events]
    return Judged(column, made, emit_spark(in_columns(made), reader), events, results)


def expected(converter: Converter, data: dict[str, Any]) -> Any:
    made = converter.transformation
    try:
        return without_nulls(stored(laid_out(converter.data(ENVELOPE, data), made.target, made.targets)))
    except FAILURES:
        return FAILED


def judge(spark: SparkSession, found: Sequence[Judged]) -> int:
    for start in range(0, len(found), A_QUERY):
        some = found[start : start + A_QUERY]
        columns: dict[str, pa.Array] = {"n": pa.array(range(EVENTS))}
        envelope = {name: value for name, value in ENVELOPE.items() if value is not None}
        columns["event"] = pa.array([envelope] * EVENTS)
        texts = ["n"]
        for each in some:
            values = [stored(laid_out(data, each.made.source, each.made.types)) for data in each.events]
            columns[each.column] = pa.array(values, arrow_type(each.made.source, each.made.types))
            fails = each.sql.fails or "FALSE"
            texts.append(f"named_struct('failed', {fails}, 'value', {each.sql.value}) AS {spark_name(each.column)}")
        records = spark.createDataFrame(pa.table(columns)).coalesce(1).selectExpr(*texts).toArrow().to_pylist()
        for record in records:
            for each in some:
                answer = record[each.column]
                result = FAILED if answer["failed"] else without_nulls(answer["value"])
                wanted = each.expected[record["n"]]
                assert same(result, wanted), (each.column, each.events[record["n"]], each.sql)
    return len(found)


def test_spark_transforms_as_the_generated_functions_do(spark: SparkSession) -> None:
    structs_made_on_the_way = (14_101, 15_273, 17_182)
    found = [each for seed in structs_made_on_the_way for each in cases(range(seed, seed + 1))]
    assert judge(spark, [*cases(range(50)), *found]) > 45


def test_spark_transforms_the_samples_of_the_case_studies(spark: SparkSession, tmp_path: Path) -> None:
    found = list(case_studies(tmp_path))
    assert not any(result == FAILED for each in found for result in each.expected)
    assert judge(spark, found) > 40


@pytest.mark.soak
def test_spark_transforms_as_the_generated_functions_do_at_length(spark: SparkSession) -> None:
    """All the cases that the reference judges."""
    for start in (0, *range(10_000, 22_000, 400)):
        assert judge(spark, list(cases(range(start, start + 400)))) > 300
