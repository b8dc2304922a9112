"""The slow, obvious meaning of subscriptions: evaluate every one of them on every event, node by node.

The index must agree with this on every input.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from situ.event.data_reader import read_envelope
from situ.event.row import Row
from situ.lang.expr.interpret import interpret
from situ.lang.expr.limits import DEFAULT_LIMITS, ExpressionLimits
from situ.lang.expr.runtime import FAILURES
from situ.lang.expr.scope import Definition
from situ.lang.expr.tree import Node
from situ.lang.types.lookup import EventData
from situ.lang.types.model import supertypes
from situ.lang.types.table import Types
from situ.routing.filter import read_filter
from situ.routing.model import Subscription


class NaiveRouting:
    """Subscriptions, read but not compiled."""

    def __init__(
        self,
        *,
        types: Types,
        functions: Mapping[str, Definition],
        subscriptions: Mapping[str, Subscription],
        limits: ExpressionLimits = DEFAULT_LIMITS,
    ) -> None:
        self._types = types
        self._data = EventData(types)
        self._asked: list[tuple[str, str, Node]] = []
        for each in subscriptions.values():
            for type in each.types:
                struct = types.event(type)
                assert struct is not None, "subscriptions are to events"
                node = read_filter(each.id, struct, each.where, types, functions, limits)
                self._asked.append((each.id, type, node))

    def match(self, row: Row) -> frozenset[str]:
        """The ids of the subscriptions that want this row, its own client's included."""
        event = self._types.event(row.type)
        if event is None:
            return frozenset()
        above = {str(each) for each in supertypes(event)}
        data = self._data.decode(row.type, json.loads(row.data)).value
        values = {"event": read_envelope(row), "data": data}
        return frozenset(id for id, type, node in self._asked if type in above and _is_true(node, values))


def _is_true(node: Node, values: Mapping[str, Any]) -> bool:
    try:
        return interpret(node, values) is True
    except FAILURES:
        return False


def match_all(
    row: Row,
    *,
    types: Types,
    functions: Mapping[str, Definition],
    subscriptions: Mapping[str, Subscription],
    limits: ExpressionLimits = DEFAULT_LIMITS,
) -> frozenset[str]:
    """The ids of the subscriptions that want this row; for many rows make a :class:`Reference`."""
    return NaiveRouting(types=types, functions=functions, subscriptions=subscriptions, limits=limits).match(row)
