"""Stage route: which delivery groups and which clients want each event."""

from __future__ import annotations

from collections.abc import Sequence

from situ.deployment.plan import Plan
from situ.event.row import Row
from situ.subscription.routing import Routed


def route(rows: Sequence[Row], plan: Plan, *, queued: bool = False) -> Routed:
    """The deliveries of these rows, in their order; ``queued`` if what waits is decided when it is handed over."""
    if len(rows) == 1:
        return plan.routing.route_one(rows[0], queued=queued)
    return plan.routing.route(rows, queued=queued)
