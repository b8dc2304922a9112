"""Situations as text: those that were detected, and what a replay of subscriptions or policies found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from situ.cli.output import visible
from situ.cli.render.status import failed_text, unknown_text
from situ.cli.render.text import count
from situ.event.instants import print_instant

if TYPE_CHECKING:
    from situ.app.history import HistoryOutcome
    from situ.app.replay import PolicyInput, ReplayedSituation
    from situ.cli.commands.replay import ReplayedDetections
    from situ.explain.situations import SituationRecord


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Detected situations: a line and a sentence each.


def show_situation_list(situations: Sequence[SituationRecord]) -> Iterator[RenderableType]:
    if not situations:
        yield Text("No situation was detected.")
        return
    for each in situations:
        yield _headline(each)
        yield Text(f"  {visible(each.text)}")
    yield Text()
    yield Text(count(len(situations), "situation"))


def _headline(each: SituationRecord) -> Text:
    bindings = ", ".join(f"{alias} = {identity}" for alias, identity in each.bindings.items())
    text = Text.assemble((each.start, "dim"), "  ", (each.policy, "bold"), f"  {visible(bindings)}")
    text.append(f"  {count(each.detections, 'detection')}")
    if not each.end:
        return text.append("  open", "yellow")
    return text.append(f"  closed {each.end}{f', {each.reason}' if each.reason else ''}", "dim")


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What a replay of subscriptions found.


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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What policies would have detected.

_LONGEST = 200  # characters of an event's data


def show_replayed(found: ReplayedDetections, *, verbose: bool, summary: bool) -> Iterator[RenderableType]:
    for each in found.outcome.situations:
        yield _replayed_headline(each)
        yield Text(f"  {visible(found.sentence(each))}")
        if verbose:
            yield from _causes(each, found)
    if summary:
        if found.outcome.situations:
            yield Text()
        yield from _summary(found)


def _replayed_headline(each: ReplayedSituation) -> Text:
    bindings = ", ".join(f"{alias} = {identity}" for alias, identity in each.bindings)
    text = Text.assemble((print_instant(each.start), "dim"), "  ", (each.policy, "bold"), f"  {visible(bindings)}")
    text.append(f"  {count(each.detections, 'detection')}")
    return text.append("  still open" if each.end is None else f"  closed {print_instant(each.end)}", "dim")


def _causes(each: ReplayedSituation, found: ReplayedDetections) -> Iterator[Text]:
    positions = each.positions or (0,) * len(each.causes)
    for cause, pos in zip(each.causes, positions, strict=True):
        row = found.causes.get(pos)
        said = f"    because of {cause.id} from {cause.source}"
        if row is not None:
            said += f": {row.type} at {print_instant(row.time)} {row.data.decode()[:_LONGEST]}"
        yield Text(visible(said))


def _blind(name: str, looked: PolicyInput) -> str:
    """That nothing was detected says nothing about a policy that had nothing to look at."""
    sources = f"push source{'s' if len(looked.sources) != 1 else ''} {', '.join(looked.sources)}"
    if not looked.sources:
        return f"{name} could detect nothing: no push source tells what it asks for."
    if not looked.hidden:
        return f"{name} had nothing to look at: in this time the log has no event of its {sources}."
    return (
        f"{name} could see nothing: {count(looked.hidden, 'event')} of its {sources}, none visible to it. "
        "scopes.yaml says what is visible to a policy: `policies`, `clients` and the scopes themselves."
    )


def _history(history: HistoryOutcome, table: str) -> Iterator[Text]:
    yield Text(f"{count(history.events, 'event')} read in {history.seconds:.1f} s")
    if table:
        yield Text(f"{count(history.situations, 'situation')} written to {visible(table)}")
    if history.dead:
        codes = ", ".join(f"{code} {number:,}" for code, number in sorted(history.dead.items()))
        yield Text(f"{count(sum(history.dead.values()), 'row')} left out, no events: {codes}", "yellow")
        for each in history.samples:
            where = f"{each.file}, row {each.row:,}" if each.row else each.file
            yield Text(visible(f"  {where}: {each.code} {each.message}"), "yellow")


def _summary(found: ReplayedDetections) -> Iterator[Text]:
    situations, tally = found.outcome.situations, found.outcome.tally
    if found.history is not None:
        yield from _history(found.history, found.table)
    events = max((each.seen for each in found.outcome.looked.values()), default=0)
    blind = {name: each for name, each in sorted(found.outcome.looked.items()) if not each.seen}
    if situations:
        yield Text(
            f"{count(len(situations), 'situation')} would have been detected · {count(events, 'event')} looked at"
        )
    elif len(blind) < len(found.outcome.looked) and not (found.history is not None and found.history.situations):
        yield Text(f"Nothing matched: {count(events, 'event')} looked at, nothing was detected.")
    for name, each in blind.items():
        yield Text(visible(_blind(name, each)), "yellow")
    if tally.late_events:
        yield Text(f"{count(tally.late_events, 'event')} came too late and did not count", "yellow")
    for name, odd in sorted(tally.unknown.items()):
        yield Text(f"{name}: {unknown_text(odd.count, odd.sample)}", "yellow")
    for test, odd in sorted(tally.failures.items()):
        yield Text(failed_text(test, odd.count, odd.sample), "yellow")
