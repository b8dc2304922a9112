"""What declarations about quality are checked against: properties, units, event types, and who asks for which."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from situ.quality.declared import STRATEGIES
from situ.quality.property import BUILT_IN, Property
from situ.types.model import DOUBLE, INT, LONG, Attribute, Decimal, Struct, plain
from situ.types.table import Types


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """All of it is input: quality does not know where subscriptions and types come from."""

    properties: Mapping[str, Property] = field(default_factory=lambda: BUILT_IN)
    types: Types = field(default_factory=lambda: Types(types={}))
    """Those of root, in whose terms events are shaped."""
    subscriptions: Mapping[str, tuple[str, ...]] = field(default_factory=_nothing)
    """Their event types in root; none, where nobody can tell what they are called there."""
    clients: Mapping[str, Types] = field(default_factory=_nothing)
    """Those that there are, with the types that they have names for."""
    strategies: Collection[str] = STRATEGIES
    faulty: Collection[str] = ()
    """Names of properties that are declared and not right: who uses them is told nothing more."""

    def types_of(self, subscription: str) -> tuple[str, ...]:
        return self.subscriptions.get(subscription, ())

    def types_for(self, client: str) -> Types:
        """What a client has names for; one that nobody knows yet is in root."""
        return self.clients.get(client, self.types)

    def attributes(self, name: str, types: Iterable[str]) -> Iterator[Attribute]:
        """What these event types and those below them have of this name; of all, if none is named."""
        wanted = [event for each in types if (event := self.types.event(each)) is not None]
        if not wanted:
            wanted = [event for each in sorted(self.types.events) if (event := self.types.event(each)) is not None]
        for event in wanted:
            for below in self.types.subtypes(event):
                if isinstance(below, Struct):
                    yield from (each for each in below.attributes if each.name == name)

    def below(self, type: str, types: Iterable[str]) -> bool:
        """Whether an event type is one of these, or below one."""
        found = (event for each in types if (event := self.types.event(each)) is not None)
        return any(getattr(each, "name", "") == type for event in found for each in self.types.subtypes(event))


def numeric(attributes: Iterable[Attribute]) -> list[Attribute]:
    """Those that are numbers."""
    types = ((each, plain(each.type)) for each in attributes)
    return [each for each, type in types if type in (INT, LONG, DOUBLE) or isinstance(type, Decimal)]
