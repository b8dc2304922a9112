"""Hop by hop, as in the paper on multiscoping: its figure 2, what its requirements say, and what brokers refuse."""

from __future__ import annotations

import pytest

from situ.lang.tags import TagSet
from situ.protocol.hop_by_hop import (
    AskedScope,
    BrokerState,
    FromBroker,
    HandOver,
    JoinOverlay,
    PublishScoped,
    RefuseInput,
    ScopedAdvertisement,
    ScopedSubscription,
    ScopeJoined,
    WithdrawSubscription,
    delivery_path,
    step,
    transformation_path,
)
from situ.scopes.graph import ScopeGraph
from tests.broker_network import BrokerNetwork
from tests.oracles.visibility import Brokers
from tests.scopes import EVERYTHING, PAPER, PAPER_BROKERS, Passed, dimension, graph_of, tags

TWO = graph_of(PAPER.dimensions["d1"], PAPER.dimensions["d2"])
FIGURE_2 = Brokers(
    # B4 closes a cycle, and is in no overlay: the figure has it, and nothing the paper says leads over it.
    neighbours={
        "B1": ["B2", "B4", "B5"],
        "B2": ["B1", "B3", "B4"],
        "B3": ["B2"],
        "B4": ["B1", "B2", "B5"],
        "B5": ["B1", "B4"],
    },
    overlays={**PAPER_BROKERS.overlays, "B4": frozenset()},
)


def figure_2(graph: ScopeGraph = TWO) -> BrokerNetwork:
    network = BrokerNetwork(graph, FIGURE_2)
    network.subscribe("B5", "Y/s", tags("is lo", graph))
    network.advertise("B3", "X/a", tags("ls ch", graph))
    return network


def test_the_example_of_figure_2() -> None:
    """Y subscribes with {(is), (lo)}, X advertises with {(ls), (ch)} and publishes n."""
    (handed,) = figure_2().publish("B3", "X/a", "n", EVERYTHING)
    assert (handed.client, handed.subscription, handed.key) == ("Y", "Y/s", "n")

    ls = ("ls",), ("ls", "us"), ("ls", "us", "es"), ("ls", "us", "es", "fs"), ("ls", "us", "es", "fs", "is")
    ch = tuple(("ch", "bo", "fr", "eu", "uk", "lo")[:length] for length in range(1, 7))
    assert [(at.broker, *(each.path for each in at.carried)) for at in handed.way] == [
        ("B3", ls[0], ch[0]),
        ("B3", ls[1], ch[0]),
        ("B3", ls[1], ch[1]),
        ("B3", ls[1], ch[2]),
        ("B2", ls[1], ch[2]),
        ("B2", ls[2], ch[2]),
        ("B2", ls[2], ch[3]),
        ("B1", ls[2], ch[3]),
        ("B1", ls[3], ch[3]),
        ("B1", ls[3], ch[4]),
        ("B5", ls[3], ch[4]),
        ("B5", ls[4], ch[4]),
        ("B5", ls[4], ch[5]),
    ]
    assert delivery_path(handed.way) == ("B3", "B2", "B1", "B5")
    carried = transformation_path(handed.way)
    assert len(carried) - 1 == 9, "transformations"
    assert len(handed.way) - len(carried) == 3, "forwardings"
    # In both dimensions the event goes up as far as B2, and down from B1 on.
    assert [tuple(each.up for each in at.carried) for at in handed.way[6:10]] == [
        (True, True),
        (True, True),
        (False, True),
        (False, False),
    ]


def test_the_visibility_path_of_each_dimension() -> None:
    (handed,) = figure_2().publish("B3", "X/a", "n", EVERYTHING)
    for place, path in enumerate(("ls us es fs is", "ch bo fr eu uk lo")):
        wanted = path.split()
        carried = list(dict.fromkeys(at.carried[place].path for at in handed.way))
        assert carried == [tuple(wanted[:length]) for length in range(1, len(wanted) + 1)]


def test_subscriptions_stay_inside_the_overlays() -> None:
    network = figure_2()
    # Producers without limits may be anywhere. All else stays where the scopes are.
    (nowhere,) = network.states["B4"].entries()
    assert [each.scope for each in nowhere.asked] == ["⊥", "⊥"]
    asked = {entry.asked for entry in network.states["B3"].entries()}
    assert {each.scope for demand in asked for each in demand} == {"ls", "us", "ch", "bo", "fr", "⊥"}
    assert all(each.up for demand in asked for each in demand if each.is_real)
    assert (AskedScope("is"), AskedScope("lo")) in {entry.asked for entry in network.states["B5"].entries()}


def test_a_notification_goes_only_where_an_entry_leads() -> None:
    network = figure_2()
    network.publish("B3", "X/a", "n", EVERYTHING)
    assert network.sent["Notification"] == 3


@pytest.mark.parametrize(
    ("producer", "consumer", "expected"),
    [
        ("ls ch", "is lo tm", False),
        ("ls ch", "is tm any", False),
        ("ls ch any", "is lo tm", True),
        ("ls ch any", "is tm any", True),
    ],
)
def test_the_rows_of_several_dimensions(producer: str, consumer: str, expected: bool) -> None:
    overlays = {**FIGURE_2.overlays, "B5": FIGURE_2.overlays["B5"] | {"tm"}}
    network = BrokerNetwork(PAPER, Brokers(neighbours=FIGURE_2.neighbours, overlays=overlays))
    network.subscribe("B5", "Y/s", tags(consumer, PAPER))
    network.advertise("B3", "X/a", tags(producer, PAPER))
    handed = network.publish("B3", "X/a", "n", EVERYTHING)
    assert [each.client for each in handed] == (["Y"] if expected else [])


def test_filters_at_a_boundary_hold_events_up() -> None:
    graph = graph_of(
        dimension("d1", {"ls": "us", "us": "es", "is": "fs", "fs": "es"}, output_us="alarm"), PAPER.dimensions["d2"]
    )
    network = figure_2(graph)
    assert network.publish("B3", "X/a", "quiet", Passed(frozenset())) == []
    assert network.sent["Notification"] == 1, "B2 has the boundary of us"
    assert len(network.publish("B3", "X/a", "loud", Passed(frozenset({"alarm"})))) == 1


def test_a_shared_member_does_not_connect() -> None:
    graph = graph_of(dimension("d", {"below": "left right"}))
    network = BrokerNetwork(graph, Brokers(neighbours={"B": []}, overlays={"B": frozenset({"left", "right", "below"})}))
    network.subscribe("B", "right/s", tags("right", graph))
    network.subscribe("B", "below/s", tags("below", graph))
    network.advertise("B", "p/left", tags("left", graph))
    assert [each.client for each in network.publish("B", "p/left", "n", EVERYTHING)] == ["below"]


# ── what the paper requires of a system with multiscoping ─────────────────────────────────────────


def ring(size: int) -> BrokerNetwork:
    """Brokers in a ring, all in the one overlay: every event could come twice."""
    names = [f"B{number}" for number in range(size)]
    neighbours = {name: [names[place - 1], names[(place + 1) % size]] for place, name in enumerate(names)}
    graph = graph_of(dimension("d", {"line": "plant"}))
    overlays = {name: frozenset({"line", "plant"}) for name in names}
    return BrokerNetwork(graph, Brokers(neighbours=neighbours, overlays=overlays))


def tagged(scope: str) -> TagSet:
    return TagSet.of({"d": scope})


def test_a_client_receives_only_what_it_is_subscribed_to() -> None:
    network = ring(5)
    network.subscribe("B2", "c/s", tagged("plant"), where="alarm")
    network.advertise("B0", "p/a", tagged("line"))
    assert not network.publish("B0", "p/a", "quiet", Passed(frozenset()))
    assert network.publish("B0", "p/a", "loud", Passed(frozenset({"alarm"})))
    network.withdraw("B2", "c/s")
    assert not network.publish("B0", "p/a", "after", Passed(frozenset({"alarm"})))
    assert not any(list(state.entries()) for state in network.states.values()), "no residue"


def test_a_client_receives_only_from_others() -> None:
    network = ring(3)
    network.subscribe("B1", "p/s", tagged("line"))
    network.subscribe("B1", "q/s", tagged("line"))
    network.advertise("B1", "p/a", tagged("line"))
    assert [each.client for each in network.publish("B1", "p/a", "n", EVERYTHING)] == ["q"]


@pytest.mark.parametrize("size", [2, 3, 4, 7])
def test_a_client_receives_an_event_at_most_once_in_a_cycle(size: int) -> None:
    network = ring(size)
    network.subscribe("B0", "c/s", tagged("plant"))
    network.subscribe("B0", "c/t", tagged("line"))
    network.advertise(f"B{size // 2}", "p/a", tagged("line"))
    handed = network.publish(f"B{size // 2}", "p/a", "n", EVERYTHING)
    assert sorted(each.subscription for each in handed) == ["c/s", "c/t"]


def test_only_what_is_as_advertised_goes_on() -> None:
    network = ring(3)
    network.subscribe("B0", "c/s", tagged("line"))
    network.advertise("B1", "p/a", tagged("line"), where="alarm")
    with pytest.raises(ValueError, match="not as `p/a` advertises"):
        network.publish("B1", "p/a", "n", Passed(frozenset()))
    assert not network.handed


def test_overlays_may_grow_after_a_subscription() -> None:
    late = ring(4)
    network = BrokerNetwork(late.graph, Brokers(neighbours=late.brokers.neighbours, overlays={}))
    network.give("B0", JoinOverlay("plant"))
    network.subscribe("B0", "c/s", tagged("plant"))
    for name in ("B2", "B1", "B3"):
        network.give(name, JoinOverlay("line"))
        network.give(name, JoinOverlay("plant"))
    network.advertise("B2", "p/a", tagged("line"))
    assert [each.client for each in network.publish("B2", "p/a", "n", EVERYTHING)] == ["c"]


# ── what is refused, or ignored ───────────────────────────────────────────────────────────────────


def one() -> BrokerState:
    state = BrokerState("B", graph_of(dimension("d", {"line": "plant"})), ("C",))
    step(state, JoinOverlay("line"))
    return state


def reason(state: BrokerState, given: object) -> str:
    (effect,) = step(state, given)  # type: ignore[arg-type]  # of any kind
    assert isinstance(effect, RefuseInput)
    return effect.reason


def test_what_cannot_be_is_refused() -> None:
    state = one()
    foreign = ScopedAdvertisement(id="p/a", client="p", tags=tagged("plant"))
    assert "not in the overlay of `plant`" in reason(state, foreign)
    assert "not in the overlay of `plant`" in reason(
        state, ScopedSubscription(id="c/s", client="c", tags=tagged("plant"))
    )
    assert "no scope `moon`" in reason(state, JoinOverlay("moon"))
    assert "no client here advertises" in reason(state, PublishScoped("p/a", "n", EVERYTHING))
    assert "has subscribed" in reason(state, WithdrawSubscription("c/s"))
    assert "no neighbour" in reason(state, FromBroker("D", ScopeJoined("line")))


def test_what_comes_twice_changes_nothing() -> None:
    state = one()
    assert not step(state, JoinOverlay("line"))
    wanted = ScopedSubscription(id="c/s", client="c", tags=tagged("line"))
    step(state, wanted)
    assert "subscribed before" in reason(state, wanted)
    step(state, ScopedAdvertisement(id="p/a", client="p", tags=tagged("line")))
    published = PublishScoped("p/a", "n", EVERYTHING)
    assert [type(each) for each in step(state, published)] == [HandOver]
    assert "published before" in reason(state, published)
    told = step(state, FromBroker("C", ScopeJoined("line")))
    assert told
    assert not step(state, FromBroker("C", ScopeJoined("line")))


def test_a_withdrawn_subscription_does_not_come_back() -> None:
    """What was under way when it was withdrawn arrives behind the withdrawal, by another way."""
    network = ring(4)
    entries: list[FromBroker] = []
    network.begin("B0", ScopedSubscription(id="c/s", client="c", tags=tagged("line")))
    entries += [FromBroker("B0", message) for message in network.links[("B0", "B3")]]
    network.give("B0", WithdrawSubscription("c/s"))
    for each in entries:
        assert not step(network.states["B3"], each)
    assert not any(list(state.entries()) for state in network.states.values())
