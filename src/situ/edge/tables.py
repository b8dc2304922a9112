"""The tables that an edge engine looks up in: opened with a plan, looked at again every second.

What is new is in use from the next message on. A table that cannot be read any more stays in use as it is, and that is
said.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

from situ.bus.interface import Bus
from situ.lang.problems import SituError
from situ.registry.snapshots import report_troubles
from situ.sources import Table
from situ.sources.table import Keyed
from situ.stages.plan import Plan
from situ.tables.cache import TablesInUse

_log = logging.getLogger("situ.edge")
_EVERY = 1.0


def needed(plan: Plan) -> Mapping[str, Collection[Keyed]]:
    """What conversions look up in, and what policies want to know of instances."""
    found = {name: set(each) for name, each in plan.interpretation.keyed().items()}
    for name, each in plan.detecting.tables.keyed.items():
        found.setdefault(name, set()).update(each)
    return found


class EdgeTables:
    """The tables of the plan in force."""

    def __init__(self, bus: Bus, folder: Path) -> None:
        self._bus = bus
        self._tables = TablesInUse(folder)
        self._plan: Plan | None = None
        self._hindrance = ""
        self._told: tuple[str, ...] | None = None

    async def adopt(self, plan: Plan) -> None:
        """Open what the plan looks up in, unless it is open; SituError if a table cannot be used."""
        try:
            plan.interpretation.rows.tables = await asyncio.to_thread(self._open, plan)
        except SituError as error:
            self._hindrance = f"Version {plan.version} is not at work yet: {error}"
            raise
        self._plan, self._hindrance = plan, ""

    async def refresh_on(self) -> None:
        """Look again and again whether tables are newer, and say on the bus what is wrong with them."""
        while True:
            await asyncio.sleep(_EVERY)
            if self._tables.snapshot:
                await self._refresh()
            troubles = tuple(filter(None, (self._hindrance, *self._tables.problems)))
            if troubles != self._told:
                with suppress(SituError):  # a bus that is away comes back
                    await report_troubles(self._bus, "edge", troubles)
                    self._told = troubles

    async def _refresh(self) -> None:
        plan = self._plan
        for told in await asyncio.to_thread(self._tables.refresh):
            _log.warning("%s", told)
        if plan is not None and plan is self._plan:
            plan.interpretation.rows.tables = self._tables.snapshot

    def _open(self, plan: Plan) -> Mapping[str, Table]:
        return self._tables.use(plan.deployment.sources, needed(plan))

    @property
    def snapshot(self) -> Mapping[str, Table]:
        """The tables as they are now."""
        return self._tables.snapshot

    async def close(self) -> None:
        self._plan = None
        await asyncio.to_thread(self._tables.close)
