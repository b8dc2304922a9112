"""The client library without ``await``: the same names, for programs that run no event loop.

The node lives on a loop of its own in a thread of its own. Callbacks run one after the other on a worker thread: one
that takes long holds up the others, and nothing else of the node.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from situ.bus.interface import Bus
from situ.edge.blocking_quality import BlockingCapabilities, BlockingExpectations
from situ.edge.connecting import connect
from situ.edge.declared import Listener, Registration
from situ.edge.event import Event
from situ.edge.node import Node
from situ.edge.sending import Receipt
from situ.edge.waiting import Loop, iterate

T = TypeVar("T")
P = ParamSpec("P")


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


def _waiting(work: Callable[Concatenate[Node, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[BlockingNode, P], T]:
    """The same call of a node, waited for."""

    @wraps(work)
    def call(self: BlockingNode, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._loop.call(work(self._node, *args, **kwargs))

    return call


def _receipted(
    publish: Callable[Concatenate[Node, P], Coroutine[Any, Any, Receipt]],
) -> Callable[Concatenate[BlockingNode, P], BlockingReceipt]:
    @wraps(publish)
    def call(self: BlockingNode, /, *args: P.args, **kwargs: P.kwargs) -> BlockingReceipt:
        return BlockingReceipt(self._loop, self._loop.call(publish(self._node, *args, **kwargs)))

    return call


def _iterated(
    stream: Callable[Concatenate[Node, P], AsyncGenerator[Event, None]],
) -> Callable[Concatenate[BlockingNode, P], Iterator[Event]]:
    @wraps(stream)
    def call(self: BlockingNode, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[Event]:
        return iterate(self._loop, stream(self._node, *args, **kwargs))

    return call


class BlockingNode:
    """A connected client, with the calls of :class:`situ.edge.node.Node`."""

    def __init__(self, loop: Loop, node: Node) -> None:
        self._loop = loop
        self._node = node
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"situ {node.client} callbacks")
        self.expectations = BlockingExpectations(loop, node.expectations, self._on_worker)
        self.capabilities = BlockingCapabilities(loop, node.capabilities, self._on_worker)

    @property
    def client(self) -> str:
        return self._node.client

    advertise = _waiting(Node.advertise)
    unadvertise = _waiting(Node.unadvertise)
    publish_event = _receipted(Node.publish_event)
    flush = _waiting(Node.flush)
    events = _iterated(Node.events)
    register_for_events = _waiting(Node.register_for_events)
    unregister_for_events = _waiting(Node.unregister_for_events)
    unregister_all_events = _waiting(Node.unregister_all_events)
    remove_listener = _waiting(Node.remove_listener)
    use_context = _waiting(Node.use_context)
    define_context = _waiting(Node.define_context)
    join_scope = _waiting(Node.join_scope)
    leave_scope = _waiting(Node.leave_scope)
    change_scopes = _waiting(Node.change_scopes)
    status = _waiting(Node.status)
    describe = _waiting(Node.describe)
    explain_visibility = _waiting(Node.explain_visibility)

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

    def close_worker(self) -> None:
        self._worker.shutdown(cancel_futures=True)

    def _on_worker(self, callback: Callable[[Any], Any]) -> Callable[[Any], Coroutine[Any, Any, Any]]:
        async def call(given: Any) -> Any:
            return await asyncio.wrap_future(self._worker.submit(callback, given))

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
