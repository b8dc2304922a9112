"""A deployment and changes to it → the deployment that would follow, with everything that is wrong about it.

Only what is new, and what depends on types or functions that are other than before, is checked: the rest was checked
when it came. Nothing is stored here, and it is not known whose the changes are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

from situ.catalogue import DECLARES_OTHER, POLICY_STOPPED
from situ.deployment import Deployment
from situ.deployment.interpreting import Interpretation
from situ.deployment.showing import Showing
from situ.deployment.tagging import check_source, check_tagged
from situ.documents import Document, Reader
from situ.errors import Problem, Problems, SituError
from situ.expr.definitions import Function, Functions, functions_as_json, load_functions
from situ.expr.faults import NO_FAULTS, Faults, find_faults
from situ.interpretation.check_contexts import check_contexts
from situ.interpretation.contexts import Contexts
from situ.interpretation.load import context_document, load_contexts
from situ.registry.affected import Affected
from situ.registry.context_changes import Settlement, still_used
from situ.registry.objects import ONTOLOGY, Key, key_of, with_clients
from situ.registry.written import client_document, functions_document, placed, sources_document, types_document
from situ.situation.actions.action import Actions
from situ.situation.actions.load_actions import actions_as_json, actions_document, load_actions
from situ.situation.domain.check_sources import check_sources
from situ.situation.domain.load_ontology import load_ontology, ontology_as_json, ontology_document
from situ.situation.domain.ontology import Ontology
from situ.situation.language.parse import parse_policy
from situ.situation.policies.between import judge_policies
from situ.situation.policies.load_policies import (
    PolicyFile,
    check_names,
    load_policies,
    name_of,
    policies_as_json,
    policies_from_json,
)
from situ.sources.load import load_pushes, load_sources
from situ.sources.model import Source, pushes_as_json, sources_as_json
from situ.subscription import Advertisement, Client, Clients, Subscription
from situ.subscription.load import load_clients
from situ.subscription.model import ROOT
from situ.types.load import load_types
from situ.types.table import Types
from situ.visibility.check_filters import check_filters
from situ.visibility.filters import Filters

_STORED = "registry"
"""What the file is called in problems of what the registry holds already."""

_SCHEMA_KINDS = ("unit", "type", "event", "function", "source", "push", *ONTOLOGY, "action", "policy", "context")


@dataclass(frozen=True, slots=True, kw_only=True)
class Documents:
    """What is declared anew, in the syntax of the project's files."""

    types: tuple[Document, ...] = ()
    functions: tuple[Document, ...] = ()
    sources: tuple[Document, ...] = ()
    ontology: tuple[Document, ...] = ()
    actions: tuple[Document, ...] = ()
    policies: tuple[Document, ...] = ()
    contexts: tuple[Document, ...] = ()
    clients: tuple[Document, ...] = ()

    @property
    def schema(self) -> bool:
        """Whether there is anything that is not a client's."""
        parts = (self.types, self.functions, self.sources, self.ontology, self.actions, self.policies, self.contexts)
        return any(parts)


_NONE: Mapping[str, str] = MappingProxyType({})


def revise(
    base: Deployment,
    removed: Collection[Key],
    added: Documents,
    problems: Problems,
    *,
    policies: Mapping[str, str] = _NONE,
) -> Deployment:
    """The base without what is removed and with what is added. With errors in ``problems`` it must not be used.

    ``policies`` are texts that are new to the base only: one that does not fit it is stopped, not refused.
    """
    schema = _with_schema(base, removed, added, policies, problems)
    kept = _without(base, removed)
    loaded = _load_clients(added.clients, schema, kept.clients, problems)
    check_names({**schema.policies, **schema.stopped}, loaded.clients, problems, loaded.places)
    declared: tuple[Advertisement | Subscription, ...] = (
        *loaded.advertisements.values(),
        *loaded.subscriptions.values(),
    )
    for each in declared:
        zone = schema.settings.zone
        problems.extend(check_tagged(schema.scopes, each, zone=zone, knows_all=True, written=loaded.tags))
    revised = with_clients(
        schema,
        {**kept.clients, **loaded.clients},
        {**kept.advertisements, **loaded.advertisements},
        {**kept.subscriptions, **loaded.subscriptions},
    )
    _check_contexts_of(kept.clients.values(), schema, problems)
    check_again(revised, affected_by(base, revised, kept), problems)
    return revised


def load_one(
    thing: Advertisement | Subscription, deployment: Deployment, showing: Showing | None = None
) -> tuple[Clients, tuple[Problem, ...]]:
    """One declaration of a client, checked against a deployment: in its canonical form, and all that is to say.

    With ``showing`` it is judged by what there is for the client first: what it may not know of is not there, neither
    as a type nor as an attribute, and all that is said is what would be said if it were not.
    """
    if showing is not None:
        loaded, found = _load_one(thing, deployment, showing)
        if any(each.is_error for each in found):
            return loaded, found
    return _load_one(thing, deployment, None)


def _load_one(
    thing: Advertisement | Subscription, deployment: Deployment, showing: Showing | None
) -> tuple[Clients, tuple[Problem, ...]]:
    problems = Problems()
    body = thing.as_json()
    if isinstance(thing, Subscription) and thing.context == ROOT:
        client = deployment.clients.get(thing.client)
        if client is not None and client.context != ROOT:
            body["context"] = ROOT  # else it would be taken to be in the client's
    document = client_document(key_of(thing), body)
    known = None if showing is None else partial(showing.known, thing.client)
    loaded = _load_clients([document], deployment, deployment.clients, problems, known)
    return loaded, tuple(map(placed, problems))


def _load_clients(
    documents: Iterable[Document],
    deployment: Deployment,
    known: Mapping[str, Client],
    problems: Problems,
    types: Callable[[str], Types] | None = None,
) -> Clients:
    """``types`` are those of a context for whoever declares it; None: all that there are."""
    return load_clients(
        documents,
        deployment.types if types is None else types(ROOT),
        deployment.definitions,
        problems,
        limits=deployment.settings.expression_limits,
        contexts={each.id: each.types if types is None else types(each.id) for each in deployment.contexts},
        faulty=deployment.contexts.faulty,
        known=known,
        mediator=_interpretation(deployment).mediator,
        defaults=deployment.scopes.default_tags(),
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


def _with_schema(
    base: Deployment, removed: Collection[Key], added: Documents, policies: Mapping[str, str], problems: Problems
) -> Deployment:
    """All but what clients declare; the base itself if none of it changes."""
    touched: dict[str, set[str]] = {kind: {key.name for key in removed if key.kind == kind} for kind in _SCHEMA_KINDS}
    if not (any(touched.values()) or added.schema or policies):
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
    fed = {name: body for name, body in pushes_as_json(base.push).items() if name not in touched["push"]}
    documents = _some(sources_document(stored, fed, _STORED), bool(stored or fed), added.sources)
    sources = load_sources(documents, types, problems, faults=faults)
    for name, source in sources.items():
        if base.sources.get(name) != source:
            problems.extend(check_source(base.scopes, source, zone=base.settings.zone))
    push = load_pushes(documents, types, problems, faults=faults)
    faults = faults.with_functions(functions.faulty)
    ontology = _ontology(base, touched, added, types, functions, faults, problems)
    check_sources(ontology, sources, push, types, problems)
    contexts = base.contexts
    parts = (types, functions.defined, sources)
    if touched["context"] or added.contexts or parts != (base.types, base.functions, base.sources):
        contexts = _contexts(base, touched["context"], added, parts, faults, problems)
    if types is not base.types and not problems.errors:
        filters = Filters(types, base.settings.expression_limits)
        problems.extend(each for each in check_filters(base.scopes, filters) if each.is_error)
    schema = replace(
        base,
        types=types,
        functions=functions.defined,
        sources=sources,
        push=push,
        ontology=ontology,
        actions=_actions(base, touched["action"], added, types, problems),
        contexts=contexts,
    )
    return schema if problems.errors else _with_policies(base, schema, touched["policy"], added, policies, problems)


def _contexts(
    base: Deployment,
    removed: Collection[str],
    added: Documents,
    parts: tuple[Types, Mapping[str, Function], Mapping[str, Source]],
    faults: Faults,
    problems: Problems,
) -> Contexts:
    types, functions, sources = parts
    bodies = base.contexts.as_json()
    kept = [context_document(id, body, _STORED) for id, body in bodies.items() if id not in removed]
    contexts = load_contexts(
        (*kept, *added.contexts),
        types,
        functions,
        problems,
        limits=base.settings.expression_limits,
        faults=faults,
        sources={name: source.row for name, source in sources.items()},
    )
    check_contexts(contexts, problems)
    return contexts


def _ontology(
    base: Deployment,
    touched: Mapping[str, Collection[str]],
    added: Documents,
    types: Types,
    functions: Functions,
    faults: Faults,
    problems: Problems,
) -> Ontology:
    written = ontology_as_json(base.ontology)
    kept = {
        section: {name: body for name, body in written[section].items() if name not in touched[kind]}
        for kind, section in ONTOLOGY.items()
    }
    documents = _some(ontology_document(kept, _STORED), any(kept.values()), added.ontology)
    limits = base.settings.expression_limits
    return load_ontology(documents, types, functions.callable, problems, limits=limits, faults=faults)


def _actions(base: Deployment, removed: Collection[str], added: Documents, types: Types, problems: Problems) -> Actions:
    written = actions_as_json(base.actions)
    named = {name: body for name, body in written["actions"].items() if name not in removed}
    pairs = [pair for pair in written["opposed"] if not set(pair).intersection(removed)]
    kept = actions_document({"actions": named, "opposed": pairs}, _STORED)
    return load_actions(_some(kept, bool(named), added.actions), types, problems)


def _with_policies(
    base: Deployment,
    schema: Deployment,
    removed: Collection[str],
    added: Documents,
    stored: Mapping[str, str],
    problems: Problems,
) -> Deployment:
    """What is there is checked again, for what it is about may be another; what no longer fits is stopped."""
    texts = {**policies_as_json(base.policies, base.stopped), **stored}
    kept = policies_from_json({name: text for name, text in texts.items() if name not in removed}, schema.domain)
    for name, each in kept.stopped.items():
        if name not in base.stopped:
            problems.add(POLICY_STOPPED(cause=each.reasons[0], policy=name))
    files = [each for document in added.policies for each in _policy_files(document, problems)]
    new = load_policies(files, schema.domain, schema.sources, problems)
    check_names(new, base.clients, problems)
    running = {**kept.running, **new}
    stopped = {name: each for name, each in kept.stopped.items() if name not in new}
    revised = replace(
        schema,
        policies=MappingProxyType({name: running[name] for name in sorted(running)}),
        stopped=MappingProxyType({name: stopped[name] for name in sorted(stopped)}),
    )
    if judged := tuple(_judged(revised)):
        before = {problem.message for problem in _judged(base)}
        problems.extend(problem for problem in judged if problem.message not in before)
    return revised


def _judged(deployment: Deployment) -> Iterator[Problem]:
    """What is to be said about its policies together."""
    return judge_policies(
        deployment.policies, deployment.actions, deployment.ontology, deployment.push, deployment.types
    )


def _policy_files(document: Document, problems: Problems) -> Iterator[PolicyFile]:
    fields = Reader(problems).document(document, optional=("policies",))
    for key, node in fields.entries("policies") if fields is not None else ():
        text = Reader(problems).scalar(node)
        if text is None:
            continue
        try:
            called = name_of(parse_policy(text.text, document.file), key.text)
        except SituError as error:
            problems.extend(error.problems)
            continue
        if called != key.text:
            problems.add(DECLARES_OTHER(kind="policy", name=key.text, found=f"the policy `{called}`"))
        else:
            yield PolicyFile(file=document.file, data=text.text, name=key.text)


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
