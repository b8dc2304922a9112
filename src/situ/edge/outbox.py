"""What is written down and to be published: in order, by somebody who works beside, no more than a few at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Outbox(Generic[T]):
    """Holds no more than ``most``; while it is full, whoever has more waits."""

    def __init__(self, most: int) -> None:
        self._queue: asyncio.Queue[T] = asyncio.Queue(most)
        self._put = self._done = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    def empty(self) -> bool:
        """Whether nothing waits; the last one may be on its way."""
        return self._queue.empty()

    @property
    def is_settled(self) -> bool:
        """Whether all that was put here is published."""
        return self._done == self._put and self._queue.empty()

    async def put(self, message: T) -> None:
        await self._queue.put(message)
        self._put += 1

    async def publish_on(self, publish: Callable[[T], Awaitable[None]]) -> None:
        """Publish what is put here, until this is cancelled."""
        while True:
            await publish(await self._queue.get())
            self._done += 1
            while self._waiting and self._waiting[0][0] <= self._done:
                _, waiter = self._waiting.popleft()
                if not waiter.done():
                    waiter.set_result(None)

    async def settled(self) -> None:
        """Wait until all that was put here by now is published, whatever is put meanwhile."""
        if self._done < self._put:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((self._put, waiter))
            await waiter
