"""Leaves: what enrichment makes of events before anything is remembered.

A leaf is one use of an event-based attribute. With a test it gives *occurrences* of a relation that has no other
event-based side: rows of an observed identity and, if the relation has two sides, of each instance of the other concept
for which the test holds. Without one it gives *observations*: rows of an identity and of the values that relations
between two event-based sides will look at. Leaves are plain data; policies that have equal ones share their rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from situ.expr.once import Remembering, once
from situ.expr.tree import Node, Read, walk
from situ.situation.policies.policy import (
    LEFT,
    RIGHT,
    Absence,
    Choice,
    Is,
    Kind,
    Literal,
    Part,
    Policy,
    Relation,
    Side,
    Then,
    literals_of,
)
from situ.types.model import Type


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """A value that tests read below an attribute: ``("position", "x")``."""

    path: tuple[str, ...]
    type: Type = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf(Remembering):
    """The attribute of a concept that events bring, what the observed instance must satisfy, and what is made of it."""

    concept: str
    attribute: str
    constraint: Node | None = None
    """Over ``it``: query attributes of the observed instance."""
    test: Node | None = None
    """Over ``left`` and ``right``; None: observations."""
    observed: str = LEFT
    """Which variable of the test the observed instance is."""
    other: str = ""
    """The concept of the other side of the test; empty if it has none."""
    other_constraint: Node | None = None
    scalars: tuple[Scalar, ...] = ()
    """Of observations: what their rows carry, in the order of paths."""

    @once
    def _hash(self) -> int:
        return hash((self.concept, self.attribute, self.constraint, self.test, self.other, self.other_constraint))

    def __hash__(self) -> int:
        return self._hash  # leaves are looked up for every policy in every batch, and trees are long


def relations_of(policy: Policy) -> tuple[Relation, ...]:
    """The relations of a policy, each once, in the order they stand."""
    found: dict[str, Relation] = {}
    for part in sorted(signed_relations(policy), key=lambda part: part.place):
        found.setdefault(part.relation.text, part.relation)
    return tuple(found.values())


def signed_relations(policy: Policy) -> Iterator[Is]:
    """Every step and every literal that is none of a sequence."""
    for literal in literals_of(policy.conditions):
        yield from parts(literal)


def parts(literal: Literal) -> tuple[Is, ...]:
    """The relations of a literal with their signs, in their order."""
    return (literal,) if isinstance(literal, Is) else literal.parts


def always_observed(conditions: Iterable[Part]) -> frozenset[str]:
    """The aliases of which events say who they are, whichever branches are chosen."""
    found: set[str] = set()
    for part in conditions:
        match part:
            case Is() | Then():
                sides = (side for each in parts(part) if not each.negated for side in each.relation.sides)
                found.update(side.alias for side in sides if side.event)
            case Choice(branches=branches, absent=()):
                found.update(frozenset.intersection(*map(always_observed, branches)))
            case Choice() | Absence():
                pass
    return frozenset(found)


def leaves_of(policy: Policy, relation: Relation) -> tuple[Leaf, ...]:
    """The leaf of each event-based side of a relation, the left one first."""
    leaves = (_leaf(policy, relation, variable, side) for variable, side in _named_sides(relation) if side.event)
    return tuple(map(_the_same, leaves))


@lru_cache(maxsize=1 << 16)
def _the_same(leaf: Leaf) -> Leaf:
    """Of equal leaves always one and the same: whoever looks it up need not compare it."""
    return leaf


def _named_sides(relation: Relation) -> Iterator[tuple[str, Side]]:
    yield LEFT, relation.left
    if relation.right is not None:
        yield RIGHT, relation.right


def _leaf(policy: Policy, relation: Relation, variable: str, side: Side) -> Leaf:
    alias = policy.alias(side.alias)
    if relation.kind is Kind.CORRELATION:
        return Leaf(
            concept=alias.concept,
            attribute=side.event,
            constraint=alias.constraint,
            scalars=scalars(relation.test, variable),
        )
    others = [each for name, each in _named_sides(relation) if name != variable]
    other = policy.alias(others[0].alias) if others else None
    return Leaf(
        concept=alias.concept,
        attribute=side.event,
        constraint=alias.constraint,
        test=relation.test,
        observed=variable,
        other=other.concept if other else "",
        other_constraint=other.constraint if other else None,
    )


def scalars(test: Node, variable: str) -> tuple[Scalar, ...]:
    """What a test reads of one variable, each path once, in order."""
    reads = [node for node in walk(test) if isinstance(node, Read) and node.variable == variable]
    found = {node.path: Scalar(path=node.path, type=node.type) for node in reads}
    return tuple(found[path] for path in sorted(found))
