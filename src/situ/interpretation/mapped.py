"""The steps of a whole event: by name, and where a mapping says so, from elsewhere.

The keys of a mapping's ``attributes`` are places of the target. Each gets the value at a place of the source, with the
rules for that place, or that of an expression over the source as it came, or always the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from situ.expr.tree import Compare, IsNull, Literal, Node, Read, walk
from situ.interpretation.bodies import DATA
from situ.interpretation.build import Builder, Subject, Wanted, choice, same
from situ.interpretation.calls import External
from situ.interpretation.fitting import constant, dynamic_type
from situ.interpretation.model import (
    IDENTITY,
    Context,
    Direction,
    FromDefault,
    FromExpression,
    FromPath,
    MappedTo,
    Origin,
    Path,
    Rule,
)
from situ.interpretation.resolution import Place, Rules, expand, transforming
from situ.interpretation.steps import Step, Value
from situ.interpretation.units_between import Fractional, Linear, Unfit, convert, way_between
from situ.interpretation.verify import Verification
from situ.types.model import STRING, Attribute, Struct, fits, plain
from situ.units import NO_UNIT


def event_steps(
    context: Context,
    direction: Direction,
    rules: Rules,
    mapping: MappedTo | None,
    found: Verification,
) -> tuple[Step | None, Mapping[str, External]]:
    """What makes an event of ``found.target`` of one of ``found.source``; whatever type its data says it has."""
    types = context.types_of(direction)
    dynamic = [each for each in types.subtypes(found.source) if isinstance(each, Struct)] or [found.source]
    places = {each: expand(each, rules, types) for each in dynamic}
    wanted = Wanted(type=found.target)
    externals: dict[str, External] = {}
    steps: list[Step | None] = []
    for each in dynamic:
        builder = MappedBuilder(context, direction, each, found, rules, mapping)
        subject = Subject(node=Read(DATA, (), each), places=(places[found.source], places[each]))
        steps.append(builder.exactly(subject, places[each], wanted))
        externals.update(builder.calls.externals)
    first, others = steps[0], steps[1:]
    made = [(type, step) for type, step in zip(dynamic[1:], others, strict=True) if step is not None]
    if first is None or len(made) < len(others):
        return None, externals
    tag = dynamic_type(Read(DATA, (), found.source))
    arms = tuple(
        (Compare("=", tag, Literal(type.name, STRING)), type.name, step) for type, step in made if not same(step, first)
    )
    return (choice(arms, first, found.target) if arms else first), externals


class MappedBuilder(Builder):
    """Makes the steps for events of one type, by a mapping."""

    def __init__(
        self,
        context: Context,
        direction: Direction,
        event: Struct,
        found: Verification,
        rules: Rules,
        mapping: MappedTo | None,
    ) -> None:
        super().__init__(context, direction, event, found)
        attributes: Mapping[Path, Origin] = mapping.attributes if mapping is not None else {}
        self._origins = {".".join(path): origin for path, origin in attributes.items()}
        self._nested = {".".join(path[:length]) for path in attributes for length in range(1, len(path))}
        self._rules = rules
        self._covered: Place | None = None

    @property
    def covered(self) -> Place:
        """The event with all its places, also those below others that are converted."""
        if self._covered is None:
            self._covered = expand(self.event, self._rules, self.sources, covered=True)
        return self._covered

    def field(self, subject: Subject | None, place: Place | None, attribute: Attribute, wanted: Wanted) -> Step | None:
        if subject is not None and subject.whole:
            return super().field(subject, place, attribute, wanted)
        if (origin := self._origins.get(wanted.path)) is not None:
            return self.supplied(self._from(origin, wanted), attribute, wanted)
        if wanted.path in self._nested:
            return self._nest(subject, place, attribute, wanted)
        return super().field(subject, place, attribute, wanted)

    def note_dropped(self, place: Place, given: Struct, out: Struct) -> None:
        if place.path.steps:
            return super().note_dropped(place, given, out)
        taken = {attribute.name for attribute in out.attributes if attribute.name not in self._origins}
        for origin in self._origins.values():
            match origin:
                case FromPath(path=path):
                    taken.add(path[0])
                case FromExpression(node=node):
                    taken.update(read.path[0] for read in _data_reads(node) if read.path)
        for attribute in given.attributes:
            if attribute.name not in taken:
                self.found.drop(attribute.name)
        return None

    def _nest(self, subject: Subject | None, place: Place | None, attribute: Attribute, wanted: Wanted) -> Step | None:
        """A struct some of whose attributes come from elsewhere; the others from the source's place of its name."""
        out = plain(attribute.type)
        if not isinstance(out, Struct):
            self.found.unfit(wanted.path, "a struct", attribute.type)
            return None
        inner: Subject | None = None
        given = place.path.type if place is not None else None
        source = given.attribute(attribute.name) if isinstance(given, Struct) else None
        if subject is not None and place is not None and source is not None and isinstance(source.type, Struct):
            inner = subject.attribute(place, source)
        fields = [
            (each.name, self.field(inner, inner.places[0] if inner else None, each, self.below(out, wanted, each)))
            for each in out.attributes
        ]
        return self.record(out, fields, attribute.type)

    def _from(self, origin: Origin, wanted: Wanted) -> Step | None:
        match origin:
            case FromPath(path=path):
                start = Subject(node=Read(DATA, (), self.event), places=(self.covered,))
                return self._follow(start, path, wanted)
            case FromExpression():
                return self._computed(origin, wanted)
            case FromDefault(value=value):
                return Value(node=constant(value, wanted.type), function="constant")

    def _follow(self, subject: Subject, path: Path, wanted: Wanted) -> Step | None:
        """The value at a place of the source; where the way to it may end, so may the value."""
        if not path:
            return self.value(subject, wanted)
        inner = subject.is_present()
        made = [self._further(inner, place, path, wanted) for place in subject.places]
        steps = [step for step in made if step is not None]
        if len(steps) < len(made):
            return None
        tag = dynamic_type(inner.node)
        arms: list[tuple[Node, str, Step]] = [
            (Compare("=", tag, Literal(str(place.path.type), STRING)), str(place.path.type), step)
            for place, step in zip(subject.places[1:], steps[1:], strict=True)
            if not same(step, steps[0])
        ]
        if subject.node.nullable:
            if not arms and isinstance(steps[0], Value) and steps[0].copied and isinstance(steps[0].node, Read):
                return replace(steps[0], node=_through(subject.node, steps[0].node))
            arms.insert(0, (IsNull(subject.node), "", Value(node=Literal(None, wanted.type))))
        return choice(tuple(arms), steps[0], wanted.type) if arms else steps[0]

    def _further(self, subject: Subject, place: Place, path: Path, wanted: Wanted) -> Step | None:
        struct = place.path.type
        attribute = struct.attribute(path[0]) if isinstance(struct, Struct) else None
        if attribute is None:
            return None  # said where the mapping is read
        return self._follow(subject.attribute(place, attribute), path[1:], wanted)

    def _computed(self, origin: FromExpression, wanted: Wanted) -> Step | None:
        node = origin.node
        for path, rule in self._unconverted(node):
            self.found.reads_unconverted(wanted.path, path, rule)
        units = (node.unit, wanted.unit)
        try:
            if units[0] != units[1] and NO_UNIT not in units:
                way = way_between(*units, node.type, wanted.type, self.context)
                if not isinstance(way, Linear):
                    self.found.incompatible(wanted.path, units, physical=not (units[0].labels or units[1].labels))
                    return None
                node = convert(node, way, wanted.type, wanted.unit)
        except (Fractional, Unfit):
            self.found.fractional(wanted.path, units)
            return None
        if not fits(node.type, wanted.type):
            self.found.unfit(wanted.path, f"`{node.type}`", wanted.type)
            return None
        unnamed = isinstance(node.type, Struct) and not node.type.name
        given = wanted.type if unnamed else node.type
        return Value(node=self.fitting.fit(node, given, wanted.type), function=origin.text)

    def _unconverted(self, node: Node) -> list[tuple[str, Rule]]:
        """The places that an expression reads and rules would convert, at, above or below them."""
        found: dict[str, Rule] = {}
        for read in _data_reads(node):
            place = self.covered
            on_the_way = [place]
            for step in read.path:
                if step not in place.attributes:
                    break
                place = place.attributes[step][0]
                on_the_way.append(place)
            else:
                on_the_way.extend(each for each in transforming(replace(place, rule=None)))
            for each in on_the_way:
                if each.rule is not None and each.rule.function != IDENTITY:
                    found.setdefault(".".join(read.path), each.rule)
        return list(found.items())


def _data_reads(node: Node) -> list[Read]:
    return [part for part in walk(node) if isinstance(part, Read) and part.variable == DATA]


def _through(way: Read, value: Read) -> Read:
    """A value read over a way that may end."""
    return replace(value, optional=(*way.optional, *value.optional[len(way.optional) :]))
