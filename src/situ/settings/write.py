"""Settings → JSON in the form of ``situ.yaml``, with every default written out; and the schema of that file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from typing import Any

from situ.settings.model import ABOUT, GROUP, KIND, Settings

_REFERENCE = {"type": "string", "pattern": r"\$\{"}


def settings_as_json(settings: Settings) -> dict[str, Any]:
    """All settings as plain JSON values; reading them back gives equal settings."""
    return _written(settings)


def settings_schema() -> dict[str, Any]:
    """The JSON Schema of ``situ.yaml`` without its frame: an object with all keys."""
    return {**_object(Settings, Settings()), "required": ["name"]}


def _written(group: Any) -> dict[str, Any]:
    values = {each: getattr(group, each.name) for each in fields(group)}
    # A list of nothing says nothing: what was written before there was such a setting stays as it is.
    return {each.name: _value(each, value) for each, value in values.items() if value != ()}


def _value(each: Field[Any], value: Any) -> Any:
    return _written(value) if GROUP in each.metadata else each.metadata[KIND].write(value)


def _object(of: type, defaults: Any) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for each in fields(of):
        default = getattr(defaults, each.name)
        if GROUP in each.metadata:
            form = _object(each.metadata[GROUP], default)
        else:
            form = _or_reference(each.metadata[KIND].schema)
            if each.default is not MISSING and default != "":
                form["default"] = _value(each, default)
        properties[each.name] = {"description": each.metadata[ABOUT], **form}
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _or_reference(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Any value may come from the environment; where text is free, a reference is text like any other."""
    free = schema.get("type") == "string" and "pattern" not in schema
    return dict(schema) if free or schema.get("type") == "object" else {"anyOf": [dict(schema), _REFERENCE]}
