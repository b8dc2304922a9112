"""Late events as the bus keeps them: what came after the policies it concerns had decided."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import msgspec

from situ.bus.interface import Bus
from situ.bus.names import Names
from situ.event.instants import print_instant
from situ.event.lines import decode_line
from situ.event.message import POLICIES, split_lines
from situ.event.row import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Late:
    """A late event, the policies it came too late for, and when it came, in microseconds."""

    row: Row
    policies: tuple[str, ...]
    at: int

    def as_json(self) -> dict[str, Any]:
        row = self.row
        return {
            "id": row.id,
            "source": row.source,
            "type": row.type,
            "time": print_instant(row.time),
            "received": print_instant(row.recv),
            "policies": list(self.policies),
            "data": msgspec.json.decode(row.data),
        }


async def late_events(bus: Bus, *, type: str = "", policy: str = "") -> AsyncGenerator[Late, None]:
    """All there are, the oldest first: of one type, for one policy, if these are given."""
    names = Names(bus.zone)
    subjects = (names.late(type),) if type else ()
    async with aclosing(bus.read(names.late_stream, 1, subjects=subjects)) as messages:
        async for message in messages:
            policies = tuple(filter(None, message.headers.get(POLICIES, "").split(",")))
            if policy and policy not in policies:
                continue
            for line in split_lines(message.body):
                yield Late(row=decode_line(line), policies=policies, at=message.at)
