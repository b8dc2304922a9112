"""A progress bar for what turns out to take long, where a person is watching."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
