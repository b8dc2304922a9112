"""Whose events are measured: publishers that have told what they can do, as a key on the bus for all engines.

What a project declares is in the deployment and need not be told. Whoever negotiates writes this, and engines follow.
"""

from __future__ import annotations

import json
from collections.abc import Collection

from situ.bus.interface import Bus
from situ.bus.names import Names

MEASURED = "measured"


async def tell_measured(bus: Bus, publishers: Collection[str]) -> None:
    """From now on the events of these are measured, and of those that the deployment has profiles of."""
    await bus.put(Names(bus.zone).metrics, MEASURED, json.dumps(sorted(publishers)).encode())


async def measured_publishers(bus: Bus) -> frozenset[str]:
    entry = await bus.get(Names(bus.zone).metrics, MEASURED)
    return decode_measured(entry.value if entry is not None else None)


def decode_measured(value: bytes | None) -> frozenset[str]:
    return frozenset(json.loads(value)) if value else frozenset()
