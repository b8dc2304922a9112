"""Which filters matter for what is published under a tag set: those on some way from its scopes, up and down.

Whoever may subscribe, now or later, sees an event by such a way, so its stamp need not say anything of other filters.
"""

from __future__ import annotations

from situ.tags import ANY, TagSet
from situ.visibility.bits import Numbers, bits_of
from situ.visibility.dimension_plan import constant
from situ.visibility.graph import Dimension, Filter, ScopeGraph


def mattering(graph: ScopeGraph, tags: TagSet, numbers: Numbers) -> int:
    """The filters, as bits. None in a dimension where it names no scope: there no filter is asked."""
    found: set[str] = set()
    for name, dimension in graph.dimensions.items():
        tag = tags.tag(name)
        if tag is not None and tag != ANY and tag in dimension.scopes:
            found.update(each.text for each in _on_the_way(dimension, tag))
    return bits_of(numbers[text] for text in found if constant(text) is None)


def _on_the_way(dimension: Dimension, tag: str) -> set[Filter]:
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
