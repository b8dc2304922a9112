"""What clients ask a router: what types are, why they see something or not, and what there was before they came."""

from __future__ import annotations

import asyncio
from pathlib import Path

from situ.bus.interface import Bus
from situ.deployment import Deployment
from situ.edge.describing import Describing
from situ.edge.explaining import Explaining
from situ.edge.history import HistoryReader
from situ.errors import SituError
from situ.overlay.effects import Look
from situ.overlay.messages import Describe, Explain, FromRouter, History, HistoryAck, Nack
from situ.subscription.model import Subscription

_AT_ONCE = 4
"""Questions for which the log is read; others wait."""


class Questions:
    """To one router. ``folder`` is the project's."""

    def __init__(self, bus: Bus, folder: Path) -> None:
        self.describing = Describing()
        self._history = HistoryReader(bus, folder)
        self._explaining = Explaining(bus)
        self._reading = asyncio.Semaphore(_AT_ONCE)
        self._deployment = Deployment()

    def adopt(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self.describing.adopt(deployment)

    async def close(self) -> None:
        await asyncio.to_thread(self._history.close)

    async def answer(self, effect: Look) -> FromRouter:
        asked = effect.message
        if isinstance(asked, Describe):
            return self.describing.describe(asked, effect.client)
        try:
            async with self._reading:
                if isinstance(asked, Explain):
                    return await self._explaining.answer(effect.client, asked, self._deployment)
                assert effect.wanted is not None
                return await self._page(asked, effect.wanted)
        except SituError as error:
            problem, of = error.problems[0], type(asked).__name__
            return Nack(of=of, req=asked.req, code=error.code, message=problem.message, hint=problem.hint)

    async def _page(self, asked: History, wanted: Subscription) -> HistoryAck:
        """A page by the scopes that are in force when it is sent."""
        while True:
            deployment = self._deployment
            page = await self._history.page(asked, wanted, deployment)
            if self._deployment.epoch == deployment.epoch:
                return page
