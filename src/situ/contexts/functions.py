"""Functions of one context: names looked up, expressions checked, in the form that transformations use.

The `check_…` functions ask for what a function needs besides an expression that works: time, inverse, the signature it
overrides, Python code, unambiguous units. `define_functions` makes a `Conversion` of each function of a context.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec

from situ.contexts.declarations import ContextText, ConversionText, LookupText, StateText, read_conversion
from situ.contexts.function_bodies import (
    ANY_EVENT,
    EVENT,
    as_invalid,
    check_body,
    check_key,
    check_keys,
    check_over,
    missing_in,
    reads,
)
from situ.contexts.model import IDENTITY, Context, Conversion, Expression, MissingValue, ReferenceState, TableLookup
from situ.contexts.python_files import fault_in
from situ.lang.catalogue import (
    BAD_DEFAULT,
    BAD_PYTHON,
    DECLARED_TWICE,
    FUNCTION_INVALID,
    OTHER_SIGNATURE,
    TIME_IS_NOW,
    TIME_MISSING,
    UNITS_TWICE,
    UNKNOWN_FUNCTION,
    UNKNOWN_MAPPED_TYPE,
    UNKNOWN_NAME,
    UNKNOWN_PYTHON,
    UNKNOWN_SOURCE,
    WRONG_TYPE,
)
from situ.lang.documents import ScalarNode, to_data
from situ.lang.expr.faults import Faults
from situ.lang.expr.scope import NameScope, Variable
from situ.lang.expr.tree import Node, Read
from situ.lang.problems import Problem, Problems, SituError, nearest
from situ.lang.records import replace
from situ.lang.types.json_codec import decode
from situ.lang.types.lookup import Lookup as Names
from situ.lang.types.model import TIMESTAMP, Attribute, AttributeText, Struct, plain
from situ.lang.types.table import Types, seen_below, spell_type
from situ.lang.units import NO_UNIT
from situ.sources.model import may_be_as_of


def check_time(conversion: Conversion, text: ConversionText, problems: Problems) -> None:
    """A rate between currencies is one of some time."""
    source, target = conversion.parameter.unit, conversion.result.unit
    between = "currency" in source.labels and "currency" in target.labels and source != target
    if between and not conversion.time:
        problems.add(TIME_MISSING(text.location, name=text.name, source=str(source), target=str(target)))
    if conversion.time == "now":
        problems.add(TIME_IS_NOW(text.time_location, name=text.name))


def check_overrides(found: Mapping[str, Conversion], context: Context, problems: Problems) -> None:
    """Names are bound late, so rules above use the function that overrides: it must take and give the same."""
    for each in found.values():
        above = context.parent.conversion(each.name) if context.parent is not None else None
        if above is None or (above.parameter, above.result) == (each.parameter, each.result):
            continue
        problems.add(
            OTHER_SIGNATURE(
                each.location,
                name=each.name,
                found=print_conversion(each, context.types),
                expected=print_conversion(above, context.types),
                context=above.context,
            )
        )


def check_inverses(
    found: Mapping[str, Conversion], faulty: Collection[str], context: Context, problems: Problems
) -> None:
    known = {name: each for above in reversed(tuple(context.chain)) for name, each in above.functions.items()}
    known |= found
    for each in found.values():
        name = each.inverse
        if not name or name in faulty or name == IDENTITY:
            continue
        other = known.get(name)
        if other is None:
            near = nearest(name, known)
            problems.add(UNKNOWN_FUNCTION(each.location, name=name, context=context.id, nearest=near))
        elif (other.parameter.type, other.result.type) != (each.result.type, each.parameter.type):
            cause = WRONG_TYPE(
                each.location,
                what=f"The inverse `{name}`",
                found=print_conversion(other, context.types),
                expected=f"{each.result.type} -> {each.parameter.type}",
                remedy="An inverse leads back: name a function from the result to the parameter.",
            )
            problems.add(FUNCTION_INVALID(each.location, cause=cause, name=each.name))


def check_python(conversion: Conversion, problems: Problems) -> None:
    """Whether the code that a function names is there."""
    if not conversion.python:
        return
    if conversion.lookups or conversion.states or conversion.key is not None:
        reason = "a function of Python is given values alone, it looks nothing up and remembers nothing"
        remedy = "Do that in an expression, or leave `lookup`, `state` and `key` out."
        problems.add(BAD_PYTHON(conversion.location, name=conversion.name, reason=reason, remedy=remedy))
    file, _, function = conversion.python.rpartition(".")
    reason = fault_in(conversion.code, function) if conversion.code else f"there is no `functions/{file or '…'}.py`"
    if reason:
        problems.add(
            UNKNOWN_PYTHON(
                conversion.location, name=conversion.name, python=conversion.python, reason=reason, file=file or "…"
            )
        )


def check_units(found: Mapping[str, Conversion], problems: Problems) -> None:
    """Where units decide which function converts, two of one context compete."""
    firsts: dict[object, Conversion] = {}
    for each in found.values():
        source, target = each.parameter.unit, each.result.unit
        if NO_UNIT in (source, target) or source == target:
            continue
        pair = (each.parameter.type, source, target)
        if (other := firsts.get(pair)) is not None:
            problems.add(
                UNITS_TWICE(
                    each.location,
                    name=each.name,
                    other=other.name,
                    type=str(each.parameter.type),
                    source=str(source),
                    target=str(target),
                )
            )
        firsts[pair] = each


def print_conversion(conversion: Conversion, types: Types) -> str:
    """The signature of a function, as it is written where these types are visible."""
    return f"{_typed(conversion.parameter, types)} -> {_typed(conversion.result, types)}"


def _typed(variable: Variable, types: Types) -> str:
    words = ["optional"] if variable.optional else []
    words.append(spell_type(variable.type, types))
    if variable.unit != NO_UNIT:
        words.append(str(variable.unit))
    return " ".join(words)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Definition. Types and units are those visible in the context. The expression is checked for good where it reads
# nothing of the source event; otherwise it must work for at least one event type, and whether it does where a rule
# applies it is seen there (:mod:`situ.contexts.function_bodies`).

_MOST_TRIED = 50
"""Event types for which an expression is tried that reads attributes of events: one that fits is enough."""

Sources = Mapping[str, Struct]
"""The pull sources by name, each with what its rows are."""


class DefinedFunctions(msgspec.Struct, frozen=True, kw_only=True):
    """The functions whose signature is known; ``faulty`` are those that cannot be used, for reasons given."""

    functions: Mapping[str, Conversion]
    faulty: frozenset[str] = frozenset()


def define_functions(
    text: ContextText,
    context: Context,
    scope: NameScope,
    sources: Sources,
    faults: Faults,
    problems: Problems,
) -> DefinedFunctions:
    """The functions a context declares. ``context`` has its types already, ``scope`` what expressions can call."""
    defining = _FunctionReader(context, scope, sources, faults, problems)
    found: dict[str, Conversion] = {}
    faulty: set[str] = set()
    for key, written in _each_once(text, problems):
        if written is None:
            faulty.add(key.text)
            continue
        conversion = defining.define(written)
        if conversion is None:
            faulty.add(key.text)
        else:
            found[conversion.name] = conversion
    defining.report_names()
    check_overrides(found, context, problems)
    check_inverses(found, faulty, context, problems)
    check_units(found, problems)
    return DefinedFunctions(functions=found, faulty=frozenset(faulty))


def _each_once(text: ContextText, problems: Problems) -> Iterator[tuple[ScalarNode, ConversionText | None]]:
    firsts: dict[str, ScalarNode] = {}
    for key, node in text.functions:
        first = firsts.setdefault(key.text.lower(), key)
        if first is key:
            yield key, read_conversion(key, node, text.read)
        else:
            where = str(first.location)
            problems.add(DECLARED_TWICE(key.location, what="The function", name=key.text, first=where))


class _FunctionReader:
    def __init__(
        self, context: Context, scope: NameScope, sources: Sources, faults: Faults, problems: Problems
    ) -> None:
        self._context, self._scope, self._sources = context, scope, sources
        self._faults, self._problems = faults, problems
        self._root = context.root.types
        self._looked_up = Problems()
        visible = seen_below(context.types, self._root, ())
        self._names = Names(visible, context.types.units, self._looked_up)

    def report(self, problem: Problem, *used: Struct) -> None:
        if not self._faults.explain(problem, *used):
            self._problems.add(problem)

    def report_names(self) -> None:
        """What leads nowhere in signatures."""
        for problem in self._looked_up:
            self.report(problem)

    def define(self, text: ConversionText) -> Conversion | None:
        parameter = self._variable(text.signature.parameters[0].text)
        result = self._variable(text.signature.result)
        lookups = [self._lookup(text, each) for each in text.lookups]
        states = [self._state(text, each) for each in text.states]
        if parameter is None or result is None:
            return None
        conversion = Conversion(
            name=text.name,
            parameter=parameter,
            result=result,
            expression=text.expression,
            time=text.time,
            lookups=tuple(each for each in lookups if each is not None),
            key=text.key,
            states=tuple(each for each in states if each is not None),
            missing=text.missing,
            default=self._default(text, result),
            hold=text.hold,
            lossy=text.lossy,
            inverse=text.inverse.text if text.inverse is not None else "",
            nulls=text.nulls,
            python=text.python,
            code=text.code,
            context=self._context.id,
            scope=self._scope,
            location=text.location,
        )
        check_time(conversion, text, self._problems)
        check_python(conversion, self._problems)
        lost = {each.name.text for each, found in zip(text.lookups, lookups, strict=True) if found is None}
        lost |= {each.name.text for each, found in zip(text.states, states, strict=True) if found is None} | text.lost
        return self._check(conversion, lost=lost)

    # ── parts ─────────────────────────────────────────────────────────────────────────────────────

    def _variable(self, text: AttributeText) -> Variable | None:
        typed = self._names.typed(text)
        return None if typed is None else Variable(type=typed[0], unit=typed[1], optional=text.optional)

    def _default(self, text: ConversionText, result: Variable) -> object:
        if text.missing is not MissingValue.DEFAULT or text.default is None:
            return None
        try:
            return decode(result.type, to_data(text.default), extra="reject")
        except SituError as error:
            for cause in error.problems:
                place, type = text.default.location, str(result.type)
                self._problems.add(BAD_DEFAULT(place, cause=cause, attribute=text.name, type=type))
            return None

    def _lookup(self, text: ConversionText, each: LookupText) -> TableLookup | None:
        row = self._sources.get(each.source.text)
        if row is None:
            self._unknown(text, each, each.source, f"source `{each.source.text}`", tuple(self._sources))
            return None
        columns = {attribute.name: attribute.type for attribute in row.attributes}
        wanted = [column for column, _ in each.keys]
        if each.as_of is not None and not may_be_as_of(columns.get(each.as_of.text, TIMESTAMP)):
            instants = tuple(name for name, type in columns.items() if may_be_as_of(type))
            self._unknown(text, each, each.as_of, f"column `{each.as_of.text}` of instants or dates", instants)
        elif each.as_of is not None:
            wanted.append(each.as_of)
        for column in wanted:
            if column.text not in columns:
                self._unknown(text, each, column, f"column `{column.text}`", tuple(columns))
        return TableLookup(
            name=each.name.text,
            source=each.source.text,
            keys=tuple((column.text, key) for column, key in each.keys),
            as_of=each.as_of.text if each.as_of is not None else "",
            row=row,
        )

    def _unknown(
        self, text: ConversionText, each: LookupText, at: ScalarNode, what: str, known: tuple[str, ...]
    ) -> None:
        remedy = f"There are {', '.join(f'`{name}`' for name in known[:8])}." if known else "Declare it in sources/."
        self._problems.add(
            UNKNOWN_SOURCE(
                at.location,
                name=text.name,
                source=each.source.text,
                what=what,
                nearest=nearest(at.text, known),
                remedy=remedy,
            )
        )

    def _state(self, text: ConversionText, each: StateText) -> ReferenceState | None:
        event = self._root.event(each.event.text)
        if event is None:
            if each.event.text not in self._faults.types:
                near, remedy = nearest(each.event.text, self._root.events), "Declare it under `events:` in types/."
                self._problems.add(
                    UNKNOWN_MAPPED_TYPE(
                        each.event.location, name=each.event.text, side="root", nearest=near, remedy=remedy
                    )
                )
            return None
        kept = {name.text: self._over(text, expression, event) for name, expression in each.keep}
        keyed = each.key is not None and self._over(text, each.key, event) is not None
        row = Struct("", tuple(replace(each, name=name) for name, each in kept.items() if each is not None))
        if not keyed or each.key is None or each.ttl is None or each.max_keys is None or None in kept.values():
            return None
        return ReferenceState(
            name=each.name.text,
            event=event,
            key=each.key,
            keep=tuple((name.text, expression) for name, expression in each.keep),
            ttl=each.ttl,
            max_keys=each.max_keys,
            history=each.history,
            row=row,
        )

    def _over(self, text: ConversionText, expression: Expression, event: Struct) -> Attribute | None:
        checked = check_over(expression, event, replace(self._scope, types=self._root))
        for problem in as_invalid(text.name, checked.problems):
            self.report(problem, event)
        node = checked.node
        return None if node is None else Attribute(name="kept", type=node.type, optional=node.nullable)

    # ── the expressions ───────────────────────────────────────────────────────────────────────────

    def _check(self, conversion: Conversion, *, lost: Collection[str]) -> Conversion:
        """The function with its body, if that is the same for all events. ``lost`` rows were reported as faulty."""
        read = reads(conversion)
        chosen: tuple[Problem, ...] | None = None
        body: Node | None = None
        for event in self._candidates(conversion) if read else (ANY_EVENT,):
            node, problems = _check_for(conversion, event)
            if chosen is None or not any(problem.is_error for problem in problems):
                chosen, body = problems, node
            if not any(problem.is_error for problem in chosen):
                break
        types = (plain(conversion.parameter.type), plain(conversion.result.type), *self._events(read))
        used = [each for each in types if isinstance(each, Struct)]
        for problem in chosen or ():
            if not (problem.code is UNKNOWN_NAME and problem.values["name"] in lost):
                self.report(next(as_invalid(conversion.name, (problem,))), *used)
        if lost or any(problem.is_error for problem in chosen or ()):
            # It cannot be used, and that is said. For the checks that follow, something gives what it promises.
            promised = Read(EVENT, ("id",), conversion.result.type, optional=(False, conversion.result.optional))
            return replace(conversion, expression=None, body=promised, lookups=(), states=(), key=None)
        return replace(conversion, body=None if read else body)

    def _events(self, read: tuple[str, ...]) -> Iterator[Struct]:
        """Where a faulty attribute that is read may have been declared."""
        if read:
            for types in (self._root, self._context.types):
                yield from (event for name in sorted(types.events) if (event := types.event(name)) is not None)

    def _candidates(self, conversion: Conversion) -> Iterable[Struct]:
        """Event types with all the attributes that it reads; if there is none, an event that has nothing."""
        known = {event: None for event in self._events(("any",)) if not missing_in(conversion, event)}
        return tuple(known)[:_MOST_TRIED] or (ANY_EVENT,)


def _check_for(conversion: Conversion, event: Struct) -> tuple[Node | None, tuple[Problem, ...]]:
    """All expressions for events of one type: the tree of the body, and everything that is to say."""
    problems: list[Problem] = []
    for lookup in conversion.lookups:
        problems.extend(problem for _, each in check_keys(conversion, lookup, event) for problem in each.problems)
    if conversion.key is not None:
        problems.extend(check_key(conversion, event).problems)
    if conversion.expression is None:
        return None, tuple(problems)
    checked = check_body(conversion, event)
    return checked.node, (*problems, *checked.problems)
