"""A table of types → JSON Schema (draft 2020-12), for producers, editors and other tools.

What JSON Schema has no word for stands in ``x-situ-…`` keywords, so that :mod:`situ.types.json_schema_import` gives
the same table back. A struct with subtypes has two definitions: ``D`` says what a value of exactly that type has,
``any:D`` adds that ``$type`` may name a subtype, which then decides.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, assert_never

from situ.types.encode import TYPE_KEY, encode
from situ.types.inheritance import own_attributes
from situ.types.model import (
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    DURATION,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    Attribute,
    Decimal,
    ListOf,
    Named,
    Primitive,
    Struct,
    Type,
)
from situ.types.syntax import format_type
from situ.types.table import Types, built_in
from situ.units import NO_UNIT

DIALECT = "https://json-schema.org/draft/2020-12/schema"
ANY = "any:"

PRIMITIVE_SCHEMAS: dict[Primitive, dict[str, Any]] = {
    BOOLEAN: {"type": "boolean"},
    INT: {"type": "integer", "format": "int32", "minimum": -(2**31), "maximum": 2**31 - 1},
    LONG: {"type": "integer", "format": "int64", "minimum": -(2**63), "maximum": 2**63 - 1},
    DOUBLE: {"type": "number"},
    STRING: {"type": "string"},
    BYTES: {"type": "string", "contentEncoding": "base64"},
    DATE: {"type": "string", "format": "date"},
    TIMESTAMP: {"type": "string", "format": "date-time"},
    DURATION: {"type": "string", "format": "duration"},
}


def export_types(types: Types) -> dict[str, Any]:
    """The schema of all declared types; none of them is required of the document itself."""
    return _document(types, types.declared, {})


def export_event(types: Types, event: Struct) -> dict[str, Any]:
    """The schema of the data of one event type, with the definitions it needs."""
    return _document(types, (event,), {"$ref": _pointer(types, event)})


def _document(types: Types, wanted: Iterable[Named | Struct], root: dict[str, Any]) -> dict[str, Any]:
    definitions: dict[str, Any] = {}
    needed = list(wanted)
    seen = {type.name for type in needed}
    events: list[str] = []
    while needed:
        type = needed.pop()
        definitions[type.name] = _definition(types, type)
        if _has_subtypes(types, type):
            definitions[ANY + type.name] = _dynamic(types, type)
        if type.name in types.events:
            events.append(type.name)
        for other in _mentioned(types, type):
            if other.name not in seen:
                seen.add(other.name)
                needed.append(other)
    result: dict[str, Any] = {"$schema": DIALECT, **root, "$defs": dict(sorted(definitions.items()))}
    result["x-situ-events"] = sorted(events)
    if types.units.labels:
        result["x-situ-units"] = dict(sorted(types.units.labels.items()))
    return result


def _has_subtypes(types: Types, type: Type) -> bool:
    return isinstance(type, Struct) and len(types.subtypes(type)) > 1


def _mentioned(types: Types, type: Named | Struct) -> Iterable[Named | Struct]:
    if isinstance(type, Named):
        inner: Iterable[Type] = (type.base,)
    else:
        inner = (*type.supers, *(attribute.type for attribute in type.attributes), *types.subtypes(type)[1:])
    for each in inner:
        while isinstance(each, ListOf):
            each = each.element
        if isinstance(each, Named | Struct):
            yield each


def _definition(types: Types, type: Named | Struct) -> dict[str, Any]:
    if isinstance(type, Named):
        return {**_schema(types, type.base), "x-situ-base": format_type(type.base)}
    own = own_attributes(type)
    result: dict[str, Any] = {"type": "object"}
    if type.supers:
        result["allOf"] = [{"$ref": f"#/$defs/{above.name}"} for above in type.supers]
        result["x-situ-supertypes"] = [above.name for above in type.supers]
    if built_in().get(type.name) == type:
        result["x-situ-built-in"] = True
    result["properties"] = {each.name: _attribute(types, each) for each in own}
    required = [each.name for each in own if not each.optional and each.default is None]
    if required:
        result["required"] = required
    return result


def _dynamic(types: Types, type: Named | Struct) -> dict[str, Any]:
    below = [each.name for each in types.subtypes(type)[1:] if isinstance(each, Struct)]
    return {
        "x-situ-any": type.name,
        "properties": {TYPE_KEY: {"enum": [type.name, *below]}},
        "allOf": [
            {"$ref": f"#/$defs/{type.name}"},
            *(
                {
                    "if": {"properties": {TYPE_KEY: {"const": name}}, "required": [TYPE_KEY]},
                    "then": {"$ref": f"#/$defs/{name}"},
                }
                for name in below
            ),
        ],
    }


def _attribute(types: Types, attribute: Attribute) -> dict[str, Any]:
    result = _schema(types, attribute.type)
    if attribute.optional or attribute.default is not None:
        result = _nullable(result)
    if attribute.unit != NO_UNIT:
        result["x-situ-unit"] = str(attribute.unit)
    if attribute.default is not None:
        result["default"] = encode(attribute.type, attribute.default)
        result["x-situ-optional"] = attribute.optional
    return result


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema or not isinstance(schema["type"], str):
        return {"anyOf": [schema, {"type": "null"}]}
    return {**schema, "type": [schema["type"], "null"]}


def _schema(types: Types, type: Type) -> dict[str, Any]:
    match type:
        case Primitive():
            return dict(PRIMITIVE_SCHEMAS[type])
        case Decimal(precision=precision, scale=scale):
            pattern = rf"^-?0*[0-9]{{1,{precision - scale or 1}}}" + (rf"(\.[0-9]{{1,{scale}}})?$" if scale else "$")
            return {"type": ["string", "number"], "pattern": pattern, "x-situ-type": str(type)}
        case ListOf(element=element):
            return {"type": "array", "items": _schema(types, element)}
        case Named() | Struct():
            return {"$ref": _pointer(types, type)}
        case _:
            assert_never(type)


def _pointer(types: Types, type: Named | Struct) -> str:
    return f"#/$defs/{ANY if _has_subtypes(types, type) else ''}{type.name}"
