"""JSON Schemas of the project's files, so that editors complete keys and mark mistakes while they are made.

Generated from what the loaders accept. A schema knows the form of a file only: names, types, units and
expressions are checked by ``situ check``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from situ.documents.reading import FILE_VERSION
from situ.expr.declare import FUNCTION_KEYS
from situ.project.places import OWN_FOLDER
from situ.settings.write import settings_schema
from situ.sources.declare import KINDS as PLACES
from situ.sources.declare import SOURCE_KEYS
from situ.subscription.load import ADVERTISEMENT_KEYS, CLIENT_KEYS, SUBSCRIPTION_KEYS
from situ.types.json_schema import DIALECT

_TITLES = {
    "situ": "situ.yaml",
    "types": "types/*.yaml",
    "functions": "functions/*.yaml",
    "sources": "sources/*.yaml",
    "clients": "clients/*.yaml",
}
_TEXT = {"type": "string"}
_BOOLEAN = {"anyOf": [{"type": "boolean"}, {"type": "string", "pattern": r"\$\{"}]}
_TYPE_HEAD = r"^\s*[A-Za-z][A-Za-z0-9_.]*\s*(\(.*\))?\s*$"
_WORD = r"^[A-Za-z_][A-Za-z0-9_]*$"
_SOURCE_NAME = r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$"
_CLIENT_NAME = r"^[A-Za-z0-9-]{1,64}$"


def schemas() -> Mapping[str, dict[str, Any]]:
    """The schema of each kind of file, by the name of the kind."""
    bodies = {
        "situ": settings_schema(),
        "types": _types(),
        "functions": _functions(),
        "sources": _sources(),
        "clients": _clients(),
    }
    return MappingProxyType({kind: _document(kind, body) for kind, body in bodies.items()})


def write_schemas(path: Path) -> tuple[Path, ...]:
    """Put the schemas into the project, where the first line of its files looks for them."""
    folder = path / OWN_FOLDER / "schemas"
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for kind, schema in schemas().items():
        file = folder / f"{kind}.json"
        file.write_text(json.dumps(schema, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        written.append(file)
    return tuple(written)


def _document(kind: str, body: dict[str, Any]) -> dict[str, Any]:
    version = {"const": FILE_VERSION, "description": "version of the form of this file"}
    return {
        "$schema": DIALECT,
        "title": _TITLES[kind],
        **body,
        "properties": {"version": version, **body["properties"]},
    }


def _object(properties: dict[str, Any], required: tuple[str, ...] = ()) -> dict[str, Any]:
    form: dict[str, Any] = {"type": "object", "additionalProperties": False, "properties": properties}
    return {**form, "required": list(required)} if required else form


def _named(pattern: str, value: dict[str, Any], about: str) -> dict[str, Any]:
    """A mapping whose keys the writer chooses; it may be empty, and even absent behind its key."""
    form = {"type": ["object", "null"], "description": about, "propertyNames": {"pattern": pattern}}
    return {**form, "additionalProperties": value}


def _attribute() -> dict[str, Any]:
    return {
        "description": "[optional] TYPE [UNIT], or {type, unit, optional, default}",
        "anyOf": [
            {**_TEXT, "examples": ["double m", "optional string", "[Line]"]},
            {"type": "array", "minItems": 1, "maxItems": 1},
            _object(
                {"type": {"type": ["string", "array"]}, "unit": _TEXT, "optional": _BOOLEAN, "default": True}, ("type",)
            ),
        ],
    }


def _types() -> dict[str, Any]:
    declared = {"type": ["object", "null"], "propertyNames": {"pattern": _WORD}, "additionalProperties": _attribute()}
    return _object(
        {
            "types": _named(_TYPE_HEAD, declared, "types that are parts of events, as Name or Name(Super, Other)"),
            "events": _named(_TYPE_HEAD, declared, "types that can be published"),
            "units": _named(_WORD, {**_TEXT, "examples": ["currency", "label"]}, "units that are not physical"),
        }
    )


def _functions() -> dict[str, Any]:
    about = {
        "signature": "(a: TYPE [UNIT], …) -> TYPE [UNIT], or for conversions TYPE [UNIT] -> TYPE [UNIT]",
        "expr": "an expression over the parameters, or over `value`",
    }
    long_form = _object({key: {**_TEXT, "description": about[key]} for key in FUNCTION_KEYS}, FUNCTION_KEYS)
    short_form = {**_TEXT, "pattern": "->.*=", "examples": ["(a: Point m, b: Point m) -> double m = distance(a, b)"]}
    return _object({"functions": _named(_WORD, {"anyOf": [short_form, long_form]}, "functions by name")})


def _sources() -> dict[str, Any]:
    columns = {"type": "object", "minProperties": 1, "propertyNames": {"pattern": _WORD}}
    fields = {
        "csv": {**_TEXT, "description": "a file with a line of column names, relative to the project"},
        "parquet": {**_TEXT, "description": "a file, relative to the project"},
        "sql": {**_TEXT, "description": "a table of a database, or a SELECT of the columns"},
        "url": {**_TEXT, "description": "the database", "examples": ["${PEOPLE_DB}", "sqlite:///people.db"]},
        "columns": {**columns, "description": "the columns that are used", "additionalProperties": _attribute()},
        "key": {
            "description": "the columns that tell rows apart",
            "anyOf": [_TEXT, {"type": "array", "items": _TEXT, "minItems": 1}],
        },
        "as_of": {**_TEXT, "description": "the column that says from when on a row is valid"},
        "max_age": {**_TEXT, "description": "how old what was read may become", "examples": ["1 min"]},
    }
    source = _object({key: fields[key] for key in SOURCE_KEYS}, ("columns",))
    one_place = {"oneOf": [{"required": [place]} for place in PLACES]}
    return _object({"pull": _named(_SOURCE_NAME, {**source, **one_place}, "tables that are read, by name")})


def _clients() -> dict[str, Any]:
    event = {**_TEXT, "description": "an event type"}
    fields = {
        "types": {"type": "array", "items": event, "minItems": 1, "description": "event types, with their subtypes"},
        "where": {**_TEXT, "description": "which of them: an expression that is true or false"},
        "durable": {**_BOOLEAN, "description": "whether events are kept while the client is away"},
    }
    below = {
        "advertisements": (_object({"type": event}, ADVERTISEMENT_KEYS), "what the client publishes, by name"),
        "subscriptions": (_object({key: fields[key] for key in SUBSCRIPTION_KEYS}, ("types",)), "what it asks for"),
    }
    client = {
        **_object({key: _named(_CLIENT_NAME, *below[key]) for key in CLIENT_KEYS}),
        "type": ["object", "null"],
    }
    return _object({"clients": _named(_CLIENT_NAME, client, "clients by name")})
