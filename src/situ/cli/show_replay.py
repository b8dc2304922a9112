"""What a replay found, for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text


def show_replay(counts: Mapping[str, int]) -> Iterator[RenderableType]:
    if not counts:
        yield Text("No event in this time is for any of the subscriptions.")
        return
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    table.add_column("subscription", no_wrap=True)
    table.add_column("events", justify="right")
    for name, number in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        table.add_row(name, f"{number:,}")
    yield table
    yield Text()
    yield Text(f"{sum(counts.values()):,} would be delivered")
