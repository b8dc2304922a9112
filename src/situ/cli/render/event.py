"""An explained subscription, and what became of an event, as text."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from situ.cli.output import visible
from situ.cli.render.dead_letters import show_letter
from situ.cli.render.text import count
from situ.contexts.model import ROOT
from situ.event.instants import print_instant
from situ.event.message import PLACES
from situ.event.row import Row
from situ.explain.event import EventExplanation
from situ.explain.subscription import SubscribedType, SubscriptionExplanation, SubscriptionMatch

_SHOWN_ENTRIES = 10


def show_subscription(explained: SubscriptionExplanation) -> Iterator[RenderableType]:
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


def _on_type(each: SubscribedType) -> Table:
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


def _and_below(each: SubscribedType) -> str:
    return f" and {_some(each.subtypes)}" if each.subtypes else ""


def _some(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _SHOWN_ENTRIES:,} more" if len(names) > _SHOWN_ENTRIES else ""
    return ", ".join(names[:_SHOWN_ENTRIES]) + more


def _grid() -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    return table


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What became of an event.

_SHOWN = 20


def show_explained_event(explained: EventExplanation) -> Iterator[RenderableType]:
    if explained.letter is not None:
        yield from show_letter(explained.letter)
        return
    yield Text.assemble(("Event ", "bold"), (explained.key, "bold"))
    yield Text()
    if explained.row is None:
        yield Text(f"waits in {explained.stream}, message {explained.seq:,}, for an engine to take it")
        return
    yield _envelope(explained, explained.row)
    yield Text()
    yield Text(f"Wanted by, in deployment {explained.version}", "bold")
    for each in explained.matched[:_SHOWN]:
        yield Text.assemble(("  ", ""), (each.subscription, "green"), (_reasons(each), "dim"))
    if not explained.matched:
        yield Text("  nobody")
    yield from _more(explained.matched)
    if explained.hidden:
        yield Text()
        yield Text("Wanted by, and not visible to", "bold")
        for each in explained.hidden[:_SHOWN]:
            yield Text.assemble("  ", each.subscription, ("  situ explain visibility says why", "dim"))
        yield from _more(explained.hidden)
    if explained.others:
        yield Text()
        yield Text("Not wanted by", "bold")
        for each in explained.others[:_SHOWN]:
            yield Text.assemble("  ", each.subscription, (_reasons(each), "dim"))
        yield from _more(explained.others)
    if explained.elsewhere:
        yield Text()
        yield Text(f"{count(explained.elsewhere, 'subscription')} to other types", "dim")


def _envelope(explained: EventExplanation, row: Row) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in (
        ("type", row.type),
        ("id", row.id),
        ("source", row.source),
        ("time", print_instant(row.time)),
        ("received", print_instant(row.recv)),
        ("advertisement", row.ad or "none"),
        ("position", f"{row.pos} (message {row.pos // PLACES}, place {row.pos % PLACES})"),
        ("in the log", f"{explained.stream}, message {explained.seq}, stored {print_instant(explained.at)}"),
        ("data", row.data.decode()),
    ):
        table.add_row(name, visible(value))
    return table


def _reasons(explained: SubscriptionMatch) -> str:
    """Why: what is true if it is wanted, what is not if it is not."""
    if not explained.parts:
        return "" if explained.matched else "  its own: a client is not sent what it sent"
    wrong = [part for part in explained.parts if (part.outcome == "true") == explained.matched]
    said = []
    for part in wrong or explained.parts:
        values = ", ".join(f"{name} = {value}" for name, value in part.values)
        said.append(f"`{part.text}` is {part.outcome}" + (f" ({values})" if values else ""))
    return "  " + visible(f" {explained.joined.lower() or 'and'} ".join(said))


def _more(all_: tuple[SubscriptionMatch, ...]) -> Iterator[Text]:
    if len(all_) > _SHOWN:
        yield Text(f"  … {len(all_) - _SHOWN:,} more", "dim")
