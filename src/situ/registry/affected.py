"""What has to be checked again when types, functions or limits change: only what depends on a part that changed.

A filter depends on the types it is about and on every name in it. Names are looked for as text, so more may be called
affected than is, never less; with thousands of subscriptions that is what keeps a small change small.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from situ.deployment import Deployment
from situ.expr.definitions import Function
from situ.subscription.model import ROOT, Advertisement, Subscription
from situ.types.table import Types


class Affected:
    """Decides for declarations that were right in the old deployment whether the new one can make them wrong."""

    def __init__(self, old: Deployment, new: Deployment) -> None:
        self._everything = (
            old.settings.expression_limits != new.settings.expression_limits or old.types.units != new.types.units
        )
        self._types = frozenset(_changed_types(old.types, new.types))
        names = {name.lower() for name in self._types}
        self._names = names | _changed_functions(old.functions, new.functions, names)
        self._clients = new.clients
        self._moved = frozenset(
            name for name, each in old.clients.items() if name in new.clients and new.clients[name] != each
        )
        self._contexts = frozenset(_changed_contexts(old, new))

    def advertisement(self, each: Advertisement) -> bool:
        client = self._clients.get(each.client)
        in_changed = client is not None and client.context in self._contexts
        return each.type in self._types or in_changed or each.client in self._moved

    def subscription(self, each: Subscription) -> bool:
        if each.context in self._contexts or any(type in self._types for type in each.types):
            return True
        return bool(each.where) and (self._everything or _mentions(each.where, self._names))

    def __bool__(self) -> bool:
        return self._everything or bool(self._names) or bool(self._contexts) or bool(self._moved)


def _changed_types(old: Types, new: Types) -> Iterator[str]:
    if old is new:
        return
    for name in old.types.keys() | new.types.keys():
        if old.types.get(name) != new.types.get(name) or (name in old.events) != (name in new.events):
            yield name


def _changed_contexts(old: Deployment, new: Deployment) -> Iterator[str]:
    """Those in which another event type is visible than before, or none; root is not one of them."""
    if old.contexts is new.contexts:
        return
    for id in old.contexts.by_id.keys() - {ROOT}:
        before, after = old.contexts.by_id[id].types, new.contexts.get(id)
        if after is None or after.types != before:
            yield id


def _changed_functions(old: Mapping[str, Function], new: Mapping[str, Function], names: set[str]) -> set[str]:
    """Those written otherwise than before, and those that mention what changed."""
    if old is new and not names:
        return set()
    changed = {name.lower() for name in old.keys() | new.keys() if _written(old.get(name)) != _written(new.get(name))}
    while True:
        found = {
            name.lower()
            for name, each in new.items()
            if name.lower() not in changed and _mentions(f"{each.signature} {each.text}", names | changed)
        }
        if not found:
            return changed
        changed |= found


def _written(function: Function | None) -> Any:
    return None if function is None else (function.signature, function.text)


def _mentions(text: str, names: set[str]) -> bool:
    folded = text.lower()
    return any(name in folded for name in names)
