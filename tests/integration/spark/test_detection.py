"""Situations on Spark, end to end on a real bus: what the edge finds, through crashes, silence and changes."""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from situ.event.instants import print_instant
from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.policies import lifecycle
from situ.policies.model import Cause, Observation, PolicyStart
from situ.policies.reference import detect
from situ.spark.detect_query import DetectBatchReport
from situ.spark.engine import SparkEngine
from tests.guarded import FILES
from tests.zone import Zone, cut_off, event, zone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = str(Path(__file__).parents[3])
# Shorter than what an event takes through the query before: it must not be late for that, when all was silent.
SITU = "defaults: {lateness: 100 ms, idle: 1 s}\n"
MORE = {name: text for name, text in FILES.items() if name not in ("situ.yaml", "types/building.yaml")}
QUICK = {**MORE, "policies/unaccompanied-guest.dpl": MORE["policies/unaccompanied-guest.dpl"].replace("5 s", "1 s")}
G1, G2 = ({"A": who, "R": "lab"} for who in ("g1", "g2"))


@contextmanager
def running(spark: SparkSession, at: Zone, folder: Path, **hooks: Any) -> Iterator[SparkEngine]:
    settings = at.deployment.settings
    engine = SparkEngine(
        spark, at.address, settings, folder / "checkpoints", folder=folder / "project", partitions=2, **hooks
    )
    engine.start()
    try:
        yield engine
    finally:
        engine.stop()


def wait_for(condition: Callable[[], object], engine: SparkEngine, *, seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        assert not engine.wait(0.05)


def guarded() -> dict[str, Any]:
    return {"types": FILES["types/building.yaml"], "situ": SITU, "more": {**QUICK, "clients/all.yaml": ""}}


def see(at: Zone, number: int, who: str, x: float, y: float = 5.0, **about: Any) -> None:
    at.send("reader", [event(f"e{number}", "Sighting", {"who": who, "at": {"x": x, "y": y}}, **about)])


def alarms(at: Zone) -> list[str]:
    return [json.loads(row.data)["text"] for row in at.root() if row.type == "GuestAlone"]


def told(at: Zone) -> list[tuple[str, dict[str, str]]]:
    rows = [row for row in at.root() if row.type.startswith("situ.situation")]
    data = [json.loads(row.data) for row in rows]
    bindings = [{each["alias"]: each["id"] for each in some["bindings"]} for some in data]
    return [(row.type.rpartition(".")[2], some) for row, some in zip(rows, bindings, strict=True)]


def test_a_guest_alone_is_a_situation_though_nothing_more_comes(spark: SparkSession, tmp_path: Path) -> None:
    with zone(tmp_path, **guarded()) as at, running(spark, at, tmp_path) as engine:
        see(at, 1, "g1", 5)
        see(at, 2, "g2", 30)
        wait_for(lambda: len(told(at)) == 2, engine)
        assert told(at) == [("opened", G1), ("closed", G1)]
        (alarm,) = [row for row in at.root() if row.type == "GuestAlone"]
        assert json.loads(alarm.data) == {"text": "g1 alone in lab", "status": "guest"}
        opened = next(row for row in at.root() if row.type == "situ.situation.opened")
        (cause,) = json.loads(opened.data)["causes"]
        assert (cause["id"], cause["source"]) == ("e1", "reader/x")


class Cut:
    """Ends the batch in which a sighting becomes a situation where a step begins."""

    def __init__(self, at: Zone, step: str) -> None:
        self._at, self._step = at, step
        self._known = 0
        self._telling = False

    def see(self, number: int, who: str) -> None:
        self._telling, self._known = False, self._at.bus.state(self._at.names.in_stream).last + 1
        see(self._at, number, who, 5)

    def notice(self, batch: DetectBatchReport) -> None:
        self._telling = self._telling or batch.events > 0

    def reach(self, step: str) -> None:
        # Behind the sighting comes the message of the policy; what is done about it may be there already.
        published = self._at.bus.state(self._at.names.in_stream).last > self._known
        if self._known and step == self._step and self._telling and published == (step != "publish"):
            raise cut_off(step)


@pytest.mark.parametrize("steps", [("publish", "done"), pytest.param(("progress", "publish"), marks=pytest.mark.soak)])
def test_a_batch_cut_off_tells_what_it_had_to_tell_once(
    spark: SparkSession, tmp_path: Path, steps: tuple[str, str]
) -> None:
    """Each engine tells what the one before it was cut off at, and is cut off itself at the next."""
    with zone(tmp_path, **guarded()) as at:
        for number, step in enumerate((*steps, "")):
            cut = Cut(at, step)
            with running(spark, at, tmp_path, on_detect=cut.notice, on_detect_step=cut.reach) as engine:
                wait_for(lambda number=number: (len(told(at)), len(alarms(at))) == (2 * number, number), engine)
                if step:
                    cut.see(number + 1, f"g{number + 1}")
                    with pytest.raises(SituError, match="N102"):
                        wait_for(lambda: False, engine)
        assert told(at) == [("opened", G1), ("closed", G1), ("opened", G2), ("closed", G2)]


@pytest.mark.parametrize("step", ["", pytest.param("publish", marks=pytest.mark.soak), "progress"])
def test_a_policy_that_begins_in_the_past_tells_it_once_and_acts_from_now_on(
    spark: SparkSession, tmp_path: Path, step: str
) -> None:
    with zone(tmp_path, **guarded()) as at:
        full = at.deployment
        at.publish(replace(full, policies={}))

        def cut(reached: str) -> None:
            if reached == step:
                raise cut_off(step)

        with running(spark, at, tmp_path, on_detect_step=cut) as engine:
            see(at, 1, "g1", 5)
            time.sleep(4)
            see(at, 2, "g2", 5)
            wait_for(lambda: len(at.root()) == 2, engine)
            at.publish(replace(full, starts={"unaccompanied-guest": PolicyStart(at=0)}))
            if step:
                with pytest.raises(SituError, match="N102"):
                    wait_for(lambda: False, engine)
            else:
                wait_for(lambda: len(told(at)) == 4, engine)
        if step:
            with running(spark, at, tmp_path) as engine:
                wait_for(lambda: len(told(at)) == 4, engine)
        assert sorted(told(at), key=str) == [("closed", G1), ("closed", G2), ("opened", G1), ("opened", G2)]
        assert alarms(at) == ["g2 alone in lab"], "what was over when the policy came is told, and nothing is done"


def walked(seed: int, count: int) -> Iterator[tuple[int, str, float, float]]:
    """Persons who walk about, some of them in the laboratory: seconds, who, where."""
    dice = random.Random(seed)
    places = {who: (dice.uniform(-5, 45), dice.uniform(-5, 15)) for who in ("g1", "g2", "e1", "e2")}
    for number in range(count):
        who = dice.choice(list(places))
        x, y = places[who]
        places[who] = (min(max(x + dice.uniform(-6, 6), -5), 45), min(max(y + dice.uniform(-3, 3), -5), 15))
        yield number * 230_000 + dice.randrange(100_000), who, *places[who]


def test_what_is_found_in_parallel_is_what_policies_mean(spark: SparkSession, tmp_path: Path) -> None:
    """Thousands of events that wait, so that the first batch has several tasks, against the reference."""
    start, detected = 1_790_000_000_000_000, list[DetectBatchReport]()
    with zone(tmp_path, **guarded()) as at:
        steps = list(walked(7, 3000))
        for first in range(0, len(steps), 300):
            at.send(
                "reader",
                [
                    event(f"e{n}", "Sighting", {"who": who, "at": {"x": x, "y": y}}, time=print_instant(start + after))
                    for n, (after, who, x, y) in enumerate(steps[first : first + 300], first)
                ],
            )
        policy = at.deployment.policies["unaccompanied-guest"]
        observations = [
            Observation(
                push="seen",
                concept="person",
                identity=who,
                attribute="position",
                value={"x": x, "y": y},
                time=start + after,
                cause=Cause("reader/x", f"e{n}"),
            )
            for n, (after, who, x, y) in enumerate(steps)
        ]
        status = {
            who: {"id": who, "status": "guest" if who[0] == "g" else "employee"} for who in ("g1", "g2", "e1", "e2")
        }
        lab = {"id": "lab", "security": "restricted", "area": {"x1": 0.0, "y1": 0.0, "x2": 10.0, "y2": 10.0}}
        found = detect(policy, at.deployment.ontology, observations, {"person": status, "room": {"lab": lab}})
        _, expected = lifecycle.step({}, found, 1 << 60, policy.hold)
        assert len(expected) > 50
        with running(spark, at, tmp_path, on_detect=detected.append) as engine:
            wait_for(lambda: len(told(at)) >= len(expected), engine, seconds=120)
        rows = {row.id for row in at.root() if row.type.startswith("situ.situation")}
    assert rows == {each.id for each in expected}
    assert any(batch.offset.partitions > 1 for batch in detected)


def judge(seeds: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a worker of Spark: of each case, whether its buckets find what its policy means, and how much that is."""
    sys.path.insert(0, ROOT)
    from situ.policies.reference import detect
    from tests.buckets import found_in_buckets
    from tests.situations import generate

    for batch in seeds:
        with TemporaryDirectory() as folder:
            for seed in batch.column(0).to_pylist():
                case = generate(seed)
                expected = detect(case.policy, case.ontology, case.observations, case.instances, keep=case.keep)
                same = found_in_buckets(case, Path(folder) / str(seed)) == expected
                yield pa.RecordBatch.from_arrays(
                    [pa.array([seed]), pa.array([same]), pa.array([len(expected)])], names=["seed", "same", "count"]
                )


def judged(spark: SparkSession, first: int, last: int) -> None:
    cases = spark.range(first, last, 1, 2).mapInArrow(judge, "seed long, same boolean, count long").collect()
    assert len(cases) == last - first
    assert [row.seed for row in cases if not row.same] == []
    assert sum(row["count"] > 0 for row in cases) > (last - first) / 4


def test_workers_find_what_generated_policies_mean(spark: SparkSession) -> None:
    judged(spark, 6000, 6020)


@pytest.mark.soak
def test_workers_find_what_generated_policies_mean_at_length(spark: SparkSession) -> None:
    judged(spark, 30_000, 40_000)
