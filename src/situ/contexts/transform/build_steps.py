"""Steps that make an event of the target type from one of the source type, with the verification of every place.

`Verification` collects what is wrong on the way, `StepBuilder` builds the steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

import msgspec

from situ.contexts.model import IDENTITY, Context, Conversion, Direction, Rule, former_root
from situ.contexts.patterns import Traversal
from situ.contexts.patterns import TraversalStep as PathStep
from situ.contexts.resolve_rules import ResolvedPlace
from situ.contexts.transform.coerce import (
    ByUnitFunction,
    Coercer,
    Fractional,
    LinearConversion,
    NoConversion,
    NotConvertible,
    SameUnit,
    attribute_read,
    constant,
    convert_unit,
    dynamic_type,
    made_struct,
    present,
    rounds,
    unit_conversion,
)
from situ.contexts.transform.function_calls import FunctionInliner
from situ.contexts.transform.steps import ChoiceStep, DefaultStep, ListStep, Step, StructStep, ValueStep, below
from situ.lang.catalogue import (
    ATTRIBUTE_DROPPED,
    EVENT_LACKS_ATTRIBUTE,
    FRACTIONAL_RESULT,
    INCOMPATIBLE_DIMENSIONS,
    LEFT_IN_UNIT,
    LOSSY,
    NO_FUNCTION_BETWEEN,
    NOT_SUPPLIED,
    OPTIONAL_FEEDS_REQUIRED,
    READS_UNCONVERTED,
    RESULT_UNFIT,
    UNIT_ON_ONE_SIDE,
)
from situ.lang.expr.checker.coerce import nothing_there
from situ.lang.expr.tree import Case, Coalesce, Compare, Each, ForEach, IsNull, Literal, Node, Read
from situ.lang.problems import Location, Problem, Problems, SituError
from situ.lang.records import replace
from situ.lang.types.model import PLANAR, STRING, Attribute, ListOf, Struct, Type, fits, is_subtype, plain, unit_below
from situ.lang.units import NO_UNIT, Unit

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Type verification: what a mapping gives must fit what it is mapped to, place by place. Checked are the places of an
# event that are really made, not the rules: one that is wrong where it never wins does no harm.


class Verification(msgspec.Struct, kw_only=True):
    """What is found out about one event type on its way from ``source`` to ``target``.

    ``where`` is the mapping's place, if there is one; ``sides`` are the contexts that the two types belong to.
    """

    source: Struct
    target: Struct
    sides: tuple[str, str] = ("", "")
    where: Location | None = None
    problems: Problems = msgspec.field(default_factory=Problems)
    lossy: bool = False
    dropped: list[str] = msgspec.field(default_factory=list)

    @property
    def failed(self) -> bool:
        return bool(self.problems.errors)

    @property
    def _into(self) -> str:
        return self._of_side(self.target, 1)

    def _of_side(self, type: Type, side: int) -> str:
        """The name of a type; where both sides call their types alike, with the context whose it is."""
        name = self.sides[side]
        return f"{name}:{type}" if name and str(self.source) == str(self.target) else str(type)

    def unfit(self, at: str, found: str, expected: Type, rule: Rule | None = None, remedy: str = "") -> None:
        usual = "Let a rule convert it, except it by a rule of its own, or declare the attribute with what it gets."
        self._add(
            RESULT_UNFIT(
                self._at(rule),
                target=at or "the event",
                type=self._into,
                found=found,
                expected=str(expected),
                remedy=remedy or usual,
            )
        )

    def not_supplied(self, at: str, source: Type | None) -> None:
        self._add(NOT_SUPPLIED(self.where, target=at, type=self._into, source=self._of_side(source or self.source, 0)))

    def drop(self, path: str) -> None:
        self.dropped.append(path)
        self._add(ATTRIBUTE_DROPPED(self.where, path=path, source=self._of_side(self.source, 0), target=self._into))

    def optional_feeds_required(self, at: str) -> None:
        self._add(OPTIONAL_FEEDS_REQUIRED(self.where, target=at, type=self._into))

    def reads_unconverted(self, at: str, path: str, rule: Rule) -> None:
        self._add(READS_UNCONVERTED(self.where, target=at, path=path, rule=str(rule)))

    def lacks(self, at: str, function: str, attributes: tuple[str, ...], event: Struct, rule: Rule | None) -> None:
        for attribute in attributes:
            self._add(
                EVENT_LACKS_ATTRIBUTE(
                    self._at(rule), function=function, attribute=attribute, type=str(event), path=at or "the event"
                )
            )

    def incompatible(self, at: str, units: tuple[Unit, Unit], *, physical: bool) -> None:
        found, expected = map(str, units)
        if physical:
            problem = INCOMPATIBLE_DIMENSIONS(self.where, target=at, type=self._into, found=found, expected=expected)
        else:
            form = f"name: T {found} -> T {expected} = …"
            problem = NO_FUNCTION_BETWEEN(self.where, path=at, found=found, expected=expected, form=form)
        self._add(problem)

    def left_in_unit(self, at: str, rule: Rule, units: tuple[Unit, Unit]) -> None:
        found, expected = (str(each) or "no unit" for each in units)
        self._add(
            LEFT_IN_UNIT(rule.location, rule=str(rule), target=at, type=self._into, found=found, expected=expected)
        )

    def fractional(self, at: str, units: tuple[Unit, Unit]) -> None:
        found, expected = map(str, units)
        self._add(FRACTIONAL_RESULT(self.where, target=at, type=self._into, found=found, expected=expected))

    def loses(self, at: str, reason: str) -> None:
        self.lossy = True
        self._add(LOSSY(self.where, target=at, type=self._into, reason=reason))

    def one_sided(self, at: str, units: tuple[Unit, Unit]) -> None:
        known = "its source has no unit, it is in {}" if units[0] == NO_UNIT else "its source is in {}, it has no unit"
        reason = known.format(units[1] if units[0] == NO_UNIT else units[0])
        self._add(UNIT_ON_ONE_SIDE(self.where, target=at, type=self._into, reason=reason))

    def add_all(self, problems: tuple[Problem, ...]) -> None:
        self.problems.extend(problems)

    def _at(self, rule: Rule | None) -> Location | None:
        return rule.location if rule is not None and rule.location is not None else self.where

    def _add(self, problem: Problem) -> None:
        self.problems.add(problem)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Steps. The walk is by target attribute: what goes there by name comes from the source's place of that name, by its
# rule, by units, or as it is. Whatever does not change at all is copied whole, however much lies below. What is wrong
# is told to the `Verification`, and the walk goes on.


class TargetPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A place of the target: what is declared there."""

    type: Type
    unit: Unit = NO_UNIT
    path: str = ""


class SourceValue(msgspec.Struct, frozen=True, kw_only=True):
    """A value of the source: how it is read, the places it may be (one a dynamic type), and its unit.

    ``whole``: it is taken as it is, with all below; neither rules nor units count any more.
    """

    node: Read
    places: tuple[ResolvedPlace, ...]
    unit: Unit = NO_UNIT
    whole: bool = False

    @property
    def declared(self) -> Type:
        return self.places[0].path.type

    def is_present(self) -> SourceValue:
        return replace(self, node=present(self.node))

    def attribute(self, place: ResolvedPlace, attribute: Attribute) -> SourceValue:
        struct = place.path.type
        unit = unit_below(struct, self.unit, attribute)
        node = attribute_read(self.node, attribute, unit)
        assert isinstance(node, Read)
        return SourceValue(node=node, places=place.attributes[attribute.name], unit=unit, whole=self.whole)


class StepBuilder:
    """Makes the steps for events of one source type."""

    def __init__(self, context: Context, direction: Direction, event: Struct, found: Verification) -> None:
        self.context, self.event, self.found = context, event, found
        self.sources, self.targets = context.types_of(direction), context.targets_of(direction)
        self.fitting = Coercer(types=self.sources, targets=self.targets)
        self.calls = FunctionInliner(event, self.sources, self.targets)
        self._variables = 0
        self._bare: dict[Type, ResolvedPlace] = {}

    def value(self, subject: SourceValue, wanted: TargetPlace) -> Step | None:
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
        if isinstance(inner, ValueStep) and inner.copied:
            return replace(inner, node=subject.node)
        if isinstance(inner, ValueStep) and conversion is not None and self.calls.is_strict(conversion):
            return self._converted(subject, first, conversion, wanted)
        nothing: Step = ValueStep(node=Literal(None, wanted.type), source=str(first.path))
        if conversion is not None and conversion.nulls:
            empty = SourceValue(node=subject.node, places=(first,), unit=subject.unit)
            nothing = self._converted(empty, first, conversion, wanted) or nothing
        return choice(((IsNull(subject.node), "", nothing),), inner, wanted.type)

    def _by_dynamic_type(self, subject: SourceValue, wanted: TargetPlace) -> Step | None:
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

    def exactly(self, subject: SourceValue, place: ResolvedPlace, wanted: TargetPlace) -> Step | None:
        """For a value whose dynamic type is that of the place."""
        if place.rule is None or subject.whole:
            return self._as_it_is(subject, place, wanted)
        if place.rule.function == IDENTITY:
            return self._kept(subject, place, place.rule, wanted)
        conversion = self._conversion(place)
        return None if conversion is None else self._converted(subject, place, conversion, wanted)

    def _conversion(self, place: ResolvedPlace) -> Conversion | None:
        if place.rule is None or place.rule.function == IDENTITY:
            return None
        return self.context.conversion(place.rule.function)

    # ── without a rule ──

    def _as_it_is(self, subject: SourceValue, place: ResolvedPlace, wanted: TargetPlace) -> Step | None:
        given, into = plain(place.path.type), plain(wanted.type)
        if isinstance(given, Struct) and isinstance(into, Struct):
            return self._struct(subject, place, given, into, wanted)
        if isinstance(given, ListOf) and isinstance(into, ListOf):
            return self._list(subject, place, given, into, wanted)
        if isinstance(given, Struct | ListOf) or isinstance(into, Struct | ListOf):
            self.found.unfit(wanted.path, f"`{place.path.type}`", wanted.type)
            return None
        return self._single(subject, place, wanted)

    def _single(self, subject: SourceValue, place: ResolvedPlace, wanted: TargetPlace) -> Step | None:
        type, units = place.path.type, (subject.unit, wanted.unit)
        way = SameUnit() if subject.whole else unit_conversion(*units, type, wanted.type, self.context)
        match way:
            case ByUnitFunction(function=function):
                return self._converted(subject, place, function, wanted)
            case NoConversion(physical=physical):
                self.found.incompatible(wanted.path, units, physical=physical)
                return None
            case LinearConversion():
                return self._in_unit(subject, place, way, wanted)
        if way.one_sided:
            self.found.one_sided(wanted.path, units)
        if not fits(type, wanted.type):
            self.found.unfit(wanted.path, f"`{type}`", wanted.type)
            return None
        node = self.fitting.fit(subject.node, type, wanted.type)
        return ValueStep(node=node, source=str(place.path), copied=node is subject.node)

    def _in_unit(
        self, subject: SourceValue, place: ResolvedPlace, way: LinearConversion, wanted: TargetPlace
    ) -> Step | None:
        units = (subject.unit, wanted.unit)
        try:
            node = convert_unit(subject.node, way, wanted.type, wanted.unit)
        except Fractional:
            self.found.fractional(wanted.path, units)
            return None
        except NotConvertible:
            self.found.unfit(wanted.path, f"`{place.path.type}`", wanted.type)
            return None
        shown = f"{units[0]} → {units[1]}"
        if rounds(way, place.path.type, wanted.type):
            self.found.loses(wanted.path, f"{shown} is rounded to {plain(wanted.type)}")
        return ValueStep(node=node, source=str(place.path), function=shown, units=shown)

    def _struct(
        self, subject: SourceValue, place: ResolvedPlace, given: Struct, into: Struct, wanted: TargetPlace
    ) -> Step | None:
        units = (subject.unit, wanted.unit)
        if not subject.whole and given not in PLANAR and units[0] != units[1]:
            way = unit_conversion(*units, given, into, self.context)
            if isinstance(way, ByUnitFunction):
                return self._converted(subject, place, way.function, wanted)
            if not isinstance(way, SameUnit):
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

    def _record(self, subject: SourceValue, place: ResolvedPlace, out: Struct, wanted: TargetPlace) -> Step | None:
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
            told = not wanted.path or any(
                isinstance(step, ValueStep) and (step.rule or step.parts) for _, step in fields
            )
            return ValueStep(node=subject.node, source=str(place.path), copied=True, parts=made if told else None)
        return made

    def below(self, out: Struct, wanted: TargetPlace, attribute: Attribute) -> TargetPlace:
        unit = unit_below(out, wanted.unit, attribute)
        return TargetPlace(type=attribute.type, unit=unit, path=below(wanted.path, attribute.name))

    def field(
        self, subject: SourceValue | None, place: ResolvedPlace | None, attribute: Attribute, wanted: TargetPlace
    ) -> Step | None:
        """What an attribute of the target gets from the struct at a place of the source, if there is one: by name."""
        given = place.path.type if place is not None else None
        source = given.attribute(attribute.name) if isinstance(given, Struct) else None
        if subject is None or place is None or source is None:
            return self.absent(attribute, wanted, given)
        return self.supplied(self.value(subject.attribute(place, source), wanted), attribute, wanted)

    def note_dropped(self, place: ResolvedPlace, given: Struct, out: Struct) -> None:
        kept = {attribute.name for attribute in out.attributes}
        for attribute in given.attributes:
            if attribute.name not in kept:
                self.found.drop(below(str(place.path), attribute.name))

    def record(self, out: Struct, fields: Sequence[tuple[str, Step | None]], declared: Type) -> StructStep | None:
        made = tuple((name, step) for name, step in fields if step is not None)
        if len(made) < len(fields):
            return None
        node = made_struct(out, tuple((name, step.node) for name, step in made), declared)
        return StructStep(node=node, type=out, fields=made)

    def absent(self, attribute: Attribute, wanted: TargetPlace, source: Type | None) -> Step | None:
        """An attribute of the target that has no counterpart."""
        if attribute.default is None and not attribute.optional:
            self.found.not_supplied(wanted.path, source)
            return None
        function = "" if attribute.default is None else "default"
        return ValueStep(node=constant(attribute.default, attribute.type), function=function)

    def supplied(self, step: Step | None, attribute: Attribute, wanted: TargetPlace) -> Step | None:
        """A null becomes the default; where there is none and a value must be, it fails."""
        if step is None or not step.node.nullable or (attribute.optional and attribute.default is None):
            return step
        if attribute.default is not None:
            default = constant(attribute.default, attribute.type)
            node = Coalesce((step.node, default), attribute.type, wanted.unit)
            return DefaultStep(node=node, of=step, type=attribute.type, default=attribute.default)
        self.found.optional_feeds_required(wanted.path)
        last = nothing_there(attribute.type, self.targets)
        node = Coalesce((step.node, last), attribute.type, wanted.unit)
        return DefaultStep(node=node, of=step, type=attribute.type)

    def _list(
        self, subject: SourceValue, place: ResolvedPlace, given: ListOf, into: ListOf, wanted: TargetPlace
    ) -> Step | None:
        if not subject.whole and subject.unit != wanted.unit:
            way = unit_conversion(subject.unit, wanted.unit, given, into, self.context)
            if isinstance(way, ByUnitFunction):
                return self._converted(subject, place, way.function, wanted)
        self._variables += 1
        variable = f"item{self._variables}"
        item = Read(variable, (), given.element, subject.unit, (True,))
        each = SourceValue(node=item, places=place.elements, unit=subject.unit, whole=subject.whole)
        step = self.value(each, TargetPlace(type=into.element, unit=wanted.unit, path=f"{wanted.path}[]"))
        if step is None:
            return None
        if isinstance(step, ValueStep) and step.copied:
            told = ListStep(node=subject.node, list=subject.node, variable=variable, element=step)
            parts = told if step.rule or step.parts else None
            return ValueStep(node=subject.node, source=str(place.path), copied=True, parts=parts)
        node = ForEach(Each.TRANSFORM, subject.node, variable, step.node, wanted.type)
        return ListStep(node=node, list=subject.node, variable=variable, element=step)

    # ── with a rule or function ──

    def _kept(self, subject: SourceValue, place: ResolvedPlace, rule: Rule, wanted: TargetPlace) -> Step | None:
        """``identity``: the value as it is, with all below."""
        type, units = place.path.type, (subject.unit, wanted.unit)
        if not fits(type, wanted.type):
            self.found.unfit(wanted.path, f"`{type}`, as `{rule}` leaves it", wanted.type, rule)
            return None
        if units[0] != units[1] and NO_UNIT not in units:
            self.found.left_in_unit(wanted.path, rule, units)
        bare = self.bare(type)
        places = (bare,) if type == subject.declared else (self.bare(subject.declared), bare)
        whole = SourceValue(node=subject.node, places=places, whole=True)
        step = self._as_it_is(whole, bare, TargetPlace(type=wanted.type, path=wanted.path))
        if step is None:
            return None
        copied = isinstance(step, ValueStep) and step.copied
        return ValueStep(
            node=step.node,
            source=str(place.path),
            rule=rule,
            function=IDENTITY,
            beaten=place.beaten,
            copied=copied,
        )

    def bare(self, type: Type) -> ResolvedPlace:
        """A place of this type that no rule is about, with all below."""
        if type not in self._bare:
            start = type if isinstance(type, Struct) else Struct("", ())
            steps = () if isinstance(type, Struct) else (PathStep(attribute="", type=type),)
            path = Traversal(event=start, steps=steps)
            match type:
                case Struct(attributes=attributes):
                    inner = {each.name: self._bare_places(each.type) for each in attributes}
                    made = ResolvedPlace(path=path, attributes=MappingProxyType(inner))
                case ListOf(element=element):
                    made = ResolvedPlace(path=path, elements=self._bare_places(element))
                case _:
                    made = ResolvedPlace(path=path)
            self._bare[type] = made
        return self._bare[type]

    def _bare_places(self, type: Type) -> tuple[ResolvedPlace, ...]:
        dynamic = self.sources.subtypes(type) if isinstance(type, Struct) else (type,)
        return tuple(self.bare(each) for each in dynamic)

    def _converted(
        self, subject: SourceValue, place: ResolvedPlace, function: Conversion, wanted: TargetPlace
    ) -> Step | None:
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
        return ValueStep(
            node=self.fitting.fit(node, given, wanted.type),
            source=str(place.path),
            rule=rule,
            function=function.name,
            conversion=function,
            beaten=place.beaten,
            units=shown,
        )

    def _check_units(self, function: Conversion, rule: Rule | None, wanted: TargetPlace) -> None:
        units = (function.result.unit, wanted.unit)
        if rule is not None and units[0] != units[1] and NO_UNIT not in units:
            self.found.left_in_unit(wanted.path, rule, units)


def choice(arms: tuple[tuple[Node, str, Step], ...], otherwise: Step, type: Type) -> ChoiceStep:
    node = Case(tuple((condition, step.node) for condition, _, step in arms), otherwise.node, type)
    return ChoiceStep(node=node, arms=arms, otherwise=otherwise)


def _is_own(step: Step, name: str, of: Read) -> bool:
    """Whether an attribute is what it was in the struct that is read."""
    if not (isinstance(step, ValueStep) and step.copied and isinstance(step.node, Read)):
        return False
    return step.node.variable == of.variable and step.node.path == (*of.path, name)


def same(step: Step, other: Step) -> bool:
    if isinstance(step, ValueStep) and isinstance(other, ValueStep) and step.copied and other.copied:
        return True
    return step.node == other.node
