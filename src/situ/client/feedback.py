"""Feedback about quality as a client hears it: each message once, in order, by whoever wants it.

The bus promises at least once, and the router says things again when it cannot know that they were heard; a message
whose number is not higher than that of the last one with its id is a repeat. Callbacks have a queue each: one that
takes long holds up nobody else.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Generic, TypeVar

from situ.bus.interface import Bus, Serving
from situ.bus.names import Names
from situ.edge.ending import end
from situ.event.message import Message
from situ.quality.feedback import Advice, Feedback, feedback_from_json

_log = logging.getLogger("situ.client")
_MOST_REMEMBERED = 10_000

F = TypeVar("F", bound=Feedback)


class Hearer(Generic[F]):
    """A callback at work; ``close`` ends it."""

    def __init__(
        self, callback: Callable[[F], Awaitable[object] | object], forget: Callable[[Hearer[F]], None]
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


class Hearing(Generic[F]):
    """What one client is told of its subscriptions (``sub``) or publications (``pub``)."""

    def __init__(self, bus: Bus, client: str, kind: str) -> None:
        self._bus = bus
        self._subject = Names(bus.zone).feedback(kind, client)
        self._hearers: list[Hearer[F]] = []
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

    def add(self, callback: Callable[[F], Awaitable[object] | object]) -> Hearer[F]:
        hearer: Hearer[F] = Hearer(callback, self._drop)
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

    def _drop(self, hearer: Hearer[F]) -> None:
        if hearer in self._hearers:
            self._hearers.remove(hearer)

    async def _heard(self, message: Message) -> None:
        try:
            told = feedback_from_json(json.loads(message.body))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            _log.warning("feedback on %s cannot be read: %s", message.subject, error)
            return
        self.tell(told)  # type: ignore[arg-type]  # each subject has kinds of its own


async def _taken(queue: asyncio.Queue[F], hearer: Hearer[F]) -> AsyncGenerator[F, None]:
    try:
        while True:
            yield await queue.get()
    finally:
        await hearer.close()
