"""Changes of contexts on their way into the registry: held to what those who use them may count on.

The rules are :mod:`situ.interpretation.changing`; here is who uses a context, and which objects follow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from situ.catalogue import CONTEXT_IN_USE
from situ.deployment import Deployment
from situ.errors import Location, Problem, Problems
from situ.interpretation.changing import Allowed, carried, settle, some_of
from situ.interpretation.check_contexts import check_contexts
from situ.interpretation.contexts import Contexts
from situ.interpretation.keeping import descends
from situ.interpretation.load import context_document, load_contexts
from situ.registry.objects import Key
from situ.registry.written import Written

USUAL = Allowed()


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """The deployment with the contexts that come into force, which of them nobody wrote, and what is to say."""

    deployment: Deployment
    forks: frozenset[str] = frozenset()
    refused: tuple[Problem, ...] = ()
    """Errors about single contexts: what was declared is not in force, the rest is."""
    observed: tuple[Problem, ...] = ()


def settle_contexts(
    current: Deployment,
    proposed: Deployment,
    allowed: Allowed = USUAL,
    written: Mapping[Key, Written] | None = None,
) -> Settlement:
    """What of the proposed contexts comes into force; :class:`SituError` if nothing of it can."""
    before, after = current.contexts, proposed.contexts
    if before is after or len(before) == 1 or (before == after and _same_root(current, proposed)):
        return Settlement(deployment=proposed)
    places = {key.name: Location(file=each.file) for key, each in (written or {}).items() if key.kind == "context"}
    settled = settle(
        current.contexts,
        proposed.contexts,
        _uses(current, proposed),
        lambda bodies: _load(bodies, proposed),
        allowed,
        places,
    )
    deployment = proposed if settled.contexts is proposed.contexts else replace(proposed, contexts=settled.contexts)
    return Settlement(
        deployment=deployment, forks=frozenset(settled.forks), refused=settled.refused, observed=settled.kept
    )


def carry(current: Deployment, folder: Deployment, allowed: Allowed = USUAL) -> Deployment:
    """The folder with what contexts of it have in force that nobody wrote."""
    wanted = folder.contexts.as_json()
    bodies = carried(current.contexts.as_json(), wanted, propagate=allowed.propagate)
    return folder if bodies == wanted else replace(folder, contexts=_load(bodies, folder))


def _same_root(current: Deployment, proposed: Deployment) -> bool:
    before, after = current.contexts.root, proposed.contexts.root
    return before.types == after.types and before.functions == after.functions


def _load(bodies: Mapping[str, Mapping[str, Any]], deployment: Deployment) -> Contexts:
    problems = Problems()
    contexts = load_contexts(
        [context_document(id, body, id) for id, body in bodies.items()],
        deployment.types,
        deployment.functions,
        problems,
        limits=deployment.settings.expression_limits,
        sources={name: source.row for name, source in deployment.sources.items()},
    )
    check_contexts(contexts, problems)
    problems.raise_errors()
    return contexts


def in_use(id: str, deployment: Deployment) -> Problem | None:
    """Why the context cannot be removed: somebody uses it or one below it."""
    below = {each.id for each in deployment.contexts if descends(each, id)}
    users = [f"client {each.name}" for each in deployment.clients.values() if each.context in below]
    users += [f"subscription {each.id}" for each in deployment.subscriptions.values() if each.context in below]
    return still_used(id, users) if users else None


def still_used(id: str, users: Sequence[str]) -> Problem:
    """Somebody would be left in a context that is not there."""
    outcome, remedy = "it is not removed", "Have those who use it leave it first."
    return CONTEXT_IN_USE(name=id, users=some_of(users), outcome=outcome, fork="", remedy=remedy)


def _uses(current: Deployment, proposed: Deployment) -> dict[str, list[str]]:
    """Who uses a context now, and still will: whoever comes or goes with the change takes it as it then is."""
    result: dict[str, list[str]] = {}
    for id, subscription in sorted(current.subscriptions.items()):
        after = proposed.subscriptions.get(id)
        if after is not None and after.context == subscription.context:
            result.setdefault(subscription.context, []).append(f"subscription {id}")
    for id, advertisement in sorted(current.advertisements.items()):
        before, later = current.clients.get(advertisement.client), proposed.clients.get(advertisement.client)
        if id in proposed.advertisements and before is not None and later == before:
            result.setdefault(before.context, []).append(f"advertisement {id}")
    return result
