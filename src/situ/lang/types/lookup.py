"""From the names people write to the types and units they mean.

Given what is visible, this module turns references into types, texts into units and declarations into attributes, and
reports what leads nowhere. It serves the declarations of types, and equally those of ontologies, functions and sources,
which use the same notation.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from situ.catalogue import BAD_DEFAULT, UNIT_NOT_POSSIBLE, UNKNOWN_TYPE, UNKNOWN_UNIT
from situ.errors import Problems, SituError, nearest
from situ.types.declare import AttributeDeclaration
from situ.types.decode import decode
from situ.types.model import (
    BOOLEAN,
    BYTES,
    DATE,
    DURATION,
    PRIMITIVES,
    STRING,
    TIMESTAMP,
    Attribute,
    Decimal,
    ListOf,
    Named,
    Struct,
    Type,
    plain,
)
from situ.types.syntax import AttributeText, DecimalRef, ListRef, NameRef, Place, TypeRef
from situ.units import NO_UNIT, Unit, Units, UnknownUnit

# Looking for similar names costs far more than the problem itself, and nobody reads a hint for the hundredth.
_MOST_HINTS = 50
_MOST_COMPARED = 5_000


class Suggestions:
    """Names similar to one that is not there, as long as that is cheap."""

    def __init__(self) -> None:
        self._given = 0

    def near(self, name: str, *known: Collection[str]) -> tuple[str, ...]:
        self._given += 1
        if self._given > _MOST_HINTS or sum(map(len, known)) > _MOST_COMPARED:
            return ()
        return nearest(name, (each for names in known for each in names))


class Lookup:
    """Looks names up among the visible types; what is not there becomes a problem and the answer None."""

    def __init__(self, visible: Mapping[str, Named | Struct], units: Units, problems: Problems) -> None:
        self._visible = visible
        self._units = units
        self._problems = problems
        self._known_units: dict[str, Unit | None] = {"": NO_UNIT}
        self._suggestions = Suggestions()

    def type(self, ref: TypeRef) -> Type | None:
        match ref:
            case DecimalRef(type=type):
                return type
            case ListRef(element=element):
                inner = self.type(element)
                return None if inner is None else ListOf(inner)
            case NameRef(name=name):
                found = self._visible.get(name) or PRIMITIVES.get(name)
                if found is None:
                    similar = self._suggestions.near(name, self._visible, PRIMITIVES)
                    self._problems.add(UNKNOWN_TYPE(ref.place(), name=name, nearest=similar))
                return found

    def unit(self, text: str, place: Place) -> Unit | None:
        if text not in self._known_units:
            try:
                self._known_units[text] = self._units.parse(text)
            except UnknownUnit as error:
                self._known_units[text] = None
                self._problems.add(UNKNOWN_UNIT(place(), unit=text, nearest=error.nearest))
        elif self._known_units[text] is None:
            self._problems.add(UNKNOWN_UNIT(place(), unit=text, nearest=()))
        return self._known_units[text]

    def typed(self, text: AttributeText) -> tuple[Type, Unit] | None:
        """Type and unit of ``[optional] TYPE [UNIT]``. A unit that is wrong is reported and left out."""
        type = self.type(text.type)
        unit = self.unit(text.unit, text.unit_place)
        if type is None:
            return None
        if unit is None:
            return type, NO_UNIT
        if remedy := why_not(type, unit):
            self._problems.add(UNIT_NOT_POSSIBLE(text.unit_place(), type=str(type), unit=text.unit, remedy=remedy))
            return type, NO_UNIT
        return type, unit

    def attribute(self, declaration: AttributeDeclaration) -> Attribute | None:
        """The attribute that was declared; None if its type is unknown."""
        typed = self.typed(declaration.text)
        if typed is None:
            return None
        type, unit = typed
        return Attribute(
            name=declaration.name,
            type=type,
            unit=unit,
            optional=declaration.text.optional,
            default=self._default(declaration, type),
        )

    def _default(self, declaration: AttributeDeclaration, type: Type) -> object:
        if declaration.default is None:
            return None
        try:
            return decode(type, declaration.default.value, extra="reject")
        except SituError as error:
            place = declaration.default.place()
            for cause in error.problems:
                self._problems.add(BAD_DEFAULT(place, cause=cause, attribute=declaration.name, type=str(type)))
            return None


def why_not(type: Type, unit: Unit) -> str:
    """What to do instead of giving values of this type this unit; empty if they can have it.

    Numbers take any unit, structs and lists carry one as a label (a built-in planar type: of its coordinates). Other
    single values can be labelled, but measure nothing; instants and durations know themselves what they count.
    """
    bare = plain(type)
    while isinstance(bare, ListOf):
        bare = plain(bare.element)
    if unit == NO_UNIT or isinstance(bare, Struct | Decimal):
        return ""
    if bare in (TIMESTAMP, DURATION, DATE):
        return "Leave the unit out: times and durations have none. A number of seconds is `double s`."
    if bare in (BOOLEAN, STRING, BYTES) and len(unit.labels) < len(unit.factors):
        return "Only numbers are measured. Use a number, or declare the unit as a label under `units:`."
    return ""
