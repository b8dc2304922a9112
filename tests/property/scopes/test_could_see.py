"""Who could ever see something is who has a pair that is not never, on generated graphs."""

from __future__ import annotations

from situ.lang.expr.tree import FALSE, TRUE
from situ.lang.records import replace
from situ.lang.tags import ANY, TagSet
from situ.scopes.dimension_plan import PossibleVisibility
from situ.scopes.filter_sets import NO_NUMBERS, bits_of, suppose
from situ.scopes.graph import ScopeGraph
from situ.scopes.visibility_plan import Verdict, compile_visibility, number_filters, pair_of
from tests.scopes import FILTERS, World, worlds

CASES = 400


def closed(graph: ScopeGraph) -> ScopeGraph:
    """The same with all dimensions closed, and a client in every scope of the first."""
    dimensions = {name: replace(each, closed=True) for name, each in graph.dimensions.items()}
    name, first = next(iter(dimensions.items()))
    clients = {f"in-{scope}": {name: (scope,)} for scope in first.scopes}
    return replace(graph, dimensions={name: first}, clients=clients, policies={}, grants=(), releases=())


def judge(world: World) -> tuple[int, int]:
    graph = closed(world.graph)
    (dimension,) = graph.dimensions.values()
    numbers = number_filters(graph, NO_NUMBERS)
    could = PossibleVisibility(graph, FILTERS)
    outcomes = [0, 0]
    for ad, _, event in world.cases:
        tag = ad.tag(dimension.name)
        advertised = TagSet.of({dimension.name: tag} if tag is not None else {})
        nodes = {number: FILTERS.node(text, event.type) for text, number in numbers.given.items()}
        true = bits_of(number for number, node in nodes.items() if node == TRUE)
        false = bits_of(number for number, node in nodes.items() if node == FALSE)
        wanted = [TagSet.of({dimension.name: scope}) for scope in dimension.scopes]
        plan = compile_visibility(graph, [advertised], wanted, numbers)
        for subscribed in wanted:
            scope = subscribed.tag(dimension.name)
            pair = plan.pair(advertised, subscribed)
            supposed = pair_of(tuple(suppose(family, true, false) for family in pair.families))
            meant = Verdict.NEVER not in (pair.verdict, supposed.verdict)
            assert could.ever(f"in-{scope}", advertised, event.type) == meant, (world.seed, tag, scope)
            outcomes[meant and tag != ANY] += 1
    return outcomes[0], outcomes[1]


def test_who_could_see_is_who_has_a_pair_that_is_not_never() -> None:
    found = [judge(world) for world in worlds(CASES, start=50_000)]
    assert min(sum(each[0] for each in found), sum(each[1] for each in found)) > CASES / 10
