"""Tests of a column of texts against constants, in Arrow: comparisons, IN, and what LIKE is made of.

UTF-8 has the order of code points, so Arrow compares as Python does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from situ.expr.by_rows import Step
from situ.expr.tree import Apply, Compare, In, Literal, Node, Read
from situ.expr.vector_functions import TEXT_TESTS
from situ.expr.vectors import Frame, Vector
from situ.types.model import STRING, plain

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
