"""The pulse of a run: every second it looks at the engine, the bus and the memory, and tells the bus what it saw."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace

from situ.bus.interface import Bus
from situ.bus.names import Names
from situ.deployment import Deployment
from situ.edge.mistakes import Mistakes
from situ.errors import SituError
from situ.host.delivered import Delivered
from situ.host.engines import Engine
from situ.host.figures import FIGURES, STARTING, Figures, Rates
from situ.host.memory import memory
from situ.host.situation_figures import situation_figures
from situ.registry.snapshots import fetch_deployment

log = logging.getLogger("situ.host")

BEAT = 1.0

_PATIENCE = 2.0


class Pulse:
    """Looks at one run. ``state`` and ``restarts`` are told by whoever runs it."""

    def __init__(self, engine: str) -> None:
        now = _now()
        self.figures = Figures(engine=engine, pid=os.getpid(), started=now, at=now, state=STARTING)
        self._delivered = Delivered()
        self._rates = Rates()
        self._learnt = Deployment()
        self.mistakes = Mistakes(log)
        self.failures: list[Callable[[], Mapping[str, int]]] = [lambda: self.mistakes.counts]
        """What parts of the run beside the engine count of these."""
        self.refused: Callable[[], Mapping[str, int]] = dict

    def tell(self, state: str, *, restarted: bool = False) -> None:
        """The run is in another state now."""
        self.figures = replace(self.figures, state=state, restarts=self.figures.restarts + restarted)

    async def beat(self, bus: Bus, engine: Engine) -> None:
        """For ever."""
        key = f"{FIGURES}{engine.name}"
        try:
            while True:
                # A bus that is away comes back, and others see the silence.
                with suppress(SituError, OSError), self.mistakes.noted("pulse"):
                    async with asyncio.timeout(_PATIENCE):
                        found = await self.look(bus, engine)
                        await bus.put(Names(bus.zone).metrics, key, found.encode())
                await asyncio.sleep(BEAT)
        finally:
            with suppress(SituError, TimeoutError):
                async with asyncio.timeout(_PATIENCE):
                    await bus.remove(Names(bus.zone).metrics, key)

    async def look(self, bus: Bus, engine: Engine) -> Figures:
        """The figures of now."""
        await self._learn(bus, engine.version)
        counts = engine.counts
        subscriptions = self._delivered.by_subscription(counts)
        taken, delivered = sum(counts.types.values()), sum(subscriptions.values())
        taken_rate, delivered_rate = self._rates.add(time.monotonic(), taken, delivered)
        names = Names(bus.zone)
        last = (await bus.state(names.in_stream)).last
        clients, used = len(await bus.entries(names.clients)), await asyncio.to_thread(memory)
        # Nothing is waited for from here on: what is told meanwhile, that the run is up above all, would be lost.
        self.figures = replace(
            self.figures,
            at=_now(),
            version=engine.version,
            taken=taken,
            delivered=delivered,
            dead=sum(counts.dead.values()),
            taken_rate=taken_rate,
            delivered_rate=delivered_rate,
            waiting=max(last - engine.reached, 0) if engine.reached is not None else 0,
            batch=round(engine.batch, 3),
            clients=clients,
            types=dict(counts.types),
            subscriptions=subscriptions,
            codes=dict(counts.dead),
            origins=dict(counts.origins),
            terms=self._delivered.terms(subscriptions),
            originals=dict(counts.originals),
            converted=dict(counts.converted),
            dropped=dict(counts.dropped),
            failures=dict(sum((Counter(each()) for each in self.failures), Counter(counts.failures))),
            refused={code: number for code, number in self.refused().items() if code},
            memory=used,
            situations=situation_figures(self._learnt, engine.watched, _now()),
        )
        return self.figures

    async def _learn(self, bus: Bus, version: int) -> None:
        """Whose deliveries the engine counts since it works with this deployment."""
        if version != self._learnt.version:
            deployment = await fetch_deployment(bus, version)
            await asyncio.to_thread(self._delivered.learn, deployment)
            self._learnt = deployment


def _now() -> int:
    return time.time_ns() // 1000
