"""Situations for people: a line and a sentence each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from situ.cli.output import visible
from situ.cli.show_problems import count

if TYPE_CHECKING:
    from rich.console import RenderableType

    from situ.cli.told_situations import Told


def show_told(situations: Sequence[Told]) -> Iterator[RenderableType]:
    if not situations:
        yield Text("No situation was detected.")
        return
    for each in situations:
        yield _headline(each)
        yield Text(f"  {visible(each.text)}")
    yield Text()
    yield Text(count(len(situations), "situation"))


def _headline(each: Told) -> Text:
    bindings = ", ".join(f"{alias} = {identity}" for alias, identity in each.bindings)
    text = Text.assemble((each.start, "dim"), "  ", (each.policy, "bold"), f"  {visible(bindings)}")
    text.append(f"  {count(each.detections, 'detection')}")
    if not each.end:
        return text.append("  open", "yellow")
    return text.append(f"  closed {each.end}{f', {each.reason}' if each.reason else ''}", "dim")
