"""Typed tree → Spark SQL text: one expression for the value and, where it can fail, one that says when it does.

Spark has no failure besides stopping the query, so an expression that can fail becomes two: ``value``, which never
raises and may be anything where ``fails`` is true, and ``fails``, never null. Expressions that cannot fail, the common
case, are just their value. The text does not depend on ANSI mode; it expects the session's time zone to be UTC, as
Situ's sessions are.

In logic a part that decides outranks one that fails, and that one outranks all others: AND and OR fail where the
highest rank among their parts is failure. Each part is written once in ``value`` and once in ``fails``, so the text
grows with depth times size, not exponentially.
"""

from __future__ import annotations

import datetime as dt
import decimal
import functools
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from situ.lang.catalogue import TOO_LARGE
from situ.lang.expr.overload import Overflow, Overload, spark_name, spark_text
from situ.lang.expr.runtime import micros
from situ.lang.expr.tree import (
    NULL,
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
from situ.lang.records import replace
from situ.lang.types.layout import spark_type
from situ.lang.types.model import DOUBLE, LONG, Type, plain
from situ.lang.types.table import Types
from situ.lang.units import Units

LONGEST_TEXT = 1 << 20
_MOST_NESTED = 12
_MOST_CHECKS = 20  # Spark's work doubles with each part inside another that it finds to be common to two places
_MOST_LAMBDAS = 64  # it resolves those inside each other one after the other, in a hundred rounds
_SHORT = 60  # characters: a column or a constant is not worth a name
_LARGEST = "1.7976931348623157E308D"


class SparkExpression(msgspec.Struct, frozen=True):
    """Spark SQL text. ``fails`` is empty for an expression that cannot fail."""

    value: str
    fails: str = ""

    @property
    def matches(self) -> str:
        """True where a condition holds and does not fail, false everywhere else."""
        known = f"({self.value} <=> TRUE)"
        return f"({known} AND NOT {self.fails})" if self.fails else known


Reader = Callable[[Read], str]
"""How a value is read from the columns at hand; engines that keep payloads in another form bring their own."""


def read_column(node: Read) -> str:
    """A variable is a column, its attributes are fields of a struct."""
    return ".".join(spark_name(name) for name in (node.variable, *node.path))


def emit_spark(node: Node, reader: Reader = read_column) -> SparkExpression:
    """The expression for Spark; ``SituError`` if it would become more than Spark can take."""
    return _Emitter(reader).finite(node).settled()


class _Text(msgspec.Struct, frozen=True, kw_only=True):
    """A value being put together, with its failures as far as they are written down.

    If ``open``, a failure further down shows as null in the value, and is written down only where nulls start to count
    for something else: then the value failed where it is null although none of ``leaves``, the texts that can make it
    null on their own, is. ``checks`` counts the parts of the value inside each other that ``fails`` mentions again,
    ``lambdas`` the functions of elements inside each other.
    """

    value: str
    fails: tuple[str, ...] = ()
    leaves: frozenset[str] = frozenset()
    open: bool = False
    checks: int = 0
    lambdas: int = 0

    def check(self, condition: str) -> _Text:
        """The same value; it fails also where the condition, which mentions it, is true."""
        _bound(self.checks + 1, "checks inside each other in Spark SQL", _MOST_CHECKS)
        return replace(self, fails=(*self.fails, condition), checks=self.checks + 1)

    def close(self) -> _Text:
        """Written down: the value is null only where it is null."""
        if not self.open:
            return self
        given = [f"{leaf} IS NOT NULL" for leaf in sorted(self.leaves)]
        return replace(self.check(f"({' AND '.join([*given, f'{self.value} IS NULL'])})"), open=False)

    def settled(self) -> SparkExpression:
        closed = self.close()
        return SparkExpression(closed.value, _any(*closed.fails))


class _Emitter:
    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.names = 0
        self.locals: set[str] = set()

    def emit(self, node: Node) -> _Text:
        result = self._emit(node)
        _bound(len(result.value) + sum(map(len, result.fails)), "characters of Spark SQL", LONGEST_TEXT)
        _bound(result.lambdas, "functions of elements inside each other in Spark SQL", _MOST_LAMBDAS)
        return result

    def finite(self, node: Node) -> _Text:
        return self._within(node, Overflow.NONE)

    def _within(self, node: Node, tolerated: Overflow) -> _Text:
        """The node as an argument: with a check that it is finite, or not NaN, if it could be."""
        result = self.emit(node)
        if not fails_as_argument(node, tolerated):
            return result
        # Spark orders NaN above all numbers, so one comparison finds NaN and both infinities.
        beyond = f"(abs({result.value}) > {_LARGEST})" if tolerated is Overflow.NONE else f"isnan({result.value})"
        return result.check(_sure(beyond, node.nullable or result.open))

    def _emit(self, node: Node) -> _Text:
        match node:
            case Literal(value=value, type=type):
                return _plain(spark_literal(value, type), node)
            case Read(variable=variable):
                return _plain(_local(node) if variable in self.locals else self.reader(node), node)
            case Apply():
                return self._apply(node)
            case Coerce(arg=arg):
                inner = self.emit(arg)
                return _strict(_coerced(node, inner.value), (inner,))
            case Compare(op=op, left=left, right=right):
                a, b = self._within(left, Overflow.INFINITE), self._within(right, Overflow.INFINITE)
                return _strict(f"({a.value} {op} {b.value})", (a, b))
            case In(item=item, values=values):
                found = self._within(item, Overflow.INFINITE)
                return _strict(_member(found.value, values, item.type), (found,))
            case And() | Or():
                return self._logic(node)
            case Not(arg=arg):
                inner = self.emit(arg)
                return _strict(f"(NOT {inner.value})", (inner,))
            case IsNull(arg=arg):
                inner = self.finite(arg).close()
                return _made(f"({inner.value} IS NULL)", node, (inner,))
            case Case():
                return self._case(node)
            case Coalesce():
                return self._coalesce(node)
            case MakeStruct(fields=fields):
                parts = [self.finite(part).close() for _, part in fields]
                named = zip((name for name, _ in fields), parts, strict=True)
                text = ", ".join(f"{spark_text(name)}, {part.value}" for name, part in named)
                return _made(f"named_struct({text})", node, parts)
            case Field(of=of, name=name):
                inner = self.emit(of)
                value = f"({inner.value}).{spark_name(name)}"
                return _made(value, node, (inner.close(),)) if node.optional else _strict(value, (inner,))
            case ForEach():
                return self._each(node)

    def _apply(self, node: Apply) -> _Text:
        overload = node.overload
        args = [self._within(arg, overload.tolerance(place)) for place, arg in enumerate(node.args)]
        value, named = self._filled(overload, [arg.value for arg in args], node.constants)
        if overload.may_be_null:
            return _made(value, node, [arg.close() for arg in args], named)
        result = _strict(value, args, named)
        if overload.checks_result:
            return result.check(_sure(f"(abs({value}) > {_LARGEST})", node.nullable or result.open))
        return replace(result, open=result.open or overload.fails)

    def _filled(self, overload: Overload, texts: Sequence[str], constants: tuple[Any, ...]) -> tuple[str, int]:
        """The template with its arguments; a long argument it mentions more than once is computed once, under a name.

        Without that the text would double with every level, and Spark's optimiser with it. Also how many got a name.
        """
        uses = _uses(overload, len(texts), constants)
        names, held = list(texts), []
        for place, text in enumerate(texts):
            if uses[place] > 1 and len(text) > _SHORT:
                self.names += 1
                names[place] = f"_situ_v{self.names}"
                held.append((names[place], text))
        value = _template(overload, names, constants)
        for name, text in reversed(held):
            value = f"element_at(transform(array({text}), {name} -> {value}), 1)"
        return value, len(held)

    def _case(self, node: Case) -> _Text:
        conditions = [self.emit(condition).close() for condition, _ in node.arms]
        results = [self.finite(result).close() for result in node.results]
        arms = list(zip(conditions, results[:-1], strict=True))
        last = results[-1]
        value = _choice([(c.value, r.value) for c, r in arms], last.value, nested=node.arms[0][0].choices > 0)
        outcomes: list[tuple[str, str]] = []
        for condition, result in arms:
            if condition.fails:
                outcomes.append((_any(*condition.fails), "TRUE"))
            outcomes.append((condition.value, _any(*result.fails) or "FALSE"))
        return _chosen(value, node, (*conditions, *results), outcomes, _any(*last.fails) or "FALSE")

    def _coalesce(self, node: Coalesce) -> _Text:
        parts = [self.finite(arg).close() for arg in node.args]
        outcomes: list[tuple[str, str]] = []
        for part in parts:
            if part.fails:
                outcomes.append((_any(*part.fails), "TRUE"))
            outcomes.append((f"{part.value} IS NOT NULL", "FALSE"))
        return _chosen(f"coalesce({', '.join(part.value for part in parts)})", node, parts, outcomes, "FALSE")

    # ── logic ──

    def _logic(self, node: And | Or) -> _Text:
        parts = [self.emit(arg).close() for arg in node.args]
        word, decisive = (" AND ", "FALSE") if isinstance(node, And) else (" OR ", "TRUE")
        result = _made(f"({word.join(part.value for part in parts)})", node, parts)
        if not result.fails:
            return result
        return replace(result, fails=(f"(greatest({', '.join(_rank(part, decisive) for part in parts)}) = 1)",))

    # ── lists ──

    def _each(self, node: ForEach) -> _Text:
        of = self.emit(node.list)
        self.locals.add(node.variable)
        body = (self.emit(node.body) if node.kind is Each.FILTER else self.finite(node.body)).close()
        self.locals.discard(node.variable)
        variable = _lambda_name(node.variable)
        value = f"{node.kind.value}({of.value}, {variable} -> {body.value})"
        if node.kind in (Each.TRANSFORM, Each.FILTER):
            result = replace(_strict(value, (of,)), lambdas=1 + max(of.lambdas, body.lambdas))
            failing = f"exists({of.value}, {variable} -> {_any(*body.fails)})"
        else:
            result = replace(_made(value, node, (of.close(),)), lambdas=1 + max(of.lambdas, body.lambdas))
            decisive = "TRUE" if node.kind is Each.EXISTS else "FALSE"
            failing = f"array_max(transform({of.value}, {variable} -> {_rank(body, decisive)})) = 1"
        return result.check(f"coalesce({failing}, FALSE)") if body.fails else result


def _bound(found: int, what: str, limit: int) -> None:
    if found > limit:
        raise SituError(TOO_LARGE(what=what, limit=limit))


def _plain(value: str, node: Node) -> _Text:
    return _Text(value=value, leaves=frozenset((value,)) if node.nullable else frozenset())


def _strict(value: str, args: Sequence[_Text], lambdas: int = 0) -> _Text:
    """A value that is null where an argument is: failures that show as null go on doing so, if nothing else does."""
    leaves = frozenset[str]().union(*(arg.leaves for arg in args))
    args = [arg if arg.leaves == leaves else arg.close() for arg in args]
    return _Text(
        value=value,
        fails=tuple(text for arg in args for text in arg.fails),
        leaves=leaves,
        open=any(arg.open for arg in args),
        checks=max((arg.checks for arg in args), default=0),
        lambdas=lambdas + max((arg.lambdas for arg in args), default=0),
    )


def _made(value: str, node: Node, parts: Sequence[_Text], lambdas: int = 0) -> _Text:
    """A value with nulls of its own; all failures of its parts are written down."""
    return replace(_strict(value, parts, lambdas), leaves=frozenset((value,)) if node.nullable else frozenset())


def _chosen(
    value: str, node: Node, parts: Sequence[_Text], outcomes: Sequence[tuple[str, str]], otherwise: str
) -> _Text:
    """A choice, which fails only where the parts fail that it looks at."""
    result = _made(value, node, parts)
    return replace(result, fails=(_choice(outcomes, otherwise, nested=True),)) if result.fails else result


def _choice(arms: Sequence[tuple[str, str]], otherwise: str, *, nested: bool) -> str:
    """CASE; one arm inside the other if ``nested``, as long as these are few.

    Where Spark looks for common parts of conditions, it looks into the first of several twice, and so doubles its work
    with every choice inside the first condition of a choice.
    """
    while len(arms) > 1 and arms[-1][1] == otherwise:
        arms = arms[:-1]
    if not nested or len(arms) > _MOST_NESTED:
        listed = "".join(f" WHEN {condition} THEN {result}" for condition, result in arms)
        return f"CASE{listed} ELSE {otherwise} END"
    for condition, result in reversed(arms):
        otherwise = f"CASE WHEN {condition} THEN {result} ELSE {otherwise} END"
    return otherwise


def _rank(part: _Text, decisive: str) -> str:
    """2 for a part that decides, 1 for one that fails, else 0: the highest rank is what becomes of all together."""
    rank = f"if({part.value} <=> {decisive}, 2, 0)"
    return f"if({_any(*part.fails)}, 1, {rank})" if part.fails else rank


def _template(overload: Overload, texts: Sequence[str], constants: Sequence[Any]) -> str:
    return overload.spark.format(*texts) if isinstance(overload.spark, str) else overload.spark(texts, constants)


@functools.lru_cache(maxsize=4096)
def _uses(overload: Overload, count: int, constants: tuple[Any, ...]) -> tuple[int, ...]:
    """How often a template mentions each of its arguments."""
    marks = [f"\x00{place}\x00" for place in range(count)]
    text = _template(overload, marks, constants)
    return tuple(text.count(mark) for mark in marks)


def _any(*fails: str) -> str:
    given = list(dict.fromkeys(text for text in fails if text))
    return given[0] if len(given) == 1 else f"({' OR '.join(given)})" if given else ""


def _sure(condition: str, nullable: bool) -> str:
    return f"({condition} <=> TRUE)" if nullable else condition


def _lambda_name(variable: str) -> str:
    return spark_name(f"x_{variable}")


def _local(node: Read) -> str:
    return ".".join((_lambda_name(node.variable), *(spark_name(step) for step in node.path)))


def _coerced(node: Coerce, text: str) -> str:
    if node.type == DOUBLE:
        value = text if plain(node.arg.type) == DOUBLE else f"CAST({text} AS DOUBLE)"
        for op, constant in node.steps:
            value = f"({value} {op} {_double(constant)})"
        return value
    return f"CAST({text} AS {spark_type(node.type, _no_subtypes())})"


def _member(item: str, values: Sequence[Any], type: Type) -> str:
    # Spark's hash set tells 0.0 from -0.0; adding zero makes them one.
    subject = f"({item} + 0.0D)" if plain(type) == DOUBLE else item
    return f"({subject} IN ({', '.join(spark_literal(value, plain(type)) for value in values)}))"


def _double(value: float) -> str:
    return f"{value!r}D" if value >= 0 and str(value)[0] != "-" else f"({value!r}D)"


@functools.cache
def _no_subtypes() -> Types:
    """Values made in expressions have no subtypes. Made when first needed, for it reads units, which takes a while."""
    return Types(types={}, events=frozenset(), units=Units())


def spark_literal(value: Any, type: Type) -> str:
    """A constant as Spark SQL text of exactly this type."""
    match value:
        case None if type == NULL:
            return "NULL"  # of no type: nothing but IS NULL takes it
        case None:
            return f"CAST(NULL AS {spark_type(type, _no_subtypes())})"
        case bool():
            return "TRUE" if value else "FALSE"
        case int() if plain(type) == LONG:
            return f"{value}L" if value >= 0 else f"({value}L)"
        case int():
            return str(value) if value >= 0 else f"CAST({value} AS INT)"
        case float():
            return _double(value)
        case str():
            return spark_text(value)
        case decimal.Decimal():
            return f"CAST('{value:f}' AS {spark_type(type, _no_subtypes())})"
        case dt.datetime():
            return f"timestamp_micros({micros(value)}L)"
        case dt.date():
            return f"DATE'{value.isoformat()}'"
        case dt.timedelta():
            found = value // dt.timedelta(microseconds=1)
            return f"{found}L" if found >= 0 else f"({found}L)"
        case bytes():
            return f"X'{value.hex()}'"
        case _:
            raise TypeError(f"no literal of {value!r}")
