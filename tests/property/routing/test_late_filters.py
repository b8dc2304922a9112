"""Filters that wait for Python let through just the events that they are true of once those are converted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from situ.event.data_reader import data_reader, read_envelope
from situ.event.lines import encode_rows
from situ.event.row import Row
from situ.lang.records import replace
from situ.model import Deployment
from situ.routing.filter import Filter, read_filter
from situ.routing.model import Subscription
from situ.stages.plan import compile_plan
from tests.transformations import out_of_root
from tests.unit.contexts.test_python_functions import checked, level

ATOMS = st.sampled_from(
    (
        "depth > 4 yd",
        "depth <= 6 yd",
        "depth / 2 = 3 yd",
        "tank = 'a'",
        "tank IN ('b', 'c')",
        "at IS NULL",
        "at.lat > 0.5",
        "at.lon > 0.5",
        "exists(marks, m -> m.lat > 0.5)",
        "size(marks) > 1",
        "1 / (depth / 1 yd - 4) > 0",
    )
)


def wider(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    joined = st.tuples(inner, st.sampled_from(("AND", "OR")), inner).map(lambda each: f"({' '.join(each)})")
    return joined | inner.map(lambda each: f"NOT {each}")


POINTS = st.fixed_dictionaries({"x": st.sampled_from((0.0, 111320.0)), "y": st.sampled_from((0.0, 111320.0))})
DATA = st.fixed_dictionaries(
    {"tank": st.sampled_from("abc"), "depth": st.sampled_from((-1.0, 0.0, 1.0, 2.0, 2.5, 3.0, 4.0))},
    optional={"at": POINTS, "marks": st.lists(POINTS, max_size=3)},
)


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    found = checked(Path(tmp_path_factory.mktemp("plant"))).deployment
    assert found is not None
    return found


@given(where=st.recursive(ATOMS, wider, max_leaves=4), data=st.lists(DATA, max_size=6))
def test_a_late_filter_says_what_it_says_of_the_converted_event(
    deployment: Deployment, where: str, data: list[dict[str, Any]]
) -> None:
    wanted = Subscription(client="desk", name="all", types=("Gauge",), where=where, context="us", durable=True)
    plan = compile_plan(replace(deployment, subscriptions={wanted.id: wanted}))
    rows = [level(each, seq=number) for number, each in enumerate(data, 1)]
    worded = plan.interpretation.worded(rows, encode_rows(rows), plan.routing.route(rows), plan.routing)
    found = {index: json.loads(line)["data"] for index, _, line in worded.durable}
    assert found == expected(deployment, where, rows)


def expected(deployment: Deployment, where: str, rows: list[Row]) -> dict[int, Any]:
    """Convert everything, and ask the filter about what came of it."""
    interpretation = compile_plan(replace(deployment, subscriptions={})).interpretation
    us = deployment.contexts.by_id["us"]
    gauge = us.types.event("Gauge")
    assert gauge is not None
    limits = deployment.settings.expression_limits
    filter_ = Filter("Gauge", read_filter("desk/all", gauge, where, us.types, deployment.definitions, limits))
    read = data_reader(gauge, filter_.data, us.types)
    converted = [out_of_root(interpretation, row, "us") for row in rows]
    return {
        index: json.loads(row.data)
        for index, row in enumerate(converted)
        if isinstance(row, Row) and filter_.test(read_envelope(row), read(row.data))
    }
