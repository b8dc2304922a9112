"""Whose deliveries the engines counted: they count delivery groups, people ask about subscriptions.

Durable subscriptions with the same types and filter share a group; each of them is delivered all of it. Groups of
subscriptions that are gone keep their names until the run ends, and one that goes over to another group keeps what it
had got, so that sums never fall.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from situ.deployment import Deployment
from situ.host.engines import Counts
from situ.interpretation.model import ROOT
from situ.subscription import Subscription
from situ.subscription.targets import group_of


class Delivered:
    """Delivery groups of the deployments of a run."""

    def __init__(self) -> None:
        self._version = 0
        self._groups: dict[str, str] = {}
        self._known: dict[str, Subscription] = {}
        self._terms: dict[str, str] = {}
        self._counted: Mapping[str, int] = {}
        """Group → events, when somebody asked last."""
        self._offsets: dict[str, int] = {}
        """Subscription → what it got in other groups, less what its own had before it came."""

    def learn(self, deployment: Deployment) -> None:
        """Durable subscriptions as this deployment declares them; only what changed is worked out."""
        if deployment.version <= self._version:
            return
        self._version = deployment.version
        for id, subscription in deployment.routed.items():
            if subscription.context != ROOT:
                self._terms[id] = subscription.context
            else:
                self._terms.pop(id, None)
            if subscription.durable and self._known.get(id) != subscription:
                self._known[id] = subscription
                self._go_over(id, group_of(subscription))

    def _go_over(self, id: str, group: str) -> None:
        before = self._groups.get(id, group)
        self._groups[id] = group
        moved = self._counted.get(before, 0) - self._counted.get(group, 0)
        if moved:
            self._offsets[id] = self._offsets.get(id, 0) + moved

    def by_subscription(self, counts: Counts) -> Mapping[str, int]:
        """Events delivered, by subscription; those that got none are left out."""
        self._counted = dict(counts.groups)
        numbers = {id: self._counted.get(group, 0) + self._offsets.get(id, 0) for id, group in self._groups.items()}
        return {**{id: number for id, number in numbers.items() if number}, **counts.live}

    def terms(self, subscriptions: Iterable[str]) -> Mapping[str, str]:
        """The contexts of those of the subscriptions that are not in root's terms."""
        return {id: self._terms[id] for id in subscriptions if id in self._terms}
