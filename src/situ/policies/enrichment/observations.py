"""Events of the root log → observations in columns: :mod:`situ.situation.enrichment.observe`, of many events at once.

Events come as messages of the log, as lines of it, or as rows. Only what some policy looks at is read of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, repeat
from typing import NamedTuple, TypeVar

import msgspec
import numpy as np
import pyarrow as pa

from situ.event.message import join_lines, split_lines
from situ.event.row import Row
from situ.expr.vectors import Array, Bools, either
from situ.situation.enrichment.data_columns import DataColumns, Path, Read, Text, instants
from situ.situation.enrichment.enrich import Enrichment, Observed
from situ.situation.enrichment.rows import BASE, scalar_fields
from situ.situation.meaning.watermark import Seen, merged, of_policies, seen_of
from situ.situation.policies.leaves import Scalar
from situ.sources.model import Push
from situ.types.model import STRING, TIMESTAMP, Type
from situ.types.reserved import BINDINGS
from situ.types.syntax import RESERVED_PREFIX
from situ.types.table import Types

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
class Observations:
    """What events said, a batch for each push source; how far these are; and how many said nothing readable."""

    observed: tuple[Observed, ...] = ()
    seen: Mapping[str, Seen]
    unreadable: int = 0


class Heard(NamedTuple):
    """When an event was, when it was received, whether it is one of a policy, and what it says."""

    time: int
    received: int
    own: bool
    data: Text


@dataclass(frozen=True, slots=True)
class _Events:
    """Some events as columns; times in microseconds."""

    ids: Sequence[str]
    sources: Sequence[str]
    times: Array
    received: Array
    data: Sequence[Text]
    positions: Sequence[int]
    own: Bools | None
    """Which of them policies published; None: none of them."""


class Observing:
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

    def seen(self, heard: Mapping[str, Sequence[Heard]]) -> dict[str, Seen]:
        """How far push sources are by these events alone, which are given by type."""
        found: dict[str, Seen] = {}
        for group in self._groups:
            some = [each for type in group.types for each in heard.get(type, ())]
            clocks = np.array([each[:3] for each in some], np.int64).reshape(-1, 3)
            stated = group.stated.read([each.data for each in some]) if group.stated is not None else None
            found |= group.seen(clocks[:, 0], clocks[:, 1], _some([each.own for each in some]), stated)
        return found

    def messages(
        self, bodies: Iterable[bytes], firsts: Iterable[int] = repeat(0), clients: Iterable[str] = repeat("")
    ) -> Observations:
        """What these messages of the root log say; ``firsts`` are the positions of their first events, if known,
        ``clients`` who published them."""
        lost = _Lost()
        placed = (
            _placed(_lines_of(body, lost), first, own=client in self._policies)
            for body, first, client in zip(bodies, firsts, clients, strict=False)
        )
        return self._lines(chain.from_iterable(placed), lost)

    def lines(self, lines: Iterable[bytes]) -> Observations:
        """What these lines of it say."""
        return self.messages(map(join_lines, _chunks(lines)))

    def rows(self, rows: Iterable[Row]) -> Observations:
        """What these events say."""
        heard = (
            (group, _of_rows(some, self._policies)) for chunk in _chunks(rows) for group, some in self._heard(chunk)
        )
        return self._told(heard, _Lost())

    def _lines(self, lines: Iterable[_Line], lost: _Lost) -> Observations:
        heard = ((group, _of_lines(some)) for chunk in _chunks(lines) for group, some in self._heard(chunk))
        return self._told(heard, lost)

    def _heard(self, events: list[_Event]) -> Iterator[tuple[_Group, list[_Event]]]:
        """For each type that is listened to, the events of it."""
        for group in self._groups:
            types = group.types
            some = [event for event in events if event.type in types]
            if some:
                yield group, some

    def _told(self, parts: Iterable[tuple[_Group, _Events]], lost: _Lost) -> Observations:
        batches: dict[str, list[pa.RecordBatch]] = defaultdict(list)
        seen: dict[str, Seen] = {}
        for group, events in parts:
            read = group.columns.read(events.data)
            lost.count += 0 if read.unreadable is None else int(read.unreadable.sum())
            seen = merged(seen, group.seen(events.times, events.received, events.own, read))
            for told in group.told:
                batch = told.batch(events, read)
                if batch.num_rows:
                    batches[told.push.name].append(batch)
        observed = [
            Observed(concept=told.push.concept, attribute=told.push.attribute, rows=_one(batches[told.push.name]))
            for group in self._groups
            for told in group.told
            if told.push.name in batches
        ]
        return Observations(observed=tuple(observed), seen=seen, unreadable=lost.count)


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
        instants([line.time for line in lines]).to_numpy(),
        instants([line.siturecv or line.time for line in lines]).to_numpy(),
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
        wanted: dict[Path, Type] = {}
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

    def seen(self, times: Array, received: Array, own: Bools | None, read: Read | None) -> dict[str, Seen]:
        """How far its push sources are by these events, those of policies apart from those of others.

        ``read`` is what these say themselves; it is needed where that says when it was.
        """
        found: dict[str, Seen] = {}
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

    def _seen(self, times: Array, received: Array, own: Bools | None) -> tuple[Seen | None, Seen | None]:
        """How far others are, and how far policies."""
        if self._reserved:
            return None, seen_of(times, received)
        if own is None:
            return seen_of(times, received), None
        return seen_of(times[~own], received[~own]), seen_of(times[own], received[own])


class _Told:
    """What one push source tells: an identity, and the scalars of a value."""

    def __init__(self, push: Push, scalars: Sequence[Scalar]) -> None:
        self.push = push
        self._paths = [(*push.value, *scalar.path[1:]) for scalar in scalars]
        self.wanted: dict[Path, Type] = {push.id: STRING}
        if push.time:
            self.wanted[push.time] = TIMESTAMP
        self.wanted |= {path: scalar.type for path, scalar in zip(self._paths, scalars, strict=True)}
        self._name = pa.scalar(push.name, pa.string())
        self._schema = pa.schema([*BASE, *scalar_fields(scalars)])

    def batch(self, events: _Events, read: Read) -> pa.RecordBatch:
        """The observations of these events; one in which identity, value or its time is null tells nothing."""
        count = len(events.ids)
        arrays = [
            read.columns[self.push.time] if self.push.time else pa.array(events.times),
            pa.array(events.sources, pa.string()),
            pa.array(events.ids, pa.string()),
            pa.repeat(self._name, count),
            pa.array(events.positions, pa.int64()),
            read.columns[self.push.id],
            *(read.columns[path] for path in self._paths),
        ]
        needed = [path for path in (self.push.id, self.push.value, self.push.time) if path]
        silent = either(*(_absent(read.present[path]) for path in needed))
        if silent is not None:
            places = pa.array(np.flatnonzero(~silent))
            arrays = [array.take(places) for array in arrays]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def clocks(self, read: Read, received: Array, own: Bools | None) -> tuple[Array, Array, Bools | None]:
        """When events say that it was, when they were received, and whose they are, of those that say it."""
        there = read.present[self.push.time]
        times = read.columns[self.push.time]
        if there is None:
            return times.to_numpy(), received, own
        return times.filter(pa.array(there)).to_numpy(), received[there], None if own is None else own[there]


def _absent(present: Bools | None) -> Bools | None:
    return None if present is None else ~present
