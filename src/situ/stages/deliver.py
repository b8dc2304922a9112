"""Stage deliver: events with their addressees → messages, a group's or a client's together.

`durable` and `live` make the messages of some rows, `DeliveryBatcher` those of a whole task, cut to the size that a
message may have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from situ.event.message import Message
from situ.event.row import Row
from situ.event.subjects import BusNames, live_line, pack_group, pack_live
from situ.stages.interpret_out import ConvertedDeliveries
from situ.stages.plan import Plan


def durable(rows: Sequence[Row], worded: ConvertedDeliveries, plan: Plan) -> list[Message]:
    """Messages to be stored, once however often they are made."""
    groups: dict[str, tuple[list[Row], list[bytes]]] = {}
    decided = "" if plan.seeing is None else plan.decided({row.epoch for row in rows})
    for index, group, line in worded.durable:
        own, lines = groups.get(group) or groups.setdefault(group, ([], []))
        own.append(rows[index])
        lines.append(line)
    names = BusNames(plan.zone)
    return [pack_group(names, group, own, lines, decided) for group, (own, lines) in groups.items()]


def live(worded: ConvertedDeliveries, plan: Plan) -> list[Message]:
    """Messages to be sent at once; each event says which of the client's subscriptions it is for."""
    clients: dict[str, list[bytes]] = {}
    for _, client, subscriptions, line in worded.live:
        clients.setdefault(client, []).append(live_line(line, subscriptions))
    if plan.seeing is not None:
        clients = {client: plan.seeing.seal.handed(lines, client) for client, lines in clients.items()}
    names = BusNames(plan.zone)
    return [pack_live(names, client, each) for client, each in clients.items()]


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Deliveries of a task. Events of one addressee are put together over all messages of a task, up to the size a message
# may have. The id of a message is made of the group and the first position in it, so a repeated batch stores nothing
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
