"""Who is the gateway of a zone: a lease with terms, written by compare-and-set.

The value is (router, term, n). Whoever sees none, or the same one for the length of the lease on its own clock, writes
itself with the next term over the value it saw; losers take what is there. The holder writes n + 1 every so often. If
its last write that succeeded was *sent* too long ago it stops acting, though its term may still be the highest: as
clocks run alike within a tenth, nobody else can have won before. Only what a write came to counts, never what was read.

Tables and announcements carry the term and lower ones are refused. Events of a former gateway are not: their keys make
them harmless copies, and one that was acknowledged would be lost.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from situ.lang.catalogue import NO_GATEWAY, STALE_TERM
from situ.protocol.overlay import forwarding
from situ.protocol.overlay.effects import Cas, Listen
from situ.protocol.overlay.messages import Adopted, ForwardNack, GatewayAnnounce, StaleTerm, ZoneHello
from situ.protocol.overlay.state import (
    EXTERNAL,
    GATEWAY,
    INTEREST,
    ZONE_INTEREST,
    ZONE_SLT,
    ZONE_TABLES,
    OverlayState,
    Wait,
)
from situ.protocol.overlay.tables import check_waits, is_ready, own_want, refresh, rows_changed
from situ.routing.model import Subscription

LEASE = "gateway"
ADOPT = "adopt/"
FEED = "feed/"


def is_over(state: OverlayState, term: int) -> bool:
    """Whether a term is over: a later one is known."""
    return term < state.term


def check_lease(state: OverlayState, now: float) -> None:
    """On every tick: renew the lease, give it up, or try to get it."""
    lease, timing = state.lease, state.timing
    if lease.asked and now - lease.asked_at < timing.renew:
        return
    if lease.acting:
        if not state.acts(now):
            step_down(state, now)
        elif lease.value is not None and now - lease.written >= timing.renew - timing.heartbeat / 2:
            router, term, number = lease.value
            _write(state, lease.value, (router, term, number + 1), now)
        return
    if lease.value is not None and now - lease.seen < timing.lease + _jitter(state):
        return
    if lease.value is None and now - state.booted < _jitter(state):
        return
    term = max(state.term, lease.value[1] if lease.value is not None else 0) + 1
    _write(state, lease.value, (state.me, term, 0), now)


def _jitter(state: OverlayState) -> float:
    """So that not all try at once: a part of a heartbeat, another one for each router and term."""
    digest = blake2b(f"{state.me}.{state.term}".encode(), digest_size=2).digest()
    return state.timing.heartbeat * int.from_bytes(digest) / 65536


def _write(state: OverlayState, expected: Any, value: Any, now: float) -> None:
    state.lease.asked = ticket = state.ticket()
    state.lease.asked_at = now
    state.asked[ticket] = ("lease", value)
    state.out.append(Cas(LEASE, expected, value, ticket))


def on_lease_written(state: OverlayState, wanted: tuple[str, int, int], ok: bool, value: Any, now: float) -> None:
    """A write of the lease came to an end: it was won, renewed, or somebody else has it."""
    lease = state.lease
    sent = lease.asked_at
    lease.asked = 0
    found = wanted if ok else value
    if found != lease.value or ok:
        lease.value, lease.seen = found, now
    if found == wanted:
        # An answer that was lost was a success all the same, if the value is still there.
        lease.written = sent
        if not lease.acting and now - sent <= state.timing.stop:
            _begin(state, wanted[1], now)
    elif lease.acting:
        step_down(state, now)


def on_lease_seen(state: OverlayState, value: Any, now: float) -> None:
    lease = state.lease
    if value != lease.value and not (lease.acting and value is not None and value[0] == state.me):
        lease.value, lease.seen = value, now
        if lease.acting and value is not None and value[1] > state.term:
            step_down(state, now)


def _begin(state: OverlayState, term: int, now: float) -> None:
    """Won: from now on this router is the zone's voice, with everything still to be learnt from other zones."""
    state.lease.acting = True
    state.changed_at = now
    state.out.append(Listen(True))
    announce(state, state.me, term, now)
    for name in state.peers:
        state.send(name, GatewayAnnounce(state.me, term))
    for zone in state.zones:
        for table in ZONE_TABLES:
            state.table_sent(table, zone).restart()
        state.zones[zone].asked = False
        # What waits for a zone was chosen by what that zone wanted of the gateway before: its own answer is needed.
        state.table_held(ZONE_INTEREST, zone).version = -1
        state.table_held(ZONE_SLT, zone).version = -1
        hello(state, zone, now)
    for stream in ["xin", *(f"xout/{zone}" for zone in state.zones)]:
        forwarding.read_stream(state, stream)
    refresh(state, now)


def step_down(state: OverlayState, now: float) -> None:
    """Stop acting. What is under way ends in copies that nobody needs."""
    if not state.lease.acting:
        return
    state.lease.acting = False
    state.out.append(Listen(False))
    for stream in ["xin", *(f"xout/{zone}" for zone in state.zones)]:
        forwarding.stop_reading(state, stream)
    for name in state.zones:
        state.zone_outboxes.pop(name, None)
    for router, by in tuple(state.adopted.items()):
        if by == state.me:
            forwarding.stop_reading(state, f"root/{router}")


def announce(state: OverlayState, router: str, term: int, now: float) -> None:
    """A gateway is known, from its announcement or a sign of life: what waits for the former one goes to it first."""
    former = state.gateway
    state.gateway, state.term = router, term
    if former != router and former and former != state.me:
        held = state.held.pop((EXTERNAL, former), None)
        for want in held.entries.values() if held is not None else ():
            state.matches.remove(want, GATEWAY)  # type: ignore[arg-type]
    elif (EXTERNAL, router) in state.held:
        state.held[EXTERNAL, router].version = -1
    forwarding.change_gateway(state, former, now)
    if former == state.me and router != state.me:
        step_down(state, now)
        for name in state.peers:
            state.sent.pop((EXTERNAL, name), None)
        rows_changed(state, now)
    elif router == state.me:
        for name in state.peers:
            state.table_sent(EXTERNAL, name).restart()
    state.settled.clear()
    _wait_for_gateway(state)
    check_waits(state, now)


def _wait_for_gateway(state: OverlayState) -> None:
    """Who confirms for other zones is another one now; what was owed to others as gateway is owed no more."""
    kept: list[Wait] = []
    for wait in state.waits:
        if wait.then[0] not in ("installed", "rows"):
            if state.gateway == state.me:
                kept.append(wait)
            continue
        table = wait.then[2]
        if table == "feed":
            kept.append(wait)
            continue
        for key in [key for key in wait.needs if key[0] in ZONE_TABLES]:
            del wait.needs[key]
        if state.gateway != state.me:
            wait.needs.setdefault((table, state.gateway), state.table_sent(table, state.gateway).needed)
        else:
            outer = ZONE_INTEREST if table == INTEREST else ZONE_SLT
            wait.needs |= {(outer, zone): state.table_sent(outer, zone).needed for zone in state.zones}
        kept.append(wait)
    state.waits = kept


def on_announce(state: OverlayState, sender: str, message: GatewayAnnounce, now: float) -> None:
    if is_over(state, message.term):
        problem = STALE_TERM(router=sender, term=message.term, known=state.term)
        state.report(sender, problem.code.code, problem.message)
        state.send(sender, StaleTerm(state.zone, state.term))
    elif (message.router, message.term) != (state.gateway, state.term):
        announce(state, message.router, message.term, now)


def on_stale_term(state: OverlayState, sender: str, message: StaleTerm, now: float) -> None:
    if message.zone == state.zone and message.term > state.term:
        step_down(state, now)
    elif message.zone != state.zone:
        state.report(sender, "R014", f"`{sender}` speaks of a term of another zone")


def on_forward_nack(state: OverlayState, sender: str, message: ForwardNack, now: float) -> None:
    problem = NO_GATEWAY(router=sender, zone=state.zone)
    state.report(sender, problem.code.code, problem.message)
    if message.term > state.term and message.gateway in state.peers and message.gateway != sender:
        announce(state, message.gateway, message.term, now)


def hello(state: OverlayState, zone: str, now: float) -> None:
    remote = state.zones[zone]
    told = [state.table_sent(table, zone).version for table in ZONE_TABLES]
    have = [state.table_held(table, zone).version for table in ZONE_TABLES]
    message = ZoneHello(
        state.zone, state.term, state.document.epoch, (told[0], told[1]), (have[0], have[1]), remote.term
    )
    state.send_zone(zone, message)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Adoption: what a router left behind is looked after by the gateway, until that router comes back. Its slice of the
# root log is read on from where it was committed; its durable subscriptions are fed by the adopter from then on.


def check_adoption(state: OverlayState, now: float) -> None:
    """As gateway, on every tick: see to what belongs to routers that are away."""
    if not state.acts(now) or not is_ready(state, now):
        return
    for name, peer in state.peers.items():
        if peer.live or now - max(peer.heard, state.booted) < state.timing.removed:
            continue
        value = state.keys.get(ADOPT + name)
        if value is not None and value[0] == state.me:
            if value[1] and state.adopted.get(name) != state.me:
                _adopt(state, name, now)
            elif value[1]:
                forwarding.read_stream(state, f"root/{name}")
            elif not value[1]:
                _take_feeds(state, name, value)
        elif not any(asked[:2] == ("adopt", name) for asked in state.asked.values()):
            state.write_key(ADOPT + name, (state.me, False), ("adopt", name))


def _take_feeds(state: OverlayState, router: str, value: Any) -> None:
    """Take the durable subscriptions of a router; when all are taken, say so."""
    left = [key for key, feed in state.keys.items() if key.startswith(FEED) and feed is not None and feed[0] == router]
    for key in left:
        if not any(asked[:2] == ("feed", key) for asked in state.asked.values()):
            state.write_key(key, (state.me, *state.keys[key][1:2], router, state.keys[key][3]), ("feed", key))
    if not left and not any(asked[:2] == ("adopt", router) for asked in state.asked.values()):
        state.write_key(ADOPT + router, (state.me, True), ("adopt", router))


def on_key_written(state: OverlayState, key: str, wanted: Any, ok: bool, value: Any, now: float) -> None:
    """A write came to an end. If another value is there, it is looked at again on the next tick."""
    on_key_seen(state, key, wanted if ok else value, now)


def on_key_seen(state: OverlayState, key: str, value: Any, now: float) -> None:
    """A key has this value: a durable subscription changed hands, or a router was adopted or came back."""
    before = state.keys.get(key)
    if value is None:
        state.keys.pop(key, None)
    else:
        state.keys[key] = value
    if key.startswith(FEED) and before != value:
        feed_changed(state, key.removeprefix(FEED), value, now)
    elif key.startswith(ADOPT):
        _adoption_changed(state, key.removeprefix(ADOPT), value, now)


def _adoption_changed(state: OverlayState, router: str, value: Any, now: float) -> None:
    if router == state.me:
        return
    if value is not None and value[1]:
        if value[0] != state.me:
            note_adopted(state, router, value[0], now)
        elif state.adopted.get(router) != state.me:
            _adopt(state, router, now)
    elif value is None:
        if any(
            key.startswith(FEED) and feed[0] == state.me and not is_fed(state, key.removeprefix(FEED))
            for key, feed in state.keys.items()
        ):
            _adopt(state, router, now)  # it came back while it was being adopted: what was taken stays here
        if state.adopted.get(router) == state.me:
            del state.adopted[router]
            forwarding.stop_reading(state, f"root/{router}")


def _adopt(state: OverlayState, router: str, now: float) -> None:
    """All that a router left is taken. Peers hear of it before they hear of any want that came with it: what waits for
    that router goes ahead of what is newer."""
    state.adopted[router] = state.me
    state.adopting[router] = now + state.timing.removed
    for key, feed in state.keys.items():
        if key.startswith(FEED) and feed[0] == state.me:
            feed_changed(state, key.removeprefix(FEED), feed, now)
    forwarding.hand_over(state, router, state.me, now)
    if state.acts(now):
        forwarding.read_stream(state, f"root/{router}")
    for name in state.live_peers():
        state.send(name, Adopted(router, state.me, state.term))


def note_adopted(state: OverlayState, router: str, by: str, now: float) -> None:
    """What waits for a router goes to whoever adopted it, before anything newer."""
    if router == state.me or router not in state.peers or state.adopted.get(router) == by:
        return
    if not state.peers[router].live:
        state.adopted[router] = by
    forwarding.hand_over(state, router, by, now)


def is_adopting(state: OverlayState) -> bool:
    """Whether durable subscriptions of a router are being taken: they are in force together."""
    return any(key.startswith(ADOPT) and value == (state.me, False) for key, value in state.keys.items())


def on_adopted(state: OverlayState, sender: str, message: Adopted, now: float) -> None:
    if is_over(state, message.term) or message.by != sender or message.router == state.me:
        problem = STALE_TERM(router=sender, term=message.term, known=state.term)
        state.report(sender, problem.code.code, problem.message)
        return
    note_adopted(state, message.router, message.by, now)


def feed_changed(state: OverlayState, id: str, value: Any, now: float) -> None:
    """Who feeds a durable subscription: it stays with the router that declared it, wherever its client is."""
    sub = state.subs.get(id)
    mine = value is not None and value[0] == state.me
    if mine and not is_fed(state, id):
        if is_adopting(state):
            return
        state.leaving.pop(id, None)
        sub = sub or subscription_from(id, value[1])
        state.subs[id] = sub
        put_want(state, sub, now)
    elif not mine and sub is not None and is_fed(state, id):
        if value is None:
            let_go(state, id, now)
        else:
            # Events on their way here are stored as before, until everybody sends to the new one.
            state.leaving[id] = now + state.timing.removed


def let_go(state: OverlayState, id: str, now: float) -> None:
    """Feed a durable subscription no more."""
    sub = state.subs[id]
    drop_want(state, sub, now)
    if sub.client not in state.clients.children:
        del state.subs[id]


def check_feeds(state: OverlayState, now: float) -> None:
    """On every tick: what others feed for long enough."""
    for id, due in tuple(state.leaving.items()):
        if now >= due:
            del state.leaving[id]
            if is_fed(state, id):
                let_go(state, id, now)
    for router, due in tuple(state.adopting.items()):
        if now >= due:
            del state.adopting[router]


def is_fed(state: OverlayState, id: str) -> bool:
    sub = state.subs.get(id)
    return sub is not None and any(id in subs for _, subs in state.own.values())


def put_want(state: OverlayState, sub: Subscription, now: float) -> None:
    want = forwarding.want_of_subscription(sub)
    found = state.own.get(want.id)
    if found is None:
        state.own[want.id] = (want, {sub.id: None})
        own_want(state, want, now)
    else:
        found[1][sub.id] = None


def drop_want(state: OverlayState, sub: Subscription, now: float) -> None:
    want = forwarding.want_of_subscription(sub)
    found = state.own.get(want.id)
    if found is not None:
        found[1].pop(sub.id, None)
        if not found[1]:
            del state.own[want.id]
            own_want(state, want, now)


def subscription_from(id: str, value: Any) -> Subscription:
    return Subscription.from_json(id, value)
