"""Targets: who hangs from a filter, in the form in which deliveries name them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from situ.expr.spelling import spell
from situ.subscription.model import ROOT, Subscription
from situ.tags import NO_TAGS, TagSet


@dataclass(frozen=True, slots=True)
class Targets:
    """Ids of delivery groups, in order; and clients, in order, each with the names of its volatile subscriptions."""

    durable: tuple[str, ...] = ()
    live: tuple[tuple[str, str], ...] = ()


NOBODY = Targets()


@lru_cache(maxsize=200_000)
def group_id(types: tuple[str, ...], where: str, context: str = ROOT, scopes: TagSet = NO_TAGS, alone: str = "") -> str:
    """The id of the group of durable subscriptions to these types with this filter, the same in every process.

    ``alone``: the subscription that has a group of its own.
    """
    content: dict[str, Any] = {"types": sorted(types), "where": spell(where)}
    if context != ROOT:
        content["context"] = context
    if scopes != NO_TAGS:
        content["scopes"] = scopes.as_json()
    if alone:
        content["subscription"] = alone
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def group_of(subscription: Subscription) -> str:
    """The delivery group of a durable subscription."""
    alone = subscription.id if subscription.shaped else ""
    return group_id(subscription.types, subscription.where, subscription.context, subscription.scopes, alone)


def targets_of(subscriptions: Iterable[Subscription]) -> Targets:
    groups: set[str] = set()
    clients: dict[str, list[str]] = {}
    for each in subscriptions:
        if each.durable:
            groups.add(group_of(each))
        else:
            clients.setdefault(each.client, []).append(each.name)
    live = tuple((client, ",".join(sorted(names))) for client, names in sorted(clients.items()))
    return Targets(tuple(sorted(groups)), live)


def merge(several: Iterable[Targets]) -> Targets:
    """All of them together, each group and each subscription once."""
    given = [each for each in several if each is not NOBODY]
    if len(given) < 2:
        return given[0] if given else NOBODY
    groups = {group for each in given for group in each.durable}
    clients: dict[str, list[str]] = {}
    for each in given:
        for client, names in each.live:
            clients.setdefault(client, []).append(names)
    live = tuple(
        (
            client,
            names[0] if len(names) == 1 else ",".join(sorted({name for each in names for name in each.split(",")})),
        )
        for client, names in sorted(clients.items())
    )
    return Targets(tuple(sorted(groups)), live)
