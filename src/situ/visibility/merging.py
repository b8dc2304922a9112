"""Three scope documents into one: what the folder said before, what is in force, and what the folder says now.

Each part of the document is looked at by itself: a membership, a filter, a mode, a right. What only the folder changed
is as the folder says, what only somebody else changed while events flow stays. Where both did, and not to the same,
that is a conflict. Whether what comes out holds together is for others to check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from situ.visibility.graph import ScopeGraph
from situ.visibility.json_form import scopes_as_json, scopes_from_json

Part = tuple[Any, ...]
"""What a part is called, from outside in."""

_THERE = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """A part that is one thing in force and another one in the folder, and was neither before; None: not there."""

    what: str
    in_force: Any
    folder: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """The document that follows; where there are conflicts, what is in force stays."""

    graph: ScopeGraph
    conflicts: tuple[Conflict, ...] = ()


def merge(before: ScopeGraph, in_force: ScopeGraph, folder: ScopeGraph) -> Merged:
    """What is in force with what the folder changed since it said what it said before."""
    if in_force in (before, folder):
        return Merged(graph=folder)
    if folder == before:
        return Merged(graph=in_force)
    base, ours, theirs = (dict(_parts(scopes_as_json(each))) for each in (before, in_force, folder))
    merged: dict[Part, Any] = {}
    conflicts = []
    for part in sorted({*ours, *theirs}, key=str):
        was, here, there = base.get(part), ours.get(part), theirs.get(part)
        if here not in (there, was) and there != was:
            conflicts.append(Conflict(what=_named(part), in_force=here, folder=there))
        value = there if here == was else here
        if value is not None:
            merged[part] = value
    conflicts += _left_behind(merged)
    return Merged(graph=scopes_from_json(_whole(merged)), conflicts=tuple(conflicts))


def _left_behind(merged: dict[Part, Any]) -> Iterator[Conflict]:
    """Takes out what stands in something that is gone. The filters of a membership go with it, and nobody minds."""
    for part in sorted(merged, key=lambda each: (len(each), str(each))):
        around = _around(part)
        if around is None or around in merged:
            continue
        value = merged.pop(part)
        if around[-2] != "in":
            yield Conflict(what=_named(part), in_force=value, folder=None)


def _around(part: Part) -> Part | None:
    """What a part cannot do without."""
    if part[0] != "scope":
        return None
    if len(part) == 3:
        return ("dimension", part[1], "mode")
    return (*part[:3], "in", part[4]) if part[3] == "link" else part[:3]


def _named(part: Part) -> str:
    return " ".join(str(each) for each in part)


# ── a document as parts ──


def _parts(document: Mapping[str, Any]) -> Iterator[tuple[Part, Any]]:
    for name, dimension in document.get("dimensions", {}).items():
        yield ("dimension", name, "mode"), dimension.get("mode", "open")
        for scope, body in dimension["scopes"].items():
            yield ("scope", name, scope), _THERE
            for container in body.get("in", ()):
                yield ("scope", name, scope, "in", container), _THERE
            for container, link in body.get("links", {}).items():
                for side, text in link.items():
                    yield ("scope", name, scope, "link", container, side), text
            for key in ("output", "input", "carriers"):
                if key in body:
                    yield ("scope", name, scope, key), body[key]
    for client, where in document.get("clients", {}).items():
        for name, scopes in where.items():
            for scope in scopes:
                yield ("client", client, "in", name, scope), _THERE
    for policy, body in document.get("policies", {}).items():
        for side in ("reads", "publishes"):
            yield ("policy", policy, side), body[side]
    for grant in document.get("grants", ()):
        for right in grant["may"]:
            yield ("grant", grant["to"], right, grant["dimension"], tuple(grant.get("scopes", ()))), _THERE
    for release in document.get("releases", ()):
        dimensions, keep = tuple(release["dimensions"]), tuple(release["keep"])
        yield ("release", release["policy"], dimensions, keep, release["by"]), _THERE


def _whole(parts: Mapping[Part, Any]) -> dict[str, Any]:
    document: dict[str, Any] = {"dimensions": {}, "clients": {}, "policies": {}, "grants": [], "releases": []}
    for part, value in parts.items():
        _PUT[part[0]](document, part[1:], value)
    return document


def _dimension(document: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = document["dimensions"].setdefault(name, {"scopes": {}})
    return found


def _put_mode(document: dict[str, Any], part: Part, value: Any) -> None:
    _dimension(document, part[0])["mode"] = value


def _put_scope(document: dict[str, Any], part: Part, value: Any) -> None:
    name, scope, *rest = part
    body = _dimension(document, name)["scopes"].setdefault(scope, {})
    match rest:
        case ["in", container]:
            body.setdefault("in", []).append(container)
        case ["link", container, side]:
            body.setdefault("links", {}).setdefault(container, {})[side] = value
        case [key]:
            body[key] = value


def _put_client(document: dict[str, Any], part: Part, value: Any) -> None:
    client, _, name, scope = part
    document["clients"].setdefault(client, {}).setdefault(name, []).append(scope)


def _put_policy(document: dict[str, Any], part: Part, value: Any) -> None:
    policy, side = part
    document["policies"].setdefault(policy, {"reads": {}, "publishes": {}})[side] = value


def _put_grant(document: dict[str, Any], part: Part, value: Any) -> None:
    to, right, dimension, scopes = part
    document["grants"].append({"to": to, "dimension": dimension, "may": [right], "scopes": list(scopes)})


def _put_release(document: dict[str, Any], part: Part, value: Any) -> None:
    policy, dimensions, keep, by = part
    document["releases"].append({"policy": policy, "dimensions": list(dimensions), "keep": list(keep), "by": by})


_PUT: Mapping[str, Callable[[dict[str, Any], Part, Any], None]] = {
    "dimension": _put_mode,
    "scope": _put_scope,
    "client": _put_client,
    "policy": _put_policy,
    "grant": _put_grant,
    "release": _put_release,
}
