"""The meaning of visibility: the three rules and the table of dimensions, literally.

Slow and obvious. What is compiled must agree with this on every input.
"""

from __future__ import annotations

from functools import cache
from typing import Protocol

from situ.tags import ANY, TagSet
from situ.visibility.graph import Dimension, Filter, ScopeGraph


class Asked(Protocol):
    """An event that can be asked whether a filter is TRUE for it; unknown is not."""

    def passes(self, text: str) -> bool: ...


def visible(graph: ScopeGraph, event: Asked, advertised: TagSet, subscribed: TagSet) -> bool:
    """Whether an event that was published under one tag set is visible to a subscription under the other.

    So it is if it is in every dimension. A tag set that names a scope which is not there sees nothing and is not seen.
    """
    for tags in (advertised, subscribed):
        for name, tag in tags.named:
            if tag != ANY and (name not in graph.dimensions or tag not in graph.dimensions[name].scopes):
                return False
    return all(
        visible_in(dimension, event, advertised.tag(name), subscribed.tag(name))
        for name, dimension in graph.dimensions.items()
    )


def visible_in(dimension: Dimension, event: Asked, producer: str | None, consumer: str | None) -> bool:
    """The table: a scope, ``any`` (⊥ for the producer, ⊤ for the consumer) or None, for nothing said."""
    match producer, consumer:
        case None | "any", None:
            return not dimension.closed
        case _, None:
            return False
        case _, "any":
            return True
        case None, _:
            return False
        case "any", _:
            return True
        case _:
            return visible_between(dimension, event, producer, consumer)


def visible_between(dimension: Dimension, event: Asked, producer: str, consumer: str) -> bool:
    """``V(X, Y)``: 1. they are the same; 2. one step up from X, and on; 3. as far as a container of Y, and down."""

    def passes(filters: tuple[Filter, ...]) -> bool:
        return all(event.passes(each.text) for each in filters)

    @cache  # the same question comes up again and again, and its answer never changes
    def sees(x: str, y: str) -> bool:
        if x == y:
            return True
        if any(passes(dimension.up(x, s)) and sees(s, y) for s in dimension.containers(x)):
            return True
        return any(sees(x, s) and passes(dimension.down(s, y)) for s in dimension.containers(y))

    return sees(producer, consumer)
