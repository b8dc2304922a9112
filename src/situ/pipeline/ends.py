"""Where in the root log the batches of the query of events end: detection takes whole ones.

The tasks of a batch write the log side by side, each at its own pace, so within a batch what came first need not be
first. If detection took a part of one, the clients of the faster task would move the watermark past what the slower one
has still to write; of a large batch that is far more than any lateness that is granted.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path

_KEPT = 1000


class Ends:
    """The last ends, in a file beside the checkpoint of the query of events."""

    def __init__(self, checkpoint: Path) -> None:
        self._file = checkpoint / "ends.json"

    def load(self) -> tuple[int, ...] | None:
        """In order; None if nobody ever said where a batch ended."""
        try:
            return tuple(int(each) for each in json.loads(self._file.read_text(encoding="utf-8"))["ends"])
        except (OSError, ValueError, KeyError, TypeError):
            return None  # it serves the order of work, and is made again

    def add(self, last: int) -> None:
        """A batch is done, and this message of the root log is the last there is."""
        before = [each for each in self.load() or () if each < last]  # what is beyond was in another log
        self._file.parent.mkdir(parents=True, exist_ok=True)
        beside = self._file.with_suffix(".new")
        beside.write_text(json.dumps({"version": 1, "ends": [*before, last][-_KEPT:]}), encoding="utf-8")
        beside.replace(self._file)


def whole(ends: Sequence[int] | None, behind: int, most: int, last: int) -> int:
    """Where a batch of detection ends that begins ``behind`` a message: behind as many whole batches of events as fit.

    It is to have ``most`` messages, but one batch of events at least, if there is one; the log ends at ``last``.
    """
    if ends is None:
        return min(last, behind + most)
    known = [each for each in ends if behind < each <= last]
    fitting = bisect_right(known, behind + most)
    return known[max(fitting - 1, 0)] if known else behind
