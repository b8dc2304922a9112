"""The client library without ``await``: the same names, for programs that run no event loop.

`BlockingExpectations` and `BlockingCapabilities` are the two sides of quality, `BlockingClient` is the client,
`connect_blocking` makes one. The client lives on an event loop in a thread of its own. Callbacks run one after the
other on a worker thread: one that takes long holds up the other callbacks, and nothing else of the client.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from situ.bus.event_loop import LoopThread, blocking_call, iterate
from situ.bus.interface import Bus
from situ.client.capabilities import Answer, CapabilityHandler, ReactionManager
from situ.client.client import Client
from situ.client.connection import connect
from situ.client.declarations import Listener, Registration
from situ.client.events import Event
from situ.client.expectations import ExpectationHandler
from situ.client.feedback import FeedbackListener
from situ.client.publish_queue import Receipt
from situ.client.quality_files import ExpectationDraft, ProfileDraft
from situ.quality.negotiation.feedback import Advice, StateChange, Usage

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Quality.

OnWorker = Callable[[Callable[[Any], Any]], Callable[[Any], Coroutine[Any, Any, Any]]]
"""Makes of a plain callback one that runs on the worker thread, and is awaited."""


class BlockingFeedbackListener:
    """A callback at work; ``close`` ends it."""

    def __init__(self, loop: LoopThread, hearer: FeedbackListener[Any]) -> None:
        self._loop = loop
        self._hearer = hearer

    def close(self) -> None:
        self._loop.call(self._hearer.close())


class BlockingExpectations:
    """The calls of `ExpectationHandler`."""

    def __init__(self, loop: LoopThread, handler: ExpectationHandler, on_worker: OnWorker) -> None:
        self._loop = loop
        self._handler = handler
        self._on_worker = on_worker

    register = blocking_call(ExpectationHandler.register)
    update = blocking_call(ExpectationHandler.update)
    suspend = blocking_call(ExpectationHandler.suspend)
    resume = blocking_call(ExpectationHandler.resume)
    revoke = blocking_call(ExpectationHandler.revoke)
    state = blocking_call(ExpectationHandler.state)
    states = blocking_call(ExpectationHandler.states)
    explain = blocking_call(ExpectationHandler.explain)
    register_draft = blocking_call(ExpectationHandler.register_draft)

    def changes(self) -> Iterator[StateChange]:
        async def begin() -> AsyncGenerator[StateChange, None]:
            return self._handler.changes()

        return iterate(self._loop, self._loop.call(begin()))

    def on_change(self, callback: Callable[[StateChange], object]) -> BlockingFeedbackListener:
        async def add() -> FeedbackListener[StateChange]:
            return self._handler.on_change(self._on_worker(callback))

        return BlockingFeedbackListener(self._loop, self._loop.call(add()))

    def store(self, path: str | os.PathLike[str], ids: Iterable[str] | None = None) -> None:
        self._handler.store(path, ids)

    def load(self, path: str | os.PathLike[str]) -> list[ExpectationDraft]:
        return self._handler.load(path)


class BlockingCapabilities:
    """The calls of `CapabilityHandler`."""

    def __init__(self, loop: LoopThread, handler: CapabilityHandler, on_worker: OnWorker) -> None:
        self._loop = loop
        self._handler = handler
        self._on_worker = on_worker

    register = blocking_call(CapabilityHandler.register)
    update = blocking_call(CapabilityHandler.update)
    revoke = blocking_call(CapabilityHandler.revoke)
    usage = blocking_call(CapabilityHandler.usage)
    answer = blocking_call(CapabilityHandler.answer)
    register_draft = blocking_call(CapabilityHandler.register_draft)

    def on_advice(self, callback: Callable[[Advice], Answer]) -> BlockingFeedbackListener:
        async def add() -> FeedbackListener[Any]:
            return self._handler.on_advice(self._on_worker(callback))

        return BlockingFeedbackListener(self._loop, self._loop.call(add()))

    def on_usage(self, callback: Callable[[Usage], object]) -> BlockingFeedbackListener:
        async def add() -> FeedbackListener[Any]:
            return self._handler.on_usage(self._on_worker(callback))

        return BlockingFeedbackListener(self._loop, self._loop.call(add()))

    def react(self, adapt: Callable[[Advice], None], *, timeout: float = 5.0, retries: int = 1) -> BlockingReaction:
        """Have ``adapt`` follow every advice, see :class:`situ.ReactionManager`."""

        async def make() -> ReactionManager:
            return ReactionManager(self._handler, adapt, timeout=timeout, retries=retries)

        return BlockingReaction(self._loop, self._loop.call(make()))

    def store(self, path: str | os.PathLike[str]) -> None:
        self._handler.store(path)

    def load(self, path: str | os.PathLike[str]) -> list[ProfileDraft]:
        return self._handler.load(path)


class BlockingReaction:
    """A publisher that follows advice by itself; ``close`` ends it."""

    def __init__(self, loop: LoopThread, reaction: ReactionManager) -> None:
        self._loop = loop
        self._reaction = reaction

    def close(self) -> None:
        self._loop.call(self._reaction.close())


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The client.

T = TypeVar("T")
P = ParamSpec("P")


class BlockingReceipt:
    """An event that is in the queue of a :class:`situ.BlockingClient`; :meth:`stored` waits until it is stored.

    >>> with situ.connect_blocking(client="scale") as client:
    ...     receipt = client.publish_event("TruckSeen", truck="LY-204", speed=12.0, id="weighing-7")
    ...     again = client.publish_event("TruckSeen", truck="LY-204", speed=12.0, id="weighing-7")
    >>> receipt.duplicate, again.duplicate
    (False, True)
    """

    def __init__(self, loop: LoopThread, receipt: Receipt) -> None:
        self._loop = loop
        self._receipt = receipt
        self.key, self.id, self.duplicate = receipt.key, receipt.id, receipt.duplicate

    def stored(self, timeout: float | None = None) -> str:
        """Return the key when the event is stored, or raise why it is not."""

        async def wait() -> str:
            async with asyncio.timeout(timeout):
                return await self._receipt.stored

        return self._loop.call(wait())


def _waiting(
    work: Callable[Concatenate[Client, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[BlockingClient, P], T]:
    """The same call of a client, waited for."""

    @wraps(work)
    def call(self: BlockingClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._loop.call(work(self._node, *args, **kwargs))

    return call


def _receipted(
    publish: Callable[Concatenate[Client, P], Coroutine[Any, Any, Receipt]],
) -> Callable[Concatenate[BlockingClient, P], BlockingReceipt]:
    @wraps(publish)
    def call(self: BlockingClient, /, *args: P.args, **kwargs: P.kwargs) -> BlockingReceipt:
        return BlockingReceipt(self._loop, self._loop.call(publish(self._node, *args, **kwargs)))

    return call


def _iterated(
    stream: Callable[Concatenate[Client, P], AsyncGenerator[Event, None]],
) -> Callable[Concatenate[BlockingClient, P], Iterator[Event]]:
    @wraps(stream)
    def call(self: BlockingClient, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[Event]:
        return iterate(self._loop, stream(self._node, *args, **kwargs))

    return call


class BlockingClient:
    """A connected client, with the calls of :class:`situ.Client`; :func:`situ.connect_blocking` makes one.

    >>> with situ.connect_blocking(client="scale") as scale, situ.connect_blocking(client="kiosk") as kiosk:
    ...     receipt = scale.publish_event("TruckSeen", truck="LY-209", speed=9.0)
    ...     for event in kiosk.events("TruckSeen", where="truck = 'LY-209'", since="begin", limit=1):
    ...         print(event.data.speed)
    9.0
    """

    def __init__(self, loop: LoopThread, node: Client) -> None:
        self._loop = loop
        self._node = node
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"situ {node.client} callbacks")
        self.expectations = BlockingExpectations(loop, node.expectations, self._on_worker)
        self.capabilities = BlockingCapabilities(loop, node.capabilities, self._on_worker)

    @property
    def client(self) -> str:
        return self._node.client

    advertise = _waiting(Client.advertise)
    unadvertise = _waiting(Client.unadvertise)
    publish_event = _receipted(Client.publish_event)
    flush = _waiting(Client.flush)
    events = _iterated(Client.events)
    register_for_events = _waiting(Client.register_for_events)
    unregister_for_events = _waiting(Client.unregister_for_events)
    unregister_all_events = _waiting(Client.unregister_all_events)
    remove_listener = _waiting(Client.remove_listener)
    use_context = _waiting(Client.use_context)
    define_context = _waiting(Client.define_context)
    join_scope = _waiting(Client.join_scope)
    leave_scope = _waiting(Client.leave_scope)
    change_scopes = _waiting(Client.change_scopes)
    status = _waiting(Client.status)
    describe = _waiting(Client.describe)
    explain_visibility = _waiting(Client.explain_visibility)

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
) -> Iterator[BlockingClient]:
    """:func:`situ.connect` without ``await``, for programs that run no event loop.

    >>> with situ.connect_blocking(client="scale") as client:
    ...     key = client.publish_event("TruckSeen", truck="LY-204", speed=12.0).stored()
    """
    loop = LoopThread(f"situ {client}")
    try:
        connecting: AbstractAsyncContextManager[Client] = connect(
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
        with blocking_client(loop, connecting) as blocking:
            yield blocking
    finally:
        loop.close()


@contextmanager
def blocking_client(loop: LoopThread, connecting: AbstractAsyncContextManager[Client]) -> Iterator[BlockingClient]:
    """A client on a loop that runs already."""
    blocking = BlockingClient(loop, loop.call(_enter(connecting)))
    try:
        yield blocking
    finally:
        loop.call(_leave(connecting))
        blocking.close_worker()


async def _enter(connecting: AbstractAsyncContextManager[Client]) -> Client:
    return await connecting.__aenter__()


async def _leave(connecting: AbstractAsyncContextManager[Client]) -> None:
    await connecting.__aexit__(None, None, None)
