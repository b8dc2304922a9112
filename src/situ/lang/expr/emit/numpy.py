"""Typed tree → numpy and Arrow: expressions over many rows, or over all pairs of two sets of rows, at once.

:func:`compile_mask` and :func:`compile_vector` are what others call. Before them: what numpy does not do, computed row
by row, and tests of texts in Arrow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from situ.lang.expr.emit.python import Emitter
from situ.lang.expr.emit.vector_functions import TEXT_TESTS, VECTOR_FUNCTIONS, geo_compared, in_polygons
from situ.lang.expr.emit.vectors import (
    FAILED,
    Array,
    Batch,
    Bools,
    Chosen,
    Columns,
    Frame,
    Key,
    Vector,
    as_number,
    dtype_of,
    either,
    is_text,
    vector_of,
)
from situ.lang.expr.overload import Overflow
from situ.lang.expr.runtime import FAILURES
from situ.lang.expr.tree import (
    And,
    Apply,
    Case,
    Coalesce,
    Coerce,
    Compare,
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
    children,
    fails_as_argument,
    rebuild,
)
from situ.lang.records import replace
from situ.lang.types.model import DOUBLE, INT, LONG, STRING, Type, plain

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What numpy does not do: an expression over columns, computed row by row as generated Python.
#
# If it depends on one column of texts, once for each different text: names and kinds come again and again, and polygons
# are few.

Step = Callable[[Frame], Vector]
"""An expression, compiled: from rows to what it is in each of them."""


def outer_reads(node: Node, bound: frozenset[str] = frozenset()) -> Iterator[Read]:
    """What an expression reads of its variables; not what it reads of elements of lists."""
    if isinstance(node, Read):
        if node.variable not in bound:
            yield node
        return
    if isinstance(node, ForEach):
        yield from outer_reads(node.list, bound)
        yield from outer_reads(node.body, bound | {node.variable})
        return
    for part in children(node):
        yield from outer_reads(part, bound)


def by_rows(node: Node) -> Step:
    """Generated Python over single rows; over the different texts, if it depends on one column of them."""
    reads = {(read.variable, read.path): read for read in outer_reads(node)}
    run = row_function(node, reads)
    if not reads:
        constant: list[Vector] = []

        def once(frame: Frame) -> Vector:
            if not constant:
                constant.append(_scalar(vector_of([run()], node.type)))
            return constant[0]

        return once
    keys = list(reads)
    if len(keys) == 1 and is_text(reads[keys[0]].type):
        key, type = keys[0], reads[keys[0]].type

        def on_texts(frame: Frame) -> Vector:
            codes, values = frame.batch(key).coded(key, type)
            found = vector_of([run(value) for value in values], node.type)
            return Vector(*(None if part is None else frame.laid(key, part[codes]) for part in found))  # type: ignore[arg-type]  # values are always there

        return on_texts

    def on_rows(frame: Frame) -> Vector:
        columns = [frame.laid(key, frame.batch(key).objects(key, reads[key].type)) for key in keys]
        shaped = np.broadcast_arrays(*columns)
        found = vector_of([run(*row) for row in zip(*(each.ravel() for each in shaped), strict=True)], node.type)
        shape = shaped[0].shape
        return Vector(*(None if part is None else part.reshape(shape) for part in found))  # type: ignore[arg-type]

    return on_rows


def _scalar(vector: Vector) -> Vector:
    return Vector(*(None if part is None else part.reshape(()) for part in vector))  # type: ignore[arg-type]


def row_function(node: Node, reads: dict[Key, Read]) -> Callable[..., Any]:
    """A function of the values of these reads that gives the outcome, :data:`FAILED` where it fails."""
    names = {key: f"c{place}" for place, key in enumerate(reads)}
    emitter = Emitter(tuple(names.values()))
    call = emitter.function(emitter.value(_over_parameters(node, names))).call
    if not node.can_fail:
        return call

    def run(*values: Any) -> Any:
        try:
            return call(*values)
        except FAILURES:
            return FAILED

    return run


def _over_parameters(node: Node, names: dict[Key, str], bound: frozenset[str] = frozenset()) -> Node:
    """The node with each read replaced by a parameter, which may be null."""
    if isinstance(node, Read):
        if node.variable in bound:
            return node
        name = names[node.variable, node.path]
        return replace(node, variable=name, path=(), optional=(True,))
    if isinstance(node, ForEach):
        inner = bound | {node.variable}
        return replace(
            node,
            list=_over_parameters(node.list, names, bound),
            body=_over_parameters(node.body, names, inner),
        )
    return rebuild(node, lambda part: _over_parameters(part, names, bound))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Tests of a column of texts against constants, in Arrow: comparisons, IN, and what LIKE is made of.
#
# UTF-8 has the order of code points, so Arrow compares as Python does.

_OF_TEXTS: dict[str, str] = {
    "=": "equal",
    "<>": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}
MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def compared_texts(node: Compare) -> Step | None:
    """A comparison, if it is of this kind."""
    for side, other, op in ((node.left, node.right, node.op), (node.right, node.left, MIRRORED[node.op])):
        if _is_text_column(side) and isinstance(other, Literal) and other.value is not None:
            assert isinstance(side, Read)
            return _on_texts(side, getattr(pc, _OF_TEXTS[op]), pa.scalar(other.value, pa.string()))
    return None


def _is_text_column(node: Node) -> bool:
    return isinstance(node, Read) and plain(node.type) == STRING


def _on_texts(read: Read, test: Callable[..., pa.Array], *args: Any, **options: Any) -> Step:
    key, type = (read.variable, read.path), read.type

    def run(frame: Frame) -> Vector:
        array = frame.batch(key).array(key)
        if pa.types.is_null(array.type):
            return frame.vector(key, type)._replace(values=frame.laid(key, np.zeros(len(array), np.bool_)))
        found = test(array, *args, **options)
        null = frame.laid(key, array.is_null().to_numpy(zero_copy_only=False)) if array.null_count else None
        return Vector(frame.laid(key, found.fill_null(False).to_numpy(zero_copy_only=False)), null)

    return run


def text_test(node: Apply) -> Step | None:
    """A function, if it is of this kind."""
    test = TEXT_TESTS.get(node.overload)
    if test is None or not _is_text_column(node.args[0]) or not isinstance(node.args[1], Literal):
        return None
    if node.args[1].value is None:
        return None
    assert isinstance(node.args[0], Read)
    return _on_texts(node.args[0], test, pattern=node.args[1].value)


def in_texts(node: In) -> Step | None:
    """An IN, if it is of this kind."""
    if not _is_text_column(node.item):
        return None
    assert isinstance(node.item, Read)
    return _on_texts(node.item, pc.is_in, value_set=pa.array(node.values, pa.string()))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The nodes of a tree over columns.
#
# Equal to :func:`situ.lang.expr.emit.python.compile_test` in every row: where the condition is null or fails it does
# not hold. Numbers are computed by the same operations in the same order, so they are equal to the last bit; what numpy
# computes otherwise than Python, or not at all, runs row by row (:func:`by_rows`). Which functions are computed over
# columns says :data:`situ.lang.expr.emit.vector_functions.VECTOR_FUNCTIONS`.

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": np.equal,
    "<>": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {"*": np.multiply, "+": np.add, "/": np.divide}
_FEW = 16


class Outcome(NamedTuple):
    """In which rows a condition holds, and in which it fails, None if in none."""

    holds: Bools
    failed: Bools | None


class Mask:
    """A condition over rows. ``reads`` are the columns it needs, with the types of their values."""

    def __init__(self, node: Node) -> None:
        self.reads: dict[Key, Type] = {(read.variable, read.path): read.type for read in outer_reads(node)}
        self._variables = tuple(dict.fromkeys(variable for variable, _ in self.reads))
        self._step = _compile(node)

    def __call__(self, columns: Columns, count: int) -> Bools:
        """Where the condition holds, of ``count`` rows with these columns."""
        return self.of(self.frame(Batch(columns, count))).holds

    def frame(self, batch: Batch) -> Frame:
        """These rows, as the condition looks at them."""
        return Frame.of_rows(batch, self._variables)

    def of(self, frame: Frame) -> Outcome:
        """Where it holds and where it fails, in the shape of the frame."""
        with np.errstate(all="ignore"):
            found = self._step(frame)
        holds = found.holds if found.holds.shape == frame.shape else np.broadcast_to(found.holds, frame.shape)
        failed = None if found.failed is None else np.broadcast_to(found.failed, frame.shape)
        return Outcome(holds, failed if failed is not None and failed.any() else None)


def compile_mask(node: Node) -> Mask:
    """A condition as a function of columns."""
    return Mask(node)


def compile_vector(node: Node) -> Step:
    """An expression as a function of rows; doubles may be beyond finite as ``overflow`` says."""
    return _compile(node)


# ── nodes ─────────────────────────────────────────────────────────────────────────────────────────


def _compile(node: Node) -> Step:
    match node:
        case Literal():
            return _literal(node)
        case Read():
            key, type = (node.variable, node.path), node.type
            return lambda frame: frame.vector(key, type)
        case Apply():
            return _apply(node)
        case Coerce():
            return _coerce(node)
        case Compare():
            return _compare(node)
        case In():
            return _in(node)
        case And():
            return _connection(node, decisive=False)
        case Or():
            return _connection(node, decisive=True)
        case Not(arg=arg):
            return _not(_compile(arg))
        case IsNull(arg=arg):
            return _is_null(_finite(arg))
        case Case():
            return _case(node)
        case Coalesce():
            return _coalesce(node)
        case MakeStruct() | Field() | ForEach():
            return by_rows(node)


def _literal(node: Literal) -> Step:
    value: Array = np.zeros((), dtype_of(node.type))
    if node.value is not None:
        value[()] = as_number(node.value, plain(node.type))
    vector = Vector(value, np.ones((), np.bool_) if node.value is None else None)
    return lambda frame: vector


def _within(node: Node, tolerated: Overflow) -> Step:
    """The values, failed where they are doubles beyond what is tolerated."""
    step = _compile(node)
    if not fails_as_argument(node, tolerated):
        return step
    right = np.isfinite if tolerated is Overflow.NONE else _is_number

    def checked(frame: Frame) -> Vector:
        found = step(frame)
        wrong = ~right(found.values)
        if found.null is not None:
            wrong = wrong & ~found.null
        return found._replace(failed=either(found.failed, wrong)) if wrong.any() else found

    return checked


def _is_number(values: Array) -> Array:
    return ~np.isnan(values)


def _finite(node: Node) -> Step:
    return _within(node, Overflow.NONE)


def _known(node: Node) -> Step:
    return _within(node, Overflow.INFINITE)


def _strict(vectors: Iterable[Vector], values: Array, failing: Array | None = None) -> Vector:
    """What has these values, where no argument is null and none has failed; ``failing`` counts there, too."""
    vectors = tuple(vectors)
    null = either(*(vector.null for vector in vectors))
    if failing is not None and null is not None:
        failing = failing & ~null
    return Vector(values, null, either(*(vector.failed for vector in vectors), failing))


def _apply(node: Apply) -> Step:
    if (texts := text_test(node)) is not None:
        return texts
    if node.overload.name == "in_polygon" and (polygons := _polygons(node)) is not None:
        return polygons
    function = VECTOR_FUNCTIONS.get(node.overload)
    if function is None:
        return by_rows(node)
    constants = node.overload.constants
    args = [
        _within(arg, node.overload.tolerance(place)) for place, arg in enumerate(node.args) if place not in constants
    ]
    given = node.constants

    def run(frame: Frame) -> Vector:
        vectors = [arg(frame) for arg in args]
        values, failing = function(*(vector.values for vector in vectors), *given)
        return _strict(vectors, values, failing)

    return run


def _coerce(node: Coerce) -> Step:
    if plain(node.type) not in (INT, LONG, DOUBLE) or plain(node.arg.type) not in (INT, LONG, DOUBLE):
        return by_rows(node)
    arg, steps = _compile(node.arg), [(_OPERATIONS[op], constant) for op, constant in node.steps]
    if plain(node.type) != DOUBLE:
        return arg

    def run(frame: Frame) -> Vector:
        found = arg(frame)
        values = found.values.astype(np.float64, copy=False)
        for operate, constant in steps:
            values = operate(values, constant)
        return found._replace(values=values)

    return run


def _compare(node: Compare) -> Step:
    if (texts := compared_texts(node)) is not None:
        return texts
    left, right, compare = _known(node.left), _known(node.right), _COMPARISONS[node.op]
    for side, other, op in ((node.left, node.right, node.op), (node.right, node.left, MIRRORED[node.op])):
        if isinstance(side, Apply) and side.overload.name == "geo_distance":
            return _compared_geo(side, _known(other), op)
    if dtype_of(node.left.type) is np.object_:
        return lambda frame: _compared_objects(left(frame), right(frame), compare)

    def run(frame: Frame) -> Vector:
        a, b = left(frame), right(frame)
        return _strict((a, b), np.asarray(compare(a.values, b.values)))

    return run


def _compared_objects(a: Vector, b: Vector, compare: Callable[[Any, Any], Any]) -> Vector:
    """What is null has no order: only values are looked at."""
    absent = either(a.null, b.null, a.failed, b.failed)
    if absent is None:
        return Vector(np.asarray(compare(a.values, b.values)))
    one, other, absent = np.broadcast_arrays(a.values, b.values, absent)
    values = np.zeros(absent.shape, np.bool_)
    values[~absent] = compare(one[~absent], other[~absent])
    return _strict((a, b), values)


def _compared_geo(distance: Apply, other: Step, op: str) -> Step:
    args = [_finite(arg) for arg in distance.args]

    def run(frame: Frame) -> Vector:
        vectors, bound = [arg(frame) for arg in args], other(frame)
        values, failing = geo_compared([vector.values for vector in vectors], bound.values, _COMPARISONS[op])
        # The distance fails although the bound may be null, but not if a coordinate is.
        found = _strict(vectors, values, failing)
        return Vector(values, either(found.null, bound.null), either(found.failed, bound.failed))

    return run


def _in(node: In) -> Step:
    if (texts := in_texts(node)) is not None:
        return texts
    item, type = _known(node.item), plain(node.item.type)
    options = [as_number(value, type) for value in node.values]
    if dtype_of(type) is np.object_:
        members = frozenset(options)
        is_member = np.frompyfunc(lambda value: value in members, 1, 1)
        return lambda frame: _mapped(item(frame), lambda values: np.asarray(is_member(values), np.bool_))
    if len(options) > _FEW:
        array = np.array(options, dtype_of(type))
        return lambda frame: _mapped(item(frame), lambda values: np.isin(values, array))

    def among(values: Array) -> Array:
        found = np.zeros(values.shape, np.bool_)
        for option in options:
            found = found | (values == option)
        return found

    return lambda frame: _mapped(item(frame), among)


def _mapped(found: Vector, change: Callable[[Array], Array]) -> Vector:
    return found._replace(values=change(found.values))


def _connection(node: And | Or, decisive: bool) -> Step:
    """AND, OR: a part that decides outranks one that fails, which outranks null; their order does not count."""
    parts = [_compile(part) for part in node.args]

    def run(frame: Frame) -> Vector:
        decided: Array | None = None
        null: Bools | None = None
        failed: Bools | None = None
        for part in parts:
            found = part(frame)
            deciding = found.values if decisive else ~found.values
            for absent in (found.null, found.failed):
                if absent is not None:
                    deciding = deciding & ~absent
            decided = deciding if decided is None else decided | deciding
            null, failed = either(null, found.null), either(failed, found.failed)
        assert decided is not None
        if null is not None:
            null = null & ~decided
        if failed is not None:
            failed = failed & ~decided
        return Vector(decided if decisive else ~decided, null, failed)

    return run


def _not(arg: Step) -> Step:
    return lambda frame: _mapped(arg(frame), np.logical_not)


def _is_null(arg: Step) -> Step:
    def run(frame: Frame) -> Vector:
        found = arg(frame)
        null = np.zeros((), np.bool_) if found.null is None else found.null
        return Vector(null, None, found.failed)

    return run


def _case(node: Case) -> Step:
    arms = [(_compile(condition), _finite(result)) for condition, result in node.arms]
    return _choice(arms, _finite(node.otherwise), node.type)


def _choice(arms: list[tuple[Step, Step]], otherwise: Step, type: Type) -> Step:
    """The first of these that is true; what fails before fails the whole, what is not chosen does not count."""

    def run(frame: Frame) -> Vector:
        made = Chosen(frame.shape, type)
        for condition, result in arms:
            found = condition(frame)
            if found.failed is not None:
                made.fail(found.failed)
            if (made.open & found.holds).any():
                made.put(found.holds, result(frame))
        if made.open.any():
            made.put(np.ones((), np.bool_), otherwise(frame))
        return made.vector()

    return run


def _coalesce(node: Coalesce) -> Step:
    args = [_finite(arg) for arg in node.args]

    def run(frame: Frame) -> Vector:
        made = Chosen(frame.shape, node.type)
        for arg in args:
            found = arg(frame)
            present = np.ones((), np.bool_) if found.null is None else ~found.null
            if found.failed is not None:
                made.fail(found.failed)
            made.put(present, found)
        return made.vector(null=made.open)

    return run


def _polygons(node: Apply) -> Step | None:
    """``in_polygon`` where the corners are one column, or constant: each different polygon is read once."""
    x, y = (_finite(arg) for arg in node.args[:2])
    corners = node.args[2]
    reads = {(read.variable, read.path): read for read in outer_reads(corners)}
    if len(reads) > 1 or any(not is_text(read.type) for read in reads.values()):
        return None
    run = row_function(corners, reads)

    def on_polygons(frame: Frame) -> Vector:
        if reads:
            ((key, read),) = reads.items()
            codes, values = frame.batch(key).coded(key, read.type)
            polygons = [run(value) for value in values]
            laid = frame.laid(key, codes)
        else:
            polygons, laid = [run()], np.zeros((), np.int64)
        across, along = x(frame), y(frame)
        found = vector_of([polygon is None if polygon is not FAILED else FAILED for polygon in polygons], node.type)
        null = found.values[laid] if found.values.any() else None
        failed = None if found.failed is None else found.failed[laid]
        inside, failing = in_polygons(across.values, along.values, laid, polygons)
        return _strict((across, along, Vector(inside, null, failed)), inside, failing)

    return on_polygons
