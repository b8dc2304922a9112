"""What a subscription asks of an event only after routing, because Python or memory has a say in it.

The parts of a filter that need neither are asked of root events by the index, and route; this decides about what they
let through.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from situ.deployment.memory import Held
from situ.event.row import Row
from situ.expr.emit_python import compile_test
from situ.expr.runtime import FAILURES
from situ.expr.tree import Node
from situ.interpretation.model import Lookup
from situ.interpretation.transformation import Transformation
from situ.subscription.filter import Filter
from situ.subscription.reading import data_reader, read_envelope


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Decision:
    """A condition on root events of one type. ``reasons`` are, in words, what it reads that nobody knows before."""

    reasons: str
    _test: Callable[[Mapping[str, Any], Any], Any] = field(repr=False)
    _read: Callable[[bytes], Any] = field(repr=False)

    @classmethod
    def of(cls, way: Transformation, condition: Node) -> Decision:
        functions = sorted({each.function.name for each in way.externals.values() if not isinstance(each.of, Lookup)})
        return cls(
            reasons=f"what {' and '.join(f'`{name}`' for name in functions)} gives",
            _test=compile_test(condition, ("event", "data")).call,
            _read=data_reader(way.source, Filter(way.source.name, condition).data, way.types),
        )

    def wants(self, row: Row) -> bool | None:
        """Whether it lets the event through; None if that cannot be told, because a function fails or waits."""
        try:
            return bool(self._test(read_envelope(row), self._read(row.data)))
        except (*FAILURES, Held):
            return None
