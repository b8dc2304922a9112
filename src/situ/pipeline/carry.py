"""What passes from batch to batch: how far each client's events have come.

Written at the end of a batch under the position where it ended, read by the batch that begins there. So a repeated
batch starts from what its first run started from, and drops the same repeats. Before an interrupted batch is repeated,
what it got stored is added to what it starts from.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from situ.bus.names import shard_of
from situ.catalogue import CHECKPOINT_DAMAGED
from situ.errors import Location, SituError

_KEPT = 20
Highest = Mapping[str, tuple[int, int]]
"""Client → its incarnation and the highest sequence of it that was taken."""


@dataclass(frozen=True, slots=True)
class Carry:
    """How far each client is. An incarnation is only ever followed by a higher one, so the last is enough."""

    highest: Highest = field(default_factory=dict)
    stored: frozenset[str] = frozenset()
    """Ids of messages that the batch which begins here has stored before it was interrupted."""

    def advanced(self, seen: Iterable[Highest]) -> Carry:
        """The carry after a batch whose tasks have seen these."""
        highest = dict(self.highest)
        for each in seen:
            for client, reached in each.items():
                highest[client] = max(highest.get(client, reached), reached)
        return Carry(highest)

    def share(self, shards: Iterable[int]) -> Highest:
        """The part that concerns the clients of these shards."""
        wanted = set(shards)
        return {client: reached for client, reached in self.highest.items() if shard_of(client) in wanted}


class CarryStore:
    """The carries of one query, beside its checkpoint."""

    def __init__(self, checkpoint: Path) -> None:
        self._folder = checkpoint / "carry"

    def load(self, seq: int) -> Carry:
        """The carry of a batch that starts behind this message. A query that is new to the log has none."""
        file = self._file(seq)
        if seq == 0 and not file.exists():
            return Carry()
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
            highest = {client: (int(each[0]), int(each[1])) for client, each in content["highest"].items()}
            return Carry(highest, frozenset(map(str, content.get("stored", ()))))
        except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
            raise SituError(CHECKPOINT_DAMAGED(Location(file=str(file)), reason=str(error))) from None

    def save(self, seq: int, carry: Carry) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        file = self._file(seq)
        beside = file.with_suffix(f".{os.getpid()}")
        content = {"version": 1, "highest": carry.highest, "stored": sorted(carry.stored)}
        beside.write_text(json.dumps(content, separators=(",", ":")), encoding="utf-8")
        beside.replace(file)
        self._prune()

    def _prune(self) -> None:
        """Spark repeats at most the last batch; the few before serve whoever looks into what happened."""
        numbers = sorted(int(each.stem) for each in self._folder.glob("*.json") if each.stem.isdigit())
        for seq in numbers[:-_KEPT]:
            self._file(seq).unlink(missing_ok=True)

    def _file(self, seq: int) -> Path:
        return self._folder / f"{seq}.json"
