"""Going on on Spark where another engine was, and what Spark leaves for another: both without Spark itself.

A batch that was begun and not finished is repeated here as Spark would repeat it, by the same functions over the same
messages, so that what it had stored is stored once. What is behind the last batch stays in the ingress stream.

Whoever goes on on Spark gets checkpoints that are new. The queries begin as if a batch of theirs had ended where the
other engine did: what that remembered is written where the first batch looks for what the one before it left.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from situ.bus.address import Address
from situ.bus.sync_bus import BlockingBus, shared_bus
from situ.event.instants import instant_at
from situ.event.lines import decode_line, stored_lines
from situ.event.message import position
from situ.event.subjects import SHARDS, BusNames
from situ.kafka.connection import use_settings
from situ.lang.problems import SituError
from situ.settings import Settings
from situ.spark.checkpoint import (
    BatchEnds,
    ClientOffsets,
    ClientOffsetStore,
    Offset,
    adopt_log,
    check_checkpoint,
    checkpoints_of,
    last_batch,
    owner_of,
    read_offset,
    recall,
)
from situ.spark.detect_query import QUERY as DETECT
from situ.spark.detect_query import SparkDetection
from situ.spark.dispatch import dispatch_part
from situ.spark.engine import QUERY as EVENTS
from situ.spark.partitions import is_shaped
from situ.spark.plans import current_version, load_plan
from situ.spark.state_store import InheritedState, PendingDeliveryStore, ShapeCheckpoint
from situ.spark.storage.owner import claimed
from situ.stages.shape import ShapeState
from situ.stages.takeover import EngineHandover, Highest
from situ.storage.state_folder import StateFolder

_MARGIN = timedelta(seconds=1)
"""Clocks of bus and engine may differ."""


def left_by_spark(address: Address, settings: Settings, folder: Path) -> EngineHandover:
    """Finish what Spark had begun, and give all that another engine needs to go on. N101 if it cannot be read."""
    checkpoints = checkpoints_of(settings, folder)
    use_settings(settings)
    with claimed(owner_of(settings, checkpoints)):
        return _finish(address, settings, checkpoints, folder)


def _finish(address: Address, settings: Settings, checkpoints: StateFolder, folder: Path) -> EngineHandover:
    bus, names = shared_bus(address), BusNames(address.zone)
    events = checkpoints / EVENTS
    check_checkpoint(events)
    adopt_log(bus, names, events)  # if the checkpoint is gone, the log tells what was taken
    at, highest = finish_events(address, events)
    detection = SparkDetection(None, address, settings, checkpoints, events=events, folder=folder)
    left = detection.finish()
    if at.seq:
        bus.purge(names.in_stream, at.seq + 1)
    shaping = ShapeCheckpoint(events, at)
    return EngineHandover(
        root=bus.state(names.root_stream).last,
        dead=bus.state(names.dead_stream).last,
        highest=highest,
        waiting=_placed(bus, names, PendingDeliveryStore(events, at.mark, at.mark).waiting),
        shaping=shaping.load(load_plan(address, at.version)).as_json() if shaping.is_there else {},
        detection=left,
    )


def _placed(bus: BlockingBus, names: BusNames, waiting: Sequence[Any]) -> Sequence[Any]:
    """Deliveries that wait, with their positions in the root log. Spark's own are those of the ingress stream."""
    rows = [decode_line(text.encode()) for _, kept in waiting for text, *_ in kept]
    if not rows:
        return waiting
    since = instant_at(min(row.recv for row in rows)) - _MARGIN
    left, places = {row.key for row in rows}, dict[str, int]()
    for message in bus.read(names.root_stream, bus.find(names.root_stream, since)):
        for place, line in enumerate(stored_lines(message)):
            if (key := decode_line(line).key) in left:
                places[key] = position(message.seq, place)
                left.remove(key)
        if not left:
            break
    found = iter(rows)
    return [
        [context, [[text, places.get(next(found).key, pos), *shaped] for text, pos, *shaped in kept]]
        for context, kept in waiting
    ]


def finish_events(address: Address, checkpoint: StateFolder) -> tuple[Offset, Highest]:
    """Repeat the last batch of events if it was cut off; where it ended, and how far each client is there."""
    carries = ClientOffsetStore(checkpoint)
    begun, done = last_batch(checkpoint, "offsets"), last_batch(checkpoint, "commits")
    if begun is None:
        return Offset(), carries.load(0).highest
    end = read_offset(checkpoint, begun)
    if begun == done:
        return end, carries.load(end.mark).highest
    bus, names = shared_bus(address), BusNames(address.zone)
    recall(bus, names, checkpoint)
    begin = read_offset(checkpoint, begun - 1) if begun else Offset(version=end.version)
    carry = carries.load(begin.mark)
    some = end.mark > begin.mark or is_shaped(address, checkpoint, begin, end)
    parts = min(end.partitions, SHARDS) if end.mark > begin.mark else 1
    counts = [dispatch_part(address, checkpoint, begin, end, number) for number in range(parts if some else 0)]
    BatchEnds(checkpoint).add(bus.state(names.root_stream).last)
    after = carry.advanced(each.highest for each in counts)
    carries.save(end.mark, after)
    return end, after.highest


def begin_spark(address: Address, settings: Settings, folder: Path, left: EngineHandover) -> None:
    """Have Spark go on from there; the checkpoints it had are older and go."""
    checkpoints = checkpoints_of(settings, folder)
    with claimed(owner_of(settings, checkpoints)):
        _begin(address, checkpoints, left)


def _begin(address: Address, checkpoints: StateFolder, left: EngineHandover) -> None:
    events, detect = checkpoints / EVENTS, checkpoints / DETECT
    for each in (events, detect):
        each.remove()
    ClientOffsetStore(events).save(0, ClientOffsets(left.highest))
    if left.incoming:
        PendingDeliveryStore(events, 0, 0).inherit(left.incoming, left.outgoing, left.waiting)
    if left.shaping:
        shaping = ShapeState()
        shaping.restore([left.shaping], load_plan(address, current_version(address)))
        ShapeCheckpoint(events, Offset()).save(shaping)
    if left.detection is not None:
        version = _known(address, left.detection.version)
        at = Offset(seq=left.detection.reached, version=version, clock=time.time_ns() // 1000)
        InheritedState(detect).save(at, left.detection.progress, left.detection.states)


def _known(address: Address, version: int) -> int:
    """The version itself if the bus has it, else the one in force."""
    try:
        load_plan(address, version)
    except SituError:
        return current_version(address)
    return version
