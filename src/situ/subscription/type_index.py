"""The index of one event type: which filters does an event of it match?

It holds the filters on the type and on those above it, in segments that never change. Types that the same filters are
asked of, and that look alike to them, can share one: subtypes do, as a rule. New filters come into a segment
of their own; small segments are merged as they get many, so that adding one filter to thousands is cheap and searching
stays it. Filters nobody wants any more stay where they are until they are many: whoever gets the answer knows which
filters are wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from situ.event.row import Row
from situ.subscription.filter import Filter
from situ.subscription.normal_form import Path
from situ.subscription.reading import IN_ROWS, Data, envelope_value, read_envelope, row_reader
from situ.subscription.segment import EVENT_TIME, Entry, Segment
from situ.types.encode import TYPE_KEY
from situ.types.model import DOUBLE, LONG, STRING, ListOf, Struct, Type, plain
from situ.types.table import Types

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

    __slots__ = ("_dead", "_event", "_names", "_paths", "_reader", "_types", "always", "filters", "scanned", "segments")

    def __init__(self, event: Struct, types: Types, segments: tuple[Segment, ...], dead: int = 0) -> None:
        self._event = event
        self._types = types
        self._dead = dead
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
