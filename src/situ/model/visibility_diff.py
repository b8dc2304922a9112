"""Who sees more or less by another version of a project: pair by pair of what is published and what is wanted.

Policies are among both: they read, and they publish situations. Pairs whose types never meet are left out, as far as
that is known; in the terms of other contexts it is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from situ.lang.json_form import StoredForm
from situ.lang.tags import TagSet
from situ.lang.types.model import Struct, is_subtype
from situ.lang.types.table import Types
from situ.model.deployment import Deployment
from situ.routing.model import ROOT
from situ.scopes.filter_sets import NO_NUMBERS
from situ.scopes.visibility_plan import (
    NEVER_PAIR,
    TagSetPair,
    VisibilityPlan,
    VisibilityShift,
    compare_pairs,
    compile_visibility,
    number_filters,
)

NOT_THERE = "not declared"
_SITUATIONS = "situ.situation"


class VisibilityChange(StoredForm, frozen=True, kw_only=True):
    """A pair that is decided otherwise: never, always or depends, or not declared on one side."""

    publishes: str
    receives: str
    before: str
    after: str
    direction: VisibilityShift = msgspec.field(name="change")


class _Side(NamedTuple):
    """What somebody publishes or wants. No types: of any."""

    client: str
    tags: TagSet
    types: tuple[str, ...] = ()


_Sides = Mapping[str, _Side]
_Group = tuple[TagSet | None, TagSet | None]


def visibility_changes(before: Deployment, after: Deployment) -> Iterator[VisibilityChange]:
    """The pairs whose visibility is another, by name."""
    published = _publish(before), _publish(after)
    received = _receive(before), _receive(after)
    numbers = number_filters(after.scopes, number_filters(before.scopes, NO_NUMBERS))
    plans = tuple(
        compile_visibility(
            each.scopes, {side.tags for side in ads.values()}, {side.tags for side in subs.values()}, numbers
        )
        for each, ads, subs in zip((before, after), published, received, strict=True)
    )
    found = []
    for ads, producers in _grouped(*published).items():
        for subs, consumers in _grouped(*received).items():
            was, will = _pair(plans[0], ads[0], subs[0]), _pair(plans[1], ads[1], subs[1])
            direction = compare_pairs(was or NEVER_PAIR, will or NEVER_PAIR)
            if direction is VisibilityShift.SAME:
                continue
            for producer in producers:
                for consumer in consumers:
                    if _meet(published, received, producer, consumer, (before.types, after.types)):
                        words = tuple(NOT_THERE if each is None else each.verdict.value for each in (was, will))
                        found.append(
                            VisibilityChange(
                                publishes=producer,
                                receives=consumer,
                                before=words[0],
                                after=words[1],
                                direction=direction,
                            )
                        )
    yield from sorted(found, key=lambda each: (each.publishes, each.receives))


def _pair(plan: VisibilityPlan, advertised: TagSet | None, subscribed: TagSet | None) -> TagSetPair | None:
    return None if advertised is None or subscribed is None else plan.pair(advertised, subscribed)


def _grouped(before: _Sides, after: _Sides) -> dict[_Group, list[str]]:
    """Names by their tags before and after: what is alike is decided alike."""
    groups: dict[_Group, list[str]] = {}
    for name in sorted({*before, *after}):
        was, will = before.get(name), after.get(name)
        groups.setdefault((was and was.tags, will and will.tags), []).append(name)
    return groups


def _publish(deployment: Deployment) -> _Sides:
    found = {
        id: _Side(each.client, each.scopes, (each.type,) if deployment.clients[each.client].context == ROOT else ())
        for id, each in deployment.advertisements.items()
    }
    tags = deployment.scopes.tags_of
    policies = {f"policy {name}": _Side(name, tags(name).publishes, (_SITUATIONS,)) for name in deployment.policies}
    return {**found, **policies}


def _receive(deployment: Deployment) -> _Sides:
    found = {
        id: _Side(each.client, each.scopes, each.types if each.context == ROOT else ())
        for id, each in deployment.subscriptions.items()
    }
    tags = deployment.scopes.tags_of
    return {**found, **{f"policy {name}": _Side(name, tags(name).reads) for name in deployment.policies}}


def _meet(
    published: tuple[_Sides, _Sides],
    received: tuple[_Sides, _Sides],
    producer: str,
    consumer: str,
    types: tuple[Types, Types],
) -> bool:
    """Whether an event of the one may be wanted by the other, before or after. Nobody gets his own."""
    for ads, subs, known in zip(published, received, types, strict=True):
        ad, sub = ads.get(producer), subs.get(consumer)
        if ad is not None and sub is not None and ad.client != sub.client and _types_meet(ad.types, sub.types, known):
            return True
    return False


def _types_meet(one: tuple[str, ...], other: tuple[str, ...], types: Types) -> bool:
    return not one or not other or any(_related(each, wanted, types) for each in one for wanted in other)


def _related(one: str, other: str, types: Types) -> bool:
    if _SITUATIONS in (one, other) and one.startswith(_SITUATIONS) and other.startswith(_SITUATIONS):
        return True
    mine, theirs = types.get(one), types.get(other)
    if not isinstance(mine, Struct) or not isinstance(theirs, Struct):
        return one == other
    return is_subtype(mine, theirs) or is_subtype(theirs, mine)
