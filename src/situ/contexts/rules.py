"""Mappings and rules of one context, looked up and checked.

`define_mappings` settles which event type becomes which and which attributes do not go by name, `define_rules` which
function converts what a pattern names, in which direction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from types import MappingProxyType

import msgspec

from situ.contexts.declarations import ContextText, MappingText, PlacedWords, RuleText
from situ.contexts.model import (
    IDENTITY,
    KEEP,
    ROOT,
    Context,
    Direction,
    EventMapping,
    FromDefault,
    FromExpression,
    FromPath,
    Origin,
    Path,
    Pattern,
    Rule,
)
from situ.contexts.patterns import read_pattern
from situ.lang.catalogue import (
    BAD_MAPPED_ATTRIBUTE,
    DIRECTION_MISSING,
    MAPPED_TWICE,
    PARAMETER_UNFIT,
    PATTERN_UNKNOWN,
    UNKNOWN_FUNCTION,
    UNKNOWN_MAPPED_TYPE,
)
from situ.lang.documents import MappingNode, Node, ScalarNode, to_data
from situ.lang.expr.checker.check import check_result
from situ.lang.expr.faults import Faults
from situ.lang.expr.scope import NameScope, Variable, event_scope
from situ.lang.expr.syntax import spell
from situ.lang.problems import Location, Problem, Problems, SituError, nearest
from situ.lang.records import replace
from situ.lang.types.json_codec import decode
from situ.lang.types.model import ROOT_PREFIX, Attribute, ListOf, Struct, is_subtype, plain
from situ.lang.types.table import Types

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Mappings. The side of root is looked up in root, the other in the context. Whether every attribute of the target gets
# a value of its type is seen when transformations are made; here only that what is written leads somewhere.

_FORMS = "Write a path of the source, `{expr: EXPRESSION}` or `{default: VALUE}`."


class DefinedMappings(msgspec.Struct, frozen=True, kw_only=True):
    """Mappings, and where what was written cannot be used: (target type, target path)."""

    mappings: tuple[EventMapping, ...]
    lost: frozenset[tuple[str, str]] = frozenset()


def define_mappings(
    texts: tuple[MappingText, ...], context: Context, scope: NameScope, faults: Faults, problems: Problems
) -> DefinedMappings:
    """The mappings a context declares, in both directions; ``both`` is two of them."""
    defining = _MappingReader(context, scope, faults, problems)
    found: list[EventMapping] = []
    firsts: dict[tuple[Direction, str], EventMapping] = {}
    for mapping in (mapping for text in texts for mapping in defining.define(text)):
        counted = replace(mapping, order=len(found))
        key = (counted.direction, counted.source.name)
        if (first := firsts.get(key)) is not None:
            problems.add(
                MAPPED_TWICE(
                    counted.location,
                    source=counted.source.name,
                    direction=counted.direction.value,
                    first=str(first.location or "an earlier place"),
                )
            )
        firsts[key] = counted
        found.append(counted)
    return DefinedMappings(mappings=tuple(found), lost=frozenset(defining.lost))


class _MappingReader:
    def __init__(self, context: Context, scope: NameScope, faults: Faults, problems: Problems) -> None:
        self._context, self._scope = context, scope
        self._faults, self._problems = faults, problems
        self.lost: set[tuple[str, str]] = set()

    def define(self, text: MappingText) -> Iterator[EventMapping]:
        direction = text.direction
        source = self._event(text.source, root_side=direction is Direction.OUT)
        target = self._event(text.target, root_side=direction is Direction.IN)
        if source is None or target is None:
            return
        attributes = self._attributes(text, source, target)
        forth = EventMapping(
            direction=direction,
            source=source,
            target=target,
            attributes=MappingProxyType(attributes),
            context=self._context.id,
            location=text.location,
        )
        yield forth
        if text.both:
            back = {each.path: FromPath(path=path) for path, each in attributes.items() if isinstance(each, FromPath)}
            yield replace(
                forth, direction=Direction.IN, source=target, target=source, attributes=MappingProxyType(back)
            )

    def _event(self, name: PlacedWords, *, root_side: bool) -> Struct | None:
        in_root = root_side or name.text.startswith(ROOT_PREFIX)
        types = self._context.root.types if in_root else self._context.types
        wanted = name.text.removeprefix(ROOT_PREFIX)
        event = types.event(wanted)
        if event is None and wanted not in self._faults.types:
            remedy = "Declare it under `events:`; in `out` the source is root's and the target the context's."
            if types.get(wanted) is not None:
                remedy = "It is a part of events: declare it under `events:` instead of `types:`, or name an event."
            side = ROOT if in_root else f"the context {self._context.id}"
            near = nearest(wanted, types.events)
            self._problems.add(
                UNKNOWN_MAPPED_TYPE(name.location, name=name.text, side=side, nearest=near, remedy=remedy)
            )
        return event

    # ── attributes ────────────────────────────────────────────────────────────────────────────────

    def _attributes(self, text: MappingText, source: Struct, target: Struct) -> dict[Path, Origin]:
        found: dict[Path, Origin] = {}
        for key, node in text.attributes:
            attribute, fault = attribute_at(target, key.text)
            if attribute is None:
                if not self._lost(target, key.text):
                    self._bad(key.location, key.text, f"the target {fault}", "Name a path of the target type.")
                if isinstance(node, ScalarNode) and isinstance(node.value, str):
                    self._path(key, node, source)
                continue
            path = tuple(key.text.split("."))
            if other := next((each for each in found if each[: len(path)] == path or path[: len(each)] == each), None):
                reason = f"`{'.'.join(other)}` is mapped already"
                self._bad(key.location, key.text, reason, "Map a struct as a whole, or attribute by attribute.")
                continue
            origin = self._origin(key, node, source, attribute, self._context.types_of(text.direction))
            if origin is not None and text.both and not isinstance(origin, FromPath):
                remedy = "Write `in` and `out` as two mappings."
                self._bad(node.location, key.text, "only a path goes both ways", remedy)
            elif origin is not None:
                found[path] = origin
            if origin is None:
                self.lost.add((target.name, key.text))
        return found

    def _origin(self, key: ScalarNode, node: Node, source: Struct, target: Attribute, types: Types) -> Origin | None:
        if isinstance(node, ScalarNode) and isinstance(node.value, str):
            return self._path(key, node, source)
        if not isinstance(node, MappingNode) or len(node.entries) != 1:
            self._bad(node.location, key.text, "it has another form", _FORMS)
            return None
        (form, value), *_ = node.entries
        if form.text == "expr" and isinstance(value, ScalarNode) and isinstance(value.value, str):
            return self._expression(key, value, source, target, types)
        if form.text == "expr":
            self._bad(value.location, key.text, "its expression is no text", "Put it in quotes.")
            return None
        if form.text == "default":
            return self._default(key, value, target)
        self._bad(form.location, key.text, f"`{form.text}` is no form", _FORMS)
        return None

    def _path(self, key: ScalarNode, text: ScalarNode, source: Struct) -> FromPath | None:
        attribute, fault = attribute_at(source, text.text)
        if attribute is not None:
            return FromPath(path=tuple(text.text.split(".")))
        if not self._lost(source, text.text):
            self._bad(text.location, key.text, f"the source {fault}", _FORMS)
        return None

    def _expression(
        self, key: ScalarNode, text: ScalarNode, source: Struct, target: Attribute, types: Types
    ) -> Origin | None:
        scope = event_scope(
            source,
            types=types,
            units=self._scope.units,
            functions=self._scope.functions,
            limits=self._scope.limits,
        )
        result = Variable(type=target.type, unit=target.unit, optional=target.optional)
        checked = check_result(text.text, scope, result, text.locate)
        for problem in checked.problems:
            if self._faults.explain(problem, source):
                continue
            if problem.is_error:
                reason = "its expression cannot be used"
                self._bad(problem.location, key.text, reason, problem.hint, cause=problem)
            else:
                self._problems.add(problem)
        return None if checked.node is None else FromExpression(text=spell(text.text), node=checked.node)

    def _default(self, key: ScalarNode, value: Node, target: Attribute) -> Origin | None:
        try:
            return FromDefault(value=decode(target.type, to_data(value), extra="reject"))
        except SituError as error:
            for cause in error.problems:
                reason = f"the value does not fit `{target.type}`"
                self._bad(value.location, key.text, reason, "Write the value as it would stand in an event.", cause)
            return None

    def _bad(self, place: Location | None, entry: str, reason: str, remedy: str, cause: Problem | None = None) -> None:
        shown = remedy or "See what the cause says."
        self._problems.add(BAD_MAPPED_ATTRIBUTE(place, cause=cause, entry=entry or " ", reason=reason, remedy=shown))

    def _lost(self, event: Struct, path: str) -> bool:
        """Whether the path is not there because of a fault that is reported already."""
        names = path.split(".")
        return any(name in self._faults.attributes.get(struct.name, ()) for name in names for struct in _structs(event))


def attribute_at(event: Struct, path: str) -> tuple[Attribute | None, str]:
    """The attribute at a dotted path of structs, or why there is none."""
    here = event
    steps = path.split(".")
    for number, step in enumerate(steps, 1):
        attribute = here.attribute(step)
        if attribute is None:
            near = nearest(step, [each.name for each in here.attributes], 1)
            return None, f"`{here}` has no `{step}`" + (f", but `{near[0]}`" if near else "")
        if number == len(steps):
            return attribute, ""
        below = plain(attribute.type)
        if isinstance(below, ListOf):
            return None, f"has a list at `{step}`, into which no path leads"
        if not isinstance(below, Struct):
            return None, f"has a `{attribute.type}` at `{step}`, which has no attributes"
        here = below
    return None, "has no such path"


def _structs(event: Struct) -> Iterator[Struct]:
    waiting = [event]
    seen: set[int] = set()
    while waiting:
        struct = waiting.pop()
        if id(struct) in seen:
            continue
        seen.add(id(struct))
        yield struct
        waiting.extend(struct.supers)
        waiting.extend(below for each in struct.attributes if isinstance(below := plain(each.type), Struct))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Rules. One that cannot be used is reported, and something else stands in its place for the checks that follow, so that
# what it would have done is not missed there: that is no second fault.

STANDS_IN = -1
"""The order of a rule that somebody else meant: every other one comes later."""

_NOT_KNOWN = ""
"""A function of which nothing is known."""


def define_rules(
    text: ContextText, context: Context, faults: Faults, faulty: Collection[str], problems: Problems
) -> tuple[Rule, ...]:
    """The rules a context declares; ``faulty`` functions are there, but cannot be used, for reasons given."""
    flat = _flat_direction(text, context, problems) if any(each.direction is None for each in text.rules) else None
    rules: list[Rule] = []
    for each in text.rules:
        known = _check_function(each, context, faults, faulty, problems)
        direction = each.direction or flat
        if direction is None:
            rules.extend(_standing_in(each, context, *Direction))
            continue
        pattern = _pattern(each, context, direction, faults, problems)
        if pattern is None:
            rules.extend(_standing_in(each, context, direction))
            continue
        rule = Rule(
            direction=direction,
            pattern=pattern,
            function=each.function.text,
            context=context.id,
            order=sum(other.direction is direction and other.order != STANDS_IN for other in rules),
            kept=each.kept,
            location=each.location,
        )
        fits = not known or _check_parameter(rule, each, context, problems)
        rules.append(rule if fits else replace(rule, function=_NOT_KNOWN))
    return tuple(rules)


def _pattern(
    each: RuleText, context: Context, direction: Direction, faults: Faults, problems: Problems
) -> Pattern | None:
    found = Problems()
    types, root = context.types_of(direction), context.root.types
    pattern = read_pattern(each.pattern.text, types, found, each.pattern.locate, root=root)
    problems.extend(problem for problem in found if not _follows(problem, faults))
    return pattern


def _standing_in(each: RuleText, context: Context, *directions: Direction) -> Iterator[Rule]:
    """Whatever its pattern means, it leads to what the function converts."""
    conversion = context.conversion(each.function.text)
    if conversion is not None:
        for direction in directions:
            yield Rule(
                direction=direction,
                pattern=Pattern(head=conversion.parameter.type),
                function=conversion.name,
                context=context.id,
                order=STANDS_IN,
                location=each.location,
            )


def _flat_direction(text: ContextText, context: Context, problems: Problems) -> Direction | None:
    """A flat list means the one direction of the mappings, inherited ones if there are no others."""
    written = {direction for each in text.maps for direction in (Direction if each.both else (each.direction,))}
    inherited = {mapping.direction for each in context.chain for mapping in each.mappings}
    directions = written or inherited
    if len(directions) == 1:
        return next(iter(directions))
    reason = "its mappings go both ways" if directions else "it has no mappings"
    place = next(each.location for each in text.rules if each.direction is None)
    problems.add(DIRECTION_MISSING(place, context=context.id, reason=reason))
    return None


def _check_function(
    each: RuleText, context: Context, faults: Faults, faulty: Collection[str], problems: Problems
) -> bool:
    name = each.function.text
    if name in (IDENTITY, KEEP) or name in faulty or name.lower() in faults.functions:
        return False
    if context.conversion(name) is not None:
        return True
    known = {name for above in context.chain for name in above.functions}
    near = nearest(name, (*known, IDENTITY))
    problems.add(UNKNOWN_FUNCTION(each.function.location, name=name, context=context.id, nearest=near))
    return False


def _check_parameter(rule: Rule, each: RuleText, context: Context, problems: Problems) -> bool:
    conversion = context.conversion(rule.function)
    if conversion is None or is_subtype(rule.pattern.target, conversion.parameter.type):
        return True
    parameter, type = (context.type_text(each) for each in (conversion.parameter.type, rule.pattern.target))
    place = each.function.location
    problems.add(PARAMETER_UNFIT(place, function=rule.function, parameter=parameter, type=type))
    return False


def _follows(problem: Problem, faults: Faults) -> bool:
    if problem.code is not PATTERN_UNKNOWN:
        return faults.explain(problem)
    name = problem.values["name"]
    return name in faults.types or any(name in lost for lost in faults.attributes.values())
