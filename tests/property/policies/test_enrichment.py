"""Enrichment in columns gives the rows that looking at every observation and every instance gives."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

from situ.lang.expr.emit.vectors import below, column
from situ.policies.enrichment.enrich import EnrichedRows, Enrichment, PushObservations
from situ.policies.enrichment.instances import FEW, MANY, ConceptInstances, InstanceColumns
from situ.policies.enrichment.rows import BASE, no_rows, scalar_fields
from situ.policies.model import InstancesByConcept, Observation
from situ.policies.ontology.model import Ontology
from situ.policies.plan import Leaf, leaves_of, relations_of
from tests.situations import ONTOLOGY, generate, leaf_rows, policy, read_rows, saw
from tests.volume import cases, seeds


def observed(enrichment: Enrichment, observations: Iterable[Observation]) -> list[PushObservations]:
    """Observations as the columns that this enrichment wants, a batch for each push source."""
    by_push: dict[tuple[str, str, str], list[Observation]] = {}
    for each in observations:
        by_push.setdefault((each.push, each.concept, each.attribute), []).append(each)
    found = []
    for (push, concept, attribute), seen in by_push.items():
        scalars = enrichment.scalars(concept, attribute)
        base: list[Sequence[Any]] = [
            [each.time for each in seen],
            [each.cause.source for each in seen],
            [each.cause.id for each in seen],
            [push] * len(seen),
            [0] * len(seen),
            [each.identity for each in seen],
        ]
        arrays = [pa.array(values, field.type) for values, field in zip(base, BASE, strict=True)]
        arrays += [
            column([below({attribute: each.value}, scalar.path) for each in seen], scalar.type) for scalar in scalars
        ]
        schema = pa.schema([*BASE, *scalar_fields(scalars)])
        found.append(
            PushObservations(
                concept=concept, attribute=attribute, rows=pa.RecordBatch.from_arrays(arrays, schema=schema)
            )
        )
    return found


def enriched(
    leaves: Iterable[Leaf],
    observations: Iterable[Observation],
    instances: InstancesByConcept,
    ontology: Ontology = ONTOLOGY,
) -> EnrichedRows:
    enrichment = Enrichment(leaves, ontology)
    knowledge = InstanceColumns(ontology)
    knowledge.take(instances)
    return enrichment.run(observed(enrichment, observations), knowledge)


def plain_rows(leaf: Leaf, batch: pa.RecordBatch) -> list[str]:
    return sorted(map(repr, read_rows(leaf, batch)))


def leaves_in(*policies: Any) -> list[Leaf]:
    return [leaf for each in policies for relation in relations_of(each) for leaf in leaves_of(each, relation)]


def hold_equal(seeds: range, together: int) -> int:
    """Policies of several cases at once, on the observations and instances of each."""
    number = 0
    for start in range(seeds.start, seeds.stop, together):
        cases = [generate(seed) for seed in range(start, start + together)]
        leaves = leaves_in(*(case.policy for case in cases))
        for case in cases:
            found = enriched(leaves, case.observations, case.instances)
            for leaf in leaves:
                expected = plain_rows(leaf, leaf_rows(leaf, case.observations, case.instances))
                assert plain_rows(leaf, found.rows.get(leaf, no_rows(leaf))) == expected, (case.text, leaf)
                number += len(expected)
    return number


@seeds(range(30), range(10_000, 20_000))
def test_rows_of_leaves_equal_those_found_one_by_one(seeds: range) -> None:
    assert hold_equal(seeds, 1) > 8 * len(seeds)


@seeds(range(1000, 1009), range(10_000, 20_000))
def test_policies_that_share_leaves_get_the_same_rows(seeds: range) -> None:
    assert hold_equal(seeds, 12) > 27 * len(seeds)


RELATIONS = (
    "inside({a}.pos, {r}.area)",
    "{a}.where = {r}.id",
    "{a}.x > {r}.limit",
    "{a}.x = {r}.limit",
    "{a}.where = {r}.floor AND 10 / {r}.limit > {a}.level",
    "distance({a}.pos.x, {a}.pos.y, {r}.area.x1, {r}.area.y1) <= 5",
    "inside({a}.pos, {r}.area) AND 10 / {r}.limit > {a}.level",
)


@cases(75, 300)
@pytest.mark.parametrize("text", RELATIONS)
@pytest.mark.parametrize("constraints", [("", ""), (" (level > 1)", ""), (" (NOT boss IS NULL)", " (limit < 15)")])
def test_many_instances_are_found_by_an_index(text: str, constraints: tuple[str, str], cases: int) -> None:
    dice = random.Random(f"{text} {constraints}")
    instances, observations = many(dice, cases)
    made = policy(f"thing A{constraints[0]}, place R{constraints[1]}", text.format(a="A", r="R"))
    [leaf] = leaves_in(made)
    found = enriched([leaf], observations, instances)
    expected = leaf_rows(leaf, observations, instances)
    assert expected.num_rows > 0
    assert list(read_rows(leaf, found.rows[leaf])) == list(read_rows(leaf, expected))


def many(dice: random.Random, events: int) -> tuple[Mapping[str, Mapping[str, Mapping[str, Any]]], list[Observation]]:
    def lacking(values: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in values.items() if dice.random() < 0.9}

    places = {}
    for number in range(120):
        x, y = dice.uniform(-5, 50), dice.uniform(-5, 50)
        wide = dice.choice((0.0, 3.0, 5.0, -1.0, 100.0, 1e308))
        area = {"x1": x, "y1": y, "x2": x + wide, "y2": y + dice.choice((2.0, wide))}
        floor = f"r{dice.randrange(20)}"
        places[f"r{number}"] = lacking({"area": area, "limit": float(dice.randrange(20)), "floor": floor})
    things = {
        str(number): lacking({"level": dice.randrange(4), "boss": str(dice.randrange(9)), "status": "guest"})
        for number in range(30)
    }
    seen = []
    for number in range(events):
        identity = str(dice.randrange(35))
        position = {"x": dice.choice((dice.uniform(-9, 60), 1e300)), "y": dice.uniform(-9, 60)}
        for attribute, value in (
            ("pos", position),
            ("x", float(dice.randrange(20))),
            ("where", f"r{dice.randrange(150)}"),
        ):
            given = None if dice.random() < 0.05 else value
            seen.append(saw(identity, attribute, given, number, id=f"{attribute}{number}"))
    return {"thing": things, "place": places}, seen


def test_what_is_known_may_change_between_batches() -> None:
    made = policy("thing A, place R (limit < 5)", "A.where = R.id")
    [leaf] = leaves_in(made)
    enrichment, knowledge = Enrichment([leaf], ONTOLOGY), InstanceColumns(ONTOLOGY)
    batch = observed(enrichment, [saw("1", "where", "r1", 1)])
    for limit, rows in ((3.0, 1), (7.0, 0), (4.0, 1)):
        knowledge.take({"place": {"r1": {"limit": limit}}})
        assert enrichment.run(batch, knowledge).rows.get(leaf, no_rows(leaf)).num_rows == rows


@pytest.mark.parametrize("known", [0, 1, 5, FEW, 20 * FEW])
@pytest.mark.parametrize("asked", [0, 1, FEW, FEW + 1, 2 * MANY * FEW])
def test_identities_are_found_at_once_where_they_are_one_by_one(known: int, asked: int) -> None:
    dice = random.Random(f"{known} {asked}")
    names = [str(number) for number in dice.sample(range(2 * known), known)]
    of = ConceptInstances({name: {} for name in names})
    identities = pa.array([str(dice.randrange(2 * known + 1)) for _ in range(asked)], pa.string())
    expected = [sorted(names).index(each) if each in names else known for each in identities.to_pylist()]
    assert of._places_at_once(identities).tolist() == expected
    assert of._places_one_by_one(identities).tolist() == expected
    assert of.places(identities).tolist() == expected


def test_identities_that_come_and_go_are_seen_by_the_next_batch() -> None:
    knowledge, asked = InstanceColumns(ONTOLOGY), pa.array(["1", "2", "3"])
    for things, places in ((("1", "3"), [0, 2, 1]), (("2",), [1, 0, 1]), ((), [0, 0, 0])):
        knowledge.take({"thing": {each: {} for each in things}})
        assert knowledge.of("thing").places(asked).tolist() == places


def test_unknown_identities_and_failing_tests_are_counted() -> None:
    made = policy("thing A, place R", "10 / A.x > R.limit", "10 / A.x > 1")
    leaves = leaves_in(made)
    observations = [saw("1", "x", 0.0, 1), saw("2", "x", 1.0, 2), saw("7", "x", 0.0, 3)]
    instances = {"thing": {"1": {}, "2": {}}, "place": {"r1": {"limit": 1.0}, "r2": {"limit": 2.0}}}
    found = enriched(leaves, observations, instances)
    [unknown] = found.unknown
    assert (unknown.count, unknown.sample) == (1, "7")
    assert unknown.problem.code.code == "S245"
    assert [failure.count for failure in found.failures] == [4, 2]
    assert [dict(failure.sample) for failure in found.failures] == [
        {"left.x": 0.0, "right.limit": 1.0},
        {"left.x": 0.0},
    ]
    assert found.failures[0].problem.code.code == "S246"
    assert "left.x = 0.0, right.limit = 1.0" in found.failures[0].problem.message


def test_nothing_is_unknown_where_nobody_could_know() -> None:
    made = policy("thing A", "A.x > 1")
    assert enriched(leaves_in(made), [saw("1", "x", 2.0, 1)], {}).unknown == ()


def test_failures_beside_an_index_are_counted_as_without_one() -> None:
    """Where the indexed part is unknown, the test can still fail by another."""
    text = "inside(A.pos, R.area) AND 10 / R.limit > 1"
    dice = random.Random(9)
    instances, observations = many(dice, 300)
    [leaf] = leaves_in(policy("thing A, place R", text))
    places = list(instances["place"].items())
    found = enriched([leaf], observations, instances)
    parts = [dict(places[start : start + 20]) for start in range(0, len(places), 20)]
    counted = sum(
        failure.count
        for part in parts  # so few that no index is made
        for failure in enriched([leaf], observations, {**instances, "place": part}).failures
    )
    assert sum(failure.count for failure in found.failures) == counted > 0
