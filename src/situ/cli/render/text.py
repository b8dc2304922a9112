"""Problems as coloured text, counts with their plural, and one event in one line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from situ.cli.output import visible
from situ.lang.problems import Problem, Severity, render

if TYPE_CHECKING:
    from situ.client.events import Event


STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.OBSERVATION: "bold blue"}
_CARETS = re.compile(r"  \| \s*\^+")


def show_problems(problems: Iterable[Problem]) -> Iterator[Text]:
    """One below the other, with an empty line between them."""
    for place, problem in enumerate(problems):
        if place:
            yield Text()
        yield show_problem(problem)


def show_problem(problem: Problem) -> Text:
    """What, where, why, and what to do about it."""
    head, *rest = visible(render(problem)).split("\n")
    style = STYLES[problem.severity]
    label = f"{problem.severity.value} {problem.code.code}:"
    before, _, after = head.partition(label)
    text = Text.assemble((before, "bold"), (label, style), (after, "bold"))
    for line in rest:
        text.append("\n")
        text.append(line, _style_of(line, style))
    return text


def _style_of(line: str, style: str) -> str:
    if _CARETS.fullmatch(line):
        return style
    if line.startswith("  hint:"):
        return "cyan"
    return "" if line.startswith("  | ") else "dim"


def plural(word: str) -> str:
    """What several things of a kind are called."""
    if word == "quality":
        return word
    if word.endswith("y"):
        return f"{word[:-1]}ies"
    if word.endswith("ed"):
        return word
    return f"{word}es" if word.endswith("sh") else f"{word}s"


def count(number: int, what: str) -> str:
    """``1 file``, ``2 files``, ``2 policies``."""
    return f"{number:,} {what if number == 1 else plural(what)}"


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# One event: when, what, from whom, and its data.


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
