"""The slow, obvious meaning of subscriptions: evaluate every one of them on every event, node by node.

The index must agree with this on every input.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from situ.event.row import Row
from situ.expr.interpret import interpret
from situ.expr.limits import DEFAULT_LIMITS, Limits
from situ.expr.runtime import FAILURES
from situ.expr.scope import Definition
from situ.expr.tree import Node
from situ.subscription.filter import read_filter
from situ.subscription.model import Subscription
from situ.subscription.reading import read_envelope
from situ.types.event_data import EventData
from situ.types.model import supertypes
from situ.types.table import Types


class Reference:
    """Subscriptions, read but not compiled."""

    def __init__(
        self,
        *,
        types: Types,
        functions: Mapping[str, Definition],
        subscriptions: Mapping[str, Subscription],
        limits: Limits = DEFAULT_LIMITS,
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
    limits: Limits = DEFAULT_LIMITS,
) -> frozenset[str]:
    """The ids of the subscriptions that want this row; for many rows make a :class:`Reference`."""
    return Reference(types=types, functions=functions, subscriptions=subscriptions, limits=limits).match(row)
