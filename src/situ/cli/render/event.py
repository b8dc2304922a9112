"""An explained subscription, and what became of an event, as text."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from situ.cli.output import visible
from situ.cli.render.dead_letters import show_letter
from situ.cli.render.layout import facts, section, some
from situ.cli.render.text import count
from situ.contexts.model import ROOT
from situ.event.message import PLACES
from situ.explain.event import EventExplanation
from situ.explain.subscription import SubscribedType, SubscriptionExplanation, SubscriptionMatch

_SHOWN_ENTRIES = 10


def show_subscription(explained: SubscriptionExplanation) -> Iterator[RenderableType]:
    kind = "durable" if explained.durable else "volatile"
    yield Text.assemble((explained.id, "bold"), (f" · {kind}", "dim"))
    yield Text()
    table = facts([("written", explained.where or "every event of these types")])
    if explained.context != ROOT:
        table.add_row("in terms of", f"{explained.context}: {some(explained.wanted, _SHOWN_ENTRIES)}")
    if explained.group:
        table.add_row("group", explained.group)
        table.add_row("shared with", some(explained.sharing, _SHOWN_ENTRIES) or "nobody")
    if (to := explained.kafka) is not None:
        key = f"key `{to.key}`" if to.key else "the key of the event as key"
        table.add_row("delivered to", f"topic {to.topic}, as {to.format}, {key}")
    if (real_time := explained.real_time) is not None:
        for place, one in enumerate(real_time.clients):
            was = "" if one.delivered == one.type else f", {one.type} in root"
            table.add_row("in real time" if place == 0 else "", f"{one.delivered} of {one.client}{was}: plain records")
        table.add_row("by its queue", "what is no plain record, and all that other clients publish")
        for other in real_time.queued:
            table.add_row("", f"{other.client or 'everything'}: {other.reason}")
    yield table
    for each in explained.types:
        yield Text()
        below = f" and {some(each.subtypes, _SHOWN_ENTRIES)}" if each.subtypes else ""
        yield Text.assemble(("On ", "bold"), (each.type, "bold"), (below, "dim"))
        yield _on_type(each)
    if any(each.scanned for each in explained.types):
        yield Text()
        yield Text.assemble(
            ("warning: ", "bold yellow"),
            "the filter has no part that the index can look up, so it is tested against every event of its type. A",
            " comparison of an attribute with a constant, joined by AND, would make it cheap.",
        )


def _on_type(each: SubscribedType) -> Table:
    table = facts([("  canonical", each.canonical)])
    for place, atoms in enumerate(each.alternatives):
        table.add_row("  asks for" if place == 0 else "  or", visible(" and ".join(atoms)) or "nothing more")
    everywhere = {each.type, *each.subtypes}
    for place, (words, names) in enumerate(each.found_by.items()):
        of = "" if set(names) == everywhere else f", by events of type {some(names, _SHOWN_ENTRIES)}"
        table.add_row("  found by" if place == 0 else "", Text(words + of, "yellow" if each.scanned else ""))
    if not each.found_by:
        table.add_row("  found by", "no event: none can match")
    if each.later:
        table.add_row("  then", f"the whole filter, which reads {each.later}")
    if each.others:
        table.add_row("  same filter", f"{each.others:,} other subscription{'s' if each.others > 1 else ''}")
    return table


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What became of an event.

_SHOWN = 20


def show_explained_event(explained: EventExplanation) -> Iterator[RenderableType]:
    if explained.dead_letter is not None:
        yield from show_letter(explained.dead_letter)
        return
    yield Text.assemble(("Event ", "bold"), (explained.key, "bold"))
    yield Text()
    if explained.position is None:
        yield Text(f"waits in {explained.stream}, message {explained.sequence:,}, for an engine to take it")
        return
    yield _envelope(explained, explained.position)
    yield Text()
    yield Text(f"Wanted by, in deployment {explained.deployment}", "bold")
    if not explained.matched:
        yield Text("  nobody")
    yield from _each(explained.matched, "green")
    if explained.hidden:
        yield from section("Wanted by, and not visible to", *_each(explained.hidden, ""))
    if explained.others:
        yield from section("Not wanted by", *_each(explained.others, ""))
    if explained.elsewhere:
        yield Text()
        yield Text(f"{count(explained.elsewhere, 'subscription')} to other types", "dim")


def _envelope(explained: EventExplanation, position: int) -> Table:
    return facts(
        (
            ("type", explained.type or ""),
            ("id", explained.id or ""),
            ("source", explained.source or ""),
            ("time", explained.time or ""),
            ("received", explained.received or ""),
            ("advertisement", explained.advertisement or "none"),
            ("position", f"{position} (message {position // PLACES}, place {position % PLACES})"),
            ("in the log", f"{explained.stream}, message {explained.sequence}, stored {explained.stored}"),
            ("data", explained.sent),
        )
    )


def _each(matches: tuple[SubscriptionMatch, ...], style: str) -> Iterator[Text]:
    for each in matches[:_SHOWN]:
        why = _reasons(each) if each.visible else "  situ explain visibility says why"
        yield Text.assemble("  ", (each.subscription, style), (why, "dim"))
    if len(matches) > _SHOWN:
        yield Text(f"  … {len(matches) - _SHOWN:,} more", "dim")


def _reasons(explained: SubscriptionMatch) -> str:
    """Why: what is true if it is wanted, what is not if it is not."""
    if not explained.parts:
        return "" if explained.matched else "  its own: a client is not sent what it sent"
    wrong = [part for part in explained.parts if (part.outcome == "true") == explained.matched]
    said = []
    for part in wrong or explained.parts:
        values = ", ".join(f"{name} = {value}" for name, value in part.values.items())
        said.append(f"`{part.text}` is {part.outcome}" + (f" ({values})" if values else ""))
    return "  " + visible(f" {(explained.joined or 'and').lower()} ".join(said))
