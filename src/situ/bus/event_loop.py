"""Cancellation of tasks that is certain to end them, and an event loop in a thread for programs that run none.

`end` cancels tasks. `LoopThread` runs coroutines for callers that block; `blocking_call` and `iterate` wrap calls and
streams for them.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

# A task that is cancelled in the very moment in which what it waits for happens may go on as if nothing had been said:
# until Python 3.12 `asyncio.wait_for`, by which the client of the bus waits for answers, forgets it. So the
# cancellation is repeated until the task is done.
_SAY_AGAIN = 0.1


async def end(tasks: Iterable[asyncio.Task[Any] | None], *, again: float = _SAY_AGAIN) -> None:
    """Cancel these tasks until they are done; what they raise is theirs.

    ``again`` is how many seconds they get to tidy up before they are cancelled again.
    """
    left = {task for task in tasks if task is not None and not task.done()}
    while left:
        for task in left:
            task.cancel()
        done, left = await asyncio.wait(left, timeout=again)
        for task in done:
            if not task.cancelled():
                task.exception()


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The loop of a thread: calls are made there and waited for here.

T = TypeVar("T")
H = TypeVar("H")
H_co = TypeVar("H_co", covariant=True)
P = ParamSpec("P")


class LoopThread:
    """An event loop in a thread."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name=name, daemon=True)
        self._thread.start()
        self.closed = False

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run on the loop and wait for the outcome; Ctrl-C while waiting cancels the work."""
        future: Future[T] = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        async def end() -> None:
            await self.loop.shutdown_asyncgens()

        self.call(end())
        self.closed = True
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


class Handled(Protocol[H_co]):
    """Something of a client that has calls of its own."""

    @property
    def _loop(self) -> LoopThread: ...

    @property
    def _handler(self) -> H_co: ...


def blocking_call(work: Callable[Concatenate[H, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[Handled[H], P], T]:
    """The same call of a handler, waited for."""

    @wraps(work)
    def call(self: Handled[H], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._loop.call(work(self._handler, *args, **kwargs))

    return call


def iterate(loop: LoopThread, stream: AsyncGenerator[T, None]) -> Iterator[T]:
    async def step() -> T | None:
        try:
            return await anext(stream)
        except StopAsyncIteration:
            return None

    try:
        while (event := loop.call(step())) is not None:
            yield event
    finally:
        if not loop.closed:
            loop.call(stream.aclose())
