"""The tags that advertisements and subscriptions name, held to the scope graph: theirs to name, carried in their zone.

Nobody who says nothing of scopes is looked at twice, but for closed dimensions: there it is worth a warning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from situ.lang.catalogue import UNSEEN_SOURCE
from situ.lang.problems import Problem
from situ.lang.tags import NO_TAGS, TagSet, WrittenTags
from situ.lang.types.model import Struct
from situ.model.deployment import Deployment
from situ.policies.model import Policy, RelationLiteral
from situ.policies.plan import leaves_of
from situ.policies.source_coverage import attributes_needed, cover_attributes
from situ.routing.model import ROOT, Advertisement, Subscription
from situ.scopes.epochs import Epochs, large_families, unreached
from situ.scopes.filter_sets import NO_NUMBERS
from situ.scopes.graph import ScopeGraph
from situ.scopes.rights import NO_PLACES, TagRequest, check_tags, nothing_said
from situ.scopes.visibility_plan import compile_visibility, number_filters
from situ.sources.model import Source
from situ.stages.derived_visibility import sees_rows, tables_of
from situ.stages.visibility import EventVisibility

NOT_WRITTEN: Mapping[str, WrittenTags] = MappingProxyType({})


def check_declaration_tags(
    graph: ScopeGraph,
    each: Advertisement | Subscription,
    *,
    zone: str = "",
    knows_all: bool = False,
    written: Mapping[str, WrittenTags] = NOT_WRITTEN,
) -> Iterator[Problem]:
    """What is wrong with the tags of one declaration. ``knows_all``: told to somebody who may know every scope."""
    if not graph.dimensions and not each.scopes.named:
        return
    publishes = isinstance(each, Advertisement)
    said = written.get(each.id)
    places, place = (said.places, said.place) if said is not None else (NO_PLACES, None)
    by = TagRequest(who=each.client, publishes=publishes, zone=zone, knows_all=knows_all)
    yield from check_tags(graph, each.scopes, by, places)
    yield from nothing_said(graph, each.scopes, each.id, publishes=publishes, place=place)


def check_source_tags(graph: ScopeGraph, source: Source, *, zone: str = "") -> Iterator[Problem]:
    """What is wrong with the tags of a table: they are named in the name of the source, which is a member like others.

    Nothing is said of one without tags: a policy that needs it and does not see it is told so.
    """
    if source.scopes != NO_TAGS:
        places = source.tagged.places if source.tagged is not None else NO_PLACES
        yield from check_tags(
            graph, source.scopes, TagRequest(who=source.name, publishes=True, zone=zone, knows_all=True), places
        )


def check_tag_visibility(deployment: Deployment) -> Iterator[Problem]:
    """What is worth a warning once all tags are known: too many ways between two, situations that reach nobody."""
    graph = deployment.scopes
    if not graph.dimensions:
        return
    advertised = {each.scopes for each in deployment.advertisements.values()}
    advertised |= {graph.tags_of(policy).publishes for policy in deployment.policies}
    subscribed = {each.scopes for each in deployment.subscriptions.values()}
    subscribed |= {graph.tags_of(policy).reads for policy in deployment.policies}
    plan = compile_visibility(graph, advertised, subscribed, number_filters(graph, NO_NUMBERS))
    yield from large_families(plan)
    epochs = Epochs(plans={0: plan})
    told = {
        id: each.scopes
        for id, each in deployment.subscriptions.items()
        if any(type.startswith(_SITUATION) for type in each.types)
    }
    tables = _tables(deployment)
    unseen = _unseen(deployment, tables)
    for name, policy in deployment.policies.items():
        tags = graph.tags_of(name)
        for source in unseen.get(name, ()):
            remedy = _seen_by(graph, tags.reads, source)
            yield UNSEEN_SOURCE(tags.place or policy.location, policy=name, source=source, remedy=remedy)
        released = frozenset(
            dimension for each in graph.releases if each.policy == name for dimension in each.dimensions
        )
        needed = [*_needed(deployment, policy), *({deployment.sources[each].scopes} for each in tables.get(name, ()))]
        problem = unreached(epochs, 0, name, (tags.publishes, tags.reads), needed, told, released)
        if problem is not None:
            yield problem.code(tags.place, **problem.values)


def _seen_by(graph: ScopeGraph, reads: TagSet, source: str) -> str:
    """What makes a table visible to a policy that reads like this, whatever the filters say."""
    closed = [name for name, dimension in graph.dimensions.items() if dimension.closed]
    silent = [name for name in closed if reads.tag(name) is None]
    first = "; ".join(f"say what it reads as in `{name}`, as `reads: {{{name}: …}}`" for name in silent)
    grants = ", ".join(f"`- {{to: {source}, dimension: {name}, may: [broadcast]}}`" for name in closed)
    then = "give the source `scopes: {rest: any}`" + (
        f", and under `grants:` of scopes.yaml {grants}" if grants else ""
    )
    said = f"{first}; {then}" if first else then
    return f"{said[0].upper()}{said[1:]}."


_SITUATION = "situ.situation"


def _tables(deployment: Deployment) -> Mapping[str, set[str]]:
    """The tables that each running policy asks something of. What detects, which takes long to load, is not needed."""
    running = deployment.running
    needed = frozenset().union(*(attributes_needed(each) for each in running.values()))
    read = cover_attributes(needed, deployment.ontology, deployment.sources).sources
    return {name: tables_of(policy, deployment, read) for name, policy in running.items()}


def _unseen(deployment: Deployment, tables: Mapping[str, set[str]]) -> Mapping[str, tuple[str, ...]]:
    """Those of them that a policy does not see."""
    seeing = EventVisibility.of(deployment.numbered())
    assert seeing is not None
    return {
        name: tuple(
            each
            for each in sorted(some)
            if not sees_rows(seeing, deployment.sources[each], deployment.scopes.tags_of(name).reads)
        )
        for name, some in tables.items()
    }


def _needed(deployment: Deployment, policy: Policy) -> Iterator[set[TagSet]]:
    """The tags under which events come that the policy cannot do without; nothing of those that nobody advertises."""
    for clause in policy.clauses:
        literal = clause[0]
        if len(clause) > 1 or not isinstance(literal, RelationLiteral) or literal.negated:
            continue
        for leaf in leaves_of(policy, literal.relation):
            events = {each.event for each in deployment.push.values() if each.attribute == leaf.attribute}
            tags = _advertised(deployment, events)
            if tags:
                yield tags


def _advertised(deployment: Deployment, events: set[str]) -> set[TagSet]:
    """Advertisements in the terms of another context may be of any type of root."""
    types = {
        str(below)
        for event in events
        if isinstance(struct := deployment.types.event(event), Struct)
        for below in deployment.types.subtypes(struct)
    }
    return {
        each.scopes
        for each in deployment.advertisements.values()
        if each.type in types or deployment.clients[each.client].context != ROOT
    }
