"""The logic tree of a policy: its normal form as nodes, each a kind of component that decides something.

The root is an AND. Below it stand the clauses: OR nodes, or what a clause of one literal consists of; below those
sequences; then relations; then the aliases with their constraints. So no tree is higher than five, whatever the policy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from situ.situation.policies.policy import Clause, Is, Kind, Literal, Policy, Side
from situ.situation.policies.wording import literal_text

HIGHEST = 5


class Component(StrEnum):
    """What a node is, by what it decides."""

    LEAF = "leaf"
    QUERY = "query"
    CORRELATION = "correlation"
    CONSTRAINT = "constraint"
    FOLLOWED_BY = "followed-by"
    OR = "or"
    AND = "and"


MEANINGS: Mapping[Component, str] = MappingProxyType(
    {
        Component.LEAF: "an alias: its instances, of which events tell or tables know, that meet its constraints",
        Component.QUERY: "one event-based attribute: each event meets what tables know",
        Component.CORRELATION: "two event-based attributes: events meet events, in pairs",
        Component.CONSTRAINT: "no event-based attribute: restricts the aliases it shares with others",
        Component.FOLLOWED_BY: "one after the other, within its window",
        Component.OR: "one of its parts is enough; what is absent is looked at together",
        Component.AND: "all of its parts, with the same instances, within the window of the policy",
    }
)

_RELATIONS = {
    Kind.QUERY: Component.QUERY,
    Kind.CORRELATION: Component.CORRELATION,
    Kind.CONSTRAINT: Component.CONSTRAINT,
}


@dataclass(frozen=True, slots=True)
class Edge:
    """Which attribute of the alias below a relation uses, and whether events bring it."""

    attribute: str
    event_based: bool

    def __str__(self) -> str:
        return f"{self.attribute} ({'event' if self.event_based else 'query'})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node. ``edges`` lead from a leaf up to its relation; ``window`` is that of pairs and sequences."""

    component: Component
    text: str
    negated: bool = False
    window: int = 0
    edges: tuple[Edge, ...] = ()
    below: tuple[Node, ...] = ()

    @property
    def height(self) -> int:
        return 1 + max((each.height for each in self.below), default=0)


def logic_tree(policy: Policy) -> Node:
    """The tree of a policy, its clauses in their order."""
    return Node(
        component=Component.AND,
        text=policy.name,
        window=policy.window,
        below=tuple(_clause(policy, clause) for clause in policy.clauses),
    )


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it, from above."""
    yield node
    for each in node.below:
        yield from walk(each)


def _clause(policy: Policy, clause: Clause) -> Node:
    literals = tuple(_literal(policy, literal) for literal in clause)
    return literals[0] if len(literals) == 1 else Node(component=Component.OR, text="one of", below=literals)


def _literal(policy: Policy, literal: Literal) -> Node:
    if isinstance(literal, Is):
        return _relation(policy, literal)
    sides = tuple(_relation(policy, part) for part in literal.parts)
    return Node(component=Component.FOLLOWED_BY, text="followed by", window=literal.span, below=sides)


def _relation(policy: Policy, literal: Is) -> Node:
    relation = literal.relation
    return Node(
        component=_RELATIONS[relation.kind],
        text=literal_text(literal),
        negated=literal.negated,
        window=policy.window if relation.kind is Kind.CORRELATION else 0,
        below=tuple(_leaf(policy, side) for side in relation.sides),
    )


def _leaf(policy: Policy, side: Side) -> Node:
    alias = policy.alias(side.alias)
    constraint = f" ({alias.text})" if alias.text else ""
    return Node(
        component=Component.LEAF,
        text=f"{alias.concept} {alias.name}{constraint}",
        edges=tuple(Edge(each, each == side.event) for each in side.attributes),
    )
