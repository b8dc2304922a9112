"""Enrichment: what events said, joined to what pull sources know → the rows of every leaf of every policy.

`AliasConstraints` and `LeafGroup` share the work of leaves, `Enrichment.run` makes the rows of all leaves from batches
of observations.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from situ.lang.catalogue import TEST_FAILED, UNKNOWN_IDENTITIES
from situ.lang.expr.emit.numpy import Mask, compile_mask, outer_reads
from situ.lang.expr.emit.vectors import Array, Batch, Bools, Key, RowsOf, values_of
from situ.lang.expr.format import print_expression
from situ.lang.expr.tree import Node
from situ.lang.problems import Problem
from situ.lang.types.model import Type
from situ.policies.enrichment.index_join import IndexJoin, PlaceIndex
from situ.policies.enrichment.instances import IDENTITY, ConceptInstances, InstanceColumns, unknown_instances
from situ.policies.enrichment.rows import BASE, column_name, concat, row_schema
from situ.policies.model import IT, LEFT, RIGHT
from situ.policies.ontology.model import Ontology
from situ.policies.plan import Leaf, LeafScalar

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Leaves in groups that share their work. Leaves that differ only in constraints, or in what their rows carry, are one
# group: a test is evaluated once for all of them, for those observations and instances that some constraint lets
# through, and the pairs are then sorted out.

_IDENTITY, _PUSH = BASE.get_field_index("identity"), BASE.get_field_index("push")
_LONGEST_SAMPLE = 200
_FEW = 64
NO_CONSTRAINT = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownIdentities:
    """Observations of identities that no source knows, and one of these."""

    push: str
    concept: str
    count: int
    sample: str

    @property
    def problem(self) -> Problem:
        return UNKNOWN_IDENTITIES(push=self.push, concept=self.concept, count=self.count, sample=self.sample)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationFailure:
    """A test that failed, on how many pairs of observation and instance, and the values of one."""

    test: str
    count: int
    sample: Mapping[str, Any]

    @property
    def shown(self) -> str:
        """The sample as text."""
        return ", ".join(f"{name} = {value!r}" for name, value in self.sample.items())[:_LONGEST_SAMPLE]

    @property
    def problem(self) -> Problem:
        return TEST_FAILED(test=self.test, count=self.count, sample=self.shown)


class ObservedBatch:
    """One batch of observations, and where its identities are among what is known."""

    def __init__(self, rows: pa.RecordBatch, scalars: Sequence[LeafScalar], knowledge: InstanceColumns) -> None:
        self.knowledge = knowledge
        values = rows.columns[len(BASE) :]
        self._values = {scalar.path: array for scalar, array in zip(scalars, values, strict=True)}
        self.rows = rows
        self.count = rows.num_rows
        self.identities = rows.column(_IDENTITY)
        self._places: dict[str, Array] = {}
        self.chosen: dict[int, Bools] = {}
        """By the number of a constraint."""
        self.failures: list[EvaluationFailure] = []

    @cached_property
    def _base(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(self.rows.columns[: len(BASE)], schema=BASE)

    def places(self, concept: str) -> Array:
        """The row of each observed instance among those of a concept; one behind the last if it is not known."""
        found = self._places.get(concept)
        if found is None:
            found = self._places[concept] = self.knowledge.of(concept).places(self.identities)
        return found

    def batch(self, group: LeafGroup) -> Batch:
        """What tests see of the observed instances: what is known of them, and what the events say."""
        return Batch({key: self.column(group, key[1], type) for key, type in group.observed_reads.items()}, self.count)

    def column(self, group: LeafGroup, path: tuple[str, ...], type: Type) -> pa.Array:
        if path[0] == group.attribute:
            return self._values[path]
        if path == IDENTITY:
            return self.identities
        places, known = self.places(group.concept), self.knowledge.of(group.concept)
        return known.column(path, type).take(pa.array(places, mask=places == len(known)))

    def taken(self, places: Array | None) -> pa.RecordBatch:
        """Who and when of these observations; None: of all."""
        if places is None:
            return self._base
        if len(places) == 1 and self.count <= _FEW:  # a part of many rows would keep all of them in memory
            return self._base.slice(int(places[0]), 1)
        return self._base.take(pa.array(places))

    def unknown(self) -> Iterator[UnknownIdentities]:
        for concept, places in self._places.items():
            absent = np.flatnonzero(places == len(self.knowledge.of(concept)))
            if len(absent) and self.knowledge.has(concept):
                first = int(absent[0])
                push, sample = self.rows.column(_PUSH)[first].as_py(), self.identities[first].as_py()
                yield UnknownIdentities(push=push, concept=concept, count=len(absent), sample=sample)


class AliasConstraints:
    """Constraints of aliases: each compiled once, and evaluated once for all instances of a concept.

    They are numbered: to look one up by what it says would take longer than to evaluate it for an event.
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, Node], int] = {}
        self._masks: list[Mask] = []
        self._held: dict[int, tuple[ConceptInstances, Bools]] = {}

    def number(self, concept: str, constraint: Node | None) -> int:
        """The number of a constraint on instances of a concept; -1: there is none."""
        if constraint is None:
            return NO_CONSTRAINT
        number = self._numbers.setdefault((concept, constraint), len(self._masks))
        if number == len(self._masks):
            self._masks.append(compile_mask(constraint))
        return number

    def instances(self, number: int, known: ConceptInstances) -> Bools | None:
        """Which of all instances satisfy a constraint; None: all do."""
        if number == NO_CONSTRAINT:
            return None
        held = self._held.get(number)
        if held is None or held[0] is not known:
            held = self._held[number] = (known, known.holds(self._masks[number]))
        return held[1]

    def observations(self, number: int, concept: str, seen: ObservedBatch) -> Bools | None:
        """Of which observations the instance satisfies the constraint; None: of all."""
        places = seen.places(concept)
        if number == NO_CONSTRAINT:
            return None
        found = seen.chosen.get(number)
        if found is None:
            known = seen.knowledge.of(concept)
            found = seen.chosen[number] = self._of_places(number, known, places, seen)
        return found

    def _of_places(self, number: int, known: ConceptInstances, places: Array, seen: ObservedBatch) -> Bools:
        satisfied = self.instances(number, known)
        assert satisfied is not None
        absent = np.flatnonzero(places == len(known))
        if not len(absent):
            return satisfied[places]
        found: Bools = np.append(satisfied, False)[places]
        mask = self._masks[number]
        batch = unknown_instances(IT, mask.reads, seen.identities.take(pa.array(absent)))
        found[absent] = mask.of(mask.frame(batch)).holds
        return found


class LeafGroup(ABC):
    """Leaves that differ in nothing but constraints and in what their rows carry."""

    def __init__(self, leaves: list[Leaf], constraints: AliasConstraints) -> None:
        first = leaves[0]
        self.leaves, self.constraints = leaves, constraints
        self._numbers = [constraints.number(leaf.concept, leaf.constraint) for leaf in leaves]
        self.concept, self.attribute, self.variable = first.concept, first.attribute, first.observed
        self.test = first.test
        scalars = {scalar.path: scalar for leaf in leaves for scalar in leaf.scalars}
        if first.test is not None:
            read = (each for each in outer_reads(first.test) if each.variable == first.observed)
            scalars = {each.path: LeafScalar(path=each.path, type=each.type) for each in read}
        self.reads = tuple(scalars.values())

    @property
    def observed_reads(self) -> dict[Key, Type]:
        return {(self.variable, scalar.path): scalar.type for scalar in self.reads}

    def chosen(self, seen: ObservedBatch) -> list[Bools | None]:
        """For each leaf, of which observations the instance satisfies its constraint; None: of all."""
        return [self.constraints.observations(number, self.concept, seen) for number in self._numbers]

    @abstractmethod
    def rows(self, seen: ObservedBatch) -> Iterator[tuple[Leaf, pa.RecordBatch]]:
        """The rows of each leaf that has some."""

    def failed(
        self, reads: Mapping[Key, Type], batches: Mapping[str, tuple[Batch, int]], count: int
    ) -> EvaluationFailure:
        """What failed, with the values in these rows of these batches."""
        assert self.test is not None
        sample = {}
        for (variable, path), type in reads.items():
            batch, place = batches[variable]
            sample[column_name((variable, *path))] = values_of(batch.array((variable, path)).slice(place, 1), type)[0]
        return EvaluationFailure(test=print_expression(self.test), count=count, sample=sample)


class _Observations(LeafGroup):
    """Without a test: whatever is observed of instances that satisfy the constraint."""

    def rows(self, seen: ObservedBatch) -> Iterator[tuple[Leaf, pa.RecordBatch]]:
        for leaf, chosen in zip(self.leaves, self.chosen(seen), strict=True):
            places = None if chosen is None or chosen.all() else np.flatnonzero(chosen)
            if places is not None and not len(places):
                continue
            base = seen.taken(places)
            columns = [seen.column(self, scalar.path, scalar.type) for scalar in leaf.scalars]
            if places is not None:
                columns = [each.take(pa.array(places)) for each in columns]
            yield leaf, pa.RecordBatch.from_arrays([*base.columns, *columns], schema=row_schema(leaf))


class _Unary(LeafGroup):
    """A test of the observed instance alone."""

    def __init__(self, leaves: list[Leaf], constraints: AliasConstraints) -> None:
        super().__init__(leaves, constraints)
        assert self.test is not None
        self._mask = compile_mask(self.test)

    def rows(self, seen: ObservedBatch) -> Iterator[tuple[Leaf, pa.RecordBatch]]:
        batch = seen.batch(self)
        outcome = self._mask.of(self._mask.frame(batch))
        chosen = self.chosen(seen)
        for leaf, mask in zip(self.leaves, chosen, strict=True):
            places = np.flatnonzero(outcome.holds if mask is None else outcome.holds & mask)
            if len(places):
                yield leaf, pa.RecordBatch.from_arrays(seen.taken(places).columns, schema=row_schema(leaf))
        if outcome.failed is not None:
            failed = np.flatnonzero(outcome.failed & _any(chosen, seen.count))
            if len(failed):
                batches = {self.variable: (batch, int(failed[0]))}
                seen.failures.append(self.failed(self._mask.reads, batches, len(failed)))


def _any(masks: list[Bools | None], count: int) -> Bools:
    """Where one of them is true; None is true everywhere."""
    found = np.zeros(count, np.bool_)
    for mask in {id(mask): mask for mask in masks}.values():
        if mask is None:
            return np.ones(count, np.bool_)
        found |= mask
    return found


class _Binary(LeafGroup):
    """A test of the observed instance and another one."""

    def __init__(self, leaves: list[Leaf], constraints: AliasConstraints) -> None:
        super().__init__(leaves, constraints)
        assert self.test is not None
        self.other = leaves[0].other
        self._other_numbers = [constraints.number(leaf.other, leaf.other_constraint) for leaf in leaves]
        self._unobserved = RIGHT if self.variable == LEFT else LEFT
        self._pairing = IndexJoin(self.test, self.variable, self._unobserved)
        self._others: _Others | None = None

    def rows(self, seen: ObservedBatch) -> Iterator[tuple[Leaf, pa.RecordBatch]]:
        others = self._of_others(seen.knowledge.of(self.other))
        chosen = self.chosen(seen)
        places = np.flatnonzero(_any(chosen, seen.count))
        if not len(places) or not len(others.places):
            return
        batch = seen.batch(self)
        some = batch if len(places) == seen.count else RowsOf(batch, places)
        pairs = self._pairing.pairs(some, others.batch, others.index)
        if pairs.failed is not None:
            batches = {self.variable: (some, pairs.failed[0]), self._unobserved: (others.batch, pairs.failed[1])}
            seen.failures.append(self.failed(self._pairing.mask.reads, batches, pairs.failures))
        rows, partners = places[pairs.rows], others.places[pairs.others]
        for leaf, mask, satisfied in zip(self.leaves, chosen, others.satisfied, strict=True):
            if len(self.leaves) == 1:
                mine, theirs = rows, partners
            else:
                keep = np.ones(len(rows), np.bool_) if mask is None else mask[rows]
                if satisfied is not None:
                    keep = keep & satisfied[partners]
                mine, theirs = rows[keep], partners[keep]
            if len(mine):
                base, other = seen.taken(mine), others.known.identities.take(pa.array(theirs))
                yield leaf, pa.RecordBatch.from_arrays([*base.columns, other], schema=row_schema(leaf))

    def _of_others(self, known: ConceptInstances) -> _Others:
        if self._others is None or self._others.known is not known:
            satisfied = [self.constraints.instances(number, known) for number in self._other_numbers]
            places = np.flatnonzero(_any(satisfied, len(known)))
            whole = known.batch(self._unobserved, self._pairing.mask.reads)
            batch = whole if len(places) == len(known) else RowsOf(whole, places)
            index = self._pairing.index(batch)
            self._others = _Others(known=known, satisfied=satisfied, places=places, batch=batch, index=index)
        return self._others


@dataclass(frozen=True, slots=True, kw_only=True)
class _Others:
    """The instances that observations are joined to: those that some leaf's constraint lets through."""

    known: ConceptInstances
    satisfied: list[Bools | None]
    places: Array
    batch: Batch
    index: PlaceIndex | None = field(repr=False)


def leaf_group(leaves: list[Leaf], constraints: AliasConstraints) -> LeafGroup:
    """The group of leaves with one concept, attribute and test."""
    if leaves[0].test is None:
        return _Observations(leaves, constraints)
    return _Binary(leaves, constraints) if leaves[0].other else _Unary(leaves, constraints)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# All leaves. Observations come as columns, a batch for each push source. What policies have in common is done once:
# equal leaves are one, and a constraint is evaluated once for each instance, not for each event.


@dataclass(frozen=True, slots=True, kw_only=True)
class PushObservations:
    """Observations through one push source: of an attribute of a concept.

    ``rows`` have the columns of :data:`situ.policies.enrichment.rows.BASE`, and then one for each scalar of
    :meth:`Enrichment.scalars`, in this order, whatever their names are.
    """

    concept: str
    attribute: str
    rows: pa.RecordBatch


@dataclass(frozen=True, slots=True, kw_only=True)
class EnrichedRows:
    """Rows of the leaves that have some, and what was noticed on the way."""

    rows: Mapping[Leaf, pa.RecordBatch]
    unknown: tuple[UnknownIdentities, ...] = ()
    failures: tuple[EvaluationFailure, ...] = ()


class Enrichment:
    """What is made of observations for these leaves. Pure: what it remembers follows from what is known."""

    def __init__(self, leaves: Iterable[Leaf], ontology: Ontology) -> None:
        self.leaves = tuple(dict.fromkeys(leaves))
        self._ontology = ontology
        constraints = AliasConstraints()
        groups: dict[tuple[str, str, Node | None, str, str], list[Leaf]] = {}
        for leaf in self.leaves:
            groups.setdefault((leaf.concept, leaf.attribute, leaf.test, leaf.observed, leaf.other), []).append(leaf)
        self._groups = [leaf_group(members, constraints) for members in groups.values()]
        self._looking: dict[tuple[str, str], tuple[LeafGroup, ...]] = {}
        self._scalars: dict[tuple[str, str], tuple[LeafScalar, ...]] = {}

    def scalars(self, concept: str, attribute: str) -> tuple[LeafScalar, ...]:
        """What is looked at of an attribute that events bring: the columns that observations of it must have."""
        known = self._scalars.get((concept, attribute))
        if known is None:
            found: dict[tuple[str, ...], LeafScalar] = {}
            for group in self._of(concept, attribute):
                for scalar in group.reads:
                    if scalar.path[0] == attribute:
                        found.setdefault(scalar.path, scalar)
            known = self._scalars[concept, attribute] = tuple(found[path] for path in sorted(found))
        return known

    def is_wanted(self, concept: str, attribute: str) -> bool:
        """Whether any leaf looks at this attribute of instances of this concept."""
        return bool(self._of(concept, attribute))

    def run(self, observed: Iterable[PushObservations], knowledge: InstanceColumns) -> EnrichedRows:
        """The rows of all leaves, those of each push source in the order of its observations."""
        found: dict[Leaf, list[pa.RecordBatch]] = {}
        unknown: list[UnknownIdentities] = []
        failures: list[EvaluationFailure] = []
        for each in observed:
            if not each.rows.num_rows:
                continue
            seen = ObservedBatch(each.rows, self.scalars(each.concept, each.attribute), knowledge)
            for group in self._of(each.concept, each.attribute):
                for leaf, rows in group.rows(seen):
                    found.setdefault(leaf, []).append(rows)
            unknown += seen.unknown()
            failures += seen.failures
        return EnrichedRows(
            rows={leaf: concat(leaf, batches) for leaf, batches in found.items()},
            unknown=tuple(unknown),
            failures=tuple(failures),
        )

    def _of(self, concept: str, attribute: str) -> tuple[LeafGroup, ...]:
        """The groups that look at this attribute of instances of this concept."""
        found = self._looking.get((concept, attribute))
        if found is None:
            of_attribute = (group for group in self._groups if group.attribute == attribute)
            found = tuple(group for group in of_attribute if concept in self._members(group.concept))
            self._looking[concept, attribute] = found
        return found

    def _members(self, concept: str) -> tuple[str, ...]:
        declared = self._ontology.concepts[concept]
        return declared.members or (declared.name,)
