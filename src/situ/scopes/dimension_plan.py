"""One dimension of scopes, compiled: for every tag in use, on which filters it depends what is seen from where.

`compile_dimension` makes the `DimensionPlan`, `relevant_filters` gives the filters that a stamp must tell of,
`PossibleVisibility` says whether a client could ever see what is published under a tag set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from situ.lang.expr.tree import FALSE
from situ.lang.tags import ANY, TagSet
from situ.scopes.filter_sets import ALWAYS, NEVER, Family, FilterNumbers, bits_of, through
from situ.scopes.filters import FilterMeanings
from situ.scopes.graph import BoundaryFilter, Dimension, Scope, ScopeGraph
from situ.scopes.rights import may

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``Up(s, k)`` is the family of going from ``s`` up to ``k``, by rule 2; ``V(s, t)`` that of going from ``s`` up and
# then down to ``t``, by rule 3: what reaches a container of ``t`` and passes down, and what came up to ``t`` itself.
# Both cost a step of :func:`~situ.scopes.filter_sets.through` an edge. When an edge changes, only what begins or ends
# at its member or below is computed again; the rest is taken over.

_CONSTANTS = {"TRUE": True, "FALSE": False, "NULL": False}


class Crossing(NamedTuple):
    """An edge from a scope to a container of it: the filters on the way up and on the way down, None: no way."""

    container: str
    up: int | None
    down: int | None


def constant(text: str) -> bool | None:
    """Whether a filter passes every event or none, so that nobody need ask it; None if it must be asked."""
    return _CONSTANTS.get(text)


class DimensionPlan(msgspec.Struct, frozen=True):
    """What is known of one dimension. ``seen[s][t]`` is ``V(s, t)``, for all tags ``t`` in use and what they are in."""

    dimension: Dimension
    crossings: Mapping[str, tuple[Crossing, ...]]
    ups: Mapping[str, Mapping[str, Family]]
    seen: Mapping[str, Mapping[str, Family]]
    changed: frozenset[str] = frozenset()
    """The tags that see or are seen differently from what the plan before said."""

    def family(self, advertised: str, subscribed: str) -> Family:
        """``V(s, t)``; never for what is no scope here."""
        return self.seen.get(advertised, {}).get(subscribed, NEVER)


def compile_dimension(
    dimension: Dimension,
    advertised: Iterable[str],
    subscribed: Iterable[str],
    numbers: FilterNumbers,
    before: DimensionPlan | None = None,
) -> DimensionPlan:
    """Compile for these tags; what the plan before knows and the change did not touch is taken over."""
    crossings = _crossings(dimension, numbers, before)
    touched = _touched(before, crossings) if before is not None else frozenset()
    ordered = _containers_first([tag for tag in subscribed if tag in crossings], crossings)
    ups: dict[str, Mapping[str, Family]] = {}
    seen: dict[str, Mapping[str, Family]] = {}
    for tag in advertised:
        if tag not in crossings:
            continue
        if before is None or tag in touched or tag not in before.seen:
            ups[tag] = _up(tag, crossings)
            seen[tag] = _seen(ups[tag], ordered, crossings)
        else:
            ups[tag] = before.ups[tag]
            seen[tag] = _seen_again(before.seen[tag], touched, ups[tag], ordered, crossings)
    return DimensionPlan(dimension, crossings, ups, seen, touched)


def _crossings(
    dimension: Dimension, numbers: FilterNumbers, before: DimensionPlan | None
) -> Mapping[str, tuple[Crossing, ...]]:
    if before is not None and before.dimension is dimension:
        return before.crossings
    known: Mapping[str, Scope] = before.dimension.scopes if before is not None else {}
    result: dict[str, tuple[Crossing, ...]] = {}
    for name, scope in dimension.scopes.items():
        if before is not None and (old := known.get(name)) is not None and (old is scope or old == scope):
            result[name] = before.crossings[name]
        else:
            result[name] = tuple(
                Crossing(
                    container,
                    _needed(dimension.up(name, container), numbers),
                    _needed(dimension.down(container, name), numbers),
                )
                for container in scope.containers
            )
    return result


def _needed(filters: Sequence[BoundaryFilter], numbers: FilterNumbers) -> int | None:
    needed = 0
    for each in filters:
        always = constant(each.text)
        if always is False:
            return None
        if always is None:
            needed |= 1 << numbers[each.text]
    return needed


def _touched(before: DimensionPlan, crossings: Mapping[str, tuple[Crossing, ...]]) -> frozenset[str]:
    """The scopes whose way out or in is another now: those with other edges, and all that are below them."""
    old = before.crossings
    if old is crossings:
        return frozenset()
    ends = {name for name in old.keys() | crossings.keys() if old.get(name) != crossings.get(name)}
    if not ends:
        return frozenset()
    return _below(ends, old) | _below(ends, crossings)


def _below(ends: set[str], crossings: Mapping[str, tuple[Crossing, ...]]) -> frozenset[str]:
    members: dict[str, list[str]] = {}
    for name, edges in crossings.items():
        for edge in edges:
            members.setdefault(edge.container, []).append(name)
    found, waiting = set(ends), list(ends)
    while waiting:
        for member in members.get(waiting.pop(), ()):
            if member not in found:
                found.add(member)
                waiting.append(member)
    return frozenset(found)


def _containers_first(tags: Iterable[str], crossings: Mapping[str, tuple[Crossing, ...]]) -> list[str]:
    """These scopes and all that they are in, each after its containers."""
    placed: set[str] = set()
    result: list[str] = []
    waiting = list(tags)
    while waiting:
        name = waiting[-1]
        if name in placed:
            waiting.pop()
            continue
        missing = [edge.container for edge in crossings[name] if edge.container not in placed]
        if missing:
            waiting.extend(missing)
        else:
            waiting.pop()
            placed.add(name)
            result.append(name)
    return result


def _up(start: str, crossings: Mapping[str, tuple[Crossing, ...]]) -> Mapping[str, Family]:
    """``Up(start, ·)``, for all that the start is in."""
    arriving: dict[str, list[tuple[int, Family]]] = {}
    result: dict[str, Family] = {}
    for name in reversed(_containers_first([start], crossings)):
        family = ALWAYS if name == start else through(arriving.get(name, ()))
        if family is NEVER:
            continue
        result[name] = family
        for edge in crossings[name]:
            if edge.up is not None:
                arriving.setdefault(edge.container, []).append((edge.up, family))
    return result


def _seen(
    ups: Mapping[str, Family], ordered: Iterable[str], crossings: Mapping[str, tuple[Crossing, ...]]
) -> dict[str, Family]:
    result: dict[str, Family] = {}
    for name in ordered:
        result[name] = _arrived(name, result, ups, crossings)
    return result


def _seen_again(
    old: Mapping[str, Family],
    touched: frozenset[str],
    ups: Mapping[str, Family],
    ordered: Sequence[str],
    crossings: Mapping[str, tuple[Crossing, ...]],
) -> Mapping[str, Family]:
    """As before, except where the way down is another or nobody asked before."""
    new = [name for name in ordered if name in touched or name not in old]
    if not new and touched.isdisjoint(old):
        return old
    result = dict(old)
    for name in touched:
        result.pop(name, None)
    for name in new:
        result[name] = _arrived(name, result, ups, crossings)
    return result


def _arrived(
    name: str,
    known: Mapping[str, Family],
    ups: Mapping[str, Family],
    crossings: Mapping[str, tuple[Crossing, ...]],
) -> Family:
    """By rule 3: what came up to here, and what comes down from the containers, which are known."""
    ways: list[tuple[int, Family]] = []
    own = ups.get(name)
    if own is not None:
        if own is ALWAYS:
            return ALWAYS
        ways.append((0, own))
    for container, _, down in crossings[name]:
        if down is not None and (family := known[container]) is not NEVER:
            if family is ALWAYS and not down:
                return ALWAYS
            ways.append((down, family))
    return through(ways) if ways else NEVER


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Which filters matter for what is published under a tag set: those on some way from its scopes, up and down. Whoever
# may subscribe, now or later, sees an event by such a way, so its stamp need not say anything of other filters.


def relevant_filters(graph: ScopeGraph, tags: TagSet, numbers: FilterNumbers) -> int:
    """The filters, as bits. None in a dimension where it names no scope: there no filter is asked."""
    found: set[str] = set()
    for name, dimension in graph.dimensions.items():
        tag = tags.tag(name)
        if tag is not None and tag != ANY and tag in dimension.scopes:
            found.update(each.text for each in _on_the_way(dimension, tag))
    return bits_of(numbers[text] for text in found if constant(text) is None)


def _on_the_way(dimension: Dimension, tag: str) -> set[BoundaryFilter]:
    above = dimension.above(tag)
    found = {
        each for scope in above for container in dimension.containers(scope) for each in dimension.up(scope, container)
    }
    reached, waiting = set(above), list(above)
    while waiting:
        container = waiting.pop()
        for member in dimension.members(container):
            found.update(dimension.down(container, member))
            if member not in reached:
                reached.add(member)
                waiting.append(member)
    return found


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Whether a client could ever see something that is published under a tag set, whatever it says of itself.
#
# It may name one of the scopes that it is in, or ``any`` where it may. In open dimensions everybody may, so only closed
# ones hide anything: there it takes a scope of the client's own to which the pair is not *never*, or the grant to
# observe.
#
# A pair is never if no way leads from the one scope to the other but through filters that no event of the type passes.
# To know that takes no families: it is enough to go back along the ways from where the client is.


class PossibleVisibility:
    """One scope graph under one table of types; what is worked out is kept."""

    def __init__(self, graph: ScopeGraph, filters: FilterMeanings) -> None:
        self.graph = graph
        self.filters = filters
        self._closed = [each for each in graph.dimensions.values() if each.closed]
        self._texts = {each.name: _texts(each) for each in self._closed}
        self._shut: dict[tuple[str, str], frozenset[str]] = {}
        self._seen: dict[tuple[str, str, frozenset[str]], frozenset[str]] = {}

    def ever(self, client: str, advertised: TagSet, type: str) -> bool:
        """Whether an event of this type, published under these tags, could be seen by the client."""
        return all(self._in(each, client, advertised.tag(each.name), type) for each in self._closed)

    def _in(self, dimension: Dimension, client: str, tag: str | None, type: str) -> bool:
        if may(self.graph, client, "observe", dimension.name):
            return True
        own = self.graph.memberships(client, dimension.name)
        if tag is None or not own:
            return False
        return tag == ANY or any(tag in self._seen_from(dimension, scope, type) for scope in own)

    def _seen_from(self, dimension: Dimension, scope: str, type: str) -> frozenset[str]:
        """The scopes of which something of a type could be visible in this one."""
        shut = self._never_true(dimension, type)
        key = (dimension.name, scope, shut)
        found = self._seen.get(key)
        if found is None:
            found = self._seen[key] = _leading_to(dimension, scope, shut)
        return found

    def _never_true(self, dimension: Dimension, type: str) -> frozenset[str]:
        """The filters that no event of a type passes."""
        found = self._shut.get((dimension.name, type))
        if found is None:
            texts = self._texts[dimension.name]
            found = frozenset(text for text in texts if self.filters.node(text, type) == FALSE)
            self._shut[dimension.name, type] = found
        return found


def _texts(dimension: Dimension) -> frozenset[str]:
    alone = ScopeGraph(dimensions={dimension.name: dimension})
    return frozenset(each.text for each in alone.filters())


def _leading_to(dimension: Dimension, scope: str, shut: frozenset[str]) -> frozenset[str]:
    """The scopes from which a way leads to this one, up and then down, through nothing that is shut."""
    if scope not in dimension.scopes:
        return frozenset()

    def is_open(filters: Iterable[BoundaryFilter]) -> bool:
        return not any(each.text in shut or constant(each.text) is False for each in filters)

    def before(here: str) -> list[str]:
        return [each for each in dimension.containers(here) if is_open(dimension.down(each, here))]

    def below(here: str) -> list[str]:
        return [each for each in dimension.members(here) if is_open(dimension.up(each, here))]

    return _reached(_reached({scope}, before), below)


def _reached(start: Iterable[str], following: Callable[[str], list[str]]) -> frozenset[str]:
    found = set(start)
    waiting = list(found)
    while waiting:
        new = [each for each in following(waiting.pop()) if each not in found]
        found.update(new)
        waiting += new
    return frozenset(found)
