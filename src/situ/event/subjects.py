"""What things on the bus of one zone are called: streams, subjects, buckets, consumers.

Pure text: nothing here talks to a bus. Clients, routers and groups have no dots (they are single tokens of a subject);
event types may. In a subject the dots of a type are written ``-``, which no type has, so that it reads back exactly:
``situ.deadletter`` is the token ``situ-deadletter``.
"""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

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


def type_of(token: str) -> str:
    """The event type that :func:`type_token` wrote."""
    return token.replace("-", ".")


def consumer_of(subscription: str) -> str:
    """The durable consumer of a subscription ``client/name``."""
    return subscription.replace("/", "_")


def subscription_of(consumer: str) -> str:
    """The subscription whose consumer this is."""
    return consumer.replace("_", "/", 1)


@dataclass(frozen=True, slots=True)
class Names:
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
