"""Durable consumers on the bus: one for each durable subscription, there before anybody relies on it.

A subscription that changes keeps its consumer: it reads the old group to its end and the new one, and only the new one
once nothing of the old is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from situ.bus.interface import Bus
from situ.bus.names import consumer_of, subscription_of
from situ.deployment import Deployment
from situ.edge.handing_over import is_guarded
from situ.subscription.model import Subscription
from situ.subscription.targets import group_of


class DurableConsumers:
    """Keeps the consumers of a zone equal to its durable subscriptions."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._groups: dict[str, tuple[str, ...]] = {}
        """Consumer → the groups it reads, the newest last."""
        self._guarded: set[str] = set()
        """Those whose messages are decided once more when they are handed over."""

    async def load(self) -> None:
        """What is there from before."""
        known = await self._bus.consumers()
        self._groups = {each.name: each.groups for each in known}
        self._guarded = {each.name for each in known if each.guarded}

    async def ensure(self, deployment: Deployment) -> None:
        """Every durable subscription has its consumer; among scopes it is guarded."""
        guarded = is_guarded(deployment)
        for subscription in deployment.routed.values():
            if not subscription.durable:
                continue
            name, group = consumer_of(subscription.id), group_of(subscription)
            have = self._groups.get(name, ())
            if not have or have[-1] != group or guarded != (name in self._guarded):
                wanted = (*(each for each in have if each != group), group)
                await self._ensure(name, wanted, guarded=guarded)

    async def _ensure(self, name: str, groups: tuple[str, ...], *, guarded: bool) -> None:
        await self._bus.ensure_consumer(name, groups, guarded=guarded)
        self._groups[name] = groups
        (self._guarded.add if guarded else self._guarded.discard)(name)

    async def _drop(self, name: str) -> None:
        await self._bus.drop_consumer(name)
        del self._groups[name]
        self._guarded.discard(name)

    async def drop(self, subscriptions: Iterable[str]) -> None:
        """These subscriptions are over, with all that waits for them."""
        for name in map(consumer_of, subscriptions):
            if name in self._groups:
                await self._drop(name)

    async def tidy(self, deployment: Deployment) -> None:
        """Once every engine works with the deployment: nobody writes any more to what only the one before had."""
        declared = deployment.subscriptions
        for name in [name for name in self._groups if subscription_of(name) not in declared]:
            await self._drop(name)
        for name in [name for name, groups in self._groups.items() if not _is_durable(declared, name)]:
            await self._drop(name)
        if any(len(groups) > 1 for groups in self._groups.values()):
            idle = {each.name for each in await self._bus.consumers() if not each.waiting and not each.unacknowledged}
            for name, groups in tuple(self._groups.items()):
                if len(groups) > 1 and name in idle and groups[-1] == _group(deployment, name):
                    await self._ensure(name, groups[-1:], guarded=name in self._guarded)


def _group(deployment: Deployment, name: str) -> str:
    """Where engines put what a consumer reads, under this deployment. Another may be about to be in force."""
    return group_of(deployment.as_routed(deployment.subscriptions[subscription_of(name)]))


def _is_durable(declared: Mapping[str, Subscription], name: str) -> bool:
    found = declared.get(subscription_of(name))
    return found is not None and found.durable
