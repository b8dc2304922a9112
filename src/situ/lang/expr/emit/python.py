"""Typed tree → Python source: one function per expression, as fast as one written by hand.

Null checks, range checks and logic for parts that fail are written only where the tree says they are needed. An
expression has two readings: its *value* (None for null), and its *test*, which is true iff the value is true, so that a
filter never builds the difference between false and null.

The generated text is made of this module's own words, the templates of the function table, and quoted constants; user
text gets in only through ``repr`` of a string.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from situ.lang.catalogue import TOO_LARGE
from situ.lang.expr.overload import Overflow
from situ.lang.expr.runtime import NAMESPACE
from situ.lang.expr.tree import (
    And,
    Apply,
    Case,
    Coalesce,
    Coerce,
    Compare,
    Each,
    Field,
    ForEach,
    In,
    IsNull,
    Literal,
    MakeStruct,
    Node,
    Not,
    Or,
    Read,
    fails_as_argument,
)
from situ.lang.problems import SituError
from situ.lang.types.model import DOUBLE, Decimal, plain

_OPERATORS = {"=": "==", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_MIRRORED = {">": "<", ">=": "<="}
# Python's own parser refuses brackets nested deeper than 200; a level of ours takes up to four. It also recurses over
# every ``else`` of a conditional expression, and the compiler over every operand of a sum.
_LEVELS_A_FUNCTION = 24
_CHOICES_A_FUNCTION = 50
_LONGEST_SUM = 50
LONGEST_SOURCE = 1 << 20
_NOT_FINITE = "_fail('not a finite number')"


class PythonFunction(msgspec.Struct, frozen=True):
    """Generated source, and the function compiled from it."""

    source: str
    call: Callable[..., Any]


def compile_value(node: Node, parameters: Sequence[str]) -> PythonFunction:
    """A function of the variables named in ``parameters`` that returns the expression's value."""
    emitter = Emitter(parameters)
    return emitter.function(emitter.finite(node))


def compile_test(node: Node, parameters: Sequence[str]) -> PythonFunction:
    """A function that is true iff the condition is true: the form of filters."""
    emitter = Emitter(parameters)
    return emitter.function(emitter.test(node))


class Emitter:
    """Writes expressions over some parameters. Hosts that keep values in another form bring their own."""

    def __init__(self, parameters: Sequence[str]) -> None:
        self.parameters = [_identifier(name, place) for place, name in enumerate(parameters)]
        self.names = dict(zip(parameters, self.parameters, strict=True))
        self.constants: dict[str, Any] = {}
        self.outlined: list[str] = []
        self.temporaries = 0
        self.lambdas: list[str] = []
        self.depth = 0

    def function(self, text: str) -> PythonFunction:
        return self.block(f"    return {text}\n")

    def block(self, lines: str) -> PythonFunction:
        """A function of the parameters with these lines as its body."""
        source = "".join(self.outlined) + f"def expression({', '.join(self.parameters)}):\n{lines}"
        if len(source) > LONGEST_SOURCE:
            raise SituError(TOO_LARGE(what="characters of Python", limit=LONGEST_SOURCE))
        space: dict[str, Any] = {**NAMESPACE, **self.constants}
        exec(compile(source, "<situ expression>", "exec"), space)
        return PythonFunction(source, space["expression"])

    # ── values ──

    def value(self, node: Node) -> str:
        """Text whose value is the node's, None for null; doubles may be beyond finite as ``overflow`` says."""
        self.depth += 1
        try:
            if self.depth % _LEVELS_A_FUNCTION == 0:
                return self._outline(node)
            return self._value(node)
        finally:
            self.depth -= 1

    def _outline(self, node: Node) -> str:
        """A function of its own for a part nested too deeply; it sees all variables that are in sight here."""
        return self._part(self._value(node))

    def _part(self, text: str) -> str:
        sight = ", ".join([*self.parameters, *self.lambdas])
        name = f"part{len(self.outlined) + 1}"
        self.outlined.append(f"def {name}({sight}):\n    return {text}\n\n")
        return f"{name}({sight})"

    def _value(self, node: Node) -> str:
        match node:
            case Literal(value=value):
                return self._literal(value)
            case Read():
                return self._read(node)
            case Apply():
                return self._apply(node)
            case Coerce():
                return self._strict((node.arg,), (self.value(node.arg),), lambda args: _coerced(node, args[0]))
            case Compare():
                return self._strict(
                    (node.left, node.right), self._sides(node), lambda args: f"({_compared(node, args)})"
                )
            case In():
                return self._strict((node.item,), (self._known(node.item),), lambda args: self._member(node, args[0]))
            case And() | Or():
                return self._logic(node)
            case Not(arg=arg):
                if not arg.nullable:
                    return f"(not {self.value(arg)})"
                return self._strict((arg,), (self.value(arg),), lambda args: f"(not {args[0]})")
            case IsNull(arg=Literal(value=value)):
                return repr(value is None)
            case IsNull(arg=arg):
                return f"({self.finite(arg)} is None)"
            case Case(arms=arms, otherwise=otherwise):
                choices = [f"{self.finite(result)} if {self.test(condition)} else " for condition, result in arms]
                return self._choice(choices, self.finite(otherwise))
            case Coalesce(args=args):
                return self._coalesce(args)
            case MakeStruct():
                return self._struct(node)
            case Field():
                return self._strict(
                    (node.of,), (self.value(node.of),), lambda args: _attribute(args[0], node.name, node.optional)
                )
            case ForEach():
                return self._each(node)

    def _struct(self, node: MakeStruct) -> str:
        parts = []
        for name, part in node.fields:
            if not node.sparse or not part.nullable:
                parts.append(f"{name!r}: {self.finite(part)}")
            elif not isinstance(part, Literal):
                held = self._temporary()
                parts.append(f"**({{{name!r}: {held}}} if ({held} := {self.finite(part)}) is not None else {{}})")
        return "{" + ", ".join(parts) + "}"

    def finite(self, node: Node) -> str:
        """The value, checked to be finite if it could be anything else."""
        return self._within(node, Overflow.NONE)

    def _known(self, node: Node) -> str:
        """The value, checked not to be NaN."""
        return self._within(node, Overflow.INFINITE)

    def _within(self, node: Node, tolerated: Overflow) -> str:
        text = self.value(node)
        if not fails_as_argument(node, tolerated):
            return text
        if tolerated is not Overflow.NONE and not node.nullable:
            return f"_number({text})"
        held = self._temporary()
        if tolerated is not Overflow.NONE:
            return f"(None if ({held} := {text}) is None else _number({held}))"
        # Written out: a call would cost more than what is computed. Only what is finite leaves nothing of itself.
        if not node.nullable:
            return f"({held} if ({held} := {text}) - {held} == 0.0 else {_NOT_FINITE})"
        return f"(None if ({held} := {text}) is None else {held} if {held} - {held} == 0.0 else {_NOT_FINITE})"

    def _literal(self, value: Any) -> str:
        if value is None or isinstance(value, bool | int | str):
            return repr(value) if not isinstance(value, int) or value >= 0 else f"({value!r})"
        if isinstance(value, float):
            return f"({value!r})" if value < 0 else repr(value)
        return self._bind(value)

    def _bind(self, value: Any) -> str:
        name = f"_c{len(self.constants)}"
        self.constants[name] = value
        return name

    def _temporary(self) -> str:
        self.temporaries += 1
        return f"t{self.temporaries}"

    def _read(self, node: Read) -> str:
        text = self.names[node.variable]
        absent = node.optional[0]
        for place, optional in zip(range(len(node.path)), node.optional[1:], strict=True):
            if absent:
                held = self._temporary()
                text = f"(None if ({held} := {text}) is None else {self.attribute(held, node, place)})"
            else:
                text = self.attribute(text, node, place)
            absent = absent or optional
        return text

    def attribute(self, of: str, node: Read, place: int) -> str:
        """Text that takes the step at this place of a path; structs are dicts, unless a host has its own."""
        return _attribute(of, node.path[place], node.optional[place + 1])

    def _apply(self, node: Apply) -> str:
        overload = node.overload
        texts = [self._within(arg, overload.tolerance(place)) for place, arg in enumerate(node.args)]

        def made(args: Sequence[str]) -> str:
            if isinstance(overload.python, str):
                return overload.python.format(*args)
            return overload.python(args, node.constants, self._bind)

        return self._strict(node.args, texts, made)

    def _strict(self, nodes: Sequence[Node], texts: Sequence[str], made: Callable[[Sequence[str]], str]) -> str:
        """Null if an argument is null; but every argument that can fail is looked at first, for failure beats null."""
        held, bindings = self._hold(nodes, texts)
        if not bindings:
            return made(held)
        return f"(None if {_absent(bindings, nodes)} else {made(held)})"

    def _hold(self, nodes: Sequence[Node], texts: Sequence[str]) -> tuple[list[str], list[str]]:
        """Names for the arguments, and the bindings that give them; none if no argument can be null."""
        if not any(node.nullable for node in nodes):
            return list(texts), []
        careful = _careful(nodes)
        held, bindings = [], []
        for node, text in zip(nodes, texts, strict=True):
            if node.nullable or (careful and (node.can_fail or node.overflow is not Overflow.NONE)):
                name = self._temporary()
                held.append(name)
                bindings.append(f"({name} := {text})")
            else:
                held.append(text)
        return held, bindings

    def _sides(self, node: Compare) -> tuple[str, str]:
        return self._known(node.left), self._known(node.right)

    def _member(self, node: In, item: str) -> str:
        values = node.values
        if len(values) <= 3:
            return f"({item} in ({', '.join(self._literal(value) for value in values)},))"
        return f"({item} in {self._bind(frozenset(values))})"

    def _coalesce(self, args: Sequence[Node]) -> str:
        choices = []
        for arg in args[:-1]:
            held = self._temporary()
            choices.append(f"{held} if ({held} := {self.finite(arg)}) is not None else ")
        return self._choice(choices, self.finite(args[-1]))

    def _choice(self, choices: Sequence[str], last: str) -> str:
        """``a if c else b if d else e``, in stretches that Python's parser can take."""
        while len(choices) > _CHOICES_A_FUNCTION:
            last = self._part("".join(choices[-_CHOICES_A_FUNCTION:]) + last)
            choices = choices[:-_CHOICES_A_FUNCTION]
        return f"({''.join(choices)}{last})"

    # ── logic ──

    def _logic(self, node: And | Or) -> str:
        args = sorted(node.args, key=lambda arg: arg.can_fail)  # the order of parts does not count: sure ones first
        word = "and" if isinstance(node, And) else "or"
        if sum(arg.can_fail for arg in args) > 1 or (node.can_fail and any(arg.nullable for arg in args)):
            return self._called(node)
        texts = [self.value(arg) for arg in args]
        if not any(arg.nullable for arg in args):
            return f"({f' {word} '.join(texts)})"
        decisive = "False" if isinstance(node, And) else "True"
        names = [self._temporary() for _ in texts]
        decided = " or ".join(f"({name} := {text}) is {decisive}" for name, text in zip(names, texts, strict=True))
        unknown = " or ".join(f"{name} is None" for name, arg in zip(names, args, strict=True) if arg.nullable)
        other = "True" if isinstance(node, And) else "False"
        return f"({decisive} if {decided} else None if {unknown} else {other})"

    def _called(self, node: And | Or) -> str:
        """Several parts can fail: which failure counts depends on all the others, so each is tried."""
        function = "_conjunction" if isinstance(node, And) else "_disjunction"
        return f"{function}({', '.join(f'lambda: {self.value(arg)}' for arg in node.args)})"

    def test(self, node: Node) -> str:
        """Text that is true iff the node's value is true."""
        self.depth += 1
        try:
            return self._test(node) if self.depth % _LEVELS_A_FUNCTION else self._outline(node)
        finally:
            self.depth -= 1

    def _test(self, node: Node) -> str:
        match node:
            case And(args=args) if self._short(args):
                ordered = sorted(args, key=lambda arg: arg.can_fail)
                return f"({' and '.join(self._conditions(ordered))})"
            case Or(args=args) if sum(arg.can_fail for arg in args) <= 1:
                ordered = sorted(args, key=lambda arg: arg.can_fail)
                return f"({' or '.join(self.test(arg) for arg in ordered)})"
            case Not(arg=arg) if arg.nullable:
                return f"({self.value(arg)} is False)"
            case Compare(op="=", left=left, right=Literal(value=value)) if value is not None and not left.can_fail:
                return f"({self._known(left)} == {self.value(node.right)})"  # None equals no constant: no check needed
            case Compare():
                return self._guarded((node.left, node.right), self._sides(node), lambda held: _compared(node, held))
            case In(item=item) if not item.can_fail:
                return self._member(node, self._known(item))
            case In():
                return self._guarded((node.item,), (self._known(node.item),), lambda held: self._member(node, held[0]))
            case _:
                return self.value(node)

    def _guarded(self, nodes: Sequence[Node], texts: Sequence[str], made: Callable[[Sequence[str]], str]) -> str:
        held, bindings = self._hold(nodes, texts)
        return f"({_present(bindings, nodes)} and {made(held)})" if bindings else f"({made(held)})"

    def _short(self, args: Sequence[Node]) -> bool:
        """Whether Python's ``and`` will do: it stops at null, which must not hide a failure behind it."""
        failing = sum(arg.can_fail for arg in args)
        return failing == 0 or (failing == 1 and not any(arg.nullable for arg in args if not arg.can_fail))

    def _conditions(self, args: Sequence[Node]) -> list[str]:
        """Tests of the parts; two bounds on one value are written as one chained comparison."""
        texts, index = [], 0
        while index < len(args):
            pair = args[index : index + 2]
            if len(pair) == 2 and (chained := self._chained(pair[0], pair[1])):
                texts.append(chained)
                index += 2
            else:
                texts.append(self.test(args[index]))
                index += 1
        return texts

    def _chained(self, low: Node, high: Node) -> str:
        if not (isinstance(low, Compare) and isinstance(high, Compare) and low.left == high.left):
            return ""
        if low.op not in _MIRRORED or high.op not in ("<", "<=") or low.nullable or low.can_fail or high.can_fail:
            return ""
        if not (isinstance(low.left, Read) and isinstance(low.right, Literal) and isinstance(high.right, Literal)):
            return ""
        bounds = self.value(low.right), self.value(high.right)
        return f"({bounds[0]} {_MIRRORED[low.op]} {self.value(low.left)} {high.op} {bounds[1]})"

    # ── lists ──

    def _each(self, node: ForEach) -> str:
        variable = f"v{len(self.lambdas) + 1}"
        of = self.value(node.list)
        self.names[node.variable] = variable
        self.lambdas.append(variable)
        body = self.test(node.body) if node.kind is Each.FILTER else self.finite(node.body)
        self.lambdas.pop()

        def made(args: Sequence[str]) -> str:
            # Python takes no assignment in what a comprehension runs over.
            if node.kind is Each.TRANSFORM and ":=" not in args[0]:
                return f"[{body} for {variable} in {args[0]}]"
            return f"{_EACH[node.kind]}({args[0]}, lambda {variable}: {body})"

        return self._strict((node.list,), (of,), made)


_EACH = {Each.TRANSFORM: "_transform", Each.FILTER: "_keep", Each.EXISTS: "_exists", Each.FORALL: "_forall"}

_OURS = re.compile(r"(t|v|part|expression)[0-9]*|p[0-9]+_")
"""Names of the shapes that we give ourselves: variables have others."""


def _identifier(name: str, place: int) -> str:
    plain_name = name.isascii() and name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("_")
    return name if plain_name and not _OURS.fullmatch(name) and name not in NAMESPACE["__builtins__"] else f"p{place}_"


def _careful(nodes: Sequence[Node]) -> bool:
    """Whether all arguments must be looked at even if the first is null, because one of them may fail."""
    return any(node.can_fail or node.overflow is not Overflow.NONE for node in nodes)


def _absent(bindings: Sequence[str], nodes: Sequence[Node]) -> str:
    tests = [f"{binding} is None" for binding in bindings]
    if not _careful(nodes):
        return " or ".join(tests)
    return " | ".join(f"({test})" for test in tests) if len(tests) <= _LONGEST_SUM else f"max({', '.join(tests)})"


def _present(bindings: Sequence[str], nodes: Sequence[Node]) -> str:
    if _careful(nodes):
        return f"not ({_absent(bindings, nodes)})"
    return " and ".join(f"{binding} is not None" for binding in bindings)


def _attribute(text: str, name: str, optional: bool) -> str:
    return f"{text}.get({name!r})" if optional else f"{text}[{name!r}]"


def _compared(node: Compare, sides: Sequence[str]) -> str:
    return f"{sides[0]} {_OPERATORS[node.op]} {sides[1]}"


def _coerced(node: Coerce, text: str) -> str:
    if node.type == DOUBLE:
        value = text if plain(node.arg.type) == DOUBLE else f"float({text})"
        for op, constant in node.steps:
            value = f"({value} {op} {constant!r})"
        return value
    if isinstance(node.type, Decimal):
        return f"_fit_decimal(_Decimal({text}), {node.type.precision}, {node.type.scale})"
    return text
