"""The CPU time that a process and all processes below it take, in seconds and as a share of the cores they may use."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import psutil

_FRESH = 1.0
"""Seconds for which a look counts: to go through all processes takes milliseconds."""


@dataclass(slots=True)
class CpuClock:
    """The CPU time of a process and all below it, as the share of some cores since the last look."""

    process: psutil.Process
    cores: int
    _at: float = 0.0
    _used: float = 0.0
    share: float = 0.0

    def look(self, now: float, fresh: float = _FRESH) -> float:
        """The share over the time since the last look, which is as long as ``fresh`` at least."""
        if self._at and now - self._at < fresh:
            return self.share
        used = cpu_seconds(self.process)
        if self._at:
            # Less than before is used when a process has ended meanwhile and took its time with it.
            self.share = min(max(used - self._used, 0.0) / ((now - self._at) * max(self.cores, 1)), 1.0)
        self._at, self._used = now, used
        return self.share


def cpu_seconds(process: psutil.Process, leave_out: str = "") -> float:
    """What a process and all below it have used so far, those included that ended and were waited for.

    Processes that are called ``leave_out`` do not count.
    """
    total = 0.0
    try:
        every = [process, *process.children(recursive=True)]
    except psutil.Error:
        return 0.0
    for each in every:
        with suppress(psutil.Error):  # it has ended meanwhile
            if not leave_out or each.name() != leave_out:
                times = each.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
    return total
