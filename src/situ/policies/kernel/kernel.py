"""The kernel of a policy: rows of leaves, what is remembered, and a watermark in; detections and what to remember out.

`ingest` takes rows of a leaf in as columns to compute with, `Kernel.step` decides everything before the watermark.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import assert_never

import numpy as np
import pyarrow as pa

from situ.lang.expr.emit.vectors import column_type
from situ.lang.records import replace
from situ.policies.kernel.absence import AbsenceOperator
from situ.policies.kernel.detections import DetectionBatch, DetectionReport, ReportRows, schema_of
from situ.policies.kernel.matches import ConditionMatcher, TablesByBound
from situ.policies.kernel.pair_join import PairJoin, is_text, scalar_names
from situ.policies.kernel.relations import (
    ConstraintOperator,
    CorrelationOperator,
    QueryOperator,
    RelationOperator,
    StepContext,
    TimelessRelation,
)
from situ.policies.kernel.repartition import share_of_partition, unite_partitions
from situ.policies.kernel.sequence import SequenceOperator
from situ.policies.kernel.state import NAMES, Chunk, IdentityCodes, KernelState, LeafCauses, Origins, load, save
from situ.policies.kernel.table import (
    Bools,
    Column,
    Ints,
    SortedTable,
    WatermarkBuffer,
    concat_tables,
    empty_buffer,
    sort_by_time,
)
from situ.policies.model import (
    Absence,
    ConditionLiteral,
    ConditionPart,
    Disjunction,
    InstancesByConcept,
    RelationKind,
    RelationLiteral,
    SequenceLiteral,
    derived_id,
)
from situ.policies.plan import Leaf, PolicyPlan, RelationPlan, partition_of


@dataclass(frozen=True, slots=True)
class Ingested:
    """The rows of a batch in the order of time; the events behind them, if they are kept; how many were late."""

    table: SortedTable
    chunk: Chunk | None
    late: int


def columns_of(leaf: Leaf) -> dict[str, type]:
    """What is kept of each row of a leaf, besides its time."""
    columns: dict[str, type] = {"@identity": np.int64, "ref": np.int64}
    if leaf.other:
        columns["@other"] = np.int64
    for scalar in leaf.scalars:
        text = is_text(scalar.type)
        value, null = scalar_names(scalar.path, text=text)
        columns[value] = np.int64 if text else column_type(scalar.type).to_pandas_dtype()
        if null:
            columns[null] = np.bool_
    return columns


def texts_of(leaf: Leaf, batch: pa.RecordBatch) -> list[pa.Array]:
    """The columns of a batch that are computed with as codes: identities, then scalars."""
    given = _by_name(batch)
    scalars = batch.columns[batch.num_columns - len(leaf.scalars) :]
    texts = [column for column, scalar in zip(scalars, leaf.scalars, strict=True) if is_text(scalar.type)]
    return [given["identity"], *([given["other"]] if leaf.other else []), *texts]


def _by_name(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    """Scalars, the last columns, may have any name, that of another column too: the first of a name counts."""
    return dict(zip(reversed(batch.schema.names), reversed(batch.columns), strict=True))


def ingest(
    leaf: Leaf,
    batch: pa.RecordBatch,
    codes: Sequence[Ints],
    *,
    first: int,
    leaves: int,
    place: int,
    since: int,
    causes: bool,
) -> Ingested:
    """Take in rows that are not before ``since``; ``codes`` are those of :func:`texts_of`.

    They are numbered from ``first``; ``place`` is that of the leaf.
    """
    time = batch.columns[batch.schema.names.index("time")].to_numpy(zero_copy_only=False)
    late = int(np.count_nonzero(time < since))
    if late:
        kept = np.flatnonzero(time >= since)
        batch, time = batch.take(pa.array(kept)), time[kept]
        codes = [each[kept] for each in codes]
    given, coded = _by_name(batch), iter(codes)
    columns: dict[str, Column] = {
        "@identity": next(coded),
        "ref": (first + np.arange(len(time))) * leaves + place,
    }
    if leaf.other:
        columns["@other"] = next(coded)
    for column, scalar in enumerate(leaf.scalars, batch.num_columns - len(leaf.scalars)):
        if is_text(scalar.type):
            columns[scalar_names(scalar.path, text=True)[0]] = next(coded)
        else:
            columns |= _scalar(batch.column(column), scalar.path)
    chunk = None
    if causes and len(time):
        chunk = Chunk(first, int(time.max()), tuple(_plain(given[name]) for name in NAMES))
    return Ingested(sort_by_time(time, columns), chunk, late)


def _scalar(column: pa.Array, path: tuple[str, ...]) -> dict[str, Column]:
    value, null = scalar_names(path, text=False)
    if not column.null_count:
        return {value: column.to_numpy(zero_copy_only=False), null: np.zeros(len(column), bool)}
    filled = column.fill_null(False if pa.types.is_boolean(column.type) else 0)
    return {
        value: filled.to_numpy(zero_copy_only=False),
        null: column.is_null().to_numpy(zero_copy_only=False),
    }


def _plain(column: pa.Array) -> pa.Array:
    return column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The kernel. A step decides everything whose report time lies before the watermark and was not decided yet. In this
# order: rows are taken in; occurrences of relations and of sequences are found; they are put together to matches;
# matches that hold nothing by absence are reported, others wait until nothing more can refute them; what no later event
# can need is forgotten. States are values: the same step can be taken again.

_PENDING = "pending"
_SIGHTS = 1000


class Kernel:
    """A plan at work, in one of several partitions."""

    def __init__(self, plan: PolicyPlan, *, partition: int = 0, partitions: int = 1) -> None:
        self.plan = plan
        self._partition, self._partitions = partition, partitions
        self._grows = plan.grows
        self._aliases = tuple(alias.name for alias in plan.policy.aliases)
        window = plan.policy.window
        related = {each.relation.text: self._related(each, place) for place, each in enumerate(plan.relations)}
        self._pairs = [
            each for each in related.values() if isinstance(each, CorrelationOperator) and each.plan.positive
        ]
        sequences: dict[ConditionLiteral, SequenceOperator] = {
            each.then: SequenceOperator(each, place, related, window) for place, each in enumerate(plan.sequences)
        }
        self._sequences = list(sequences.values())
        self._matching = ConditionMatcher(plan, related, sequences)
        self._refuting = {
            number: AbsenceOperator(each.absence, related, window) for number, each in enumerate(plan.absences)
        }
        self._empty = self._start()
        self._seen: dict[int, tuple[Leaf, int]] = {}
        self._nothing = DetectionBatch(pa.RecordBatch.from_pylist([], schema=schema_of(self._aliases)))

    def _related(self, plan: RelationPlan, place: int) -> RelationOperator:
        policy = self.plan.policy
        match plan.relation.kind:
            case RelationKind.QUERY:
                return QueryOperator(plan)
            case RelationKind.CORRELATION:
                left, right = (self.plan.leaves[use.leaf].leaf for use in plan.uses)
                return CorrelationOperator(plan, place, PairJoin(plan.relation, left, right), policy.window)
            case RelationKind.CONSTRAINT:
                return ConstraintOperator(TimelessRelation(plan.relation, policy, self.plan.ontology))

    def start(self) -> KernelState:
        """What is remembered at first: nothing."""
        return replace(self._empty, identities=type(self._empty.identities)())

    def _start(self) -> KernelState:
        buffers = {f"leaf {place}": empty_buffer(columns_of(each.leaf)) for place, each in enumerate(self.plan.leaves)}
        for pairs in self._pairs:
            buffers[pairs.buffer] = empty_buffer(_occurrence_columns(pairs.aliases, 2))
            if pairs.plan.spends:
                buffers |= {name: empty_buffer({"ref": np.int64}) for name in pairs.spent}
        for sequence in self._sequences:
            buffers[sequence.buffer] = empty_buffer(_occurrence_columns(sequence.aliases, sequence.width))
        buffers[_PENDING] = empty_buffer({**self._matching.columns, "report": np.int64})
        count = len(self.plan.leaves)
        return KernelState(buffers=buffers, causes=(LeafCauses(),) * count, numbers=(0,) * count)

    def save(self, state: KernelState) -> bytes:
        """A state as bytes."""
        saving = self.saving(state)
        while True:
            try:
                next(saving)
            except StopIteration as done:
                saved: bytes = done.value
                return saved

    def saving(self, state: KernelState) -> Generator[None, None, bytes]:
        """The same bit by bit, while steps are taken from this state on."""
        return save(state, self._digest)

    def load(self, stored: bytes) -> KernelState | None:
        """A state from bytes; None if it is that of another plan, or was stored in another way."""
        return load(stored, self._digest, self._empty)

    def united(self, states: Sequence[KernelState]) -> KernelState:
        """What kernels of this plan remember in all partitions, as one remembers it that works in one place."""
        whole = unite_partitions(self.plan, states, self._empty)
        return replace(whole, due=self._due(whole))

    def share(self, whole: KernelState) -> KernelState:
        """What this partition has to remember of what is remembered in one place."""
        own = share_of_partition(self.plan, whole, self._partition, self._partitions, self._empty)
        return replace(own, due=self._due(own))

    @cached_property
    def _digest(self) -> str:
        """What columns and buffers mean depends on this much of a plan."""
        policy = self.plan.policy
        return derived_id(
            policy.window,
            policy.consumption,
            [[alias.name, alias.concept, alias.text] for alias in policy.aliases],
            [each.relation.text for each in self.plan.relations],
            [_text(each.then) for each in self.plan.sequences],
            [_shape(part) for part in policy.conditions],
            [sorted(columns_of(each.leaf)) for each in self.plan.leaves],
        )

    # ── a step ──

    def step(
        self, state: KernelState, rows: Mapping[Leaf, pa.RecordBatch], watermark: int, instances: InstancesByConcept
    ) -> tuple[KernelState, DetectionBatch]:
        """Take in rows, and decide everything before the watermark. Watermarks never go back."""
        watermark = max(watermark, state.watermark)
        if not any(map(len, rows.values())) and (state.due is None or watermark <= state.due):
            return replace(state, watermark=watermark), self._nothing
        taken, late = self._taken_in(state, rows, watermark)
        step = StepContext(
            before=state.watermark,
            now=watermark,
            identities=taken.identities,
            origins=Origins(taken.causes),
            instances=instances,
            buffers=dict(taken.buffers),
        )
        for pairs in self._pairs:
            pairs.find_new(step)
        for sequence in self._sequences:
            sequence.find_new(step)
        matches = self._settled(step, self._matching.find_new(step))
        reported = {id: until for id, until in state.reported.items() if until >= watermark}
        found: pa.RecordBatch | ReportRows = self._nothing.batch
        if len(matches):
            report = DetectionReport(self.plan.policy.name, self._aliases, matches, step.identities, step.origins)
            new = report.new(state.reported)
            reported |= {id: activation + self.plan.recurs for id, activation in new.items()}
            found = ReportRows(report, list(new))
        after = self._forgotten(replace(taken, buffers=step.buffers, reported=reported, watermark=watermark))
        return replace(after, due=self._due(after)), DetectionBatch(found, late)

    def ahead(self, state: KernelState, instances: InstancesByConcept) -> tuple[KernelState, DetectionBatch]:
        """What the events of the very instant of the watermark complete, as far as they came.

        Others of that instant may still come, so no step has decided it. But where more events only bring more
        detections, those that are found can be told; the steps that decide them do not find them again.
        """
        if not self._grows or state.due is None or state.due > state.watermark:
            return state, self._nothing
        after, found = self.step(state, {}, state.watermark + 1, instances)
        if not len(found):
            return state, self._nothing
        return replace(state, reported={**state.reported, **after.reported}), found

    def _taken_in(
        self, state: KernelState, rows: Mapping[Leaf, pa.RecordBatch], watermark: int
    ) -> tuple[KernelState, int]:
        buffers, causes, numbers, late = dict(state.buffers), list(state.causes), list(state.numbers), 0
        given = {place: batch for place, batch in self._by_place(rows).items() if place >= 0 and len(batch)}
        codes = self._coded(state.identities, given)
        for place, each in enumerate(self.plan.leaves):
            name = f"leaf {place}"
            batch, new = given.get(place), buffers[name].open.slice(0, 0)
            if batch is None and not len(buffers[name].open):
                continue
            if batch is not None:
                ingested = ingest(
                    each.leaf,
                    batch,
                    codes[place],
                    first=numbers[place],
                    leaves=len(self.plan.leaves),
                    place=place,
                    since=state.watermark,
                    causes=each.causes,
                )
                new, late = ingested.table, late + ingested.late
                numbers[place] += len(new)
                if ingested.chunk is not None:
                    causes[place] = causes[place].extended(ingested.chunk)
            buffers[name], _ = buffers[name].extended(new, watermark)
        return replace(state, buffers=buffers, causes=tuple(causes), numbers=tuple(numbers)), late

    def _coded(self, identities: IdentityCodes, given: Mapping[int, pa.RecordBatch]) -> dict[int, list[Ints]]:
        """The codes of all texts of the rows of each leaf."""
        texts = {place: texts_of(self.plan.leaves[place].leaf, batch) for place, batch in given.items()}
        if not texts:
            return {}
        codes = iter(identities.encode_all([column for columns in texts.values() for column in columns]))
        return {place: [next(codes) for _ in columns] for place, columns in texts.items()}

    def _by_place(self, rows: Mapping[Leaf, pa.RecordBatch]) -> dict[int, pa.RecordBatch]:
        """Rows by the place of their leaf. Leaves are known by sight: they are large, and looked at in every step."""
        found = {}
        if len(self._seen) > _SIGHTS:
            self._seen.clear()
        for leaf, batch in rows.items():
            if id(leaf) not in self._seen:
                place = next((place for place, each in enumerate(self.plan.leaves) if each.leaf == leaf), -1)
                self._seen[id(leaf)] = (leaf, place)
            found[self._seen[id(leaf)][1]] = batch
        return found

    def _settled(self, step: StepContext, groups: TablesByBound) -> SortedTable:
        """The matches that can be reported now: new ones that wait for nothing, and those that have waited enough."""
        waiting = [step.buffers[_PENDING].open]
        for table in groups.values():
            own = self._own(step, self._with_report(table))
            waiting.append(own)
        pending = concat_tables([each for each in waiting if len(each)] or waiting[:1])
        is_due = pending["report"] < step.now
        if not is_due.any():
            step.buffers[_PENDING] = WatermarkBuffer(step.buffers[_PENDING].decided, pending)
            return pending.slice(0, 0)
        step.buffers[_PENDING] = WatermarkBuffer(step.buffers[_PENDING].decided, pending.take(~is_due))
        due = pending.take(is_due)
        return due.take(self._holding(step, due)) if len(due) and self._refuting else due

    def _with_report(self, table: SortedTable) -> SortedTable:
        wait = np.zeros(len(table), np.int64)
        for number, each in enumerate(self.plan.absences):
            wait = np.where(table[f"h{number}"], np.maximum(wait, each.wait), wait)
        return SortedTable(table.time, {**table.columns, "report": table.time + wait})

    def _own(self, step: StepContext, table: SortedTable) -> SortedTable:
        """Without matches that another partition finds."""
        if self._partitions == 1 or not self.plan.partition:
            return table
        codes, where = np.unique(table[f"@{self.plan.partition}"], return_inverse=True)
        own = partition_of(step.identities.decode(codes), self._partitions) == self._partition
        return table.take(np.flatnonzero(own[where]))

    def _holding(self, step: StepContext, due: SortedTable) -> Ints:
        """The matches beside which all is absent that is to be, and no branch could be met instead of it."""
        held = np.ones(len(due), bool)
        for names, group in self._by_bound(due):
            for number, refuting in self._refuting.items():
                rows = np.flatnonzero(group & held & due[f"h{number}"])
                if not len(rows):
                    continue
                held[rows[refuting.refuted(step, due.take(rows), names)]] = False
                rows = rows[held[rows]]
                if len(rows):
                    held[rows[self._matching.could_be_met(step, due.take(rows), names, number)]] = False
        return np.flatnonzero(held)

    def _by_bound(self, due: SortedTable) -> Iterator[tuple[frozenset[str], Bools]]:
        """The sets of aliases that matches bind, and which matches do."""
        rest = np.ones(len(due), bool)
        while rest.any():
            first = int(np.argmax(rest))
            group = rest.copy()
            bound = {name: due[f"@{name}"] >= 0 for name in self._aliases}
            for column in bound.values():
                group &= column == column[first]
            yield frozenset(name for name, column in bound.items() if column[first]), group
            rest &= ~group

    # ── afterwards ──

    def _forgotten(self, state: KernelState) -> KernelState:
        now, buffers = state.watermark, dict(state.buffers)
        for name, age in self._ages.items():
            buffers[name] = buffers[name].since(now - age)
        causes = tuple(each.since(now - self.plan.causes) for each in state.causes)
        return replace(state, buffers=buffers, causes=causes).pruned()

    @cached_property
    def _ages(self) -> dict[str, int]:
        """How long what is in each buffer is remembered."""
        ages = {f"leaf {place}": each.kept for place, each in enumerate(self.plan.leaves)}
        for pairs in self._pairs:
            ages[pairs.buffer] = pairs.plan.kept
            if pairs.plan.spends:
                ages |= dict.fromkeys(pairs.spent, self.plan.policy.window)
        return ages | {sequence.buffer: sequence.kept for sequence in self._sequences}

    def _due(self, state: KernelState) -> int | None:
        """What is decided next: a row, a match that waits, or a sequence whose second part has not come."""
        times = [
            int(state.buffers[f"leaf {place}"].open.time[0])
            for place in range(len(self.plan.leaves))
            if len(state.buffers[f"leaf {place}"].open)
        ]
        pending = state.buffers[_PENDING].open
        if len(pending):
            times.append(int(pending["report"].min()))
        for sequence in self._sequences:
            if sequence.ahead:
                times += sequence.next(state.buffers, state.watermark)
        return min(times, default=None)


def _occurrence_columns(aliases: tuple[str, ...], width: int) -> dict[str, type]:
    names = [*(f"@{name}" for name in aliases), *(f"r{ref}" for ref in range(width))]
    return dict.fromkeys(names, np.int64)


def _text(then: SequenceLiteral) -> list[object]:
    gaps = [[gap.absent.relation.text, gap.within] for gap in then.between]
    return [[part.relation.text, part.negated] for part in (then.first, then.second)] + [then.within, gaps]


def _shape(part: ConditionPart) -> list[object]:
    """A part of the conditions with all that matches are made of."""
    match part:
        case RelationLiteral():
            return ["is", part.relation.text, part.negated, part.place]
        case SequenceLiteral():
            return ["then", _text(part), [each.place for each in part.parts]]
        case Absence(literals=literals):
            return ["absent", *map(_shape, literals)]
        case Disjunction(branches=branches, absent=absent):
            return ["or", [list(map(_shape, branch)) for branch in branches], list(map(_shape, absent))]
        case _:
            assert_never(part)
