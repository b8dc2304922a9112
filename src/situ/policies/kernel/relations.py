"""Relations at work in the kernel: what occurred, and whether anything occurred that agrees with something.

There are three operators, one for each number of event-based sides: `ConstraintOperator` (none), `QueryOperator` (one)
and `CorrelationOperator` (two). `StepContext` and `OccurrenceQuery` are what they are asked with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from situ.lang.expr.emit.numpy import Mask, compile_mask
from situ.lang.expr.emit.python import compile_test
from situ.lang.expr.emit.vectors import below, column
from situ.lang.expr.runtime import FAILURES
from situ.policies.kernel.consumption import consume
from situ.policies.kernel.pair_join import PairJoin, RowPairs
from situ.policies.kernel.state import IdentityCodes, Origins
from situ.policies.kernel.table import (
    Bools,
    Ints,
    SortedTable,
    WatermarkBuffer,
    concat_tables,
    distinct,
    each_once,
    range_join,
    sort_by_time,
)
from situ.policies.language.syntax import ConsumptionMode
from situ.policies.model import IT, LEFT, RIGHT, Alias, InstancesByConcept, Policy, Relation
from situ.policies.ontology.model import IDENTITY, Ontology
from situ.policies.plan import RelationPlan

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What one step works with, and how relations are asked in it whether something occurred that agrees.


@dataclass(slots=True)
class StepContext:
    """What one step works with: everything from ``before`` to before ``now`` is decided in it."""

    before: int
    now: int
    identities: IdentityCodes
    origins: Origins
    instances: InstancesByConcept
    buffers: dict[str, WatermarkBuffer]

    def select(self, buffer: str, first: int, last: int, column: str = "", codes: Ints | None = None) -> SortedTable:
        """What is decided from ``first`` to ``last``, both included; with codes, only rows that have one of them."""
        tables = self.buffers[buffer].between(first, last + 1)
        if codes is not None and sum(map(len, tables)) > len(codes):
            wanted = np.zeros(len(self.identities), bool)
            wanted[codes] = True
            tables = [table.take(np.flatnonzero(wanted[table[column]])) for table in tables]
        return concat_tables(tables)


Codes = Mapping[str, Ints]
"""For some aliases, the code of the identity that is bound in each row."""


@dataclass(frozen=True, slots=True)
class OccurrenceQuery:
    """Whether something occurred, for each of some rows, from ``first`` to ``last``, that agrees with what is bound.

    Of the other aliases, those in ``wanted`` are asked for. Events that are the earlier ones of pairs are looked for up
    to ``back`` before ``first``. ``most`` says how many answers for a row will do, 0: all.
    """

    bound: Codes
    first: Ints
    last: Ints
    wanted: frozenset[str]
    back: int
    most: int = 0

    def __len__(self) -> int:
        return len(self.first)

    def new(self, aliases: Iterable[str]) -> list[str]:
        return [name for name in aliases if name in self.wanted and name not in self.bound]


Extended = tuple[Ints, dict[str, Ints]]
"""Rows, perhaps several times, and the codes of aliases that were not bound before."""


def find_in_table(rows: SortedTable, asked: OccurrenceQuery, new: list[str]) -> Extended:
    """The answer, where all that can have occurred lies in a table."""
    shared = [name for name in asked.bound if f"@{name}" in rows.columns]
    found = range_join(
        [asked.bound[name] for name in shared],
        asked.first,
        asked.last,
        [rows[f"@{name}"] for name in shared],
        rows.time,
    )
    if not new:
        return found.some(), {}
    owners, partners = (found.few(asked.most) if asked.most else found).pairs()
    return distinct_codes(owners, {name: rows[f"@{name}"][partners] for name in new})


def distinct_codes(owners: Ints, codes: dict[str, Ints]) -> Extended:
    """Each row with the same codes once."""
    chosen = distinct([owners, *codes.values()])
    return owners[chosen], {name: each[chosen] for name, each in codes.items()}


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Relations in which nothing is event-based: they hold for instances, as pull sources know them, at any time. An alias
# of which only the identity is asked for may also be somebody that no pull source knows, if something else says who it
# is.


class TimelessRelation:
    """A relation over one or two aliases, evaluated for what pull sources know now."""

    def __init__(self, relation: Relation, policy: Policy, ontology: Ontology) -> None:
        self.aliases = tuple(dict.fromkeys(relation.aliases))
        self._sides = dict(zip((LEFT, RIGHT), relation.aliases, strict=False))
        self.named = frozenset(side.alias for side in relation.sides if side.is_identity)
        """Aliases of which only the identity is asked for: whoever something else binds them to need not be known."""
        self._mask: Mask = compile_mask(relation.test)
        self._known = {name: AliasInstances(policy.alias(name), ontology) for name in self.aliases}

    def extend(
        self, bound: dict[str, Ints], count: int, instances: InstancesByConcept, identities: IdentityCodes
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

    def _of(self, name: str, texts: list[str], instances: InstancesByConcept) -> Mapping[str, Mapping[str, Any]]:
        """The instances of an alias by identity; whoever is named, where only the identity is asked for."""
        known = self._known[name]
        found = known.instances(instances)
        if name not in self.named:
            return found
        return found | {text: {IDENTITY: text} for text in set(texts) if known.only_named(text, instances)}

    def _holds(self, codes: dict[str, Ints], instances: InstancesByConcept, identities: IdentityCodes) -> Bools:
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


class AliasInstances:
    """The instances of an alias that pull sources know and its constraint lets through."""

    def __init__(self, alias: Alias, ontology: Ontology) -> None:
        self._members = ontology.concepts[alias.concept].members or (alias.concept,)
        self._test = None if alias.constraint is None else compile_test(alias.constraint, [IT]).call
        self._last: tuple[InstancesByConcept, dict[str, dict[str, Any]]] | None = None

    def instances(self, instances: InstancesByConcept) -> dict[str, dict[str, Any]]:
        """By identity; looked at anew only if it is another collection than the last time."""
        if self._last is None or self._last[0] is not instances:
            self._last = (instances, self._fitting(instances))
        return self._last[1]

    def only_named(self, identity: str, instances: InstancesByConcept) -> bool:
        """Whether no table knows somebody of that identity, and the constraint lets through whoever is called so."""
        if any(identity in instances.get(member, {}) for member in self._members):
            return False
        return self._fits({IDENTITY: identity})

    def _fitting(self, instances: InstancesByConcept) -> dict[str, dict[str, Any]]:
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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Relations with two event-based sides: which pairs of events are occurrences, and which of these count.
#
# As events come, the pairs that count are found and remembered, as consumption says. Where only absence is asked for
# nothing is remembered: any pair counts, and pairs are made when somebody asks, of the identities that are asked for.

SLICE = 4096
"""About so many events are looked at together where an event counts only once."""


class CorrelationOperator:
    """Two event-based sides: pairs of rows of its leaves."""

    def __init__(self, plan: RelationPlan, place: int, pairing: PairJoin, window: int) -> None:
        self.plan = plan
        self.names = tuple(use.observed for use in plan.uses)
        self.aliases = tuple(dict.fromkeys(self.names))
        self.buffer = f"relation {place}"
        self.spent = (f"spent {place} left", f"spent {place} right")
        self._leaves = tuple(f"leaf {use.leaf}" for use in plan.uses)
        self._pairing = pairing
        self._window = window

    def picked(self, step: StepContext, first: int, last: int) -> SortedTable:
        return step.select(self.buffer, first, last)

    # ── pairs that count, as events come ──

    def find_new(self, step: StepContext) -> None:
        """Find the occurrences of this step and remember them."""
        if not any(len(table) for leaf in self._leaves for table in step.buffers[leaf].between(step.before, step.now)):
            return
        left, right = (self._unspent(step, side) for side in (0, 1))
        pairs = (self._consumed if self.plan.spends else self._new_pairs)(step, left, right, step.before)
        found = self._occurrences(left, right, *pairs)
        step.buffers[self.buffer], _ = step.buffers[self.buffer].extended(found, step.now)

    def _unspent(self, step: StepContext, side: int) -> SortedTable:
        rows = step.select(self._leaves[side], step.before - self._window, step.now - 1)
        if not self.plan.spends or not step.buffers[self.spent[side]].rows:
            return rows
        spent = step.buffers[self.spent[side]]
        gone = np.concatenate([table["ref"] for table in (*spent.decided, spent.open)])
        return rows.take(np.flatnonzero(~np.isin(rows["ref"], gone)))

    def _spend(self, step: StepContext, name: str, table: SortedTable, rows: Ints) -> None:
        """Remember rows as spent; all are decided, but older ones may follow later ones, so they stay open."""
        new = SortedTable(table.time[rows], {"ref": table["ref"][rows]})
        step.buffers[name], _ = step.buffers[name].extended(new, -(1 << 62))

    def _consumed(self, step: StepContext, left: SortedTable, right: SortedTable, since: int) -> tuple[Ints, Ints]:
        """The pairs that count. Events come in slices of time: what one slice spends is no candidate in the next."""
        alive = [np.ones(len(table), bool) for table in (left, right)]
        found = []
        for start, end in _slices(left, right, since, step.now):
            rows = [
                _within(table, some, start - self._window, end)
                for table, some in zip((left, right), alive, strict=True)
            ]
            one, other = left.take(rows[0]), right.take(rows[1])
            pairs = self._new_pairs(step, one, other, start)
            if not len(pairs[0]):
                continue
            recent = self.plan.consumption is ConsumptionMode.RECENT
            consumed = consume(one, other, pairs, recent=recent, identities=step.identities, origins=step.origins)
            alive[0][rows[0][consumed.left]] = False
            alive[1][rows[1][consumed.right]] = False
            found.append((rows[0][pairs[0][consumed.pairs]], rows[1][pairs[1][consumed.pairs]]))
        for name, table, some in zip(self.spent, (left, right), alive, strict=True):
            self._spend(step, name, table, np.flatnonzero(~some))
        return _both(found)

    def _new_pairs(self, step: StepContext, left: SortedTable, right: SortedTable, since: int) -> tuple[Ints, Ints]:
        """All fitting pairs the later row of which is new: a new left row with those before it, and the other way."""
        found: list[tuple[Ints, Ints]] = []
        for table, other, is_left in ((left, right, True), (right, left, False)):
            start = int(np.searchsorted(table.time, since))
            new = table.slice(start, len(table))
            if not len(new) or not len(other):
                continue
            latest = new.time if is_left else new.time - 1  # what came at once is found from the left
            for pair in self._pairing.candidates(new, new.time - self._window, latest, other, left=is_left):
                one, two = (new, other) if is_left else (other, new)
                fits = self._pairing.fits(one, two, pair, step.identities, step.origins)
                shift = (start, 0) if is_left else (0, start)
                found.append((pair.left[fits] + shift[0], pair.right[fits] + shift[1]))
        return _both(found)

    def _occurrences(self, left: SortedTable, right: SortedTable, one: Ints, other: Ints) -> SortedTable:
        time = np.maximum(left.time[one], right.time[other])
        codes = {f"@{self.names[1]}": right["@identity"][other], f"@{self.names[0]}": left["@identity"][one]}
        return sort_by_time(time, {**codes, "r0": left["ref"][one], "r1": right["ref"][other]})

    # ── any pair that agrees with something ──

    def extend(self, step: StepContext, asked: OccurrenceQuery) -> Extended:
        """Rows for which some pair occurred; with codes of wanted aliases.

        Pairs are made for each row that asks; but in all of a window, where an event would come up for many of them,
        all pairs of the identities in question are made once, and then looked up like rows.
        """
        start = 0 if self.names[0] in asked.bound or self.names[1] not in asked.bound else 1
        if asked.back:
            return find_in_table(self._of_those(step, asked, start), asked, asked.new(self.aliases))
        owners, probes = self._own(step, asked, start)
        new = asked.new(self.aliases)
        if not len(owners):
            return owners, dict.fromkeys(new, owners)
        first = asked.first[owners]
        earliest = np.maximum(probes.time - self._window, np.where(probes.time < first, first, first - asked.back))
        latest = np.minimum(probes.time + self._window, asked.last[owners])
        codes = asked.bound.get(self.names[1 - start])
        others = step.select(self._leaves[1 - start], int(earliest.min()), int(latest.max()), "@identity", codes)
        left, right = (probes, others) if start == 0 else (others, probes)
        fitting = []
        wanted = None if codes is None else codes[owners]
        for pair in self._pairing.candidates(probes, earliest, latest, others, left=start == 0, wanted=wanted):
            fits = self._pairing.fits(left, right, pair, step.identities, step.origins)
            fitting.append(RowPairs(owners[pair.rows[fits]], pair.left[fits], pair.right[fits]))
        if not fitting:
            return owners[:0], dict.fromkeys(new, owners[:0])
        rows = np.concatenate([each.rows for each in fitting])
        if not new:
            return each_once(rows, len(asked)), {}
        places = {0: [each.left for each in fitting], 1: [each.right for each in fitting]}
        sides = {name: side for side, name in enumerate(self.names)}
        tables = (left, right)
        codes_of = {name: tables[sides[name]]["@identity"][np.concatenate(places[sides[name]])] for name in new}
        return distinct_codes(rows, codes_of)

    def density(self, step: StepContext) -> float:
        """How often an identity is seen in a window, about."""
        tables = [table for leaf in self._leaves for table in step.buffers[leaf].decided if len(table)]
        if not tables:
            return 1.0
        span = max(int(each.time[-1]) for each in tables) - min(int(each.time[0]) for each in tables)
        return sum(map(len, tables)) / max(1, len(step.identities)) * self._window / max(1, span)

    def _of_those(self, step: StepContext, asked: OccurrenceQuery, side: int) -> SortedTable:
        """All occurrences of the identities that are bound, at the times in question."""
        first, last = int(asked.first.min()) - asked.back, int(asked.last.max())
        left, right = (
            step.select(leaf, first, last, "@identity", asked.bound.get(name))
            for leaf, name in zip(self._leaves, self.names, strict=True)
        )
        probes, others = (left, right) if side == 0 else (right, left)
        wanted = None
        if not self._pairing.selective and len(set(self.names) & set(asked.bound)) == 2:
            probes, wanted = self._each_with(probes, asked, side)
            left, right = (probes, others) if side == 0 else (others, probes)
        earliest, latest = probes.time - self._window, probes.time + self._window
        found = []
        for pair in self._pairing.candidates(probes, earliest, latest, others, left=side == 0, wanted=wanted):
            fits = self._pairing.fits(left, right, pair, step.identities, step.origins)
            found.append((pair.left[fits], pair.right[fits]))
        return self._occurrences(left, right, *_both(found))

    def _each_with(self, rows: SortedTable, asked: OccurrenceQuery, side: int) -> tuple[SortedTable, Ints]:
        """The rows of one side, once for each identity of the other that is asked for together with theirs."""
        mine, others = (asked.bound[self.names[each]] for each in (side, 1 - side))
        chosen = distinct([mine, others])
        anytime = np.full(len(chosen), rows.time[0] if len(rows) else 0), np.full(len(chosen), asked.last.max())
        which, places = range_join([mine[chosen]], *anytime, [rows["@identity"]], rows.time).pairs()
        return rows.take(places), others[chosen][which]

    def _own(self, step: StepContext, asked: OccurrenceQuery, side: int) -> tuple[Ints, SortedTable]:
        """The rows of one side for each row that asks, by identity if that is bound."""
        codes = asked.bound.get(self.names[side])
        first, last = int(asked.first.min()) - asked.back, int(asked.last.max())
        rows = step.select(self._leaves[side], first, last, "@identity", codes)
        keys, their_keys = ([], []) if codes is None else ([codes], [rows["@identity"]])
        owners, places = range_join(keys, asked.first - asked.back, asked.last, their_keys, rows.time).pairs()
        return owners, rows.take(places)


def _slices(left: SortedTable, right: SortedTable, since: int, until: int) -> list[tuple[int, int]]:
    """Stretches of time with about so many new rows each."""
    new = [table.time[np.searchsorted(table.time, since) :] for table in (left, right)]
    times = np.sort(np.concatenate(new))
    cuts = np.unique(times[SLICE::SLICE]).tolist()
    return list(pairwise([since, *cuts, until]))


def _within(table: SortedTable, some: Bools, first: int, last: int) -> Ints:
    start, end = np.searchsorted(table.time, (first, last))
    return np.flatnonzero(some[start:end]) + int(start)


def _both(found: Sequence[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    if not found:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return np.concatenate([each[0] for each in found]), np.concatenate([each[1] for each in found])


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Relations with one event-based side or none. Occurrences are tables with a column ``@X`` for each alias that is bound,
# and ``r0``, ``r1``: references to the rows they come from.


class QueryOperator:
    """One event-based side: the rows of its leaf are its occurrences."""

    def __init__(self, plan: RelationPlan) -> None:
        (use,) = plan.uses
        self.aliases = tuple(dict.fromkeys((use.observed, use.other) if use.other else (use.observed,)))
        self.buffer = f"leaf {use.leaf}"
        self._columns = {f"@{use.observed}": "@identity", **({f"@{use.other}": "@other"} if use.other else {})}
        self._same = use.observed == use.other

    def picked(self, step: StepContext, first: int, last: int) -> SortedTable:
        return self._view(step.select(self.buffer, first, last))

    def _view(self, rows: SortedTable) -> SortedTable:
        if self._same:
            rows = rows.take(np.flatnonzero(rows["@identity"] == rows["@other"]))
        return SortedTable(
            rows.time, {"r0": rows["ref"], **{name: rows[column] for name, column in self._columns.items()}}
        )

    def extend(self, step: StepContext, asked: OccurrenceQuery) -> Extended:
        """Rows for which something occurred; with codes of wanted aliases."""
        key = next((name for name in self.aliases if name in asked.bound), "")
        first, last = int(asked.first.min()), int(asked.last.max())
        rows = step.select(self.buffer, first, last, self._columns.get(f"@{key}", ""), asked.bound.get(key))
        return find_in_table(self._view(rows), asked, asked.new(self.aliases))


class ConstraintOperator:
    """No event-based side: it holds at any time, or at none."""

    def __init__(self, timeless: TimelessRelation) -> None:
        self.aliases = timeless.aliases
        self.named = timeless.named
        self._timeless = timeless

    def extend(self, step: StepContext, asked: OccurrenceQuery) -> Extended:
        """As of :class:`QueryOperator`; times do not count."""
        rows, codes = self._timeless.extend(dict(asked.bound), len(asked), step.instances, step.identities)
        return rows, {name: each for name, each in codes.items() if name not in asked.bound}


RelationOperator = QueryOperator | CorrelationOperator | ConstraintOperator
