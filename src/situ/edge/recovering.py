"""Where detection at the edge goes on when a process before it has ended: by which plan, with what is left in the log.

What that process wrote down is :mod:`situ.edge.remembered`; its steps are taken again by :mod:`situ.edge.detect`.
"""

from __future__ import annotations

import asyncio

from situ.bus.interface import Bus
from situ.bus.names import Names
from situ.deployment.detecting import Detecting
from situ.deployment.former_terms import in_terms_of_now
from situ.deployment.plan import Plan, compile_plan
from situ.deployment.stepping import States
from situ.edge.remembered import Done, Record
from situ.edge.taken import RECENT, Taken
from situ.errors import SituError
from situ.event.lines import decode_line, stored_lines
from situ.event.message import position
from situ.registry.snapshots import fetch_deployment


async def plan_of(bus: Bus, version: int, now: Plan) -> Plan:
    """That of a version which was at work; the one of now if the bus has it no more."""
    if version == now.version:
        return now
    try:
        return await asyncio.to_thread(compile_plan, await fetch_deployment(bus, version), now)
    except SituError:
        return now


def states_of(record: Record, detecting: Detecting) -> States:
    """What kernels of policies remember that are the same as they were."""
    watches = detecting.watches
    same = {
        name
        for name, kept in record.progress.policies.items()
        if name in watches and watches[name].digest == kept.digest
    }
    loaded = {name: detecting.kernel(name).load(record.states[name]) for name in same if name in record.states}
    return {name: state for name, state in loaded.items() if state is not None}


class LeftInLog:
    """Messages of the log that were not taken by a record, as far as policies may want them."""

    def __init__(self) -> None:
        self._left: dict[int, Taken] = {}

    @classmethod
    async def behind(cls, bus: Bus, plan: Plan, record: Record, last: int) -> LeftInLog:
        """Those behind a record, up to the last one."""
        found = cls()
        first = max(record.reached + 1 - RECENT // 2, 1)
        async for stored in bus.read(Names(plan.zone).root_stream, first, last):
            if stored.seq > record.reached or stored.seq not in record.recent:
                lines = stored_lines(in_terms_of_now(stored, plan.interpretation))
                rows = [decode_line(line, pos=position(stored.seq, place)) for place, line in enumerate(lines)]
                found._left[stored.seq] = Taken(stored.seq, rows, plan)
        return found

    def take(self, messages: tuple[int, ...]) -> list[Taken]:
        """Those of a step; what is in the log no more cannot be taken again."""
        return [self._left.pop(seq) for seq in messages if seq in self._left]

    def drop_passed(self, done: Done) -> None:
        """Without what no policy wanted."""
        for first, last in done.passed:
            for seq in [each for each in self._left if first <= each <= last]:
                del self._left[seq]

    @property
    def rest(self) -> list[Taken]:
        """What nothing was done with."""
        return list(self._left.values())
