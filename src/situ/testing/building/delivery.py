"""How events get from the sensors to whoever reads the stream: in time order, or late, twice and broken, as asked.

Numbers events in time order, then decides for each by its number how long it travels, whether it comes a second time,
and what is wrong with it. Breaking the text is :mod:`situ.testing.building.lines`'s business.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from situ.testing.building.chance import Bits, Integers, below, draw, stream, unit
from situ.testing.building.signals import Readings, Signal, joined
from situ.testing.building.walk import SECOND

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


class Delivery:
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
        readings=joined((first.readings, second.readings)),
        number=np.concatenate((first.number, second.number)),
        flaw=np.concatenate((first.flaw, second.flaw)),
        arrival=np.concatenate((first.arrival, second.arrival)),
        place=np.concatenate((first.place, second.place)),
    )
