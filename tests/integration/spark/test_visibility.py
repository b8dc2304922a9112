"""Spark as a judge of visibility: the native expression says what the three rules say, many cases in one query."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from situ.lang.expr.scope import envelope
from situ.scopes import filter_sets as families
from situ.scopes.filter_sets import FilterNumbers, bits_of, from_words, give_numbers, to_words
from situ.scopes.visibility_plan import VisibilityPlan, compile_visibility
from tests.integration.spark.test_expressions import arrow
from tests.oracles.visibility import visible
from tests.scopes import FILTERS, TEXTS, TYPES, World, make_event, stamp_bits, worlds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FAR = 70
"""Filter numbers begin here in every other world, so that bits need more than one word."""


def judge(spark: SparkSession, cases: int, start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All cases of some worlds in one query: every third world nested, every second with numbers beyond one word."""
    from pyspark.sql import functions as sf

    from situ.spark.columns import PAIRS, pair_rows, visible_candidates

    pairs: list[dict[str, Any]] = []
    candidates: list[dict[str, Any]] = []
    expected: set[int] = set()
    for world in worlds(cases, start=start):
        plan = plan_of(world, monkeypatch)
        pairs += [{"world": world.seed, **row} for row in pair_rows(plan)]
        for ad, sub, event in world.cases:
            row = {
                "n": len(candidates),
                "world": world.seed,
                "advertised": plan.ads[ad],
                "subscribed": plan.subs[sub],
                "bits": list(to_words(stamp_bits(plan.numbers, plan.stamped, event))),
            }
            if visible(world.graph, event, ad, sub):
                expected.add(len(candidates))
            candidates.append(row)
    world_key = pa.field("world", pa.int64())
    pair_table = pa.Table.from_pylist(pairs, schema=pa.schema([world_key, *PAIRS]))
    rows = pa.schema(
        [
            ("n", pa.int64()), world_key, ("advertised", pa.int32()), ("subscribed", pa.int32()),
            ("bits", pa.list_(pa.int64())),
        ]
    )  # fmt: skip
    found = visible_candidates(
        spark.createDataFrame(pa.Table.from_pylist(candidates, schema=rows)).coalesce(1),
        sf.broadcast(spark.createDataFrame(pair_table)),
        ["world"],
    )
    assert {row["n"] for row in found.select("n").toArrow().to_pylist()} == expected
    assert len(candidates) >= cases
    assert 0.15 < len(expected) / len(candidates) < 0.85


def plan_of(world: World, monkeypatch: pytest.MonkeyPatch) -> VisibilityPlan:
    numbers = world.plan.numbers
    if world.seed % 2:
        numbers = type(numbers)(given={text: number + FAR for text, number in numbers.given.items()})
    with monkeypatch.context() as patch:
        if world.seed % 3 == 0:
            patch.setattr(families, "MOST_SETS", 1)
        return compile_visibility(world.graph, world.ads, world.subs, numbers)


def test_spark_says_what_the_rules_say(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    judge(spark, 600, 0, monkeypatch)


@pytest.mark.soak
def test_spark_says_what_the_rules_say_at_length(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    for part in range(10):
        judge(spark, 2_000, 100_000 * (part + 1), monkeypatch)


def test_the_pairs_of_a_plan_as_a_frame(spark: SparkSession) -> None:
    from situ.spark.columns import pairs_frame, visible_candidates

    world = next(iter(worlds(25, start=12)))
    pairs = pairs_frame(spark, world.plan)
    kept = [pair for _, _, pair in world.plan.pairs() if pair.verdict.value != "never"]
    assert pairs.count() == len(kept)
    numbers, stamped = world.plan.numbers, world.plan.stamped
    rows = [
        (
            world.plan.ads[ad],
            world.plan.subs[sub],
            list(to_words(stamp_bits(numbers, stamped, event), least=1)),
        )
        for ad, sub, event in world.cases
    ]
    frame = spark.createDataFrame(rows, "advertised int, subscribed int, bits array<bigint>")
    seen = sum(visible(world.graph, event, ad, sub) for ad, sub, event in world.cases)
    assert visible_candidates(frame, pairs).count() == seen


def test_spark_stamps_the_bits_that_python_stamps(spark: SparkSession) -> None:
    from situ.spark.columns import stamped_bits

    dice = random.Random(4)
    numbers = give_numbers(FilterNumbers(given={"nobody asks for this": FAR - 8}), (text for text in TEXTS))
    stamped = bits_of(number for text, number in numbers.given.items() if text in TEXTS)
    events = [make_event(dice) for _ in range(200)]
    set_bits = 0
    for name in ("Alarm", "Fire", "State", "Note"):
        payload = TYPES.event(name)
        assert payload is not None
        own = [event for event in events if event.type == name]
        table = pa.table(
            {
                "n": pa.array(range(len(own))),
                "event": pa.array([event.envelope for event in own], type=arrow(envelope(TYPES.units))),
                "data": pa.array([event.data for event in own], type=arrow(payload)),
            }
        )
        bits = stamped_bits(FILTERS, numbers, stamped, name).alias("bits")
        found = spark.createDataFrame(table).coalesce(1).select("n", bits).toArrow().to_pylist()
        for row in found:
            assert from_words(row["bits"]) == stamp_bits(numbers, stamped, own[row["n"]]), own[row["n"]]
            set_bits += from_words(row["bits"]).bit_count()
        assert len(found) == len(own) > 20
    assert set_bits > 500
