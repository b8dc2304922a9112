"""What one engine leaves for another: all that it would need itself to go on, in a form that is neither's own.

An engine keeps what it remembers as suits it. Whoever goes on where another kind of engine was is given this, and makes
its own of it. What has come is then in the root log or still in the ingress stream, all up to a message of each log is
delivered, and what policies published is numbered without a gap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from situ.stages.detect.progress import DetectionProgress

Highest = Mapping[str, tuple[int, int]]
"""Client → its incarnation and the highest number of it that was taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionHandover:
    """Up to which message of the root log policies have taken everything, by which version, and what they remember."""

    reached: int
    version: int
    progress: DetectionProgress
    states: Mapping[str, bytes]
    """Of kernels by policy, as one keeps it that works in one place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineHandover:
    """All of it."""

    root: int
    dead: int
    """Up to these messages of the root log and of the dead letters everything is delivered, but for what waits."""
    highest: Highest
    incoming: bytes = b""
    outgoing: bytes = b""
    """What conversions remember, as text; empty where nobody has it: it follows from the root log, too."""
    waiting: Sequence[Any] = ()
    """Deliveries that wait for what is not remembered yet, as :class:`situ.stages.pending_deliveries.PendingDeliveries`
    keeps them, with their positions in the root log.
    """
    shaping: Mapping[str, Any] = field(default_factory=dict)
    """What filters of subscriptions remember at the message ``root``; empty if there are none."""
    detection: DetectionHandover | None = None
    """None: there were no policies."""
