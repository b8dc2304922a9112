"""What many profiles provide: where each is, where it could be, and how its costs rise on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from situ.quality.listed import Listed
from situ.quality.operating import slope
from situ.quality.profile import Profile
from situ.quality.rows import Columns, Matrix, as_goodness
from situ.quality.skyline import Key


class Points(NamedTuple):
    """Some profiles as matrices: one column for each, but for what they can reach one for each of their modes."""

    now: Matrix
    """:meth:`Profile.current`."""
    keys: list[Key]
    """Whose the points are that can be reached, and the places of modes."""
    best: Matrix
    """:meth:`Profile.reach`."""
    rises: Matrix
    """By how much the cost of a free property rises with each unit of goodness; NaN where it does not evenly."""
    dearest: float
    """The highest cost of those that do, or 1."""


class Provided:
    """Profiles, by their ids and by their places among these."""

    def __init__(self, profiles: Mapping[str, Profile]) -> None:
        self._ids = [*profiles]
        self._profiles = [*profiles.values()]
        free = [each.capabilities for each in self._profiles]
        capabilities = [capability for each in free for capability in each.values()]
        costs = [slope(each) for each in capabilities]
        self._free = Listed(
            free,
            as_goodness([each.cv if each.about.maximise else -each.cv for each in capabilities]),
            as_goodness([each.ub if each.about.maximise else -each.lb for each in capabilities]),
            [rise for rise, _ in costs],
            [dearest for _, dearest in costs],
        )

    def of(self, places: Sequence[int], columns: Columns) -> Points:
        """Some of the profiles."""
        now, best, rises, dearest = self._free.of(places, columns)
        chosen = [self._profiles[place] for place in places]
        keys: list[Key] = [
            (self._ids[place], mode) for place in places for mode in range(len(self._profiles[place].modes) or 1)
        ]
        if any(each.modes for each in chosen):
            now, best, rises = _with_modes(chosen, columns, now, best, rises)
        return Points(now, keys, best, rises, float(np.max(dearest, initial=1.0)))


def _with_modes(
    profiles: Sequence[Profile], columns: Columns, now: Matrix, best: Matrix, rises: Matrix
) -> tuple[Matrix, Matrix, Matrix]:
    """The same, with the properties that are in modes."""
    for each in profiles:
        for id in each.moded:
            columns.place(id)
    now, best, rises = (columns.widened(each) for each in (now, best, rises))
    best = np.repeat(best, [len(each.modes) or 1 for each in profiles], axis=1)
    point = 0
    for place, profile in enumerate(profiles):
        for mode in profile.modes:
            for id, about in profile.moded.items():
                best[columns.place(id), point] = value = about.goodness(mode.values[id])
                if mode.name == profile.mode:
                    now[columns.place(id), place] = value
            point += 1
        point += not profile.modes
    return now, best, rises
