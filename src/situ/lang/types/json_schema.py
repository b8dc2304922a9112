"""JSON Schema (draft 7 to 2020-12) → types, with all that types cannot express.

Definitions become types of their names, the schema itself an event type, objects inside objects structs named after
where they stand. What Situ exported comes back as it was. A schema can say more than types: what changes the shape of
values (``oneOf``, ``patternProperties``, …) is an error where it stands, what only restricts values a warning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from situ.catalogue import SCHEMA_REFERENCE, SCHEMA_UNSUPPORTED
from situ.documents import Document, Mapping, Node, Reader, Scalar, Sequence, to_data
from situ.errors import Problems, SituError
from situ.types.declare import (
    AttributeDeclaration,
    Default,
    TypeDeclaration,
    UnitDeclaration,
    check_attribute_name,
    declare_unit,
    place_of,
)
from situ.types.json_schema_words import (
    has_name,
    is_struct,
    is_true,
    kind_of,
    nullable_alternative,
    only_reference,
    primitive_of,
    restricting,
    shaping,
    text_of,
    unsupported,
)
from situ.types.lookup import Suggestions
from situ.types.resolve import resolve
from situ.types.syntax import (
    RESERVED_TYPES,
    TYPE_NAME,
    AttributeText,
    ListRef,
    NameRef,
    Place,
    TypeRef,
    nowhere,
    parse_type,
)
from situ.types.table import Types, built_in

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

    key: Scalar
    node: Node
    name: str = ""
    meaning: _Meaning | None = None
    visited: bool = False
    open: bool = False


class _Import:
    """One run over one document. Every schema is visited once, so every problem is noted once."""

    def __init__(self, root: Mapping, problems: Problems) -> None:
        self.types: list[TypeDeclaration] = []
        self._root = root
        self._problems = problems
        self._read = Reader(problems)
        self._names = dict.fromkeys(RESERVED_TYPES, 1)
        self._suggestions = Suggestions()
        self._events = {each.value for each in _items(root, "x-situ-events") if isinstance(each, Scalar)}
        self._definitions = self._collect()
        self._stacked = 0

    def _collect(self) -> dict[str, _Definition]:
        found: dict[str, _Definition] = {}
        for section in _SECTIONS:
            for key, schema in self._entries(self._root, section):
                definition = _Definition(key, schema)
                if isinstance(schema, Mapping) and has_name(schema):
                    built = is_true(schema, "x-situ-built-in") and key.text in built_in()
                    definition.name = key.text if built else self._fresh(key.text)
                found[f"#/{section}/{key.text}"] = definition
        return found

    def definitions(self) -> None:
        """Declare a type for every definition that has a name."""
        for definition in self._definitions.values():
            name, node, place = definition.name, definition.node, place_of(definition.key)
            if not isinstance(node, Mapping) or (not name and "x-situ-any" not in node):
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

    def _entries(self, node: Mapping, keyword: str) -> tuple[tuple[Scalar, Node], ...]:
        value = node.get(keyword)
        mapping = None if value is None else self._read.mapping(value)
        return mapping.entries if mapping else ()

    def _struct(self, name: str, node: Mapping, place: Place, *, event: bool) -> None:
        supers: list[NameRef] = []
        attributes: dict[str, AttributeDeclaration] = {}
        for part in self._flattened(node, supers):
            self._problems.extend(shaping(part))
            required = {each.value for each in _items(part, "required") if isinstance(each, Scalar)}
            for key, schema in self._entries(part, "properties"):
                attribute = self._attribute(name, key, schema, required=key.text in required)
                if attribute is not None:
                    attributes[key.text] = attribute
        declared = TypeDeclaration(
            name=name, supers=tuple(supers), attributes=tuple(attributes.values()), event=event, place=place
        )
        self.types.append(declared)

    def _flattened(self, node: Mapping, supers: list[NameRef]) -> Iterator[Mapping]:
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
            elif isinstance(part, Mapping):
                yield from self._flattened(part, supers)
        yield node

    def _attribute(self, struct: str, key: Scalar, schema: Node, *, required: bool) -> AttributeDeclaration | None:
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
        if not isinstance(schema, Mapping):
            unsupported(schema, "it allows values of any type", "Give it one `type`, with or without `null`.")
        self._stacked += 1
        try:
            if self._stacked > _MOST_STACKED:
                unsupported(schema, f"more than {_MOST_STACKED} references and lists are stacked here")
            meaning = self._bare_meaning(schema, hint)
        finally:
            self._stacked -= 1
        return _with_notes(meaning, schema)

    def _bare_meaning(self, schema: Mapping, hint: str) -> _Meaning:
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
            if items is None or isinstance(items, Sequence):
                unsupported(items or schema, "the elements of a list must have one type", "Give it `items`.")
            element = self._meaning(items, hint + "Item")
            return _Meaning(type=ListRef(element.type, place_of(schema)), nullable=nullable, unit=element.unit)
        return _Meaning(type=NameRef(primitive_of(schema, kind), place_of(schema)), nullable=nullable)

    def _nested(self, schema: Mapping, hint: str) -> NameRef:
        if not is_struct(schema):
            unsupported(schema, "an object with any content has no attributes", "Give it `properties`.")
        name = self._fresh(text_of(schema, "title") or hint)
        self._struct(name, schema, place_of(schema), event=False)
        return NameRef(name, place_of(schema))

    def _referred(self, reference: Scalar) -> _Meaning:
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

    def _target(self, reference: Scalar) -> _Definition | None:
        """The definition that is referred to. A reference that leads nowhere is noted, once."""
        pointer = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), reference.text)
        pointer = pointer.replace("~1", "/").replace("~0", "~")
        found = self._definitions.get(pointer)
        if found is not None and isinstance(found.node, Mapping) and (name := text_of(found.node, "x-situ-any")):
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


def _items(node: Mapping, keyword: str) -> tuple[Node, ...]:
    value = node.get(keyword)
    return value.items if isinstance(value, Sequence) else ()


def _with_notes(meaning: _Meaning, schema: Mapping) -> _Meaning:
    """With what may stand beside any schema: unit, default, whether it may be null."""
    unit = schema.get("x-situ-unit")
    default = schema.get("default")
    has_default = default is not None and not (isinstance(default, Scalar) and default.value is None)
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
