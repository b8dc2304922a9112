"""Generated expressions: reference, generated Python, simplified form and printed text all mean the same."""

from __future__ import annotations

import math
import random
from typing import Any

from situ.lang.expr.checker.check import check
from situ.lang.expr.emit.python import compile_test, compile_value
from situ.lang.expr.format import print_expression
from situ.lang.expr.interpret import interpret
from situ.lang.expr.runtime import FAILURES
from situ.lang.expr.simplify import simplify
from situ.lang.expr.tree import Compare, Literal, Node, Read, walk
from situ.lang.types.model import BOOLEAN, DOUBLE, ListOf, Struct, plain
from tests.expressions import ROW, Generator, make_row, row_scope
from tests.volume import cases, seeds

FAILED = "failed"


def outcome(function: Any, *args: Any) -> Any:
    try:
        return function(*args)
    except FAILURES:
        return FAILED


def agree(a: Any, b: Any) -> bool:
    return type(a) is type(b) and (a == b or repr(a) == repr(b))  # NaN inside a list that is passed on


def generated(seeds: range, *, trusted: bool = True) -> list[tuple[str, Node]]:
    """Expressions that check; a constant part that always fails is refused, which is right and happens."""
    scope, found = row_scope(trusted=trusted), []
    for seed in seeds:
        text = Generator(seed).any(random.Random(seed).randrange(1, 5))
        checked = check(text, scope)
        if checked.node is None:
            assert {problem.code.code for problem in checked.problems} <= {"X103", "X105"}, text
            continue
        found.append((text, checked.node))
    assert len(found) > 0.85 * len(seeds)
    return found


def hold_equal(seeds: range, rows: int, *, strange: bool = False) -> None:
    for text, node in generated(seeds, trusted=not strange):
        simpler = simplify(node)
        compiled, compiled_simpler = compile_value(node, ("data",)), compile_value(simpler, ("data",))
        tested = compile_test(simpler, ("data",)) if node.type == BOOLEAN else None
        dice = random.Random(text)
        for _ in range(rows):
            row = make_row(dice, strange=strange)
            expected = outcome(interpret, node, {"data": row})
            assert agree(outcome(compiled.call, row), expected), (text, row, compiled.source)
            assert agree(outcome(interpret, simpler, {"data": row}), expected), (text, print_expression(simpler), row)
            assert agree(outcome(compiled_simpler.call, row), expected), (text, compiled_simpler.source, row)
            if tested is not None:
                holds = outcome(tested.call, row)
                assert (holds == FAILED) == (expected == FAILED), (text, row)
                assert holds == FAILED or bool(holds) == (expected is True), (text, row, tested.source)


@seeds(range(225), range(100_000, 125_000))
def test_python_and_simplified_equal_the_reference(seeds: range) -> None:
    hold_equal(seeds, 8)


@seeds(range(50_000, 50_090), range(50_000, 50_600))
def test_doubles_that_nobody_checked_may_be_anything(seeds: range) -> None:
    hold_equal(seeds, 8, strange=True)


@seeds(range(3000, 3225), range(3000, 4500))
def test_printed_text_reads_back_as_the_same_tree(seeds: range) -> None:
    scope = row_scope()
    for text, node in generated(seeds):
        printed = print_expression(node)
        assert check(printed, scope).node == node, (text, printed)
        simpler = simplify(node)
        whole = isinstance(plain(simpler.type), Struct | ListOf)
        again = check(print_expression(simpler), scope, expected=None if whole else simpler.type, unit=simpler.unit)
        if again.node is None:  # simplifying can lay bare a constant that always fails, which is refused when written
            assert {problem.code.code for problem in again.problems} == {"X105"}, (text, print_expression(simpler))
            continue
        # Where a branch went away the rest may settle on a narrower type: same outcomes, not always the same tree.
        dice = random.Random(text)
        for row in (make_row(dice) for _ in range(4)):
            expected = outcome(interpret, node, {"data": row})
            assert agree(outcome(interpret, again.node, {"data": row}), expected), (
                text,
                print_expression(simpler),
                row,
            )


def neighbours(value: float) -> list[float]:
    near = [value, math.nextafter(value, math.inf), math.nextafter(value, -math.inf)]
    return [number for number in near if math.isfinite(number)]


@cases(600, 4_000)
def test_thresholds_are_exact_to_the_neighbouring_double(cases: int) -> None:
    """Where the simplified form compares with a constant, original and simplified agree at it and right beside it."""
    scope = row_scope()
    solved = 0
    for seed in range(cases):
        generator = Generator(seed)
        text = f"{generator._linear()} {generator._op()} {generator._double_literal()}"
        node = check(text, scope).tree()
        simpler = simplify(node)
        reads = {part.path[0]: part for part in walk(node) if isinstance(part, Read)}
        ((name, read),) = reads.items()
        compared = [part for part in walk(simpler) if isinstance(part, Compare)]
        bounds = [part.right.value for part in compared if isinstance(part.right, Literal)]
        solved += any(isinstance(part.left, Read) for part in compared) or not bounds
        points: list[Any] = (
            [0.0, -1.7976931348623157e308, 1.7976931348623157e308] if plain(read.type) == DOUBLE else [0]
        )
        for bound in bounds:
            points += neighbours(bound) if plain(read.type) == DOUBLE else [int(bound) + step for step in (-1, 0, 1)]
        limit = 2**31 if str(plain(read.type)) == "int" else 2**63
        for point in points:
            if isinstance(point, int) and not -limit <= point < limit:
                continue
            row = {"data": {name: point}}
            assert agree(outcome(interpret, simpler, row), outcome(interpret, node, row)), (
                text,
                print_expression(simpler),
                point,
            )
    assert solved > 0.75 * cases


@seeds(range(225), range(1500))
def test_every_attribute_kind_is_generated(seeds: range) -> None:
    used = {
        part.path[0]
        for _, node in generated(seeds)
        for part in walk(node)
        if isinstance(part, Read) and part.variable == "data"
    }
    assert used == {attribute.name for attribute in ROW.attributes}
