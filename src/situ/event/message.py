"""Messages: how events travel together, and the keys and positions that number them.

A message holds events of one client and one context, in the order of their keys, one event a line. This module owns the
form of its body, the names of its headers and what a key and a position are; it knows no bus.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

import msgspec

PLACES = 65_536
"""Events a message can hold: a position is the message's sequence times this, plus the place in the message."""

MESSAGE = "Situ-Message"  # what it is: Publish, Connect, Subscribe …
KEY = "Situ-Key"  # of the first event; the next follow without gap
COUNT = "Situ-Count"  # of events
SESSION = "Situ-Session"
CLIENT = "Situ-Client"  # these three are added by the router
CONTEXT = "Situ-Context"
DEPLOYMENT = "Situ-Deployment"  # the version that has the context, if that is not root
RECEIVED = "Situ-Received"
GENERATION = "Situ-Root"  # of the root log: how many roots there were with this one, if any was replaced
POLICIES = "Situ-Policies"  # of a late event: those that it came too late for
DECIDED = (
    "Situ-Decided"  # of a delivery among scopes: version and epoch by which it was decided; its events are stamped
)
STAMP = "Situ-Stamp"  # of a log or a delivery among scopes: the stamp of all its events, whose lines have none then
HANDED = "Situ-Handed"  # of a delivery that a router passes on: where its server would have it acknowledged
OWN = "Situ-Own"  # of what detection wrote in the name of a policy; no router lets a client say so
REFUSED = "Situ-Refused"  # of a record that is no event: why, as JSON; its body is what was sent
REPLY = "Situ-Reply"  # the subject on which a request is answered; set where it arrives, never sent
ID = "Nats-Msg-Id"  # a stream stores one message of an id, however often it is sent

_KEY = re.compile(r"([A-Za-z0-9-]{1,64})\.([0-9]{1,20})\.([0-9]{1,20})")
_NOTHING: Mapping[str, str] = MappingProxyType({})


class EventKey(msgspec.Struct, frozen=True, order=True):
    """The place of an event among all its client sent: ``client.incarnation.seq``."""

    client: str
    incarnation: int
    seq: int

    def __str__(self) -> str:
        return f"{self.client}.{self.incarnation}.{self.seq}"

    @property
    def lane(self) -> str:
        """In what it has its place: see :func:`lane_of`."""
        return self.client if self.incarnation < TOPICS else lane_of(self.client, self.incarnation)

    @classmethod
    def parse(cls, text: str) -> EventKey:
        """The key that prints as this text; ValueError if none does."""
        found = _KEY.fullmatch(text)
        if found is None:
            raise ValueError(f"{text[:100]!r} is no event key")
        return cls(found[1], int(found[2]), int(found[3]))


TOPICS = 1 << 50
"""Incarnations from here on are partitions of topics, in which a client's events are numbered by their offsets."""


def lane_of(client: str, incarnation: int) -> str:
    """In what the events of a client have one order: the client, or each of the partitions that its events come from.

    Of a lane the last event that was taken says which were.
    """
    return client if incarnation < TOPICS else f"{client}.{incarnation}"


def client_of(lane: str) -> str:
    """Whose lane this is; names of clients have no dots."""
    return lane.partition(".")[0]


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """Something to send, or to store if a stream listens to the subject."""

    subject: str
    body: bytes = b""
    headers: Mapping[str, str] = msgspec.field(default_factory=lambda: _NOTHING)

    @property
    def id(self) -> str:
        return self.headers.get(ID, "")


class StoredMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message as a stream holds it: ``seq`` is its place there, ``at`` when it was stored, in microseconds."""

    seq: int
    subject: str
    body: bytes
    headers: Mapping[str, str]
    at: int
    redelivered: bool = False
    """Handed to its reader before, which did not acknowledge it."""

    @property
    def id(self) -> str:
        return self.headers.get(ID, "")


def position(seq: int, place: int = 0) -> int:
    """The position in the log of an event in the message of this sequence."""
    return seq * PLACES + place


def message_id(first: EventKey, count: int) -> str:
    """The id under which a message of a client is stored; the same whenever it is sent again."""
    return f"{first}+{count}"


def join_lines(lines: Iterable[bytes]) -> bytes:
    """The body that holds these events, each the text of a JSON object without line breaks."""
    body = b",\n".join(lines)
    return b"[\n" + body + b"\n]" if body else b"[]"


def split_lines(body: bytes) -> list[bytes]:
    """The events of a body that :func:`join_lines` made."""
    return body[2:-2].split(b",\n") if len(body) > 2 else []
