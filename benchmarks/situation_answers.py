"""Answers of peers held against those expected; what a simpler query finds beyond them, explained one by one."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.situation_recorded import NEAR, WINDOW, Recording

Answers = frozenset[tuple[str, str]]
"""Of each detection the event and the room."""
_Places = npt.NDArray[np.int64]


def same(expected: Answers, found: Answers) -> None:
    """Answers are those expected, all of them and no others."""
    assert found == expected, f"{len(found - expected)} invented, {len(expected - found)} missed"


def differences(recording: Recording, found: Answers) -> dict[str, float]:
    """Explain every answer of a simpler query that the policy does not have; there must be none the other way.

    Such a query looks for one event of an employee that is both in the room and near where the guest was, and may do so
    only in the seconds *after* the guest was seen. The policy looks at the seconds before, too, and at all events of
    the two. So for each answer too many there must be an employee who was there before, or one near at another moment.
    """
    expected = recording.answers
    assert expected <= found, f"{len(expected - found)} detections are not among the answers"
    before, other = _explained(_People(recording), found - expected)
    return {
        "alarms of the policy": len(expected),
        "more, refuted by who was there before": before,
        "more, refuted by other events of the two": other,
    }


@cache
def _explained(people: _People, more: Answers) -> tuple[int, int]:
    before = sum(people.came_before(event, room) for event, room in more)
    for event, room in more:
        assert people.is_refuted(event, room), f"there is no reason why {event} in {room} is no detection"
    return before, len(more) - before


class _People:
    """Where everybody was, to look things up. Equal for the same recording."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._looked: Any = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _People) and other._recording is self._recording

    def __hash__(self) -> int:
        return id(self._recording)

    def came_before(self, event: str, room: str) -> bool:
        """An employee was in the room, near this place, in the seconds before, by one event."""
        self._look()
        place = self._place[event]
        seen = self._in(room, self._times[place] - WINDOW, self._times[place])
        return bool((self._apart(place, seen) <= NEAR**2).any())

    def is_refuted(self, event: str, room: str) -> bool:
        """The counterexample of the policy, by its definition."""
        self._look()
        place = self._place[event]
        time, own = self._times[place], self._of(self._names[place])
        for employee in np.unique(self._names[self._in(room, time - WINDOW, time + WINDOW)]):
            theirs = self._of(employee)
            for each in own:
                later = np.maximum(self._times[theirs], self._times[each])
                fits = (np.abs(self._times[theirs] - self._times[each]) <= WINDOW) & (np.abs(later - time) <= WINDOW)
                if (self._apart(each, theirs[fits]) <= NEAR**2).any():
                    return True
        return False

    def _look(self) -> None:
        """Sort it, once, when it is asked for."""
        if self._looked:
            return
        events, persons = self._recording.events, self._recording.persons
        status = dict(zip(persons["id"].to_pylist(), persons["status"].to_pylist(), strict=True))
        named = events["person"].combine_chunks().dictionary_encode()
        self._names = named.indices.to_numpy()
        self._place = {event: place for place, event in enumerate(events["id"].to_pylist())}
        self._x, self._y = events["x"].to_numpy(), events["y"].to_numpy()
        self._times = events["time"].cast(pa.int64()).to_numpy()
        self._by_name = np.argsort(self._names, kind="stable")
        self._bounds = np.searchsorted(self._names[self._by_name], np.arange(len(named.dictionary) + 1))
        employed = np.array([status.get(name) == "employee" for name in named.dictionary.to_pylist()])[self._names]
        self._employees = np.flatnonzero(employed)[np.argsort(self._times[employed], kind="stable")]
        self._rooms = {row["id"]: row for row in self._recording.rooms.to_pylist()}
        self._looked = True

    def _of(self, name: int) -> _Places:
        """All events of a person."""
        return self._by_name[self._bounds[name] : self._bounds[name + 1]]

    def _in(self, room: str, begin: int, end: int) -> _Places:
        """Events of employees in a room."""
        area, times = self._rooms[room], self._times[self._employees]
        then = self._employees[np.searchsorted(times, begin) : np.searchsorted(times, end, side="right")]
        x, y = self._x[then], self._y[then]
        return then[(area["x1"] <= x) & (x <= area["x2"]) & (area["y1"] <= y) & (y <= area["y2"])]

    def _apart(self, place: int, others: _Places) -> npt.NDArray[np.float64]:
        found: npt.NDArray[np.float64] = (self._x[others] - self._x[place]) ** 2 + (
            self._y[others] - self._y[place]
        ) ** 2
        return found
