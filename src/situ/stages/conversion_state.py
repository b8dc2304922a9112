"""What conversions remember of other events: references, by what a function declares as its ``state``.

Root events are noted as they pass; conversions ask by key and time. Functions that declare the same share what is
remembered, in whatever context they are. What a root event says is read here; what is kept how long is
:mod:`situ.interpretation.references`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from situ.event.instants import instant_at
from situ.event.isolation import is_of_event
from situ.event.row import Row
from situ.expr.emit_python import compile_value
from situ.expr.runtime import FAILURES
from situ.expr.tree import Node, Read, walk
from situ.interpretation.bodies import DATA, check_over
from situ.interpretation.calls import External
from situ.interpretation.model import Conversion, Expression, Missing, State
from situ.interpretation.references import References
from situ.interpretation.rows import Find
from situ.interpretation.transformation import Transformation
from situ.subscription.reading import data_reader
from situ.types.decode import decoder
from situ.types.encode import encoder
from situ.types.model import is_subtype
from situ.types.table import Types

_encode = msgspec.json.Encoder().encode
_FIRST = datetime(1, 1, 1, tzinfo=UTC)


class Held(Exception):
    """A conversion waits for a reference, until events of this time have come."""

    def __init__(self, until: datetime) -> None:
        super().__init__(f"waits for a reference until {until}")
        self.until = until


@dataclass(slots=True, eq=False)
class _Noted:
    """What is kept of an event; and its text, once that was written down."""

    row: Mapping[str, Any]
    text: msgspec.Raw | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Reading:
    """How references of one state are read from root events."""

    state: State
    references: References[_Noted]
    read: Callable[[bytes], Any]
    key: Callable[[Any], Any]
    keep: tuple[tuple[str, Callable[[Any], Any]], ...]

    @classmethod
    def of(cls, state: State, function: Conversion, types: Types) -> _Reading:
        scope = replace(function.scope, types=types)

        def node(expression: Expression) -> Node:
            found = check_over(expression, state.event, scope).node
            assert found is not None  # what does not type is not deployed
            return found

        nodes = [node(each) for each in (state.key, *(expression for _, expression in state.keep))]
        paths = [part.path for each in nodes for part in walk(each) if isinstance(part, Read) and part.variable == DATA]
        names = frozenset(path[0] for path in paths) if all(paths) else None
        key, *kept = (compile_value(each, (DATA,)).call for each in nodes)
        return cls(
            state=state,
            references=References(history=state.history, ttl=state.ttl, most=state.max_keys),
            read=data_reader(state.event, names, types),
            key=key,
            keep=tuple((name, call) for (name, _), call in zip(state.keep, kept, strict=True)),
        )

    def emptied(self) -> _Reading:
        state = self.state
        return replace(self, references=References(history=state.history, ttl=state.ttl, most=state.max_keys))

    def note(self, row: Row) -> None:
        try:
            data = self.read(row.data)
            key = self.key(data)
            kept = {name: value for name, call in self.keep if (value := call(data)) is not None}
        except FAILURES:
            return  # of this event nothing can be said
        except Exception as error:
            if not is_of_event(error):
                raise
            return
        if key is not None:
            self.references.add(_key(key), instant_at(row.time), _Noted(kept))

    def as_json(self) -> dict[str, Any]:
        write, references = encoder(self.state.row), self.references
        kept = []
        for key, time, noted in references:
            if noted.text is None:
                noted.text = msgspec.Raw(_encode((key, time.isoformat(), write(noted.row))))
            kept.append(noted.text)
        return {
            "latest": references.latest.isoformat() if references.latest is not None else None,
            "evicted": references.evicted,
            "kept": kept,
        }

    def restore(self, value: Mapping[str, Any]) -> None:
        read, references = decoder(self.state.row), self.references
        for key, time, row in value["kept"]:
            references.add(key, datetime.fromisoformat(time), _Noted(read(row).value))
        references.latest = datetime.fromisoformat(value["latest"]) if value["latest"] is not None else None
        references.evicted = value["evicted"]


@dataclass(frozen=True, slots=True, eq=False)
class _Used:
    """What is remembered, and of events of which type."""

    readings: Mapping[State, _Reading] = field(default_factory=dict)
    asked: frozenset[State] = frozenset()
    """What the last deployment asks for; others are of the one before it."""
    types: Types | None = None
    by_type: dict[str, tuple[_Reading, ...]] = field(default_factory=dict)

    def of(self, type: str) -> tuple[_Reading, ...]:
        found = self.by_type.get(type)
        if found is None:
            event = self.types.event(type) if self.types is not None else None
            readings = self.readings.items() if event is not None else ()
            fitting = (each for state, each in readings if event is not None and is_subtype(event, state.event))
            found = self.by_type[type] = tuple(fitting)
        return found


class Memory:
    """Everything that the conversions of a zone remember. ``holds``: conversions that may wait do."""

    def __init__(self, *, holds: bool = False) -> None:
        self.latest = _FIRST
        """The latest time of any event that was noted."""
        self.holds = holds
        self.noted = 0
        """How many references have come."""
        self._used = _Used()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing that could be remembered."""
        return not self._used.asked

    @property
    def span(self) -> timedelta:
        """How far back what is remembered may reach."""
        return max((state.ttl for state in self._used.readings), default=timedelta())

    @property
    def evicted(self) -> int:
        """Keys that had to go because there were too many."""
        return sum(each.references.evicted for each in self._used.readings.values())

    def use(self, ways: Iterable[Transformation], types: Types) -> None:
        """Remember what these transformations ask for, and go on with what was remembered before."""
        before = self._used
        asked = {
            _shared(external.of): external.function
            for way in ways
            for external in way.externals.values()
            if isinstance(external.of, State)
        }
        # Plans are made beside the work that goes on with the one before: what that uses stays, for one change more.
        readings = {state: before.readings[state] for state in before.asked}
        for state, function in asked.items():
            if state not in readings:
                readings[state] = before.readings.get(state) or _Reading.of(state, function, types)
        self._used = _Used(readings, frozenset(asked), types)

    def forget(self) -> None:
        """Everything, as if nothing had come yet."""
        used = self._used
        self.latest, self.noted = _FIRST, 0
        self._used = replace(
            used, readings={state: each.emptied() for state, each in used.readings.items()}, by_type={}
        )

    def note(self, rows: Sequence[Row]) -> None:
        """Root events that have come, in their order."""
        used = self._used
        for row in rows:
            time = instant_at(row.time)
            if time > self.latest:
                self.latest = time
            for each in used.of(row.type):
                each.note(row)
                self.noted += 1

    def finders(self, way: Transformation) -> dict[str, Find]:
        """How what a transformation remembers is found, by the names of its variables."""
        return {name: self._finder(each) for name, each in way.externals.items() if isinstance(each.of, State)}

    def _finder(self, external: External) -> Find:
        assert isinstance(external.of, State)
        state, function = _shared(external.of), external.function

        def find(key: Any, time: datetime) -> Mapping[str, Any] | None:
            reading = self._used.readings.get(state)
            found = None if reading is None else reading.references.find(_key(key), time)
            if found is not None:
                return found.row
            if self.holds and function.missing is Missing.HOLD and self.latest < time + function.hold:
                raise Held(time + function.hold)
            return None

        return find

    # ── kept somewhere ──

    def as_text(self) -> bytes:
        """All of it as JSON, from which :meth:`restore` goes on where this was. What was written before is at hand."""
        states = {_name(state): each.as_json() for state, each in self._used.readings.items()}
        return _encode({"latest": self.latest.isoformat(), "states": states})

    def restore(self, value: Mapping[str, Any]) -> None:
        """Go on with what was written down, of all that is remembered here."""
        self.latest = datetime.fromisoformat(value["latest"])
        for state, reading in self._used.readings.items():
            if (kept := value["states"].get(_name(state))) is not None:
                reading.restore(kept)


def _shared(state: State) -> State:
    return replace(state, name="")


def _name(state: State) -> str:
    kept = ", ".join(f"{name}={each.text}" for name, each in state.keep)
    return f"{state.event.name} by {state.key.text}: {kept} {state.ttl} {state.history} {state.max_keys}"


def _key(value: Any) -> str:
    """The text of a key; numbers that are equal have the same."""
    return _encode(int(value) if isinstance(value, float) and value.is_integer() else value).decode()
