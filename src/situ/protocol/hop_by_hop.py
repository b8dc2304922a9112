"""Hop by hop: events find their way through brokers that know no more than the scopes they are in and their neighbours.

This is the routing of the paper on multiscoping, for any connected graph of brokers, with cycles. Situ's own routers
know all scopes and decide visibility at once (:mod:`situ.scopes.visibility_plan`). `step` takes what happened at one
broker and gives what it does; it reads no clock and draws no number. `BrokerState` is what the broker knows.
`delivery_path` and `transformation_path` read the way of a delivered event.

Scopes have overlays: the brokers that joined them. A broker knows which of its neighbours are in which overlay (the
scope look-up table), and the edges of the scope graph between scopes that it is in itself.

An event carries Φ, one scope path for each dimension: the scopes gone through so far, at first the tag of its
advertisement. It also carries Λ, one flag for each dimension: still going up, or going down, for good. At a broker two
things can be done with it:

* It is *forwarded*, Φ and Λ unchanged, to a neighbour in the overlays of the last scopes of all its paths.
* It is *transformed* in one dimension, at a broker in the overlays of both scopes: up into a container if the flag says
  up and the filters on the way up pass it, or down into a member if those on the way down do. That appends a scope to
  the path; a step down turns the flag.

Subscriptions go the same way backwards. An entry of the routing table is a triple: what is asked of Φ and Λ in each
dimension, the filter of the subscription, and a destination. The destination is a client, a neighbour (*forwarding*
entries), or the broker itself with the transformation to be made there (*visibility* entries). A subscription makes
the entry of its client. From every entry with a new demand on Φ and Λ follow visibility entries, one for each
transformation possible at this broker that leads there. Every entry is told to the neighbours in the overlays of all
scopes that it names, and is there a forwarding entry towards the teller. The last transformation to be made, with the
broker that makes it, is the name of an entry beside its subscription: a broker takes each of them once, from whoever
is first, so that entries of one name form a tree, whatever cycles there are. Several names lead to one end where
several brokers may do the same step: each may have other ways on.

A broker does with an event in one state, the last scopes and the flags, what its entries say, once. So an event passes
each broker at most once in each state, and comes to an end, since scope graphs have no cycles. A client is handed an
event once, however many ways lead to it.

In a dimension where a subscription says ⊤ an entry asks nothing; where it names a scope, a second one serves events
that say ⊥ there, which no filter and no overlay holds up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Protocol, TypeAlias, assert_never

from situ.lang.tags import ANY, TagSet
from situ.scopes.graph import Dimension, ScopeGraph

BOTTOM, TOP, UNSAID = "⊥", "⊤", "–"
"""In the place of a scope: any producer's, any consumer's, and nothing said."""


class FilterableEvent(Protocol):
    """An event that can be asked whether a filter, by its text, is TRUE for it; unknown is not."""

    def passes(self, text: str) -> bool: ...


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What an event carries, and what an entry asks of it; one for each dimension, in the order of their names.


@dataclass(frozen=True, slots=True)
class CarriedPath:
    """Φ and Λ in one dimension: the scopes gone through, and whether the event still goes up."""

    path: tuple[str, ...]
    up: bool = True

    @property
    def last(self) -> str:
        return self.path[-1]


@dataclass(frozen=True, slots=True, order=True)
class AskedScope:
    """What an entry asks in one dimension: a scope, ⊥, ⊤ or nothing said; ``up``: only of events that still go up."""

    scope: str
    up: bool = False

    @property
    def is_real(self) -> bool:
        return self.scope not in (BOTTOM, TOP, UNSAID)


Carried: TypeAlias = tuple[CarriedPath, ...]
Asked: TypeAlias = tuple[AskedScope, ...]


@dataclass(frozen=True, slots=True, order=True)
class ScopeStep:
    """A transformation: in this dimension from the end of the path into a container (up) or a member (down) of it."""

    dimension: int
    down: bool
    into: str


@dataclass(frozen=True, slots=True)
class Transition:
    """A node of the transition path: at which broker the event carried what."""

    broker: str
    carried: Carried


def delivery_path(way: Sequence[Transition]) -> tuple[str, ...]:
    """The brokers gone through."""
    return tuple(at.broker for place, at in enumerate(way) if place == 0 or way[place - 1].broker != at.broker)


def transformation_path(way: Sequence[Transition]) -> tuple[tuple[tuple[str, ...], ...], ...]:
    """The scope paths carried, one set after the other."""
    carried = [tuple(each.path for each in at.carried) for at in way]
    return tuple(each for place, each in enumerate(carried) if place == 0 or carried[place - 1] != each)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Inputs and effects. Brokers send each other `ScopeJoined`, `SubscriptionEntry`, `SubscriptionGone` and `Notification`
# over links that lose nothing and keep the order, as the paper assumes. Scopes are joined before anything else is
# asked for, or later; they are not left.


@dataclass(frozen=True, slots=True)
class JoinOverlay:
    """An administrator puts the broker into the overlay of a scope."""

    scope: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopedAdvertisement:
    """A client of this broker will publish events that ``where`` is true of, in these scopes."""

    id: str
    client: str
    tags: TagSet
    where: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopedSubscription:
    """A client of this broker wants the events that ``where`` is true of, from these scopes."""

    id: str
    client: str
    tags: TagSet
    where: str = ""


@dataclass(frozen=True, slots=True)
class WithdrawSubscription:
    """A client of this broker wants it no more."""

    id: str


@dataclass(frozen=True, slots=True)
class PublishScoped:
    """A client of this broker publishes an event under one of its advertisements."""

    advertisement: str
    key: str
    event: FilterableEvent


@dataclass(frozen=True, slots=True)
class ScopeJoined:
    """The sender is in the overlay of a scope."""

    scope: str


@dataclass(frozen=True, slots=True)
class SubscriptionEntry:
    """The sender can bring events that carry what is asked on to a subscription. ``step`` is made at ``maker`` then;
    without one, that is where the subscriber is."""

    subscription: str
    where: str
    asked: Asked
    maker: str
    step: ScopeStep | None = None


@dataclass(frozen=True, slots=True)
class SubscriptionGone:
    """A subscription was withdrawn."""

    subscription: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """An event on its way, with the transition path it has come."""

    key: str
    producer: str
    event: FilterableEvent = field(compare=False)
    carried: Carried
    way: tuple[Transition, ...]


BrokerMessage: TypeAlias = ScopeJoined | SubscriptionEntry | SubscriptionGone | Notification


@dataclass(frozen=True, slots=True)
class FromBroker:
    """A message of a neighbour."""

    sender: str
    message: BrokerMessage


BrokerInput: TypeAlias = (
    JoinOverlay | ScopedAdvertisement | ScopedSubscription | WithdrawSubscription | PublishScoped | FromBroker
)


@dataclass(frozen=True, slots=True)
class ToBroker:
    """Send a message to a neighbour."""

    to: str
    message: BrokerMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOver:
    """Hand an event to a client, for a subscription; ``way`` is its transition path."""

    subscription: str
    client: str
    key: str
    way: tuple[Transition, ...]


@dataclass(frozen=True, slots=True)
class RefuseInput:
    """Nothing was done, because of this."""

    reason: str


BrokerEffect: TypeAlias = ToBroker | HandOver | RefuseInput


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What a broker knows.

EntryName: TypeAlias = tuple[str, Asked, str, ScopeStep | None]
"""Subscription, what is asked, and who makes which transformation next."""


@dataclass(frozen=True, slots=True)
class BrokerEntry:
    """A triple of the routing table: what is asked, the filter, and the destination: ``to`` a client or a neighbour,
    or the broker itself, which makes the ``step`` then."""

    subscription: str
    asked: Asked
    where: str
    to: str
    step: ScopeStep | None = None
    is_client: bool = False


@dataclass(slots=True)
class BrokerState:
    """One broker. Only edges between scopes whose overlays it is in are looked at in the graph."""

    name: str
    graph: ScopeGraph
    neighbours: tuple[str, ...]
    scopes: set[str] = field(default_factory=set)
    lookup: dict[str, set[str]] = field(default_factory=dict)
    """The scope look-up table: scope → neighbours in its overlay."""
    advertisements: dict[str, ScopedAdvertisement] = field(default_factory=dict)
    subscriptions: dict[str, ScopedSubscription] = field(default_factory=dict)
    """Those of its own clients."""
    table: dict[tuple[str, ...], dict[EntryName, BrokerEntry]] = field(default_factory=dict)
    """The routing table, by the scopes that entries ask for."""
    told: dict[str, set[str]] = field(default_factory=dict)
    """Subscription → neighbours that were told of it."""
    gone: set[str] = field(default_factory=set)
    """Subscriptions that were withdrawn: what is still under way of them is ignored."""
    seen: dict[str, set[tuple[tuple[str, bool], ...]]] = field(default_factory=dict)
    """Key of an event → the states in which it was here."""
    handed: set[tuple[str, str]] = field(default_factory=set)
    """Keys of events with the subscriptions that they were handed over for."""

    @property
    def dimensions(self) -> Sequence[Dimension]:
        return tuple(self.graph.dimensions.values())

    def entries(self) -> Iterator[BrokerEntry]:
        """The whole routing table."""
        for some in self.table.values():
            yield from some.values()


def step(state: BrokerState, given: BrokerInput) -> list[BrokerEffect]:
    """What the broker does about what happened; changes its state."""
    match given:
        case JoinOverlay():
            return list(_join(state, given.scope))
        case ScopedAdvertisement():
            return list(_advertise(state, given))
        case ScopedSubscription():
            return list(_subscribe(state, given))
        case WithdrawSubscription():
            return list(_withdraw(state, given.id))
        case PublishScoped():
            return list(_publish(state, given))
        case FromBroker(sender=sender, message=message):
            return list(_receive(state, sender, message))
        case _:
            assert_never(given)


def _receive(state: BrokerState, sender: str, message: BrokerMessage) -> Iterator[BrokerEffect]:
    match message:
        case _ if sender not in state.neighbours:
            yield RefuseInput(f"`{sender}` is no neighbour of `{state.name}`")
        case ScopeJoined():
            yield from _neighbour_joined(state, sender, message.scope)
        case SubscriptionEntry():
            yield from _take_entries(state, [(message, sender)])
        case SubscriptionGone():
            yield from _drop(state, message.subscription)
        case Notification():
            yield from _route(state, message, sender)
        case _:
            assert_never(message)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Scopes and declarations.


def _join(state: BrokerState, scope: str) -> Iterator[BrokerEffect]:
    if state.graph.dimension_of(scope) is None:
        yield RefuseInput(f"there is no scope `{scope}`")
        return
    if scope in state.scopes:
        return
    state.scopes.add(scope)
    for neighbour in state.neighbours:
        yield ToBroker(neighbour, ScopeJoined(scope))
    # Entries that are here already may be reached by transformations that are possible from now on.
    yield from _take_entries(state, [each for entry in list(state.entries()) for each in _ways_in(state, entry)])


def _neighbour_joined(state: BrokerState, neighbour: str, scope: str) -> Iterator[BrokerEffect]:
    known = state.lookup.setdefault(scope, set())
    if neighbour in known:
        return
    known.add(neighbour)
    for some in list(state.table.values()):
        for (_, asked, maker, made), entry in some.items():
            if entry.to != neighbour and any(each.scope == scope for each in asked):
                yield from _tell(state, (neighbour,), _message(entry, maker, made))


def _advertise(state: BrokerState, given: ScopedAdvertisement) -> Iterator[BrokerEffect]:
    problem = _cannot_tag(state, given.tags)
    if problem:
        yield RefuseInput(problem)
    else:
        state.advertisements[given.id] = given


def _subscribe(state: BrokerState, given: ScopedSubscription) -> Iterator[BrokerEffect]:
    problem = _cannot_tag(state, given.tags)
    if problem or given.id in state.subscriptions or given.id in state.gone:
        yield RefuseInput(problem or f"`{given.id}` was subscribed before")
        return
    state.subscriptions[given.id] = given
    choices = [_asked_of_producers(each, given.tags.tag(each.name)) for each in state.dimensions]
    entries = [SubscriptionEntry(given.id, given.where, asked, state.name) for asked in product(*choices)]
    yield from _take_entries(state, [(each, given.client) for each in entries])


def _asked_of_producers(dimension: Dimension, tag: str | None) -> tuple[AskedScope, ...]:
    """What may be said in one dimension by a producer that a subscription with this tag sees without any step."""
    if tag == ANY:
        return (AskedScope(TOP),)
    if tag is None:
        return () if dimension.closed else (AskedScope(UNSAID),)
    return AskedScope(tag), AskedScope(BOTTOM)


def _cannot_tag(state: BrokerState, tags: TagSet) -> str:
    """Why a client of this broker cannot name these scopes; nothing if it can."""
    for dimension, tag in tags.named:
        if tag != ANY and (dimension not in state.graph.dimensions or tag not in state.scopes):
            return f"`{state.name}` is not in the overlay of `{tag}`"
    return ""


def _withdraw(state: BrokerState, subscription: str) -> Iterator[BrokerEffect]:
    if state.subscriptions.pop(subscription, None) is None:
        yield RefuseInput(f"no client here has subscribed `{subscription}`")
    else:
        yield from _drop(state, subscription)


def _drop(state: BrokerState, subscription: str) -> Iterator[BrokerEffect]:
    if subscription in state.gone:
        return
    state.gone.add(subscription)
    for scopes, some in list(state.table.items()):
        left = {name: entry for name, entry in some.items() if entry.subscription != subscription}
        if left:
            state.table[scopes] = left
        else:
            del state.table[scopes]
    for neighbour in sorted(state.told.pop(subscription, ())):
        yield ToBroker(neighbour, SubscriptionGone(subscription))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Entries: taken once, told on, and followed back through the transformations that lead to them.


def _take_entries(state: BrokerState, given: Sequence[tuple[SubscriptionEntry, str]]) -> Iterator[BrokerEffect]:
    """Take entries, each with its destination, and all that follows from them here."""
    waiting = deque(given)
    while waiting:
        message, to = waiting.popleft()
        if message.subscription in state.gone:
            continue
        some = state.table.setdefault(tuple(each.scope for each in message.asked), {})
        name = (message.subscription, message.asked, message.maker, message.step)
        if name in some:
            continue
        is_known = any(known[:2] == name[:2] for known in some)
        is_client = message.step is None and message.maker == state.name
        entry = BrokerEntry(message.subscription, message.asked, message.where, to, message.step, is_client)
        some[name] = entry
        yield from _tell(state, [each for each in state.neighbours if each != to], message)
        if not is_known:
            waiting.extend(_ways_in(state, entry))


def _tell(state: BrokerState, neighbours: Sequence[str], message: SubscriptionEntry) -> Iterator[BrokerEffect]:
    """Those of the neighbours that are in the overlays of all scopes that are asked for; this broker is."""
    scopes = [each.scope for each in message.asked if each.is_real]
    for neighbour in neighbours:
        if all(neighbour in state.lookup.get(scope, ()) for scope in scopes):
            state.told.setdefault(message.subscription, set()).add(neighbour)
            yield ToBroker(neighbour, message)


def _message(entry: BrokerEntry, maker: str, made: ScopeStep | None) -> SubscriptionEntry:
    return SubscriptionEntry(entry.subscription, entry.where, entry.asked, maker, made)


def _ways_in(state: BrokerState, entry: BrokerEntry) -> Iterator[tuple[SubscriptionEntry, str]]:
    """The visibility entries for the transformations at this broker that give events what an entry asks for."""
    for place, (dimension, asked) in enumerate(zip(state.dimensions, entry.asked, strict=True)):
        if asked.scope not in state.scopes:
            continue
        before = [AskedScope(member, up=True) for member in dimension.members(asked.scope)]
        if not asked.up:  # who comes down from a container goes down from then on
            before += [AskedScope(container) for container in dimension.containers(asked.scope)]
        for other in before:
            if other.scope in state.scopes:
                made = ScopeStep(place, not other.up, asked.scope)
                all_asked = (*entry.asked[:place], other, *entry.asked[place + 1 :])
                yield SubscriptionEntry(entry.subscription, entry.where, all_asked, state.name, made), state.name


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Events.


def _publish(state: BrokerState, given: PublishScoped) -> Iterator[BrokerEffect]:
    ad = state.advertisements.get(given.advertisement)
    if ad is None:
        yield RefuseInput(f"no client here advertises `{given.advertisement}`")
        return
    if not _passes(given.event, ad.where):
        yield RefuseInput(f"the event is not as `{ad.id}` advertises")
        return
    if given.key in state.seen:
        yield RefuseInput(f"`{given.key}` was published before")
        return
    carried = tuple(_first(ad.tags.tag(each.name)) for each in state.dimensions)
    way = (Transition(state.name, carried),)
    yield from _route(
        state, Notification(key=given.key, producer=ad.client, event=given.event, carried=carried, way=way), ""
    )


def _first(tag: str | None) -> CarriedPath:
    return CarriedPath((UNSAID if tag is None else BOTTOM if tag == ANY else tag,))


def _route(state: BrokerState, given: Notification, sender: str) -> Iterator[BrokerEffect]:
    seen = state.seen.setdefault(given.key, set())
    waiting = deque([(given.carried, given.way if not sender else (*given.way, Transition(state.name, given.carried)))])
    while waiting:
        carried, way = waiting.popleft()
        now = tuple((each.last, each.up) for each in carried)
        if now in seen:
            continue
        seen.add(now)
        brokers, steps = set[str](), set[ScopeStep]()
        for entry in _matching(state, carried, given.event):
            if entry.is_client:
                yield from _hand_over(state, entry, given, way)
            elif entry.to == state.name and entry.step is not None:
                steps.add(entry.step)
            else:
                brokers.add(entry.to)
        came_so = sender if carried == given.carried else ""  # who sent it has done with it what there is to do
        for neighbour in sorted(brokers - {came_so}):
            message = Notification(key=given.key, producer=given.producer, event=given.event, carried=carried, way=way)
            yield ToBroker(neighbour, message)
        for made in sorted(steps):
            after = _transformed(state, carried, made, given.event)
            if after is not None:
                waiting.append((after, (*way, Transition(state.name, after))))


def _matching(state: BrokerState, carried: Carried, event: FilterableEvent) -> Iterator[BrokerEntry]:
    """The entries whose demand on Φ and Λ is met, and whose filter is."""
    passed: dict[str, bool] = {}
    for scopes in product(*(_demands_met(each.last) for each in carried)):
        for entry in state.table.get(scopes, {}).values():
            if all(has.up or not asked.up for has, asked in zip(carried, entry.asked, strict=True)):
                if entry.where not in passed:
                    passed[entry.where] = _passes(event, entry.where)
                if passed[entry.where]:
                    yield entry


def _demands_met(last: str) -> tuple[str, ...]:
    if last == BOTTOM:
        return BOTTOM, UNSAID, TOP
    return last, TOP


def _transformed(state: BrokerState, carried: Carried, made: ScopeStep, event: FilterableEvent) -> Carried | None:
    """What the event carries after the step; None if a filter at the boundary holds it up."""
    dimension, here = state.dimensions[made.dimension], carried[made.dimension]
    filters = dimension.down(here.last, made.into) if made.down else dimension.up(here.last, made.into)
    if not all(event.passes(each.text) for each in filters):
        return None
    after = CarriedPath((*here.path, made.into), here.up and not made.down)
    return (*carried[: made.dimension], after, *carried[made.dimension + 1 :])


def _hand_over(
    state: BrokerState, entry: BrokerEntry, given: Notification, way: tuple[Transition, ...]
) -> Iterator[BrokerEffect]:
    if entry.to != given.producer and (given.key, entry.subscription) not in state.handed:
        state.handed.add((given.key, entry.subscription))
        yield HandOver(subscription=entry.subscription, client=entry.to, key=given.key, way=way)


def _passes(event: FilterableEvent, where: str) -> bool:
    return not where or event.passes(where)
