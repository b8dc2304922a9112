"""What became of an event, for people."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from situ.cli.explained_event import EventExplained
from situ.cli.output import visible
from situ.cli.show_letters import show_letter
from situ.cli.show_problems import count
from situ.event.instants import print_instant
from situ.event.message import PLACES
from situ.event.row import Row
from situ.subscription.explain import Explained

_SHOWN = 20


def show_explained_event(explained: EventExplained) -> Iterator[RenderableType]:
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


def _envelope(explained: EventExplained, row: Row) -> Table:
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


def _reasons(explained: Explained) -> str:
    """Why: what is true if it is wanted, what is not if it is not."""
    if not explained.parts:
        return "" if explained.matched else "  its own: a client is not sent what it sent"
    wrong = [part for part in explained.parts if (part.outcome == "true") == explained.matched]
    said = []
    for part in wrong or explained.parts:
        values = ", ".join(f"{name} = {value}" for name, value in part.values)
        said.append(f"`{part.text}` is {part.outcome}" + (f" ({values})" if values else ""))
    return "  " + visible(f" {explained.joined.lower() or 'and'} ".join(said))


def _more(all_: tuple[Explained, ...]) -> Iterator[Text]:
    if len(all_) > _SHOWN:
        yield Text(f"  … {len(all_) - _SHOWN:,} more", "dim")
