"""What differs between two deployments, for people: by kind of thing, each with its parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import ndiff
from itertools import groupby

from rich.text import Text

from situ.cli.output import visible
from situ.cli.show_problems import plural
from situ.deployment import Change, Detail

_SIGNS = {"added": ("+", "green"), "removed": ("-", "red"), "changed": ("~", "yellow")}


def show_difference(changes: Sequence[Change], *, summary: bool) -> Iterator[Text]:
    """Added, removed and changed things; of what changed, what it was and what it is."""
    for kind, group in groupby(changes, key=lambda change: change.kind):
        yield Text(plural(kind), "bold")
        for change in group:
            yield from _change(change)
    if summary:
        if changes:
            yield Text()
        yield Text(_summary(changes))


def _change(change: Change) -> Iterator[Text]:
    sign, style = _SIGNS[change.what]
    whole = change.after if change.what == "added" else change.before if change.what == "removed" else None
    text = Text.assemble((f"  {sign} {visible(change.name)}", style))
    if whole is not None and whole != change.name:
        text.append(f"  {visible(_without_name(whole, change.name))}", "dim")
    elif change.what == "changed" and not change.details and not _has_lines(change):
        text.append(f"  {visible(change.before or '')} → {visible(change.after or '')}")
    yield text
    if change.what == "changed" and _has_lines(change):
        yield from _lines(change.before or "", change.after or "")
    yield from (_detail(detail) for detail in change.details)


def _has_lines(change: Change) -> bool:
    return not change.details and "\n" in f"{change.before}{change.after}"


def _lines(before: str, after: str) -> Iterator[Text]:
    """Of a text of several lines those that are gone and those that are new."""
    for line in ndiff(before.splitlines(), after.splitlines()):
        sign, said = line[:1], visible(line[2:].strip())
        if sign in "+-":
            yield Text(f"      {sign} {said}", "green" if sign == "+" else "red")


def _without_name(whole: str, name: str) -> str:
    """``Alarm(RoomEvent): {…}`` without what was just said."""
    return " ".join(whole.removeprefix(name).removeprefix(":").split())


def _detail(detail: Detail) -> Text:
    part = visible(detail.part)
    if detail.before is None:
        return Text(f"      + {part}: {visible(detail.after or '')}", "green")
    if detail.after is None:
        return Text(f"      - {part}: {visible(detail.before)}", "red")
    return Text.assemble(
        (f"      ~ {part}: ", "yellow"), (visible(detail.before), "red"), " → ", (visible(detail.after), "green")
    )


def _summary(changes: Sequence[Change]) -> str:
    if not changes:
        return "Nothing differs."
    numbers = {what: sum(change.what == what for change in changes) for what in _SIGNS}
    return ", ".join(f"{number} {what}" for what, number in numbers.items())
