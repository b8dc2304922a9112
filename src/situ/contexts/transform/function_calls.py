"""Functions of contexts at the places they convert: expressions put in, and what only an engine can provide.

`FunctionInliner` puts the expression of a function in; a row of a table, a remembered row or a result of Python becomes
a variable (`ExternalValue`). `with_rows` replaces such variables by calls of functions that the engine passes in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from situ.contexts.function_bodies import DATA, EVENT, VALUE, body_for, key_for, keys_for, missing_in
from situ.contexts.model import Conversion, MissingValue, ReferenceState, TableLookup
from situ.contexts.transform.coerce import Coercer, attribute_read, constant, made_struct, present, unless_null
from situ.lang.expr.checker.coerce import nothing_there
from situ.lang.expr.overload import Overload
from situ.lang.expr.scope import NameScope, substitute
from situ.lang.expr.tree import (
    Apply,
    Case,
    Coerce,
    Field,
    IsNull,
    Literal,
    MakeStruct,
    Node,
    Read,
    children,
    rebuild,
    walk,
)
from situ.lang.records import replace
from situ.lang.types.model import TIMESTAMP, Attribute, ListOf, Struct, Type, plain
from situ.lang.types.scalars import read_timestamp
from situ.lang.types.table import Types
from situ.lang.units import NO_UNIT


class ExternalValue(msgspec.Struct, frozen=True, kw_only=True):
    """A value that the host binds as ``variable`` before it evaluates, for no expression gives it.

    It is the row of a table (``of`` a lookup), what is remembered (``of`` a state), or what a function of Python
    makes of ``argument`` (``of`` nothing). ``keys`` say which row, in the event's own terms: columns of a table, or the
    one key of what is remembered. ``in_list``: these read elements of a list, so there is a value for each.
    """

    variable: str
    path: str
    function: Conversion
    of: TableLookup | ReferenceState | None
    argument: Node
    keys: tuple[tuple[str, Node], ...] = ()
    in_list: bool = False


class FunctionInliner:
    """Puts functions in, for events of one source type."""

    def __init__(self, event: Struct, sources: Types, targets: Types) -> None:
        self._event, self._targets = event, targets
        self._fitting = Coercer(types=sources, targets=sources)  # arguments stay on the side they come from
        self._scope = NameScope(types=sources, with_units=False)
        self._lacking: dict[str, tuple[str, ...]] = {}
        self._bodies: dict[str, Node] = {}
        self.externals: dict[str, ExternalValue] = {}

    def is_strict(self, function: Conversion) -> bool:
        """Whether null comes out where null goes in, without a thought: then nobody has to ask first."""
        single = not isinstance(plain(function.parameter.type), Struct | ListOf)
        return single and function.expression is not None and _strict(self._body(function))

    def missing(self, function: Conversion) -> tuple[str, ...]:
        """What it reads of the event and the event does not have; found by reading its text, so but once."""
        if function.body is not None and not function.lookups and function.key is None:
            return ()  # it means the same everywhere
        if function.name not in self._lacking:
            self._lacking[function.name] = missing_in(function, self._event)
        return self._lacking[function.name]

    def _body(self, function: Conversion) -> Node:
        if function.name not in self._bodies:
            self._bodies[function.name] = body_for(function, self._event)
        return self._bodies[function.name]

    def call(self, function: Conversion, value: Read, declared: Type, type: Type, path: str) -> Node:
        """The function's expression on a value of the type, which stands where ``declared`` is, for a target path."""
        body = None if function.expression is None and function.body is None else self._body(function)
        argument = self._argument(function, body, replace(value, type=type), declared)
        if body is None:
            return self._external(function, None, value, argument, path)
        asked: tuple[TableLookup | ReferenceState, ...] = (*function.lookups, *function.states)
        rows = [(each.name, self._external(function, each, value, argument, path)) for each in asked]
        node = substitute(body, {VALUE: argument, **{name: present(row) for name, row in rows}}, self._scope)
        for _, row in reversed(rows):
            node = Case(((IsNull(row), self._without_row(function)),), node, node.type)
        return node

    def _argument(self, function: Conversion, body: Node | None, node: Read, declared: Type) -> Node:
        """The value as the function takes it: numbers widened, and with its ``$type`` where it is passed on whole."""
        type, parameter = node.type, function.parameter.type
        reads = [part for part in walk(body) if isinstance(part, Read) and part.variable == VALUE] if body else []
        if not isinstance(plain(type), Struct | ListOf):
            return self._fitting.fit(node, type, parameter)
        if body is not None and all(read.path for read in reads):
            return node
        if isinstance(type, Struct):
            says, should_say = (type != each for each in (declared, parameter))
            fields = tuple((each.name, attribute_read(node, each)) for each in type.attributes)
            return node if says == should_say else unless_null(node, made_struct(type, fields, parameter), parameter)
        return self._fitting.fit(node, type, parameter)

    def _external(
        self, function: Conversion, of: TableLookup | ReferenceState | None, value: Read, argument: Node, path: str
    ) -> Read:
        name = function.name if of is None else f"{function.name}.{of.name}"
        variable = f"{name} of {'.'.join((value.variable, *value.path))}"
        type = function.result.type if of is None else of.row
        self.externals[variable] = ExternalValue(
            variable=variable,
            path=path,
            function=function,
            of=of,
            argument=argument,
            keys=tuple(
                (name, substitute(key, {VALUE: argument}, self._scope)) for name, key in self._keys(function, of)
            ),
            in_list=value.variable != DATA,
        )
        return Read(variable, (), type, NO_UNIT, (of is not None or function.result.optional,))

    def _keys(self, function: Conversion, of: TableLookup | ReferenceState | None) -> tuple[tuple[str, Node], ...]:
        if isinstance(of, TableLookup):
            return keys_for(function, of, self._event)
        return () if of is None else (("key", key_for(function, self._event)),)

    def _without_row(self, function: Conversion) -> Node:
        type = function.result.type
        if function.missing is MissingValue.DEFAULT:
            return constant(function.default, type)
        return Literal(None, type) if function.missing is MissingValue.NULL else nothing_there(type, self._targets)


def _strict(body: Node) -> bool:
    read = False
    for part in walk(body):
        if isinstance(part, Read):
            if part.variable != VALUE or part.path:
                return False
            read = True
        elif not isinstance(part, Apply | Coerce | Literal):
            return False
    return read and all(_reads_value(part) for part in walk(body) if children(part))


def _reads_value(node: Node) -> bool:
    return any(isinstance(part, Read) for part in walk(node))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Calls in place of variables. An engine that joins tables binds the variable; one that holds them in memory puts a call
# in its place, with the keys or the value as they are known there, inside of lists as well.

FindRow = Callable[..., Any]
"""The row for the values of the keys, in their order; one more value where there are several as time goes by: the
instant that is meant. Or what a function of Python gives for a value; one that is called for nulls gets it as the
attribute ``value`` of a struct, which is never null."""

NOW = "received"
"""The attribute of the envelope that says when the event came in: what ``time: now`` means."""


def with_rows(node: Node, externals: Mapping[str, ExternalValue], find: Mapping[str, FindRow]) -> Node:
    """The expression with a call of ``find`` in the place of each of these variables."""
    calls: dict[str, Apply] = {}

    def change(part: Node) -> Node:
        if not isinstance(part, Read) or part.variable not in find:
            return rebuild(part, change)
        if part.variable not in calls:
            external = externals[part.variable]
            keys = tuple((column, change(key)) for column, key in external.keys)  # which may be read from another row
            argument = change(external.argument) if external.of is None else external.argument
            calls[part.variable] = _call(replace(external, keys=keys, argument=argument), find[part.variable])
        found: Node = calls[part.variable]
        for step in part.path:
            struct = plain(found.type)
            attribute = struct.attribute(step) if isinstance(struct, Struct) else None
            assert attribute is not None  # the checked expression reads it
            found = Field(found, step, attribute.type, optional=attribute.nullable)
        return found

    return change(node) if find else node


def _call(external: ExternalValue, find: FindRow) -> Apply:
    of, function = external.of, external.function
    keys = [key for _, key in external.keys] if of is not None else [_argument(external)]
    if isinstance(of, TableLookup) and of.as_of:
        keys.append(time_of(function))
    elif isinstance(of, ReferenceState):
        keys.append(_time("event"))

    def python(texts: Sequence[str], constants: Sequence[Any], bind: Callable[[Any], str]) -> str:
        return f"{bind(find)}({', '.join(texts)})"

    overload = Overload(
        name=of.name if of is not None else function.name,
        parameters=tuple("element" for _ in keys),
        result="element",
        spark="NULL",  # joins bind the variable instead
        python=python,
        fails=of is None,
        may_be_null=of is not None or function.result.optional,
        lookup=isinstance(of, TableLookup),
    )
    return Apply(overload, tuple(keys), of.row if of is not None else function.result.type)


def _argument(external: ExternalValue) -> Node:
    value = external.argument
    if not external.function.nulls:
        return value
    return MakeStruct((("value", value),), Struct("", (Attribute(name="value", type=value.type, optional=True),)))


def time_of(function: Conversion) -> Node:
    """The instant for which a function looks for rows."""
    return _time(function.time)


def _time(means: str) -> Node:
    if means in ("", "event", "now"):
        return Read(EVENT, (NOW if means == "now" else "time",), TIMESTAMP, optional=(False, False))
    return Literal(read_timestamp(means), TIMESTAMP)
