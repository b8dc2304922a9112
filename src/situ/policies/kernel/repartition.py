"""States of kernels over partitions: those of several made one, and one divided among several.

What is remembered of a policy belongs to no engine. Who works it in one place goes on from what several partitions
left, and the other way round; so do two that have different numbers of them. Nothing is decided here, and nothing is
forgotten that could still be asked for: a step from the state that is made finds what steps from the given ones would.

Rows that name the identity of the partition alias are in one partition each. All others are in every partition
(:mod:`situ.policies.plan`), under numbers that may differ, because what comes to a partition need not come in
the same order as to others. There the first partition has the say, and references of others are told from its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from situ.lang.records import replace
from situ.policies.kernel.state import Chunk, IdentityCodes, KernelState, LeafCauses
from situ.policies.kernel.table import Bools, Column, Ints, SortedTable, WatermarkBuffer, merge_tables
from situ.policies.plan import PolicyPlan, partition_of

REFERENCE = re.compile(r"ref|[rcp]\d+(\.\d+)?")
"""Columns with such names hold references to rows of leaves; those below 0 refer to none."""

Renumber = Callable[[int, Ints], Ints]
"""Takes a leaf and numbers of its rows, and gives their new numbers."""
ByEvent = dict[tuple[object, ...], list[int]]


def unite_partitions(plan: PolicyPlan, states: Sequence[KernelState], empty: KernelState) -> KernelState:
    """What all partitions of a policy remember, as one that is worked in one place. ``empty`` remembers nothing."""
    identities = IdentityCodes()
    parts, shifts = [], _shifts(plan, states)
    for number, state in enumerate(states):
        codes = identities.codes(state.identities.texts)
        shifted = renumbered(state, shifts[number], len(plan.leaves)).buffers
        parts.append({name: each.changed(partial(SortedTable.recoded, codes=codes)) for name, each in shifted.items()})
    buffers = {}
    for name, none in empty.buffers.items():
        some = [part[name] for part in parts] if _column(plan, name, none) else [parts[0][name]]
        decided = merge_tables(table for each in some for table in each.decided)
        buffers[name] = WatermarkBuffer((decided,), merge_tables(each.open for each in some))
    whole = KernelState(
        watermark=max(state.watermark for state in states),
        identities=identities,
        settled=len(identities),
        buffers=buffers,
        causes=tuple(_causes(states, leaf) for leaf in range(len(plan.leaves))),
        numbers=tuple(sum(state.numbers[leaf] for state in states) for leaf in range(len(plan.leaves))),
        reported={id: until for state in states for id, until in state.reported.items()},
    )
    return compact(whole, len(plan.leaves))


def share_of_partition(
    plan: PolicyPlan, whole: KernelState, partition: int, partitions: int, empty: KernelState
) -> KernelState:
    """What one of several partitions has to remember of all that is remembered in one place."""
    if partitions == 1:
        return whole
    if not plan.partition and partition:
        return replace(empty, identities=IdentityCodes(), watermark=whole.watermark, reported=whole.reported)
    own: Bools = partition_of(whole.identities.texts, partitions) == partition
    buffers = {}
    for name, buffer in whole.buffers.items():
        column = _column(plan, name, buffer)
        buffers[name] = buffer.changed(partial(_taken, column=column, own=own)) if column else buffer
    identities = IdentityCodes(whole.identities.texts)
    return compact(replace(whole, identities=identities, buffers=buffers), len(plan.leaves)).compacted()


def _taken(table: SortedTable, column: str, own: Bools) -> SortedTable:
    return table.take(np.flatnonzero(own[table[column]]))


# ── what is where ──


def _column(plan: PolicyPlan, name: str, buffer: WatermarkBuffer) -> str:
    """Which column of a buffer says in which partition a row is; empty: every partition has all of it."""
    if not plan.partition:
        return ""
    kind, _, place = name.partition(" ")
    if kind == "leaf":
        column = plan.leaves[int(place)].column
        return f"@{column}" if column else ""
    column = f"@{plan.partition}"
    return column if column in buffer.open.columns else ""


# ── references ──


def renumbered(state: KernelState, renumber: Renumber, leaves: int) -> KernelState:
    """With other numbers for the rows of leaves, wherever they are referred to."""

    def changed(table: SortedTable) -> SortedTable:
        columns: Mapping[str, Column] = {
            name: _renumbered(column, renumber, leaves) if REFERENCE.fullmatch(name) else column
            for name, column in table.columns.items()
        }
        return SortedTable(table.time, columns)

    return replace(state, buffers={name: buffer.changed(changed) for name, buffer in state.buffers.items()})


def _renumbered(references: Ints, renumber: Renumber, leaves: int) -> Ints:
    found = references.copy()
    numbers, of = np.divmod(references, max(leaves, 1))
    for leaf in range(leaves):
        rows = np.flatnonzero((references >= 0) & (of == leaf))
        if len(rows):
            found[rows] = renumber(leaf, numbers[rows]) * leaves + leaf
    return found


def compact(state: KernelState, leaves: int) -> KernelState:
    """Without the events behind rows that nothing refers to; rows are numbered anew, in the order they had."""
    used = [_used(state, leaf, leaves) for leaf in range(leaves)]
    causes = tuple(_only(each, used[leaf]) for leaf, each in enumerate(state.causes))
    state = renumbered(state, lambda leaf, numbers: np.searchsorted(used[leaf], numbers), leaves)
    return replace(state, causes=causes, numbers=tuple(map(len, used)))


def _used(state: KernelState, leaf: int, leaves: int) -> Ints:
    references = [
        column
        for buffer in state.buffers.values()
        for table in (*buffer.decided, buffer.open)
        for name, column in table.columns.items()
        if REFERENCE.fullmatch(name)
    ]
    every = np.unique(np.concatenate(references)) if references else np.empty(0, np.int64)
    own: Ints = every[(every >= 0) & (every % leaves == leaf)] // leaves
    return own


def _only(causes: LeafCauses, used: Ints) -> LeafCauses:
    """The events behind these rows, as if only they had come."""
    found = []
    for chunk in causes.chunks:
        first, last = np.searchsorted(used, (chunk.first, chunk.end))
        if last > first:
            places = pa.array(used[first:last] - chunk.first)
            found.append(Chunk(int(first), chunk.latest, tuple(column.take(places) for column in chunk.about)))
    return LeafCauses(tuple(found))


def _shifts(plan: PolicyPlan, states: Sequence[KernelState]) -> list[Renumber]:
    """For each partition, which number its rows have where all are together."""
    begin = [0] * len(plan.leaves)
    first = [_by_event(states[0].causes[leaf]) for leaf in range(len(plan.leaves))]
    found: list[Renumber] = []
    for number, state in enumerate(states):
        known: list[dict[int, int]] = [{} for _ in plan.leaves]
        for leaf, each in enumerate(plan.leaves):
            if number and not (each.column and plan.partition):
                known[leaf] = _same(_by_event(state.causes[leaf]), first[leaf])
        found.append(_shift(tuple(begin), known))
        begin = [at + count for at, count in zip(begin, state.numbers, strict=True)]
    return found


def _shift(begin: Sequence[int], known: Sequence[Mapping[int, int]]) -> Renumber:
    def renumber(leaf: int, numbers: Ints) -> Ints:
        shifted = numbers + begin[leaf]
        if not known[leaf]:
            return shifted
        same = known[leaf]
        pairs = zip(numbers.tolist(), shifted.tolist(), strict=True)
        return np.array([same.get(one, two) for one, two in pairs], np.int64)

    return renumber


def _by_event(causes: LeafCauses) -> ByEvent:
    """The numbers of the rows of each event, in their order, which is the same in every partition."""
    found: ByEvent = {}
    for chunk in causes.chunks:
        for place, event in enumerate(zip(*(column.to_pylist() for column in chunk.about), strict=True)):
            found.setdefault(event, []).append(chunk.first + place)
    return found


def _same(theirs: ByEvent, first: ByEvent) -> dict[int, int]:
    """Which numbers of the first partition are those of the same rows."""
    return {
        number: known
        for event, numbers in theirs.items()
        for number, known in zip(numbers, first.get(event, ()), strict=False)
    }


def _causes(states: Sequence[KernelState], leaf: int) -> LeafCauses:
    """The events behind the rows of a leaf in all partitions."""
    found = []
    begin = 0
    for state in states:
        found += [replace(chunk, first=chunk.first + begin) for chunk in state.causes[leaf].chunks]
        begin += state.numbers[leaf]
    return LeafCauses(tuple(found))
