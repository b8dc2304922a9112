"""The clients of a router among others: the machine of a router alone, put into the overlay.

That machine numbers publications, knows sessions and answers. Here is what it asks for and a router alone has from its
host: events are stored in the root log of the zone, declarations are in force when the neighbours work with them, and a
client that comes from another router of the zone is taken over from there.
"""

from __future__ import annotations

from typing import Any

import msgspec

from situ.event.message import EventKey
from situ.lang.catalogue import NOT_AS_ADVERTISED, NOT_UNDERSTOOD
from situ.protocol import router_machine
from situ.protocol.effects import (
    Declare,
    Declared,
    Effect,
    Input,
    Presence,
    Record,
    Refused,
    Store,
    Stored,
    Withdraw,
)
from situ.protocol.messages import DeadEvent
from situ.protocol.overlay import forwarding
from situ.protocol.overlay.effects import DropStream
from situ.protocol.overlay.election import FEED, drop_want, is_adopting, is_fed, put_want
from situ.protocol.overlay.messages import ClientAt, OverlayEvent
from situ.protocol.overlay.state import INTEREST, SLT, OverlayState
from situ.protocol.overlay.tables import installation, rows_changed, wait_for
from situ.routing.model import Advertisement, ClientDeclaration, Subscription

CLIENT = "client/"
_bodies: msgspec.json.Decoder[list[tuple[str, str, dict[str, Any]]]] = msgspec.json.Decoder(
    list[tuple[str, str, dict[str, Any]]]
)


def on_client(state: OverlayState, given: Input, now: float) -> None:
    """What a client said, or a timer of its machine."""
    perform(state, router_machine.step(state.clients, given, now), now)


def perform(state: OverlayState, effects: tuple[Effect, ...], now: float) -> None:
    """Do what the machine of a router alone asks for, and hand on what concerns clients only."""
    for effect in effects:
        if isinstance(effect, Store):
            _store(state, effect, now)
        elif isinstance(effect, Declare):
            _declare(state, effect, now)
        elif isinstance(effect, Withdraw):
            _withdraw(state, effect, now)
        elif isinstance(effect, Record):
            _record(state, effect, now)
            state.out.append(effect)
        else:
            if isinstance(effect, Presence) and effect.here:
                _read_durable(state, effect.client)
            state.out.append(effect)


def _read_durable(state: OverlayState, client: str) -> None:
    """A client is here with all it has: what waits for it goes on."""
    for id, sub in state.subs.items():
        if sub.client == client and sub.durable:
            # From what was committed on: what a former session had in hand is delivered again.
            forwarding.stop_reading(state, f"out/{id}")
            forwarding.read_stream(state, f"out/{id}")


# ── events ──


def _store(state: OverlayState, effect: Store, now: float) -> None:
    """Stamp the events of a message and store them; what does not keep to its advertisement is a dead letter."""
    key = effect.key
    try:
        bodies = _bodies.decode(effect.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        problem = NOT_UNDERSTOOD(kind="Publish", reason=str(error)[:200])
        dead = DeadEvent(seq=key.seq, code=problem.code.code, message=problem.message)
        state.pass_on(Stored(ticket=effect.ticket, dead=(dead,)), now)
        return
    events: list[OverlayEvent] = []
    letters: list[DeadEvent] = []
    for place, (name, type, data) in enumerate(bodies[: effect.count]):
        ad = state.ads.get(f"{key.client}/{name}")
        reason = _unfit(state, ad, name, type, data)
        if ad is None or reason:
            problem = NOT_AS_ADVERTISED(reason=reason, remedy="Advertise it first.")
            letters.append(DeadEvent(seq=key.seq + place, code=problem.code.code, message=problem.message))
            continue
        at = EventKey(key.client, key.incarnation, key.seq + place)
        bits = state.meaning.bits(type, data)
        events.append(OverlayEvent(at, type, data, ad.scopes, state.document.epoch, bits))
    if not events:
        state.pass_on(Stored(ticket=effect.ticket, dead=tuple(letters)), now)
        return
    stream = f"root/{state.me}"
    for event in events[:-1]:
        state.append(stream, str(event.key), event, None)
    state.append(stream, str(events[-1].key), events[-1], (effect.ticket, tuple(letters)))


def _unfit(state: OverlayState, ad: Advertisement | None, name: str, type: str, data: dict[str, Any]) -> str:
    if ad is None:
        return f"comes under `{name[:64]}`, which is not advertised"
    if ad.type not in state.meaning.above(type):
        return f"is of type `{type[:64]}`, but `{name}` advertises `{ad.type}`"
    if ad.where and not state.meaning.passes(ad.where, type, data):
        return f"is not what `{name}` promises: {ad.where}"
    return ""


# ── declarations ──


def _declare(state: OverlayState, effect: Declare, now: float) -> None:
    what = effect.what
    types = (what.type,) if isinstance(what, Advertisement) else getattr(what, "types", ())
    unknown = [type for type in types if not state.meaning.above(type)]
    if unknown:
        refused = Refused(ticket=effect.ticket, code="R002", message=f"There is no type `{unknown[0][:64]}`.", hint="")
        on_client(state, refused, now)
    elif isinstance(what, Subscription) and what.durable:
        state.feeding[what.id] = (effect.ticket, what)
        feed(state, what.id, now)
    elif isinstance(what, Subscription):
        former = state.subs.get(what.id)
        if former is not None:
            drop_want(state, former, now)
        state.subs[what.id] = what
        put_want(state, what, now)
        _accept(state, effect.ticket, what, now)
    elif isinstance(what, Advertisement):
        _count_rows(state, state.ads.get(what.id), -1)
        state.ads[what.id] = what
        _count_rows(state, what, 1)
        rows_changed(state, now)
        _accept(state, effect.ticket, what, now)
    else:
        _accept(state, effect.ticket, what, now)


def _count_rows(state: OverlayState, ad: Advertisement | None, by: int) -> None:
    for row in state.document.rows(ad.scopes) if ad is not None else ():
        count = state.rows.get(row, 0) + by
        if count:
            state.rows[row] = count
        else:
            del state.rows[row]


def _accept(state: OverlayState, ticket: int | None, what: Any, now: float) -> None:
    """A declaration has a version; it is in force when everybody whom it concerns has confirmed it."""
    if ticket is None:
        return
    state.declared += 1
    on_client(state, Declared(ticket=ticket, version=state.declared), now)
    if isinstance(what, ClientDeclaration):
        state.installed(state.declared, (), now)
        return
    if isinstance(what, Subscription):
        want = forwarding.want_of_subscription(what) if is_fed(state, what.id) else None
        if want is not None:
            if what.durable:
                state.unconfirmed[what.id] = state.declared
            installation(state, INTEREST, ("installed", state.declared, INTEREST), now, want)
            return
        # Fed by another router, which says in the store when it is in force.
        wait_for(state, {("feed", what.id): 1}, ("installed", state.declared, "feed"), now)
        return
    installation(state, SLT, ("installed", state.declared, SLT), now)


def feed(state: OverlayState, id: str, now: float) -> None:
    """A durable subscription is fed by the router that declared it first, and read wherever its client is."""
    ticket, sub = state.feeding[id]
    key = FEED + id
    value = state.keys.get(key)
    if value is None:
        if not any(asked[:2] == ("feed", key) for asked in state.asked.values()):
            state.write_key(key, (state.me, sub.as_json(), "", False), ("feed", key))
        return
    if value[0] == state.me and is_adopting(state) and not is_fed(state, id):
        return  # it comes with the others of the router that is being adopted: tried again on the next tick
    del state.feeding[id]
    state.subs[id] = sub
    if value[0] == state.me and not is_fed(state, id):
        put_want(state, sub, now)
    _accept(state, ticket, sub, now)
    if sub.client in state.clients.children:
        forwarding.read_stream(state, f"out/{id}")


def _withdraw(state: OverlayState, effect: Withdraw, now: float) -> None:
    for what in effect.what:
        if isinstance(what, Advertisement):
            _count_rows(state, state.ads.pop(what.id, None), -1)
            rows_changed(state, now)
        elif isinstance(what, Subscription):
            sub = state.subs.pop(what.id, None)
            state.feeding.pop(what.id, None)
            if sub is not None:
                drop_want(state, sub, now)
            if what.durable:
                forwarding.stop_reading(state, f"out/{what.id}")
                state.write_key(FEED + what.id, None, ("feed", FEED + what.id))
                state.out.append(DropStream(f"out/{what.id}"))
        state.clients.withdrawing.discard((type(what), what.id))
    if effect.ticket is not None:
        state.declared += 1
        on_client(state, Declared(ticket=effect.ticket, version=state.declared), now)
        state.clients.withdrawing.difference_update([(type(what), what.id) for what in effect.what])


# ── clients that come and go ──


def _record(state: OverlayState, effect: Record, now: float) -> None:
    client = effect.client
    if effect.session is None:
        for stream in [each for each in state.reading if each.startswith(f"out/{client}/")]:
            forwarding.stop_reading(state, stream)
        return
    for name in state.peers:
        state.send(name, ClientAt(client, effect.session))
    if client not in state.moving:
        # Its events go on when those that it published elsewhere have.
        state.places[client] = ticket = state.ticket()
        forwarding.stay_behind(state, client, ticket, (0, 0))
    state.moving[client] = effect.session
    move(state, client)


def move(state: OverlayState, client: str) -> None:
    key = CLIENT + client
    if not any(asked[:2] == ("client", key) for asked in state.asked.values()):
        state.write_key(key, (state.me, state.moving[client]), ("client", key))


def on_moved(state: OverlayState, key: str, wanted: Any, ok: bool, value: Any, now: float) -> None:
    """The store knows where a client is: what it published at its former router goes first."""
    client = key.removeprefix(CLIENT)
    session = state.moving.get(client)
    former = state.keys.get(key)
    if not ok:
        state.keys[key] = value
        if value is None:
            state.keys.pop(key)
        if session is not None and (value is None or value[1] < session):
            move(state, client)
        elif session is not None:
            # It is elsewhere by now, in a later session.
            del state.moving[client]
            _release(state, client, now)
            if value[0] != state.me:
                on_client_at(state, value[0], ClientAt(client, value[1]), now)
        return
    state.keys[key] = wanted
    if session is None:
        return
    if session != wanted[1]:
        move(state, client)
        return
    del state.moving[client]
    if former is not None and former[0] != state.me:
        forwarding.await_stream(state, EventKey(client, 0, 0), f"root/{former[0]}", 0)
    _release(state, client, now)


def _release(state: OverlayState, client: str, now: float) -> None:
    forwarding.on_committed(state, state.places.pop(client, 0), now)


def on_client_at(state: OverlayState, sender: str, message: ClientAt, now: float) -> None:
    """A client is another router's now: what it had here goes, but for what is durable, which is fed as before."""
    client = message.client
    child = state.clients.children.get(client)
    if child is None:
        return
    if not is_former(child.session, message.session):
        state.report(client, "R005", f"session {message.session} of `{client}` is not after {child.session}")
        return
    perform(state, router_machine.leave(state.clients, client), now)
    for key in list(state.clients.owned.get(client, {})):
        what = state.clients.owned[client][key]
        state.clients.owned[client].pop(key)
        if isinstance(what, Subscription) and not is_fed(state, what.id):
            state.subs.pop(what.id, None)
    state.clients.owned.pop(client, None)


def is_former(known: int, session: int) -> bool:
    """Whether the session known here is over, now that its client is elsewhere in another one."""
    return known < session


def try_again(state: OverlayState, now: float) -> None:
    """On every tick: what the store has not answered is asked again."""
    for id in tuple(state.feeding):
        feed(state, id, now)
    for client in tuple(state.moving):
        move(state, client)
    for key, value in state.keys.items():
        if key.startswith(FEED) and value[0] == state.me and not value[3]:
            under_way = any(asked[:2] == ("feed", key) for asked in state.asked.values())
            if not under_way and key.removeprefix(FEED) not in state.unconfirmed:
                state.write_key(key, (*value[:3], True), ("feed", key))
