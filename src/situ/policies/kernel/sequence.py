"""Sequences: one relation followed by another, or by its absence, or after its absence; with absences between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from situ.policies.kernel.relations import (
    CorrelationOperator,
    OccurrenceQuery,
    QueryOperator,
    RelationOperator,
    StepContext,
)
from situ.policies.kernel.table import Ints, SortedTable, WatermarkBuffer, range_join, sort_by_time
from situ.policies.model import RelationLiteral, SequenceLiteral
from situ.policies.plan import SequencePlan


class SequenceOperator:
    """A sequence at work. Its occurrences refer to the rows of its first relation, then of its second."""

    def __init__(self, plan: SequencePlan, place: int, relations: Mapping[str, RelationOperator], window: int) -> None:
        self.then = plan.then
        self.kept = plan.kept
        self.aliases = plan.binds
        self.buffer = f"sequence {place}"
        self.first, self.second = (relations[part.relation.text] for part in (plan.then.first, plan.then.second))
        self._gaps = [relations[gap.absent.relation.text] for gap in plan.then.between]
        self._window = window
        self._find: Callable[[StepContext], SortedTable] = self._followed
        if plan.then.second.negated:
            self._find = self._not_followed
        elif plan.then.first.negated:
            self._find = self._not_preceded

    @property
    def width(self) -> int:
        """Of how many events an occurrence comes."""
        return sum(len(refs) for _, refs in self.steps(self.then))

    def steps(self, then: SequenceLiteral) -> list[tuple[RelationLiteral, tuple[int, ...]]]:
        """For each side that occurs in a sequence that reads like this one: which of the references are its own."""
        found = []
        count = 0
        for part, relation in ((then.first, self.first), (then.second, self.second)):
            if not part.negated:
                width = width_of(relation)
                found.append((part, tuple(range(count, count + width))))
                count += width
        return found

    @property
    def ahead(self) -> int:
        """How long after what it comes from it occurs, at most."""
        return self.then.span if self.then.second.negated else 0

    def picked(self, step: StepContext, first: int, last: int) -> SortedTable:
        return step.select(self.buffer, first, last)

    def next(self, buffers: Mapping[str, WatermarkBuffer], now: int) -> list[int]:
        """When the next of its occurrences is due, if one is under way: it waits for something that does not come."""
        assert isinstance(self.first, QueryOperator | CorrelationOperator)
        rows = buffers[self.first.buffer].between(now - self.then.span, now)
        return [int(rows[0].time[0]) + self.then.span] if len(rows[0]) else []

    def find_new(self, step: StepContext) -> None:
        step.buffers[self.buffer], _ = step.buffers[self.buffer].extended(self._find(step), step.now)

    def _followed(self, step: StepContext) -> SortedTable:
        second = picked(self.second, step, step.before, step.now - 1)
        first = picked(self.first, step, step.before - self.then.within, step.now - 1)
        shared = [name for name in first.columns if name.startswith("@") and name in second.columns]
        found = range_join(
            [second[name] for name in shared],
            second.time - self.then.within,
            second.time - self.then.gaps - 1,
            [first[name] for name in shared],
            first.time,
        )
        later, earlier = found.pairs()
        columns = _taken(first, earlier) | _taken(second, later, len(_refs(first)))
        pairs = SortedTable(second.time[later], columns)
        if self.then.between and len(pairs):
            kept = self._with_gaps(step, pairs, first.time[earlier])
            pairs = pairs.take(kept)
        return sort_by_time(pairs.time, pairs.columns)

    def _with_gaps(self, step: StepContext, pairs: SortedTable, since: Ints) -> Ints:
        """The pairs between the sides of which nothing occurred that is to be absent."""
        left = np.arange(len(pairs))
        for gap, relation in zip(self.then.between, self._gaps, strict=True):
            rows = pairs.take(left)
            until = since[left] + gap.within if gap.within else rows.time - 1
            left = left[self._without(step, rows, relation, since[left] + 1, until)]
            since = since + gap.within
        return left

    def _not_followed(self, step: StepContext) -> SortedTable:
        span = self.then.span
        first = picked(self.first, step, step.before - span, step.now - span - 1)
        absent = [*self._lengths(), (self.second, self.then.within)]
        kept, since = np.arange(len(first)), first.time
        for relation, within in absent:
            kept = kept[self._without(step, first.take(kept), relation, since[kept] + 1, since[kept] + within)]
            since = since + within
        return SortedTable(first.time[kept] + span, _taken(first, kept))

    def _not_preceded(self, step: StepContext) -> SortedTable:
        second = picked(self.second, step, step.before, step.now - 1)
        absent = [(self.first, self.then.within), *self._lengths()]
        kept, until = np.arange(len(second)), second.time
        for relation, within in reversed(absent):
            kept = kept[self._without(step, second.take(kept), relation, until[kept] - within, until[kept] - 1)]
            until = until - within
        return SortedTable(second.time[kept], _taken(second, kept))

    def _lengths(self) -> list[tuple[RelationOperator, int]]:
        return [(relation, gap.within) for gap, relation in zip(self.then.between, self._gaps, strict=True)]

    def _without(
        self, step: StepContext, rows: SortedTable, relation: RelationOperator, first: Ints, last: Ints
    ) -> Ints:
        """The rows for which nothing occurred that agrees, from ``first`` to ``last``, which may be no time at all."""
        without = np.ones(len(rows), bool)
        asking = np.flatnonzero(first <= last)
        if not len(asking):
            return np.flatnonzero(without)
        bound = {
            name[1:]: column[asking]
            for name, column in rows.columns.items()
            if name.startswith("@") and name[1:] in relation.aliases
        }
        asked = OccurrenceQuery(bound, first[asking], last[asking], frozenset(), self._window)
        some, _ = relation.extend(step, asked)
        without[asking[some]] = False
        return np.flatnonzero(without)


def picked(relation: RelationOperator, step: StepContext, first: int, last: int) -> SortedTable:
    """The occurrences of a relation that stands in a sequence, from ``first`` to ``last``."""
    assert isinstance(
        relation, QueryOperator | CorrelationOperator
    )  # what holds at any time is not followed by anything
    return relation.picked(step, first, last)


def width_of(relation: RelationOperator) -> int:
    """Of how many events an occurrence of a relation comes."""
    return 2 if isinstance(relation, CorrelationOperator) else 1 if isinstance(relation, QueryOperator) else 0


def _refs(table: SortedTable) -> list[str]:
    return [name for name in table.columns if name.startswith("r")]


def _taken(table: SortedTable, rows: Ints, shift: int = 0) -> dict[str, Ints]:
    return {
        name if name.startswith("@") else f"r{int(name[1:]) + shift}": column[rows]
        for name, column in table.columns.items()
    }
