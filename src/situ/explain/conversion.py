"""The passage of events from one context through root to another, with the converters that engines use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from situ.catalogue import NOT_EXECUTED
from situ.cli.in_context import Ways
from situ.cli.looked_up import LookedUp
from situ.cli.opened import Opened
from situ.cli.outcome import envelope_of
from situ.cli.published import Given
from situ.deployment.interpreting import not_executed
from situ.errors import Problem
from situ.event.row import Row
from situ.expr.runtime import FAILURES
from situ.interpretation.convert import Converter
from situ.interpretation.model import ROOT, Context, Direction
from situ.types.decode import Extra, decoder
from situ.types.encode import encode
from situ.types.undeclared import no_way_in

Problems = tuple[Problem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """In through one context and out through the other."""

    incoming: Ways
    outgoing: Ways
    extra: Extra
    tables: LookedUp
    _converters: dict[tuple[Direction, str], Converter] = field(default_factory=dict)

    @classmethod
    def of(cls, source: Context, target: Context, opened: Opened) -> Passage:
        deployment = opened.deployment
        passage = cls(
            incoming=Ways.of(source, Direction.IN),
            outgoing=Ways.of(target, Direction.OUT),
            extra=deployment.settings.defaults.extra,
            tables=LookedUp(deployment.sources, opened.path),
        )
        ways = (*passage.incoming.by_type.values(), *passage.outgoing.by_type.values())
        passage.tables.memory.use(ways, deployment.types)
        return passage

    def transform(self, given: Given) -> dict[str, Any] | Problems:
        """The event as somebody in the other context gets it, or all that is wrong with it."""
        type, data = given.type, given.data
        envelope = {**envelope_of(datetime.now(UTC)), **given.envelope}
        for ways in (self.incoming, self.outgoing):
            found = self._through(ways, type, data, {**envelope, "type": type})
            if not isinstance(found, _Event):
                return found
            type, data = found.type, found.data
            if ways is self.incoming:
                self._note(type, data, envelope["time"])
        if not given.sent:
            return data
        kept = {name: value for name, value in given.sent.items() if name != "data"}
        return {**kept, "type": type, "data": data}

    def _note(self, type: str, data: Any, time: datetime) -> None:
        """What is in root's terms may be remembered by the conversions of what follows."""
        memory = self.tables.memory
        if not memory.is_empty:
            at = (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
            text = msgspec.json.encode(data)
            memory.note([Row(0, "", 0, 0, ROOT, 0, "", "", type, at, "", None, "", text)])

    def _through(self, ways: Ways, type: str, data: Any, envelope: Mapping[str, Any]) -> _Event | Problems:
        if type not in ways.by_type:
            return (self._missing(ways, type),)
        way = ways.by_type[type]
        if refused := tuple(not_executed(way, NOT_EXECUTED)):
            return refused
        decoded = decoder(way.source, way.types, self.extra)(data)
        if decoded.problems:
            return decoded.problems
        converter = self._converters.get((ways.direction, type))
        if converter is None:
            converter = self._converters[ways.direction, type] = Converter(way, self.tables.find(way))
        try:
            value = converter.data(envelope, decoded.value)
        except FAILURES:
            return converter.faults(envelope, decoded.value)
        return _Event(type=way.target.name, data=encode(way.target, value, way.targets))

    def _missing(self, ways: Ways, type: str) -> Problem:
        if ways.direction is Direction.IN and ways.reason(type):
            return no_way_in(type, ways.context.id)
        return ways.missing(type)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    type: str
    data: dict[str, Any]
