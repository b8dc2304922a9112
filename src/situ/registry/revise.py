"""A deployment and changes to it → the deployment that would follow, with everything that is wrong about it.

Only what is new, and what depends on types or functions that are other than before, is checked: the rest was checked
when it came. Nothing is stored here, and it is not known whose the changes are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from situ.deployment import Deployment
from situ.deployment.interpreting import Interpretation
from situ.documents import Document
from situ.errors import Problem, Problems
from situ.expr.definitions import functions_as_json, load_functions
from situ.expr.faults import NO_FAULTS, find_faults
from situ.interpretation.check_contexts import check_contexts
from situ.interpretation.load import context_document, load_contexts
from situ.registry.affected import Affected
from situ.registry.context_changes import Settlement, still_used
from situ.registry.objects import Key, key_of, with_clients
from situ.registry.written import client_document, functions_document, placed, sources_document, types_document
from situ.sources.load import load_sources
from situ.sources.model import sources_as_json
from situ.subscription import Advertisement, Client, Clients, Subscription
from situ.subscription.load import load_clients
from situ.subscription.model import ROOT
from situ.types.load import load_types

_STORED = "registry"
"""What the file is called in problems of what the registry holds already."""

_SCHEMA_KINDS = ("unit", "type", "event", "function", "source", "context")


@dataclass(frozen=True, slots=True, kw_only=True)
class Documents:
    """What is declared anew, in the syntax of the project's files."""

    types: tuple[Document, ...] = ()
    functions: tuple[Document, ...] = ()
    sources: tuple[Document, ...] = ()
    contexts: tuple[Document, ...] = ()
    clients: tuple[Document, ...] = ()


def revise(base: Deployment, removed: Collection[Key], added: Documents, problems: Problems) -> Deployment:
    """The base without what is removed and with what is added. With errors in ``problems`` it must not be used."""
    schema = _with_schema(base, removed, added, problems)
    kept = _without(base, removed)
    loaded = _load_clients(added.clients, schema, kept.clients, problems)
    revised = with_clients(
        schema,
        {**kept.clients, **loaded.clients},
        {**kept.advertisements, **loaded.advertisements},
        {**kept.subscriptions, **loaded.subscriptions},
    )
    _check_contexts_of(kept.clients.values(), schema, problems)
    check_again(revised, affected_by(base, revised, kept), problems)
    return revised


def load_one(thing: Advertisement | Subscription, deployment: Deployment) -> tuple[Clients, tuple[Problem, ...]]:
    """One declaration of a client, checked against a deployment: in its canonical form, and all that is to say."""
    problems = Problems()
    body = thing.as_json()
    if isinstance(thing, Subscription) and thing.context == ROOT:
        client = deployment.clients.get(thing.client)
        if client is not None and client.context != ROOT:
            body["context"] = ROOT  # else it would be taken to be in the client's
    document = client_document(key_of(thing), body)
    loaded = _load_clients([document], deployment, deployment.clients, problems)
    return loaded, tuple(map(placed, problems))


def _load_clients(
    documents: Iterable[Document], deployment: Deployment, known: Mapping[str, Client], problems: Problems
) -> Clients:
    return load_clients(
        documents,
        deployment.types,
        deployment.definitions,
        problems,
        limits=deployment.settings.expression_limits,
        contexts={context.id: context.types for context in deployment.contexts},
        faulty=deployment.contexts.faulty,
        known=known,
        mediator=_interpretation(deployment).mediator,
    )


_last: Interpretation | None = None


def _interpretation(deployment: Deployment) -> Interpretation:
    """What contexts mean was worked out for the declaration before, as a rule."""
    global _last
    _last = Interpretation.of(deployment, _last)
    return _last


def _check_contexts_of(clients: Iterable[Client], deployment: Deployment, problems: Problems) -> None:
    """No context goes away while somebody is in it."""
    for client in clients:
        if client.context not in deployment.contexts.by_id:
            problems.add(still_used(client.context, [f"client {client.name}"]))


def affected_by(old: Deployment, new: Deployment, things: Clients) -> list[Advertisement | Subscription]:
    """Of what clients declare in ``things``, right in the old deployment, what the new one can make wrong."""
    affected = Affected(old, new)
    if not affected:
        return []
    return [
        *(each for each in things.advertisements.values() if affected.advertisement(each)),
        *(each for each in things.subscriptions.values() if affected.subscription(each)),
    ]


def check_settled(proposed: Deployment, settled: Settlement, problems: Problems) -> None:
    """Note what clients declare that was right under contexts that do not come into force."""
    deployment = settled.deployment
    if settled.refused:
        things = Clients(
            clients=deployment.clients,
            advertisements=deployment.advertisements,
            subscriptions=deployment.subscriptions,
        )
        found = Problems()
        check_again(deployment, affected_by(proposed, deployment, things), found)
        if found.errors:
            problems.extend((*settled.refused, *found))


def check_again(deployment: Deployment, things: Iterable[Advertisement | Subscription], problems: Problems) -> None:
    """Note what is wrong with these in this deployment. Warnings were given when they were declared."""
    for thing in things:
        problems.extend(problem for problem in load_one(thing, deployment)[1] if problem.is_error)


def _with_schema(base: Deployment, removed: Collection[Key], added: Documents, problems: Problems) -> Deployment:
    """Units, types, functions, sources and contexts; the base itself if none of them changes."""
    touched = {kind: {key.name for key in removed if key.kind == kind} for kind in _SCHEMA_KINDS}
    if not (any(touched.values()) or added.types or added.functions or added.sources or added.contexts):
        return base
    types, faults = base.types, NO_FAULTS
    if added.types or touched["unit"] or touched["type"] or touched["event"]:
        gone = touched["type"] | touched["event"]
        names = [type.name for type in base.types.declared if type.name not in gone]
        units = [label for label in base.types.units.labels if label not in touched["unit"]]
        documents = _some(types_document(base.types, names, units, _STORED), bool(names or units), added.types)
        types = load_types(documents, problems)
        faults = find_faults(documents, types) if problems.errors else NO_FAULTS
    bodies = functions_as_json(base.functions)
    kept = {name: body for name, body in bodies.items() if name not in touched["function"]}
    documents = _some(functions_document(kept, _STORED), bool(kept), added.functions)
    functions = load_functions(documents, types, problems, limits=base.settings.expression_limits, faults=faults)
    stored = {name: body for name, body in sources_as_json(base.sources).items() if name not in touched["source"]}
    documents = _some(sources_document(stored, _STORED), bool(stored), added.sources)
    sources = load_sources(documents, types, problems, faults=faults)
    bodies = base.contexts.as_json()
    of_contexts = [context_document(id, body, _STORED) for id, body in bodies.items() if id not in touched["context"]]
    contexts = load_contexts(
        (*of_contexts, *added.contexts),
        types,
        functions.defined,
        problems,
        limits=base.settings.expression_limits,
        faults=faults.with_functions(functions.faulty),
        sources={name: source.row for name, source in sources.items()},
    )
    check_contexts(contexts, problems)
    return replace(base, types=types, functions=functions.defined, sources=sources, contexts=contexts)


def _some(stored: Document, is_any: bool, added: Sequence[Document]) -> tuple[Document, ...]:
    return (stored, *added) if is_any else tuple(added)


def _without(base: Deployment, removed: Collection[Key]) -> Clients:
    gone = {
        kind: {key.name for key in removed if key.kind == kind} for kind in ("client", "advertisement", "subscription")
    }
    return Clients(
        clients={name: each for name, each in base.clients.items() if name not in gone["client"]},
        advertisements={id: each for id, each in base.advertisements.items() if id not in gone["advertisement"]},
        subscriptions={id: each for id, each in base.subscriptions.items() if id not in gone["subscription"]},
    )
