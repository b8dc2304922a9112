"""What goes into a router's state machine and what comes out of it.

Inputs are what happened, effects what the host is to do about it. A *ticket* is the host's number of something under
way: of a request that waits for its answer, of a message that is being stored, of a declaration at the registry. The
machine hands tickets back and never looks into them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from situ.event.message import EventKey
from situ.protocol.messages import (
    DeadEvent,
    Describe,
    Explain,
    FromClient,
    FromRouter,
    History,
    Negotiated,
    Notice,
    Terms,
)
from situ.routing.model import Advertisement, ClientDeclaration, Subscription
from situ.scopes.operations import Operation

Declaration = Advertisement | Subscription | ClientDeclaration
"""A client is one, too: the context that it is in."""

# ── inputs ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The router begins. ``sessions`` are the clients it had before, ``owned`` what clients declared themselves."""

    sessions: Mapping[str, int] = field(default_factory=dict)
    owned: tuple[Declaration, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    client: str
    session: int
    message: FromClient
    ticket: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Garbled:
    """A client sent what is no message."""

    client: str
    kind: str
    reason: str
    ticket: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    ticket: int
    dead: tuple[DeadEvent, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFailed:
    ticket: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """The registry took a declaration: it is part of this version.

    Of a client that went over to a context, ``kept`` are the ids of its advertisements that have a meaning there.
    """

    ticket: int
    version: int
    kept: tuple[str, ...] = ()
    what: Declaration | None = None
    """The declaration as it was taken, with the tags that it has from its client; None: as it was asked for."""
    said: tuple[Notice, ...] = ()
    """What should be known of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescoped:
    """The registry took a change of scopes, or found them to be so already."""

    ticket: int
    epoch: int
    version: int
    said: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Defined:
    """The registry took a definition: this context has it from that version on."""

    ticket: int
    context: str
    version: int
    said: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The registry refused a declaration."""

    ticket: int
    code: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    """Every live engine works with this version, or all but those missing."""

    version: int
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspended:
    """A declaration that its client has no right to any more, and why. ``version`` is that of its object."""

    what: Advertisement | Subscription
    version: int
    code: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """What is declared now, and the terms for clients."""

    version: int
    advertisements: Mapping[str, Advertisement]
    subscriptions: Mapping[str, Subscription]
    contexts: Mapping[str, str] = field(default_factory=dict)
    """Client → the context it is in, if that is not root."""
    terms: Terms
    grace: float = 30.0
    """Seconds of silence after which a client is gone."""
    suspended: tuple[Suspended, ...] = ()
    epoch: int = 0
    """Of the scopes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """The connection of a client was seen to end, or to be there."""

    client: str
    up: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Timer:
    name: str


Input = (
    Start
    | Received
    | Garbled
    | Stored
    | StoreFailed
    | Declared
    | Defined
    | Rescoped
    | Refused
    | Adopted
    | Deployed
    | Link
    | Timer
)

# ── effects ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Answer the request of this ticket."""

    ticket: int
    message: FromRouter


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """Tell a client something it did not ask for."""

    client: str
    message: FromRouter


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """Store a message of events; :class:`Stored` or :class:`StoreFailed` follows."""

    ticket: int
    key: EventKey
    count: int
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Declare:
    """Have the registry check and store a declaration; :class:`Declared` or :class:`Refused` follows."""

    ticket: int
    what: Declaration


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdraw:
    """Have the registry take out declarations; with a ticket, :class:`Declared` or :class:`Refused` follows."""

    ticket: int | None
    what: tuple[Declaration, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Define:
    """Have the registry check and store a context; :class:`Defined` or :class:`Refused` follows."""

    ticket: int
    client: str
    context: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescope:
    """Have the registry change scopes for this client; :class:`Rescoped` or :class:`Refused` follows."""

    ticket: int
    client: str
    operation: Operation
    epoch: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Write down in which session a client is; None: it is gone."""

    client: str
    session: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Answer a question that changes nothing; ``wanted`` is the subscription of a :class:`History`."""

    ticket: int
    message: Describe | Explain | History
    client: str = ""
    wanted: Subscription | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Negotiate:
    """Hand what a client says about quality to whoever negotiates, who answers it."""

    ticket: int
    client: str
    message: Negotiated


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """Tell whoever negotiates that a client is here, with all it declared, or gone for good."""

    client: str
    here: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTimer:
    name: str
    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Worth a line in the log: something was stale, malformed or lost."""

    client: str
    code: str
    text: str


Effect = (
    Answer
    | Send
    | Store
    | Declare
    | Withdraw
    | Define
    | Rescope
    | Record
    | Look
    | Negotiate
    | Presence
    | SetTimer
    | Report
)
