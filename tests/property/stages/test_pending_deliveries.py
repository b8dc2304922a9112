"""Whatever comes in whatever order: every event is delivered once, in its producer's order, or is a dead letter."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from situ.project.check import CheckedProject, check_folder
from tests.project_files import write
from tests.unit.stages.test_conversion_state import Trip, trip_files

HOLD = 5
STEP = st.tuples(st.sampled_from(("truck", "status")), st.sampled_from(("t1", "t2")), st.integers(0, 30))


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> CheckedProject:
    return check_folder(write(tmp_path_factory.mktemp("trips"), trip_files(f"hold {HOLD} s")))


def expected(steps: list[tuple[str, str, int]], product: int, until: int) -> float | None:
    """By a look through everything: the latest reference not later than the event, of those that had come by then."""
    _, truck, second = steps[product]
    came = [(at, number) for number, (kind, of, at) in enumerate(steps[: until + 1]) if (kind, of) == ("truck", truck)]
    latest = max((at for at, _ in came if at <= second), default=None)
    return None if latest is None else float(max(number for at, number in came if at == latest))


@given(steps=st.lists(STEP, max_size=30), again=st.integers(0, 30))
def test_nothing_is_lost_repeated_or_overtaken(
    checked: CheckedProject, steps: list[tuple[str, str, int]], again: int
) -> None:
    trip = Trip(Path(), checked=checked)
    delivered: list[tuple[int, float, int]] = []
    latest = -1
    for number, (kind, truck, second) in enumerate(steps):
        if number == again:  # as an engine that starts again
            kept = json.loads(trip.interpretation.outgoing.as_text()), trip.holding.as_json()
            trip.interpretation.outgoing.forget()
            trip.interpretation.outgoing.restore(kept[0])
            trip.holding.restore(kept[1])
        if kind == "truck":
            trip.truck(second, float(number), truck)
        else:
            trip.status(second, str(number), truck)
        latest = max(latest, second)
        delivered += [(int(product), lat, number) for product, lat in trip.lats if lat is not None]
        trip.heard.clear()
    dead = {int(json.loads(each.original)["data"]["product"]) for each in trip.dead}
    done = [product for product, _, _ in delivered]
    statuses = [number for number, (kind, _, _) in enumerate(steps) if kind == "status"]
    assert len(done) == len(set(done))
    assert not dead & set(done)
    assert len(done) + len(dead) + len(trip.holding) == len(statuses)
    for truck in ("t1", "t2"):
        own = [product for product in done if steps[product][1] == truck]
        assert own == sorted(own)
    for product, lat, when in delivered:
        assert lat == expected(steps, product, when)
    for product in dead:
        assert expected(steps, product, product) is None
        assert steps[product][2] + HOLD <= latest
    for (_, truck), queue in trip.holding._queues.items():
        first = int(json.loads(queue[0].line)["data"]["product"])
        assert expected(steps, first, len(steps)) is None, truck
        assert steps[first][2] + HOLD > latest
