"""What happened to situations → messages of their policies, which are clients like others.

Pure: the same transitions give the same events with the same ids, numbered alike. A policy's events of one step are one
message, or as few as fit the bus.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from situ.deployment.acting import Acted, acted, line_of
from situ.deployment.detecting import Detecting, Watch
from situ.deployment.meeting import Meeting, Met
from situ.deployment.parts import with_withheld
from situ.deployment.progress import Progress
from situ.deployment.releasing import is_released, released_event, released_situation
from situ.event.isolation import Failure, failure_of
from situ.event.message import EventKey, join_lines
from situ.event.own_lines import with_parts
from situ.event.row import Row
from situ.situation.domain.cover import needed_of
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
    merged: int = 0
    """Stamps of what situations come from that were merged with others, because they were too many."""
    released: tuple[str, ...] = ()
    """Ids of the events of its policy that were released in this step, with its last message."""
    let_go: str = ""
    """In which dimensions, and who did."""

    @property
    def key(self) -> EventKey:
        return EventKey(self.policy, self.incarnation, self.first)

    @property
    def audit(self) -> str:
        """What is to be kept of releases."""
        return f"{self.policy} released in {self.let_go}: {', '.join(self.released)}"


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
    meeting: Meeting | None = None,
    known: Iterable[Transition] = (),
    failures: list[Failure] | None = None,
    clock: int = 0,
    before: Progress | None = None,
) -> tuple[Progress, list[Published]]:
    """The messages that tell these transitions, and what actions come to.

    ``causes`` are the events at their positions, those that are found; ``former`` knows the policies that are gone.
    ``past`` are the ids of transitions from before a policy came: no action is done for them. Where there are scopes,
    ``meeting`` knows who may see all that; ``known`` are transitions that were told before, and count for it. What
    cannot be told in a way that nobody foresaw is put to ``failures``, and all else is told. ``before`` is what was
    before another deployment, which knows how far those had decided that are gone; the ``clock`` says when it is
    published.
    """
    parts = None
    if meeting is not None:
        parts = _Parts(meeting, causes)
        for each in known:
            parts.met(each)
    by_policy: dict[str, list[Transition]] = {}
    for each in told:
        by_policy.setdefault(each.situation.policy, []).append(each)
    messages = []
    for name, transitions in by_policy.items():
        knows = now if name in now.watches else former
        watch = knows.watches.get(name) if knows is not None else None
        if watch is None or knows is None:
            continue  # nobody knows any more what it was about
        told_by = _Telling(name, watch, knows, causes, instances, parts)
        kept = progress.policies.get(name)
        quiet = kept.quiet if kept is not None else None
        for each in transitions:
            told_by.tell(each, acts=each.id not in past and (quiet is None or each.time >= quiet))
        if failures is not None:
            failures += told_by.failures
        for some in _fitting(told_by.lines):
            progress, first = progress.numbered(name, len(some))
            body = join_lines(some)
            messages.append(
                Published(policy=name, incarnation=progress.incarnation, first=first, count=len(some), body=body)
            )
        if told_by.merged or told_by.released:
            messages[-1] = replace(
                messages[-1], merged=told_by.merged, released=tuple(told_by.released), let_go=told_by.let_go
            )
    for name, found in parts.of.items() if parts is not None else ():
        progress = progress.with_parts(name, found)
    feeders = now.feeders if former is None else now.feeders | former.feeders
    return progress.marked((each.policy for each in messages), feeders, clock, before or progress), messages


class _Parts:
    """What situations come from that something is told of, as far as it is told."""

    def __init__(self, meeting: Meeting, causes: Mapping[int, Row]) -> None:
        self.meeting, self._causes = meeting, causes
        self.of: dict[str, dict[str, str]] = {}
        """By policy and situation."""

    def met(self, transition: Transition) -> Met:
        situation = transition.situation
        known = self.of.setdefault(situation.policy, {})
        met = self.meeting.met(transition, self._causes, known.get(situation.id))
        known[situation.id] = met.kept
        return met


class _Telling:
    """The events of one policy."""

    def __init__(
        self,
        name: str,
        watch: Watch,
        knows: Detecting,
        causes: Mapping[int, Row],
        instances: Instances,
        parts: _Parts | None,
    ) -> None:
        self._name, self._watch, self._knows = name, watch, knows
        self._causes, self._instances = causes, instances
        self._parts = parts
        # Where there are scopes, a policy tells nothing of tables that it has not asked for itself.
        self._asked = needed_of(watch.policy, knows.actions) if parts is not None else None
        self._let_go = parts.meeting.released(name) if parts is not None else None
        self.lines: list[bytes] = []
        self.failures: list[Failure] = []
        self.merged = 0
        self.released: list[str] = []
        self.let_go = f"{self._let_go.text}, by {self._let_go.by}" if self._let_go is not None else ""

    def tell(self, transition: Transition, *, acts: bool) -> None:
        try:
            self._tell(transition, acts=acts)
        except Exception as error:  # noqa: BLE001 - of this transition, and of no other
            self.failures.append(failure_of(error, "tell"))

    def _tell(self, transition: Transition, *, acts: bool) -> None:
        policy, let_go = self._watch.policy, self._let_go
        met = self._parts.met(transition) if self._parts is not None else None
        withheld: Mapping[str, Any] = {}
        if let_go is None:
            positions = transition.situation.positions
            data = situation_data(
                transition, policy, [self._causes[each] for each in positions if each in self._causes]
            )
        else:
            data, withheld = released_situation(transition, policy, let_go.keep)
        self._add(Acted(type=TYPES[transition.stage], id=transition.id, data=data), transition.time, met, withheld)
        if acts:
            try:
                self._act(transition, met)
            except Exception as error:  # noqa: BLE001 - the situation is told in any case
                self.failures.append(failure_of(error, "act"))
        self.merged += met.merged if met is not None else 0

    def _act(self, transition: Transition, met: Met | None) -> None:
        policy, let_go, knows = self._watch.policy, self._let_go, self._knows
        for each in acted(transition, policy, knows.actions, knows.ontology, self._instances, self._asked):
            left = each if let_go is None or not is_released(each) else released_event(each, let_go.keep)
            self._add(left, transition.time, met)

    def _add(
        self, event: Acted, time: int, met: Met | None, withheld: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        let_go = self._let_go if is_released(event) else None
        line = line_of(self._name, time, event, let_go.text if let_go is not None else "")
        if met is not None:
            line = with_parts(line, with_withheld(met.counted if is_released(event) else met.kept, withheld))
        if let_go is not None:
            self.released.append(event.id)
        self.lines.append(line)


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
