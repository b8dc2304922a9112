"""The tables of a query, read beside the driver: what the next batch looks up in is on the bus before it begins.

Workers do not load this: what they need of tables is :mod:`situ.spark.plans`.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import msgspec

from situ.bus.address import Address
from situ.bus.sync_bus import shared_bus
from situ.event.subjects import BusNames
from situ.lang.problems import SituError
from situ.lang.types.table import Types
from situ.model import Deployment
from situ.registry.snapshots import TROUBLES
from situ.sources.table import Keyed
from situ.spark.checkpoint import Offset
from situ.spark.plans import current_version, fetch, fetch_text
from situ.stages.detect.detection_plan import DetectionPlan
from situ.stages.interpret import Interpretation
from situ.tables.bus_store import TableStore
from situ.tables.cache import TablesInUse

_log = logging.getLogger("situ.pipeline")
_PAUSE = 2.0

Needs = Callable[[Deployment], Mapping[str, Collection[Keyed]]]


class PlannedTables:
    """What the planner of a query holds open: the tables of the version that the next batch runs with."""

    def __init__(
        self,
        address: Address,
        folder: Path,
        needs: Needs | None = None,
        *,
        query: str = "",
    ) -> None:
        """``needs`` says what a deployment looks up in; ``query`` is which one asks, if not that of events."""
        self._address = address
        self._needs = needs or for_conversion
        self._teller = query or "spark"
        self._tables = TablesInUse(folder)
        self._store = TableStore(shared_bus(address), query)
        self._version = 0
        self._terms = _Terms()
        self._types = Types(types={})
        self._hindered = (0, 0.0)
        """A version whose tables could not be read, and when that was."""
        self._hindrance = ""
        self._told: tuple[str, ...] | None = None

    def plan(self, version: int, begin: Offset) -> tuple[int, dict[str, str]]:
        """The version that the next batch can run with, and the digests of its tables, which are on the bus then.

        Tables are read again if they are too old. A version whose tables cannot be read has to wait: the batch runs
        with the one before.
        """
        now = time.monotonic()
        if self._hindered[0] == version and now - self._hindered[1] < _PAUSE:
            version = begin.version
        try:
            self._open(version)
        except SituError as error:
            if begin.version in (0, version):
                raise
            self._hindrance = f"Version {version} is not at work yet: {error}"
            if self._hindered[0] != version:
                _log.warning("%s", self._hindrance)
            self._hindered = (version, now)
            version = begin.version
            self._open(version)
        if version != begin.version:
            self._hindrance = ""
        for told in self._tables.refresh():
            _log.warning("%s", told)
        self._tell()
        return version, self._store.put(self._tables.snapshot, self._types, begin.tables)

    def _tell(self) -> None:
        """Say on the bus what is wrong."""
        troubles = tuple(filter(None, (self._hindrance, *self._tables.problems)))
        if troubles != self._told:
            bus, key = shared_bus(self._address), f"{TROUBLES}{self._teller}"
            bucket = BusNames(self._address.zone).metrics
            if troubles:
                bus.put(bucket, key, json.dumps(troubles).encode())
            else:
                bus.remove(bucket, key)
            self._told = troubles

    def _open(self, version: int) -> None:
        if version == self._version:
            return
        content = fetch_text(self._address, version)
        terms = msgspec.json.decode(content, type=_Terms)
        # Most versions differ in subscriptions alone: the tables are the same then, and nothing has to be compiled.
        if terms != self._terms:
            deployment = Deployment.from_json(json.loads(content))
            self._tables.use(deployment.sources, self._needs(deployment) if deployment.sources else {})
            self._types, self._terms = deployment.types, terms
        self._version = version

    def close(self) -> None:
        self._tables.close()


class _Terms(msgspec.Struct):
    """Those parts of a deployment that say which tables are needed."""

    types: msgspec.Raw = msgspec.Raw(b"")
    functions: msgspec.Raw = msgspec.Raw(b"")
    sources: msgspec.Raw = msgspec.Raw(b"")
    contexts: msgspec.Raw = msgspec.Raw(b"")
    ontology: msgspec.Raw = msgspec.Raw(b"")
    push: msgspec.Raw = msgspec.Raw(b"")
    policies: msgspec.Raw = msgspec.Raw(b"")
    suspended: msgspec.Raw = msgspec.Raw(b"")
    actions: msgspec.Raw = msgspec.Raw(b"")


def for_conversion(deployment: Deployment) -> Mapping[str, Collection[Keyed]]:
    """What conversions look up in."""
    return Interpretation.of(deployment).keyed()


def for_detection(deployment: Deployment) -> Mapping[str, Collection[Keyed]]:
    """What policies want to know of instances."""
    return DetectionPlan.of(deployment).tables.keyed


def check_tables(address: Address, folder: Path) -> None:
    """Whoever starts an engine is told what keeps its first batch from running: a table that cannot be used."""
    version = current_version(address)
    deployment = fetch(address, version) if version else Deployment()
    if deployment.sources:
        with TablesInUse(folder) as tables:
            tables.use(deployment.sources, Interpretation.of(deployment).keyed())
