"""Changing scopes: a graph, an operation, who asks, for which epoch → another graph, or all reasons why not.

Pure, and all or nothing. What is so already is no change: the graph comes back as it is, and needs no new epoch. A
refusal tells who does not administer a scope nothing about it, not even whether it is there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, assert_never

from situ.lang.catalogue import (
    BAD_NAME,
    MEMBER_OF_CLIENT,
    NO_SCOPE,
    NOT_A_MEMBER,
    OLD_EPOCH,
    SCOPE_CYCLE,
    SCOPE_IN_USE,
    SCOPE_NAME_TAKEN,
)
from situ.lang.expr.syntax import locate_in, spell
from situ.lang.problems import Problem, Problems
from situ.lang.records import replace
from situ.lang.tags import ANY, VIRTUAL
from situ.scopes.diff import diff_scopes
from situ.scopes.filters import FilterMeanings, check_filter, check_filters
from situ.scopes.graph import (
    NO_LINK,
    RIGHTS,
    BoundaryFilter,
    Dimension,
    Grant,
    Scope,
    ScopeGraph,
    ScopeLink,
    carrier_conflicts,
)
from situ.scopes.json_form import sorted_grants
from situ.scopes.load_scopes import NAME, ZONE, ScopeEnvironment, check_graph, cycle_text
from situ.scopes.operations import (
    ApplyScopes,
    DropScope,
    GrantRights,
    JoinScope,
    LeaveScope,
    Operation,
    PutScope,
    RevokeRights,
    SetCarriers,
    SetFilter,
    SetLink,
    SetMode,
)
from situ.scopes.rights import Principal, administers, no_right, unknown_dimension, unknown_scope

_MOST_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeChangeOutcome:
    """The graph after the operation; the one before where there are errors. Warnings keep nothing from being done."""

    graph: ScopeGraph
    problems: tuple[Problem, ...] = ()

    @property
    def refused(self) -> bool:
        return any(each.is_error for each in self.problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeChangeEnvironment:
    """What an operation is checked against beside the graph: types for filters, clients and policies for names."""

    filters: FilterMeanings
    clients: Collection[str] = frozenset()


def change(
    graph: ScopeGraph, operation: Operation, by: Principal, known: ScopeChangeEnvironment, *, epoch: int, current: int
) -> ScopeChangeOutcome:
    """Carry out an operation that somebody asked for when the scopes were at ``epoch``; they are at ``current``."""
    problems = Problems()
    if epoch != current:
        problems.add(OLD_EPOCH(given=epoch, current=current))
    after = _ScopeChanger(graph, by, known, problems).carried_out(operation)
    if problems.errors or after is None:
        return ScopeChangeOutcome(graph=graph, problems=tuple(problems))
    return ScopeChangeOutcome(graph=graph if after == graph else after, problems=tuple(problems))


class _ScopeChanger:
    """One operation at work. A handler gives the graph after it, or None after saying why there is none."""

    def __init__(self, graph: ScopeGraph, by: Principal, known: ScopeChangeEnvironment, problems: Problems) -> None:
        self.graph, self.by, self.known, self.problems = graph, by, known, problems
        self.clients = {*graph.clients, *graph.policies, *known.clients}

    def carried_out(self, operation: Operation) -> ScopeGraph | None:
        match operation:
            case JoinScope() | LeaveScope():
                return self._in(operation.dimension, lambda at: self._member(at, operation))
            case PutScope():
                return self._in(operation.dimension, lambda at: self._put(at, operation))
            case DropScope():
                return self._in(operation.dimension, lambda at: self._drop(at, operation.scope))
            case SetFilter():
                return self._in(operation.dimension, lambda at: self._set_filter(at, operation))
            case SetLink():
                return self._in(operation.dimension, lambda at: self._set_link(at, operation))
            case SetCarriers():
                return self._in(operation.dimension, lambda at: self._set_carriers(at, operation))
            case SetMode():
                return self._in(operation.dimension, lambda at: self._set_mode(at, operation.closed))
            case GrantRights() | RevokeRights():
                return self._in(operation.grant.dimension, lambda at: self._grant(at, operation))
            case ApplyScopes():
                return self._apply(operation.graph)
            case _:
                assert_never(operation)

    # ── members ──

    def _member(self, at: Dimension, asked: JoinScope | LeaveScope) -> ScopeGraph | None:
        if isinstance(asked, LeaveScope):
            return self._leave(at, asked)
        what = f"let `{asked.member}` join `{asked.scope}` in the dimension `{at.name}`"
        is_scope = asked.member in at.scopes
        if not self._may(at, (asked.scope, *((asked.member,) if is_scope else ())), what):
            return None
        self.problems.extend(self._join_problems(at, asked))
        if self.problems.errors:
            return None
        if is_scope:
            scope = at.scopes[asked.member]
            containers = tuple(sorted({*scope.containers, asked.scope}))
            return self._with_scope(at, replace(scope, containers=containers))
        return self._with_client(asked.member, at, {*self.graph.memberships(asked.member, at.name), asked.scope})

    def _join_problems(self, at: Dimension, asked: JoinScope) -> Iterator[Problem]:
        member, scope = asked.member, asked.scope
        for name in (member, scope):
            if name in (ANY, *VIRTUAL):
                yield NO_SCOPE(name=name, what="be joined or join", remedy="Name a scope that is declared.")
                return
        if scope not in at.scopes:
            is_client = scope in self.clients
            yield MEMBER_OF_CLIENT(member=member, client=scope) if is_client else unknown_scope(self.graph, at, scope)
        elif member in at.scopes:
            if member in at.above(scope):
                cycle = cycle_text(at, member, scope)
                yield SCOPE_CYCLE(member=member, container=scope, cycle=cycle)
        elif (home := self.graph.dimension_of(member)) is not None:
            known = administers(self.graph, self.by, home)
            yield unknown_scope(self.graph if known else ScopeGraph(), at, member)
        else:
            yield from _name_problems(member, "a client")

    def _leave(self, at: Dimension, asked: LeaveScope) -> ScopeGraph | None:
        """One who administers either side may part them; a client may go by itself."""
        is_scope = asked.member in at.scopes
        sides = (asked.scope, *((asked.member,) if is_scope else ()))
        own = not is_scope and self.by.name == asked.member
        if not own and not any(administers(self.graph, self.by, at.name, side) for side in sides):
            what = f"let `{asked.member}` leave `{asked.scope}` in the dimension `{at.name}`"
            self.problems.add(no_right(self.by, what))
            return None
        if is_scope:
            scope = at.scopes[asked.member]
            return self._with_scope(at, _without_container(scope, asked.scope))
        left = {*self.graph.memberships(asked.member, at.name)} - {asked.scope}
        return self._with_client(asked.member, at, left)

    # ── scopes ──

    def _put(self, at: Dimension, asked: PutScope) -> ScopeGraph | None:
        name, there = asked.scope, at.scopes.get(asked.scope)
        what = f"put the scope `{name}` into the dimension `{at.name}`"
        joined = tuple(each for each in asked.containers if there is None or each not in there.containers)
        at_top = there is None and not asked.containers
        if at_top and not administers(self.graph, self.by, at.name):
            self.problems.add(no_right(self.by, what))
            return None
        if not self._may(at, (*joined, *((name,) if there is not None else ())), what):
            return None
        self.problems.extend(self._put_problems(at, asked))
        if self.problems.errors:
            return None
        links = {
            container: ScopeLink(up=self._filter(name, up), down=self._filter(name, down))
            for container, (up, down) in asked.links.items()
            if container in asked.containers
        }
        scope = Scope(
            name=name,
            containers=tuple(sorted(set(asked.containers))),
            output=self._filter(name, asked.output),
            input=self._filter(name, asked.input),
            links=tuple(sorted((container, link) for container, link in links.items() if link != NO_LINK)),
            carriers=None if asked.carriers is None else tuple(sorted(set(asked.carriers))),
        )
        return self._with_scope(at, scope)

    def _put_problems(self, at: Dimension, asked: PutScope) -> Iterator[Problem]:
        name = asked.scope
        if name in (ANY, *VIRTUAL):
            yield NO_SCOPE(name=name, what="be declared as a scope", remedy="Give the scope another name.")
            return
        yield from _name_problems(name, "a scope")
        home = self.graph.dimension_of(name)
        if home is not None and home != at.name:
            known = administers(self.graph, self.by, home)
            yield SCOPE_NAME_TAKEN(name=name, dimension=at.name, taken=f"one of `{home}`" if known else "in use")
        elif name in self.clients:
            yield SCOPE_NAME_TAKEN(name=name, dimension=at.name, taken="the name of a client")
        for container in (*asked.containers, *(each for each in asked.links if each not in asked.containers)):
            if container == name:
                yield SCOPE_CYCLE(member=name, container=name, cycle=f"{name} → {name}")
            elif container not in at.scopes:
                yield from self._join_problems(at, JoinScope(member=name, scope=container, dimension=at.name))
            elif name in at.scopes and name in at.above(container):
                yield SCOPE_CYCLE(member=name, container=container, cycle=cycle_text(at, name, container))
        yield from _zone_problems(asked.carriers)

    def _drop(self, at: Dimension, name: str) -> ScopeGraph | None:
        what = f"drop the scope `{name}` of the dimension `{at.name}`"
        if not self._may(at, (name,), what):
            return None
        if name not in at.scopes:
            return self.graph
        members = (*at.members(name), *self.graph.clients_in(at.name, name))
        if members:
            shown = ", ".join(f"`{each}`" for each in members[:_MOST_NAMED])
            more = f" and {len(members) - _MOST_NAMED} more" if len(members) > _MOST_NAMED else ""
            self.problems.add(SCOPE_IN_USE(scope=name, dimension=at.name, members=shown + more))
            return None
        scopes = {each: scope for each, scope in at.scopes.items() if each != name}
        return replace(self._with_dimension(replace(at, scopes=scopes)), grants=_grants_without(self.graph, at, name))

    def _set_filter(self, at: Dimension, asked: SetFilter) -> ScopeGraph | None:
        what = f"set filters of the scope `{asked.scope}` of the dimension `{at.name}`"
        if not self._may(at, (asked.scope,), what) or not self._there(at, asked.scope):
            return None
        found = self._filter(asked.scope, asked.text)
        scope = at.scopes[asked.scope]
        return self._with_scope(
            at, replace(scope, output=found) if asked.side == "output" else replace(scope, input=found)
        )

    def _set_link(self, at: Dimension, asked: SetLink) -> ScopeGraph | None:
        what = f"set filters between `{asked.member}` and `{asked.scope}` in the dimension `{at.name}`"
        if not self._may(at, (asked.member, asked.scope), what) or not self._there(at, asked.member, asked.scope):
            return None
        scope = at.scopes[asked.member]
        if asked.scope not in scope.containers:
            self.problems.add(
                NOT_A_MEMBER(who=asked.member, scope=asked.scope, dimension=at.name, memberships=scope.containers)
            )
            return None
        link = ScopeLink(up=self._filter(asked.member, asked.up), down=self._filter(asked.member, asked.down))
        others = {name: each for name, each in scope.links if name != asked.scope}
        links = others if link == NO_LINK else {**others, asked.scope: link}
        return self._with_scope(at, replace(scope, links=tuple(sorted(links.items()))))

    def _set_carriers(self, at: Dimension, asked: SetCarriers) -> ScopeGraph | None:
        what = f"set carriers of the scope `{asked.scope}` of the dimension `{at.name}`"
        if not self._may(at, (asked.scope,), what) or not self._there(at, asked.scope):
            return None
        self.problems.extend(_zone_problems(asked.carriers))
        carriers = None if asked.carriers is None else tuple(sorted(set(asked.carriers)))
        return self._with_scope(at, replace(at.scopes[asked.scope], carriers=carriers))

    # ── dimensions, rights, all of it ──

    def _set_mode(self, at: Dimension, closed: bool) -> ScopeGraph | None:
        if not administers(self.graph, self.by, at.name):
            self.problems.add(no_right(self.by, f"open or close the dimension `{at.name}`"))
            return None
        return self._with_dimension(replace(at, closed=closed))

    def _grant(self, at: Dimension, asked: GrantRights | RevokeRights) -> ScopeGraph | None:
        grant = asked.grant
        what = f"say who may do what in the dimension `{at.name}`"
        if not grant.scopes and not administers(self.graph, self.by, at.name):
            self.problems.add(no_right(self.by, what))
            return None
        if not self._may(at, grant.scopes, what) or not self._there(at, *grant.scopes):
            return None
        self.problems.extend(_name_problems(grant.to, "a principal"))
        scopes = tuple(sorted(set(grant.scopes)))
        if isinstance(asked, GrantRights):
            return replace(self.graph, grants=sorted_grants((*self.graph.grants, replace(grant, scopes=scopes))))
        kept = [_reduced(each, grant, scopes) for each in self.graph.grants]
        return replace(self.graph, grants=tuple(each for each in kept if each.may))

    def _apply(self, graph: ScopeGraph) -> ScopeGraph | None:
        """Who replaces the document must administer the whole of each dimension in which it differs."""
        named = ((name, "a dimension") for name in graph.dimensions)
        scopes = ((name, "a scope") for each in graph.dimensions.values() for name in each.scopes)
        clients = ((name, "a client") for name in (*graph.clients, *(each.to for each in graph.grants)))
        for name, what in (*named, *scopes, *clients):
            self.problems.extend(_name_problems(name, what))
        checked = check_graph(graph, self.problems, ScopeEnvironment(clients=self.known.clients))
        self.problems.extend(check_filters(graph, self.known.filters))
        for name in sorted(diff_scopes(self.graph, graph).dimensions):
            if not administers(self.graph, self.by, name):
                self.problems.add(no_right(self.by, f"replace what is declared in the dimension `{name}`"))
        return checked

    # ── parts ──

    def _in(self, name: str, handle: Callable[[Dimension], ScopeGraph | None]) -> ScopeGraph | None:
        at = self.graph.dimensions.get(name)
        if at is None:
            self.problems.add(unknown_dimension(self.graph, name))
            return None
        return handle(at)

    def _may(self, at: Dimension, scopes: Collection[str], what: str) -> bool:
        """Whether all of these are administered; what is not there is, by who administers the whole dimension only."""
        if all(administers(self.graph, self.by, at.name, each) for each in scopes):
            return True
        self.problems.add(no_right(self.by, what))
        return False

    def _there(self, at: Dimension, *scopes: str) -> bool:
        missing = [each for each in scopes if each not in at.scopes]
        self.problems.extend(unknown_scope(self.graph, at, each) for each in missing)
        return not missing

    def _filter(self, scope: str, text: str | None) -> BoundaryFilter | None:
        if text is None:
            return None
        self.problems.extend(check_filter(scope, text, self.known.filters, locate_in(text, f"filter of {scope}")))
        return BoundaryFilter(text=spell(text))

    def _with_scope(self, at: Dimension, scope: Scope) -> ScopeGraph:
        if at.scopes.get(scope.name) == scope:
            return self.graph
        after = replace(at, scopes={**at.scopes, scope.name: scope})
        self.problems.extend(problem for _, _, problem in carrier_conflicts(after, after.below(scope.name)))
        return self._with_dimension(after)

    def _with_dimension(self, dimension: Dimension) -> ScopeGraph:
        return replace(self.graph, dimensions={**self.graph.dimensions, dimension.name: dimension})

    def _with_client(self, client: str, at: Dimension, scopes: Collection[str]) -> ScopeGraph:
        where = {name: each for name, each in self.graph.clients.get(client, {}).items() if name != at.name}
        if scopes:
            where[at.name] = tuple(sorted(scopes))
        clients: dict[str, Any] = {name: each for name, each in self.graph.clients.items() if name != client}
        if where:
            clients[client] = {name: where[name] for name in sorted(where)}
        return replace(self.graph, clients=clients)


def _without_container(scope: Scope, container: str) -> Scope:
    return replace(
        scope,
        containers=tuple(each for each in scope.containers if each != container),
        links=tuple((name, link) for name, link in scope.links if name != container),
    )


def _grants_without(graph: ScopeGraph, at: Dimension, scope: str) -> tuple[Grant, ...]:
    """A grant on a scope that is gone goes with it, and never becomes one on everything."""
    kept = []
    for each in graph.grants:
        if each.dimension != at.name or scope not in each.scopes:
            kept.append(each)
        elif len(each.scopes) > 1:
            kept.append(replace(each, scopes=tuple(name for name in each.scopes if name != scope)))
    return tuple(kept)


def _reduced(there: Grant, revoked: Grant, scopes: tuple[str, ...]) -> Grant:
    if (there.to, there.dimension, there.scopes) != (revoked.to, revoked.dimension, scopes):
        return there
    return replace(there, may=tuple(right for right in RIGHTS if right in there.may and right not in revoked.may))


def _name_problems(name: str, what: str) -> Iterator[Problem]:
    if not NAME.fullmatch(name):
        remedy = "Use letters, digits and `-`, at most 64."
        yield BAD_NAME(name=name or " ", what=what, reason="it has other characters", remedy=remedy)


def _zone_problems(zones: Collection[str] | None) -> Iterator[Problem]:
    for zone in zones or ():
        if not ZONE.fullmatch(zone):
            remedy = "Use small letters, digits and `-`, at most 32."
            yield BAD_NAME(name=zone or " ", what="a zone", reason="it has other characters", remedy=remedy)
