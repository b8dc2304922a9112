"""Situations as the root log tells of them: what became of each, from the events of its policy."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import aclosing

import msgspec

from situ.bus.interface import Bus
from situ.event.instants import print_instant
from situ.event.lines import decode_line, stored_lines
from situ.event.subjects import BusNames
from situ.lang.json_form import Explanation
from situ.lang.records import replace
from situ.lang.types.table import CLOSED, CONTINUED, OPENED
from situ.scopes.stamp_codec import withheld_in

_TYPES = frozenset(each.name for each in (OPENED, CONTINUED, CLOSED))


class SituationRecord(Explanation, frozen=True, kw_only=True):
    """A situation as it was told last."""

    id: str
    policy: str
    bindings: dict[str, str]
    start: str
    last: str
    end: str | None
    """Null while it is open."""
    reason: str | None
    detections: int
    text: str
    """What opened it."""


async def read_situations(bus: Bus, *, policy: str = "", only_open: bool = False) -> list[SituationRecord]:
    """All that the log still tells of, in the order they opened."""
    names = BusNames(bus.zone)
    # The events of a policy's step are one message, which has the name of a type only if they are all of it.
    subjects = (names.root("*"), *(names.root("*", type) for type in sorted(_TYPES)))
    found: dict[str, SituationRecord] = {}
    async with aclosing(bus.read(names.root_stream, 1, subjects=subjects)) as messages:
        async for message in messages:
            _take(found, stored_lines(message))
    wanted = (each for each in found.values() if not policy or each.policy == policy)
    return sorted((each for each in wanted if not (only_open and each.end)), key=lambda each: (each.start, each.id))


def _take(found: dict[str, SituationRecord], lines: Iterable[bytes]) -> None:
    for line in lines:
        if b"situ.situation." not in line:
            continue
        row = decode_line(line)
        if row.type not in _TYPES:
            continue
        # What a release took out of the event is beside its stamps: who may read the log may know it.
        data = {**msgspec.json.decode(row.data), **withheld_in(row.parts)}
        if row.type == CLOSED.name:
            data.setdefault("end", print_instant(row.time))
        before = found.get(data["situation"])
        told = before or SituationRecord(
            id=data["situation"],
            policy=data["policy"],
            bindings={each["alias"]: each["id"] for each in data["bindings"]},
            start=data["start"],
            last=data["last"],
            end=None,
            reason=None,
            detections=0,
            text=data["text"],
        )
        found[told.id] = replace(
            told,
            last=max(told.last, data["last"]),
            end=data.get("end", told.end) or None,
            reason=data.get("reason", told.reason) or None,
            detections=told.detections + ("detection" in data),
        )
