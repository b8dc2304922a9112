"""Filters of subscriptions: compiled, checked, and read once for all that differ only in the texts they compare with.

`Filter` is a compiled condition, `read_filter` reads one, `check_filter` says what is wrong with one, `FilterTemplates`
spares reading filters of the same shape.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from situ.lang.catalogue import ALWAYS_TRUE, FILTER_INVALID, NEVER_TRUE
from situ.lang.documents import ScalarNode
from situ.lang.expr.checker.check import check_bounded
from situ.lang.expr.emit.python import compile_test
from situ.lang.expr.faults import Faults
from situ.lang.expr.format import print_literal
from situ.lang.expr.limits import ExpressionLimits
from situ.lang.expr.runtime import FAILURES
from situ.lang.expr.scope import Definition, event_scope
from situ.lang.expr.simplify import simplify
from situ.lang.expr.syntax import locate_in
from situ.lang.expr.tree import TRUE, Compare, In, Literal, Node, Read, rebuild, walk
from situ.lang.problems import Problems, SituError
from situ.lang.records import replace
from situ.lang.types.model import BOOLEAN, Struct
from situ.lang.types.table import Types
from situ.routing.normal_form import Atom, Conjunction, Path, atoms_by_path, normal_form

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# A compiled filter: what is to be looked up in the index, and a function that decides.


class Filter:
    """A condition on events of one type and its subtypes. Two are equal only if they are the same."""

    __slots__ = ("_by_path", "_test", "conjunctions", "data", "envelope", "node", "type")

    def __init__(self, type: str, node: Node) -> None:
        self.type = type
        self.node = node
        self.conjunctions: tuple[Conjunction, ...] = normal_form(node)
        reads = [each for each in walk(node) if isinstance(each, Read)]
        self.envelope: frozenset[str] = frozenset(each.path[0] for each in reads if each.variable == "event")
        """The attributes of the envelope it reads."""
        below = [each.path for each in reads if each.variable == "data"]
        self.data: frozenset[str] | None = frozenset(path[0] for path in below) if all(below) else None
        """The attributes of the data it reads, by the first step; None: the data as a whole."""
        self._test: Callable[[Any, Any], Any] | None = None
        self._by_path: tuple[Mapping[Path, tuple[Atom, ...]], ...] | None = None

    @property
    def by_path(self) -> tuple[Mapping[Path, tuple[Atom, ...]], ...]:
        """What each AND of it compares with constants, by the path of the attribute."""
        if self._by_path is None:
            self._by_path = tuple(map(atoms_by_path, self.conjunctions))
        return self._by_path

    @property
    def always(self) -> bool:
        return () in self.conjunctions

    def test(self, event: Mapping[str, Any], data: Mapping[str, Any]) -> bool:
        """Whether the condition is true; not if it is false, null or fails."""
        run = self._test
        if run is None:
            run = self._test = compile_test(self.node, ("event", "data")).call
        try:
            return bool(run(event, data))
        except FAILURES:
            return False


def read_filter(
    subscription: str,
    event: Struct,
    where: str,
    types: Types,
    functions: Mapping[str, Definition],
    limits: ExpressionLimits,
) -> Node:
    """The condition that a text means for events of this type; :class:`SituError` if it means none."""
    if not where:
        return TRUE
    scope = event_scope(event, types=types, functions=functions, limits=limits, extensions=True)
    checked = check_bounded(where, scope, locate_in(where), BOOLEAN)
    if checked.node is None:
        raise SituError(
            *(
                FILTER_INVALID(each.location, cause=each, subscription=subscription, type=event.name)
                for each in checked.problems
                if each.is_error
            )
        )
    return checked.node


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Checks: does a filter type for an event, and can it be anything but always or never true?


def check_filter(
    subscription: str,
    where: ScalarNode,
    event: Struct,
    types: Types,
    functions: Mapping[str, Definition],
    problems: Problems,
    limits: ExpressionLimits,
    faults: Faults,
) -> None:
    """Check a filter for events of one type; subtypes have all its attributes, so it holds for them, too."""
    scope = event_scope(event, types=types, functions=functions, limits=limits, extensions=True)
    checked = check_bounded(where.text, scope, where.locate, BOOLEAN)
    problems.extend(
        FILTER_INVALID(problem.location, cause=problem, subscription=subscription, type=event.name)
        if problem.is_error
        else problem
        for problem in checked.problems
        if not faults.explain(problem, event)
    )
    if checked.node is None:
        return
    simplified = simplify(checked.node)
    if not isinstance(simplified, Literal):
        return
    place = where.location
    if simplified.value is True:
        problems.add(ALWAYS_TRUE(place, subscription=subscription, type=event.name))
    else:
        shown = print_literal(simplified.value)
        problems.add(NEVER_TRUE(place, subscription=subscription, type=event.name, simplified=shown))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Templates: filters that differ only in the texts they compare with are read and checked once.
#
# ``room = 'r1' AND floor = 2`` and ``room = 'r2' AND floor = 2`` have one shape. It is read with a mark in the place of
# each text, which occurs nowhere else; if each mark is found again just once, as a constant that something is compared
# with, then nothing depended on what it was, and the other filters of the shape are had by putting their texts in. That
# is far cheaper than reading them, and matters where thousands of clients each ask for an id of their own.

ReadFilter = Callable[[str], Node]
"""Reads, checks and simplifies the text of a filter."""

_WORD = re.compile(
    r"""(?P<text>'(?:[^']|'')*')
    | (?P<quoted>"(?:[^"]|"")*" | `(?:[^`]|``)*`)
    | (?P<name>[^\W\d]\w*)\s*(?P<call>\()?
    | (?P<comparison><>|!=|==?|[(,])
    | (?P<other>[^\s])""",
    re.VERBOSE,
)
_BRACKETED = frozenset({"AND", "OR", "NOT", "IN"})
_LONGEST = 200
_MOST = 50
_MOST_SHAPES = 10_000
_MARK = "\ue000"  # for private use: nobody has agreed on what it means


class FilterTemplates:
    """The shapes that were read; None for those in which the texts matter."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Node | None] = {}

    def node(self, event: str, where: str, read: ReadFilter) -> Node:
        """The simplified condition that the text means for events of this type; ``read`` reads it."""
        taken = _take_apart(where)
        if taken is None:
            return read(where)
        pieces, texts = taken
        marks = [f"{_MARK}{number}{_MARK}" for number in range(len(texts))]
        shape = "".join(_interleave(pieces, [f"'{mark}'" for mark in marks]))
        key = (event, shape)
        if key not in self._known:
            if len(self._known) >= _MOST_SHAPES:
                self._known.clear()
            whole = read(where)  # the problems of a text are told of the text itself
            self._known[key] = _general(shape, marks, read)
            return whole
        general = self._known[key]
        if general is None:
            return read(where)
        return _put_in(general, dict(zip(marks, texts, strict=True)))


def _general(shape: str, marks: list[str], read: ReadFilter) -> Node | None:
    try:
        node = read(shape)
    except SituError:
        return None
    return node if sorted(_compared(node)) == sorted(_anywhere(node)) == sorted(marks) else None


def _take_apart(where: str) -> tuple[list[str], list[str]] | None:
    """What stands around the texts that something is compared with, and these texts; None if there are none to take."""
    if _MARK in where or "'" not in where:
        return None
    pieces, texts, start, before = [], [], 0, ""
    for match in _WORD.finditer(where):
        name = match["name"]
        if match["call"] and name.upper() not in _BRACKETED:
            return None  # a function may do anything with its arguments
        if match["text"] and before in ("=", "==", "<>", "!=", "(", ","):
            text = match[0][1:-1].replace("''", "'")
            if len(text) <= _LONGEST and "\\" not in text and text.isprintable():
                pieces.append(where[start : match.start()])
                texts.append(text)
                start = match.end()
        before = "(" if match["call"] else match["comparison"] or ""
    if not texts or len(texts) > _MOST:
        return None
    return [*pieces, where[start:]], texts


def _interleave(pieces: list[str], texts: list[str]) -> list[str]:
    return [part for pair in zip(pieces, [*texts, ""], strict=True) for part in pair]


def _compared(node: Node) -> list[str]:
    """The marks that something is compared with."""
    found: list[str] = []
    for part in walk(node):
        match part:
            case Compare(op="=" | "<>", left=left, right=Literal(value=str() as value)) if not isinstance(
                left, Literal
            ):
                found.append(value)
            case In(values=values):
                found += [value for value in values if isinstance(value, str)]
    return [value for value in found if _MARK in value]


def _anywhere(node: Node) -> list[str]:
    """The marks, wherever they stand."""
    found: list[object] = []
    for part in walk(node):
        match part:
            case Literal(value=value):
                found.append(value)
            case In(values=values):
                found += values
    return [value for value in found if isinstance(value, str) and _MARK in value]


def _put_in(node: Node, texts: Mapping[str, str]) -> Node:
    match node:
        case Literal(value=str() as value) if value in texts:
            return replace(node, value=texts[value])
        case In(values=values):
            changed = rebuild(node, lambda part: _put_in(part, texts))
            assert isinstance(changed, In)
            put = dict.fromkeys(texts.get(value, value) if isinstance(value, str) else value for value in values)
            return replace(changed, values=tuple(put))
        case _:
            return rebuild(node, lambda part: _put_in(part, texts))
