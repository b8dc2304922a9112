"""The metrics of a run as text, and the live view of ``situ run``.

`show_live`, `show_line` and `show_summary` lay out one look at a run; `live_view` gives the view that shows them as
they come: drawn in place on a terminal, lines elsewhere, JSON for programs.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from rich.console import Group
from rich.table import Table
from rich.text import Text

from situ.cli.output import visible
from situ.cli.render.text import count

if TYPE_CHECKING:
    from rich.console import RenderableType

    from situ.cli.output import Output
    from situ.registry.run_metrics import RunMetrics


_Counts = list[tuple[str, int]]
_UNITS = (("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024))
_STATES = {"running": "green", "waiting for the bus": "yellow"}


def show_live(project: str, figures: RunMetrics, before: RunMetrics | None, notes: Iterable[str], rows: int) -> Group:
    """What flows now. ``before`` is an earlier look, for the rates of names; ``rows`` is how many names have room."""
    head = Text.assemble(
        (project, "bold"),
        f" · {figures.engine} · ",
        (figures.state, _STATES.get(figures.state, "yellow")),
        f" {clock(figures.seconds)}",
        (f" · deployment {figures.version}" if figures.version else "", ""),
    )
    parts: list[RenderableType] = [head, Text(), _sums(figures), Text(), _names(figures, before, rows)]
    said = [Text(note, style="yellow", no_wrap=True, overflow="ellipsis") for note in notes]
    if said:
        parts += [Text(), *said]
    parts += [Text(), Text("Ctrl-C stops it.", style="dim")]
    return Group(*parts)


def show_line(figures: RunMetrics) -> str:
    """One look at a run in one line, for a log."""
    parts = [
        f"{clock(figures.seconds)} {figures.state}",
        f"in {figures.taken_rate:,.0f}/s ({figures.taken:,})",
        f"out {figures.delivered_rate:,.0f}/s ({figures.delivered:,})",
        f"waiting {figures.waiting:,}",
        f"dead letters {figures.dead:,}",
        f"memory {size(sum(figures.memory.values()))}",
        f"deployment {figures.version}",
    ]
    if figures.situations:
        parts.insert(3, f"situations {figures.situations.opened:,} ({figures.situations.open:,} open)")
    return " · ".join(parts)


def show_summary(figures: RunMetrics) -> Iterator[RenderableType]:
    """What a run did, at its end."""
    if figures.types or figures.subscriptions or figures.codes or figures.situations.opened:
        table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
        table.add_column("")
        table.add_column("")
        table.add_column("events", justify="right")
        for title, counts in (
            ("accepted", accepted(figures)),
            ("delivered", delivered(figures)),
            ("converted for", _sorted(figures.converted)),
            ("dead letters", _sorted(figures.codes)),
            ("situations of", _situations(figures)),
        ):
            for place, (name, number) in enumerate(counts):
                table.add_row(title if place == 0 else "", name, f"{number:,}")
        yield table
        yield Text()
    seconds = f"{figures.seconds:.1f} s"
    text = Text(f"{count(figures.taken, 'event')} accepted, {figures.delivered:,} delivered, ")
    text.append(count(figures.dead, "dead letter"), "bold red" if figures.dead else "")
    situations = figures.situations
    if situations:
        text.append(f" · {count(situations.opened, 'situation')} of {count(situations.running, 'policy')}")
        text.append(f", {count(situations.late, 'event')} too late" if situations.late else "", "yellow")
    text.append(f" · {seconds}", "dim")
    yield text


def clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes:02d}:{rest:02d}"


def size(number: float) -> str:
    """A size as people read it."""
    for name, unit in _UNITS:
        if number >= unit:
            scaled = number / unit
            return f"{scaled:.1f} {name}" if scaled < 10 else f"{scaled:.0f} {name}"
    return f"{number:.0f} B"


def _sums(figures: RunMetrics) -> Table:
    table = Table.grid(padding=(0, 2))
    for justify in ("left", "right", "right", "left"):
        table.add_column(justify=justify)
    waiting = f"{count(figures.waiting, 'message')} waiting"
    waiting += f", batch {figures.batch:.2f} s" if figures.batch else ""
    table.add_row("accepted", f"{figures.taken_rate:,.0f}/s", f"{figures.taken:,}", waiting)
    table.add_row("delivered", f"{figures.delivered_rate:,.0f}/s", f"{figures.delivered:,}", _clients(figures))
    codes = ", ".join(f"{code} {number:,}" for code, number in _sorted(figures.codes)[:6])
    table.add_row("dead letters", "", Text(f"{figures.dead:,}", "bold red" if figures.dead else ""), codes)
    situations = figures.situations
    if situations:
        said = f"{situations.open:,} open, {count(situations.running, 'policy')}"
        said += f", {situations.stopped:,} stopped" if situations.stopped else ""
        said += f", {count(situations.late, 'event')} too late" if situations.late else ""
        table.add_row("situations", "", f"{situations.opened:,}", said)
    parts = " · ".join(f"{name} {size(number)}" for name, number in figures.memory.items())
    table.add_row("memory", "", size(sum(figures.memory.values())), parts)
    return table


def _clients(figures: RunMetrics) -> str:
    return f"{count(figures.clients, 'client')} connected"


def _names(figures: RunMetrics, before: RunMetrics | None, rows: int) -> Table:
    """Types and subscriptions side by side, the busiest first."""
    seconds = (figures.at - before.at) / 1e6 if before is not None else 0.0
    left = _rated(accepted(figures), accepted(before) if before else [], seconds)
    right = _rated(delivered(figures), delivered(before) if before else [], seconds)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("type", "subscription"):
        table.add_column(title, no_wrap=True, overflow="ellipsis")
        table.add_column("events", justify="right")
        table.add_column("/s", justify="right")
    nothing = ("", "", "")
    for place in range(min(max(len(left), len(right)), rows)):
        one = left[place] if place < len(left) else nothing
        other = right[place] if place < len(right) else nothing
        table.add_row(*one, *other)
    hidden = max(len(left), len(right)) - rows
    if hidden > 0:
        table.add_row(Text(f"… {hidden:,} more", "dim"))
    return table


def _rated(counts: _Counts, before: _Counts, seconds: float) -> list[tuple[str, str, str]]:
    earlier = dict(before)
    return [
        (name, f"{number:,}", f"{(number - earlier.get(name, 0)) / seconds:,.0f}" if seconds > 0 else "")
        for name, number in counts
    ]


def accepted(figures: RunMetrics) -> _Counts:
    """Events by type, the most frequent first, and which of them came in whose terms."""
    found: _Counts = []
    for type, number in _sorted(figures.types):
        origins = {key: count for key, count in figures.origins.items() if key.startswith(f"{type} ")}
        found.append((type, number))
        found += [(f"{type} from {key.removeprefix(f'{type} ')}", count) for key, count in _sorted(origins)]
    return found


def delivered(figures: RunMetrics) -> _Counts:
    """Events by subscription, and in whose terms they are delivered if not in root's."""
    terms = figures.terms
    found: _Counts = []
    for name, number in _sorted({**dict.fromkeys(_shaped(figures), 0), **figures.subscriptions}):
        found.append((f"{name} in {terms[name]}" if name in terms else name, number))
        own = {key: count for key, count in figures.dropped.items() if key.startswith(f"{name} ")}
        found += [(f"{name} dropped for {key.removeprefix(f'{name} ')}", count) for key, count in _sorted(own)]
    return found


def _shaped(figures: RunMetrics) -> list[str]:
    """Subscriptions of which something was dropped."""
    return [key.partition(" ")[0] for key in figures.dropped]


def _situations(figures: RunMetrics) -> _Counts:
    return _sorted({name: each.opened for name, each in figures.situations.policies.items() if each.opened})


def _sorted(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Views. On a terminal the picture is drawn over and over in place; notes that come meanwhile stand in it. Where nobody
# watches, a line every ten seconds keeps a log short.

EVERY = 0.5
"""Seconds between two looks."""

_LINE_EVERY = 10.0
_NOTES = 3
_FRAME = 15  # lines of the picture that are not names
_SPAN = 4.0  # seconds between the looks that rates of names are taken from


class RunView(Protocol):
    """Takes what a run says about itself."""

    def update(self, figures: RunMetrics) -> None: ...

    def note(self, text: str) -> None: ...

    def end(self, figures: RunMetrics) -> None:
        """The last look."""


@contextmanager
def live_view(output: Output, project: str) -> Iterator[RunView]:
    """The view that fits where the output goes. What is logged meanwhile is noted in it."""
    view: TerminalView | LineView | SilentView
    if output.quiet and not output.json:
        view = SilentView()
    elif output.answers_terminal:
        view = TerminalView(project)
    else:
        view = LineView(output, project)
    handler = _Notes(view)
    logger = logging.getLogger("situ")
    logger.addHandler(handler)
    try:
        with view:
            yield view
    finally:
        logger.removeHandler(handler)


class SilentView:
    """For ``--quiet``."""

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...

    def update(self, figures: RunMetrics) -> None: ...

    def note(self, text: str) -> None: ...

    def end(self, figures: RunMetrics) -> None: ...


class LineView:
    """A line of text every ten seconds, or a line of JSON every second."""

    def __init__(self, output: Output, project: str) -> None:
        self._output = output
        self._project = project
        self._shown = float("-inf")
        self._running = False

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...

    def update(self, figures: RunMetrics) -> None:
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
            self._output.say(show_line(figures))

    def end(self, figures: RunMetrics) -> None:
        if self._output.json:
            self._output.line(figures.as_json())

    def _is_up(self, figures: RunMetrics) -> bool:
        """Whether the engine works; says so when it begins to."""
        if figures.version and not self._running:
            self._running = True
            self._shown = time.monotonic()
            self._output.say(f"{self._project} runs with the {figures.engine} engine. Ctrl-C stops it.")
        return self._running

    def note(self, text: str) -> None:
        self._output.note(text)


class TerminalView:
    """Drawn in place."""

    def __init__(self, project: str) -> None:
        from rich.console import Console
        from rich.live import Live

        self._project = project
        self._notes: deque[str] = deque(maxlen=_NOTES)
        self._looks: deque[RunMetrics] = deque()
        console = Console(markup=False, highlight=False, emoji=False)
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> None:
        self._live.start()

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def update(self, figures: RunMetrics) -> None:

        looks = self._looks
        looks.append(figures)
        while len(looks) > 2 and figures.at - looks[0].at > _SPAN * 1e6:
            looks.popleft()
        before = looks[0] if len(looks) > 1 else None
        rows = max(shutil.get_terminal_size().lines - _FRAME - len(self._notes), 3)
        self._live.update(show_live(self._project, figures, before, tuple(self._notes), rows), refresh=True)

    def end(self, figures: RunMetrics) -> None:
        self.update(figures)

    def note(self, text: str) -> None:
        self._notes.append(f"{time.strftime('%H:%M:%S')} {visible(text)}")


class _Notes(logging.Handler):
    """Brings what is logged to the view, as far as it matters to whoever watches."""

    def __init__(self, view: RunView) -> None:
        super().__init__(logging.WARNING)
        self._view = view

    def emit(self, record: logging.LogRecord) -> None:
        self._view.note(record.getMessage())
