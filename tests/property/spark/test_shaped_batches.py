"""What tasks of batches deliver to subscriptions with shapes, without Spark: shared anew, repeated, begun elsewhere."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from situ.event.lines import decode_line
from situ.event.message import Message, split_lines
from situ.event.row import Row
from situ.event.subjects import BusNames, shard_of, shards_of
from situ.lang.records import replace
from situ.quality.measurement.meter import MeasuredPublishers
from situ.quality.measurement.panes import Pane
from situ.quality.model.shapes import Limit, Shape, Suppress, Thin
from situ.routing.delivery_groups import group_of
from situ.spark import state_store as stage
from situ.spark.checkpoint import Offset
from situ.spark.dispatch import DispatchTask
from situ.spark.frames import count_batch, decode_counts
from situ.spark.measure import BatchMeter, TaskMeter
from situ.spark.state_store import ShapeStateStore
from situ.stages.plan import Plan, compile_plan
from situ.storage.state_folder import open_folder
from tests.conformance.shaped import LATENESS, PUBLISHERS, World, make_world
from tests.conformance.test_shaping_edge import check
from tests.histories import SECOND, START

CLOCK = START - 3600 * SECOND
"""No event is older than none at all, and nobody is silent."""


def work(
    plan: Plan, folder: Path, rows: Sequence[Row], begin: Offset, end: Offset, former: Plan | None = None
) -> tuple[list[Message], dict[str, int]]:
    """One batch: its tasks, one after the other, and what they dropped."""
    found: list[Message] = []
    dropped: dict[str, int] = {}
    for number in range(end.partitions):
        shards = shards_of(number, end.partitions) if end.partitions > 1 else ()
        own = [[_copy(row)] for row in rows if not shards or shard_of(row.client) in shards]
        store = ShapeStateStore(open_folder(folder), begin, end, shards)
        dispatch = DispatchTask(plan, end.clock, None, store, former)
        found += dispatch.messages(own)
        dispatch.finish()
        for key, count in dispatch.counts().dropped.items():
            dropped[key] = dropped.get(key, 0) + count
    return found, dropped


def _copy(row: Row) -> Row:
    data = {name: float(each) if name == "value" else each for name, each in msgspec.json.decode(row.data).items()}
    return replace(row, type="Reading", ad="", data=msgspec.json.encode(data))


def delivered(plan: Plan, messages: Sequence[Message]) -> dict[str, list[Row]]:
    names = BusNames(plan.zone)
    found: dict[str, list[Row]] = {id: [] for id in plan.shapes.by_id}
    for message in messages:
        id = plan.shapes.groups.get(names.group_of(message.subject))
        if id is not None:
            found[id] += map(decode_line, split_lines(message.body))
    return found


def run(folder: Path, world: World, dice: random.Random) -> dict[str, list[Row]]:
    plan = compile_plan(world.deployment(folder / "project").at_version(1))
    assert {group_of(each) for each in world.deployment(folder / "project").routed.values()} == set(plan.shapes.groups)
    offset, at, messages = Offset(), 0, []
    while at < len(world.rows):
        rows = world.rows[at : at + dice.choice([1, 5, 30, 100])]
        tasks = 1 if plan.shapes.goes_across else dice.choice([1, 2, 5])
        end = Offset(seq=offset.seq + len(rows), version=1, partitions=tasks, clock=CLOCK + at)
        first, dropped = work(plan, folder, rows, offset, end)
        if dice.random() < 0.3:  # it is repeated, by other processes or the same
            if dice.random() < 0.5:
                stage._held_shapes.clear()
            again = work(plan, folder, rows, offset, end)
            assert [(each.subject, each.id, each.body) for each in again[0]] == [
                (each.subject, each.id, each.body) for each in first
            ]
            assert again[1] == dropped
        messages += first
        if dice.random() < 0.2:
            stage._held_shapes.clear()
        offset, at = end, at + len(rows)
    return delivered(plan, messages)


@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(n, marks=pytest.mark.soak) for n in range(3, 300))])
def test_tasks_of_batches_shape_as_the_reference_does(tmp_path: Path, seed: int) -> None:
    world = make_world(seed, start=START, events=100, shapes=20)
    if seed % 2:
        alone = {id: each for id, each in world.shapes.items() if each.thin is None or not each.thin.across}
        world = replace(world, shapes=alone)
    stage._held_shapes.clear()
    check(world, run(tmp_path, world, random.Random(seed)), now=0)


def test_a_batch_without_events_lets_go_what_another_plan_or_time_lets_go(tmp_path: Path) -> None:
    world = make_world(5, start=START, events=40, shapes=1)
    suppress = Shape(suppress=(Suppress(attribute="value", delta=1000.0),))
    held = Shape(thin=Thin(limits=(Limit(events=1),), keep="last"))
    world = replace(world, shapes={"desk/s0": suppress, "desk/s1": held})
    deployment = world.deployment(tmp_path / "project")
    plan = compile_plan(deployment.at_version(1))
    rows = [row for row in world.rows if row.time < world.end]
    begin, end = Offset(), Offset(seq=40, version=1, clock=CLOCK)
    before = delivered(plan, work(plan, tmp_path, rows, begin, end)[0])
    sources = {(row.client, row.source) for row in rows if b'"value"' in row.data}
    assert len([row for row in before["desk/s0"] if b'"value"' in row.data]) == len(sources)

    lower = {"desk/s0": Shape(suppress=(Suppress(attribute="value", delta=0.0),)), "desk/s1": held}
    other = compile_plan(replace(deployment, shapes=lower).at_version(2), plan)
    later = Offset(seq=40, version=2, clock=CLOCK + 1)
    stage._held_shapes.clear()
    told = delivered(other, work(other, tmp_path, (), end, later, plan)[0])
    assert 0 < len(told["desk/s0"]) <= len(sources)
    assert not {row.key for row in told["desk/s0"]} & {row.key for row in before["desk/s0"]}
    assert told["desk/s1"] == []

    unshaped = compile_plan(replace(deployment, shapes={}).at_version(3), other)
    last = Offset(seq=40, version=3, clock=CLOCK + 2)
    names = BusNames(plan.zone)
    released = [names.group_of(each.subject) for each in work(unshaped, tmp_path, (), later, last, other)[0]]
    assert set(released) == {group for group, id in plan.shapes.groups.items() if id == "desk/s1"}
    assert not ShapeStateStore(open_folder(tmp_path), last, last).is_left_behind

    late = Offset(seq=40, version=2, clock=world.end)
    let_go = delivered(other, work(other, tmp_path, (), later, late, other)[0])
    assert len(let_go["desk/s1"]) > 0


def test_tasks_tell_what_they_measured(tmp_path: Path) -> None:
    world = make_world(6, start=START, events=100, shapes=1)
    plan = compile_plan(world.deployment(tmp_path / "project").at_version(1))
    measured = BatchMeter(plan.deployment.settings)
    assert measured.until(START) is None
    panes: list[Pane] = []
    for begin in range(0, len(world.rows), 30):
        rows, counts = world.rows[begin : begin + 30], []
        for number in range(2):
            own = [[_copy(row)] for row in rows if shard_of(row.client) in shards_of(number, 2)]
            dispatch = DispatchTask(plan, CLOCK, measuring=TaskMeter(MeasuredPublishers(frozenset(PUBLISHERS[:3]))))
            assert len(list(dispatch.messages(own))) > 0 or not own
            dispatch.finish()
            counts += decode_counts(count_batch(dispatch.counts()).column("counts").to_pylist())
        panes += measured.add(counts)
    expected = Counter(row.client for row in world.rows if row.client in PUBLISHERS[:3])
    found: Counter[str] = Counter()
    for pane in panes:
        found[pane.publisher] += pane.events
    assert found == expected
    assert max(pane.last or 0 for pane in panes) == max(row.time for row in world.rows if row.client != PUBLISHERS[3])
    until = measured.until(CLOCK)
    assert until == max(min(row.time, row.recv) for row in world.rows if row.client != PUBLISHERS[3]) - LATENESS
