"""A checked policy: names resolved against the ontology and the sources, conditions in normal form.

Plain data, the one thing that the reference semantics, the planner and the explanations start from. Times and durations
are whole microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from situ.errors import Location
from situ.expr.tree import Node
from situ.situation.language.syntax import Consumption, When

LEFT, RIGHT, IT = "left", "right", "it"
"""The variables of tests: the instances of the two aliases of a relation, and the one instance of a constraint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """A name for one instance of a concept. ``constraint`` is a condition over the variable ``it``; None: any will do.

    A constraint uses query attributes only.
    """

    name: str
    concept: str
    constraint: Node | None = None
    text: str = ""
    """The constraint as it is written, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One alias in a relation, with the attributes that the test reads of it.

    ``event`` is the one of them that events bring, or empty if all are queried.
    """

    alias: str
    attributes: tuple[str, ...]
    event: str = ""


class Kind(Enum):
    """Of a relation, by how many of its sides are event-based."""

    CONSTRAINT = 0
    QUERY = 1
    CORRELATION = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A condition over one or two aliases. Relations of a policy are equal if their texts are.

    ``test`` is a boolean over the variables ``left`` and, if there is a right side, ``right``: structs with the
    attributes of the concepts. A relation that fails on values does not hold for them. ``reach``, where there is one,
    says that the test can hold only for points of the plane at most so far apart: the grid can be used.
    """

    text: str
    left: Side
    right: Side | None
    test: Node = field(compare=False)
    reach: Reach | None = field(default=None, compare=False)

    @property
    def sides(self) -> tuple[Side, ...]:
        return (self.left,) if self.right is None else (self.left, self.right)

    @property
    def aliases(self) -> tuple[str, ...]:
        return tuple(side.alias for side in self.sides)

    @property
    def kind(self) -> Kind:
        return Kind(sum(bool(side.event) for side in self.sides))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The paths of the coordinates on both sides (``("position", "x")``), and the largest distance, in their unit."""

    left: tuple[tuple[str, ...], tuple[str, ...]]
    right: tuple[tuple[str, ...], tuple[str, ...]]
    distance: float


@dataclass(frozen=True, slots=True)
class Is:
    """A relation that holds, or one that does not."""

    relation: Relation
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Then:
    """``first followed-by second``, at most ``within`` microseconds later. Neither relation is a constraint."""

    first: Is
    second: Is
    within: int


Literal = Is | Then
Clause = tuple[Literal, ...]
"""Literals, one of which must be met."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """A named action with its arguments: ``raise alarm``; ``delete policy`` with ``night-watch``."""

    name: str
    arguments: tuple[str, ...] = ()
    location: Location | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """All of a policy. ``clauses`` are its conditions in extended conjunctive normal form: all must be met.

    ``lateness`` is -1 where the policy does not say one: its sources decide.
    """

    name: str
    aliases: tuple[Alias, ...]
    clauses: tuple[Clause, ...]
    window: int
    hold: int
    lateness: int = -1
    consumption: Consumption = Consumption.CHRONICLE
    when: When = When.OPENING
    actions: tuple[Action, ...] = ()
    text: str = ""
    """The policy as it is printed: what is stored."""
    location: Location | None = field(default=None, compare=False)

    def alias(self, name: str) -> Alias:
        return next(each for each in self.aliases if each.name == name)
