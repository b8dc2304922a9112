"""What a run on Spark does is made to raise once, in whichever of its processes: the run is up, all is told once.

Which handlers there are is read from the code: one that is new and not in these lists fails a test. The short version
raises in each of them, the long one in every function that is passed at all.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import situ
from situ.bus.sync_bus import BlockingBus
from situ.event.message import Message, split_lines
from situ.event.row import Row
from situ.routing.model import Subscription
from situ.spark.checkpoint import Offset
from situ.spark.dispatch import dispatch_part
from situ.spark.frames import TaskCounts, row_batches
from situ.spark.partitions import part_of_batch
from situ.storage.state_folder import open_folder
from tests.faults.deployed import PATIENCE, ROOT, Deployed, deployed
from tests.faults.injected import MARK, inject
from tests.faults.raising import Raising
from tests.guarded import FILES
from tests.zone import event, zone

SITU = "defaults: {lateness: 100 ms, idle: 300 ms, install_timeout: 60 s}\n"
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
MOST = 2000
TYPES = ("Sighting", "GuestAlone", "situ.situation.opened")
_TRIES = 3
"""Events that are published until somebody came by."""
PROJECT = {
    **{name: text for name, text in FILES.items() if name not in ("situ.yaml", "policies/unaccompanied-guest.dpl")},
    "policies/intruder.dpl": POLICY,
    "people.csv": "nr,role\n" + "".join(f"g{number},guest\n" for number in range(MOST)),
    "actions.yaml": 'actions: {alarm: {publish: GuestAlone, data: {text: "{A} alone"}}}\n',
    "clients/people.yaml": """
        clients:
          reader: {advertisements: {seen: {type: Sighting}}}
          desk: {subscriptions: {all: {types: [Sighting, GuestAlone, situ.situation.opened], durable: true}}}
        """,
}

SOURCE, DETECT_SOURCE = "situ.spark.source:BusStreamReader", "situ.spark.source:DetectReader"
ENGINE, DETECTION = "situ.spark.engine:SparkEngine", "situ.spark.detect_query:SparkDetection"
HOST = "situ.app.spark_engine:SparkHost"
AT_START = (f"{SOURCE}.initialOffset", f"{DETECT_SOURCE}.initialOffset")
"""What is only done when a run begins for the first time."""
ROUNDS = (
    # Beside the driver, in processes that Spark starts to ask what there is.
    (f"{SOURCE}.latestOffset", f"{DETECT_SOURCE}.latestOffset"),
    # In the driver.
    (f"{ENGINE}._batch", f"{DETECTION}._tell"),
    # In the workers: these begin the query again,
    (f"{SOURCE}.read", "situ.spark.detect:work"),
    # and after these the task goes on by itself.
    ("situ.spark.dispatch:publish",),
    ("situ.spark.partitions:decode",),
    ("situ.spark.dispatch:DispatchTask.messages",),
    ("situ.stages.deliver:DeliveryBatcher.finish",),
)
"""Raised in together: one of the query of events, one of that of detection. Each time a query is begun again, Python
processes of Spark are started, which takes seconds: all others are tried in the long version."""
MORE_ROUNDS = (
    (f"{HOST}._on_batch", "situ.spark.state_store:ProgressStore.save"),
    (f"{SOURCE}.partitions", f"{DETECT_SOURCE}.partitions"),
    (f"{ENGINE}._start_detection", f"{DETECTION}._batch"),
    (f"{ENGINE}._purge", f"{DETECTION}._begun"),
    (f"{ENGINE}._publish", f"{DETECTION}._worked"),
    ("situ.spark.checkpoint:ClientOffsetStore.save", f"{DETECTION}._filled"),
    ("situ.spark.frames:Totals.add", f"{DETECTION}._events_at"),
    ("situ.spark.checkpoint:BatchEnds.add", f"{DETECTION}._former"),
    ("situ.spark.session:Query.end_batch", f"{HOST}._on_detect"),
    ("situ.spark.dispatch:dispatched", f"{DETECT_SOURCE}.read"),
    ("situ.spark.dispatch:dispatch_part", "situ.spark.detect:enrich_part"),
    ("situ.spark.dispatch:DispatchTask.finish", "situ.spark.detect:enrich"),
    ("situ.spark.frames:count_batch", "situ.spark.detect:every_bucket"),
    ("situ.spark.plans:load_plan", "situ.spark.detect:for_driver"),
    ("situ.spark.checkpoint:read_offset", "situ.spark.detect:row_of"),
    ("situ.spark.partitions:partitions_of_batch", "situ.spark.state_store:KernelStateStore.save_step"),
    (f"{ENGINE}.resize", f"{DETECTION}._want_sizes"),
    (f"{ENGINE}.size", f"{DETECTION}._buckets_at"),
    (f"{ENGINE}._on_detect",),
    # The first begins the query again, and what is asked when it begins raises then.
    (f"{SOURCE}.latestOffset", f"{SOURCE}.getDefaultReadLimit"),
    (f"{DETECT_SOURCE}.latestOffset", f"{DETECT_SOURCE}.getDefaultReadLimit"),
    (f"{SOURCE}.latestOffset", f"{ENGINE}._begin"),
    (f"{DETECT_SOURCE}.latestOffset", f"{DETECTION}._begin"),
)
ELSEWHERE = {
    f"{SOURCE}.stop": "the query has ended by then; Spark tells nobody what it raises",
    f"{DETECT_SOURCE}.stop": "likewise",
    f"{DETECT_SOURCE}._next": "is what latestOffset does",
    f"{ENGINE}.start": "nothing runs yet; a run that cannot begin says why and ends",
    f"{ENGINE}._warm_up": "nothing runs yet",
    f"{ENGINE}._load_workers": "nothing runs yet, and it is on a thread of its own",
    f"{ENGINE}._count_failure": "is called for failures",
    f"{ENGINE}._cores": "is a part of size",
    f"{ENGINE}.wait": "asks how the queries are",
    f"{ENGINE}.stop": "the run ends",
    f"{DETECTION}.start": "is a part of _start_detection, or nothing runs yet",
    f"{DETECTION}._prepare": "likewise",
    f"{DETECTION}._inherit": "likewise",
    f"{DETECTION}._settled": "likewise",
    f"{DETECTION}._options": "is a part of _begin",
    f"{DETECTION}.finish": "is done without Spark, before a run with another engine begins",
    f"{DETECTION}._not_begun": "likewise",
    f"{DETECTION}._worked_here": "likewise",
    f"{DETECTION}._cores": "is a part of _want_sizes",
    f"{DETECTION}._gather": "is done when buckets are divided anew: test_redivision.py cuts it off",
    "situ.spark.detect:gather": "likewise",
    "situ.spark.detect:gather_buckets": "likewise",
    "situ.spark.detect:gathering": "likewise",
    "situ.spark.detect:sources_of": "likewise",
    f"{DETECTION}.wait": "asks how the query is",
    f"{DETECTION}.stop": "the run ends",
    f"{DETECTION}._refuse": "is called for events that failed: test_injected_detection.py",
    "situ.spark.dispatch:BusWriter.write": "is for jobs of one's own, which fail by themselves",
    "situ.spark.detect:detecting_in": "makes the function that work is called by",
    "situ.spark.detect:remembered_at": "is done before a run with another engine begins",
    "situ.spark.detect:detections_in": "is a part of _batch",
    "situ.spark.detect:stream_of": "is a part of work",
    "situ.spark.detect:former_policies": "likewise",
    "situ.spark.detect:for_buckets": "is a part of enrich, which isolates what fails there",
    "situ.spark.detect:read_enriched": "is what read of the source does",
    "situ.spark.dispatch:dispatching": "makes the function that dispatch_part is called by",
    "situ.spark.source:present": "is a part of latestOffset",
    "situ.spark.source:taken_of": "likewise",
}


def places_in(module_name: str) -> list[str]:
    """The functions of a module, and the methods of its classes."""
    module = import_module(module_name)
    found = []
    for name, each in vars(module).items():
        if getattr(each, "__module__", None) != module_name:
            continue
        if inspect.isfunction(each):
            found.append(f"{module_name}:{name}")
        elif inspect.isclass(each):
            found += [f"{module_name}:{name}.{one}" for one, work in vars(each).items() if inspect.isfunction(work)]
    return [each for each in found if "__" not in each]


def test_every_handler_is_tried() -> None:
    wanted = set()
    for module in ("source", "engine", "detect_query", "detect", "dispatch"):
        for place in places_in(f"situ.spark.{module}"):
            _, _, name = place.partition(":")
            owner, _, method = name.rpartition(".")
            if place.startswith((f"{SOURCE}.", f"{DETECT_SOURCE}.", f"{ENGINE}.", f"{DETECTION}.")) or (
                owner in ("", "BusWriter") and not method.startswith("_") and module not in ("engine", "detect_query")
            ):
                wanted.add(place)
    tried = {each for some in (AT_START, *ROUNDS, *MORE_ROUNDS) for each in some}
    assert not wanted - tried - ELSEWHERE.keys(), "no failure is put into these"
    assert not ELSEWHERE.keys() - wanted, "these are no more"
    assert not tried & ELSEWHERE.keys()


class Desk:
    """A subscriber, and what it got."""

    def __init__(self) -> None:
        self.got: list[tuple[str, str]] = []

    async def follow(self, folder: Path) -> None:
        async with situ.connect(folder, client="desk", timeout=PATIENCE) as node:
            async for event in node.events(*TYPES, durable="all"):
                self.got.append((event.type, str(event.id)))

    async def has(self, type: str, number: int, at: Deployed, what: str) -> None:
        async with asyncio.timeout(PATIENCE):
            while len({id for each, id in self.got if each == type}) < number:
                assert at.alive, f"the run has ended: {what}"
                await asyncio.sleep(0.02)


async def try_each(at: Deployed, raising: Raising, rounds: Sequence[Sequence[str]]) -> tuple[int, list[str]]:
    """Publish an event, raise somewhere, and so on; the number of events, and where nobody came by."""
    desk, missed = Desk(), []
    following = asyncio.create_task(desk.follow(at.folder))
    number = 0
    async with situ.connect(at.folder, client="reader", timeout=PATIENCE) as reader:
        for places in ((), *rounds):
            for each in places:
                raising.arm(each)  # also one that was raised in before
            for _ in range(_TRIES):
                await (await reader.publish_event("Sighting", who=f"g{number}", at={"x": 1.0, "y": 1.0})).stored
                number += 1
                for type in TYPES:
                    await desk.has(type, number, at, f"{', '.join(places)}: {type} {number}")
                if all(map(raising.has_raised, places)):
                    break
            for each in places:
                raising.disarm(each)
            missed += [each for each in places if not raising.has_raised(each)]
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    twice = [each for each, often in Counter(desk.got).items() if often > 1]
    assert not twice, "delivered more than once"
    return number, missed


def check_log(at: Deployed, number: int) -> None:
    rows = at.root()
    for type in TYPES:
        found = Counter(_who(row) for row in rows if row.type == type)
        assert found == {f"g{each}": 1 for each in range(number)}, type
    assert not at.dead()


def _who(row: Row) -> str:
    data = json.loads(row.data)
    if row.type == "Sighting":
        return str(data["who"])
    if row.type == "GuestAlone":
        return str(data["text"].split()[0])
    return next(str(each["id"]) for each in data["bindings"] if each["alias"] == "A")


def go_on(folder: Path, rounds: Sequence[Sequence[str]]) -> None:
    """A run in which all of these raise, one round after the other."""
    tried = [each for some in (AT_START, *rounds) for each in some]
    raising = Raising(folder / "raising", dict.fromkeys(tried), ROOT)
    for each in AT_START:
        raising.arm(each)
    with deployed(folder / "guarded", engine="spark", situ=SITU, files=PROJECT, variables=raising.variables) as at:
        number, missed = asyncio.run(try_each(at, raising, rounds))
        assert not missed, "nobody came by there: nothing was tried"
        check_log(at, number)
        figures = at.command("status")["engines"]["spark"]
        failures = Counter(figures["failures"])
        # Each is told of: by the query that began again, or by the task that went on.
        assert sum(failures.values()) == len(tried), failures
        assert failures.keys() <= {"query events", "query detect", "task", "engine resize"}
        assert figures["types"]["Sighting"] == number, "what is repeated is counted once"
        for each in tried:
            assert f"Raised: put in by a test: {each}\n" in at.log, "the traceback is in the log"
        assert at.stop() == 0


def test_handlers_of_every_process_raise_once_and_the_run_goes_on(tmp_path: Path) -> None:
    go_on(tmp_path, ROUNDS)


@pytest.mark.soak
def test_every_handler_raises_once_and_the_run_goes_on(tmp_path: Path) -> None:
    go_on(tmp_path, (*ROUNDS, *MORE_ROUNDS))


# ── a task that fails on one of its messages, again and again ──

ALL = Subscription(client="board", name="all", types=("Reading",), durable=True)
NOW = Subscription(client="desk", name="now", types=("Reading",))
MESSAGES, MARKED, EACH = 9, 5, 3


def sent_by_a_task(
    folder: Path, monkeypatch: pytest.MonkeyPatch, place: str, *, once: bool = False
) -> tuple[Counter[str], Counter[str], list[dict[str, Any]], TaskCounts]:
    """What is delivered to those who wait and to those who are there, the dead letters, and what was counted."""
    live: Counter[str] = Counter()
    send = BlockingBus.send

    def noted(self: BlockingBus, message: Message) -> None:
        live.update(str(json.loads(line)["id"]) for line in split_lines(message.body))
        send(self, message)

    monkeypatch.setattr(BlockingBus, "send", noted)
    with zone(folder, [ALL, NOW], situ="batch: {events: 4}\n") as at:
        for number in range(MESSAGES):
            some = range(number * EACH, number * EACH + EACH)
            sensor = MARK if number == MARKED else "s"
            at.send("press-1", [event(str(each), "Reading", {"sensor": sensor, "value": 1.0}) for each in some])
        end = Offset(seq=MESSAGES, version=1, clock=1)
        with pytest.MonkeyPatch.context() as patch:
            injection = inject(patch, place, once=once)
            part = part_of_batch(at.names, Offset(), end, 0)
            rows = row_batches(part.messages(at.address), 1000)
            counts = dispatch_part(at.address, open_folder(folder / "at"), Offset(), end, 0, rows)
        assert injection.raised, "nothing was tried"
        durable = Counter(row.id for rows in at.delivered().values() for row in rows)
        assert max(Counter((row.client, row.seq) for row in at.root()).values()) == 1
        return durable, live, at.dead(), counts


@pytest.mark.parametrize("place", ["situ.event.subjects:pack_group", "situ.stages.deliver:DeliveryBatcher.add@2"])
def test_a_message_that_a_task_fails_on_is_left_out_and_all_others_are_delivered_once(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is found out at once: a batch that is repeated would fail again, and hold up everybody."""
    durable, live, letters, counts = sent_by_a_task(tmp_path, monkeypatch, place)
    marked = {str(each) for each in range(MARKED * EACH, MARKED * EACH + EACH)}
    others = {str(each) for each in range(MESSAGES * EACH)} - marked
    assert durable == dict.fromkeys(others, 1)
    assert live.keys() - marked == others
    assert max(live.values()) == 1, "who is there gets it once"
    assert all(MARK in each["original"] for each in letters)
    assert {each["code"] for each in letters} == {"E705"}
    assert len(letters) == EACH == counts.dead["E705"]
    assert any("Unforeseen" in each for each in counts.traces)


@pytest.mark.parametrize(
    "place",
    [
        "situ.spark.dispatch:publish",
        "situ.event.subjects:pack_group",
        "situ.event.subjects:pack_live",
        "situ.spark.partitions:decode",
    ],
)
def test_what_fails_once_in_a_task_is_done_again_there(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    durable, live, letters, counts = sent_by_a_task(tmp_path, monkeypatch, place, once=True)
    everything = {str(each): 1 for each in range(MESSAGES * EACH)}
    assert (durable, live, letters) == (everything, everything, [])
    assert counts.failures == {"task": 1}
    assert counts.types == {"Reading": MESSAGES * EACH}
