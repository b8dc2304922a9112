"""Scopes of the past: what was stamped in another epoch is decided by its scopes, which the bus keeps."""

from __future__ import annotations

from collections.abc import Sequence

from situ.bus.interface import Bus
from situ.deployment.plan import Plan
from situ.event.lines import decode_line
from situ.event.message import Stored, split_lines
from situ.event.row import Row
from situ.registry.snapshots import fetch_scopes


async def learn_epochs(bus: Bus, plan: Plan, rows: Sequence[Row]) -> None:
    """Have the scopes of the epochs that these rows were stamped in. What nobody knows any more shows nothing."""
    if plan.seeing is None:
        return
    for epoch in plan.seeing.missing(rows):
        plan.seeing.know(epoch, await fetch_scopes(bus, epoch))


async def learn_stored(bus: Bus, plan: Plan, messages: Sequence[Stored]) -> None:
    """The same for messages of the log."""
    if plan.seeing is not None:
        await learn_epochs(bus, plan, [decode_line(line) for message in messages for line in split_lines(message.body)])
