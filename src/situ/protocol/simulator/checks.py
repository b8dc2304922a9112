"""What must hold in every run: the invariants I1 to I6 and the requirements (a) to (d) at every step.

Requirement (e), and that nothing is left anywhere, is checked once everything is healed and quiet.

Everything is judged anew from what the simulator itself knows, with the declarations and scopes alone; what routers
believe counts for nothing, but for I5, which is about what they were told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from situ.event.message import EventKey
from situ.protocol.overlay.effects import Deliver
from situ.protocol.overlay.messages import Forward, GatewayForward, OverlayEvent
from situ.protocol.overlay.state import GATEWAY, INTEREST, ZONE_INTEREST, OverlayState
from situ.protocol.simulator.scenario import Offer, Wish

if TYPE_CHECKING:
    from situ.protocol.simulator.client import SimulatedClient
    from situ.protocol.simulator.simulation import Host, Simulation

PHASES = {"zone": 1, "fan": 3}


@dataclass(frozen=True, slots=True)
class Violation:
    """What did not hold, when, and which event or whom it is about."""

    rule: str
    at: float
    about: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule} at {self.at:.3f} s: {self.text}"


class Violated(Exception):
    """Ends a run."""

    def __init__(self, violation: Violation) -> None:
        super().__init__(str(violation))
        self.violation = violation


@dataclass(slots=True)
class Publication:
    type: str
    data: Any
    offer: Offer
    published: float
    sent: float | None = None
    given_up: bool = False


class Checks:
    """See the module. Raises :class:`Violated` at the first thing that does not hold."""

    def __init__(self, run: Simulation) -> None:
        self.run = run
        self.publications: dict[EventKey, Publication] = {}
        self.wishes: dict[str, tuple[Wish, float]] = {}
        """Durable subscription that is in force → since when."""
        self.ended: dict[str, float] = {}
        self.received: dict[str, set[EventKey]] = {}
        self.latest: dict[tuple[str, str, int], int] = {}
        self.handed: dict[tuple[str, int, str, int], set[EventKey]] = {}
        """Router, its incarnation, subscription, session → what was delivered to it."""
        self.terms: dict[tuple[str, int], int] = {}
        self.gateways: dict[tuple[str, int], str] = {}
        self.gone: set[tuple[int, str, EventKey]] = set()
        self.completed = 0
        self.delivered = 0

    def fail(self, rule: str, about: object, text: str) -> None:
        raise Violated(Violation(rule, self.run.now, str(about), text))

    # ── what clients do ──

    def published(self, key: EventKey, type: str, data: Any, offer: Offer, now: float) -> None:
        self.publications[key] = Publication(type, data, offer, now)

    def sent(self, keys: list[EventKey], now: float) -> None:
        for key in keys:
            found = self.publications[key]
            if found.sent is None:
                found.sent = now

    def given_up(self, key: EventKey) -> None:
        self.publications[key].given_up = True

    def installed(self, client: str, name: str, wish: Wish, now: float) -> None:
        if wish.durable:
            self.wishes.setdefault(f"{client}/{name}", (wish, now))

    def unsubscribes(self, client: str, name: str) -> None:
        self.wishes.pop(f"{client}/{name}", None)
        self.ended[f"{client}/{name}"] = self.run.now

    def unsubscribed(self, client: str, name: str) -> None:
        self.ended[f"{client}/{name}"] = self.run.now

    # ── requirements (a) to (d), I3 and I4, where a client is called back ──

    def called_back(self, client: SimulatedClient, id: str, event: OverlayEvent) -> None:
        key = event.key
        self.delivered += 1
        wanted = client.subs[id.partition("/")[2]]
        published = self.publications.get(key)
        if published is None or published.type != event.type or published.data != event.data:
            self.fail("(b)", key, f"`{id}` gets {key}, which nobody published like that")
            return
        if key.client == client.name:
            self.fail("(c)", key, f"`{id}` gets {key}, its own event")
        if not any(type in wanted.wish.types for type in self.run.world.meaning.above(event.type)) or (
            wanted.wish.where and not self.run.world.meaning.passes(wanted.wish.where, event.type, event.data)
        ):
            self.fail("(a)", key, f"`{id}` gets {key}, which is not what it is subscribed to")
        received = self.received.setdefault(id, set())
        if key in received:
            self.fail("(d)", key, f"`{id}` gets {key} twice")
        received.add(key)
        line = (id, key.client, key.incarnation)
        # What was published before the subscription was in force everywhere is not owed to it, and may come late.
        owed = wanted.installed is not None and published.published >= wanted.installed
        if owed and key.seq < self.latest.get(line, 0):
            self.fail("I4", key, f"`{id}` gets {key} after number {self.latest[line]} of the same client")
        self.latest[line] = max(key.seq, self.latest.get(line, 0))

    def stray(self, id: str, event: OverlayEvent) -> None:
        if id not in self.ended:
            self.fail("(a)", event.key, f"`{id}` gets {event.key} and has never been subscribed")

    # ── what routers do ──

    def delivers(self, host: Host, effect: Deliver) -> None:
        """A router hands an event to a client: visible at this moment, and of what is volatile each once."""
        event, key = effect.event, effect.event.key
        state = host.state
        assert state is not None, "who delivers is up"
        world = self.run.world
        client = self.run.clients[effect.client]
        for id in effect.subs:
            wanted = client.subs.get(id.partition("/")[2])
            if wanted is None:
                continue
            offer = self.publications[key].offer if key in self.publications else None
            if offer is None or offer.tags != event.tags:
                self.fail("(b)", key, f"{key} goes to `{id}` with tags that it was not published under")
            for epoch in {event.epoch, max(state.document.epoch, self.completed)}:
                document = world.documents[epoch]
                closed = epoch in (event.epoch, state.document.epoch) or document.is_closed
                if closed and not document.visible(event.tags, wanted.wish.tags, event.bits):
                    self.fail("(c)", key, f"`{id}` gets {key}, which is not visible to it in epoch {epoch}")
            if not effect.place:
                handed = self.handed.setdefault((host.name, host.incarnation, id, effect.session), set())
                if key in handed:
                    self.fail("I3", key, f"{host.name} delivers {key} to `{id}` twice")
                handed.add(key)

    def forwards(self, host: Host, to: str, message: Forward) -> None:
        """I1, I2 and I5 where an event goes from a router to another one of its zone."""
        event, trail = message.event, message.trail
        if host.name != trail[-1] or to in trail or len(set(trail)) != len(trail):
            self.fail("I2", event.key, f"{event.key} goes to {to} with the trail {' '.join(trail)}")
        inside = sum(name.partition("/")[0] == host.zone for name in trail)
        if inside != 1 or len(trail) > PHASES.get(message.phase, 0):
            self.fail("I1", event.key, f"{event.key} goes to {to} in phase {message.phase}: {' '.join(trail)}")
        once = (host.incarnation, to, event.key)
        if once in self.gone:
            return  # sent again: what was right when it was first sent
        self.gone.add(once)
        state = host.state
        assert state is not None, "who forwards is up"
        if message.local and not self._wanted(state, event, to):
            self.fail("I5", event.key, f"{event.key} goes to {to}, where nobody was known to want it")

    def _wanted(self, state: OverlayState, event: OverlayEvent, to: str) -> bool:
        away = {name for name, by in state.adopted.items() if by == to}
        for want, directions in state.matches.wants(state.meaning.above(event.type)):
            if (to in directions or away & directions.keys()) and self._matches(want.where, want.tags, event):
                return True
        # What waits for a router that is being adopted goes to its adopter, whatever that one has wanted so far.
        adopter = self.run.hosts[to].state
        return adopter is not None and bool(adopter.adopting)

    def _matches(self, where: str, tags: Any, event: OverlayEvent) -> bool:
        world = self.run.world
        return world.documents[event.epoch].visible(event.tags, tags, event.bits) and (
            not where or world.meaning.passes(where, event.type, event.data)
        )

    def leaves(self, host: Host, zone: str, message: GatewayForward) -> None:
        """I1, I2, I5 and carriers where an event goes to another zone."""
        event, trail = message.event, message.trail
        state = host.state
        assert state is not None, "who forwards is up"
        if len(trail) > 2 or any(name.partition("/")[0] != host.zone for name in trail) or trail[-1] != host.name:
            self.fail("I1", event.key, f"{event.key} leaves for {zone} with the trail {' '.join(trail)}")
        if not state.document.may_enter(zone, event.tags, event.bits):
            self.fail("carriers", event.key, f"{event.key} goes to zone {zone}, which may not hold it")

    def client_at(self, host: Host, client: str, said: int, session: int) -> None:
        """Only a later session elsewhere ends one here."""
        state = host.state
        if state is not None and said <= session and client not in state.clients.children:
            self.fail("sessions", client, f"{host.name} lets `{client}` go in session {session} for session {said}")

    def stepped(self, host: Host) -> None:
        """I6: one gateway acts, its term is its own, and terms do not fall."""
        state = host.state
        assert state is not None, "who steps is up"
        known = self.terms.get((host.name, host.incarnation), 0)
        if state.term < known:
            self.fail("I6", host.name, f"{host.name} falls from term {known} to {state.term}")
        self.terms[host.name, host.incarnation] = state.term
        if not state.lease.acting:
            return
        run = self.run
        until = host.true_time(state.lease.written + state.timing.stop)
        other = self.gateways.setdefault((host.zone, state.term), host.name)
        if other != host.name:
            self.fail("I6", host.name, f"{host.name} and {other} are both gateway of {host.zone} in term {state.term}")
        if until < run.now:
            return
        former = run.acting.get(host.zone)
        if (
            former is not None
            and former[0] != host.name
            and former[1] > run.now
            and run.hosts[former[0]].is_acting(run.now)
        ):
            self.fail("I6", host.name, f"{host.name} and {former[0]} act as gateway of {host.zone} at once")
        run.acting[host.zone] = (host.name, until)

    # ── at the end ──

    def final(self) -> None:
        """(e): every durable subscription got everything; and nothing is left anywhere."""
        self._all_delivered()
        for host in self.run.hosts.values():
            if host.state is not None:
                self._no_residue(host, host.state)

    def _all_delivered(self) -> None:
        world = self.run.world
        stored: dict[EventKey, OverlayEvent] = {}
        zones: dict[EventKey, str] = {}
        for store in self.run.stores.values():
            for name, stream in store.streams.items():
                if name.startswith("root/"):
                    stored |= {event.key: event for event in stream.entries}
                    zones |= {event.key: store.zone for event in stream.entries}
        for key, publication in self.publications.items():
            if publication.sent is not None and not publication.given_up and key not in stored:
                ad = self.run.clients[key.client]
                if ad.up and key.incarnation == ad.incarnation and key.seq > ad.stored:
                    self.fail("(e)", key, f"{key} was published and is stored nowhere")
        last = max(world.documents) if self.run.epoch == max(world.documents) else self.run.epoch
        for id, (wish, since) in self.wishes.items():
            client = self.run.clients[id.partition("/")[0]]
            if not client.up:
                continue
            zone = client.router.partition("/")[0]
            got = self.received.get(id, set())
            for key, event in stored.items():
                publication = self.publications[key]
                if key in got or publication.published < since or key.client == client.name:
                    continue
                if not any(type in wish.types for type in world.meaning.above(event.type)):
                    continue
                if wish.where and not world.meaning.passes(wish.where, event.type, event.data):
                    continue
                epochs = range(event.epoch, last + 1)
                if not all(world.documents[each].visible(event.tags, wish.tags, event.bits) for each in epochs):
                    continue
                if zone != zones[key] and not all(
                    world.documents[each].may_enter(zone, event.tags, event.bits) for each in epochs
                ):
                    continue
                self.fail("(e)", key, f"`{id}` never gets {key}, which is visible to it and matches")

    def _no_residue(self, host: Host, state: OverlayState) -> None:
        left = {
            "events wait for": {to: box.items for to, box in state.outboxes.items() if box.items},
            "events wait to leave for": {to: box.items for to, box in state.zone_outboxes.items() if box.items},
            "events are stranded": state.stranded,
            "streams wait": {name: queue for name, queue in state.queues.items() if queue},
            "entries are not committed": {name: marks for name, marks in state.reading.items() if marks},
            "events are parked": state.parked,
            "appends wait": state.appends,
            "somebody waits for": [wait.then for wait in state.waits],
            "feeds wait": state.feeding,
            "clients move": state.moving,
        }
        for what, found in left.items():
            if found:
                self.fail("residue", host.name, f"at {host.name} {what}: {str(found)[:200]}")
        if self.run.scenario.flood:
            return
        self._tables_are_fresh(host, state)

    def _tables_are_fresh(self, host: Host, state: OverlayState) -> None:
        """What a router knows of others is what it would be told if all began anew."""
        told = set(state.rows)
        outside = {
            want.id: want
            for other in self.run.hosts.values()
            if other.state is not None and other.zone != host.zone
            for want, _ in other.state.own.values()
        }
        for name in state.peers:
            other = self.run.hosts[name].state
            if other is None:
                continue
            if state.gateway == state.me:
                rows = told | {row for zone in state.zones for row in state.table_held("zone slt", zone).entries}
            else:
                rows = told
            expected = {want.id for want, _ in other.own.values() if state.document.eligible(rows, want.tags)}
            self._same(host, f"what {name} wants", set(state.table_held(INTEREST, name).entries), expected)
        if not state.zones:
            return
        known = {want.id for want in state.matches.every() if GATEWAY in state.matches.destinations(want)}
        if state.gateway != state.me:
            expected = {id for id, want in outside.items() if state.document.eligible(told, want.tags)}
            self._same(host, "what other zones want", known, expected)
            return
        members = [self.run.hosts[name].state for name in self.run.scenario.zones[host.zone]]
        rows = {row for each in members if each is not None for row in each.rows}
        for zone in state.zones:
            wants = {
                want.id: want
                for name in self.run.scenario.zones[zone]
                if (other := self.run.hosts[name].state) is not None
                for want, _ in other.own.values()
            }
            expected = {id for id, want in wants.items() if state.document.eligible(rows, want.tags)}
            self._same(host, f"what zone {zone} wants", set(state.table_held(ZONE_INTEREST, zone).entries), expected)

    def _same(self, host: Host, what: str, found: set[int], expected: set[int]) -> None:
        if found != expected:
            more, less = len(found - expected), len(expected - found)
            self.fail("residue", host.name, f"{host.name} is wrong about {what}: {more} too many, {less} too few")
