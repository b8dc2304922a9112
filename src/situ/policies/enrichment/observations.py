"""Events → observations: what each event says through each push source, in columns or one by one.

`DataColumns` reads the wanted paths of JSON data, `ObservationDecoder` decodes many events of the root log at once,
`observe` takes events singly.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain, islice, repeat
from operator import attrgetter
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from situ.event.instants import microseconds, read_instant
from situ.event.message import join_lines, split_lines
from situ.event.row import Row
from situ.lang.expr.emit.vectors import Array, Bools, below, column, column_type, either, is_json
from situ.lang.types.json_codec import TYPE_KEY
from situ.lang.types.model import BOOLEAN, DOUBLE, DURATION, INT, LONG, RESERVED_PREFIX, STRING, TIMESTAMP, Type, plain
from situ.lang.types.scalars import read_timestamp
from situ.lang.types.table import BINDINGS, Types
from situ.policies.enrichment.enrich import Enrichment, PushObservations
from situ.policies.enrichment.rows import BASE, scalar_fields
from situ.policies.model import Cause, Observation
from situ.policies.plan import LeafScalar
from situ.policies.watermark import SourceTimes, merge_source_times, of_policies, source_times_of
from situ.sources.model import Push

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# JSON data of many events → columns of what is looked at, and nothing else. The text is canonical and was checked when
# its events came in, so it is read in C and trusted; a text that is not what its type says tells nothing, and is
# counted.

AttributePath = tuple[str, ...]
JsonText = bytes | msgspec.Raw

_SHAPES: Mapping[Type, Any] = {
    BOOLEAN: bool | None,
    INT: int | None,
    LONG: int | None,
    DOUBLE: float | None,
    STRING: str | None,
    TIMESTAMP: str | None,
    DURATION: dt.timedelta | None,
}
_NULL = msgspec.Raw(b"null")
_INSTANT = pa.timestamp("us", tz="UTC")


class _Binding(msgspec.Struct, gc=False):
    alias: str
    id: str


class DataColumns:
    """Reads these paths of data, each of this type. A struct of which only parts are wanted is read as those."""

    def __init__(
        self,
        wanted: Mapping[AttributePath, Type],
        present: Iterable[AttributePath] = (),
        bound: Iterable[AttributePath] = (),
    ) -> None:
        """``present``: paths of which it is asked only whether something is there.

        ``bound``: those that lead to the bindings of a situation; below is not an attribute, but an alias.
        """
        self._root = _Place()
        for path in bound:
            self._root.at(path).bound = True
        whole = [path for path, type in wanted.items() if is_json(type)]
        parts: dict[AttributePath, tuple[dict[AttributePath, Type], list[AttributePath]]] = {}
        for path, type in wanted.items():
            above = _above(path, whole)
            if above is None:
                self._root.at(path).type = plain(type)
            else:
                parts.setdefault(above, ({}, []))[0][path[len(above) :]] = type
        for path in present:
            above = _above(path, whole)
            if above is None:
                self._root.at(path)
            else:
                parts.setdefault(above, ({}, []))[1].append(path[len(above) :])
        # What is wanted as a whole and in parts is read as a text, and its parts from that.
        self._parts = {path: DataColumns(*of) for path, of in parts.items()}
        shape = self._root.shape()
        self._all = msgspec.json.Decoder(list[shape]).decode  # type: ignore[valid-type]  # made at run time
        self._one = msgspec.json.Decoder(shape).decode

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that the paths begin with."""
        return tuple(self._root.names)

    def of_columns(self, data: pa.StructArray) -> DecodedColumns | None:
        """What is at each path, of data that is in columns already; None if these cannot tell it."""
        found = DecodedColumns(columns={}, present={}, unreadable=None)
        if self._parts or not self._root.take_columns(data, (), found):
            return None
        return found

    def read(self, texts: Sequence[JsonText]) -> DecodedColumns:
        """What is at each path in each of these texts."""
        unreadable: Bools | None = None
        try:
            found = self._all(b"[%b]" % b",".join(texts))
        except msgspec.DecodeError:
            found = [self._read_one(text) for text in texts]
            unreadable = np.fromiter((each is None for each in found), np.bool_, len(found))
        read = DecodedColumns(columns={}, present={}, unreadable=unreadable)
        self._root.take(found, (), read)
        for path, reader in self._parts.items():
            of = reader.read([b"{}" if each is None else each.encode() for each in read.columns[path].to_pylist()])
            read.columns.update({(*path, *below): array for below, array in of.columns.items()})
            read.present.update({(*path, *below): there for below, there in of.present.items() if below})
        return read

    def _read_one(self, text: JsonText) -> Any:
        try:
            return self._one(bytes(text))
        except msgspec.DecodeError:
            return None


def _above(path: AttributePath, whole: Iterable[AttributePath]) -> AttributePath | None:
    """The outermost of these paths that leads to something which this one leads into."""
    return min((each for each in whole if len(each) < len(path) and path[: len(each)] == each), key=len, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedColumns:
    """Columns by path; where something is at each path, None: everywhere; and which texts could not be read."""

    columns: dict[AttributePath, pa.Array]
    present: dict[AttributePath, Bools | None]
    unreadable: Bools | None


class _Place:
    """A place in data: a value of ``type``, if that is wanted, and what is wanted below it."""

    def __init__(self) -> None:
        self.type: Type | None = None
        self.bound = False
        self._below: dict[str, _Place] = {}

    def at(self, path: AttributePath) -> _Place:
        place = self
        for step in path:
            place = place._below.setdefault(step, _Place())
        return place

    def shape(self) -> Any:
        """What msgspec is to read here."""
        if self.type is not None and not is_json(self.type):
            return _SHAPES[self.type]
        if self.type is not None or not self._below:
            return msgspec.Raw
        if self.bound:
            return list[_Binding]
        # Attributes may have any name, also one that Python reserves: fields are numbered and renamed.
        fields: list[tuple[str, Any, Any]] = []
        for number, place in enumerate(self._below.values()):
            shape = place.shape()
            raw = shape is msgspec.Raw
            fields.append((f"a{number}", shape if raw else shape | None, _NULL if raw else None))
        names = {f"a{number}": name for number, name in enumerate(self._below)}
        return msgspec.defstruct("Data", fields, rename=names, gc=False)

    @property
    def names(self) -> Iterable[str]:
        return self._below.keys()

    def take_columns(self, found: pa.Array, path: AttributePath, into: DecodedColumns) -> bool:
        """Put what is in a column, and below, into columns of ours; False if it is not laid out as it would have to be.

        What is wanted as text, values of subtypes and bindings are left to the text.
        """
        if self.bound or (self.type is not None and is_json(self.type)):
            return False
        into.present[path] = found.is_valid().to_numpy(zero_copy_only=False) if found.null_count else None
        if self.type is not None:
            if pa.types.is_nested(found.type):
                return False
            made = found.cast(_INSTANT).cast(pa.int64()) if self.type == TIMESTAMP else found
            into.columns[path] = made.cast(column_type(self.type))
            return True
        if not self._below:
            return True
        if not pa.types.is_struct(found.type) or found.type.get_field_index(TYPE_KEY) >= 0:
            return False
        for name, place in self._below.items():
            if found.type.get_field_index(name) < 0:
                return False
            if not place.take_columns(pc.struct_field(found, name), (*path, name), into):
                return False
        return True

    def take(self, found: Sequence[Any], path: AttributePath, into: DecodedColumns) -> None:
        """Put what was read here, and below, into columns."""
        if self.type is not None and not is_json(self.type):
            into.present[path] = _there(found)
            into.columns[path] = instant_column(found) if self.type == TIMESTAMP else column(found, self.type)
        elif self.type is not None or not self._below:
            texts = [None if each is None or (text := bytes(each)) == b"null" else text for each in found]
            into.present[path] = _there(texts)
            if self.type is not None:
                into.columns[path] = pa.array(texts, pa.binary()).cast(pa.string())
        elif self.bound:
            into.present[path] = _there(found)
            identities = [{one.alias: one.id for one in each or ()} for each in found]
            for name, place in self._below.items():
                place.take([each.get(name) for each in identities], (*path, name), into)
        else:
            into.present[path] = _there(found)
            for number, (name, place) in enumerate(self._below.items()):
                place.take(_each(attrgetter(f"a{number}"), found), (*path, name), into)


def _there(found: Sequence[Any]) -> Bools | None:
    return None if None not in found else np.fromiter((each is not None for each in found), np.bool_, len(found))


def _each(get: Callable[[Any], Any], found: Sequence[Any]) -> list[Any]:
    try:
        return list(map(get, found))
    except AttributeError:  # a struct that is not there has no attributes
        return [None if each is None else get(each) for each in found]


def instant_column(texts: Sequence[str | None]) -> pa.Array:
    """Instants as they are written in the log, in microseconds."""
    try:
        return pa.array(texts, pa.string()).cast(_INSTANT).cast(pa.int64())
    except pa.ArrowInvalid:
        return pa.array([None if text is None else _instant(text) for text in texts], pa.int64())


def _instant(text: str) -> int:
    found = read_instant(text)
    return microseconds(read_timestamp(text)) if found is None else found


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Events of the root log → observations in columns. Events come as messages of the log, as lines of it, or as rows. Only
# what some policy looks at is read of them.

CHUNK = 8192
"""Events that are read at a time: few enough for the processor's cache."""


class _Line(msgspec.Struct, gc=False):
    id: str
    source: str
    type: str
    time: str
    data: msgspec.Raw
    siturecv: str = ""
    # Where it is in the log, which its text does not say; no attribute of an event can have this name.
    pos: int = msgspec.field(default=0, name="its pos")
    own: bool = msgspec.field(default=False, name="its own")


_MESSAGE = msgspec.json.Decoder(list[_Line]).decode
_LINE = msgspec.json.Decoder(_Line).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationBatch:
    """What events said, a batch for each push source; how far these are; and how many said nothing readable."""

    observed: tuple[PushObservations, ...] = ()
    seen: Mapping[str, SourceTimes]
    unreadable: int = 0


class LogEvent(NamedTuple):
    """When an event was, when it was received, whether it is one of a policy, and what it says."""

    time: int
    received: int
    own: bool
    data: JsonText


@dataclass(frozen=True, slots=True, kw_only=True)
class EventColumns:
    """Events of one type as columns, their data as structs in the layout of the type; times in microseconds."""

    type: str
    ids: pa.Array
    sources: pa.Array
    times: Array
    received: Array
    positions: pa.Array
    clients: pa.Array | None
    """None: how far sources are is not asked for."""
    data: pa.StructArray


@dataclass(frozen=True, slots=True)
class _Events:
    """Some events as columns; times in microseconds."""

    ids: Sequence[str] | pa.Array
    sources: Sequence[str] | pa.Array
    times: Array
    received: Array
    data: Sequence[JsonText]
    positions: Sequence[int] | pa.Array
    own: Bools | None
    """Which of them policies published; None: none of them."""


class ObservationDecoder:
    """The push sources that policies listen to, and what these look at."""

    def __init__(
        self, pushes: Mapping[str, Push], types: Types, enrichment: Enrichment, policies: frozenset[str] = frozenset()
    ) -> None:
        """``policies`` are clients whose events are told apart from those of others in what is ``seen``."""
        self._policies = policies
        groups: dict[str, dict[str, Push]] = defaultdict(dict)
        for name, push in pushes.items():
            if enrichment.is_wanted(push.concept, push.attribute):
                groups[push.event][name] = push
        self._groups = [_Group(event, of, types, enrichment) for event, of in groups.items()]
        self.types: frozenset[str] = frozenset().union(*(group.types for group in self._groups))
        """The types of events that are listened to."""

    def is_own(self, client: str) -> bool:
        """Whether events of this client are those of a policy."""
        return client in self._policies

    def seen(self, heard: Mapping[str, Sequence[LogEvent]]) -> dict[str, SourceTimes]:
        """How far push sources are by these events alone, which are given by type."""
        found: dict[str, SourceTimes] = {}
        for group in self._groups:
            some = [each for type in group.types for each in heard.get(type, ())]
            clocks = np.array([each[:3] for each in some], np.int64).reshape(-1, 3)
            stated = group.stated.read([each.data for each in some]) if group.stated is not None else None
            found |= group.seen(clocks[:, 0], clocks[:, 1], _some([each.own for each in some]), stated)
        return found

    def messages(
        self, bodies: Iterable[bytes], firsts: Iterable[int] = repeat(0), clients: Iterable[str] = repeat("")
    ) -> ObservationBatch:
        """What these messages of the root log say; ``firsts`` are the positions of their first events, if known,
        ``clients`` who published them."""
        lost = _Lost()
        placed = (
            _placed(_lines_of(body, lost), first, own=client in self._policies)
            for body, first, client in zip(bodies, firsts, clients, strict=False)
        )
        return self._lines(chain.from_iterable(placed), lost)

    def lines(self, lines: Iterable[bytes]) -> ObservationBatch:
        """What these lines of it say."""
        return self.messages(map(join_lines, _chunks(lines)))

    def rows(self, rows: Iterable[Row]) -> ObservationBatch:
        """What these events say."""
        heard = (
            (group, _of_rows(some, self._policies)) for chunk in _chunks(rows) for group, some in self._heard(chunk)
        )
        return self._told(heard, _Lost())

    def attributes(self, type: str) -> tuple[str, ...]:
        """The attributes of a type that anything is read of."""
        return tuple(
            dict.fromkeys(name for each in self._groups if type in each.types for name in each.columns.attributes)
        )

    def columns(self, events: EventColumns) -> ObservationBatch | None:
        """What events in columns say; None if their columns do not tell it, and their text has to be read."""
        groups = [group for group in self._groups if events.type in group.types]
        own = None
        if self._policies and events.clients is not None:
            own = _some(pc.is_in(events.clients, pa.array(sorted(self._policies), events.clients.type)).to_pylist())
        given = _Events(events.ids, events.sources, events.times, events.received, (), events.positions, own)
        seen: dict[str, SourceTimes] = {}
        observed: list[PushObservations] = []
        for group in groups:
            try:
                read = group.columns.of_columns(events.data)
            except pa.ArrowException:
                return None  # a value that the type of now does not hold
            if read is None:
                return None
            seen = merge_source_times(seen, group.seen(given.times, given.received, given.own, read))
            for told in group.told:
                batch = told.batch(given, read)
                if batch.num_rows:
                    push = told.push
                    observed.append(PushObservations(concept=push.concept, attribute=push.attribute, rows=batch))
        return ObservationBatch(observed=tuple(observed), seen=seen)

    def _lines(self, lines: Iterable[_Line], lost: _Lost) -> ObservationBatch:
        heard = ((group, _of_lines(some)) for chunk in _chunks(lines) for group, some in self._heard(chunk))
        return self._told(heard, lost)

    def _heard(self, events: list[_Event]) -> Iterator[tuple[_Group, list[_Event]]]:
        """For each type that is listened to, the events of it."""
        for group in self._groups:
            types = group.types
            some = [event for event in events if event.type in types]
            if some:
                yield group, some

    def _told(self, parts: Iterable[tuple[_Group, _Events]], lost: _Lost) -> ObservationBatch:
        batches: dict[str, list[pa.RecordBatch]] = defaultdict(list)
        seen: dict[str, SourceTimes] = {}
        for group, events in parts:
            read = group.columns.read(events.data)
            lost.count += 0 if read.unreadable is None else int(read.unreadable.sum())
            seen = merge_source_times(seen, group.seen(events.times, events.received, events.own, read))
            for told in group.told:
                batch = told.batch(events, read)
                if batch.num_rows:
                    batches[told.push.name].append(batch)
        observed = [
            PushObservations(
                concept=told.push.concept, attribute=told.push.attribute, rows=_one(batches[told.push.name])
            )
            for group in self._groups
            for told in group.told
            if told.push.name in batches
        ]
        return ObservationBatch(observed=tuple(observed), seen=seen, unreadable=lost.count)


_Event = TypeVar("_Event", Row, _Line)
_T = TypeVar("_T")


@dataclass(slots=True)
class _Lost:
    """How many events could not be read."""

    count: int = 0


def _lines_of(body: bytes, lost: _Lost) -> list[_Line]:
    try:
        return _MESSAGE(body)
    except msgspec.DecodeError:
        return list(_one_by_one(split_lines(body), lost))


def _placed(lines: list[_Line], first: int, *, own: bool) -> list[_Line]:
    if first:
        for pos, line in enumerate(lines, first):
            line.pos = pos
    if own:
        for line in lines:
            line.own = True
    return lines


def _one_by_one(lines: Iterable[bytes], lost: _Lost) -> Iterator[_Line]:
    for line in lines:
        try:
            yield _LINE(line)
        except msgspec.DecodeError:
            lost.count += 1


def _chunks(events: Iterable[_T]) -> Iterator[list[_T]]:
    waiting = iter(events)
    while some := list(islice(waiting, CHUNK)):
        yield some


def _one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _of_lines(lines: Sequence[_Line]) -> _Events:
    return _Events(
        [line.id for line in lines],
        [line.source for line in lines],
        instant_column([line.time for line in lines]).to_numpy(),
        instant_column([line.siturecv or line.time for line in lines]).to_numpy(),
        [line.data for line in lines],
        [line.pos for line in lines],
        _some([line.own for line in lines]),
    )


def _of_rows(rows: Sequence[Row], policies: frozenset[str]) -> _Events:
    return _Events(
        [row.id for row in rows],
        [row.source for row in rows],
        np.array([row.time for row in rows], np.int64),
        np.array([row.recv for row in rows], np.int64),
        [row.data for row in rows],
        [row.pos for row in rows],
        _some([row.client in policies for row in rows]) if policies else None,
    )


def _some(flags: list[bool]) -> Bools | None:
    return np.array(flags, bool) if any(flags) else None


class _Group:
    """The push sources of one event type, whose data is read once for all of them."""

    def __init__(self, event: str, pushes: Mapping[str, Push], types: Types, enrichment: Enrichment) -> None:
        declared = types.event(event)
        below = types.subtypes(declared) if declared is not None else ()
        self.types = frozenset([event, *map(str, below)])
        self.told = [_Told(push, enrichment.scalars(push.concept, push.attribute)) for push in pushes.values()]
        wanted: dict[AttributePath, Type] = {}
        for told in self.told:
            wanted |= told.wanted
        bound = [each.name for each in declared.attributes if each.type == BINDINGS] if declared is not None else ()
        present = [told.push.value for told in self.told]
        self.columns = DataColumns(
            wanted, present, [(name,) for name in bound if any(path[0] == name for path in wanted)]
        )
        stated = {told.push.time: TIMESTAMP for told in self.told if told.push.time}
        self.stated = DataColumns(stated) if stated else None
        """Reads only when events say that it was; None: none of them says it."""
        self._reserved = event.startswith(RESERVED_PREFIX)

    def seen(
        self, times: Array, received: Array, own: Bools | None, read: DecodedColumns | None
    ) -> dict[str, SourceTimes]:
        """How far its push sources are by these events, those of policies apart from those of others.

        ``read`` is what these say themselves; it is needed where that says when it was.
        """
        found: dict[str, SourceTimes] = {}
        of_events = self._seen(times, received, own)
        for told in self.told:
            others, policies = of_events
            if told.push.time:
                assert read is not None
                others, policies = self._seen(*told.clocks(read, received, own))
            if others is not None:
                found[told.push.name] = others
            if policies is not None:
                found[of_policies(told.push.name)] = policies
        return found

    def _seen(self, times: Array, received: Array, own: Bools | None) -> tuple[SourceTimes | None, SourceTimes | None]:
        """How far others are, and how far policies."""
        if self._reserved:
            return None, source_times_of(times, received)
        if own is None:
            return source_times_of(times, received), None
        return source_times_of(times[~own], received[~own]), source_times_of(times[own], received[own])


class _Told:
    """What one push source tells: an identity, and the scalars of a value."""

    def __init__(self, push: Push, scalars: Sequence[LeafScalar]) -> None:
        self.push = push
        self._paths = [(*push.value, *scalar.path[1:]) for scalar in scalars]
        self.wanted: dict[AttributePath, Type] = {push.id: STRING}
        if push.time:
            self.wanted[push.time] = TIMESTAMP
        self.wanted |= {path: scalar.type for path, scalar in zip(self._paths, scalars, strict=True)}
        self._name = pa.scalar(push.name, pa.string())
        self._schema = pa.schema([*BASE, *scalar_fields(scalars)])

    def batch(self, events: _Events, read: DecodedColumns) -> pa.RecordBatch:
        """The observations of these events; one in which identity, value or its time is null tells nothing."""
        count = len(events.ids)
        arrays = [
            read.columns[self.push.time] if self.push.time else pa.array(events.times),
            _as_array(events.sources, pa.string()),
            _as_array(events.ids, pa.string()),
            pa.repeat(self._name, count),
            _as_array(events.positions, pa.int64()),
            read.columns[self.push.id],
            *(read.columns[path] for path in self._paths),
        ]
        needed = [path for path in (self.push.id, self.push.value, self.push.time) if path]
        silent = either(*(_absent(read.present[path]) for path in needed))
        if silent is not None:
            places = pa.array(np.flatnonzero(~silent))
            arrays = [array.take(places) for array in arrays]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def clocks(self, read: DecodedColumns, received: Array, own: Bools | None) -> tuple[Array, Array, Bools | None]:
        """When events say that it was, when they were received, and whose they are, of those that say it."""
        there = read.present[self.push.time]
        times = read.columns[self.push.time]
        if there is None:
            return times.to_numpy(), received, own
        return times.filter(pa.array(there)).to_numpy(), received[there], None if own is None else own[there]


def _as_array(values: Sequence[Any] | pa.Array, type: pa.DataType) -> pa.Array:
    return values if isinstance(values, pa.Array) else pa.array(values, type)


def _absent(present: Bools | None) -> Bools | None:
    return None if present is None else ~present


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Observations one by one: where events come few at a time, and where the reference looks at them.

_MICROSECOND = timedelta(microseconds=1)


class ObservableEvent(Protocol):
    """An event in root terms, its data as a value of its type."""

    @property
    def type(self) -> str: ...
    @property
    def id(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def time(self) -> int: ...
    @property
    def data(self) -> Mapping[str, Any]: ...


def observe(events: Iterable[ObservableEvent], pushes: Mapping[str, Push], types: Types) -> Iterator[Observation]:
    """What these events say. One in which the identity, the value or its time is null says nothing."""
    heard = {name: _names(types, push.event) for name, push in pushes.items()}
    for event in events:
        for name, push in pushes.items():
            if event.type not in heard[name]:
                continue
            identity, value = _said(event.data, push.id), _said(event.data, push.value)
            time: Any = below(event.data, push.time) if push.time else event.time
            if identity is not None and value is not None and time is not None:
                yield Observation(
                    push=name,
                    concept=push.concept,
                    identity=str(identity),
                    attribute=push.attribute,
                    value=value,
                    time=microseconds(time) if push.time else event.time,
                    cause=Cause(event.source, event.id),
                )


def _said(data: Mapping[str, Any], path: Sequence[str]) -> Any:
    """What is at a path; among the bindings of a situation it is the identity behind an alias."""
    listed = below(data, path[:-1]) if len(path) > 1 else None
    if isinstance(listed, Sequence) and not isinstance(listed, str):
        return next((each["id"] for each in listed if each["alias"] == path[-1]), None)
    return below(data, path)


def _names(types: Types, event: str) -> frozenset[str]:
    """An event type and its subtypes."""
    declared = types.event(event)
    return frozenset([event, *(str(each) for each in types.subtypes(declared))] if declared is not None else [event])


def keep_durations(pushes: Mapping[str, Push]) -> dict[str, int]:
    """How long push sources keep their last values, in microseconds; only those that do."""
    return {name: push.keep // _MICROSECOND for name, push in pushes.items() if push.keep}
