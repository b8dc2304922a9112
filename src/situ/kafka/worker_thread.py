"""A thread for calls that block, from a loop that must not: the client library of Kafka waits as long as it likes.

A call that does not come back in time is given up, and its thread with it: it ends when the library lets it, or with
the process. What it may still do is for others to make harmless.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any


class WorkerThread:
    """Calls one after the other. Not used any more once a call was given up."""

    def __init__(self, name: str) -> None:
        self._calls: queue.SimpleQueue[tuple[asyncio.Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    async def call(self, work: Callable[..., Any], *given: Any, within: float = 120.0) -> Any:
        """What the call gives or raises; TimeoutError if it takes longer than this."""
        future: asyncio.Future[Any] = self._loop.create_future()
        self._calls.put((future, lambda: work(*given)))
        async with asyncio.timeout(within):
            return await future

    def close(self) -> None:
        """After the calls that were made."""
        self._calls.put(None)

    def _run(self) -> None:
        while (called := self._calls.get()) is not None:
            future, work = called
            try:
                result, error = work(), None
            except BaseException as raised:  # noqa: BLE001 - it is raised where the call was made
                result, error = None, raised
            try:
                self._loop.call_soon_threadsafe(_settle, future, result, error)
            except RuntimeError:
                return  # the loop is closed


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)
