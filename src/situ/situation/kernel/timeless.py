"""Relations in which nothing is event-based: they hold for instances, as pull sources know them, at any time.

An alias of which only the identity is asked for may also be somebody that no pull source knows, if something else says
who it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from situ.expr.columns import below, column
from situ.expr.emit_numpy import Mask, compile_mask
from situ.expr.emit_python import compile_test
from situ.expr.runtime import FAILURES
from situ.situation.domain.concepts import IDENTITY
from situ.situation.domain.ontology import Ontology
from situ.situation.kernel.identities import Identities
from situ.situation.kernel.range_join import distinct
from situ.situation.kernel.table import Bools, Ints
from situ.situation.meaning.detection import Instances
from situ.situation.policies.policy import IT, LEFT, RIGHT, Alias, Policy, Relation


class Timeless:
    """A relation over one or two aliases, evaluated for what pull sources know now."""

    def __init__(self, relation: Relation, policy: Policy, ontology: Ontology) -> None:
        self.aliases = tuple(dict.fromkeys(relation.aliases))
        self._sides = dict(zip((LEFT, RIGHT), relation.aliases, strict=False))
        self.named = frozenset(side.alias for side in relation.sides if side.is_identity)
        """Aliases of which only the identity is asked for: whoever something else binds them to need not be known."""
        self._mask: Mask = compile_mask(relation.test)
        self._known = {name: Known(policy.alias(name), ontology) for name in self.aliases}

    def extend(
        self, bound: dict[str, Ints], count: int, instances: Instances, identities: Identities
    ) -> tuple[Ints, dict[str, Ints]]:
        """The rows for which it holds, and all codes of its aliases there; an alias that is not bound takes any."""
        rows = np.arange(count)
        codes = {name: bound[name] for name in self.aliases if name in bound}
        for name in self.aliases:
            if name not in codes:
                every = identities.codes(list(self._known[name].instances(instances)))
                codes = {alias: np.repeat(each, len(every)) for alias, each in codes.items()}
                codes[name] = np.tile(every, len(rows))
                rows = np.repeat(rows, len(every))
        if not len(rows):
            return rows, codes
        one_of_each = distinct([codes[name] for name in self.aliases])
        held = self._holds({name: each[one_of_each] for name, each in codes.items()}, instances, identities)
        kept = _members(codes, one_of_each[held])
        return rows[kept], {name: each[kept] for name, each in codes.items()}

    def _of(self, name: str, texts: list[str], instances: Instances) -> Mapping[str, Mapping[str, Any]]:
        """The instances of an alias by identity; whoever is named, where only the identity is asked for."""
        known = self._known[name]
        found = known.instances(instances)
        if name not in self.named:
            return found
        return found | {text: {IDENTITY: text} for text in set(texts) if known.only_named(text, instances)}

    def _holds(self, codes: dict[str, Ints], instances: Instances, identities: Identities) -> Bools:
        texts = {name: identities.decode(each) for name, each in codes.items()}
        known = {name: self._of(name, texts[name], instances) for name in self.aliases}
        there = np.logical_and.reduce([[text in known[name] for text in texts[name]] for name in self.aliases])
        columns = {}
        for (variable, path), type in self._mask.reads.items():
            name = self._sides[variable]
            values = [below(known[name].get(text), path) for text in texts[name]]
            columns[variable, path] = column(values, type)
        held: Bools = there & self._mask(columns, len(there))
        return held


class Known:
    """The instances of an alias that pull sources know and its constraint lets through."""

    def __init__(self, alias: Alias, ontology: Ontology) -> None:
        self._members = ontology.concepts[alias.concept].members or (alias.concept,)
        self._test = None if alias.constraint is None else compile_test(alias.constraint, [IT]).call
        self._last: tuple[Instances, dict[str, dict[str, Any]]] | None = None

    def instances(self, instances: Instances) -> dict[str, dict[str, Any]]:
        """By identity; looked at anew only if it is another collection than the last time."""
        if self._last is None or self._last[0] is not instances:
            self._last = (instances, self._fitting(instances))
        return self._last[1]

    def only_named(self, identity: str, instances: Instances) -> bool:
        """Whether no table knows somebody of that identity, and the constraint lets through whoever is called so."""
        if any(identity in instances.get(member, {}) for member in self._members):
            return False
        return self._fits({IDENTITY: identity})

    def _fitting(self, instances: Instances) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for member in reversed(self._members):
            for identity, attributes in instances.get(member, {}).items():
                said = {name: value for name, value in attributes.items() if value is not None}
                found.setdefault(identity, {IDENTITY: identity}).update(said)
        return {identity: each for identity, each in found.items() if self._fits(each)}

    def _fits(self, instance: dict[str, Any]) -> bool:
        try:
            return self._test is None or bool(self._test(instance))
        except FAILURES:
            return False


def _members(codes: dict[str, Ints], chosen: Ints) -> Ints:
    """The rows that are equal to one of the chosen ones."""
    columns = list(codes.values())
    width = int(columns[-1].max()) + 1
    keys = columns[0] if len(columns) == 1 else columns[0] * width + columns[1]
    return np.flatnonzero(np.isin(keys, keys[chosen]))
