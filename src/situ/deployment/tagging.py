"""The tags that advertisements and subscriptions name, held to the scope graph: theirs to name, carried in their zone.

Nobody who says nothing of scopes is looked at twice, but for closed dimensions: there it is worth a warning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from situ.errors import Problem
from situ.subscription.model import Advertisement, Subscription
from situ.tags import WrittenTags
from situ.visibility.graph import ScopeGraph
from situ.visibility.rights import NO_PLACES, Tagging, check_tags, nothing_said

NOT_WRITTEN: Mapping[str, WrittenTags] = MappingProxyType({})


def check_tagged(
    graph: ScopeGraph,
    each: Advertisement | Subscription,
    *,
    zone: str = "",
    knows_all: bool = False,
    written: Mapping[str, WrittenTags] = NOT_WRITTEN,
) -> Iterator[Problem]:
    """What is wrong with the tags of one declaration. ``knows_all``: told to somebody who may know every scope."""
    if not graph.dimensions and not each.scopes.named:
        return
    publishes = isinstance(each, Advertisement)
    said = written.get(each.id)
    places, place = (said.places, said.place) if said is not None else (NO_PLACES, None)
    by = Tagging(who=each.client, publishes=publishes, zone=zone, knows_all=knows_all)
    yield from check_tags(graph, each.scopes, by, places)
    yield from nothing_said(graph, each.scopes, each.id, publishes=publishes, place=place)
