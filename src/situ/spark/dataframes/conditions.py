"""Conditions on events of one type as Spark SQL: what a subscription asks for, and what is visible to it.

`matches_text` is the filter of a subscription, mediated if it is in the terms of a context. `visible_text` decides by
scopes: for each set of tags that somebody publishes under, the decision between these and the tags of the subscription
(:mod:`situ.stages.visibility_text`), with the filters of scopes put in. Both are false for rows that are no events, are
of another type, or are not in root's terms.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from situ.contexts.model import ROOT, Direction
from situ.contexts.transform.columns import condition_in_columns
from situ.lang.catalogue import NOT_ON_DATAFRAMES
from situ.lang.expr.emit.spark import emit_spark
from situ.lang.expr.overload import spark_text
from situ.lang.expr.tree import FALSE, TRUE, Field, Node, walk
from situ.lang.problems import SituError
from situ.lang.tags import TagSet
from situ.lang.types.model import Struct, supertypes
from situ.routing.model import Advertisement, Subscription
from situ.spark.dataframes.frame import EVENT, FAILURE, read_frame
from situ.stages.plan import Plan
from situ.stages.visibility_text import FilterTexts, pair_text


def condition_text(node: Node, event: Struct, plan: Plan) -> str:
    """True where a condition on root events of this type holds, false everywhere else, never null."""
    if node == TRUE:
        return "TRUE"
    if node == FALSE:
        return "FALSE"
    if any(isinstance(each, Field) for each in walk(node)):
        raise _too_much("it is about parts of a struct that is put together first")
    return emit_spark(condition_in_columns(node, event, plan.deployment.types), read_frame).matches


def is_root_event(type: str) -> str:
    """Whether a row is an event of this type, in root's terms, that nothing is wrong with."""
    return (
        f"({FAILURE} IS NULL AND coalesce({EVENT}.type = {spark_text(type)}"
        f" AND {EVENT}.context = {spark_text(ROOT)}, FALSE))"
    )


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Subscriptions.


def root_types(plan: Plan, subscription: Subscription) -> list[str]:
    """The types of root events that a subscription asks for."""
    types = plan.deployment.types
    wanted = plan.routing.wanted.meaning.conditions(subscription)
    found = [str(below) for name in wanted if (event := types.event(name)) for below in types.subtypes(event)]
    return [name for name in dict.fromkeys(found) if types.event(name) is not None]


def matches_text(plan: Plan, subscription: Subscription, event: Struct) -> str:
    """Whether root events of a type are wanted; :class:`SituError` with N156 if Spark alone cannot tell."""
    return f"({is_root_event(event.name)} AND {_wanted(plan, subscription, event)})"


def _wanted(plan: Plan, subscription: Subscription, event: Struct) -> str:
    interpretation = plan.interpretation
    late = interpretation.decision(subscription, event.name) if interpretation.decides_late else None
    if late is not None:
        raise _too_much(f"it depends on {late.reasons}", subscription)
    if subscription.context != ROOT:
        way = interpretation.converter(subscription.context, Direction.OUT, event.name)
        if way is not None and way.transformation.externals and subscription.where:
            raise _too_much("its context looks rows of tables up", subscription)
    conditions = plan.routing.wanted.meaning.conditions(subscription)
    above = {str(each) for each in supertypes(event)}
    texts = [condition_text(node, event, plan) for name, node in conditions.items() if name in above]
    return f"({' OR '.join(texts)})" if texts else "FALSE"


def _too_much(reason: str, subscription: Subscription | None = None) -> SituError:
    what = "This condition" if subscription is None else f"The filter of `{subscription.id}`"
    remedy = "Interpret the events in the terms of its context first, and filter what comes out."
    return SituError(NOT_ON_DATAFRAMES(what=what, reason=reason, remedy=remedy))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Visibility.


@dataclass(slots=True)
class _Publishers:
    """Who publishes under one set of tags, with one promise: advertisements, and clients that need not say which."""

    ads: list[str] = field(default_factory=list)
    clients: list[str] = field(default_factory=list)


def visible_text(plan: Plan, subscribed: TagSet, event: Struct) -> str:
    """Whether root events of a type are visible to those who subscribe under these tags."""
    seeing = plan.seeing
    if seeing is None:
        return is_root_event(event.name)
    parts = []
    for (tags, promise), publishers in _publishers(plan, event).items():
        pair = seeing.pair(tags, subscribed)
        decision = pair_text(pair, FilterTexts(seeing, event, lambda node, _: condition_text(node, event, plan)))
        if decision != "FALSE":
            held = "" if promise == "TRUE" else f" AND {promise}"
            parts.append(f"({_published_by(publishers)} AND {decision}{held})")
    return f"({is_root_event(event.name)} AND ({' OR '.join(parts) or 'FALSE'}))"


def _publishers(plan: Plan, event: Struct) -> Mapping[tuple[TagSet, str], _Publishers]:
    """Those who may publish events of this type."""
    above = {str(each) for each in supertypes(event)}
    fitting: dict[str, list[Advertisement]] = {}
    for each in plan.deployment.advertisements.values():
        if plan.interpretation.advertised(each).type in above:
            fitting.setdefault(each.client, []).append(each)
    found: dict[tuple[TagSet, str], _Publishers] = {}
    for client, ads in fitting.items():
        for ad in ads:
            publishers = found.setdefault((ad.scopes, _promise(plan, ad, event)), _Publishers())
            publishers.ads.append(ad.id)
            if len(ads) == 1:
                publishers.clients.append(client)
    return found


def _promise(plan: Plan, ad: Advertisement, event: Struct) -> str:
    """What the filter of an advertisement asks of events: one that is not as promised is not published."""
    if not ad.where:
        return "TRUE"
    context = plan.interpretation.context_of(ad.client)
    asked = Subscription(client=ad.client, name=ad.name, types=(ad.type,), where=ad.where, context=context)
    return _wanted(plan, asked, event)


def _published_by(publishers: _Publishers) -> str:
    """Whether an event is of one of these: it says under which advertisement, or its client has but one."""
    own = f"substring_index({EVENT}.ad, '/', 1) = {EVENT}.client"
    texts = [f"({_one_of(f'{EVENT}.ad', publishers.ads)} AND {own})"]
    if publishers.clients:
        texts.append(f"({EVENT}.ad IS NULL AND {_one_of(f'{EVENT}.client', publishers.clients)})")
    return f"coalesce({' OR '.join(texts)}, FALSE)"


def _one_of(text: str, names: Iterable[str]) -> str:
    return f"{text} IN ({', '.join(spark_text(name) for name in sorted(names))})"
