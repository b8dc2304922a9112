"""JSON Schema ↔ types: schemas imported with all that types cannot express, and tables of types exported.

In order: what the keywords of one schema object say, the import, the export. What was exported comes back as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, assert_never

from situ.lang.catalogue import SCHEMA_NOT_CHECKED, SCHEMA_REFERENCE, SCHEMA_UNSUPPORTED
from situ.lang.documents import Document, MappingNode, Node, Reader, ScalarNode, SequenceNode, describe, to_data
from situ.lang.problems import Problem, Problems, SituError
from situ.lang.records import replace
from situ.lang.types.declaration import (
    AttributeDeclaration,
    Default,
    TypeDeclaration,
    UnitDeclaration,
    check_attribute_name,
    declare_unit,
    place_of,
)
from situ.lang.types.json_codec import TYPE_KEY, encode
from situ.lang.types.lookup import Suggestions
from situ.lang.types.model import (
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    DURATION,
    INT,
    LONG,
    RESERVED_TYPES,
    STRING,
    TIMESTAMP,
    TYPE_NAME,
    Attribute,
    AttributeText,
    Decimal,
    ListOf,
    ListRef,
    Named,
    NameRef,
    Place,
    Primitive,
    Struct,
    Type,
    TypeRef,
    format_type,
    nowhere,
    own_attributes,
    parse_type,
)
from situ.lang.types.resolve import resolve
from situ.lang.types.table import Types, built_in
from situ.lang.units import NO_UNIT

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The keywords of one schema object, seen alone: which kind of value, which primitive, what no type has. References,
# definitions and names are not known here.

_SHAPING = frozenset(
    "$dynamicRef $recursiveRef anyOf contains dependencies dependentSchemas else if not oneOf patternProperties "
    "prefixItems propertyNames then unevaluatedItems".split()
)
_RESTRICTING = frozenset(
    "const dependentRequired enum exclusiveMaximum exclusiveMinimum maxContains maxItems maxLength maxProperties "
    "maximum minContains minItems minLength minProperties minimum multipleOf pattern uniqueItems".split()
)
_TEXT_FORMATS = {"date": "date", "date-time": "timestamp", "duration": "duration", "byte": "bytes"}
_KINDS = ("object", "array", "string", "integer", "number", "boolean")
_INT = (-(2**31), 2**31 - 1)
_LONG = (-(2**63), 2**63 - 1)


def unsupported(node: Node, reason: str, remedy: str = "") -> NoReturn:
    raise SituError(SCHEMA_UNSUPPORTED(node.location, reason=reason, remedy=remedy))


def text_of(node: MappingNode, keyword: str) -> str:
    """The text under a keyword; empty if there is none."""
    value = node.get(keyword)
    return value.value if isinstance(value, ScalarNode) and isinstance(value.value, str) else ""


def is_true(node: MappingNode, keyword: str) -> bool:
    value = node.get(keyword)
    return isinstance(value, ScalarNode) and value.value is True


def shaping(node: MappingNode) -> Iterator[Problem]:
    """The keywords of this object that give values a shape no type has."""
    for key, value in node.entries:
        if key.text in _SHAPING and nullable_alternative(node) is None:
            yield SCHEMA_UNSUPPORTED(key.location, reason=f"`{key.text}` gives values several shapes", remedy="")
        elif key.text == "additionalProperties" and isinstance(value, MappingNode) and "properties" not in node:
            remedy = "A list of structs with a key and a value can hold the same."
            yield SCHEMA_UNSUPPORTED(key.location, reason="an object with any keys is a map", remedy=remedy)


def restricting(node: MappingNode) -> Problem | None:
    """A warning of the rules in this object that types do not check."""
    if "x-situ-type" in node or "x-situ-any" in node or "x-situ-base" in node:
        return None
    words = [key for key, _ in node.entries if key.text in _RESTRICTING]
    if _bounds(node) in (_INT, _LONG):
        words = [key for key in words if key.text not in ("minimum", "maximum")]
    if not words:
        return None
    return SCHEMA_NOT_CHECKED(words[0].location, keywords=", ".join(f"`{key.text}`" for key in words))


def nullable_alternative(node: MappingNode) -> Node | None:
    """``X`` if the schema says "X or null" by ``anyOf`` or ``oneOf``."""
    for keyword in ("anyOf", "oneOf"):
        choices = node.get(keyword)
        if isinstance(choices, SequenceNode) and len(choices.items) == 2:
            others = [
                each
                for each in choices.items
                if not (isinstance(each, MappingNode) and text_of(each, "type") == "null")
            ]
            if len(others) == 1:
                return others[0]
    return None


def only_reference(node: Node) -> ScalarNode | None:
    """The reference of a schema that is nothing else, apart from notes."""
    if not isinstance(node, MappingNode):
        return None
    reference = node.get("$ref")
    if reference is None and "properties" not in node and "type" not in node:
        parts = node.get("allOf")
        if isinstance(parts, SequenceNode) and len(parts.items) == 1 and isinstance(parts.items[0], MappingNode):
            reference = parts.items[0].get("$ref")
    return reference if isinstance(reference, ScalarNode) else None


def is_struct(node: Node) -> bool:
    """Whether values are objects with known attributes."""
    if not isinstance(node, MappingNode) or only_reference(node):
        return False
    return "properties" in node or "allOf" in node


def has_name(node: MappingNode) -> bool:
    """Whether a definition makes a type of its name: a struct or a primitive, not a list or a reference."""
    if "x-situ-any" in node:
        return False
    if "x-situ-base" in node or is_struct(node):
        return True
    return text_of(node, "type") in ("string", "integer", "number", "boolean")


def kind_of(node: MappingNode) -> tuple[str, bool]:
    """The one kind of value the schema allows, and whether null as well; :class:`SituError` if there is no one kind."""
    written = node.get("type")
    kinds = list(written.items) if isinstance(written, SequenceNode) else [written] if written is not None else []
    names = {each.value for each in kinds if isinstance(each, ScalarNode)}
    values = _listed_values(node)
    nullable = "null" in names or is_true(node, "nullable") or None in values
    names -= {"null"}
    if not names and values:
        names = {_kind_of_value(value) for value in values if value is not None}
    if not names and is_struct(node):
        names = {"object"}
    if names == {"integer", "number"}:
        names = {"number"}
    if len(names) != 1:
        reason = "it allows values of several types" if names else "it allows values of any type"
        unsupported(written or node, reason, "Give it one `type`, with or without `null`.")
    kind = names.pop()
    if kind not in _KINDS:
        unsupported(written or node, f"{describe(written or node)} is no type of JSON Schema")
    return str(kind), nullable


def primitive_of(node: MappingNode, kind: str) -> str:
    """The name of the primitive for single values of this kind."""
    form = text_of(node, "format")
    if kind == "string":
        if text_of(node, "contentEncoding") == "base64":
            return "bytes"
        return _TEXT_FORMATS.get(form, "string")
    if kind == "integer":
        low, high = _bounds(node)
        fits = low is not None and high is not None and _INT[0] <= low and high <= _INT[1]
        return "int" if form == "int32" or fits else "long"
    return {"number": "double", "boolean": "boolean"}[kind]


def _bounds(node: MappingNode) -> tuple[Any, Any]:
    low, high = node.get("minimum"), node.get("maximum")
    found = tuple(
        each.value if isinstance(each, ScalarNode) and _is_number(each.value) else None for each in (low, high)
    )
    return found[0], found[1]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _listed_values(node: MappingNode) -> list[Any]:
    listed = node.get("enum")
    values = [to_data(each) for each in listed.items] if isinstance(listed, SequenceNode) else []
    single = node.get("const")
    return values if single is None else [*values, to_data(single)]


def _kind_of_value(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "integer" if isinstance(value, int) else "number"
    return "string" if isinstance(value, str) else "object"


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# JSON Schema (draft 7 to 2020-12) → types, with all that types cannot express.
#
# Definitions become types of their names, the schema itself an event type, objects inside objects structs named after
# where they stand. A schema can say more than types: what changes the shape of values (``oneOf``,
# ``patternProperties``, …) is an error where it stands, what only restricts values a warning.

_SECTIONS = ("$defs", "definitions")
_ESCAPE = re.compile(r"%([0-9a-fA-F]{2})")
_NO_NAME = re.compile(r"[^A-Za-z0-9_.]+")
_MOST_STACKED = 64
_LONGEST_SHOWN = 100
_NO_RECURSION = "Values are trees of known depth: hold an identifier of the other instead."


def import_schema(document: Document, name: str, problems: Problems) -> Types:
    """The types a JSON Schema describes; ``name`` is for the schema itself if it has no title."""
    problems.extend(document.problems)
    root = None if document.root is None else Reader(problems).mapping(document.root)
    if root is None:
        return resolve((), (), problems)
    run = _Import(root, problems)
    run.definitions()
    run.root(name)
    return resolve(run.types, run.units(), problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Meaning:
    """What a schema at some place stands for."""

    type: TypeRef
    nullable: bool = False
    unit: str = ""
    unit_place: Place = nowhere
    default: Default | None = None
    optional: bool | None = None


@dataclass(slots=True)
class _Definition:
    """A definition: the name of its type, or, without one, what is put wherever it is referred to."""

    key: ScalarNode
    node: Node
    name: str = ""
    meaning: _Meaning | None = None
    visited: bool = False
    open: bool = False


class _Import:
    """One run over one document. Every schema is visited once, so every problem is noted once."""

    def __init__(self, root: MappingNode, problems: Problems) -> None:
        self.types: list[TypeDeclaration] = []
        self._root = root
        self._problems = problems
        self._read = Reader(problems)
        self._names = dict.fromkeys(RESERVED_TYPES, 1)
        self._suggestions = Suggestions()
        self._events = {each.value for each in _items(root, "x-situ-events") if isinstance(each, ScalarNode)}
        self._definitions = self._collect()
        self._stacked = 0

    def _collect(self) -> dict[str, _Definition]:
        found: dict[str, _Definition] = {}
        for section in _SECTIONS:
            for key, schema in self._entries(self._root, section):
                definition = _Definition(key, schema)
                if isinstance(schema, MappingNode) and has_name(schema):
                    built = is_true(schema, "x-situ-built-in") and key.text in built_in()
                    definition.name = key.text if built else self._fresh(key.text)
                found[f"#/{section}/{key.text}"] = definition
        return found

    def definitions(self) -> None:
        """Declare a type for every definition that has a name."""
        for definition in self._definitions.values():
            name, node, place = definition.name, definition.node, place_of(definition.key)
            if not isinstance(node, MappingNode) or (not name and "x-situ-any" not in node):
                self._inline(definition)
            elif name and is_struct(node):
                if not (is_true(node, "x-situ-built-in") and name in built_in()):
                    self._struct(name, node, place, event=name in self._events)
            elif name and (base := self._attempt(node, name)) is not None and not isinstance(base.type, ListRef):
                self.types.append(TypeDeclaration(name=name, supers=(base.type,), place=place))

    def root(self, name: str) -> None:
        """Declare an event type for the schema itself, if it describes something."""
        reference = only_reference(self._root)
        if reference is not None:
            target = self._target(reference)
            if target is not None and not self._events:
                self.types = [replace(each, event=each.event or each.name == target.name) for each in self.types]
        elif is_struct(self._root):
            title = self._root.get("title")
            place = place_of(title if title is not None else self._root)
            self._struct(self._fresh(text_of(self._root, "title") or name), self._root, place, event=True)
        elif not self._definitions:
            reason = "it has neither `properties` nor definitions"
            self._problems.add(SCHEMA_UNSUPPORTED(self._root.location, reason=reason, remedy=""))

    def units(self) -> Iterator[UnitDeclaration]:
        for key, kind in self._entries(self._root, "x-situ-units"):
            declaration = declare_unit(key, kind, self._read)
            if declaration is not None:
                yield declaration

    def _entries(self, node: MappingNode, keyword: str) -> tuple[tuple[ScalarNode, Node], ...]:
        value = node.get(keyword)
        mapping = None if value is None else self._read.mapping(value)
        return mapping.entries if mapping else ()

    def _struct(self, name: str, node: MappingNode, place: Place, *, event: bool) -> None:
        supers: list[NameRef] = []
        attributes: dict[str, AttributeDeclaration] = {}
        for part in self._flattened(node, supers):
            self._problems.extend(shaping(part))
            required = {each.value for each in _items(part, "required") if isinstance(each, ScalarNode)}
            for key, schema in self._entries(part, "properties"):
                attribute = self._attribute(name, key, schema, required=key.text in required)
                if attribute is not None:
                    attributes[key.text] = attribute
        declared = TypeDeclaration(
            name=name, supers=tuple(supers), attributes=tuple(attributes.values()), event=event, place=place
        )
        self.types.append(declared)

    def _flattened(self, node: MappingNode, supers: list[NameRef]) -> Iterator[MappingNode]:
        """The object and those inside its ``allOf``; references to structs there are supertypes."""
        for part in _items(node, "allOf"):
            reference = only_reference(part)
            if reference is not None:
                target = self._target(reference)
                if target is not None and target.name:
                    supers.append(NameRef(target.name, place_of(reference)))
                elif target is not None:
                    reason = "only objects can be combined by `allOf`"
                    self._problems.add(SCHEMA_UNSUPPORTED(reference.location, reason=reason, remedy=""))
            elif isinstance(part, MappingNode):
                yield from self._flattened(part, supers)
        yield node

    def _attribute(self, struct: str, key: ScalarNode, schema: Node, *, required: bool) -> AttributeDeclaration | None:
        meaning = self._attempt(schema, struct + key.text[:1].upper() + key.text[1:])
        if meaning is None or not check_attribute_name(key, self._read):
            return None
        optional = meaning.nullable or not required
        if meaning.default is not None:
            optional = bool(meaning.optional)
        text = AttributeText(type=meaning.type, unit=meaning.unit, optional=optional, unit_place=meaning.unit_place)
        return AttributeDeclaration(name=key.text, text=text, default=meaning.default, place=place_of(key))

    def _attempt(self, schema: Node, hint: str) -> _Meaning | None:
        try:
            return self._meaning(schema, hint)
        except SituError as error:
            self._problems.extend(error.problems)
            return None

    def _meaning(self, schema: Node, hint: str) -> _Meaning:
        """What stands for a schema; an object inside becomes a struct of its own with a name like the hint."""
        if not isinstance(schema, MappingNode):
            unsupported(schema, "it allows values of any type", "Give it one `type`, with or without `null`.")
        self._stacked += 1
        try:
            if self._stacked > _MOST_STACKED:
                unsupported(schema, f"more than {_MOST_STACKED} references and lists are stacked here")
            meaning = self._bare_meaning(schema, hint)
        finally:
            self._stacked -= 1
        return _with_notes(meaning, schema)

    def _bare_meaning(self, schema: MappingNode, hint: str) -> _Meaning:
        reference = only_reference(schema)
        if reference is not None:
            return self._referred(reference)
        other = nullable_alternative(schema)
        if other is not None:
            return replace(self._meaning(other, hint), nullable=True)
        if found := tuple(shaping(schema)):
            raise SituError(*found)
        if warning := restricting(schema):
            self._problems.add(warning)
        if text := text_of(schema, "x-situ-type") or text_of(schema, "x-situ-base"):
            return _Meaning(type=parse_type(text, lambda offset, length: schema.location), nullable=False)
        kind, nullable = kind_of(schema)
        if kind == "object":
            return _Meaning(type=self._nested(schema, hint), nullable=nullable)
        if kind == "array":
            items = schema.get("items")
            if items is None or isinstance(items, SequenceNode):
                unsupported(items or schema, "the elements of a list must have one type", "Give it `items`.")
            element = self._meaning(items, hint + "Item")
            return _Meaning(type=ListRef(element.type, place_of(schema)), nullable=nullable, unit=element.unit)
        return _Meaning(type=NameRef(primitive_of(schema, kind), place_of(schema)), nullable=nullable)

    def _nested(self, schema: MappingNode, hint: str) -> NameRef:
        if not is_struct(schema):
            unsupported(schema, "an object with any content has no attributes", "Give it `properties`.")
        name = self._fresh(text_of(schema, "title") or hint)
        self._struct(name, schema, place_of(schema), event=False)
        return NameRef(name, place_of(schema))

    def _referred(self, reference: ScalarNode) -> _Meaning:
        target = self._target(reference)
        if target is None:
            raise SituError
        if target.name:
            return _Meaning(type=NameRef(target.name, place_of(reference)))
        if target.open:
            unsupported(reference, "it refers to itself")
        meaning = self._inline(target)
        if meaning is None:
            raise SituError
        return meaning

    def _inline(self, definition: _Definition) -> _Meaning | None:
        """What stands for a definition without a name, worked out at the first reference."""
        if not definition.visited:
            definition.visited = definition.open = True
            definition.meaning = self._attempt(definition.node, definition.key.text)
            definition.open = False
        return definition.meaning

    def _target(self, reference: ScalarNode) -> _Definition | None:
        """The definition that is referred to. A reference that leads nowhere is noted, once."""
        pointer = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), reference.text)
        pointer = pointer.replace("~1", "/").replace("~0", "~")
        found = self._definitions.get(pointer)
        if found is not None and isinstance(found.node, MappingNode) and (name := text_of(found.node, "x-situ-any")):
            found = self._definitions.get(f"#/$defs/{name}")
        if found is None:
            if pointer == "#":
                reason = "the schema refers to itself"
                self._problems.add(SCHEMA_UNSUPPORTED(reference.location, reason=reason, remedy=_NO_RECURSION))
            else:
                similar = self._suggestions.near(pointer, self._definitions)
                shown = reference.text[:_LONGEST_SHOWN]
                self._problems.add(SCHEMA_REFERENCE(reference.location, reference=shown, nearest=similar))
        return found

    def _fresh(self, wanted: str) -> str:
        """A name for a type: the wanted one, made of the letters names may have, numbered if it is taken."""
        name = _NO_NAME.sub("_", wanted[:_LONGEST_SHOWN]).strip("_.") or "Type"
        if not TYPE_NAME.fullmatch(name) or name.startswith("situ"):
            name = "Type_" + name.replace(".", "_")
        result = name
        while result in self._names:
            self._names[name] += 1
            result = f"{name}{self._names[name]}"
        self._names[result] = 1
        return result


def _items(node: MappingNode, keyword: str) -> tuple[Node, ...]:
    value = node.get(keyword)
    return value.items if isinstance(value, SequenceNode) else ()


def _with_notes(meaning: _Meaning, schema: MappingNode) -> _Meaning:
    """With what may stand beside any schema: unit, default, whether it may be null."""
    unit = schema.get("x-situ-unit")
    default = schema.get("default")
    has_default = default is not None and not (isinstance(default, ScalarNode) and default.value is None)
    return replace(
        meaning,
        nullable=meaning.nullable or is_true(schema, "nullable"),
        unit=text_of(schema, "x-situ-unit") or meaning.unit,
        unit_place=place_of(unit) if unit is not None else meaning.unit_place,
        default=Default(to_data(default), place_of(default))
        if default is not None and has_default
        else meaning.default,
        optional=is_true(schema, "x-situ-optional"),
    )


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# A table of types → JSON Schema (draft 2020-12), for producers, editors and other tools.
#
# What JSON Schema has no word for stands in ``x-situ-…`` keywords, so that the import gives the same table back. A
# struct with subtypes has two definitions: ``D`` says what a value of exactly that type has, ``any:D`` adds that
# ``$type`` may name a subtype, which then decides.

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
