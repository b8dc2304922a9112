"""What numpy does not do: an expression over columns, computed row by row as generated Python.

Over the different texts, once for each, if it depends on one column of them: names and kinds come again and again, and
polygons are few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from situ.expr.emit_python import Emitter
from situ.expr.runtime import FAILURES
from situ.expr.tree import ForEach, Node, Read, children, rebuild
from situ.expr.vectors import FAILED, Frame, Key, Vector, is_text, vector_of

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
