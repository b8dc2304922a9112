"""An expectation meets a publisher only where all that the publisher publishes is visible to the subscription.

The reference goes through every stamp that an event of the type could get, and asks the three rules of visibility about
each. One stamp under which the event is not visible is enough: then the publisher is not there for the expectation.
"""

from __future__ import annotations

import random
from collections import Counter
from itertools import chain, combinations

from situ.lang.expr.tree import FALSE, TRUE
from situ.lang.tags import TagSet
from situ.lang.types.model import Struct
from situ.model import Deployment
from situ.router.quality_calls import RelevantProfiles
from situ.routing.model import Subscription
from situ.scopes.graph import ScopeGraph
from tests.oracles.visibility import visible
from tests.property.stages.test_visibility import make_deployment
from tests.scopes import FILTERS, TYPES, Passed, make_graph, make_tags
from tests.volume import cases

MOST_FILTERS = 8


def stamps(graph: ScopeGraph, type: str) -> list[Passed] | None:
    """Every set of filters that could be true for an event of a type; None: too many to go through."""
    texts = sorted({each.text for each in graph.filters()})
    nodes = {text: FILTERS.node(text, type) for text in texts}
    sure = frozenset(text for text, node in nodes.items() if node == TRUE)
    unsettled = [text for text, node in nodes.items() if node not in (TRUE, FALSE)]
    if len(unsettled) > MOST_FILTERS:
        return None
    some = chain.from_iterable(combinations(unsettled, size) for size in range(len(unsettled) + 1))
    return [Passed(sure | frozenset(each)) for each in some]


def below(type: str) -> set[str]:
    event = TYPES.event(type)
    assert event is not None
    return {each.name for each in TYPES.subtypes(event) if isinstance(each, Struct)}


def verdict(graph: ScopeGraph, every: list[Passed], ads: list[TagSet], subscribed: TagSet) -> str:
    seen = {visible(graph, each, ad, subscribed) for ad in ads for each in every}
    return "depends" if len(seen) > 1 else "always" if seen == {True} else "never"


def meant(deployment: Deployment, wanted: Subscription) -> dict[str, str] | None:
    """Profile of a subscribed type → how it is seen."""
    found = {}
    for type in sorted(set[str]().union(*(below(each) for each in wanted.types))):
        every = stamps(deployment.scopes, type)
        if every is None:
            return None
        for publisher in sorted(deployment.clients):
            ads = [
                each.scopes
                for each in deployment.advertisements.values()
                if each.client == publisher and type in below(each.type)
            ]
            if ads:
                found[f"{publisher}/{type}"] = verdict(deployment.scopes, every, ads, wanted.scopes)
    return found


@cases(400, 20_000)
def test_a_publisher_matters_where_it_is_always_seen(cases: int) -> None:
    kinds: Counter[str] = Counter()
    seed = 0
    while kinds.total() < cases:
        seed += 1
        dice = random.Random(seed)
        graph = make_graph(dice, most_dimensions=2, most_scopes=4)
        deployment = make_deployment(dice, graph, [make_tags(dice, graph) for _ in range(6)])
        relevance = RelevantProfiles.of(deployment).relevance()
        for id, wanted in deployment.subscriptions.items():
            expected = meant(deployment, wanted)
            if expected is None:
                continue
            for profile, kind in expected.items():
                matters = relevance.pools[profile] in relevance.relevant[id]
                assert matters == (kind == "always"), (seed, id, profile, kind)
                kinds[kind] += 1
    assert min(kinds[each] for each in ("always", "depends", "never")) > cases / 20, kinds
