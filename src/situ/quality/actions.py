"""Actions: by what means a publisher is moved, and what the cheapest of several costs.

An action is known by the property, the direction in which the value goes, and its name. To ask the publisher is built
in, at no cost; who declares it says what it costs. Plans weigh what moves a publisher; to shape the stream of a
subscriber is no alternative to that (decision 0043), so nothing here asks for its cost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from situ.quality.cost import UNAFFORDABLE
from situ.quality.declared import Action, Direction
from situ.quality.property import Property

ADAPT: Final = "adaptPublisher"


@dataclass(frozen=True, slots=True)
class Actions:
    """All actions of a project: those it declares, in their order, before what is built in."""

    declared: tuple[Action, ...] = ()
    _by_move: dict[tuple[str, Direction], tuple[Action, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def adapting(self, about: Property, direction: Direction) -> tuple[Action, ...]:
        """What could make a publisher move a property in a direction: alternatives."""
        key = (about.id, direction)
        if key not in self._by_move:
            declared = tuple(each for each in self.declared if (each.property, each.direction) == key and _adapts(each))
            built_in = about.determined_by != "middleware" and all(each.action != ADAPT for each in declared)
            asking = (Action(property=about.id, direction=direction, action=ADAPT),) if built_in else ()
            self._by_move[key] = (*declared, *asking)
        return self._by_move[key]

    def can_improve(self, about: Property) -> bool:
        """Whether there is anything by which a better value than the current one can be had."""
        return bool(self.adapting(about, improving(about)))

    def cost_of_adapting(self, about: Property, before: float, after: float) -> float:
        """What it costs to have a publisher move a value, besides what operating there costs it."""
        if not self.declared or before == after:
            return 0.0
        costs = [each.cost.at(after) for each in self.adapting(about, "up" if after > before else "down")]
        return min(costs, default=UNAFFORDABLE)

    def knots_of_adapting(self, about: Property) -> tuple[float, ...]:
        """Targets beyond which having a property improved may become cheaper."""
        if not self.declared:
            return ()
        return tuple(knot for each in self.adapting(about, improving(about)) for knot in each.cost.knots)


NO_ACTIONS: Final = Actions()


def improving(about: Property) -> Direction:
    """The direction in which values of a property become better."""
    return "up" if about.maximise else "down"


def _adapts(action: Action) -> bool:
    return ADAPT in (action.steps or (action.action,))
