"""Who may do what: grants, and the tags that a client may name.

A grant holds in a whole dimension, or in some scopes and all that is below them. Who may name ``any`` in a closed
dimension needs the grant for the whole of it. A principal who is an operator, known by other means than scopes, may
administer everything: without one, nobody could ever begin.

Refusals do not tell whether a foreign scope is there. So they read alike, whether it is or not, for everybody who does
not administer the dimension.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import msgspec

from situ.lang.catalogue import (
    BROADCAST_MISSING,
    NO_RIGHT_TO_SCOPE,
    NOT_A_MEMBER,
    NOTHING_SAID,
    OBSERVE_MISSING,
    UNKNOWN_DIMENSION,
    UNKNOWN_SCOPE,
)
from situ.lang.problems import Location, Problem, nearest
from situ.lang.tags import ANY, REST, TagSet
from situ.scopes.graph import Dimension, Right, ScopeGraph, not_carried

NO_PLACES: Mapping[str, Location] = MappingProxyType({})


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """Whoever asks, by the name that was proved."""

    name: str
    operator: bool = False


def may(graph: ScopeGraph, who: str, right: Right, dimension: str, scope: str | None = None) -> bool:
    """Whether somebody has a right on a scope, or without one on the whole dimension."""
    found = graph.dimensions.get(dimension)
    above: frozenset[str] | None = None
    for grant in graph.grants:
        if grant.to != who or grant.dimension != dimension or right not in grant.may:
            continue
        if not grant.scopes:
            return True
        if scope is not None and found is not None and scope in found.scopes:
            above = found.above(scope) if above is None else above
            if not above.isdisjoint(grant.scopes):
                return True
    return False


def administers(graph: ScopeGraph, by: Principal, dimension: str, scope: str | None = None) -> bool:
    return by.operator or may(graph, by.name, "admin", dimension, scope)


def no_right(by: Principal, what: str) -> Problem:
    return NO_RIGHT_TO_SCOPE(who=by.name, what=what)


def unknown_dimension(graph: ScopeGraph, name: str, place: Location | None = None) -> Problem:
    return UNKNOWN_DIMENSION(place, name=name or " ", nearest=nearest(name, graph.dimensions))


def unknown_scope(graph: ScopeGraph, dimension: Dimension, name: str, place: Location | None = None) -> Problem:
    """That a scope is not there, for those who may know what is."""
    home = graph.dimension_of(name)
    elsewhere = f"; `{home}` has one" if home is not None and home != dimension.name else ""
    near = nearest(name, dimension.scopes)
    return UNKNOWN_SCOPE(place, name=name or " ", dimension=dimension.name, elsewhere=elsewhere, nearest=near)


class TagRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Who names tags: a client, for events that it publishes or wants, in a zone.

    ``knows_all`` is somebody who reads the whole document, as the author of a project does: told what is not there.
    """

    who: str
    publishes: bool
    zone: str = ""
    knows_all: bool = False


def check_tags(
    graph: ScopeGraph, tags: TagSet, by: TagRequest, places: Mapping[str, Location] = NO_PLACES
) -> Iterator[Problem]:
    """What is wrong with the tags that somebody names, all of it."""
    for dimension, tag in tags.named:
        there, place = graph.dimensions.get(dimension), places.get(dimension)
        if there is None:
            yield unknown_dimension(graph, dimension, place)
        elif tag != ANY:
            yield from _scope_problems(graph, there, tag, by, place)
        elif there.closed:
            yield from _any_problems(graph, there, by, place, "")
    if tags.rest:
        said = {dimension for dimension, _ in tags.named}
        for found in graph.dimensions.values():
            if found.closed and found.name not in said:
                yield from _any_problems(graph, found, by, places.get(REST), "leave out `rest: any`")


def nothing_said(
    graph: ScopeGraph, tags: TagSet, id: str, *, publishes: bool, place: Location | None = None
) -> Iterator[Problem]:
    """A warning for each closed dimension in which nothing is said: allowed, and rarely meant."""
    for dimension in graph.dimensions.values():
        if dimension.closed and tags.tag(dimension.name) is None:
            outcome = "only who may observe it sees these events" if publishes else "no event is delivered"
            yield NOTHING_SAID(place, id=id, dimension=dimension.name, outcome=outcome)


def _scope_problems(
    graph: ScopeGraph, dimension: Dimension, scope: str, by: TagRequest, place: Location | None
) -> Iterator[Problem]:
    if scope not in dimension.scopes and by.knows_all:
        yield unknown_scope(graph, dimension, scope, place)
        return
    own = graph.memberships(by.who, dimension.name)
    if scope not in own:
        yield NOT_A_MEMBER(place, who=by.who, scope=scope, dimension=dimension.name, memberships=own)
    elif by.zone and (problem := not_carried(graph, dimension.name, scope, by.zone)) is not None:
        yield problem.code(place, **problem.values)


def _any_problems(
    graph: ScopeGraph, dimension: Dimension, by: TagRequest, place: Location | None, or_rest: str
) -> Iterator[Problem]:
    right: Right = "broadcast" if by.publishes else "observe"
    if not may(graph, by.who, right, dimension.name):
        code = BROADCAST_MISSING if by.publishes else OBSERVE_MISSING
        yield code(place, who=by.who, dimension=dimension.name, or_rest=or_rest)
