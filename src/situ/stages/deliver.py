"""Stages route, shape, interpret out and deliver: events of a log → messages, a group's or a client's together.

`deliver` is the whole way of some events from the log to those who get them; `route`, `route_and_shape`,
`interpret_out` and `pack` are its parts. `DeliveryBatcher` packs the deliveries of a whole task, cut to the size that a
message may have.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from situ.event.failures import failed, is_of_event
from situ.event.message import Message
from situ.event.row import BadRow, Row
from situ.event.subjects import BusNames, live_line, pack_deliveries, pack_group, pack_live
from situ.lang.records import replace
from situ.routing.routing_table import RoutedRows
from situ.stages.interpret_out import ConvertedDeliveries
from situ.stages.plan import Plan
from situ.stages.shape import ShapedDeliveries, ShapeState


@dataclass(frozen=True, slots=True, kw_only=True)
class Deliveries:
    """What is delivered of some rows, and the messages that hold it."""

    rows: Sequence[Row]
    worded: ConvertedDeliveries
    """What is in the messages."""
    stored: Sequence[Message]
    sent: Sequence[Message]
    bad: Sequence[BadRow]
    """What could not be put in somebody's terms, or into a message."""


def deliver(
    rows: Sequence[Row],
    lines: Sequence[bytes],
    plan: Plan,
    shaping: ShapeState | None = None,
    *,
    letters: bool = False,
) -> Deliveries:
    """The whole way of events of the log to those who get them. Dead letters are told as they are, not shaped."""
    shaped = route_and_shape(rows, lines, plan, None if letters else shaping)
    return pack(shaped.rows, interpret_out(shaped, plan), plan, shaping)


def route_and_shape(
    rows: Sequence[Row],
    lines: Sequence[bytes],
    plan: Plan,
    shaping: ShapeState | None = None,
    now: int | None = None,
) -> ShapedDeliveries:
    """Who gets which of these events, in the terms of root; ``now`` as :meth:`ShapeState.shape` has it."""
    routed = route(rows, plan, queued=True)
    if shaping is not None and plan.shapes.by_id:
        return shaping.shape(rows, lines, routed, now)
    return ShapedDeliveries(rows=rows, lines=lines, routed=routed)


def route(rows: Sequence[Row], plan: Plan, *, queued: bool = False) -> RoutedRows:
    """The deliveries of these rows, in their order; ``queued`` if what waits is decided when it is handed over."""
    if len(rows) == 1:
        return plan.routing.route_one(rows[0], queued=queued)
    return plan.routing.route(rows, queued=queued)


def interpret_out(shaped: ShapedDeliveries, plan: Plan) -> ConvertedDeliveries:
    """These deliveries, put in the terms of each context once."""
    return plan.interpretation.worded(shaped.rows, shaped.lines, shaped.routed, plan.routing)


def pack(rows: Sequence[Row], worded: ConvertedDeliveries, plan: Plan, shaping: ShapeState | None = None) -> Deliveries:
    """The messages of deliveries that are in the terms of those who get them. Events that make that fail are bad."""
    if shaping is not None and shaping.marks:
        worded = shaping.mark(rows, worded)
    bad = worded.bad
    try:
        stored, sent = _pack(rows, worded, plan)
    except Exception as error:
        if not is_of_event(error):
            raise
        worded, failures = _packable(rows, worded, plan)
        bad = (*bad, *failures)
        stored, sent = _pack(rows, worded, plan)
    return Deliveries(rows=rows, worded=worded, stored=stored, sent=sent, bad=bad)


def _pack(rows: Sequence[Row], worded: ConvertedDeliveries, plan: Plan) -> tuple[list[Message], list[Message]]:
    names, seeing = BusNames(plan.zone), plan.seeing
    if seeing is None:
        return pack_deliveries(names, rows, worded.durable, worded.live)
    decided = plan.decided({row.epoch for row in rows})
    return pack_deliveries(names, rows, worded.durable, worded.live, decided=decided, seal=seeing.seal)


def _packable(rows: Sequence[Row], worded: ConvertedDeliveries, plan: Plan) -> tuple[ConvertedDeliveries, list[BadRow]]:
    """What can be put into messages, and the events of which that is not so."""
    fine, bad = set(), []
    for index in sorted({each[0] for each in worded.durable} | {each[0] for each in worded.live}):
        try:
            _pack(rows, _only(worded, {index}), plan)
            fine.add(index)
        except Exception as error:  # noqa: BLE001 - of this event, and of no other
            bad.append(failed(rows[index], "deliver", error))
    return _only(worded, fine), bad


def _only(worded: ConvertedDeliveries, places: Collection[int]) -> ConvertedDeliveries:
    """The deliveries of these rows."""
    durable = [each for each in worded.durable if each[0] in places]
    live = [each for each in worded.live if each[0] in places]
    return replace(worded, durable=durable, live=live)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Deliveries of a task. Events of one addressee are put together over all messages of a task, up to the size a message
# may have. The id of a message is made of the group and the key of its first event, so a repeated batch stores nothing
# twice.

Packed = Callable[[Message, str, Sequence[Row]], None]
"""Takes a message that is about to be stored for the readers of a group, and the events in it."""


class DeliveryBatcher:
    """Collects the deliveries of one task and cuts them into messages."""

    def __init__(self, plan: Plan, packed: Packed | None = None) -> None:
        batch = plan.deployment.settings.batch
        self._packed = packed
        self._names = BusNames(plan.zone)
        self._plan = plan
        self._most, self._size = batch.events, batch.size
        self._groups: dict[str, _PendingMessage] = {}
        self._clients: dict[str, _PendingMessage] = {}

    def add(self, rows: Sequence[Row], worded: ConvertedDeliveries) -> Iterator[Message]:
        """Take deliveries in; give the messages that are full."""
        for index, group, line in worded.durable:
            pending = self._groups.get(group) or self._groups.setdefault(group, _PendingMessage())
            if pending.lines and (len(pending.lines) >= self._most or pending.size + len(line) > self._size):
                yield self._pack(group, pending)
                pending = self._groups[group] = _PendingMessage()
            pending.add(rows[index], line)
        for index, client, subscriptions, text in worded.live:
            pending = self._clients.get(client) or self._clients.setdefault(client, _PendingMessage())
            if self._plan.seeing is not None:
                (text,) = self._plan.seeing.seal.handed((text,), client)
            line = live_line(text, subscriptions)
            if pending.lines and (len(pending.lines) >= self._most or pending.size + len(line) > self._size):
                yield pack_live(self._names, client, pending.lines)
                pending = self._clients[client] = _PendingMessage()
            pending.add(rows[index], line)

    def _pack(self, group: str, pending: _PendingMessage) -> Message:
        decided = "" if self._plan.seeing is None else self._plan.decided({row.epoch for row in pending.rows})
        message = pack_group(self._names, group, pending.rows, pending.lines, decided)
        if self._packed is not None:
            self._packed(message, group, pending.rows)
        return message

    def finish(self) -> list[Message]:
        """The messages that are not full; all of them, or none if one cannot be made."""
        found = [self._pack(group, pending) for group, pending in self._groups.items()]
        found += [pack_live(self._names, client, pending.lines) for client, pending in self._clients.items()]
        self._groups, self._clients = {}, {}
        return found


class _PendingMessage:
    __slots__ = ("lines", "rows", "size")

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.lines: list[bytes] = []
        self.size = 0

    def add(self, row: Row, line: bytes) -> None:
        self.rows.append(row)
        self.lines.append(line)
        self.size += len(line)
