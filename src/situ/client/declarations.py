"""What a client has declared: advertisements and registrations, as the application holds them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field

from situ.client.events import DurableStream, Event, EventBuffer, Page, Stream
from situ.lang.catalogue import NOT_INSTALLED
from situ.lang.problems import SituError
from situ.protocol.messages import Notice, Tags

_log = logging.getLogger("situ.client")

Scopes = Mapping[str, str | Iterable[str]]
"""What is said of scopes: dimension → scope, or ``any``; ``rest`` → ``any`` or ``none``."""

Callback = Callable[[Event], Awaitable[object] | object]

_PATIENCE = 5
"""Times as long as a publication is held back, whoever asks for events waits until every engine knows."""


def tags_of(scopes: Scopes | None) -> Tags:
    """Scopes as a message tells them; whether they are tags, and one's own to name, is the router's to say."""
    said = scopes or {}
    return {dimension: each if isinstance(each, str) else tuple(each) for dimension, each in said.items()}


class Installation:
    """From ``accepted`` to ``installed``: every engine works with the declaration."""

    __slots__ = ("_installed", "missing", "version")

    def __init__(self, *, installed: bool = False) -> None:
        self.version = 0
        self.missing: tuple[str, ...] = ()
        self._installed = asyncio.Event()
        if installed:
            self._installed.set()

    @property
    def done(self) -> bool:
        return self._installed.is_set()

    def told(self, state: str, version: int, missing: tuple[str, ...]) -> None:
        self.version, self.missing = max(self.version, version), missing
        if state == "installed":
            self._installed.set()

    def end(self) -> None:
        """Nobody need wait any more: it will never be."""
        self._installed.set()

    async def wait(self, seconds: float | None) -> bool:
        """Whether it is installed within this time."""
        if self._installed.is_set():
            return True
        try:
            async with asyncio.timeout(seconds):
                await self._installed.wait()
        except TimeoutError:
            return False
        return True


def problem_remarks(said: tuple[Notice, ...]) -> tuple[Notice, ...]:
    """What should be known of a declaration, also by who does not ask for it."""
    for each in said:
        _log.warning("%s %s", each.code, each.message)
    return said


@dataclass(slots=True, eq=False)
class AdvertisementHandle:
    """A client's statement that it will publish events of a type; :meth:`situ.Client.advertise` makes one.

    >>> slow = await gate.advertise("TruckSeen", name="slow", where="speed < 20")
    >>> receipt = await gate.publish_event("TruckSeen", truck="LY-204", speed=12.0, ad=slow)
    >>> slow.id
    'gate/slow'
    >>> await gate.unadvertise(slow)
    """

    client: str
    name: str
    type: str
    installing: Installation = field(repr=False)
    where: str = ""
    scopes: Tags = field(default_factory=dict)
    mine: bool = True
    """Made by this client; else it stands in the project."""
    said: tuple[Notice, ...] = ()
    """What should be known of it."""
    held: bool = field(default=False, repr=False)
    """The first publication has been held back for it."""

    @property
    def id(self) -> str:
        return f"{self.client}/{self.name}"


@dataclass(slots=True, eq=False)
class Registration:
    """Events of these types flow to this client. Iterate over it, or give it to ``add_listener``.

    >>> trucks = await office.register_for_events("TruckSeen", where="speed > 30")
    >>> trucks.types, trucks.installed
    (('TruckSeen',), True)
    """

    client: str
    name: str
    types: tuple[str, ...]
    where: str = ""
    durable: bool = False
    mine: bool = True
    context: str = ""
    """Another one than the client's, in whose terms this is."""
    scopes: Tags = field(default_factory=dict)
    said: tuple[Notice, ...] = ()
    """What should be known of it."""
    error: SituError | None = field(default=None, repr=False)
    """Why it is suspended: the client has lost its right to it, and may declare it anew if it gets that back."""
    ended: asyncio.Event = field(default_factory=asyncio.Event, repr=False)
    installing: Installation = field(default_factory=Installation, repr=False)
    buffer: EventBuffer = field(default_factory=EventBuffer, repr=False)
    consumer: DurableStream | None = field(default=None, repr=False)
    pages: Page | None = field(default=None, repr=False)
    listeners: int = 0
    reading: bool = False
    streaming: Callable[[Registration], Stream] = field(default=lambda each: each.no_stream(), repr=False)

    @property
    def id(self) -> str:
        return f"{self.client}/{self.name}"

    @property
    def installed(self) -> bool:
        return self.installing.done and self.error is None

    def become(self, other: Registration) -> None:
        """What another says of types, filter, scopes and the rest, and how far that is."""
        self.types, self.where, self.scopes, self.context = other.types, other.where, other.scopes, other.context
        self.mine, self.installing, self.pages = other.mine, other.installing, other.pages

    @property
    def received(self) -> int:
        return self.consumer.received if self.consumer is not None else self.buffer.received

    @property
    def dropped(self) -> int:
        return self.buffer.dropped

    @property
    def repeats(self) -> int:
        return self.consumer.repeats if self.consumer is not None else 0

    async def require(self, install_timeout: float) -> None:
        """R012 if it is not installed in good time; it stays accepted.

        A publication is held back no longer than it must be; who asks for events has nothing to do without them, and
        an engine may be busy with a batch.
        """
        seconds = _PATIENCE * install_timeout
        done = await self.installing.wait(seconds)
        if self.error is not None:
            raise self.error
        if not done:
            missing = f": {', '.join(self.installing.missing)}" if self.installing.missing else ""
            raise SituError(NOT_INSTALLED(what="subscription", name=self.id, seconds=f"{seconds:g}", missing=missing))

    def __aiter__(self) -> Stream:
        return self.streaming(self)

    async def no_stream(self) -> Stream:
        return
        yield


@dataclass(slots=True, eq=False)
class Listener:
    """A callback at work; :meth:`situ.Client.add_listener` makes one.

    >>> seen = asyncio.Event()
    >>> listener = await office.add_listener("TruckSeen", lambda event: seen.set())
    >>> receipt = await gate.publish_event("TruckSeen", truck="LY-204", speed=31.0)
    >>> await seen.wait()
    True
    >>> await office.remove_listener(listener)
    """

    registration: Registration
    callback: Callback = field(repr=False)
    called: int = 0
    failed: int = 0
    error: str = ""
    """What the last failed call raised."""
    task: asyncio.Task[None] | None = field(default=None, repr=False)

    def note(self, error: Exception) -> None:
        """The callback raised this."""
        self.failed += 1
        self.error = f"{type(error).__name__}: {error}"
        _log.error("a listener of %s failed", ", ".join(self.registration.types), exc_info=error)
