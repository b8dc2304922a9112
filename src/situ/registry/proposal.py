"""What the registry holds at one version, a proposal of what to hold next, and how proposals are checked.

:class:`State`, :class:`Move` and :class:`Proposal` are plain data between those who propose changes
(:mod:`situ.registry.admin_changes`, :mod:`situ.registry.changes`) and the one who stores them
(:mod:`situ.registry.registry`). Behind them: contexts that change while they are in use, which declarations have to be
checked again, and :func:`revise`, which gives the deployment that would follow from a change.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from types import MappingProxyType
from typing import Any

from situ.contexts.check import check_contexts
from situ.contexts.compatibility import ChangeOptions, carry_kept_rules, settle_changes, some_of
from situ.contexts.load import context_document, load_contexts
from situ.contexts.table import Contexts
from situ.contexts.versions import descends
from situ.lang.catalogue import CONTEXT_IN_USE, DECLARES_OTHER, OTHER_ORIGIN, POLICY_STOPPED
from situ.lang.documents import Document, Reader
from situ.lang.expr.definitions import DefinedFunction, load_functions
from situ.lang.expr.faults import NO_FAULTS, Faults, find_faults
from situ.lang.problems import Location, Problem, Problems, SituError
from situ.lang.records import replace
from situ.lang.types.resolve import load_types
from situ.lang.types.table import Types
from situ.model import Deployment
from situ.model.kinds import ALONE, BELOW_CLIENT, CLIENT_KINDS, KINDS, things_in
from situ.policies.actions.load import load_actions
from situ.policies.actions.model import DeclaredActions
from situ.policies.check.interactions import check_interactions
from situ.policies.load import PolicyFile, check_names, load_policies, name_of, policies_as_json, policies_from_json
from situ.policies.ontology.load import load_ontology, ontology_as_file
from situ.policies.source_coverage import check_sources
from situ.registry.object_files import (
    NOWHERE,
    Written,
    client_document,
    placed,
    sections_document,
    types_document,
)
from situ.registry.objects import Key, Object, Origin, key_of, with_clients
from situ.routing import ClientDeclaration, Clients
from situ.routing.load import load_clients
from situ.routing.model import ROOT, Advertisement, Subscription
from situ.scopes.filters import FilterMeanings, check_filters
from situ.scopes.graph import NO_SCOPES, ScopeGraph
from situ.sources.load import load_pushes, load_sources
from situ.sources.model import Source
from situ.stages.check_tags import check_declaration_tags, check_source_tags
from situ.stages.interpret import Interpretation
from situ.stages.type_visibility import TypeVisibility

_OWNERS = {"folder": "the project folder", "client": "the client that declared it", "api": "`situ add`"}


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """All objects in force, and the deployment they make."""

    version: int = 0
    digest: str = ""
    objects: Mapping[Key, Object] = field(default_factory=lambda: MappingProxyType({}))
    deployment: Deployment = field(default_factory=Deployment)
    suspended: Mapping[Key, Object] = field(default_factory=lambda: MappingProxyType({}))
    """Declarations that are in force no more, because their clients have no right to them."""
    folder_scopes: ScopeGraph = NO_SCOPES
    """What the folder said of scopes when it was applied last; others may have changed them since."""

    def below(self, client: str) -> Iterator[Key]:
        """The advertisements and subscriptions of a client."""
        prefix = f"{client}/"
        return (key for key in self.objects if key.name.startswith(prefix) and key.kind in BELOW_CLIENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """An object as it shall be."""

    body: str
    origin: Origin
    written: Written = NOWHERE
    suspended: bool = False
    """It is not to be in force."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A deployment that was checked, and how its objects differ from those in force; None removes one.

    ``problems`` are those that kept nothing else from being proposed.
    """

    deployment: Deployment
    moves: Mapping[Key, Move | None]
    problems: tuple[Problem, ...] = ()
    folder_scopes: ScopeGraph | None = None
    """What the folder says of scopes; None: it was not asked."""


def owner_of(each: Object) -> str:
    """Whose an object is, in words."""
    place = f" ({each.file})" if each.file else ""
    return _OWNERS[each.origin] + place


def remedy_for(each: Object) -> str:
    """What to do to change an object that belongs to another origin."""
    match each.origin:
        case "folder":
            return f"Change it in {each.file or 'the project folder'}, then run `situ apply`."
        case "client":
            return f"Let the client withdraw it, or run `situ remove {each.kind} {each.name}`; or take another name."
        case "api":
            return f"Run `situ remove {each.kind} {each.name}` first, or take another name."


def elsewhere(each: Object, place: Location | None = None) -> Problem:
    """The object is there already, of another origin."""
    return OTHER_ORIGIN(place, kind=each.kind, name=each.name, owner=owner_of(each), remedy=remedy_for(each))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Contexts that change: held to what those who use them may count on.
#
# The rules are :mod:`situ.contexts.compatibility`; here is who uses a context, and which objects follow.

USUAL = ChangeOptions()


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
    allowed: ChangeOptions = USUAL,
    written: Mapping[Key, Written] | None = None,
) -> Settlement:
    """What of the proposed contexts comes into force; :class:`SituError` if nothing of it can."""
    before, after = current.contexts, proposed.contexts
    if before is after or len(before) == 1 or (before == after and _same_root(current, proposed)):
        return Settlement(deployment=proposed)
    places = {key.name: Location(file=each.file) for key, each in (written or {}).items() if key.kind == "context"}
    settled = settle_changes(
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


def carry(current: Deployment, folder: Deployment, allowed: ChangeOptions = USUAL) -> Deployment:
    """The folder with what contexts of it have in force that nobody wrote."""
    wanted = folder.contexts.as_json()
    bodies = carry_kept_rules(current.contexts.as_json(), wanted, propagate=allowed.propagate)
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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What has to be checked again when types, functions or limits change: only what depends on a part that changed.
#
# A filter depends on the types it is about and on every name in it. Names are looked for as text, so more may be called
# affected than is, never less; with thousands of subscriptions that is what keeps a small change small.


class Affected:
    """Decides for declarations that were right in the old deployment whether the new one can make them wrong."""

    def __init__(self, old: Deployment, new: Deployment) -> None:
        self._everything = (
            old.settings.expression_limits != new.settings.expression_limits or old.types.units != new.types.units
        )
        self._types = frozenset(_changed_types(old.types, new.types))
        names = {name.lower() for name in self._types}
        self._names = names | _changed_functions(old.functions, new.functions, names)
        self._clients = new.clients
        self._moved = frozenset(
            name for name, each in old.clients.items() if name in new.clients and new.clients[name] != each
        )
        self._contexts = frozenset(_changed_contexts(old, new))

    def advertisement(self, each: Advertisement) -> bool:
        client = self._clients.get(each.client)
        in_changed = client is not None and client.context in self._contexts
        return each.type in self._types or in_changed or each.client in self._moved

    def subscription(self, each: Subscription) -> bool:
        if each.context in self._contexts or any(type in self._types for type in each.types):
            return True
        return bool(each.where) and (self._everything or _mentions(each.where, self._names))

    def __bool__(self) -> bool:
        return self._everything or bool(self._names) or bool(self._contexts) or bool(self._moved)


def _changed_types(old: Types, new: Types) -> Iterator[str]:
    if old is new:
        return
    for name in old.types.keys() | new.types.keys():
        if old.types.get(name) != new.types.get(name) or (name in old.events) != (name in new.events):
            yield name


def _changed_contexts(old: Deployment, new: Deployment) -> Iterator[str]:
    """Those in which another event type is visible than before, or none; root is not one of them."""
    if old.contexts is new.contexts:
        return
    for id in old.contexts.by_id.keys() - {ROOT}:
        before, after = old.contexts.by_id[id].types, new.contexts.get(id)
        if after is None or after.types != before:
            yield id


def _changed_functions(
    old: Mapping[str, DefinedFunction], new: Mapping[str, DefinedFunction], names: set[str]
) -> set[str]:
    """Those written otherwise than before, and those that mention what changed."""
    if old is new and not names:
        return set()
    changed = {name.lower() for name in old.keys() | new.keys() if _written(old.get(name)) != _written(new.get(name))}
    while True:
        found = {
            name.lower()
            for name, each in new.items()
            if name.lower() not in changed and _mentions(f"{each.signature} {each.text}", names | changed)
        }
        if not found:
            return changed
        changed |= found


def _written(function: DefinedFunction | None) -> Any:
    return None if function is None else (function.signature, function.text)


def _mentions(text: str, names: set[str]) -> bool:
    folded = text.lower()
    return any(name in folded for name in names)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# A deployment and changes to it → the deployment that would follow, with everything that is wrong about it.
#
# Only what is new, and what depends on types or functions that are other than before, is checked: the rest was checked
# when it came. Nothing is stored here, and it is not known whose the changes are.

_STORED = "registry"
"""What the file is called in problems of what the registry holds already."""

_SCHEMA_KINDS = [kind for kind in ALONE if kind not in CLIENT_KINDS]


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
        return any(getattr(self, each.name) for each in fields(self) if each.name != "clients")


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
    kept = some_clients(base, lambda key: key not in removed)
    loaded = _load_clients(added.clients, schema, kept.clients, problems)
    check_names({**schema.policies, **schema.stopped}, loaded.clients, problems, loaded.places)
    declared: tuple[Advertisement | Subscription, ...] = (
        *loaded.advertisements.values(),
        *loaded.subscriptions.values(),
    )
    for each in declared:
        zone = schema.settings.zone
        problems.extend(check_declaration_tags(schema.scopes, each, zone=zone, knows_all=True, written=loaded.tags))
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
    thing: Advertisement | Subscription, deployment: Deployment, showing: TypeVisibility | None = None
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
    thing: Advertisement | Subscription, deployment: Deployment, showing: TypeVisibility | None
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
    known: Mapping[str, ClientDeclaration],
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
        kafka=deployment.settings.kafka,
    )


_last: Interpretation | None = None


def _interpretation(deployment: Deployment) -> Interpretation:
    """What contexts mean was worked out for the declaration before, as a rule."""
    global _last
    _last = Interpretation.of(deployment, _last)
    return _last


def _check_contexts_of(clients: Iterable[ClientDeclaration], deployment: Deployment, problems: Problems) -> None:
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
    limits = base.settings.expression_limits
    documents = (*sections_document(_kept(base, "functions", removed), _STORED), *added.functions)
    functions = load_functions(documents, types, problems, limits=limits, faults=faults)
    documents = (*sections_document(_kept(base, "sources", removed), _STORED), *added.sources)
    sources = load_sources(documents, types, problems, faults=faults)
    for name, source in sources.items():
        if base.sources.get(name) != source:
            problems.extend(check_source_tags(base.scopes, source, zone=base.settings.zone))
    push = load_pushes(documents, types, problems, faults=faults)
    faults = faults.with_functions(functions.faulty)
    documents = (*sections_document(ontology_as_file(_kept(base, "ontology", removed)), _STORED), *added.ontology)
    ontology = load_ontology(documents, types, functions.callable, problems, limits=limits, faults=faults)
    check_sources(ontology, sources, push, types, problems)
    contexts = base.contexts
    parts = (types, functions.defined, sources)
    if touched["context"] or added.contexts or parts != (base.types, base.functions, base.sources):
        contexts = _contexts(base, touched["context"], added, parts, faults, problems)
    if types is not base.types and not problems.errors:
        filters = FilterMeanings(types, base.settings.expression_limits)
        problems.extend(each for each in check_filters(base.scopes, filters) if each.is_error)
    schema = replace(
        base,
        types=types,
        functions=functions.defined,
        sources=sources,
        push=push,
        ontology=ontology,
        actions=_actions(base, removed, added, types, problems),
        contexts=contexts,
    )
    return schema if problems.errors else _with_policies(base, schema, touched["policy"], added, policies, problems)


def _contexts(
    base: Deployment,
    removed: Collection[str],
    added: Documents,
    parts: tuple[Types, Mapping[str, DefinedFunction], Mapping[str, Source]],
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


def _kept(base: Deployment, file: str, removed: Collection[Key]) -> dict[str, dict[str, Any]]:
    """What the base has of all that such a file declares, but for what is removed, by section and name."""
    kinds = [kind for kind, row in ALONE.items() if row.file == file]
    found: dict[str, dict[str, Any]] = {KINDS[kind].section: {} for kind in kinds}
    for kind, name, body in things_in(base, kinds):
        if (kind, name) not in removed:
            found[KINDS[kind].section][name] = body
    return found


def _actions(
    base: Deployment, removed: Collection[Key], added: Documents, types: Types, problems: Problems
) -> DeclaredActions:
    kept = _kept(base, "actions", removed)
    pairs = [pair for pair in sorted(base.actions.opposed) if all(each in kept["actions"] for each in pair)]
    documents = sections_document({**kept, "opposed": pairs} if pairs else kept, _STORED)
    return load_actions((*documents, *added.actions), types, problems)


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
    return check_interactions(
        deployment.policies, deployment.actions, deployment.ontology, deployment.push, deployment.types
    )


def _policy_files(document: Document, problems: Problems) -> Iterator[PolicyFile]:
    from situ.policies.language.parse import parse_policy

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


def some_clients(base: Deployment, wanted: Callable[[Key], bool]) -> Clients:
    """Those of what clients are and declare whose keys are wanted."""
    parts = {KINDS[kind].section: kind for kind in CLIENT_KINDS}
    return Clients(
        **{
            part: {name: each for name, each in getattr(base, part).items() if wanted(Key(kind, name))}
            for part, kind in parts.items()
        }
    )
