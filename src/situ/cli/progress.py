"""What a command takes: a progress bar where a person is watching and it takes long, and the time it took so far."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

Advance = Callable[[str, int, int], None]
"""Called with what is at hand and how many of how many have been done."""

_PATIENCE = 0.5  # seconds; what is done by then needs no bar


@contextmanager
def progress(title: str, *, shown: bool) -> Iterator[Advance | None]:
    """A function to report progress to; None where nobody would see it. The bar is gone at the end."""
    if not shown:
        yield None
        return
    bar = _Bar(title)
    try:
        yield bar.advance
    finally:
        bar.close()


def seconds_since_start() -> float:
    """What whoever started this process has waited, which is more than what the command did once it was loaded."""
    try:
        # Behind the name of the program, which may hold blanks and brackets; ticks since the system started.
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        return time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError):  # another system than Linux
        import psutil

        return max(time.time() - psutil.Process().create_time(), 0.0)


class _Bar:
    """Drawn by a timer, for the slow part may be one that reports nothing: then the bar only shows that it goes on."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._lock = threading.Lock()
        self._state: tuple[str, int, int | None] = ("", 0, None)
        self._drawn: Progress | None = None
        self._closed = False
        self._timer = threading.Timer(_PATIENCE, self._draw)
        self._timer.daemon = True
        self._timer.start()

    def advance(self, what: str, done: int, total: int) -> None:
        with self._lock:
            self._state = (what, done, total) if done < total else ("", 0, None)
            self._update()

    def close(self) -> None:
        self._timer.cancel()
        with self._lock:
            self._closed = True
            if self._drawn is not None:
                self._drawn.stop()

    def _draw(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        with self._lock:
            if self._closed:
                return
            self._drawn = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[what]}", style="dim", markup=False),
                console=Console(stderr=True),
                transient=True,
            )
            self._drawn.add_task(self._title, total=None, what="")
            self._drawn.start()
            self._update()

    def _update(self) -> None:
        if self._drawn is not None:
            what, done, total = self._state
            self._drawn.update(self._drawn.task_ids[0], completed=done, total=total, what=what)
