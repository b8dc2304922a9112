"""A Python function called for many values at once gives what it gives for each, and fails for those it fails for."""

from __future__ import annotations

import datetime as dt
import decimal
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from situ.contexts.model import Conversion
from situ.contexts.transform.function_calls import ExternalValue
from situ.lang.expr.scope import Variable
from situ.lang.expr.tree import Read
from situ.lang.types.arrow_values import from_array, to_array
from situ.lang.types.json_codec import encode
from situ.lang.types.model import (
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    DURATION,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    Attribute,
    Decimal,
    ListOf,
    Struct,
    Type,
)
from situ.stages.conversion_state import PythonFailed, PythonFunctions

CODE = """
import pyarrow as pa


def f(values):
    if any(each % 7 == 3 for each in values.to_pylist()):
        raise ValueError("three and a week")
    if any(each % 11 == 5 for each in values.to_pylist()):
        return values.slice(1)
    return pa.array([each * 2 for each in values.to_pylist()], pa.int64())
"""


def finder(functions: PythonFunctions) -> Any:
    function = Conversion(
        name="f", parameter=Variable(type=LONG), result=Variable(type=LONG), python="numbers.f", code=CODE
    )
    external = ExternalValue(variable="f", path="n", function=function, of=None, argument=Read("data", ("n",), LONG))
    return functions._finder(external)


@given(st.lists(st.integers(-1000, 1000), max_size=60))
def test_many_at_once_is_each_by_itself(values: list[int]) -> None:
    functions = PythonFunctions()
    find = finder(functions)

    def ask(value: int) -> int | None:
        try:
            found: int = find(value)
        except PythonFailed:
            return None
        return found

    with functions.together([lambda each=each: find(each) for each in values]):  # type: ignore[misc]
        foreseen = functions.calls
        together = [ask(each) for each in values]
        assert functions.calls == foreseen, "everything was asked before"
    good = [each for each in values if each % 7 != 3 and each % 11 != 5]
    assert together == [each * 2 if each in good else None for each in values]
    assert together == [ask(each) for each in values]
    bad = len(set(values)) - len(set(good))
    assert foreseen <= 1 + 2 * bad * max(len(set(values)), 2).bit_length()


SINGLE: dict[Type, st.SearchStrategy[Any]] = {
    BOOLEAN: st.booleans(),
    INT: st.integers(-(2**31), 2**31 - 1),
    LONG: st.integers(-(2**63), 2**63 - 1),
    DOUBLE: st.floats(allow_nan=False, allow_infinity=False),
    STRING: st.text(),
    BYTES: st.binary(),
    DATE: st.dates(),
    TIMESTAMP: st.datetimes(timezones=st.just(dt.UTC)),
    DURATION: st.timedeltas(dt.timedelta(days=-10_000), dt.timedelta(days=10_000)),
    Decimal(9, 2): st.integers(-(10**8), 10**8).map(lambda each: decimal.Decimal(each).scaleb(-2)),
}


def typed() -> st.SearchStrategy[tuple[Type, st.SearchStrategy[Any]]]:
    single = st.sampled_from(tuple(SINGLE.items()))

    def wider(inner: Any) -> Any:
        lists = inner.map(lambda each: (ListOf(each[0]), st.lists(st.none() | each[1], max_size=3)))
        structs = st.lists(inner, min_size=1, max_size=3).map(_struct)
        return lists | structs

    return st.recursive(single, wider, max_leaves=4)


def _struct(parts: list[tuple[Type, st.SearchStrategy[Any]]]) -> tuple[Type, st.SearchStrategy[Any]]:
    attributes = tuple(Attribute(name=f"a{place}", type=type, optional=True) for place, (type, _) in enumerate(parts))
    values = st.fixed_dictionaries({}, optional={f"a{place}": values for place, (_, values) in enumerate(parts)})
    return Struct("S", attributes), values


@given(st.data())
def test_values_go_into_arrays_and_back(data: st.DataObject) -> None:
    type, values = data.draw(typed())
    given_values = data.draw(st.lists(st.none() | values, max_size=4))
    found = from_array(to_array(given_values, type), type, len(given_values))
    shown = [[None if each is None else encode(type, each) for each in some] for some in (given_values, found)]
    assert json.dumps(shown[0]) == json.dumps(shown[1])
