"""What happened to situations → messages of their policies, which are clients like others.

Pure: the same transitions give the same events with the same ids, numbered alike. A policy's events of one step are one
message, or as few as fit the bus.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from situ.deployment.acting import acted, lines_of
from situ.deployment.detecting import Detecting, Watch
from situ.deployment.progress import Progress
from situ.event.instants import print_instant
from situ.event.message import EventKey, join_lines
from situ.event.row import Row
from situ.situation.meaning.detection import Instances
from situ.situation.meaning.lifecycle import Transition
from situ.situation.meaning.telling import TYPES, situation_data

_MOST_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A message of a policy: so many events, the first with this number."""

    policy: str
    incarnation: int
    first: int
    count: int
    body: bytes

    @property
    def key(self) -> EventKey:
        return EventKey(self.policy, self.incarnation, self.first)


def positions_of(told: Iterable[Transition]) -> list[int]:
    """Where in the root log the causes are that these transitions tell, in order, each once."""
    return sorted({position for each in told for position in each.situation.positions if position})


def messages_of(
    told: Sequence[Transition],
    now: Detecting,
    former: Detecting | None,
    progress: Progress,
    causes: Mapping[int, Row],
    instances: Instances,
    past: Collection[str] = (),
) -> tuple[Progress, list[Published]]:
    """The messages that tell these transitions, and what actions come to.

    ``causes`` are the events at their positions, those that are found; ``former`` knows the policies that are gone.
    ``past`` are the ids of transitions from before a policy came: no action is done for them.
    """
    by_policy: dict[str, list[Transition]] = {}
    for each in told:
        by_policy.setdefault(each.situation.policy, []).append(each)
    messages = []
    for name, transitions in by_policy.items():
        knows = now if name in now.watches else former
        watch = knows.watches.get(name) if knows is not None else None
        if watch is None or knows is None:
            continue  # nobody knows any more what it was about
        lines: list[bytes] = []
        for each in transitions:
            lines.append(_line(each, watch, causes))
            if each.id not in past:
                events = acted(each, watch.policy, knows.actions, knows.ontology, instances)
                lines += lines_of(name, each.time, events)
        for some in _fitting(lines):
            progress, first = progress.numbered(name, len(some))
            body = join_lines(some)
            messages.append(
                Published(policy=name, incarnation=progress.incarnation, first=first, count=len(some), body=body)
            )
    return progress, messages


def _fitting(lines: Sequence[bytes]) -> Iterator[list[bytes]]:
    """Portions that the bus takes as messages: what is told of a long past may be too much for one."""
    some: list[bytes] = []
    size = 0
    for line in lines:
        if some and size + len(line) > _MOST_BYTES:
            yield some
            some, size = [], 0
        some.append(line)
        size += len(line) + 1
    if some:
        yield some


def _line(transition: Transition, watch: Watch, causes: Mapping[int, Row]) -> bytes:
    found = [causes[position] for position in transition.situation.positions if position in causes]
    return msgspec.json.encode(
        {
            "specversion": "1.0",
            "id": transition.id,
            "source": watch.name,
            "type": TYPES[transition.stage],
            "time": print_instant(transition.time),
            "data": msgspec.Raw(situation_data(transition, watch.policy, found)),
        }
    )
