"""Stage detect, for policies that begin in the past: what the root log holds is worked before they go on with the rest.

Other policies wait meanwhile; what comes is in the log, and nothing of it is missed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing

from situ.bus.interface import Bus
from situ.bus.names import Names
from situ.deployment.filling import Filled, Filling, bounds_of, to_fill
from situ.deployment.former_terms import in_terms_of_now
from situ.deployment.log_time import looked_back
from situ.deployment.plan import Plan
from situ.deployment.progress import Progress
from situ.deployment.reading import Reading
from situ.edge.epochs import learn_stored
from situ.event.instants import instant_at
from situ.event.message import Stored
from situ.situation.meaning.detection import Instances

_SOME = 500


async def fill(
    bus: Bus,
    plan: Plan,
    before: Progress,
    progress: Progress,
    instances: Instances,
    until: int,
    is_taken: Callable[[int], bool],
    clock: int,
) -> list[Filled]:
    """What policies that are new to ``before`` have of the log up to a message, of those that were taken.

    ``progress`` knows how far those are that feed them.
    """
    stream, found = Names(plan.zone).root_stream, list[Filled]()
    fills = to_fill(plan.detecting, plan.deployment.starts, before)
    bounds = bounds_of(plan.detecting, progress, fills, clock)
    for since, names in fills.items():
        detecting = plan.detecting.only(names)
        begin = await bus.find(stream, instant_at(since))
        first = await bus.find(stream, instant_at(max(since - looked_back(detecting), 0)))
        reading = Reading.of(detecting, plan.seeing)
        filling = Filling(detecting, instances, begin, since, reading=reading, bounds=bounds)
        some: list[Stored] = []
        if first <= until:
            async with aclosing(bus.read(stream, first, until)) as messages:
                async for message in messages:
                    if is_taken(message.seq):
                        some.append(in_terms_of_now(message, plan.interpretation))
                    if len(some) >= _SOME:
                        await learn_stored(bus, plan.seeing, some)
                        await asyncio.to_thread(filling.take, some)
                        some = []
        await learn_stored(bus, plan.seeing, some)
        await asyncio.to_thread(filling.take, some)
        found.append(await asyncio.to_thread(filling.filled))
    return found
