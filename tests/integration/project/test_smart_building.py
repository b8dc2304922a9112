"""The contexts of the smart-building example, held to where the simulated people really are."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from simulator import example_building, simulate
from simulator.sensors import CAMERA_ERROR_ANGLE, CAMERA_ERROR_DISTANCE, METRES_PER_FOOT, READER_ERROR
from simulator.simulation import START

from situ.event.instants import microseconds
from situ.event.lines import encode_rows
from situ.event.row import BadRow, Origin, Row
from situ.project.check import check_folder
from situ.project.create import example_folder
from situ.stages.plan import Plan, compile_plan
from situ.stages.stamp import stamp
from situ.tables.cache import TablesInUse

CONTEXTS = {"TagSeen": "readers", "FaceSeen": "cameras"}


@pytest.fixture(scope="module")
def plan() -> Plan:
    checked = check_folder(example_folder(), {})
    assert checked.deployment is not None
    plan = compile_plan(checked.deployment)
    interpretation = plan.interpretation
    with TablesInUse(example_folder()) as tables:
        interpretation.rows.tables = tables.use(plan.deployment.sources, interpretation.keyed())
    return plan


@pytest.fixture(scope="module")
def events() -> list[dict[str, Any]]:
    simulation = simulate(
        example_building(), duration=timedelta(minutes=1), types=("TagSeen", "FaceSeen", "Sighting"), seed=7
    )
    return [json.loads(line) for text in simulation.json_lines() for line in text.splitlines()]


def taken_in(plan: Plan, events: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], Row | BadRow]]:
    """What sensors sent, each with what it is in root's terms."""
    received = microseconds(START + timedelta(minutes=2))
    for event in events:
        if event["type"] in CONTEXTS:
            context = CONTEXTS[event["type"]]
            origin = Origin(client=event["source"], incarnation=1, seq=1, received=received, pos=65536, context=context)
            [row] = plan.interpretation.into_root(plan.interpretation.decode(json.dumps([event]).encode(), origin))
            yield event, row


def furthest(event: dict[str, Any]) -> float:
    """How far a sensor may be wrong."""
    if event["type"] == "TagSeen":
        return math.sqrt(2) * READER_ERROR
    distance = METRES_PER_FOOT * event["data"]["polar"]["r"]
    return CAMERA_ERROR_DISTANCE + distance * math.radians(CAMERA_ERROR_ANGLE)


def test_readers_and_cameras_agree_with_where_people_are(plan: Plan, events: list[dict[str, Any]]) -> None:
    truth = {
        (each["time"], each["data"]["who"]): (each["data"]["at"]["x"], each["data"]["at"]["y"])
        for each in events
        if each["type"] == "Sighting"
    }
    seen: Counter[str] = Counter()
    for sent, row in taken_in(plan, events):
        assert isinstance(row, Row), row
        assert row.type == "Sighting"
        data = json.loads(row.data)
        at = data["at"]["x"], data["at"]["y"]
        assert math.dist(at, truth[sent["time"], data["who"]]) <= furthest(sent) + 0.02  # values are rounded
        seen[sent["type"]] += 1
    assert min(seen[each] for each in CONTEXTS) > 100


def test_the_desk_abroad_gets_the_same_in_feet(plan: Plan, events: list[dict[str, Any]]) -> None:
    rows, _ = stamp([row for _, row in taken_in(plan, events)], plan)
    worded = plan.interpretation.worded(rows, encode_rows(rows), plan.routing.route(rows), plan.routing)
    groups = {group: plan.routing.groups[group].context for _, group, _ in worded.durable}
    abroad = {index: json.loads(line) for index, group, line in worded.durable if groups[group] == "us"}
    expected = {}
    for index, row in enumerate(rows):
        data = json.loads(row.data)
        x, y = (data["at"][name] / METRES_PER_FOOT for name in "xy")
        if x < 16 and y < 20:
            expected[index] = (data["who"], pytest.approx(x), pytest.approx(y))
    assert len(expected) > 50
    assert {each["type"] for each in abroad.values()} == {"PersonLocated"}
    found = {
        index: (each["data"]["person"], each["data"]["position"]["x"], each["data"]["position"]["y"])
        for index, each in abroad.items()
    }
    assert found == expected


def test_a_badge_nobody_has_is_a_dead_letter(plan: Plan) -> None:
    data = {"reader": "reader-1", "tag": "T-000000", "cartesian": {"dx": 1.0, "dy": 1.0}}
    event = {"specversion": "1.0", "id": "1", "source": "reader-1", "type": "TagSeen", "data": data}
    [(_, bad)] = taken_in(plan, [event])
    assert isinstance(bad, BadRow)
    assert bad.errors[0][:2] == ("INT705", "who")
