"""Events that policies do not see: where they are in the log, by what policies read as. Rows of them are left out."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from situ.tags import TagSet

Positions = np.ndarray[tuple[int], np.dtype[np.int64]]
Hidden = Mapping[TagSet, Positions]
"""What policies read as → the positions of the events that are not visible to that."""

NOTHING_HIDDEN: Hidden = MappingProxyType({})


def left_of(rows: pa.RecordBatch, reads: TagSet | None, hidden: Hidden) -> pa.RecordBatch:
    """The rows, which have positions, of events that are visible to those who read like this."""
    if reads is None or reads not in hidden:
        return rows
    seen = ~np.isin(rows.column("pos").to_numpy(), hidden[reads])
    return rows if seen.all() else rows.filter(pa.array(seen))


def positions_left(positions: pa.Array, reads: TagSet | None, hidden: Hidden) -> list[int]:
    """Those of these positions at which there are such events."""
    if reads is None or reads not in hidden:
        found: list[int] = positions.to_pylist()
        return found
    given = positions.to_numpy()
    return [int(pos) for pos in given[~np.isin(given, hidden[reads])]]
