"""An explained context for people."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from situ.cli.explained_context import ContextExplained, Declared, DirectionExplained, EventExplained
from situ.cli.output import visible
from situ.cli.show_types import table

_SHOWN = 20
_WAYS = {"out": "Out, from root", "in": "In, to root"}
_STYLES = {"mapped": "green", "converted": "green", "passes": "", "not available": "yellow"}


def show_context(explained: ContextExplained) -> Iterator[RenderableType]:
    """Where it stands, what it has, then each direction."""
    way = " → ".join(explained.chain[1:])
    yield Text.assemble((explained.name, "bold"), (f" · extends {way}" if way else " · extends nothing", "dim"))
    yield Text()
    yield _facts(explained)
    if explained.functions:
        yield from _section("Functions")
        yield _declared("function", explained.functions)
    for each in explained.directions:
        yield from _section(_WAYS[each.direction])
        yield from _direction(each)


def _facts(explained: ContextExplained) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row("extended by", _some(explained.children) or "none")
    grid.add_row("clients", _some(explained.clients) or "none")
    grid.add_row("advertisements", _some(explained.advertisements) or "none")
    grid.add_row("subscriptions", _some(explained.subscriptions) or "none")
    own = tuple(f"{name} (hides another)" if name in explained.hidden else name for name in explained.types)
    grid.add_row("own types", _some(own) or "none")
    grid.add_row("inherited types", _some(explained.inherited) or "none")
    if explained.derive:
        grid.add_row("derive", "event types that rules change get a type of their own name")
    return grid


def _direction(each: DirectionExplained) -> Iterator[RenderableType]:
    if each.mappings:
        yield _declared("mapping", each.mappings)
        yield Text()
    if each.rules:
        yield _declared("rule", each.rules)
        yield Text()
    made = table("event type", "becomes", "")
    for event in each.events:
        made.add_row(event.type, *_becomes(event))
    yield made


def _becomes(event: EventExplained) -> tuple[str, Text]:
    text = Text(event.kind, _STYLES[event.kind])
    if event.reason:
        text.append(f": {visible(event.reason)}", "dim")
    return event.target or "–", text


def _declared(what: str, each: tuple[Declared, ...]) -> Table:
    made = table(what, "of", "from", "")
    for one in each:
        overrides = f"in place of that of {', '.join(one.overrides)}" if one.overrides else ""
        made.add_row(visible(one.text), one.context, visible(one.place) or "–", Text(overrides, "dim"))
    return made


def _section(title: str) -> Iterator[RenderableType]:
    yield Text()
    yield Text(title, "bold")


def _some(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return visible(", ".join(names[:_SHOWN]) + more)
