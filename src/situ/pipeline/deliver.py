"""Stage deliver: events with their addressees → messages, a group's or a client's together.

Events of one addressee are put together over all messages of a task, up to the size a message may have. The id of a
message is made of the group and the first position in it, so a repeated batch stores nothing twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from situ.event.message import COUNT, ID, Message, join_lines
from situ.event.row import Row
from situ.pipeline.plans import Plan
from situ.subscription.routing import Routed

_NO_ID = ""


class Delivery:
    """Collects the deliveries of one task and cuts them into messages."""

    def __init__(self, plan: Plan) -> None:
        batch = plan.deployment.settings.batch
        self._names = plan.names
        self._most, self._size = batch.events, batch.size
        self._groups: dict[str, _Pending] = {}
        self._clients: dict[str, _Pending] = {}

    def add(self, rows: Sequence[Row], lines: Sequence[bytes], routed: Routed) -> Iterator[Message]:
        """Take deliveries in; give the messages that are full."""
        for index, group in routed.durable:
            pending = self._groups.get(group) or self._groups.setdefault(group, _Pending())
            line = lines[index]
            if pending.lines and (len(pending.lines) >= self._most or pending.size + len(line) > self._size):
                yield self._durable(group, pending)
                pending = self._groups[group] = _Pending()
            pending.add(line, rows[index].pos)
        for index, client, subscriptions in routed.live:
            pending = self._clients.get(client) or self._clients.setdefault(client, _Pending())
            line = b'{"situsubs":"' + subscriptions.encode() + b'",' + lines[index][1:]
            if pending.lines and (len(pending.lines) >= self._most or pending.size + len(line) > self._size):
                yield self._live(client, pending)
                pending = self._clients[client] = _Pending()
            pending.add(line, rows[index].pos)

    def finish(self) -> Iterator[Message]:
        """The messages that are not full."""
        yield from (self._durable(group, pending) for group, pending in self._groups.items())
        yield from (self._live(client, pending) for client, pending in self._clients.items())
        self._groups, self._clients = {}, {}

    def _durable(self, group: str, pending: _Pending) -> Message:
        count = len(pending.lines)
        headers = {COUNT: str(count), ID: f"{group}+{pending.first}+{count}"}
        return Message(subject=self._names.out(group), headers=headers, body=join_lines(pending.lines))

    def _live(self, client: str, pending: _Pending) -> Message:
        headers = {COUNT: str(len(pending.lines))}
        return Message(subject=self._names.live(client), headers=headers, body=join_lines(pending.lines))


class _Pending:
    __slots__ = ("first", "lines", "size")

    def __init__(self) -> None:
        self.first = 0
        self.lines: list[bytes] = []
        self.size = 0

    def add(self, line: bytes, pos: int) -> None:
        if not self.lines:
            self.first = pos
        self.lines.append(line)
        self.size += len(line)
