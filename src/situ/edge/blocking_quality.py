"""What a node says and hears about quality, without ``await``."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator
from typing import Any

from situ.edge.capabilities import Answer, CapabilityHandler
from situ.edge.expectations import ExpectationHandler
from situ.edge.hearing import Hearer
from situ.edge.quality_files import ExpectationDraft, ProfileDraft
from situ.edge.reaction import ReactionManager
from situ.edge.waiting import Loop, called, iterate
from situ.quality.feedback import Advice, StateChange, Usage

OnWorker = Callable[[Callable[[Any], Any]], Callable[[Any], Coroutine[Any, Any, Any]]]
"""Makes of a plain callback one that runs on the worker thread, and is awaited."""


class BlockingHearer:
    """A callback at work; ``close`` ends it."""

    def __init__(self, loop: Loop, hearer: Hearer[Any]) -> None:
        self._loop = loop
        self._hearer = hearer

    def close(self) -> None:
        self._loop.call(self._hearer.close())


class BlockingExpectations:
    """The calls of :class:`situ.edge.expectations.ExpectationHandler`."""

    def __init__(self, loop: Loop, handler: ExpectationHandler, on_worker: OnWorker) -> None:
        self._loop = loop
        self._handler = handler
        self._on_worker = on_worker

    register = called(ExpectationHandler.register)
    update = called(ExpectationHandler.update)
    suspend = called(ExpectationHandler.suspend)
    resume = called(ExpectationHandler.resume)
    revoke = called(ExpectationHandler.revoke)
    state = called(ExpectationHandler.state)
    states = called(ExpectationHandler.states)
    explain = called(ExpectationHandler.explain)
    register_draft = called(ExpectationHandler.register_draft)

    def changes(self) -> Iterator[StateChange]:
        async def begin() -> AsyncGenerator[StateChange, None]:
            return self._handler.changes()

        return iterate(self._loop, self._loop.call(begin()))

    def on_change(self, callback: Callable[[StateChange], object]) -> BlockingHearer:
        async def add() -> Hearer[StateChange]:
            return self._handler.on_change(self._on_worker(callback))

        return BlockingHearer(self._loop, self._loop.call(add()))

    def store(self, path: str | os.PathLike[str], ids: Iterable[str] | None = None) -> None:
        self._handler.store(path, ids)

    def load(self, path: str | os.PathLike[str]) -> list[ExpectationDraft]:
        return self._handler.load(path)


class BlockingCapabilities:
    """The calls of :class:`situ.edge.capabilities.CapabilityHandler`."""

    def __init__(self, loop: Loop, handler: CapabilityHandler, on_worker: OnWorker) -> None:
        self._loop = loop
        self._handler = handler
        self._on_worker = on_worker

    register = called(CapabilityHandler.register)
    update = called(CapabilityHandler.update)
    revoke = called(CapabilityHandler.revoke)
    usage = called(CapabilityHandler.usage)
    answer = called(CapabilityHandler.answer)
    register_draft = called(CapabilityHandler.register_draft)

    def on_advice(self, callback: Callable[[Advice], Answer]) -> BlockingHearer:
        async def add() -> Hearer[Any]:
            return self._handler.on_advice(self._on_worker(callback))

        return BlockingHearer(self._loop, self._loop.call(add()))

    def on_usage(self, callback: Callable[[Usage], object]) -> BlockingHearer:
        async def add() -> Hearer[Any]:
            return self._handler.on_usage(self._on_worker(callback))

        return BlockingHearer(self._loop, self._loop.call(add()))

    def react(self, adapt: Callable[[Advice], None], *, timeout: float = 5.0, retries: int = 1) -> BlockingReaction:
        """Have ``adapt`` follow every advice, see :class:`situ.edge.reaction.ReactionManager`."""

        async def make() -> ReactionManager:
            return ReactionManager(self._handler, adapt, timeout=timeout, retries=retries)

        return BlockingReaction(self._loop, self._loop.call(make()))

    def store(self, path: str | os.PathLike[str]) -> None:
        self._handler.store(path)

    def load(self, path: str | os.PathLike[str]) -> list[ProfileDraft]:
        return self._handler.load(path)


class BlockingReaction:
    """A publisher that follows advice by itself; ``close`` ends it."""

    def __init__(self, loop: Loop, reaction: ReactionManager) -> None:
        self._loop = loop
        self._reaction = reaction

    def close(self) -> None:
        self._loop.call(self._reaction.close())
