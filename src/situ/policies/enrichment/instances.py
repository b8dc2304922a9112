"""What pull sources know, as columns: the instances of a concept, those of its members included.

Of an identity that several of these concepts know, the attributes are put together; where they have the same one, the
concept itself goes first, then its members in their order. Rows are in the order of identities. Columns are made
when they are first asked for, and stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from situ.lang.expr.emit.numpy import Mask
from situ.lang.expr.emit.vectors import Array, Batch, Bools, Key, below, column, column_type
from situ.lang.types.model import Type
from situ.policies.model import IT, InstancesByConcept
from situ.policies.ontology.model import Ontology

IDENTITY = ("id",)
"""The path of the identity."""
FEW, MANY = 256, 4
"""So few identities, or fewer than those known by this factor, are looked up one by one: whoever looks up columns in
columns goes through all that is known."""
Attributes = Mapping[str, Any]
AttributesById = Mapping[str, Attributes]
"""What one source of knowledge says of the instances of a concept, by identity."""


class ConceptInstances:
    """The instances of a concept: ``identities``, and what is known of each."""

    def __init__(self, rows: Mapping[str, Attributes]) -> None:
        ordered = sorted(rows)
        self.identities = pa.array(ordered, pa.string())
        self._rows = [rows[identity] for identity in ordered]
        self._columns: dict[tuple[str, ...], pa.Array] = {}
        self._place_of: dict[str, int] | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def column(self, path: tuple[str, ...], type: Type) -> pa.Array:
        """What is at this path below each instance, null where it is not known."""
        if path == IDENTITY:
            return self.identities
        found = self._columns.get(path)
        if found is None:
            found = self._columns[path] = column([below(row, path) for row in self._rows], type)
        return found

    def batch(self, variable: str, reads: Mapping[Key, Type]) -> Batch:
        """All instances as rows, with the columns that are read of this variable."""
        keys = {key: type for key, type in reads.items() if key[0] == variable}
        return Batch({key: self.column(key[1], type) for key, type in keys.items()}, len(self))

    def holds(self, mask: Mask) -> Bools:
        """For which instances a condition over ``it`` holds."""
        return mask.of(mask.frame(self.batch(IT, mask.reads))).holds

    def places(self, identities: pa.Array) -> Array:
        """The row of each of these identities; ``len(self)`` for one that is not known."""
        if len(identities) <= FEW or MANY * len(identities) < len(self):
            return self._places_one_by_one(identities)
        return self._places_at_once(identities)

    def _places_one_by_one(self, identities: pa.Array) -> Array:
        if self._place_of is None:
            self._place_of = {identity: place for place, identity in enumerate(self.identities.to_pylist())}
        place_of, unknown = self._place_of.get, len(self)
        return np.array([place_of(identity, unknown) for identity in identities.to_pylist()], np.int64)

    def _places_at_once(self, identities: pa.Array) -> Array:
        found = pc.index_in(identities, value_set=self.identities)
        return found.fill_null(len(self)).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


class InstanceColumns:
    """Instances by concept, each made when it is first asked for, and kept as long as what it is made of is the same.

    Mappings that are given are not changed any more: what is new comes in another one.
    """

    def __init__(self, ontology: Ontology) -> None:
        self._ontology = ontology
        self._given: InstancesByConcept = {}
        self._made: dict[str, tuple[tuple[AttributesById | None, ...], ConceptInstances]] = {}
        self._now: dict[str, ConceptInstances] = {}
        """What is made of what is given now."""

    def take(self, instances: InstancesByConcept) -> None:
        """From now on this is known."""
        if instances is not self._given:
            self._given, self._now = instances, {}

    def has(self, concept: str) -> bool:
        """Whether anything could be known of instances of this concept: a source tells about it, or a member."""
        return any(each is not None for each in self._parts(concept))

    def of(self, concept: str) -> ConceptInstances:
        found = self._now.get(concept)
        if found is None:
            found = self._now[concept] = self._of_parts(concept)
        return found

    def _of_parts(self, concept: str) -> ConceptInstances:
        parts = self._parts(concept)
        made = self._made.get(concept)
        if made is None or any(one is not other for one, other in zip(made[0], parts, strict=True)):
            made = self._made[concept] = (parts, ConceptInstances(_together(parts)))
        return made[1]

    def _parts(self, concept: str) -> tuple[AttributesById | None, ...]:
        declared = self._ontology.concepts[concept]
        return tuple(self._given.get(member) for member in declared.members or (concept,))


def _together(parts: tuple[AttributesById | None, ...]) -> Mapping[str, Attributes]:
    given = [part for part in parts if part is not None]
    if len(given) == 1:
        return given[0]
    found: dict[str, dict[str, Any]] = {}
    for part in reversed(given):
        for identity, attributes in part.items():
            said = {name: value for name, value in attributes.items() if value is not None}
            found.setdefault(identity, {}).update(said)
    return found


def unknown_instances(variable: str, reads: Mapping[Key, Type], identities: pa.Array) -> Batch:
    """Instances of which nothing is known but who they are."""
    count = len(identities)
    columns = {
        key: identities if key[1] == IDENTITY else pa.nulls(count, column_type(type))
        for key, type in reads.items()
        if key[0] == variable
    }
    return Batch(columns, count)
