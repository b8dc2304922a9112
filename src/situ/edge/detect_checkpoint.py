"""What detection at the edge has on disk: now and then all that it remembers, and what it did since, step by step.

A step is written down before anything of it is published. So a process that is killed left either nothing of a step,
which is then taken anew, or all that it was to publish, which is published again under the same keys. What kernels
remember is made again by taking the steps since the last full record again.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from situ.deployment.progress import Progress

_log = logging.getLogger("situ.edge")
_FORMAT = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """Steps that were taken, and what came of the last of them."""

    steps: tuple[tuple[int, tuple[int, ...]], ...]
    """When each was, and with which messages of the log: taken again like that they come to the same."""
    version: int
    """Of the deployment that the next one is taken by."""
    progress: Progress
    published: tuple[tuple[str, int, int, str], ...] = ()
    """Messages of policies: name, number of the first event, count, body."""
    passed: tuple[tuple[int, int], ...] = ()
    """Messages of the log, from one to another, that no policy wanted."""

    def as_json(self, former: Progress) -> dict[str, Any]:
        """Of progress only what is another than it was."""
        return {
            "steps": [[clock, list(messages)] for clock, messages in self.steps],
            "version": self.version,
            "changes": self.progress.changes(former),
            "published": [list(each) for each in self.published],
            "passed": [list(each) for each in self.passed],
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any], former: Progress) -> Done:
        return cls(
            steps=tuple((clock, tuple(messages)) for clock, messages in stored["steps"]),
            version=stored["version"],
            progress=former.changed(stored["changes"]),
            published=tuple((name, first, count, body) for name, first, count, body in stored["published"]),
            passed=tuple((first, last) for first, last in stored["passed"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """All that is remembered: how far in the log, the states of kernels by policy, and the steps taken since."""

    reached: int
    recent: frozenset[int] = frozenset()
    """Messages of the log that were taken, of the last few: acknowledgements need not come in the order of the log."""
    version: int = 0
    progress: Progress = field(default_factory=Progress)
    states: Mapping[str, bytes] = field(default_factory=dict)
    since: tuple[Done, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """A record that is being made while steps are taken: the folder where it will be put, and its journal."""

    folder: Path
    journal: int


class Remembered:
    """The folder of one edge engine's detection. Without a folder nothing outlives the process.

    A record may be made while steps are taken. These are written down twice meanwhile: after the record in force, and
    after the one to come. So whichever of them a process finds, the steps since then are behind it.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._journals: tuple[int, ...] = ()
        self._progress = Progress()
        """What was written down last."""
        self._begun = 0
        self._saving = threading.RLock()
        """A thread that was given up may still be at it."""

    def load(self) -> Record | None:
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

    def _read(self, folder: Path) -> Record:
        about = json.loads((folder / "record.json").read_text(encoding="utf-8"))
        if about["format"] != _FORMAT:
            raise ValueError(f"its format is {about['format']}")
        lines = (folder / "journal").read_bytes().splitlines(keepends=True) if (folder / "journal").exists() else []
        since: list[Done] = []
        before = progress = Progress.from_json(about["progress"])
        for line in lines:
            # A line that was not written to its end is that of a step of which nothing was published.
            if line.endswith(b"\n"):
                since.append(Done.from_json(json.loads(line), before))
                before = since[-1].progress
        return Record(
            reached=about["reached"],
            recent=frozenset(about["recent"]),
            version=about["version"],
            progress=progress,
            states={name: (folder / file).read_bytes() for name, file in about["states"].items()},
            since=tuple(since),
        )

    # ── a record ──

    def save(self, record: Record) -> None:
        """Keep all that is remembered, and begin to write down steps from here."""
        with self._saving:
            beside = self.begin()
            if beside is not None:
                self.follow(beside, record.progress)
                self.write(beside, record)
                self.finish(beside)
                self.tidy()

    def begin(self) -> Beside | None:
        """Make room for a record; None if nothing is kept."""
        if self._folder is None:
            return None
        with self._saving:
            self._begun += 1
            beside = self._folder / f".{self._begun}"
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(parents=True)
        return Beside(folder=beside, journal=os.open(beside / "journal", os.O_WRONLY | os.O_APPEND | os.O_CREAT))

    def follow(self, beside: Beside, progress: Progress) -> None:
        """It is about all that was until now: the steps from here on are written down behind it, too."""
        self._journals = (*self._journals, beside.journal)
        self._progress = progress

    def write(self, beside: Beside, record: Record) -> None:
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
            beside.folder.replace(self._folder / str(max(self._numbers(), default=0) + 1))

    def finish(self, beside: Beside) -> None:
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

    def note(self, done: Done) -> None:
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
