"""The filter index of one event type: which of many filters does an event match?

`Intervals` is a segment tree over ranges, `Segment` files some filters by their conditions, `TypeIndex` holds the
segments of a type and grows with new filters.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from situ.event.data_reader import IN_ROWS, Data, envelope_value, read_envelope, row_reader
from situ.event.instants import microseconds
from situ.event.row import Row
from situ.lang.types.json_codec import TYPE_KEY
from situ.lang.types.model import BOOLEAN, DOUBLE, INT, LONG, STRING, ListOf, Struct, Type, plain
from situ.lang.types.table import Types
from situ.routing.filter import Filter
from situ.routing.normal_form import (
    Atom,
    Conjunction,
    IsAbsent,
    IsPresent,
    NoneOf,
    OneOf,
    Opaque,
    Path,
    Prefix,
    RangeBound,
)

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Intervals: which of many ranges does a value lie in? A segment tree, built once, searched for one value or many. The
# bounds that occur divide all values into places: each bound itself, and the gaps before, between and behind them. A
# range covers a run of places and is filed under the few nodes of a binary tree that make up this run, so a value is
# found by walking from its place up to the root: a logarithm of steps, whatever the ranges overlap.

T = TypeVar("T")

Low = tuple[Any, bool] | None
"""A bound and whether it is open; None: there is none."""


class Intervals(Generic[T]):
    """Ranges of ordered values, each with something filed under it.

    ``dtype`` says that bounds and values are numbers numpy can hold: then many are searched at once.
    """

    def __init__(self, ranges: Iterable[tuple[Low, Low, T]], dtype: type[np.float64] | type[np.int64] | None) -> None:
        ranges = list(ranges)
        self._bounds = sorted({bound[0] for low, high, _ in ranges for bound in (low, high) if bound is not None})
        places = 2 * len(self._bounds) + 1
        self._size = 1 << (places - 1).bit_length() if places > 1 else 1
        filed: dict[int, list[T]] = {}
        for low, high, item in ranges:
            first = 0 if low is None else 2 * self._index(low[0]) + (2 if low[1] else 1)
            last = places - 1 if high is None else 2 * self._index(high[0]) + (0 if high[1] else 1)
            for node in self._nodes(first, last):
                filed.setdefault(node, []).append(item)
        self._filed = {node: tuple(items) for node, items in filed.items()}
        self._dtype = dtype
        if dtype is not None:
            self._array: npt.NDArray[Any] = np.array(self._bounds, dtype=dtype)
            self._occupied = np.zeros(2 * self._size, dtype=np.bool_)
            self._occupied[list(filed)] = True

    def items(self) -> Iterable[T]:
        """All that is filed here; some of it several times."""
        return (item for items in self._filed.values() for item in items)

    def at(self, value: Any) -> list[T]:
        """What is filed under the ranges the value lies in."""
        index = bisect_left(self._bounds, value)
        exact = index < len(self._bounds) and self._bounds[index] == value
        node = self._size + 2 * index + exact
        found: list[T] = []
        filed = self._filed
        while node:
            if node in filed:
                found += filed[node]
            node >>= 1
        return found

    def at_each(self, values: Sequence[Any]) -> Iterable[tuple[int, tuple[T, ...]]]:
        """The same for many values, as pairs of a place in ``values`` and what was found there, in pieces."""
        if self._dtype is None:
            for place, value in enumerate(values):
                if found := self.at(value):
                    yield place, tuple(found)
            return
        given = np.array(values, dtype=self._dtype)
        index = np.searchsorted(self._array, given)
        node = self._size + 2 * index
        if len(self._bounds):
            last = len(self._bounds) - 1
            node += (index <= last) & (self._array[np.minimum(index, last)] == given)
        filed = self._filed
        for _ in range(self._size.bit_length()):
            places = np.flatnonzero(self._occupied[node])
            for place, found in zip(places.tolist(), node[places].tolist(), strict=True):
                yield place, filed[found]
            node >>= 1

    def _index(self, bound: Any) -> int:
        return bisect_left(self._bounds, bound)

    def _nodes(self, first: int, last: int) -> Iterable[int]:
        """The nodes that together cover the places from ``first`` to ``last``; none if there are no such places."""
        left, right = first + self._size, last + self._size + 1
        while left < right:
            if left & 1:
                yield left
                left += 1
            if right & 1:
                right -= 1
                yield right
            left >>= 1
            right >>= 1


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# A segment: some filters on one event type, filed where an event that may match them finds them.
#
# Each AND of a filter is filed under one of its conditions, the one that probably lets the fewest events through: an
# attribute that is one of some values, a text that begins like this, a range, an attribute that is absent. An event
# looks up its attributes and gets the filters it may match: *surely*, where the condition was all that is asked, else
# they are tested. What has no such condition is tested against every event; the length of that list is a figure to
# watch.

Entry = tuple[Filter, bool]
"""A filter that may match, and whether it surely does."""

EVENT_TIME: Path = ("event", "time")
_EVENT_TYPE: Path = ("event", "type")
_NO_ENTRIES: tuple[Entry, ...] = ()
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


class Segment:
    """Filters on events of one type, which does not change; ``kinds`` gives the type of each attribute by its path."""

    __slots__ = ("absent", "always", "asks_for_type", "equal", "filters", "names", "prefixes", "ranges", "scanned")

    def __init__(self, event: str, filters: Sequence[Filter], kinds: Mapping[Path, Type]) -> None:
        self.filters = tuple(filters)
        reading = [each.data for each in filters if not each.always]
        self.names = (
            None if None in reading else frozenset[str]().union(*(each for each in reading if each is not None))
        )
        """The attributes of the data that are read by any of the filters; None: the data as a whole."""
        self.asks_for_type = any(
            isinstance(atom, OneOf | NoneOf) and atom.path == _EVENT_TYPE
            for each in filters
            for conjunction in each.conjunctions
            for atom in conjunction
        )
        filing = _SegmentBuilder(event, filters, kinds)
        self.always: tuple[Filter, ...] = tuple(dict.fromkeys(filing.always))
        self.scanned: tuple[Filter, ...] = tuple(dict.fromkeys(filing.scanned))
        self.equal = {
            path: {value: tuple(entries) for value, entries in table.items()} for path, table in filing.equal.items()
        }
        self.prefixes = {path: Prefixes(found) for path, found in filing.prefixes.items()}
        self.ranges = {path: Intervals(found, _dtype(kinds.get(path))) for path, found in filing.ranges.items()}
        self.absent = {path: tuple(entries) for path, entries in filing.absent.items()}

    @property
    def paths(self) -> set[Path]:
        """The attributes that events are looked up by."""
        return {*self.equal, *self.prefixes, *self.ranges, *self.absent}

    def filed_under(self, wanted: Filter) -> Iterator[str]:
        """In words, by what an event finds this filter."""
        for path, table in self.equal.items():
            if any(each is wanted for entries in table.values() for each, _ in entries):
                yield f"the value of `{'.'.join(path)}`"
        for path, prefixes in self.prefixes.items():
            if prefixes.holds(wanted):
                yield f"the beginning of `{'.'.join(path)}`"
        for path, ranges in self.ranges.items():
            if any(each is wanted for each, _ in ranges.items()):
                yield f"the range that `{'.'.join(path)}` lies in"
        for path, entries in self.absent.items():
            if any(each is wanted for each, _ in entries):
                yield f"the absence of `{'.'.join(path)}`"
        if wanted in self.always:
            yield "its type alone"
        if wanted in self.scanned:
            yield "nothing: it is tested against every event of the type"

    def find(self, values: Mapping[Path, Any]) -> list[Entry]:
        """The filters that one event may match, besides those always or never looked up."""
        found: list[Entry] = []
        for path, table in self.equal.items():
            found += table.get(values[path], _NO_ENTRIES)
        for path, prefixes in self.prefixes.items():
            if (text := values[path]) is not None:
                found += prefixes.at(text)
        for path, ranges in self.ranges.items():
            if (value := values[path]) is not None:
                found += ranges.at(value)
        for path, entries in self.absent.items():
            if values[path] is None:
                found += entries
        return found

    def find_each(self, columns: Mapping[Path, Sequence[Any]], found: list[list[Entry]]) -> None:
        """The same for many events, given by the values of each attribute; adds to what was ``found``."""
        for path, table in self.equal.items():
            for place, value in enumerate(columns[path]):
                if value in table:
                    found[place] += table[value]
        for path, prefixes in self.prefixes.items():
            for place, text in enumerate(columns[path]):
                if text is not None:
                    found[place] += prefixes.at(text)
        for path, ranges in self.ranges.items():
            column = columns[path]
            places = [place for place, value in enumerate(column) if value is not None]
            given = column if len(places) == len(column) else [column[place] for place in places]
            for index, entries in ranges.at_each(given):
                found[places[index]] += entries
        for path, nothing in self.absent.items():
            for place, value in enumerate(columns[path]):
                if value is None:
                    found[place] += nothing


class Prefixes:
    """Beginnings of texts, by their length: as many look-ups as there are lengths."""

    __slots__ = ("_lengths", "_table")

    def __init__(self, entries: Iterable[tuple[str, Entry]]) -> None:
        table: dict[str, list[Entry]] = {}
        for text, entry in entries:
            table.setdefault(text, []).append(entry)
        self._table = {text: tuple(found) for text, found in table.items()}
        self._lengths = sorted({len(text) for text in table})

    def holds(self, wanted: Filter) -> bool:
        return any(each is wanted for entries in self._table.values() for each, _ in entries)

    def at(self, text: str) -> list[Entry]:
        found: list[Entry] = []
        length = len(text)
        for each in self._lengths:
            if each > length:
                break
            found += self._table.get(text[:each], _NO_ENTRIES)
        return found


class _SegmentBuilder:
    """Decides where each AND goes."""

    def __init__(self, event: str, filters: Sequence[Filter], kinds: Mapping[Path, Type]) -> None:
        self.always: list[Filter] = []
        self.scanned: list[Filter] = []
        self.equal: dict[Path, dict[Any, list[Entry]]] = {}
        self.prefixes: dict[Path, list[tuple[str, Entry]]] = {}
        self.ranges: dict[Path, list[tuple[Low, Low, Entry]]] = {}
        self.absent: dict[Path, list[Entry]] = {}
        self._kinds = kinds
        asked = [
            (each, resolved)
            for each in filters
            for conjunction in each.conjunctions
            if (resolved := _for_event(event, conjunction)) is not None
        ]
        self._constants = _constants(conjunction for _, conjunction in asked)
        self._spans = {
            path: max(values) - min(values)
            for path, values in self._constants.items()
            if _dtype(kinds.get(path)) is not None
        }
        for each, conjunction in asked:
            self._file(each, conjunction)

    def _file(self, wanted: Filter, conjunction: Conjunction) -> None:
        if not conjunction:
            self.always.append(wanted)
            return
        choices = [self._choice(atom, conjunction) for atom in conjunction]
        share, atom, covered = min(choices, key=lambda choice: choice[0])
        if share >= 1:
            self.scanned.append(wanted)
            return
        entry = (wanted, covered == len(conjunction))
        match atom:
            case OneOf(path=path, values=values):
                table = self.equal.setdefault(path, {})
                for value in values:
                    table.setdefault(value, []).append(entry)
            case Prefix(path=path, text=text):
                self.prefixes.setdefault(path, []).append((text, entry))
            case RangeBound(path=path):
                self.ranges.setdefault(path, []).append((*self._range(path, conjunction), entry))
            case IsAbsent(path=path):
                self.absent.setdefault(path, []).append(entry)

    def _choice(self, atom: Atom, conjunction: Conjunction) -> tuple[float, Atom, int]:
        """The share of events that the atom probably lets through, and how many atoms looking it up settles.

        Nothing is known of the events, but filters are written for them: many different constants for an attribute
        mean that it has many values.
        """
        match atom:
            case OneOf(path=path) | Prefix(path=path) | RangeBound(path=path) if path not in self._kinds:
                return 1.0, atom, 0  # of what subtypes have under this name, not all can be compared with it
            case OneOf(path=path, values=values):
                few = 2 if _bare(self._kinds.get(path)) == BOOLEAN else 10
                return min(0.9, len(values) / max(few, len(self._constants[path]))), atom, 1
            case Prefix(path=path, text=text):
                return 1 / max(5, len(self._constants[path])) + 0.01 / len(text), atom, int(atom.exact)
            case RangeBound(path=path):
                bounds = self._bounds(path, conjunction)
                low, high = _tightest(bounds)
                if low is None and high is None:
                    return 1.0, atom, 0
                return self._width(path, low, high), atom, len(bounds)
            case IsAbsent():
                return 0.3, atom, 1
            case NoneOf() | IsPresent() | Opaque():
                return 1.0, atom, 0  # most events have the attribute, and another value

    def _bounds(self, path: Path, conjunction: Conjunction) -> list[RangeBound]:
        kind = _dtype(self._kinds.get(path))
        return [
            each for each in conjunction if isinstance(each, RangeBound) and each.path == path and _holds(kind, each)
        ]

    def _range(self, path: Path, conjunction: Conjunction) -> tuple[Low, Low]:
        return _tightest(self._bounds(path, conjunction))

    def _width(self, path: Path, low: Low, high: Low) -> float:
        """How much of all the values between the constants of this attribute lies in the range."""
        if low is None or high is None:
            return 0.5
        span = self._spans.get(path, 0)
        least = 1 / max(10, len(self._constants[path]))
        return max(least, min(0.4, (high[0] - low[0]) / span)) if 0 < span < inf else 0.1


def _constants(conjunctions: Iterable[Conjunction]) -> dict[Path, set[Any]]:
    """The different constants that each attribute is compared with."""
    found: dict[Path, set[Any]] = {}
    for conjunction in conjunctions:
        for atom in conjunction:
            match atom:
                case OneOf(path=path, values=values):
                    found.setdefault(path, set()).update(values)
                case Prefix(path=path, text=value) | RangeBound(path=path, value=value):
                    found.setdefault(path, set()).add(value)
    return found


def _for_event(event: str, conjunction: Conjunction) -> Conjunction | None:
    """What is left to ask of events of this type: which type it is, is known. None: nothing of it can be true."""
    left: list[Atom] = []
    for atom in conjunction:
        if isinstance(atom, OneOf) and atom.path == _EVENT_TYPE:
            if event not in atom.values:
                return None
        elif isinstance(atom, NoneOf) and atom.path == _EVENT_TYPE:
            if event in atom.values:
                return None
        elif isinstance(atom, OneOf | RangeBound) and atom.path == EVENT_TIME:
            left.append(_in_microseconds(atom))
        else:
            left.append(atom)
    return tuple(left)


def _in_microseconds(atom: OneOf | RangeBound) -> Atom:
    """Rows have times as numbers, and are compared as such."""
    if isinstance(atom, OneOf):
        return OneOf(atom.path, tuple(microseconds(value) for value in atom.values))
    return RangeBound(atom.path, microseconds(atom.value), atom.upper, atom.open)


def _tightest(bounds: Iterable[RangeBound]) -> tuple[Low, Low]:
    low: Low = None
    high: Low = None
    for each in bounds:
        if each.upper and (high is None or (each.value, not each.open) < (high[0], not high[1])):
            high = (each.value, each.open)
        elif not each.upper and (low is None or (each.value, each.open) > low):
            low = (each.value, each.open)
    return low, high


def _bare(kind: Type | None) -> Type | None:
    return None if kind is None else plain(kind)


def _dtype(kind: Type | None) -> type[np.float64] | type[np.int64] | None:
    bare = _bare(kind)
    return np.float64 if bare == DOUBLE else np.int64 if bare in (INT, LONG) else None


def _holds(dtype: type[np.float64] | type[np.int64] | None, bound: RangeBound) -> bool:
    """Whether numpy has this bound exactly."""
    if dtype is None:
        return True
    if dtype is np.float64:
        return isinstance(bound.value, float)
    return isinstance(bound.value, int) and _SMALLEST <= bound.value <= _LARGEST


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The index of one event type. It holds the filters on the type and on those above it, in segments that never change.
# Types that the same filters are asked of, and that look alike to them, can share one: subtypes do, as a rule. New
# filters come into a segment of their own; small segments are merged as they get many, so that adding one filter to
# thousands is cheap and searching stays it. Filters nobody wants any more stay where they are until they are many:
# whoever gets the answer knows which filters are wanted.

_GROWTH = 4
"""A segment is at least so many times as large as the next, or they are merged."""
_ENVELOPE: Mapping[Path, Type] = {
    ("event", "id"): STRING,
    ("event", "source"): STRING,
    ("event", "type"): STRING,
    EVENT_TIME: LONG,
    ("event", "confidence"): DOUBLE,
}
_NO_DATA: Data = {}
_FEW = 16
"""Events that are looked up one by one: below that, columns cost more than they save."""


class TypeIndex:
    """Filters on the events of one type; immutable."""

    __slots__ = (
        "_dead",
        "_event",
        "_events",
        "_names",
        "_paths",
        "_reader",
        "_tests",
        "_types",
        "always",
        "filters",
        "scanned",
        "segments",
    )

    def __init__(self, event: Struct, types: Types, segments: tuple[Segment, ...], dead: int = 0) -> None:
        self._event = event
        self._types = types
        self._dead = dead
        self._events = self._tests = 0
        self.segments = segments
        self.filters = sum(len(segment.filters) for segment in segments)
        self.always = tuple(each for segment in segments for each in segment.always)
        self.scanned = tuple(each for segment in segments for each in segment.scanned)
        self._paths = sorted(set[Path]().union(*(segment.paths for segment in segments)))
        names = [segment.names for segment in segments]
        self._names = None if None in names else frozenset[str]().union(*(each for each in names if each is not None))
        self._reader = self._make_reader()

    @classmethod
    def of(cls, event: Struct, filters: Sequence[Filter], types: Types) -> TypeIndex:
        return cls(event, types, (Segment(event.name, filters, _kinds(event, filters, types)),) if filters else ())

    def changed(
        self, event: Struct, added: Sequence[Filter], removed: int, is_wanted: Callable[[Filter], bool]
    ) -> TypeIndex:
        """The index for events of this type with more filters, ``removed`` of the others being unwanted from now on."""
        index = self._changed(event, added, removed, is_wanted)
        index._events, index._tests = self._events, self._tests
        return index

    def _changed(
        self, event: Struct, added: Sequence[Filter], removed: int, is_wanted: Callable[[Filter], bool]
    ) -> TypeIndex:
        dead = self._dead + removed
        if 2 * dead > self.filters:
            kept = [each for segment in self.segments for each in segment.filters if is_wanted(each)]
            return TypeIndex.of(event, [*kept, *added], self._types)
        last, segments = list(added), list(self.segments)
        while segments and last and len(segments[-1].filters) < _GROWTH * len(last):
            merged = [each for each in segments[-1].filters if is_wanted(each)]
            dead -= len(segments[-1].filters) - len(merged)
            last = merged + last
            segments.pop()
        if last:
            segments.append(Segment(event.name, last, _kinds(event, last, self._types)))
        return TypeIndex(event, self._types, tuple(segments), dead)

    def pruned(
        self, is_excluded: Callable[[Filter], bool], known: Mapping[Segment, Segment | None]
    ) -> tuple[TypeIndex, dict[Segment, Segment | None]]:
        """The index without these filters, and each segment as it is in there, None where nothing is left of it;
        ``known`` are those that were pruned before."""
        found: dict[Segment, Segment | None] = {}
        for each in self.segments:
            if each in known:
                found[each] = known[each]
                continue
            left = [wanted for wanted in each.filters if not is_excluded(wanted)]
            name = self._event.name
            found[each] = Segment(name, left, _kinds(self._event, left, self._types)) if left else None
        segments = tuple(each for each in found.values() if each is not None)
        return TypeIndex(self._event, self._types, segments), found

    @property
    def tests_per_event(self) -> float:
        """How many filters had to be tested on an event so far, on average: those that looking up did not settle."""
        return self._tests / self._events if self._events else 0.0

    def serves(self, event: Struct) -> bool:
        """Whether it says the same of events of this type, of which the same filters are asked."""
        if any(segment.asks_for_type for segment in self.segments):
            return False
        if self._names is None:
            return event.attributes == self._event.attributes
        return all(event.attribute(name) == self._event.attribute(name) for name in self._names)

    def match(self, row: Row) -> list[Filter]:
        """The filters that are true of the event, besides those that always are."""
        if self._reader is None:
            return []
        self._events += 1
        data = self._reader(row)
        values = {path: _value(path, row, data) for path in self._paths}
        entries: list[Entry] = []
        for segment in self.segments:
            entries += segment.find(values)
        return self._true(entries, row, data) if entries or self.scanned else []

    def match_each(self, rows: Sequence[Row]) -> list[list[Filter]]:
        """The same for many events."""
        if self._reader is None:
            return [[] for _ in rows]
        if len(rows) < _FEW:
            return [self.match(row) for row in rows]
        self._events += len(rows)
        read = self._reader
        every = [read(row) for row in rows]
        columns = {path: _column(path, rows, every) for path in self._paths}
        found: list[list[Entry]] = [[] for _ in rows]
        for segment in self.segments:
            segment.find_each(columns, found)
        if self.scanned:
            return [self._true(entries, row, data) for entries, row, data in zip(found, rows, every, strict=True)]
        result: list[list[Filter]] = []
        for place, entries in enumerate(found):
            if not entries:
                result.append([])
            elif len(entries) == 1 and entries[0][1]:
                result.append([entries[0][0]])
            else:
                result.append(self._true(entries, rows[place], every[place]))
        return result

    def _true(self, entries: list[Entry], row: Row, data: Data) -> list[Filter]:
        """Those of the candidates that are true, each once."""
        if len(entries) == 1 and entries[0][1] and not self.scanned:
            return [entries[0][0]]
        result: dict[Filter, None] = {}
        tested: dict[Filter, None] = dict.fromkeys(self.scanned)
        for candidate, sure in entries:
            if sure:
                result[candidate] = None
            else:
                tested[candidate] = None
        if tested:
            self._tests += len(tested)
            event = read_envelope(row)
            for candidate in tested:
                if candidate not in result and candidate.test(event, data):
                    result[candidate] = None
        return list(result)

    def _make_reader(self) -> Callable[[Row], Data] | None:
        """Reads what is looked up and tested; None if nothing is."""
        if not self._paths and not self.scanned:
            return None
        if self._names is None or self._names:
            return row_reader(self._event, self._names, self._types)
        return lambda _: _NO_DATA


def _value(path: Path, row: Row, data: Data) -> Any:
    if path[0] == "event":
        return envelope_value(row, path[1])
    value: Any = data
    for step in path[1:]:
        if value is None:
            return None
        value = value.get(step)
    return value


def _column(path: Path, rows: Sequence[Row], every: Sequence[Data]) -> Sequence[Any]:
    if path[0] == "event":
        name = path[1]
        if name in IN_ROWS:
            field = IN_ROWS[name]
            return [getattr(row, field) for row in rows]
        return [envelope_value(row, name) for row in rows]
    if len(path) == 2:
        step = path[1]
        return [data.get(step) for data in every]
    column: list[Any] = list(every)
    for step in path[1:]:
        column = [None if value is None else value.get(step) for value in column]
    return column


def _kinds(event: Struct, filters: Sequence[Filter], types: Types) -> dict[Path, Type]:
    """The type of each attribute the filters look at."""
    kinds = dict(_ENVELOPE)
    for each in filters:
        for conjunction in each.conjunctions:
            for atom in conjunction:
                path: Path | None = getattr(atom, "path", None)
                if path is None or path in kinds:
                    continue
                kind = _kind(event, path[1:], types) if path[0] == "data" else _extension_kind(path)
                if kind is not None:
                    kinds[path] = kind
    return kinds


def _extension_kind(path: Path) -> Type | None:
    """What of the envelope is in no column of a row is a text."""
    return None if path[1] in IN_ROWS else STRING


def _kind(event: Struct, steps: Sequence[str], types: Types) -> Type | None:
    """The type of the single values there; None if there are none, or subtypes disagree on what they are."""
    structs, found = [event], set[Type]()
    for step in steps:
        if step == TYPE_KEY:
            return STRING
        found = {plain(each.type) for struct in structs if (each := struct.attribute(step)) is not None}
        structs = [below for each in found if isinstance(each, Struct) for below in _any_of(each, types)]
    return found.pop() if len(found) == 1 and not structs and not isinstance(next(iter(found)), ListOf) else None


def _any_of(struct: Struct, types: Types) -> list[Struct]:
    return [each for each in types.subtypes(struct) if isinstance(each, Struct)]
