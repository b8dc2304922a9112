"""Subscriptions in the terms of a context → what they ask of root events.

What a filter says of the event that would be delivered, it says of the root event as well: every attribute in it is
replaced by the expression that makes that attribute. No function need be inverted, and what is left after
simplification is as a rule a plain comparison again, which is indexed like all others. So events are matched in one
form, and converted only for those who want them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from types import MappingProxyType

import msgspec

from situ.contexts.function_bodies import DATA, EVENT
from situ.contexts.model import Context
from situ.contexts.transform.transformation import Transformation
from situ.lang.catalogue import FILTER_INVALID, TYPE_NOT_AVAILABLE
from situ.lang.expr.checker.check import check_bounded
from situ.lang.expr.limits import DEFAULT_LIMITS, ExpressionLimits
from situ.lang.expr.scope import Definition, NameScope, attribute_of, event_scope, substitute
from situ.lang.expr.simplify import simplify
from situ.lang.expr.syntax import locate_in
from situ.lang.expr.tree import TRUE, And, Case, Compare, Literal, MakeStruct, Node, Or, Read, Span, rebuild, walk
from situ.lang.problems import Problem, SituError, nearest
from situ.lang.types.json_codec import TYPE_KEY
from situ.lang.types.model import BOOLEAN, STRING, Struct, is_subtype
from situ.lang.types.table import RESERVED_EVENTS, Types

_TYPE = "type"


def rewrite_subscription(
    subscription: str,
    types: Iterable[str],
    where: str,
    context: Context,
    outbound: Mapping[str, Transformation],
    functions: Mapping[str, Definition],
    limits: ExpressionLimits = DEFAULT_LIMITS,
    nodes: Mapping[str, Node] = MappingProxyType({}),
) -> Mapping[str, Node]:
    """Root event type → the condition on its events under which the subscription wants them.

    ``outbound`` are the ways out of root into the context; ``nodes`` their expressions where the host has put in how it
    finds rows of tables. A condition holds for events of just this type, those of its subtypes have their own.
    :class:`SituError` if a type of the subscription is never delivered, or its filter cannot be used.
    """
    found: dict[str, Node] = {}
    problems: list[Problem] = []
    for name in types:
        if name in RESERVED_EVENTS:
            found[name] = _own(subscription, RESERVED_EVENTS[name], where, context, functions, limits)
            continue
        wanted = context.types.event(name)
        ways = [] if wanted is None else [each for each in outbound.values() if is_subtype(each.target, wanted)]
        if wanted is None or not ways:
            near = nearest(name, sorted({each.target.name for each in outbound.values()}))
            where = f" that is delivered in the context `{context.id}`"
            remedy = f"Give the context a mapping `out: … -> {name}`, or subscribe to a type that it has."
            problems.append(TYPE_NOT_AVAILABLE(type=name, where=where, nearest=near, remedy=remedy))
            continue
        try:
            filter_ = _Filter(subscription, wanted, where, context, functions, limits)
        except SituError as error:
            problems.extend(error.problems)
            continue
        for way in ways:
            condition = filter_.on(way, way.types, nodes.get(way.source.name))
            known = found.get(way.source.name)
            found[way.source.name] = condition if known is None else simplify(_either(known, condition))
    if problems:
        raise SituError(*problems)
    return found


class DeferredFilter(msgspec.Struct, frozen=True, kw_only=True):
    """A filter that cannot be decided before Python or memory has been asked: as written, and asked of the source."""

    written: Node
    condition: Node


def deferred_filter(
    types: Iterable[str],
    where: str,
    context: Context,
    way: Transformation,
    functions: Mapping[str, Definition],
    limits: ExpressionLimits = DEFAULT_LIMITS,
    *,
    node: Node | None = None,
    whole: Node | None = None,
) -> DeferredFilter | None:
    """What a subscription to these types still asks of events that its condition lets through; None if nothing.

    ``node`` is the expression of the way as for conditions, ``whole`` the one that has everything put in.
    """
    wanted = [event for name in types if (event := context.types.event(name)) and is_subtype(way.target, event)]
    filters = [_Filter("", each, where, context, functions, limits) for each in wanted] if where else []
    if not any(each.is_decided_later(way, node) for each in filters):
        return None
    written = reduce(_either, (each.node for each in filters))
    return DeferredFilter(
        written=written, condition=reduce(_either, (simplify(each.substituted(way, whole)) for each in filters))
    )


class RewrittenFilter(msgspec.Struct, frozen=True, kw_only=True):
    """A filter in the terms of a context, and what it asks of events of one root type: literally, and simplified."""

    written: Node
    substituted: Node
    simplified: Node


def rewrite_filter(
    where: str,
    way: Transformation,
    context: Context,
    functions: Mapping[str, Definition],
    limits: ExpressionLimits = DEFAULT_LIMITS,
    *,
    named: str = "",
    node: Node | None = None,
) -> RewrittenFilter:
    """What a filter on the target of ``way`` asks of its source; ``named`` is what problems call the filter.

    ``node`` stands for the expression of the way where the host has put in how it finds rows of tables.
    """
    found = _Filter(named, way.target, where, context, functions, limits)
    return RewrittenFilter(
        written=found.node,
        substituted=found.substituted(way, node),
        simplified=found.on(way, way.types, node),
    )


def _own(
    subscription: str,
    event: Struct,
    where: str,
    context: Context,
    functions: Mapping[str, Definition],
    limits: ExpressionLimits,
) -> Node:
    """Events of Situ's own are the same in all contexts."""
    return simplify(_Filter(subscription, event, where, context, functions, limits).node)


def _either(one: Node, other: Node) -> Node:
    """A subscription to several types wants an event that any of them lets through."""
    return one if one == other else Or((one, other))


class _Filter:
    """A filter, read in the terms of a context for one of its event types."""

    def __init__(
        self,
        subscription: str,
        wanted: Struct,
        where: str,
        context: Context,
        functions: Mapping[str, Definition],
        limits: ExpressionLimits,
    ) -> None:
        self._scope: NameScope = event_scope(
            wanted, types=context.types, functions=functions, limits=limits, extensions=True
        )
        self.node: Node = TRUE
        if where:
            checked = check_bounded(where, self._scope, locate_in(where), BOOLEAN)
            if checked.node is None:
                raise SituError(
                    *(
                        FILTER_INVALID(each.location, cause=each, subscription=subscription, type=wanted.name)
                        for each in checked.problems
                        if each.is_error
                    )
                )
            self.node = checked.node

    def on(self, way: Transformation, types: Types, node: Node | None = None) -> Node:
        """What it asks of the source of this way, as far as that can be known before the event is converted."""
        known = [each for each in self._conjuncts(way, node) if not _known_late(each, way)]
        condition = simplify(And(tuple(known))) if len(known) > 1 else known[0] if known else TRUE
        if len([each for each in types.subtypes(way.source) if str(each) in types.events]) < 2:
            return condition
        just = Compare("=", Read(EVENT, (_TYPE,), STRING, optional=(False, False)), Literal(way.source.name, STRING))
        return simplify(And((just, condition)))

    def is_decided_later(self, way: Transformation, node: Node | None = None) -> bool:
        """Whether a part of it can be told only of the event that was made."""
        return any(_known_late(each, way) for each in self._conjuncts(way, node))

    def _conjuncts(self, way: Transformation, node: Node | None) -> list[Node]:
        return [simplify(each) for each in _parts(self.substituted(way, node))]

    def substituted(self, way: Transformation, node: Node | None = None) -> Node:
        """With the expressions that make them in place of the attributes."""
        named = _named(self.node, way.target.name)
        return substitute(named, {DATA: way.node if node is None else node}, self._scope, reach=_part)


def _parts(node: Node) -> Iterator[Node]:
    """The conditions that must all hold."""
    if isinstance(node, And):
        for part in node.args:
            yield from _parts(part)
    else:
        yield node


def _known_late(node: Node, way: Transformation) -> bool:
    """Whether it reads what the host binds, and has not put in: results of Python, and what is remembered."""
    return any(isinstance(part, Read) and part.variable in way.externals for part in walk(node))


def _named(node: Node, type: str) -> Node:
    """The type of the event is the one it is delivered as."""
    if isinstance(node, Read) and node.variable == EVENT and node.path == (_TYPE,):
        return Literal(type, STRING, span=node.span)
    return rebuild(node, lambda part: _named(part, type))


def _part(of: Node, name: str, scope: NameScope, span: Span) -> Node | None:
    """An attribute of what is delivered is the expression that makes it, whatever becomes of the others."""
    if isinstance(of, MakeStruct):
        made = dict(of.fields).get(name)
        if made is not None:
            return made
        attribute = of.type.attribute(name)
        if attribute is None:  # of the very type that is declared; a value says only that it is of another
            return Literal(None, STRING, span=span) if name == TYPE_KEY else None
        return Literal(None, attribute.type, span=span)
    declared = attribute_of(of, name, scope, span)
    if isinstance(of, Case) and declared is not None:
        return _part_of_each(of, declared, name, scope, span)
    return declared


def _part_of_each(of: Case, declared: Node, name: str, scope: NameScope, span: Span) -> Node:
    """An attribute of a choice is the choice between the attributes; none if they are all the same.

    Which subtype a value is of decides what is made of it, and seldom what is made of one attribute.
    """
    parts: list[Node] = []
    for result in of.results:
        is_null = isinstance(result, Literal) and result.value is None
        part = Literal(None, declared.type, span=span) if is_null else _part(result, name, scope, span)
        if part is None:
            return declared
        parts.append(part)
    conditions = [condition for condition, _ in of.arms]
    if all(each == parts[0] for each in parts) and not any(each.can_fail for each in conditions):
        return parts[0]
    arms = tuple(zip(conditions, parts[:-1], strict=True))
    return Case(arms, parts[-1], declared.type, declared.unit, span=span)
