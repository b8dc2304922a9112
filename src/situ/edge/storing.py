"""Where what clients publish goes: to the edge engine in the same process, or unopened into the ingress stream."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from situ.bus.interface import Bus
from situ.bus.names import Names, shard_of
from situ.deployment import Deployment
from situ.edge.engine import EdgeEngine
from situ.errors import SituError
from situ.event.message import CLIENT, CONTEXT, COUNT, DEPLOYMENT, ID, KEY, RECEIVED, Message, message_id
from situ.overlay.effects import Store, Stored, StoreFailed
from situ.subscription.model import ROOT


class Storing:
    """Of one router. What came of it is put to ``tell`` when it is known."""

    def __init__(
        self, bus: Bus, router: str, engine: EdgeEngine | None, tell: Callable[[Stored | StoreFailed], None]
    ) -> None:
        self._bus = bus
        self._names = Names(bus.zone)
        self._router = router
        self._engine = engine
        self._tell = tell
        self._deployment = Deployment()

    def adopt(self, deployment: Deployment) -> None:
        self._deployment = deployment

    async def store(self, effect: Store) -> None:
        received = time.time_ns() // 1000
        ticket = effect.ticket
        if self._engine is not None:
            taken = await self._engine.take(effect.key, effect.count, effect.body, received)
            taken.add_done_callback(lambda done: self._stored(ticket, done))
            return
        client = effect.key.client
        headers = {
            CLIENT: client,
            **self._stamp_of(client),
            RECEIVED: str(received),
            KEY: str(effect.key),
            COUNT: str(effect.count),
            ID: message_id(effect.key, effect.count),
        }
        message = Message(subject=self._names.raw(self._router, shard_of(client)), headers=headers, body=effect.body)
        stored = await self._bus.store(message, lane=client)
        stored.add_done_callback(lambda done: self._stored(ticket, done))

    def _stamp_of(self, client: str) -> dict[str, str]:
        """In whose terms the client speaks, and which deployment knows them."""
        deployment = self._deployment
        known = deployment.clients.get(client)
        if known is None or known.context == ROOT:
            return {CONTEXT: ROOT}
        return {CONTEXT: deployment.contexts.by_id[known.context].name, DEPLOYMENT: str(deployment.version)}

    def _stored(self, ticket: int, done: asyncio.Future[Any]) -> None:
        if done.cancelled():
            self._tell(StoreFailed(ticket=ticket, reason="the router is ending"))
        elif (error := done.exception()) is not None:
            reason = error.problems[0].message.rstrip(".") if isinstance(error, SituError) else str(error)
            self._tell(StoreFailed(ticket=ticket, reason=reason))
        else:
            result = done.result()
            self._tell(Stored(ticket=ticket, dead=result if isinstance(result, tuple) else ()))
