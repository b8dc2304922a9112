"""The client library without ``await``: the same names, for programs that run no event loop.

The node lives on a loop of its own in a thread of its own. Callbacks run one after the other on a worker thread: one
that takes long holds up the others, and nothing else of the node.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, contextmanager
from datetime import datetime, timedelta
from typing import Any, TypeVar

from situ.bus.interface import Bus
from situ.edge.connecting import connect
from situ.edge.declared import Advertisement, Callback, Listener, Registration
from situ.edge.event import Event
from situ.edge.node import Node
from situ.edge.sending import Receipt
from situ.edge.speaking import DefinedContext
from situ.edge.status import Status
from situ.overlay.messages import Description

T = TypeVar("T")


class Loop:
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


class BlockingReceipt:
    """An event that is in the queue; :meth:`stored` waits until it is stored."""

    def __init__(self, loop: Loop, receipt: Receipt) -> None:
        self._loop = loop
        self._receipt = receipt
        self.key, self.id, self.duplicate = receipt.key, receipt.id, receipt.duplicate

    def stored(self, timeout: float | None = None) -> str:
        """Return the key when the event is stored, or raise why it is not."""

        async def wait() -> str:
            async with asyncio.timeout(timeout):
                return await self._receipt.stored

        return self._loop.call(wait())


class BlockingNode:
    """A connected client; see :class:`situ.edge.node.Node` for what the calls do."""

    def __init__(self, loop: Loop, node: Node) -> None:
        self._loop = loop
        self._node = node
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"situ {node.client} callbacks")

    @property
    def client(self) -> str:
        return self._node.client

    def advertise(
        self,
        type: str,
        *,
        name: str | None = None,
        where: str | None = None,
        scopes: Mapping[str, str] | None = None,
    ) -> Advertisement:
        return self._loop.call(self._node.advertise(type, name=name, where=where, scopes=scopes))

    def unadvertise(self, ad: Advertisement | str) -> None:
        self._loop.call(self._node.unadvertise(ad))

    def publish_event(
        self,
        type: str,
        data: Mapping[str, Any] | None = None,
        *,
        ad: Advertisement | str | None = None,
        id: str | None = None,
        time: datetime | str | None = None,
        source: str | None = None,
        confidence: float | None = None,
        **fields: Any,
    ) -> BlockingReceipt:
        work = self._node.publish_event(
            type, data, ad=ad, id=id, time=time, source=source, confidence=confidence, **fields
        )
        return BlockingReceipt(self._loop, self._loop.call(work))

    def events(
        self,
        *types: str,
        where: str | None = None,
        scopes: Mapping[str, str] | None = None,
        durable: str | None = None,
        since: str | datetime | timedelta | None = None,
        limit: int | None = None,
    ) -> Iterator[Event]:
        stream = self._node.events(*types, where=where, scopes=scopes, durable=durable, since=since, limit=limit)
        return self._iterate(stream)

    def _iterate(self, stream: Any) -> Iterator[Event]:
        async def step() -> Event | None:
            try:
                event: Event = await anext(stream)
            except StopAsyncIteration:
                return None
            return event

        try:
            while (event := self._loop.call(step())) is not None:
                yield event
        finally:
            if not self._loop.closed:
                self._loop.call(stream.aclose())

    def register_for_events(
        self,
        *types: str,
        where: str | None = None,
        scopes: Mapping[str, str] | None = None,
        durable: str | None = None,
        since: str | datetime | timedelta | None = None,
        context: str | None = None,
        wait: bool = True,
    ) -> Registration:
        work = self._node.register_for_events(
            *types, where=where, scopes=scopes, durable=durable, since=since, context=context, wait=wait
        )
        return self._loop.call(work)

    def unregister_for_events(self, *what: str | Registration) -> None:
        self._loop.call(self._node.unregister_for_events(*what))

    def unregister_all_events(self) -> None:
        self._loop.call(self._node.unregister_all_events())

    def add_listener(
        self, what: str | Registration, callback: Callable[[Event], object], *, durable: str | None = None
    ) -> Listener:
        return self._loop.call(self._node.add_listener(what, self._on_worker(callback), durable=durable))

    def listener(
        self, what: str | Registration, *, durable: str | None = None
    ) -> Callable[[Callable[[Event], object]], Callable[[Event], object]]:
        """:meth:`add_listener` as a decorator."""

        def listen(callback: Callable[[Event], object]) -> Callable[[Event], object]:
            self.add_listener(what, callback, durable=durable)
            return callback

        return listen

    def remove_listener(self, listener: Listener) -> None:
        self._loop.call(self._node.remove_listener(listener))

    def use_context(self, id: str) -> None:
        self._loop.call(self._node.use_context(id))

    def define_context(self, id: str, definition: object) -> DefinedContext:
        return self._loop.call(self._node.define_context(id, definition))

    def status(self) -> Status:
        return self._loop.call(self._node.status())

    def describe(self, *types: str) -> Mapping[str, Description]:
        return self._loop.call(self._node.describe(*types))

    def flush(self, timeout: float | None = None) -> bool:
        return self._loop.call(self._node.flush(timeout))

    def close_worker(self) -> None:
        self._worker.shutdown(cancel_futures=True)

    def _on_worker(self, callback: Callable[[Event], object]) -> Callback:
        async def call(event: Event) -> object:
            return await asyncio.wrap_future(self._worker.submit(callback, event))

        return call


@contextmanager
def connect_blocking(
    project: str | os.PathLike[str] = ".",
    *,
    client: str,
    servers: Sequence[str] = (),
    credentials: str | None = None,
    context: str | None = None,
    bus: Bus | None = None,
    timeout: float = 10.0,
    queue_timeout: float = 30.0,
    queue_events: int = 100_000,
) -> Iterator[BlockingNode]:
    """:func:`situ.connect` without ``await``."""
    loop = Loop(f"situ {client}")
    try:
        connecting: AbstractAsyncContextManager[Node] = connect(
            project,
            client=client,
            servers=servers,
            credentials=credentials,
            context=context,
            bus=bus,
            timeout=timeout,
            queue_timeout=queue_timeout,
            queue_events=queue_events,
        )
        node = loop.call(_enter(connecting))
        blocking = BlockingNode(loop, node)
        try:
            yield blocking
        finally:
            loop.call(_leave(connecting))
            blocking.close_worker()
    finally:
        loop.close()


async def _enter(connecting: AbstractAsyncContextManager[Node]) -> Node:
    return await connecting.__aenter__()


async def _leave(connecting: AbstractAsyncContextManager[Node]) -> None:
    await connecting.__aexit__(None, None, None)
