"""Starting again: is what the last run wrote down whole, and what did its last batch get done?

Spark repeats a batch that was begun and not committed. The bus refuses what is stored already, but only for as long as
it remembers ids; how long the process was down is nobody's choice. So the messages that the interrupted batch
has put into the logs are looked up once, before it is repeated.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from situ.bus.blocking import BlockingBus
from situ.bus.names import Names
from situ.catalogue import CHECKPOINT_DAMAGED
from situ.errors import Location, SituError
from situ.event.lines import decode_line, stored_lines
from situ.event.message import position
from situ.pipeline.carry import CarryStore
from situ.pipeline.offsets import Offset, last_batch, read_offset

_MARGIN = 1_000_000  # µs: clocks of bus and engine may differ


def check_checkpoint(checkpoint: Path) -> None:
    """N101 if what Spark and Situ wrote down of the events cannot be gone on from."""
    begun_from = check_offsets(checkpoint)
    if begun_from is not None:
        CarryStore(checkpoint).load(begun_from.seq)


def check_offsets(checkpoint: Path) -> Offset | None:
    """N101 if what Spark wrote down cannot be gone on from; else where the next batch begins, None if at the start."""
    begun, done = last_batch(checkpoint, "offsets"), last_batch(checkpoint, "commits")
    if begun is None and done is None:
        return None
    metadata = checkpoint / "metadata"
    try:
        json.loads(metadata.read_text(encoding="utf-8"))["id"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SituError(CHECKPOINT_DAMAGED(Location(file=str(metadata)), reason=str(error))) from None
    if begun is None or (done is not None and done > begun):
        place = Location(file=str(checkpoint / "offsets"))
        raise SituError(CHECKPOINT_DAMAGED(place, reason=f"batch {done} was committed, but its offset is missing"))
    read_offset(checkpoint, begun)
    if begun:
        return read_offset(checkpoint, begun - 1)
    return read_offset(checkpoint, done) if done is not None else None


def recall(bus: BlockingBus, names: Names, checkpoint: Path) -> None:
    """If the last batch was begun and not committed: add what it got stored to what it starts from."""
    begun, done = last_batch(checkpoint, "offsets"), last_batch(checkpoint, "commits")
    if begun is None or begun == done:
        return
    offset, start = read_offset(checkpoint, begun), read_offset(checkpoint, begun - 1).seq if begun else 0
    carries = CarryStore(checkpoint)
    carries.save(start, replace(carries.load(start), stored=_stored_since(bus, names, offset.clock - _MARGIN)))


def _stored_since(bus: BlockingBus, names: Names, clock: int) -> frozenset[str]:
    """Ids of the messages in root log and dead letters that are younger than this."""
    since = datetime.fromtimestamp(clock / 1_000_000, UTC)
    return frozenset(
        message.id
        for stream in (names.root_stream, names.dead_stream)
        for message in bus.read(stream, bus.find(stream, since))
        if message.id
    )


def adopt_log(bus: BlockingBus, names: Names, checkpoint: Path) -> None:
    """A query without checkpoint on a log that was read before: learn from the root log what was taken already."""
    if last_batch(checkpoint, "offsets") is not None:
        return
    waiting = bus.state(names.in_stream)
    oldest = next(iter(bus.read(names.in_stream, waiting.first, waiting.first)), None) if waiting.messages else None
    if oldest is None:
        return
    since = datetime.fromtimestamp((oldest.at - _MARGIN) / 1_000_000, UTC)
    highest: dict[str, tuple[int, int]] = {}
    for message in bus.read(names.root_stream, bus.find(names.root_stream, since)):
        for place, line in enumerate(stored_lines(message)):
            row = decode_line(line, pos=position(message.seq, place))
            highest[row.client] = max(highest.get(row.client, (0, 0)), (row.incarnation, row.seq))
    carries = CarryStore(checkpoint)
    carries.save(0, carries.load(0).advanced([highest]))
