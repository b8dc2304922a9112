"""Consumption: which of the fitting pairs count when an event counts only once.

Events come one after the other, and what an event does depends on what the ones before it left over, so this is the one
part that goes through pairs one by one. It sees only pairs that fit. An event acts for its rows on the left first; what
it finds spends it and its partner, on both sides.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from situ.policies.kernel.state import IdentityCodes, Origins
from situ.policies.kernel.table import Bools, Ints, SortedTable, each_once


@dataclass(frozen=True, slots=True)
class ConsumedPairs:
    """Which of the pairs count; and which rows of both tables are spent now."""

    pairs: Ints
    left: Ints
    right: Ints


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of both sides in the order in which they act: of the left ``[: lefts]``, then of the right."""

    time: Ints
    code: Ints
    ref: Ints
    lefts: int

    def place(self, rows: Ints, *, left: bool) -> Ints:
        return rows if left else rows + self.lefts


def consume(
    left: SortedTable,
    right: SortedTable,
    pairs: tuple[Ints, Ints],
    *,
    recent: bool,
    identities: IdentityCodes,
    origins: Origins,
) -> ConsumedPairs:
    """Go through fitting pairs of rows, none of which was spent before."""
    rows = _Rows(
        np.concatenate((left.time, right.time)),
        np.concatenate((left["@identity"], right["@identity"])),
        np.concatenate((left["ref"], right["ref"])),
        len(left),
    )
    one, other = pairs[0], pairs[1] + len(left)
    involved = each_once(np.concatenate((one, other)), len(rows.time))
    events, ranks = _ordered(rows, involved, identities, origins)
    left_acts = events[one] > events[other]
    actor, partner = np.where(left_acts, one, other), np.where(left_acts, other, one)
    width = len(involved)
    order = np.argsort(ranks[actor] * width + (width - 1 - ranks[partner] if recent else ranks[partner]))
    chosen, cleared = _one_by_one(rows, events, order, actor, partner, recent=recent)
    spent = _with_siblings(rows, np.concatenate((one[chosen], other[chosen])), origins)
    if recent and cleared:
        spent |= _cleared(rows, cleared, origins)
    return ConsumedPairs(chosen, np.flatnonzero(spent[: len(left)]), np.flatnonzero(spent[len(left) :]))


def _one_by_one(
    rows: _Rows, events: Ints, order: Ints, actor: Ints, partner: Ints, *, recent: bool
) -> tuple[Ints, dict[tuple[bool, int], int]]:
    """The pairs that count; and, for a side and an identity, the row that last took a partner from there."""
    spent: set[int] = set()
    chosen: list[int] = []
    cleared: dict[tuple[bool, int], int] = {}
    until: dict[tuple[bool, int], int] = {}
    actors, partners = actor[order], partner[order]
    acting, taken = events[actors], events[partners].tolist()
    sides, codes = ((partners < rows.lefts).tolist(), rows.code[partners].tolist()) if recent else ([], [])
    starts = np.flatnonzero(np.append(True, acting[1:] != acting[:-1])).tolist()
    for start, end in pairwise([*starts, len(taken)]):
        for place in range(start, end):
            other = taken[place]
            if other in spent:
                continue
            event = int(acting[place])
            if recent:
                key = (sides[place], codes[place])
                if other < until.get(key, -1):
                    continue
                until[key] = event
                cleared[key] = int(actors[place])
            spent.add(event)
            spent.add(other)
            chosen.append(place)
            break
    return order[np.array(chosen, np.int64)], cleared


def _ordered(rows: _Rows, involved: Ints, identities: IdentityCodes, origins: Origins) -> tuple[Ints, Ints]:
    """The number of each row's event in the order of events, and of the row in the order of rows; of those involved.

    Events are in the order of time, id and source; rows of one event in that of side, push source and identity. Texts
    are looked at only where times are equal.
    """
    order = involved[np.argsort(rows.time[involved], kind="stable")]
    time = rows.time[order]
    same = np.flatnonzero(time[1:] == time[:-1])
    starts = np.ones(len(order), bool)
    if len(same):
        tied = np.unique(np.concatenate((same, same + 1)))
        texts = origins.of(rows.ref[order[tied]])
        names = identities.decode(rows.code[order[tied]])
        keys = [
            (moment, id, source, row >= rows.lefts, push, name)
            for moment, row, (source, id, push, _), name in zip(
                time[tied].tolist(), order[tied].tolist(), texts, names, strict=True
            )
        ]
        by_key = sorted(range(len(keys)), key=keys.__getitem__)
        order[tied] = order[tied][by_key]
        for place, before, after in zip(tied[1:].tolist(), by_key, by_key[1:], strict=False):
            starts[place] = keys[before][:3] != keys[after][:3]
    events, ranks = np.full(len(rows.time), -1), np.full(len(rows.time), -1)
    events[order] = np.cumsum(starts)
    ranks[order] = np.arange(len(order))
    return events, ranks


def _with_siblings(rows: _Rows, spent: Ints, origins: Origins) -> Bools:
    """These rows, and all others of the same events."""
    marked = np.zeros(len(rows.time), bool)
    marked[spent] = True
    alike = np.flatnonzero(np.isin(rows.time, rows.time[spent]) & ~marked)
    if len(alike):
        gone = {cause[:2] for cause in origins.of(rows.ref[spent])}
        found = [cause[:2] in gone for cause in origins.of(rows.ref[alike])]
        marked[alike[np.array(found, bool)]] = True
    return marked


def _cleared(rows: _Rows, cleared: dict[tuple[bool, int], int], origins: Origins) -> Bools:
    """What was kept of an identity on a side before the event that took the last partner from there came."""
    marked = np.zeros(len(rows.time), bool)
    for left in (True, False):
        by_code = {code: row for (side, code), row in cleared.items() if side is left}
        if not by_code:
            continue
        side = slice(0, rows.lefts) if left else slice(rows.lefts, len(rows.time))
        actors = np.full(int(max(rows.code.max(), *by_code)) + 1, -1)
        actors[list(by_code)] = list(by_code.values())
        by = actors[rows.code[side]]
        until = np.where(by >= 0, rows.time[by], np.iinfo(np.int64).min)
        marked[side] |= rows.time[side] < until
        tied = np.flatnonzero(rows.time[side] == until)
        if len(tied):
            mine = origins.of(rows.ref[side][tied])
            theirs = origins.of(rows.ref[by[tied]])
            before = [a[1::-1] < b[1::-1] for a, b in zip(mine, theirs, strict=True)]
            marked[tied[np.array(before, bool)] + (side.start or 0)] = True
    return marked
