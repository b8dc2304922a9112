"""Into how many parts batches are cut, and the states of policies are divided: what is wanted, and by whom.

The driver says in a file beside the checkpoint what it wants from the next batch on. Spark's source, which is another
process, reads it when it chooses where a batch ends, and puts it into the offset. From then on only the offset counts:
a batch that is repeated has the sizes of its first run, whatever is wanted by now.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from situ.lang.json_form import StoredForm
from situ.storage.state_folder import StateFolder

_FILE = "sizes.json"
_FRESH = 1.0
"""Seconds for which the source believes what it has read: on an object store each look is a request."""
MOST_BUCKETS = 1024


class WantedSizes(StoredForm, frozen=True, kw_only=True):
    """Sizes that batches are to have from now on; 0 leaves one as it is."""

    buckets: int = 0
    partitions: int = 0


class SizeStore:
    """What is wanted of the batches of one query."""

    def __init__(self, checkpoint: StateFolder, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder, self._clock = checkpoint, clock
        self._known, self._read = WantedSizes(), -_FRESH

    def load(self) -> WantedSizes:
        """As of about now. A file that cannot be read wants nothing: it serves the pace of work, not its result."""
        now = self._clock()
        if now - self._read >= _FRESH:
            self._read = now
            try:
                text = self._folder.read(_FILE)
                self._known = WantedSizes() if text is None else WantedSizes.from_json(json.loads(text))
            except (OSError, ValueError):
                self._known = WantedSizes()
        return self._known

    def save(self, wanted: WantedSizes) -> None:
        if wanted != self._known or self._read < 0:
            self._folder.write(_FILE, json.dumps(wanted.as_json()).encode())
            self._known, self._read = wanted, self._clock()


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Hysteresis. A number follows another one, but not at once: executors come one after the other, go when they are
# killed and are replaced a moment later, and to divide states anew takes a batch that is longer than others.


@dataclass(slots=True)
class Steady:
    """Tells since when without a break something is so."""

    since: float | None = None

    def lasts(self, so: bool, now: float, seconds: float) -> bool:
        """Whether it has been so for this long."""
        if not so:
            self.since = None
            return False
        if self.since is None:
            self.since = now
        return now - self.since >= seconds


_MORE_AFTER, _FEWER_AFTER = 10.0, 60.0


@dataclass(slots=True)
class BucketCount:
    """How many buckets there are to be: as many as the setting says, or as many as there are cores.

    More, when there have been more cores than buckets for ten seconds; fewer, when half of the buckets would have been
    enough for a minute. Between the two a core has two buckets at most, which costs little.
    """

    _more: Steady = field(default_factory=Steady)
    _fewer: Steady = field(default_factory=Steady)

    def wanted(self, setting: int, cores: int, buckets: int, now: float) -> int:
        """``setting`` 0: by the cores. ``buckets`` are there now."""
        cores = min(cores, MOST_BUCKETS)
        more = self._more.lasts(not setting and cores > buckets, now, _MORE_AFTER)
        fewer = self._fewer.lasts(not setting and 2 * cores <= buckets, now, _FEWER_AFTER)
        if setting:
            return setting
        return cores if more or fewer else buckets
