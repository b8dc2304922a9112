"""The history of scopes, for people: newest first, each change with what is different since."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.text import Text

from situ.cli.output import visible
from situ.registry.scope_history import Epoch
from situ.visibility.difference import ScopeChange

_SIGNS = {"added": ("+", "green"), "removed": ("-", "red"), "changed": ("~", "yellow")}


def show_epochs(epochs: Sequence[Epoch]) -> Iterator[Text]:
    for each in epochs:
        at = each.at.astimezone().isoformat(sep=" ", timespec="seconds")
        epoch = "no scopes" if each.epoch is None else f"epoch {each.epoch}"
        reason = f"  {visible(each.reason)}" if each.reason else ""
        narrower = "  narrower" if each.difference.narrows else ""
        yield Text.assemble((epoch, "bold"), f"  {at}  {visible(each.who)}{reason}", (narrower, "yellow"))
        for change in each.difference.changes:
            yield _change(change)
        for key in each.suspended:
            yield Text(f"    suspended: {key.kind} {visible(key.name)}", "yellow")


def _change(change: ScopeChange) -> Text:
    sign, style = _SIGNS[change.kind]
    text = Text.assemble((f"  {sign} {visible(' '.join(change.what))}", style))
    if change.before is not None or change.after is not None:
        values = [_shown(each) for each in (change.before, change.after) if each is not None]
        text.append(f"  {visible(' → '.join(values))}", "dim")
    return text


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_shown(each)}" for key, each in value.items()) + "}"
    return f"[{', '.join(map(_shown, value))}]" if isinstance(value, list) else str(value)
