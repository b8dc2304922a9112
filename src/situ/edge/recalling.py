"""What conversions remember when an engine starts: read from the root log, as far back as it can still matter."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from situ.bus.interface import Bus
from situ.bus.names import Names
from situ.deployment.former_terms import in_terms_of_now
from situ.deployment.plan import Plan
from situ.edge.root_log import read_lines

_log = logging.getLogger("situ.edge")


async def recall(bus: Bus, plan: Plan, routed: int | None) -> None:
    """Note what is in the log: for what comes in all of it, for deliveries up to the message routed last.

    An event is stored when it comes, and its own time is not later than that by more than clocks may differ.
    """
    interpretation = plan.interpretation
    interpretation.outgoing.holds = True
    if not interpretation.remembers:
        return
    stream = Names(plan.zone).root_stream
    state = await bus.state(stream)
    span = max(interpretation.incoming.span, interpretation.outgoing.span) + plan.deployment.settings.limits.ahead
    first = max(await bus.find(stream, datetime.now(UTC) - span), state.first)
    reached = state.last if routed is None or routed > state.last else routed
    count = 0
    async for stored in bus.read(stream, first, state.last):
        rows, _ = read_lines(in_terms_of_now(stored, interpretation))
        interpretation.incoming.note(rows)
        if stored.seq <= reached:
            interpretation.outgoing.note(rows)
        count += len(rows)
    if count:
        _log.info("looked through %d events of the log for what is remembered", count)
