"""The model of policies: a checked policy, what goes into detection and comes out, and where a policy starts.

`Policy` is a policy with its names resolved and its conditions in normal form, `Observation` and `Detection` are what
the reference and the kernel share, `PolicyStart` says from when on a new policy detects. Plain data.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from situ.event.instants import print_instant, read_instant
from situ.lang.expr.tree import Node
from situ.lang.problems import Location
from situ.lang.records import replace
from situ.policies.language.syntax import ConsumptionMode, When
from situ.policies.ontology.model import IDENTITY

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# A checked policy: names resolved against the ontology and the sources, conditions in normal form. It is the one thing
# that the reference semantics, the planner and the explanations start from. Times and durations are whole microseconds.

LEFT, RIGHT, IT = "left", "right", "it"
"""The variables of tests: the instances of the two aliases of a relation, and the one instance of a constraint."""


class Alias(msgspec.Struct, frozen=True, kw_only=True):
    """A name for one instance of a concept. ``constraint`` is a condition over the variable ``it``; None: any will do.

    A constraint uses query attributes only.
    """

    name: str
    concept: str
    constraint: Node | None = None
    text: str = ""
    """The constraint as it is written, for people."""


class Side(msgspec.Struct, frozen=True, kw_only=True):
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


class RelationKind(Enum):
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
    def kind(self) -> RelationKind:
        return RelationKind(sum(bool(side.event) for side in self.sides))


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    """The paths of the coordinates on both sides (``("position", "x")``), and the largest distance, in their unit."""

    left: tuple[tuple[str, ...], tuple[str, ...]]
    right: tuple[tuple[str, ...], tuple[str, ...]]
    distance: float


class RelationLiteral(msgspec.Struct, frozen=True):
    """A relation that holds, or one that does not.

    ``place`` says which of the literals of the policy it is, in the order they are written: two that read the same are
    not the same, and one that stands in several sequences, because these were distributed, is.
    """

    relation: Relation
    negated: bool = False
    place: int = 0


class SequenceGap(msgspec.Struct, frozen=True):
    """What must be absent inside a sequence, and for how long; 0: until what follows happens."""

    absent: RelationLiteral
    within: int = 0


class SequenceLiteral(msgspec.Struct, frozen=True):
    """``first followed-by second``, at most ``within`` microseconds later. No relation of it is a constraint.

    ``between`` are absences between the two, in their order. If both sides are to hold, ``within`` counts from the
    first, and the second comes after all gaps that have a length. If one side is absent itself, all gaps have a length,
    and they lie one behind the other, ``within`` being that of the absent side, which lies farthest from the other.
    """

    first: RelationLiteral
    second: RelationLiteral
    within: int
    between: tuple[SequenceGap, ...] = ()

    @property
    def gaps(self) -> int:
        """How long the gaps with a length take."""
        return sum(gap.within for gap in self.between)

    @property
    def span(self) -> int:
        """How far apart the beginning of a sequence and its end can lie."""
        return self.within if not (self.first.negated or self.second.negated) else self.within + self.gaps

    @property
    def parts(self) -> tuple[RelationLiteral, ...]:
        return (self.first, *(gap.absent for gap in self.between), self.second)

    @property
    def unplaced(self) -> SequenceLiteral:
        """What reads the same elsewhere has the same occurrences."""
        gaps = tuple(replace(gap, absent=replace(gap.absent, place=0)) for gap in self.between)
        return SequenceLiteral(replace(self.first, place=0), replace(self.second, place=0), self.within, gaps)


ConditionLiteral = RelationLiteral | SequenceLiteral
Clause = tuple[ConditionLiteral, ...]
"""Literals, one of which must be met."""


def is_negative(literal: ConditionLiteral) -> bool:
    """Whether a literal says only what must be absent, and so never occurs itself."""
    return literal.negated if isinstance(literal, RelationLiteral) else literal.first.negated and literal.second.negated


class Absence(msgspec.Struct, frozen=True):
    """Negative literals that are judged together: refuted only if something that agrees speaks against each of them."""

    literals: tuple[ConditionLiteral, ...]


class Disjunction(msgspec.Struct, frozen=True):
    """An ``or``: one branch is chosen in a match, and all parts of it must be met.

    Branches that consist of negative literals only are one, ``absent``, judged together. It is chosen only where no
    other branch is met by what happened.
    """

    branches: tuple[tuple[ConditionPart, ...], ...]
    absent: tuple[Absence, ...] = ()


ConditionPart = RelationLiteral | SequenceLiteral | Absence | Disjunction
"""What must be met; a literal here is a positive one."""


def literals_of(parts: Iterable[ConditionPart]) -> Iterator[ConditionLiteral]:
    """All literals of conditions, those of all branches among them."""
    for part in parts:
        match part:
            case RelationLiteral() | SequenceLiteral():
                yield part
            case Absence(literals=literals):
                yield from literals
            case Disjunction(branches=branches, absent=absent):
                for branch in branches:
                    yield from literals_of(branch)
                yield from literals_of(absent)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyAction:
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
    conditions: tuple[ConditionPart, ...]
    clauses: tuple[Clause, ...]
    window: int
    hold: int
    lateness: int = -1
    consumption: ConsumptionMode = ConsumptionMode.CHRONICLE
    when: When = When.OPENING
    actions: tuple[PolicyAction, ...] = ()
    text: str = ""
    """The policy as it is printed: what is stored."""
    location: Location | None = field(default=None, compare=False)

    def alias(self, name: str) -> Alias:
        return next(each for each in self.aliases if each.name == name)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What comes of detecting: observations go in, detections come out.


class Cause(NamedTuple):
    """An event by its source and id. The k-th repetition of a kept value has ``+k`` behind the id."""

    source: str
    id: str


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """What an event said of one attribute of one instance, through one push source."""

    push: str
    concept: str
    identity: str
    attribute: str
    value: Any
    time: int
    cause: Cause


InstancesByConcept = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""What pull sources know: concept → identity → attribute → value. A missing attribute is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """A policy was met by these identities because of these events. ``time`` is when it can be reported.

    ``activation`` is the time of the latest occurrence; they differ where something had to be absent.
    """

    policy: str
    bindings: tuple[tuple[str, str], ...]
    """(alias, identity), in the order of aliases by name."""
    causes: tuple[Cause, ...]
    """Sorted, each once."""
    time: int
    activation: int = field(compare=False)
    positions: tuple[int, ...] = field(default=(), compare=False)
    """Where the causes are in the root log, one for each, if that is known."""

    @property
    def id(self) -> str:
        return derived_id(self.policy, dict(self.bindings), [list(cause) for cause in self.causes])


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def derived_id(*parts: Any) -> str:
    """The first 128 bits of SHA-256 over the canonical JSON of these parts, in hexadecimal."""
    return hashlib.sha256(_CANONICAL.encode(parts).encode()).hexdigest()[:32]


def sort_detections(detections: Iterable[Detection]) -> list[Detection]:
    """As they are reported: by time, those of one time by id."""
    return sorted(detections, key=lambda each: (each.time, each.id))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Where a new policy starts, if not with what comes from now on: at an instant that the log still holds. It is said
# once, when a policy is added, and counts for a policy that nothing is remembered of.


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyStart:
    """``at``, in microseconds; ``acts``: what its actions come to for what happened since then is done, too."""

    at: int
    acts: bool = False

    def as_json(self) -> dict[str, Any]:
        return {"at": print_instant(self.at), **({"acts": True} if self.acts else {})}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> PolicyStart:
        """What :meth:`as_json` gave; KeyError or ValueError for what it cannot have given."""
        at = read_instant(value["at"])
        if at is None:
            raise ValueError(f"{value['at']} is no instant")
        return cls(at=at, acts=bool(value.get("acts", False)))


PolicyStarts = Mapping[str, PolicyStart]
"""By the names of policies."""


def starts_as_json(starts: PolicyStarts) -> dict[str, Any]:
    return {name: starts[name].as_json() for name in sorted(starts)}


def starts_from_json(value: Mapping[str, Any]) -> PolicyStarts:
    return MappingProxyType({name: PolicyStart.from_json(body) for name, body in sorted(value.items())})
