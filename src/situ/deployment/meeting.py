"""The meet: who may see situations. Each carries the stamps of everything that it comes from.

Stamps do not go through kernels. A detection names its causes by where they are in the root log, and there their stamps
are; so what a situation comes from is put together when it is told. It counts for all that is told of a situation what
any of its detections came from: a later one says when the first was. That is remembered with the situation, since the
log forgets.

Before a detection counts, all that it comes from must be visible to what its policy reads as, in the epoch in force:
what a policy remembers it may have seen under other scopes. The same for all engines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from situ.deployment.absence import Beside, sees_rows
from situ.deployment.detecting import Detecting, Watch
from situ.deployment.parts import Part, read_parts, united, write_parts
from situ.deployment.releasing import LetGo, Releases
from situ.deployment.seeing import NOBODYS, Seeing
from situ.deployment.snapshot import Deployment
from situ.event.row import Row
from situ.situation.meaning.detection import Detection
from situ.situation.meaning.lifecycle import Stage, Transition

UNSTAMPED = Part(0, 0, 0)
"""Stands for what a situation came from before there were scopes: it is for those who name none."""


@dataclass(frozen=True, slots=True)
class Met:
    """The parts of a situation, as they count for it and as they count for what it asks to be done, and are kept."""

    counted: str
    kept: str
    merged: int


class Meeting:
    """The policies of one version."""

    def __init__(self, deployment: Deployment, detecting: Detecting, seeing: Seeing) -> None:
        self._deployment, self._detecting, self._seeing = deployment, detecting, seeing
        self._releases = Releases(seeing.graph)
        self._beside = Beside(deployment, detecting, seeing, self._releases)
        self._always: dict[str, frozenset[Part]] = {}
        self._unseen: dict[str, tuple[str, ...]] = {}

    @classmethod
    def of(cls, deployment: Deployment, detecting: Detecting, seeing: Seeing | None) -> Meeting | None:
        """None: there are no scopes, and never were."""
        return cls(deployment, detecting, seeing) if seeing is not None else None

    # ── what follows from the version alone, worked out when it is first asked for ──

    @property
    def blind(self) -> frozenset[str]:
        """Policies that do not see a table which they need: they detect nothing."""
        return frozenset(name for name in self._detecting.watches if self.unseen(name))

    def unseen(self, policy: str) -> tuple[str, ...]:
        """The tables that a policy needs and does not see."""
        if policy not in self._unseen:
            watch = self._detecting.watches[policy]
            self._unseen[policy] = tuple(each for each in sorted(self.tables(policy)) if not self._shows(each, watch))
        return self._unseen[policy]

    def tables(self, policy: str) -> set[str]:
        """The tables that say something which a policy asks for."""
        return self._beside.sources(self._detecting.watches[policy])

    def _shows(self, source: str, watch: Watch) -> bool:
        assert watch.reads is not None
        return sees_rows(self._seeing, self._deployment.sources[source], watch.reads)

    def always(self, policy: str) -> frozenset[Part]:
        """What counts for all situations of a policy: rows of tables, and what they say is absent."""
        if policy not in self._always:
            watch = self._detecting.watches.get(policy)  # of one that is gone, what counted is kept
            beside = self._beside
            self._always[policy] = (
                beside.of_sources(watch) | beside.of_absence(watch) if watch is not None else frozenset()
            )
        return self._always[policy]

    # ── what counts ──

    def counted(
        self, found: Mapping[str, Sequence[Detection]], causes: Mapping[int, Row]
    ) -> dict[str, Sequence[Detection]]:
        """Those detections all of whose causes, found at their positions, their policies may see now."""
        return {
            name: [each for each in some if self._sees_all(name, each, causes)]
            for name, some in found.items()
            if some and not self.unseen(name)
        }

    def _sees_all(self, policy: str, detection: Detection, causes: Mapping[int, Row]) -> bool:
        reads = self._detecting.watches[policy].reads
        assert reads is not None
        rows = [causes.get(position) for position in detection.positions]
        return all(row is not None and self._seeing.sees(self._seeing.look(row), reads) for row in rows)

    # ── what situations come from ──

    def met(self, transition: Transition, causes: Mapping[int, Row], before: str | None) -> Met:
        """What is told with this transition; ``before`` are the parts of what this step has told of the situation."""
        situation = transition.situation
        known = situation.parts if before is None else before
        parts = set(read_parts(known))
        if transition.stage is not Stage.CLOSED or not known:
            parts.update(_of_causes(situation.positions, causes))
            parts |= self.always(situation.policy)
            if transition.stage is not Stage.OPENED and not known:
                parts.add(UNSTAMPED)
        kept, merged = united(parts)
        counted = write_parts(self._releases.let_go(situation.policy, kept))
        return Met(counted, write_parts(kept), merged)

    def released(self, policy: str) -> LetGo | None:
        """What holds for a policy whose situations are released."""
        return self._releases.get(policy)


def _of_causes(positions: Iterable[int], causes: Mapping[int, Row]) -> Iterator[Part]:
    for position in positions:
        row = causes.get(position)
        if row is None:
            yield Part(NOBODYS, 0, 0)  # the log has it no more: nobody knows who may see it
            continue
        yield Part(row.tags, row.epoch, row.bits)
        yield from read_parts(row.parts)
