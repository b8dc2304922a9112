"""Actions: by what means a property is moved, at what cost, and which of several is taken.

An action is known by the property, the direction in which the value goes, and its name. What is built in is there
without being declared, at no cost; who declares it says what it costs. Owns the choice, not its consequences: stage
``shape`` thins and suppresses, advice makes publishers adapt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from situ.quality.cost import UNAFFORDABLE
from situ.quality.declared import Action, Direction
from situ.quality.property import Property

ADAPT: Final = "adaptPublisher"
_IN_SHAPE: Final[Mapping[tuple[str, Direction], str]] = {
    ("rate", "down"): "thin",
    ("imprecision", "up"): "suppress",
}
"""What the middleware does by itself, by the name of the property."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """An action that was taken, and what it costs at the target."""

    action: Action
    cost: float


@dataclass(frozen=True, slots=True)
class Actions:
    """All actions of a project: those it declares, in their order, before those that are built in."""

    declared: tuple[Action, ...] = ()
    _by_move: dict[tuple[str, Direction], tuple[Action, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def alternatives(self, about: Property, direction: Direction) -> tuple[Action, ...]:
        """What could move a property in a direction."""
        key = (about.id, direction)
        if key not in self._by_move:
            declared = tuple(each for each in self.declared if (each.property, each.direction) == key)
            named = {each.action for each in declared}
            built_in = (each for each in _built_in(about, direction) if each.action not in named)
            self._by_move[key] = (*declared, *built_in)
        return self._by_move[key]

    def adapting(self, about: Property, direction: Direction) -> tuple[Action, ...]:
        """Those of them that move what the publisher does."""
        return tuple(each for each in self.alternatives(about, direction) if _adapts(each))

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

    def choose(
        self,
        about: Property,
        before: float,
        after: float,
        *,
        operating: float = 0.0,
        permitted: Callable[[Action], bool] = lambda _: True,
    ) -> Choice | None:
        """The cheapest permitted action for a move; of equally cheap ones that declared first.

        ``operating`` is the change of operating cost at the publisher, which only counts where it adapts.
        """
        if before == after:
            return None
        found = [
            Choice(action=each, cost=each.cost.at(after) + (operating if _adapts(each) else 0.0))
            for each in self.alternatives(about, "up" if after > before else "down")
            if permitted(each)
        ]
        return min(found, key=lambda each: each.cost, default=None)


NO_ACTIONS: Final = Actions()


def improving(about: Property) -> Direction:
    """The direction in which values of a property become better."""
    return "up" if about.maximise else "down"


def steps_of(action: Action) -> tuple[str, ...]:
    """The names of what is run, in this order."""
    return action.steps or (action.action,)


def to_undo(action: Action, failed: int) -> tuple[str, ...]:
    """What is undone, in this order, when the step of this number (from 0) of an action fails."""
    return steps_of(action)[:failed][::-1]


def _adapts(action: Action) -> bool:
    return ADAPT in steps_of(action)


def _built_in(about: Property, direction: Direction) -> tuple[Action, ...]:
    names = []
    if about.determined_by != "middleware":
        names.append(ADAPT)
    if in_shape := _IN_SHAPE.get((about.name, direction)):
        names.append(in_shape)
    return tuple(Action(property=about.id, direction=direction, action=name) for name in names)
