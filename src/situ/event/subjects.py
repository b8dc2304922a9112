"""Names of everything on the bus of one zone, and how events are packed into messages.

Names of streams, subjects, buckets and consumers come first, then the messages of the root log, of dead letters, of
late events and of deliveries. Nothing here talks to a bus.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING
from zlib import crc32

import msgspec

from situ.event.lines import common_stamp, log_lines, waiting_line
from situ.event.message import (
    CLIENT,
    CONTEXT,
    COUNT,
    DECIDED,
    GENERATION,
    ID,
    KEY,
    POLICIES,
    RECEIVED,
    STAMP,
    EventKey,
    Message,
    join_lines,
    message_id,
)
from situ.event.row import BEHIND_LOG, OUTBOUND, BadRow, Row

if TYPE_CHECKING:
    from situ.event.seal import Seal

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Names.
#
# Clients, routers and groups have no dots (they are single tokens of a subject); event types may. In a subject the dots
# of a type are written ``-``, which no type has, so that it reads back exactly: ``situ.deadletter`` is the token
# ``situ-deadletter``.

SHARDS = 16
"""Parts of what a router stored: all messages of one client are in one of them, in order."""

MIXED = "_"
"""The type of a message that holds events of several types; the client of a dead letter whose client is unknown."""

REGISTRY = "registry"
DEPLOYMENTS = "deployments"


def shard_of(client: str) -> int:
    """The part of the ingress stream in which the messages of this client are."""
    return crc32(client.encode()) % SHARDS


def shards_of(number: int, tasks: int) -> tuple[int, ...]:
    """The parts that one of several tasks has."""
    return tuple(range(number, SHARDS, tasks))


def type_token(type: str) -> str:
    """An event type as one token of a subject."""
    return type.replace(".", "-")


def consumer_of(subscription: str) -> str:
    """The durable consumer of a subscription ``client/name``."""
    return subscription.replace("/", "_")


def subscription_of(consumer: str) -> str:
    """The subscription whose consumer this is."""
    return consumer.replace("_", "/", 1)


class BusNames(msgspec.Struct, frozen=True):
    """The names of one zone."""

    zone: str

    # ── streams ──

    @property
    def in_stream(self) -> str:
        """Messages as clients sent them, until an engine has taken them."""
        return f"IN_{self.zone}"

    @property
    def root_stream(self) -> str:
        """The root log: every accepted event."""
        return f"ROOT_{self.zone}"

    @property
    def out_stream(self) -> str:
        """What waits for durable subscriptions."""
        return f"OUT_{self.zone}"

    @property
    def dead_stream(self) -> str:
        """Dead letters."""
        return f"DEAD_{self.zone}"

    @property
    def late_stream(self) -> str:
        """Events that came after what they could have been part of was decided."""
        return f"LATE_{self.zone}"

    @property
    def feed_stream(self) -> str:
        """What was said about quality, to whom it concerns."""
        return f"FEED_{self.zone}"

    @property
    def streams(self) -> tuple[str, ...]:
        return (
            self.in_stream,
            self.root_stream,
            self.out_stream,
            self.dead_stream,
            self.late_stream,
            self.feed_stream,
        )

    def subjects_of(self, stream: str) -> str:
        """The subjects whose messages the stream stores."""
        part = dict(zip(self.streams, ("raw", "root", "out", "dead", "late", "feedback"), strict=True))[stream]
        return f"situ.{self.zone}.{part}.>"

    # ── subjects ──

    def ingress(self, router: str, client: str = "*") -> str:
        """Where a client asks its router."""
        return f"situ.{self.zone}.in.{router}.{client}"

    def raw(self, router: str, shard: int) -> str:
        return f"situ.{self.zone}.raw.{router}.{shard}"

    def root(self, router: str, type: str = MIXED) -> str:
        return f"situ.{self.zone}.root.{router}.{type_token(type)}"

    def out(self, group: str) -> str:
        return f"situ.{self.zone}.out.{group}"

    def live(self, client: str) -> str:
        return f"situ.{self.zone}.live.{client}"

    def dead(self, client: str = MIXED) -> str:
        return f"situ.{self.zone}.dead.{client or MIXED}"

    def late(self, type: str = "") -> str:
        return f"situ.{self.zone}.late.{type_token(type) if type else '>'}"

    def feedback(self, kind: str, client: str) -> str:
        """What is said about its subscriptions (``sub``) or publications (``pub``) to a client."""
        return f"situ.{self.zone}.feedback.{kind}.{client}"

    @property
    def admit(self) -> str:
        """Where a run is told that other clients than before are to be let in."""
        return f"situ.{self.zone}.admit"

    @property
    def quality(self) -> str:
        """Where those who may know everything ask how quality stands."""
        return f"situ.{self.zone}.quality"

    def group_of(self, subject: str) -> str:
        """The group of a subject that :meth:`out` wrote."""
        return subject.rpartition(".")[2]

    # ── buckets ──

    @property
    def clients(self) -> str:
        return f"clients_{self.zone}"

    @property
    def metrics(self) -> str:
        return f"metrics_{self.zone}"

    @property
    def buckets(self) -> tuple[str, ...]:
        return (REGISTRY, self.clients, self.metrics)

    @property
    def object_stores(self) -> tuple[str, ...]:
        return (DEPLOYMENTS,)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Messages of the logs and of deliveries: how events are packed, with subjects, headers and ids.
#
# All engines pack alike, so whoever reads a stream need not know which of them wrote it. A message that is stored has
# an id made of what it holds: made again from the same events, the stream stores it once.

LARGEST = 1024 * 1024
"""Bytes of lines that are put into one message of the root log, if there are several."""


def portions(lines: Sequence[bytes], most: int = LARGEST) -> list[slice]:
    """The lines that go into one message each. Mostly that is all of them.

    Lines of the log are longer than what was sent: a client that puts as many events into a message as fit would have
    made one that the bus does not take.
    """
    if sum(map(len, lines)) <= most:
        return [slice(0, len(lines))]
    found, begin, size = [], 0, 0
    for place, line in enumerate(lines):
        if size and size + len(line) > most:
            found.append(slice(begin, place))
            begin, size = place, 0
        size += len(line) + 2  # a comma and a line break stand between two lines
    return [*found, slice(begin, len(lines))]


def pack_root(
    names: BusNames,
    router: str,
    rows: Sequence[Row],
    lines: Sequence[bytes],
    *,
    came: tuple[EventKey, int] | None = None,
    generation: int = 1,
) -> list[tuple[slice, Message]]:
    """The messages of the root log that hold these events of one client, and which of them: several if they are large.

    ``came``: key and count of the message that they came in. If one message holds them all, it keeps the id of that
    one: sent again it is stored once, whatever is made of it by then. Lines come without stamps: those are put where
    they belong here. ``generation`` counts the roots that there were with the one in whose terms the events are.
    """
    found = portions(lines)
    if len(found) == 1:
        return [(found[0], _pack_root(names, router, rows, lines, came, generation))]
    return [(some, _pack_root(names, router, rows[some], lines[some], None, generation)) for some in found]


def _pack_root(
    names: BusNames,
    router: str,
    rows: Sequence[Row],
    lines: Sequence[bytes],
    came: tuple[EventKey, int] | None,
    generation: int,
) -> Message:
    first = rows[0]
    types = {row.type for row in rows}
    key = EventKey(first.client, first.incarnation, first.seq)
    stamp, lines = log_lines(rows, lines)
    return Message(
        subject=names.root(router, types.pop() if len(types) == 1 else MIXED),
        headers={
            CLIENT: first.client,
            CONTEXT: first.context,
            KEY: str(key),
            COUNT: str(len(rows)),
            RECEIVED: str(first.recv),
            ID: message_id(*(came or (key, len(rows)))),
            **({GENERATION: str(generation)} if generation > 1 else {}),
            **({STAMP: stamp} if stamp else {}),
        },
        body=join_lines(lines),
    )


def pack_dead(names: BusNames, bad: BadRow, line: bytes) -> Message:
    """A dead letter; each has its own message, since what was sent may be as large as a message can be."""
    # What is in the log may fail in several stages, and on its way out in several contexts, each for its own reasons.
    id = f"dead+{bad.key}"
    if bad.stage == OUTBOUND:
        id += f"+{bad.context.partition('@')[0]}"
    elif bad.stage in BEHIND_LOG:
        id += f"+{bad.stage}"
    headers = {CLIENT: bad.client, COUNT: "1", ID: id}
    return Message(subject=names.dead(bad.client), headers=headers, body=join_lines([line]))


def pack_late(names: BusNames, row: Row, line: bytes, policies: Sequence[str]) -> Message:
    """An event that came too late for these policies."""
    headers = {CLIENT: row.client, COUNT: "1", ID: f"late+{row.key}", POLICIES: ",".join(policies)}
    return Message(subject=names.late(row.type), headers=headers, body=join_lines([line]))


def pack_group(names: BusNames, group: str, rows: Sequence[Row], lines: Sequence[bytes], decided: str = "") -> Message:
    """Events of one delivery group in the order of the log.

    The first is known by its key. Its position would not do: the edge engine delivers from the root log, Spark from the
    ingress stream, so two events that engines deliver after one another may have the same, and the bus would take the
    second for a repeat.

    Among scopes, ``decided`` says by what it was decided that the group may see them, and they wait with their stamps.
    """
    first, count = rows[0], len(lines)
    headers = {COUNT: str(count), ID: f"{group}+{first.key}+{count}"}
    if decided:
        headers[DECIDED] = decided
        if stamp := common_stamp(rows):
            headers[STAMP] = stamp
        else:
            lines = [waiting_line(row, line) for row, line in zip(rows, lines, strict=True)]
    return Message(subject=names.out(group), headers=headers, body=join_lines(lines))


def pack_live(names: BusNames, client: str, lines: Sequence[bytes]) -> Message:
    """Events for a client that is there now."""
    return Message(subject=names.live(client), headers={COUNT: str(len(lines))}, body=join_lines(lines))


def pack_deliveries(
    names: BusNames,
    rows: Sequence[Row],
    durable: Iterable[tuple[int, str, bytes]],
    live: Iterable[tuple[int, str, str, bytes]],
    *,
    decided: str = "",
    seal: Seal | None = None,
) -> tuple[list[Message], list[Message]]:
    """The messages to be stored, once however often they are made, and those to be sent at once.

    ``durable`` are places of rows with a group and a line, ``live`` those with a client, its subscriptions and a line.
    Among scopes, ``decided`` is as for :func:`pack_group`, and what is sent at once is sealed.
    """
    groups: dict[str, tuple[list[Row], list[bytes]]] = {}
    for index, group, line in durable:
        own, lines = groups.get(group) or groups.setdefault(group, ([], []))
        own.append(rows[index])
        lines.append(line)
    clients: dict[str, list[bytes]] = {}
    for _, client, subscriptions, line in live:
        clients.setdefault(client, []).append(live_line(line, subscriptions))
    if seal is not None:
        clients = {client: seal.handed(lines, client) for client, lines in clients.items()}
    return (
        [pack_group(names, group, own, lines, decided) for group, (own, lines) in groups.items()],
        [pack_live(names, client, lines) for client, lines in clients.items()],
    )


def live_line(line: bytes, subscriptions: str) -> bytes:
    """The line of an event that says which of the client's subscriptions it is for."""
    return b'{"situsubs":"%s",%s' % (subscriptions.encode(), line[1:])
