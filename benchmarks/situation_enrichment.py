"""From the log to rows of leaves: how fast events become observations, and observations meet what is known."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.bench import Bench
from benchmarks.harness import Scenario, Variant, Verdict
from benchmarks.situation_events import SECOND, domain, security_plan
from situ.event.lines import encode_rows
from situ.event.message import join_lines
from situ.event.row import Row
from situ.lang.expr.emit.python import compile_test
from situ.lang.types.model import POINT, STRING, Attribute, Struct
from situ.lang.types.table import Types
from situ.policies.enrichment.enrich import Enrichment, PushObservations
from situ.policies.enrichment.instances import InstanceColumns
from situ.policies.enrichment.observations import ObservationDecoder
from situ.policies.model import LEFT, RIGHT, InstancesByConcept
from situ.policies.plan import Leaf, PolicyPlan
from situ.sources.model import Push

PEOPLE, PER_MESSAGE, SIDE = 1_000, 500, 12.0
_SIGHTING = Struct(
    "Sighting",
    (
        Attribute(name="who", type=STRING),
        Attribute(name="device", type=STRING),
        Attribute(name="at", type=POINT),
    ),
)
TYPES = Types(types={"Sighting": _SIGHTING}, events=frozenset({"Sighting"}))
PUSH = Push(name="seen", event="Sighting", concept="person", id=("who",), attribute="position", value=("at",))


def known(rooms: int) -> InstancesByConcept:
    """People, a third of them guests; rooms in a square, a fifth of them restricted."""
    wide = max(1, int(rooms**0.5))
    areas = ((number % wide * SIDE, number // wide * SIDE) for number in range(rooms))
    return {
        "person": {
            f"person {number}": {"status": "guest" if number % 3 == 0 else "employee"} for number in range(PEOPLE)
        },
        "room": {
            f"room {number}": {
                "security": "open" if number % 5 else "restricted",
                "area": {"x1": x, "y1": y, "x2": x + 10.0, "y2": y + 10.0},
            }
            for number, (x, y) in enumerate(areas)
        },
    }


def messages(count: int, rooms: int) -> list[bytes]:
    """Sightings anywhere in the building, as messages of the root log."""
    dice = np.random.default_rng(5)
    far = max(1.0, rooms**0.5) * SIDE
    who, x, y = (
        dice.integers(0, PEOPLE, count),
        dice.uniform(0, far, count).round(3),
        dice.uniform(0, far, count).round(3),
    )
    rows = []
    for number in range(count):
        time = number * SECOND // 10_000
        at = (who[number], float(x[number]), float(y[number]))
        rows.append(
            Row(
                pos=0,
                client="reader-1",
                incarnation=1,
                seq=number,
                context="root",
                recv=time + 5000,
                id=f"reader-1.1.{number}",
                source="reader-1/sightings",
                type="Sighting",
                time=time,
                ad="sightings",
                confidence=None,
                ext="",
                data=b'{"who":"person %d","device":"reader-1","at":{"x":%r,"y":%r}}' % at,
            )
        )
    lines = encode_rows(rows)
    return [join_lines(lines[start : start + PER_MESSAGE]) for start in range(0, count, PER_MESSAGE)]


def enrichment_of(plans: list[PolicyPlan]) -> Enrichment:
    return Enrichment((each.leaf for plan in plans for each in plan.leaves), plans[0].ontology)


def _read(observing: ObservationDecoder, bodies: list[bytes], count: int) -> int:
    found = observing.messages(bodies)
    assert sum(each.rows.num_rows for each in found.observed) == count
    return count


def _enriched(
    enrichment: Enrichment, knowledge: InstanceColumns, observed: tuple[PushObservations, ...], count: int
) -> int:
    assert enrichment.run(observed, knowledge).rows
    return count


def _one_by_one(leaf: Leaf, instances: InstancesByConcept, observed: tuple[PushObservations, ...], most: int) -> int:
    """The same join as a loop over generated Python."""
    assert leaf.test is not None
    test = compile_test(leaf.test, (LEFT, RIGHT)).call
    rooms = [{"id": name, **room} for name, room in instances["room"].items() if room["security"] == "restricted"]
    people, found = instances["person"], 0
    rows = observed[0].rows.slice(0, most)
    for identity, x, y in zip(
        *(rows.column(name).to_pylist() for name in ("identity", "position.x", "position.y")), strict=True
    ):
        if people[identity]["status"] == "guest":
            seen = {"id": identity, **people[identity], "position": {"x": x, "y": y}}
            found += sum(map(bool, (test(seen, room) for room in rooms)))
    assert found
    return most


def _variants(bench: Bench) -> list[Variant]:
    count = bench.some(200_000, 5_000)
    of = domain()
    one = security_plan(of)
    enrichment = enrichment_of([one])
    observing = ObservationDecoder({PUSH.name: PUSH}, TYPES, enrichment)
    variants = []
    for rooms in (100, 1_000):
        bodies, instances = messages(count, rooms), known(rooms)
        knowledge = InstanceColumns(of.ontology)
        knowledge.take(instances)
        observed = observing.messages(bodies).observed
        if rooms == 100:
            variants.append(Variant(name=READ, work=partial(_read, observing, bodies, count)))
            leaf = next(each.leaf for each in one.leaves if each.leaf.other and "guest" in repr(each.leaf.constraint))
            alone = partial(_one_by_one, leaf, instances, observed, count // 20)
            variants.append(Variant(name=f"{rooms} rooms, row by row, one leaf of four", work=alone))
        work = partial(_enriched, enrichment_of([one]), knowledge, observed, count)
        variants.append(Variant(name=f"{rooms:,} rooms", work=work))
        if rooms == 100:
            many = [security_plan(of, name=f"p{number}", guest=f"guest{number or ''}") for number in range(100)]
            work = partial(_enriched, enrichment_of(many), knowledge, observed, count)
            variants.append(Variant(name="100 rooms, 100 policies with other constraints", work=work))
    return variants


READ = "events of the log read"


def _judge(medians: dict[str, float]) -> list[Verdict]:
    found = []
    for name, goal in ((READ, 500_000), ("100 rooms", 1_000_000)):
        if name in medians:
            value = medians[name]
            found.append(
                Verdict(what=f"{name}, a second on a core", value=value, goal=f"≥ {goal:,}", met=value >= goal)
            )
    return found


SCENARIOS = [
    Scenario(
        name="situation-enrichment",
        title="Events to rows of leaves",
        unit="events/s",
        about=(
            "The security policy, one process: sightings as they lie in the log are read into columns; these are held "
            "against a thousand people and so many rooms, in columns. Beside it, one join of the four as a loop."
        ),
        variants=_variants,
        judge=_judge,
        repetitions=5,
    ),
]
