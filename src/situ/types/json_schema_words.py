"""What the keywords of one JSON Schema object say, seen alone: which kind of value, which primitive, what no type has.

Knows nothing of references, definitions and names; those are :mod:`situ.types.json_schema_import`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

from situ.catalogue import SCHEMA_NOT_CHECKED, SCHEMA_UNSUPPORTED
from situ.documents import Mapping, Node, Scalar, Sequence, describe, to_data
from situ.errors import Problem, SituError

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


def text_of(node: Mapping, keyword: str) -> str:
    """The text under a keyword; empty if there is none."""
    value = node.get(keyword)
    return value.value if isinstance(value, Scalar) and isinstance(value.value, str) else ""


def is_true(node: Mapping, keyword: str) -> bool:
    value = node.get(keyword)
    return isinstance(value, Scalar) and value.value is True


def shaping(node: Mapping) -> Iterator[Problem]:
    """The keywords of this object that give values a shape no type has."""
    for key, value in node.entries:
        if key.text in _SHAPING and nullable_alternative(node) is None:
            yield SCHEMA_UNSUPPORTED(key.location, reason=f"`{key.text}` gives values several shapes", remedy="")
        elif key.text == "additionalProperties" and isinstance(value, Mapping) and "properties" not in node:
            remedy = "A list of structs with a key and a value can hold the same."
            yield SCHEMA_UNSUPPORTED(key.location, reason="an object with any keys is a map", remedy=remedy)


def restricting(node: Mapping) -> Problem | None:
    """A warning of the rules in this object that types do not check."""
    if "x-situ-type" in node or "x-situ-any" in node or "x-situ-base" in node:
        return None
    words = [key for key, _ in node.entries if key.text in _RESTRICTING]
    if _bounds(node) in (_INT, _LONG):
        words = [key for key in words if key.text not in ("minimum", "maximum")]
    if not words:
        return None
    return SCHEMA_NOT_CHECKED(words[0].location, keywords=", ".join(f"`{key.text}`" for key in words))


def nullable_alternative(node: Mapping) -> Node | None:
    """``X`` if the schema says "X or null" by ``anyOf`` or ``oneOf``."""
    for keyword in ("anyOf", "oneOf"):
        choices = node.get(keyword)
        if isinstance(choices, Sequence) and len(choices.items) == 2:
            others = [
                each for each in choices.items if not (isinstance(each, Mapping) and text_of(each, "type") == "null")
            ]
            if len(others) == 1:
                return others[0]
    return None


def only_reference(node: Node) -> Scalar | None:
    """The reference of a schema that is nothing else, apart from notes."""
    if not isinstance(node, Mapping):
        return None
    reference = node.get("$ref")
    if reference is None and "properties" not in node and "type" not in node:
        parts = node.get("allOf")
        if isinstance(parts, Sequence) and len(parts.items) == 1 and isinstance(parts.items[0], Mapping):
            reference = parts.items[0].get("$ref")
    return reference if isinstance(reference, Scalar) else None


def is_struct(node: Node) -> bool:
    """Whether values are objects with known attributes."""
    if not isinstance(node, Mapping) or only_reference(node):
        return False
    return "properties" in node or "allOf" in node


def has_name(node: Mapping) -> bool:
    """Whether a definition makes a type of its name: a struct or a primitive, not a list or a reference."""
    if "x-situ-any" in node:
        return False
    if "x-situ-base" in node or is_struct(node):
        return True
    return text_of(node, "type") in ("string", "integer", "number", "boolean")


def kind_of(node: Mapping) -> tuple[str, bool]:
    """The one kind of value the schema allows, and whether null as well; :class:`SituError` if there is no one kind."""
    written = node.get("type")
    kinds = list(written.items) if isinstance(written, Sequence) else [written] if written is not None else []
    names = {each.value for each in kinds if isinstance(each, Scalar)}
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


def primitive_of(node: Mapping, kind: str) -> str:
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


def _bounds(node: Mapping) -> tuple[Any, Any]:
    low, high = node.get("minimum"), node.get("maximum")
    found = tuple(each.value if isinstance(each, Scalar) and _is_number(each.value) else None for each in (low, high))
    return found[0], found[1]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _listed_values(node: Mapping) -> list[Any]:
    listed = node.get("enum")
    values = [to_data(each) for each in listed.items] if isinstance(listed, Sequence) else []
    single = node.get("const")
    return values if single is None else [*values, to_data(single)]


def _kind_of_value(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "integer" if isinstance(value, int) else "number"
    return "string" if isinstance(value, str) else "object"
