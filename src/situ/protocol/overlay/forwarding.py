"""The way of an event: from its router to interested routers and the gateway, to other gateways, and there on.

Phases only advance: *origin* (published here), *zone* (from the origin to a router of its zone), *inter* (in another
zone, at its gateway), *fan* (from there to a router of that zone). So an event visits at most two routers inside its
zone and four between zones, and the trail proves it: who finds itself in one takes no part.

An acknowledgement means stored, wherever the event has to be, and never comes before that. What is not acknowledged
stays in the outbox of its neighbour, or, where its router may be lost, in the stream it is read from. Everything on a
channel has a place, and only the next one is taken: what is lost is asked for again, so nothing overtakes.

An event that comes from two sides is delivered once: of volatile deliveries routers remember the keys (``seen``), of
durable ones streams know the ids. Where the next hop changes, what is unacknowledged is sent again in order before
anything newer; so any two ways bring the same events in the same order, and the first of each counts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from situ.event.message import EventKey
from situ.lang.catalogue import NO_GATEWAY, OUT_OF_PLACE
from situ.protocol.dedup_window import BELOW, SequenceSet
from situ.protocol.effects import Stored, StoreFailed
from situ.protocol.overlay.effects import (
    Appended,
    AppendFailed,
    AwaitCommit,
    Commit,
    Deliver,
    FetchDocument,
    Follow,
    Settled,
    StreamEntry,
    Unfollow,
)
from situ.protocol.overlay.messages import (
    Forward,
    ForwardAck,
    ForwardNack,
    GatewayAck,
    GatewayForward,
    OverlayEvent,
    OverlayMessage,
    Want,
    want_of,
)
from situ.protocol.overlay.scope_document import ScopeDocument
from situ.protocol.overlay.state import (
    EXTERNAL,
    GATEWAY,
    ZONE_INTEREST,
    Inbox,
    Item,
    Outbox,
    OverlayState,
    Work,
)
from situ.protocol.overlay.tables import is_ready, is_told, settle
from situ.routing.model import Subscription

ORIGIN, ZONE, INTER, FAN = "origin", "zone", "inter", "fan"
MOST_VISITED = {ZONE: 1, FAN: 3}
"""Routers in the trail of what comes in a phase."""


def want_of_subscription(sub: Subscription) -> Want:
    return want_of(sub.types, sub.where, sub.scopes, sub.durable)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Who wants an event.


def is_wanted(state: OverlayState, event: OverlayEvent, want: Want, stamped: ScopeDocument) -> bool:
    """Whether an event is visible to a want, in the epoch of its stamp and in the one in force, and passes."""
    document = state.document
    if document.dimensions or stamped.dimensions:
        if not document.visible(event.tags, want.tags, event.bits):
            return False
        if stamped is not document and not stamped.visible(event.tags, want.tags, event.bits):
            return False
    return not want.where or state.meaning.passes(want.where, event.type, event.data)


def destinations(state: OverlayState, event: OverlayEvent) -> tuple[dict[str, bool], list[Want]]:
    """Where an event is wanted, each with whether durably; and the wants of children among them."""
    found: dict[str, bool] = {}
    own: list[Want] = []
    stamped = state.documents[event.epoch]
    me = state.me
    for want, to in state.matches.wants(state.meaning.above(event.type)):
        if is_wanted(state, event, want, stamped):
            for each in to:
                if each == me:
                    own.append(want)
                else:
                    found[each] = found.get(each, False) or want.durable
    return found, own


def may_hand_over(state: OverlayState, now: float) -> bool:
    """In closed dimensions only whoever confirmed its epoch of late may hand events to clients."""
    return not state.document.is_closed or now < state.epoch_until


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Publication: stored in the root log first, then acknowledged; routed when it is read from there.


def route(state: OverlayState, event: OverlayEvent, work: Work, now: float) -> None:
    """Step 2 and, at the gateway, step 3: an event that was published here, or at a router that was adopted."""
    trail = (state.me,)
    found, own = destinations(state, event)
    deliver(state, event, own, work, now)
    gateway, outward = state.gateway, False
    if state.zones:
        unknown = gateway != state.me and state.table_held(EXTERNAL, gateway).version < 0 if gateway else True
        outward = found.pop(GATEWAY, None) is not None or unknown or gateway == state.me or event.tags in state.unsure
    if outward and gateway == state.me and state.acts(now):
        carry(state, event, trail, work, now)
        outward = False
    for name, durable in found.items():
        duty = outward and name == gateway
        outward = outward and not duty
        send_on(state, name, Item(event, ZONE, trail, work, duty=duty), durable, now)
    if outward:
        item = Item(event, ZONE, trail, work, duty=True, local=False)
        work.left += 1
        if gateway and gateway != state.me:
            push(state, gateway, item, now)
        else:
            state.stranded.append(item)


def send_on(state: OverlayState, name: str, item: Item, durable: bool, now: float) -> None:
    """Send to a peer, or to whoever adopted it; what is volatile goes to nobody who is away."""
    by = state.adopted.get(name)
    if by is not None:
        name = by
    elif not state.peers[name].live and not durable and not item.duty:
        return
    if name == state.me:
        _, own = destinations(state, item.event)
        deliver(state, item.event, own, item.work, now)
        return
    item.work.left += 1
    push(state, name, item, now)


def carry(state: OverlayState, event: OverlayEvent, trail: tuple[str, ...], work: Work, now: float) -> None:
    """The duty of a gateway: what other zones want, or what is not known of them, waits in the store to leave."""
    wanted = zones_for(state, event)
    for zone in state.zones:
        known = state.table_held(ZONE_INTEREST, zone).version >= 0 and (state.flood or is_told(state, zone, event.tags))
        if zone in wanted or not known:
            work.left += 1
            state.append(f"xout/{zone}", str(event.key), (event, trail), work)


def zones_for(state: OverlayState, event: OverlayEvent) -> set[str]:
    """The other zones that want an event and may hold it."""
    stamped = state.documents[event.epoch]
    found: set[str] = set()
    for want, zones in state.outside.wants(state.meaning.above(event.type)):
        if is_wanted(state, event, want, stamped):
            found.update(zones)
    return {zone for zone in found if state.document.may_enter(zone, event.tags, event.bits)}


def fan(state: OverlayState, event: OverlayEvent, trail: tuple[str, ...], work: Work, now: float) -> None:
    """Step 4: what came from another zone goes to the routers of this one that want it."""
    trail = (*trail, state.me)
    found, own = destinations(state, event)
    deliver(state, event, own, work, now)
    for name, durable in found.items():
        if name != GATEWAY:
            send_on(state, name, Item(event, FAN, trail, work), durable, now)


def is_new(state: OverlayState, event: OverlayEvent, now: float) -> bool:
    """Whether this key was not here before; one that is older than the window passes, whoever gets it decides."""
    slot = (event.key.client, event.key.incarnation)
    seen = state.seen.get(slot)
    if seen is None:
        seen = state.seen[slot] = SequenceSet(BELOW)
    state.used[slot] = now
    return seen.add(event.key.seq) or seen.highest - event.key.seq >= BELOW


def deliver(state: OverlayState, event: OverlayEvent, own: Iterable[Want], work: Work, now: float) -> None:
    """Steps 4 and 5: to the children that want it, each once; for durable subscriptions into their streams."""
    if not own:
        return
    producer = event.key.client
    clients: dict[str, list[str]] = {}
    for want in own:
        for id in state.own[want.id][1]:
            client = id.partition("/")[0]
            if client == producer:
                continue
            if want.durable:
                work.left += 1
                state.append(f"out/{id}", str(event.key), event, work)
            else:
                clients.setdefault(client, []).append(id)
    if not clients or not is_new(state, event, now):
        return
    if not may_hand_over(state, now):
        state.report(producer, "", f"{event.key} is not handed over: the epoch was not confirmed")
        return
    children = state.clients.children
    for client, ids in clients.items():
        child = children.get(client)
        if child is not None:
            state.out.append(Deliver(client, child.session, tuple(sorted(ids)), event))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Channels between routers of one zone.


def push(state: OverlayState, to: str, item: Item, now: float) -> None:
    outbox = state.outboxes.get(to)
    if outbox is None:
        outbox = state.outboxes[to] = Outbox()
        new_channel(state, outbox)
    if not outbox.items:
        outbox.since = now
    outbox.items.append(item)
    outbox.sent += 1
    state.send(to, _forward(state, outbox, item, outbox.sent))


def new_channel(state: OverlayState, outbox: Outbox) -> None:
    # Later than every channel of a former incarnation.
    state.channels += 1
    outbox.channel, outbox.acked, outbox.sent = (state.incarnation << 24) + state.channels, 0, 0


def _forward(state: OverlayState, outbox: Outbox, item: Item, place: int) -> Forward:
    return Forward(outbox.channel, place, item.event, item.phase, state.term, item.trail, item.duty, item.local)


def send_again(state: OverlayState, to: str, outbox: Outbox, now: float) -> None:
    """Everything that is not acknowledged, in order."""
    outbox.since = now
    place = outbox.acked
    for item in outbox.items:
        place += 1
        state.send(to, _forward(state, outbox, item, place))
    outbox.sent = place


def rebuild(state: OverlayState, to: str, items: Iterable[Item], now: float) -> None:
    """What waits for a neighbour is something else now: it begins a new channel."""
    outbox = state.outboxes.get(to)
    if outbox is None:
        outbox = state.outboxes[to] = Outbox()
    outbox.items = deque(items)
    new_channel(state, outbox)
    if not outbox.items:
        del state.outboxes[to]
    else:
        send_again(state, to, outbox, now)


def change_gateway(state: OverlayState, former: str, now: float) -> None:
    """Another gateway, or another term: what the former one has not acknowledged goes to this one, in order."""
    moved = state.stranded
    state.stranded = []
    outbox = state.outboxes.get(former)
    if former and former != state.gateway and outbox is not None:
        moved = [item for item in outbox.items if item.duty] + moved
        kept: list[Item] = []
        for item in outbox.items:
            if item.duty and item.local:
                item.work.left += 1
                kept.append(Item(item.event, item.phase, item.trail, item.work))
            elif not item.duty:
                kept.append(item)
        rebuild(state, former, kept, now)
    for item in moved:
        again = Item(item.event, item.phase, item.trail, item.work, duty=True, local=False)
        if state.gateway == state.me:
            if state.acts(now):
                carry(state, item.event, item.trail, item.work, now)
                finish(state, item.work, now)
            else:
                state.stranded.append(again)
        elif state.gateway:
            push(state, state.gateway, again, now)
        else:
            state.stranded.append(again)


def hand_over(state: OverlayState, router: str, by: str, now: float) -> None:
    """What waits for a router goes to its adopter, in order; if the router seems to be there, it goes to both."""
    outbox = state.outboxes.get(router)
    if outbox is None:
        return
    gone = not state.peers[router].live
    if gone:
        del state.outboxes[router]
    for item in tuple(outbox.items):
        if not gone:
            item.work.left += 1
        if by == state.me:
            _, own = destinations(state, item.event)
            deliver(state, item.event, own, item.work, now)
            finish(state, item.work, now)
        else:
            push(state, by, Item(item.event, item.phase, item.trail, item.work), now)


def drop_volatile(state: OverlayState, router: str, now: float) -> None:
    """A router is away for long: only what is durable waits for it."""
    outbox = state.outboxes.get(router)
    if outbox is None:
        return
    kept: list[Item] = []
    for item in outbox.items:
        found, _ = destinations(state, item.event)
        if item.duty or found.get(router, False):
            kept.append(item)
        else:
            finish(state, item.work, now)
    rebuild(state, router, kept, now)


def on_forward(state: OverlayState, sender: str, message: Forward, now: float) -> None:
    inbox = state.inboxes.get(sender)
    if inbox is None or message.channel > inbox.channel:
        if message.place != 1:
            state.send(sender, ForwardAck(message.channel, 0, True))
            return
        inbox = state.inboxes[sender] = Inbox(message.channel)
    elif message.channel < inbox.channel:
        _out_of_place(state, sender, message, f"channel {message.channel} is over")
        return
    place = message.place
    if place <= inbox.taken:
        if place <= inbox.done:
            state.send(sender, ForwardAck(inbox.channel, inbox.done))
        return  # else it is under way, and acknowledged when it is done
    if place != inbox.taken + 1:
        if inbox.asked != inbox.taken:
            inbox.asked = inbox.taken
            state.send(sender, ForwardAck(inbox.channel, inbox.done, True))
        return
    if message.duty and not state.acts(now):
        problem = NO_GATEWAY(router=state.me, zone=state.zone)
        state.report(sender, problem.code.code, problem.message)
        state.send(sender, ForwardNack(message.channel, state.gateway, state.term))
        return
    if not _has_documents(state, message.event, now):
        return  # it waits in the outbox of its sender until the epoch is here
    inbox.taken = place
    work = Work(1, [("ack", sender, inbox.channel, place)])
    if is_looped(state, message):
        _out_of_place(state, sender, message, f"its trail is {' '.join(message.trail)} in phase {message.phase}")
    else:
        if message.local:
            _, own = destinations(state, message.event)
            deliver(state, message.event, own, work, now)
        if message.duty:
            carry(state, message.event, (*message.trail, state.me), work, now)
    finish(state, work, now)


def is_looped(state: OverlayState, message: Forward) -> bool:
    """Whether an event has been here, or has gone further than its phase allows."""
    return state.me in message.trail or len(message.trail) > MOST_VISITED.get(message.phase, -1)


def on_forward_ack(state: OverlayState, sender: str, message: ForwardAck, now: float) -> None:
    outbox = state.outboxes.get(sender)
    if outbox is None or message.channel != outbox.channel or message.place > outbox.sent:
        if outbox is not None or not message.again:
            _out_of_place(state, sender, message, "no such channel is open")
        return
    if message.place > outbox.acked:
        outbox.since = now
    works: list[Work] = []
    while outbox.acked < message.place:
        outbox.acked += 1
        works.append(outbox.items.popleft().work)
    if message.again and outbox.items:
        if message.place == 0 and outbox.acked:
            new_channel(state, outbox)
        send_again(state, sender, outbox, now)
    for work in works:
        finish(state, work, now)


def _out_of_place(state: OverlayState, sender: str, message: OverlayMessage, reason: str) -> None:
    problem = OUT_OF_PLACE(kind=type(message).__name__, router=sender, reason=reason)
    state.report(sender, problem.code.code, problem.message)


def _has_documents(state: OverlayState, event: OverlayEvent, now: float) -> bool:
    """Whether the scopes that an event was stamped with are here, and no later ones are in force elsewhere."""
    if event.epoch in state.documents:
        return True
    if now - state.fetching.get(event.epoch, -1e9) > state.timing.heartbeat:
        state.fetching[event.epoch] = now
        state.out.append(FetchDocument(event.epoch))
    return False


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Work: what is to be done when all stores and forwards of an event have succeeded.


def finish(state: OverlayState, work: Work, now: float) -> None:
    """One of them has."""
    work.left -= 1
    if work.left:
        return
    for then in work.then:
        if then[0] == "read":
            read_done(state, then[1], then[2])
            continue
        kind, sender, channel, place = then
        inbox = state.inboxes.get(sender)
        if inbox is None or inbox.channel != channel:
            continue
        inbox.open[place] = True
        done = inbox.done
        while inbox.open.pop(inbox.done + 1, False):
            inbox.done += 1
        if inbox.done > done and kind == "ack":
            state.send(sender, ForwardAck(channel, inbox.done))
        elif inbox.done > done:
            state.send(sender, GatewayAck(state.zone, channel, inbox.done))


def on_appended(state: OverlayState, given: Appended, now: float) -> None:
    asked = state.asked.pop(given.ticket, None)
    if asked is None:
        return
    stream = asked[1]
    pending = state.appends[stream]
    flight, pending.flight = pending.flight, ()
    state.append_next(stream, pending)
    if not pending.flight:
        del state.appends[stream]
    for (_, item, then), (where, place) in zip(flight, given.places, strict=True):
        if isinstance(then, Work):
            finish(state, then, now)
            continue
        if where != stream:
            # Stored at another router before: that one routes it, and what comes after it waits until it has.
            await_stream(state, item.key, where, place)
        if then is not None:
            state.pass_on(Stored(ticket=then[0], dead=then[1]), now)


def on_append_failed(state: OverlayState, given: AppendFailed, now: float) -> None:
    asked = state.asked.pop(given.ticket, None)
    if asked is None:
        return
    stream = asked[1]
    pending = state.appends[stream]
    pending.ticket = 0
    if stream != f"root/{state.me}":
        return  # the same batch is tried again on the next tick
    # Publishers send again what was not stored, wherever they are by then.
    failed = [*pending.flight, *pending.waiting]
    del state.appends[stream]
    for _, _, then in failed:
        if then is not None:
            state.pass_on(StoreFailed(ticket=then[0], reason="the store of the zone does not answer"), now)


def try_again(state: OverlayState, now: float) -> None:
    """On every tick: what nobody answered goes out again."""
    for stream, pending in tuple(state.appends.items()):
        if pending.flight and not pending.ticket:
            state.append_next(stream, pending)
    late = now - 2 * state.timing.heartbeat
    for name, outbox in state.outboxes.items():
        if outbox.items and outbox.since < late and name in state.peers and state.peers[name].live:
            send_again(state, name, outbox, now)
    if state.acts(now):
        for zone, outbox in state.zone_outboxes.items():
            if outbox.items and outbox.since < late:
                send_zone_again(state, zone, outbox, now)
        if state.stranded and state.gateway == state.me:
            change_gateway(state, "", now)
    for client in tuple(state.parked):
        release(state, client, now)
    for stream in tuple(state.queues):
        pump(state, stream, now)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Streams that are read: the root log, what came from other zones, what is to leave, what waits for clients.


def read_stream(state: OverlayState, stream: str) -> None:
    if stream not in state.reading:
        state.reading[stream] = {}
        state.out.append(Follow(stream))


def stop_reading(state: OverlayState, stream: str) -> None:
    if state.reading.pop(stream, None) is not None:
        state.queues.pop(stream, None)
        state.out.append(Unfollow(stream))


def on_entry(state: OverlayState, given: StreamEntry, now: float) -> None:
    if given.stream not in state.reading:
        state.report("", "R101", f"nobody reads the stream {given.stream} here")
        return
    queue = state.queues.get(given.stream)
    if queue is None:
        queue = state.queues[given.stream] = deque()
    queue.append((given.place, given.item))
    pump(state, given.stream, now)


def pump(state: OverlayState, stream: str, now: float) -> None:
    """Work off a stream as far as it can be: in order, and never before everybody who could want an event was asked."""
    queue = state.queues.get(stream)
    kind, _, of = stream.partition("/")
    while queue:
        place, item = queue[0]
        event = item[0] if kind in ("xin", "xout") else item
        if not _has_documents(state, event, now):
            return
        if kind == "out":
            if not _hand_over(state, stream, of, place, event, now):
                return
        elif not is_ready(state, now):
            return
        elif kind == "root":
            if not settle(state, "", event.tags, now):
                return
            _read_root(state, stream, place, event, now)
        elif not state.acts(now):
            return
        elif kind == "xin":
            if not settle(state, "", event.tags, now):
                return
            work = _reading(state, stream, place)
            fan(state, event, item[1], work, now)
            finish(state, work, now)
        else:
            held = state.table_held(ZONE_INTEREST, of)
            if held.version < 0 or not settle(state, of, event.tags, now):
                return
            _leave_zone(state, stream, of, place, item, now)
        queue.popleft()
    state.queues.pop(stream, None)


def _reading(state: OverlayState, stream: str, place: int) -> Work:
    state.reading[stream][place] = None
    return Work(1, [("read", stream, place)])


def read_done(state: OverlayState, stream: str, place: int) -> None:
    """What was read is done with. Each entry is committed alone: those that wait must not hold up the others."""
    marks = state.reading.get(stream)
    if marks is not None and place in marks:
        del marks[place]
        state.out.append(Commit(stream, place))


def _read_root(state: OverlayState, stream: str, place: int, event: OverlayEvent, now: float) -> None:
    work = _reading(state, stream, place)
    client = event.key.client
    if stream == f"root/{state.me}" and (client in state.parked or _is_behind(state, event.key)):
        state.parked.setdefault(client, []).append((event, work))
        return
    route(state, event, work, now)
    finish(state, work, now)


def _is_behind(state: OverlayState, key: EventKey) -> bool:
    waits = state.behind.get(key.client)
    return waits is not None and any(after < (key.incarnation, key.seq) for after in waits.values())


def stay_behind(state: OverlayState, client: str, ticket: int, after: tuple[int, int]) -> None:
    """Events of a client after that number go on only when what it published elsewhere has: its order stays."""
    state.behind.setdefault(client, {})[ticket] = after
    state.awaited[ticket] = client


def await_stream(state: OverlayState, key: EventKey, stream: str, place: int) -> None:
    """What a client published after this event waits for a place of another router's stream; 0: all it has there."""
    ticket = state.ticket()
    stay_behind(state, key.client, ticket, (key.incarnation, key.seq))
    state.out.append(AwaitCommit(stream, place, key.client, ticket))


def on_committed(state: OverlayState, ticket: int, now: float) -> None:
    client = state.awaited.pop(ticket, None)
    if client is None:
        return
    waits = state.behind[client]
    del waits[ticket]
    if not waits:
        del state.behind[client]
    release(state, client, now)


def release(state: OverlayState, client: str, now: float) -> None:
    """Route what a client published while it stayed behind. It may have left since: its tags may have to be told."""
    waiting = state.parked.get(client)
    while waiting:
        event, work = waiting[0]
        if _is_behind(state, event.key) or not settle(state, "", event.tags, now):
            return  # tried again on the next tick
        waiting.pop(0)
        route(state, event, work, now)
        finish(state, work, now)
    state.parked.pop(client, None)


def _hand_over(state: OverlayState, stream: str, id: str, place: int, event: OverlayEvent, now: float) -> bool:
    """An event leaves the zone's bus for its client, if it is visible to it in both epochs."""
    sub = state.subs.get(id)
    child = state.clients.children.get(id.partition("/")[0])
    if sub is None or child is None or not child.listed:
        return False
    if not may_hand_over(state, now):
        return False
    if is_wanted(state, event, want_of_subscription(sub), state.documents[event.epoch]):
        state.reading[stream][place] = None
        state.out.append(Deliver(sub.client, child.session, (id,), event, place))
    else:
        state.reading[stream][place] = None
        read_done(state, stream, place)
    return True


def on_settled(state: OverlayState, given: Settled, now: float) -> None:
    child = state.clients.children.get(given.client)
    if child is None or child.session != given.session:
        state.report(given.client, "R005", f"session {given.session} of `{given.client}` is over")
        return
    read_done(state, given.stream, given.place)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Between zones.


def _leave_zone(state: OverlayState, stream: str, zone: str, place: int, item: Any, now: float) -> None:
    """Step 3: what another zone still wants is sent to its gateway."""
    event, trail = item
    if zone not in zones_for(state, event):
        state.reading[stream][place] = None
        read_done(state, stream, place)
        return
    # A former gateway may have stored it: this one stands in its place, not behind it.
    trail = (trail[0],) if trail[0] == state.me else (trail[0], state.me)
    work = _reading(state, stream, place)
    outbox = state.zone_outboxes.get(zone)
    if outbox is None:
        outbox = state.zone_outboxes[zone] = Outbox()
        new_channel(state, outbox)
    if not outbox.items:
        outbox.since = now
    outbox.items.append((event, trail, work))
    outbox.sent += 1
    state.send_zone(zone, _gateway_forward(state, outbox, event, trail, outbox.sent))


def _gateway_forward(
    state: OverlayState, outbox: Outbox, event: OverlayEvent, trail: tuple[str, ...], place: int
) -> GatewayForward:
    return GatewayForward(state.zone, state.term, outbox.channel, place, event, trail)


def send_zone_again(state: OverlayState, zone: str, outbox: Outbox, now: float) -> None:
    outbox.since = now
    place = outbox.acked
    for event, trail, _ in outbox.items:
        place += 1
        state.send_zone(zone, _gateway_forward(state, outbox, event, trail, place))


def on_gateway_forward(state: OverlayState, sender: str, message: GatewayForward, now: float) -> None:
    if not state.acts(now):
        problem = NO_GATEWAY(router=state.me, zone=state.zone)
        state.report(sender, problem.code.code, problem.message)
        return
    inbox = state.inboxes.get(sender)
    if inbox is None or message.channel > inbox.channel:
        if message.place != 1:
            state.send(sender, GatewayAck(state.zone, message.channel, 0, True))
            return
        inbox = state.inboxes[sender] = Inbox(message.channel)
    elif message.channel < inbox.channel:
        _out_of_place(state, sender, message, f"channel {message.channel} is over")
        return
    if message.place <= inbox.done:
        state.send(sender, GatewayAck(state.zone, inbox.channel, inbox.done))
        return
    if message.place <= inbox.taken:
        return
    if message.place != inbox.taken + 1:
        if inbox.asked != inbox.taken:
            inbox.asked = inbox.taken
            state.send(sender, GatewayAck(state.zone, inbox.channel, inbox.done, True))
        return
    inbox.taken = message.place
    work = Work(1, [("zone ack", sender, inbox.channel, message.place)])
    if state.me in message.trail or not 1 <= len(message.trail) <= 2:
        _out_of_place(state, sender, message, f"its trail is {' '.join(message.trail)}")
    else:
        work.left += 1
        state.append("xin", str(message.event.key), (message.event, message.trail), work)
    finish(state, work, now)


def on_gateway_ack(state: OverlayState, sender: str, message: GatewayAck, now: float) -> None:
    outbox = state.zone_outboxes.get(message.zone)
    if outbox is None or message.channel != outbox.channel or message.place > outbox.sent:
        _out_of_place(state, sender, message, "no such channel is open")
        return
    if message.place > outbox.acked:
        outbox.since = now
    works: list[Work] = []
    while outbox.acked < message.place:
        outbox.acked += 1
        works.append(outbox.items.popleft()[2])
    if message.again and outbox.items:
        if message.place == 0 and outbox.acked:
            new_channel(state, outbox)
            outbox.sent = len(outbox.items)
        send_zone_again(state, message.zone, outbox, now)
    for work in works:
        finish(state, work, now)
