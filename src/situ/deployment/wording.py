"""Deliveries in the terms of those who get them: each event is put in the terms of a context once.

Which events are wanted was decided by routing, but for filters that had to wait for what Python or memory gives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Protocol

import msgspec

from situ.deployment.later import Decision
from situ.deployment.memory import Held
from situ.event.row import Bad, Row
from situ.expr.runtime import FAILURES
from situ.interpretation.convert import Converter
from situ.interpretation.model import ROOT
from situ.subscription.model import Subscription
from situ.subscription.routing import Routed, Routing
from situ.subscription.wanted import Group

_DATA = b',"data":'
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_Text = Callable[[Mapping[str, Any], bytes], bytes]


class Speaker(Protocol):
    """Puts single events in the terms of contexts."""

    def original(self, row: Row, context: str) -> tuple[str, bytes] | None: ...

    def in_terms(self, row: Row, context: str) -> tuple[str, bytes] | Bad | None: ...

    def plain_way(self, context: str, type: str) -> Converter | None:
        """The converter of a root event type that needs nothing but the data; None if there is more to it."""

    def decision(self, asked: Group | Subscription, type: str) -> Decision | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Worded:
    """Deliveries in the terms of those who get them, in the order of the rows, each with the line that is delivered.

    ``durable`` are places of rows and ids of groups; ``live`` places of rows, clients, and the names of those of their
    subscriptions that match. What could not be put in somebody's terms is in ``bad``. ``originals`` counts the events
    that those of their own context get as they were sent, by context.
    """

    durable: Sequence[tuple[int, str, bytes]]
    live: Sequence[tuple[int, str, str, bytes]]
    bad: tuple[Bad, ...] = ()
    held: tuple[tuple[int, str, datetime], ...] = ()
    """Places of rows and contexts for which a conversion waits for a reference, and until when."""
    originals: Mapping[str, int] = field(default_factory=dict)


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
        self._plain: dict[tuple[str, str], tuple[_Text, bytes, bytes] | None] = {}
        self._decided: dict[tuple[int, str, tuple[str, ...], str], bool] = {}

    def all(self, routed: Routed, routing: Routing, *, decide: bool) -> Worded:
        """What is delivered; ``decide``: some filters had to wait."""
        groups = routing.groups
        if decide:
            routed = self._without_refused(routed, routing)
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
        return Worded(durable=durable, live=live, bad=tuple(self.bad), held=tuple(self.held), originals=self.originals)

    def line(self, index: int, context: str) -> bytes | None:
        """None if the row cannot be put in these terms."""
        if context == ROOT:
            return self._lines[index]
        made = self._made.get(context)
        if made is None:
            made = self._made[context] = {}
        elif index in made:
            return made[index]
        row = self._rows[index]
        if row.sent is None and (plain := self._way(context, row.type)) is not None:
            text, before, after = plain
            try:
                line: bytes | None = _reworded(self._lines[index], row, before, after, text(_NOTHING, row.data))
            except FAILURES:
                line = self._line(index, row, context)  # slowly: all that is wrong is said
        else:
            line = self._line(index, row, context)
        made[index] = line
        return line

    def _way(self, context: str, type: str) -> tuple[_Text, bytes, bytes] | None:
        key = (context, type)
        if key not in self._plain:
            way = self._interpretation.plain_way(context, type)
            after = "" if way is None else way.transformation.target.name
            self._plain[key] = None if way is None else (way.text, _typed(type), _typed(after))
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
        if found is None:
            return self._lines[index]
        type, data = found
        return _reworded(self._lines[index], row, _typed(row.type), _typed(type), data)

    def _without_refused(self, routed: Routed, routing: Routing) -> Routed:
        """Without those whose filters, which had to wait for Python, do not let the rows through."""
        durable = [each for each in routed.durable if self._wants(each[0], routing.groups[each[1]])]
        live = [
            (index, client, ",".join(own))
            for index, client, names in routed.live
            if (own := [name for name in names.split(",") if self._wants(index, _asked(client, name, routing))])
        ]
        return Routed(durable, live)

    def _wants(self, index: int, asked: Group | Subscription) -> bool:
        key = (index, asked.context, asked.types, asked.where)
        if key not in self._decided:
            later = self._interpretation.decision(asked, self._rows[index].type)
            wants = True if later is None else later.wants(self._rows[index])
            if wants is None:
                self.line(index, asked.context)  # what fails in the filter fails in the event, which is said
            self._decided[key] = bool(wants)
        return self._decided[key]


def _reworded(line: bytes, row: Row, before: bytes, after: bytes, data: bytes) -> bytes:
    """The line of an event with another type and other data; what stands before and behind these stays as it is.

    The quotes of a text are escaped, so the first of these keys are those of the envelope.
    """
    cut = line.index(_DATA) + len(_DATA)
    return b"%b%b%b" % (line[:cut].replace(before, after, 1), data, line[cut + len(row.data) :])


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
