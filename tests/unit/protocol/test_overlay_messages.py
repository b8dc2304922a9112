"""Every message between routers: what it does where it belongs, and what it gets when it does not.

From strangers, of old incarnations and terms, when it comes twice, and when it is none.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from situ.event.message import EventKey
from situ.lang.records import replace
from situ.lang.tags import NO_TAGS
from situ.protocol.effects import Report
from situ.protocol.overlay import machine
from situ.protocol.overlay.effects import (
    Append,
    Deliver,
    FetchDocument,
    FromRouter,
    GarbledRouter,
    SendRouter,
    SendZone,
)
from situ.protocol.overlay.machine import TRANSITIONS, step
from situ.protocol.overlay.messages import (
    Adopted,
    ClientAt,
    Confirmed,
    EpochConfirm,
    EpochLease,
    EpochNotice,
    External,
    ExternalAck,
    ExternalFull,
    Forward,
    ForwardAck,
    ForwardNack,
    GatewayAck,
    GatewayAnnounce,
    GatewayForward,
    Goodbye,
    Heartbeat,
    Hello,
    InterestAck,
    InterestDelta,
    InterestFull,
    OverlayEvent,
    OverlayMessage,
    Pull,
    SltAck,
    SltDelta,
    SltFull,
    StaleTerm,
    ZoneHello,
    ZoneInterest,
    ZoneInterestAck,
    ZoneInterestFull,
    ZonePull,
    ZoneSlt,
    ZoneSltAck,
    ZoneSltFull,
    decode_overlay,
    encode_overlay,
    want_of,
)
from situ.protocol.overlay.state import OverlayState
from situ.protocol.simulator.scenario import read_scenario
from situ.protocol.simulator.simulation import Host, Simulation
from tests.unit.protocol.test_overlay_walk import TWO_ZONES

QUIET = 8.0
WANT = want_of(("Temperature",), "celsius > 3", NO_TAGS, False)
EVENT = OverlayEvent(EventKey("x", 1, 1), "Temperature", {"celsius": 90.0}, NO_TAGS, 1, 0)


@pytest.fixture(scope="module")
def settled() -> Simulation:
    """Two zones in which everything has been said."""
    run = Simulation(replace(read_scenario(TWO_ZONES, "two-zones.yaml"), actions=(), lasting=QUIET, quiet=0.0), 1)
    assert run.run().violation is None
    return run


class Router:
    """One router of these, to be told something."""

    def __init__(self, host: Host, run: Simulation) -> None:
        self.host, self.run, self.now = host, run, QUIET
        assert host.state is not None
        # What is declared is shared and cannot be copied.
        memo: dict[int, Any] = {id(each): each for each in (run.world.meaning, *run.world.documents.values())}
        self.state: OverlayState = copy.deepcopy(host.state, memo)

    def told(self, message: OverlayMessage, sender: str, incarnation: int | None = None) -> list[Any]:
        of = self.run.hosts[sender].incarnation if sender in self.run.hosts else 1
        return step(self.state, FromRouter(sender, of if incarnation is None else incarnation, message), self.now)

    def known(self) -> str:
        state = self.state
        held = {key: (each.version, each.entries) for key, each in state.held.items()}
        parts = (held, state.matches.by_type, state.own, state.gateway, state.term, state.adopted, state.clients)
        return repr((*parts, [wait.then for wait in state.waits]))

    def tables(self) -> str:
        state = self.state
        parts = (state.sent, state.held, state.outboxes, state.zone_outboxes, state.matches.by_type, state.own)
        return repr((*parts, state.gateway, state.term, state.lease, state.adopted, state.waits, state.clients))


@pytest.fixture
def gateway(settled: Simulation) -> Router:
    return Router(next(host for host in settled.hosts.values() if host.zone == "a" and host.is_acting(QUIET)), settled)


@pytest.fixture
def member(settled: Simulation, gateway: Router) -> Router:
    return Router(
        next(host for host in settled.hosts.values() if host.zone == "a" and host is not gateway.host), settled
    )


def other(router: Router, run: Simulation, *, zone: str = "a") -> str:
    """Another router of the zone; of zone b, its gateway."""
    names = [host.name for host in run.hosts.values() if host.zone == zone and host is not router.host]
    return next(name for name in names if zone == "a" or run.hosts[name].is_acting(QUIET))


def kinds(effects: list[Any]) -> list[str]:
    return [
        type(effect.message).__name__ if isinstance(effect, SendRouter | SendZone) else type(effect).__name__
        for effect in effects
    ]


def codes(effects: list[Any]) -> list[str]:
    return [effect.code for effect in effects if isinstance(effect, Report)]


ALL: list[OverlayMessage] = [
    Hello(),
    Heartbeat(1, 1, "", (0, 0, 0), (0, 0, 0)),
    Goodbye(),
    ClientAt("q", 9),
    InterestDelta(1, 2, (WANT,), ()),
    InterestFull(99, (WANT,)),
    InterestAck(1),
    SltDelta(1, 2, (("line", "a"),), ()),
    SltFull(99, (("line", "a"),)),
    SltAck(1),
    External(1, 2, (WANT,), (), 1, "a"),
    ExternalFull(99, (WANT,), 1, "a"),
    ExternalAck(1, 0, 1, "a"),
    Pull("interest", 0),
    Confirmed("interest", 1, 1),
    Forward(1, 1, EVENT, "zone", 1, ("a/a2",)),
    ForwardAck(1, 1),
    ForwardNack(1, "", 0),
    GatewayAnnounce("a/a3", 9),
    StaleTerm("a", 9),
    Adopted("a/a3", "a/a1", 1),
    ZoneHello("b", 1, 1, (1, 1), (1, 1), 1),
    ZoneInterest(1, 2, (WANT,), (), 1, "b"),
    ZoneInterestFull(99, (WANT,), 1, "b"),
    ZoneInterestAck(1, 0, 1, "b"),
    ZoneSlt(1, 2, (("line", "a"),), (), 1, "b"),
    ZoneSltFull(99, (("line", "a"),), 1, "b"),
    ZoneSltAck(1, 0, 1, "b"),
    ZonePull("zone interest", 0, 1, "b"),
    GatewayForward("b", 1, 1, 1, EVENT, ("b/b2",)),
    GatewayAck("b", 1, 1),
    EpochNotice(2),
    EpochConfirm(1, 0.0),
    EpochLease(1, 0.0, 5.0),
]


def test_every_message_is_here() -> None:
    assert [type(message) for message in ALL] == list(dict.fromkeys(type(message) for message in ALL))
    assert {type(message) for message in ALL} == set(TRANSITIONS)


@pytest.mark.parametrize("message", ALL, ids=lambda message: type(message).__name__)
def test_messages_travel_and_cut_off_are_none(message: OverlayMessage, gateway: Router) -> None:
    body = encode_overlay(message)
    assert decode_overlay(body) == message
    with pytest.raises(ValueError, match=r"."):
        decode_overlay(body[:-1])
    before = gateway.tables()
    assert codes(step(gateway.state, GarbledRouter("a/a2", "cut off"), QUIET)) == ["R101"]
    assert gateway.tables() == before


@pytest.mark.parametrize("message", ALL, ids=lambda message: type(message).__name__)
def test_strangers_change_nothing(message: OverlayMessage, gateway: Router) -> None:
    before = gateway.tables()
    effects = gateway.told(message, "z/z1")
    assert gateway.tables() == before
    assert not [effect for effect in effects if not isinstance(effect, Report)]
    if TRANSITIONS[type(message)].between == "peers":
        assert codes(effects) == ["R020"]


@pytest.mark.parametrize(
    "message",
    [each for each in ALL if TRANSITIONS[type(each)].between == "peers"],
    ids=lambda each: type(each).__name__,
)
def test_a_former_incarnation_changes_nothing(message: OverlayMessage, gateway: Router, settled: Simulation) -> None:
    before = gateway.tables()
    effects = gateway.told(message, other(gateway, settled), incarnation=0)
    assert codes(effects) == ["R005"]
    assert kinds(effects) == ["Report"]
    assert gateway.tables() == before


@pytest.mark.parametrize(
    "message",
    [each for each in ALL if TRANSITIONS[type(each)].between == "gateways"],
    ids=lambda each: type(each).__name__,
)
def test_a_gateway_of_a_former_term_is_told_so(message: Any, gateway: Router, settled: Simulation) -> None:
    gateway.state.zones["b"].term = 5
    before = gateway.tables()
    effects = gateway.told(message, other(gateway, settled, zone="b"))
    assert codes(effects) == ["R014"]
    assert kinds(effects) == ["Report", "StaleTerm"]
    assert gateway.tables() == before


@pytest.mark.parametrize(
    "message",
    [each for each in ALL if TRANSITIONS[type(each)].between == "gateways"],
    ids=lambda each: type(each).__name__,
)
def test_who_is_no_gateway_takes_nothing_from_zones(message: Any, member: Router, settled: Simulation) -> None:
    before = member.tables()
    assert codes(member.told(message, other(member, settled, zone="b"))) == ["R009"]
    assert member.tables() == before


@pytest.mark.parametrize("message", ALL, ids=lambda message: type(message).__name__)
def test_what_comes_twice_changes_nothing_more(message: Any, gateway: Router, settled: Simulation) -> None:
    zone = "b" if TRANSITIONS[type(message)].between == "gateways" else "a"
    sender = other(gateway, settled, zone=zone)
    gateway.told(message, sender)
    gateway.told(message, sender)
    before = gateway.known()
    gateway.told(message, sender)
    assert gateway.known() == before


@pytest.mark.parametrize("table", ["interest", "slt"])
def test_a_table_of_a_peer(table: str, gateway: Router, settled: Simulation) -> None:
    sender = other(gateway, settled)
    held = gateway.state.table_held(table, sender)
    entry: Any = WANT if table == "interest" else ("line", "x")
    key = WANT.id if table == "interest" else entry
    delta, full = (InterestDelta, InterestFull) if table == "interest" else (SltDelta, SltFull)
    ack = "InterestAck" if table == "interest" else "SltAck"
    known = held.version
    # A gap is pulled, and changes nothing.
    assert kinds(gateway.told(delta(known + 1, known + 2, (entry,), ()), sender)) == ["Pull"]
    assert key not in held.entries
    # The next version is taken as one and confirmed; for scopes interest goes first.
    told = kinds(gateway.told(delta(known, known + 1, (entry,), ()), sender))
    assert ack in told
    assert held.version == known + 1
    assert key in held.entries
    # What came already is reported; the confirmation may have been lost, so it is given again.
    again = gateway.told(delta(known, known + 1, (entry,), ()), sender)
    assert codes(again) == ["R019"]
    assert ack in kinds(again)
    # Of an earlier version nothing is taken.
    assert kinds(gateway.told(full(known, ()), sender)) == ["Report"]
    assert key in held.entries
    gateway.told(full(known + 5, ()), sender)
    assert held.entries == {}


def test_interest_goes_before_the_confirmation_of_scopes(settled: Simulation, gateway: Router) -> None:
    gateway.state.own[WANT.id] = (WANT, {"q/x": None})
    sender = other(gateway, settled)
    held = gateway.state.table_held("slt", sender)
    told = kinds(gateway.told(SltDelta(held.version, held.version + 1, (("line", "x"),), ()), sender))
    assert told.index("InterestDelta") < told.index("SltAck")


def test_a_confirmation_counts_when_its_interest_is_here(gateway: Router, settled: Simulation) -> None:
    sender = other(gateway, settled)
    sent = gateway.state.table_sent("slt", sender)
    sent.version, sent.acked = 7, 6
    interest = gateway.state.table_held("interest", sender).version
    assert kinds(gateway.told(SltAck(7, interest + 1), sender)) == ["Pull"]
    assert sent.acked == 6
    gateway.told(SltAck(7, interest), sender)
    assert sent.acked == 7
    assert codes(gateway.told(SltAck(99, 0), sender)) == ["R019"]


def test_a_forward_is_taken_in_its_place(member: Router, settled: Simulation) -> None:
    sender = other(member, settled)
    trail = (sender,)
    second = Forward(900, 2, replace(EVENT, key=EventKey("x", 1, 2)), "zone", 1, trail)
    first = replace(second, place=1, event=EVENT)
    # Nobody knows the channel: it is asked for from its beginning.
    assert member.told(second, sender) == [SendRouter(sender, ForwardAck(900, 0, True))]
    assert "ForwardAck" in kinds(member.told(first, sender))
    third = replace(second, place=3)
    assert member.told(third, sender) == [SendRouter(sender, ForwardAck(900, 1, True))]
    assert member.told(third, sender) == []  # asked once
    assert "ForwardAck" in kinds(member.told(second, sender))
    assert member.told(first, sender) == [SendRouter(sender, ForwardAck(900, 2))]
    # A former channel is over.
    assert codes(member.told(replace(first, channel=899), sender)) == ["R019"]


@pytest.mark.parametrize(
    ("phase", "trail"),
    [
        ("zone", "itself"),
        ("zone", "a/x a/y"),
        ("fan", "a b c d"),
        ("origin", "a/x"),
        ("inter", "a/x"),
        ("zone", "a/x itself"),
    ],
)
def test_a_trail_that_cannot_be_is_acknowledged_and_goes_nowhere(
    phase: str, trail: str, member: Router, settled: Simulation
) -> None:
    words = tuple(member.state.me if word == "itself" else word for word in trail.split())
    effects = member.told(Forward(900, 1, EVENT, phase, 1, words), other(member, settled))
    assert codes(effects) == ["R019"]
    assert not [effect for effect in effects if isinstance(effect, Deliver | Append)]
    assert kinds(effects) == ["Report", "ForwardAck"]


def test_an_acknowledgement_comes_after_the_store(settled: Simulation) -> None:
    router = Router(settled.hosts["b/b2"], settled)
    sender = "b/b1"
    effects = router.told(Forward(900, 1, EVENT, "fan", 1, ("a/a2", "a/a1", sender)), sender)
    assert kinds(effects) == ["Append"]
    (stored,) = effects
    done = step(router.state, machine.Appended(stored.ticket, ((stored.stream, 1),)), QUIET)
    assert done == [SendRouter(sender, ForwardAck(900, 1))]


def test_who_does_not_act_refuses_the_duty(member: Router, settled: Simulation) -> None:
    sender = other(member, settled)
    effects = member.told(Forward(900, 1, EVENT, "zone", 1, (sender,), duty=True), sender)
    assert codes(effects) == ["R009"]
    assert kinds(effects) == ["Report", "ForwardNack"]


def test_an_event_of_an_epoch_to_come_waits_with_its_sender(member: Router, settled: Simulation) -> None:
    sender = other(member, settled)
    effects = member.told(Forward(900, 1, replace(EVENT, epoch=2), "zone", 1, (sender,)), sender)
    assert effects == [FetchDocument(2)]
    assert member.state.inboxes[sender].taken == 0


def test_a_gateway_forward_is_stored_before_it_is_acknowledged(gateway: Router, settled: Simulation) -> None:
    sender = other(gateway, settled, zone="b")
    term = settled.hosts[sender].state.term  # type: ignore[union-attr]
    message = GatewayForward("b", term, 900, 1, EVENT, ("b/b2", sender))
    effects = gateway.told(message, sender)
    assert kinds(effects) == ["Append"]
    assert effects[0].stream == "xin"
    assert gateway.told(message, sender) == []
    done = step(gateway.state, machine.Appended(effects[0].ticket, (("xin", 1),)), QUIET)
    assert done == [SendRouter(sender, GatewayAck("a", 900, 1))]
    assert codes(gateway.told(replace(message, place=2, trail=("b/b2", "b/b1", "b/b3")), sender)) == ["R019"]


def test_a_later_term_replaces_the_gateway_and_what_waits_goes_to_it(member: Router, settled: Simulation) -> None:
    state = member.state
    former = state.gateway
    sender = next(name for name in state.peers if name != former)
    assert codes(member.told(GatewayAnnounce(sender, 0), sender)) == ["R014"]
    assert state.gateway == former
    member.told(GatewayAnnounce(sender, state.term + 1), sender)
    assert state.gateway == sender
    assert state.table_held("external", sender).version == -1


def test_a_gateway_that_is_over_stops_at_once(gateway: Router, settled: Simulation) -> None:
    assert gateway.state.acts(QUIET)
    sender = other(gateway, settled, zone="b")
    gateway.told(StaleTerm("a", gateway.state.term), sender)
    assert gateway.state.acts(QUIET)
    assert "Listen" in kinds(gateway.told(StaleTerm("a", gateway.state.term + 1), sender))
    assert not gateway.state.acts(QUIET)


def test_a_lease_that_is_not_renewed_ends_by_itself(gateway: Router) -> None:
    assert gateway.state.acts(QUIET)
    assert not gateway.state.acts(gateway.state.lease.written + gateway.state.timing.stop + 0.001)


@pytest.mark.parametrize(("session", "stays"), [(0, True), (1, True), (2, False)])
def test_only_a_later_session_elsewhere_ends_one_here(session: int, stays: bool, settled: Simulation) -> None:
    router = Router(settled.hosts["a/a3"], settled)
    assert router.state.clients.children["s"].session == 1
    router.told(ClientAt("s", session), "a/a2")
    assert ("s" in router.state.clients.children) is stays


def test_a_later_epoch_is_fetched_and_an_earlier_one_reported(gateway: Router, settled: Simulation) -> None:
    sender = other(gateway, settled)
    assert gateway.told(EpochNotice(2), sender) == [FetchDocument(2)]
    assert codes(gateway.told(EpochNotice(0), sender)) == ["R019"]
    assert kinds(gateway.told(EpochConfirm(0, 1.0), sender)) == ["EpochNotice"]
    assert gateway.told(EpochConfirm(1, 1.0), sender) == [SendRouter(sender, EpochLease(1, 1.0, 5.0))]
    assert codes(gateway.told(EpochLease(2, 1.0, 5.0), sender)) == ["R019"]


def test_goodbye_is_at_once(gateway: Router, settled: Simulation) -> None:
    sender = other(gateway, settled)
    gateway.told(Goodbye(), sender)
    assert not gateway.state.peers[sender].live


def test_who_leaves_sends_its_children_elsewhere(gateway: Router) -> None:
    told = kinds(step(gateway.state, machine.Leave(), QUIET))
    assert told.count("Goodbye") == len(gateway.state.peers)
    assert "Cas" in told
    assert not gateway.state.acts(QUIET)
