"""Functions at the places they convert: their expressions, with the value and what they read of tables put in.

What no expression gives, the row of a table or what Python makes of a value, enters as a variable that the host binds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from situ.expr.linear import nothing_there
from situ.expr.scope import Scope
from situ.expr.substitute import substitute
from situ.expr.tree import Apply, Case, Coerce, IsNull, Literal, Node, Read, children, walk
from situ.interpretation.bodies import DATA, VALUE, body_for, key_for, keys_for, missing_in
from situ.interpretation.fitting import Fitting, attribute_read, constant, made_struct, present, unless_null
from situ.interpretation.model import Conversion, Lookup, Missing, State
from situ.types.model import ListOf, Struct, Type, plain
from situ.types.table import Types
from situ.units import NO_UNIT


@dataclass(frozen=True, slots=True, kw_only=True)
class External:
    """A value that the host binds as ``variable`` before it evaluates, for no expression gives it.

    It is the row of a table (``of`` a lookup), what is remembered (``of`` a state), or what a function of Python
    makes of ``argument`` (``of`` nothing). ``keys`` say which row, in the event's own terms: columns of a table, or the
    one key of what is remembered. ``in_list``: these read elements of a list, so there is a value for each.
    """

    variable: str
    path: str
    function: Conversion
    of: Lookup | State | None
    argument: Node
    keys: tuple[tuple[str, Node], ...] = ()
    in_list: bool = False


class Calls:
    """Puts functions in, for events of one source type."""

    def __init__(self, event: Struct, sources: Types, targets: Types) -> None:
        self._event, self._targets = event, targets
        self._fitting = Fitting(types=sources, targets=sources)  # arguments stay on the side they come from
        self._scope = Scope(types=sources, with_units=False)
        self._lacking: dict[str, tuple[str, ...]] = {}
        self._bodies: dict[str, Node] = {}
        self.externals: dict[str, External] = {}

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
        asked: tuple[Lookup | State, ...] = (*function.lookups, *function.states)
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
        self, function: Conversion, of: Lookup | State | None, value: Read, argument: Node, path: str
    ) -> Read:
        name = function.name if of is None else f"{function.name}.{of.name}"
        variable = f"{name} of {'.'.join((value.variable, *value.path))}"
        type = function.result.type if of is None else of.row
        self.externals[variable] = External(
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

    def _keys(self, function: Conversion, of: Lookup | State | None) -> tuple[tuple[str, Node], ...]:
        if isinstance(of, Lookup):
            return keys_for(function, of, self._event)
        return () if of is None else (("key", key_for(function, self._event)),)

    def _without_row(self, function: Conversion) -> Node:
        type = function.result.type
        if function.missing is Missing.DEFAULT:
            return constant(function.default, type)
        return Literal(None, type) if function.missing is Missing.NULL else nothing_there(type, self._targets)


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
