"""Conditions of a policy for people: the text of literals and clauses, and the logic tree.

`literal_text`, `clause_text`, `part_text` and `duration_text` print parts of conditions, `logic_tree` gives the normal
form of a policy as nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import assert_never

import msgspec

from situ.lang.quantities import format_duration
from situ.policies.model import (
    Absence,
    Clause,
    ConditionLiteral,
    ConditionPart,
    Disjunction,
    Policy,
    RelationKind,
    RelationLiteral,
    SequenceLiteral,
    Side,
    literals_of,
)


def literal_text(literal: ConditionLiteral, window: int = -1) -> str:
    """``A is not inside R``, ``A is inside R followed-by within 5 s B is inside R``.

    A window is said where it is another than that of the policy.
    """
    if isinstance(literal, RelationLiteral):
        return _sign_text(literal)
    first, *others = literal.parts
    written = [_sign_text(first)]
    for part, within in zip(others, _windows(literal, window), strict=True):
        shown = f" within {duration_text(within)}" if within else ""
        written.append(f"followed-by{shown} {_sign_text(part)}")
    return " ".join(written)


def _windows(then: SequenceLiteral, window: int) -> list[int]:
    """Of each ``followed-by``, 0 for what need not be said."""
    gaps, last = [gap.within for gap in then.between], then.within if then.within != window else 0
    if not then.first.negated and not then.second.negated:
        return [*gaps, last]  # a gap without a length has none even if its length would be the window
    given = [each if each != window else 0 for each in gaps]
    return [last, *given] if then.first.negated else [*given, last]


def clause_text(clause: Clause, window: int = -1) -> str:
    """The literals, joined by ``or``."""
    return " or ".join(literal_text(each, window) for each in clause)


def part_text(part: ConditionPart, window: int = -1) -> str:
    """A condition as a match meets it: branches in the order they are written, those of several in parentheses."""
    match part:
        case RelationLiteral() | SequenceLiteral():
            return literal_text(part, window)
        case Absence(literals=literals):
            return clause_text(literals, window)
        case Disjunction(branches=branches, absent=absent):
            written = [(_place_text(branch), _all_text(branch, window)) for branch in branches]
            if len(absent) == 1:
                written += [(_place_text((each,)), literal_text(each, window)) for each in absent[0].literals]
            elif absent:
                written.append((_place_text(absent), _all_text(absent, window)))
            return " or ".join(text for _, text in sorted(written))
        case _:
            assert_never(part)


def _all_text(parts: Sequence[ConditionPart], window: int) -> str:
    texts = [part_text(part, window) for part in parts]
    if len(texts) == 1:
        return texts[0]
    return f"({' and '.join(f'({each})' if _is_or(part) else each for part, each in zip(parts, texts, strict=True))})"


def _is_or(part: ConditionPart) -> bool:
    return isinstance(part, Disjunction) or (isinstance(part, Absence) and len(part.literals) > 1)


def _place_text(parts: Sequence[ConditionPart]) -> int:
    signed = (
        step for each in literals_of(parts) for step in ((each,) if isinstance(each, RelationLiteral) else each.parts)
    )
    return min(step.place for step in signed)


def duration_text(microseconds: int) -> str:
    return format_duration(timedelta(microseconds=microseconds))


def _sign_text(literal: RelationLiteral) -> str:
    text = literal.relation.text
    if not literal.negated:
        return text
    if literal.relation.compares:
        return f"not {text}"
    alias, blank, said = text.partition(" ")
    if not blank:
        return f"not {text}"
    return f"{alias} is not {said.removeprefix('is ')}" if said.startswith("is ") else f"{alias} not {said}"


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The logic tree: each node is a kind of component that decides something. The root is an AND. Below it stand the
# clauses: OR nodes, or what a clause of one literal consists of; below those sequences; then relations; then the
# aliases with their constraints. So no tree is higher than five, whatever the policy.


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
    RelationKind.QUERY: Component.QUERY,
    RelationKind.CORRELATION: Component.CORRELATION,
    RelationKind.CONSTRAINT: Component.CONSTRAINT,
}


class LogicEdge(msgspec.Struct, frozen=True):
    """Which attribute of the alias below a relation uses, and whether events bring it."""

    attribute: str
    event_based: bool


class LogicNode(msgspec.Struct, frozen=True, kw_only=True):
    """One node. ``edges`` lead from a leaf up to its relation; ``window`` is that of pairs and sequences."""

    component: Component
    text: str
    negated: bool = False
    window: int = 0
    edges: tuple[LogicEdge, ...] = ()
    below: tuple[LogicNode, ...] = ()


def logic_tree(policy: Policy) -> LogicNode:
    """The tree of a policy, its clauses in their order."""
    return LogicNode(
        component=Component.AND,
        text=policy.name,
        window=policy.window,
        below=tuple(_clause(policy, clause) for clause in policy.clauses),
    )


def walk(node: LogicNode) -> Iterator[LogicNode]:
    """The node and all below it, from above."""
    yield node
    for each in node.below:
        yield from walk(each)


def _clause(policy: Policy, clause: Clause) -> LogicNode:
    literals = tuple(_literal(policy, literal) for literal in clause)
    return literals[0] if len(literals) == 1 else LogicNode(component=Component.OR, text="one of", below=literals)


def _literal(policy: Policy, literal: ConditionLiteral) -> LogicNode:
    if isinstance(literal, RelationLiteral):
        return _relation(policy, literal)
    sides = tuple(_relation(policy, part) for part in literal.parts)
    return LogicNode(component=Component.FOLLOWED_BY, text="followed by", window=literal.span, below=sides)


def _relation(policy: Policy, literal: RelationLiteral) -> LogicNode:
    relation = literal.relation
    return LogicNode(
        component=_RELATIONS[relation.kind],
        text=literal_text(literal),
        negated=literal.negated,
        window=policy.window if relation.kind is RelationKind.CORRELATION else 0,
        below=tuple(_leaf(policy, side) for side in relation.sides),
    )


def _leaf(policy: Policy, side: Side) -> LogicNode:
    alias = policy.alias(side.alias)
    constraint = f" ({alias.text})" if alias.text else ""
    return LogicNode(
        component=Component.LEAF,
        text=f"{alias.concept} {alias.name}{constraint}",
        edges=tuple(LogicEdge(each, each == side.event) for each in side.attributes),
    )
