"""Any engine may follow any other in a project folder: it goes on where that one was, however that one ended.

A file says which engine is at work. When another one starts, the former one's work is finished first, by its own code:
what it had begun when it was killed is repeated, what it had stored is delivered. Then all that it remembered becomes
the follower's own: how far each client and each log is, what policies remember and have open, how many events they have
published, what filters and conversions remember. Only then does the file name the follower. Until that moment
everything is as the former engine left it, so this may be cut off anywhere and is done again from the start.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from pathlib import Path

from situ.bus.address import Address
from situ.bus.folder_lock import STATE
from situ.bus.interface import Bus
from situ.edge import takeover as edge
from situ.edge.engine import EdgeEngine
from situ.lang.catalogue import NO_SPARK
from situ.lang.problems import SituError
from situ.settings import Settings

log = logging.getLogger("situ.host")

EDGE, SPARK = "edge", "spark"
_FILE = STATE / "engine.json"
_EVENTS = "events"


async def take_over(kind: str, bus: Bus, folder: Path, settings: Settings, address: Address) -> None:
    """Have this engine go on where the one before it was, if that was another."""
    former = await asyncio.to_thread(_former, folder, settings)
    if former is not None and former != kind:
        log.info("the %s engine goes on where the %s engine was", kind, former)
        if kind == SPARK:
            await _to_spark(bus, folder, settings, address)
        else:
            await _deliver_in_real_time(folder, settings, address)
            await asyncio.to_thread(_to_edge, folder, settings, address)
    if former != kind:
        await asyncio.to_thread(_note, folder, kind)


async def _to_spark(bus: Bus, folder: Path, settings: Settings, address: Address) -> None:
    left = await EdgeEngine(bus, folder).hand_over()
    try:
        from situ.spark.takeover import begin_spark
    except ModuleNotFoundError as error:
        raise _without_spark(error) from error
    await asyncio.to_thread(begin_spark, address, settings, folder, left)


async def _deliver_in_real_time(folder: Path, settings: Settings, address: Address) -> None:
    """What Spark left to real-time queries and these have not delivered yet is in no queue."""
    try:
        from situ.app.real_time import drain
    except ModuleNotFoundError as error:
        raise _without_spark(error) from error
    await drain(folder, settings, address, log.info)


def _to_edge(folder: Path, settings: Settings, address: Address) -> None:
    try:
        from situ.spark.takeover import left_by_spark
    except ModuleNotFoundError as error:
        raise _without_spark(error) from error
    edge.begin_edge(folder, left_by_spark(address, settings, folder))


def _without_spark(error: ModuleNotFoundError) -> SituError:
    return SituError(NO_SPARK(reason=f"there is no Python module `{error.name}`"))


# ── who was at work ──


def _former(folder: Path, settings: Settings) -> str | None:
    """The engine that was at work last; None if none ever was."""
    try:
        known = json.loads((folder / _FILE).read_text(encoding="utf-8"))["engine"]
        if known in (EDGE, SPARK):
            return str(known)
    except (OSError, ValueError, KeyError, TypeError):
        pass  # written by a release that did not say it, or torn: the traces of engines tell
    traces = {
        EDGE: _latest(edge.traces(folder)),
        SPARK: _latest(_checkpoints(folder / settings.spark.checkpoints.value)),
    }
    last = max(traces, key=lambda each: traces[each])
    return last if traces[last] else None


def _checkpoints(checkpoints: Path) -> Iterator[Path]:
    """Of a run whose release did not note its engine: those had local files only."""
    events = checkpoints / _EVENTS
    yield from (events / "offsets").glob("*")
    yield events / "ends.json"


def _latest(files: Iterator[Path]) -> float:
    return max((each.stat().st_mtime for each in files if each.exists()), default=0.0)


def _note(folder: Path, kind: str) -> None:
    file = folder / _FILE
    beside = file.with_suffix(".new")
    beside.write_text(json.dumps({"version": 1, "engine": kind}), encoding="utf-8")
    beside.replace(file)
