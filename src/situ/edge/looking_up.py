"""The tables that an edge engine looks up in: opened with a plan, looked at again every second.

What is new is in use from the next message on. A table that cannot be read any more stays in use as it is, and that is
said.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path

from situ.deployment.plan import Plan
from situ.sources import Table
from situ.tables import TablesInUse

_log = logging.getLogger("situ.edge")
_EVERY = 1.0


class EdgeTables:
    """The tables of the plan in force."""

    def __init__(self, folder: Path) -> None:
        self._tables = TablesInUse(folder)
        self._plan: Plan | None = None

    async def adopt(self, plan: Plan) -> None:
        """Open what the plan looks up in, unless it is open; SituError if a table cannot be used."""
        plan.interpretation.rows.tables = await asyncio.to_thread(self._open, plan)
        self._plan = plan

    async def refresh_on(self) -> None:
        """Look again and again whether tables are newer."""
        while True:
            await asyncio.sleep(_EVERY)
            plan = self._plan
            if plan is None or not self._tables.snapshot:
                continue
            for told in await asyncio.to_thread(self._tables.refresh):
                _log.warning("%s", told)
            if plan is self._plan:
                plan.interpretation.rows.tables = self._tables.snapshot

    def _open(self, plan: Plan) -> Mapping[str, Table]:
        return self._tables.use(plan.deployment.sources, plan.interpretation.keyed())

    async def close(self) -> None:
        self._plan = None
        await asyncio.to_thread(self._tables.close)
