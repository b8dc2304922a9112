"""What a subscription asks of an event only after it was converted, because Python or memory has a say in it.

The parts of a filter that need neither are asked of root events, and route; this decides about what they let through.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from situ.event.row import Row
from situ.expr.tree import Node
from situ.interpretation.model import Lookup
from situ.interpretation.transformation import Transformation
from situ.subscription.filter import Filter
from situ.subscription.reading import data_reader, read_envelope


@dataclass(frozen=True, slots=True)
class Afterwards:
    """Filters on what events of one root type become in a context, one of which has to let an event through."""

    filters: tuple[tuple[Filter, Callable[[bytes], Any]], ...]
    reasons: str
    """What they read that nobody knows before, in words."""

    @classmethod
    def of(cls, way: Transformation, written: Sequence[Node]) -> Afterwards:
        filters = tuple(Filter(way.target.name, node) for node in written)
        functions = sorted({each.function.name for each in way.externals.values() if not isinstance(each.of, Lookup)})
        return cls(
            filters=tuple((each, data_reader(way.target, each.data)) for each in filters),
            reasons=f"what {' and '.join(f'`{name}`' for name in functions)} gives",
        )

    def wants(self, row: Row) -> bool:
        """Whether the row, in the terms of the context, is wanted."""
        envelope = read_envelope(row)
        return any(each.test(envelope, read(row.data)) for each, read in self.filters)
