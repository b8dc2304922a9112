"""A publisher that follows advice by itself: accepts it, adapts, and says what it operates at from then on."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from situ.edge.capabilities import CapabilityHandler, Profile
from situ.edge.ending import end
from situ.errors import SituError
from situ.quality.feedback import Advice

_log = logging.getLogger("situ.client")

Adapt = Callable[[Advice], Awaitable[None] | None]


class ReactionManager:
    """Has ``adapt`` follow every advice; plain callables run in a thread of their own.

    One that takes longer than ``timeout`` seconds, or fails, is tried ``retries`` times more; then the advice has
    failed, and the values of now are the best there is.
    """

    def __init__(self, handler: CapabilityHandler, adapt: Adapt, *, timeout: float = 5.0, retries: int = 1) -> None:
        self.adapted = 0
        self.failed = 0
        self._handler = handler
        self._adapt = adapt
        self._timeout = timeout
        self._retries = retries
        self._turns: dict[str, asyncio.Lock] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._hearer = handler.on_advice(self._react)

    async def close(self) -> None:
        """Follow nothing any more."""
        await self._hearer.close()
        await end(self._tasks)

    async def _react(self, advice: Advice) -> None:
        if advice.kind == "withdraw":
            return
        if advice.kind == "raise":
            await self._handler.answer(advice, "accepted")
        # The next advice is heard meanwhile; those about one profile are followed one after the other.
        task = asyncio.get_running_loop().create_task(self._follow(advice))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _follow(self, advice: Advice) -> None:
        async with self._turns.setdefault(advice.profile, asyncio.Lock()):
            done = await self._try(advice)
            try:
                if done:
                    self.adapted += 1
                    await self._tell(advice)
                else:
                    self.failed += 1
                    await self._handler.answer(advice, "failed", self._values_now(advice))
            except SituError as error:
                _log.error("%s: what became of advice %s could not be told: %s", advice.profile, advice.id, error)

    async def _try(self, advice: Advice) -> bool:
        for _ in range(1 + self._retries):
            try:
                async with asyncio.timeout(self._timeout):
                    if inspect.iscoroutinefunction(self._adapt):
                        await self._adapt(advice)
                    elif inspect.isawaitable(result := await asyncio.to_thread(self._adapt, advice)):
                        await result
                return True
            except TimeoutError:
                _log.error("%s takes longer than %g s to adapt", advice.profile, self._timeout)
            except Exception as error:  # noqa: BLE001 - the application's own
                _log.error("%s could not adapt", advice.profile, exc_info=error)
        return False

    async def _tell(self, advice: Advice) -> None:
        """What is so makes the advice effective."""
        capabilities: dict[str, Any] = {name: {"cv": value} for name, value in advice.values.items()}
        await self._handler.update(advice.profile, capabilities=capabilities, mode=advice.mode or None)

    def _values_now(self, advice: Advice) -> dict[str, float | str]:
        profile = self._profile(advice)
        if profile is None:
            return {}
        found = {name: profile.value(name) for name in advice.values}
        return {name: value for name, value in found.items() if value is not None}

    def _profile(self, advice: Advice) -> Profile | None:
        return self._handler.registered.get(advice.profile.removeprefix(f"{self._handler.client}/"))
