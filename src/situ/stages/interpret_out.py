"""Stage interpret out: deliveries in the terms of those who get them, and late filters.

`LateFilter` decides what Python or memory has a say in, `DeliveryConversion` puts each event in the terms of a context
once, `prefetch_inbound` and `prefetch_outbound` call Python functions for a whole batch before it is converted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from situ.contexts.model import ROOT, Direction, TableLookup
from situ.contexts.transform.converter import Converter
from situ.contexts.transform.json_struct import StructPlan
from situ.contexts.transform.transformation import Transformation
from situ.event.data_reader import data_reader, read_envelope
from situ.event.failures import failed, is_of_event
from situ.event.row import OUTBOUND, BadRow, Row
from situ.lang.expr.emit.python import compile_test
from situ.lang.expr.runtime import FAILURES
from situ.lang.expr.tree import Node
from situ.lang.records import replace
from situ.routing.delivery_groups import DeliveryGroup
from situ.routing.filter import Filter
from situ.routing.model import Subscription
from situ.stages.conversion_state import Held, PythonFunctions

if TYPE_CHECKING:
    from situ.routing.routing_table import RoutedRows, RoutingTable

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What a subscription asks of an event only after routing, because Python or memory has a say in it. The parts of a
# filter that need neither are asked of root events by the index, and route; this decides about what they let through.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LateFilter:
    """A condition on root events of one type. ``reasons`` are, in words, what it reads that nobody knows before."""

    reasons: str
    _test: Callable[[Mapping[str, Any], Any], Any] = field(repr=False)
    _read: Callable[[bytes], Any] = field(repr=False)

    @classmethod
    def of(cls, way: Transformation, condition: Node) -> LateFilter:
        functions = sorted(
            {each.function.name for each in way.externals.values() if not isinstance(each.of, TableLookup)}
        )
        return cls(
            reasons=f"what {' and '.join(f'`{name}`' for name in functions)} gives",
            _test=compile_test(condition, ("event", "data")).call,
            _read=data_reader(way.source, Filter(way.source.name, condition).data, way.types),
        )

    def wants(self, row: Row) -> bool | None:
        """Whether it lets the event through; None if that cannot be told, because a function fails or waits."""
        try:
            return bool(self._test(read_envelope(row), self._read(row.data)))
        except (*FAILURES, Held):
            return None


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Deliveries. Which events are wanted was decided by routing, but for late filters.

FEW = 8
"""Events below this number are converted one by one: to see which belong together costs more than it saves."""

_T = TypeVar("_T")
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_encode = msgspec.json.Encoder().encode
_DATA = b',"data":'
_LONG = len(_DATA)


class OutboundConverter(Protocol):
    """Puts single events in the terms of contexts."""

    def original(self, row: Row, context: str) -> tuple[str, bytes] | None: ...

    def in_terms(self, row: Row, context: str) -> tuple[str, bytes] | BadRow | None: ...

    def plain_way(self, context: str, type: str) -> Converter | None:
        """The converter of a root event type that needs nothing but the data; None if there is more to it."""

    def decision(self, asked: DeliveryGroup | Subscription, type: str) -> LateFilter | None: ...

    def version_of(self, context: str) -> str:
        """The context as events are stamped with it, ``us@2``."""


class ConvertedDeliveries(msgspec.Struct, frozen=True, kw_only=True):
    """Deliveries in the terms of those who get them, in the order of the rows, each with the line that is delivered.

    ``durable`` are places of rows and ids of groups; ``live`` places of rows, clients, and the names of those of their
    subscriptions that match. What could not be put in somebody's terms is in ``bad``. ``originals`` counts the events
    that those of their own context get as they were sent, by context, and ``converted`` those that were put in its
    terms: each once, however many get it.
    """

    durable: Sequence[tuple[int, str, bytes]]
    live: Sequence[tuple[int, str, str, bytes]]
    bad: tuple[BadRow, ...] = ()
    held: tuple[tuple[int, str, datetime], ...] = ()
    """Places of rows and contexts for which a conversion waits for a reference, and until when."""
    originals: Mapping[str, int] = msgspec.field(default_factory=dict)
    converted: Mapping[str, int] = msgspec.field(default_factory=dict)


class DeliveryConversion:
    """The lines of some rows in the terms of whoever asks, each made once."""

    def __init__(self, interpretation: OutboundConverter, rows: Sequence[Row], lines: Sequence[bytes]) -> None:
        self.bad: list[BadRow] = []
        self.held: list[tuple[int, str, datetime]] = []
        self.originals: Counter[str] = Counter()
        self._interpretation = interpretation
        self._rows = rows
        self._lines = lines
        self._made: dict[str, dict[int, bytes | None]] = {}
        self._plain: dict[tuple[str, str], Converter | None] = {}
        self._decided: dict[tuple[int, str, tuple[str, ...], str], bool] = {}

    def all(self, routed: RoutedRows, routing: RoutingTable, *, decide: bool) -> ConvertedDeliveries:
        """What is delivered; ``decide``: some filters had to wait."""
        self.bad += routed.bad
        if decide:
            routed = self._without_refused(routed, routing)
        if len(routed.durable) + len(routed.live) < FEW:
            return self._one_by_one(routed, routing)
        groups = {group: routing.groups[group].context for group in dict.fromkeys([each for _, each in routed.durable])}
        clients = {
            (client, names): tuple(_by_context(client, names, routing))
            for client, names in dict.fromkeys([(client, names) for _, client, names in routed.live])
        }
        self._make_all(routed, groups, clients)
        lines = {context: self._found(context) for context in groups.values()}
        durable = [
            (index, group, line) for index, group in routed.durable if (line := lines[groups[group]][index]) is not None
        ]
        live = [
            (index, client, own, line)
            for index, client, names in routed.live
            for context, own in clients[client, names]
            if (line := self.line(index, context)) is not None
        ]
        return self._worded(durable, live)

    def _worded(
        self, durable: list[tuple[int, str, bytes]], live: list[tuple[int, str, str, bytes]]
    ) -> ConvertedDeliveries:
        return ConvertedDeliveries(
            durable=durable,
            live=live,
            bad=tuple(self.bad),
            held=tuple(self.held),
            originals=self.originals,
            converted=self._converted() if self._made else _NOTHING,
        )

    def _converted(self) -> dict[str, int]:
        waiting = Counter(context for _, context, _ in self.held)
        numbers = {
            context: len(made) - self.originals[context] - waiting[context] for context, made in self._made.items()
        }
        return {context: number for context, number in numbers.items() if number}

    def _one_by_one(self, routed: RoutedRows, routing: RoutingTable) -> ConvertedDeliveries:
        groups = routing.groups
        durable = [
            (index, group, line)
            for index, group in routed.durable
            if (line := self.line(index, groups[group].context)) is not None
        ]
        live = [
            (index, client, own, line)
            for index, client, names in routed.live
            for context, own in _by_context(client, names, routing)
            if (line := self.line(index, context)) is not None
        ]
        return self._worded(durable, live)

    def _make_all(
        self,
        routed: RoutedRows,
        groups: Mapping[str, str],
        clients: Mapping[tuple[str, str], Iterable[tuple[str, str]]],
    ) -> None:
        """Make the lines that are wanted, those of a context one after the other."""
        wanted: dict[str, list[int]] = {context: [] for context in groups.values()}
        if any(context != ROOT for context in wanted):
            for index, group in routed.durable:
                wanted[groups[group]].append(index)
        for index, client, names in routed.live:
            for context, _ in clients[client, names]:
                wanted.setdefault(context, []).append(index)
        for context, places in wanted.items():
            if context != ROOT:
                self._make(context, places)
        self.bad.sort(key=lambda each: each.pos)
        self.held.sort(key=lambda each: each[0])

    def line(self, index: int, context: str) -> bytes | None:
        """None if the row cannot be put in these terms."""
        if context == ROOT:
            return self._lines[index]
        made = self._made.get(context)
        if made is None:
            made = self._made[context] = {}
        if index not in made:
            made[index] = self._one(index, context)
        return made[index]

    def _found(self, context: str) -> Sequence[bytes] | dict[int, bytes | None]:
        return self._lines if context == ROOT else self._made.setdefault(context, {})

    def _make(self, context: str, places: Iterable[int]) -> None:
        """Put the rows at these places in the terms of a context."""
        rows, made = self._rows, self._made.setdefault(context, {})
        new = [index for index in dict.fromkeys(places) if index not in made]
        for type, some in group_by_type(new, [rows[index].type for index in new]).items():
            way = self._way(context, type)
            if way is not None and way.structs is not None:
                self._from_structs(way, way.structs, some, context)
            for index in some:
                if index not in made:
                    made[index] = self._one(index, context)

    def _one(self, index: int, context: str) -> bytes | None:
        row = self._rows[index]
        way = self._way(context, row.type)
        plan = None if way is None else way.structs
        if way is None or plan is None or row.value.__class__ is not plan.takes:
            return self._line(index, row, context)
        if row.sent is not None and self._interpretation.original(row, context) is not None:
            return self._line(index, row, context)
        try:
            data = _encode(plan.call(_NOTHING, row.value))
        except FAILURES:
            return self._line(index, row, context)  # slowly: all that is wrong is said
        except Exception as error:
            if not is_of_event(error):
                raise
            return self._line(index, row, context)
        return _reworded(self._lines[index], row, way.transformation.target.name, data, way.transformation.context)

    def _from_structs(self, way: Converter, plan: StructPlan, places: list[int], context: str) -> None:
        """Put those of these rows, which are of one type, in other terms that can be as the structs that they have."""
        rows, lines, takes = self._rows, self._lines, plan.takes
        made, original = self._made[context], self._interpretation.original
        fit = [
            index
            for index in places
            if (row := rows[index]).value.__class__ is takes and (row.sent is None or original(row, context) is None)
        ]
        try:
            texts = [_encode(value) for value in plan.many(_NOTHING, [rows[index] for index in fit])]
        except FAILURES:
            return  # one by one
        except Exception as error:
            if not is_of_event(error):
                raise
            return
        before, after, join = _typed(way.transformation.source.name), _typed(way.transformation.target.name), b"".join
        version = way.transformation.context
        for index, text in zip(fit, texts, strict=True):
            # As in `_reworded`, which would have to be called for each.
            head, _, rest = lines[index].partition(before)
            end = rest.rindex(b"}", 0, -1) + 1
            row = rows[index]
            between = rest[: end - len(row.data) - _LONG]
            made[index] = join((head, after, between, *_in_terms_of(version, row.context), text, rest[end:]))

    def _way(self, context: str, type: str) -> Converter | None:
        key = (context, type)
        if key not in self._plain:
            self._plain[key] = self._interpretation.plain_way(context, type)
        return self._plain[key]

    def _line(self, index: int, row: Row, context: str) -> bytes | None:
        found: tuple[str, bytes] | BadRow | None = None
        if row.sent is not None and (found := self._interpretation.original(row, context)) is not None:
            self.originals[context] += 1
        else:
            try:
                found = self._interpretation.in_terms(row, context)
            except Held as held:
                self.held.append((index, context, held.until))
                return None
        if isinstance(found, BadRow):
            self.bad.append(found)
            return None
        type, data = (row.type, row.data) if found is None else found
        return _reworded(self._lines[index], row, type, data, self._interpretation.version_of(context))

    def _without_refused(self, routed: RoutedRows, routing: RoutingTable) -> RoutedRows:
        """Without those whose filters, which had to wait for Python, do not let the rows through."""
        durable = [each for each in routed.durable if self._wants(each[0], routing.groups[each[1]])]
        live = [
            (index, client, ",".join(own))
            for index, client, names in routed.live
            if (own := [name for name in names.split(",") if self._wants(index, _asked(client, name, routing))])
        ]
        return replace(routed, durable=durable, live=live)

    def _wants(self, index: int, asked: DeliveryGroup | Subscription) -> bool:
        key = (index, asked.context, asked.types, asked.where)
        if key not in self._decided:
            try:
                later = self._interpretation.decision(asked, self._rows[index].type)
                wants = True if later is None else later.wants(self._rows[index])
            except Exception as error:  # noqa: BLE001 - who asks so does not get this event, all else goes on
                self.bad.append(self._failed(index, asked.context, error))
                wants = False
            if wants is None:
                self.line(index, asked.context)  # what fails in the filter fails in the event, which is said
            self._decided[key] = bool(wants)
        return self._decided[key]

    def _failed(self, index: int, context: str, error: Exception) -> BadRow:
        row = self._rows[index]
        return replace(failed(row, OUTBOUND, error), context=context)


def group_by_type(those: list[_T], types: list[str]) -> dict[str, list[_T]]:
    """What is of one type, in the order in which it comes."""
    if len(set(types)) == 1:
        return {types[0]: those}
    found: dict[str, list[_T]] = {}
    for each, type in zip(those, types, strict=True):
        found.setdefault(type, []).append(each)
    return found


def _reworded(line: bytes, row: Row, type: str, data: bytes, version: str) -> bytes:
    """The line of an event with another type and other data; what stands before and behind these stays as it is.

    The quotes of a text are escaped, so the first type is that of the envelope. Data ends with the last brace but one.
    ``version`` is the context in whose terms it is now.
    """
    head, _, rest = line.partition(_typed(row.type))
    end = rest.rindex(b"}", 0, -1) + 1
    between = rest[: end - len(row.data) - _LONG]
    if row.context != ROOT:  # as logs of earlier releases say it
        between = between.replace(b',"situcontext":', b',"situfrom":', 1)
    return b"".join((head, _typed(type), between, *_in_terms_of(version, row.context), data, rest[end:]))


@lru_cache(maxsize=1024)
def _in_terms_of(version: str, sender: str) -> tuple[bytes, ...]:
    """What stands before the data: in whose terms that is; and for root, which lines do not name, whose it was."""
    origin = b',"situfrom":"root"' if sender == ROOT else b""
    return (b',"situcontext":%b%b' % (msgspec.json.encode(version), origin), _DATA)


@lru_cache(maxsize=1024)
def _typed(name: str) -> bytes:
    return b',"type":%b' % msgspec.json.encode(name)


def _asked(client: str, name: str, routing: RoutingTable) -> Subscription:
    return routing.subscriptions[f"{client}/{name}"]


def _by_context(client: str, names: str, routing: RoutingTable) -> Iterable[tuple[str, str]]:
    """The subscriptions of a client, joined by commas, apart by context."""
    found: dict[str, list[str]] = {}
    for name in names.split(","):
        found.setdefault(routing.subscriptions[f"{client}/{name}"].context, []).append(name)
    return ((context, ",".join(own)) for context, own in found.items())


def pairs(routed: RoutedRows, routing: RoutingTable) -> Iterable[tuple[int, DeliveryGroup | Subscription]]:
    """Places of rows and who asked for them."""
    for index, group in routed.durable:
        yield index, routing.groups[group]
    for index, client, names in routed.live:
        yield from ((index, _asked(client, name, routing)) for name in names.split(","))


def context_of(client: str, names: str, routing: RoutingTable) -> str:
    """The context of subscriptions of a client that are delivered to together."""
    return routing.subscriptions[f"{client}/{names.partition(',')[0]}"].context


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Which values Python functions will be asked for by a batch of events, found out before it is converted. What converts
# and decides is run once for nothing but that; see :mod:`situ.stages.conversion_state`.

_NO_PREFETCH = nullcontext()


class PrefetchSource(Protocol):
    """Converts events and decides about them, and may ask Python functions for that."""

    @property
    def python(self) -> PythonFunctions: ...

    @property
    def calls_python(self) -> bool: ...

    def converter(self, context: str, direction: Direction, type: str) -> Converter | None: ...

    def decision(self, asked: DeliveryGroup | Subscription, type: str) -> LateFilter | None: ...


def prefetch_inbound(
    asking: PrefetchSource, messages: Iterable[Sequence[Row | BadRow]]
) -> AbstractContextManager[None]:
    """Within, Python functions have been called for all of these events that are on their way into root."""
    if not asking.calls_python:
        return _NO_PREFETCH
    return asking.python.together(
        partial(way.text, read_envelope(row), row.data)
        for rows in messages
        for row in rows
        if isinstance(row, Row) and row.context != ROOT
        if (way := asking.converter(row.context, Direction.IN, row.type)) is not None and _calls(way)
    )


def prefetch_outbound(
    asking: PrefetchSource, messages: Sequence[tuple[Sequence[Row], RoutedRows]], routing: RoutingTable
) -> AbstractContextManager[None]:
    """Within, Python functions have been called for all of these events and the contexts they are for."""
    if not asking.calls_python:
        return _NO_PREFETCH
    decisions = (
        partial(later.wants, rows[index])
        for rows, routed in messages
        for index, asked in pairs(routed, routing)
        if (later := asking.decision(asked, rows[index].type)) is not None
    )
    conversions = (
        partial(way.text, read_envelope(rows[index]), rows[index].data)
        for rows, routed in messages
        for index, context in _wanted_in(asking, rows, routed, routing)
        if (way := asking.converter(context, Direction.OUT, rows[index].type)) is not None and _calls(way)
    )
    return asking.python.together(decisions, conversions)


def _wanted_in(
    asking: PrefetchSource, rows: Sequence[Row], routed: RoutedRows, routing: RoutingTable
) -> Iterable[tuple[int, str]]:
    """Places of rows and the contexts in which somebody wants them, each once."""
    found: dict[tuple[int, str], None] = {}
    for index, asked in pairs(routed, routing):
        if asked.context != ROOT and (index, asked.context) not in found:
            later = asking.decision(asked, rows[index].type)
            if later is None or later.wants(rows[index]) is not False:
                found[index, asked.context] = None
    return found


def _calls(way: Converter) -> bool:
    return any(each.of is None for each in way.transformation.externals.values())
