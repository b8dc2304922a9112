"""From names to what they mean: types and units that declarations name, and event types that events are of."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from situ.lang.catalogue import (
    BAD_DEFAULT,
    TYPE_NOT_AVAILABLE,
    UNIT_NOT_POSSIBLE,
    UNKNOWN_EVENT_TYPE,
    UNKNOWN_TYPE,
    UNKNOWN_UNIT,
)
from situ.lang.problems import Location, Problem, Problems, SituError, nearest
from situ.lang.types.declaration import AttributeDeclaration
from situ.lang.types.json_codec import Decoded, Decoder, Encoder, Extra, decode, decoder, encoder
from situ.lang.types.model import (
    BOOLEAN,
    BYTES,
    DATE,
    DURATION,
    PRIMITIVES,
    STRING,
    TIMESTAMP,
    Attribute,
    AttributeText,
    Decimal,
    DecimalRef,
    ListOf,
    ListRef,
    Named,
    NameRef,
    Place,
    Struct,
    Type,
    TypeRef,
    plain,
)
from situ.lang.types.table import Types
from situ.lang.units import NO_UNIT, Unit, Units, UnknownUnit

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Names in declarations → types and units.
#
# Given what is visible, references become types, texts units and declarations attributes, and what leads nowhere is
# reported. This serves the declarations of types, and equally those of ontologies, functions and sources, which use the
# same notation.

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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Event types that are not there, as problems: of those who name them, and of events that say they are of them.

_REMEDY = "Declare it under `events:` in a file of types/."


def not_declared(type: str, place: Location | None = None, nearest: tuple[str, ...] = ()) -> Problem:
    """Somebody publishes or subscribes to what nobody declared."""
    return TYPE_NOT_AVAILABLE(place, type=type, where="", nearest=nearest, remedy=_REMEDY)


def unknown_event(type: str, nearest: tuple[str, ...]) -> Problem:
    """An event is of a type that nobody declared."""
    return UNKNOWN_EVENT_TYPE(type=type, where="", nearest=nearest, remedy=_REMEDY)


def no_way_in(type: str, context: str) -> Problem:
    """An event is of a type that the context has, and root gets nothing of."""
    where = f" that leads from the context `{context}` into root"
    remedy = f"Give the context a mapping `in: {type} -> …`, or publish a type that has one."
    return UNKNOWN_EVENT_TYPE(type=type, where=where, nearest=(), remedy=remedy)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The data of events, by event type: what the decode stage of every engine asks of types.


class EventData:
    """Decodes and encodes the data of events of one table. Each type's functions are made at its first event.

    ``suggests``: who sends an event of an unknown type is told which types are called nearly so.
    """

    def __init__(self, types: Types, extra: Extra = "drop", *, suggests: bool = True) -> None:
        self._types = types
        self._extra = extra
        self._decoders: dict[str, Decoder] = {}
        self._encoders: dict[str, Encoder] = {}
        self._suggestions = Suggestions()
        self._suggests = suggests

    def decode(self, type: str, data: Any) -> Decoded:
        """The data as a value of the event type; INT701 if there is no such type. No data has no attributes."""
        known = self._decoders.get(type)
        if known is None:
            struct = self._types.event(type)
            if struct is None:
                return self._unknown(type)
            known = self._decoders[type] = decoder(struct, self._types, self._extra)
        return known({} if data is None else data)

    def encode(self, type: str, value: Any) -> Any:
        """The canonical JSON value of a value of the event type, which must exist."""
        known = self._encoders.get(type)
        if known is None:
            known = self._encoders[type] = encoder(self._struct(type), self._types)
        return known(value)

    def _struct(self, type: str) -> Struct:
        struct = self._types.event(type)
        if struct is None:
            raise KeyError(type)
        return struct

    def _unknown(self, type: str) -> Decoded:
        shown = type[:100] if type.isprintable() else "…"
        similar = self._suggestions.near(shown, self._types.events) if self._suggests else ()
        return Decoded(None, (unknown_event(shown, similar),))
