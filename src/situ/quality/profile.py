"""Capability profiles: what a publisher provides of an event type now, what it could provide, and at what cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from situ.quality.cost import FREE, Cost
from situ.quality.property import Point, Property


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """The values of one property that can be had, from ``lb`` to ``ub``, and the current one."""

    about: Property
    lb: float
    ub: float
    cv: float
    cost: Cost = FREE

    @property
    def best(self) -> float:
        return self.ub if self.about.maximise else self.lb

    @property
    def worst(self) -> float:
        return self.lb if self.about.maximise else self.ub


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """Values that can be had together, and only together."""

    name: str
    values: Mapping[str, float]
    """By the ids of properties; every mode of a profile has the same."""
    cost: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """All capabilities of one publisher for one event type.

    Properties in modes are not free: exactly one mode holds. All others are free of it and of each other.
    """

    publisher: str
    type: str
    capabilities: Mapping[str, Capability] = field(default_factory=lambda: MappingProxyType({}))
    """Of free properties, by their ids."""
    modes: tuple[Mode, ...] = ()
    mode: str = ""
    """The name of the current one."""
    moded: Mapping[str, Property] = field(default_factory=lambda: MappingProxyType({}))
    """The properties in modes, by their ids."""
    version: int = 1

    @property
    def id(self) -> str:
        return f"{self.publisher}/{self.type}"

    @property
    def properties(self) -> frozenset[str]:
        return frozenset((*self.capabilities, *self.moded))

    def mode_named(self, name: str) -> Mode:
        return next(each for each in self.modes if each.name == name)

    def current(self) -> Point:
        """What holds now."""
        point = {id: each.about.goodness(each.cv) for id, each in self.capabilities.items()}
        return point | self._moded(self.mode_named(self.mode)) if self.modes else point

    def reach(self) -> tuple[Point, ...]:
        """The best points that can be had: one for each mode, in their order; without modes there is one."""
        best = {id: each.about.goodness(each.best) for id, each in self.capabilities.items()}
        return tuple(best | self._moded(mode) for mode in self.modes) if self.modes else (best,)

    def _moded(self, mode: Mode) -> dict[str, float]:
        return {id: each.goodness(mode.values[id]) for id, each in self.moded.items()}
