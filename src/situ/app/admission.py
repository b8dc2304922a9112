"""Who is let into the embedded bus of a run: those the registry names, when it starts and whenever that has changed.

Who changes the registry asks the run, on a subject that no client may write to, and is answered when the server lets in
those and no others. Without a run there is nobody to ask, and nothing to do: the next one starts with what is there.
"""

from __future__ import annotations

import asyncio
import json

from situ.bus.embedded_server import EmbeddedServer
from situ.bus.interface import Bus, Serving
from situ.event.message import Message
from situ.event.subjects import BusNames
from situ.lang.catalogue import BUS_FAILED
from situ.lang.problems import SituError
from situ.protocol.permissions import BusPrincipal
from situ.registry import Registry

_PATIENCE = 15.0


def admitted_principals(registry: Registry) -> tuple[BusPrincipal, ...]:
    """Whom the registry names."""
    return tuple(each.principal for each in registry.principals.list())


async def serve_admissions(bus: Bus, registry: Registry, server: EmbeddedServer) -> Serving:
    """Let in who is to be let in, each time somebody says that this has changed."""

    async def admit(message: Message) -> Message:
        try:
            found = await asyncio.to_thread(admitted_principals, registry)
            await server.admit(found)
        except SituError as error:
            return _answer(message, {"failed": error.problems[0].message})
        return _answer(message, {"admitted": len(found)})

    return await bus.serve(BusNames(bus.zone).admit, admit)


def _answer(message: Message, said: dict[str, object]) -> Message:
    return Message(subject=message.subject, body=json.dumps(said).encode())


async def ask_to_admit(bus: Bus) -> None:
    """Have the run let in whom the registry names now; returns when it does. B110 if it cannot."""
    answer = await bus.request(Message(subject=BusNames(bus.zone).admit), timeout=_PATIENCE)
    failed = json.loads(answer.body).get("failed")
    if failed is not None:
        raise SituError(BUS_FAILED(what="let in other clients", reason=str(failed).rstrip(".")))
