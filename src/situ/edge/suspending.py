"""What a router tells clients of declarations that they have no right to any more: which, and what they lack."""

from __future__ import annotations

import json
from collections.abc import Iterable

from situ.catalogue import NOT_A_MEMBER
from situ.deployment import Deployment
from situ.errors import Problem
from situ.overlay.effects import Suspended
from situ.registry import Object
from situ.registry.scope_changes import why_suspended
from situ.subscription.model import Advertisement, Subscription
from situ.tags import ANY


def suspended_in(deployment: Deployment, objects: Iterable[Object]) -> tuple[Suspended, ...]:
    """Suspended declarations as the router's machine takes them; those that only a later version lacks are not yet."""
    found = []
    for each in objects:
        if each.name in (deployment.advertisements if each.kind == "advertisement" else deployment.subscriptions):
            continue
        of = Advertisement if each.kind == "advertisement" else Subscription
        what: Advertisement | Subscription = of.from_json(each.name, json.loads(each.body))
        why = why_suspended(deployment, what) or _meanwhile(what)
        found.append(Suspended(what=what, version=each.version, code=why.code.code, message=why.message, hint=why.hint))
    return tuple(found)


def _meanwhile(what: Advertisement | Subscription) -> Problem:
    """Its client has the right again, and had lost it: that takes a new declaration."""
    named = [(dimension, tag) for dimension, tag in what.scopes.named if tag != ANY]
    dimension, scope = named[0] if named else ("rest", ANY)
    return NOT_A_MEMBER(who=what.client, scope=scope, dimension=dimension, memberships=())
