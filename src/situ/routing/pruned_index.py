"""Match indexes without the filters that an advertisement's promise excludes.

An advertisement may promise that a condition is true of its events. A filter that contradicts the condition is true of
none of them, so it need not be tested. `PrunedIndexes` finds the index for a row: the one of its type, or one made for
the promise that the row was published under. It knows filters and their index. What is promised it asks of
`AdvertisementPromises`.

The promise is tested on each row before its index is used. So nothing depends on when or by whom the row was let in:
rows that were published under an earlier promise of the same advertisement go the usual way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from situ.event.row import Row
from situ.routing.filter import Filter
from situ.routing.filter_index import Segment, TypeIndex
from situ.routing.normal_form import INCOMPARABLE, Atom, Path, value_set


class AdvertisementPromises(Protocol):
    """Says what advertisements promise of their events beside the type."""

    def promised(self, ad: str, type: str) -> Sequence[Filter]:
        """Filters of which one is true for every event of this type under the advertisement; none: nothing is known."""


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# An index for a promise costs a look at every filter, and memory. It is made when that pays: when what was spent on
# testing filters on events under the promise would have paid for it. So making indexes never takes longer than was
# spent already, however many promises there are, and publishers that say little get none. Events that find what they
# match without many tests gain nothing, and none is made for them.
#
# Segments of an index do not change, so the pruned ones are kept by the segments they come from: after a filter more or
# less, one small segment is pruned again.

_FEW_TESTS = 64
"""Filters tested on an event that cost less than to test the promise and to look events up in smaller batches."""
_LOOK = 25
"""A look at a filter costs about as much as so many tests."""
_LEAST_FILTERS = 32
_WORTH = 0.9
"""The share of filters that may be left at most."""
_MOST_REMEMBERED = 100_000
_MOST_KEPT = 4
"""So many times the filters of an index may be in its pruned ones together; beyond that all are made again."""

Holds = Callable[[Filter, Row], bool]


class _Pruning:
    """One promise for events of one type: what was spent on them so far, and the index if it is made."""

    __slots__ = ("_conjunctions", "events", "index", "promised", "pruned", "segments")

    def __init__(self, promised: tuple[Filter, ...]) -> None:
        self.promised = promised
        self._conjunctions = [conjunction for each in promised for conjunction in each.by_path]
        self.forget()

    def forget(self) -> None:
        self.events = 0
        """Looked up since the last index was made."""
        self.index: TypeIndex | None = None
        """That the pruned one was made from."""
        self.pruned: TypeIndex | None = None
        """None: it is not worth it."""
        self.segments: dict[Segment, Segment | None] = {}

    def excludes(self, wanted: Filter) -> bool:
        """Whether the filter is true of no event under the promise."""
        return not any(
            _go_together(promised, conjunction) for conjunction in wanted.by_path for promised in self._conjunctions
        )

    def pays(self, index: TypeIndex) -> bool:
        """Whether as much was spent by now as making the pruned index takes."""
        tests = index.tests_per_event
        if tests < _FEW_TESTS:
            return False
        new = sum(len(each.filters) for each in index.segments if each not in self.segments)
        return self.events * tests >= _LOOK * max(new, _LEAST_FILTERS)

    def prune(self, index: TypeIndex) -> None:
        pruned, self.segments = index.pruned(self.excludes, self.segments)
        self.pruned = pruned if pruned.filters <= _WORTH * index.filters else None
        self.index, self.events = index, 0


def _go_together(promised: Mapping[Path, tuple[Atom, ...]], asked: Mapping[Path, tuple[Atom, ...]]) -> bool:
    """Whether an event may be true of both; only what both ask of can tell that it is not."""
    for path, atoms in asked.items():
        if path in promised:
            try:
                if not value_set((*promised[path], *atoms)).possible:
                    return False
            except INCOMPARABLE:
                continue
    return True


class PrunedIndexes:
    """The pruned indexes of one snapshot of subscriptions and one of promises. Takes over what is still true."""

    def __init__(self, promises: AdvertisementPromises, before: PrunedIndexes | None = None) -> None:
        self.promises = promises
        self._former = {} if before is None else before._by_promise
        self._by_promise: dict[tuple[str, tuple[Filter, ...]], _Pruning] = {}
        self._by_ad: dict[tuple[str, str], _Pruning | None] = {}
        if before is not None and before.promises is promises:
            self._former, self._by_promise, self._by_ad = before._former, before._by_promise, before._by_ad

    def choose(self, row: Row, index: TypeIndex, holds: Holds) -> TypeIndex:
        """The index to look the row up in; ``index`` has all filters on its type."""
        key = (row.type, row.ad)
        pruning = self._by_ad[key] if key in self._by_ad else self._learn(*key)
        if pruning is None:
            return index
        if pruning.index is not index:
            pruning.events += 1
            if not pruning.pays(index):
                return index
            pruning.prune(index)
            self._forget_others(pruning, index)
        pruned = pruning.pruned
        return pruned if pruned is not None and any(holds(each, row) for each in pruning.promised) else index

    def _learn(self, type: str, ad: str) -> _Pruning | None:
        promised = tuple(self.promises.promised(ad, type)) if ad else ()
        found: _Pruning | None = None
        if promised and not any(each.always for each in promised):
            key = (type, promised)
            found = self._by_promise.get(key) or self._former.get(key) or _Pruning(promised)
            self._by_promise[key] = found
        if len(self._by_ad) >= _MOST_REMEMBERED:
            self._by_ad.clear()
        self._by_ad[type, ad] = found
        return found

    def _forget_others(self, made: _Pruning, index: TypeIndex) -> None:
        all_made = [each for each in self._by_promise.values() if each.pruned is not None]
        if sum(each.pruned.filters for each in all_made if each.pruned is not None) > _MOST_KEPT * index.filters:
            for each in all_made:
                if each is not made:
                    each.forget()
