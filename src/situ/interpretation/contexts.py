"""All contexts of a deployment, by their identifiers.

``root`` is always there. Two such sets are equal if they declare the same, wherever it was written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from situ.expr.definitions import Function
from situ.expr.faults import Faults
from situ.expr.scope import Scope
from situ.interpretation.json_form import context_as_json
from situ.interpretation.model import ROOT, Context, Conversion, Expression
from situ.types.table import Types


class Contexts:
    """Contexts by id, those that others extend first."""

    __slots__ = ("_shared", "by_id", "faulty", "lost")

    def __init__(
        self,
        contexts: Iterable[Context] = (),
        shared: Iterable[str] = (),
        faulty: Mapping[str, Faults | None] = MappingProxyType({}),
        lost: frozenset[tuple[str, str]] = frozenset(),
    ) -> None:
        found = {each.id: each for each in contexts}
        if ROOT not in found:
            found = {ROOT: Context(id=ROOT), **found}
        self.by_id: Mapping[str, Context] = MappingProxyType(found)
        self._shared = frozenset(shared)
        self.lost = lost
        """Places of mapped types, as (type, path), for which something was written that cannot be used."""
        self.faulty = faulty
        """Contexts that lack something, because it was wrong; None where nobody knows what: the parent is missing."""

    @classmethod
    def only_root(cls, types: Types, functions: Mapping[str, Function], scope: Scope | None = None) -> Contexts:
        """Where nobody declares a context: one root, with the conversions of the project."""
        shared = conversions_of(functions, scope or Scope(types=types, units=types.units))
        return cls([Context(id=ROOT, types=types, functions=MappingProxyType(shared))], shared)

    @property
    def root(self) -> Context:
        return self.by_id[ROOT]

    def get(self, name: str) -> Context | None:
        """The context called ``acme.us``, or ``acme.us@7`` if that is the version there is."""
        id, at, version = name.partition("@")
        found = self.by_id.get(id)
        return None if found is None or (at and version != str(found.version)) else found

    def children(self, id: str) -> tuple[Context, ...]:
        """Those that extend this one directly, in the order of their ids."""
        return tuple(each for each in self if each.parent is not None and each.parent.id == id)

    @property
    def versions(self) -> Mapping[str, int]:
        """Of those that were changed since they were first declared."""
        return {each.id: each.version for each in self if each.version != 1}

    def at_versions(self, versions: Mapping[str, int]) -> Contexts:
        """The same contexts, each as the version that is given; those that are not named are first ones."""
        if self.versions == {id: version for id, version in versions.items() if version != 1 and id in self.by_id}:
            return self
        made: dict[str, Context] = {}
        left = dict(self.by_id)
        while left:
            for id, each in tuple(left.items()):
                parent = each.parent
                if parent is None or parent.id not in left:
                    made[id] = replace(each, version=versions.get(id, 1), parent=self._parent(parent, made))
                    del left[id]
        return self.with_all(made.values())

    @staticmethod
    def _parent(parent: Context | None, made: Mapping[str, Context]) -> Context | None:
        if parent is None or parent.bridge is None:
            return None if parent is None else made[parent.id]
        bridge = made[parent.id]
        return replace(parent, version=bridge.version, bridge=bridge)

    def with_all(self, contexts: Iterable[Context]) -> Contexts:
        """Others in their place, of the same deployment."""
        return Contexts(contexts, self._shared, self.faulty, self.lost)

    def __iter__(self) -> Iterator[Context]:
        return (self.by_id[id] for id in sorted(self.by_id))

    def __len__(self) -> int:
        return len(self.by_id)

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values, the same for equal contexts; root is there only if it declares something of its own.

        Root's types are those of the deployment, and its conversions from ``functions/`` are that one's, too.
        """
        bodies = {each.id: context_as_json(each, self._shared if each.id == ROOT else ()) for each in self}
        return {id: body for id, body in bodies.items() if body or id != ROOT}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Contexts):
            return NotImplemented
        return self.by_id.keys() == other.by_id.keys() and self.as_json() == other.as_json()

    def __hash__(self) -> int:
        return hash(tuple(sorted(self.by_id)))


NOBODYS = Contexts()
"""Where nothing is said about contexts."""


def conversions_of(functions: Mapping[str, Function], scope: Scope) -> dict[str, Conversion]:
    """The functions of ``functions/`` that convert one value, which every context has from root."""
    return {
        name: Conversion(
            name=name,
            parameter=each.parameters[0][1],
            result=each.result,
            expression=Expression(text=each.text),
            body=each.body,
            scope=scope,
        )
        for name, each in functions.items()
        if each.converts
    }
