"""Scopes of the past: what was stamped in another epoch is decided by its scopes, which the bus keeps."""

from __future__ import annotations

from collections.abc import Sequence

from situ.bus.interface import Bus
from situ.event.lines import decode_line, stored_lines
from situ.event.message import StoredMessage
from situ.event.row import Row
from situ.registry.snapshots import fetch_scopes
from situ.stages.plan import Plan
from situ.stages.visibility import EventVisibility


async def learn_epochs(bus: Bus, plan: Plan, rows: Sequence[Row]) -> None:
    """Have the scopes of the epochs that these rows were stamped in. What nobody knows any more shows nothing."""
    if plan.seeing is not None:
        await _learn(bus, plan.seeing, rows)


async def learn_stored(bus: Bus, seeing: EventVisibility | None, messages: Sequence[StoredMessage]) -> None:
    """The same for messages of the log."""
    if seeing is not None:
        await _learn(bus, seeing, [decode_line(line) for each in messages for line in stored_lines(each)])


async def _learn(bus: Bus, seeing: EventVisibility, rows: Sequence[Row]) -> None:
    for epoch in seeing.missing(rows):
        seeing.know(epoch, await fetch_scopes(bus, epoch))
