"""Matches: an occurrence for everything that is to happen, agreeing with each other and close together in time.

Partial matches are tables, put together part by part; those that bind the same aliases lie in one table. Their ``time``
is that of their latest occurrence, ``first`` that of the earliest; ``@X`` is the code an alias is bound to, -1 if it is
not; ``cI`` are references to the rows they were met by, -1 where there is none; ``hI`` says that the I-th absence is
among what was chosen. A step that stands in several sequences is the same occurrence in all of them: ``pK.J`` are the
references of the one that was picked, -2 if none was.

For an ``or`` one branch is chosen: what a table was extended by in one is never extended by what stands in another. So
branches use the same references.

Only matches whose latest occurrence is new are looked for. Such a match has a first part with a new occurrence; so for
each part its new occurrences are taken, with old ones of the parts before it, and any of those behind it; and the same
again inside of a branch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import assert_never

import numpy as np

from situ.policies.kernel.relations import (
    ConstraintOperator,
    CorrelationOperator,
    OccurrenceQuery,
    QueryOperator,
    RelationOperator,
    StepContext,
)
from situ.policies.kernel.sequence import SequenceOperator, width_of
from situ.policies.kernel.table import Column, Ints, SortedTable, each_once, range_join
from situ.policies.model import (
    Absence,
    ConditionLiteral,
    ConditionPart,
    Disjunction,
    RelationLiteral,
    SequenceLiteral,
    literals_of,
)
from situ.policies.plan import PolicyPlan

UNBOUND = -1
NOT_CHOSEN = -2
_MOST_EVENTS = 2
"""Of one step."""
_ROW = "row"
TablesByBound = dict[frozenset[str], SortedTable]
"""Partial matches by the aliases they bind."""


@dataclass(frozen=True, slots=True)
class LiteralNode:
    """A literal at work: where its occurrences are, where its references go, and the steps it shares with others."""

    source: QueryOperator | CorrelationOperator | SequenceOperator
    slot: int
    shared: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """Which of the shared steps, and which of its references are that step's."""

    @property
    def width(self) -> int:
        return self.source.width if isinstance(self.source, SequenceOperator) else width_of(self.source)

    timed = True

    @property
    def always(self) -> frozenset[str]:
        return frozenset(self.source.aliases)


@dataclass(frozen=True, slots=True)
class ConstraintNode:
    """A literal that nothing in events is about, by its number: it is looked at when all else is bound."""

    number: int
    timed = False
    always: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class AbsenceNode:
    """An absence, by its number."""

    number: int
    timed = False
    always: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ChoiceNode:
    """An ``or`` at work. The branch of what is absent is empty if there is none."""

    branches: tuple[tuple[MatchNode, ...], ...]
    absent: tuple[AbsenceNode, ...]

    @property
    def timed(self) -> bool:
        return any(node.timed for branch in self.branches for node in branch)

    @property
    def always(self) -> frozenset[str]:
        """The aliases that every branch binds."""
        if self.absent:
            return frozenset()
        return frozenset.intersection(*(frozenset(chain(*(node.always for node in each))) for each in self.branches))


MatchNode = LiteralNode | ConstraintNode | AbsenceNode | ChoiceNode
MatchNodes = tuple[MatchNode, ...]


class ConditionMatcher:
    """The conditions of a policy at work."""

    def __init__(
        self,
        plan: PolicyPlan,
        relations: Mapping[str, RelationOperator],
        sequences: Mapping[ConditionLiteral, SequenceOperator],
    ) -> None:
        self._window = plan.policy.window
        self._aliases = [alias.name for alias in plan.policy.aliases]
        self._relations, self._sequences = relations, sequences
        self._shared = _shared_steps(plan.policy.conditions)
        self._instead: dict[int, ChoiceNode] = {}
        self._absences = 0
        self._stated: list[ConstraintOperator] = []
        self._nodes, self._width = self._built(plan.policy.conditions, 0)
        self._orders: dict[tuple[MatchNodes, frozenset[str]], list[int]] = {}

    # ── conditions at work ──

    def _built(self, parts: Iterable[ConditionPart], slot: int) -> tuple[MatchNodes, int]:
        """Parts at work, whose references begin at ``slot``; and the place behind them."""
        nodes = []
        for part in parts:
            node, slot = self._node(part, slot)
            nodes.append(node)
        return tuple(nodes), slot

    def _node(self, part: ConditionPart, slot: int) -> tuple[MatchNode, int]:
        match part:
            case RelationLiteral():
                related = self._relations[part.relation.text]
                if isinstance(related, ConstraintOperator):
                    self._stated.append(related)
                    return ConstraintNode(len(self._stated) - 1), slot
                taken = LiteralNode(related, slot)
                return taken, slot + taken.width
            case SequenceLiteral():
                source = self._sequences[part.unplaced]
                steps = [(self._shared[step], refs) for step, refs in source.steps(part) if step in self._shared]
                taken = LiteralNode(source, slot, tuple(steps))
                return taken, slot + taken.width
            case Absence():
                return self._held(), slot
            case Disjunction(branches=branches, absent=absent):
                built = [self._built(branch, slot) for branch in branches]
                chosen = ChoiceNode(tuple(nodes for nodes, _ in built), tuple(self._held() for _ in absent))
                self._instead |= dict.fromkeys((each.number for each in chosen.absent[:1]), chosen)
                return chosen, max(end for _, end in built)
            case _:
                assert_never(part)

    def _held(self) -> AbsenceNode:
        """Absences are numbered as they stand, as in the plan."""
        self._absences += 1
        return AbsenceNode(self._absences - 1)

    def _order(self, nodes: MatchNodes, bound: frozenset[str]) -> list[int]:
        """In which order nodes are joined to what binds these aliases: those first that share most with it."""
        if (nodes, bound) not in self._orders:
            rest, known, order = list(range(len(nodes))), set(bound), []
            while rest:
                best = min(rest, key=lambda place: (not nodes[place].timed, -len(known & nodes[place].always), place))
                rest.remove(best)
                order.append(best)
                known |= nodes[best].always
            self._orders[nodes, bound] = order
        return self._orders[nodes, bound]

    @cached_property
    def columns(self) -> dict[str, type]:
        """What matches consist of, besides the time."""
        return {
            "first": np.int64,
            **{f"@{name}": np.int64 for name in self._aliases},
            **{f"c{ref}": np.int64 for ref in range(self._width)},
            **{f"h{number}": np.bool_ for number in range(self._absences)},
            **{f"p{shared}.{ref}": np.int64 for shared in self._shared.values() for ref in range(_MOST_EVENTS)},
        }

    # ── all matches ──

    def find_new(self, step: StepContext) -> TablesByBound:
        """The matches whose latest occurrence is new."""
        return self._with_stated(step, self._new(step, self._nodes))

    def _new(self, step: StepContext, nodes: MatchNodes) -> TablesByBound:
        """What meets all of these, with something new."""
        found: TablesByBound = {}
        for pivot, node in enumerate(nodes):
            groups = self._new_of(step, node)
            if groups:
                rest = (*nodes[:pivot], *nodes[pivot + 1 :])
                bound = frozenset.intersection(*groups)
                for place in self._order(rest, bound):
                    groups = self._joined(step, groups, rest[place], old=place < pivot)
                _merge(found, groups)
        return found

    def _new_of(self, step: StepContext, node: MatchNode) -> TablesByBound:
        found: TablesByBound = {}
        match node:
            case LiteralNode():
                rows = node.source.picked(step, step.before, step.now - 1)
                if len(rows):
                    found[node.always] = self._started(node, rows)
            case ChoiceNode(branches=branches):
                for branch in branches:
                    _merge(found, self._new(step, branch))
            case AbsenceNode() | ConstraintNode():
                pass
            case _:
                assert_never(node)
        return found

    def _started(self, node: LiteralNode, rows: SortedTable) -> SortedTable:
        count = len(rows)
        columns: dict[str, Column] = {}
        for name, kind in self.columns.items():
            value = False if kind is np.bool_ else NOT_CHOSEN if name.startswith("p") else UNBOUND
            columns[name] = np.full(count, value, kind)
        columns["first"] = rows.time
        columns |= _placed(node, rows, np.arange(count)) | self._none_stated(count)
        return SortedTable(rows.time, columns)

    def _none_stated(self, count: int) -> dict[str, Column]:
        """``sI`` says that the I-th literal without events is among what was chosen; only while matches are made."""
        return {f"s{number}": np.zeros(count, bool) for number in range(len(self._stated))}

    def _joined(
        self, step: StepContext, groups: TablesByBound, node: MatchNode, *, old: bool, happened: bool = False
    ) -> TablesByBound:
        """Partial matches extended by a node; by what is ``old`` only, or by what ``happened`` only."""
        if not groups:
            return groups
        found: TablesByBound = {}
        match node:
            case LiteralNode():
                for bound, table in groups.items():
                    _add(found, bound | node.always, self._with(step, table, bound, node, old=old))
            case ConstraintNode(number=number):
                for bound, table in groups.items():
                    _add(found, bound, _marked(table, [f"s{number}"]))
            case AbsenceNode(number=number):
                for bound, table in () if happened else groups.items():
                    _add(found, bound, _marked(table, [f"h{number}"]))
            case ChoiceNode(branches=branches, absent=absent):
                bound = frozenset.intersection(*groups)
                for branch in branches:
                    chosen = groups
                    for place in self._order(branch, bound):
                        chosen = self._joined(step, chosen, branch[place], old=old, happened=happened)
                    _merge(found, chosen)
                if absent and not happened:
                    names = [f"h{each.number}" for each in absent]
                    _merge(found, {bound: _marked(table, names) for bound, table in groups.items()})
            case _:
                assert_never(node)
        return found

    def _with(
        self, step: StepContext, table: SortedTable, bound: frozenset[str], node: LiteralNode, *, old: bool
    ) -> SortedTable:
        last = step.before - 1 if old else step.now - 1
        rows, occurrences, places = self._beside(step, table, bound, node, last)
        taken = table.take(rows)
        columns = dict(taken.columns) | _placed(node, occurrences, places)
        time = occurrences.time[places]
        columns["first"] = np.minimum(taken["first"], time)
        return SortedTable(np.maximum(taken.time, time), columns)

    def _with_stated(self, step: StepContext, groups: TablesByBound) -> TablesByBound:
        """What is left where literals without events hold, if they were chosen; those first that bind least."""
        done: TablesByBound = {}
        waiting = list(groups.items())
        while waiting:
            bound, table = waiting.pop()
            asked = [number for number in range(len(self._stated)) if table[f"s{number}"].any()]
            if not asked:
                names = [name for name in table.columns if not name.startswith("s")]
                _add(done, bound, SortedTable(table.time, {name: table[name] for name in names}))
                continue
            number = min(asked, key=lambda each: len(set(self._stated[each].aliases) - bound))
            chosen, source = table[f"s{number}"], self._stated[number]
            if not chosen.all():
                waiting.append((bound, table.take(np.flatnonzero(~chosen))))
                table = table.take(np.flatnonzero(chosen))
            held = self._stating(step, table, bound, source)
            if len(held):
                columns = {**held.columns, f"s{number}": np.zeros(len(held), bool)}
                waiting.append((bound | frozenset(source.aliases), SortedTable(held.time, columns)))
        return done

    def _stating(
        self, step: StepContext, table: SortedTable, bound: frozenset[str], source: ConstraintOperator
    ) -> SortedTable:
        codes = {name: table[f"@{name}"] for name in source.aliases if name in bound}
        rows, new = source.extend(step, OccurrenceQuery(codes, table.time, table.time, frozenset(source.aliases), 0))
        taken = table.take(rows)
        return SortedTable(taken.time, {**taken.columns, **{f"@{name}": each for name, each in new.items()}})

    def _beside(
        self, step: StepContext, table: SortedTable, bound: frozenset[str], node: LiteralNode, last: int
    ) -> tuple[Ints, SortedTable, Ints]:
        """Rows of partial matches, and occurrences of a literal that can stand beside them."""
        source = node.source
        earliest, latest = table.time - self._window, np.minimum(table["first"] + self._window, last)
        if not len(table):
            nothing = np.empty(0, np.int64)
            return nothing, source.picked(step, 1, 0), nothing
        occurrences = source.picked(step, int(earliest.min()), int(latest.max()))
        shared = [f"@{name}" for name in source.aliases if name in bound]
        found = range_join(
            [table[name] for name in shared],
            earliest,
            latest,
            [occurrences[name] for name in shared],
            occurrences.time,
        )
        rows, places = found.pairs()
        for number, refs in node.shared:
            same = np.ones(len(rows), bool)
            for name, column in _step(number, refs, occurrences, places).items():
                same &= column == table[name][rows]
            kept = same | (table[f"p{number}.0"][rows] == NOT_CHOSEN)
            rows, places = rows[kept], places[kept]
        return rows, occurrences, places

    def could_be_met(self, step: StepContext, table: SortedTable, bound: frozenset[str], absence: int) -> Ints:
        """The matches beside which a branch could be met by what happened, in the ``or`` an absence was chosen in."""
        node = self._instead.get(absence)
        if node is None:
            return np.empty(0, np.int64)
        count = len(table)
        numbered = SortedTable(table.time, {**table.columns, **self._none_stated(count), _ROW: np.arange(count)})
        instead = ChoiceNode(node.branches, ())
        met = self._with_stated(step, self._joined(step, {bound: numbered}, instead, old=False, happened=True))
        return each_once(np.concatenate([each[_ROW] for each in met.values()] or [np.empty(0, np.int64)]), len(table))


def _marked(table: SortedTable, names: Iterable[str]) -> SortedTable:
    return SortedTable(table.time, {**table.columns, **{name: np.ones(len(table), bool) for name in names}})


def _merge(groups: TablesByBound, more: TablesByBound) -> None:
    for bound, table in more.items():
        _add(groups, bound, table)


def _add(groups: TablesByBound, bound: frozenset[str], table: SortedTable) -> None:
    if not len(table):
        return
    if bound in groups:
        tables = (groups[bound], table)
        table = SortedTable(
            np.concatenate([each.time for each in tables]),
            {name: np.concatenate([each[name] for each in tables]) for name in table.columns},
        )
    groups[bound] = table


def _placed(node: LiteralNode, occurrences: SortedTable, places: Ints) -> dict[str, Column]:
    """What occurrences of a literal bind and refer to."""
    found = {}
    for name, column in occurrences.columns.items():
        found[name if name.startswith("@") else f"c{node.slot + int(name[1:])}"] = column[places]
    for shared, refs in node.shared:
        found |= _step(shared, refs, occurrences, places)
    return found


def _step(shared: int, refs: Sequence[int], occurrences: SortedTable, places: Ints) -> dict[str, Ints]:
    given = [occurrences[f"r{ref}"][places] for ref in refs]
    given += [np.full(len(places), UNBOUND)] * (_MOST_EVENTS - len(given))
    return {f"p{shared}.{place}": column for place, column in enumerate(given)}


def _shared_steps(conditions: Iterable[ConditionPart]) -> dict[RelationLiteral, int]:
    """The steps that stand in more than one sequence, by number."""
    count: dict[RelationLiteral, set[SequenceLiteral]] = {}
    for then in (each for each in literals_of(conditions) if isinstance(each, SequenceLiteral)):
        for step in _occurring(then):
            count.setdefault(step, set()).add(then)
    shared = [step for step, sequences in count.items() if len(sequences) > 1]
    return {step: number for number, step in enumerate(shared)}


def _occurring(then: SequenceLiteral) -> Iterator[RelationLiteral]:
    return (step for step in (then.first, then.second) if not step.negated)
