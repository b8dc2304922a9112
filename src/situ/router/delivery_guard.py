"""Guarded delivery from durable queues: what waits for a subscription is decided again when its consumer gets it.

`LogFinder` finds delivered events in the root log, `DeliveryGuard` decides what a client may still see,
`DurableConsumers` keeps the consumers on the bus equal to the durable subscriptions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from situ.bus.interface import Bus
from situ.event.lines import dead_client, decode_line, handed_line, stored_lines
from situ.event.message import DECIDED, PLACES, STAMP, StoredMessage, join_lines, split_lines
from situ.event.row import Row
from situ.event.seal import seal_of
from situ.event.subjects import BusNames, consumer_of, subscription_of
from situ.lang.records import replace
from situ.lang.types.table import DEAD_LETTER
from situ.model import Deployment
from situ.registry.past_scopes import learn_epochs
from situ.routing.delivery_groups import group_of
from situ.routing.model import ROOT, Subscription
from situ.stages.interpret import Interpretation
from situ.stages.plan import Plan, compile_plan
from situ.stages.root_log import read_lines, upgrade_message

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Events in the root log, found by what is known of their deliveries: their keys, positions, and when they were made. On
# the edge a position is the place in the log. On Spark it is the place in what came in, so the log is read backwards
# from when the delivery was stored: every event is in the log before it is delivered. What was read is remembered for
# the deliveries that follow, which mostly are of the events that follow.

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SOME = 200
"""Messages of the log that are read at a time."""
_MOST_REMEMBERED = 50_000


class LogFinder:
    """Finds events of the root log of one zone."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._stream = BusNames(bus.zone).root_stream
        self._known: dict[str, Row] = {}
        self._generation = 0

    async def find(self, delivered: Sequence[Row], at: int, interpretation: Interpretation) -> dict[str, Row]:
        """By their keys, those of the events of a delivery stored at this time that the log still has, in the terms of
        root as it is now."""
        if interpretation.generation != self._generation or len(self._known) > _MOST_REMEMBERED:
            self._known.clear()
            self._generation = interpretation.generation
        wanted = {row.key for row in delivered}
        places = {row.pos // PLACES for row in delivered}  # 0: records of topics that Spark read have no place
        if (
            not wanted <= self._known.keys() and len(places) == 1 and places != {0}
        ):  # on the edge all are of one message
            (seq,) = places
            self._note([message async for message in self._bus.read(self._stream, seq, seq)], interpretation)
        if not wanted <= self._known.keys():
            await self._read_back(wanted, at, interpretation)
        return {key: self._known[key] for key in wanted & self._known.keys()}

    async def _read_back(self, wanted: set[str], at: int, interpretation: Interpretation) -> None:
        state = await self._bus.state(self._stream)
        last = min(await self._bus.find(self._stream, _EPOCH + timedelta(microseconds=at)), state.last)
        while last >= state.first and not wanted <= self._known.keys():
            first = max(last - _SOME + 1, state.first)
            messages = [message async for message in self._bus.read(self._stream, first, last)]
            self._note(messages, interpretation)
            last = first - 1

    def _note(self, messages: Iterable[StoredMessage], interpretation: Interpretation) -> None:
        for message in messages:
            rows, _ = read_lines(upgrade_message(message, interpretation))
            self._known |= {row.key: row for row in rows}


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The guard. An event leaves the bus for a client only if it is visible in the epoch it was stamped in and in the one in
# force then. Engines keep to that when they route. What they put into a queue says by which version and epoch that was
# decided, and each event in it has its stamp. If that is the epoch in force here, the stamps are taken off and that is
# all. If it is an older one, or the subscription has other tags by now, each event is decided by its stamp. If it is of
# a newer version than this router has, it is held until the router has it: it never guesses. Keys and positions are
# sealed on the way.
#
# Nothing is kept and nothing is rewritten, so there is nothing that could be lost half way: whatever ends the router or
# the consumer, what is not acknowledged is still in the queue, and is decided when it is handed over.

_LETTER = DEAD_LETTER.name
_MARK = 1 << 63
"""Added to a sequence, so that no key of an event is taken for one."""


class DeliveryGuard:
    """The guard of one router; see :class:`situ.bus.interface.Guard`."""

    def __init__(self, bus: Bus) -> None:
        self.withheld = 0
        """Events that were in a queue and not handed over any more."""
        self._bus = bus
        self._names = BusNames(bus.zone)
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

    async def decide(self, consumer: str, message: StoredMessage) -> bytes | None:
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
            # Other scopes or tags may have come into force meanwhile: then it is decided once more.
            if deployment.epoch == self._deployment.epoch and self._deployment.subscriptions.get(subscription.id) == (
                subscription
            ):
                return body

    async def _again(
        self, message: StoredMessage, subscription: Subscription, deployment: Deployment, *, own: bool
    ) -> bytes:
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


def _handed(message: StoredMessage) -> Iterable[bytes]:
    lines = split_lines(message.body)
    return lines if DECIDED not in message.headers or STAMP in message.headers else map(handed_line, lines)


def _sealed(lines: Iterable[bytes], subscription: Subscription, deployment: Deployment) -> bytes:
    return join_lines(seal_of(deployment.numbers.seal).handed(lines, subscription.client))


def _may_see(row: Row, subscription: Subscription, plan: Plan) -> bool:
    if plan.seeing is None or (row.type == _LETTER and row.client == dead_client(subscription.client)):
        return True
    return plan.seeing.sees(plan.seeing.look(row), subscription.scopes)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Durable consumers on the bus: one for each durable subscription, there before anybody relies on it. A subscription
# that changes keeps its consumer: it reads the old group to its end and the new one, and only the new one once nothing
# of the old is left.


class DurableConsumers:
    """Keeps the consumers of a zone equal to its durable subscriptions."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._groups: dict[str, tuple[str, ...]] = {}
        """Consumer → the groups it reads, the newest last."""
        self._guarded: set[str] = set()
        """Those whose messages are decided once more when they are handed over."""

    async def load(self) -> None:
        """What is there from before."""
        known = await self._bus.consumers()
        self._groups = {each.name: each.groups for each in known}
        self._guarded = {each.name for each in known if each.guarded}

    async def ensure(self, deployment: Deployment) -> None:
        """Every durable subscription has its consumer; among scopes it is guarded."""
        guarded = is_guarded(deployment)
        for subscription in deployment.routed.values():
            if not subscription.durable:
                continue
            name, group = consumer_of(subscription.id), group_of(subscription)
            have = self._groups.get(name, ())
            if not have or have[-1] != group or guarded != (name in self._guarded):
                wanted = (*(each for each in have if each != group), group)
                await self._ensure(name, wanted, guarded=guarded)

    async def _ensure(self, name: str, groups: tuple[str, ...], *, guarded: bool) -> None:
        await self._bus.ensure_consumer(name, groups, guarded=guarded)
        self._groups[name] = groups
        (self._guarded.add if guarded else self._guarded.discard)(name)

    async def _drop(self, name: str) -> None:
        await self._bus.drop_consumer(name)
        del self._groups[name]
        self._guarded.discard(name)

    async def drop(self, subscriptions: Iterable[str]) -> None:
        """These subscriptions are over, with all that waits for them."""
        for name in map(consumer_of, subscriptions):
            if name in self._groups:
                await self._drop(name)

    async def tidy(self, deployment: Deployment) -> None:
        """Once every engine works with the deployment: nobody writes any more to what only the one before had."""
        declared = deployment.subscriptions
        for name in [name for name in self._groups if subscription_of(name) not in declared]:
            await self._drop(name)
        for name in [name for name, groups in self._groups.items() if not _is_durable(declared, name)]:
            await self._drop(name)
        if any(len(groups) > 1 for groups in self._groups.values()):
            idle = {each.name for each in await self._bus.consumers() if not each.waiting and not each.unacknowledged}
            for name, groups in tuple(self._groups.items()):
                if len(groups) > 1 and name in idle and groups[-1] == _group(deployment, name):
                    await self._ensure(name, groups[-1:], guarded=name in self._guarded)


def _group(deployment: Deployment, name: str) -> str:
    """Where engines put what a consumer reads, under this deployment. Another may be about to be in force."""
    return group_of(deployment.as_routed(deployment.subscriptions[subscription_of(name)]))


def _is_durable(declared: Mapping[str, Subscription], name: str) -> bool:
    found = declared.get(subscription_of(name))
    return found is not None and found.durable
