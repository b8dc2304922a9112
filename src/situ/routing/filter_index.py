"""A segment of the index: some filters on one event type, filed where an event that may match them finds them.

Each AND of a filter is filed under one of its conditions, the one that probably lets the fewest events through: an
attribute that is one of some values, a text that begins like this, a range, an attribute that is absent. An event looks
up its attributes and gets the filters it may match: *surely*, where the condition was all that is asked, else they are
tested. What has no such condition is tested against every event; the length of that list is a figure to watch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any

import numpy as np

from situ.event.instants import microseconds
from situ.subscription.filter import Filter
from situ.subscription.intervals import Intervals, Low
from situ.subscription.normal_form import Absent, Atom, Bound, Conjunction, OneOf, Opaque, Path, Prefix
from situ.types.model import BOOLEAN, DOUBLE, INT, LONG, Type, plain

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
            isinstance(atom, OneOf) and atom.path == _EVENT_TYPE
            for each in filters
            for conjunction in each.conjunctions
            for atom in conjunction
        )
        filing = _Filing(event, filters, kinds)
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


class _Filing:
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
            case Bound(path=path):
                self.ranges.setdefault(path, []).append((*self._range(path, conjunction), entry))
            case Absent(path=path):
                self.absent.setdefault(path, []).append(entry)

    def _choice(self, atom: Atom, conjunction: Conjunction) -> tuple[float, Atom, int]:
        """The share of events that the atom probably lets through, and how many atoms looking it up settles.

        Nothing is known of the events, but filters are written for them: many different constants for an attribute
        mean that it has many values.
        """
        match atom:
            case OneOf(path=path) | Prefix(path=path) | Bound(path=path) if path not in self._kinds:
                return 1.0, atom, 0  # of what subtypes have under this name, not all can be compared with it
            case OneOf(path=path, values=values):
                few = 2 if _bare(self._kinds.get(path)) == BOOLEAN else 10
                return min(0.9, len(values) / max(few, len(self._constants[path]))), atom, 1
            case Prefix(path=path, text=text, exact=exact):
                return 1 / max(5, len(self._constants[path])) + 0.01 / len(text), atom, int(exact)
            case Bound(path=path):
                bounds = self._bounds(path, conjunction)
                low, high = _tightest(bounds)
                if low is None and high is None:
                    return 1.0, atom, 0
                return self._width(path, low, high), atom, len(bounds)
            case Absent():
                return 0.3, atom, 1
            case Opaque():
                return 1.0, atom, 0

    def _bounds(self, path: Path, conjunction: Conjunction) -> list[Bound]:
        kind = _dtype(self._kinds.get(path))
        return [each for each in conjunction if isinstance(each, Bound) and each.path == path and _holds(kind, each)]

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
                case Prefix(path=path, text=value) | Bound(path=path, value=value):
                    found.setdefault(path, set()).add(value)
    return found


def _for_event(event: str, conjunction: Conjunction) -> Conjunction | None:
    """What is left to ask of events of this type: which type it is, is known. None: nothing of it can be true."""
    left: list[Atom] = []
    for atom in conjunction:
        if isinstance(atom, OneOf) and atom.path == _EVENT_TYPE:
            if event not in atom.values:
                return None
        elif isinstance(atom, OneOf | Bound) and atom.path == EVENT_TIME:
            left.append(_in_microseconds(atom))
        else:
            left.append(atom)
    return tuple(left)


def _in_microseconds(atom: OneOf | Bound) -> Atom:
    """Rows have times as numbers, and are compared as such."""
    if isinstance(atom, OneOf):
        return OneOf(atom.path, tuple(microseconds(value) for value in atom.values))
    return Bound(atom.path, microseconds(atom.value), atom.upper, atom.open)


def _tightest(bounds: Iterable[Bound]) -> tuple[Low, Low]:
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


def _holds(dtype: type[np.float64] | type[np.int64] | None, bound: Bound) -> bool:
    """Whether numpy has this bound exactly."""
    if dtype is None:
        return True
    if dtype is np.float64:
        return isinstance(bound.value, float)
    return isinstance(bound.value, int) and _SMALLEST <= bound.value <= _LARGEST
