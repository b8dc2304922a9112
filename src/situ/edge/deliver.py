"""Stage deliver: events with their addressees → messages, a group's or a client's together."""

from __future__ import annotations

from collections.abc import Sequence

from situ.bus.names import Names
from situ.bus.packing import live_line, pack_group, pack_live
from situ.deployment.plan import Plan
from situ.event.message import Message
from situ.event.row import Row
from situ.subscription.routing import Routed


def durable(rows: Sequence[Row], lines: Sequence[bytes], routed: Routed, plan: Plan) -> list[Message]:
    """Messages to be stored, once however often they are made."""
    groups: dict[str, list[int]] = {}
    for index, group in routed.durable:
        groups.setdefault(group, []).append(index)
    names = Names(plan.zone)
    return [
        pack_group(names, group, rows[indexes[0]], [lines[index] for index in indexes])
        for group, indexes in groups.items()
    ]


def live(lines: Sequence[bytes], routed: Routed, plan: Plan) -> list[Message]:
    """Messages to be sent at once; each event says which of the client's subscriptions it is for."""
    clients: dict[str, list[bytes]] = {}
    for index, client, subscriptions in routed.live:
        clients.setdefault(client, []).append(live_line(lines[index], subscriptions))
    names = Names(plan.zone)
    return [pack_live(names, client, each) for client, each in clients.items()]
