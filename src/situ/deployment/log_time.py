"""Policies over what the log holds already: its messages in portions, as an engine would have got them.

The clock is that of the log, which says when each message came: on its way into the log it is not late yet. What
policies look back on is taken, too, from before the time that counts.
"""

from __future__ import annotations

from datetime import timedelta

from situ.deployment.detecting import Detecting
from situ.event.message import RECEIVED, Stored

_MICROSECOND = timedelta(microseconds=1)
_LONGEST, _SHORTEST = 1_000_000, 50_000
"""Microseconds of the log that are worked in one step: what came in one of them is in time for each other."""
_MOST = 5_000
"""Messages that are."""


class Portions:
    """Messages that are gathered for the next step; from ``begin`` on, stored since then, they count."""

    def __init__(self, detecting: Detecting, begin: int, since: int) -> None:
        self._begin, self._since = begin, since
        self._waiting: list[Stored] = []
        patience = [each.lateness for watch in detecting.watches.values() for each in watch.patience.values()]
        self._longest = min(max(min(patience, default=_LONGEST), _SHORTEST), _LONGEST)
        self.counts = False

    def due(self, message: Stored) -> int | None:
        """Up to which time what is gathered is to be worked before this message is added; None: not yet."""
        waiting = self._waiting
        if not waiting:
            return None
        if message.seq >= self._begin and not self.counts:
            return min(came(message), self._since)
        return came(message) if len(waiting) >= _MOST or message.at - waiting[0].at > self._longest else None

    def add(self, message: Stored) -> None:
        self._waiting.append(message)
        self.counts = message.seq >= self._begin

    def taken(self) -> list[Stored]:
        """What is gathered, which is then not waiting any more."""
        some, self._waiting = self._waiting, []
        return some


def came(message: Stored) -> int:
    """When a message was received, in microseconds."""
    return min(int(message.headers.get(RECEIVED, message.at)), message.at)


def looked_back(detecting: Detecting) -> int:
    """How much earlier than a detection its causes can be, and what refutes it; in microseconds."""
    found = 0
    for watch in detecting.watches.values():
        kept = max((each.kept for each in watch.plan.leaves), default=0)
        repeated = max((detecting.push[name].keep // _MICROSECOND for name in watch.patience), default=0)
        lateness = max((each.lateness for each in watch.patience.values()), default=0)
        found = max(found, kept + watch.policy.hold + repeated + lateness)
    return found
