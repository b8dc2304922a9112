"""What happens when an engine stops by itself: it goes on if only the bus was away, else the run ends.

An engine that fails because the bus does not answer has lost nothing: it is started again from where it was as soon as
the bus is back, after a pause that grows with every failure in a row.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from situ.bus.nats import NatsBus
from situ.errors import SituError
from situ.host.engines import Engine
from situ.host.figures import RUNNING, WAITING
from situ.host.pulse import Pulse

log = logging.getLogger("situ.host")

_PAUSES = (0.5, 1.0, 2.0, 5.0, 10.0)
_WELL = 60.0  # an engine that ran so long is well again, and the next pause is a short one
_LOOK = 0.2
_OF_BUS = re.compile(r"\bB1\d\d\b")


async def supervise(
    engine: Engine, bus: NatsBus, pulse: Pulse, router: Callable[[], Coroutine[Any, Any, None]]
) -> None:
    """Wait until the engine or the router cannot go on; :class:`SituError` with why. Returns if one was stopped.

    ``router`` waits for the end of the router. Without one a run is nothing: nobody could say that it runs.
    """
    works = [asyncio.ensure_future(router()), asyncio.ensure_future(_supervise(engine, bus, pulse))]
    try:
        done, _ = await asyncio.wait(works, return_when=asyncio.FIRST_COMPLETED)
        for each in done:
            each.result()
    finally:
        for each in works:
            each.cancel()
        await asyncio.gather(*works, return_exceptions=True)


async def _supervise(engine: Engine, bus: NatsBus, pulse: Pulse) -> None:
    pauses = _grow()
    while True:
        began = time.monotonic()
        try:
            await engine.ended()
            return
        except SituError as error:
            if bus.connected and not _OF_BUS.search(str(error)):
                log.error("%s", error)
                raise
            log.warning("The engine waits for the bus: %s", error)
        if time.monotonic() - began > _WELL:
            pauses = _grow()
        pulse.tell(WAITING)
        await asyncio.sleep(next(pauses))
        while not bus.connected:
            await asyncio.sleep(_LOOK)
        await engine.start()
        pulse.tell(RUNNING, restarted=True)
        log.warning("The bus is back; the engine goes on from where it was.")


def _grow() -> Iterator[float]:
    yield from _PAUSES
    while True:
        yield _PAUSES[-1]
