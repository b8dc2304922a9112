"""An event for people, in one line: when, what, from whom, and its data."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rich.text import Text

from situ.cli.output import visible

if TYPE_CHECKING:
    from situ.edge.event import Event


def show_event(event: Event) -> Text:
    """The time is the event's own, in UTC."""
    text = Text()
    text.append(event.time.strftime("%H:%M:%S.%f")[:-3], "dim")
    text.append(f" {event.type}", "bold")
    text.append(f" {visible(event.source)} ", "cyan")
    text.append(visible(json.dumps(event.data, ensure_ascii=False)))
    if event.redelivered:
        text.append(" (again)", "yellow")
    return text
