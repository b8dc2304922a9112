"""Arrivals as Arrow record batches, one type of event each, shaped like the JSON of the same events.

``id``, ``source``, ``type``, ``time`` and ``data`` are what the event says; ``place`` puts the events of several
batches into the order in which they arrive; ``flaw`` is not 0 where the event's text would be broken (see ``Flaw``).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from situ.testing.building.chance import Integers
from situ.testing.building.delivery import Arrivals
from situ.testing.building.lines import ID_DIGITS
from situ.testing.building.plan import Building
from situ.testing.building.signals import Signal, sensor_names, subject_names

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
