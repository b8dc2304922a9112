"""What there is to know about types: attributes and where they come from, what is above and below.

Decides and lays nothing out: :mod:`situ.cli.render.types` does that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from situ.lang.explanation import Explanation
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeBranch:
    """A type in the tree of all types, with its own attributes; ``again`` where it already stands further up."""

    name: str
    attributes: tuple[str, ...]
    again: bool = False
    below: tuple[TypeBranch, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeSection:
    """The types of one kind."""

    title: str
    branches: tuple[TypeBranch, ...]


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
    )


def explain_all(types: Types) -> tuple[TypeExplanation, ...]:
    """Every declared type, in the order of their names."""
    return tuple(explain_type(type, types) for type in types.declared)


def type_tree(types: Types) -> tuple[TypeSection, ...]:
    """All types by kind, subtypes below their supertypes. Kinds of which there is none are left out."""
    declared = types.declared
    events = [type for type in declared if type.name in types.events]
    structs = [type for type in declared if isinstance(type, Struct) and type.name not in types.events]
    named = [type for type in declared if isinstance(type, Named)]
    given = [type for name, type in types.types.items() if built_in().get(name) == type]
    sections = (
        ("Events", _branches(events)),
        ("Types", _branches(structs)),
        ("Named primitives", _branches(named)),
        ("Built-in types", _branches(given)),
    )
    return tuple(TypeSection(title=title, branches=branches) for title, branches in sections if branches)


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


def _branches(members: Iterable[Named | Struct]) -> tuple[TypeBranch, ...]:
    """The members as trees. One with several supertypes stands below each, with what is below it only once."""
    here = {type.name: type for type in members}
    below: dict[str, list[str]] = {}
    for name, type in here.items():
        for above in _above(type):
            below.setdefault(above, []).append(name)
    seen: set[str] = set()

    def branch(name: str) -> TypeBranch:
        again = name in seen
        seen.add(name)
        inside = () if again else tuple(branch(other) for other in below.get(name, ()))
        return TypeBranch(name=name, attributes=tuple(_own(here[name])), again=again and name in below, below=inside)

    roots = [name for name, type in here.items() if not any(above in here for above in _above(type))]
    return tuple(branch(name) for name in roots)


def _above(type: Named | Struct) -> tuple[str, ...]:
    return tuple(above.name for above in type.supers) if isinstance(type, Struct) else (str(type.base),)


def _own(type: Named | Struct) -> Iterator[str]:
    if isinstance(type, Named):
        yield format_type(type.base)
    else:
        yield from (_shown(attribute) for attribute in own_attributes(type))


def _shown(attribute: Attribute) -> str:
    default = "" if attribute.default is None else " with a default"
    return f"{attribute.name}: {format_attribute(attribute)}{default}"
