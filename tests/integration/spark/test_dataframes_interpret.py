"""DataFrames in the terms of other contexts: what engines make of each event, as a batch and as a stream."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from situ.contexts.transform.transformation import transformations
from situ.lang.problems import Problems, SituError
from tests.dataframes import Converted, judge, project_of
from tests.transformations import generated_case, make_attributes, make_struct
from tests.unit.contexts.test_resolve_rules import ROWS
from tests.volume import cases
from tests.worked_examples import Example, competing, logistics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVENTS = 6


def worked(spark: SparkSession, examples: Iterator[Example]) -> list[Converted]:
    return [
        Converted(each.name, project_of(spark, each.context), each.made, each.context.id, [each.data] * 2)
        for each in examples
    ]


def test_the_worked_examples(spark: SparkSession, tmp_path: Path) -> None:
    """Four contexts of logistics, and rules that compete for one place."""
    found = worked(spark, (*logistics(), *map(competing, ROWS)))
    assert judge(spark, found) == 2 * (10 + 26)
    assert {step.form for each in found[:10] for step in _steps(spark, each)} == {"catalyst"}
    assert judge(spark, found[::4], tmp_path) == 2 * 9


def _steps(spark: SparkSession, each: Converted) -> list[object]:
    from situ.spark.dataframes.interpret import frame_step

    return [frame_step(each.way, each.kind, each.to)]


def generated(spark: SparkSession, count: int, start: int = 0) -> list[Converted]:
    """So many of generated contexts, each with events of which some fail."""
    found: list[Converted] = []
    seed = start
    while len(found) < count:
        seed += 1
        case = generated_case(seed)
        if case is None:
            continue
        names = {event.name for event in case.events}
        project = project_of(spark, case.context)
        for name, made in transformations(case.context, case.direction, Problems()).items():
            if name in names and not made.externals:
                dice = random.Random(seed)
                makes = [make_struct if dice.random() < 0.2 else make_attributes for _ in range(EVENTS)]
                events = [make(dice, made.source, made.types) for make in makes]
                with suppress(SituError):  # what Spark cannot compute is not on DataFrames
                    each = Converted(f"d{seed}_{name}", project, made, case.context.id, events)
                    if each.way.execution == "native":
                        found.append(each)
    return found[:count]


@cases(8, 300)
def test_generated_contexts(spark: SparkSession, tmp_path: Path, cases: int) -> None:
    found = generated(spark, cases)
    assert judge(spark, found) == cases * EVENTS
    part = found if cases > 100 else found[:5]
    assert judge(spark, part, tmp_path) == len(part) * EVENTS
