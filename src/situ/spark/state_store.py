"""State that outlives a batch, beside the checkpoints: of shapes, of conversions and pending deliveries, of detection.

All of it is written at the end of a batch under the offset where it ended, and read by the batch that begins there, so
a batch that is repeated starts from what its first run started from. A worker that did the batch before mostly still
has the state in memory.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from situ.event.subjects import shard_of
from situ.quality.shaping.shaper import Mine
from situ.spark.checkpoint import Offset, numbered
from situ.stages.detect.progress import DetectionProgress
from situ.stages.pending_deliveries import PendingDeliveries
from situ.stages.plan import Plan
from situ.stages.shape import ShapeState
from situ.storage.state_folder import StateFolder

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Stage shape, and what its filters remember. Every task writes what concerns its clients, and reads what concerns them
# of what all tasks wrote, however the clients were shared then.

_KEPT = 3
_ACROSS, _HOLDS = "across", "holds"
"""Empty files: a filter looked at all clients together; something waits that the clock lets go."""


@dataclass(slots=True)
class _HeldShapes:
    """What this process has of some clients, and where in the log that is; None: in the midst of a batch."""

    shaping: ShapeState
    at: StateFolder | None = None


_held_shapes: dict[tuple[StateFolder, tuple[int, ...]], _HeldShapes] = {}


class ShapeCheckpoint:
    """What filters remembered at the end of a batch."""

    def __init__(self, checkpoint: StateFolder, offset: Offset) -> None:
        self.folder = checkpoint / "shaping" / f"{offset.seq}.{offset.clock}"

    @property
    def is_there(self) -> bool:
        return self.folder.exists()

    @property
    def is_across(self) -> bool:
        """Whether it is of all clients together, so that one task has to go on with it."""
        return self.folder.exists(_ACROSS)

    @property
    def holds(self) -> bool:
        """Whether something waits that the clock lets go."""
        return self.folder.exists(_HOLDS)

    def load(self, former: Plan) -> ShapeState:
        """All of it, of all clients."""
        shaping = ShapeState()
        self.restore(shaping, former)
        return shaping

    def restore(self, shaping: ShapeState, former: Plan, mine: Mine | None = None) -> None:
        """Have filters remember it, as far as it is about clients that are ``mine``."""
        files = sorted(name for name in self.folder.names() if name.endswith(".json"))
        try:
            texts = [self.folder.load(name) or b"" for name in files]
            shaping.restore([msgspec.json.decode(text) for text in texts], former, mine)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise self.folder.damaged(error) from None

    def save(self, shaping: ShapeState, number: int = 0) -> int:
        """What one task remembers, or somebody else who is alone; how many bytes that is."""
        content = msgspec.json.encode(shaping.as_json())
        self.folder.save(f"{number}.json", content)
        if shaping.goes_across:
            self.folder.write(_ACROSS, b"")
        if shaping.holds:
            self.folder.write(_HOLDS, b"")
        return len(content)


class ShapeStateStore:
    """What one task of the batch from one offset to another starts from, and leaves behind."""

    def __init__(self, checkpoint: StateFolder, begin: Offset, end: Offset, shards: tuple[int, ...] = ()) -> None:
        self._begin, self._end = ShapeCheckpoint(checkpoint, begin), ShapeCheckpoint(checkpoint, end)
        self._shards = shards

    @property
    def is_left_behind(self) -> bool:
        """Whether the batch before remembered something: under a deployment without shapes it is let go."""
        return self._begin.is_there

    def start(self, former: Plan) -> ShapeState:
        """What was remembered at the beginning of the batch, when ``former`` was at work."""
        key = (self._begin.folder.parent, self._shards)
        known = _held_shapes.get(key)
        if known is None or known.at != self._begin.folder:
            known = _held_shapes[key] = _HeldShapes(ShapeState())
            self._restore(known.shaping, former)
        known.at = None
        return known.shaping

    def finish(self) -> int:
        """Write down what is remembered at the end of the batch; how many bytes that is."""
        key = (self._begin.folder.parent, self._shards)
        known = _held_shapes[key]
        if known.shaping.is_empty:
            del _held_shapes[key]
            return 0
        size = self._end.save(known.shaping, self._shards[0] if self._shards else 0)
        known.at = self._end.folder
        self._prune()
        return size

    def _restore(self, shaping: ShapeState, former: Plan) -> None:
        mine = None
        if self._shards:
            shards = frozenset(self._shards)
            mine = lambda client: shard_of(client) in shards  # noqa: E731
        self._begin.restore(shaping, former, mine)

    def _prune(self) -> None:
        """Spark repeats at most the last batch."""
        parent = self._end.folder.parent
        kept = {self._begin.folder.name, self._end.folder.name}
        others = sorted((each for each in parent.names() if each not in kept), key=_place, reverse=True)
        for old in others[_KEPT:]:
            parent.remove(old)


def _place(name: str) -> tuple[int, int]:
    seq, _, clock = name.partition(".")
    return (int(seq), int(clock)) if seq.isdigit() and clock.isdigit() else (0, 0)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What conversions remember, and which deliveries wait. A deployment that remembers is worked by one task at a time, in
# the order of the log.

_VERSION = 1


@dataclass(slots=True)
class _HeldDeliveries:
    """What this process has of a query, and where in the log that is; None: in the midst of a batch."""

    holding: PendingDeliveries
    seq: int | None = None


_held_deliveries: dict[StateFolder, _HeldDeliveries] = {}


class PendingDeliveryStore:
    """What the batch from one position of the log to another starts from, and leaves behind."""

    def __init__(self, checkpoint: StateFolder, begin: int, end: int) -> None:
        self._folder = checkpoint / "memory"
        self._begin, self._end = begin, end
        self._before: tuple[int, int] | None = None

    @property
    def is_left_behind(self) -> bool:
        """Whether the batch before remembered something: under a deployment that does not, what waits is let go."""
        return self._folder.exists(_memory(self._begin))

    def start(self, plan: Plan) -> PendingDeliveries:
        """What waits, with everything remembered that was at the beginning of the batch."""
        interpretation = plan.interpretation
        known = _held_deliveries.get(self._folder)
        same = known is not None and known.seq == self._begin and known.holding.memory is interpretation.outgoing
        if known is None or not same:
            known = _held_deliveries[self._folder] = _HeldDeliveries(PendingDeliveries(interpretation.outgoing))
            self._restore(plan, known.holding)
        known.seq = None
        interpretation.outgoing.holds = True
        self._before = (_noted(plan), len(known.holding))
        return known.holding

    def finish(self, plan: Plan) -> int:
        """Write down what is remembered at the end of the batch; how many bytes that is, if it is not what it was."""
        known = _held_deliveries[self._folder]
        if not plan.interpretation.remembers:
            del _held_deliveries[self._folder]
            return 0  # nothing waits any more
        begin, end = _memory(self._begin), _memory(self._end)
        same = not len(known.holding) and self._before == (_noted(plan), 0)  # nothing came that is to be remembered
        size = 0
        if not (same and self._folder.copy(begin, end)):
            interpretation = plan.interpretation
            incoming, outgoing = interpretation.incoming.as_text(), interpretation.outgoing.as_text()
            content = _text(incoming, outgoing, known.holding.as_json())
            self._folder.save(end, content)
            size = len(content)
        known.seq = self._end
        self._prune()
        return size

    def _restore(self, plan: Plan, holding: PendingDeliveries) -> None:
        interpretation = plan.interpretation
        interpretation.incoming.forget()
        interpretation.outgoing.forget()
        name = _memory(self._begin)
        try:
            text = self._folder.load(name)
            if text is None:
                return  # nothing was remembered by then
            content = msgspec.json.decode(text)
            if content["version"] != _VERSION:
                raise ValueError(f"its version is {content['version']}")
            interpretation.incoming.restore(content["incoming"])
            interpretation.outgoing.restore(content["outgoing"])
            holding.restore(content["waiting"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self._folder.damaged(error, name) from None

    def inherit(self, incoming: bytes, outgoing: bytes, waiting: Sequence[Any]) -> None:
        """Have the first batch go on from what another engine remembered, and from the deliveries that waited there."""
        self._folder.save(_memory(self._begin), _text(incoming, outgoing, waiting))

    @property
    def waiting(self) -> Sequence[Any]:
        """The deliveries that waited at the beginning of the batch."""
        name = _memory(self._begin)
        try:
            text = self._folder.load(name)
            found: Sequence[Any] = () if text is None else msgspec.json.decode(text)["waiting"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self._folder.damaged(error, name) from None
        return found

    def _prune(self) -> None:
        for seq in numbered(self._folder)[:-_KEPT]:
            self._folder.remove(_memory(seq))


def _memory(seq: int) -> str:
    return f"{seq}.json"


def _text(incoming: bytes, outgoing: bytes, waiting: Sequence[Any]) -> bytes:
    content = {
        "version": _VERSION,
        "incoming": msgspec.Raw(incoming),
        "outgoing": msgspec.Raw(outgoing),
        "waiting": waiting,
    }
    return msgspec.json.encode(content)


def _noted(plan: Plan) -> int:
    return plan.interpretation.incoming.noted + plan.interpretation.outgoing.noted


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What detection keeps: progress, and the states of kernels by bucket.

_WHOLE, _STEP, _FILLED = "whole", "step", "filled"

T = TypeVar("T")


class ProgressStore:
    """Progress at the offsets of a query."""

    def __init__(self, checkpoint: StateFolder) -> None:
        self._folder = checkpoint / "progress"

    def load(self, at: Offset) -> DetectionProgress | None:
        """What the batch that ended there left; None if none did: the query is new."""
        name = _progress(at)
        try:
            text = self._folder.load(name)
            return None if text is None else DetectionProgress.from_json(json.loads(text))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self._folder.damaged(error, name) from None

    def save(self, at: Offset, progress: DetectionProgress, *, due: bool) -> None:
        """``due``: time that goes by can bring more, though no event comes."""
        self._folder.save(_progress(at), json.dumps({**progress.as_json(), "due": due}).encode())
        for old in _oldest(self._folder):
            self._folder.remove(old)

    def is_due(self, at: Offset) -> bool:
        """Whether a batch without events is worth its while."""
        try:
            return bool(json.loads(self._folder.load(_progress(at)) or b"")["due"])
        except (OSError, ValueError, KeyError, TypeError):
            return False


def _progress(at: Offset) -> str:
    return f"{name_of(at)}.json"


class InheritedState:
    """What another engine left for a query that is new: as which offset it counts, progress, and states of kernels."""

    def __init__(self, checkpoint: StateFolder) -> None:
        self._folder = checkpoint / "inherited"

    @property
    def offset(self) -> Offset | None:
        """None: the query goes on from nobody."""
        try:
            text = self._folder.load("offset.json")
            return None if text is None else Offset.from_json(json.loads(text))
        except (OSError, ValueError) as error:
            raise self._folder.damaged(error, "offset.json") from None

    def load(self) -> tuple[DetectionProgress, Mapping[str, bytes]]:
        """Progress, and the states by policy, as one keeps them that works in one place."""
        try:
            progress = DetectionProgress.from_json(json.loads(self._folder.load("progress.json") or b""))
            return progress, _states.decode(self._folder.load("states") or b"")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self._folder.damaged(error) from None

    def save(self, at: Offset, progress: DetectionProgress, states: Mapping[str, bytes]) -> None:
        self._folder.save("progress.json", json.dumps(progress.as_json()).encode())
        self._folder.save("states", msgspec.msgpack.encode(dict(states)))
        # Last: without it nothing counts as inherited.
        self._folder.save("offset.json", json.dumps(at.as_json()).encode())


class BucketStep(msgspec.Struct):
    """A step of a bucket: the batch that it began behind, what it was given, and the watermarks it decided with."""

    behind: str
    blobs: list[bytes]
    watermarks: dict[str, int]


class KernelStateStore:
    """The states of one bucket's kernels at the offsets of a query. Spark's workers read and write them.

    What kernels remember is much more than what a batch brings. So most batches leave only what the bucket was given,
    and whoever has to begin there takes these steps again; now and then all is written down.
    """

    def __init__(self, checkpoint: StateFolder, bucket: int) -> None:
        self._folder = checkpoint / "states" / str(bucket)

    def load(self, at: str, since: str | None = None) -> tuple[Mapping[str, bytes] | None, list[BucketStep]]:
        """What the kernels remembered, by policy, at or before a batch, and the steps that were taken since then.

        None, and the steps since then, if no more was written down than these ``since`` a batch that is given.
        """
        steps: list[BucketStep] = []
        while (whole := self._read(f"{at}.{_WHOLE}", _states)) is None:
            if at == since:
                return None, steps[::-1]
            step = self._read(f"{at}.{_STEP}", _step)
            if step is None:
                return {}, steps[::-1]
            steps.append(step)
            at = step.behind
        return whole, steps[::-1]

    def load_whole(self, at: str) -> Mapping[str, bytes]:
        """What the kernels remembered at the end of a batch where all was written down; N101 if it is not there."""
        found = self._read(f"{at}.{_WHOLE}", _states)
        if found is None:
            raise self._folder.damaged("there is no such file", f"{at}.{_WHOLE}")
        return found

    def add_whole(self, at: str, make: Callable[[], Mapping[str, bytes]]) -> None:
        """Write all down behind a batch that left a step only: others are about to read it. Nothing is removed."""
        if self._folder.exists(f"{at}.{_WHOLE}"):
            return
        if not self._folder.exists(f"{at}.{_STEP}"):
            raise self._folder.damaged("there is no such file", f"{at}.{_STEP}")
        self._save(f"{at}.{_WHOLE}", dict(make()))

    def _read(self, name: str, decoder: msgspec.msgpack.Decoder[T]) -> T | None:
        try:
            content = self._folder.load(name)
            return None if content is None else decoder.decode(content)
        except (OSError, msgspec.DecodeError) as error:
            raise self._folder.damaged(error, name) from None

    def save_step(self, at: str, step: BucketStep) -> None:
        self._save(f"{at}.{_STEP}", step)

    def save_whole(self, at: str, states: Mapping[str, bytes], behind: str) -> None:
        """All that kernels remember. The batch may be repeated: what it began from stays."""
        self._save(f"{at}.{_WHOLE}", dict(states))
        needed = self._needed(behind) | {at}
        for name in self._folder.names():
            if name.rpartition(".")[0] not in needed:
                self._folder.remove(name)

    def save_filled(self, at: str, states: Mapping[str, bytes]) -> None:
        """What kernels of policies that begin in the past remember, for the batch that ends there."""
        self._save(f"{at}.{_FILLED}", dict(states))

    def load_filled(self, at: str) -> Mapping[str, bytes]:
        found = self._read(f"{at}.{_FILLED}", _states)
        if found is None:
            raise self._folder.damaged("there is no such file", f"{at}.{_FILLED}")
        return found

    def _needed(self, at: str) -> set[str]:
        found = {at}
        while not self._folder.exists(f"{at}.{_WHOLE}"):
            step = self._read(f"{at}.{_STEP}", _step)
            if step is None:
                break
            at = step.behind
            found.add(at)
        return found

    def _save(self, name: str, content: object) -> None:
        self._folder.save(name, msgspec.msgpack.encode(content))


def remove_other_buckets(checkpoint: StateFolder, buckets: int) -> None:
    """Take away what buckets left that there are no more."""
    folder = checkpoint / "states"
    for name in folder.names():
        if name.isdigit() and int(name) >= buckets:
            folder.remove(name)


_step = msgspec.msgpack.Decoder(BucketStep)
_states = msgspec.msgpack.Decoder(dict[str, bytes])


def name_of(at: Offset) -> str:
    """Batches that only the clock brought end at the same message."""
    return f"{at.seq}-{at.clock}"


def _oldest(folder: StateFolder) -> list[str]:
    """All but the last few, in the order of the log and of time."""
    found = [each for each in folder.names() if "-" in each]
    found.sort(key=lambda each: tuple(map(int, each.split(".")[0].split("-"))))
    return found[:-_KEPT]
