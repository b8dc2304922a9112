"""A client in the simulator: connects, declares, publishes until it is stored, and moves when its router is silent.

It does what the client library does, with as little as the protocol needs: a queue on disk with keys without gap, a
window for what it has seen, and everything again after a while without answer.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from situ.event.message import EventKey
from situ.protocol.declarations import tags_as_message
from situ.protocol.dedup_window import DedupWindow
from situ.protocol.messages import (
    Ack,
    AdAck,
    Advertise,
    Closed,
    Connect,
    ConnectAck,
    Disconnect,
    FromClient,
    FromRouter,
    FullList,
    FullListAck,
    FullListRequest,
    Heartbeat,
    Loss,
    Nack,
    OfferedAdvertisement,
    Publish,
    PublishAck,
    SubAck,
    Subscribe,
    Unadvertise,
    Unsubscribe,
    WantedSubscription,
)
from situ.protocol.overlay.effects import Deliver
from situ.protocol.overlay.messages import Moved
from situ.protocol.simulator.scenario import Offer, Wish

if TYPE_CHECKING:
    from situ.protocol.simulator.simulation import Simulation

_encode = msgspec.json.Encoder().encode
_BATCH = 20
MOST_QUEUED = 1000


@dataclass(slots=True)
class Wanted:
    """A subscription of a client, and since when it is in force everywhere."""

    wish: Wish
    installed: float | None = None
    removed: bool = False
    seen: DedupWindow = field(default_factory=DedupWindow)


@dataclass(slots=True)
class Offered:
    offer: Offer
    installed: float | None = None
    asked: float = 0.0


class SimulatedClient:
    """See the module. ``router`` is where it is, ``session`` counts its connections."""

    def __init__(self, name: str, router: str, run: Simulation) -> None:
        self.name = name
        self.router = router
        self.run = run
        self.up = True
        self.session = 0
        self.incarnation = 1
        self.listed = False
        self.heard = 0.0
        self.tried = 0
        self.ads: dict[str, Offered] = {}
        self.subs: dict[str, Wanted] = {}
        self.queue: deque[tuple[int, str, str, Any, float]] = deque()
        self.next = 1
        self.stored = 0
        self.lost: tuple[int, int] | None = None
        self.flight: float | None = None
        self.batch: list[tuple[int, str, str, Any, float]] = []
        self.requests: dict[str, tuple[FromClient, float]] = {}
        self.req = 0
        self.asleep = False

    # ── connecting ──

    def connect(self, now: float) -> None:
        self.session += 1
        self.listed = False
        self.flight = None
        self.heard = now
        self.requests.clear()
        self.send(Connect(incarnation=self.incarnation))

    def send(self, message: FromClient) -> None:
        self.run.from_client(self, message)

    def move(self, now: float, to: str = "") -> None:
        """Connect to another router of the zone."""
        if self.up:
            members = self.run.scenario.zones[self.router.partition("/")[0]]
            others = [each for each in members if each != self.router] or list(members)
            if self.listed:
                self.send(Disconnect(reason="moves"))
            self.router = to or self.run.chance.one_of(others)
            self.tried = 0
            self.connect(now)

    def tick(self, now: float) -> None:
        """Every so often: what was not answered is sent again; a silent router is left."""
        timing = self.run.scenario.timing
        patience = 2 * timing.heartbeat
        if not self.up:
            return
        if now - self.heard > patience:
            self.tried += 1
            self.heard = now
            if self.tried > 2:
                self.move(now)
                return
            if not self.listed:
                self.connect(now)
                return
        if not self.listed:
            return
        self.send(Heartbeat())
        for key, (message, sent) in tuple(self.requests.items()):
            if now - sent > patience:
                self.requests[key] = (message, now)
                self.send(message)
        if self.flight is not None and now - self.flight > patience:
            self.flight = None
        self.publish_next(now)

    # ── what a person asks of it ──

    def advertise(self, name: str, offer: Offer, now: float) -> None:
        self.ads[name] = Offered(offer, asked=now)
        if self.listed:
            self.req += 1
            tags = tags_as_message(offer.tags)
            self._request(
                f"ad/{name}", Advertise(req=self.req, ad=name, type=offer.type, filter=offer.where, scopes=tags), now
            )

    def subscribe(self, name: str, wish: Wish, now: float) -> None:
        self.subs[name] = Wanted(wish)
        if self.listed:
            self.req += 1
            wanted = _wanted(wish)
            message = Subscribe(
                req=self.req,
                sub=name,
                types=wanted.types,
                filter=wanted.filter,
                durable=wanted.durable,
                scopes=wanted.scopes,
            )
            self._request(f"sub/{name}", message, now)

    def unsubscribe(self, name: str, now: float) -> None:
        wanted = self.subs.get(name)
        if wanted is not None and (wanted.removed or wanted.installed is not None) and self.listed:
            self.req += 1
            self._request(f"unsub/{name}", Unsubscribe(req=self.req, sub=name), now)
            if not wanted.removed:
                self.run.checks.unsubscribes(self.name, name)
            wanted.installed, wanted.removed = None, True

    def unadvertise(self, name: str, now: float) -> None:
        if name in self.ads and self.listed:
            self.req += 1
            self._request(f"unad/{name}", Unadvertise(req=self.req, ad=name), now)

    def publish(self, name: str, data: Any, now: float) -> None:
        offered = self.ads.get(name)
        if not self.up or offered is None:
            return
        seq = self.next
        self.next += 1
        type = self.run.type_of(offered.offer, seq)
        self.queue.append((seq, name, type, data, now))
        self.run.checks.published(EventKey(self.name, self.incarnation, seq), type, data, offered.offer, now)
        if len(self.queue) > MOST_QUEUED:
            first = self.queue.popleft()[0]
            self.lost = (self.lost[0] if self.lost is not None else first, first)
            self.run.checks.given_up(EventKey(self.name, self.incarnation, first))
        self.publish_next(now)

    def publish_next(self, now: float) -> None:
        """The next events, if none are under way; under an advertisement that is in force, or was long enough asked."""
        if not self.listed or self.flight is not None:
            return
        if self.lost is not None:
            self.flight = now
            self.send(Loss(from_seq=self.lost[0], to_seq=self.lost[1], reason="the queue was full"))
            return
        # What is sent again has the same boundaries.
        batch = self.batch = [each for each in self.batch if each[0] > self.stored]
        for each in self.queue if not batch else ():
            offered = self.ads.get(each[1])
            waits = offered is not None and offered.installed is None
            if waits and now - max(offered.asked, each[4]) < self.run.scenario.timing.install + 0.5:  # type: ignore[union-attr]
                break
            batch.append(each)
            if len(batch) >= _BATCH:
                break
        if batch:
            self.flight = now
            key = EventKey(self.name, self.incarnation, batch[0][0])
            body = _encode([(name, type, data) for _, name, type, data, _ in batch])
            self.run.checks.sent([EventKey(self.name, self.incarnation, each[0]) for each in batch], now)
            self.send(Publish(key=key, count=len(batch), body=body))

    def _request(self, key: str, message: FromClient, now: float) -> None:
        self.requests[key] = (message, now)
        self.send(message)

    # ── what its router says ──

    def receive(self, router: str, session: int, message: FromRouter | Deliver | Moved, now: float) -> None:
        if not self.up or router != self.router:
            return
        self.heard, self.tried = now, 0
        if isinstance(message, Deliver):
            self._deliver(message)
        elif isinstance(message, ConnectAck):
            return
        elif isinstance(message, FullListRequest):
            if session == self.session and not self.listed:
                self._tell_all()
            elif session == 0:
                self.connect(now)  # the router has begun anew
        elif isinstance(message, FullListAck):
            self.listed = True
            for name in [name for name, each in self.subs.items() if each.removed]:
                self.unsubscribe(name, now)
            self.publish_next(now)
        elif isinstance(message, AdAck):
            self.requests.pop(f"ad/{message.ad}", None)
            if message.ad in self.ads and message.state == "installed":
                self.ads[message.ad].installed = self.ads[message.ad].installed or now
                self.publish_next(now)
        elif isinstance(message, SubAck):
            self.requests.pop(f"sub/{message.sub}", None)
            wanted = self.subs.get(message.sub)
            if wanted is not None and message.state == "installed" and wanted.installed is None:
                wanted.installed = now
                if not wanted.removed and f"unsub/{message.sub}" not in self.requests:
                    self.run.checks.installed(self.name, message.sub, wanted.wish, now)
        elif isinstance(message, PublishAck):
            self._stored(message.up_to, now)
        elif isinstance(message, Nack):
            self._refused(message, now)
        elif isinstance(message, Closed):
            if message.session > self.session:
                self.session = message.session
                self.connect(now)
        elif isinstance(message, Moved):
            self.move(now, self.run.chance.one_of(message.routers) if message.routers else "")
        elif isinstance(message, Ack):
            self._done(message, now)

    def _tell_all(self) -> None:
        ads: dict[str, str | OfferedAdvertisement] = {
            name: OfferedAdvertisement(
                type=each.offer.type, filter=each.offer.where, scopes=tags_as_message(each.offer.tags)
            )
            for name, each in self.ads.items()
        }
        subs = {name: _wanted(each.wish) for name, each in self.subs.items()}
        self.send(FullList(acked=self.stored, ads=ads, subs=subs))

    def _stored(self, up_to: int, now: float) -> None:
        self.flight = None
        self.stored = max(self.stored, up_to)
        while self.queue and self.queue[0][0] <= self.stored:
            self.queue.popleft()
        self.publish_next(now)

    def _refused(self, nack: Nack, now: float) -> None:
        if nack.code in ("R001", "R005"):
            if nack.name == "incarnation" and nack.expected is not None:
                return
            if nack.code == "R005" and nack.expected is not None:
                self.session = max(self.session, nack.expected - 1)
            self.connect(now)
        elif nack.of == "Publish":
            self.run.later(self.run.scenario.timing.heartbeat / 2, self._try_again, self.session)
        elif nack.of == "Unsubscribe":
            for key in [key for key, (request, _) in self.requests.items() if getattr(request, "req", 0) == nack.req]:
                del self.requests[key]
                self.subs.pop(key.removeprefix("unsub/"), None)

    def _try_again(self, session: int) -> None:
        if session == self.session and self.batch:
            self.flight = None
            self.publish_next(self.run.now)

    def _done(self, message: Ack, now: float) -> None:
        if self.lost is not None and not message.req and self.flight is not None:
            self.stored, self.lost, self.flight = max(self.stored, self.lost[1]), None, None
            self.publish_next(now)
            return
        for key, (request, _) in tuple(self.requests.items()):
            if message.req and getattr(request, "req", 0) == message.req:
                del self.requests[key]
                if key.startswith("unsub/"):
                    self.subs.pop(key.removeprefix("unsub/"), None)
                    self.run.checks.unsubscribed(self.name, key.removeprefix("unsub/"))
                elif key.startswith("unad/"):
                    self.ads.pop(key.removeprefix("unad/"), None)

    def _deliver(self, message: Deliver) -> None:
        if message.session != self.session:
            return
        key = message.event.key
        for id in message.subs:
            wanted = self.subs.get(id.partition("/")[2])
            if wanted is not None and wanted.seen.add(key.client, key.incarnation, key.seq):
                self.run.checks.called_back(self, id, message.event)
            elif wanted is None:
                self.run.checks.stray(id, message.event)
            if message.place:
                self.run.settle(self, f"out/{id}", message.place)

    # ── faults ──

    def crash(self) -> None:
        """The process ends; what is on disk stays: its queue, its window, and which session was its last."""
        self.up = False
        self.listed = False

    def restart(self, now: float) -> None:
        self.up = True
        self.connect(now)


def _wanted(wish: Wish) -> WantedSubscription:
    return WantedSubscription(
        types=wish.types, filter=wish.where, durable=wish.durable, scopes=tags_as_message(wish.tags)
    )
