"""Who is there: signs of life among the routers of a zone and among gateways, and what follows from silence.

Every router of the zone is told every heartbeat which versions of tables it was told, and which of its own are here: so
whatever was lost on the way is noticed by either side within a heartbeat or two. A router that starts again has another
incarnation; what it knew is forgotten, what waits for it begins a new channel.
"""

from __future__ import annotations

from situ.lang.catalogue import OLD_SESSION, STALE_TERM, STRANGER
from situ.protocol.overlay import epoch_exchange, forwarding
from situ.protocol.overlay.effects import SetTick
from situ.protocol.overlay.election import (
    FEED,
    announce,
    check_adoption,
    check_feeds,
    check_lease,
    hello,
    is_over,
    subscription_from,
)
from situ.protocol.overlay.messages import Goodbye, Heartbeat, Hello, Pull, StaleTerm, Want, ZoneHello
from situ.protocol.overlay.state import (
    EXTERNAL,
    INTEREST,
    MEMBER_TABLES,
    SLT,
    ZONE_TABLES,
    OverlayState,
    Peer,
)
from situ.protocol.overlay.tables import acked, check_unsure, check_waits, pull, rows_changed, sweep, tell, zone_want


def is_known(state: OverlayState, sender: str, incarnation: int, now: float) -> bool:
    """Whether this is a router of the zone as it is now; a newer incarnation is taken up first."""
    peer = state.peers.get(sender)
    if peer is None:
        problem = STRANGER(router=sender, zone=state.zone)
        state.report(sender, problem.code.code, problem.message)
        return False
    if incarnation < peer.incarnation:
        problem = OLD_SESSION(client=sender, session=incarnation, known=peer.incarnation)
        state.report(sender, problem.code.code, problem.message)
        return False
    if incarnation > peer.incarnation or not peer.live:
        _returned(state, peer, incarnation, now)
    peer.heard = now
    return True


def _returned(state: OverlayState, peer: Peer, incarnation: int, now: float) -> None:
    """A router began anew, or is back after a silence: tables are exchanged from the start."""
    fresh = incarnation > peer.incarnation
    peer.incarnation, peer.live = incarnation, True
    for table in MEMBER_TABLES:
        # What is durable of it stays in force until its new table is here: events for it wait.
        state.table_held(table, peer.name).version = -1
        state.table_sent(table, peer.name).restart()
    if fresh:
        state.inboxes.pop(peer.name, None)
        outbox = state.outboxes.get(peer.name)
        if outbox is not None:
            forwarding.rebuild(state, peer.name, list(outbox.items), now)
    state.send(peer.name, Hello(state.document.epoch, answer=True))
    for table in MEMBER_TABLES:
        tell(state, table, peer.name, now)


def lost(state: OverlayState, peer: Peer, now: float) -> None:
    """A router left, or is silent for too long: what is volatile of it goes."""
    peer.live = False
    name = peer.name
    held = state.table_held(INTEREST, name)
    held.version = -1
    for id, want in tuple(held.entries.items()):
        if isinstance(want, Want) and not want.durable:
            del held.entries[id]
            state.matches.remove(want, name)
            if state.gateway == state.me:
                zone_want(state, want, now)
    know_feeds(state, name, now)
    rows = state.table_held(SLT, name)
    rows.version, rows.entries = -1, {}
    rows_changed(state, now)
    forwarding.drop_volatile(state, name, now)
    check_waits(state, now)


def know_feeds(state: OverlayState, router: str, now: float) -> None:
    """What is durable at a router that cannot be asked is known from the store, wherever it was told before."""
    entries = state.table_held(INTEREST, router).entries
    for key, feed in state.keys.items():
        if key.startswith(FEED) and feed[0] == router:
            want = forwarding.want_of_subscription(subscription_from(key.removeprefix(FEED), feed[1]))
            if want.id not in entries:
                entries[want.id] = want
                state.matches.add(want, router)
                if state.gateway == state.me:
                    zone_want(state, want, now)


def on_hello(state: OverlayState, sender: str, message: Hello, now: float) -> None:
    epoch_exchange.on_epoch_seen(state, sender, message.epoch, now)
    if not message.answer:
        state.send(sender, Hello(state.document.epoch, answer=True))
    for table in MEMBER_TABLES:
        tell(state, table, sender, now)


def on_heartbeat(state: OverlayState, sender: str, message: Heartbeat, now: float) -> None:
    if not is_over(state, message.term):
        if message.term != state.term and message.gateway:
            announce(state, message.gateway, message.term, now)
    elif message.gateway == sender:
        problem = STALE_TERM(router=sender, term=message.term, known=state.term)
        state.report(sender, problem.code.code, problem.message)
        state.send(sender, StaleTerm(state.zone, state.term))
    peer = state.peers[sender]
    peer.epoch, peer.term = message.epoch, message.term
    if message.epoch != state.document.epoch:
        epoch_exchange.on_epoch_seen(state, sender, message.epoch, now)
    sent, held = state.sent, state.held
    for place, table in enumerate(MEMBER_TABLES):
        if table == EXTERNAL and (message.term != state.term or sender != state.gateway != state.me):
            continue
        key = (table, sender)
        there = held.get(key)
        if message.told[place] > (max(there.version, 0) if there is not None else 0):
            pull(state, table, sender, now)
        mine = sent.get(key)
        if mine is None:
            continue
        have = message.have[place]
        if mine.acked < have <= mine.version:
            # Scopes are confirmed only by whoever's interest has arrived, too.
            interest = held.get((INTEREST, sender))
            if table != SLT or (interest is not None and interest.version >= message.told[0]):
                acked(state, table, sender, mine, have, now)
        if mine.add or mine.remove or mine.whole:
            tell(state, table, sender, now)


def on_goodbye(state: OverlayState, sender: str, message: Goodbye, now: float) -> None:
    peer = state.peers[sender]
    lost(state, peer, now)
    peer.heard = now - state.timing.removed


def on_tick(state: OverlayState, now: float) -> None:
    """What a router does on its own account, every heartbeat."""
    state.out.append(SetTick(state.timing.heartbeat))
    check_lease(state, now)
    for peer in state.peers.values():
        if peer.live and now - peer.heard > state.timing.removed:
            lost(state, peer, now)
    _send_heartbeats(state, now)
    if state.acts(now):
        for zone in state.zones:
            hello(state, zone, now)
            for table in ZONE_TABLES:
                tell(state, table, zone, now)
    epoch_exchange.on_tick(state, now)
    sweep(state, now)
    forwarding.try_again(state, now)
    if state.waits:
        check_waits(state, now)
        _ask_for_confirmation(state)
    check_unsure(state)
    check_adoption(state, now)
    check_feeds(state, now)
    _forget(state, now)


def _send_heartbeats(state: OverlayState, now: float) -> None:
    epoch, term, gateway = state.document.epoch, state.term, state.gateway
    if gateway == state.me and not state.acts(now):
        gateway = ""  # nobody is to take this router for one
    sent, held = state.sent, state.held
    for name in state.peers:
        told = [each.version if (each := sent.get((table, name))) is not None else 0 for table in MEMBER_TABLES]
        have = [there.version if (there := held.get((table, name))) is not None else -1 for table in MEMBER_TABLES]
        if state.gateway != state.me:
            told[2] = 0
        state.send(name, Heartbeat(epoch, term, gateway, (told[0], told[1], told[2]), (have[0], have[1], have[2])))


def _ask_for_confirmation(state: OverlayState) -> None:
    """What the gateway said of other zones may have been lost."""
    if state.gateway and state.gateway != state.me and state.zones:
        tables = {wait.then[2] for wait in state.waits if wait.then[0] in ("installed", "rows")} - {"feed"}
        for table in sorted(tables):
            state.send(state.gateway, Pull(f"confirmed {table}", 0))


def _forget(state: OverlayState, now: float) -> None:
    """Windows of producers that have been silent for long; tags of recovered events that are all routed."""
    old = now - state.timing.remember
    for slot in [slot for slot, used in state.used.items() if used < old]:
        del state.used[slot], state.seen[slot]
    if (
        state.recovered
        and not state.queues
        and not any(marks for stream, marks in state.reading.items() if not stream.startswith("out/"))
    ):
        state.recovered.clear()
        rows_changed(state, now)


# ── other zones ───────────────────────────────────────────────────────────────────────────────────


def speaks_for(state: OverlayState, sender: str, zone: str, term: int, now: float) -> bool:
    """Whether a message comes from the gateway of another zone, as far as is known; a later term is taken up first."""
    remote = state.zones.get(zone)
    if remote is None or sender not in state.layout.members(zone):
        problem = STRANGER(router=sender, zone=zone)
        state.report(sender, problem.code.code, problem.message)
        return False
    if not state.acts(now):
        state.report(sender, "R009", f"`{state.me}` does not act as gateway of zone `{state.zone}`")
        return False
    if term < remote.term:
        problem = STALE_TERM(router=sender, term=term, known=remote.term)
        state.report(sender, problem.code.code, problem.message)
        state.send(sender, StaleTerm(zone, remote.term))
        return False
    if term > remote.term:
        remote.term, remote.asked = term, False
        for table in ZONE_TABLES:
            # What the former gateway told stays in force until the new one's table is here.
            state.table_held(table, zone).version = -1
            state.table_sent(table, zone).restart()
        for table in ZONE_TABLES:
            tell(state, table, zone, now)
    remote.heard = now
    return True


def on_zone_hello(state: OverlayState, sender: str, message: ZoneHello, now: float) -> None:
    zone = message.zone
    epoch_exchange.on_epoch_seen(state, sender, message.epoch, now)
    for place, table in enumerate(ZONE_TABLES):
        if message.told[place] > max(state.table_held(table, zone).version, 0):
            pull(state, table, zone, now)
        sent = state.table_sent(table, zone)
        late = now - sent.told > 3 * state.timing.heartbeat
        if sent.acked < sent.version and not sent.whole and (late or message.have_term != state.term):
            sent.restart()  # it did not arrive, or the answer did not
        tell(state, table, zone, now)
