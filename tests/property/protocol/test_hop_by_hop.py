"""Generated broker networks: hop by hop, what is visible is delivered once, in any graph and any order of messages."""

from __future__ import annotations

import itertools
import random

from situ.lang.tags import TagSet
from situ.protocol.hop_by_hop import transformation_path
from situ.scopes.graph import ScopeGraph
from tests.broker_network import BrokerNetwork
from tests.oracles.visibility import Brokers, travel, visible
from tests.property.scopes.test_visibility_plan import assert_valley_free, brokers_of
from tests.scopes import make_brokers, make_event, make_graph, make_tags
from tests.volume import cases


class Scenario:
    """A network with clients that subscribe and advertise at brokers where they may."""

    def __init__(self, seed: int, *, torn: bool = False) -> None:
        self.dice = dice = random.Random(seed)
        self.graph: ScopeGraph = make_graph(dice, most_dimensions=3, most_scopes=4)
        self.brokers = make_brokers(dice, self.graph)
        if torn:
            self.brokers = _torn(self.brokers, dice)
        self.network = BrokerNetwork(self.graph, self.brokers, dice)
        self.ads = dict(self._clients("p", 3))
        self.subs = dict(self._clients("c", 4))
        declared = [*self.ads, *self.subs]
        dice.shuffle(declared)
        for id in declared:
            tags, broker = (self.ads | self.subs)[id]
            (self.network.advertise if id in self.ads else self.network.subscribe)(broker, id, tags)

    def _clients(self, letter: str, count: int) -> list[tuple[str, tuple[TagSet, str]]]:
        found = []
        for number in range(count):
            tags = make_tags(self.dice, self.graph)
            named = {tag for _, tag in tags.named if tag != "any"}
            if any(named <= overlay for overlay in self.brokers.overlays.values()):
                at = brokers_of(self.dice, self.brokers, self.graph, tags)
                found.append((f"{letter}{number}/x", (tags, at)))
        return found


def _torn(brokers: Brokers, dice: random.Random) -> Brokers:
    overlays = {
        each: frozenset(scope for scope in sorted(overlay) if dice.random() < 0.7)
        for each, overlay in brokers.overlays.items()
    }
    return Brokers(neighbours=brokers.neighbours, overlays=overlays)


@cases(60, 3_000)
def test_deliveries_are_those_of_a_flat_oracle(cases: int) -> None:
    delivered = 0
    for seed in range(cases):
        world = Scenario(seed)
        for ad, (advertised, broker) in world.ads.items():
            for number in range(4):
                event = make_event(world.dice)
                handed = world.network.publish(broker, ad, f"{ad}{number}", event)
                got = sorted(each.subscription for each in handed)
                expected = sorted(
                    id for id, (tags, _) in world.subs.items() if visible(world.graph, event, advertised, tags)
                )
                assert got == expected, (seed, ad, event)
                delivered += len(got)
                for each in handed:
                    assert_way(world, transformation_path(each.way))
    assert delivered > cases


def assert_way(world: Scenario, paths: tuple[tuple[tuple[str, ...], ...], ...]) -> None:
    """One step in one dimension at a time; up, then down."""
    for before, after in itertools.pairwise(paths):
        assert sum(one != other for one, other in zip(before, after, strict=True)) == 1
    named = [(name, path) for name, path in zip(world.graph.dimensions, paths[-1], strict=True) if path[0] not in "⊥–"]
    assert_valley_free(world.graph, tuple(name for name, _ in named), tuple(path for _, path in named))


@cases(40, 2_000)
def test_overlays_that_are_torn_never_let_more_through_and_keep_no_more_back(cases: int) -> None:
    """Between what is visible, and what a search over all transition paths finds."""
    delivered = lost = 0
    for seed in range(cases):
        world = Scenario(100_000 + seed, torn=True)
        for ad, (advertised, broker) in world.ads.items():
            event = make_event(world.dice)
            got = {each.subscription for each in world.network.publish(broker, ad, ad, event)}
            for id, (tags, at) in world.subs.items():
                arrives = travel(world.graph, event, world.brokers, (advertised, broker), (tags, at)) is not None
                seen = visible(world.graph, event, advertised, tags)
                assert arrives <= (id in got) <= seen, (seed, ad, id)
                delivered += id in got
                lost += seen and id not in got
    assert delivered > cases / 4
    assert lost > cases / 20, "some events must have been kept back, or nothing was tested"


@cases(25, 1_000)
def test_what_is_withdrawn_leaves_nothing_behind(cases: int) -> None:
    for seed in range(cases):
        world = Scenario(200_000 + seed)
        left = dict(world.subs)
        for id, (_, broker) in world.subs.items():
            if world.dice.random() < 0.6:
                world.network.withdraw(broker, id)
                del left[id]
        for state in world.network.states.values():
            assert {entry.subscription for entry in state.entries()} <= left.keys()
        for ad, (advertised, broker) in world.ads.items():
            event = make_event(world.dice)
            got = sorted(each.subscription for each in world.network.publish(broker, ad, ad, event))
            assert got == sorted(id for id, (tags, _) in left.items() if visible(world.graph, event, advertised, tags))
