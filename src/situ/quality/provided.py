"""What many profiles provide, as columns: where each is, where it could be, and how its costs rise on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from situ.quality.operating import slope
from situ.quality.profile import Mode, Profile
from situ.quality.property import Point
from situ.quality.rows import Columns, Matrix, as_goodness
from situ.quality.skyline import Key


class Provided(NamedTuple):
    """Of each profile one column, but of the points that it can reach one for each of its modes."""

    now: Matrix
    """:meth:`Profile.current`."""
    keys: list[Key]
    """Whose the points are that can be reached, and the places of modes."""
    best: Matrix
    """:meth:`Profile.reach`."""
    rises: Matrix
    """By how much the cost of a free property rises with each unit of goodness; NaN where it does not evenly."""
    dearest: float
    """The highest cost of those that do."""


def provided(profiles: Mapping[str, Profile], columns: Columns) -> Provided:
    """What these profiles, by their ids, provide."""
    free = [each.capabilities for each in profiles.values()]
    capabilities = list(chain.from_iterable([each.values() for each in free]))
    costs = [slope(each) for each in capabilities]
    values = [each.cv if each.about.maximise else -each.cv for each in capabilities]
    ends = [each.ub if each.about.maximise else -each.lb for each in capabilities]
    now, best, rises = columns.filled(free, as_goodness(values), as_goodness(ends), [rise for rise, _ in costs])
    keys: list[Key] = [(id, place) for id, each in profiles.items() for place in range(len(each.modes) or 1)]
    if len(keys) > len(profiles) or any(each.modes for each in profiles.values()):
        now, best = _with_modes(list(profiles.values()), columns, now, best)
        rises = columns.widened(rises)
    return Provided(now, keys, best, rises, max((dearest for _, dearest in costs), default=1.0))


def _with_modes(profiles: Sequence[Profile], columns: Columns, now: Matrix, best: Matrix) -> tuple[Matrix, Matrix]:
    """The same, with the properties that are in modes."""
    current = columns.matrix([_at(each, each.mode_named(each.mode)) if each.modes else {} for each in profiles])
    reach = columns.matrix([_at(each, mode) for each in profiles for mode in each.modes or (None,)])
    best = np.repeat(best, [len(each.modes) or 1 for each in profiles], axis=1)
    return np.maximum(columns.widened(now), current), np.maximum(columns.widened(best), reach)


def _at(profile: Profile, mode: Mode | None) -> Point:
    return {} if mode is None else {id: each.goodness(mode.values[id]) for id, each in profile.moded.items()}
