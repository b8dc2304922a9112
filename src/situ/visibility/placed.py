"""Where the filters of a scope graph are written: a graph that came over the bus knows no places, a loaded one does."""

from __future__ import annotations

from dataclasses import replace

from situ.visibility.graph import NO_LINK, Dimension, Filter, Link, Scope, ScopeGraph


def with_places(graph: ScopeGraph, written: ScopeGraph) -> ScopeGraph:
    """The graph with the places of what stands in ``written`` as it is here; what is another there has none."""
    return replace(graph, dimensions={name: _dimension(each, written) for name, each in graph.dimensions.items()})


def _dimension(dimension: Dimension, written: ScopeGraph) -> Dimension:
    there = written.dimensions.get(dimension.name)
    if there is None:
        return dimension
    scopes = {name: _scope(scope, there.scopes.get(name)) for name, scope in dimension.scopes.items()}
    return replace(dimension, scopes=scopes, place=there.place)


def _scope(scope: Scope, there: Scope | None) -> Scope:
    if there is None:
        return scope
    links = tuple((container, _link(link, there.link(container))) for container, link in scope.links)
    return replace(
        scope,
        output=_filter(scope.output, there.output),
        input=_filter(scope.input, there.input),
        links=links,
        place=there.place,
    )


def _link(link: Link, there: Link) -> Link:
    return link if there == NO_LINK else Link(up=_filter(link.up, there.up), down=_filter(link.down, there.down))


def _filter(found: Filter | None, there: Filter | None) -> Filter | None:
    return there if found == there else found
