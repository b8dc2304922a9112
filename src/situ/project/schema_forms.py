"""Forms that the JSON Schemas of a project's files are made of."""

from __future__ import annotations

from typing import Any

TEXT = {"type": "string"}
BOOLEAN = {"anyOf": [{"type": "boolean"}, {"type": "string", "pattern": r"\$\{"}]}


def object_form(properties: dict[str, Any], required: tuple[str, ...] = ()) -> dict[str, Any]:
    form: dict[str, Any] = {"type": "object", "additionalProperties": False, "properties": properties}
    return {**form, "required": list(required)} if required else form


def named_form(pattern: str, value: dict[str, Any], about: str) -> dict[str, Any]:
    """A mapping whose keys the writer chooses; it may be empty, and even absent behind its key."""
    form = {"type": ["object", "null"], "description": about, "propertyNames": {"pattern": pattern}}
    return {**form, "additionalProperties": value}


def text_form(description: str) -> dict[str, Any]:
    return {**TEXT, "description": description}
