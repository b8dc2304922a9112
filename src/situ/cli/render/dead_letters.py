"""Dead letters and late events as text: tables, and one dead letter with all there is to know about it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from situ.cli.output import visible
from situ.cli.render.run import clock
from situ.cli.render.text import count
from situ.event.instants import print_instant

if TYPE_CHECKING:
    from rich.console import RenderableType

    from situ.explain.dead_letters import LateEvent, StoredDeadLetter


def show_letters(letters: Sequence[StoredDeadLetter]) -> Iterator[RenderableType]:
    if not letters:
        yield Text("No dead letters.")
        return
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for title in ("id", "time", "code", "message"):
        table.add_column(title, no_wrap=title != "message")
    for letter in letters:
        message = Text(visible(letter.message))
        if letter.retried:
            message.append(" (published again)", "dim")
        table.add_row(letter.id, Text(_when(letter.time), "dim"), Text(letter.code, "red"), message)
    yield table
    yield Text()
    yield Text(count(len(letters), "dead letter"))


def show_letter(letter: StoredDeadLetter) -> Iterator[RenderableType]:
    yield Text.assemble(("Dead letter ", "bold"), (letter.id, "bold"))
    yield Text()
    table = Table.grid(padding=(0, 2))
    for name, value in (
        ("when", letter.time),
        ("client", letter.client),
        ("advertisement", letter.advertisement or "none named"),
        ("event key", letter.key),
        ("stage", letter.stage),
        ("where", letter.path or "the event"),
        ("published again", "yes" if letter.retried else "no"),
    ):
        table.add_row(Text(name, "dim"), visible(value))
    yield table
    yield Text()
    yield Text.assemble((letter.code, "bold red"), f" {visible(letter.message)}")
    if letter.hint:
        yield Text(f"  hint: {visible(letter.hint)}")
    for other in letter.others:
        yield Text(f"also {visible(other)}")
    yield Text()
    yield Text("What was sent" if letter.whole else "What was sent, its beginning", "bold")
    yield Text(visible(_sent(letter)))


def _when(time: str) -> str:
    """To the second; the letter itself says it exactly."""
    return f"{time[:10]} {time[11:19]}"


def _sent(letter: StoredDeadLetter) -> str:
    event = letter.event
    if event is not None:
        return json.dumps(event, indent=2, ensure_ascii=False)
    return letter.original if letter.original is not None else repr(letter.sent)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Late events.

_LONG = 60
"""From so many seconds on they are told as on a clock."""


def show_late(events: Sequence[LateEvent]) -> Iterator[RenderableType]:
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
