"""Late events for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from situ.cli.output import visible
from situ.cli.show_figures import clock
from situ.cli.show_problems import count
from situ.event.instants import print_instant

if TYPE_CHECKING:
    from rich.console import RenderableType

    from situ.cli.late_events import Late

_LONG = 60
"""From so many seconds on they are told as on a clock."""


def show_late(events: Sequence[Late]) -> Iterator[RenderableType]:
    if not events:
        yield Text("No event came too late.")
        return
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for title in ("time", "came", "type", "source", "too late for"):
        table.add_column(title, no_wrap=title != "too late for")
    for each in events:
        table.add_row(
            Text(print_instant(each.row.time), "dim"),
            _later(max(each.row.recv - each.row.time, 0)),
            each.row.type,
            visible(each.row.source),
            ", ".join(each.policies),
        )
    yield table
    yield Text()
    yield Text(count(len(events), "late event"))


def _later(microseconds: int) -> str:
    seconds = microseconds / 1e6
    return f"{clock(seconds) if seconds >= _LONG else f'{seconds:.2f} s'} later"
