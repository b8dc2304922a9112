"""Stage deliver: events with their addressees → messages, a group's or a client's together."""

from __future__ import annotations

from collections.abc import Sequence

from situ.edge.plans import Plan
from situ.event.message import COUNT, ID, Message, join_lines
from situ.event.row import Row
from situ.subscription.routing import Routed


def durable(rows: Sequence[Row], lines: Sequence[bytes], routed: Routed, plan: Plan) -> list[Message]:
    """Messages to be stored; the id is made of the group and what is in the message, so none is stored twice.

    Dead letters are in no log position: they are known by their keys.
    """
    groups: dict[str, list[int]] = {}
    for index, group in routed.durable:
        groups.setdefault(group, []).append(index)
    return [
        Message(
            subject=plan.names.out(group),
            headers={
                COUNT: str(len(indexes)),
                ID: f"{group}+{rows[indexes[0]].pos or rows[indexes[0]].key}+{len(indexes)}",
            },
            body=join_lines([lines[index] for index in indexes]),
        )
        for group, indexes in groups.items()
    ]


def live(lines: Sequence[bytes], routed: Routed, plan: Plan) -> list[Message]:
    """Messages to be sent at once; each event says which of the client's subscriptions it is for."""
    clients: dict[str, list[bytes]] = {}
    for index, client, subscriptions in routed.live:
        line = b'{"situsubs":"%s",%s' % (subscriptions.encode(), lines[index][1:])
        clients.setdefault(client, []).append(line)
    return [
        Message(subject=plan.names.live(client), headers={COUNT: str(len(each))}, body=join_lines(each))
        for client, each in clients.items()
    ]
