"""State of conversions: references to other events, and results of Python functions.

`VersionedStore` keeps references by key and time within the bounds that stand before it, `ConversionMemory` what the
functions of contexts remember of root events, `PythonFunctions` calls functions of Python for many events at once.
"""

from __future__ import annotations

import heapq
import sys
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Any, Generic, TypeVar

import msgspec

from situ.contexts.function_bodies import DATA, check_over
from situ.contexts.model import Conversion, Expression, MissingValue, ReferenceState
from situ.contexts.python_files import code_digest, without_declarations
from situ.contexts.transform.function_calls import ExternalValue, FindRow
from situ.contexts.transform.transformation import Transformation
from situ.event.data_reader import data_reader
from situ.event.failures import is_of_event
from situ.event.instants import instant_at
from situ.event.row import Row
from situ.lang.expr.emit.python import compile_value
from situ.lang.expr.runtime import FAILURES
from situ.lang.expr.tree import Node, Read, walk
from situ.lang.records import replace
from situ.lang.types.json_codec import decoder, encoder
from situ.lang.types.model import Type, is_subtype
from situ.lang.types.scalars import example
from situ.lang.types.table import Types

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# References by key: what was said last, and what was said at a time, within bounds. A reference is a row with the time
# it is of. They come in any order; asked for a time, the latest one not later than it is found, of those that have
# come. Nothing here knows events or expressions. Bounds:
#
# - of each key, those younger than ``history`` before its latest, and the one that was valid then; ``MOST`` at most;
# - a key whose latest is older than ``ttl`` before the latest of all keys is forgotten, and no reference serves an
#   event that is more than ``ttl`` later than it;
# - ``most`` keys; the one that was not used for longest goes first. A key is used when a reference comes or is found.

T = TypeVar("T")

MOST = 4096
"""References of one key, whatever its ``history``: the oldest go first."""

_SPARE = 64


class _KeyHistory(msgspec.Struct, Generic[T]):
    """Of one key, in the order of their times, each once: what came last at a time counts."""

    number: int
    times: list[datetime] = msgspec.field(default_factory=list)
    rows: list[T] = msgspec.field(default_factory=list)

    def add(self, time: datetime, row: T, history: timedelta) -> None:
        place = bisect_right(self.times, time)
        if place and self.times[place - 1] == time:
            self.rows[place - 1] = row
            return
        self.times.insert(place, time)
        self.rows.insert(place, row)
        first = 0
        with suppress(OverflowError):  # a history from before there were dates has no beginning
            first = bisect_right(self.times, self.times[-1] - history) - 1
        first = max(first, len(self.times) - MOST)
        if first > 0:
            del self.times[:first], self.rows[:first]

    def at(self, time: datetime) -> tuple[datetime, T] | None:
        place = bisect_right(self.times, time)
        return (self.times[place - 1], self.rows[place - 1]) if place else None


class VersionedStore(Generic[T]):
    """See the module. ``evicted`` counts the keys that had to go because there were too many."""

    __slots__ = ("_by_age", "_count", "_history", "_keys", "_most", "_ttl", "evicted", "latest")

    def __init__(self, *, history: timedelta, ttl: timedelta, most: int) -> None:
        self._history, self._ttl, self._most = history, ttl, most
        self._keys: OrderedDict[str, _KeyHistory[T]] = OrderedDict()
        self._by_age: list[tuple[datetime, int, str]] = []
        """Each key once, with a time that its latest reference is not older than."""
        self._count = 0
        self.latest: datetime | None = None
        self.evicted = 0

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[tuple[str, datetime, T]]:
        """All of them: the keys in the order they would go, the references of each by time."""
        for key, kept in self._keys.items():
            for time, row in zip(kept.times, kept.rows, strict=True):
                yield key, time, row

    def add(self, key: str, time: datetime, row: T) -> None:
        if self.latest is None or time > self.latest:
            self.latest = time
        kept = self._keys.get(key)
        if kept is None:
            self._count += 1
            kept = self._keys[key] = _KeyHistory(self._count)
            heapq.heappush(self._by_age, (time, self._count, key))
        kept.add(time, row, self._history)
        self._keys.move_to_end(key)
        self._forget()
        while len(self._keys) > self._most:
            self._keys.popitem(last=False)
            self.evicted += 1
        if len(self._by_age) > 2 * len(self._keys) + _SPARE:
            self._by_age = [(kept.times[-1], kept.number, key) for key, kept in self._keys.items()]
            heapq.heapify(self._by_age)

    def find(self, key: str, time: datetime) -> T | None:
        """The latest reference of the key that is not later than this."""
        kept = self._keys.get(key)
        found = None if kept is None else kept.at(time)
        if found is None or time - found[0] > self._ttl:
            return None
        self._keys.move_to_end(key)
        return found[1]

    def _forget(self) -> None:
        """Keys that nothing was heard of for too long; the heap is looked at only as far as it may be wrong."""
        assert self.latest is not None
        while self._by_age and self.latest - self._by_age[0][0] > self._ttl:
            _, number, key = heapq.heappop(self._by_age)
            kept = self._keys.get(key)
            if kept is None or kept.number != number:
                continue  # it was evicted; if it came again, it is in the heap again
            if self.latest - kept.times[-1] > self._ttl:
                del self._keys[key]
            else:
                heapq.heappush(self._by_age, (kept.times[-1], number, key))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What conversions remember of other events: references, by what a function declares as its ``state``. Root events are
# noted as they pass; conversions ask by key and time. Functions that declare the same share what is remembered, in
# whatever context they are.

_encode = msgspec.json.Encoder().encode
_FIRST = datetime(1, 1, 1, tzinfo=UTC)


class Held(Exception):
    """A conversion waits for a reference, until events of this time have come."""

    def __init__(self, until: datetime) -> None:
        super().__init__(f"waits for a reference until {until}")
        self.until = until


class _Noted(msgspec.Struct, eq=False):
    """What is kept of an event; and its text, once that was written down."""

    row: Mapping[str, Any]
    text: msgspec.Raw | None = None


class _StateReader(msgspec.Struct, frozen=True, eq=False):
    """How references of one state are read from root events."""

    state: ReferenceState
    references: VersionedStore[_Noted]
    read: Callable[[bytes], Any]
    key: Callable[[Any], Any]
    keep: tuple[tuple[str, Callable[[Any], Any]], ...]

    @classmethod
    def of(cls, state: ReferenceState, function: Conversion, types: Types) -> _StateReader:
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
            references=VersionedStore(history=state.history, ttl=state.ttl, most=state.max_keys),
            read=data_reader(state.event, names, types),
            key=key,
            keep=tuple((name, call) for (name, _), call in zip(state.keep, kept, strict=True)),
        )

    def emptied(self) -> _StateReader:
        state = self.state
        return replace(self, references=VersionedStore(history=state.history, ttl=state.ttl, most=state.max_keys))

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


class _Used(msgspec.Struct, frozen=True, eq=False):
    """What is remembered, and of events of which type."""

    readings: Mapping[ReferenceState, _StateReader] = msgspec.field(default_factory=dict)
    asked: frozenset[ReferenceState] = frozenset()
    """What the last deployment asks for; others are of the one before it."""
    types: Types | None = None
    by_type: dict[str, tuple[_StateReader, ...]] = msgspec.field(default_factory=dict)

    def of(self, type: str) -> tuple[_StateReader, ...]:
        found = self.by_type.get(type)
        if found is None:
            event = self.types.event(type) if self.types is not None else None
            readings = self.readings.items() if event is not None else ()
            fitting = (each for state, each in readings if event is not None and is_subtype(event, state.event))
            found = self.by_type[type] = tuple(fitting)
        return found


class ConversionMemory:
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
            if isinstance(external.of, ReferenceState)
        }
        # Plans are made beside the work that goes on with the one before: what that uses stays, for one change more.
        readings = {state: before.readings[state] for state in before.asked}
        for state, function in asked.items():
            if state not in readings:
                readings[state] = before.readings.get(state) or _StateReader.of(state, function, types)
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

    def finders(self, way: Transformation) -> dict[str, FindRow]:
        """How what a transformation remembers is found, by the names of its variables."""
        return {name: self._finder(each) for name, each in way.externals.items() if isinstance(each.of, ReferenceState)}

    def _finder(self, external: ExternalValue) -> FindRow:
        assert isinstance(external.of, ReferenceState)
        state, function = _shared(external.of), external.function

        def find(key: Any, time: datetime) -> Mapping[str, Any] | None:
            reading = self._used.readings.get(state)
            found = None if reading is None else reading.references.find(_key(key), time)
            if found is not None:
                return found.row
            if self.holds and function.missing is MissingValue.HOLD and self.latest < time + function.hold:
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


def _shared(state: ReferenceState) -> ReferenceState:
    return replace(state, name="")


def _name(state: ReferenceState) -> str:
    kept = ", ".join(f"{name}={each.text}" for name, each in state.keep)
    return f"{state.event.name} by {state.key.text}: {kept} {state.ttl} {state.history} {state.max_keys}"


def _key(value: Any) -> str:
    """The text of a key; numbers that are equal have the same."""
    return _encode(int(value) if isinstance(value, float) and value.is_integer() else value).decode()


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Functions of Python: called for many events at once, and what they gave kept until those are converted.
#
# An expression asks for the result for one value. Before a batch is converted it is gone through once to find out which
# values will be asked for; then each function is called with all of them, and every question is answered from what it
# gave. A call that fails is narrowed down to the values that make it fail.

_LONGEST_SHOWN = 80
_modules: dict[str, ModuleType] = {}
"""By the digest of their text: what was executed once in this process."""


class PythonFailed(ValueError):
    """A function has no result for a value."""


class _Called(msgspec.Struct):
    """A function with what it gave, by the text of the value; and what it is still to be asked."""

    function: Conversion
    known: dict[bytes, Any] = msgspec.field(default_factory=dict)
    asked: dict[bytes, Any] = msgspec.field(default_factory=dict)


class PythonFunctions:
    """The functions of one deployment. ``calls`` counts how often one was called."""

    __slots__ = ("_called", "_depth", "_looking", "calls")

    def __init__(self) -> None:
        self._called: dict[tuple[str, str, Type, Type], _Called] = {}
        self._looking = False
        self._depth = 0
        self.calls = 0

    def finders(self, way: Transformation) -> dict[str, FindRow]:
        """How the results that a transformation needs are found, by the names of its variables."""
        return {name: self._finder(each) for name, each in way.externals.items() if each.of is None}

    @contextmanager
    def together(self, *rounds: Iterable[Callable[[], object]]) -> Iterator[None]:
        """Within, what these would ask for is known: they were run once, for nothing but that, before it begins.

        A round is made up, run and answered before the next one is.

        Results are forgotten at the end. Of several that are nested only the outermost looks and forgets.
        """
        self._depth += 1
        try:
            if self._depth == 1:
                for work in rounds:
                    self._look(work)
            yield
        finally:
            self._depth -= 1
            if not self._depth:
                self._called.clear()

    def _look(self, work: Iterable[Callable[[], object]]) -> None:
        self._looking = True
        try:
            for each in work:
                with suppress(*FAILURES, Held):
                    each()
        except Exception as error:
            if not is_of_event(error):
                raise
        finally:
            self._looking = False
        for called in self._called.values():
            if called.asked:
                asked, called.asked = called.asked, {}
                self._call(called, tuple(asked), tuple(asked.values()))

    def _finder(self, external: ExternalValue) -> FindRow:
        function = external.function
        key = (code_digest(function.code), function.python, function.parameter.type, function.result.type)
        stands_in = example(function.result.type)
        wrapped = function.nulls

        def find(value: Any) -> Any:
            value = value.get("value") if wrapped else value
            text = _encode(value)
            called = self._called.get(key)
            if called is None:
                called = self._called[key] = _Called(function)
            if text in called.known:
                found = called.known[text]
            elif self._looking:
                called.asked[text] = value
                return stands_in
            else:
                self._call(called, (text,), (value,))
                found = called.known.pop(text) if not self._depth else called.known[text]
            if isinstance(found, PythonFailed):
                raise found
            return found

        return find

    def _call(self, called: _Called, texts: Sequence[bytes], values: Sequence[Any]) -> None:
        """Call it for all; where that fails, for the halves, down to the values that fail by themselves."""
        waiting = [(texts, values)]
        while waiting:
            some, given = waiting.pop()
            self.calls += 1
            try:
                found = _results(called.function, given)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - not our code: whatever it raises is about these
                if len(given) == 1:
                    reason = f"{_shown(some[0])} gives {_said(error)}"
                    called.known[some[0]] = PythonFailed(reason)
                else:
                    half = len(given) // 2
                    waiting += [(some[half:], given[half:]), (some[:half], given[:half])]
            else:
                called.known.update(zip(some, found, strict=True))


def _results(function: Conversion, values: Sequence[Any]) -> list[Any]:
    # Arrow takes as long to load as all the rest, and only those who call functions need it.
    from situ.lang.types.arrow_values import ArrayMismatch, from_array, to_array

    run = load_function(function.python, function.code)
    array = to_array(values, function.parameter.type)
    found = from_array(run(array), function.result.type, len(values))
    if not function.result.optional and None in found:
        raise ArrayMismatch("it gave null, and its result is not `optional`")
    return found


def load_function(python: str, code: str) -> Callable[[Any], Any]:
    """The function ``file.function`` of this text; what the text raises when it is executed is raised."""
    file, _, name = python.rpartition(".")
    key = code_digest(code)
    module = _modules.get(key)
    if module is None:
        module = ModuleType(f"situ_functions_{file}_{key[:12]}")
        sys.modules[module.__name__] = module  # dataclasses look for the module of their annotations there
        try:
            exec(compile(without_declarations(code), f"functions/{file}.py", "exec"), module.__dict__)
        except BaseException:
            del sys.modules[module.__name__]
            raise
        _modules[key] = module
    function: Callable[[Any], Any] = getattr(module, name)
    return function


def _said(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}, {text[0]}" if text else type(error).__name__


def _shown(text: bytes) -> str:
    shown = text.decode()
    return shown if len(shown) <= _LONGEST_SHOWN else f"{shown[:_LONGEST_SHOWN]}…"
