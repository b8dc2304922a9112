"""Levels of a property that have other places: what is remembered of a profile by places goes on meaning what it meant.

Whatever is said of a profile names levels; what is remembered of advice and claims has their places. When a project
inserts or drops levels these are others, and what names a level that is no more says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from situ.quality.advice import Open
from situ.quality.problem import Target
from situ.quality.profile import Profile
from situ.quality.state import Known

Levels = Mapping[str, Sequence[str]]
"""Property → its levels in their order; of those that have levels."""


def levels_of(profile: Profile) -> dict[str, tuple[str, ...]]:
    abouts = {id: each.about for id, each in profile.capabilities.items()} | dict(profile.moded)
    return {id: about.levels for id, about in abouts.items() if about.levels}


def follow_levels(known: Known, before: Levels) -> None:
    """A profile is read with the levels of now; what was remembered had these ones."""
    after = levels_of(known.profile)
    moves = {
        id: {float(place): float(after[id].index(name)) for place, name in enumerate(names) if name in after[id]}
        for id, names in before.items()
        if id in after and tuple(names) != after[id]
    }
    if moves:
        _Moving(moves).move(known)


class _Moving:
    """Property → old place → new one."""

    def __init__(self, moves: Mapping[str, Mapping[float, float]]) -> None:
        self._moves = moves

    def move(self, known: Known) -> None:
        ledger, course = known.ledger, known.course
        ledger.replace(self._values(ledger.baseline), {id: self._target(each) for id, each in ledger.claims.items()})
        course.limits, course.unproven = self._values(course.limits), self._values(course.unproven)
        course.asked = None if course.asked is None else self._target(course.asked)
        course.open = None if course.open is None else self._advice(course.open)
        course.relaxed = [moved for each in course.relaxed if (moved := self._advice(each)) is not None]

    def _values(self, values: Mapping[str, float]) -> dict[str, float]:
        found = {id: self._moves[id].get(value) if id in self._moves else value for id, value in values.items()}
        return {id: value for id, value in found.items() if value is not None}

    def _target(self, target: Target) -> Target:
        return replace(target, values=MappingProxyType(self._values(target.values)))

    def _advice(self, advice: Open) -> Open | None:
        moved = replace(advice, target=self._target(advice.target))
        return moved if moved.target else None
