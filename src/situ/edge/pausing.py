"""How long to pause between steps: they take half of the time at most, so that events are routed between them.

Most steps come singly, and the next one begins as soon as something is there: a pause after each would be added to
whatever comes meanwhile. Only when steps have taken more than half of the time for some milliseconds is what comes
gathered for the next one.
"""

from __future__ import annotations

LENT = 0.005
"""Seconds that steps may take beyond their half before they pause."""
LONGEST = 0.002
"""Seconds for which what comes is gathered, at most."""


class Pausing:
    """Of steps that are taken one after the other. The clock is an input."""

    def __init__(self) -> None:
        self._owed = 0.0
        """Seconds that steps took, less those that were left to others since."""
        self._ended = 0.0

    def after(self, took: float, now: float) -> float:
        """Seconds to pause after a step that took so long and ended now."""
        left = max(now - took - self._ended, 0.0)
        self._owed = min(max(self._owed - left, 0.0) + took, LENT + LONGEST)
        self._ended = now
        return min(took, LONGEST) if self._owed > LENT else 0.0
