"""Going on on Spark where another engine was, and what Spark leaves for another: both without Spark itself.

A batch that was begun and not finished is repeated here as Spark would repeat it, by the same functions over the same
messages, so that what it had stored is stored once. What is behind the last batch stays in the ingress stream.

Whoever goes on on Spark gets checkpoints that are new. The queries begin as if a batch of theirs had ended where the
other engine did: what that remembered is written where the first batch looks for what the one before it left.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from situ.bus.address import Address
from situ.bus.blocking import shared_bus
from situ.bus.names import Names
from situ.deployment.shaping import Shaping
from situ.deployment.takeover import Highest, Left
from situ.errors import SituError
from situ.pipeline.carry import Carry, CarryStore
from situ.pipeline.counters import decode_counts
from situ.pipeline.cutting import cut, read_part
from situ.pipeline.detecting import QUERY as DETECT
from situ.pipeline.detecting import SparkDetection
from situ.pipeline.ends import Ends
from situ.pipeline.engine import QUERY as EVENTS
from situ.pipeline.kept import Inherited
from situ.pipeline.offsets import Offset, last_batch, read_offset
from situ.pipeline.plans import current_version, load_plan
from situ.pipeline.recovery import adopt_log, check_checkpoint, recall
from situ.pipeline.remembering import Remembering
from situ.pipeline.shape import LeftBehind
from situ.pipeline.source_options import SourceOptions
from situ.settings import Settings


def left_by_spark(address: Address, settings: Settings, checkpoints: Path, folder: Path) -> Left:
    """Finish what Spark had begun, and give all that another engine needs to go on. N101 if it cannot be read."""
    bus, names = shared_bus(address), Names(address.zone)
    events = checkpoints / EVENTS
    check_checkpoint(events)
    adopt_log(bus, names, events)  # if the checkpoint is gone, the log tells what was taken
    at, highest = finish_events(address, settings, events, folder)
    detection = SparkDetection(None, address, settings, checkpoints, events=events, folder=folder)
    left = detection.finish()
    if at.seq:
        bus.purge(names.in_stream, at.seq + 1)
    shaping = LeftBehind(events, at)
    return Left(
        root=bus.state(names.root_stream).last,
        dead=bus.state(names.dead_stream).last,
        highest=highest,
        waiting=Remembering(events, at.seq, at.seq).waiting,
        shaping=shaping.load(load_plan(address, at.version)).as_json() if shaping.is_there else {},
        detection=left,
    )


def finish_events(address: Address, settings: Settings, checkpoint: Path, folder: Path) -> tuple[Offset, Highest]:
    """Repeat the last batch of events if it was cut off; where it ended, and how far each client is there."""
    carries = CarryStore(checkpoint)
    begun, done = last_batch(checkpoint, "offsets"), last_batch(checkpoint, "commits")
    if begun is None:
        return Offset(), carries.load(0).highest
    end = read_offset(checkpoint, begun)
    if begun == done:
        return end, carries.load(end.seq).highest
    bus, names = shared_bus(address), Names(address.zone)
    recall(bus, names, checkpoint)
    begin = read_offset(checkpoint, begun - 1) if begun else Offset(version=end.version)
    options = SourceOptions(
        address=address,
        stream="IN",
        content="counts",
        checkpoint=checkpoint,
        partitions=end.partitions,
        max_events=settings.spark.max_events,
        folder=folder.absolute(),
    )
    carry = carries.load(begin.seq)
    batches = (batch for part in cut(options, begin, end) for batch in read_part(options, part))
    counts = [each for batch in batches for each in decode_counts(batch.column(0).to_pylist())]
    Ends(checkpoint).add(bus.state(names.root_stream).last)
    after = carry.advanced(each.highest for each in counts)
    carries.save(end.seq, after)
    return end, after.highest


def begin_spark(address: Address, checkpoints: Path, left: Left) -> None:
    """Have Spark go on from there; the checkpoints it had are older and go."""
    events, detect = checkpoints / EVENTS, checkpoints / DETECT
    for each in (events, detect):
        shutil.rmtree(each, ignore_errors=True)
    CarryStore(events).save(0, Carry(left.highest))
    if left.incoming:
        Remembering(events, 0, 0).inherit(left.incoming, left.outgoing, left.waiting)
    if left.shaping:
        shaping = Shaping()
        shaping.restore([left.shaping], load_plan(address, current_version(address)))
        LeftBehind(events, Offset()).save(shaping)
    if left.detection is not None:
        version = _known(address, left.detection.version)
        at = Offset(seq=left.detection.reached, version=version, clock=time.time_ns() // 1000)
        Inherited(detect).save(at, left.detection.progress, left.detection.states)


def _known(address: Address, version: int) -> int:
    """The version itself if the bus has it, else the one in force."""
    try:
        load_plan(address, version)
    except SituError:
        return current_version(address)
    return version
