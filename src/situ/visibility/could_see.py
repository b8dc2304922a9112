"""Whether a client could ever see something that is published under a tag set, whatever it says of itself.

It may name one of the scopes that it is in, or ``any`` where it may. In open dimensions everybody may, so only closed
ones hide anything: there it takes a scope of the client's own to which the pair is not *never*, or the grant to
observe.

A pair is never if no way leads from the one scope to the other but through filters that no event of the type passes. To
know that takes no families: it is enough to go back along the ways from where the client is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from situ.expr.tree import FALSE
from situ.tags import ANY, TagSet
from situ.visibility.dimension_plan import constant
from situ.visibility.filters import Filters
from situ.visibility.graph import Dimension, Filter, ScopeGraph
from situ.visibility.rights import may


class CouldSee:
    """One scope graph under one table of types; what is worked out is kept."""

    def __init__(self, graph: ScopeGraph, filters: Filters) -> None:
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

    def is_open(filters: Iterable[Filter]) -> bool:
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
