"""Rows of tables in the contexts of a deployment, without an engine: found, put in use, and not there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from situ.event.instants import microseconds
from situ.event.lines import encode_rows
from situ.event.row import BadRow, Row
from situ.project.check import check_folder
from situ.routing.model import Subscription
from situ.sources import Table, make_table
from situ.stages.plan import Plan, compile_plan
from tests.looked_up_files import DESK, building, write_readers
from tests.project_files import write
from tests.transformations import out_of_root

PEOPLE = {"nr": ["p1", "p2"], "name": ["Ann", "Bob"]}
RATES = {
    "base": ["EUR", "EUR"],
    "quote": ["USD", "USD"],
    "rate": ["1.10", "1.20"],
    "valid_from": ["2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z"],
}
NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
LATER = datetime(2026, 11, 2, 12, tzinfo=UTC)


def plan_of(folder: Path, more: Mapping[str, str] | None = None, previous: Plan | None = None) -> Plan:
    write_readers(folder, r1=(0.0, 0.0))
    write(folder, {"situ.yaml": "name: building\n", **building("sqlite:///building.db"), **(more or {})})
    checked = check_folder(folder)
    assert checked.deployment is not None, checked.errors
    assert "INT418" not in {each.code.code for each in checked.problems}
    return compile_plan(checked.deployment, previous)


def subscribed(client: str, context: str, *filters: str, type: str = "Arrival") -> str:
    made = ", ".join(f's{number}: {{types: [{type}], where: "{where}"}}' for number, where in enumerate(filters))
    return f"version: 1\nclients: {{{client}: {{context: {context}, subscriptions: {{{made}}}}}, camera-1: {{}}}}\n"


def table(plan: Plan, source: str, cells: Mapping[str, list[str]]) -> Table:
    return make_table(plan.deployment.sources[source], cells, text=True)


def put_in_use(plan: Plan, **cells: Mapping[str, list[str]]) -> None:
    plan.interpretation.rows.tables = {name: table(plan, name, each) for name, each in cells.items()}


def row(type: str, data: dict[str, Any], *, time: datetime = NOON, received: datetime = NOON) -> Row:
    text = json.dumps(data).encode()
    at, came = microseconds(time), microseconds(received)
    return Row(65536, "hall", 1, 1, "root", came, "a", "hall", type, at, "", None, "", text)


def sighting(who: str) -> Row:
    return row("Sighting", {"who": who, "at": {"x": 1.0, "y": 2.0}})


def sale(**options: Any) -> Row:
    money = {"currency": "EUR", "amount": "10.00"}
    return row("Sale", {"product": "a", "price": money, "dynamicCost": money, "parts": [money, money]}, **options)


def delivered(plan: Plan, *rows: Row) -> list[dict[str, Any]]:
    routed = plan.routing.route(rows)
    worded = plan.interpretation.worded(rows, encode_rows(rows), routed, plan.routing)
    return [json.loads(line)["data"] for *_, line in worded.live]


def out(plan: Plan, given: Row, context: str) -> Any:
    """What becomes of a row in a context: its data, or the codes and paths of what is wrong."""
    found = out_of_root(plan.interpretation, given, context)
    if isinstance(found, BadRow):
        return [tuple(error[:3]) for error in found.errors]
    return json.loads(found.data)


def test_which_tables_are_needed_and_by_which_columns(tmp_path: Path) -> None:
    interpretation = plan_of(tmp_path).interpretation
    assert interpretation.keyed() == {
        "badges": {(("tag",), "since")},
        "cameras": {(("id",), "")},
        "faces": {(("face",), "")},
        "people": {(("nr",), "")},
        "rates": {(("base", "quote"), "valid_from")},
        "readers": {(("id",), "")},
    }
    # What is told leaves root: the tables of the ways in are not needed for that.
    assert set(interpretation.keyed(["us", "cameras", "root"])) == {"rates"}
    assert interpretation.keyed(["root"]) == {}


def test_rows_are_found_in_the_tables_in_use_now(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, {"clients/all.yaml": subscribed("desk", "desk", "name = 'Ann'")})
    put_in_use(plan, people=PEOPLE)
    assert [each["name"] for each in delivered(plan, sighting("p1"), sighting("p2"), sighting("p3"))] == ["Ann"]
    put_in_use(plan, people={"nr": ["p3", "p1"], "name": ["Ann", "Anna"]})
    assert [each["name"] for each in delivered(plan, sighting("p1"), sighting("p3"))] == ["Ann"]
    assert out(plan, sighting("p1"), "desk")["name"] == "Anna"


@pytest.mark.parametrize(("context", "expected"), [("desk", None), ("bell", "somebody")])
def test_no_row_gives_null_or_the_default(tmp_path: Path, context: str, expected: str | None) -> None:
    plan = plan_of(tmp_path)
    put_in_use(plan, people=PEOPLE)
    assert out(plan, sighting("p9"), context).get("name") == expected


def test_no_row_is_an_error_at_every_place_that_needs_it(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    put_in_use(plan, rates=RATES)
    early = sale(time=datetime(2026, 10, 1, tzinfo=UTC))
    codes = [(code, path) for code, path, _ in out(plan, early, "us")]
    assert codes == [("INT705", "price"), ("INT705", "parts[0]"), ("INT705", "parts[1]")]


def test_who_finds_no_row_is_told_the_table_the_columns_and_the_values(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    put_in_use(plan, rates=RATES)
    early = sale(time=datetime(2026, 10, 1, tzinfo=UTC))
    for _, path, message in out(plan, early, "us"):
        wanted = (
            "in the table `rates` with `base` 'EUR' and `quote` 'USD', valid at 2026-10-01T00:00:00Z by `valid_from`."
        )
        assert message.endswith(wanted), path


def test_a_table_that_is_not_there_is_a_failure_and_not_the_end(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, {"clients/all.yaml": subscribed("desk", "desk", "name = 'Ann'", "name IS NULL")})
    assert delivered(plan, sighting("p1")) == []
    [(code, path, message)] = out(plan, sighting("p1"), "desk")
    assert (code, path) == ("INT704", "name")
    assert "the table people was not read" in message


@pytest.mark.parametrize(
    ("means", "time", "received", "expected"),
    [
        ("event", NOON, LATER, "11.00"),
        ("event", LATER, NOON, "12.00"),
        ("now", NOON, LATER, "12.00"),
        ("now", LATER, NOON, "11.00"),
        ("'2026-11-01T10:00:00Z'", LATER, LATER, "11.00"),
    ],
)
def test_the_row_is_that_of_the_time_the_function_means(
    tmp_path: Path, means: str, time: datetime, received: datetime, expected: str
) -> None:
    us = building("")["contexts/us.yaml"].replace("time: event", f"time: {means}")
    plan = plan_of(tmp_path, {"contexts/us.yaml": us})
    put_in_use(plan, rates=RATES)
    found = out(plan, sale(time=time, received=received), "us")
    assert found["price"] == {"currency": "USD", "amount": expected}
    assert found["dynamicCost"] == {"currency": "EUR", "amount": "10.00"}
    assert [each["amount"] for each in found["parts"]] == [expected] * 2


def test_equal_filters_on_what_is_looked_up_are_one(tmp_path: Path) -> None:
    filters = ("name = 'Ann'", "name='Ann'", "'Ann' = name", "name = 'Bob'")
    plan = plan_of(tmp_path, {"clients/all.yaml": subscribed("desk", "desk", *filters)})
    assert len(plan.routing.wanted.filters) == 2
    put_in_use(plan, people=PEOPLE)
    routed = plan.routing.route([sighting("p1"), sighting("p2")])
    assert routed.live == [(0, "desk", "s0,s1,s2"), (1, "desk", "s3")]


def test_the_next_deployment_looks_up_in_the_same_tables_unless_its_contexts_differ(tmp_path: Path) -> None:
    first = plan_of(tmp_path)
    put_in_use(first, people=PEOPLE)
    wanted = Subscription(client="desk", name="n", types=("Arrival",), where="name = 'Bob'", context="desk")
    clients = subscribed("desk", "desk", wanted.where)
    second = plan_of(tmp_path, {"clients/all.yaml": clients}, first)
    assert [each["name"] for each in delivered(second, sighting("p1"), sighting("p2"))] == ["Bob"]
    other = DESK.replace("missing: null", "missing: {default: nobody}")
    third = plan_of(tmp_path, {"clients/all.yaml": clients, "contexts/desk.yaml": other}, second)
    assert not third.interpretation.rows.tables
    put_in_use(third, people={"nr": ["p1"], "name": ["Bob"]})
    assert [each["name"] for each in delivered(third, sighting("p1"), sighting("p2"))] == ["Bob"]
    assert out(third, sighting("p7"), "desk")["name"] == "nobody"
    assert out(second, sighting("p2"), "desk")["name"] == "Bob"
