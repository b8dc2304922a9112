"""Values of declared types: from JSON with all problems, and back."""

from __future__ import annotations

import decimal
import json
import math
import time
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from situ.lang.problems import SituError
from situ.lang.types.json_codec import MOST_PROBLEMS, Extra, check_value, decode, decoder, encode, encoder
from situ.lang.types.lookup import EventData
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
    Decimal,
    ListOf,
    Named,
    Struct,
    Type,
)
from situ.lang.types.table import Types
from tests.types_files import types_of

PRICE = Decimal(5, 2)


@pytest.mark.parametrize(
    ("type", "written", "value", "canonical"),
    [
        (BOOLEAN, True, True, True),
        (INT, 2**31 - 1, 2**31 - 1, 2**31 - 1),
        (INT, -(2**31), -(2**31), -(2**31)),
        (LONG, 2**63 - 1, 2**63 - 1, 2**63 - 1),
        (LONG, -(2**63), -(2**63), -(2**63)),
        (DOUBLE, 1.5, 1.5, 1.5),
        (DOUBLE, 3, 3.0, 3.0),
        (DOUBLE, -0.0, -0.0, -0.0),
        (DOUBLE, 2**70, float(2**70), float(2**70)),
        (STRING, "", "", ""),
        (STRING, "Grüße 😀\x00", "Grüße 😀\x00", "Grüße 😀\x00"),
        (BYTES, "", b"", ""),
        (BYTES, "AP8=", b"\x00\xff", "AP8="),
        (DATE, "2024-02-29", date(2024, 2, 29), "2024-02-29"),
        (DATE, "0001-01-01", date(1, 1, 1), "0001-01-01"),
        (TIMESTAMP, "2026-11-01T08:30:00Z", datetime(2026, 11, 1, 8, 30, tzinfo=UTC), "2026-11-01T08:30:00Z"),
        (TIMESTAMP, "2026-11-01t08:30:00z", datetime(2026, 11, 1, 8, 30, tzinfo=UTC), "2026-11-01T08:30:00Z"),
        (TIMESTAMP, "2026-11-01 08:30:00Z", datetime(2026, 11, 1, 8, 30, tzinfo=UTC), "2026-11-01T08:30:00Z"),
        (TIMESTAMP, "2026-11-01T08:30:00+05:30", datetime(2026, 11, 1, 3, tzinfo=UTC), "2026-11-01T03:00:00Z"),
        (TIMESTAMP, "2026-11-01T00:30:00-00:00", datetime(2026, 11, 1, 0, 30, tzinfo=UTC), "2026-11-01T00:30:00Z"),
        (TIMESTAMP, "2026-11-01T08:30:00.5Z", datetime(2026, 11, 1, 8, 30, 0, 500000, UTC),
         "2026-11-01T08:30:00.500000Z"),
        (TIMESTAMP, "2026-11-01T08:30:00.123456999Z", datetime(2026, 11, 1, 8, 30, 0, 123456, UTC),
         "2026-11-01T08:30:00.123456Z"),
        (DURATION, "PT5S", timedelta(seconds=5), "PT5S"),
        (DURATION, "PT0S", timedelta(0), "PT0S"),
        (DURATION, "P1W", timedelta(days=7), "P7D"),
        (DURATION, "P1DT2H3M4.5S", timedelta(days=1, hours=2, minutes=3, seconds=4.5), "P1DT2H3M4.5S"),
        (DURATION, "-PT90M", timedelta(minutes=-90), "-PT1H30M"),
        (DURATION, "PT0,0000019S", timedelta(microseconds=1), "PT0.000001S"),
        (PRICE, "12.5", decimal.Decimal("12.50"), "12.50"),
        (PRICE, "-999.99", decimal.Decimal("-999.99"), "-999.99"),
        (PRICE, 7, decimal.Decimal("7.00"), "7.00"),
        (PRICE, 0.1, decimal.Decimal("0.10"), "0.10"),
        (PRICE, "1.500", decimal.Decimal("1.50"), "1.50"),
        (PRICE, "-0", decimal.Decimal("0.00"), "0.00"),
        (Decimal(38, 0), "9" * 38, decimal.Decimal("9" * 38), "9" * 38),
        (Decimal(38, 38), "0." + "1" * 38, decimal.Decimal("0." + "1" * 38), "0." + "1" * 38),
        (Named("TagId", STRING), "T-1", "T-1", "T-1"),
        (ListOf(INT), [1, None, 3], [1, None, 3], [1, None, 3]),
        (ListOf(INT), [], [], []),
    ],
)  # fmt: skip
def test_values_are_read_and_written(type: Type, written: Any, value: Any, canonical: Any) -> None:
    read = decode(type, written)
    assert read == value
    assert read.__class__ is value.__class__
    if isinstance(value, float):
        assert math.copysign(1, read) == math.copysign(1, value)
    if isinstance(value, datetime):
        assert read.tzinfo is UTC
    if isinstance(value, decimal.Decimal):
        assert read.as_tuple() == value.as_tuple()
    assert encode(type, read) == canonical
    assert decode(type, encode(type, read)) == value


@pytest.mark.parametrize(
    ("type", "written", "hint"),
    [
        (BOOLEAN, "true", "without quotes"),
        (BOOLEAN, 1, "true or false"),
        (INT, 2**31, "-2147483648 to 2147483647"),
        (INT, True, "declared type"),
        (INT, 1.0, "without point"),
        (INT, "7", "without quotes"),
        (LONG, 2**63, "-9223372036854775808"),
        pytest.param(LONG, 10**5000, "range", id="long of 5000 digits"),
        (DOUBLE, "3,5", "with a point"),
        (DOUBLE, "1.234,5", "with a point"),
        (DOUBLE, "3.5", "without quotes"),
        (DOUBLE, math.inf, "finite"),
        (DOUBLE, math.nan, "finite"),
        pytest.param(DOUBLE, 10**400, "too large", id="double of 400 digits"),
        (DOUBLE, False, "declared type"),
        (STRING, 5, "double quotes"),
        pytest.param(STRING, "\ud800", "surrogate", id="surrogate"),
        (STRING, ["a"], "declared type"),
        (BYTES, "AP8", "base64"),
        (BYTES, "AP9=", "base64"),
        (BYTES, "A P8=", "base64"),
        (BYTES, "äöü=", "base64"),
        (BYTES, 5, "base64"),
        (DATE, "2026-2-1", "2026-11-01"),
        (DATE, "2026-02-30", "no such day"),
        (DATE, "٢٠٢٦-01-01", "2026-11-01"),
        (TIMESTAMP, "2026-11-01T08:30:00", "offset is missing"),
        (TIMESTAMP, "2026-11-01T08:30:60Z", "a leap second, and these end a day"),
        (TIMESTAMP, "9999-12-31T23:59:60Z", "years 1 to 9999"),
        (TIMESTAMP, "2026-11-01T24:00:00Z", "2026-11-01T08:30:00Z"),
        (TIMESTAMP, "2026-02-30T00:00:00Z", "no such"),
        (TIMESTAMP, "0001-01-01T00:00:00+01:00", "years 1 to 9999"),
        (TIMESTAMP, "9999-12-31T23:59:59-01:00", "years 1 to 9999"),
        (TIMESTAMP, "2026-11-01", "2026-11-01T08:30:00Z"),
        (TIMESTAMP, 1793520000, "2026-11-01T08:30:00Z"),
        (DURATION, "P1M", "months and years"),
        (DURATION, "P1Y", "months and years"),
        (DURATION, "P", "PT5S"),
        (DURATION, "PT", "PT5S"),
        (DURATION, "P1DT", "PT5S"),
        (DURATION, "5 s", "PT5S"),
        (DURATION, "PT99999999999999S", "292,000 years"),
        (PRICE, "1.234", "2 digits may stand after"),
        (PRICE, "1000", "3 digits may stand before"),
        (PRICE, 1000, "3 digits may stand before"),
        pytest.param(PRICE, 10**5000, "3 digits may stand before", id="decimal of 5000 digits"),
        (PRICE, "9" * 60, "3 digits may stand before"),
        (PRICE, "1,5", "with a point"),
        (PRICE, "1e2", "as text"),
        (PRICE, "NaN", "as text"),
        (PRICE, math.inf, "15 digits"),
        (PRICE, True, "declared type"),
        (Decimal(30, 20), 0.12345678901234567, "15 digits"),
        (ListOf(INT), "1", "square brackets"),
        (ListOf(INT), {"0": 1}, "square brackets"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_remedy(type: Type, written: Any, hint: str) -> None:
    [problem] = check_value(type, written)
    assert problem.code.code == "INT703"
    assert problem.values["path"] == "$"
    assert hint in problem.hint
    problem.message.encode()


ORDERS = """
    types:
      TagId(string): {}
      Line: {qty: int, tag: optional TagId}
      GiftLine(Line): {note: string}
      Money: {amount: "decimal(9,2)", currency: {type: string, default: EUR}}
    events:
      Order:
        id: string
        lines: [Line]
        first: optional Line
        total: Money
        tags: {type: "[string]", default: [a, b]}
        at: optional timestamp
    """


@pytest.fixture(scope="module")
def types() -> Types:
    return types_of(ORDERS)


def order(types: Types) -> Struct:
    found = types.event("Order")
    assert found is not None
    return found


def test_a_struct_has_its_declared_attributes_and_defaults(types: Types) -> None:
    value = decode(order(types), {"id": "7", "lines": [], "first": None, "total": {"amount": 5}}, types)
    assert value == {
        "id": "7", "lines": [], "total": {"amount": decimal.Decimal("5.00"), "currency": "EUR"}, "tags": ["a", "b"],
    }  # fmt: skip
    assert "first" not in value
    assert "at" not in value


def test_defaults_are_not_shared(types: Types) -> None:
    read = decoder(order(types), types)
    one, two = (read({"id": "7", "lines": [], "total": {"amount": 5}}).value for _ in range(2))
    one["tags"].append("c")
    assert two["tags"] == ["a", "b"]


def test_all_problems_of_an_event_come_at_once_with_their_paths(types: Types) -> None:
    value = {"id": 7, "lines": [{"qty": 1}, {"qty": "2", "tag": 5}, 3, {}], "total": {"amount": "1,5"}, "at": "today"}
    problems = check_value(order(types), value, types)
    assert [(problem.code.code, problem.values["path"]) for problem in problems] == [
        ("INT703", "id"),
        ("INT703", "lines[1].qty"),
        ("INT703", "lines[1].tag"),
        ("INT703", "lines[2]"),
        ("INT707", "lines[3].qty"),
        ("INT703", "total.amount"),
        ("INT703", "at"),
    ]
    assert problems[1].message == '`lines[1].qty` is the text "2", expected `int`.'
    assert problems[5].hint == "Numbers are written with a point, 3.5, and without quotes."


def test_a_missing_attribute_and_null_are_the_same(types: Types) -> None:
    for value in ({}, {"qty": None}):
        [problem] = check_value(types.types["Line"], value, types)
        assert str(problem) == "INT707 `qty` of type `int` is missing or null."


def test_a_value_can_be_of_a_subtype(types: Types) -> None:
    gift = {"$type": "GiftLine", "qty": 1, "note": "for you"}
    value = decode(order(types), {"id": "7", "lines": [gift], "total": {"amount": 5}}, types)
    assert value["lines"] == [gift]
    assert encode(order(types), value, types)["lines"] == [gift]
    plain = decode(types.types["Line"], {"$type": "Line", "qty": 1}, types)
    assert plain == {"qty": 1}


@pytest.mark.parametrize("named", ["Order", "GiftLin", "TagId", "", 5, ["GiftLine"], {"a": 1}])
def test_a_wrong_dynamic_type_is_refused(types: Types, named: Any) -> None:
    [problem] = check_value(order(types), {"id": "7", "lines": [{"$type": named}], "total": {"amount": 5}}, types)
    assert problem.code.code == "INT709"
    assert problem.values["path"] == "lines[0].$type"
    assert problem.values["nearest"] == (("GiftLine",) if named == "GiftLin" else ())


def test_extra_attributes_are_dropped_kept_or_refused(types: Types) -> None:
    line = types.types["Line"]
    written = {"qty": 1, "qyt": 2, "more": {"deep": [1]}}
    dropped = decoder(line, types, "drop")(written)
    assert (dropped.value, dropped.dropped) == ({"qty": 1}, (("Line", "qyt"), ("Line", "more")))
    kept = decoder(line, types, "keep")(written)
    assert kept.value == {"qty": 1, "$extra": {"qyt": 2, "more": {"deep": [1]}}}
    assert encode(line, kept.value, types) == kept.value
    assert decode(line, kept.value, types, "keep") == kept.value
    refused = decoder(line, types, "reject")(written)
    assert [str(problem) for problem in refused.problems] == [
        "INT708 `qyt` is not declared in `Line`.", "INT708 `more` is not declared in `Line`.",
    ]  # fmt: skip
    assert refused.problems[0].hint == "Did you mean `qty`?"


@pytest.mark.parametrize("extra", ["drop", "reject"])
def test_what_was_kept_elsewhere_is_extra_here(types: Types, extra: Extra) -> None:
    decoded = decoder(types.types["Line"], types, extra)({"qty": 1, "$extra": {"a": 1}})
    assert decoded.dropped == ((("Line", "$extra"),) if extra == "drop" else ())
    assert bool(decoded.problems) == (extra == "reject")


def test_kept_attributes_must_be_an_object(types: Types) -> None:
    [problem] = check_value(types.types["Line"], {"qty": 1, "$extra": 5}, types, "keep")
    assert problem.values["path"] == "$extra"


def test_problems_are_bounded(types: Types) -> None:
    value = {"id": "7", "lines": [{"qty": "x"}] * 100_000, "total": {"amount": 5}}
    assert len(check_value(order(types), value, types)) == MOST_PROBLEMS
    assert (
        len(check_value(types.types["Line"], dict.fromkeys(map(str, range(100_000))), types, "reject")) == MOST_PROBLEMS
    )


def test_decode_raises_all_problems(types: Types) -> None:
    with pytest.raises(SituError) as caught:
        decode(order(types), {}, types)
    assert [problem.code.code for problem in caught.value.problems] == ["INT707", "INT707", "INT707"]


def test_hostile_names_make_no_hostile_messages(types: Types) -> None:
    for name in ("\x1b[2J", "\ud800", "a" * 100_000, "a`b\n"):
        [problem] = check_value(types.types["Line"], {"qty": 1, name: 1}, types, "reject")
        assert problem.message.isprintable()
        assert len(problem.message) < 500
        problem.message.encode()


def test_an_encoder_gives_what_json_can_hold(types: Types) -> None:
    value = decode(
        order(types), {"id": "7", "lines": [{"qty": 1}], "total": {"amount": 5}, "at": "2026-11-01T00:00:00Z"}
    )
    written = encoder(order(types), types)(value)
    assert decode(order(types), json.loads(json.dumps(written)), types) == value
    east = datetime(2026, 11, 1, 2, tzinfo=timezone(timedelta(hours=2)))
    assert encode(TIMESTAMP, east) == "2026-11-01T00:00:00Z"


def test_data_is_decoded_by_the_type_of_its_event(types: Types) -> None:
    data = EventData(types)
    written = {"id": "7", "lines": [], "total": {"amount": "5.00", "currency": "EUR"}, "tags": []}
    for _ in range(2):
        decoded = data.decode("Order", {**written, "more": 1})
        assert decoded.dropped == (("Order", "more"),)
        assert data.encode("Order", decoded.value) == written
    assert {problem.code.code for problem in data.decode("Order", None).problems} == {"INT707"}
    with pytest.raises(KeyError):
        data.encode("Line", {})


@pytest.mark.parametrize(
    ("type", "hint"), [("Ordre", "`Order`"), ("Line", "Declare it"), ("", "Declare it"), ("\x1b", "Decl")]
)
def test_an_event_type_that_is_none_is_refused(types: Types, type: str, hint: str) -> None:
    [problem] = EventData(types).decode(type, {}).problems
    assert problem.code.code == "INT701"
    assert hint in problem.hint
    assert problem.message.isprintable()


def test_unknown_types_stay_cheap(types: Types) -> None:
    data = EventData(types)
    started = time.process_time()
    for number in range(20_000):
        assert data.decode(f"Unknown{number}", {}).problems
    assert time.process_time() - started < 5
