"""Spark and edge give the same: root log, deliveries to every subscription, dead letters, in each publisher's order."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.delivered import Delivered
from tests.conformance.generated import NO_FILES, Generated
from tests.conformance.in_contexts import FILES, GeneratedInContexts
from tests.conformance.on_edge import run_on_edge
from tests.conformance.on_spark import run_on_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def compare(spark: Delivered, edge: Delivered) -> None:
    same(spark.root, edge.root, "the root log")
    assert [letter[:2] for letter in spark.dead] == [letter[:2] for letter in edge.dead]
    assert spark.dead == edge.dead
    for kind in ("durable", "live"):
        one, other = getattr(spark, kind), getattr(edge, kind)
        assert sorted(one) == sorted(other), kind
        for subscription in one:
            same(one[subscription], other[subscription], subscription)


def same(spark: Mapping[str, list[Any]], edge: Mapping[str, list[Any]], what: str) -> None:
    """Of each publisher the same events in the same order."""
    assert sorted(spark) == sorted(edge), what
    for publisher in spark:
        keys = [event[:3] for event in spark[publisher]], [event[:3] for event in edge[publisher]]
        assert keys[0] == keys[1], f"{what} from {publisher}"
        assert len(set(keys[0])) == len(keys[0]), f"{what} from {publisher}: repeated"
        assert spark[publisher] == edge[publisher], f"{what} from {publisher}"


def check(
    spark: SparkSession,
    folder: Path,
    seed: int,
    *,
    messages: int,
    subscriptions: int,
    kind: type[Generated] = Generated,
    files: Mapping[str, str] = NO_FILES,
) -> Delivered:
    generated = kind(seed, messages=messages, subscriptions=subscriptions, changes=3)
    edge = run_on_edge(folder / "edge", generated.steps, files)
    # What is compared must be there: most kinds of events and letters, and most subscriptions got something.
    assert sum(map(len, edge.root.values())) > generated.events / 2
    assert len({letter[0] for letter in edge.dead}) >= 6
    assert len(edge.durable) > subscriptions / 2
    assert len(edge.live) > subscriptions / 8
    compare(run_on_spark(spark, folder / "spark", generated.steps, files=files), edge)
    return edge


def check_contexts(spark: SparkSession, folder: Path, seed: int, *, messages: int, subscriptions: int) -> None:
    """Half of the clients speak and hear in the terms of a context."""
    edge = check(
        spark,
        folder,
        seed,
        messages=messages,
        subscriptions=subscriptions,
        kind=GeneratedInContexts,
        files=FILES,
    )
    told = {event[5] for durable in edge.durable.values() for events in durable.values() for event in events}
    assert {"Reading", "Alarm", "Measurable", "Warning"} <= told
    assert {("INT704", "interpret"), ("INT704", "interpret-out")} <= {(code, stage) for code, _, stage, *_ in edge.dead}


def test_spark_and_edge_deliver_the_same(spark: SparkSession, tmp_path: Path) -> None:
    check(spark, tmp_path, 8, messages=60, subscriptions=40)


def test_in_the_terms_of_contexts_too(spark: SparkSession, tmp_path: Path) -> None:
    check_contexts(spark, tmp_path, 18, messages=30, subscriptions=40)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(200, 220))
def test_in_the_terms_of_contexts_whatever_comes(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    check_contexts(spark, tmp_path, seed, messages=200, subscriptions=60)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 140))
def test_spark_and_edge_deliver_the_same_whatever_comes(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    check(spark, tmp_path, seed, messages=400, subscriptions=200)
