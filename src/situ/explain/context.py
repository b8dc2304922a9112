"""What there is to know about a context: what it declares and inherits, who uses it, what becomes of event types.

Decides and lays nothing out: :mod:`situ.cli.render.transform` does that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from situ.contexts.model import Context, Conversion, Direction, EventMapping, Rule
from situ.contexts.resolve_rules import rules_in_force
from situ.contexts.transform.transformation import mappings_in_force
from situ.explain.conversion import ContextConversions, place_text, type_text
from situ.lang.expr.scope import Variable
from situ.lang.json_form import Explanation
from situ.model import Deployment


class ContextDeclaration(Explanation, frozen=True, kw_only=True):
    """A mapping, rule or function that is in force in a context."""

    text: str
    context: str
    """The context that declares it."""
    place: str | None = msgspec.field(name="from")
    """File and line where it is declared."""
    overrides: tuple[str, ...]
    """The contexts whose own it takes the place of."""


class EventTypeExplanation(Explanation, frozen=True, kw_only=True):
    """What becomes of an event type."""

    type: str
    target: str | None
    kind: Literal["mapped", "converted", "passes", "not available"]
    """`converted` is under its own name."""
    reason: str | None
    """Why it is not available."""


class DirectionExplanation(Explanation, frozen=True, kw_only=True):
    """One direction of a context: what is in force, and what becomes of each event type."""

    mappings: tuple[ContextDeclaration, ...]
    rules: tuple[ContextDeclaration, ...]
    events: tuple[EventTypeExplanation, ...]


class ContextUsers(Explanation, frozen=True, kw_only=True):
    """Who uses a context."""

    clients: tuple[str, ...]
    advertisements: tuple[str, ...]
    subscriptions: tuple[str, ...]


class ContextTypes(Explanation, frozen=True, kw_only=True):
    """The types of a context."""

    own: tuple[str, ...]
    hiding: tuple[str, ...]
    """Own types whose name its ancestors use for others."""
    inherited: tuple[str, ...]


class ContextExplanation(Explanation, frozen=True, kw_only=True):
    """A context: what it declares and inherits, who uses it, what becomes of event types."""

    context: str
    chain: tuple[str, ...]
    """The context and what it extends, up to root."""
    children: tuple[str, ...]
    derive: bool
    """Whether event types that rules change get a type of their own name."""
    used_by: ContextUsers
    types: ContextTypes
    functions: tuple[ContextDeclaration, ...]
    outgoing: DirectionExplanation = msgspec.field(name="out")
    """From root."""
    incoming: DirectionExplanation = msgspec.field(name="in")
    """To root."""


def explain_context(context: Context, deployment: Deployment) -> ContextExplanation:
    """Everything that is in force in a context, and what follows."""
    own = context.own if context.parent is not None else {each.name for each in context.types.declared}
    above = set(context.parent.types.names) if context.parent is not None else set()
    clients = {name for name, each in deployment.clients.items() if each.context == context.id}
    inherited = {each.name for each in context.types.declared} - own
    return ContextExplanation(
        context=context.name,
        chain=tuple(each.id for each in context.chain),
        children=tuple(each.id for each in deployment.contexts.children(context.id)),
        derive=context.derive,
        used_by=ContextUsers(
            clients=tuple(sorted(clients)),
            advertisements=tuple(
                sorted(id for id, each in deployment.advertisements.items() if each.client in clients)
            ),
            subscriptions=tuple(
                sorted(id for id, each in deployment.subscriptions.items() if each.context == context.id)
            ),
        ),
        types=ContextTypes(
            own=tuple(sorted(own)), hiding=tuple(sorted(own & above)), inherited=tuple(sorted(inherited))
        ),
        functions=tuple(_functions(context)),
        outgoing=_direction(context, Direction.OUT),
        incoming=_direction(context, Direction.IN),
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
    place = place_text(mapping.location)
    return ContextDeclaration(text=f"{here} -> {there}", context=mapping.context, place=place, overrides=())


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
            yield EventTypeExplanation(type=name, target=None, kind="not available", reason=ways.reason(name) or None)
            continue
        target = way.target.name if direction is Direction.IN else type_text(way.target.name, context)
        yield EventTypeExplanation(
            type=name,
            target=target or None,
            kind="mapped" if way.mapping is not None else "passes" if way.is_identity else "converted",
            reason=None,
        )
