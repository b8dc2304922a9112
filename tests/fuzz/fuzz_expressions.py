"""Any text as an expression: refused in our words, or read, simplified, printed, emitted and evaluated alike.

Run as ``python tests/fuzz/fuzz_expressions.py -max_total_time=60 CORPUS``.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import atheris

sys.path.insert(0, str(Path(__file__).parents[2]))

with atheris.instrument_imports(include=["situ"]):
    from situ.lang.expr.checker.check import check
    from situ.lang.expr.emit.python import compile_value
    from situ.lang.expr.emit.spark import emit_spark
    from situ.lang.expr.format import print_expression
    from situ.lang.expr.interpret import interpret
    from situ.lang.expr.runtime import FAILURES
    from situ.lang.expr.simplify import simplify
    from situ.lang.problems import SituError

from tests.expressions import make_row, row_scope
from tests.fuzz.harness import WORDS, fuzz

SCOPE = row_scope()
ROWS = [make_row(random.Random(n)) for n in range(3)]


def text_of(data: bytes) -> str:
    """Half of the inputs are words of the language in any order, half are whatever the bytes say."""
    provider = atheris.FuzzedDataProvider(data)
    if provider.ConsumeBool():
        return " ".join(provider.PickValueInList(WORDS) for _ in range(provider.ConsumeIntInRange(1, 60)))
    return str(provider.ConsumeUnicode(2000))


def outcome(function: Any, *args: Any) -> str:
    try:
        return repr(function(*args))
    except FAILURES:
        return "failed"


def target(data: bytes) -> None:
    text = text_of(data)
    checked = check(text, SCOPE)
    if checked.node is None:
        assert checked.problems, text
        assert all(problem.message and problem.location for problem in checked.problems), text
        return
    node = checked.node
    try:
        simpler = simplify(node)
        printed = print_expression(node)
        emit_spark(node)
        functions = [compile_value(node, ("data",)), compile_value(simpler, ("data",))]
    except SituError:
        return
    assert check(printed, SCOPE).node == node, (text, printed)
    for row in ROWS:
        expected = outcome(interpret, node, {"data": row})
        for function in functions:
            assert outcome(function.call, row) == expected, (text, function.source, row)


if __name__ == "__main__":
    fuzz(target)
