"""Tables on the bus: what a batch looks up in is kept under its digest, so that it finds the same when it is repeated.

Rows are text as events are. Whoever needs a table by its digest fetches it once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

import msgspec

from situ.bus.blocking import BlockingBus
from situ.bus.names import DEPLOYMENTS
from situ.catalogue import ENGINE_FAILED
from situ.errors import SituError
from situ.sources.model import Source
from situ.sources.table import Table
from situ.types.decode import decoder
from situ.types.encode import encoder
from situ.types.table import Types

_KEPT = 64


class StoredTables:
    """The tables that one process has put on the bus, or fetched from there."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Table | None] = OrderedDict()

    def put(self, bus: BlockingBus, tables: Mapping[str, Table], types: Types) -> dict[str, str]:
        """Store what is not there yet; gives the digests by the names of the sources."""
        for table in tables.values():
            if table.digest not in self._known:
                write = encoder(table.row, types)
                rows = [write(dict(row)) for row in table.rows]
                bus.put_object(DEPLOYMENTS, _name(table.digest), msgspec.json.encode(rows))
                self._remember(table.digest, table)
        return {name: table.digest for name, table in tables.items()}

    def get(
        self, bus: BlockingBus, digests: Mapping[str, str], sources: Mapping[str, Source], types: Types
    ) -> dict[str, Table]:
        """The tables with these digests."""
        return {name: self._get(bus, digest, sources[name], types) for name, digest in digests.items()}

    def _get(self, bus: BlockingBus, digest: str, source: Source, types: Types) -> Table:
        known = self._known.get(digest)
        if known is not None:
            self._known.move_to_end(digest)
            return known
        content = bus.get_object(DEPLOYMENTS, _name(digest))
        if content is None:
            reason = f"the bus has no rows of the source {source.name} as this batch had them"
            raise SituError(ENGINE_FAILED(engine="spark", reason=reason, remedy="Start `situ run` again."))
        read = decoder(source.row, types, "reject")
        rows = tuple(read(row).value for row in msgspec.json.decode(content))
        table = Table(source=source.name, row=source.row, rows=rows)
        self._remember(digest, table)
        return table

    def _remember(self, digest: str, table: Table) -> None:
        self._known[digest] = table
        while len(self._known) > _KEPT:
            self._known.popitem(last=False)


def _name(digest: str) -> str:
    return f"table-{digest}"
