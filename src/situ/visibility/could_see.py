"""Whether a client could ever see something that is published under a tag set, whatever it says of itself.

It may name one of the scopes that it is in, or ``any`` where it may. In open dimensions everybody may, so only closed
ones hide anything: there it takes a scope of the client's own to which the pair is not *never*, or the grant to
observe.
"""

from __future__ import annotations

from situ.expr.tree import FALSE, TRUE
from situ.tags import ANY, TagSet
from situ.visibility.bits import NO_NUMBERS, Numbers, bits_of
from situ.visibility.compile import number_filters
from situ.visibility.dimension_plan import compile_dimension
from situ.visibility.families import NEVER, Family, suppose
from situ.visibility.filters import Filters
from situ.visibility.graph import Dimension, ScopeGraph
from situ.visibility.rights import may


class CouldSee:
    """One scope graph under one table of types; what is worked out is kept."""

    def __init__(self, graph: ScopeGraph, filters: Filters) -> None:
        self.graph = graph
        self.filters = filters
        self._closed = [each for each in graph.dimensions.values() if each.closed]
        self._numbers: dict[str, Numbers] = {}
        self._families: dict[tuple[str, str, str], Family] = {}
        self._constant: dict[tuple[str, str], tuple[int, int]] = {}

    def hides_nothing(self) -> bool:
        """Whether no dimension is closed."""
        return not self._closed

    def ever(self, client: str, advertised: TagSet, type: str) -> bool:
        """Whether an event of this type, published under these tags, could be seen by the client."""
        return all(self._in(each, client, advertised.tag(each.name), type) for each in self._closed)

    def _in(self, dimension: Dimension, client: str, tag: str | None, type: str) -> bool:
        if may(self.graph, client, "observe", dimension.name):
            return True
        own = self.graph.memberships(client, dimension.name)
        if tag is None or not own:
            return False
        return tag == ANY or any(self._leads(dimension, tag, scope, type) for scope in own)

    def _leads(self, dimension: Dimension, start: str, end: str, type: str) -> bool:
        if start not in dimension.scopes or end not in dimension.scopes:
            return False
        key = (dimension.name, start, end)
        family = self._families.get(key)
        if family is None:
            plan = compile_dimension(dimension, [start], [end], self._numbers_of(dimension))
            family = self._families[key] = plan.family(start, end)
        true, false = self._constants(dimension, type)
        return suppose(family, true, false) is not NEVER

    def _numbers_of(self, dimension: Dimension) -> Numbers:
        if dimension.name not in self._numbers:
            alone = ScopeGraph(dimensions={dimension.name: dimension})
            self._numbers[dimension.name] = number_filters(alone, NO_NUMBERS)
        return self._numbers[dimension.name]

    def _constants(self, dimension: Dimension, type: str) -> tuple[int, int]:
        """The filters that are true, and those that are not, for every event of a type."""
        found = self._constant.get((dimension.name, type))
        if found is None:
            given = self._numbers_of(dimension).given
            nodes = {number: self.filters.node(text, type) for text, number in given.items()}
            true = bits_of(number for number, node in nodes.items() if node == TRUE)
            false = bits_of(number for number, node in nodes.items() if node == FALSE)
            found = self._constant[dimension.name, type] = (true, false)
        return found
