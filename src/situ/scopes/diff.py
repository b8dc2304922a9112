"""What is different between two scope graphs, and whether anybody may see less by it.

A change *narrows* if there may be an event that somebody saw before and does not see after it. Said with care: whatever
is not sure to keep everything in sight is called narrowing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from situ.visibility.carriers import Carriers, effective_carriers
from situ.visibility.graph import Dimension, Filter, Scope, ScopeGraph
from situ.visibility.json_form import link_as_json, scope_as_json

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


def diff(old: ScopeGraph, new: ScopeGraph) -> ScopeDifference:
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


def _filter(old: Filter | None, new: Filter | None, what: tuple[str, ...], dimension: str) -> Iterator[ScopeChange]:
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
