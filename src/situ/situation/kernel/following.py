"""Sequences: one relation followed by another, or by its absence, or after its absence."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from situ.situation.kernel.asking import Asked, Step
from situ.situation.kernel.paired import Paired
from situ.situation.kernel.range_join import find
from situ.situation.kernel.relating import Queried, Related
from situ.situation.kernel.table import Buffer, Ints, Table, sorted_table
from situ.situation.policies.plan import SequencePlan


class Following:
    """A sequence at work. Its occurrences refer to the rows of its first relation, then of its second."""

    def __init__(self, plan: SequencePlan, place: int, relations: Mapping[str, Related], window: int) -> None:
        self.then = plan.then
        self.kept = plan.kept
        self.aliases = plan.binds
        self.buffer = f"sequence {place}"
        self.first, self.second = (relations[part.relation.text] for part in (plan.then.first, plan.then.second))
        self._window = window
        self._find: Callable[[Step], Table] = self._followed
        if plan.then.second.negated:
            self._find = self._not_followed
        elif plan.then.first.negated:
            self._find = self._not_preceded

    @property
    def parts(self) -> dict[str, tuple[int, ...]]:
        """For each relation that occurs in it: which of its references are that relation's."""
        found: dict[str, tuple[int, ...]] = {}
        count = 0
        for part, relation in ((self.then.first, self.first), (self.then.second, self.second)):
            if not part.negated:
                width = width_of(relation)
                own = tuple(range(count, count + width))
                found[part.relation.text] = found.get(part.relation.text, ()) + own
                count += width
        return found

    @property
    def width(self) -> int:
        return sum(map(len, self.parts.values()))

    @property
    def ahead(self) -> int:
        """How long after what it comes from it occurs, at most."""
        return self.then.within if self.then.second.negated else 0

    def picked(self, step: Step, first: int, last: int) -> Table:
        return step.select(self.buffer, first, last)

    def next(self, buffers: Mapping[str, Buffer], now: int) -> list[int]:
        """When the next of its occurrences is due, if one is under way: it waits for something that does not come."""
        assert isinstance(self.first, Queried | Paired)
        rows = buffers[self.first.buffer].between(now - self.then.within, now)
        return [int(rows[0].time[0]) + self.then.within] if len(rows[0]) else []

    def find_new(self, step: Step) -> None:
        step.buffers[self.buffer], _ = step.buffers[self.buffer].extended(self._find(step), step.now)

    def _followed(self, step: Step) -> Table:
        second = picked(self.second, step, step.before, step.now - 1)
        first = picked(self.first, step, step.before - self.then.within, step.now - 1)
        shared = [name for name in first.columns if name.startswith("@") and name in second.columns]
        found = find(
            [second[name] for name in shared],
            second.time - self.then.within,
            second.time - 1,
            [first[name] for name in shared],
            first.time,
        )
        later, earlier = found.pairs()
        columns = _taken(first, earlier) | _taken(second, later, len(_refs(first)))
        return sorted_table(second.time[later], columns)

    def _not_followed(self, step: Step) -> Table:
        within = self.then.within
        first = picked(self.first, step, step.before - within, step.now - within - 1)
        kept = self._without(step, first, self.second, first.time + 1, first.time + within)
        return Table(first.time[kept] + within, _taken(first, kept))

    def _not_preceded(self, step: Step) -> Table:
        second = picked(self.second, step, step.before, step.now - 1)
        kept = self._without(step, second, self.first, second.time - self.then.within, second.time - 1)
        return Table(second.time[kept], _taken(second, kept))

    def _without(self, step: Step, rows: Table, relation: Related, first: Ints, last: Ints) -> Ints:
        """The rows for which nothing occurred that agrees."""
        if not len(rows):
            return np.empty(0, np.int64)
        bound = {name[1:]: rows[name] for name in rows.columns if name.startswith("@") and name[1:] in relation.aliases}
        some, _ = relation.extend(step, Asked(bound, first, last, frozenset(), self._window))
        without = np.ones(len(rows), bool)
        without[some] = False
        return np.flatnonzero(without)


def picked(relation: Related, step: Step, first: int, last: int) -> Table:
    """The occurrences of a relation that stands in a sequence, from ``first`` to ``last``."""
    assert isinstance(relation, Queried | Paired)  # what holds at any time is not followed by anything
    return relation.picked(step, first, last)


def width_of(relation: Related) -> int:
    """Of how many events an occurrence of a relation comes."""
    return 2 if isinstance(relation, Paired) else 1 if isinstance(relation, Queried) else 0


def _refs(table: Table) -> list[str]:
    return [name for name in table.columns if name.startswith("r")]


def _taken(table: Table, rows: Ints, shift: int = 0) -> dict[str, Ints]:
    return {
        name if name.startswith("@") else f"r{int(name[1:]) + shift}": column[rows]
        for name, column in table.columns.items()
    }
