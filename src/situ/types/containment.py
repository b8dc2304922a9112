"""Structs inside structs: none inside itself, and none with more places for values than anyone can follow.

A value of a subtype can stand wherever its supertype is declared, so a struct contains what its attributes' types
contain *and what their subtypes contain*. The graph has two nodes per type, "has" and "any": a struct has the
attributes of its supertypes and, at each of its own, any value of the type; that is the type or any type below.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from situ.catalogue import CONTAINS_ITSELF, TOO_MANY_PATHS
from situ.errors import Problems
from situ.types.declare import TypeDeclaration
from situ.types.model import ListOf, Named, Struct, Type
from situ.types.order import Circle, dependency_order, entangled
from situ.types.syntax import DecimalRef, ListRef, Place, TypeRef, nowhere
from situ.types.table import Types

MOST_PATHS = 10_000

_Node = tuple[Literal["has", "any"], str]


@dataclass(frozen=True, slots=True)
class Entangled:
    """What has to be left out so that no struct contains itself: attributes and supertypes, as (struct, type)."""

    attributes: frozenset[tuple[str, str]] = frozenset()
    supers: frozenset[tuple[str, str]] = frozenset()


def check_containment(
    declared: Mapping[str, TypeDeclaration],
    supers: Mapping[str, tuple[str, ...]],
    visible: Mapping[str, Named | Struct],
    problems: Problems,
) -> Entangled:
    """Report every struct that contains itself, and say what to leave out then."""
    needs: dict[_Node, list[_Node]] = {}
    for name, declaration in declared.items():
        parts = (element_name(attribute.text.type) for attribute in declaration.attributes)
        _enter(needs, name, supers[name], (part for part in parts if part))
    for name, type in visible.items():
        if isinstance(type, Struct):
            hidden = declared.keys()
            inner = (_struct_in(attribute.type) for attribute in type.attributes)
            parts = (_unless_hidden(part.name, hidden) for part in inner if part)
            above = (_unless_hidden(each.name, hidden) for each in type.supers)
            _enter(needs, _unless_hidden(name, hidden), above, parts)
    circles = dependency_order(needs)[1]
    for circle in circles:
        _report(circle, declared, problems)
    return _to_leave_out(needs, declared) if circles else Entangled()


def _to_leave_out(needs: Mapping[_Node, list[_Node]], declared: Mapping[str, TypeDeclaration]) -> Entangled:
    """Every circle passes through an attribute: a declared one, or a built-in one that a declared type inherits."""
    knot = entangled(needs)
    steps = [(name, step) for kind, name in knot if kind == "has" and name in declared for step in needs["has", name]]
    return Entangled(
        frozenset((name, part) for name, (kind, part) in steps if kind == "any" and ("any", part) in knot),
        frozenset((name, above) for name, (kind, above) in steps if kind == "has" and above not in declared),
    )


def element_name(ref: TypeRef) -> str:
    """The name of the type a reference leads to, through lists; empty for a decimal."""
    while isinstance(ref, ListRef):
        ref = ref.element
    return "" if isinstance(ref, DecimalRef) else ref.name


def check_paths(types: Types, places: Mapping[str, Place], problems: Problems) -> None:
    """Report every struct with too many places for a value, unless one inside it is to blame.

    To be called only where no struct contains itself.
    """
    counts = _count_paths(types)
    for name, place in places.items():
        found = counts.get(name, 0)
        if found > MOST_PATHS and not any(counts[part] > MOST_PATHS for part in _parts(types, types.types[name])):
            shown = f"{found:,}" if found < 10**15 else "over 10^15"
            problems.add(TOO_MANY_PATHS(place(), name=name, found=shown, most=MOST_PATHS))


def _count_paths(types: Types) -> dict[str, int]:
    structs = {name: type for name, type in types.types.items() if isinstance(type, Struct)}
    parts = {name: _parts(types, struct) for name, struct in structs.items()}
    below = {
        part: tuple(each.name for each in types.subtypes(structs[part]) if isinstance(each, Struct))
        for part in set().union(*parts.values())
    }
    needs: dict[_Node, list[_Node]] = {}
    for part, names in below.items():
        needs["any", part] = [("has", name) for name in names]
    for name, inner in parts.items():
        needs["has", name] = [("any", part) for part in inner]
    has: dict[str, int] = {}
    anything: dict[str, int] = {}
    for kind, name in dependency_order(needs)[0]:
        if kind == "any":
            anything[name] = sum(has[each] for each in below[name])
        else:
            has[name] = 1 + sum(_places(types, each.type, anything) for each in structs[name].attributes)
    return has


def _parts(types: Types, type: Type) -> set[str]:
    """The names of the structs that attributes of this one are declared with, also of those that are hidden."""
    if not isinstance(type, Struct):
        return set()
    found: set[str] = set()
    seen: set[int] = set()
    waiting = [_struct_in(attribute.type) for attribute in type.attributes]
    while waiting:
        part = waiting.pop()
        if part is None or id(part) in seen:
            continue
        seen.add(id(part))
        if types.types.get(part.name) is part:
            found.add(part.name)
        else:
            waiting.extend(_struct_in(attribute.type) for attribute in part.attributes)
    return found


def _places(types: Types, type: Type, anything: Mapping[str, int]) -> int:
    """A list is a place, and so are its elements."""
    lists = 0
    while isinstance(type, ListOf):
        type, lists = type.element, lists + 1
    if not isinstance(type, Struct):
        return lists + 1
    if types.types.get(type.name) is type:
        return lists + anything[type.name]
    # Hidden by a declared type of its name: nothing that is visible is below it.
    return lists + 1 + sum(_places(types, attribute.type, anything) for attribute in type.attributes)


def _struct_in(type: Type) -> Struct | None:
    while isinstance(type, ListOf):
        type = type.element
    return type if isinstance(type, Struct) else None


def _enter(needs: dict[_Node, list[_Node]], name: str, supers: Iterable[str], parts: Iterable[str]) -> None:
    above = tuple(supers)
    needs.setdefault(("any", name), []).append(("has", name))
    needs["has", name] = [*(("has", each) for each in above), *(("any", part) for part in parts)]
    for each in above:
        needs.setdefault(("any", each), []).append(("any", name))


def _unless_hidden(name: str, hidden: Container[str]) -> str:
    return f"{name} (built in)" if name in hidden else name


def _report(circle: Circle[_Node], declared: Mapping[str, TypeDeclaration], problems: Problems) -> None:
    steps: list[str] = []
    culprit = ""
    place: Place = nowhere
    for (kind, name), (next_kind, following) in zip(circle.names, (*circle.names[1:], circle.names[0]), strict=True):
        if kind == "any" and next_kind == "any":
            steps.append(f"{name} may be {following}")
        elif kind == "has" and next_kind == "has":
            steps.append(f"{name} extends {following}")
        elif kind == "has" and name in declared:
            for attribute in declared[name].attributes:
                if element_name(attribute.text.type) == following:
                    steps.append(f"{name}.{attribute.name} holds {following}")
                    culprit, place = name, attribute.place
                    break
    if not culprit:
        culprit = next((name for _, name in circle.names if name in declared), circle.names[0][1])
        place = declared[culprit].place if culprit in declared else nowhere
    way = ", ".join([*steps, "…"] if circle.cut else steps)
    problems.add(CONTAINS_ITSELF(place(), name=culprit, way=way))
