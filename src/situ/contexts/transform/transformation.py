"""What becomes of events on the way into a context or out of it: one `Transformation` for each event type.

`event_steps` makes the steps of a whole event, `transformations` compiles all event types of a context and direction. A
transformation is data, an expression over ``event`` and ``data`` whose type is the target's, with where each part comes
from: both engines compile it, subscriptions are mediated with it, people read it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from situ.contexts.function_bodies import DATA
from situ.contexts.model import (
    IDENTITY,
    Context,
    Direction,
    EventMapping,
    FromDefault,
    FromExpression,
    FromPath,
    Origin,
    Path,
    Pattern,
    ReferenceState,
    Rule,
    TableLookup,
)
from situ.contexts.patterns import Traversal
from situ.contexts.python_files import code_digest
from situ.contexts.resolve_rules import ResolvedPlace, RuleSet, converted_places, precedence_key, resolve_event_type
from situ.contexts.transform.build_steps import SourceValue, StepBuilder, TargetPlace, Verification, choice, same
from situ.contexts.transform.coerce import (
    Fractional,
    LinearConversion,
    NotConvertible,
    constant,
    convert_unit,
    dynamic_type,
    unit_conversion,
)
from situ.contexts.transform.function_calls import ExternalValue
from situ.contexts.transform.steps import Provenance, Step, ValueStep, provenance
from situ.lang.catalogue import NO_WAY, PASSES_UNMAPPED
from situ.lang.expr.format import print_expression
from situ.lang.expr.tree import Compare, IsNull, Literal, Node, Read, walk
from situ.lang.problems import Problem, Problems, SituError
from situ.lang.records import replace
from situ.lang.types.model import STRING, Attribute, ListOf, Named, Struct, Type, fits, plain, supertypes
from situ.lang.types.table import Types
from situ.lang.units import NO_UNIT

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The steps of a whole event: by name, and where a mapping says so, from elsewhere. The keys of a mapping's
# ``attributes`` are places of the target. Each gets the value at a place of the source, with the rules for that place,
# or that of an expression over the source as it came, or always the same.


def event_steps(
    context: Context,
    direction: Direction,
    rules: RuleSet,
    mapping: EventMapping | None,
    found: Verification,
) -> tuple[Step | None, Mapping[str, ExternalValue]]:
    """What makes an event of ``found.target`` of one of ``found.source``; whatever type its data says it has."""
    types = context.types_of(direction)
    dynamic = [each for each in types.subtypes(found.source) if isinstance(each, Struct)] or [found.source]
    places = {each: resolve_event_type(each, rules, types) for each in dynamic}
    wanted = TargetPlace(type=found.target)
    externals: dict[str, ExternalValue] = {}
    steps: list[Step | None] = []
    for each in dynamic:
        builder = EventStepBuilder(context, direction, each, found, rules, mapping)
        subject = SourceValue(node=Read(DATA, (), each), places=(places[found.source], places[each]))
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


class EventStepBuilder(StepBuilder):
    """Makes the steps for events of one type, by a mapping."""

    def __init__(
        self,
        context: Context,
        direction: Direction,
        event: Struct,
        found: Verification,
        rules: RuleSet,
        mapping: EventMapping | None,
    ) -> None:
        super().__init__(context, direction, event, found)
        attributes: Mapping[Path, Origin] = mapping.attributes if mapping is not None else {}
        self._origins = {".".join(path): origin for path, origin in attributes.items()}
        self._nested = {".".join(path[:length]) for path in attributes for length in range(1, len(path))}
        self._rules = rules
        self._covered: ResolvedPlace | None = None

    @property
    def covered(self) -> ResolvedPlace:
        """The event with all its places, also those below others that are converted."""
        if self._covered is None:
            self._covered = resolve_event_type(self.event, self._rules, self.sources, covered=True)
        return self._covered

    def field(
        self, subject: SourceValue | None, place: ResolvedPlace | None, attribute: Attribute, wanted: TargetPlace
    ) -> Step | None:
        if subject is not None and subject.whole:
            return super().field(subject, place, attribute, wanted)
        if (origin := self._origins.get(wanted.path)) is not None:
            return self.supplied(self._from(origin, wanted), attribute, wanted)
        if wanted.path in self._nested:
            return self._nest(subject, place, attribute, wanted)
        return super().field(subject, place, attribute, wanted)

    def note_dropped(self, place: ResolvedPlace, given: Struct, out: Struct) -> None:
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

    def _nest(
        self, subject: SourceValue | None, place: ResolvedPlace | None, attribute: Attribute, wanted: TargetPlace
    ) -> Step | None:
        """A struct some of whose attributes come from elsewhere; the others from the source's place of its name."""
        out = plain(attribute.type)
        if not isinstance(out, Struct):
            self.found.unfit(wanted.path, "a struct", attribute.type)
            return None
        inner: SourceValue | None = None
        given = place.path.type if place is not None else None
        source = given.attribute(attribute.name) if isinstance(given, Struct) else None
        if subject is not None and place is not None and source is not None and isinstance(source.type, Struct):
            inner = subject.attribute(place, source)
        fields = [
            (each.name, self.field(inner, inner.places[0] if inner else None, each, self.below(out, wanted, each)))
            for each in out.attributes
        ]
        return self.record(out, fields, attribute.type)

    def _from(self, origin: Origin, wanted: TargetPlace) -> Step | None:
        match origin:
            case FromPath(path=path):
                start = SourceValue(node=Read(DATA, (), self.event), places=(self.covered,))
                return self._follow(start, path, wanted)
            case FromExpression():
                return self._computed(origin, wanted)
            case FromDefault(value=value):
                return ValueStep(node=constant(value, wanted.type), function="constant")

    def _follow(self, subject: SourceValue, path: Path, wanted: TargetPlace) -> Step | None:
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
            if not arms and isinstance(steps[0], ValueStep) and steps[0].copied and isinstance(steps[0].node, Read):
                return replace(steps[0], node=_through(subject.node, steps[0].node))
            arms.insert(0, (IsNull(subject.node), "", ValueStep(node=Literal(None, wanted.type))))
        return choice(tuple(arms), steps[0], wanted.type) if arms else steps[0]

    def _further(self, subject: SourceValue, place: ResolvedPlace, path: Path, wanted: TargetPlace) -> Step | None:
        struct = place.path.type
        attribute = struct.attribute(path[0]) if isinstance(struct, Struct) else None
        if attribute is None:
            return None  # said where the mapping is read
        return self._follow(subject.attribute(place, attribute), path[1:], wanted)

    def _computed(self, origin: FromExpression, wanted: TargetPlace) -> Step | None:
        node = origin.node
        for path, rule in self._unconverted(node):
            self.found.reads_unconverted(wanted.path, path, rule)
        units = (node.unit, wanted.unit)
        try:
            if units[0] != units[1] and NO_UNIT not in units:
                way = unit_conversion(*units, node.type, wanted.type, self.context)
                if not isinstance(way, LinearConversion):
                    self.found.incompatible(wanted.path, units, physical=not (units[0].labels or units[1].labels))
                    return None
                node = convert_unit(node, way, wanted.type, wanted.unit)
        except (Fractional, NotConvertible):
            self.found.fractional(wanted.path, units)
            return None
        if not fits(node.type, wanted.type):
            self.found.unfit(wanted.path, f"`{node.type}`", wanted.type)
            return None
        unnamed = isinstance(node.type, Struct) and not node.type.name
        given = wanted.type if unnamed else node.type
        return ValueStep(node=self.fitting.fit(node, given, wanted.type), function=origin.text)

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
                on_the_way.extend(each for each in converted_places(replace(place, rule=None)))
            for each in on_the_way:
                if each.rule is not None and each.rule.function != IDENTITY:
                    found.setdefault(".".join(read.path), each.rule)
        return list(found.items())


def _data_reads(node: Node) -> list[Read]:
    return [part for part in walk(node) if isinstance(part, Read) and part.variable == DATA]


def _through(way: Read, value: Read) -> Read:
    """A value read over a way that may end."""
    return replace(value, optional=(*way.optional, *value.optional[len(way.optional) :]))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Compilation. A context is compiled from everything that is visible in it, straight to root: how deep it stands costs
# nothing.


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformation:
    """How events of type ``source`` become events of type ``target``, in one direction of one version of a context."""

    context: str
    direction: Direction
    source: Struct
    target: Struct
    step: Step
    mapping: EventMapping | None = None
    dropped: tuple[str, ...] = ()
    """Attributes of the source that have no place in the target."""
    lossy: bool = False
    """A function says that it loses something, or digits are rounded away."""
    externals: Mapping[str, ExternalValue] = field(default_factory=lambda: MappingProxyType({}))
    """What the host binds before it evaluates, by the name of the variable."""
    types: Types = field(default_factory=lambda: Types(types={}), compare=False, repr=False)
    """What is visible where the events come from."""
    targets: Types = field(default_factory=lambda: Types(types={}), compare=False, repr=False)
    """What is visible where they go."""
    plan: str = ""
    """The same for equal transformations only: a hash of everything that decides what comes out."""
    through: tuple[Transformation, Transformation] | None = field(default=None, compare=False, repr=False)
    """The two that it is made of, if it leads over a root that was replaced: they say what their places are."""

    @property
    def node(self) -> Node:
        return self.step.node

    @property
    def places(self) -> tuple[Provenance, ...]:
        """Where every value of the target comes from."""
        return tuple(provenance(self.step))

    @property
    def can_fail(self) -> bool:
        return self.node.can_fail

    @property
    def native(self) -> bool:
        """Whether expressions do it all: no table, nothing remembered, no Python."""
        return not self.externals

    @property
    def execution(self) -> str:
        """``native`` expressions and tables, ``arrow`` with functions of Python, or ``stateful``."""
        needs = [each.of for each in self.externals.values()]
        if any(isinstance(each, ReferenceState) for each in needs):
            return "stateful"
        return "arrow" if None in needs else "native"

    @property
    def is_identity(self) -> bool:
        """Whether events come out as they went in, type and all."""
        return isinstance(self.step, ValueStep) and self.step.copied and self.source == self.target

    @property
    def reads_envelope(self) -> bool:
        return any(isinstance(part, Read) and part.variable == "event" for part in walk(self.node))


def transformations(context: Context, direction: Direction, problems: Problems) -> Mapping[str, Transformation]:
    """The transformations of all event types that have a way, by the name of the source event type.

    What is wrong is reported, all of it; so is which types have no mapping, and whether they pass. A context below a
    root that was replaced is compiled against that, and what leads from there to root is made one with it.
    """
    # Imported here, because `fusion` imports this module.
    from situ.contexts.transform.fusion import bridge_root_versions

    compiled = own_transformations(context, direction, problems)
    bridge = context.root.bridge
    if bridge is None:
        return compiled
    known: dict[Direction, Mapping[str, Transformation]] = context.compiled.setdefault("bridged", {})
    if direction not in known:
        known[direction] = bridge_root_versions(compiled, transformations(bridge, direction, Problems()), direction)
    return known[direction]


def own_transformations(context: Context, direction: Direction, problems: Problems) -> Mapping[str, Transformation]:
    """The same, from and to what the context takes for root."""
    known: dict[Direction, _Compiled] = context.compiled.setdefault("own", {})
    if direction not in known:
        found = Problems()
        known[direction] = (_compile(context, direction, found), tuple(found))
    made, told = known[direction]
    problems.extend(told)
    return made


_Compiled = tuple[Mapping[str, Transformation], tuple[Problem, ...]]


def _compile(context: Context, direction: Direction, problems: Problems) -> Mapping[str, Transformation]:
    compiled: dict[str, Transformation] = {}
    compiling = _Compiling(context, direction)
    for name in sorted(compiling.types.events):
        event = compiling.types.event(name)
        if event is None:
            continue
        try:
            made = compiling.transformation(event, problems)
        except SituError as error:
            problems.extend(error.problems)
            continue
        if made is not None:
            compiled[name] = made
    return MappingProxyType(compiled)


def mapping_for(event: Struct, mappings: Mapping[Struct, EventMapping]) -> EventMapping | None:
    """The mapping whose source is nearest to the type of the event."""
    path = Traversal(event=event)
    known = dict.fromkeys(each for each in supertypes(event) if isinstance(each, Struct) and each in mappings)
    # The order of the mappings decides between two that are as near.
    sources = known if len(known) < 2 else [source for source in mappings if source in known]
    above = [mappings[source] for source in sources]
    return min(above, key=lambda mapping: precedence_key(Pattern(head=mapping.source), path), default=None)


def mappings_in_force(context: Context, direction: Direction) -> Mapping[Struct, EventMapping]:
    """By source type: of the nearest context, there the last."""
    found: dict[Struct, EventMapping] = {}
    for each in reversed(list(context.chain)):
        found.update({mapping.source: mapping for mapping in each.mappings if mapping.direction is direction})
    return found


class _Compiling:
    """What all event types of a context and direction share."""

    def __init__(self, context: Context, direction: Direction) -> None:
        self.context, self.direction = context, direction
        self.types, self.targets = context.types_of(direction), context.targets_of(direction)
        self.rules = RuleSet.of(context, direction)
        self.mappings = mappings_in_force(context, direction)

    @property
    def _sides(self) -> tuple[str, str]:
        """The contexts that types come from and go to."""
        own, root = self.context.id, self.context.root.id
        return (own, root) if self.direction is Direction.IN else (root, own)

    def transformation(self, event: Struct, problems: Problems) -> Transformation | None:
        mapping = mapping_for(event, self.mappings)
        if mapping is None:
            return self._unmapped(event, problems)
        found = Verification(source=event, target=mapping.target, sides=self._sides, where=mapping.location)
        made = self._made(found, mapping)
        problems.extend(found.problems)
        return made

    def _made(self, found: Verification, mapping: EventMapping | None) -> Transformation | None:
        step, externals = event_steps(self.context, self.direction, self.rules, mapping, found)
        if step is None or found.failed:
            return None
        return Transformation(
            context=self.context.name,
            direction=self.direction,
            source=found.source,
            target=found.target,
            step=step,
            mapping=mapping,
            dropped=tuple(found.dropped),
            lossy=found.lossy,
            externals=MappingProxyType(dict(externals)),
            types=self.types,
            targets=self.targets,
            plan=_plan(self.context, self.direction, found, step, externals),
        )

    def _unmapped(self, event: Struct, problems: Problems) -> Transformation | None:
        """Passes under its own type if both sides see the same and no rule changes what an attribute is.

        In a context that derives types, what rules change became a type of its own name that has what they give, and
        on the way in that one becomes the original again.
        """
        source, target = event, self.targets.event(event.name)
        derived = self.context.derives and not self.context.declares(event.name)
        if target is None or (target != source and not derived):
            other = "another type has that name there" if self.targets.get(event.name) else "it is not known there"
            self._not_available(event, f"it has no mapping, and {other}", problems)
            return None
        found = Verification(source=source, target=target, sides=self._sides)
        made = self._made(found, None)
        if made is None:
            reason = "; ".join(problem.message.removesuffix(".") for problem in found.problems.errors)
            self._not_available(event, f"it has no mapping, and {reason}", problems)
            return None
        problems.extend(found.problems)
        if self.context.parent is not None and source == target:
            direction = self.direction.value
            problems.add(PASSES_UNMAPPED(type=event.name, context=self.context.id, direction=direction))
        return made

    def _not_available(self, event: Struct, reason: str, problems: Problems) -> None:
        direction = self.direction.value
        problems.add(NO_WAY(type=event.name, context=self.context.id, direction=direction, reason=reason))


# ── plan id ───────────────────────────────────────────────────────────────────────────────────────


def _plan(
    context: Context, direction: Direction, found: Verification, step: Step, externals: Mapping[str, ExternalValue]
) -> str:
    seen: dict[str, str] = {}
    for type in (found.source, found.target):
        _describe(type, seen)
    parts = [context.name, direction.value, found.source.name, found.target.name]
    parts.extend(f"{name}={text}" for name, text in sorted(seen.items()))
    parts.extend(_described(step))
    for name, each in sorted(externals.items()):
        keys = " ".join(f"{column}={print_expression(key)}" for column, key in each.keys)
        function = each.function
        code = code_digest(function.code) if function.code else ""
        about = (function.time, function.python, code, function.missing, function.default, function.hold)
        parts.append(f"{name} {_source(each)} {about!r} {print_expression(each.argument)} {keys}")
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _source(external: ExternalValue) -> str:
    match external.of:
        case TableLookup(source=source, as_of=as_of):
            return f"{source} {as_of}"
        case ReferenceState() as state:
            kept = ", ".join(f"{name}={each.text}" for name, each in state.keep)
            return f"{state.event} {state.key.text} {kept} {state.ttl} {state.max_keys} {state.history}"
        case None:
            return ""


def _described(step: Step) -> Iterator[str]:
    yield print_expression(step.node)
    for each in provenance(step):
        yield f"{each.target} {each.source} {each.rule} {each.function}"


def _describe(type: Type, seen: dict[str, str]) -> None:
    bare = plain(type)
    if isinstance(bare, ListOf):
        return _describe(bare.element, seen)
    if not isinstance(bare, Struct) or bare.name in seen:
        return None
    shown = (f"{a.name}:{_basis(a.type)} {a.unit} {a.optional} {a.default!r}" for a in bare.attributes)
    seen[bare.name] = ";".join(shown)
    for attribute in bare.attributes:
        _describe(attribute.type, seen)
    return None


def _basis(type: Type) -> str:
    return f"{type}({type.base})" if isinstance(type, Named) else str(type)
