"""Going on at the edge where another engine was: what that left becomes cursor, filters and record of this one.

Everything is written before anybody reads it: whoever has this done says afterwards that the edge is at work, and does
it again if that was not reached.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from situ.edge.detect_checkpoint import RECENT, CheckpointRecord, DetectionCheckpoint
from situ.edge.dispatcher import shaping_text
from situ.event.message import PLACES
from situ.stages.takeover import EngineHandover

OWN = Path(".situ") / "edge"


def traces(folder: Path) -> Iterator[Path]:
    """Files that the edge writes again and again while it works in a folder."""
    own = folder / OWN
    yield own / "cursor.json"
    yield from (own / "detect").glob("*/*")


def begin_edge(folder: Path, left: EngineHandover) -> None:
    """Have the edge engine of this folder go on from there; what it kept itself is older and goes."""
    own = folder / OWN
    shutil.rmtree(own, ignore_errors=True)
    own.mkdir(parents=True)
    root = min([left.root, *_waits_at(left.waiting)])
    if left.shaping:
        (own / "shaping.json").write_bytes(shaping_text(left.root, left.shaping))
    if left.detection is not None:
        detection = left.detection
        reached = detection.reached
        DetectionCheckpoint(own / "detect").save(
            CheckpointRecord(
                reached=reached,
                recent=frozenset(range(max(reached + 1 - RECENT, 1), reached + 1)),
                version=detection.version,
                progress=detection.progress,
                states=detection.states,
            )
        )
    cursor = {"version": 1, "root": root, "dead": left.dead, "highest": left.highest}
    (own / "cursor.json").write_text(json.dumps(cursor), encoding="utf-8")


def _waits_at(waiting: Sequence[Any]) -> list[int]:
    """Of each delivery that waits, the message before the one it comes from: from there on all is delivered again, and
    what was delivered before is known by the keys of events."""
    return [pos // PLACES - 1 for _, kept in waiting for _, pos, *_ in kept]
