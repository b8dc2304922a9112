"""However events and detections are portioned, watermarks and situations come out the same."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from situ.policies.lifecycle import OpenSituations, SituationTransition, open_as_json, open_from_json, step
from situ.policies.model import Cause, Detection
from situ.policies.watermark import SourceTimeouts, SourceTimes, merge_source_times, source_times_of, watermark
from situ.project.check import check_folder
from situ.stages.detect.detection_plan import DetectionPlan
from situ.stages.detect.progress import DetectionProgress
from situ.stages.plan import compile_plan
from tests.guarded import FILES
from tests.project_files import write

times = st.integers(min_value=-50, max_value=50)
detections = st.lists(
    st.builds(
        lambda time, identity, cause: Detection(
            policy="p", bindings=(("A", identity),), causes=(Cause("s", cause),), time=time, activation=time
        ),
        times,
        st.sampled_from("123"),
        st.text("xyz", min_size=1, max_size=3),
    ),
    unique_by=lambda each: each.id,
)


@given(detections, st.lists(times), st.integers(min_value=0, max_value=20))
def test_portions_of_detections_do_not_matter(found: list[Detection], stops: list[int], hold: int) -> None:
    _, expected = step({}, found, 1_000, hold)
    state: OpenSituations = {}
    told: list[SituationTransition] = []
    before = -1_000
    for stop in [*sorted(stops), 1_000]:
        state, transitions = step(state, [each for each in found if before <= each.time < stop], stop, hold)
        assert all(transition.time < stop for transition in transitions)
        assert all(each.last + hold >= stop for each in state.values())
        state = open_from_json(json.loads(json.dumps(open_as_json(state))))
        told += transitions
        before = stop
    assert told == expected
    assert state == {}
    assert len({each.id for each in told}) == len(told)


@given(detections, st.lists(times), st.integers(min_value=0, max_value=20), st.randoms(use_true_random=False))
def test_what_the_instant_of_the_watermark_has_brought_may_be_told_already(
    found: list[Detection], stops: list[int], hold: int, dice: random.Random
) -> None:
    """The situations are the same; which of the detections of one instant opens one depends on which came first."""
    _, expected = step({}, found, 1_000, hold)
    state: OpenSituations = {}
    told: list[SituationTransition] = []
    given = set[str]()
    for stop in [*sorted(stops), 1_000]:
        now = [each for each in found if each.time < stop or (each.time == stop and dice.random() < 0.5)]
        state, transitions = step(state, [each for each in now if each.id not in given], stop, hold)
        given |= {each.id for each in now}
        told += transitions
    assert len({each.id for each in told}) == len(told)
    assert [outline(each) for each in told if each.stage == "closed"] == [
        outline(each) for each in expected if each.stage == "closed"
    ]
    assert sorted(map(outline, told)) == sorted(map(outline, expected))


def outline(transition: SituationTransition) -> tuple[int, str, object, int, int, int]:
    of = transition.situation
    return transition.time, transition.stage, of.bindings, of.start, of.last, of.detections


@given(detections, st.integers(min_value=0, max_value=20))
def test_situations_of_one_binding_are_apart_and_hold_every_detection(found: list[Detection], hold: int) -> None:
    _, told = step({}, found, 1_000, hold)
    closed = [each for each in told if each.stage == "closed"]
    assert sum(each.situation.detections for each in closed) == len(found)
    for identity in "123":
        mine = [each for each in closed if each.situation.bindings == (("A", identity),)]
        assert all(one.end < other.situation.start for one, other in itertools.pairwise(mine))


events = st.lists(st.tuples(st.sampled_from("ab"), times, times))
patience = st.builds(
    SourceTimeouts, lateness=st.integers(min_value=0, max_value=9), idle=st.integers(min_value=0, max_value=30)
)


def seen(some: list[tuple[str, int, int]]) -> dict[str, SourceTimes]:
    found = {
        source: source_times_of(
            np.array([time for each, time, _ in some if each == source]),
            np.array([received for each, _, received in some if each == source]),
        )
        for source in "ab"
    }
    return {source: each for source, each in found.items() if each is not None}


@given(events, st.integers(min_value=1, max_value=5), st.randoms(use_true_random=False))
def test_portions_of_events_do_not_matter(some: list[tuple[str, int, int]], size: int, dice: random.Random) -> None:
    portions = [some[start : start + size] for start in range(0, len(some), size)]
    dice.shuffle(portions)
    assert merge_source_times(*map(seen, portions)) == seen(some)


@given(events, st.fixed_dictionaries({"a": patience, "b": patience}), st.lists(times, min_size=1))
def test_it_is_never_beyond_what_sources_that_are_waited_for_may_send(
    some: list[tuple[str, int, int]], sources: dict[str, SourceTimeouts], clocks: list[int]
) -> None:
    sent = seen(some)
    reached = None
    for clock in sorted(clocks):
        now = watermark(sent, sources, clock)
        settled = watermark(sent, sources, clock, reached)
        for source, each in sent.items():
            if now is not None and clock - each.heard <= sources[source].idle:
                assert now <= each.time - sources[source].lateness
        assert reached is None or (settled is not None and settled >= reached)
        reached = settled


@given(patience, times, st.integers(min_value=0, max_value=5))
def test_after_silence_everything_is_settled_in_bounded_time(source: SourceTimeouts, time: int, delay: int) -> None:
    """What is absent until some instant is reported lateness and idle time after it, if events came in time."""
    delay = min(delay, source.lateness)
    sent = {"a": SourceTimes(time, time + delay, time + delay)}
    absent_until = time + 100
    clock = absent_until + source.lateness + source.idle + 1
    settled = watermark(sent, {"a": source}, clock)
    assert settled is not None
    assert settled > absent_until


def watching(folder: Path) -> DetectionPlan:
    write(folder, FILES)
    checked = check_folder(folder)
    assert checked.deployment is not None
    return compile_plan(checked.deployment).detecting


def test_situations_that_nothing_happens_to_are_not_looked_at_and_come_out_the_same(tmp_path: Path) -> None:
    detecting = watching(tmp_path)
    ((name, watch),) = detecting.watches.items()
    for seed in range(200):
        dice = random.Random(seed)
        progress, _ = DetectionProgress().adopted(detecting, None)
        state: OpenSituations = {}
        reached = 0
        for _ in range(40):
            before, reached = reached, reached + dice.choice((0, 1, watch.policy.hold // 3))
            found = [
                Detection(
                    policy=name,
                    bindings=(("A", dice.choice("123")),),
                    causes=(Cause("s", str(dice.random())),),
                    time=(time := dice.randrange(before, reached)),
                    activation=time,
                )
                for _ in range(dice.choice((0, 0, 0, 2)))
                if before < reached
            ]
            progress, told = progress.decided(detecting, {name: found} if found else {}, {name: reached})
            state, expected = step(state, found, reached, watch.policy.hold)
            assert told == expected
            assert progress.policies[name].open == state
            if dice.random() < 0.1:
                progress = DetectionProgress.from_json(json.loads(json.dumps(progress.as_json())))
