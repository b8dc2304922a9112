"""Asking a run how quality stands, as somebody who may know everything."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from situ.bus.names import Names
from situ.cli.on_bus import bus_of
from situ.edge.told import problem_told
from situ.errors import SituError
from situ.event.message import Message

if TYPE_CHECKING:
    from situ.cli.in_force import Place

_WITHIN = 10.0


async def ask_quality(place: Place, asked: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """The answer of the run, as data and in words; what it refuses is raised."""
    async with bus_of(place, "quality") as bus:
        message = Message(subject=Names(bus.zone).quality, body=json.dumps(asked).encode())
        answer = json.loads((await bus.request(message, timeout=_WITHIN)).body)
    if "code" in answer:
        raise SituError(problem_told(answer["code"], answer["message"], answer["hint"]))
    return answer["body"], answer["text"]
