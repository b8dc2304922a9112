"""Declarations → a table of types, with all that is wrong in them.

The order: names, supertypes, containment, then types from those without needs upwards. A fault takes out only what it
touches, so that every other fault is found, too. Nothing here recurses: a chain of any length is walked in a line and
refused where it becomes too long for those who come after.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from situ.catalogue import (
    BAD_NAME,
    BAD_SUPERTYPE,
    CONFLICTING_ATTRIBUTE,
    DECLARED_TWICE,
    SUPERTYPE_CYCLE,
    UNKNOWN_TYPE,
)
from situ.errors import Problems
from situ.types.containment import Entangled, check_containment, check_paths, element_name
from situ.types.declare import TypeDeclaration, UnitDeclaration
from situ.types.inheritance import combine, find_conflicts
from situ.types.lookup import Lookup, Suggestions
from situ.types.measure import Measure
from situ.types.model import PRIMITIVES, Attribute, Decimal, Named, Primitive, Struct
from situ.types.order import dependency_order
from situ.types.syntax import RESERVED_PREFIX, RESERVED_TYPES, DecimalRef, NameRef, Place
from situ.types.table import Types, built_in, seen_below, without_root
from situ.units import Units

_Super = NameRef | DecimalRef
_Declaration = TypeVar("_Declaration", TypeDeclaration, UnitDeclaration)


def resolve(
    types: Iterable[TypeDeclaration],
    units: Iterable[UnitDeclaration],
    problems: Problems,
    *,
    above: Types | None = None,
    root: Types | None = None,
) -> Types:
    """The table these declarations make. Where there are problems it lacks what they touch.

    With a table ``above``, that of a context's parent, its types and units are there, too, unless one declared here has
    the same name; ``root:Name`` is always the one of ``root``.
    """
    own = {unit.name: unit.kind for unit in _each_once(units, "The unit", problems).values()}
    labels = Units({**(above.units.labels if above is not None else {}), **own})
    declared = _each_once(_with_free_names(types, problems), "The type", problems)
    visible = seen_below(above, root, declared)
    supers = _check_supers(declared, visible, problems)
    named = {name: tuple(_name(ref) for ref in refs) for name, refs in supers.items()}
    inherited = built_in() if above is None else above.types
    entangled = check_containment(declared, named, inherited, problems)
    built = _Builder(declared, supers, entangled, visible, labels, problems).build()
    events = _events(declared, built) | ((above.events if above is not None else frozenset()) - declared.keys())
    table = Types(types={**without_root(visible), **built}, events=events, units=labels)
    check_paths(table, {name: declared[name].place for name in declared if name in table.types}, problems)
    return table


def _each_once(declarations: Iterable[_Declaration], what: str, problems: Problems) -> dict[str, _Declaration]:
    result: dict[str, _Declaration] = {}
    for declaration in declarations:
        first = result.setdefault(declaration.name, declaration)
        if first is not declaration:
            place = str(first.place() or "an earlier place")
            problems.add(DECLARED_TWICE(declaration.place(), what=what, name=declaration.name, first=place))
    return result


def _with_free_names(declarations: Iterable[TypeDeclaration], problems: Problems) -> Iterable[TypeDeclaration]:
    for declaration in declarations:
        name = declaration.name
        if name in RESERVED_TYPES:
            reason = "it is a word of the notation"
        elif f"{name}.".startswith(RESERVED_PREFIX):
            reason = f"names beginning with `{RESERVED_PREFIX}` belong to Situ"
        else:
            yield declaration
            continue
        problems.add(
            BAD_NAME(declaration.place(), name=name, what="a type", reason=reason, remedy="Choose another name.")
        )


def _check_supers(
    declared: Mapping[str, TypeDeclaration], visible: Mapping[str, Named | Struct], problems: Problems
) -> dict[str, tuple[_Super, ...]]:
    """The supertypes of each type that exist, are there once, lead to no cycle and are of a kind that goes with it."""
    suggestions = Suggestions()
    known: dict[str, list[_Super]] = {}
    for name, declaration in declared.items():
        known[name] = []
        for ref in declaration.supers:
            if isinstance(ref, NameRef) and not (ref.name in declared or ref.name in visible or ref.name in PRIMITIVES):
                similar = suggestions.near(ref.name, declared, visible, PRIMITIVES)
                problems.add(UNKNOWN_TYPE(ref.place(), name=ref.name, nearest=similar))
            elif ref in known[name]:
                first = str(declaration.place() or "an earlier place")
                problems.add(DECLARED_TWICE(ref.place(), what="The supertype", name=_name(ref), first=first))
            else:
                known[name].append(ref)
    order, circles = dependency_order({name: [_name(ref) for ref in refs] for name, refs in known.items()})
    for circle in circles:
        name, above = circle.closing
        closing = next(ref for ref in known[name] if _name(ref) == above)
        problems.add(SUPERTYPE_CYCLE(closing.place(), name=name, cycle=str(circle)))
        known[name].remove(closing)
    single = {name for name, type in visible.items() if isinstance(type, Named)}
    for name in order:
        known[name] = _of_one_kind(declared[name], known[name], single, problems)
        if any(_is_single(ref, single) for ref in known[name]):
            single.add(name)
    return {name: tuple(refs) for name, refs in known.items()}


def _is_single(ref: _Super, single: set[str]) -> bool:
    return isinstance(ref, DecimalRef) or ref.name in PRIMITIVES or ref.name in single


def _of_one_kind(
    declaration: TypeDeclaration, refs: list[_Super], single: set[str], problems: Problems
) -> list[_Super]:
    """Either structs, or exactly one primitive under a type that is nothing but its name."""
    bases = [ref for ref in refs if _is_single(ref, single)]
    if not bases:
        return refs
    if declaration.event:
        reason = "an event is a struct"
    elif declaration.attributes:
        reason = "it has attributes"
    elif len(refs) > 1:
        reason = "it has other supertypes, too"
    else:
        return refs
    for ref in bases:
        problems.add(BAD_SUPERTYPE(ref.place(), name=declaration.name, above=_name(ref), reason=reason))
    return [ref for ref in refs if ref not in bases]


def _name(ref: _Super) -> str:
    return ref.name if isinstance(ref, NameRef) else str(ref.type)


def _events(declared: Mapping[str, TypeDeclaration], built: Mapping[str, Named | Struct]) -> frozenset[str]:
    return frozenset(name for name, each in declared.items() if each.event and isinstance(built.get(name), Struct))


class _Builder:
    """Builds types in the order of their needs. What is entangled was reported before and is left out here."""

    def __init__(
        self,
        declared: Mapping[str, TypeDeclaration],
        supers: Mapping[str, tuple[_Super, ...]],
        entangled: Entangled,
        visible: Mapping[str, Named | Struct],
        units: Units,
        problems: Problems,
    ) -> None:
        self._declared = declared
        self._supers = {
            name: tuple(ref for ref in refs if (name, _name(ref)) not in entangled.supers)
            for name, refs in supers.items()
        }
        self._entangled = entangled.attributes
        self._problems = problems
        self._visible: dict[str, Named | Struct] = dict(visible)
        self._lookup = Lookup(self._visible, units, problems)
        self._measure = Measure(problems)

    def build(self) -> dict[str, Named | Struct]:
        order, _ = dependency_order({name: self._needs(name) for name in self._declared})
        for name in order:
            self._visible[name] = self._type(self._declared[name])
        return {name: self._visible[name] for name in order}

    def _needs(self, name: str) -> list[str]:
        parts = (element_name(attribute.text.type) for attribute in self._declared[name].attributes)
        return [*map(_name, self._supers[name]), *(part for part in parts if (name, part) not in self._entangled)]

    def _type(self, declaration: TypeDeclaration) -> Named | Struct:
        supers: list[Struct] = []
        for ref in self._supers[declaration.name]:
            above = self._lookup.type(ref)
            admitted = above is not None and self._measure.admits(declaration.name, above, ref.place, above=True)
            if isinstance(above, Primitive | Decimal | Named):
                return Named(declaration.name, above if admitted else _innermost(above))
            if isinstance(above, Struct) and admitted:
                supers.append(above)
        return self._struct(declaration, tuple(supers))

    def _struct(self, declaration: TypeDeclaration, supers: tuple[Struct, ...]) -> Struct:
        own: dict[str, Attribute] = {}
        places: dict[str, Place] = {}
        for written in declaration.attributes:
            if (declaration.name, element_name(written.text.type)) in self._entangled:
                self._lookup.unit(written.text.unit, written.text.unit_place)
                continue
            attribute = self._lookup.attribute(written)
            if attribute is not None and self._measure.admits(
                declaration.name, attribute.type, written.place, above=False
            ):
                own[attribute.name] = attribute
                places[attribute.name] = written.place
        for conflict in find_conflicts(declaration.name, supers, own):
            place = places.get(conflict.attribute, declaration.place)
            self._problems.add(
                CONFLICTING_ATTRIBUTE(
                    place(),
                    name=declaration.name,
                    attribute=conflict.attribute,
                    found=conflict.found,
                    above=conflict.above,
                    expected=conflict.expected,
                    remedy=conflict.remedy,
                )
            )
        return Struct(declaration.name, combine(supers, own.values()), supers)


def _innermost(type: Primitive | Decimal | Named) -> Primitive | Decimal:
    while isinstance(type, Named):
        type = type.base
    return type
