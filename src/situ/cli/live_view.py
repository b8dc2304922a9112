"""What ``situ run`` shows while it runs: a picture on a terminal, lines elsewhere, JSON for programs.

The picture is drawn over and over in place; notes that come meanwhile stand in it. Where nobody watches, a line every
few seconds keeps a log short.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from situ.cli.output import visible

if TYPE_CHECKING:
    from situ.cli.output import Output
    from situ.host.figures import Figures

EVERY = 0.5
"""Seconds between two looks."""

_LINE_EVERY = 2.0
_NOTES = 3
_FRAME = 15  # lines of the picture that are not names
_SPAN = 4.0  # seconds between the looks that rates of names are taken from


class View(Protocol):
    """Takes what a run says about itself."""

    def update(self, figures: Figures) -> None: ...

    def note(self, text: str) -> None: ...

    def end(self, figures: Figures) -> None:
        """The last look."""


@contextmanager
def live_view(output: Output, project: str) -> Iterator[View]:
    """The view that fits where the output goes. What is logged meanwhile is noted in it."""
    view: Picture | Lines | Silence
    if output.quiet and not output.json:
        view = Silence()
    elif output.answers_terminal:
        view = Picture(project)
    else:
        view = Lines(output, project)
    handler = _Notes(view)
    logger = logging.getLogger("situ")
    logger.addHandler(handler)
    try:
        with view:
            yield view
    finally:
        logger.removeHandler(handler)


class Silence:
    """For ``--quiet``."""

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...

    def update(self, figures: Figures) -> None: ...

    def note(self, text: str) -> None: ...

    def end(self, figures: Figures) -> None: ...


class Lines:
    """A line for each look: text every few seconds, or every look as JSON."""

    def __init__(self, output: Output, project: str) -> None:
        self._output = output
        self._project = project
        self._shown = float("-inf")
        self._running = False

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...

    def update(self, figures: Figures) -> None:
        if not self._output.json and not self._is_up(figures):
            return
        now = time.monotonic()
        every = 1.0 if self._output.json else _LINE_EVERY
        if now - self._shown < every - EVERY / 2:
            return
        self._shown = now
        if self._output.json:
            self._output.line(figures.as_json())
        else:
            from situ.cli.show_figures import show_line

            self._output.say(show_line(figures))

    def end(self, figures: Figures) -> None:
        if self._output.json:
            self._output.line(figures.as_json())

    def _is_up(self, figures: Figures) -> bool:
        """Whether the engine works; says so when it begins to."""
        if figures.version and not self._running:
            self._running = True
            self._shown = time.monotonic()
            self._output.say(f"{self._project} runs with the {figures.engine} engine. Ctrl-C stops it.")
        return self._running

    def note(self, text: str) -> None:
        self._output.note(text)


class Picture:
    """Drawn in place."""

    def __init__(self, project: str) -> None:
        from rich.console import Console
        from rich.live import Live

        self._project = project
        self._notes: deque[str] = deque(maxlen=_NOTES)
        self._looks: deque[Figures] = deque()
        console = Console(markup=False, highlight=False, emoji=False)
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> None:
        self._live.start()

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def update(self, figures: Figures) -> None:
        from situ.cli.show_figures import show_live

        looks = self._looks
        looks.append(figures)
        while len(looks) > 2 and figures.at - looks[0].at > _SPAN * 1e6:
            looks.popleft()
        before = looks[0] if len(looks) > 1 else None
        rows = max(shutil.get_terminal_size().lines - _FRAME - len(self._notes), 3)
        self._live.update(show_live(self._project, figures, before, tuple(self._notes), rows), refresh=True)

    def end(self, figures: Figures) -> None:
        self.update(figures)

    def note(self, text: str) -> None:
        self._notes.append(f"{time.strftime('%H:%M:%S')} {visible(text)}")


class _Notes(logging.Handler):
    """Brings what is logged to the view, as far as it matters to whoever watches."""

    def __init__(self, view: View) -> None:
        super().__init__(logging.WARNING)
        self._view = view

    def emit(self, record: logging.LogRecord) -> None:
        self._view.note(record.getMessage())
