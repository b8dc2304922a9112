"""Stage shape: what single subscriptions get of the events routed to them; and what filters remember between batches.

It is beside the checkpoint of the query: written at the end of a batch under the offset where it ended, read by the
batch that begins there, so a batch that is repeated starts from what its first run started from. Every task writes what
concerns its clients, and reads what concerns them of what all tasks wrote, however the clients were shared then. A
worker that has worked on the same clients in the batch before has it all in memory.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from situ.bus.names import shard_of
from situ.catalogue import CHECKPOINT_DAMAGED
from situ.deployment.plan import Plan
from situ.deployment.shaping import Shaped, Shaping
from situ.errors import Location, SituError
from situ.event.row import Row
from situ.pipeline.offsets import Offset
from situ.quality.shaping.shaper import Mine
from situ.subscription.routing import Routed

_KEPT = 3
_ACROSS, _HOLDS = "across", "holds"
"""Empty files: a filter looked at all clients together; something waits that the clock lets go."""


def shape(shaping: Shaping, rows: Sequence[Row], lines: Sequence[bytes], routed: Routed, now: int) -> Shaped:
    """What is left of the deliveries of these rows. Events are as old as they are at the instant of their batch."""
    return shaping.shape(rows, lines, routed, now)


@dataclass(slots=True)
class _InHand:
    """What this process has of some clients, and where in the log that is; None: in the midst of a batch."""

    shaping: Shaping
    at: Path | None = None


_in_hand: dict[tuple[Path, tuple[int, ...]], _InHand] = {}


class LeftBehind:
    """What filters remembered at the end of a batch."""

    def __init__(self, checkpoint: Path, offset: Offset) -> None:
        self.folder = checkpoint / "shaping" / f"{offset.seq}.{offset.clock}"

    @property
    def is_there(self) -> bool:
        return self.folder.exists()

    @property
    def is_across(self) -> bool:
        """Whether it is of all clients together, so that one task has to go on with it."""
        return (self.folder / _ACROSS).exists()

    @property
    def holds(self) -> bool:
        """Whether something waits that the clock lets go."""
        return (self.folder / _HOLDS).exists()

    def load(self, former: Plan) -> Shaping:
        """All of it, of all clients."""
        shaping = Shaping()
        self.restore(shaping, former)
        return shaping

    def restore(self, shaping: Shaping, former: Plan, mine: Mine | None = None) -> None:
        """Have filters remember it, as far as it is about clients that are ``mine``."""
        files = sorted(self.folder.glob("*.json"))
        try:
            shaping.restore([msgspec.json.decode(file.read_bytes()) for file in files], former, mine)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise SituError(CHECKPOINT_DAMAGED(Location(file=str(self.folder)), reason=str(error))) from None

    def save(self, shaping: Shaping, number: int = 0) -> None:
        """What one task remembers, or somebody else who is alone."""
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / f"{number}.json"
        beside = file.with_suffix(f".{os.getpid()}")
        beside.write_bytes(msgspec.json.encode(shaping.as_json()))
        beside.replace(file)
        if shaping.goes_across:
            (self.folder / _ACROSS).touch()
        if shaping.holds:
            (self.folder / _HOLDS).touch()


class ShapingStore:
    """What one task of the batch from one offset to another starts from, and leaves behind."""

    def __init__(self, checkpoint: Path, begin: Offset, end: Offset, shards: tuple[int, ...] = ()) -> None:
        self._begin, self._end = LeftBehind(checkpoint, begin), LeftBehind(checkpoint, end)
        self._shards = shards

    @property
    def is_left_behind(self) -> bool:
        """Whether the batch before remembered something: under a deployment without shapes it is let go."""
        return self._begin.is_there

    def start(self, former: Plan) -> Shaping:
        """What was remembered at the beginning of the batch, when ``former`` was at work."""
        key = (self._begin.folder.parent, self._shards)
        known = _in_hand.get(key)
        if known is None or known.at != self._begin.folder:
            known = _in_hand[key] = _InHand(Shaping())
            self._restore(known.shaping, former)
        known.at = None
        return known.shaping

    def finish(self) -> None:
        """Write down what is remembered at the end of the batch."""
        key = (self._begin.folder.parent, self._shards)
        known = _in_hand[key]
        if known.shaping.is_empty:
            del _in_hand[key]
            return
        self._end.save(known.shaping, self._shards[0] if self._shards else 0)
        known.at = self._end.folder
        self._prune()

    def _restore(self, shaping: Shaping, former: Plan) -> None:
        mine = None
        if self._shards:
            shards = frozenset(self._shards)
            mine = lambda client: shard_of(client) in shards  # noqa: E731
        self._begin.restore(shaping, former, mine)

    def _prune(self) -> None:
        """Spark repeats at most the last batch."""
        parent = self._end.folder.parent
        kept = {self._begin.folder, self._end.folder}
        others = sorted((each for each in parent.iterdir() if each not in kept), key=_place, reverse=True)
        for old in others[_KEPT:]:
            shutil.rmtree(old, ignore_errors=True)


def _place(folder: Path) -> tuple[int, int]:
    seq, _, clock = folder.name.partition(".")
    return (int(seq), int(clock)) if seq.isdigit() and clock.isdigit() else (0, 0)
