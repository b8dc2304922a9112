"""The CPU time that a process and all processes below it take, as a share of the cores they may use."""

from __future__ import annotations

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
        used = _cpu_time(self.process)
        if self._at:
            # Less than before is used when a process has ended meanwhile and took its time with it.
            self.share = min(max(used - self._used, 0.0) / ((now - self._at) * max(self.cores, 1)), 1.0)
        self._at, self._used = now, used
        return self.share


def _cpu_time(process: psutil.Process) -> float:
    total = 0.0
    try:
        every = [process, *process.children(recursive=True)]
    except psutil.Error:
        return 0.0
    for each in every:
        try:
            times = each.cpu_times()
        except psutil.Error:
            continue  # it has ended meanwhile
        total += times.user + times.system
    return total
