"""From the places of an event type and what converts them to the steps that make the target.

The walk is by target attribute: what goes there by name comes from the source's place of that name, by its rule, by
units, or as it is. Whatever does not change at all is copied whole, however much lies below. What is wrong on the way
is told to a :class:`~situ.interpretation.verify.Verification`, and the walk goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from situ.errors import SituError
from situ.expr.linear import nothing_there
from situ.expr.tree import (
    Case,
    Coalesce,
    Compare,
    Each,
    ForEach,
    IsNull,
    Literal,
    Node,
    Read,
)
from situ.interpretation.calls import Calls
from situ.interpretation.fitting import (
    Fitting,
    attribute_read,
    constant,
    dynamic_type,
    made_struct,
    present,
)
from situ.interpretation.model import IDENTITY, Context, Conversion, Direction, Rule, former_root
from situ.interpretation.patterns import Step as PathStep
from situ.interpretation.patterns import Traversal
from situ.interpretation.resolution import Place
from situ.interpretation.steps import Choice, Elements, Filled, Record, Step, Value, below
from situ.interpretation.units_between import (
    ByFunction,
    Fractional,
    Incompatible,
    Linear,
    Same,
    Unfit,
    convert,
    rounds,
    way_between,
)
from situ.interpretation.verify import Verification
from situ.types.model import PLANAR, STRING, Attribute, ListOf, Struct, Type, fits, is_subtype, plain, unit_below
from situ.units import NO_UNIT, Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A place of the target: what is declared there."""

    type: Type
    unit: Unit = NO_UNIT
    path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A value of the source: how it is read, the places it may be (one a dynamic type), and its unit.

    ``whole``: it is taken as it is, with all below; neither rules nor units count any more.
    """

    node: Read
    places: tuple[Place, ...]
    unit: Unit = NO_UNIT
    whole: bool = False

    @property
    def declared(self) -> Type:
        return self.places[0].path.type

    def is_present(self) -> Subject:
        return replace(self, node=present(self.node))

    def attribute(self, place: Place, attribute: Attribute) -> Subject:
        struct = place.path.type
        unit = unit_below(struct, self.unit, attribute)
        node = attribute_read(self.node, attribute, unit)
        assert isinstance(node, Read)
        return Subject(node=node, places=place.attributes[attribute.name], unit=unit, whole=self.whole)


class Builder:
    """Makes the steps for events of one source type."""

    def __init__(self, context: Context, direction: Direction, event: Struct, found: Verification) -> None:
        self.context, self.event, self.found = context, event, found
        self.sources, self.targets = context.types_of(direction), context.targets_of(direction)
        self.fitting = Fitting(types=self.sources, targets=self.targets)
        self.calls = Calls(event, self.sources, self.targets)
        self._variables = 0
        self._bare: dict[Type, Place] = {}

    def value(self, subject: Subject, wanted: Wanted) -> Step | None:
        """What makes a value of the target of one of the source; None if nothing does, which is reported."""
        first = subject.places[0]
        if not subject.node.nullable:
            return self._by_dynamic_type(subject, wanted)
        if first.rule is None and not isinstance(plain(subject.declared), Struct | ListOf):
            return self._single(subject, first, wanted)
        if (conversion := self._conversion(first)) is not None and conversion.nulls and len(subject.places) == 1:
            return self._converted(subject, first, conversion, wanted)
        inner = self._by_dynamic_type(subject.is_present(), wanted)
        if inner is None:
            return None
        if isinstance(inner, Value) and inner.copied:
            return replace(inner, node=subject.node)
        if isinstance(inner, Value) and conversion is not None and self.calls.is_strict(conversion):
            return self._converted(subject, first, conversion, wanted)
        nothing: Step = Value(node=Literal(None, wanted.type), source=str(first.path))
        if conversion is not None and conversion.nulls:
            empty = Subject(node=subject.node, places=(first,), unit=subject.unit)
            nothing = self._converted(empty, first, conversion, wanted) or nothing
        return choice(((IsNull(subject.node), "", nothing),), inner, wanted.type)

    def _by_dynamic_type(self, subject: Subject, wanted: Wanted) -> Step | None:
        if len(subject.places) == 1:
            return self.exactly(subject, subject.places[0], wanted)
        made = [(place, self.exactly(subject, place, wanted)) for place in subject.places]
        steps = [(place, step) for place, step in made if step is not None]
        if len(steps) < len(made):
            return None
        (_, first), *others = steps
        tag = dynamic_type(subject.node)
        arms = tuple(
            (Compare("=", tag, Literal(str(place.path.type), STRING)), str(place.path.type), step)
            for place, step in others
            if not same(step, first)
        )
        return choice(arms, first, wanted.type) if arms else first

    def exactly(self, subject: Subject, place: Place, wanted: Wanted) -> Step | None:
        """For a value whose dynamic type is that of the place."""
        if place.rule is None or subject.whole:
            return self._as_it_is(subject, place, wanted)
        if place.rule.function == IDENTITY:
            return self._kept(subject, place, place.rule, wanted)
        conversion = self._conversion(place)
        return None if conversion is None else self._converted(subject, place, conversion, wanted)

    def _conversion(self, place: Place) -> Conversion | None:
        if place.rule is None or place.rule.function == IDENTITY:
            return None
        return self.context.conversion(place.rule.function)

    # ── without a rule ──

    def _as_it_is(self, subject: Subject, place: Place, wanted: Wanted) -> Step | None:
        given, into = plain(place.path.type), plain(wanted.type)
        if isinstance(given, Struct) and isinstance(into, Struct):
            return self._struct(subject, place, given, into, wanted)
        if isinstance(given, ListOf) and isinstance(into, ListOf):
            return self._list(subject, place, given, into, wanted)
        if isinstance(given, Struct | ListOf) or isinstance(into, Struct | ListOf):
            self.found.unfit(wanted.path, f"`{place.path.type}`", wanted.type)
            return None
        return self._single(subject, place, wanted)

    def _single(self, subject: Subject, place: Place, wanted: Wanted) -> Step | None:
        type, units = place.path.type, (subject.unit, wanted.unit)
        way = Same() if subject.whole else way_between(*units, type, wanted.type, self.context)
        match way:
            case ByFunction(function=function):
                return self._converted(subject, place, function, wanted)
            case Incompatible(physical=physical):
                self.found.incompatible(wanted.path, units, physical=physical)
                return None
            case Linear():
                return self._in_unit(subject, place, way, wanted)
        if way.one_sided:
            self.found.one_sided(wanted.path, units)
        if not fits(type, wanted.type):
            self.found.unfit(wanted.path, f"`{type}`", wanted.type)
            return None
        node = self.fitting.fit(subject.node, type, wanted.type)
        return Value(node=node, source=str(place.path), copied=node is subject.node)

    def _in_unit(self, subject: Subject, place: Place, way: Linear, wanted: Wanted) -> Step | None:
        units = (subject.unit, wanted.unit)
        try:
            node = convert(subject.node, way, wanted.type, wanted.unit)
        except Fractional:
            self.found.fractional(wanted.path, units)
            return None
        except Unfit:
            self.found.unfit(wanted.path, f"`{place.path.type}`", wanted.type)
            return None
        shown = f"{units[0]} → {units[1]}"
        if rounds(way, place.path.type, wanted.type):
            self.found.loses(wanted.path, f"{shown} is rounded to {plain(wanted.type)}")
        return Value(node=node, source=str(place.path), function=shown, units=shown)

    def _struct(self, subject: Subject, place: Place, given: Struct, into: Struct, wanted: Wanted) -> Step | None:
        units = (subject.unit, wanted.unit)
        if not subject.whole and given not in PLANAR and units[0] != units[1]:
            way = way_between(*units, given, into, self.context)
            if isinstance(way, ByFunction):
                return self._converted(subject, place, way.function, wanted)
            if not isinstance(way, Same):
                self.found.incompatible(wanted.path, units, physical=not (units[0].labels or units[1].labels))
                return None
            self.found.one_sided(wanted.path, units)
        declared = subject.declared
        stays = (subject.whole or declared == into) and is_subtype(given, into) and self.fitting.visible(given, into)
        return self._record(subject, place, given if stays else self._counterpart(given, into), wanted)

    def _counterpart(self, given: Struct, into: Struct) -> Struct:
        """What a struct becomes; between root and what it was, each type becomes the one of its name."""
        named = self.targets.types.get(given.name) if former_root(self.context.id) else None
        return named if isinstance(named, Struct) and is_subtype(named, into) else into

    def _record(self, subject: Subject, place: Place, out: Struct, wanted: Wanted) -> Step | None:
        given = place.path.type
        assert isinstance(given, Struct)
        fields = [
            (attribute.name, self.field(subject, place, attribute, self.below(out, wanted, attribute)))
            for attribute in out.attributes
        ]
        if given == subject.declared and not subject.whole:
            self.note_dropped(place, given, out)
        made = self.record(out, fields, wanted.type)
        if made is None:
            return None
        tagged = given != subject.declared
        whole = all(_is_own(step, name, subject.node) for name, step in made.fields)
        if whole and given == out and tagged == (out != plain(wanted.type)):
            told = not wanted.path or any(isinstance(step, Value) and (step.rule or step.parts) for _, step in fields)
            return Value(node=subject.node, source=str(place.path), copied=True, parts=made if told else None)
        return made

    def below(self, out: Struct, wanted: Wanted, attribute: Attribute) -> Wanted:
        unit = unit_below(out, wanted.unit, attribute)
        return Wanted(type=attribute.type, unit=unit, path=below(wanted.path, attribute.name))

    def field(self, subject: Subject | None, place: Place | None, attribute: Attribute, wanted: Wanted) -> Step | None:
        """What an attribute of the target gets from the struct at a place of the source, if there is one: by name."""
        given = place.path.type if place is not None else None
        source = given.attribute(attribute.name) if isinstance(given, Struct) else None
        if subject is None or place is None or source is None:
            return self.absent(attribute, wanted, given)
        return self.supplied(self.value(subject.attribute(place, source), wanted), attribute, wanted)

    def note_dropped(self, place: Place, given: Struct, out: Struct) -> None:
        kept = {attribute.name for attribute in out.attributes}
        for attribute in given.attributes:
            if attribute.name not in kept:
                self.found.drop(below(str(place.path), attribute.name))

    def record(self, out: Struct, fields: Sequence[tuple[str, Step | None]], declared: Type) -> Record | None:
        made = tuple((name, step) for name, step in fields if step is not None)
        if len(made) < len(fields):
            return None
        node = made_struct(out, tuple((name, step.node) for name, step in made), declared)
        return Record(node=node, type=out, fields=made)

    def absent(self, attribute: Attribute, wanted: Wanted, source: Type | None) -> Step | None:
        """An attribute of the target that has no counterpart."""
        if attribute.default is None and not attribute.optional:
            self.found.not_supplied(wanted.path, source)
            return None
        function = "" if attribute.default is None else "default"
        return Value(node=constant(attribute.default, attribute.type), function=function)

    def supplied(self, step: Step | None, attribute: Attribute, wanted: Wanted) -> Step | None:
        """A null becomes the default; where there is none and a value must be, it fails."""
        if step is None or not step.node.nullable or (attribute.optional and attribute.default is None):
            return step
        if attribute.default is not None:
            default = constant(attribute.default, attribute.type)
            node = Coalesce((step.node, default), attribute.type, wanted.unit)
            return Filled(node=node, of=step, type=attribute.type, default=attribute.default)
        self.found.optional_feeds_required(wanted.path)
        last = nothing_there(attribute.type, self.targets)
        node = Coalesce((step.node, last), attribute.type, wanted.unit)
        return Filled(node=node, of=step, type=attribute.type)

    def _list(self, subject: Subject, place: Place, given: ListOf, into: ListOf, wanted: Wanted) -> Step | None:
        if not subject.whole and subject.unit != wanted.unit:
            way = way_between(subject.unit, wanted.unit, given, into, self.context)
            if isinstance(way, ByFunction):
                return self._converted(subject, place, way.function, wanted)
        self._variables += 1
        variable = f"item{self._variables}"
        item = Read(variable, (), given.element, subject.unit, (True,))
        each = Subject(node=item, places=place.elements, unit=subject.unit, whole=subject.whole)
        step = self.value(each, Wanted(type=into.element, unit=wanted.unit, path=f"{wanted.path}[]"))
        if step is None:
            return None
        if isinstance(step, Value) and step.copied:
            told = Elements(node=subject.node, list=subject.node, variable=variable, element=step)
            parts = told if step.rule or step.parts else None
            return Value(node=subject.node, source=str(place.path), copied=True, parts=parts)
        node = ForEach(Each.TRANSFORM, subject.node, variable, step.node, wanted.type)
        return Elements(node=node, list=subject.node, variable=variable, element=step)

    # ── with a rule or function ──

    def _kept(self, subject: Subject, place: Place, rule: Rule, wanted: Wanted) -> Step | None:
        """``identity``: the value as it is, with all below."""
        type, units = place.path.type, (subject.unit, wanted.unit)
        if not fits(type, wanted.type):
            self.found.unfit(wanted.path, f"`{type}`, as `{rule}` leaves it", wanted.type, rule)
            return None
        if units[0] != units[1] and NO_UNIT not in units:
            self.found.left_in_unit(wanted.path, rule, units)
        bare = self.bare(type)
        places = (bare,) if type == subject.declared else (self.bare(subject.declared), bare)
        whole = Subject(node=subject.node, places=places, whole=True)
        step = self._as_it_is(whole, bare, Wanted(type=wanted.type, path=wanted.path))
        if step is None:
            return None
        copied = isinstance(step, Value) and step.copied
        return Value(
            node=step.node,
            source=str(place.path),
            rule=rule,
            function=IDENTITY,
            beaten=place.beaten,
            copied=copied,
        )

    def bare(self, type: Type) -> Place:
        """A place of this type that no rule is about, with all below."""
        if type not in self._bare:
            start = type if isinstance(type, Struct) else Struct("", ())
            steps = () if isinstance(type, Struct) else (PathStep(attribute="", type=type),)
            path = Traversal(event=start, steps=steps)
            match type:
                case Struct(attributes=attributes):
                    inner = {each.name: self._bare_places(each.type) for each in attributes}
                    made = Place(path=path, attributes=MappingProxyType(inner))
                case ListOf(element=element):
                    made = Place(path=path, elements=self._bare_places(element))
                case _:
                    made = Place(path=path)
            self._bare[type] = made
        return self._bare[type]

    def _bare_places(self, type: Type) -> tuple[Place, ...]:
        dynamic = self.sources.subtypes(type) if isinstance(type, Struct) else (type,)
        return tuple(self.bare(each) for each in dynamic)

    def _converted(self, subject: Subject, place: Place, function: Conversion, wanted: Wanted) -> Step | None:
        rule = place.rule
        given = function.result.type
        if missing := self.calls.missing(function):
            self.found.lacks(wanted.path, function.name, missing, self.event, rule)
            return None
        if not fits(given, wanted.type) or not self.fitting.visible(given, wanted.type):
            self.found.unfit(wanted.path, f"`{given}`, as `{function.name}` gives it", wanted.type, rule)
            return None
        self._check_units(function, rule, wanted)
        try:
            node = self.calls.call(function, subject.node, subject.declared, place.path.type, wanted.path)
        except SituError as error:
            self.found.add_all(error.problems)
            return None
        if function.lossy:
            self.found.loses(wanted.path, f"`{function.name}` is declared to")
        shown = "" if rule is not None else f"{subject.unit} → {wanted.unit}"
        return Value(
            node=self.fitting.fit(node, given, wanted.type),
            source=str(place.path),
            rule=rule,
            function=function.name,
            conversion=function,
            beaten=place.beaten,
            units=shown,
        )

    def _check_units(self, function: Conversion, rule: Rule | None, wanted: Wanted) -> None:
        units = (function.result.unit, wanted.unit)
        if rule is not None and units[0] != units[1] and NO_UNIT not in units:
            self.found.left_in_unit(wanted.path, rule, units)


def choice(arms: tuple[tuple[Node, str, Step], ...], otherwise: Step, type: Type) -> Choice:
    node = Case(tuple((condition, step.node) for condition, _, step in arms), otherwise.node, type)
    return Choice(node=node, arms=arms, otherwise=otherwise)


def _is_own(step: Step, name: str, of: Read) -> bool:
    """Whether an attribute is what it was in the struct that is read."""
    if not (isinstance(step, Value) and step.copied and isinstance(step.node, Read)):
        return False
    return step.node.variable == of.variable and step.node.path == (*of.path, name)


def same(step: Step, other: Step) -> bool:
    if isinstance(step, Value) and isinstance(other, Value) and step.copied and other.copied:
        return True
    return step.node == other.node
