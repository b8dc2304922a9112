"""What the registry holds and how it changed, as text: objects, versions, clients, differences, history of scopes.

`show_objects` to `show_changes` are for ``situ get``, then clients with credentials, the difference between two
deployments, the epochs of scopes, and who sees more or less than in another version of the project.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from difflib import ndiff
from itertools import groupby
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from situ.cli.output import visible
from situ.cli.render.layout import table
from situ.cli.render.text import plural
from situ.model import ChangeDetail, DeploymentChange
from situ.model.visibility_diff import VisibilityChange
from situ.registry import Admitted, Object, Recorded, Version
from situ.registry.store import Epoch
from situ.scopes.diff import ScopeChange
from situ.scopes.visibility_plan import VisibilityShift


def show_objects(objects: Sequence[Object]) -> Iterator[RenderableType]:
    """One a line: what it is called, what it says, whose it is."""
    if not objects:
        return
    made = table("name", "version", "origin", "file", "declared as")
    for each in objects:
        said = f"suspended · {_body(each)}" if each.suspended else _body(each)
        made.add_row(Text(visible(each.name), "bold"), str(each.version), each.origin, visible(each.file), said)
    yield made


def show_versions(versions: Sequence[Version]) -> Iterator[RenderableType]:
    made = table("version", "since", "digest")
    for each in versions:
        made.add_row(str(each.version), _moment(each.at), each.digest[:12])
    yield made


def show_changes(changes: Sequence[Recorded]) -> Iterator[RenderableType]:
    """Newest first; what came with the same deployment stands together."""
    made = table("version", "when", "who", "what", "reason")
    last = None
    for each in changes:
        new = each.deployment != last
        last = each.deployment
        what = "added" if each.before is None else "removed" if each.after is None else "changed"
        what = "suspended" if each.state == "suspended" else what
        made.add_row(
            str(each.deployment) if new else "",
            _moment(each.at) if new else "",
            visible(each.who) if new else "",
            f"{each.key.kind} {visible(each.key.name)} {what}",
            visible(each.reason) if new else "",
        )
    yield made


def _body(each: Object) -> str:
    match each.kind:
        case "settings" | "scopes" | "quality" | "suspended":
            return ""
        case "start":
            return str(each.value["at"])
        case "context":
            return f"extends {each.value['extends']}" if "extends" in each.value else ""
        case "function":
            return visible(f"{each.value['signature']} = {each.value['expr']}")
        case "unit":
            return visible(each.value)
        case "type" | "event":
            return visible(_type(each.value))
        case "policy":
            return visible(_condition(each.value))
        case "concept":
            return visible(", ".join(f"{name}: {text}" for name, text in each.value["attributes"]))
        case "action" | "opposed" | "group" | "container" | "relationship" | "measure":
            return visible(_shown(each.value))
        case _:
            return visible(", ".join(f"{key}: {_shown(value)}" for key, value in each.value.items()))


def _condition(text: str) -> str:
    """What a policy is about, on one line."""
    lines = [line.strip() for line in text.splitlines()]
    start = lines.index("conditions") + 1 if "conditions" in lines else 0
    end = next((place for place, line in enumerate(lines[start:], start) if line.startswith("actions")), len(lines))
    return " · ".join(line for line in lines[start:end] if line)


def _type(body: dict[str, object]) -> str:
    if "base" in body:
        return str(body["base"])
    attributes = body["attributes"]
    assert isinstance(attributes, list)
    above = body.get("supers", [])
    assert isinstance(above, list)
    names = [str(each["name"]) for each in attributes]
    return " ".join((*(f"({', '.join(above)})" for _ in above[:1]), ", ".join(names)))


def _shown(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_shown(below)}" for key, below in value.items()) + "}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _moment(at: datetime) -> str:
    return at.astimezone().isoformat(sep=" ", timespec="seconds")


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Clients with credentials.


def show_clients(clients: Sequence[Admitted]) -> Iterator[Any]:
    from rich.table import Table
    from rich.text import Text

    if not clients:
        yield Text("No client has credentials of its own.")
        return
    table = Table(box=None, pad_edge=False)
    for title in ("client", "since", "by", "key"):
        table.add_column(title, no_wrap=True)
    for each in clients:
        table.add_row(each.name, each.at.strftime("%Y-%m-%d %H:%M:%S"), each.who, each.principal.key)
    yield table


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The difference between two deployments: by kind of thing, each with its parts.

_SIGNS = {"added": ("+", "green"), "removed": ("-", "red"), "changed": ("~", "yellow")}


def show_difference(changes: Sequence[DeploymentChange], *, summary: bool) -> Iterator[Text]:
    """Added, removed and changed things; of what changed, what it was and what it is."""
    for kind, group in groupby(changes, key=lambda change: change.kind):
        yield Text(plural(kind), "bold")
        for change in group:
            yield from _change(change)
    if summary:
        if changes:
            yield Text()
        yield Text(_summary(changes))


def _change(change: DeploymentChange) -> Iterator[Text]:
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


def _has_lines(change: DeploymentChange) -> bool:
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


def _detail(detail: ChangeDetail) -> Text:
    part = visible(detail.part)
    if detail.before is None:
        return Text(f"      + {part}: {visible(detail.after or '')}", "green")
    if detail.after is None:
        return Text(f"      - {part}: {visible(detail.before)}", "red")
    return Text.assemble(
        (f"      ~ {part}: ", "yellow"), (visible(detail.before), "red"), " → ", (visible(detail.after), "green")
    )


def _summary(changes: Sequence[DeploymentChange]) -> str:
    if not changes:
        return "Nothing differs."
    numbers = {what: sum(change.what == what for change in changes) for what in _SIGNS}
    return ", ".join(f"{number} {what}" for what, number in numbers.items())


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The history of scopes: newest first, each change with what is different since.


def show_epochs(epochs: Sequence[Epoch]) -> Iterator[Text]:
    for each in epochs:
        at = each.at.astimezone().isoformat(sep=" ", timespec="seconds")
        epoch = "no scopes" if each.epoch is None else f"epoch {each.epoch}"
        reason = f"  {visible(each.reason)}" if each.reason else ""
        narrower = "  narrower" if each.difference.narrows else ""
        yield Text.assemble((epoch, "bold"), f"  {at}  {visible(each.who)}{reason}", (narrower, "yellow"))
        for change in each.difference.changes:
            yield _epoch_change(change)
        for key in each.suspended:
            yield Text(f"    suspended: {key.kind} {visible(key.name)}", "yellow")


def _epoch_change(change: ScopeChange) -> Text:
    sign, style = _SIGNS[change.kind]
    text = Text.assemble((f"  {sign} {visible(' '.join(change.what))}", style))
    if change.before is not None or change.after is not None:
        values = [_shown_value(each) for each in (change.before, change.after) if each is not None]
        text.append(f"  {visible(' → '.join(values))}", "dim")
    return text


def _shown_value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_shown_value(each)}" for key, each in value.items()) + "}"
    return f"[{', '.join(map(_shown_value, value))}]" if isinstance(value, list) else str(value)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Who sees more or less than in another version of the project.

MOST = 1000
_STYLES = {VisibilityShift.NARROWER: "yellow", VisibilityShift.WIDER: "red", VisibilityShift.OTHER: "yellow"}


def show_against(changes: Sequence[VisibilityChange], other: str) -> Iterator[RenderableType]:
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
