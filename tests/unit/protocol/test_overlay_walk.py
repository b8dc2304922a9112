"""The way of an event as the CERI paper walks it: two zones with a gateway, routers and children each, in six steps."""

from __future__ import annotations

import pytest

from situ.protocol.overlay import election
from situ.protocol.overlay.effects import Deliver, FromRouter, SendRouter, SendZone
from situ.protocol.overlay.messages import Forward, GatewayForward
from situ.protocol.overlay.state import OverlayState
from situ.protocol.simulator.scenario import read_scenario
from situ.protocol.simulator.simulation import Simulation

TWO_ZONES = """
zones:
  a: [a1, a2, a3]
  b: [b1, b2]
events:
  Temperature: {celsius: double}
  Fault: {text: string}
clients:
  p: {at: a2, advertises: {readings: {type: Temperature}}}
  q: {at: a2, subscribes: {all: {types: [Temperature]}}}
  s: {at: a3, subscribes: {all: {types: [Temperature]}}}
  t: {at: b2, subscribes: {all: {types: [Temperature], durable: true}}}
  u: {at: b1, subscribes: {all: {types: [Temperature]}}}
  v: {at: a1, subscribes: {faults: {types: [Fault]}}}
actions:
  - {at: 10, do: publish, who: p, name: readings, data: {celsius: 81.5}}
lasting: 12
quiet: 5
"""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Simulation:
    """A run in which a1 and b1 are elected, as in the figure."""

    def patience(state: OverlayState) -> float:
        return 0.0 if state.me.endswith("1") else 3.0

    monkeypatch.setattr(election, "_jitter", patience)
    simulation = Simulation(read_scenario(TWO_ZONES, "two-zones.yaml"), 1, record=True)
    assert simulation.run().violation is None
    return simulation


def test_the_trails_are_those_of_the_paper(run: Simulation) -> None:
    gateways = {host.zone: host.name for host in run.hosts.values() if host.is_acting(run.now)}
    assert gateways == {"a": "a/a1", "b": "b/b1"}
    forwards, deliveries = [], []
    trails: dict[str, tuple[str, ...]] = {}
    for name, _, _, given, effects in run.recorded:
        message = given.message if isinstance(given, FromRouter) else None
        if isinstance(message, Forward | GatewayForward):
            trails[name] = (*message.trail, name)
        for effect in effects:
            if isinstance(effect, SendRouter | SendZone) and isinstance(effect.message, Forward | GatewayForward):
                to = effect.to if isinstance(effect, SendRouter) else effect.zone
                phase = effect.message.phase if isinstance(effect.message, Forward) else "inter"
                forwards.append((name, to, phase, effect.message.trail))
            elif isinstance(effect, Deliver):
                deliveries.append((name, effect.client))
    # 2: from the router of the publisher to interested routers of its zone, and to the gateway.
    assert ("a/a2", "a/a3", "zone", ("a/a2",)) in forwards
    assert ("a/a2", "a/a1", "zone", ("a/a2",)) in forwards
    # 3: from gateway to gateway. 4: from there to interested routers.
    assert ("a/a1", "b", "inter", ("a/a2", "a/a1")) in forwards
    assert ("b/b1", "b/b2", "fan", ("a/a2", "a/a1", "b/b1")) in forwards
    assert len(forwards) == 4
    # 5: from routers to clients, and to nobody else.
    assert sorted(deliveries) == [("a/a2", "q"), ("a/a3", "s"), ("b/b1", "u"), ("b/b2", "t")]
    # One router between children of one, two inside a zone, four between zones.
    assert trails["a/a3"] == ("a/a2", "a/a3")
    assert trails["b/b2"] == ("a/a2", "a/a1", "b/b1", "b/b2")


def test_flooding_delivers_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for text in (TWO_ZONES, TWO_ZONES + "flood: true\n"):
        simulation = Simulation(read_scenario(text, "two-zones.yaml"), 1)
        assert simulation.run().violation is None
        found.append({id: sorted(map(str, keys)) for id, keys in simulation.checks.received.items()})
    assert found[0] == found[1]
    assert sum(map(len, found[0].values())) == 4
