"""Routers of five zones under random faults: everything holds, a run is a function of its seed, planted bugs are found.

A planted bug replaces one rule of the protocol. Each is one that a tired programmer makes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.protocol.overlay import clients, election, forwarding, machine, membership, tables
from situ.protocol.overlay.machine import new_state, step
from situ.protocol.overlay.messages import Forward, ForwardAck
from situ.protocol.simulator.random_scenario import random_scenario
from situ.protocol.simulator.scenario import Action, Scenario, declared_world, read_scenario
from situ.protocol.simulator.simulation import Outcome, Simulation
from situ.protocol.simulator.story import shrink, tell_story
from situ.protocol.simulator.transport import Store
from tests.unit.protocol.test_overlay_walk import TWO_ZONES


def outcome(seed: int, **world: Any) -> Outcome:
    return Simulation(random_scenario(seed, **world), seed).run()


# ── everything holds ──────────────────────────────────────────────────────────────────────────────


def test_scoped_and_flooded_deliver_the_same() -> None:
    for seed in range(1, 4):
        received = []
        for flood in (False, True):
            run = Simulation(random_scenario(seed, faults=0, flood=flood), seed)
            assert run.run().violation is None
            durable = run.checks.wishes.keys()
            received.append({id: keys for id, keys in run.checks.received.items() if id in durable})
        # What is owed is the same; what was published before a subscription was in force may differ.
        owed = [{(id, key) for id, keys in each.items() for key in keys if key.seq > 1} for each in received]
        assert len(owed[0] ^ owed[1]) <= len(owed[0]) // 100


# ── a run is a function of its seed ───────────────────────────────────────────────────────────────


def test_the_same_seed_gives_the_same_run() -> None:
    first, second = (outcome(5, zones=3, routers=4) for _ in range(2))
    assert first == second
    assert first.messages != outcome(6, zones=3, routers=4).messages


def test_recorded_runs_replay_identically() -> None:
    scenario = random_scenario(9, zones=3, routers=4, clients=20)
    run = Simulation(scenario, 9, record=True)
    run.run()
    states: dict[tuple[str, int], Any] = {}
    for name, incarnation, at, given, effects in run.recorded:
        state = states.get((name, incarnation))
        if state is None:
            layout = run.hosts[name].state.layout if run.hosts[name].state else None
            assert layout is not None
            state = new_state(name, incarnation, layout, scenario.timing, run.world.meaning)
            states[name, incarnation] = state
        assert step(state, given, at) == effects


# ── planted bugs ──────────────────────────────────────────────────────────────────────────────────

Plant = Callable[[pytest.MonkeyPatch], None]


def no_term_check(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(election, "is_over", lambda state, term: False)
    patch.setattr(membership, "is_over", lambda state, term: False)


def no_seen(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(forwarding, "is_new", lambda state, event, now: True)


def acknowledged_before_stored(patch: pytest.MonkeyPatch) -> None:
    def on_forward(state: Any, sender: str, message: Any, now: float) -> None:
        forwarding.on_forward(state, sender, message, now)
        inbox = state.inboxes.get(sender)
        if inbox is not None and (inbox.channel, inbox.taken) == (message.channel, message.place):
            state.send(sender, ForwardAck(message.channel, message.place))

    transition = machine.TRANSITIONS[Forward]
    patch.setitem(machine.TRANSITIONS, Forward, replace(transition, handler=on_forward))


def interest_after_the_acknowledgement(patch: pytest.MonkeyPatch) -> None:
    tell = tables.tell

    def wrong(state: Any, table: str, to: str, now: float, *, at_once: bool = False) -> None:
        if table != "interest" or state.table_sent(table, to).whole:
            tell(state, table, to, now, at_once=at_once)  # differences wait for the next heartbeat

    patch.setattr(tables, "tell", wrong)


def lease_read_instead_of_compared(patch: pytest.MonkeyPatch) -> None:
    compare_and_set = Store.compare_and_set

    def wrong(store: Store, key: str, expected: Any, value: Any) -> bool:
        return compare_and_set(store, key, store.keys.get(key) if key == "gateway" else expected, value)

    patch.setattr(Store, "compare_and_set", wrong)


def outbox_dropped_at_the_announcement(patch: pytest.MonkeyPatch) -> None:
    change = forwarding.change_gateway

    def wrong(state: Any, former: str, now: float) -> None:
        state.stranded = []
        for item in state.outboxes[former].items if former in state.outboxes else ():
            item.duty = False
        change(state, former, now)

    patch.setattr(forwarding, "change_gateway", wrong)


def epoch_applied_to_half(patch: pytest.MonkeyPatch) -> None:
    def wrong(state: Any, event: Any, want: Any, stamped: Any) -> bool:
        return stamped.visible(event.tags, want.tags, event.bits) and (
            not want.where or state.meaning.passes(want.where, event.type, event.data)
        )

    patch.setattr(forwarding, "is_wanted", wrong)


def stale_client_at(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(clients, "is_former", lambda known, session: True)


def small(seed: int, kinds: tuple[str, ...], faults: int) -> Scenario:
    return random_scenario(seed, kinds=kinds, faults=faults, zones=3, routers=4, clients=30)


def restless(seed: int, kinds: tuple[str, ...], faults: int) -> Scenario:
    """Clients go to another router and back while messages of their zone are slow."""
    scenario = small(seed, kinds, faults)
    moves = [
        Action(at=4.0 + 0.1 * place + 0.004 * number, do="move", who=each.name, to=to)
        for place, each in enumerate(scenario.clients)
        for number, to in enumerate([*scenario.zones[each.router.partition("/")[0]]][:3] * 2)
    ]
    return replace(scenario, actions=tuple(sorted((*scenario.actions, *moves), key=lambda each: each.at)))


@pytest.mark.parametrize(
    ("plant", "scenario", "seeds", "kinds", "faults"),
    [
        (no_term_check, small, range(1, 5), ("depose", "pause"), 4),
        (no_seen, small, range(1, 10), ("depose", "duplicate", "crash"), 6),
        (acknowledged_before_stored, small, range(5, 13), ("crash", "stop-store"), 14),
        (interest_after_the_acknowledgement, small, range(1, 10), ("pause",), 1),
        (lease_read_instead_of_compared, small, range(1, 5), ("depose",), 1),
        (outbox_dropped_at_the_announcement, small, range(1, 10), ("depose",), 4),
        (epoch_applied_to_half, small, range(1, 10), ("pause",), 1),
        (stale_client_at, restless, range(1, 9), ("jitter", "delay"), 8),
    ],
)
def test_a_planted_bug_is_found(
    plant: Plant,
    scenario: Callable[[int, tuple[str, ...], int], Scenario],
    seeds: range,
    kinds: tuple[str, ...],
    faults: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant(monkeypatch)
    found = [seed for seed in seeds if Simulation(scenario(seed, kinds, faults), seed).run().violation is not None]
    assert found
    monkeypatch.undo()
    for seed in found:
        assert Simulation(scenario(seed, kinds, faults), seed).run().violation is None


# ── what a run that fails comes to ────────────────────────────────────────────────────────────────


def test_a_failing_run_is_made_short_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    outbox_dropped_at_the_announcement(monkeypatch)
    for seed in range(1, 20):
        scenario = small(seed, ("depose",), 4)
        world = declared_world(scenario)
        found = Simulation(scenario, seed, world=world).run().violation
        if found is not None:
            break
    assert found is not None
    shorter = shrink(scenario, seed, found, world)
    assert len(shorter.actions) < len(scenario.actions) / 2
    story = tell_story(shorter, seed, world)
    assert story is not None
    assert story.violation.rule == found.rule
    assert any("depose" in line for line in story.lines)
    assert story.diagram.startswith("sequenceDiagram\n")
    assert story.violation.about in story.lines[-1]


def test_a_run_that_holds_has_no_story() -> None:
    assert tell_story(read_scenario(TWO_ZONES, "two-zones.yaml"), 1) is None


def test_a_storm_of_subscriptions_is_a_few_messages() -> None:
    scenario = read_scenario(TWO_ZONES, "two-zones.yaml")
    (wish,) = (each.wishes["all"] for each in scenario.clients if each.name == "s")
    storm = tuple(
        Action(
            at=5 + number / 2000,
            do="subscribe",
            who="s",
            name=f"n{number}",
            wish=replace(wish, where=f"celsius > {number}"),
        )
        for number in range(2000)
    )
    run = Simulation(replace(scenario, actions=storm, lasting=8.0, quiet=10.0), 1)
    found = run.run()
    assert found.violation is None
    assert found.messages["InterestDelta"] < 400


def test_all_that_is_wrong_with_a_scenario_is_told_at_once() -> None:
    text = TWO_ZONES.replace("{at: a2, adv", "{at: a9, adv", 1) + "lastin: 3\n"
    assert "a9" in text
    with pytest.raises(SituError) as wrong:
        read_scenario(text, "two-zones.yaml")
    assert {each.code.code for each in wrong.value.problems} == {"P103", "P119"}
