"""The tables that an edge engine looks up in: opened with a plan, looked at again every second.

What is new is in use from the next message on. A table that cannot be read any more stays in use as it is, and that is
said.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from situ.deployment.plan import Plan
from situ.tables import Tables, open_tables

_log = logging.getLogger("situ.edge")
_EVERY = 1.0


class EdgeTables:
    """The tables of the plan in force."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._plan: Plan | None = None
        self._tables: Tables | None = None
        self._said: set[str] = set()

    async def adopt(self, plan: Plan) -> None:
        """Open what the plan looks up in, unless it is open; SituError if a table cannot be used."""
        before = self._plan.deployment if self._plan is not None else None
        keyed = plan.interpretation.keyed
        same = before is not None and before.sources == plan.deployment.sources
        if not same or self._tables is None:
            sources = {name: plan.deployment.sources[name] for name in keyed}
            opened = await asyncio.to_thread(open_tables, sources, self._folder, keyed=keyed)
            self.close()
            self._tables = opened
        self._plan = plan
        plan.interpretation.rows.tables = self._tables.snapshot

    async def refresh_on(self) -> None:
        """Look again and again whether tables are newer."""
        while True:
            await asyncio.sleep(_EVERY)
            tables, plan = self._tables, self._plan
            if tables is None or plan is None or not tables.snapshot:
                continue
            refreshed = await asyncio.to_thread(tables.refresh)
            if tables is self._tables and plan is self._plan:
                plan.interpretation.rows.tables = tables.snapshot
            said = {str(problem) for problem in refreshed.problems}
            for each in sorted(said - self._said):
                _log.warning("%s", each)
            self._said = said

    def close(self) -> None:
        if self._tables is not None:
            self._tables.close()
            self._tables = None
