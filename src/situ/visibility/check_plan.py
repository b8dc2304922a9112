"""What is worth a warning once visibility is compiled: too many ways between two tags, situations that reach nobody."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from situ.catalogue import LARGE_FAMILY, UNREACHED_SITUATIONS
from situ.errors import Problem
from situ.tags import TagSet
from situ.visibility.epochs import Epochs
from situ.visibility.families import MOST_SETS, Nested
from situ.visibility.meet import could_reach
from situ.visibility.plan import VisibilityPlan


def large_families(plan: VisibilityPlan) -> Iterator[Problem]:
    """V109 for each pair of tags, once however many tag sets name them."""
    named: set[tuple[str, str, str]] = set()
    for advertised, subscribed in plan.too_large():
        for name, dimension in plan.dimensions.items():
            producer, consumer = advertised.tag(name) or "", subscribed.tag(name) or ""
            pair = (name, producer, consumer)
            if pair not in named and isinstance(dimension.family(producer, consumer), Nested):
                named.add(pair)
                yield LARGE_FAMILY(dimension=name, producer=producer, consumer=consumer, most=MOST_SETS)


def unreached(
    epochs: Epochs,
    epoch: int,
    policy: str,
    tags: tuple[TagSet, TagSet],
    advertised: Iterable[Iterable[TagSet]],
    subscriptions: Mapping[str, TagSet],
    released: frozenset[str] = frozenset(),
) -> Problem | None:
    """V110 if there are subscriptions to a policy's situations and it could reach none of them.

    ``tags`` are those that it publishes and reads under; ``advertised`` as in
    :func:`~situ.visibility.meet.could_reach`.
    """
    publishes, reads = tags
    needed = [tuple(each) for each in advertised]
    if not subscriptions or any(
        could_reach(epochs, epoch, publishes, reads, needed, subscribed, released)
        for subscribed in subscriptions.values()
    ):
        return None
    return UNREACHED_SITUATIONS(policy=policy, subscriptions=", ".join(subscriptions))
