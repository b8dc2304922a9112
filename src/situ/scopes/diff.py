"""Difference and merge of scope graphs: what changed, whether anybody may see less by it, and three-way merge.

`diff_scopes` compares two graphs, `merge_scopes` joins what the folder changed with what is in force.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from situ.scopes.graph import BoundaryFilter, Carriers, Dimension, Scope, ScopeGraph, effective_carriers
from situ.scopes.json_form import link_as_json, scope_as_json, scopes_as_json, scopes_from_json

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Difference. A change *narrows* if there may be an event that somebody saw before and does not see after it. Said with
# care: whatever is not sure to keep everything in sight is called narrowing.

Kind = Literal["added", "removed", "changed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeChange:
    """One thing that came, went or is another; ``what`` says of it where it stands, from outside in."""

    kind: Kind
    what: tuple[str, ...]
    before: Any = None
    after: Any = None
    narrows: bool
    dimension: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {' '.join(self.what)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeDifference:
    changes: tuple[ScopeChange, ...] = ()

    @property
    def narrows(self) -> bool:
        return any(each.narrows for each in self.changes)

    @property
    def dimensions(self) -> frozenset[str]:
        """The dimensions in which something is different."""
        return frozenset(each.dimension for each in self.changes)


def diff_scopes(old: ScopeGraph, new: ScopeGraph) -> ScopeDifference:
    """All that is different, in one order."""
    return ScopeDifference(changes=tuple(_changes(old, new)))


def _changes(old: ScopeGraph, new: ScopeGraph) -> Iterator[ScopeChange]:
    if old is new:
        return
    for name in sorted({*old.dimensions, *new.dimensions}):
        before, after = old.dimensions.get(name), new.dimensions.get(name)
        if before is None and after is not None:
            # Nobody names a new dimension yet; a closed one counts nevertheless.
            what = ("dimension", name)
            yield ScopeChange(kind="added", what=what, after=_mode(after), narrows=after.closed, dimension=name)
            yield from _dimension(Dimension(name=name), after)
        elif after is None and before is not None:
            what = ("dimension", name)
            yield ScopeChange(kind="removed", what=what, before=_mode(before), narrows=True, dimension=name)
        elif before is not None and after is not None and before != after:
            yield from _mode_changed(before, after)
            yield from _dimension(before, after)
    yield from _clients(old, new)
    yield from _policies(old, new)
    yield from _listed(old, new)


def _mode(dimension: Dimension) -> str:
    return "closed" if dimension.closed else "open"


def _mode_changed(before: Dimension, after: Dimension) -> Iterator[ScopeChange]:
    if before.closed != after.closed:
        yield ScopeChange(
            kind="changed",
            what=("dimension", after.name, "mode"),
            before=_mode(before),
            after=_mode(after),
            narrows=after.closed,
            dimension=after.name,
        )


def _dimension(before: Dimension, after: Dimension) -> Iterator[ScopeChange]:
    carried = effective_carriers(before), effective_carriers(after)
    for name in sorted({*before.scopes, *after.scopes}):
        old, new = before.scopes.get(name), after.scopes.get(name)
        what = ("scope", f"{after.name}/{name}")
        if old is None and new is not None:
            value = scope_as_json(new)
            yield ScopeChange(kind="added", what=what, after=value, narrows=False, dimension=after.name)
        elif new is None and old is not None:
            value = scope_as_json(old)
            yield ScopeChange(kind="removed", what=what, before=value, narrows=True, dimension=after.name)
        elif old is not None and new is not None:
            if old != new:
                yield from _scope(old, new, what, after.name)
            yield from _carriers(name, carried[0][name], carried[1][name], what, after.name)


def _scope(old: Scope, new: Scope, what: tuple[str, ...], dimension: str) -> Iterator[ScopeChange]:
    for container in sorted({*old.containers, *new.containers}):
        edge = (*what, "in", container)
        if container not in old.containers:
            after = link_as_json(new.link(container)) or None
            yield ScopeChange(kind="added", what=edge, after=after, narrows=False, dimension=dimension)
        elif container not in new.containers:
            yield ScopeChange(kind="removed", what=edge, narrows=True, dimension=dimension)
        else:
            one, other = old.link(container), new.link(container)
            if one != other:
                yield from _filter(one.up, other.up, (*what, "link", container, "up"), dimension)
                yield from _filter(one.down, other.down, (*what, "link", container, "down"), dimension)
    yield from _filter(old.output, new.output, (*what, "output"), dimension)
    yield from _filter(old.input, new.input, (*what, "input"), dimension)


def _filter(
    old: BoundaryFilter | None, new: BoundaryFilter | None, what: tuple[str, ...], dimension: str
) -> Iterator[ScopeChange]:
    if old != new:
        kind: Kind = "added" if old is None else "removed" if new is None else "changed"
        yield ScopeChange(
            kind=kind,
            what=what,
            before=None if old is None else old.text,
            after=None if new is None else new.text,
            narrows=new is not None,
            dimension=dimension,
        )


def _carriers(name: str, old: Carriers, new: Carriers, what: tuple[str, ...], dimension: str) -> Iterator[ScopeChange]:
    if old == new:
        return
    fewer = new is not None and (old is None or bool(old - new))
    before, after = (None if each is None else sorted(each) for each in (old, new))
    path = (*what, "carriers")
    yield ScopeChange(kind="changed", what=path, before=before, after=after, narrows=fewer, dimension=dimension)


def _clients(old: ScopeGraph, new: ScopeGraph) -> Iterator[ScopeChange]:
    for client in sorted({*old.clients, *new.clients}):
        before, after = old.clients.get(client, {}), new.clients.get(client, {})
        if before == after:
            continue
        for dimension in sorted({*before, *after}):
            left, joined = set(before.get(dimension, ())), set(after.get(dimension, ()))
            for scope in sorted(left ^ joined):
                kind: Kind = "added" if scope in joined else "removed"
                what = ("client", client, "in", f"{dimension}/{scope}")
                yield ScopeChange(kind=kind, what=what, narrows=scope in left, dimension=dimension)


def _policies(old: ScopeGraph, new: ScopeGraph) -> Iterator[ScopeChange]:
    for policy in sorted({*old.policies, *new.policies}):
        before, after = old.tags_of(policy), new.tags_of(policy)
        sides = (("reads", before.reads, after.reads), ("publishes", before.publishes, after.publishes))
        for side, one, other in sides:
            if one != other:
                dimensions = {*dict(one.named), *dict(other.named), *(new.dimensions if one.rest != other.rest else ())}
                for dimension in sorted(dimensions):
                    if one.tag(dimension) != other.tag(dimension):
                        yield ScopeChange(
                            kind="changed",
                            what=("policy", policy, side, dimension),
                            before=one.tag(dimension),
                            after=other.tag(dimension),
                            narrows=True,
                            dimension=dimension,
                        )


def _listed(old: ScopeGraph, new: ScopeGraph) -> Iterator[ScopeChange]:
    """Grants right by right, releases dimension by dimension."""
    before, after = _rights(old), _rights(new)
    yield from _came_and_went(before, after)
    yield from _came_and_went(_released(old), _released(new))


def _rights(graph: ScopeGraph) -> dict[tuple[str, ...], str]:
    return {
        ("grant", each.to, right, each.dimension if not each.scopes else f"{each.dimension}/{scope}"): each.dimension
        for each in graph.grants
        for right in each.may
        for scope in (each.scopes or ("",))
    }


def _released(graph: ScopeGraph) -> dict[tuple[str, ...], str]:
    return {
        ("release", each.policy, dimension, "keep", ", ".join(each.keep), "by", each.by): dimension
        for each in graph.releases
        for dimension in each.dimensions
    }


def _came_and_went(
    before: Mapping[tuple[str, ...], str], after: Mapping[tuple[str, ...], str]
) -> Iterator[ScopeChange]:
    for what in sorted(before.keys() - after.keys()):
        yield ScopeChange(kind="removed", what=what, narrows=True, dimension=before[what])
    for what in sorted(after.keys() - before.keys()):
        yield ScopeChange(kind="added", what=what, narrows=False, dimension=after[what])


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Three scope documents into one: what the folder said before, what is in force, and what the folder says now.
#
# Each part of the document is looked at by itself: a membership, a filter, a mode, a right. What only the folder
# changed is as the folder says, what only somebody else changed while events flow stays. Where both did, and not to the
# same, that is a conflict. Whether what comes out holds together is for others to check.

Part = tuple[Any, ...]
"""What a part is called, from outside in."""

_THERE = True


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeConflict:
    """A part that is one thing in force and another one in the folder, and was neither before; None: not there."""

    what: str
    in_force: Any
    folder: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeMerge:
    """The document that follows; where there are conflicts, what is in force stays."""

    graph: ScopeGraph
    conflicts: tuple[MergeConflict, ...] = ()


def merge_scopes(before: ScopeGraph, in_force: ScopeGraph, folder: ScopeGraph) -> ScopeMerge:
    """What is in force with what the folder changed since it said what it said before."""
    if in_force in (before, folder):
        return ScopeMerge(graph=folder)
    if folder == before:
        return ScopeMerge(graph=in_force)
    base, ours, theirs = (dict(_parts(scopes_as_json(each))) for each in (before, in_force, folder))
    merged: dict[Part, Any] = {}
    conflicts = []
    for part in sorted({*ours, *theirs}, key=str):
        was, here, there = base.get(part), ours.get(part), theirs.get(part)
        if here not in (there, was) and there != was:
            conflicts.append(MergeConflict(what=_named(part), in_force=here, folder=there))
        value = there if here == was else here
        if value is not None:
            merged[part] = value
    conflicts += _left_behind(merged)
    return ScopeMerge(graph=scopes_from_json(_whole(merged)), conflicts=tuple(conflicts))


def _left_behind(merged: dict[Part, Any]) -> Iterator[MergeConflict]:
    """Takes out what stands in something that is gone. The filters of a membership go with it, and nobody minds."""
    for part in sorted(merged, key=lambda each: (len(each), str(each))):
        around = _around(part)
        if around is None or around in merged:
            continue
        value = merged.pop(part)
        if around[-2] != "in":
            yield MergeConflict(what=_named(part), in_force=value, folder=None)


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


def _merge_dimension(document: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = document["dimensions"].setdefault(name, {"scopes": {}})
    return found


def _put_mode(document: dict[str, Any], part: Part, value: Any) -> None:
    _merge_dimension(document, part[0])["mode"] = value


def _put_scope(document: dict[str, Any], part: Part, value: Any) -> None:
    name, scope, *rest = part
    body = _merge_dimension(document, name)["scopes"].setdefault(scope, {})
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
