"""Declarations → the table of a project's types, with all that is wrong in them.

:func:`load_types` reads the files of ``types/``, :func:`resolve` makes the table. Before them: how large types may
grow, and that no struct contains itself.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Literal, TypeVar

import msgspec

from situ.lang.catalogue import (
    BAD_NAME,
    BAD_SUPERTYPE,
    CONFLICTING_ATTRIBUTE,
    CONTAINS_ITSELF,
    DECLARED_TWICE,
    SUPERTYPE_CYCLE,
    TOO_MANY_PATHS,
    TYPE_LIMIT,
    UNKNOWN_TYPE,
)
from situ.lang.documents import Document, Reader, is_nothing
from situ.lang.problems import Problems
from situ.lang.types.declaration import TypeDeclaration, UnitDeclaration, declare_types, declare_units
from situ.lang.types.dependency_order import Circle, dependency_order, entangled
from situ.lang.types.lookup import Lookup, Suggestions
from situ.lang.types.model import (
    DEEPEST,
    PRIMITIVES,
    RESERVED_PREFIX,
    RESERVED_TYPES,
    Attribute,
    Decimal,
    DecimalRef,
    ListOf,
    ListRef,
    Named,
    NameRef,
    Place,
    Primitive,
    Struct,
    Type,
    TypeRef,
    combine,
    find_conflicts,
    nowhere,
)
from situ.lang.types.table import Types, built_in, seen_below, without_root
from situ.lang.units import Units

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# How large types may grow.
#
# Those who walk a type recurse into it, and some meet a type once for every way to it; so the levels, the ways up and
# the sum of all attributes are bounded while types are built. The number of places for values is bounded when the table
# is complete, by :func:`check_paths`.

MOST_WAYS_UP = 256
"""By how many ways a type may reach its supertypes."""
MOST_ATTRIBUTES = 1_000_000
"""Of all types of a table together, inherited ones counted once more for each type."""


class _Size(msgspec.Struct):
    levels: int = 0
    ways_up: int = 1
    cut: bool = False


class Measure:
    """Admits the parts of types one by one. What would make a type too large is reported and to be left out.

    A type is not reported for what was left out of another that it is built on: one chain, one problem.
    """

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._sizes: dict[str, _Size] = {}
        self._attributes = 0
        self._full = False

    def admits(self, name: str, part: Type, place: Place, *, above: bool) -> bool:
        """Whether the type may have this one ``above`` it, as a supertype, or else in an attribute."""
        own = self._sizes.setdefault(name, _Size())
        lists, element = 0, part
        while isinstance(element, ListOf):
            element, lists = element.element, lists + 1
        other = self._size(element)
        own.cut = own.cut or other.cut
        levels = max(own.levels, other.levels + lists + 1)
        ways_up = own.ways_up + other.ways_up if above else own.ways_up
        attributes = self._attributes + (len(element.attributes) if isinstance(element, Struct) and above else 1)
        if levels > DEEPEST:
            self._report(name, "levels of supertypes, structs and lists", DEEPEST, place)
        elif ways_up > MOST_WAYS_UP:
            self._report(name, "ways up to its supertypes", MOST_WAYS_UP, place)
        elif attributes > MOST_ATTRIBUTES:
            own.cut = own.cut or self._full
            self._full = True
            self._report(name, "attributes, counted with all types before it", MOST_ATTRIBUTES, place)
        else:
            own.levels, own.ways_up, self._attributes = levels, ways_up, attributes
            return True
        return False

    def _size(self, type: Type) -> _Size:
        name = str(type)
        if isinstance(type, Struct) and name not in self._sizes:  # built in
            for attribute in type.attributes:
                self.admits(name, attribute.type, nowhere, above=False)
        return self._sizes.get(name) or _Size()

    def _report(self, name: str, what: str, most: int, place: Place) -> None:
        own = self._sizes[name]
        if not own.cut:
            self._problems.add(TYPE_LIMIT(place(), name=name, most=most, what=what))
        own.cut = True


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Structs inside structs: none inside itself, and none with more places for values than anyone can follow.
#
# A value of a subtype can stand wherever its supertype is declared, so a struct contains what its attributes' types
# contain *and what their subtypes contain*. The graph has two nodes per type, "has" and "any": a struct has the
# attributes of its supertypes and, at each of its own, any value of the type; that is the type or any type below.

MOST_PATHS = 10_000

_Node = tuple[Literal["has", "any"], str]


class Entangled(msgspec.Struct, frozen=True):
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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Declarations → a table of types.
#
# The order: names, supertypes, containment, then types from those without needs upwards. A fault takes out only what it
# touches, so that every other fault is found, too. Nothing here recurses: a chain of any length is walked in a line and
# refused where it becomes too long for those who come after.

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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The files of ``types/`` → the table of a project's types, with all problems of all files.


def load_types(
    documents: Iterable[Document],
    problems: Problems,
    *,
    also: tuple[Iterable[TypeDeclaration], Iterable[UnitDeclaration]] = ((), ()),
) -> Types:
    """Read what all these documents declare together. Where there are problems, the table lacks what they touch.

    ``also`` are types and units that files elsewhere declare for the same table.
    """
    read = Reader(problems)
    types, units = list(also[0]), list(also[1])
    for document in documents:
        if document.root is not None and is_nothing(document.root):
            problems.extend(document.problems)
            continue
        fields = read.document(document, optional=("types", "events", "units"))
        if fields is not None:
            types.extend(declare_types(fields))
            units.extend(declare_units(fields))
    return resolve(types, units, problems)
