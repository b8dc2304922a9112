"""Feedback about quality at a client, and what expectations and capabilities have in common.

`FeedbackStream` hears feedback, each message once and in order. `QualityRequests` makes calls one at a time.
`QualityRegistrations` keeps what was registered and registers it again when the router or the bus was away.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from abc import ABC, abstractmethod
from asyncio import CancelledError
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakValueDictionary

from situ.bus.event_loop import end
from situ.bus.interface import Bus, Serving
from situ.client.session import Session
from situ.event.message import Message
from situ.event.subjects import BusNames
from situ.lang.catalogue import ZONE_UNREACHABLE
from situ.lang.problems import SituError
from situ.protocol.messages import ChangeExpectation, ChangeProfile, Negotiated, QualityAck
from situ.quality.negotiation.feedback import Advice, Feedback, feedback_from_json

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Hearing. The bus promises at least once, and the router says things again when it cannot know that they were heard; a
# message whose number is not higher than that of the last one with its id is a repeat. Callbacks have a queue each: one
# that takes long holds up nobody else.

_log = logging.getLogger("situ.client")
_MOST_REMEMBERED = 10_000

F = TypeVar("F", bound=Feedback)


class FeedbackListener(Generic[F]):
    """A callback at work; ``close`` ends it."""

    def __init__(
        self, callback: Callable[[F], Awaitable[object] | object], forget: Callable[[FeedbackListener[F]], None]
    ) -> None:
        self.called = 0
        self.error = ""
        """What the last failed call raised."""
        self._callback = callback
        self._forget = forget
        self._queue: asyncio.Queue[F] = asyncio.Queue()
        self._task = asyncio.get_running_loop().create_task(self._run())

    def put(self, message: F) -> None:
        self._queue.put_nowait(message)

    async def close(self) -> None:
        """Call back no more."""
        self._forget(self)
        await end([self._task])

    async def _run(self) -> None:
        while True:
            message = await self._queue.get()
            self.called += 1
            try:
                result = self._callback(message)
                if inspect.isawaitable(result):
                    await result
            except Exception as error:  # noqa: BLE001 - the application's own: the next message is another matter
                self.error = f"{type(error).__name__}: {error}"
                _log.error("a callback for feedback failed", exc_info=error)


class FeedbackStream(Generic[F]):
    """What one client is told of its subscriptions (``sub``) or publications (``pub``)."""

    def __init__(self, bus: Bus, client: str, kind: str) -> None:
        self._bus = bus
        self._subject = BusNames(bus.zone).feedback(kind, client)
        self._hearers: list[FeedbackListener[F]] = []
        self._last: dict[tuple[type, str], int] = {}
        self._serving: Serving | None = None
        self._beginning = asyncio.Lock()
        self.repeats = 0

    @property
    def begun(self) -> bool:
        return self._serving is not None

    async def begin(self) -> bool:
        """Listen, if that is not done already; whether this was the beginning."""
        async with self._beginning:
            if self._serving is not None:
                return False
            self._serving = await self._bus.serve(self._subject, self._heard)
            return True

    async def close(self) -> None:
        for each in tuple(self._hearers):
            await each.close()
        if self._serving is not None:
            await self._serving.close()
            self._serving = None

    def add(self, callback: Callable[[F], Awaitable[object] | object]) -> FeedbackListener[F]:
        hearer: FeedbackListener[F] = FeedbackListener(callback, self._drop)
        self._hearers.append(hearer)
        return hearer

    def stream(self) -> AsyncGenerator[F, None]:
        """What is heard from now on, also before somebody asks for the first."""
        queue: asyncio.Queue[F] = asyncio.Queue()
        return _taken(queue, self.add(queue.put_nowait))

    def tell(self, message: F) -> bool:
        """Hand a message on, unless it says nothing new."""
        key = (type(message), message.id)
        if message.number <= self._last.get(key, 0):
            self.repeats += 1
            return False
        self._last.pop(key, None)
        self._last[key] = message.number
        if len(self._last) > _MOST_REMEMBERED:
            # Advice is short-lived: the oldest will not come again.
            self._last.pop(next((each for each in self._last if each[0] is Advice), next(iter(self._last))))
        for each in tuple(self._hearers):
            each.put(message)
        return True

    def _drop(self, hearer: FeedbackListener[F]) -> None:
        if hearer in self._hearers:
            self._hearers.remove(hearer)

    async def _heard(self, message: Message) -> None:
        try:
            told = feedback_from_json(json.loads(message.body))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            _log.warning("feedback on %s cannot be read: %s", message.subject, error)
            return
        self.tell(told)  # type: ignore[arg-type]  # each subject has kinds of its own


async def _taken(queue: asyncio.Queue[F], hearer: FeedbackListener[F]) -> AsyncGenerator[F, None]:
    try:
        while True:
            yield await queue.get()
    finally:
        await hearer.close()


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Calls one at a time, and work that goes on by itself.


class QualityRequests:
    """Asks the router about quality."""

    def __init__(self, session: Session) -> None:
        self.client = session.client
        self._session = session
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """Whoever waits for its turn, or has it, holds on to it."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def ask(self, message: Negotiated) -> Mapping[str, Any]:
        """What is in force after a call; what is refused is raised."""
        return (await self.told(message)).body

    async def told(self, message: Negotiated) -> QualityAck:
        """The whole answer."""
        answer = await self._session.ask(message)
        assert isinstance(answer, QualityAck)
        return answer

    def request(self) -> int:
        return self._session.request()

    def turn(self, name: str) -> asyncio.Lock:
        """Calls about one thing are made one after the other."""
        lock = self._turns.get(name)
        if lock is None:
            lock = self._turns[name] = asyncio.Lock()
        return lock

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Do it besides; if it fails, that is logged."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def end(self) -> None:
        await end(self._tasks)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("%s: what it says of quality could not be told: %s", self.client, error)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What is registered. When the router, or the bus, was away, everything is registered again under the same ids and
# versions, and what was said meanwhile is asked for. What a client registers, and how, is in
# :mod:`situ.client.expectations` and :mod:`situ.client.capabilities`.


class RegisteredItem(Protocol):
    """Something of which the router has this version, or one before."""

    version: int


R = TypeVar("R", bound=RegisteredItem)


class QualityRegistrations(ABC, Generic[R, F]):
    """One side of quality at one client. ``kind`` is that of the feedback it hears: ``sub`` or ``pub``."""

    def __init__(self, bus: Bus, session: Session, kind: str) -> None:
        self.client = session.client
        self.registered: dict[str, R] = {}
        self._negotiating = QualityRequests(session)
        self._hearing: FeedbackStream[F] = FeedbackStream(bus, session.client, kind)

    # ── what the client tells ──

    def back(self) -> None:
        """The router, or the bus, was away: have it know everything again, and hear what was said meanwhile."""
        if self.registered or self._hearing.begun:
            self._negotiating.begin(self._come_back())

    async def close(self) -> None:
        await self._negotiating.end()
        await self._hearing.close()

    async def _come_back(self) -> None:
        for name, each in tuple(self.registered.items()):
            async with self._negotiating.turn(name):
                if self.registered.get(name) is not each:
                    continue
                try:
                    await self._register_again(each)
                except SituError as error:
                    _log.error("%s: `%s` could not be registered again: %s", self.client, name, error)
        if self._hearing.begun:
            await self._catch_up()

    @abstractmethod
    async def _register_again(self, registered: R) -> None:
        """As it was, with its version."""

    # ── changing ──

    async def _change(self, known: R | None, message: ChangeExpectation | ChangeProfile) -> Mapping[str, Any]:
        """Whether a change was made that nobody answered is not known. Its version, and the next, are not used again:
        so another change is not taken for it, and what is registered again counts."""
        try:
            return await self._negotiating.ask(message)
        except (SituError, CancelledError) as error:
            if known is not None and message.version is not None and not _was_answered(error):
                known.version = max(known.version, message.version + 1)
            raise

    # ── hearing ──

    def _call_back(self, callback: Callable[[F], Awaitable[object] | object]) -> FeedbackListener[F]:
        hearer = self._hearing.add(callback)
        self._negotiating.begin(self._begin_hearing())
        return hearer

    async def _begin_hearing(self) -> None:
        """What was said before anybody listened is asked for."""
        if await self._hearing.begin():
            await self._catch_up()

    @abstractmethod
    async def _catch_up(self) -> None:
        """Hear what was said while nobody listened."""


def _was_answered(error: SituError | CancelledError) -> bool:
    return isinstance(error, SituError) and not error.code.startswith("B") and error.code != ZONE_UNREACHABLE.code
