"""Handing over among scopes: what waits for a durable subscription is decided again when its reader is to get it.

An event leaves the bus for a client only if it is visible in the epoch it was stamped in and in the one in force then.
Engines keep to that when they route. What they put into a queue says by which version and epoch that was decided, and
each event in it has its stamp. If that is the epoch in force here, the stamps are taken off and that is all. If it is
an older one, or the subscription has other tags by now, each event is decided by its stamp. If it is of a newer version
than this router has, it is held until the router has it: it never guesses. Keys and positions are sealed on the way.

Nothing is kept and nothing is rewritten, so there is nothing that could be lost half way: whatever ends the router or
the reader, what is not acknowledged is still in the queue, and is decided when it is handed over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace

from situ.bus.interface import Bus
from situ.bus.names import Names, subscription_of
from situ.deployment import Deployment
from situ.deployment.plan import Plan, compile_plan
from situ.edge.epochs import learn_epochs
from situ.edge.finding import LogFinder
from situ.event.lines import dead_client, decode_line, handed_line, stored_lines
from situ.event.message import DECIDED, STAMP, Stored, join_lines, split_lines
from situ.event.row import Row
from situ.event.seal import seal_of
from situ.subscription.model import ROOT, Subscription
from situ.subscription.targets import group_of
from situ.types.reserved import DEAD_LETTER

_LETTER = DEAD_LETTER.name
_MARK = 1 << 63
"""Added to a sequence, so that no key of an event is taken for one."""


class HandingOver:
    """The guard of one router; see :class:`situ.bus.interface.Guard`."""

    def __init__(self, bus: Bus) -> None:
        self.withheld = 0
        """Events that were in a queue and not handed over any more."""
        self._bus = bus
        self._names = Names(bus.zone)
        self._deployment = Deployment()
        self._plan: Plan | None = None
        self._log = LogFinder(bus)
        self._compiling = asyncio.Lock()
        self._changed = asyncio.Event()

    @property
    def active(self) -> bool:
        return is_guarded(self._deployment)

    def knows(self, consumer: str) -> bool:
        subscription = self._deployment.subscriptions.get(subscription_of(consumer))
        return subscription is not None and subscription.durable

    def adopt(self, deployment: Deployment) -> None:
        """From now on this is in force."""
        self._deployment = deployment
        self._changed.set()
        self._changed = asyncio.Event()

    def mark(self, seq: int, number: int) -> str:
        return seal_of(self._deployment.numbers.seal).token(_MARK + seq, number)

    def marked(self, mark: str) -> tuple[int, int] | None:
        seq, number = seal_of(self._deployment.numbers.seal).opened(mark) or (0, 0)
        return (seq - _MARK, number) if seq > _MARK and number else None

    async def decide(self, consumer: str, message: Stored) -> bytes | None:
        version, epoch = _decided(message.headers)
        while True:
            deployment, changed = self._deployment, self._changed
            if version > deployment.version:
                await changed.wait()
                continue
            subscription = deployment.subscriptions.get(subscription_of(consumer))
            if subscription is None or not subscription.durable:
                return None
            own = self._names.group_of(message.subject) == group_of(deployment.as_routed(subscription))
            if own and epoch == deployment.epoch:
                return _sealed(_handed(message), subscription, deployment)
            body = await self._again(message, subscription, deployment, own=own)
            if deployment.epoch == self._deployment.epoch and self._deployment.subscriptions.get(subscription.id) == (
                subscription
            ):
                return body

    async def _again(self, message: Stored, subscription: Subscription, deployment: Deployment, *, own: bool) -> bytes:
        """What is left of a message by the scopes in force."""
        lines = stored_lines(message)
        rows = [decode_line(line) for line in lines]
        plan = await self._compiled(deployment)
        unknown: set[str] = set()
        if plan.seeing is not None:
            await learn_epochs(self._bus, plan, rows)
            asking = [row for row in rows if row.type != _LETTER and plan.seeing.asks_event(row)]
            in_root = own and subscription.context == ROOT and plan.interpretation.generation == 1
            if asking and not in_root:
                # Deliveries may be in other terms than filters are. What the log has no more, nothing is known of.
                found = await self._log.find(asking, message.at, plan.interpretation)
                unknown = {row.key for row in asking} - found.keys()
                rows = [found.get(row.key, row) for row in rows]
        kept = [
            line
            for row, line in zip(rows, lines, strict=True)
            if row.key not in unknown and _may_see(row, subscription, plan)
        ]
        self.withheld += len(lines) - len(kept)
        return _sealed(map(handed_line, kept) if DECIDED in message.headers else kept, subscription, deployment)

    async def _compiled(self, deployment: Deployment) -> Plan:
        """The plan of a deployment without what only routing and detection need."""
        async with self._compiling:
            plan = self._plan
            if plan is None or plan.version != deployment.version:
                bare = replace(deployment.numbered(), subscriptions={}, advertisements={}, policies={}, starts={})
                plan = self._plan = await asyncio.to_thread(compile_plan, bare, plan)
            return plan


def is_guarded(deployment: Deployment) -> bool:
    """Whether there are scopes, or were: what is in queues may have to be decided again."""
    return bool(deployment.scopes.dimensions or deployment.numbers)


def _decided(headers: Mapping[str, str]) -> tuple[int, int | None]:
    """Version and epoch; both 0 for what was put into a queue when there were no scopes.

    No epoch: it was put there as it was visible when it was stamped, whatever was in force when it was routed.
    """
    version, _, epoch = headers.get(DECIDED, "0 0").partition(" ")
    return int(version), None if epoch == "-" else int(epoch)


def _handed(message: Stored) -> Iterable[bytes]:
    lines = split_lines(message.body)
    return lines if DECIDED not in message.headers or STAMP in message.headers else map(handed_line, lines)


def _sealed(lines: Iterable[bytes], subscription: Subscription, deployment: Deployment) -> bytes:
    return join_lines(seal_of(deployment.numbers.seal).handed(lines, subscription.client))


def _may_see(row: Row, subscription: Subscription, plan: Plan) -> bool:
    if plan.seeing is None or (row.type == _LETTER and row.client == dead_client(subscription.client)):
        return True
    return plan.seeing.sees(plan.seeing.look(row), subscription.scopes)
