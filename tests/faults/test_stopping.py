"""Ctrl-C at any moment of a run's start and life: it ends in order, and the next run starts as if nothing was."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from pathlib import Path

import pytest

from situ.app.run import RunProcess
from situ.project.check import check_folder
from tests.faults.deployed import Deployed, deployed, wait_for
from tests.faults.traffic import WISHES, Publisher, Recorder, check_seen, kill_all, start_all, wait_ready
from tests.volume import cases


def interrupt(at: Deployed, after: float | None) -> None:
    """Start a run and stop it after a while, or once it is up."""
    at.start()
    if after is None:
        at.ready()
    else:
        time.sleep(after)
    at.signal(signal.SIGINT)
    code = at.ended()
    assert code in (0, 130), f"after {after} s: {code}\n{at.shown[-2000:]}"
    assert "Traceback" not in at.shown, f"after {after} s: {at.shown[-2000:]}"


@cases(2, 50)
def test_the_edge_stops_at_any_moment_of_its_start(tmp_path: Path, cases: int) -> None:
    chance = random.Random(5)
    with deployed(tmp_path / "plant", engine="edge", forked=False, start=False) as at:
        # The first moments are the interpreter's own: it loads what is needed to hear a signal.
        moments = [0.5 + 2 * (number + chance.random()) / cases for number in range(cases)]
        for after in (None, *moments, None):
            interrupt(at, after)


def test_spark_stops_at_any_moment_and_what_was_accepted_is_delivered_by_the_next_run(tmp_path: Path) -> None:
    with deployed(tmp_path / "plant", engine="spark", forked=False, start=False) as at:
        interrupt(at, 3.0)  # about when Java or the query is started
        interrupt(at, None)  # between batches, and no event was ever published
        at.start()
        at.ready()
        publisher, recorder = Publisher(at.folder, "pump", 8000, 4000), Recorder(at.folder, WISHES[0])
        try:
            start_all([recorder])
            wait_ready([recorder])
            start_all([publisher])
            wait_ready([publisher])
            time.sleep(1)
            at.signal(signal.SIGINT)  # in a batch, or between two
            assert at.ended() == 0
            at.start()
            at.ready()
            wait_for(lambda: publisher.done, "everything is accepted")
            wait_for(lambda: recorder.count > len(recorder.wish.expected(8000)), "everything is delivered")
            check_seen(recorder, [publisher])
        finally:
            kill_all([publisher, recorder])
        assert at.stop() == 0
        assert "Traceback" not in at.shown


def test_a_request_to_stop_that_a_step_of_the_start_swallows_is_heeded_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `asyncio.wait_for` does before Python 3.12 when the answer it waits for comes at that moment."""

    async def swallow(*_: object) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(0)

    monkeypatch.setattr("situ.app.run.take_over", swallow)
    with deployed(tmp_path / "plant", engine="edge", start=False) as at:
        deployment = check_folder(at.folder).deployment
        assert deployment is not None

        async def start() -> None:
            async with RunProcess(at.folder, deployment):
                raise AssertionError("it runs")

        with pytest.raises(asyncio.CancelledError):
            asyncio.run(start())
        assert "running" not in at.log
        assert at.log.rstrip().endswith("stopped")


@pytest.mark.parametrize(
    "work",
    [
        "situ.app.run.keep_published",
        "situ.app.action_worker.ActionWorker._take",
        "situ.app.metrics.MetricsReporter.look",
    ],
)
def test_work_that_swallows_the_request_to_stop_is_asked_again(
    work: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, swallowed = asyncio.Event(), []

    async def swallow(*_: object, **__: object) -> None:
        while not swallowed:
            begun.set()
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                swallowed.append(work)
        await asyncio.sleep(3600)

    with deployed(tmp_path / "plant", engine="edge", start=False) as at:
        deployment = check_folder(at.folder).deployment
        assert deployment is not None

        async def run() -> None:
            async with asyncio.timeout(60), RunProcess(at.folder, deployment) as process:
                look = process._pulse.look
                monkeypatch.setattr(work, swallow)
                await begun.wait()
                monkeypatch.setattr(process._pulse, "look", look)

        if work.endswith("keep_published"):
            monkeypatch.setattr(work, swallow)
        asyncio.run(run())
        assert swallowed == [work]
        assert at.log.rstrip().endswith("stopped")
