"""Which engines are alive, which deployment each of them works with, and what ails it; as keys on the bus.

An engine writes ``engine.<name>`` again and again while it lives, ``adopted.<name>`` when it begins to work with
another deployment, and ``troubles.<name>`` while it goes on without something it needs. That one lives is seen from its
key changing, not from clocks, which machines do not share.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from situ.bus.interface import Bus
from situ.bus.names import Names
from situ.errors import SituError

_ENGINE = "engine."
_ADOPTED = "adopted."
TROUBLES = "troubles."
REFRESH = 1.0
SILENCE = 5.0
"""Seconds without a sign of life after which an engine is not waited for."""

_LOOK_AGAIN = 0.05


async def report_adopted(bus: Bus, engine: str, version: int) -> None:
    """From now on this engine works with this version."""
    from situ.deployment import canonical

    await bus.put(Names(bus.zone).metrics, f"{_ADOPTED}{engine}", canonical({"version": version}).encode())


async def adopted_versions(bus: Bus) -> Mapping[str, int]:
    """What every engine works with, or did when it was last heard of."""
    entries = await bus.entries(Names(bus.zone).metrics, _ADOPTED)
    return {each.key.removeprefix(_ADOPTED): int(json.loads(each.value)["version"]) for each in entries if each.value}


async def report_troubles(bus: Bus, engine: str, texts: Sequence[str]) -> None:
    """What this engine goes on without, and why; nothing if all is well."""
    bucket, key = Names(bus.zone).metrics, f"{TROUBLES}{engine}"
    await (bus.put(bucket, key, json.dumps(list(texts)).encode()) if texts else bus.remove(bucket, key))


async def troubles_of(bus: Bus) -> Mapping[str, tuple[str, ...]]:
    """What ails engines, by their names."""
    entries = await bus.entries(Names(bus.zone).metrics, TROUBLES)
    return {each.key.removeprefix(TROUBLES): tuple(json.loads(each.value)) for each in entries if each.value}


async def refresh_engine(bus: Bus, engine: str, about: Mapping[str, Any] | None = None) -> None:
    """One sign of life."""
    from situ.deployment import canonical

    value = canonical({"pid": os.getpid(), **(about or {})}).encode()
    await bus.put(Names(bus.zone).metrics, f"{_ENGINE}{engine}", value)


@asynccontextmanager
async def engine_alive(bus: Bus, engine: str, *, every: float = REFRESH) -> AsyncIterator[None]:
    """Signs of life of this engine as long as the block runs; its end is told, too."""

    async def refresh() -> None:
        while True:
            with suppress(SituError):  # a bus that is away comes back, and others see the silence
                await refresh_engine(bus, engine)
            await asyncio.sleep(every)

    await refresh_engine(bus, engine)
    task = asyncio.create_task(refresh())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        with suppress(SituError):
            await bus.remove(Names(bus.zone).metrics, f"{_ENGINE}{engine}")


async def wait_adopted(bus: Bus, version: int, timeout: float = 10.0) -> tuple[str, ...]:
    """Wait until all engines that live work with this version or a newer one; names of those that do not in time."""
    clock = asyncio.get_running_loop().time
    deadline = clock() + timeout
    seen: dict[str, tuple[int, float]] = {}
    while True:
        adopted = await adopted_versions(bus)
        behind: list[str] = []
        for entry in await bus.entries(Names(bus.zone).metrics, _ENGINE):
            engine = entry.key.removeprefix(_ENGINE)
            if seen.get(engine, (-1, 0.0))[0] != entry.revision:
                seen[engine] = (entry.revision, clock())
            if adopted.get(engine, 0) < version and clock() - seen[engine][1] < SILENCE:
                behind.append(engine)
        if not behind or clock() >= deadline:
            return tuple(sorted(behind))
        await asyncio.sleep(_LOOK_AGAIN)
