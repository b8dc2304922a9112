"""Values that stand until they are replaced: a push source with ``keep: last 10 min`` is as if it repeated itself.

An observation counts again after each window of the policy, as long as no later one of its identity came through its
push source, and as long as its source lets it. What was joined to it when it came is joined to its repetitions. That a
value is replaced is seen on *witnesses*: rows of every observation through such a source, whatever it says, which
enrichment makes like those of other leaves. A repetition is decided with the watermark that passes its time; so it goes
to the kernel in the step that decides it, not before.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from situ.lang.records import replace
from situ.policies.enrichment.rows import BASE, concat, from_blob, to_blob
from situ.policies.kernel.detections import DetectionBatch
from situ.policies.kernel.kernel import Kernel
from situ.policies.kernel.state import KernelState
from situ.policies.model import InstancesByConcept
from situ.policies.plan import Leaf, LeafPlan, PolicyPlan, partition_rows
from situ.sources.model import Push

Ints = np.ndarray[tuple[int], np.dtype[np.int64]]

_MICROSECOND = timedelta(microseconds=1)
_NEVER = 1 << 61
_TIME, _ID, _PUSH = BASE.names.index("time"), BASE.names.index("id"), BASE.names.index("push")
_FORMAT = b"1"
MOST = 1 << 17
"""About so many repetitions are made at once: after a silence there may be more than memory holds."""


def witness_leaf(push: Push) -> Leaf:
    """The leaf whose rows show that a value of a push source is replaced."""
    return Leaf(concept=push.concept, attribute=push.attribute)


def plan_kept_values(plan: PolicyPlan, pushes: Mapping[str, Push]) -> tuple[PolicyPlan, KeptValues]:
    """The plan of a policy with the witnesses that it needs among its leaves, and what is repeated of the others."""
    leaves = [each.leaf for each in plan.leaves]
    keeping = KeptValues(leaves, pushes, plan.policy.window)
    more = [LeafPlan(leaf=leaf, kept=0, causes=False, column="") for leaf in keeping.witnesses if leaf not in leaves]
    return replace(plan, leaves=(*plan.leaves, *more)), keeping


@dataclass(frozen=True, slots=True)
class KeptRows:
    """Rows that may be repeated, and their witnesses. Before a watermark beyond ``due`` nothing is repeated."""

    rows: Mapping[Leaf, pa.RecordBatch] = field(default_factory=dict)
    due: int | None = None


class KeptValues:
    """What is repeated of the rows of some leaves, for a policy with this window."""

    def __init__(self, leaves: Iterable[Leaf], pushes: Mapping[str, Push], window: int) -> None:
        repeats = {name: each.keep // _MICROSECOND // window for name, each in pushes.items() if each.keep}
        self._repeats = {name: count for name, count in repeats.items() if count}
        self._window = window
        self.leaves = tuple(leaves)
        self.witnesses = tuple(dict.fromkeys(witness_leaf(pushes[name]) for name in self._repeats))

    def __bool__(self) -> bool:
        return bool(self._repeats)

    def step(
        self, kept: KeptRows, rows: Mapping[Leaf, pa.RecordBatch], before: int, watermark: int
    ) -> tuple[KeptRows, dict[Leaf, pa.RecordBatch]]:
        """The rows with the repetitions whose times the watermark passes; ``before`` is where it was."""
        if not self:
            return kept, dict(rows)
        taken = {
            leaf: concat(leaf, [batch for batch in (kept.rows.get(leaf), self._new(rows.get(leaf), before)) if batch])
            for leaf in dict.fromkeys((*self.leaves, *self.witnesses))
        }
        until = _Replaced([taken[leaf] for leaf in self.witnesses])
        given = {leaf: rows[leaf] for leaf in self.leaves if leaf in rows}
        alive: dict[Leaf, pa.RecordBatch] = {}
        due = _NEVER
        for leaf, batch in taken.items():
            if not batch.num_rows:
                continue
            life = _Life(batch, self._counts(batch), until.of(batch), self._window)
            alive[leaf] = batch.take(pa.array(np.flatnonzero(life.lasts(watermark))))
            if leaf in self.leaves:
                again = life.repeated(before, watermark)
                if again.num_rows:
                    given[leaf] = concat(leaf, [given[leaf], again]) if leaf in given else again
                due = min(due, life.next(watermark))
        return KeptRows(
            {leaf: batch for leaf, batch in alive.items() if batch.num_rows}, None if due == _NEVER else due
        ), given

    def ends(self, kept: KeptRows, rows: Mapping[Leaf, pa.RecordBatch], before: int, watermark: int) -> list[int]:
        """Where to stop on the way to the watermark, so that not too much is repeated at once."""
        count = sum(map(len, kept.rows.values())) + sum(map(len, rows.values()))
        if not self or count * ((watermark - before) // self._window + 1) <= MOST:
            return [watermark]
        given = [batch for batch in (*kept.rows.values(), *rows.values()) if batch.num_rows]
        times = [batch.column(_TIME).to_numpy() for batch in given]
        start = max(before, min(int(each.min()) for each in times))
        last = max(int(each.max()) for each in times) + max(self._repeats.values()) * self._window
        span = max(MOST // count, 1) * self._window
        return [*range(start + span, min(last + 1, watermark), span), watermark]

    def _new(self, batch: pa.RecordBatch | None, before: int) -> pa.RecordBatch | None:
        """What comes in time, through push sources that keep their values."""
        if batch is None or not batch.num_rows:
            return None
        wanted = pc.is_in(batch.column(_PUSH), value_set=pa.array(list(self._repeats), pa.string()))
        return batch.filter(pc.and_(wanted, pc.greater_equal(batch.column(_TIME), before)))

    def _counts(self, batch: pa.RecordBatch) -> Ints:
        """How often each row is repeated at most."""
        names = list(self._repeats)
        places = pc.index_in(batch.column(_PUSH), value_set=pa.array(names, pa.string()))
        found: Ints = np.array([self._repeats[name] for name in names], np.int64)[places.to_numpy(zero_copy_only=False)]
        return found


class _Replaced:
    """When the value of an observation is replaced: the time of the next one of its identity and push source."""

    def __init__(self, witnesses: Iterable[pa.RecordBatch]) -> None:
        rows = [pa.Table.from_arrays(each.columns[: len(BASE)], schema=BASE) for each in witnesses]
        columns = pa.concat_tables(rows).group_by(BASE.names).aggregate([])  # a row may be seen by two witnesses
        order = ("push", "identity", "time", "id", "source")
        places = pc.sort_indices(columns, sort_keys=[(name, "ascending") for name in order])
        self._sorted = columns.take(places)
        same: pa.Array = pa.array([], pa.bool_())
        until = np.full(len(columns), _NEVER, np.int64)
        if len(columns) > 1:
            one, other = self._sorted.slice(0, len(columns) - 1), self._sorted.slice(1)
            same = pc.and_(pc.equal(one["push"], other["push"]), pc.equal(one["identity"], other["identity"]))
            next_time = other["time"].to_numpy()
            until[:-1] = np.where(same.to_numpy(), next_time, _NEVER)
        self._sorted = self._sorted.append_column("until", pa.array(until))

    def of(self, batch: pa.RecordBatch) -> Ints:
        """For each of these rows."""
        asked = pa.Table.from_arrays(batch.columns[: len(BASE)], schema=BASE)
        asked = asked.append_column("row", pa.array(np.arange(batch.num_rows)))
        joined = asked.join(self._sorted, keys=BASE.names, join_type="inner")
        found = np.full(batch.num_rows, _NEVER, np.int64)
        found[joined["row"].to_numpy()] = joined["until"].to_numpy()
        return found


class _Life:
    """Of each row, at which times it is repeated: the first after a window, the last before it ends."""

    def __init__(self, batch: pa.RecordBatch, counts: Ints, until: Ints, window: int) -> None:
        self._batch, self._window = batch, window
        self._time: Ints = batch.column(_TIME).to_numpy()
        self._last: Ints = np.minimum(counts, (until - 1 - self._time) // window)
        self._until, self._counts = until, counts

    def lasts(self, watermark: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which rows may be repeated at that time or later, or tell of others that they are not."""
        found: np.ndarray[tuple[int], np.dtype[np.bool_]] = (self._time + self._counts * self._window >= watermark) & (
            self._until > watermark
        )
        return found

    def repeated(self, start: int, end: int) -> pa.RecordBatch:
        """The repetitions in this time, its end not included."""
        first = np.maximum(1, -((self._time - start) // self._window))
        last = np.minimum(self._last, (end - 1 - self._time) // self._window)
        many = np.maximum(last - first + 1, 0)
        rows = np.repeat(np.arange(len(many)), many)
        offsets = np.arange(len(rows)) - np.repeat(np.cumsum(many) - many, many)
        times = first[rows] + offsets
        arrays = self._batch.take(pa.array(rows)).columns
        arrays[_TIME] = pa.array(self._time[rows] + times * self._window)
        arrays[_ID] = pc.binary_join_element_wise(arrays[_ID], pa.array(times).cast(pa.string()), "+")
        return pa.RecordBatch.from_arrays(arrays, schema=self._batch.schema)

    def next(self, watermark: int) -> int:
        """When something is repeated next."""
        first = np.maximum(1, -((self._time - watermark) // self._window))
        coming = self._time[first <= self._last] + first[first <= self._last] * self._window
        return int(coming.min()) if len(coming) else _NEVER


# ── with a kernel ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptValuesState(KernelState):
    """What a kernel remembers, and what is repeated."""

    kept: KeptRows = field(default_factory=KeptRows)


class KeptValuesKernel(Kernel):
    """A kernel that is also given what is repeated: of a plan with witnesses, which are not for the kernel itself."""

    def __init__(self, plan: PolicyPlan, keeping: KeptValues, *, partition: int = 0, partitions: int = 1) -> None:
        own = tuple(each for each in plan.leaves if each.leaf in keeping.leaves)
        super().__init__(replace(plan, leaves=own), partition=partition, partitions=partitions)
        self._keeping = keeping
        self._witnessed = plan
        self._numbered = tuple(each.leaf for each in plan.leaves)
        self._grows = False  # what comes at the same instant may take the place of what is kept

    def start(self) -> KeptValuesState:
        return _with_kept(super().start(), KeptRows())

    def step(
        self, state: KernelState, rows: Mapping[Leaf, pa.RecordBatch], watermark: int, instances: InstancesByConcept
    ) -> tuple[KernelState, DetectionBatch]:
        assert isinstance(state, KeptValuesState)
        *stops, last = self._keeping.ends(state.kept, rows, state.watermark, max(watermark, state.watermark))
        if not stops:
            return self._one_step(state, rows, last, instances)
        found = []
        for stop in (*stops, last):
            state, detected = self._one_step(state, rows, stop, instances)
            found.append(detected)
            rows = {}
        return state, DetectionBatch(
            pa.concat_batches([each.batch for each in found]), sum(each.late for each in found)
        )

    def _one_step(
        self, state: KeptValuesState, rows: Mapping[Leaf, pa.RecordBatch], now: int, instances: InstancesByConcept
    ) -> tuple[KeptValuesState, DetectionBatch]:
        kept, given = state.kept, rows
        if any(map(len, rows.values())) or (kept.due is not None and now > kept.due):
            kept, given = self._keeping.step(kept, rows, state.watermark, now)
        after, detected = super().step(state, given, now, instances)
        return _with_kept(after, kept), detected

    def united(self, states: Sequence[KernelState]) -> KeptValuesState:
        kept = [each.kept for each in states if isinstance(each, KeptValuesState)]
        rows = {}
        for each in self._witnessed.leaves:
            some = kept if each.column and self._witnessed.partition else kept[:1]  # else every partition has all
            if found := [one.rows[each.leaf] for one in some if each.leaf in one.rows]:
                rows[each.leaf] = concat(each.leaf, found)
        due = min((each.due for each in kept if each.due is not None), default=None)
        return _with_kept(super().united(states), KeptRows(rows, due))

    def share(self, whole: KernelState) -> KeptValuesState:
        assert isinstance(whole, KeptValuesState)
        shares = {
            leaf: partition_rows(self._witnessed, leaf, batch, self._partitions)[self._partition]
            for leaf, batch in whole.kept.rows.items()
        }
        kept = {leaf: batch for leaf, batch in shares.items() if batch.num_rows}
        return _with_kept(super().share(whole), KeptRows(kept, whole.kept.due if kept else None))

    def saving(self, state: KernelState) -> Generator[None, None, bytes]:
        assert isinstance(state, KeptValuesState)
        numbers = {leaf: number for number, leaf in enumerate(self._numbered)}
        blob = to_blob({numbers[leaf]: batch for leaf, batch in state.kept.rows.items()})
        due = b"" if state.kept.due is None else b"%d" % state.kept.due
        yield
        inner = yield from super().saving(state)
        return b"%b %d %b\n" % (_FORMAT, len(inner), due) + inner + blob

    def load(self, stored: bytes) -> KeptValuesState | None:
        head, _, rest = stored.partition(b"\n")
        parts = head.split(b" ")
        if len(parts) != 3 or parts[0] != _FORMAT:
            return None
        size = int(parts[1])
        inner = super().load(rest[:size])
        if inner is None:
            return None
        found = from_blob(rest[size:])
        rows = {self._numbered[number]: concat(self._numbered[number], batches) for number, batches in found.items()}
        return _with_kept(inner, KeptRows(rows, int(parts[2]) if parts[2] else None))


def _with_kept(state: KernelState, kept: KeptRows) -> KeptValuesState:
    """Something is due, too, when something is repeated."""
    known = {each.name: getattr(state, each.name) for each in fields(KernelState)}
    due = min((each for each in (state.due, kept.due) if each is not None), default=None)
    return KeptValuesState(**{**known, "due": due}, kept=kept)
