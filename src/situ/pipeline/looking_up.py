"""The tables that batches look up in: read beside the driver, kept on the bus by digest, fetched by the workers.

The offset of a batch names the digests, so a batch that is repeated finds the rows that it found the first time.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from situ.bus.address import Address
from situ.bus.blocking import shared_bus
from situ.deployment.plan import Plan
from situ.pipeline.plans import load_plan
from situ.tables import Tables, open_tables
from situ.tables.stored import StoredTables

_log = logging.getLogger("situ.pipeline")


class PlannedTables:
    """What the planner of a query holds open: the tables of the version that the next batch runs with."""

    def __init__(self, address: Address, folder: Path) -> None:
        self._address = address
        self._folder = folder
        self._version = 0
        self._tables: Tables | None = None
        self._stored = StoredTables()

    def digests(self, version: int) -> dict[str, str]:
        """Look whether tables are newer, put them on the bus, and say which they are."""
        plan = load_plan(self._address, version) if version else None
        if plan is None:
            return {}
        if version != self._version or self._tables is None:
            self._open(plan)
            self._version = version
        assert self._tables is not None
        if not self._tables.snapshot:
            return {}
        for problem in self._tables.refresh().problems:
            _log.warning("%s", problem)
        return self._stored.put(shared_bus(self._address), self._tables.snapshot, plan.deployment.types)

    def _open(self, plan: Plan) -> None:
        keyed = plan.interpretation.keyed
        sources = {name: plan.deployment.sources[name] for name in keyed}
        opened = open_tables(sources, self._folder, keyed=keyed)
        if self._tables is not None:
            self._tables.close()
        self._tables = opened


_fetched = StoredTables()


def use_tables(plan: Plan, address: Address, digests: Mapping[str, str]) -> None:
    """Have a worker look up in the tables with these digests from here on."""
    if digests:
        deployment = plan.deployment
        tables = _fetched.get(shared_bus(address), digests, deployment.sources, deployment.types)
        plan.interpretation.rows.tables = tables
