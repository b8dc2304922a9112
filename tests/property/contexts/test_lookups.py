"""Rows that are found by an index are those that a walk over the table finds, in whatever is converted with them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from situ.contexts.lookup_tables import TableLookups
from situ.contexts.model import Context, Direction, TableLookup
from situ.contexts.transform.converter import Converter
from situ.contexts.transform.transformation import Transformation, transformations
from situ.lang.expr.runtime import FAILURES
from situ.lang.problems import Problems
from situ.lang.types.model import DATE, TIMESTAMP, Attribute
from situ.project.check import check_folder
from situ.sources import Table
from tests.looked_up_files import building
from tests.oracles import transformation as reference
from tests.project_files import write

DAY = datetime(2026, 11, 1, tzinfo=UTC)
TIMES = st.integers(0, 6).map(lambda hours: DAY + timedelta(hours=hours))
CURRENCIES = st.sampled_from(["EUR", "GBP", "JPY"])
PEOPLE = st.sampled_from(["p1", "p2", "p3"])
MONEY = st.fixed_dictionaries(
    {"currency": CURRENCIES, "amount": st.decimals(-100, 100, places=2, allow_nan=False, allow_infinity=False)}
)
RATES = st.lists(
    st.fixed_dictionaries(
        {
            "base": CURRENCIES,
            "quote": st.sampled_from(["USD", "EUR"]),
            "rate": st.decimals(0, 9, places=6, allow_nan=False, allow_infinity=False),
            "valid_from": TIMES,
        }
    ),
    unique_by=lambda row: (row["base"], row["quote"], row["valid_from"]),
    max_size=12,
)
NAMES = st.dictionaries(PEOPLE, st.sampled_from(["Ann", "Bob"])).map(
    lambda names: [{"nr": nr, "name": name} for nr, name in names.items()]
)
SALES = st.fixed_dictionaries(
    {"product": st.just("a"), "price": MONEY, "dynamicCost": MONEY, "parts": st.lists(MONEY, max_size=3)}
)
SIGHTINGS = st.fixed_dictionaries({"who": PEOPLE, "at": st.just({"x": 1.0, "y": 2.0})})


@dataclass
class Compiled:
    """A way out of root, with the tables that it looks up in."""

    context: Context
    way: Transformation
    rows: TableLookups
    converter: Converter

    @property
    def begins(self) -> list[Attribute]:
        """The columns that say from when on rows are valid."""
        lookups = [each.of for each in self.way.externals.values() if isinstance(each.of, TableLookup)]
        found = {of.as_of: of.row.attribute(of.as_of) for of in lookups if of.as_of}
        return [each for each in found.values() if each is not None]


def days(time: datetime) -> datetime:
    return DAY + 24 * (time - DAY)


@pytest.fixture(
    scope="module",
    params=[("event", TIMESTAMP), ("now", TIMESTAMP), ("'2026-11-01T03:00:00Z'", TIMESTAMP), ("event", DATE)],
)
def compiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Compiled]:
    """Ways that look up, where prices are those of one time or another, valid from an instant or from a day on."""
    time, begin = request.param
    folder: Path = tmp_path_factory.mktemp("building")
    files = building("sqlite:///building.db")
    files["contexts/us.yaml"] = files["contexts/us.yaml"].replace("time: event", f"time: {time}")
    files["sources/all.yaml"] = files["sources/all.yaml"].replace("valid_from: timestamp", f"valid_from: {begin}")
    write(folder, {"situ.yaml": "name: building\n", **files})
    checked = check_folder(folder)
    assert checked.deployment is not None, checked.errors
    made = []
    for name, type in (("us", "Sale"), ("desk", "Sighting"), ("bell", "Sighting")):
        context = checked.deployment.contexts.get(name)
        assert context is not None
        way, rows = transformations(context, Direction.OUT, Problems())[type], TableLookups()
        made.append(Compiled(context, way, rows, Converter(way, rows.finders(way))))
    return made


@given(rates=RATES, names=NAMES, sale=SALES, sighting=SIGHTINGS, time=TIMES, received=TIMES)
def test_what_is_looked_up_is_what_a_walk_over_the_table_finds(
    compiled: list[Compiled],
    rates: list[dict[str, Any]],
    names: list[dict[str, Any]],
    sale: dict[str, Any],
    sighting: dict[str, Any],
    time: datetime,
    received: datetime,
) -> None:
    (begin,) = [each.type for of in compiled for each in of.begins]
    if begin == DATE:  # an hour is a day then, also of what happens
        rates = [{**each, "valid_from": days(each["valid_from"]).date()} for each in rates]
        time, received = days(time), days(received)
    tables = {"rates": rates, "people": names}
    for each in compiled:
        way, data = each.way, sale if each.way.source.name == "Sale" else sighting
        event = {"id": "1", "source": "x", "type": way.source.name, "time": time, "received": received}
        lookups = [external.of for external in way.externals.values() if isinstance(external.of, TableLookup)]
        each.rows.tables = {
            of.source: Table(source=of.source, row=of.row, rows=tuple(tables[of.source])) for of in lookups
        }
        expected = reference.transform(each.context, Direction.OUT, way.source, event, data, tables=tables)
        try:
            made = each.converter.data(event, data)
        except FAILURES:
            faults = [(str(fault.values["path"]), fault.code.code) for fault in each.converter.faults(event, data)]
            assert faults == list(expected.faults)
        else:
            assert not expected.faults
            assert made == _bare(expected.data)


def _bare(value: Any) -> Any:
    """Without what is null, as structs are made."""
    if isinstance(value, dict):
        return {name: _bare(each) for name, each in value.items() if each is not None}
    return [_bare(each) for each in value] if isinstance(value, list) else value
