"""The checkpoint of detection at the edge: records and journal on disk, and what is needed to write and recover them.

The parts, in order: recent rows of the root log, which messages were taken in which steps, the folder with records and
journal (`DetectionCheckpoint`), a snapshot that becomes a record, recovery by a process that comes after.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from situ.bus.interface import Bus
from situ.event.lines import decode_line, stored_lines
from situ.event.message import EventKey, position
from situ.event.row import Row
from situ.event.subjects import BusNames
from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.registry.snapshots import fetch_deployment
from situ.stages.detect.detection_plan import DetectionPlan
from situ.stages.detect.progress import DetectionProgress
from situ.stages.detect.step import States
from situ.stages.plan import Plan, compile_plan
from situ.stages.root_log import upgrade_message

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Events of the root log that detection took last, at hand when situations tell what caused them. Most causes are
# moments old; for what is older than what is kept here, the log is read. Bounded in number and size.

_MOST, _SIZE = 10_000, 4 * 1024 * 1024


class RecentRows:
    """Events by their positions, the oldest forgotten first."""

    def __init__(self, *, most: int = _MOST, size: int = _SIZE) -> None:
        self._most, self._limit = most, size
        self._rows: dict[int, Row] = {}
        self._order: deque[Row] = deque()
        self._size = 0

    def add(self, rows: Iterable[Row]) -> None:
        """Events that have their positions and the text of their data; nobody changes them any more."""
        for row in rows:
            if row.pos in self._rows:
                continue
            self._rows[row.pos] = row
            self._order.append(row)
            self._size += len(row.data)
        while len(self._order) > self._most or self._size > self._limit:
            gone = self._order.popleft()
            self._size -= len(gone.data)
            del self._rows[gone.pos]

    def find(self, positions: Sequence[int]) -> dict[int, Row]:
        """Those of the events at these positions that are at hand."""
        return {position: self._rows[position] for position in positions if position in self._rows}

    def clear(self) -> None:
        self._rows.clear()
        self._order.clear()
        self._size = 0


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Which messages of the root log detection has taken, and in which steps: as much of it as is not in the journal yet.

RECENT = 4096
"""Messages of the log that are known to be taken, of the last ones."""


@dataclass(slots=True)
class TakenMessage:
    """A message of the root log; without rows it is none that a policy wants."""

    seq: int
    rows: Sequence[Row]
    plan: Plan
    settled: EventKey | None = None
    """No message, but news: what this policy published up to this event is in the log, or is dead letters."""


class TakenSteps:
    """What was taken, and the steps of which nothing is written down yet."""

    def __init__(self) -> None:
        self.reached = 0
        """The last message of the log that was taken."""
        self._recent: deque[int] = deque(maxlen=RECENT)
        self._steps: list[tuple[int, tuple[int, ...]]] = []
        """When each was, and with which messages."""
        self._passed: list[tuple[int, int]] = []
        """Messages that no policy wanted: first and last of those that follow each other."""

    @property
    def recent(self) -> frozenset[int]:
        """The last messages that were taken: acknowledgements need not come in the order of the log."""
        return frozenset(self._recent)

    def is_taken(self, recent: frozenset[int], seq: int) -> bool:
        """Whether a message was taken, if these are the recent ones."""
        return seq <= self.reached - RECENT // 2 or seq in recent

    def know(self, messages: Iterable[int]) -> None:
        """These are taken."""
        for seq in messages:
            self._recent.append(seq)
            self.reached = max(self.reached, seq)

    def know_between(self, first: int, last: int) -> None:
        """These are taken, both included: of many the last ones are remembered."""
        self.know(range(max(first, last + 1 - RECENT, 1), last + 1))

    def step(self, clock: int, messages: tuple[int, ...]) -> None:
        """A step took these."""
        self.know(messages)
        if not messages and self._steps and not self._steps[-1][1]:
            self._steps.pop()  # the clock went on, and then went on further
        self._steps.append((clock, messages))

    def passed(self, seq: int) -> None:
        """A message that no policy wants is taken without a step."""
        if self._passed and self._passed[-1][1] == seq - 1:
            self._passed[-1] = (self._passed[-1][0], seq)
        else:
            self._passed.append((seq, seq))
        self.know((seq,))

    def drained(self) -> tuple[tuple[tuple[int, tuple[int, ...]], ...], tuple[tuple[int, int], ...]]:
        """The steps, and what was passed: from here on they count as written down."""
        steps, passed = tuple(self._steps), tuple(self._passed)
        self._steps, self._passed = [], []
        return steps, passed


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Records and journal: now and then all that detection remembers, and what it did since, step by step.
#
# A step is written down before anything of it is published. So a process that is killed left either nothing of a step,
# which is then taken anew, or all that it was to publish, which is published again under the same keys. What kernels
# remember is made again by taking the steps since the last full record again.

_log = logging.getLogger("situ.edge")
_FORMAT = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletedSteps:
    """Steps that were taken, and what came of the last of them."""

    steps: tuple[tuple[int, tuple[int, ...]], ...]
    """When each was, and with which messages of the log: taken again like that they come to the same."""
    version: int
    """Of the deployment that the next one is taken by."""
    progress: DetectionProgress
    published: tuple[tuple[str, int, int, str], ...] = ()
    """Messages of policies: name, number of the first event, count, body."""
    passed: tuple[tuple[int, int], ...] = ()
    """Messages of the log, from one to another, that no policy wanted."""

    def as_json(self, former: DetectionProgress) -> dict[str, Any]:
        """Of progress only what is another than it was."""
        return {
            "steps": [[clock, list(messages)] for clock, messages in self.steps],
            "version": self.version,
            "changes": self.progress.changes(former),
            "published": [list(each) for each in self.published],
            "passed": [list(each) for each in self.passed],
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any], former: DetectionProgress) -> CompletedSteps:
        return cls(
            steps=tuple((clock, tuple(messages)) for clock, messages in stored["steps"]),
            version=stored["version"],
            progress=former.changed(stored["changes"]),
            published=tuple((name, first, count, body) for name, first, count, body in stored["published"]),
            passed=tuple((first, last) for first, last in stored["passed"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRecord:
    """All that is remembered: how far in the log, the states of kernels by policy, and the steps taken since."""

    reached: int
    recent: frozenset[int] = frozenset()
    """Messages of the log that were taken, of the last few: acknowledgements need not come in the order of the log."""
    version: int = 0
    progress: DetectionProgress = field(default_factory=DetectionProgress)
    states: Mapping[str, bytes] = field(default_factory=dict)
    since: tuple[CompletedSteps, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingRecord:
    """A record that is being made while steps are taken: the folder where it will be put, and its journal."""

    folder: Path
    journal: int


class DetectionCheckpoint:
    """The folder of one edge engine's detection. Without a folder nothing outlives the process.

    A record may be made while steps are taken. These are written down twice meanwhile: after the record in force, and
    after the one to come. So whichever of them a process finds, the steps since then are behind it.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._journals: tuple[int, ...] = ()
        self._progress = DetectionProgress()
        """What was written down last."""
        self._begun = 0
        self._saving = threading.RLock()
        """A thread that was given up may still be at it."""

    def load(self) -> CheckpointRecord | None:
        """What a process before this one left; None if there was none, or it cannot be read, which is said."""
        if self._folder is None or not self._folder.is_dir():
            return None
        for unfinished in self._folder.glob(".*"):
            shutil.rmtree(unfinished, ignore_errors=True)
        for number in sorted(self._numbers(), reverse=True):
            try:
                record = self._read(self._folder / str(number))
            except (OSError, ValueError, KeyError, TypeError) as error:
                _log.warning("%s cannot be read: %s", self._folder / str(number), error)
                continue
            return record
        return None

    def _numbers(self) -> list[int]:
        assert self._folder is not None
        return [int(each.name) for each in self._folder.iterdir() if each.name.isdigit()]

    def _read(self, folder: Path) -> CheckpointRecord:
        about = json.loads((folder / "record.json").read_text(encoding="utf-8"))
        if about["format"] != _FORMAT:
            raise ValueError(f"its format is {about['format']}")
        lines = (folder / "journal").read_bytes().splitlines(keepends=True) if (folder / "journal").exists() else []
        since: list[CompletedSteps] = []
        before = progress = DetectionProgress.from_json(about["progress"])
        for line in lines:
            # A line that was not written to its end is that of a step of which nothing was published.
            if line.endswith(b"\n"):
                since.append(CompletedSteps.from_json(json.loads(line), before))
                before = since[-1].progress
        return CheckpointRecord(
            reached=about["reached"],
            recent=frozenset(about["recent"]),
            version=about["version"],
            progress=progress,
            states={name: (folder / file).read_bytes() for name, file in about["states"].items()},
            since=tuple(since),
        )

    # ── a record ──

    def save(self, record: CheckpointRecord) -> None:
        """Keep all that is remembered, and begin to write down steps from here."""
        with self._saving:
            beside = self.begin()
            if beside is not None:
                self.follow(beside, record.progress)
                self.write(beside, record)
                self.finish(beside)
                self.tidy()

    def begin(self) -> PendingRecord | None:
        """Make room for a record; None if nothing is kept."""
        if self._folder is None:
            return None
        with self._saving:
            self._begun += 1
            beside = self._folder / f".{self._begun}"
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(parents=True)
        return PendingRecord(folder=beside, journal=os.open(beside / "journal", os.O_WRONLY | os.O_APPEND | os.O_CREAT))

    def follow(self, beside: PendingRecord, progress: DetectionProgress) -> None:
        """It is about all that was until now: the steps from here on are written down behind it, too."""
        self._journals = (*self._journals, beside.journal)
        self._progress = progress

    def write(self, beside: PendingRecord, record: CheckpointRecord) -> None:
        """Have it take the place of the record before, whose journal must have nothing more to tell than its own."""
        assert self._folder is not None
        states = {name: f"{place}.state" for place, name in enumerate(sorted(record.states))}
        for name, file in states.items():
            (beside.folder / file).write_bytes(record.states[name])
        about = {
            "format": _FORMAT,
            "reached": record.reached,
            "recent": sorted(record.recent),
            "version": record.version,
            "progress": record.progress.as_json(),
            "states": states,
        }
        (beside.folder / "record.json").write_bytes(msgspec.json.encode(about))
        with self._saving:
            # Renamed when it is complete: `load` reads only folders with a number for a name.
            beside.folder.replace(self._folder / str(max(self._numbers(), default=0) + 1))

    def finish(self, beside: PendingRecord) -> None:
        """Write nothing more down behind the records before it."""
        place = self._journals.index(beside.journal)
        former, self._journals = self._journals[:place], self._journals[place:]
        for each in former:
            os.close(each)

    def tidy(self) -> None:
        """Records before the last one are needed no more."""
        assert self._folder is not None
        with self._saving:
            for old in sorted(self._numbers())[:-1]:
                shutil.rmtree(self._folder / str(old), ignore_errors=True)

    # ── steps ──

    def note(self, done: CompletedSteps) -> None:
        """Write a step down. It is there for the next process when this returns, whatever becomes of this one."""
        if self._journals:
            line = msgspec.json.encode(done.as_json(self._progress)) + b"\n"
            for journal in self._journals:
                os.write(journal, line)
            self._progress = done.progress

    def close(self) -> None:
        with self._saving:
            for journal in self._journals:
                os.close(journal)
            self._journals = ()


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Snapshot: all that detection remembers at one moment, as values that later steps do not change, and how it becomes
# bytes.

_REST, _MANY = 0.001, 10_000
"""Seconds between the bits that are put in bytes; rows for which another thread is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionSnapshot:
    """A record without the states of kernels; these are still to be put in bytes."""

    record: CheckpointRecord
    detecting: DetectionPlan
    states: States

    def whole(self) -> CheckpointRecord:
        """The record, at once."""
        return replace(
            self.record, states={name: self.detecting.kernel(name).save(state) for name, state in self.states.items()}
        )

    async def whole_beside(self) -> CheckpointRecord:
        """The record, made while steps are taken.

        What is small is put in bytes here, bit by bit: a thread would take turns of several milliseconds with steps.
        """
        if sum(state.rows for state in self.states.values()) > _MANY:
            return await asyncio.to_thread(self.whole)
        found: dict[str, bytes] = {}
        for name, state in self.states.items():
            bits = self.detecting.kernel(name).saving(state)
            while name not in found:
                try:
                    next(bits)
                except StopIteration as done:
                    found[name] = done.value
                await asyncio.sleep(_REST)
        return replace(self.record, states=found)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Recovery: by which plan detection goes on, and with what is left in the log. The steps are taken again by
# :mod:`situ.edge.detect`.


async def plan_of(bus: Bus, version: int, now: Plan) -> Plan:
    """That of a version which was at work; the one of now if the bus has it no more."""
    if version == now.version:
        return now
    try:
        return await asyncio.to_thread(compile_plan, await fetch_deployment(bus, version), now)
    except SituError:
        return now


def states_of(record: CheckpointRecord, detecting: DetectionPlan) -> States:
    """What kernels of policies remember that are the same as they were."""
    watches = detecting.watches
    same = {
        name
        for name, kept in record.progress.policies.items()
        if name in watches and watches[name].digest == kept.digest
    }
    loaded = {name: detecting.kernel(name).load(record.states[name]) for name in same if name in record.states}
    return {name: state for name, state in loaded.items() if state is not None}


class UntakenMessages:
    """Messages of the log that were not taken by a record, as far as policies may want them."""

    def __init__(self) -> None:
        self._left: dict[int, TakenMessage] = {}

    @classmethod
    async def behind(cls, bus: Bus, plan: Plan, record: CheckpointRecord, last: int) -> UntakenMessages:
        """Those behind a record, up to the last one."""
        found = cls()
        first = max(record.reached + 1 - RECENT // 2, 1)
        async for stored in bus.read(BusNames(plan.zone).root_stream, first, last):
            if stored.seq > record.reached or stored.seq not in record.recent:
                lines = stored_lines(upgrade_message(stored, plan.interpretation))
                rows = [decode_line(line, pos=position(stored.seq, place)) for place, line in enumerate(lines)]
                found._left[stored.seq] = TakenMessage(stored.seq, rows, plan)
        return found

    def take(self, messages: tuple[int, ...]) -> list[TakenMessage]:
        """Those of a step; what is in the log no more cannot be taken again."""
        return [self._left.pop(seq) for seq in messages if seq in self._left]

    def drop_passed(self, done: CompletedSteps) -> None:
        """Without what no policy wanted."""
        for first, last in done.passed:
            for seq in [each for each in self._left if first <= each <= last]:
                del self._left[seq]

    @property
    def rest(self) -> list[TakenMessage]:
        """What nothing was done with."""
        return list(self._left.values())
