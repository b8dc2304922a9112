"""Trees of routers as plain data: links that deliver as it happens, and what one that knows everything would say."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from situ.quality.match.match_index import MatchIndex
from situ.quality.match.satisfaction import Satisfaction, match
from situ.quality.model.declarations import Expectation, Profile, QualityProperty
from situ.quality.overlay.forwarder import (
    AdviceUndeliverable,
    AdviceWanted,
    AdvisePublisher,
    Effect,
    Input,
    LinkDown,
    LinkUp,
    Message,
    MessageReceived,
    OfferForwarder,
    ProfileLearned,
    ProfileLost,
    SendToNeighbour,
    step,
)
from situ.quality.overlay.offers import profile_after_link

Ends = tuple[str, str]


@dataclass(slots=True)
class Forest:
    """Routers, the links between them in both directions, and messages on their way."""

    dice: random.Random
    routers: dict[str, OfferForwarder] = field(default_factory=dict)
    standings: dict[str, MatchIndex] = field(default_factory=dict)
    figures: dict[Ends, Mapping[str, float]] = field(default_factory=dict)
    way: dict[Ends, deque[Message]] = field(default_factory=dict)
    sent: Counter[Ends] = field(default_factory=Counter)
    adapted: list[tuple[str, AdvisePublisher]] = field(default_factory=list)
    impossible: list[AdviceUndeliverable] = field(default_factory=list)
    epochs: Counter[frozenset[str]] = field(default_factory=Counter)

    def add(self, name: str, *, most: int) -> None:
        self.routers[name] = OfferForwarder(name=name, most=most)
        self.standings[name] = MatchIndex()

    def give(self, name: str, given: Input) -> None:
        for effect in step(self.routers[name], given):
            self._do(name, effect)

    def _do(self, name: str, effect: Effect) -> None:
        match effect:
            case SendToNeighbour(neighbour=neighbour, message=message):
                self.sent[name, neighbour] += 1
                self.way.setdefault((name, neighbour), deque()).append(message)
            case ProfileLearned(profile=profile, pool=pool):
                self.standings[name].put_profile(profile, pool)
            case ProfileLost(profile=profile):
                self.standings[name].drop_profile(profile)
            case AdvisePublisher():
                self.adapted.append((name, effect))
            case AdviceUndeliverable():
                self.impossible.append(effect)

    def deliver(self, most: int | None = None) -> None:
        """Deliver messages, of a link in order, of links as it happens; all, or at most so many."""
        while (waiting := sorted(ends for ends, way in self.way.items() if way)) and most != 0:
            ends = self.dice.choice(waiting)
            self.give(ends[1], MessageReceived(neighbour=ends[0], message=self.way[ends].popleft()))
            most = most - 1 if most is not None else None

    def link(
        self, one: str, other: str, figures: tuple[Mapping[str, float], Mapping[str, float]], *, anew: bool = False
    ) -> None:
        """Make a link, or change its figures, or make it anew; messages of a former one may still be on their way."""
        ends = [(one, other), (other, one)]
        if ends[0] not in self.figures or anew:
            self.epochs[frozenset((one, other))] += 1
        for (here, there), figure in self.dice.sample(list(zip(ends, figures, strict=True)), 2):
            self.figures[here, there] = figure
            self.give(here, LinkUp(neighbour=there, epoch=self.epochs[frozenset((one, other))], figures=figure))
            self.deliver(self.dice.choice((0, 1)))

    def unlink(self, one: str, other: str) -> None:
        for here, there in self.dice.sample([(one, other), (other, one)], 2):
            del self.figures[here, there]
            self.give(here, LinkDown(neighbour=there))
            self.deliver(self.dice.choice((0, 1)))

    def advise(self, name: str, advice: AdviceWanted) -> None:
        self.give(name, advice)
        self.deliver()

    def neighbours(self, name: str) -> list[str]:
        return sorted(there for here, there in self.figures if here == name)

    def everything(self, name: str) -> Iterator[tuple[str, Profile, str]]:
        """Every profile of every router that this one is connected with, moved along its path: home, profile, pool."""
        waiting: list[tuple[str, list[Ends]]] = [(name, [])]
        seen = {name}
        while waiting:
            home, path = waiting.pop()
            for pool, profiles in self.routers[home].own.items():
                for profile in profiles.values():
                    moved = profile
                    for ends in path:
                        moved = profile_after_link(moved, self.figures[ends])
                    yield home, moved, pool
            for there in self.neighbours(home):
                if there not in seen:
                    seen.add(there)
                    waiting.append((there, [(there, home), *path]))

    def central(self, name: str, expectation: Expectation, pools: frozenset[str]) -> Satisfaction:
        """What one that knows all profiles as they are here would say."""
        return match(expectation, [profile for _, profile, pool in self.everything(name) if pool in pools]).state


def make_figures(dice: random.Random, properties: tuple[QualityProperty, ...]) -> dict[str, float]:
    made: dict[str, float] = {}
    for about in properties:
        match about.hop:
            case "add":
                made[about.id] = dice.choice((0.0, 1.0, 2.0))
            case "multiply":
                made[about.id] = dice.choice((1.0, 0.5, 0.75))
            case "worst":
                made[about.id] = float(dice.randint(3, 10))
    return {id: value for id, value in made.items() if dice.random() < 0.6}
