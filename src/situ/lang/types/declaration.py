"""Types as documents declare them: nodes → declarations not yet looked up, and types → the text of a file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from situ.lang.catalogue import BAD_NAME, TYPE_SYNTAX
from situ.lang.documents import (
    Fields,
    MappingNode,
    Node,
    Reader,
    ScalarNode,
    SequenceNode,
    describe,
    is_nothing,
    to_data,
)
from situ.lang.documents.builder import resolve
from situ.lang.problems import SituError
from situ.lang.types.json_codec import encode
from situ.lang.types.model import (
    ATTRIBUTE_NAME,
    DEEPEST,
    LONGEST_NAME,
    Attribute,
    AttributeText,
    DecimalRef,
    ListOf,
    ListRef,
    Named,
    NameRef,
    Place,
    Struct,
    TypeRef,
    format_attribute,
    format_head,
    format_type,
    nowhere,
    own_attributes,
    parse_attribute,
    parse_head,
    parse_type,
)
from situ.lang.types.table import Types
from situ.lang.units import NO_UNIT

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What a document says about types, before anything is looked up.
#
# From the nodes of ``types:``, ``events:`` and ``units:`` come declarations: names, references, texts of units, each
# with its place. Contexts and ontologies use the same notation and come through here, too. Whether the references lead
# anywhere is :mod:`situ.lang.types.resolve`.

_UNIT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FORM = "an attribute: `[optional] TYPE [UNIT]` or `{type, unit, optional, default}`"


@dataclass(frozen=True, slots=True)
class Default:
    """A default as written, in JSON values."""

    value: Any
    place: Place = field(default=nowhere, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeDeclaration:
    """One attribute as written."""

    name: str
    text: AttributeText
    default: Default | None = None
    place: Place = field(default=nowhere, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeDeclaration:
    """One type as written: a struct, or a named primitive if what it is based on is one."""

    name: str
    supers: tuple[NameRef | DecimalRef, ...] = ()
    attributes: tuple[AttributeDeclaration, ...] = ()
    event: bool = False
    place: Place = field(default=nowhere, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitDeclaration:
    """A unit that is not physical, with what kind of thing it is: ``EUR: currency``."""

    name: str
    kind: str
    place: Place = field(default=nowhere, compare=False)


def declare_types(fields: Fields) -> Iterator[TypeDeclaration]:
    """The declarations under ``types:`` and ``events:``, in the order written."""
    for key in ("types", "events"):
        for head, body in _entries(fields, key):
            declaration = _declare_type(head, body, fields.read, event=key == "events")
            if declaration is not None:
                yield declaration


def declare_units(fields: Fields) -> Iterator[UnitDeclaration]:
    """The declarations under ``units:``."""
    for key, node in _entries(fields, "units"):
        declaration = declare_unit(key, node, fields.read)
        if declaration is not None:
            yield declaration


def declare_unit(key: ScalarNode, node: Node, read: Reader) -> UnitDeclaration | None:
    """One unit with its kind; None, with the problem noted, if it is none."""
    kind = read.scalar(node)
    if not _UNIT_NAME.fullmatch(key.text) or len(key.text) > LONGEST_NAME:
        remedy = "Letters, digits and `_` make a name; physical units such as `m` or `km/h` need no declaration."
        reason = "it has other characters"
        read.problems.add(BAD_NAME(key.location, name=key.text, what="a unit", reason=reason, remedy=remedy))
        return None
    if kind is not None and not _UNIT_NAME.fullmatch(kind.text):
        remedy, reason = "Write `currency` or `label`.", "it is no word"
        read.problems.add(BAD_NAME(kind.location, name=kind.text, what="a kind of unit", reason=reason, remedy=remedy))
        return None
    return None if kind is None else UnitDeclaration(name=key.text, kind=kind.text, place=place_of(key))


def declare_attribute(key: ScalarNode, node: Node, read: Reader) -> AttributeDeclaration | None:
    """One attribute in any of its forms; None, with the problems noted, if it is none."""
    if not check_attribute_name(key, read):
        return None
    try:
        match node:
            case MappingNode():
                return _long_form(key, node, read)
            case SequenceNode():
                text = AttributeText(type=_list(node))
            case ScalarNode(value=str()):
                text = parse_attribute(node.text, node.locate)
            case _:
                read.wrong(node, _FORM)
                return None
    except SituError as error:
        read.problems.extend(error.problems)
        return None
    return AttributeDeclaration(name=key.text, text=text, place=place_of(key))


def _declare_type(key: ScalarNode, node: Node, read: Reader, *, event: bool) -> TypeDeclaration | None:
    body: tuple[tuple[ScalarNode, Node], ...] = ()
    if not is_nothing(node):
        mapping = read.mapping(node)
        body = mapping.entries if mapping else ()
    attributes = tuple(each for name, form in body if (each := declare_attribute(name, form, read)) is not None)
    try:
        head = parse_head(key.text, key.locate)
    except SituError as error:
        read.problems.extend(error.problems)
        return None
    return TypeDeclaration(name=head.name, supers=head.supers, attributes=attributes, event=event, place=head.place)


def check_attribute_name(key: ScalarNode, read: Reader) -> bool:
    """Whether this can be the name of an attribute; if not, that is a problem."""
    if ATTRIBUTE_NAME.fullmatch(key.text) and len(key.text) <= LONGEST_NAME:
        return True
    if key.text.startswith("$"):
        reason, remedy = "names beginning with `$` belong to Situ", "Choose another name."
    else:
        reason = "it is not made of letters, digits and `_`, or begins with a digit"
        remedy = "Choose another name; what producers call it differently can be renamed by a mapping."
    read.problems.add(BAD_NAME(key.location, name=key.text, what="an attribute", reason=reason, remedy=remedy))
    return False


def _long_form(key: ScalarNode, node: MappingNode, read: Reader) -> AttributeDeclaration | None:
    fields = read.fields(node, required=("type",), optional=("unit", "optional", "default"))
    written = node.get("type")
    if fields is None or written is None:
        return None
    type: TypeRef | None = None
    if isinstance(written, SequenceNode):
        type = _list(written)
    elif (scalar := read.scalar(written)) is not None:
        type = parse_type(scalar.text, scalar.locate)
    unit = fields.scalar("unit")
    optional = fields.boolean("optional", False)
    default = node.get("default")
    if type is None:
        return None
    return AttributeDeclaration(
        name=key.text,
        text=AttributeText(
            type=type,
            unit=unit.text.strip() if unit else "",
            optional=optional,
            unit_place=place_of(unit) if unit else nowhere,
        ),
        default=None if default is None else Default(to_data(default), place_of(default)),
        place=place_of(key),
    )


def _list(node: SequenceNode) -> TypeRef:
    """``[Line]`` without quotes is a list of YAML with one item."""
    depth = 0
    inner: Node = node
    while isinstance(inner, SequenceNode) and len(inner.items) == 1 and depth <= DEEPEST:
        inner, depth = inner.items[0], depth + 1
    if not isinstance(inner, ScalarNode) or not isinstance(inner.value, str):
        found = f"a list with {len(inner.items)} items" if isinstance(inner, SequenceNode) else describe(inner)
        raise SituError(TYPE_SYNTAX(inner.location, found=found, expected="one type between the brackets"))
    result = parse_type(inner.text, inner.locate)
    for _ in range(depth):
        result = ListRef(result, place_of(node))
    return result


def _entries(fields: Fields, key: str) -> tuple[tuple[ScalarNode, Node], ...]:
    """A section that is there without content is empty: someone is about to write it."""
    node = fields.node(key)
    return () if node is None or is_nothing(node) else fields.entries(key)


def place_of(node: Node) -> Place:
    return lambda: node.location


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# A table of types → the text of a file in ``types/``, in the one canonical form.
#
# Reading the text back gives an equal table. A table has neither comments nor a split into files, so the text has none.

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
