"""What there is to know about types: attributes and where they come from, what is above and below; and about codes.

Decides and lays nothing out: :mod:`situ.cli.render.types` does that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

from situ.lang.json_form import TEXT_ONLY, Explanation
from situ.lang.problems import Code, Severity
from situ.lang.types.json_codec import encode
from situ.lang.types.model import (
    PRIMITIVES,
    Attribute,
    Named,
    Struct,
    Type,
    format_attribute,
    format_type,
    own_attributes,
    supertypes,
)
from situ.lang.types.table import Types, built_in


class AttributeExplanation(Explanation, frozen=True, kw_only=True):
    """An attribute of a struct or an event."""

    name: str
    type: str
    unit: str | None
    optional: bool
    default: Any
    """As it is written in JSON."""
    inherited_from: str | None
    """The supertype that declares it; null: the type itself does."""
    narrows: str | None
    """The supertype whose declaration it replaces."""


class TypeExplanation(Explanation, frozen=True, kw_only=True):
    """A type, what is above and below it, and its attributes."""

    name: str
    kind: Literal["event", "struct", "named primitive", "primitive"]
    built_in: bool
    supertypes: tuple[str, ...]
    subtypes: tuple[str, ...]
    attributes: tuple[AttributeExplanation, ...]
    above: Annotated[tuple[str, ...], TEXT_ONLY]
    """The nearest supertypes."""
    own: Annotated[tuple[str, ...], TEXT_ONLY]
    """What it declares itself: attributes, or what it is a name for."""


def explain_type(type: Type, types: Types) -> TypeExplanation:
    """One type of a table."""
    name = str(type)
    return TypeExplanation(
        name=name,
        kind=_kind(type, types),
        built_in=name in PRIMITIVES or built_in().get(name) == type,
        supertypes=tuple(dict.fromkeys(str(above) for above in supertypes(type) if above is not type)),
        subtypes=tuple(str(below) for below in types.subtypes(type)[1:]),
        attributes=tuple(_attributes(type)) if isinstance(type, Struct) else (),
        above=tuple(_above(type)),
        own=tuple(_own(type)),
    )


def explain_all(types: Types) -> tuple[TypeExplanation, ...]:
    """Every declared type and every type that is built in, in the order of their names."""
    return tuple(explain_type(type, types) for type in types.types.values())


def _kind(type: Type, types: Types) -> Literal["event", "struct", "named primitive", "primitive"]:
    match type:
        case Struct(name=name):
            return "event" if name in types.events else "struct"
        case Named():
            return "named primitive"
        case _:
            return "primitive"


def _attributes(struct: Struct) -> Iterator[AttributeExplanation]:
    own = {attribute.name for attribute in own_attributes(struct)}
    for attribute in struct.attributes:
        above = _declared_by(attribute.name, struct.supers)
        yield AttributeExplanation(
            name=attribute.name,
            type=format_type(attribute.type),
            unit=str(attribute.unit) or None,
            optional=attribute.optional,
            default=None if attribute.default is None else encode(attribute.type, attribute.default),
            inherited_from=None if attribute.name in own else above,
            narrows=(above or None) if attribute.name in own else None,
        )


def _declared_by(name: str, supers: Iterable[Struct]) -> str:
    """The nearest supertype that declares the attribute itself; empty if none has it."""
    for above in supers:
        if above.attribute(name) is not None:
            declares = any(attribute.name == name for attribute in own_attributes(above))
            return above.name if declares else _declared_by(name, above.supers)
    return ""


def _above(type: Type) -> Iterator[str]:
    if isinstance(type, Named):
        yield str(type.base)
    elif isinstance(type, Struct):
        yield from (above.name for above in type.supers)


def _own(type: Type) -> Iterator[str]:
    if isinstance(type, Named):
        yield format_type(type.base)
    elif isinstance(type, Struct):
        yield from (_shown(attribute) for attribute in own_attributes(type))


def _shown(attribute: Attribute) -> str:
    default = "" if attribute.default is None else " with a default"
    return f"{attribute.name}: {format_attribute(attribute)}{default}"


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Codes of problems: what the catalogue says of them.


class CodeExplanation(Explanation, frozen=True, kw_only=True):
    """A code of problems, as the catalogue has it."""

    code: str
    severity: Severity
    title: str
    message: str
    """With the names of parameters in braces, as the hint and what is said otherwise."""
    hint: str
    otherwise: str
    """The hint where there is nothing to suggest."""
    parameters: dict[str, str]
    """Their types, by name."""


def describe_code(code: Code) -> CodeExplanation:
    """An entry of the catalogue."""
    return CodeExplanation(
        code=code.code,
        severity=code.severity,
        title=code.title,
        message=code.message,
        hint=code.hint,
        otherwise=code.otherwise,
        parameters={name: type.__name__ for name, type in code.parameters.items()},
    )
