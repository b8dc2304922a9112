"""Tables on the bus: what a batch looks up in is kept under its digest, so that it finds the same when it is repeated.

Rows are text as events are. One process puts the tables of a query there and takes away what no batch of it needs any
more; those who look rows up fetch each table once.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from situ.bus.sync_bus import BlockingBus
from situ.event.subjects import DEPLOYMENTS, REGISTRY
from situ.lang.catalogue import ENGINE_FAILED
from situ.lang.problems import SituError
from situ.lang.types.json_codec import decoder, encoder
from situ.lang.types.table import Types
from situ.sources.model import Source
from situ.sources.table import Table


class TableStore:
    """Puts the tables of one query on the bus, and takes them away again. A note on the bus says which are there."""

    def __init__(self, bus: BlockingBus, query: str = "") -> None:
        self._bus = bus
        self._query = query
        self._note = f"tables-{bus.zone}{query and '-'}{query}"
        entry = bus.get(REGISTRY, self._note)
        self._noted: set[str] = (
            set(msgspec.json.decode(entry.value, type=list[str])) if entry and entry.value else set()
        )
        self._put: set[str] = set()

    def put(self, tables: Mapping[str, Table], types: Types, before: Mapping[str, str]) -> dict[str, str]:
        """Store what is not there yet; gives the digests by the names of the sources.

        ``before`` are the digests of the batch that was finished last: what is older than that is needed no more.
        """
        digests = {name: table.digest for name, table in tables.items()}
        needed = {*digests.values(), *before.values()}
        # Noted before they are there, and until they are gone: whatever happens in between, none is forgotten.
        self._write(self._noted | needed)
        for table in tables.values():
            if table.digest not in self._put:
                write = encoder(table.row, types)
                content = msgspec.json.encode([write(row) for row in table.rows])
                self._bus.put_object(DEPLOYMENTS, _name(self._bus, self._query, table.digest), content)
                self._put.add(table.digest)
        for digest in self._noted - needed:
            self._bus.remove_object(DEPLOYMENTS, _name(self._bus, self._query, digest))
        self._write(needed)
        self._put &= needed
        return digests

    def _write(self, digests: set[str]) -> None:
        if digests != self._noted:
            self._bus.put(REGISTRY, self._note, msgspec.json.encode(sorted(digests)))
            self._noted = digests


class FetchedTables:
    """The tables of a query that one process has fetched from the bus: those of the last batch."""

    def __init__(self, query: str = "") -> None:
        self._query = query
        self._known: dict[str, Table] = {}

    def get(
        self, bus: BlockingBus, digests: Mapping[str, str], sources: Mapping[str, Source], types: Types
    ) -> dict[str, Table]:
        """The tables with these digests."""
        found = {
            name: self._known.get(digest) or self._fetch(bus, digest, sources[name], types)
            for name, digest in digests.items()
        }
        self._known = {table.digest: table for table in found.values()}
        return found

    def _fetch(self, bus: BlockingBus, digest: str, source: Source, types: Types) -> Table:
        content = bus.get_object(DEPLOYMENTS, _name(bus, self._query, digest))
        if content is None:
            reason = f"the bus has no rows of the source {source.name} as this batch had them"
            raise SituError(ENGINE_FAILED(engine="spark", reason=reason, remedy="Start `situ run` again."))
        read = decoder(source.row, types, "reject")
        return Table(
            source=source.name,
            row=source.row,
            rows=tuple(read(row).value for row in msgspec.json.decode(content)),
        )


def _name(bus: BlockingBus, query: str, digest: str) -> str:
    return f"table-{bus.zone}-{query}{query and '-'}{digest}"
