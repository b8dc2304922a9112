"""Who sees more or less than by another version of the project, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from situ.cli.output import visible
from situ.cli.show_types import table
from situ.deployment.sight_changes import SightChange
from situ.visibility.comparing import Direction

MOST = 1000
_STYLES = {Direction.NARROWER: "yellow", Direction.WIDER: "red", Direction.OTHER: "yellow"}


def show_against(changes: Sequence[SightChange], other: str) -> Iterator[RenderableType]:
    """One pair a line: what it was there, what it is here, and whether that is more."""
    yield Text()
    if not changes:
        yield Text(f"Against {visible(other)} nobody sees more or less.")
        return
    yield Text(f"Against {visible(other)}:", "bold")
    made = table("published by", "received by", "before", "now", "")
    for each in changes[:MOST]:
        word = Text(each.direction.value, _STYLES[each.direction])
        made.add_row(visible(each.publishes), visible(each.receives), each.before, each.after, word)
    yield made
    if len(changes) > MOST:
        yield Text(f"… and {len(changes) - MOST:,} more; --json has all of them.", "dim")
