"""Conversion of events between contexts for commands: contexts by name, ways in and out, tables, the conversion.

`find_context` and `ContextConversions` say which way an event type takes in or out of a context, or why there is none.
`LookupTables` reads tables when the first event needs them. `ContextTransformer` converts events from one context
through root to another, with the converters that engines use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from situ.contexts.check import check_rules
from situ.contexts.lookup_tables import TableLookups, lookup_keys
from situ.contexts.model import ROOT, Context, Direction
from situ.contexts.transform.converter import Converter
from situ.contexts.transform.function_calls import FindRow
from situ.contexts.transform.transformation import Transformation, transformations
from situ.event.row import Row
from situ.explain.expression import envelope_of
from situ.lang.catalogue import NO_WAY, NOT_EXECUTED, UNKNOWN_CONTEXT
from situ.lang.expr.runtime import FAILURES
from situ.lang.problems import Location, Problem, Problems, SituError, nearest
from situ.lang.types.json_codec import Extra, decoder, encode
from situ.lang.types.lookup import no_way_in, unknown_event
from situ.project.event_files import InputEvent
from situ.sources import Source
from situ.stages.conversion_state import ConversionMemory, PythonFunctions
from situ.stages.interpret import not_executed
from situ.tables.cache import TablesInUse

if TYPE_CHECKING:
    from situ.model import Deployment
    from situ.project.check import LoadedProject


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextConversions:
    """The ways of all event types through a context in one direction, and what is to say about them."""

    context: Context
    direction: Direction
    by_type: Mapping[str, Transformation]
    problems: tuple[Problem, ...]

    @classmethod
    def of(cls, context: Context, direction: Direction) -> ContextConversions:
        problems = Problems()
        check_rules(context, direction, problems)
        found = transformations(context, direction, problems)
        return cls(context=context, direction=direction, by_type=found, problems=problems.sorted())

    def get(self, type: str) -> Transformation:
        """The way of this event type; else why there is none: no such type, or nothing becomes of it."""
        found = self.by_type.get(type)
        if found is None:
            raise SituError(self.missing(type))
        return found

    def missing(self, type: str) -> Problem:
        """Why there is no way for this event type."""
        known = self.context.types_of(self.direction).events
        if type not in known:
            return unknown_event(type, nearest(type, sorted(known)))
        said = (each for each in self.problems if each.code is NO_WAY and each.values["type"] == type)
        return next(said)

    def reason(self, type: str) -> str:
        """In words, why an event type is not available; empty if it is."""
        if type in self.by_type or type not in self.context.types_of(self.direction).events:
            return ""
        return str(self.missing(type).values["reason"])


def find_context(name: str, deployment: Deployment) -> Context:
    """The context called ``acme.us`` or ``acme.us@7``; refused with the nearest names if there is none."""
    found = deployment.contexts.get(name)
    if found is not None:
        return found
    id, _, _ = name.partition("@")
    there = deployment.contexts.by_id.get(id)
    reason = "there is none of that name" if there is None else f"its version is {there.version}"
    known = sorted(deployment.contexts.by_id)
    remedy = f"Contexts are declared in contexts/*.yaml; there is {', '.join(known)}."
    raise SituError(UNKNOWN_CONTEXT(name=name, reason=reason, nearest=nearest(id, known), remedy=remedy))


def place_text(location: Location | None) -> str | None:
    """``contexts/us.yaml:20``; None for what is written nowhere."""
    return None if location is None else f"{location.file}:{location.line}"


def type_text(name: str, context: Context) -> str:
    """A type with the context that declares it, unless that is root."""
    owner = next((each.id for each in context.chain if name in each.own), ROOT)
    return name if owner == ROOT else f"{owner}:{name}"


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What a conversion needs besides the event: tables, read once when the first event needs them and closed at once;
# Python functions, executed when they are first called; and what was remembered of the events before.


class LookupTables:
    """The tables of a project as they are now. Files are relative to its folder."""

    def __init__(self, sources: Mapping[str, Source], folder: Path) -> None:
        self._sources = sources
        self._folder = folder
        self._rows = TableLookups()
        self._python = PythonFunctions()
        self.memory = ConversionMemory()

    def find(self, way: Transformation) -> Mapping[str, FindRow]:
        """How what a transformation needs besides the event is found; ``SituError`` if a table cannot be used."""
        needed = lookup_keys([way])
        missing = {name: each for name, each in needed.items() if name not in self._rows.tables}
        if missing:
            with TablesInUse(self._folder) as tables:
                self._rows.tables = {**self._rows.tables, **tables.use(self._sources, missing)}
        for name, keys in needed.items():
            for columns, as_of in keys:
                self._rows.tables[name].index(columns, as_of)
        return {**self._rows.finders(way), **self._python.finders(way), **self.memory.finders(way)}


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The passage of events from one context through root to another.

ProblemTuple = tuple[Problem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextTransformer:
    """In through one context and out through the other."""

    incoming: ContextConversions
    outgoing: ContextConversions
    extra: Extra
    tables: LookupTables
    _converters: dict[tuple[Direction, str], Converter] = field(default_factory=dict)

    @classmethod
    def of(cls, source: Context, target: Context, opened: LoadedProject) -> ContextTransformer:
        deployment = opened.deployment
        passage = cls(
            incoming=ContextConversions.of(source, Direction.IN),
            outgoing=ContextConversions.of(target, Direction.OUT),
            extra=deployment.settings.defaults.extra,
            tables=LookupTables(deployment.sources, opened.path),
        )
        ways = (*passage.incoming.by_type.values(), *passage.outgoing.by_type.values())
        passage.tables.memory.use(ways, deployment.types)
        return passage

    def transform(self, given: InputEvent) -> dict[str, Any] | ProblemTuple:
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

    def _through(
        self, ways: ContextConversions, type: str, data: Any, envelope: Mapping[str, Any]
    ) -> _Event | ProblemTuple:
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

    def _missing(self, ways: ContextConversions, type: str) -> Problem:
        if ways.direction is Direction.IN and ways.reason(type):
            return no_way_in(type, ways.context.id)
        return ways.missing(type)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    type: str
    data: dict[str, Any]
