"""Arrivals as text: one CloudEvent in compact JSON a line.

Every piece of a line is one of a limited number of texts (a sensor's, a second's, a measured value's), so lines are put
together by looking pieces up in tables and joining them column-wise in Arrow; no Python runs per event, except for the
few that are to be broken.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from situ.testing.building.chance import Integers
from situ.testing.building.delivery import Arrivals, Flaw
from situ.testing.building.plan import Building
from situ.testing.building.signals import Readings, Signal, sensor_names, subject_names
from situ.testing.building.walk import SECOND

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
