"""Deliveries in the terms of those who get them: each event is put in the terms of a context once.

Which events are wanted was decided by routing, but for filters that had to wait for what Python or memory gives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from situ.deployment.later import Decision
from situ.deployment.memory import Held
from situ.event.isolation import failed, is_of_event
from situ.event.row import OUTBOUND, Bad, Row
from situ.expr.runtime import FAILURES
from situ.interpretation.convert import Converter
from situ.interpretation.json_structs import StructPlan
from situ.interpretation.model import ROOT
from situ.subscription.model import Subscription
from situ.subscription.wanted import Group

if TYPE_CHECKING:
    from situ.subscription.routing import Routed, Routing

FEW = 8
"""Events below this number are converted one by one: to see which belong together costs more than it saves."""

_T = TypeVar("_T")
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_encode = msgspec.json.Encoder().encode
_DATA = b',"data":'
_LONG = len(_DATA)


class Speaker(Protocol):
    """Puts single events in the terms of contexts."""

    def original(self, row: Row, context: str) -> tuple[str, bytes] | None: ...

    def in_terms(self, row: Row, context: str) -> tuple[str, bytes] | Bad | None: ...

    def plain_way(self, context: str, type: str) -> Converter | None:
        """The converter of a root event type that needs nothing but the data; None if there is more to it."""

    def decision(self, asked: Group | Subscription, type: str) -> Decision | None: ...

    def version_of(self, context: str) -> str:
        """The context as events are stamped with it, ``us@2``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worded:
    """Deliveries in the terms of those who get them, in the order of the rows, each with the line that is delivered.

    ``durable`` are places of rows and ids of groups; ``live`` places of rows, clients, and the names of those of their
    subscriptions that match. What could not be put in somebody's terms is in ``bad``. ``originals`` counts the events
    that those of their own context get as they were sent, by context, and ``converted`` those that were put in its
    terms: each once, however many get it.
    """

    durable: Sequence[tuple[int, str, bytes]]
    live: Sequence[tuple[int, str, str, bytes]]
    bad: tuple[Bad, ...] = ()
    held: tuple[tuple[int, str, datetime], ...] = ()
    """Places of rows and contexts for which a conversion waits for a reference, and until when."""
    originals: Mapping[str, int] = field(default_factory=dict)
    converted: Mapping[str, int] = field(default_factory=dict)


class Wording:
    """The lines of some rows in the terms of whoever asks, each made once."""

    def __init__(self, interpretation: Speaker, rows: Sequence[Row], lines: Sequence[bytes]) -> None:
        self.bad: list[Bad] = []
        self.held: list[tuple[int, str, datetime]] = []
        self.originals: Counter[str] = Counter()
        self._interpretation = interpretation
        self._rows = rows
        self._lines = lines
        self._made: dict[str, dict[int, bytes | None]] = {}
        self._plain: dict[tuple[str, str], Converter | None] = {}
        self._decided: dict[tuple[int, str, tuple[str, ...], str], bool] = {}

    def all(self, routed: Routed, routing: Routing, *, decide: bool) -> Worded:
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

    def _worded(self, durable: list[tuple[int, str, bytes]], live: list[tuple[int, str, str, bytes]]) -> Worded:
        return Worded(
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

    def _one_by_one(self, routed: Routed, routing: Routing) -> Worded:
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
        self, routed: Routed, groups: Mapping[str, str], clients: Mapping[tuple[str, str], Iterable[tuple[str, str]]]
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
        for type, some in together(new, [rows[index].type for index in new]).items():
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
        found: tuple[str, bytes] | Bad | None = None
        if row.sent is not None and (found := self._interpretation.original(row, context)) is not None:
            self.originals[context] += 1
        else:
            try:
                found = self._interpretation.in_terms(row, context)
            except Held as held:
                self.held.append((index, context, held.until))
                return None
        if isinstance(found, Bad):
            self.bad.append(found)
            return None
        type, data = (row.type, row.data) if found is None else found
        return _reworded(self._lines[index], row, type, data, self._interpretation.version_of(context))

    def _without_refused(self, routed: Routed, routing: Routing) -> Routed:
        """Without those whose filters, which had to wait for Python, do not let the rows through."""
        durable = [each for each in routed.durable if self._wants(each[0], routing.groups[each[1]])]
        live = [
            (index, client, ",".join(own))
            for index, client, names in routed.live
            if (own := [name for name in names.split(",") if self._wants(index, _asked(client, name, routing))])
        ]
        return replace(routed, durable=durable, live=live)

    def _wants(self, index: int, asked: Group | Subscription) -> bool:
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

    def _failed(self, index: int, context: str, error: Exception) -> Bad:
        row = self._rows[index]
        return msgspec.structs.replace(failed(row, OUTBOUND, error), context=context)


def together(those: list[_T], types: list[str]) -> dict[str, list[_T]]:
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


def _asked(client: str, name: str, routing: Routing) -> Subscription:
    return routing.subscriptions[f"{client}/{name}"]


def _by_context(client: str, names: str, routing: Routing) -> Iterable[tuple[str, str]]:
    """The subscriptions of a client, joined by commas, apart by context."""
    found: dict[str, list[str]] = {}
    for name in names.split(","):
        found.setdefault(routing.subscriptions[f"{client}/{name}"].context, []).append(name)
    return ((context, ",".join(own)) for context, own in found.items())


def pairs(routed: Routed, routing: Routing) -> Iterable[tuple[int, Group | Subscription]]:
    """Places of rows and who asked for them."""
    for index, group in routed.durable:
        yield index, routing.groups[group]
    for index, client, names in routed.live:
        yield from ((index, _asked(client, name, routing)) for name in names.split(","))


def context_of(client: str, names: str, routing: Routing) -> str:
    """The context of subscriptions of a client that are delivered to together."""
    return routing.subscriptions[f"{client}/{names.partition(',')[0]}"].context
