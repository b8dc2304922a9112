"""Stage deliver: events with their addressees → messages, a group's or a client's together."""

from __future__ import annotations

from collections.abc import Sequence

from situ.bus.names import Names
from situ.bus.packing import live_line, pack_group, pack_live
from situ.deployment.plan import Plan
from situ.deployment.wording import Worded
from situ.event.message import Message
from situ.event.row import Row


def durable(rows: Sequence[Row], worded: Worded, plan: Plan) -> list[Message]:
    """Messages to be stored, once however often they are made."""
    groups: dict[str, tuple[list[Row], list[bytes]]] = {}
    decided = "" if plan.seeing is None else plan.decided({row.epoch for row in rows})
    for index, group, line in worded.durable:
        own, lines = groups.get(group) or groups.setdefault(group, ([], []))
        own.append(rows[index])
        lines.append(line)
    names = Names(plan.zone)
    return [pack_group(names, group, own, lines, decided) for group, (own, lines) in groups.items()]


def live(worded: Worded, plan: Plan) -> list[Message]:
    """Messages to be sent at once; each event says which of the client's subscriptions it is for."""
    clients: dict[str, list[bytes]] = {}
    for _, client, subscriptions, line in worded.live:
        clients.setdefault(client, []).append(live_line(line, subscriptions))
    if plan.seeing is not None:
        clients = {client: plan.seeing.seal.handed(lines, client) for client, lines in clients.items()}
    names = Names(plan.zone)
    return [pack_live(names, client, each) for client, each in clients.items()]
