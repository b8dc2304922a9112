"""The foremost: who is the best candidate for an expectation, where a look at rough costs tells that it is.

Kept as points, since most of them are moved further by others before anybody wants to know to what in values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from situ.quality.problem import Target
from situ.quality.profile import Profile
from situ.quality.rows import Columns, Matrix

if TYPE_CHECKING:
    from situ.quality.field import Field


class Foremost(NamedTuple):
    """A profile that is the cheapest by far, at costs that rise evenly, in the mode in which it is by the plan."""

    profile: str
    field: Field
    before: Matrix
    after: Matrix
    """Its point by the plan, and the one where it would be good enough."""
    mode: str
    """By the plan, if it is another than now."""
    is_dear: bool
    """Whether it costs anything to get there."""


def target_at(profile: Profile, point: Matrix, columns: Columns, *, mode: str, start: Target) -> Target:
    """To what a profile is moved that is at a point, by a plan that began with another target."""
    values, goodness = dict(start.values), point.tolist()
    for name, capability in profile.capabilities.items():
        about, there = capability.about, goodness[columns.place(name)]
        if there != about.goodness(values.get(name, capability.cv)):
            values[name] = about.value(there)
    return Target(values=values, mode=mode)
