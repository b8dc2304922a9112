"""Whose events are measured: publishers that have told what they can do, as a key on the bus for all engines.

What a project declares is in the deployment and need not be told. Whoever negotiates writes this, and engines follow.
"""

from __future__ import annotations

import json

from situ.bus.interface import Bus
from situ.bus.names import Names
from situ.quality.whom import NOBODY, Whom

MEASURED = "measured"


async def tell_measured(bus: Bus, whom: Whom) -> None:
    """From now on the events of these are measured, and of those that the deployment has profiles of."""
    await bus.put(Names(bus.zone).metrics, MEASURED, json.dumps(whom.as_json()).encode())


async def measured_publishers(bus: Bus) -> Whom:
    entry = await bus.get(Names(bus.zone).metrics, MEASURED)
    return decode_measured(entry.value if entry is not None else None)


def decode_measured(value: bytes | None) -> Whom:
    """Nobody, if that is what an earlier release wrote: whoever negotiates writes it anew when it starts."""
    try:
        return Whom.from_json(json.loads(value)) if value else NOBODY
    except (ValueError, KeyError, TypeError):
        return NOBODY
