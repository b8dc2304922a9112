"""What detection keeps from batch to batch, beside its checkpoint: progress, and the states of kernels by bucket.

Written under the offset at which a batch ended, read by the batch that begins there: a batch that is repeated starts
from what its first run started from. A worker that did a bucket in the last batch still has its states in memory.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from situ.catalogue import CHECKPOINT_DAMAGED
from situ.deployment.progress import Progress
from situ.errors import Location, SituError
from situ.pipeline.offsets import Offset

_KEPT = 3
_WHOLE, _STEP, _FILLED = "whole", "step", "filled"

T = TypeVar("T")


class ProgressStore:
    """Progress at the offsets of a query."""

    def __init__(self, checkpoint: Path) -> None:
        self._folder = checkpoint / "progress"

    def load(self, at: Offset) -> Progress | None:
        """What the batch that ended there left; None if none did: the query is new."""
        file = self._file(at)
        try:
            return Progress.from_json(json.loads(file.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SituError(CHECKPOINT_DAMAGED(Location(file=str(file)), reason=str(error))) from None

    def save(self, at: Offset, progress: Progress, *, due: bool) -> None:
        """``due``: time that goes by can bring more, though no event comes."""
        self._folder.mkdir(parents=True, exist_ok=True)
        file = self._file(at)
        # One that a process left when it was killed counts for none of those that are kept.
        beside = file.with_name(f".{file.name}.{os.getpid()}")
        beside.write_text(json.dumps({**progress.as_json(), "due": due}), encoding="utf-8")
        beside.replace(file)
        for old in _oldest(self._folder):
            old.unlink(missing_ok=True)

    def is_due(self, at: Offset) -> bool:
        """Whether a batch without events is worth its while."""
        try:
            return bool(json.loads(self._file(at).read_text(encoding="utf-8"))["due"])
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def _file(self, at: Offset) -> Path:
        return self._folder / f"{name_of(at)}.json"


class Inherited:
    """What another engine left for a query that is new: as which offset it counts, progress, and states of kernels."""

    def __init__(self, checkpoint: Path) -> None:
        self._folder = checkpoint / "inherited"

    @property
    def offset(self) -> Offset | None:
        """None: the query goes on from nobody."""
        file = self._folder / "offset.json"
        try:
            return Offset.from_json(json.loads(file.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise SituError(CHECKPOINT_DAMAGED(Location(file=str(file)), reason=str(error))) from None

    def load(self) -> tuple[Progress, Mapping[str, bytes]]:
        """Progress, and the states by policy, as one keeps them that works in one place."""
        try:
            progress = Progress.from_json(json.loads((self._folder / "progress.json").read_text(encoding="utf-8")))
            return progress, _states.decode((self._folder / "states").read_bytes())
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SituError(CHECKPOINT_DAMAGED(Location(file=str(self._folder)), reason=str(error))) from None

    def save(self, at: Offset, progress: Progress, states: Mapping[str, bytes]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / "progress.json").write_text(json.dumps(progress.as_json()), encoding="utf-8")
        (self._folder / "states").write_bytes(msgspec.msgpack.encode(dict(states)))
        (self._folder / "offset.json").write_text(json.dumps(at.as_json()), encoding="utf-8")


class Taken(msgspec.Struct):
    """A step of a bucket: the batch that it began behind, what it was given, and the watermarks it decided with."""

    behind: str
    blobs: list[bytes]
    watermarks: dict[str, int]


class StateStore:
    """The states of one bucket's kernels at the offsets of a query. Spark's workers read and write them.

    What kernels remember is much more than what a batch brings. So most batches leave only what the bucket was given,
    and whoever has to begin there takes these steps again; now and then all is written down.
    """

    def __init__(self, checkpoint: Path, bucket: int) -> None:
        self._folder = checkpoint / "states" / str(bucket)

    def load(self, at: str, since: str | None = None) -> tuple[Mapping[str, bytes] | None, list[Taken]]:
        """What the kernels remembered, by policy, at or before a batch, and the steps that were taken since then.

        None, and the steps since then, if no more was written down than these ``since`` a batch that is given.
        """
        steps: list[Taken] = []
        while not (whole := self._folder / f"{at}.{_WHOLE}").exists():
            if at == since:
                return None, steps[::-1]
            file = self._folder / f"{at}.{_STEP}"
            if not file.exists():
                return {}, steps[::-1]
            step = self._read(file, _step)
            steps.append(step)
            at = step.behind
        return self._read(whole, _states), steps[::-1]

    def _read(self, file: Path, decoder: msgspec.msgpack.Decoder[T]) -> T:
        try:
            return decoder.decode(file.read_bytes())
        except (OSError, msgspec.DecodeError) as error:
            raise SituError(CHECKPOINT_DAMAGED(Location(file=str(file)), reason=str(error))) from None

    def save_step(self, at: str, step: Taken) -> None:
        self._write(self._folder / f"{at}.{_STEP}", step)

    def save_whole(self, at: str, states: Mapping[str, bytes], behind: str) -> None:
        """All that kernels remember. The batch may be repeated: what it began from stays."""
        self._write(self._folder / f"{at}.{_WHOLE}", dict(states))
        needed = self._needed(behind)
        for file in self._folder.iterdir():
            if not file.name.startswith(".") and file.stem not in needed | {at}:
                file.unlink(missing_ok=True)

    def save_filled(self, at: str, states: Mapping[str, bytes]) -> None:
        """What kernels of policies that begin in the past remember, for the batch that ends there."""
        self._write(self._folder / f"{at}.{_FILLED}", dict(states))

    def load_filled(self, at: str) -> Mapping[str, bytes]:
        return self._read(self._folder / f"{at}.{_FILLED}", _states)

    def _needed(self, at: str) -> set[str]:
        found = {at}
        while not (self._folder / f"{at}.{_WHOLE}").exists():
            file = self._folder / f"{at}.{_STEP}"
            if not file.exists():
                break
            at = self._read(file, _step).behind
            found.add(at)
        return found

    def _write(self, file: Path, content: object) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        beside = file.with_name(f".{file.name}.{os.getpid()}")
        beside.write_bytes(msgspec.msgpack.encode(content))
        beside.replace(file)


_step = msgspec.msgpack.Decoder(Taken)
_states = msgspec.msgpack.Decoder(dict[str, bytes])


def name_of(at: Offset) -> str:
    """Batches that only the clock brought end at the same message."""
    return f"{at.seq}-{at.clock}"


def _oldest(folder: Path) -> list[Path]:
    """All but the last few, in the order of the log and of time."""
    found = [each for each in folder.iterdir() if "-" in each.name and not each.name.startswith(".")]
    found.sort(key=lambda each: tuple(map(int, each.name.split(".")[0].split("-"))))
    return found[:-_KEPT]
