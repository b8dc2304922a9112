"""Explanations of conversions: what becomes of events of one type in a context, place by place, and by which rule.

`RuleCandidates` says why a rule counts at a place and others do not. `TransformTrace` follows one event, value by
value. `explain_transform` puts both together for an event type, `convert_sample` converts a sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, assert_never

import msgspec

from situ.contexts.model import Context, Direction, FromDefault, FromExpression, FromPath, Pattern, Rule
from situ.contexts.patterns import Traversal, holds, matches
from situ.contexts.resolve_rules import (
    ATTRIBUTE,
    SAYS_NOTHING,
    LevelKey,
    ResolvedPlace,
    RuleSet,
    explain_choice,
    precedence_key,
    resolve_event_type,
)
from situ.contexts.transform.columns import dataframe_form
from situ.contexts.transform.converter import Converter
from situ.contexts.transform.function_calls import FindRow, with_rows
from situ.contexts.transform.round_trip import Shortcut, check_shortcut
from situ.contexts.transform.steps import (
    ChoiceStep,
    DefaultStep,
    ListStep,
    Step,
    StructStep,
    ValueStep,
    below,
    is_nothing,
    leaves,
)
from situ.contexts.transform.transformation import Transformation, transformations
from situ.explain.conversion import ContextConversions, LookupTables, place_text, type_text
from situ.explain.expression import describe, envelope_of
from situ.lang.catalogue import NOT_EXECUTED
from situ.lang.expr.interpret import interpret
from situ.lang.expr.runtime import FAILURES
from situ.lang.expr.tree import Node
from situ.lang.json_form import TEXT_ONLY, Explanation
from situ.lang.problems import Location, Problem, Problems, SituError
from situ.lang.records import replace
from situ.lang.types.json_codec import Extra, decoder, encode
from situ.lang.types.model import Struct, is_subtype
from situ.lang.types.table import Types
from situ.project.event_files import InputEvent
from situ.settings.model import Defaults
from situ.stages.interpret import not_executed


class RuleCandidate(Explanation, frozen=True, kw_only=True):
    """A rule about such a value."""

    rule: str
    place: str | None = msgspec.field(name="from")
    """File and line where it is declared."""
    context: str
    counts: bool
    matches: bool
    keys: tuple[str, ...]
    """Distance, kind and order: for the target, the event, and so on inwards; none: it does not match."""
    reason: str | None
    """Why it does not count."""


class RuleCandidates:
    """The rules of a context and direction, at the places of one event type."""

    def __init__(self, context: Context, direction: Direction, event: Struct) -> None:
        self._rules = RuleSet.of(context, direction)
        types = context.types_of(direction)
        self._places: dict[str, list[ResolvedPlace]] = {}
        self._whole: dict[int, ResolvedPlace] = {}
        for each in types.subtypes(event) or (event,):
            if isinstance(each, Struct):
                for place, whole in _all(resolve_event_type(each, self._rules, types, covered=True)):
                    self._places.setdefault(str(place.path), []).append(place)
                    if whole is not None:
                        self._whole[id(place)] = whole

    def places(self, path: str) -> list[ResolvedPlace]:
        """The places of this path, one for each dynamic type, and for each of the event."""
        return self._places.get(path, [])

    def whole(self, place: ResolvedPlace) -> ResolvedPlace | None:
        """The place above that a rule converts as a whole, so that no rule below it is asked; None if there is none.

        It depends on the dynamic type: what is an attribute of one subtype may be converted with the whole of another.
        """
        return self._whole.get(id(place))

    def place(self, path: str, rule: Rule | None) -> ResolvedPlace | None:
        """The first of them at which this rule counts."""
        found = self.places(path)
        return next((each for each in found if each.rule is rule), next(iter(found), None))

    def at(self, place: ResolvedPlace) -> tuple[RuleCandidate, ...]:
        """All that are about a value of the type there: the one that counts, the beaten ones, those that miss."""
        return (*self._matching(place), *self._missing(place.path))

    def _matching(self, place: ResolvedPlace) -> Iterator[RuleCandidate]:
        winner = place.rule
        if winner is None:
            return
        for rule in (winner, *place.beaten):
            yield RuleCandidate(
                rule=str(rule),
                place=place_text(rule.location),
                context=rule.context,
                counts=rule is winner,
                matches=True,
                keys=tuple(map(_shown, precedence_key(rule.pattern, place.path))),
                reason=None if rule is winner else explain_choice(winner, rule, place.path),
            )

    def _missing(self, path: Traversal) -> Iterator[RuleCandidate]:
        for rule in _latest(self._rules.rules):
            if is_subtype(path.type, rule.pattern.target) and not matches(rule.pattern, path):
                yield RuleCandidate(
                    rule=str(rule),
                    place=place_text(rule.location),
                    context=rule.context,
                    counts=False,
                    matches=False,
                    keys=(),
                    reason=_why_not(rule.pattern, path),
                )


def levels(path: Traversal) -> tuple[str, ...]:
    """What the keys are about: the target, then from the event inwards."""
    way = (f"level {number} ({type})" for number, type in enumerate(path.types[:-1]))
    return (f"target ({path.type})", *way)


def _all(
    place: ResolvedPlace, whole: ResolvedPlace | None = None
) -> Iterator[tuple[ResolvedPlace, ResolvedPlace | None]]:
    """The places from here down, each with the outermost one above it that has a rule."""
    yield place, whole
    for each in place.below:
        yield from _all(each, whole or (place if place.rule is not None else None))


def _latest(rules: Iterable[Rule]) -> Iterable[Rule]:
    """One rule a pattern: the others are overridden wherever it is in question."""
    found: dict[Pattern, Rule] = {}
    for rule in rules:
        if rule.pattern not in found or found[rule.pattern].context == rule.context:
            found[rule.pattern] = rule
    return found.values()


def _why_not(pattern: Pattern, path: Traversal) -> str:
    if not is_subtype(path.event, pattern.head):
        return f"the event is no {pattern.head}"
    *inner, last = pattern.qualifiers
    for number, (qualifier, step) in enumerate(zip(inner, path.steps, strict=False), start=1):
        if not holds(qualifier, step):
            return f"at level {number} it asks for {qualifier}"
    if not path.steps or len(path.steps) < len(pattern.qualifiers):
        return "it asks for a place further down"
    if last.attribute and len(path.steps) != len(pattern.qualifiers):
        return f"it asks for a place at level {len(pattern.qualifiers)}"
    return f"the attribute is not {last.attribute}{'[]' if last.elements else ''}"


def _shown(level: LevelKey) -> str:
    if level == SAYS_NOTHING:
        return "–"
    distance, kind, order = level
    return f"{distance:.0f} {'attribute' if kind == ATTRIBUTE else 'type'} {order}"


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Trace: a conversion followed for one event. For every value of the target what it was made of, and what it became.

NOTHING = object()
"""Where a value is made of nothing in the event: a constant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedValue:
    """A value of the target, before and after, as JSON values; ``failure`` says why there is none.

    ``path`` has no indices, ``indices`` are those of its lists in order.
    """

    path: str
    step: ValueStep
    before: Any = NOTHING
    after: Any = None
    failure: str = ""
    when: tuple[str, ...] = ()
    indices: tuple[int, ...] = ()


def places(step: Step) -> Iterator[TracedValue]:
    """Every value that the target can have, without any event."""
    for path, value, when in leaves(step):
        yield TracedValue(
            path=path, step=value, when=tuple(f"{place or 'the event'} is {dynamic}" for place, dynamic in when)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformTrace:
    """Follows the steps for one event. ``source`` is its data as a JSON value, ``targets`` what is visible there.

    ``evaluate`` gives the value of an expression, what it looks up included.
    """

    source: Any
    targets: Types
    evaluate: Callable[[Node, Mapping[str, Any]], Any] = interpret

    def trace(
        self, step: Step, values: Mapping[str, Any], path: str = "", indices: tuple[int, ...] = ()
    ) -> Iterator[TracedValue]:
        """Every value that the target has for these values of the variables, in its order."""
        match step:
            case ValueStep(parts=parts):
                if parts is not None:
                    yield from self.trace(parts, values, path, indices)
                elif not is_nothing(step):
                    yield self._made(step, values, path, indices)
            case StructStep(fields=fields):
                for name, part in fields:
                    yield from self.trace(part, values, below(path, name), indices)
            case ListStep():
                items = self.evaluate(step.list, values)
                for number, item in enumerate(items if items is not None else ()):
                    bound = {**values, step.variable: item}
                    yield from self.trace(step.element, bound, f"{path}[]", (*indices, number))
            case ChoiceStep(arms=arms, otherwise=otherwise):
                chosen = next((part for condition, _, part in arms if self.evaluate(condition, values)), otherwise)
                yield from self.trace(chosen, values, path, indices)
            case DefaultStep(of=of):
                for made in self.trace(of, values, path, indices):
                    unfilled = made.path == path and made.after is None and not made.failure
                    yield self._filled(made, step) if unfilled else made
            case _:
                assert_never(step)

    def _made(self, step: ValueStep, values: Mapping[str, Any], path: str, indices: tuple[int, ...]) -> TracedValue:
        from_event = step.source or step.rule is not None
        before = _at(self.source, _parts(step.source), list(indices)) if from_event else NOTHING
        made = TracedValue(path=path, step=step, before=before, indices=indices)
        function = step.conversion
        if function is not None and function.states:
            return replace(made, failure="it needs more than the event")
        try:
            value = self.evaluate(step.node, values)
        except FAILURES as failure:
            return replace(made, failure=str(failure) or "no value")
        return replace(made, after=None if value is None else encode(step.node.type, value, self.targets))

    def _filled(self, made: TracedValue, step: DefaultStep) -> TracedValue:
        if step.default is None:
            return replace(made, failure="missing or null")
        return replace(made, after=encode(step.type, step.default, self.targets))


def _parts(path: str) -> list[str]:
    """``crates[].spare`` → ``crates``, ``[]``, ``spare``."""
    return [part for part in path.replace("[]", ".[]").split(".") if part]


def _at(value: Any, path: Sequence[str], indices: list[int]) -> Any:
    """What is at a place of a JSON value; of lists without an index all."""
    if not path or value is None:
        return value
    first, *rest = path
    if first != "[]":
        return _at(value.get(first), rest, indices)
    if indices:
        return _at(value[indices[0]], rest, indices[1:])
    return [_at(item, rest, []) for item in value]


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The explanation of one event type. What is explained is what engines compile, and a sample is converted by it. The
# text for people is :mod:`situ.cli.render.transform`.


class ConvertedValue(Explanation, frozen=True, kw_only=True, omit_defaults=True):
    """A value of the target that a sample has."""

    indices: tuple[int, ...]
    """Those of its lists, in order."""
    before: Any | msgspec.UnsetType = msgspec.UNSET
    """What it was made of; left out where it is made of nothing in the event."""
    fails: str = ""
    """Why there is none."""
    after: Any | msgspec.UnsetType = msgspec.UNSET


class PlaceExplanation(Explanation, frozen=True, kw_only=True):
    """A value of the target: what it is made of, and what decides about it."""

    target: str
    source: str | None
    when: str | None
    """For which dynamic types of values it is so."""
    by: Literal["rule", "unit", "mapping"] | None
    """What decides about it; null: nothing does, and it is copied."""
    rule: str | None
    place: str | None = msgspec.field(name="from")
    """File and line where that is declared."""
    function: str
    needs: tuple[str, ...]
    """What it reads besides the event."""
    beaten: tuple[RuleCandidate, ...]
    """Rules that match, and do not count."""
    does_not_match: tuple[RuleCandidate, ...]
    """The other rules about values of its type."""
    values: tuple[ConvertedValue, ...]


class ShortcutExplanation(Explanation, frozen=True, kw_only=True):
    """Whether those of the context get events of the context as they were sent."""

    safe: bool
    taken: bool
    reason: str | None
    """Why it is not safe."""
    setting: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertedSample:
    """A sample and what it becomes: ``result``, or ``problems``, as the dead letter would name them."""

    given: InputEvent
    envelope: Mapping[str, Any]
    data: Any
    find: Mapping[str, FindRow]
    """How rows of tables are found for it."""
    result: Any = None
    problems: tuple[Problem, ...] = ()


class TransformExplanation(Explanation, frozen=True, kw_only=True):
    """What becomes of an event type; with a sample, also of that."""

    context: str
    direction: Direction
    source: str
    target: str
    plan: str
    native: bool
    """Spark runs it without Python."""
    execution: str
    dataframes: Literal["catalyst", "arrow", "none"]
    """How DataFrames run it: by expressions of Spark, by Python over Arrow arrays, or not at all."""
    lossy: bool
    can_fail: bool
    identity: bool
    shortcut: ShortcutExplanation
    dropped: tuple[str, ...]
    """Attributes of the source that the target has not."""
    attributes: tuple[PlaceExplanation, ...]
    result: Any | msgspec.UnsetType = msgspec.UNSET
    """The sample, converted; null if it cannot be."""
    failures: tuple[Problem, ...] | msgspec.UnsetType = msgspec.UNSET
    """What is wrong with the sample, as its dead letter would say."""
    problems: tuple[Problem, ...]
    """Warnings and observations about it."""
    ends: Annotated[tuple[str, str], TEXT_ONLY]
    """Source and target, with the contexts whose types they are."""


def explain_transform(
    way: Transformation, ways: ContextConversions, settings: Defaults, sample: ConvertedSample | None = None
) -> TransformExplanation:
    """One of these ways, with what it does to a sample."""
    context, incoming = ways.context, ways.direction is Direction.IN
    candidates = RuleCandidates(context, ways.direction, way.source)
    made: dict[tuple[str, int], list[TracedValue]] = {}
    if sample is not None:
        find = sample.find

        def evaluate(node: Node, values: Mapping[str, Any]) -> Any:
            return interpret(with_rows(node, way.externals, find), values)

        tracing = TransformTrace(
            source=encode(way.source, sample.data, way.types), targets=way.targets, evaluate=evaluate
        )
        values = {**dict.fromkeys(way.externals), "event": sample.envelope, "data": sample.data}
        for each in tracing.trace(way.step, values):
            made.setdefault((each.path, id(each.step)), []).append(each)
    explained = tuple(
        _place(each, tuple(made.get((each.path, id(each.step)), ())), way, candidates) for each in places(way.step)
    )
    here, there = (
        f"{type_text(way.source.name, context) if incoming else way.source.name}",
        f"{way.target.name if incoming else type_text(way.target.name, context)}",
    )
    names = (context.root.name, context.name)
    shortcut = _shortcut(way, ways, settings)
    return TransformExplanation(
        context=way.context,
        direction=way.direction,
        source=way.source.name,
        target=way.target.name,
        plan=way.plan,
        native=way.native,
        execution=way.execution,
        dataframes=dataframe_form(way),
        lossy=way.lossy,
        can_fail=way.can_fail,
        identity=way.is_identity,
        shortcut=ShortcutExplanation(
            safe=shortcut.safe,
            taken=shortcut.taken(settings.shortcut),
            reason=shortcut.reason or None,
            setting=settings.shortcut,
        ),
        dropped=tuple(way.dropped),
        attributes=explained,
        result=msgspec.UNSET if sample is None else sample.result,
        failures=msgspec.UNSET if sample is None else sample.problems,
        problems=tuple(each for each in ways.problems if _concerns(each, way)),
        ends=(f"{here} ({names[incoming]})", f"{there} ({names[not incoming]})"),
    )


def _shortcut(way: Transformation, ways: ContextConversions, settings: Defaults) -> Shortcut:
    """For events of the context that go this way, or that come back by it."""
    keeps_extra = settings.extra == "keep"
    if ways.direction is Direction.IN:
        outbound = transformations(ways.context, Direction.OUT, Problems())
        return check_shortcut(way, outbound, keeps_extra=keeps_extra)
    inbound = transformations(ways.context, Direction.IN, Problems())
    return check_shortcut(inbound.get(way.target.name), ways.by_type, keeps_extra=keeps_extra)


def convert_sample(
    given: InputEvent, way: Transformation, tables: LookupTables, now: datetime, extra: Extra, file: str
) -> ConvertedSample:
    """The sample, converted; :class:`SituError` if it is no event of the source type, or a table is not there."""
    decoded = decoder(way.source, way.types, extra)(given.data)
    if decoded.problems:
        place = Location(file=file, line=given.line)
        raise SituError(*(replace(each, location=each.location or place) for each in decoded.problems))
    envelope = {**envelope_of(now), **given.envelope, "type": given.type}
    find = tables.find(way)
    converted = ConvertedSample(given=given, envelope=envelope, data=decoded.value, find=find)
    if refused := tuple(not_executed(way, NOT_EXECUTED)):
        return replace(converted, problems=refused)
    converter = Converter(way, find)
    try:
        result = encode(way.target, converter.data(envelope, decoded.value), way.targets)
    except FAILURES:
        return replace(converted, problems=converter.faults(envelope, decoded.value))
    return replace(converted, result=result)


def _place(
    found: TracedValue, made: tuple[TracedValue, ...], way: Transformation, candidates: RuleCandidates
) -> PlaceExplanation:
    step = found.step
    place = candidates.place(step.source, step.rule) if step.source or step.rule is not None else None
    origin = way.mapping.attributes.get(tuple(found.path.split("."))) if way.mapping is not None else None
    location = way.mapping.location if way.mapping is not None and origin is not None else None
    by: Literal["rule", "unit", "mapping"] | None = None
    rule = None
    if step.rule is not None:
        by, rule, location = "rule", step.rule.pattern.text or str(step.rule.pattern), step.rule.location
    elif step.units:
        location = step.conversion.location if step.conversion is not None else location
        by, rule = "unit", f"unit {step.units}"
    elif isinstance(origin, FromExpression | FromDefault | FromPath):
        by, rule = "mapping", "mapping"
    rules = candidates.at(place) if place is not None else ()
    return PlaceExplanation(
        target=found.path,
        source=step.source or None,
        when=" and ".join(found.when) or None,
        by=by,
        rule=rule,
        place=place_text(location),
        function=_function(step),
        needs=_needs(step),
        beaten=tuple(each for each in rules if each.matches and not each.counts),
        does_not_match=tuple(each for each in rules if not each.matches),
        values=tuple(map(_value, made)),
    )


def _function(step: ValueStep) -> str:
    if step.units and step.conversion is None:
        return describe(step.node).node
    return step.function


def _needs(step: ValueStep) -> tuple[str, ...]:
    """What it reads besides the event."""
    function = step.conversion
    if function is None:
        return ()
    tables = (f"{each.name} of the source {each.source}" for each in function.lookups)
    states = (f"{each.name} of earlier {each.event.name}" for each in function.states)
    code = (f"Python {function.python}",) if function.python else ()
    return (*tables, *states, *code)


def _concerns(problem: Problem, way: Transformation) -> bool:
    """Whether it is about this event type, or about a rule that has a say in it."""
    values = problem.values
    if "source" in values and "path" in values:
        return bool(values["source"] == way.source.name and values["target"] == way.target.name)
    if "direction" in values and "type" in values:
        return bool(values["type"] == way.source.name)
    if "type" in values:
        return bool(values["type"] == way.target.name)
    rules = [rule for each in way.places for rule in (each.rule, *each.beaten) if rule is not None]
    return any(rule.location == problem.location for rule in rules)


def _value(made: TracedValue) -> ConvertedValue:
    return ConvertedValue(
        indices=made.indices,
        before=msgspec.UNSET if made.before is NOTHING else made.before,
        fails=made.failure,
        after=msgspec.UNSET if made.failure else made.after,
    )
