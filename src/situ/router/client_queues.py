"""What clients have said and a router has not looked at yet: a bounded queue for each, served in turn.

Nobody waits for another: however much one client sends, the next message of any other comes within one round (deficit
round robin: in each round a client may have so many bytes served, and saves up for a message that is larger). What does
not fit into a client's queue is refused at once, and whoever sent it is told so; so one client costs a router no more
memory than its queue, whatever it does.

A client that has much under way, that is stored or looked up for it, is not served until some of it is done. It fills
its own queue meanwhile, and nobody else's.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

_T = TypeVar("_T")
_COST = 1024
"""Bytes that a message counts for beside its own: each takes some work, however short it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLimits:
    """How much is held of what clients send; sizes in bytes."""

    messages: int = 256
    """Of one client."""
    size: int = 16 * 1024 * 1024
    """Of one client; a single message may be larger."""
    all: int = 128 * 1024 * 1024
    """Of all clients together: above it only those are taken in that have less than their share."""
    round: int = 64 * 1024
    under_way: int = 128
    """Things of one client that are being done."""
    under_way_size: int = 16 * 1024 * 1024


@dataclass(slots=True)
class _Queue(Generic[_T]):
    waiting: deque[tuple[_T, int]] = field(default_factory=deque)
    size: int = 0
    saved: int = 0


class ClientQueues(Generic[_T]):
    """The queues of one router."""

    def __init__(self, limits: QueueLimits | None = None) -> None:
        self._limits = limits or QueueLimits()
        self._queues: OrderedDict[str, _Queue[_T]] = OrderedDict()
        """Of clients of which something waits; the first is served next."""
        self._size = 0
        self._under_way: dict[str, dict[Hashable, int]] = {}
        self._alone: set[str] = set()
        """Clients of which something is done that nothing else may overtake."""

    def __len__(self) -> int:
        return sum(len(each.waiting) for each in self._queues.values())

    @property
    def size(self) -> int:
        """Bytes that wait."""
        return self._size

    # ── what waits ──

    def put(self, client: str, message: _T, size: int) -> bool:
        """Take a message in; False if there is no room for it."""
        limits, cost = self._limits, size + _COST
        queue = self._queues.get(client)
        if queue is None:
            queue = _Queue()
        elif len(queue.waiting) >= limits.messages or queue.size + cost > limits.size:
            return False
        if self._size + cost > limits.all and queue.size + cost > limits.all // (len(self._queues) + 1):
            return False
        self._queues.setdefault(client, queue)
        queue.waiting.append((message, cost))
        queue.size += cost
        self._size += cost
        return True

    def next(self) -> tuple[str, _T] | None:
        """The message that is to be looked at next, and whose it is; None if nobody can be served now."""
        queues, passed = self._queues, 0
        while passed < len(queues):
            client, queue = next(iter(queues.items()))
            message, cost = queue.waiting[0]
            if self._is_busy(client):
                passed += 1
            elif cost <= queue.saved:
                return client, self._take(client, queue, message, cost)
            else:
                queue.saved += self._limits.round
                passed = 0
            queues.move_to_end(client)
        return None

    def _take(self, client: str, queue: _Queue[_T], message: _T, cost: int) -> _T:
        queue.waiting.popleft()
        queue.size -= cost
        queue.saved -= cost
        self._size -= cost
        if not queue.waiting:  # who has nothing to say saves nothing up
            del self._queues[client]
        return message

    # ── what is under way ──

    def begin(self, client: str, what: Hashable, size: int = 0, *, alone: bool = False) -> None:
        """Something is being done for a client; ``alone``: nothing else of it is looked at before that is done."""
        self._under_way.setdefault(client, {})[what] = size
        if alone:
            self._alone.add(client)

    def done(self, client: str, what: Hashable) -> None:
        """It is done. What nobody knows of was forgotten with its client."""
        own = self._under_way.get(client)
        if own is not None and own.pop(what, None) is not None and not own:
            del self._under_way[client]
        self._alone.discard(client)

    def forget(self, client: str) -> None:
        """Nothing is under way for a client any more that it could wait for."""
        self._under_way.pop(client, None)
        self._alone.discard(client)

    def _is_busy(self, client: str) -> bool:
        if client in self._alone:
            return True
        own = self._under_way.get(client)
        if own is None:
            return False
        return len(own) >= self._limits.under_way or sum(own.values()) >= self._limits.under_way_size
