"""Calls about quality that come early: what they are about is not deployed, or not yet.

Whoever connects again may be faster than what it subscribes to and advertises, so such calls are kept for a while.
"""

from __future__ import annotations

from situ.deployment.relevance import Pools
from situ.overlay.effects import Negotiate
from situ.overlay.quality_messages import Expect, Provide

PATIENCE = 5.0
"""Seconds that a call waits for what it is about to be deployed."""


class EarlyCalls:
    """Those that wait. Times are those of one clock."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[Negotiate, float]] = {}
        """Ticket → a call, and until when it waits."""

    def hold(self, call: Negotiate, pools: Pools, now: float) -> bool:
        """Keep a call for a while; False: it is not early, or was kept for long enough."""
        if is_early(call, pools):
            _, until = self._held.setdefault(call.ticket, (call, now + PATIENCE))
            if now < until:
                return True
        self._held.pop(call.ticket, None)
        return False

    def due(self, pools: Pools, now: float) -> list[Negotiate]:
        """Those that need not wait any more, or have waited for long enough."""
        return [call for call, until in self._held.values() if now >= until or not is_early(call, pools)]


def is_early(call: Negotiate, pools: Pools) -> bool:
    match call.message:
        case Expect(sub=sub):
            return f"{call.client}/{sub}" not in pools.deployment.subscriptions
        case Provide(type=type):
            return f"{call.client}/{type}" not in pools.profiles
    return False
