"""A batch that is cut off at any step and repeated does the same again, also when the deployment changed in between."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.spark.engine import STEPS, SparkEngine
from tests.integration.spark.test_engine import ALL, HOT, drained, reading, running, wait_for
from tests.zone import Zone, cut_off, zone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Cut:
    """Ends an engine's batch where a step begins; before that, holds the batch that brings a version at its end."""

    def __init__(self) -> None:
        self.step = ""
        self.held = 0
        self.engine: SparkEngine | None = None
        self._go_on = threading.Event()

    def reach(self, step: str) -> None:
        if step == self.step:
            raise cut_off(step)
        if self.engine is not None and step == "done" and self.engine.version == self.held:
            assert self._go_on.wait(300)

    def begin(self, step: str) -> None:
        """The batch that is held may end; the next one ends where this step would begin."""
        self.step = step
        self._go_on.set()


def ends_cut_off(engine: SparkEngine) -> None:
    with pytest.raises(SituError) as failed:
        engine.wait()
    assert failed.value.problems[0].code.code == "N102"


def delivered(at: Zone) -> int:
    return sum(len(rows) for rows in at.delivered().values())


def test_a_batch_cut_off_between_any_two_steps_is_repeated_exactly(spark: SparkSession, tmp_path: Path) -> None:
    """Each engine repeats the batch that the one before it was cut off in, and is then cut off one step later."""
    with zone(tmp_path, [ALL]) as at:
        stored, wanted = at.messages(at.names.root_stream), 0
        queued = at.messages(at.names.out_stream)
        for number, step in enumerate((*STEPS, "")):
            cut = Cut()
            engine = SparkEngine(spark, at.address, at.deployment.settings, tmp_path / "checkpoints", on_step=cut.reach)
            cut.engine = engine
            engine.start()
            try:
                wait_for(drained(engine, at))
                assert delivered(at) == wanted, f"cut off before {number} of {STEPS}"
                # What the cut run had published is what there is, and nothing was published beside it.
                assert at.messages(at.names.root_stream)[: len(stored)] == stored
                assert at.messages(at.names.out_stream)[: len(queued)] == queued
                if not step:
                    break
                old = [ALL] if number % 2 else [ALL, HOT]
                new = [ALL, HOT] if number % 2 else [ALL]
                cut.held = at.deployment.version + 1
                at.publish(replace(at.deployment, subscriptions={each.id: each for each in old}))
                wait_for(drained(engine, at))
                # While that batch is held, so that the next one has all of these.
                for press in range(1, 4):
                    first = 1000 * number + 10 * press
                    at.send(f"press-{press}", [reading(first + each, 60.0) for each in range(5)])
                wanted += 15 * len(old)
                cut.begin(step)
                ends_cut_off(engine)
            finally:
                engine.stop()
            stored, queued = at.messages(at.names.root_stream), at.messages(at.names.out_stream)
            at.publish(replace(at.deployment, subscriptions={each.id: each for each in new}))
        ids = {
            f"{1000 * number + 10 * press + each}"
            for number in range(len(STEPS))
            for press in range(1, 4)
            for each in range(5)
        }
        assert {row.id for row in at.root()} == ids
        groups = sorted(len(rows) for rows in at.delivered().values())
        assert groups == [15 * ((len(STEPS) + 1) // 2), 15 * len(STEPS)]


def test_an_interrupted_batch_is_told_from_a_new_one_after_the_bus_forgot_its_ids(
    spark: SparkSession, tmp_path: Path
) -> None:
    with zone(tmp_path, [], situ="overlay: {duplicate_window: 100 ms}\n") as at:
        at.send("press-1", [reading(each, 60.0) for each in range(5)])
        cut = Cut()
        cut.begin("carry")
        engine = SparkEngine(spark, at.address, at.deployment.settings, tmp_path / "checkpoints", on_step=cut.reach)
        engine.start()
        ends_cut_off(engine)
        assert len(at.root()) == 5
        at.send("press-2", [reading(each, 60.0) for each in range(5)])
        with running(spark, at, tmp_path / "checkpoints") as engine:
            wait_for(drained(engine, at))
        assert sorted((row.client, row.seq) for row in at.root()) == [
            (f"press-{press}", seq) for press in (1, 2) for seq in range(1, 6)
        ]
