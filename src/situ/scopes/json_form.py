"""The scope graph as plain JSON values, in the words of ``scopes.yaml``, and back. Equal graphs give equal values.

Places are not in it. Reading back checks the form only: what was written was checked before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from situ.lang.json_form import text_of
from situ.lang.tags import TagSet
from situ.scopes.graph import (
    RIGHTS,
    BoundaryFilter,
    Dimension,
    Grant,
    PolicyTags,
    Release,
    Scope,
    ScopeGraph,
    ScopeLink,
)


def scopes_as_json(graph: ScopeGraph) -> dict[str, Any]:
    """Only what there is: no scopes at all are an empty value."""
    found: dict[str, Any] = {
        "dimensions": {name: _dimension(each) for name, each in graph.dimensions.items()},
        "clients": {name: {key: list(in_) for key, in_ in where.items()} for name, where in graph.clients.items()},
        "policies": {name: _policy(each) for name, each in graph.policies.items()},
        "grants": [_grant(each) for each in sorted(graph.grants, key=_grant_key)],
        "releases": [_release(each) for each in sorted(graph.releases, key=_release_key)],
    }
    return {key: value for key, value in found.items() if value}


def scopes_from_json(value: Any) -> ScopeGraph:
    """The graph that :func:`scopes_as_json` gave; ValueError for what it cannot have given."""
    try:
        return _graph(value)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"these are no scopes: {error!r}") from error


def scope_as_json(scope: Scope) -> dict[str, Any]:
    """One scope as it stands in the document."""
    found: dict[str, Any] = {}
    if scope.containers:
        found["in"] = list(scope.containers)
    if scope.output is not None:
        found["output"] = scope.output.text
    if scope.input is not None:
        found["input"] = scope.input.text
    if scope.links:
        found["links"] = {name: link_as_json(link) for name, link in scope.links}
    if scope.carriers is not None:
        found["carriers"] = list(scope.carriers)
    return found


def link_as_json(link: ScopeLink) -> dict[str, str]:
    sides = {"up": link.up, "down": link.down}
    return {side: each.text for side, each in sides.items() if each is not None}


def sorted_grants(grants: Iterable[Grant]) -> tuple[Grant, ...]:
    """One for each principal, dimension and scopes, in one order."""
    merged: dict[tuple[str, str, tuple[str, ...]], Grant] = {}
    for each in grants:
        key = (each.to, each.dimension, each.scopes)
        other = merged.get(key)
        may = {*each.may, *(other.may if other is not None else ())}
        place = other.place if other is not None else each.place
        merged[key] = Grant(
            to=each.to,
            dimension=each.dimension,
            may=tuple(right for right in RIGHTS if right in may),
            scopes=each.scopes,
            place=place,
        )
    return tuple(sorted(merged.values(), key=_grant_key))


def sorted_releases(releases: Iterable[Release]) -> tuple[Release, ...]:
    return tuple(sorted(dict.fromkeys(releases), key=_release_key))


def _dimension(dimension: Dimension) -> dict[str, Any]:
    scopes = {name: scope_as_json(scope) for name, scope in dimension.scopes.items()}
    return {"mode": "closed", "scopes": scopes} if dimension.closed else {"scopes": scopes}


def _policy(tags: PolicyTags) -> dict[str, Any]:
    return {"reads": tags.reads.as_json(), "publishes": tags.publishes.as_json()}


def _grant(grant: Grant) -> dict[str, Any]:
    found: dict[str, Any] = {"to": grant.to, "dimension": grant.dimension, "may": list(grant.may)}
    return {**found, "scopes": list(grant.scopes)} if grant.scopes else found


def _release(release: Release) -> dict[str, Any]:
    return {
        "policy": release.policy,
        "dimensions": list(release.dimensions),
        "keep": list(release.keep),
        "by": release.by,
    }


def _grant_key(grant: Grant) -> tuple[Any, ...]:
    return grant.to, grant.dimension, grant.scopes, grant.may


def _release_key(release: Release) -> tuple[Any, ...]:
    return release.policy, release.dimensions, release.keep, release.by


# ── back ──


def _graph(value: Any) -> ScopeGraph:
    _known(value, "dimensions", "clients", "policies", "grants", "releases")
    return ScopeGraph(
        dimensions={name: _to_dimension(name, body) for name, body in value.get("dimensions", {}).items()},
        clients={
            name: {dimension: _texts(scopes) for dimension, scopes in where.items()}
            for name, where in value.get("clients", {}).items()
        },
        policies={
            name: PolicyTags(reads=TagSet.from_json(body["reads"]), publishes=TagSet.from_json(body["publishes"]))
            for name, body in value.get("policies", {}).items()
        },
        grants=sorted_grants(_to_grant(body) for body in value.get("grants", ())),
        releases=sorted_releases(_to_release(body) for body in value.get("releases", ())),
    )


def _to_dimension(name: str, body: Mapping[str, Any]) -> Dimension:
    _known(body, "mode", "scopes")
    if body.get("mode", "open") not in ("open", "closed"):
        raise ValueError(f"the mode of {name} is neither open nor closed")
    scopes = {scope: _to_scope(scope, below) for scope, below in body["scopes"].items()}
    return Dimension(name=text_of(name), closed=body.get("mode") == "closed", scopes=scopes)


def _to_scope(name: str, body: Mapping[str, Any]) -> Scope:
    _known(body, "in", "output", "input", "links", "carriers")
    return Scope(
        name=text_of(name),
        containers=_texts(body.get("in", ())),
        output=_to_filter(body.get("output")),
        input=_to_filter(body.get("input")),
        links=tuple(
            (container, ScopeLink(up=_to_filter(link.get("up")), down=_to_filter(link.get("down"))))
            for container, link in sorted(body.get("links", {}).items())
        ),
        carriers=_texts(body["carriers"]) if "carriers" in body else None,
    )


def _to_filter(text: Any) -> BoundaryFilter | None:
    return None if text is None else BoundaryFilter(text=text_of(text))


def _to_grant(body: Mapping[str, Any]) -> Grant:
    _known(body, "to", "dimension", "may", "scopes")
    may = tuple(right for right in RIGHTS if right in body["may"])
    if len(may) != len(body["may"]):
        raise ValueError(f"these are no rights: {body['may']!r}")
    return Grant(
        to=text_of(body["to"]), dimension=text_of(body["dimension"]), may=may, scopes=_texts(body.get("scopes", ()))
    )


def _to_release(body: Mapping[str, Any]) -> Release:
    _known(body, "policy", "dimensions", "keep", "by")
    return Release(
        policy=text_of(body["policy"]),
        dimensions=_texts(body["dimensions"]),
        keep=_texts(body.get("keep", ())),
        by=text_of(body["by"]),
    )


def _known(body: Any, *keys: str) -> None:
    if not isinstance(body, Mapping) or body.keys() - set(keys):
        raise ValueError(f"these are no scopes of this release: {body!r:.80}")


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(sorted(text_of(each) for each in value))
