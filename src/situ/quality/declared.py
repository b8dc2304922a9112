"""What a project declares about quality: properties of its own, expectations, profiles, actions and strategies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from situ.quality.cost import FREE, Cost
from situ.quality.expectation import Expectation
from situ.quality.profile import Profile
from situ.quality.property import BUILT_IN, Property

Direction = Literal["up", "down"]
"""Of the value, not of its goodness: imprecision that goes up gets worse."""

PARETO = "pareto"
DEFAULT = "default"
"""The event type of the strategy for all types that have none of their own."""

BUILT_IN_ACTIONS = ("adaptPublisher", "thin", "suppress", "aggregate", "select")
STRATEGIES = (PARETO, "cheapest", "utility", "fairness")


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """A way to move a property up or down. Several for one property and direction are alternatives."""

    property: str
    """The id of the property."""
    direction: Direction
    action: str
    """Its name; of a sequence, the names of its steps."""
    cost: Cost = FREE
    """Of the target."""
    steps: tuple[str, ...] = ()
    """The actions of a sequence, in their order; none, if it is no sequence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """By which rule it is decided whether satisfying an expectation is worth it."""

    name: str = PARETO
    weight: float = 1.0
    """What a unit of cost counts against a unit of utility, lambda."""
    budget: float | None = None
    """The most that all that is in force by advice may cost, against what publishers did by themselves. A problem is
    told what is left of it."""
    protect: bool = True
    """Nobody loses what it has."""
    options: Mapping[str, Any] = field(default_factory=_nothing)
    """What plug-ins are told besides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """All declarations about quality. Expectations are in the order of their registration."""

    properties: Mapping[str, Property] = field(default_factory=_nothing)
    """The project's own, by name."""
    expectations: Mapping[str, Expectation] = field(default_factory=_nothing)
    profiles: Mapping[str, Profile] = field(default_factory=_nothing)
    actions: tuple[Action, ...] = ()
    strategies: Mapping[str, Strategy] = field(default_factory=_nothing)
    """By event type; that of all others under ``default``."""

    def __bool__(self) -> bool:
        return bool(self.properties or self.expectations or self.profiles or self.actions or self.strategies)

    @property
    def known(self) -> Mapping[str, Property]:
        """All properties, the built-in ones among them, by name."""
        return known_properties(self.properties)

    def strategy_for(self, type: str) -> Strategy:
        return self.strategies.get(type) or self.strategies.get(DEFAULT) or Strategy()


NO_QUALITY = Quality()


def known_properties(own: Mapping[str, Property]) -> Mapping[str, Property]:
    """The built-in properties, and what a project says of these or adds."""
    return MappingProxyType({**BUILT_IN, **own})
