"""What there is to know about a context: what it declares and inherits, who uses it, what becomes of event types.

Decides and lays nothing out: :mod:`situ.cli.render.transform` does that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from situ.contexts.model import Context, Conversion, Direction, EventMapping, Rule
from situ.contexts.resolve_rules import rules_in_force
from situ.contexts.transform.transformation import mappings_in_force
from situ.explain.conversion import ContextConversions, place_text, type_text
from situ.lang.expr.scope import Variable
from situ.model import Deployment


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextDeclaration:
    """Something that is in force in a context: in words, by whom and where it is declared."""

    text: str
    context: str
    place: str
    overrides: tuple[str, ...] = ()
    """The contexts whose own it takes the place of."""

    def as_json(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "context": self.context,
            "from": self.place or None,
            "overrides": list(self.overrides),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTypeExplanation:
    """What becomes of an event type; where it has no way, ``reason`` says why."""

    type: str
    target: str = ""
    kind: str = ""
    """``mapped``, ``converted`` under its own name, ``passes`` or ``not available``."""
    reason: str = ""

    def as_json(self) -> dict[str, Any]:
        return {"type": self.type, "target": self.target or None, "kind": self.kind, "reason": self.reason or None}


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectionExplanation:
    """One direction of a context."""

    direction: str
    mappings: tuple[ContextDeclaration, ...]
    rules: tuple[ContextDeclaration, ...]
    events: tuple[EventTypeExplanation, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "mappings": [each.as_json() for each in self.mappings],
            "rules": [each.as_json() for each in self.rules],
            "events": [each.as_json() for each in self.events],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextExplanation:
    """A context; ``chain`` leads to root."""

    name: str
    chain: tuple[str, ...]
    children: tuple[str, ...]
    derive: bool
    clients: tuple[str, ...]
    advertisements: tuple[str, ...]
    subscriptions: tuple[str, ...]
    types: tuple[str, ...]
    hidden: tuple[str, ...]
    """Types whose name its ancestors use for others."""
    inherited: tuple[str, ...]
    functions: tuple[ContextDeclaration, ...]
    directions: tuple[DirectionExplanation, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "context": self.name,
            "chain": list(self.chain),
            "children": list(self.children),
            "derive": self.derive,
            "used_by": {
                "clients": list(self.clients),
                "advertisements": list(self.advertisements),
                "subscriptions": list(self.subscriptions),
            },
            "types": {"own": list(self.types), "hiding": list(self.hidden), "inherited": list(self.inherited)},
            "functions": [each.as_json() for each in self.functions],
            **{each.direction: each.as_json() for each in self.directions},
        }


def explain_context(context: Context, deployment: Deployment) -> ContextExplanation:
    """Everything that is in force in a context, and what follows."""
    own = context.own if context.parent is not None else {each.name for each in context.types.declared}
    above = set(context.parent.types.names) if context.parent is not None else set()
    clients = {name for name, each in deployment.clients.items() if each.context == context.id}
    inherited = {each.name for each in context.types.declared} - own
    return ContextExplanation(
        name=context.name,
        chain=tuple(each.id for each in context.chain),
        children=tuple(each.id for each in deployment.contexts.children(context.id)),
        derive=context.derive,
        clients=tuple(sorted(clients)),
        advertisements=tuple(sorted(id for id, each in deployment.advertisements.items() if each.client in clients)),
        subscriptions=tuple(sorted(id for id, each in deployment.subscriptions.items() if each.context == context.id)),
        types=tuple(sorted(own)),
        hidden=tuple(sorted(own & above)),
        inherited=tuple(sorted(inherited)),
        functions=tuple(_functions(context)),
        directions=tuple(_direction(context, each) for each in (Direction.OUT, Direction.IN)),
    )


def _functions(context: Context) -> Iterator[ContextDeclaration]:
    found: dict[str, list[Conversion]] = {}
    for each in context.chain:
        for name, function in each.functions.items():
            found.setdefault(name, []).append(function)
    for name in sorted(found):
        first, *others = found[name]
        yield ContextDeclaration(
            text=f"{name}: {_variable(first.parameter)} -> {_variable(first.result)}",
            context=first.context,
            place=place_text(first.location),
            overrides=tuple(each.context for each in others),
        )


def _variable(variable: Variable) -> str:
    return f"{variable.type} {variable.unit}".rstrip()


def _direction(context: Context, direction: Direction) -> DirectionExplanation:
    return DirectionExplanation(
        direction=direction.value,
        mappings=tuple(_mapping(each, context) for each in mappings_in_force(context, direction).values()),
        rules=tuple(_rules(context, direction)),
        events=tuple(_events(context, direction)),
    )


def _mapping(mapping: EventMapping, context: Context) -> ContextDeclaration:
    here, there = mapping.source.name, mapping.target.name
    if mapping.direction is Direction.IN:
        here = type_text(here, context)
    else:
        there = type_text(there, context)
    return ContextDeclaration(text=f"{here} -> {there}", context=mapping.context, place=place_text(mapping.location))


def _rules(context: Context, direction: Direction) -> Iterator[ContextDeclaration]:
    chain = list(context.chain)
    depths = {each.id: len(chain) - number for number, each in enumerate(chain)}
    rules: list[Rule] = [rule for each in chain for rule in each.rules if rule.direction is direction]
    for first, *others in rules_in_force(rules, depths.__getitem__).values():
        yield ContextDeclaration(
            text=str(first),
            context=first.context,
            place=place_text(first.location),
            overrides=tuple(each.context for each in others),
        )


def _events(context: Context, direction: Direction) -> Iterator[EventTypeExplanation]:
    ways = ContextConversions.of(context, direction)
    for name in sorted(context.types_of(direction).events):
        way = ways.by_type.get(name)
        if way is None:
            yield EventTypeExplanation(type=name, kind="not available", reason=ways.reason(name))
            continue
        kind = "mapped" if way.mapping is not None else "passes" if way.is_identity else "converted"
        target = way.target.name if direction is Direction.IN else type_text(way.target.name, context)
        yield EventTypeExplanation(type=name, target=target, kind=kind)
