"""What a router among others knows: its peers, the tables it told and was told, what is on its way, and its lease.

The state is the machine's own and changed in place: a step touches only what changes. The clients of the router are a
:class:`~situ.protocol.router_state.RouterState` inside it, the same that serves a router alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from situ.protocol import router_machine
from situ.protocol.dedup_window import SequenceSet
from situ.protocol.effects import Adopted as AdoptedVersion
from situ.protocol.effects import Report, Stored, StoreFailed
from situ.protocol.overlay.effects import Append, Cas, OverlayEffect, SendRouter, SendZone, Tell
from situ.protocol.overlay.messages import Entry, OverlayEvent, OverlayMessage, Want
from situ.protocol.overlay.scope_document import Meaning, ScopeDocument
from situ.protocol.router_state import RouterState
from situ.routing.model import Advertisement, Subscription

INTEREST, SLT, EXTERNAL = "interest", "slt", "external"
ZONE_INTEREST, ZONE_SLT = "zone interest", "zone slt"
MEMBER_TABLES = (INTEREST, SLT, EXTERNAL)
ZONE_TABLES = (ZONE_INTEREST, ZONE_SLT)

GATEWAY = ""
"""The destination of what leaves the zone, in the match table of a router."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds. The first is the unit of a router's own tick."""

    heartbeat: float = 1.0
    suspected: float = 3.0
    removed: float = 10.0
    renew: float = 2.0
    stop: float = 4.0
    lease: float = 6.0
    epoch_lease: float = 5.0
    grace: float = 30.0
    withdrawal: float = 60.0
    install: float = 2.0
    remember: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Which routers there are, by zone, and the zone whose gateway speaks for the scopes. Configured, not learned."""

    zones: dict[str, tuple[str, ...]]
    home: str

    def members(self, zone: str) -> tuple[str, ...]:
        return self.zones.get(zone, ())


@dataclass(slots=True)
class SentTable:
    """A table as a neighbour is told it: ``entries`` as it should be, ``add`` and ``remove`` what was not told yet.

    A difference is told at once if nothing is unconfirmed; else it waits and is told with all that came meanwhile.
    """

    entries: dict[Any, Entry] = field(default_factory=dict)
    add: dict[Any, Entry] = field(default_factory=dict)
    remove: dict[Any, None] = field(default_factory=dict)
    version: int = 0
    acked: int = 0
    told: float = 0.0
    whole: bool = True
    """Nothing that the neighbour has can be built upon."""

    @property
    def due(self) -> bool:
        return self.whole or bool(self.add or self.remove)

    @property
    def needed(self) -> int:
        """The version that has all there is."""
        return self.version + 1 if self.due else self.version

    def put(self, key: Any, entry: Entry) -> None:
        if key not in self.entries:
            self.entries[key] = entry
            if key in self.remove:
                del self.remove[key]
            else:
                self.add[key] = entry

    def take(self, key: Any) -> None:
        if self.entries.pop(key, None) is not None:
            if key in self.add:
                del self.add[key]
            else:
                self.remove[key] = None

    def restart(self) -> None:
        """The neighbour has forgotten everything, or another one has taken its place."""
        self.whole = True
        self.add.clear()
        self.remove.clear()


@dataclass(slots=True)
class HeldTable:
    """A table as a neighbour told it."""

    version: int = -1
    """-1: unknown."""
    entries: dict[Any, Entry] = field(default_factory=dict)
    asked: tuple[int, float] = (-2, -1e9)
    """With which version it was last asked for, and when."""


@dataclass(slots=True)
class Work:
    """What is to be done once some stores and forwards have succeeded."""

    left: int = 1
    then: list[tuple[Any, ...]] = field(default_factory=list)


@dataclass(slots=True)
class Item:
    """An event that waits for a neighbour's acknowledgement."""

    event: OverlayEvent
    phase: str
    trail: tuple[str, ...]
    work: Work
    duty: bool = False
    local: bool = True


@dataclass(slots=True)
class Outbox:
    """What was forwarded to a neighbour and is not acknowledged, in order. The first item has place ``acked + 1``."""

    channel: int = 0
    acked: int = 0
    sent: int = 0
    items: deque[Any] = field(default_factory=deque)
    since: float = 0.0
    """When it last went on, or everything was sent again."""


@dataclass(slots=True)
class Inbox:
    """What comes over one channel of a neighbour."""

    channel: int
    done: int = 0
    """The last place acknowledged."""
    taken: int = 0
    open: dict[int, bool] = field(default_factory=dict)
    """Place → whether it is done, for those taken and not acknowledged."""
    asked: int = -1
    """The place after which was last asked for again."""


@dataclass(slots=True)
class Peer:
    """Another router of the zone."""

    name: str
    incarnation: int = 0
    heard: float = 0.0
    live: bool = False
    """Said something, and not silent for long."""
    epoch: int = 0
    term: int = 0
    confirmed: float = -1e9
    """When it was last granted the right to hand over by the epoch in force."""


@dataclass(slots=True)
class Remote:
    """Another zone, as a gateway knows it."""

    name: str
    term: int = 0
    heard: float = -1e9
    epoch: int = 0
    granted: float = -1e9
    missing: tuple[str, ...] = ()
    asked: bool = False
    """The routers here know what is advertised there, so what they want is known here."""

    def is_live(self, now: float, after: float) -> bool:
        return now - self.heard < after


@dataclass(slots=True)
class Lease:
    """The lease of the gateway, as this router sees it, on its own clock."""

    value: tuple[str, int, int] | None = None
    seen: float = 0.0
    written: float = -1e9
    """When the last write that succeeded was sent; this router acts for a while from then on."""
    acting: bool = False
    asked: int = 0
    """The ticket of a write under way."""
    asked_at: float = 0.0


@dataclass(slots=True)
class Wait:
    """Somebody waits until these versions of tables are confirmed."""

    needs: dict[tuple[str, str], int]
    then: tuple[Any, ...]
    since: float
    told: tuple[str, ...] = ()


@dataclass(slots=True)
class Pending:
    """A stream of the store that this router appends to: one batch under way, the rest waits, so order holds."""

    waiting: deque[tuple[str, Any, Any]] = field(default_factory=deque)
    flight: tuple[tuple[str, Any, Any], ...] = ()
    ticket: int = 0


class MatchTable:
    """Type → wants → destinations. A want that several directions have is tested once."""

    __slots__ = ("by_type",)

    def __init__(self) -> None:
        self.by_type: dict[str, dict[int, tuple[Want, dict[str, None]]]] = {}

    def add(self, want: Want, to: str) -> None:
        for type in want.types:
            found = self.by_type.setdefault(type, {}).get(want.id)
            if found is None:
                found = self.by_type[type][want.id] = (want, {})
            found[1][to] = None

    def remove(self, want: Want, to: str) -> None:
        for type in want.types:
            table = self.by_type.get(type)
            found = table.get(want.id) if table is not None else None
            if table is None or found is None:
                continue
            found[1].pop(to, None)
            if not found[1]:
                del table[want.id]
                if not table:
                    del self.by_type[type]

    def wants(self, types: Iterable[str]) -> Iterator[tuple[Want, dict[str, None]]]:
        by_type = self.by_type
        for type in types:
            table = by_type.get(type)
            if table is not None:
                yield from table.values()

    def destinations(self, want: Want) -> Iterable[str]:
        found = self.by_type.get(want.types[0], {}).get(want.id)
        return () if found is None else found[1]

    def every(self) -> Iterator[Want]:
        """All wants, each once."""
        for type, table in self.by_type.items():
            for want, _ in table.values():
                if want.types[0] == type:
                    yield want


@dataclass(slots=True)
class OverlayState:
    """All a router knows. ``clients`` is what it knows as a router alone."""

    me: str
    zone: str
    incarnation: int
    layout: Layout
    timing: Timing
    meaning: Meaning
    clients: RouterState
    flood: bool = False
    """Tell every subscription to everybody: for comparison."""

    # ── who is there ──
    booted: float = 0.0
    peers: dict[str, Peer] = field(default_factory=dict)
    zones: dict[str, Remote] = field(default_factory=dict)
    lease: Lease = field(default_factory=Lease)
    gateway: str = ""
    term: int = 0
    adopted: dict[str, str] = field(default_factory=dict)
    """Router that is away → who looks after what is its own."""

    # ── tables ──
    sent: dict[tuple[str, str], SentTable] = field(default_factory=dict)
    held: dict[tuple[str, str], HeldTable] = field(default_factory=dict)
    own: dict[int, tuple[Want, dict[str, None]]] = field(default_factory=dict)
    """What the children want: id → want and the subscriptions that want it."""
    rows: dict[tuple[str, str], int] = field(default_factory=dict)
    """How many advertisements of children have a tag."""
    ads: dict[str, Advertisement] = field(default_factory=dict)
    subs: dict[str, Subscription] = field(default_factory=dict)
    matches: MatchTable = field(default_factory=MatchTable)
    """Wants of children (destination: this router), of peers, and of other zones (destination: the gateway)."""
    outside: MatchTable = field(default_factory=MatchTable)
    """As gateway: wants of other zones by zone."""
    waits: list[Wait] = field(default_factory=list)
    declared: int = 0
    unconfirmed: dict[str, int] = field(default_factory=dict)
    """Durable subscriptions that are fed here and not in force everywhere yet → the version of their declaration."""
    feeding: dict[str, tuple[int | None, Subscription]] = field(default_factory=dict)
    """Durable subscriptions on their way into the store → the ticket of their declaration."""
    adopting: dict[str, float] = field(default_factory=dict)
    """Routers adopted here of late → how long peers are told so with every want."""
    places: dict[str, int] = field(default_factory=dict)
    """The same clients → the ticket that their events wait for."""
    leaving: dict[str, float] = field(default_factory=dict)
    """Durable subscriptions that another router feeds now → until when they are fed here, too."""
    moving: dict[str, int] = field(default_factory=dict)
    """Clients that connected and whose place is on its way into the store → their session."""
    sweeps: dict[tuple[str, str], float] = field(default_factory=dict)
    """When what a neighbour was told and is not eligible any more is withdrawn."""

    confirmed: dict[tuple[str, str], tuple[int, tuple[str, ...]]] = field(default_factory=dict)
    """Table and gateway → which version other zones work with, and which zones do not."""
    recovered: dict[tuple[str, str], None] = field(default_factory=dict)
    """Tags of events whose advertisements are not here."""
    settled: set[Any] = field(default_factory=set)
    unsure: set[Any] = field(default_factory=set)
    """Tags that other zones may not have confirmed: such events go to the gateway, which finds out."""
    settling: set[Any] = field(default_factory=set)
    is_ready: bool = False
    checking: bool = False
    learning: bool = False

    # ── events ──
    outboxes: dict[str, Outbox] = field(default_factory=dict)
    zone_outboxes: dict[str, Outbox] = field(default_factory=dict)
    inboxes: dict[str, Inbox] = field(default_factory=dict)
    channels: int = 0
    stranded: list[Item] = field(default_factory=list)
    """What is for the gateway while none is known."""
    seen: dict[tuple[str, int], SequenceSet] = field(default_factory=dict)
    used: dict[tuple[str, int], float] = field(default_factory=dict)
    appends: dict[str, Pending] = field(default_factory=dict)
    reading: dict[str, dict[int, None]] = field(default_factory=dict)
    """Streams that are read → places under way."""
    behind: dict[str, dict[int, tuple[int, int]]] = field(default_factory=dict)
    """Client → tickets of what must be committed elsewhere, and the number after which its events wait for that."""
    awaited: dict[int, str] = field(default_factory=dict)
    parked: dict[str, list[tuple[OverlayEvent, Work]]] = field(default_factory=dict)
    """Client → its events that wait for that."""
    queues: dict[str, deque[tuple[int, Any]]] = field(default_factory=dict)
    """Streams that are read → what came and cannot be routed yet, in order."""

    # ── the store ──
    keys: dict[str, Any] = field(default_factory=dict)
    tickets: int = 0
    asked: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    """Ticket of a compare-and-set → what it is for."""

    # ── scopes ──
    documents: dict[int, ScopeDocument] = field(default_factory=dict)
    document: ScopeDocument = None  # type: ignore[assignment]  # there from the first input on
    fetching: dict[int, float] = field(default_factory=dict)
    epoch_until: float = -1e9
    completed: int = 0
    changed_at: float = 0.0

    out: list[OverlayEffect] = field(default_factory=list)
    """The effects of the step under way."""

    # ── small words that all transitions use ──

    def send(self, to: str, message: OverlayMessage) -> None:
        self.out.append(SendRouter(to, message))

    def send_zone(self, zone: str, message: OverlayMessage) -> None:
        self.out.append(SendZone(zone, message))

    def installed(self, version: int, missing: tuple[str, ...], now: float) -> None:
        """Declarations up to this version are in force, but for those who are missing."""
        self.out.extend(router_machine.step(self.clients, AdoptedVersion(version=version, missing=missing), now))

    def pass_on(self, given: Stored | StoreFailed, now: float) -> None:
        """What became of a publication: its client is answered."""
        self.out.extend(router_machine.step(self.clients, given, now))

    def tell_client(self, client: str, message: OverlayMessage) -> None:
        self.out.append(Tell(client, message))

    def write_key(self, key: str, value: Any, why: tuple[Any, ...]) -> None:
        """Have the store write a value over the one known here."""
        ticket = self.ticket()
        self.asked[ticket] = (*why, value)
        self.out.append(Cas(key, self.keys.get(key), value, ticket))

    def report(self, about: str, code: str, text: str) -> None:
        self.out.append(Report(client=about, code=code, text=text))

    def ticket(self) -> int:
        self.tickets += 1
        return self.tickets

    def acts(self, now: float) -> bool:
        """Whether this router may act as gateway at this instant: its last renewal was sent not too long ago."""
        return self.lease.acting and now - self.lease.written <= self.timing.stop

    def table_sent(self, table: str, to: str) -> SentTable:
        found = self.sent.get((table, to))
        if found is None:
            found = self.sent[table, to] = SentTable()
        return found

    def table_held(self, table: str, of: str) -> HeldTable:
        found = self.held.get((table, of))
        if found is None:
            found = self.held[table, of] = HeldTable()
        return found

    def live_peers(self) -> list[str]:
        return [name for name, each in self.peers.items() if each.live]

    def append(self, stream: str, id: str, item: Any, then: Any) -> None:
        """Store an entry; ``then`` is the work that waits for it, or what a publication is answered by."""
        pending = self.appends.get(stream)
        if pending is None:
            pending = self.appends[stream] = Pending()
        pending.waiting.append((id, item, then))
        if not pending.flight:
            self.append_next(stream, pending)

    def append_next(self, stream: str, pending: Pending) -> None:
        if not pending.flight:
            pending.flight = tuple(pending.waiting)
            pending.waiting.clear()
        if pending.flight:
            pending.ticket = self.ticket()
            self.asked[pending.ticket] = ("append", stream)
            entries = tuple((id, item) for id, item, _ in pending.flight)
            self.out.append(Append(stream, entries, pending.ticket))
