"""What policies and actions do is made to raise for one person among others: the others are told of, and so is that."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from situ.app.action_queue import FAILED, ActionQueue
from situ.app.action_worker import _EVENT_VERBS, ActionLog, ActionResolver, ActionWorker
from situ.bus.address import Address
from situ.event.lines import decode_line, stored_lines
from situ.event.message import StoredMessage
from situ.policies.actions.model import VERB_OF
from situ.policies.model import InstancesByConcept
from situ.spark.checkpoint import Offset
from situ.spark.detect import DRIVER, BatchShare, EnrichmentNotes, detections_in, enrich, work
from situ.stages.plan import Plan
from situ.storage.state_folder import open_folder
from tests.edge_zone import edge_zone, eventually
from tests.faults.injected import MARK, functions_of, inject
from tests.guarded import FILES
from tests.http_targets import http_target
from tests.integration.app.test_actions import acting, ask, logged, request, zone_with

SITU = "defaults: {lateness: 100 ms, idle: 300 ms}\n"
POLICY = """policy intruder
window 1 s
concepts
  person A (status = 'guest')
  room R (security = 'restricted')
conditions
  A is inside R
actions
  alarm
"""
PROJECT = {
    **{name: text for name, text in FILES.items() if name not in ("situ.yaml", "policies/unaccompanied-guest.dpl")},
    "policies/intruder.dpl": POLICY,
    "people.csv": f"nr,role\ng1,guest\ng2,guest\n{MARK},guest\n",
    "actions.yaml": 'actions: {alarm: {publish: GuestAlone, data: {text: "{A} alone"}}}\n',
}
WHO = ("g1", MARK, "g2")
ALONE = [
    "situ.stages.detect.step:read_rows",
    "situ.policies.enrichment.enrich:Enrichment.run",
    "situ.policies.kernel.kernel:Kernel.step@2",
]
"""What works on events: one that fails is left out."""
TOGETHER = ["situ.stages.detect.step:work_rows"]
"""What works on all that came: those that came with one that fails are left out with it."""
TELLING = {
    "situ.stages.detect.progress:DetectionProgress.decided@2": "detect",
    "situ.stages.detect.situation_events:situation_data": "tell",
    "situ.stages.detect.situation_events:action_events@0": "act",
}


@dataclass
class Told:
    opened: set[str]
    alarms: set[str]
    letters: list[dict[str, Any]]
    failures: dict[str, int]


async def tell(folder: Path, place: str) -> Told:
    """Three people are seen where they should not be, while a handler raises for one of them."""
    async with edge_zone(folder, situ=SITU, more=PROJECT) as zone:
        engine = zone.engine
        assert engine is not None
        with pytest.MonkeyPatch.context() as patch:
            injection = inject(patch, place)
            async with zone.connect("reader") as reader:
                for who in WHO:
                    await (await reader.publish_event("Sighting", who=who, at={"x": 1.0, "y": 1.0})).stored
                await eventually(lambda: injection.raised > 0, within=30)
                told = Told(set(), set(), [], {})
                deadline = asyncio.get_running_loop().time() + 20
                while not {"g1", "g2"} <= told.opened and asyncio.get_running_loop().time() < deadline:
                    await asyncio.sleep(0.05)
                    rows = [
                        decode_line(line)
                        for m in await zone.messages(zone.names.root_stream)
                        for line in stored_lines(m)
                    ]
                    told.opened = {_who(row.data) for row in rows if row.type == "situ.situation.opened"}
                    if place in TOGETHER and engine.counts.failures:
                        break
                await asyncio.sleep(0.2)
                rows = [
                    decode_line(line) for m in await zone.messages(zone.names.root_stream) for line in stored_lines(m)
                ]
        told.alarms = {json.loads(row.data)["text"].split()[0] for row in rows if row.type == "GuestAlone"}
        told.letters = [
            json.loads(decode_line(line).data)
            for message in await zone.messages(zone.names.dead_stream)
            for line in stored_lines(message)
        ]
        told.failures = dict(engine.counts.failures)
        # Detection is there for what comes next.
        async with zone.connect("reader") as reader:
            await (await reader.publish_event("Sighting", who="g1", at={"x": 2.0, "y": 2.0})).stored
        assert not any(task.done() for task in engine._tasks)
    return told


def _who(data: bytes) -> str:
    return next(str(each["id"]) for each in json.loads(data)["bindings"] if each["alias"] == "A")


@pytest.mark.parametrize("place", ALONE)
def test_an_event_that_policies_fail_on_is_a_dead_letter_and_the_others_are_detected(
    place: str, tmp_path: Path
) -> None:
    told = asyncio.run(tell(tmp_path, place))
    assert told.opened == {"g1", "g2"}
    assert told.alarms == {"g1", "g2"}
    (letter,) = told.letters
    assert (letter["code"], letter["stage"]) == ("E705", "detect")
    assert MARK in letter["original"]


@pytest.mark.parametrize("place", TOGETHER)
def test_what_came_with_an_event_that_nobody_can_tell_apart_is_a_dead_letter_too(place: str, tmp_path: Path) -> None:
    told = asyncio.run(tell(tmp_path, place))
    refused = {json.loads(each["original"])["data"]["who"] for each in told.letters}
    assert told.opened | refused >= {"g1", "g2"}
    assert {each["code"] for each in told.letters} <= {"E705"}
    assert told.failures.get("detect", 0) >= 1


@pytest.mark.parametrize("place", TELLING)
def test_a_situation_that_cannot_be_told_does_not_keep_others_from_it(place: str, tmp_path: Path) -> None:
    told = asyncio.run(tell(tmp_path, place))
    assert told.opened >= {"g1", "g2"}
    assert told.alarms == {"g1", "g2"}
    assert told.failures[TELLING[place]] >= 1
    if TELLING[place] == "act":
        assert MARK in told.opened, "the situation is told, only its action is not done"


# ── what the edge engine does beside the events ──

DETECTION = "situ.edge.detect:EdgeDetection"
NOT_IN_A_RUN = {
    "start": "nothing runs yet",
    "_recover": "likewise",
    "_take_again": "likewise",
    "close": "the run ends",
    "cease": "likewise",
    "left": "likewise",
    "_keep": "likewise",
    "run": "test_injected_messages.py",
    "_step_on": "is a part of run",
    "_keep_on": "likewise",
    "_change": "a deployment that cannot be adopted is tried again",
    "_begin_earlier": "likewise",
    "_switch": "likewise",
    "_use": "likewise",
    "adopt": "likewise",
    "settle": "is for policies that read what policies publish",
    "_keep_late": "is for events that are late",
    "_not_stepped": "is called for failures",
    "_learn": "is for deployments with scopes",
    "_snapshot": "is a part of _keep_beside",
}


def methods_of(place: str) -> list[str]:
    """All that a class does: one that is new is tried as well."""
    module_name, _, name = place.partition(":")
    owner = getattr(import_module(module_name), name)
    return [each for each, work in vars(owner).items() if inspect.isfunction(work) and not each.startswith("__")]


def test_each_thing_that_detection_does_raises_once_and_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert NOT_IN_A_RUN.keys() <= set(methods_of(DETECTION)), "these are no more"
    places = [each for each in methods_of(DETECTION) if each not in NOT_IN_A_RUN]
    people = [f"{when}-{place}" for place in places for when in ("at", "behind")]
    project = {**PROJECT, "people.csv": "nr,role\n" + "".join(f"{who},guest\n" for who in people)}
    monkeypatch.setattr("situ.edge.detect._SAVE_EVERY", 0.1)

    async def main() -> None:
        async with edge_zone(tmp_path, situ=SITU, more=project) as zone, zone.connect("reader") as reader:
            engine = zone.engine
            assert engine is not None

            async def see(who: str) -> None:
                await (await reader.publish_event("Sighting", who=who, at={"x": 1.0, "y": 1.0})).stored

            async def opened() -> Counter[str]:
                rows = [
                    decode_line(line) for m in await zone.messages(zone.names.root_stream) for line in stored_lines(m)
                ]
                return Counter(_who(row.data) for row in rows if row.type == "situ.situation.opened")

            lost = []
            for place in places:
                before = Counter(engine.counts.failures)
                with monkeypatch.context() as patch:
                    injection = inject(patch, f"{DETECTION}.{place}", once=True)
                    await see(f"at-{place}")
                    await eventually(lambda injection=injection: injection.raised > 0, within=30)
                await see(f"behind-{place}")
                async with asyncio.timeout(30):
                    while not (await opened())[f"behind-{place}"]:
                        await asyncio.sleep(0.02)
                assert sum((Counter(engine.counts.failures) - before).values()) == 1, place
                letters = str([m.body for m in await zone.messages(zone.names.dead_stream)])
                if not (await opened())[f"at-{place}"] and f"at-{place}" not in letters:
                    lost.append(place)
            await asyncio.sleep(0.5)
            assert max((await opened()).values()) == 1
            assert not lost, "an event is gone, and nobody is told"
            assert not any(task.done() for task in engine._tasks)

    asyncio.run(main())


# ── on Spark: what tasks do with messages of the log ──


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[StoredMessage], Plan, InstancesByConcept]:
    """The log of a zone in which three people were seen, one message each and all in one."""

    async def main() -> tuple[list[StoredMessage], Plan, InstancesByConcept]:
        async with edge_zone(tmp_path_factory.mktemp("seen"), situ=SITU, more=PROJECT) as zone:
            engine = zone.engine
            assert engine is not None
            assert engine._plan is not None
            async with zone.connect("reader") as reader:
                for who in WHO:
                    await reader.publish_event("Sighting", who=who, at={"x": 1.0, "y": 1.0})
                await reader.flush()
            found = [m for m in await zone.messages(zone.names.root_stream) if b"Sighting" in m.body]
            return found, engine._plan, engine._detection._instances()

    return asyncio.run(main())


def detect(
    folder: Path, messages: list[StoredMessage], plan: Plan, instances: InstancesByConcept
) -> tuple[set[str], dict[int, Any]]:
    """Who is found by a task that enriches and one that detects; and where events are that failed."""
    batches: Iterator[pa.RecordBatch] = enrich(messages, plan, instances, {}, 1)
    rows = [row for batch in batches for row in batch.to_pylist()]
    noticed = [msgspec.msgpack.decode(row["blob"], type=EnrichmentNotes) for row in rows if row["bucket"] == DRIVER]
    share = BatchShare(
        address=Address(zone="main", servers=()),
        checkpoint=open_folder(folder),
        begin=Offset(),
        end=Offset(seq=1, version=plan.version),
        watermarks={"intruder": 1 << 60},
        kept=frozenset(),
        buckets=1,
    )
    blobs = [row["blob"] for row in rows if row["bucket"] == 0 and row["blob"]]
    found = work(share, plan.detecting, lambda: plan.detecting, instances, 0, blobs)
    detected = {dict(each.bindings)["A"] for each in detections_in("intruder", [found])}
    return detected, {**{pos: each for one in noticed for pos, each in one.failed.items()}, **found.failed}


def test_on_spark_all_are_detected(seen: tuple[list[StoredMessage], Plan, InstancesByConcept], tmp_path: Path) -> None:
    assert detect(tmp_path, *seen) == (set(WHO), {})


@pytest.mark.parametrize(
    "place",
    [
        "situ.spark.detect:_read",
        "situ.policies.enrichment.enrich:Enrichment.run",
        "situ.policies.kernel.kernel:Kernel.step@2",
    ],
)
def test_on_spark_one_event_fails_and_the_others_are_detected(
    place: str, seen: tuple[list[StoredMessage], Plan, InstancesByConcept], tmp_path: Path
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        injection = inject(patch, place)
        detected, failed = detect(tmp_path, *seen)
    assert injection.raised
    if place.endswith("_read"):
        assert (detected, failed) == (set(WHO), {}), "each by itself it is read in another way"
    else:
        assert detected == {"g1", "g2"}
        ((_, failure),) = failed.items()
        assert (failure.stage, failure.what) == ("detect", "Unforeseen")


def test_a_policy_that_fails_on_what_it_remembers_begins_anew(
    seen: tuple[list[StoredMessage], Plan, InstancesByConcept], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would fail at every step for ever."""
    from situ.stages.detect.step import step_safely

    _, plan, instances = seen
    kernel = plan.detecting.kernel("intruder")
    poisoned = kernel.start()
    step = type(kernel).step

    def fail(self: Any, state: Any, *args: Any) -> Any:
        if state is poisoned:
            raise KeyError("remembered")
        return step(self, state, *args)

    monkeypatch.setattr(type(kernel), "step", fail)
    stepped = step_safely(kernel, poisoned, {}, 5, instances)
    assert stepped.begun_anew is not None
    assert stepped.state.watermark == 5
    assert step_safely(kernel, stepped.state, {}, 6, instances).begun_anew is None


# ── actions ──

NOT_IN_ACTING = {
    "situ.app.action_worker:ActionWorker.start": "nothing runs yet",
    "situ.app.action_worker:ActionWorker._left": "likewise",
    "situ.app.action_worker:ActionWorker.run": "is what goes on",
    "situ.app.action_worker:ActionWorker._work": "likewise",
    "situ.app.action_worker:ActionWorker._give_up": "is called for failures",
    "situ.app.action_queue:ActionQueue.reached": "nothing runs yet",
    "situ.app.action_queue:ActionQueue.reach": "likewise",
    "situ.app.action_queue:ActionQueue.note": "is called for what is tried again",
    "situ.app.action_queue:ActionQueue.fail": "is called for what is given up",
    "situ.app.action_queue:ActionQueue.again": "is what people ask for",
    "situ.app.action_queue:ActionQueue.find": "likewise",
    "situ.app.action_queue:ActionQueue.count": "likewise",
    "situ.app.action_queue:ActionQueue.all": "nothing runs yet, or people ask for it",
    "situ.app.action_worker:ActionLog.mend": "nothing runs yet",
    "situ.app.action_worker:ActionLog.holds": "likewise",
}
DOING = {
    "situ.app.action_worker:ActionWorker._host": "call elsewhere",
    "situ.app.action_worker:ActionWorker._change_policy": "rest",
    "situ.app.webhook:send_request": "call elsewhere",
    "situ.app.webhook:host_of": "call elsewhere",
    "situ.app.webhook:build_request": "call elsewhere",
}
"""The actions that come by there; all others do."""
ACTING = [
    "situ.app.action_worker:requests_in",
    *(f"situ.app.action_worker:ActionWorker.{each}" for each in vars(ActionWorker)),
    *(f"situ.app.action_queue:ActionQueue.{each}" for each in vars(ActionQueue)),
    *(f"situ.app.action_worker:ActionLog.{each}" for each in vars(ActionLog)),
    *(f"situ.app.action_worker:ActionResolver.{each}" for each in vars(ActionResolver)),
    *(f"situ.app.webhook:{each}" for each in sorted(functions_of("situ.app.webhook"))),
]
ACTING = [
    each
    for each in ACTING
    if each not in NOT_IN_ACTING
    and "__" not in each
    and not each.startswith(("situ.app.action_queue:ActionQueue._", "situ.app.action_worker:ActionLog._"))
    and not isinstance(getattr(ActionWorker, each.rpartition(".")[2], None), property)
]
"""All that is done with requests."""


def test_every_kind_of_action_is_done_by_what_is_tried() -> None:
    kinds = set(VERB_OF.values()) - set(_EVENT_VERBS)
    assert kinds == {"log", "webhook", "delete policy", "suspend policy"}, "the last two are done by _change_policy"


@pytest.mark.parametrize("place", ACTING)
def test_an_action_that_fails_is_kept_and_others_are_done(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "of the check")

    async def main() -> None:
        async with http_target() as target, zone_with(tmp_path, other=target.url) as zone, acting(zone) as actions:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("situ.app.action_worker._TROUBLE", 0.05)
                injection = inject(patch, place, once=True)
                asked = DOING.get(place, "note")
                await ask(zone, *request(zone, asked, "s1", who="first"))
                await eventually(lambda: injection.raised > 0, within=30)
                await ask(zone, *request(zone, "note", "s2", who="second"))
                await eventually(lambda: any("second was seen" in line for line in logged(zone)), within=30)
                # The first is done in the end, or kept where it can be looked at and tried again.
                done = {
                    "note": lambda: any("first was seen" in line for line in logged(zone)),
                    "call elsewhere": lambda: bool(target.sent),
                    "rest": lambda: "other" in zone.registry.current().suspended,
                }[asked]
                if not place.endswith("requests_in"):
                    await eventually(
                        lambda: done() or [each.situation for each in zone_failed(zone.folder)] == ["s1"], within=30
                    )
            assert sum(actions.mistakes.counts.values()) == 1

    asyncio.run(main())


def zone_failed(folder: Path) -> list[Any]:
    return list(ActionQueue(folder).all(FAILED))
