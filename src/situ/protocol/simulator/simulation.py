"""A run of a scenario: virtual time, hosts for the machines of routers, simulated clients, faults, and checks.

There is one queue of what is to happen, ordered by virtual time. A run is a function of scenario and seed: no clock, no
threads, no other chance. The machines are those that serve routers anywhere; only what carries their effects out is of
the simulator.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, get_args

from situ.protocol.effects import Answer, Received, Report, Send, SetTimer, Timer
from situ.protocol.messages import FromClient
from situ.protocol.overlay.effects import (
    AllCommitted,
    Append,
    Appended,
    AppendFailed,
    AwaitCommit,
    Boot,
    Cas,
    CasDone,
    CasFailed,
    Commit,
    Deliver,
    DocumentFetched,
    DropStream,
    EpochComplete,
    FetchDocument,
    Follow,
    FromRouter,
    GarbledRouter,
    KeyChanged,
    Leave,
    Listen,
    OverlayEffect,
    OverlayInput,
    SendRouter,
    SendZone,
    SetTick,
    Settled,
    StreamEntry,
    Tell,
    Tick,
    Unfollow,
)
from situ.protocol.overlay.machine import new_state, step
from situ.protocol.overlay.messages import (
    ClientAt,
    Forward,
    GatewayForward,
    Heartbeat,
    OverlayMessage,
    decode_overlay,
    encode_overlay,
)
from situ.protocol.overlay.state import Layout, OverlayState
from situ.protocol.simulator.chance import Chance
from situ.protocol.simulator.checks import Checks, Violated, Violation
from situ.protocol.simulator.client import SimulatedClient
from situ.protocol.simulator.scenario import FAULTS, Action, Offer, Scenario, World, declared_world
from situ.protocol.simulator.transport import WINDOW, Store

_WATCHED = ("gateway", "adopt/", "feed/", "epoch")


@dataclass(slots=True)
class Host:
    """Where the machine of a router runs: up or down, paused or not, with a clock of its own."""

    name: str
    zone: str
    state: OverlayState | None = None
    incarnation: int = 0
    paused: int = 0
    backlog: list[OverlayInput] = field(default_factory=list)
    rate: float = 1.0
    offset: float = 0.0
    following: dict[str, int] = field(default_factory=dict)
    """Stream → since which of its requests it is read."""
    listening: bool = False

    def local_time(self, now: float) -> float:
        return self.offset + now * self.rate

    def true_time(self, local: float) -> float:
        return (local - self.offset) / self.rate

    def is_acting(self, now: float) -> bool:
        return self.state is not None and self.state.acts(self.local_time(now))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run."""

    violation: Violation | None
    steps: int
    ended: float
    messages: Counter[str]
    links: Counter[str]
    delivered: int
    forwarded: int
    elections: int
    faults: Counter[str]
    log: list[tuple[float, str, str, str, str]]


class Simulation:
    """See the module. ``watch``: note every message, for the story of the run; ``record``: note every input."""

    def __init__(
        self, scenario: Scenario, seed: int, *, watch: bool = False, record: bool = False, world: World | None = None
    ) -> None:
        self.scenario = scenario
        self.world = world or declared_world(scenario)
        self.chance = Chance(seed)
        self.now = 0.0
        self.steps = 0
        self.epoch = 1
        self.messages: Counter[str] = Counter()
        self.links: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.elections = 0
        self.log: list[tuple[float, str, str, str, str]] = []
        self.recorded: list[tuple[str, int, float, OverlayInput, list[OverlayEffect]]] = []
        self._watch, self._record = watch, record
        self._queue: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._number = 0
        self._arrivals: dict[tuple[str, str], float] = {}
        self._cuts: list[Callable[[str, str], bool]] = []
        self._delay: dict[str, float] = {}
        self._jitter: dict[str, float] = {}
        self._lose: dict[str, float] = {}
        self._repeat: dict[str, float] = {}
        self._garble: dict[str, float] = {}
        self._slow: dict[str, float] = {}
        self._hostile = 0
        self._layout = Layout(zones={zone: tuple(names) for zone, names in scenario.zones.items()}, home=scenario.home)
        self.hosts = {name: Host(name, zone) for zone, members in scenario.zones.items() for name in members}
        self.stores = {zone: Store(zone) for zone in scenario.zones}
        self.clients = {each.name: SimulatedClient(each.name, each.router, self) for each in scenario.clients}
        self.acting: dict[str, tuple[str, float]] = {}
        self.checks = Checks(self)
        self._tickets: dict[int, tuple[str, int]] = {}
        self._ticket = 0

    def run(self) -> Outcome:
        """To the end, or to the first thing that does not hold."""
        violation: Violation | None = None
        try:
            self._begin()
            self._until(self.scenario.lasting)
            self._until(self.scenario.lasting + self.scenario.quiet)
            self.checks.final()
        except Violated as found:
            violation = found.violation
        return Outcome(
            violation,
            self.steps,
            self.now,
            self.messages,
            self.links,
            self.checks.delivered,
            self.messages["Forward"] + self.messages["GatewayForward"],
            self.elections,
            self.faults,
            self.log,
        )

    def _begin(self) -> None:
        for host in self.hosts.values():
            self.at(self.chance.between(0, 0.2), self._start, host)
        for place, spec in enumerate(self.scenario.clients):
            client = self.clients[spec.name]
            for name, offer in spec.offers.items():
                client.advertise(name, offer, 0.0)
            for name, wish in spec.wishes.items():
                client.subscribe(name, wish, 0.0)
            self.at(0.3 + 0.5 * place / len(self.scenario.clients), self._client_begins, client)
        for action in self.scenario.actions:
            self.at(action.at, self._act, action)

    def _until(self, end: float) -> None:
        queue, pop = self._queue, heapq.heappop
        while queue and queue[0][0] <= end:
            at, _, what, arguments = pop(queue)
            self.now = at
            what(*arguments)
        self.now = end

    def at(self, when: float, what: Callable[..., None], *arguments: Any) -> None:
        self._number += 1
        heapq.heappush(self._queue, (when, self._number, what, arguments))

    def later(self, after: float, what: Callable[..., None], *arguments: Any) -> None:
        self.at(self.now + after, what, *arguments)

    # ── links ──

    def _arrival(self, source: str, target: str, base: float) -> float:
        """When something that leaves now is there: later than all that left before over the same link."""
        slow = base * (0.5 + self.chance.share())
        if self._hostile:
            for place in (source, target):
                zone = place.partition("/")[0]
                slow += self._delay.get(zone, 0.0)
                if zone in self._jitter:
                    slow += self._jitter[zone] * self.chance.share() * 4
        when = max(self.now + slow, self._arrivals.get((source, target), 0.0) + 1e-7)
        self._arrivals[source, target] = when
        return when

    def _is_cut(self, source: str, target: str) -> bool:
        return any(cut(source, target) for cut in self._cuts)

    def _send(self, host: Host, to: str, message: OverlayMessage) -> None:
        kind = type(message).__name__
        other = self.hosts.get(to)
        if other is None:
            return
        self.messages[kind] += 1
        inside = other.zone == host.zone
        self.links["zone" if inside else "between zones"] += 1
        if self._watch and not isinstance(message, Heartbeat):
            self.log.append((self.now, host.name, to, kind, _about(message)))
        given: OverlayInput = FromRouter(host.name, host.incarnation, message)
        if self._hostile:
            if self._cuts and self._is_cut(host.name, to):
                return
            zone = host.zone
            if zone in self._lose and self.chance.happens(self._lose[zone]):
                return
            if zone in self._garble and self.chance.happens(self._garble[zone]):
                given = self._garbled(host, message)
            if zone in self._repeat and self.chance.happens(self._repeat[zone]):
                when = self._arrival(host.name, to, self._base(inside))
                self.at(when, self._give, other, other.incarnation, given)
        when = self._arrival(host.name, to, self._base(inside))
        self.at(when, self._give, other, 0, given)

    def _base(self, inside: bool) -> float:
        return self.scenario.latency if inside else self.scenario.between

    def _garbled(self, host: Host, message: OverlayMessage) -> OverlayInput:
        """The message as it is on the wire, cut off somewhere."""
        body = encode_overlay(message)
        try:
            return FromRouter(host.name, host.incarnation, decode_overlay(body[: self.chance.below(len(body) + 1)]))
        except ValueError as error:
            return GarbledRouter(host.name, str(error))

    # ── routers ──

    def _start(self, host: Host) -> None:
        if host.state is not None:
            return
        store = self.stores[host.zone]
        if not self._reaches(host):
            self.later(self.scenario.timing.heartbeat, self._start, host)
            return
        host.paused = 0
        self._ticket += 1
        host.incarnation = self._ticket
        host.backlog.clear()
        host.following.clear()
        host.listening = False
        host.state = new_state(
            host.name,
            host.incarnation,
            self._layout,
            self.scenario.timing,
            self.world.meaning,
            flood=self.scenario.flood,
        )
        keys = {key: value for key, value in store.keys.items() if not key.startswith("client/")}
        self._give(host, 0, Boot(keys, self.world.documents[self.epoch]))

    def _stop(self, host: Host) -> None:
        host.state = None
        host.backlog.clear()
        host.following.clear()
        host.listening = False
        for stream in self.stores[host.zone].streams.values():
            stream.readers.pop(host.name, None)
            stream.waiting = [each for each in stream.waiting if each[1] != host.name]

    def _give(self, host: Host, incarnation: int, given: OverlayInput) -> None:
        """An input reaches a router, unless it is another one by now."""
        state = host.state
        if state is None or (incarnation and incarnation != host.incarnation):
            return
        if host.paused:
            host.backlog.append(given)
            return
        self.steps += 1
        acted = state.lease.acting
        child = self._child_of(state, given) if type(given) is FromRouter else None
        effects = step(state, given, host.offset + self.now * host.rate)
        if self._record:
            self.recorded.append((host.name, host.incarnation, host.local_time(self.now), given, effects))
        if state.lease.acting and not acted:
            self.elections += 1
        if effects:
            perform = _PERFORM
            for effect in effects:
                perform[type(effect)](self, host, effect)
        if child is not None:
            self.checks.client_at(host, *child)
        self.checks.stepped(host)

    def _child_of(self, state: OverlayState, given: FromRouter) -> tuple[str, int, int] | None:
        """The client that is said to be elsewhere, the session it is said to have there, and the one it has here."""
        message = given.message
        if type(message) is not ClientAt:
            return None
        child = state.clients.children.get(message.client)
        return None if child is None else (message.client, message.session, child.session)

    def _timer(self, host: Host, incarnation: int, given: OverlayInput) -> None:
        self._give(host, incarnation, given)

    def _set_tick(self, host: Host, effect: SetTick) -> None:
        self.later(effect.after / host.rate, self._give, host, host.incarnation, Tick())

    def _set_timer(self, host: Host, effect: SetTimer) -> None:
        self.later(effect.after / host.rate, self._give, host, host.incarnation, Timer(name=effect.name))

    def _send_router(self, host: Host, effect: SendRouter) -> None:
        if type(effect.message) is Forward:
            self.checks.forwards(host, effect.to, effect.message)
        self._send(host, effect.to, effect.message)

    def _send_zone(self, host: Host, effect: SendZone) -> None:
        if type(effect.message) is GatewayForward:
            self.checks.leaves(host, effect.zone, effect.message)
        for name in self.scenario.zones[effect.zone]:
            if self.hosts[name].listening:
                self._send(host, name, effect.message)

    def _listen(self, host: Host, effect: Listen) -> None:
        host.listening = effect.on

    def _ignore(self, host: Host, effect: Any) -> None:
        """What only other hosts have to do."""

    def _report(self, _: Host, effect: Report) -> None:
        self.messages[f"report {effect.code}"] += 1

    # ── the store of a zone ──

    def _reaches(self, host: Host) -> bool:
        store = self.stores[host.zone]
        return store.up and not (self._cuts and self._is_cut(host.name, f"{host.zone}/"))

    def _request(self, host: Host, done: Callable[[], OverlayInput], failed: OverlayInput) -> None:
        """Ask the store: there, and back. Without an answer the router is told so after a while."""
        there = self._arrival(host.name, f"{host.zone}/", self.scenario.latency)
        self.at(there, self._at_store, host, host.incarnation, done, failed)

    def _at_store(self, host: Host, incarnation: int, done: Callable[[], OverlayInput], failed: OverlayInput) -> None:
        if not self._reaches(host):
            self.later(2 * self.scenario.timing.heartbeat, self._give, host, incarnation, failed)
            return
        answer = done()
        slow = self._slow.get(host.zone, 0.0) * self.chance.share() * 4 if self._slow else 0.0
        back = self._arrival(f"{host.zone}/", host.name, self.scenario.latency + slow)
        self.at(back, self._answer, host, incarnation, answer, failed)

    def _answer(self, host: Host, incarnation: int, answer: OverlayInput, failed: OverlayInput) -> None:
        if self._hostile and not self._reaches(host):
            self.later(2 * self.scenario.timing.heartbeat, self._give, host, incarnation, failed)
            return
        self._give(host, incarnation, answer)

    def _append(self, host: Host, effect: Append) -> None:
        def done() -> OverlayInput:
            places = self.stores[host.zone].append(effect.stream, effect.entries)
            self._feed(host.zone, effect.stream)
            return Appended(effect.ticket, places)

        self._request(host, done, AppendFailed(effect.ticket))

    def _cas(self, host: Host, effect: Cas) -> None:
        store = self.stores[host.zone]

        def done() -> OverlayInput:
            ok = store.compare_and_set(effect.key, effect.expected, effect.value)
            if ok and effect.key.startswith(_WATCHED):
                self._key_changed(host.zone, effect.key)
            return CasDone(effect.ticket, ok, store.keys.get(effect.key))

        self._request(host, done, CasFailed(effect.ticket))

    def _key_changed(self, zone: str, key: str) -> None:
        for name in self.scenario.zones[zone]:
            other = self.hosts[name]
            lag = self.scenario.latency * (1 + 3 * self.chance.share())
            self.later(lag, self._news, other, key)

    def _news(self, host: Host, key: str) -> None:
        """A watcher hears of a value; one that is cut off hears of it when it is back."""
        if host.state is None:
            return
        if not self._reaches(host):
            self.later(self.scenario.timing.heartbeat / 2, self._news, host, key)
            return
        self._give(host, host.incarnation, KeyChanged(key, self.stores[host.zone].keys.get(key)))

    def _follow(self, host: Host, effect: Follow) -> None:
        self._ticket += 1
        host.following[effect.stream] = self._ticket
        stream = self.stores[host.zone].stream(effect.stream)
        stream.readers[host.name] = stream.committed
        self.later(self.scenario.latency, self._feed, host.zone, effect.stream)

    def _unfollow(self, host: Host, effect: Unfollow) -> None:
        host.following.pop(effect.stream, None)
        self.stores[host.zone].stream(effect.stream).readers.pop(host.name, None)

    def _feed(self, zone: str, name: str) -> None:
        """Send readers of a stream what they have not got, as many entries as they may have in hand."""
        stream = self.stores[zone].stream(name)
        for router, sent in tuple(stream.readers.items()):
            host = self.hosts[router]
            last = min(len(stream.entries), stream.committed + WINDOW)
            if sent >= last:
                continue
            if not self._reaches(host):
                self.later(self.scenario.timing.heartbeat / 2, self._feed, zone, name)
                continue
            for place in range(max(sent, stream.committed) + 1, last + 1):
                if stream.is_committed(place):
                    continue
                when = self._arrival(f"{zone}/", router, self.scenario.latency)
                given = StreamEntry(name, place, stream.entries[place - 1])
                self.at(when, self._entry, host, host.incarnation, host.following.get(name, 0), given)
            stream.readers[router] = last

    def _entry(self, host: Host, incarnation: int, request: int, given: StreamEntry) -> None:
        if host.following.get(given.stream) == request:
            self._give(host, incarnation, given)

    def _commit(self, host: Host, effect: Commit) -> None:
        self.later(self.scenario.latency, self._committed, host, effect)

    def _committed(self, host: Host, effect: Commit) -> None:
        if not self._reaches(host):
            if host.state is not None:
                self.later(self.scenario.timing.heartbeat / 2, self._committed, host, effect)
            return
        for router, ticket in self.stores[host.zone].commit(effect.stream, effect.place):
            other = self.hosts[router]
            self.later(self.scenario.latency, self._give, other, other.incarnation, AllCommitted(ticket))
        self._feed(host.zone, effect.stream)

    def _await_commit(self, host: Host, effect: AwaitCommit) -> None:
        self.later(self.scenario.latency, self._awaits, host, host.incarnation, effect)

    def _awaits(self, host: Host, incarnation: int, effect: AwaitCommit) -> None:
        if host.state is None or host.incarnation != incarnation:
            return
        if not self._reaches(host):
            self.later(self.scenario.timing.heartbeat / 2, self._awaits, host, incarnation, effect)
            return
        if self.stores[host.zone].wait(effect.stream, effect.place, effect.client, host.name, effect.ticket):
            self.later(self.scenario.latency, self._give, host, incarnation, AllCommitted(effect.ticket))

    def _drop_stream(self, host: Host, effect: DropStream) -> None:
        self.stores[host.zone].streams.pop(effect.stream, None)

    # ── scopes ──

    def _fetch(self, host: Host, effect: FetchDocument) -> None:
        if effect.epoch <= self.epoch and not (self._cuts and self._is_cut(host.name, f"{self.scenario.home}/")):
            given = DocumentFetched(self.world.documents[effect.epoch])
            self.later(self.scenario.between, self._give, host, host.incarnation, given)

    def _epoch_complete(self, _: Host, effect: EpochComplete) -> None:
        self.checks.completed = max(self.checks.completed, effect.epoch)

    # ── clients ──

    def _client_begins(self, client: SimulatedClient) -> None:
        client.connect(self.now)
        self.later(self.scenario.timing.heartbeat * (1 + self.chance.share()), self._client_tick, client)

    def _client_tick(self, client: SimulatedClient) -> None:
        client.tick(self.now)
        self.later(2 * self.scenario.timing.heartbeat, self._client_tick, client)

    def from_client(self, client: SimulatedClient, message: FromClient) -> None:
        host = self.hosts[client.router]
        self.messages[type(message).__name__] += 1
        self.links["clients"] += 1
        self._ticket += 1
        self._tickets[self._ticket] = (client.name, client.session)
        if self._watch:
            self.log.append((self.now, client.name, client.router, type(message).__name__, _about(message)))
        given = Received(client=client.name, session=client.session, message=message, ticket=self._ticket)
        self.at(self._arrival(client.name, host.name, self.scenario.latency), self._give, host, 0, given)

    def _to_client(self, host: Host, name: str, session: int, message: Any) -> None:
        self.messages[type(message).__name__] += 1
        self.links["clients"] += 1
        client = self.clients.get(name)
        if client is None:
            return
        if self._watch:
            self.log.append((self.now, host.name, name, type(message).__name__, _about(message)))
        when = self._arrival(host.name, name, self.scenario.latency)
        self.at(when, self._heard, client, host.name, session, message)

    def _heard(self, client: SimulatedClient, router: str, session: int, message: Any) -> None:
        client.receive(router, session, message, self.now)

    def _answer_client(self, host: Host, effect: Answer) -> None:
        name, session = self._tickets.pop(effect.ticket, ("", 0))
        client = self.clients.get(name)
        if client is not None and session == client.session:
            self._to_client(host, name, session, effect.message)

    def _send_client(self, host: Host, effect: Send) -> None:
        child = host.state.clients.children.get(effect.client) if host.state is not None else None
        self._to_client(host, effect.client, child.session if child is not None else 0, effect.message)

    def _tell_client(self, host: Host, effect: Tell) -> None:
        self._to_client(host, effect.client, 0, effect.message)

    def _deliver(self, host: Host, effect: Deliver) -> None:
        self.checks.delivers(host, effect)
        self._to_client(host, effect.client, effect.session, effect)

    def settle(self, client: SimulatedClient, stream: str, place: int) -> None:
        host = self.hosts[client.router]
        given = Settled(client.name, client.session, stream, place)
        self.at(self._arrival(client.name, host.name, self.scenario.latency), self._give, host, 0, given)

    def type_of(self, offer: Offer, number: int) -> str:
        """The type of an event under an advertisement: the one it names, or one below it in turn."""
        event = self.scenario.types.event(offer.type)
        below = (
            [offer.type]
            if event is None
            else [offer.type, *(str(each) for each in self.scenario.types.subtypes(event))]
        )
        return sorted(set(below))[number % len(set(below))]

    # ── what happens ──

    def _act(self, action: Action) -> None:
        if self._watch:
            self.log.append((self.now, "", "", "action", str(action)))
        if action.do in FAULTS:
            self.faults[action.do] += 1
            _BREAK[action.do](self, action)
            return
        client = self.clients.get(action.who)
        if action.do == "publish" and client is not None:
            client.publish(action.name, dict(action.data), self.now)
        elif action.do == "subscribe" and client is not None and action.wish is not None and client.up:
            client.subscribe(action.name, action.wish, self.now)
        elif action.do == "unsubscribe" and client is not None and client.up:
            client.unsubscribe(action.name, self.now)
        elif action.do == "advertise" and client is not None and action.offer is not None and client.up:
            client.advertise(action.name, action.offer, self.now)
        elif action.do == "unadvertise" and client is not None and client.up:
            client.unadvertise(action.name, self.now)
        elif action.do == "move" and client is not None:
            client.move(self.now, action.to)
        elif action.do == "change-scopes" and self.epoch + 1 in self.world.documents:
            self.epoch += 1
            self.stores[self.scenario.home].keys["epoch"] = self.epoch
            self._key_changed(self.scenario.home, "epoch")
        elif action.do == "leave":
            host = self.hosts[action.who]
            self._give(host, 0, Leave())
            self.later(10 * self.scenario.latency, self._stop, host)
            self.later(max(action.lasting, 1.0), self._start, host)

    def _crash(self, action: Action) -> None:
        host = self.hosts[action.who]
        self._stop(host)
        self.later(action.lasting, self._start, host)

    def _pause(self, action: Action) -> None:
        self._paused(self.hosts[action.who], action.lasting)

    def _paused(self, host: Host, lasting: float) -> None:
        host.paused += 1
        self.later(lasting, self._resume, host, host.incarnation)

    def _resume(self, host: Host, incarnation: int) -> None:
        if host.incarnation != incarnation:
            return
        host.paused -= 1
        if host.paused:
            return
        backlog, host.backlog = host.backlog, []
        for given in backlog:
            self._give(host, incarnation, given)

    def _cut(self, action: Action) -> None:
        one, other = action.who, action.to
        if action.do == "cut-zones":

            def cut(source: str, target: str) -> bool:
                zones = {source.partition("/")[0], target.partition("/")[0]}
                return one != other and zones == {one, other}
        elif action.do == "cut-store":
            store = f"{one.partition('/')[0]}/"

            def cut(source: str, target: str) -> bool:
                return {source, target} == {one, store}
        elif action.do == "cut-one-way":

            def cut(source: str, target: str) -> bool:
                return source == one and target == other
        else:

            def cut(source: str, target: str) -> bool:
                return {source, target} == {one, other}

        self._cuts.append(cut)
        self._hostile += 1
        self.later(action.lasting, self._heal_cut, cut)

    def _heal_cut(self, cut: Callable[[str, str], bool]) -> None:
        self._cuts.remove(cut)
        self._hostile -= 1

    def _stop_store(self, action: Action) -> None:
        store = self.stores[action.who]
        store.up = False
        self._hostile += 1
        self.later(action.lasting, self._heal_store, store)

    def _heal_store(self, store: Store) -> None:
        store.up = True
        self._hostile -= 1

    def _disturb(self, action: Action) -> None:
        kinds = {
            "delay": self._delay,
            "jitter": self._jitter,
            "lose": self._lose,
            "duplicate": self._repeat,
            "garble": self._garble,
            "slow-disk": self._slow,
        }
        table = kinds[action.do]
        table[action.who] = action.much
        self._hostile += 1
        self.later(action.lasting, self._calm, table, action.who)

    def _calm(self, table: dict[str, float], zone: str) -> None:
        table.pop(zone, None)
        self._hostile -= 1

    def _drift(self, action: Action) -> None:
        host = self.hosts[action.who]
        self._set_rate(host, 1.0 + action.much)
        self.later(action.lasting, self._set_rate, host, 1.0)

    def _set_rate(self, host: Host, rate: float) -> None:
        local = host.local_time(self.now)
        host.rate = rate
        host.offset = local - self.now * rate

    def _depose(self, action: Action) -> None:
        """The gateway of a zone stands still at the worst moment: with an event taken and nothing sent."""
        for host in self.hosts.values():
            if host.zone == action.who and host.is_acting(self.now):
                self._paused(host, max(action.lasting, 1.5 * self.scenario.timing.lease))
                return

    def _crash_client(self, action: Action) -> None:
        client = self.clients[action.who]
        client.crash()
        self.later(action.lasting, self._restart_client, client)

    def _restart_client(self, client: SimulatedClient) -> None:
        if not client.up:
            client.restart(self.now)


def _about(message: Any) -> str:
    event = getattr(message, "event", None)
    if event is not None:
        return str(event.key)
    key = getattr(message, "key", None)
    return str(key) if key is not None else ""


_PERFORM: dict[type, Callable[[Simulation, Host, Any], None]] = {
    SendRouter: Simulation._send_router,
    SendZone: Simulation._send_zone,
    Listen: Simulation._listen,
    Append: Simulation._append,
    Follow: Simulation._follow,
    Unfollow: Simulation._unfollow,
    Commit: Simulation._commit,
    AwaitCommit: Simulation._await_commit,
    DropStream: Simulation._drop_stream,
    Cas: Simulation._cas,
    Deliver: Simulation._deliver,
    Tell: Simulation._tell_client,
    FetchDocument: Simulation._fetch,
    EpochComplete: Simulation._epoch_complete,
    SetTick: Simulation._set_tick,
    SetTimer: Simulation._set_timer,
    Answer: Simulation._answer_client,
    Send: Simulation._send_client,
    Report: Simulation._report,
}
for _kind in get_args(OverlayEffect):
    _PERFORM.setdefault(_kind, Simulation._ignore)

_BREAK: dict[str, Callable[[Simulation, Action], None]] = {
    "crash": Simulation._crash,
    "lose-disk": Simulation._crash,
    "pause": Simulation._pause,
    "cut-zones": Simulation._cut,
    "cut-inside": Simulation._cut,
    "cut-one-way": Simulation._cut,
    "cut-store": Simulation._cut,
    "stop-store": Simulation._stop_store,
    "delay": Simulation._disturb,
    "jitter": Simulation._disturb,
    "lose": Simulation._disturb,
    "duplicate": Simulation._disturb,
    "garble": Simulation._disturb,
    "slow-disk": Simulation._disturb,
    "drift": Simulation._drift,
    "depose": Simulation._depose,
    "crash-client": Simulation._crash_client,
}
