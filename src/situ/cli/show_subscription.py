"""An explained subscription for people."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from situ.cli.explained_subscription import OnType, SubscriptionExplained
from situ.cli.output import visible
from situ.interpretation.model import ROOT

_SHOWN = 10


def show_subscription(explained: SubscriptionExplained) -> Iterator[RenderableType]:
    kind = "durable" if explained.durable else "volatile"
    yield Text.assemble((explained.id, "bold"), (f" · {kind}", "dim"))
    yield Text()
    table = _grid()
    table.add_row("written", visible(explained.where) or "every event of these types")
    if explained.context != ROOT:
        table.add_row("in terms of", f"{explained.context}: {_some(explained.wanted)}")
    if explained.group:
        table.add_row("group", explained.group)
        table.add_row("shared with", _some(explained.sharing) or "nobody")
    yield table
    for each in explained.types:
        yield Text()
        yield Text.assemble(("On ", "bold"), (each.type, "bold"), (_and_below(each), "dim"))
        yield _on_type(each)
    if explained.scanned:
        yield Text()
        yield Text.assemble(
            ("warning: ", "bold yellow"),
            "the filter has no part that the index can look up, so it is tested against every event of its type. A",
            " comparison of an attribute with a constant, joined by AND, would make it cheap.",
        )


def _on_type(each: OnType) -> Table:
    table = _grid()
    table.add_row("  canonical", visible(each.canonical))
    for place, atoms in enumerate(each.alternatives):
        table.add_row("  asks for" if place == 0 else "  or", visible(" and ".join(atoms)) or "nothing more")
    everywhere = (each.type, *each.subtypes)
    for place, (words, names) in enumerate(each.filed):
        of = "" if set(names) == set(everywhere) else f", by events of type {_some(names)}"
        table.add_row("  found by" if place == 0 else "", Text(words + of, "yellow" if each.scanned else ""))
    if not each.filed:
        table.add_row("  found by", "no event: none can match")
    if each.later:
        table.add_row("  then", f"the whole filter, which reads {each.later}")
    if each.others:
        table.add_row("  same filter", f"{each.others:,} other subscription{'s' if each.others > 1 else ''}")
    return table


def _and_below(each: OnType) -> str:
    return f" and {_some(each.subtypes)}" if each.subtypes else ""


def _some(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _grid() -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    return table
