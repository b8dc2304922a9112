"""What a client may do on the bus: which subjects it may publish and subscribe to, as the server is told.

Pure. A client writes to its own ingress, and hears its own deliveries, its own feedback and its own answers; streams,
consumers, buckets and everything of others belong to routers and engines, which do for a client what it cannot do
itself (:mod:`situ.bus.consumer_proxy`). A wildcard stands for a whole token of a subject and never for a part of one,
so what belongs to a client has its name as a token of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import msgspec

from situ.event.subjects import BusNames

INBOX = "_INBOX"
"""How the subjects of answers begin; those of a client with its own, see :func:`inbox_of`."""

CLIENT = "client"
"""The right to be a client: to speak and to hear for itself. What it may tag and see is said by scopes."""


class BusPrincipal(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody whom the bus knows by a key. Only the public half: the other one is in a file of his."""

    name: str
    key: str
    rights: str = CLIENT


class Permissions(msgspec.Struct, frozen=True, kw_only=True):
    """Subjects; all others are forbidden."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]


def inbox_of(client: str) -> str:
    """How the subjects begin on which this client, and nobody else, hears answers. A name has no ``_``."""
    return f"{INBOX}_{client}" if client else INBOX


def may_be_answered(client: str, reply: str) -> bool:
    """Whether an answer to this client may be sent there. The server does not ask who may write to the subject that a
    request wants its answer on, and who answers may write anywhere: he would do for a client what it may not do."""
    return reply.startswith((f"{inbox_of(client)}.", f"{INBOX}.")) and not any(sign in reply for sign in "*> \t\r\n")


def permissions_of(zone: str, client: str) -> Permissions:
    names = BusNames(zone)
    return Permissions(
        publish=(names.ingress("*", client),),
        subscribe=(names.live(client), names.feedback("sub", client), names.feedback("pub", client), _answers(client)),
    )


def _answers(client: str) -> str:
    return f"{inbox_of(client)}.>"


def users(zone: str, principals: Iterable[BusPrincipal], run: str = "") -> str:
    """``users = […]`` of a server's configuration: the run itself, which may do everything, and the clients."""
    lines = ["users = [", f"  {run}"] if run else ["users = ["]
    for each in sorted(principals, key=lambda each: each.name):
        allowed = permissions_of(zone, each.name)
        lines += [
            f"  # {each.name}",
            f"  {{ nkey: {each.key}, permissions: {{",
            f"    publish: {{ allow: {json.dumps(allowed.publish)} }}",
            f"    subscribe: {{ allow: {json.dumps(allowed.subscribe)} }}",
            "  } }",
        ]
    return "\n".join((*lines, "]"))
