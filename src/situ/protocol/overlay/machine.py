"""A router among others: a state machine without I/O, for any number of routers in any number of zones.

How it works. Routers of a zone all know one another; each zone elects a gateway, and gateways know one another. Five
things go on at once, each in its own module, and meet only in the state:

- *membership*: heartbeats say who is there, and which versions of tables everybody has;
- *tables*: what somebody wants goes to whoever has something advertised that it may see, and is confirmed;
- *election*: a lease in the zone's store says who is gateway, and for how long it may act without renewing;
- *forwarding*: events go from origin to interested routers and the gateway, from gateway to gateway, and fan out there;
- *epochs*: scopes change for everybody, and a change is complete when nobody works with those before any more.

The clients of the router are served by the machine of a router alone (:mod:`situ.protocol.router_machine`), which is a
part of this one's state.

``step`` is total: what is unknown, stale or malformed changes nothing and is reported with a code. It reads no clock
and draws no number; the state is its own and changed in place, so a step costs what it touches, and the same inputs
give the same effects. `TRANSITIONS` says for each message what must hold, what it does and what it is answered by; the
page on the overlay in the documentation is made from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from situ.lang.catalogue import NOT_UNDERSTOOD
from situ.protocol.effects import Deployed, Start
from situ.protocol.messages import Terms
from situ.protocol.overlay import clients, election, epoch_exchange, forwarding, membership, tables
from situ.protocol.overlay.effects import (
    AllCommitted,
    Appended,
    AppendFailed,
    Boot,
    Cas,
    CasDone,
    CasFailed,
    DocumentFetched,
    FromRouter,
    GarbledRouter,
    KeyChanged,
    Leave,
    OverlayEffect,
    OverlayInput,
    SetTick,
    Settled,
    StreamEntry,
    Tick,
)
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
    Moved,
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
)
from situ.protocol.overlay.scope_document import Meaning
from situ.protocol.overlay.state import INTEREST, Layout, OverlayState, Peer, Remote, Timing
from situ.protocol.router_state import RouterState

Handler: TypeAlias = Callable[[OverlayState, str, Any, float], None]


def new_state(
    me: str, incarnation: int, layout: Layout, timing: Timing, meaning: Meaning, *, flood: bool = False
) -> OverlayState:
    """A router that knows nothing yet but where it stands; its first input is :class:`Boot`."""
    zone = me.partition("/")[0]
    own = RouterState(zone=zone, router=me, incarnation=incarnation, grace=timing.grace)
    return OverlayState(
        me=me,
        zone=zone,
        incarnation=incarnation,
        layout=layout,
        timing=timing,
        meaning=meaning,
        clients=own,
        flood=flood,
        peers={name: Peer(name) for name in layout.members(zone) if name != me},
        zones={name: Remote(name) for name in layout.zones if name != zone},
    )


def step(state: OverlayState, given: OverlayInput, now: float) -> list[OverlayEffect]:
    """What follows from an input."""
    out: list[OverlayEffect] = []
    state.out = out
    handler = _STEPS.get(type(given))
    if handler is None:
        clients.on_client(state, given, now)  # type: ignore[arg-type]  # all others are of clients
    else:
        handler(state, given, now)
    return out


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Messages of routers.


def _from_router(state: OverlayState, given: FromRouter, now: float) -> None:
    message, sender = given.message, given.sender
    transition = TRANSITIONS.get(type(message))
    if transition is None:
        problem = NOT_UNDERSTOOD(kind=type(message).__name__, reason="no router takes it")
        state.report(sender, problem.code.code, problem.message)
    elif transition.between == "peers":
        if membership.is_known(state, sender, given.incarnation, now):
            transition.handler(state, sender, message, now)
    elif transition.between == "both" or _from_gateway(state, sender, message, now):
        transition.handler(state, sender, message, now)


def _from_gateway(state: OverlayState, sender: str, message: Any, now: float) -> bool:
    return membership.speaks_for(state, sender, message.zone, message.term, now)


def _either(state: OverlayState, sender: str, given: Any, now: float) -> bool:
    """Whether a message that peers and gateways send comes from one of them."""
    return sender in state.peers or any(sender in members for members in state.layout.zones.values())


def _interest(state: OverlayState, sender: str, message: InterestDelta | InterestFull, now: float) -> None:
    for router in message.adopted:
        election.note_adopted(state, router, sender, now)
    tables.on_table(state, sender, message, now)
    if state.table_held(INTEREST, sender).version >= 0 and state.adopted.get(sender) not in (None, state.me):
        del state.adopted[sender]  # it is back, and what it wants is known


def _table_of_gateway(state: OverlayState, sender: str, message: Any, now: float) -> None:
    """`External` in its versions: only the gateway of the term in force tells it."""
    if message.term > state.term:
        election.announce(state, sender, message.term, now)
    if election.is_over(state, message.term) or sender != state.gateway:
        state.report(sender, "R014", f"`{sender}` tells a table as gateway of term {message.term}, which is over")
        state.send(sender, StaleTerm(state.zone, state.term))
        return
    tables.on_table(state, sender, message, now)


def _stale_term(state: OverlayState, sender: str, message: StaleTerm, now: float) -> None:
    if _either(state, sender, message, now):
        election.on_stale_term(state, sender, message, now)


def _notice(state: OverlayState, sender: str, message: EpochNotice, now: float) -> None:
    if _either(state, sender, message, now):
        epoch_exchange.on_notice(state, sender, message, now)


def _confirm(state: OverlayState, sender: str, message: EpochConfirm, now: float) -> None:
    if _either(state, sender, message, now):
        epoch_exchange.on_confirm(state, sender, message, now)


def _lease(state: OverlayState, sender: str, message: EpochLease, now: float) -> None:
    if _either(state, sender, message, now):
        epoch_exchange.on_lease(state, sender, message, now)


def _gateway_ack(state: OverlayState, sender: str, message: GatewayAck, now: float) -> None:
    if _either(state, sender, message, now):
        forwarding.on_gateway_ack(state, sender, message, now)


@dataclass(frozen=True, slots=True)
class Transition:
    """What a message does. ``between``: ``peers`` of a zone, ``gateways``, or ``both``."""

    between: str
    handler: Handler
    needs: str
    does: str
    answers: str = ""


TRANSITIONS: dict[type[OverlayMessage], Transition] = {
    Hello: Transition(
        "peers",
        membership.on_hello,
        "a router of the same zone",
        "of another incarnation than known: what it knew is forgotten, what waits for it begins a new channel",
        "`Hello` once, the tables in full",
    ),
    Heartbeat: Transition(
        "peers",
        membership.on_heartbeat,
        "a router of the same zone",
        "it is alive; a later term is taken up, versions are compared",
        "`Pull` for what is missing, `EpochNotice`, `StaleTerm`",
    ),
    Goodbye: Transition("peers", membership.on_goodbye, "a router of the same zone", "removed at once"),
    ClientAt: Transition(
        "peers",
        clients.on_client_at,
        "a session after the one known",
        "the client's state goes; durable subscriptions are fed as before",
    ),
    InterestDelta: Transition(
        "peers",
        _interest,
        "follows the version held",
        "changed as one; a gateway brings its zone's interest up to date",
        "`InterestAck`, from the gateway `Confirmed` later; else `Pull`",
    ),
    InterestFull: Transition("peers", _interest, "a later version", "replaced as one", "as above"),
    InterestAck: Transition("peers", tables.on_ack, "a version that was told", "confirmed; what waited is told"),
    SltDelta: Transition(
        "peers",
        tables.on_table,
        "follows the version held",
        "changed as one; who is eligible is chosen anew",
        "first `InterestDelta`, then `SltAck`; else `Pull`",
    ),
    SltFull: Transition("peers", tables.on_table, "a later version", "replaced as one", "as above"),
    SltAck: Transition(
        "peers", tables.on_ack, "the interest it names is here", "confirmed", "`Pull`, if that interest is not here"
    ),
    External: Transition(
        "peers", _table_of_gateway, "term of the gateway; follows the version held", "changed as one", "`ExternalAck`"
    ),
    ExternalFull: Transition(
        "peers", _table_of_gateway, "term of the gateway; a later version", "replaced as one", "`ExternalAck`"
    ),
    ExternalAck: Transition("peers", tables.on_ack, "of this term", "confirmed; other zones are answered"),
    Pull: Transition("peers", tables.on_pull, "a table that was told", "told in full", "the table"),
    Confirmed: Transition(
        "peers",
        tables.on_confirmed,
        "from the gateway of the term in force",
        "declarations up to that version are installed, but for the zones that are missing",
        "`Pull`, if what it relies on is not here",
    ),
    Forward: Transition(
        "peers",
        forwarding.on_forward,
        "the next place of its channel; trail and phase in order; acting as gateway, if it is a duty",
        "delivered to children; a gateway stores it for other zones",
        "`ForwardAck` when all is stored; `ForwardNack` (R009)",
    ),
    ForwardAck: Transition(
        "peers",
        forwarding.on_forward_ack,
        "the channel that is open",
        "no longer kept; with `again` all that is left is sent once more",
    ),
    ForwardNack: Transition(
        "peers", election.on_forward_nack, "", "the event stays; another gateway, if it is named, is taken up"
    ),
    GatewayAnnounce: Transition(
        "peers",
        election.on_announce,
        "a later term",
        "gateway replaced, what other zones want unknown; what the former one has not acknowledged goes to it first",
        "`StaleTerm`, if the term is over",
    ),
    Adopted: Transition(
        "peers", election.on_adopted, "the router is away", "what waits for it goes to its adopter, in order"
    ),
    StaleTerm: Transition("both", _stale_term, "a term after the one known", "stops acting as gateway at once"),
    EpochNotice: Transition(
        "both", _notice, "a later epoch", "the document is fetched; then everything is chosen anew", "`EpochConfirm`"
    ),
    EpochConfirm: Transition(
        "both", _confirm, "acting as gateway, same epoch", "noted", "`EpochLease`; `EpochNotice`, if it is behind"
    ),
    EpochLease: Transition("both", _lease, "of the epoch in force", "may hand over for so long in closed dimensions"),
    ZoneHello: Transition(
        "gateways",
        membership.on_zone_hello,
        "no earlier term than known",
        "the zone is there; versions are compared",
        "`ZonePull`, or tables in full",
    ),
    ZoneInterest: Transition(
        "gateways",
        tables.on_table,
        "term; follows the version held",
        "changed as one, and told to routers to whom it is eligible",
        "`ZoneInterestAck` when these have confirmed",
    ),
    ZoneInterestFull: Transition("gateways", tables.on_table, "term; a later version", "replaced as one", "as above"),
    ZoneInterestAck: Transition("gateways", tables.on_ack, "of this term", "confirmed to routers that wait for it"),
    ZoneSlt: Transition(
        "gateways",
        tables.on_table,
        "term; follows the version held",
        "changed as one; who is eligible is chosen anew",
        "first `ZoneInterest`, then `ZoneSltAck`",
    ),
    ZoneSltFull: Transition("gateways", tables.on_table, "term; a later version", "replaced as one", "as above"),
    ZoneSltAck: Transition("gateways", tables.on_ack, "the interest it names is here", "confirmed"),
    ZonePull: Transition("gateways", tables.on_pull, "a table that was told", "told in full", "the table"),
    GatewayForward: Transition(
        "gateways",
        forwarding.on_gateway_forward,
        "the next place of its channel; trail of at most two routers",
        "stored, then fanned out",
        "`GatewayAck` when it is stored",
    ),
    GatewayAck: Transition("both", _gateway_ack, "the channel that is open", "no longer kept"),
}


STATES: dict[str, tuple[tuple[str, str, str], ...]] = {
    "router": (
        ("unknown", "live", "it says anything"),
        ("live", "away", "silent for `removed`, or `Goodbye`: what is volatile of it goes"),
        ("away", "adopted", "the gateway has taken its durable subscriptions and reads its log"),
        ("away", "live", "it says anything: tables are exchanged from the start"),
        ("adopted", "live", "it says anything, and takes its log back"),
        ("live", "live", "another incarnation: what waits for it begins a new channel"),
    ),
    "gateway": (
        ("follower", "candidate", "no lease, or the same value for `lease`"),
        ("candidate", "acting", "its write was compared and set"),
        ("candidate", "follower", "another value is there"),
        ("acting", "acting", "renewed every `renew`"),
        ("acting", "follower", "last renewal sent longer than `stop` ago, a later term, or `Leave`"),
    ),
    "table": (
        ("whole", "told", "the neighbour is there: told in full"),
        ("told", "confirmed", "acknowledged, or a heartbeat says so"),
        ("confirmed", "told", "something changed: told as a difference"),
        ("told", "told", "something changed: it waits for the confirmation"),
        ("told", "whole", "pulled, or the neighbour began anew"),
        ("confirmed", "whole", "the neighbour began anew, or is another gateway"),
    ),
}
"""What each state of another router, of the lease and of a table turns into, and when: the diagrams of the page."""

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Everything else that happens to a router.


def _boot(state: OverlayState, given: Boot, now: float) -> None:
    state.booted = now
    state.keys = dict(given.keys)
    state.document = given.document
    state.documents[given.document.epoch] = given.document
    state.lease.value, state.lease.seen = state.keys.get(election.LEASE), now
    deployed = Deployed(version=0, advertisements={}, subscriptions={}, terms=Terms())
    clients.on_client(state, deployed, now)
    clients.on_client(state, Start(), now)
    for key, value in given.keys.items():
        if not key.startswith(election.FEED):
            continue
        id = key.removeprefix(election.FEED)
        if value[0] == state.me:
            election.feed_changed(state, id, value, now)
        elif value[2] == state.me and election.ADOPT + state.me in given.keys:
            # Taken while this router was away: what is sent here until everybody knows is stored all the same.
            sub = state.subs[id] = election.subscription_from(id, value[1])
            election.put_want(state, sub, now)
            state.leaving[id] = now + state.timing.removed
    for name in state.peers:
        # What is durable elsewhere is known before its router has said so: events for it wait.
        membership.know_feeds(state, name, now)
    for key, value in given.keys.items():
        if key.startswith(election.ADOPT):
            router = key.removeprefix(election.ADOPT)
            if router == state.me:
                state.write_key(key, None, ("adopt", router))
            elif value[1]:
                election.note_adopted(state, router, value[0], now)
    forwarding.read_stream(state, f"root/{state.me}")
    for name in state.peers:
        state.send(name, Hello(state.document.epoch))
    state.out.append(SetTick(state.timing.heartbeat))


def _tick(state: OverlayState, given: Tick, now: float) -> None:
    membership.on_tick(state, now)
    clients.try_again(state, now)
    key = election.ADOPT + state.me
    if state.keys.get(key) is not None and not any(asked[:2] == ("adopt", state.me) for asked in state.asked.values()):
        state.write_key(key, None, ("adopt", state.me))


def _cas_done(state: OverlayState, given: CasDone, now: float) -> None:
    asked = state.asked.pop(given.ticket, None)
    if asked is None:
        return
    kind = asked[0]
    if kind == "lease":
        election.on_lease_written(state, asked[1], given.ok, given.value, now)
    elif kind == "client":
        clients.on_moved(state, asked[1], asked[2], given.ok, given.value, now)
    else:
        key = asked[1] if kind == "feed" else election.ADOPT + asked[1]
        election.on_key_written(state, key, asked[2], given.ok, given.value, now)
        if kind == "feed":
            _fed(state, key, now)


def _fed(state: OverlayState, key: str, now: float) -> None:
    id = key.removeprefix(election.FEED)
    if id in state.feeding:
        clients.feed(state, id, now)


def _cas_failed(state: OverlayState, given: CasFailed, now: float) -> None:
    asked = state.asked.pop(given.ticket, None)
    if asked is not None and asked[0] == "lease":
        state.lease.asked = 0


def _key_changed(state: OverlayState, given: KeyChanged, now: float) -> None:
    if given.key == election.LEASE:
        election.on_lease_seen(state, given.value, now)
    elif given.key == epoch_exchange.EPOCH:
        epoch_exchange.on_epoch_seen(state, "", given.value, now)
    else:
        election.on_key_seen(state, given.key, given.value, now)


def _garbled(state: OverlayState, given: GarbledRouter, now: float) -> None:
    problem = NOT_UNDERSTOOD(kind="message", reason=given.reason[:200])
    state.report(given.sender, problem.code.code, problem.message)


def _all_committed(state: OverlayState, given: AllCommitted, now: float) -> None:
    forwarding.on_committed(state, given.ticket, now)


def _leave(state: OverlayState, given: Leave, now: float) -> None:
    others = tuple(sorted(state.live_peers()))
    for client in state.clients.children:
        state.tell_client(client, Moved(others))
    for name in state.peers:
        state.send(name, Goodbye())
    if state.lease.acting:
        election.step_down(state, now)
        state.out.append(Cas(election.LEASE, state.lease.value, None, state.ticket()))


_STEPS: dict[type, Callable[[OverlayState, Any, float], None]] = {
    FromRouter: _from_router,
    Tick: _tick,
    StreamEntry: forwarding.on_entry,
    Appended: forwarding.on_appended,
    AppendFailed: forwarding.on_append_failed,
    Settled: forwarding.on_settled,
    Boot: _boot,
    CasDone: _cas_done,
    CasFailed: _cas_failed,
    KeyChanged: _key_changed,
    AllCommitted: _all_committed,
    DocumentFetched: epoch_exchange.on_document,
    GarbledRouter: _garbled,
    Leave: _leave,
}
