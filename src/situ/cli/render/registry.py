"""What the registry holds, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from rich.console import RenderableType
from rich.text import Text

from situ.cli.output import visible
from situ.cli.show_types import table
from situ.registry import Object, Recorded, Version


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
