"""Matches: one occurrence for every clause, agreeing with each other and close together in time.

Partial matches are tables, put together clause by clause; those that bind the same aliases lie in one table. Their
``time`` is that of their latest occurrence, ``first`` that of the earliest; ``@X`` is the code an alias is bound to, -1
if it is not; ``cI.J`` are references to the rows that clause I was met by; ``hI`` says that it was not met by anything,
but could hold because of what is absent. A relation that stands in sequences of several clauses is the same occurrence
in all of them: ``pK.J`` are the references of the one that was chosen, -2 if none was.

Only matches whose latest occurrence is new are looked for. Such a match has a first clause whose occurrence is new; so
for each clause its new occurrences are taken, with old ones of the clauses before it, and any of those behind it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from situ.situation.kernel.asking import Asked, Step
from situ.situation.kernel.following import Following, width_of
from situ.situation.kernel.range_join import each_once, find
from situ.situation.kernel.relating import Related, Stated
from situ.situation.kernel.table import Column, Ints, Table
from situ.situation.policies.plan import ClausePlan, PolicyPlan
from situ.situation.policies.policy import Is, Literal

UNBOUND = -1
NOT_CHOSEN = -2
_MOST_PARTS = 4
Groups = dict[frozenset[str], Table]
"""Partial matches by the aliases they bind."""


@dataclass(frozen=True, slots=True)
class Literally:
    """A positive literal at work: where its occurrences are, and the relations they share with other clauses."""

    source: Related | Following
    shared: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """Which of the shared relations, and which of its references are that relation's."""

    @property
    def width(self) -> int:
        return self.source.width if isinstance(self.source, Following) else width_of(self.source)


class Matching:
    """All clauses of a policy at work."""

    def __init__(
        self, plan: PolicyPlan, relations: Mapping[str, Related], sequences: Mapping[Literal, Following]
    ) -> None:
        self._window = plan.policy.window
        self._aliases = [alias.name for alias in plan.policy.aliases]
        self._shared = _shared_relations(plan.clauses, sequences)
        self.clauses = [
            tuple(self._literally(literal, relations, sequences) for literal in clause.positive)
            for clause in plan.clauses
        ]
        self.can_hold = [bool(clause.negative) for clause in plan.clauses]
        self._widths = [max((literal.width for literal in clause), default=0) for clause in self.clauses]
        self._orders = {pivot: self._order(pivot) for pivot in range(len(self.clauses)) if self._timed(pivot)}

    def _literally(
        self, literal: Literal, relations: Mapping[str, Related], sequences: Mapping[Literal, Following]
    ) -> Literally:
        if isinstance(literal, Is):
            return Literally(relations[literal.relation.text])
        source = sequences[literal]
        shared = [(self._shared.index(text), refs) for text, refs in source.parts.items() if text in self._shared]
        return Literally(source, tuple(shared))

    def _timed(self, clause: int) -> bool:
        return any(not isinstance(literal.source, Stated) for literal in self.clauses[clause])

    def _order(self, pivot: int) -> list[int]:
        """The other clauses with something positive: those first that share most with what is bound already."""
        rest = [clause for clause, literals in enumerate(self.clauses) if literals and clause != pivot]
        bound = set(self._always(pivot))
        order = []
        while rest:
            best = min(rest, key=lambda clause: (not self._timed(clause), -len(bound & self._always(clause)), clause))
            rest.remove(best)
            order.append(best)
            if not self.can_hold[best]:
                bound |= self._always(best)
        return order

    def _always(self, clause: int) -> set[str]:
        """The aliases that every positive literal of a clause binds."""
        return set.intersection(*(set(literal.source.aliases) for literal in self.clauses[clause]))

    @cached_property
    def columns(self) -> dict[str, type]:
        """What matches consist of, besides the time."""
        return {
            "first": np.int64,
            **{f"@{name}": np.int64 for name in self._aliases},
            **{f"c{clause}.{ref}": np.int64 for clause, width in enumerate(self._widths) for ref in range(width)},
            **{f"h{clause}": np.bool_ for clause, can in enumerate(self.can_hold) if can},
            **{f"p{shared}.{ref}": np.int64 for shared in range(len(self._shared)) for ref in range(_MOST_PARTS)},
        }

    # ── all matches ──

    def find_new(self, step: Step) -> Groups:
        """The matches whose latest occurrence is new."""
        found: Groups = {}
        for pivot, order in self._orders.items():
            groups: Groups = {}
            for literal in self.clauses[pivot]:
                if not isinstance(literal.source, Stated):
                    rows = literal.source.picked(step, step.before, step.now - 1)
                    if len(rows):
                        _add(groups, frozenset(literal.source.aliases), self._started(pivot, literal, rows))
            for clause in order:
                groups = self._joined(step, groups, clause, old=clause < pivot)
                if not groups:
                    break
            for bound, table in groups.items():
                _add(found, bound, self._held(table))
        return found

    def _held(self, table: Table) -> Table:
        """Clauses with nothing positive can only hold by absence."""
        held = {f"h{clause}": np.ones(len(table), bool) for clause, each in enumerate(self.clauses) if not each}
        return Table(table.time, {**table.columns, **held})

    def _started(self, clause: int, literal: Literally, rows: Table) -> Table:
        count = len(rows)
        columns: dict[str, Column] = {}
        for name, kind in self.columns.items():
            value = False if kind is np.bool_ else NOT_CHOSEN if name.startswith("p") else UNBOUND
            columns[name] = np.full(count, value, kind)
        columns["first"] = rows.time
        columns |= {name: column for name, column in rows.columns.items() if name.startswith("@")}
        columns |= {f"c{clause}.{name[1:]}": column for name, column in rows.columns.items() if name.startswith("r")}
        for shared, refs in literal.shared:
            columns |= _chosen(shared, refs, rows, np.arange(count))
        return Table(rows.time, columns)

    def _joined(self, step: Step, groups: Groups, clause: int, *, old: bool) -> Groups:
        found: Groups = {}
        for bound, table in groups.items():
            for literal in self.clauses[clause]:
                if isinstance(literal.source, Stated):
                    extended = self._with_stated(step, table, bound, literal.source)
                else:
                    extended = self._with_timed(step, table, bound, clause, literal, old=old)
                _add(found, bound | set(literal.source.aliases), extended)
            if self.can_hold[clause]:
                held = Table(table.time, {**table.columns, f"h{clause}": np.ones(len(table), bool)})
                _add(found, bound, held)
        return found

    def _with_stated(self, step: Step, table: Table, bound: frozenset[str], source: Stated) -> Table:
        codes = {name: table[f"@{name}"] for name in source.aliases if name in bound}
        rows, new = source.extend(step, Asked(codes, table.time, table.time, frozenset(source.aliases), 0))
        taken = table.take(rows)
        return Table(taken.time, {**taken.columns, **{f"@{name}": each for name, each in new.items()}})

    def _with_timed(
        self, step: Step, table: Table, bound: frozenset[str], clause: int, literal: Literally, *, old: bool
    ) -> Table:
        rows, occurrences, places = self._beside(
            step, table, bound, literal, last=step.before - 1 if old else step.now - 1
        )
        taken = table.take(rows)
        columns = dict(taken.columns)
        time = occurrences.time[places]
        for name, column in occurrences.columns.items():
            columns[name if name.startswith("@") else f"c{clause}.{name[1:]}"] = column[places]
        for shared, refs in literal.shared:
            columns |= _chosen(shared, refs, occurrences, places)
        columns["first"] = np.minimum(taken["first"], time)
        return Table(np.maximum(taken.time, time), columns)

    def _beside(
        self, step: Step, table: Table, bound: frozenset[str], literal: Literally, last: int
    ) -> tuple[Ints, Table, Ints]:
        """Rows of partial matches, and occurrences of a literal that can stand beside them."""
        source = literal.source
        assert not isinstance(source, Stated)
        earliest, latest = table.time - self._window, np.minimum(table["first"] + self._window, last)
        if not len(table):
            nothing = np.empty(0, np.int64)
            return nothing, source.picked(step, 1, 0), nothing
        occurrences = source.picked(step, int(earliest.min()), int(latest.max()))
        shared = [f"@{name}" for name in source.aliases if name in bound]
        found = find(
            [table[name] for name in shared],
            earliest,
            latest,
            [occurrences[name] for name in shared],
            occurrences.time,
        )
        rows, places = found.pairs()
        for number, refs in literal.shared:
            same = np.ones(len(rows), bool)
            for name, column in _chosen(number, refs, occurrences, places).items():
                same &= column == table[name][rows]
            kept = same | (table[f"p{number}.0"][rows] == NOT_CHOSEN)
            rows, places = rows[kept], places[kept]
        return rows, occurrences, places

    def could_be_met(self, step: Step, table: Table, bound: frozenset[str], clause: int) -> Ints:
        """The matches beside which a clause that they hold by absence could be met by an occurrence."""
        found = []
        for literal in self.clauses[clause]:
            if isinstance(literal.source, Stated):
                codes = {name: table[f"@{name}"] for name in literal.source.aliases if name in bound}
                rows, _ = literal.source.extend(step, Asked(codes, table.time, table.time, frozenset(), 0))
            else:
                rows, _, _ = self._beside(step, table, bound, literal, last=step.now - 1)
            found.append(rows)
        return each_once(np.concatenate(found), len(table)) if found else np.empty(0, np.int64)


def _add(groups: Groups, bound: frozenset[str], table: Table) -> None:
    if not len(table):
        return
    if bound in groups:
        tables = (groups[bound], table)
        table = Table(
            np.concatenate([each.time for each in tables]),
            {name: np.concatenate([each[name] for each in tables]) for name in table.columns},
        )
    groups[bound] = table


def _chosen(shared: int, refs: Sequence[int], occurrences: Table, places: Ints) -> dict[str, Ints]:
    given = [occurrences[f"r{ref}"][places] for ref in refs]
    given += [np.full(len(places), UNBOUND)] * (_MOST_PARTS - len(given))
    return {f"p{shared}.{place}": column for place, column in enumerate(given)}


def _shared_relations(clauses: Sequence[ClausePlan], sequences: Mapping[Literal, Following]) -> list[str]:
    """The relations that stand in sequences of more than one clause."""
    count: dict[str, int] = {}
    for clause in clauses:
        own = {text for literal in clause.positive if not isinstance(literal, Is) for text in sequences[literal].parts}
        for text in own:
            count[text] = count.get(text, 0) + 1
    return sorted(text for text, times in count.items() if times > 1)
