"""Deliveries that wait for what is not remembered yet, and those that wait behind them.

What comes from one producer stays in its order for everybody in a context: while one event of it waits there, so do all
that follow it. Nobody else waits. Each attempt is a conversion like any other; when an event has waited long enough,
that fails, and it is a dead letter.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from situ.event.lines import bare_line, decode_line, stamped_line
from situ.event.row import Row
from situ.lang.records import replace
from situ.routing.routing_table import RoutedRows, RoutingTable
from situ.stages.conversion_state import ConversionMemory
from situ.stages.interpret_out import ConvertedDeliveries, context_of
from situ.stages.plan import Plan
from situ.stages.shape import ShapedDeliveries

Shape = Callable[[Sequence[Row], Sequence[bytes], RoutedRows], ShapedDeliveries]
_NOBODY: frozenset[str] = frozenset()
MOST = 10_000
"""Events that wait at a time; beyond that the one that has waited for longest is decided at once."""


@dataclass(slots=True)
class DeliveryTag:
    """A message, for whoever has to know when all of it is delivered."""

    waiting: int = 0


@dataclass(slots=True)
class _Waiting:
    row: Row
    line: bytes
    until: datetime | None
    tag: DeliveryTag
    shaped: frozenset[str] = frozenset()
    """Those of its addressees that have a shape and are to get it: they are not asked again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyDeliveries:
    """Deliveries that are to be made now, of the message that ``tag`` stands for."""

    rows: Sequence[Row]
    worded: ConvertedDeliveries
    tag: DeliveryTag


@dataclass(slots=True)
class PendingDeliveries:
    """What waits in one engine, for the conversions that ask ``memory``."""

    memory: ConversionMemory
    _queues: dict[tuple[str, str], deque[_Waiting]] = field(default_factory=dict)
    _tried: tuple[int, datetime | None] = (0, None)

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def word(
        self,
        rows: Sequence[Row],
        lines: Sequence[bytes],
        plan: Plan,
        tag: DeliveryTag | None = None,
        shape: Shape | None = None,
    ) -> Iterator[ReadyDeliveries]:
        """What is delivered now that these events have come: of them, and before that of those that have waited.

        A message counts as waiting until whoever delivers asks for what comes next. ``shape`` is what stage shape does
        to deliveries.
        """
        tag = tag or DeliveryTag()
        self.memory.note(rows)
        yield from self._released(plan)
        routed = plan.routing.route(rows, queued=True)
        if shape is not None:
            yield from self.say(shape(rows, lines, routed), plan, tag)
        else:
            yield from self.say(ShapedDeliveries(rows=rows, lines=lines, routed=routed), plan, tag)

    def say(self, shaped: ShapedDeliveries, plan: Plan, tag: DeliveryTag) -> Iterator[ReadyDeliveries]:
        """What is delivered now of these deliveries."""
        rows, lines, routed = shaped.rows, shaped.lines, shaped.routed
        special = _shaped(routed, plan)
        routed = self._in_turn(rows, lines, routed, plan.routing, tag, special)
        worded = plan.interpretation.worded(rows, lines, routed, plan.routing)
        worded = self._without_held(rows, lines, worded, plan.routing, tag, special)
        yield ReadyDeliveries(rows=rows, worded=worded, tag=tag)
        while len(self) > MOST:
            yield from self._forced(plan)

    def _in_turn(
        self,
        rows: Sequence[Row],
        lines: Sequence[bytes],
        routed: RoutedRows,
        routing: RoutingTable,
        tag: DeliveryTag,
        special: Mapping[int, frozenset[str]],
    ) -> RoutedRows:
        """Without deliveries for which others of the same producer wait: those get in line."""
        if not self._queues:
            return routed
        behind: dict[tuple[int, str], None] = {}
        kept = RoutedRows(bad=routed.bad)
        for index, group in routed.durable:
            context = routing.groups[group].context
            if (context, rows[index].client) in self._queues:
                behind[index, context] = None
            else:
                kept.durable.append((index, group))
        for index, client, names in routed.live:
            own = []
            for name in names.split(","):
                context = routing.subscriptions[f"{client}/{name}"].context
                if (context, rows[index].client) in self._queues:
                    behind[index, context] = None
                else:
                    own.append(name)
            if own:
                kept.live.append((index, client, ",".join(own)))
        for index, context in sorted(behind):
            self._wait(context, rows[index], lines[index], None, tag, special.get(index, _NOBODY))
        return kept

    def _without_held(
        self,
        rows: Sequence[Row],
        lines: Sequence[bytes],
        worded: ConvertedDeliveries,
        routing: RoutingTable,
        tag: DeliveryTag,
        special: Mapping[int, frozenset[str]],
    ) -> ConvertedDeliveries:
        """What was made, but for what has to wait and, in the same context, what comes after it."""
        if not worded.held:
            return worded
        until = {(index, context): time for index, context, time in worded.held}
        first: dict[str, int] = {}
        for index, context, _ in worded.held:
            first[context] = min(index, first.get(context, index))
        waiting = set(until)
        durable, live = [], []
        for each in worded.durable:
            context = routing.groups[each[1]].context
            if each[0] > first.get(context, len(rows)):
                waiting.add((each[0], context))
            else:
                durable.append(each)
        for one in worded.live:
            context = context_of(one[1], one[2], routing)
            if one[0] > first.get(context, len(rows)):
                waiting.add((one[0], context))
            else:
                live.append(one)
        for index, context in sorted(waiting):
            shaped = special.get(index, _NOBODY)
            self._wait(context, rows[index], lines[index], until.get((index, context)), tag, shaped)
        return replace(worded, durable=durable, live=live, held=())

    def _wait(
        self, context: str, row: Row, line: bytes, until: datetime | None, tag: DeliveryTag, shaped: frozenset[str]
    ) -> None:
        self._queues.setdefault((context, row.client), deque()).append(_Waiting(row, line, until, tag, shaped))
        tag.waiting += 1
        self._tried = (-1, None)

    # ── letting go ──

    def _released(self, plan: Plan) -> Iterator[ReadyDeliveries]:
        """What need not wait any longer. It is tried only if something is new, or somebody's time is up."""
        noted, until = self._tried
        if not self._queues or (noted == self.memory.noted and (until is None or self.memory.latest < until)):
            return
        for key in list(self._queues):
            while (said := self._attempt(key, plan)) is not None:
                yield said
                said.tag.waiting -= 1
        heads = [queue[0].until for queue in self._queues.values()]
        self._tried = (self.memory.noted, min((each for each in heads if each is not None), default=None))

    def _forced(self, plan: Plan) -> Iterator[ReadyDeliveries]:
        self.memory.holds = False
        try:
            said = self._attempt(next(iter(self._queues)), plan)
        finally:
            self.memory.holds = True
        if said is not None:
            yield said
            said.tag.waiting -= 1

    def _attempt(self, key: tuple[str, str], plan: Plan) -> ReadyDeliveries | None:
        """The first of a queue, if it can be delivered, or is found to be a dead letter."""
        queue = self._queues.get(key)
        if not queue:
            return None
        first = queue[0]
        rows, routing = [first.row], plan.routing
        routed = _only(key[0], routing.route(rows, queued=True), routing)
        routed = _as_decided(routed, first.shaped, plan)
        worded = plan.interpretation.worded(rows, [first.line], routed, routing)
        if worded.held:
            first.until = worded.held[0][2]
            return None
        queue.popleft()
        if not queue:
            del self._queues[key]
        return ReadyDeliveries(rows=rows, worded=worded, tag=first.tag)

    # ── kept somewhere ──

    def as_json(self) -> list[Any]:
        return [
            [
                context,
                [[stamped_line(each.row, each.line).decode(), each.row.pos, *sorted(each.shaped)] for each in queue],
            ]
            for (context, _), queue in self._queues.items()
        ]

    def restore(self, value: Sequence[Any]) -> None:
        """Go on with what was written down."""
        self._queues.clear()
        for context, kept in value:
            for text, pos, *shaped in kept:
                line = text.encode()
                row = decode_line(line, pos=pos)
                self._wait(context, row, bare_line(row, line), None, DeliveryTag(), frozenset(shaped))


def _shaped(routed: RoutedRows, plan: Plan) -> Mapping[int, frozenset[str]]:
    """Who gets a row of those that have a shape, groups and subscriptions, by the place of the row."""
    if not plan.shapes.by_id:
        return {}
    found: dict[int, set[str]] = {}
    for index, group in routed.durable:
        if group in plan.shapes.groups:
            found.setdefault(index, set()).add(group)
    for index, client, names in routed.live:
        for name in names.split(","):
            if f"{client}/{name}" in plan.shapes.by_id:
                found.setdefault(index, set()).add(f"{client}/{name}")
    return {index: frozenset(each) for index, each in found.items()}


def _as_decided(routed: RoutedRows, shaped: frozenset[str], plan: Plan) -> RoutedRows:
    """Without those who have a shape and were not to get this when it came."""
    shapes = plan.shapes
    if not shapes.by_id:
        return routed
    found = RoutedRows([each for each in routed.durable if each[1] not in shapes.groups or each[1] in shaped])
    for index, client, names in routed.live:
        own = [name for name in names.split(",") if (id := f"{client}/{name}") not in shapes.by_id or id in shaped]
        if own:
            found.live.append((index, client, ",".join(own)))
    return found


def _only(context: str, routed: RoutedRows, routing: RoutingTable) -> RoutedRows:
    """The deliveries in one context."""
    found = RoutedRows([each for each in routed.durable if routing.groups[each[1]].context == context])
    for index, client, names in routed.live:
        own = [name for name in names.split(",") if routing.subscriptions[f"{client}/{name}"].context == context]
        if own:
            found.live.append((index, client, ",".join(own)))
    return found
