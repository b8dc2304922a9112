"""The examples of the function table are true, and the table is whole."""

from __future__ import annotations

import pytest

from situ.lang.expr.checker.check import check
from situ.lang.expr.emit.python import compile_value
from situ.lang.expr.functions.table import FUNCTIONS
from situ.lang.expr.interpret import interpret
from situ.lang.expr.scope import NameScope

EXAMPLES = [(function.name, text, result) for function in FUNCTIONS.values() for text, result in function.examples]


@pytest.mark.parametrize(("name", "text", "result"), EXAMPLES, ids=[f"{name}: {text}" for name, text, _ in EXAMPLES])
def test_example_of_the_table_holds(name: str, text: str, result: str) -> None:
    node, expected = check(text, NameScope()).tree(), check(result, NameScope()).tree()
    value = interpret(expected, {})
    assert interpret(node, {}) == value
    assert type(interpret(node, {})) is type(value)
    assert compile_value(node, ()).call() == value


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=lambda function: function.name)
def test_function_says_what_it_is_for(function) -> None:
    assert function.doc.endswith(".")
    assert function.overloads
    for overload in function.overloads:
        assert overload.name == function.name
        assert overload.spark
        assert overload.python
