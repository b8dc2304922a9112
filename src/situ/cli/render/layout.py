"""The one look of what is laid out for people: tables, names with what is to say of each, titles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from situ.cli.output import visible


def table(*titles: str) -> Table:
    """No vertical lines, a rule under the titles."""
    made = Table(box=box.SIMPLE_HEAD, header_style="dim", pad_edge=False, show_edge=False)
    for title in titles:
        made.add_column(title, overflow="fold")
    return made


def facts(rows: Iterable[tuple[str, str | Text]] = ()) -> Table:
    """A name and what is to say of it on each line."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows:
        grid.add_row(name, visible(value) if isinstance(value, str) else value)
    return grid


def section(title: str, *content: RenderableType) -> Iterator[RenderableType]:
    """An empty line, the title, and what it is about."""
    yield Text()
    yield Text(title, "bold")
    yield from content


def some(names: Sequence[str], shown: int) -> str:
    """The first so many names, and how many more there are."""
    more = f" and {len(names) - shown:,} more" if len(names) > shown else ""
    return visible(", ".join(names[:shown]) + more)
