"""Every message that clients and routers send each other: names and fields.

Messages about quality come first, then all others; :data:`FromClient` and :data:`FromRouter` at the end list them by
sender. How they are written is :mod:`situ.protocol.wire`, what they do is :mod:`situ.protocol.router_machine`.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from situ.event.message import EventKey

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Quality: expectations, profiles, advice.
#
# Bodies are JSON in the words of a project's ``quality/*.yaml``; :mod:`situ.protocol` does not look into them.

# ── from a client to its router ───────────────────────────────────────────────────────────────────


class Expect(Struct, frozen=True, kw_only=True):
    """This is what a subscription of mine needs, as a file of the project would say it."""

    req: int
    expectation: str
    sub: str
    body: dict[str, Any]
    version: int | None = None
    """That it has, of one that was registered before; None: it is new."""
    suspended: bool = False
    """It rests, and does so from the first moment where it is not known any more."""


class ChangeExpectation(Struct, frozen=True, kw_only=True):
    """It needs something else from now on; what is not said stays. The version is that of what is new."""

    req: int
    expectation: str
    body: dict[str, Any]
    version: int | None = None


class MoveExpectation(Struct, frozen=True, kw_only=True):
    """Let an expectation rest (``suspend``), wake it (``resume``), or end it (``revoke``)."""

    req: int
    expectation: str
    call: str
    version: int | None = None


class Provide(Struct, frozen=True, kw_only=True):
    """This is what I can do as a publisher of a type, as a file of the project would say it."""

    req: int
    type: str
    body: dict[str, Any]
    version: int | None = None


class ChangeProfile(Struct, frozen=True, kw_only=True):
    """I do something else from now on; what is not said stays."""

    req: int
    type: str
    body: dict[str, Any]
    version: int | None = None


class RevokeProfile(Struct, frozen=True, kw_only=True):
    req: int
    type: str
    version: int | None = None


class AnswerAdvice(Struct, frozen=True, kw_only=True):
    """I will do what I am advised to (``accepted``), or not (``refused``), or I tried (``failed``).

    ``values`` is what I can do instead: property → value.
    """

    req: int
    advice: str
    verdict: str
    values: dict[str, float | str] = field(default_factory=dict)


class AskQuality(Struct, frozen=True, kw_only=True):
    """How do things stand? ``about`` is an expectation, or a profile if ``publisher``; all of mine, if empty.

    ``explain``: and why, in words.
    """

    req: int
    about: str = ""
    publisher: bool = False
    explain: bool = False


Negotiated = (
    Expect | ChangeExpectation | MoveExpectation | Provide | ChangeProfile | RevokeProfile | AnswerAdvice | AskQuality
)
"""What clients say about quality: the router passes it on to whoever negotiates."""


# ── from a router to its client ───────────────────────────────────────────────────────────────────


class QualityAck(Struct, frozen=True, kw_only=True):
    """Done: what is in force now, as JSON. To a question: the answer, in words and as JSON."""

    req: int = 0
    body: dict[str, Any] = field(default_factory=dict)
    text: str = ""


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# All messages but those about quality.

# ── from a client to its router ───────────────────────────────────────────────────────────────────


class Connect(Struct, frozen=True, kw_only=True):
    """I am here. The incarnation is that of my keys."""

    incarnation: int
    principal: str = ""


class FullList(Struct, frozen=True, kw_only=True):
    """Everything I declare, and up to which of my events I know that they are stored."""

    version: int = 0
    acked: int = 0
    ads: dict[str, str | OfferedAdvertisement] = field(default_factory=dict)
    """Name → type, or type and more."""
    subs: dict[str, WantedSubscription] = field(default_factory=dict)
    context: str = ""
    """The one that the client went over to, if it did."""


Tags = dict[str, str | tuple[str, ...]]
"""Dimension → scope, or ``any``; ``rest`` → ``any`` or ``none``. Several scopes are told as they came, and refused."""


class OfferedAdvertisement(Struct, frozen=True, kw_only=True):
    """What an advertisement promises beside its type."""

    type: str
    filter: str = ""
    scopes: Tags = field(default_factory=dict)


class WantedSubscription(Struct, frozen=True, kw_only=True):
    """What a subscription asks for, in the terms of the client's context if it names no other."""

    types: tuple[str, ...]
    filter: str = ""
    durable: bool = False
    context: str = ""
    scopes: Tags = field(default_factory=dict)


class Heartbeat(Struct, frozen=True, kw_only=True):
    """I am still here."""


class Disconnect(Struct, frozen=True, kw_only=True):
    """I leave."""

    reason: str = ""


class Advertise(Struct, frozen=True, kw_only=True):
    req: int
    ad: str
    type: str
    filter: str = ""
    scopes: Tags = field(default_factory=dict)


class Unadvertise(Struct, frozen=True, kw_only=True):
    req: int
    ad: str


class Subscribe(Struct, frozen=True, kw_only=True):
    req: int
    sub: str
    types: tuple[str, ...]
    filter: str = ""
    durable: bool = False
    context: str = ""
    scopes: Tags = field(default_factory=dict)


class Unsubscribe(Struct, frozen=True, kw_only=True):
    req: int
    sub: str


class UseContext(Struct, frozen=True, kw_only=True):
    """From here on I speak and hear in the terms of this context."""

    req: int
    context: str


class DefineContext(Struct, frozen=True, kw_only=True):
    """This is a context, as a file of the project would declare it."""

    req: int
    context: str
    text: str


class ChangeScopes(Struct, frozen=True, kw_only=True):
    """Scopes shall be like this. ``epoch`` is the one that this was made for, if that matters."""

    req: int
    operation: dict[str, Any]
    epoch: int | None = None


class Publish(Struct, frozen=True, kw_only=True):
    """Events in the order of their keys. Without a key the router gives them."""

    key: EventKey | None
    count: int
    body: bytes


class Loss(Struct, frozen=True, kw_only=True):
    """These of my events will never come."""

    from_seq: int
    to_seq: int
    counts: dict[str, int] = field(default_factory=dict)
    reason: str = ""


class Describe(Struct, frozen=True, kw_only=True):
    """What are these types? All, if none is named."""

    req: int
    types: tuple[str, ...] = ()


class Explain(Struct, frozen=True, kw_only=True):
    """Why is this event visible to a subscription, ``client/name``, or not?

    Instead of an event: a sample of what an advertisement would publish, as text.
    """

    req: int
    to: str
    event: str = ""
    ad: str = ""
    sample: str = ""


class History(Struct, frozen=True, kw_only=True):
    """What my subscription would have got, page by page.

    It begins at an instant (µs; neither: with the first event there is) and goes on where the last page ended, which
    that page says in words of its own.
    """

    req: int
    sub: str
    after: str | None = None
    since: int | None = None
    limit: int = 500


# ── from a router to its client ───────────────────────────────────────────────────────────────────


class Terms(Struct, frozen=True, kw_only=True):
    """What the project's settings say that clients keep to. Times are in seconds."""

    batch_events: int = 500
    batch_size: int = 512 * 1024
    linger: float = 0.005
    event_limit: int = 1024 * 1024
    install_timeout: float = 2.0
    heartbeat: float = 5.0


class ConnectAck(Struct, frozen=True, kw_only=True):
    """``incarnation`` is the router's: with another one it has forgotten its children."""

    zone: str
    router: str
    incarnation: int
    epoch: int = 0
    version: int = 0
    terms: Terms = field(default_factory=Terms)


class FullListRequest(Struct, frozen=True, kw_only=True):
    """Tell me everything you have. Of another incarnation than the one you know: connect again first."""

    incarnation: int


class FullListAck(Struct, frozen=True, kw_only=True):
    """What is declared for the client now, by itself or in the project."""

    version: int = 0
    ads: dict[str, str | OfferedAdvertisement] = field(default_factory=dict)
    subs: dict[str, WantedSubscription] = field(default_factory=dict)


class Notice(Struct, frozen=True, kw_only=True):
    """A problem that kept nothing from being done, as ``said`` of what was declared.

    >>> trucks = await office.register_for_events("TruckSeen")
    >>> for notice in trucks.said:
    ...     print(notice.code, notice.message)
    """

    code: str
    message: str
    hint: str = ""


class AdAck(Struct, frozen=True, kw_only=True):
    """``accepted``: the declaration has a version. ``installed``: every engine works with it."""

    req: int = 0
    ad: str
    state: str
    version: int = 0
    missing: tuple[str, ...] = ()
    said: tuple[Notice, ...] = ()


class SubAck(Struct, frozen=True, kw_only=True):
    req: int = 0
    sub: str
    state: str
    version: int = 0
    missing: tuple[str, ...] = ()
    said: tuple[Notice, ...] = ()


class ContextAck(Struct, frozen=True, kw_only=True):
    """``accepted`` and ``installed`` as of a declaration. Of a definition, the context that has it may be a fork."""

    req: int = 0
    context: str
    state: str
    version: int = 0
    missing: tuple[str, ...] = ()
    said: tuple[Notice, ...] = ()
    gone: tuple[str, ...] = ()
    """Advertisements that have no meaning in the context, and so are no more."""


class ScopeAck(Struct, frozen=True, kw_only=True):
    """Scopes are as asked, since this epoch. ``pending`` as long as engines work with those before, ``complete`` then.

    What was so already is complete, and needs no epoch of its own.
    """

    req: int = 0
    epoch: int
    state: str
    version: int = 0
    missing: tuple[str, ...] = ()
    said: tuple[Notice, ...] = ()


class DeadEvent(Struct, frozen=True, kw_only=True):
    """An event of a stored message that became a dead letter, with the first reason and the others."""

    seq: int
    code: str
    message: str
    hint: str = ""
    others: tuple[Notice, ...] = ()


class PublishAck(Struct, frozen=True, kw_only=True):
    up_to: int
    dead: tuple[DeadEvent, ...] = ()


class HistoryAck(Struct, frozen=True, kw_only=True):
    """A page of the root log: its body is a batch. ``after`` is where the next one begins, if there is ``more``."""

    after: str
    more: bool
    count: int
    body: bytes


class Ack(Struct, frozen=True, kw_only=True):
    """Done, with nothing to add."""

    req: int = 0


class Nack(Struct, frozen=True, kw_only=True):
    """Not done. ``retry``: the same may succeed later. ``expected``: the number that would have been right."""

    of: str
    req: int = 0
    code: str
    message: str
    hint: str = ""
    retry: bool = False
    expected: int | None = None
    name: str = ""


class Closed(Struct, frozen=True, kw_only=True):
    """Sessions below this one are over: somebody else connected under the same name."""

    session: int


class DescribeAck(Struct, frozen=True, kw_only=True):
    """Type → its supertypes, whether events are of it, and its attributes as they are declared."""

    req: int = 0
    version: int = 0
    types: dict[str, Description] = field(default_factory=dict)


class Description(Struct, frozen=True, kw_only=True):
    event: bool
    above: tuple[str, ...] = ()
    attributes: dict[str, str] = field(default_factory=dict)


class ExplainAck(Struct, frozen=True, kw_only=True):
    """The answer, in words and as JSON: as much of it as the client may know."""

    req: int = 0
    visible: bool
    text: str
    answer: str


FromClient = (
    Connect
    | FullList
    | Heartbeat
    | Disconnect
    | Advertise
    | Unadvertise
    | Subscribe
    | Unsubscribe
    | UseContext
    | DefineContext
    | ChangeScopes
    | Negotiated
    | Publish
    | Loss
    | Describe
    | Explain
    | History
)
FromRouter = (
    ConnectAck
    | FullListRequest
    | FullListAck
    | AdAck
    | SubAck
    | ContextAck
    | ScopeAck
    | PublishAck
    | HistoryAck
    | Ack
    | Nack
    | Closed
    | DescribeAck
    | ExplainAck
    | QualityAck
)
