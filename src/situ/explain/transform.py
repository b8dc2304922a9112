"""What becomes of events of one type in a context: place by place, why, and what a sample becomes.

Decides and lays nothing out: :mod:`situ.cli.show_transform` does that. What is explained is what engines compile; a
sample is converted by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from situ.catalogue import NOT_EXECUTED
from situ.cli.candidates import Candidate, Candidates
from situ.cli.explained_expression import describe
from situ.cli.in_context import Ways, place_text, type_text
from situ.cli.looked_up import LookedUp
from situ.cli.outcome import envelope_of
from situ.cli.published import Given
from situ.cli.traced import NOTHING, Made, Tracing, places
from situ.deployment.interpreting import not_executed
from situ.errors import Location, Problem, Problems, SituError
from situ.expr.interpret import interpret
from situ.expr.runtime import FAILURES
from situ.expr.tree import Node
from situ.interpretation.convert import Converter
from situ.interpretation.model import Direction, FromDefault, FromExpression, FromPath
from situ.interpretation.rows import Find, with_rows
from situ.interpretation.shortcut import Shortcut, shortcut
from situ.interpretation.steps import Value
from situ.interpretation.transformation import Transformation, transformations
from situ.settings.model import Defaults
from situ.types.decode import Extra, decoder
from situ.types.encode import encode


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceExplained:
    """A value of the target. ``by`` is what decides about it: a rule, a unit, the mapping, or nothing."""

    target: str
    source: str
    when: str
    by: str
    rule: str
    place: str
    function: str
    needs: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    made: tuple[Made, ...] = ()

    @property
    def beaten(self) -> tuple[Candidate, ...]:
        return tuple(each for each in self.candidates if each.keys and not each.counts)

    @property
    def missing(self) -> tuple[Candidate, ...]:
        return tuple(each for each in self.candidates if not each.keys)

    def as_json(self) -> dict[str, Any]:
        return {
            "target": self.target,
            "source": self.source or None,
            "when": self.when or None,
            "by": self.by or None,
            "rule": self.rule or None,
            "from": self.place or None,
            "function": self.function,
            "needs": list(self.needs),
            "beaten": [each.as_json() for each in self.beaten],
            "does_not_match": [each.as_json() for each in self.missing],
            "values": [_value(each) for each in self.made],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """A sample and what it becomes: ``result``, or ``problems``, as the dead letter would name them."""

    given: Given
    envelope: Mapping[str, Any]
    data: Any
    find: Mapping[str, Find]
    """How rows of tables are found for it."""
    result: Any = None
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformExplained:
    """What becomes of an event type; with a sample, also of that."""

    way: Transformation
    source: str
    target: str
    places: tuple[PlaceExplained, ...]
    problems: tuple[Problem, ...]
    """Warnings and observations about it."""
    shortcut: Shortcut
    """Whether those of the context get events of the context as they were sent."""
    policy: str
    sample: Converted | None = None

    def as_json(self) -> dict[str, Any]:
        sample = self.sample
        told = {"result": sample.result, "failures": [each.as_json() for each in sample.problems]} if sample else {}
        return {
            "context": self.way.context,
            "direction": self.way.direction.value,
            "source": self.way.source.name,
            "target": self.way.target.name,
            "plan": self.way.plan,
            "native": self.way.native,
            "execution": self.way.execution,
            "lossy": self.way.lossy,
            "can_fail": self.way.can_fail,
            "identity": self.way.is_identity,
            "shortcut": {
                "safe": self.shortcut.safe,
                "taken": self.shortcut.taken(self.policy),
                "reason": self.shortcut.reason or None,
                "setting": self.policy,
            },
            "dropped": list(self.way.dropped),
            "attributes": [each.as_json() for each in self.places],
            **told,
            "problems": [each.as_json() for each in self.problems],
        }


def explain_transform(
    way: Transformation, ways: Ways, settings: Defaults, sample: Converted | None = None
) -> TransformExplained:
    """One of these ways, with what it does to a sample."""
    context, incoming = ways.context, ways.direction is Direction.IN
    candidates = Candidates(context, ways.direction, way.source)
    made: dict[tuple[str, int], list[Made]] = {}
    if sample is not None:
        find = sample.find

        def evaluate(node: Node, values: Mapping[str, Any]) -> Any:
            return interpret(with_rows(node, way.externals, find), values)

        tracing = Tracing(source=encode(way.source, sample.data, way.types), targets=way.targets, evaluate=evaluate)
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
    return TransformExplained(
        way=way,
        source=f"{here} ({names[incoming]})",
        target=f"{there} ({names[not incoming]})",
        places=explained,
        problems=tuple(each for each in ways.problems if _concerns(each, way)),
        shortcut=_shortcut(way, ways, settings),
        policy=settings.shortcut,
        sample=sample,
    )


def _shortcut(way: Transformation, ways: Ways, settings: Defaults) -> Shortcut:
    """For events of the context that go this way, or that come back by it."""
    keeps_extra = settings.extra == "keep"
    if ways.direction is Direction.IN:
        outbound = transformations(ways.context, Direction.OUT, Problems())
        return shortcut(way, outbound, keeps_extra=keeps_extra)
    inbound = transformations(ways.context, Direction.IN, Problems())
    return shortcut(inbound.get(way.target.name), ways.by_type, keeps_extra=keeps_extra)


def convert_sample(
    given: Given, way: Transformation, tables: LookedUp, now: datetime, extra: Extra, file: str
) -> Converted:
    """The sample, converted; :class:`SituError` if it is no event of the source type, or a table is not there."""
    decoded = decoder(way.source, way.types, extra)(given.data)
    if decoded.problems:
        place = Location(file=file, line=given.line)
        raise SituError(*(replace(each, location=each.location or place) for each in decoded.problems))
    envelope = {**envelope_of(now), **given.envelope, "type": given.type}
    find = tables.find(way)
    converted = Converted(given=given, envelope=envelope, data=decoded.value, find=find)
    if refused := tuple(not_executed(way, NOT_EXECUTED)):
        return replace(converted, problems=refused)
    converter = Converter(way, find)
    try:
        result = encode(way.target, converter.data(envelope, decoded.value), way.targets)
    except FAILURES:
        return replace(converted, problems=converter.faults(envelope, decoded.value))
    return replace(converted, result=result)


def _place(found: Made, made: tuple[Made, ...], way: Transformation, candidates: Candidates) -> PlaceExplained:
    step = found.step
    place = candidates.place(step.source, step.rule) if step.source or step.rule is not None else None
    origin = way.mapping.attributes.get(tuple(found.path.split("."))) if way.mapping is not None else None
    location = way.mapping.location if way.mapping is not None and origin is not None else None
    by, rule = "", ""
    if step.rule is not None:
        by, rule, location = "rule", step.rule.pattern.text or str(step.rule.pattern), step.rule.location
    elif step.units:
        location = step.conversion.location if step.conversion is not None else location
        by, rule = "unit", f"unit {step.units}"
    elif isinstance(origin, FromExpression | FromDefault | FromPath):
        by, rule = "mapping", "mapping"
    return PlaceExplained(
        target=found.path,
        source=step.source,
        when=" and ".join(found.when),
        by=by,
        rule=rule,
        place=place_text(location),
        function=_function(step),
        needs=_needs(step),
        candidates=candidates.at(place) if place is not None else (),
        made=made,
    )


def _function(step: Value) -> str:
    if step.units and step.conversion is None:
        return describe(step.node).label
    return step.function


def _needs(step: Value) -> tuple[str, ...]:
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


def _value(made: Made) -> dict[str, Any]:
    return {
        "indices": list(made.indices),
        **({} if made.before is NOTHING else {"before": made.before}),
        **({"fails": made.failure} if made.failure else {"after": made.after}),
    }
