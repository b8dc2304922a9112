"""A network of brokers for tests: states, ordered links between them, and a count of what was sent."""

from __future__ import annotations

import random
from collections import Counter, deque
from dataclasses import dataclass, field

from situ.lang.tags import TagSet
from situ.protocol.hop_by_hop import (
    BrokerEffect,
    BrokerInput,
    BrokerMessage,
    BrokerState,
    FilterableEvent,
    FromBroker,
    HandOver,
    JoinOverlay,
    PublishScoped,
    RefuseInput,
    ScopedAdvertisement,
    ScopedSubscription,
    ToBroker,
    WithdrawSubscription,
    step,
)
from situ.scopes.graph import ScopeGraph
from tests.oracles.visibility import Brokers


@dataclass
class BrokerNetwork:
    """Brokers that have joined their overlays. Every call runs until nothing is under way.

    Links keep the order; which of them is served next is drawn, if there are dice.
    """

    graph: ScopeGraph
    brokers: Brokers
    dice: random.Random | None = None
    states: dict[str, BrokerState] = field(default_factory=dict)
    sent: Counter[str] = field(default_factory=Counter)
    handed: list[HandOver] = field(default_factory=list)
    links: dict[tuple[str, str], deque[BrokerMessage]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, neighbours in self.brokers.neighbours.items():
            self.states[name] = BrokerState(name, self.graph, tuple(sorted(neighbours)))
        for name, scopes in self.brokers.overlays.items():
            for scope in sorted(scopes):
                self.give(name, JoinOverlay(scope))

    def give(self, broker: str, *given: BrokerInput) -> None:
        """Let something happen at a broker, and all that follows."""
        for each in given:
            self.begin(broker, each)
        while self.links:
            names = list(self.links)
            link = names[0] if self.dice is None else self.dice.choice(names)
            message = self.links[link].popleft()
            if not self.links[link]:
                del self.links[link]
            self.begin(link[1], FromBroker(link[0], message))

    def begin(self, broker: str, given: BrokerInput) -> None:
        """Let something happen, and leave what follows under way."""
        for effect in step(self.states[broker], given):
            self._do(broker, effect)

    def _do(self, broker: str, effect: BrokerEffect) -> None:
        match effect:
            case ToBroker(to=to, message=message):
                self.sent[type(message).__name__] += 1
                self.links.setdefault((broker, to), deque()).append(message)
            case HandOver():
                self.handed.append(effect)
            case RefuseInput(reason=reason):
                raise ValueError(reason)

    def advertise(self, broker: str, id: str, tags: TagSet, where: str = "") -> None:
        self.give(broker, ScopedAdvertisement(id=id, client=id.partition("/")[0], tags=tags, where=where))

    def subscribe(self, broker: str, id: str, tags: TagSet, where: str = "") -> None:
        self.give(broker, ScopedSubscription(id=id, client=id.partition("/")[0], tags=tags, where=where))

    def withdraw(self, broker: str, id: str) -> None:
        self.give(broker, WithdrawSubscription(id))

    def publish(self, broker: str, ad: str, key: str, event: FilterableEvent) -> list[HandOver]:
        """Who is handed the event."""
        before = len(self.handed)
        self.give(broker, PublishScoped(ad, key, event))
        return self.handed[before:]
