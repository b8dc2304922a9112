"""A checked policy: names resolved against the ontology and the sources, conditions in normal form.

Plain data, the one thing that the reference semantics, the planner and the explanations start from. Times and durations
are whole microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum

from situ.errors import Location
from situ.expr.tree import Node
from situ.situation.domain.concepts import IDENTITY
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

    @property
    def is_identity(self) -> bool:
        """Whether nothing but the identity is read: then whoever is named is known, whatever tables say."""
        return set(self.attributes) == {IDENTITY}


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
    compares: bool = field(default=False, compare=False)
    """Whether it is a comparison: then ``not`` stands before it."""

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
    """A relation that holds, or one that does not.

    ``place`` says which of the literals of the policy it is, in the order they are written: two that read the same are
    not the same, and one that stands in several sequences, because these were distributed, is.
    """

    relation: Relation
    negated: bool = False
    place: int = 0


@dataclass(frozen=True, slots=True)
class Gap:
    """What must be absent inside a sequence, and for how long; 0: until what follows happens."""

    absent: Is
    within: int = 0


@dataclass(frozen=True, slots=True)
class Then:
    """``first followed-by second``, at most ``within`` microseconds later. No relation of it is a constraint.

    ``between`` are absences between the two, in their order. If both sides are to hold, ``within`` counts from the
    first, and the second comes after all gaps that have a length. If one side is absent itself, all gaps have a length,
    and they lie one behind the other, ``within`` being that of the absent side, which lies farthest from the other.
    """

    first: Is
    second: Is
    within: int
    between: tuple[Gap, ...] = ()

    @property
    def gaps(self) -> int:
        """How long the gaps with a length take."""
        return sum(gap.within for gap in self.between)

    @property
    def span(self) -> int:
        """How far apart the beginning of a sequence and its end can lie."""
        return self.within if not (self.first.negated or self.second.negated) else self.within + self.gaps

    @property
    def parts(self) -> tuple[Is, ...]:
        return (self.first, *(gap.absent for gap in self.between), self.second)

    @property
    def unplaced(self) -> Then:
        """What reads the same elsewhere has the same occurrences."""
        gaps = tuple(replace(gap, absent=replace(gap.absent, place=0)) for gap in self.between)
        return Then(replace(self.first, place=0), replace(self.second, place=0), self.within, gaps)


Literal = Is | Then
Clause = tuple[Literal, ...]
"""Literals, one of which must be met."""


def is_negative(literal: Literal) -> bool:
    """Whether a literal says only what must be absent, and so never occurs itself."""
    return literal.negated if isinstance(literal, Is) else literal.first.negated and literal.second.negated


@dataclass(frozen=True, slots=True)
class Absence:
    """Negative literals that are judged together: refuted only if something that agrees speaks against each of them."""

    literals: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """An ``or``: one branch is chosen in a match, and all parts of it must be met.

    Branches that consist of negative literals only are one, ``absent``, judged together. It is chosen only where no
    other branch is met by what happened.
    """

    branches: tuple[tuple[Part, ...], ...]
    absent: tuple[Absence, ...] = ()


Part = Is | Then | Absence | Choice
"""What must be met; a literal here is a positive one."""


def literals_of(parts: Iterable[Part]) -> Iterator[Literal]:
    """All literals of conditions, those of all branches among them."""
    for part in parts:
        match part:
            case Is() | Then():
                yield part
            case Absence(literals=literals):
                yield from literals
            case Choice(branches=branches, absent=absent):
                for branch in branches:
                    yield from literals_of(branch)
                yield from literals_of(absent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """A named action with its arguments: ``raise alarm``; ``delete policy`` with ``night-watch``."""

    name: str
    arguments: tuple[str, ...] = ()
    location: Location | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """All of a policy. ``conditions`` are what a match must meet, all of it.

    ``clauses`` are the same in extended conjunctive normal form: what people read, and what follows from the conditions
    whichever branches are chosen. ``lateness`` is -1 where the policy does not say one: its sources decide.
    """

    name: str
    aliases: tuple[Alias, ...]
    conditions: tuple[Part, ...]
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
