"""The shapes of a plan: what is done to the events of which subscriptions, and what filters read of their data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import cached_property
from typing import Any

import msgspec

from situ.deployment.snapshot import Deployment
from situ.event.row import Row
from situ.quality.shape import UNSHAPED, Shape
from situ.quality.shaping.track import Patience
from situ.settings import Settings
from situ.subscription.model import Subscription
from situ.subscription.reading import row_reader
from situ.subscription.targets import group_of
from situ.types.model import INT, LONG, Decimal, plain
from situ.types.table import Types

_MICROSECOND = timedelta(microseconds=1)
_NO_DATA: Mapping[str, Any] = {}


def patience_of(settings: Settings) -> Patience:
    """How long is waited for events in a project."""
    defaults = settings.defaults
    return Patience(lateness=defaults.lateness // _MICROSECOND, idle=defaults.idle // _MICROSECOND)


class Shapes:
    """What is done for whom under one plan."""

    def __init__(self, deployment: Deployment) -> None:
        self.by_id: Mapping[str, Shape] = {
            id: shape for id, shape in deployment.shapes.items() if shape != UNSHAPED and id in deployment.subscriptions
        }
        self.subscriptions: Mapping[str, Subscription] = {
            id: deployment.as_routed(deployment.subscriptions[id]) for id in self.by_id
        }
        self.groups = {group_of(each): each.id for each in self.subscriptions.values() if each.durable}
        self.names: dict[str, frozenset[str]] = {}
        """Client → the names of its volatile subscriptions that have a shape."""
        for each in self.subscriptions.values():
            if not each.durable:
                self.names[each.client] = self.names.get(each.client, frozenset()) | {each.name}
        self.patience = patience_of(deployment.settings)
        self._types = deployment.types
        self._readers: dict[str, Callable[[Row], Mapping[str, Any]]] = {}

    @cached_property
    def goes_across(self) -> bool:
        """Whether a filter looks at all clients together."""
        return any(each.thin is not None and each.thin.across for each in self.by_id.values())

    @cached_property
    def marked(self) -> frozenset[str]:
        """Groups, and volatile subscriptions, whose events say how far they may be from the truth."""
        groups = {group for group, id in self.groups.items() if self.by_id[id].suppress}
        live = {id for id, each in self.by_id.items() if each.suppress and not self.subscriptions[id].durable}
        return frozenset(groups | live)

    def read(self, row: Row) -> Mapping[str, Any]:
        """The attributes that filters look at."""
        reader = self._readers.get(row.type)
        if reader is None:
            reader = self._readers[row.type] = self._reader(row.type)
        return reader(row)

    def _reader(self, type: str) -> Callable[[Row], Mapping[str, Any]]:
        event = self._types.event(type)
        return (lambda _: _NO_DATA) if event is None else row_reader(event, self._attributes, self._types)

    @cached_property
    def _attributes(self) -> frozenset[str]:
        found: set[str] = set()
        for shape in self.by_id.values():
            found |= {name for each in shape.suppress for name in (each.attribute, each.per) if name}
            found |= {shape.thin.per} if shape.thin is not None and shape.thin.per else set()
            found |= {shape.aggregate.attribute} if shape.aggregate is not None else set()
        return frozenset(found)

    def put(self, row: Row, attribute: str, number: float) -> bytes:
        return put_number(self._types, row, attribute, number)


def put_number(types: Types, row: Row, attribute: str, number: float) -> bytes:
    """The data of an event with another value of a numeric attribute, as its type has it."""
    event = types.event(row.type)
    declared = next((plain(each.type) for each in event.attributes if each.name == attribute), None) if event else None
    data = msgspec.json.decode(row.data)
    if declared in (INT, LONG):
        written: Any = round(number)
    elif isinstance(declared, Decimal):
        written = f"{number:.{declared.scale}f}"
    else:
        written = float(number)
    data[attribute] = str(written) if isinstance(data.get(attribute), str) else written
    return msgspec.json.encode(data)
