"""What the two sides of quality have in common at a client: calls one at a time, and work that goes on by itself."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from typing import Any
from weakref import WeakValueDictionary

from situ.edge.ending import end
from situ.edge.session import Session
from situ.overlay.quality_messages import Negotiated, QualityAck

_log = logging.getLogger("situ.client")


class Negotiating:
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
