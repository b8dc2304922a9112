"""A batch that is cut off at any step and repeated does the same again, also when the deployment changed in between."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from situ.lang.problems import SituError
from situ.spark.engine import STEPS, SparkEngine
from tests.integration.test_pipeline import ALL, HOT, drained, reading, running, wait_for
from tests.zone import Zone, cut_off, zone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_until(spark: SparkSession, at: Zone, folder: Path, step: str) -> None:
    """Start an engine whose next batch ends where this step would begin."""

    def cut(reached: str) -> None:
        if reached == step:
            raise cut_off(step)

    engine = SparkEngine(spark, at.address, at.deployment.settings, folder, on_step=cut)
    engine.start()
    with pytest.raises(SituError) as failed:
        engine.wait()
    assert failed.value.problems[0].code.code == "N102"


def delivered(at: Zone) -> int:
    return sum(len(rows) for rows in at.delivered().values())


def test_a_batch_cut_off_between_any_two_steps_is_repeated_exactly(spark: SparkSession, tmp_path: Path) -> None:
    with zone(tmp_path, [ALL]) as at:
        for number, step in enumerate(STEPS):
            old = [ALL] if number % 2 else [ALL, HOT]
            new = [ALL, HOT] if number % 2 else [ALL]
            with running(spark, at, tmp_path / "checkpoints") as engine:
                at.publish(replace(at.deployment, subscriptions={each.id: each for each in old}))
                wait_for(drained(engine, at))
            for press in range(1, 4):
                first = 1000 * number + 10 * press
                at.send(f"press-{press}", [reading(first + each, 60.0) for each in range(5)])
            before = delivered(at)
            run_until(spark, at, tmp_path / "checkpoints", step)
            cut = at.messages(at.names.root_stream), at.messages(at.names.out_stream)
            at.publish(replace(at.deployment, subscriptions={each.id: each for each in new}))
            with running(spark, at, tmp_path / "checkpoints") as engine:
                wait_for(drained(engine, at))
            after = at.messages(at.names.root_stream), at.messages(at.names.out_stream)
            assert delivered(at) == before + 15 * len(old), step
            # What the cut run had published is what there is, and nothing was published beside it.
            assert [after[0][: len(cut[0])], after[1][: len(cut[1])]] == list(cut)
        wanted = {
            f"{1000 * number + 10 * press + each}"
            for number in range(len(STEPS))
            for press in range(1, 4)
            for each in range(5)
        }
        assert {row.id for row in at.root()} == wanted
        groups = sorted(len(rows) for rows in at.delivered().values())
        assert groups == [15 * ((len(STEPS) + 1) // 2), 15 * len(STEPS)]


def test_an_interrupted_batch_is_told_from_a_new_one_after_the_bus_forgot_its_ids(
    spark: SparkSession, tmp_path: Path
) -> None:
    with zone(tmp_path, [], situ="overlay: {duplicate_window: 100 ms}\n") as at:
        at.send("press-1", [reading(each, 60.0) for each in range(5)])
        run_until(spark, at, tmp_path / "checkpoints", "carry")
        assert len(at.root()) == 5
        at.send("press-2", [reading(each, 60.0) for each in range(5)])
        with running(spark, at, tmp_path / "checkpoints") as engine:
            wait_for(drained(engine, at))
        assert sorted((row.client, row.seq) for row in at.root()) == [
            (f"press-{press}", seq) for press in (1, 2) for seq in range(1, 6)
        ]
