"""A table of types → the text of a file in ``types/``, in the one canonical form.

Reading the text back gives an equal table. Comments and the split into files are not in a table, so they are not here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from situ.documents.core_schema import resolve
from situ.types.encode import encode
from situ.types.inheritance import own_attributes
from situ.types.model import Attribute, ListOf, Named, Struct
from situ.types.syntax import format_attribute, format_head, format_type
from situ.types.table import Types
from situ.units import NO_UNIT

_WIDTH = 100
# Signs that mean nothing to YAML inside a plain text, neither in a block nor between braces.
_PLAIN_SIGNS = frozenset(" _-./^*()°%µ")


def print_types(types: Types) -> str:
    """All declared types and units as YAML."""
    parts = [type for type in types.declared if type.name not in types.events]
    events = [type for type in types.declared if type.name in types.events]
    lines = ["version: 1"]
    if types.units.labels:
        lines += [
            "units:",
            *(f"  {_scalar(name)}: {_scalar(kind)}" for name, kind in sorted(types.units.labels.items())),
        ]
    for key, members in (("types", parts), ("events", events)):
        if members:
            lines += [f"{key}:", *(line for type in members for line in _print_type(type))]
    return "\n".join(lines) + "\n"


def print_type(type: Named | Struct) -> str:
    """One declaration as it stands under ``types:`` or ``events:``, not indented."""
    return "\n".join(line[2:] for line in _print_type(type))


def _print_type(type: Named | Struct) -> Iterable[str]:
    if isinstance(type, Named):
        return [f"  {_scalar(format_head(type.name, (format_type(type.base),)))}: {{}}"]
    head = _scalar(format_head(type.name, tuple(above.name for above in type.supers)), block=True)
    entries = [f"{_scalar(each.name)}: {_attribute(each)}" for each in own_attributes(type)]
    line = f"  {head}: {{{', '.join(entries)}}}"
    if len(line) <= _WIDTH:
        return [line]
    return [f"  {head}:", *(f"    {entry}" for entry in entries)]


def _attribute(attribute: Attribute) -> str:
    """The shortest form that reads back: ``[Line]`` without quotes, else the shorthand, else the long form."""
    if attribute.default is None:
        text = format_attribute(attribute)
        bare_list = isinstance(attribute.type, ListOf) and text == format_type(attribute.type) and "," not in text
        return text if bare_list else _scalar(text)
    fields = {"type": _scalar(format_type(attribute.type))}
    if attribute.unit != NO_UNIT:
        fields["unit"] = _scalar(str(attribute.unit))
    if attribute.optional:
        fields["optional"] = "true"
    fields["default"] = _json(encode(attribute.type, attribute.default))
    return "{" + ", ".join(f"{key}: {text}" for key, text in fields.items()) + "}"


def _json(value: Any) -> str:
    """A JSON value as YAML between braces."""
    match value:
        case str():
            return _quoted(value)
        case list():
            return f"[{', '.join(_json(item) for item in value)}]"
        case Mapping():
            return "{" + ", ".join(f"{_quoted(key)}: {_json(item)}" for key, item in value.items()) + "}"
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
        case _:
            return repr(value)


def _scalar(text: str, *, block: bool = False) -> str:
    """Plain where YAML reads the same text back, else in quotes. A comma is plain only outside of braces."""
    signs = _PLAIN_SIGNS | {","} if block else _PLAIN_SIGNS
    plain = text[:1].isalpha() and all(c.isalnum() or c in signs for c in text) and not text.endswith(" ")
    return text if plain and isinstance(resolve(text), str) else _quoted(text)


def _quoted(text: str) -> str:
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character.isprintable():
        return character
    return f"\\u{ord(character):04x}" if ord(character) < 0x10000 else f"\\U{ord(character):08x}"
