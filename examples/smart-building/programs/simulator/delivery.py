"""How events get from the sensors to whoever reads the stream: in time order, or late, twice and broken, as asked.

Numbers events in time order, then decides for each by its number how long it travels, whether it comes a second time,
and what is wrong with it. Breaking the text is :mod:`simulator.delivery`'s business.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from simulator.deterministic_math import Bits, Integers, below, draw, stream, unit
from simulator.floor_plan import Building
from simulator.movement import SECOND
from simulator.sensors import Readings, Signal, join_readings, sensor_names, subject_names

SLOWEST_REPEAT = 2 * SECOND


class Flaw(IntEnum):
    """What is wrong with an event."""

    NONE = 0
    CUT_OFF = 1
    """The text ends in the middle."""
    NO_TYPE = 2
    """A required attribute of the envelope is missing."""
    UNKNOWN_TYPE = 3
    BAD_TIME = 4
    WRONG_KIND = 5
    """A string where a number, or a number where a string belongs."""
    NO_DATA = 6
    """The payload's attributes are missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """Events of one type in the order in which they arrive.

    ``number`` counts all events of the simulation in time order and makes their ids; ``place`` counts all arrivals,
    so that those of several types can be put in one order.
    """

    signal: Signal
    readings: Readings
    number: Integers
    flaw: Integers
    arrival: Integers
    place: Integers

    def __len__(self) -> int:
        return len(self.number)


class EventDelivery:
    def __init__(self, seed: int, *, disorder: int, duplicates: float, malformed: float) -> None:
        self._disorder, self._duplicates, self._malformed = disorder, duplicates, malformed
        self._delay = stream(seed, "delay", size=1)
        self._repeat = stream(seed, "repeat", size=1)
        self._flaw = stream(seed, "flaw", size=1)
        self._numbered = 0
        self._placed = 0
        self._waiting: dict[Signal, Arrivals] = {}

    def pass_on(self, block: Mapping[Signal, Readings], end: int | None) -> list[Arrivals]:
        """What arrives before ``end`` (None: all that is left), given what was sensed since the last call."""
        due = []
        for signal, readings, number in self._number(block):
            arrivals = self._send(signal, readings, number)
            if signal in self._waiting:
                arrivals = _merged(self._waiting.pop(signal), arrivals)
            if self._disorder or self._duplicates:
                arrivals = self._hold_back(arrivals, end)
            due.append(arrivals)
        return self._place(due)

    def _number(self, block: Mapping[Signal, Readings]) -> list[tuple[Signal, Readings, Integers]]:
        order = np.argsort(np.concatenate([readings.time for readings in block.values()]), kind="stable")
        number = np.empty(len(order), dtype=np.int64)
        number[order] = np.arange(self._numbered, self._numbered + len(order))
        self._numbered += len(order)
        ends = np.cumsum([len(readings) for readings in block.values()])[:-1]
        return list(zip(block.keys(), block.values(), np.split(number, ends), strict=True))

    def _send(self, signal: Signal, readings: Readings, number: Integers) -> Arrivals:
        arrival, flaw = readings.time, np.zeros_like(number)
        if self._disorder:
            arrival = arrival + below(draw(self._delay, number), self._disorder + 1)
        if self._malformed:
            bits = draw(self._flaw, number)
            flaw = np.where(unit(bits) < self._malformed, 1 + below(_again(bits), len(Flaw) - 1), 0)
        sent = Arrivals(signal=signal, readings=readings, number=number, flaw=flaw, arrival=arrival, place=number)
        if not self._duplicates:
            return sent
        bits = draw(self._repeat, number)
        twice = np.flatnonzero(unit(bits) < self._duplicates)
        repeats = _only(sent, twice, arrival=arrival[twice] + 1 + below(_again(bits[twice]), SLOWEST_REPEAT))
        return _merged(sent, repeats)

    def _hold_back(self, arrivals: Arrivals, end: int | None) -> Arrivals:
        order = np.lexsort((arrivals.number, arrivals.arrival))
        due = len(order) if end is None else int(np.searchsorted(arrivals.arrival[order], end))
        self._waiting[arrivals.signal] = _only(arrivals, order[due:])
        return _only(arrivals, order[:due])

    def _place(self, due: Sequence[Arrivals]) -> list[Arrivals]:
        if not (self._disorder or self._duplicates):
            return list(due)
        together = np.concatenate([arrivals.arrival for arrivals in due])
        order = np.lexsort((np.concatenate([arrivals.number for arrivals in due]), together))
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(self._placed, self._placed + len(order))
        self._placed += len(order)
        parts = np.split(place, np.cumsum([len(arrivals) for arrivals in due])[:-1])
        return [
            Arrivals(
                signal=one.signal,
                readings=one.readings,
                number=one.number,
                flaw=one.flaw,
                arrival=one.arrival,
                place=part,
            )
            for one, part in zip(due, parts, strict=True)
        ]


def _again(bits: Bits) -> Bits:
    """Fresh bits where the old ones were used to decide whether these are needed."""
    return draw(bits, np.ones(len(bits), dtype=np.int64))


def _only(arrivals: Arrivals, rows: Integers, arrival: Integers | None = None) -> Arrivals:
    return Arrivals(
        signal=arrivals.signal,
        readings=arrivals.readings.only(rows),
        number=arrivals.number[rows],
        flaw=arrivals.flaw[rows],
        arrival=arrivals.arrival[rows] if arrival is None else arrival,
        place=arrivals.place[rows],
    )


def _merged(first: Arrivals, second: Arrivals) -> Arrivals:
    return Arrivals(
        signal=first.signal,
        readings=join_readings((first.readings, second.readings)),
        number=np.concatenate((first.number, second.number)),
        flaw=np.concatenate((first.flaw, second.flaw)),
        arrival=np.concatenate((first.arrival, second.arrival)),
        place=np.concatenate((first.place, second.place)),
    )


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Arrivals as text: one CloudEvent in compact JSON a line.
#
# Every piece of a line is one of a limited number of texts (a sensor's, a second's, a measured value's), so lines are
# put together by looking pieces up in tables and joining them column-wise in Arrow; no Python runs per event, except
# for the few that are to be broken.

ID_DIGITS = 12


class LineWriter:
    """Writes the events of one building, whose time begins at ``start`` µs after 1970."""

    def __init__(self, building: Building, start: int, signals: Sequence[Signal]) -> None:
        self._start = start
        self._thousand = pa.array([f"{number:03d}" for number in range(1000)])
        self._payloads = {signal: _Payload(building, signal) for signal in signals}

    def write(self, arrivals: Sequence[Arrivals]) -> bytes:
        """The lines of all of them, in the order of their places."""
        place = np.concatenate([one.place for one in arrivals])
        if not len(place):
            return b""
        lines = pa.concat_arrays([self._lines(one) for one in arrivals if len(one)])
        lines = lines.take(pa.array(np.argsort(place, kind="stable")))
        _, offsets, text = lines.buffers()
        size = int(np.frombuffer(offsets, dtype=np.int32)[len(lines)])
        return bytes(memoryview(text)[:size])

    def _lines(self, arrivals: Arrivals) -> pa.StringArray:
        thousands, number = np.divmod(arrivals.number, 1000)
        seconds, fraction = np.divmod(arrivals.readings.time + self._start, SECOND)
        milliseconds, microseconds = np.divmod(fraction, 1000)
        pieces = [
            _take_range(thousands, _begin),
            _take(self._thousand, number),
            _take_range(seconds, _instants),
            _take(self._thousand, milliseconds),
            _take(self._thousand, microseconds),
            *self._payloads[arrivals.signal].pieces(arrivals.readings),
        ]
        lines = pc.binary_join_element_wise(*pieces, "")
        return _with_flaws(lines, arrivals) if arrivals.flaw.any() else lines


class _Payload:
    """The part of a line that differs from event type to event type: from the source to the end."""

    def __init__(self, building: Building, signal: Signal) -> None:
        close = "}}}\n" if signal.part else "}}\n"
        opening = f'"{signal.part}":{{' if signal.part else ""
        self._sensor = pa.array(
            [
                f'Z","source":{json.dumps(signal.source + name)},"type":"{signal.type}","data":{{'
                + (_member(signal.sensor, name) + "," if signal.sensor else "")
                for name in sensor_names(building, signal)
            ]
        )
        after_subject = "," + opening if signal.values else close
        self._subject = pa.array(
            [_member(signal.subject, name) + after_subject for name in subject_names(building, signal)]
            if signal.subject
            else [opening]
        )
        ends = [*("," for _ in signal.values[1:]), close]
        self._values = [
            _ValueTexts(before=f'"{name}":', after=end, decimals=decimals)
            for (name, decimals), end in zip(signal.values, ends, strict=False)
        ]

    def pieces(self, readings: Readings) -> list[pa.StringArray]:
        return [
            _take(self._sensor, readings.sensor),
            _take(self._subject, readings.subject),
            *(texts.take(value) for texts, value in zip(self._values, readings.values, strict=True)),
        ]


class _ValueTexts:
    """The texts of the values met so far and of all between; they are bounded by what sensors can measure."""

    def __init__(self, *, before: str, after: str, decimals: int) -> None:
        self._before, self._after, self._scale = before, after, 10**decimals
        self._low, self._high = 0, 0
        self._texts = pa.array([], pa.string())

    def take(self, values: Integers) -> pa.StringArray:
        low, high = int(values.min()), int(values.max())
        if low < self._low or high >= self._high:
            self._low, self._high = min(low, self._low), max(high + 1, self._high)
            numbers = range(self._low, self._high)
            self._texts = pa.array([f"{self._before}{number / self._scale!r}{self._after}" for number in numbers])
        return _take(self._texts, values - self._low)


def _member(key: str | None, value: str) -> str:
    return f'"{key}":{json.dumps(value)}'


def _begin(low: int, high: int) -> list[str]:
    return [f'{{"specversion":"1.0","id":"{number:0{ID_DIGITS - 3}d}' for number in range(low, high)]


def _instants(low: int, high: int) -> list[str]:
    seconds = np.datetime_as_string(np.arange(low, high).astype("datetime64[s]"))
    return [f'","time":"{second}.' for second in seconds]


def _take_range(values: Integers, write: Callable[[int, int], list[str]]) -> pa.StringArray:
    """Look values up that lie close together, in a table of just these."""
    low = int(values.min())
    return _take(pa.array(write(low, int(values.max()) + 1)), values - low)


def _take(texts: pa.StringArray, rows: Integers) -> pa.StringArray:
    return texts.take(pa.array(rows))


def _with_flaws(lines: pa.StringArray, arrivals: Arrivals) -> pa.StringArray:
    rows = np.flatnonzero(arrivals.flaw)
    broken = [
        _break(str(line), Flaw(flaw))
        for line, flaw in zip(lines.take(pa.array(rows)).to_pylist(), arrivals.flaw[rows], strict=True)
    ]
    source = np.arange(len(lines))
    source[rows] = len(lines) + np.arange(len(rows))
    return pa.concat_arrays([lines, pa.array(broken)]).take(pa.array(source))


def _break(line: str, flaw: Flaw) -> str:
    match flaw:
        case Flaw.NONE:
            return line
        case Flaw.CUT_OFF:
            return line[: len(line) // 2] + "\n"
        case Flaw.NO_TYPE:
            return _TYPE.sub("", line)
        case Flaw.UNKNOWN_TYPE:
            return _TYPE.sub('"type":"Unheard",', line)
        case Flaw.BAD_TIME:
            return _TIME.sub('"time":"half past nine",', line)
        case Flaw.WRONG_KIND:
            return _DATA.sub(lambda data: _swapped(json.loads(data[1])), line)
        case Flaw.NO_DATA:
            return _DATA.sub('"data":{}}', line)
        case _:
            assert_never(flaw)


_TYPE = re.compile(r'"type":"[^"]*",')
_TIME = re.compile(r'"time":"[^"]*",')
_DATA = re.compile(r'"data":(\{.*\})\}')


def _swapped(data: dict[str, object]) -> str:
    """The payload with its first attribute a number, which no event of the building has first."""
    first = next(iter(data))
    return f'"data":{json.dumps(data | {first: 17}, separators=(",", ":"))}}}'


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Arrivals as Arrow record batches, one type of event each, shaped like the JSON of the same events.
#
# ``id``, ``source``, ``type``, ``time`` and ``data`` are what the event says; ``place`` puts the events of several
# batches into the order in which they arrive; ``flaw`` is not 0 where the event's text would be broken (see ``Flaw``).

_INSTANT = pa.timestamp("us", tz="UTC")


class ColumnWriter:
    """Writes the events of one building, whose time begins at ``start`` µs after 1970."""

    def __init__(self, building: Building, start: int, signals: Sequence[Signal]) -> None:
        self._start = start
        self._sensors = {signal: pa.array(sensor_names(building, signal)) for signal in signals}
        self._sources = {
            signal: pa.array([signal.source + name for name in sensor_names(building, signal)]) for signal in signals
        }
        self._subjects = {signal: pa.array(subject_names(building, signal)) for signal in signals}

    def write(self, arrivals: Arrivals) -> pa.RecordBatch:
        signal, readings = arrivals.signal, arrivals.readings
        type_ = pa.DictionaryArray.from_arrays(np.zeros(len(arrivals), dtype=np.int32), pa.array([signal.type]))
        return pa.RecordBatch.from_arrays(
            [
                _ids(arrivals.number),
                _named(readings.sensor, self._sources[signal]),
                type_,
                pa.array(readings.time + self._start).view(_INSTANT),
                self._data(arrivals),
                pa.array(arrivals.place),
                pa.array(arrivals.flaw.astype(np.int8)),
            ],
            names=["id", "source", "type", "time", "data", "place", "flaw"],
        )

    def _data(self, arrivals: Arrivals) -> pa.StructArray:
        signal, readings = arrivals.signal, arrivals.readings
        data: dict[str, pa.Array] = {}
        if signal.sensor:
            data[signal.sensor] = _named(readings.sensor, self._sensors[signal])
        if signal.subject:
            data[signal.subject] = _named(readings.subject, self._subjects[signal])
        # Dividing by a power of ten rounds once: the double is the one that the decimal text denotes.
        measured = {
            name: pa.array(value / 10.0**decimals)
            for (name, decimals), value in zip(signal.values, readings.values, strict=True)
        }
        data |= {signal.part: _struct(measured)} if signal.part else measured
        return _struct(data)


def _struct(fields: dict[str, pa.Array]) -> pa.StructArray:
    return pa.StructArray.from_arrays(list(fields.values()), names=list(fields))


def _named(rows: Integers, names: pa.StringArray) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(rows.astype(np.int32), names)


@functools.cache
def _six_digits() -> NDArray[np.uint8]:
    numbers = np.arange(1_000_000)
    return np.stack([numbers // 10**power % 10 for power in range(5, -1, -1)], axis=1).astype(np.uint8) + ord("0")


def _ids(numbers: Integers) -> pa.StringArray:
    text = np.empty((len(numbers), ID_DIGITS), dtype=np.uint8)
    text[:, :6], text[:, 6:] = _six_digits()[numbers // 1_000_000], _six_digits()[numbers % 1_000_000]
    offsets = np.arange(0, (len(numbers) + 1) * ID_DIGITS, ID_DIGITS, dtype=np.int32)
    return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(offsets), pa.py_buffer(text))
