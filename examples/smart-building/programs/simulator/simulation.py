"""The simulation: people walk, sensors notice, events arrive; the same for the same seed, everywhere.

    >>> from simulator import example_building, simulate
    >>> simulation = simulate(example_building(), seed=7, persons=40, duration=timedelta(minutes=5), situations=2)
    >>> for chunk in simulation.json_lines(): ...
    >>> simulation.truth

Time advances in blocks that are large enough for numpy and small enough for memory. Nothing that comes out depends on
where blocks end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial

import numpy as np
import pyarrow as pa

from simulator.delivery import Arrivals, ColumnWriter, EventDelivery, LineWriter
from simulator.deterministic_math import Integers
from simulator.floor_plan import Building
from simulator.movement import SECOND, Layout, Planted, Walk, lay_out, plant
from simulator.sensors import (
    DOOR_USED,
    FACE_SEEN,
    PERIOD,
    ROOM_CLIMATE,
    SENSED,
    SIGHTING,
    SIGNALS,
    TAG_SEEN,
    Climate,
    Readings,
    SensorModel,
    Signal,
    doors,
    moments,
    positions,
    sample,
)

START = datetime(2026, 11, 2, 8, tzinfo=UTC)
INTERVAL = timedelta(milliseconds=500)
SAMPLES_IN_A_BLOCK = 65_536
_MICROSECOND = timedelta(microseconds=1)
_NO_ROWS = np.zeros(0, dtype=np.int64)
_PILOT_PEOPLE, _PILOT_SECONDS = 200, 300


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestAlone:
    """A planted situation: a guest in a restricted room with nobody else in it, from door to door."""

    guest: str
    room: str
    entered: datetime
    left: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """Everything a run depends on. Every call of a method below begins the same run anew. Times are in µs."""

    building: Building
    seed: int
    start: datetime
    duration: int | None
    interval: int
    signals: tuple[Signal, ...]
    disorder: int
    duplicates: float
    malformed: float
    layout: Layout
    planted: Planted

    @property
    def truth(self) -> tuple[GuestAlone, ...]:
        """The planted situations in order of time; there are no others."""
        return tuple(
            GuestAlone(
                guest=self.building.people[visit.guest].id,
                room=self.building.rooms[visit.room].id,
                entered=self.start + visit.entered * _MICROSECOND,
                left=self.start + visit.left * _MICROSECOND,
            )
            for visit in self.planted.visits
        )

    def batches(self, *, span: timedelta | None = None) -> Iterator[pa.RecordBatch]:
        """The events as Arrow, one type a batch; ``span`` bounds the event time that a batch covers."""
        writer = ColumnWriter(self.building, _epoch(self.start), self.signals)
        for due in self._arrivals(span):
            yield from (writer.write(arrivals) for arrivals in due if len(arrivals))

    def json_lines(self, *, span: timedelta | None = None) -> Iterator[bytes]:
        """The events as text, one a line, many lines a chunk, in order of arrival."""
        return (text for _, text in self.timed_lines(span=span))

    def timed_lines(self, *, span: timedelta | None = None) -> Iterator[tuple[Integers, bytes]]:
        """As :meth:`json_lines`, with the time of arrival of each line."""
        writer = LineWriter(self.building, _epoch(self.start), self.signals)
        for due in self._arrivals(span):
            if text := writer.write(due):
                yield np.sort(np.concatenate([arrivals.arrival for arrivals in due])), text

    def _arrivals(self, span: timedelta | None) -> Iterator[list[Arrivals]]:
        delivery = EventDelivery(
            self.seed, disorder=self.disorder, duplicates=self.duplicates, malformed=self.malformed
        )
        nothing: dict[Signal, Readings] = {}
        for end, readings in self._readings(span):
            nothing = {signal: some.only(_NO_ROWS) for signal, some in readings.items()}
            yield delivery.pass_on(readings, end)
        if nothing:
            yield delivery.pass_on(nothing, None)

    def _readings(self, span: timedelta | None) -> Iterator[tuple[int, dict[Signal, Readings]]]:
        """Block after block: its end, and what was sensed in it."""
        moment = moments(self.seed, len(self.building.people), self.interval)
        people = np.argsort(moment, kind="stable")
        moment = moment[people]
        walk = Walk(self.layout, self.seed, people, errands=self.planted.errands, closures=self.planted.closures)
        eyes, climate = SensorModel(self.layout, self.seed), Climate(self.layout, self.seed)
        # However seldom one looks, people walk on, a leg every few seconds: legs count like samples.
        longest = SAMPLES_IN_A_BLOCK * 5 * SECOND // len(people)
        if span is not None:
            longest = min(longest, _whole(span))
        ticks = max(1, min(SAMPLES_IN_A_BLOCK // len(people), longest // self.interval))
        first = 0
        while self.duration is None or first * self.interval < self.duration:
            start, end = first * self.interval, (first + ticks) * self.interval
            if self.duration is not None and end > self.duration:
                end = self.duration
                ticks = -(-(end - start) // self.interval)
            # The walk goes to the end of the last interval, of which the tail may lie behind the end.
            legs = walk.advance((first + ticks) * self.interval)
            samples = sample(legs, people, moment, self.interval, first, first + ticks).until(end)
            sense: dict[Signal, Callable[[], Readings]] = {
                TAG_SEEN: partial(eyes.tags, samples),
                FACE_SEEN: partial(eyes.faces, samples),
                DOOR_USED: partial(doors, legs, people, start, end),
                ROOM_CLIMATE: partial(climate.readings, legs, start, end),
                SIGHTING: partial(positions, samples),
            }
            yield end, {signal: sense[signal]() for signal in self.signals}
            first += ticks


def simulate(
    building: Building,
    *,
    seed: int = 7,
    persons: int | None = None,
    duration: timedelta | None = timedelta(minutes=5),
    start: datetime = START,
    interval: timedelta | None = None,
    rate: float | None = None,
    types: Iterable[str] | None = None,
    disorder: timedelta = timedelta(0),
    duplicates: float = 0.0,
    malformed: float = 0.0,
    situations: int = 0,
) -> Simulation:
    """Prepare a run.

    ``persons``    how many walk; beyond those of the building, wings are added to it
    ``duration``   of event time; None goes on for ever
    ``interval``   how often each person is noticed; instead, ``rate`` asks for about so many events a second
    ``types``      which events to send; those of sensors unless told
    ``disorder``   how long an event travels, at most: by that much they can come out of order
    ``duplicates`` ``malformed``   the fractions of events that come twice, and that are broken
    ``situations`` how many guests go alone into restricted rooms: ``Simulation.truth``
    """
    if start.tzinfo is None:
        raise ValueError("the start needs a time zone")
    if interval is not None and rate is not None:
        raise ValueError("give the interval or the rate, not both")
    for name, fraction in (("duplicates", duplicates), ("malformed", malformed)):
        if not 0.0 <= fraction <= 1.0:
            raise ValueError(f"{name} is a fraction between 0 and 1, not {fraction:g}")
    if disorder < timedelta(0):
        raise ValueError(f"disorder must not be negative, as {disorder} is")
    if situations < 0:
        raise ValueError(f"the number of situations must not be negative, as {situations} is")
    if situations and duration is None:
        raise ValueError("situations are spread over a duration: give one")
    populated = building if persons is None else building.with_people(persons)
    layout = lay_out(populated)
    length = None if duration is None else _positive("duration", duration)
    simulation = Simulation(
        building=populated,
        seed=seed,
        start=start,
        duration=length,
        interval=_positive("interval", INTERVAL if interval is None else interval),
        signals=_signals(types),
        disorder=_whole(disorder),
        duplicates=duplicates,
        malformed=malformed,
        layout=layout,
        planted=plant(layout, seed, situations, length or 0),
    )
    return simulation if rate is None else replace(simulation, interval=_interval_for(simulation, rate))


def _signals(types: Iterable[str] | None) -> tuple[Signal, ...]:
    if types is None:
        return SENSED
    wanted = set(types)
    if unknown := wanted - {signal.type for signal in SIGNALS}:
        known = ", ".join(signal.type for signal in SIGNALS)
        raise ValueError(f"no sensor sends {', '.join(sorted(unknown))}; there are {known}")
    if not wanted:
        raise ValueError("no type of event is asked for")
    return tuple(signal for signal in SIGNALS if signal.type in wanted)


def _interval_for(simulation: Simulation, rate: float) -> int:
    """The interval that gives the rate on average, from a trial with a few of the people."""
    people = simulation.building.people
    trial = replace(simulation.building, people=people[:_PILOT_PEOPLE])
    few = replace(
        simulation,
        building=trial,
        layout=lay_out(trial),
        planted=Planted(),
        duration=_PILOT_SECONDS * SECOND,
        interval=SECOND,
    )
    counted: Counter[Signal] = Counter()
    for _, sensed in few._readings(None):
        counted.update({signal: len(readings) for signal, readings in sensed.items()})
    repeated = 1.0 + simulation.duplicates
    share = len(people) / len(trial.people) / _PILOT_SECONDS
    constant = counted[DOOR_USED] * share
    if ROOM_CLIMATE in simulation.signals:
        constant += len(simulation.building.rooms) * SECOND / PERIOD
    each_second = sum(counted[signal] for signal in (TAG_SEEN, FACE_SEEN, SIGHTING)) * share
    if rate <= constant * repeated or not each_second:
        raise ValueError(f"doors and climate alone send {constant * repeated:.3g} events/s; a rate must be above that")
    interval = int(each_second / (rate / repeated - constant) * SECOND)
    if interval < 1:
        raise ValueError(f"{rate:g} events/s are more than {len(people)} persons can cause; walk more persons")
    return interval


def _epoch(instant: datetime) -> int:
    return _whole(instant - datetime(1970, 1, 1, tzinfo=UTC))


def _whole(span: timedelta) -> int:
    return span // _MICROSECOND


def _positive(name: str, span: timedelta) -> int:
    if span < _MICROSECOND:
        raise ValueError(f"the {name} must be positive, not {span}")
    return _whole(span)
