"""Relations with two event-based sides: which pairs of events are occurrences, and which of these count.

As events come, the pairs that count are found and remembered, as consumption says. Where only absence is asked for
nothing is remembered: any pair counts, and pairs are made when somebody asks, of the identities that are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from situ.situation.kernel.asking import Asked, Extended, Step, looked_up, once
from situ.situation.kernel.consuming import consume
from situ.situation.kernel.pairing import Pair, Pairing
from situ.situation.kernel.range_join import distinct, each_once, find
from situ.situation.kernel.table import Bools, Ints, Table, sorted_table
from situ.situation.language.syntax import Consumption
from situ.situation.policies.plan import RelationPlan

SLICE = 4096
"""About so many events are looked at together where an event counts only once."""


class Paired:
    """Two event-based sides: pairs of rows of its leaves."""

    def __init__(self, plan: RelationPlan, place: int, pairing: Pairing, window: int) -> None:
        self.plan = plan
        self.names = tuple(use.observed for use in plan.uses)
        self.aliases = tuple(dict.fromkeys(self.names))
        self.buffer = f"relation {place}"
        self.spent = (f"spent {place} left", f"spent {place} right")
        self._leaves = tuple(f"leaf {use.leaf}" for use in plan.uses)
        self._pairing = pairing
        self._window = window

    def picked(self, step: Step, first: int, last: int) -> Table:
        return step.select(self.buffer, first, last)

    # ── pairs that count, as events come ──

    def find_new(self, step: Step) -> None:
        """Find the occurrences of this step and remember them."""
        if not any(len(table) for leaf in self._leaves for table in step.buffers[leaf].between(step.before, step.now)):
            return
        left, right = (self._unspent(step, side) for side in (0, 1))
        pairs = (self._consumed if self.plan.spends else self._new_pairs)(step, left, right, step.before)
        found = self._occurrences(left, right, *pairs)
        step.buffers[self.buffer], _ = step.buffers[self.buffer].extended(found, step.now)

    def _unspent(self, step: Step, side: int) -> Table:
        rows = step.select(self._leaves[side], step.before - self._window, step.now - 1)
        if not self.plan.spends or not step.buffers[self.spent[side]].rows:
            return rows
        spent = step.buffers[self.spent[side]]
        gone = np.concatenate([table["ref"] for table in (*spent.decided, spent.open)])
        return rows.take(np.flatnonzero(~np.isin(rows["ref"], gone)))

    def _spend(self, step: Step, name: str, table: Table, rows: Ints) -> None:
        """Remember rows as spent; all are decided, but older ones may follow later ones, so they stay open."""
        new = Table(table.time[rows], {"ref": table["ref"][rows]})
        step.buffers[name], _ = step.buffers[name].extended(new, -(1 << 62))

    def _consumed(self, step: Step, left: Table, right: Table, since: int) -> tuple[Ints, Ints]:
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
            recent = self.plan.consumption is Consumption.RECENT
            consumed = consume(one, other, pairs, recent=recent, identities=step.identities, origins=step.origins)
            alive[0][rows[0][consumed.left]] = False
            alive[1][rows[1][consumed.right]] = False
            found.append((rows[0][pairs[0][consumed.pairs]], rows[1][pairs[1][consumed.pairs]]))
        for name, table, some in zip(self.spent, (left, right), alive, strict=True):
            self._spend(step, name, table, np.flatnonzero(~some))
        return _both(found)

    def _new_pairs(self, step: Step, left: Table, right: Table, since: int) -> tuple[Ints, Ints]:
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

    def _occurrences(self, left: Table, right: Table, one: Ints, other: Ints) -> Table:
        time = np.maximum(left.time[one], right.time[other])
        codes = {f"@{self.names[1]}": right["@identity"][other], f"@{self.names[0]}": left["@identity"][one]}
        return sorted_table(time, {**codes, "r0": left["ref"][one], "r1": right["ref"][other]})

    # ── any pair that agrees with something ──

    def extend(self, step: Step, asked: Asked) -> Extended:
        """Rows for which some pair occurred; with codes of wanted aliases.

        Pairs are made for each row that asks; but in all of a window, where an event would come up for many of them,
        all pairs of the identities in question are made once, and then looked up like rows.
        """
        start = 0 if self.names[0] in asked.bound or self.names[1] not in asked.bound else 1
        if asked.back:
            return looked_up(self._of_those(step, asked, start), asked, asked.new(self.aliases))
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
            fitting.append(Pair(owners[pair.rows[fits]], pair.left[fits], pair.right[fits]))
        if not fitting:
            return owners[:0], dict.fromkeys(new, owners[:0])
        rows = np.concatenate([each.rows for each in fitting])
        if not new:
            return each_once(rows, len(asked)), {}
        places = {0: [each.left for each in fitting], 1: [each.right for each in fitting]}
        sides = {name: side for side, name in enumerate(self.names)}
        tables = (left, right)
        codes_of = {name: tables[sides[name]]["@identity"][np.concatenate(places[sides[name]])] for name in new}
        return once(rows, codes_of)

    def density(self, step: Step) -> float:
        """How often an identity is seen in a window, about."""
        tables = [table for leaf in self._leaves for table in step.buffers[leaf].decided if len(table)]
        if not tables:
            return 1.0
        span = max(int(each.time[-1]) for each in tables) - min(int(each.time[0]) for each in tables)
        return sum(map(len, tables)) / max(1, len(step.identities)) * self._window / max(1, span)

    def _of_those(self, step: Step, asked: Asked, side: int) -> Table:
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

    def _each_with(self, rows: Table, asked: Asked, side: int) -> tuple[Table, Ints]:
        """The rows of one side, once for each identity of the other that is asked for together with theirs."""
        mine, others = (asked.bound[self.names[each]] for each in (side, 1 - side))
        chosen = distinct([mine, others])
        anytime = np.full(len(chosen), rows.time[0] if len(rows) else 0), np.full(len(chosen), asked.last.max())
        which, places = find([mine[chosen]], *anytime, [rows["@identity"]], rows.time).pairs()
        return rows.take(places), others[chosen][which]

    def _own(self, step: Step, asked: Asked, side: int) -> tuple[Ints, Table]:
        """The rows of one side for each row that asks, by identity if that is bound."""
        codes = asked.bound.get(self.names[side])
        first, last = int(asked.first.min()) - asked.back, int(asked.last.max())
        rows = step.select(self._leaves[side], first, last, "@identity", codes)
        keys, their_keys = ([], []) if codes is None else ([codes], [rows["@identity"]])
        owners, places = find(keys, asked.first - asked.back, asked.last, their_keys, rows.time).pairs()
        return owners, rows.take(places)


def _slices(left: Table, right: Table, since: int, until: int) -> list[tuple[int, int]]:
    """Stretches of time with about so many new rows each."""
    new = [table.time[np.searchsorted(table.time, since) :] for table in (left, right)]
    times = np.sort(np.concatenate(new))
    cuts = np.unique(times[SLICE::SLICE]).tolist()
    return list(pairwise([since, *cuts, until]))


def _within(table: Table, some: Bools, first: int, last: int) -> Ints:
    start, end = np.searchsorted(table.time, (first, last))
    return np.flatnonzero(some[start:end]) + int(start)


def _both(found: Sequence[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    if not found:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return np.concatenate([each[0] for each in found]), np.concatenate([each[1] for each in found])
