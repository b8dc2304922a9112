"""Scopes of the past: what was stamped in another epoch is decided by its scopes, which the bus keeps."""

from __future__ import annotations

from collections.abc import Sequence

from situ.bus.interface import Bus
from situ.deployment.plan import Plan
from situ.event.row import Row
from situ.registry.snapshots import fetch_scopes


async def learn_epochs(bus: Bus, plan: Plan, rows: Sequence[Row]) -> None:
    """Have the scopes of the epochs that these rows were stamped in. What nobody knows any more shows nothing."""
    if plan.seeing is None:
        return
    for epoch in plan.seeing.missing(rows):
        plan.seeing.know(epoch, await fetch_scopes(bus, epoch))
