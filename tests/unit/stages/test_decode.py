"""Intake, stamp, lines, dead letters: what becomes of single messages."""

from __future__ import annotations

import base64
import json
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from situ.event import decode_event
from situ.event.instants import instant_at, microseconds, print_instant, read_instant
from situ.event.lines import dead_client, dead_letter, decode_line, encode_row, encode_rows
from situ.event.message import join_lines
from situ.event.row import BadRow, Origin, Row
from situ.lang.types.lookup import EventData
from situ.lang.types.model import DOUBLE, INT, POINT, STRING, TIMESTAMP, Attribute, Struct
from situ.lang.types.scalars import print_timestamp, read_timestamp
from situ.lang.types.table import Types
from situ.routing import Advertisement
from situ.stages.decode import EventDecoder
from situ.stages.stamp import AdvertisementCheck
from tests.oracles.arrow_rows import ROW_SCHEMA, arrow_to_rows, rows_to_arrow

SEEN = Struct(
    "Seen",
    (
        Attribute(name="tag", type=STRING),
        Attribute(name="at", type=POINT, optional=True),
        Attribute(name="class", type=INT, default=3),
    ),
)
TRACKED = Struct("Tracked", (*SEEN.attributes, Attribute(name="until", type=TIMESTAMP)), (SEEN,))
OTHER = Struct("Other", (Attribute(name="x", type=DOUBLE),))
TYPES = Types(
    types={each.name: each for each in (SEEN, TRACKED, OTHER)}, events=frozenset({"Seen", "Tracked", "Other"})
)
RECEIVED = microseconds(read_timestamp("2026-11-15T10:00:00Z"))
ORIGIN = Origin(client="reader-7", incarnation=3, seq=41, received=RECEIVED, pos=7 * 65_536)


def intake(**settings: Any) -> EventDecoder:
    return EventDecoder(TYPES, **{"extra": "drop", "ahead": timedelta(minutes=5), "limit": 2000, **settings})


def event(type: str = "Seen", data: Any = None, **attributes: Any) -> bytes:
    whole = {"specversion": "1.0", "type": type, **attributes, "data": data if data is not None else {"tag": "T1"}}
    return json.dumps(whole, separators=(",", ":")).encode()


def one(line: bytes, **settings: Any) -> Row | BadRow:
    (found,) = intake(**settings).decode(join_lines([line]), ORIGIN)
    return found


def row(line: bytes, **settings: Any) -> Row:
    found = one(line, **settings)
    assert isinstance(found, Row), found
    return found


def bad(line: bytes, **settings: Any) -> BadRow:
    found = one(line, **settings)
    assert isinstance(found, BadRow), found
    return found


def test_what_is_left_out_is_filled_in() -> None:
    found = row(event())
    assert found == Row(
        pos=7 * 65_536,
        client="reader-7",
        incarnation=3,
        seq=41,
        context="root",
        recv=RECEIVED,
        id="3-41",
        source="reader-7",
        type="Seen",
        time=RECEIVED,
        ad="",
        confidence=None,
        ext="",
        data=b'{"tag":"T1","class":3}',
    )


def test_what_is_said_is_kept() -> None:
    found = row(
        event(
            "Tracked",
            {"until": "2026-11-15T12:00:00.5+02:00", "tag": "é", "at": {"y": 2, "x": 1}, "more": 1, "class": None},
            id="a b",
            source="door",
            time="2026-11-15T09:59:59.25Z",
            confidence="97.5 %",
            subject="room",
            situad="reader-7/seen",
            situpos="99",
            color="red",
        )
    )
    assert (found.id, found.source, found.ad, found.confidence) == ("a b", "reader-7/door", "reader-7/seen", 97.5)
    assert found.time == RECEIVED - 750_000
    assert found.ext == '"subject":"room","color":"red"'
    assert found.data.decode() == ('{"tag":"é","at":{"x":1.0,"y":2.0},"class":3,"until":"2026-11-15T10:00:00.500000Z"}')


def test_places_count_on_past_what_is_bad() -> None:
    found = intake().decode(join_lines([event(), b"{", event(data={}), event(id="last")]), ORIGIN)
    assert [type(each) for each in found] == [Row, BadRow, BadRow, Row]
    assert [each.seq for each in found] == [41, 42, 43, 44]
    assert [each.pos - ORIGIN.pos for each in found] == [0, 1, 2, 3]
    assert found[-1].id == "last"  # type: ignore[union-attr]  # a row, as was seen


@pytest.mark.parametrize(
    ("line", "codes"),
    [
        (b'{"a":NaN}', ["E701"]),
        (b'{"specversion":"1.0","type":"Seen","type":"Seen","data":{"tag":"x"}}', ["E701"]),
        (event(data=[]).replace(b"[]", b'{"tag":"x","tag":"y"}'), ["E701"]),
        (event(data=[]).replace(b"[]", b'{"class":1,"tag":"\\u0022\\u0022","class":2}'), ["E701"]),
        (b'{"type":"Seen","data":{"tag":"x"}}', ["E702"]),
        (event(id=7), ["E702"]),
        (event(time="2026-11-15T10:05:00.000001Z"), ["E703"]),
        (event(data={"x": [[[[[]]]]] * 0 + [[]]}).replace(b"[[]]", b"[" * 70 + b"]" * 70), ["E704"]),
        (event("Sean"), ["INT701"]),
        (event(data={"tag": 5, "at": {"x": "1"}}), ["INT703", "INT703", "INT707"]),
        (event(data={"tag": "x", "$type": "Other"}), ["INT709"]),
        (event(data={"tag": "x" * 2000}), ["R007"]),
    ],
)
def test_bad_events_say_why(line: bytes, codes: list[str]) -> None:
    found = bad(line)
    assert [code for code, *_ in found.errors] == codes
    assert all(message and hint for _, _, message, hint in found.errors)
    assert line.startswith(found.original)


def test_an_event_just_ahead_is_taken() -> None:
    assert row(event(time="2026-11-15T10:05:00Z")).time == RECEIVED + 300_000_000


def test_undeclared_attributes_are_dropped_kept_or_refused() -> None:
    line = event(data={"tag": "x", "more": {"n": 2**70}})
    assert row(line).data == b'{"tag":"x","class":3}'
    assert json.loads(row(line, extra="keep").data) == {"tag": "x", "class": 3, "$extra": {"more": {"n": 2**70}}}
    assert bad(line, extra="reject").errors[0][:2] == ("INT708", "more")


@pytest.mark.parametrize("body", [b"", b"{}", b"[1", b"\xff", b"[\n\xff\n]", b'["', b"null"])
def test_a_body_that_is_no_batch_is_one_bad_event(body: bytes) -> None:
    (found,) = intake().decode(body, ORIGIN)
    assert isinstance(found, BadRow)
    assert found.errors[0][0] in ("E701", "E702")
    assert found.original == body


def test_a_batch_may_be_empty_or_written_over_many_lines() -> None:
    assert intake().decode(b"[]", ORIGIN) == []
    events = [json.loads(event(id=str(number))) for number in range(3)]
    body = json.dumps(events, indent=2).encode()
    assert [each.id for each in intake().decode(body, ORIGIN) if isinstance(each, Row)] == ["0", "1", "2"]


def test_too_many_events_are_one_bad_message() -> None:
    (found,) = intake().decode(join_lines([b"{}"] * 65_537), ORIGIN)
    assert isinstance(found, BadRow)
    assert found.errors[0][0] == "E704"
    assert (len(found.original), found.size) == (2000, 65_537 * 4 + 2)


def test_a_message_over_the_limit_of_one_event_holds_good_events() -> None:
    found = intake(limit=200).decode(join_lines([event(id=str(number)) for number in range(20)]), ORIGIN)
    assert [each.id for each in found if isinstance(each, Row)] == [str(number) for number in range(20)]


def test_a_type_deeper_than_events_may_be_is_read_all_the_same() -> None:
    deep = OTHER
    for number in range(70):
        deep = Struct(f"L{number}", (Attribute(name="in", type=deep, optional=True),))
    types = Types(types={"Deep": Struct("Deep", deep.attributes)}, events=frozenset({"Deep"}))
    reader = EventDecoder(types, extra="drop", ahead=timedelta(0), limit=10_000)
    value: Any = {}
    for _ in range(60):
        value = {"in": value}
    (found,) = reader.decode(join_lines([event("Deep", value)]), ORIGIN)
    assert isinstance(found, Row)
    (found,) = reader.decode(join_lines([event("Deep", {"in": {"in": {"in": {"in": value}}}})]), ORIGIN)
    assert isinstance(found, BadRow)
    assert found.errors[0][0] == "E704"


# ── stamp ─────────────────────────────────────────────────────────────────────────────────────────


def stamp(*ads: tuple[str, str]) -> AdvertisementCheck:
    declared = [Advertisement(client=id.split("/")[0], name=id.split("/")[1], type=type) for id, type in ads]
    return AdvertisementCheck(TYPES, {each.id: each for each in declared})


def test_the_only_advertisement_that_fits_is_found() -> None:
    known = stamp(("reader-7/a", "Seen"), ("reader-7/b", "Other"), ("other/c", "Seen"))
    assert known.stamp(row(event("Seen"))).ad == "reader-7/a"
    assert known.stamp(row(event("Tracked", {"tag": "x", "until": "2026-11-15T10:00:00Z"}))).ad == "reader-7/a"
    assert known.stamp(row(event("Other", {"x": 1}))).ad == "reader-7/b"


@pytest.mark.parametrize(
    ("ads", "ad", "code", "words"),
    [
        ([("reader-7/a", "Seen")], "other/c", "R002", "no advertisement `other/c`"),
        ([("reader-7/a", "Seen"), ("other/c", "Seen")], "other/c", "R002", "no advertisement `other/c`"),
        ([("reader-7/a", "Tracked")], "", "R002", "not advertised"),
        ([("reader-7/a", "Seen"), ("reader-7/b", "Seen")], "", "R002", "several"),
        ([("reader-7/a", "Tracked")], "reader-7/a", "R003", "advertises `Tracked`"),
        ([], "reader-7/a", "R002", "no advertisement"),
    ],
)
def test_what_was_not_advertised_is_refused(ads: list[tuple[str, str]], ad: str, code: str, words: str) -> None:
    sent = row(event("Seen", **({"situad": ad} if ad else {})))
    for _ in range(2):  # the second answer is remembered
        found = stamp(*ads).stamp(sent)
        assert isinstance(found, BadRow)
        ((found_code, _, message, hint),) = found.errors
        assert (found.stage, found_code) == ("stamp", code)
        assert words in message
        assert hint
        assert json.loads(found.original)["data"] == {"tag": "T1", "class": 3}


def test_nobody_publishes_what_only_situ_does() -> None:
    known = stamp(("reader-7/a", "situ.loss"))
    sent = row(event("situ.loss", {"client": "x", "incarnation": 1, "from_seq": 1, "to_seq": 2, "reason": "none"}))
    found = known.stamp(sent)
    assert isinstance(found, BadRow)
    assert "only Situ" in found.errors[0][2]


def test_policies_publish_situations_and_what_their_actions_say() -> None:
    known = AdvertisementCheck(TYPES, {}, {"reader-7": frozenset({"situ.loss"}), "night-watch": frozenset({"Seen"})})
    sent = row(event("situ.loss", {"client": "x", "incarnation": 1, "from_seq": 1, "to_seq": 2, "reason": "none"}))
    assert known.stamp(sent) is sent
    assert isinstance(known.stamp(row(event())), BadRow)


# ── lines ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_line_is_a_cloudevent_with_marks_and_its_position_last() -> None:
    sent = row(event(id='a"b', confidence=50, color="red", situad="reader-7/a", time="2026-11-15T09:00:00Z"))
    line = encode_row(sent)
    assert list(json.loads(line)) == [
        "specversion", "color", "id", "source", "type", "time", "confidence",
        "situkey", "situad", "siturecv", "data", "situpos",
    ]  # fmt: skip
    read = decode_event(line)
    assert (read.id, read.confidence, read.extensions, read.marks.key) == (
        'a"b',
        50.0,
        {"color": "red"},
        "reader-7.3.41",
    )
    assert (read.marks.pos, read.marks.ad, read.marks.received) == (str(sent.pos), "reader-7/a", instant_at(RECEIVED))
    assert decode_line(line) == sent


def test_a_line_without_position_gets_the_readers() -> None:
    line = encode_row(row(event())).replace(b',"situpos":"458752"', b"")
    assert b"situpos" not in line
    assert decode_line(line, pos=5).pos == 5


def test_a_line_is_read_with_what_a_delivery_puts_before() -> None:
    for sent in (row(event(id="a")), row(event(id="a", subject='x,"id":', color="red"))):
        line = encode_row(sent)
        assert decode_line(b'{"situsubs":"all,some",' + line[1:]) == decode_line(line) == sent


def test_a_line_keeps_another_context() -> None:
    sent = row(event())
    sent.context = "us@2"
    assert decode_line(encode_row(sent)) == sent


def test_rows_without_any_are_a_batch_of_none() -> None:
    assert rows_to_arrow([]).schema == ROW_SCHEMA
    assert arrow_to_rows(rows_to_arrow([])) == []


@pytest.mark.parametrize(
    "text",
    ["2026-11-15T10:00:00Z", "2026-11-15T10:00:00.000001Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"],
)
def test_instants_read_back(text: str) -> None:
    time = read_instant(text)
    assert time == microseconds(read_timestamp(text))
    assert print_instant(time) == text == print_timestamp(instant_at(time))


@pytest.mark.parametrize(
    "text", ["", "2026-11-15T10:00:00+00:00", "2026-11-15T10:00:00.Z", "2026-11-15T10:00:00.\u0661Z"]
)
def test_unusual_instants_are_left_to_others(text: str) -> None:
    assert read_instant(text) is None


# ── dead letters ──────────────────────────────────────────────────────────────────────────────────


def test_a_dead_letter_says_what_happened() -> None:
    failed = bad(event(data={"tag": 5, "class": "x"}, situad="reader-7/a"))
    line = dead_letter(failed, RECEIVED + 5)
    assert dead_letter(failed, RECEIVED + 5) == line
    letter = decode_line(line)
    assert (letter.type, letter.id, letter.source) == (
        "situ.deadletter",
        "reader-7.3.41.decode",
        "dead-reader-7/decode",
    )
    assert (letter.client, letter.key, letter.time) == ("dead-reader-7", "dead-reader-7.3.41", RECEIVED + 5)
    data = json.loads(letter.data)
    assert (data["code"], data["stage"], data["path"], data["key"]) == ("INT703", "decode", "tag", "reader-7.3.41")
    assert (data["ad"], data["context"]) == ("reader-7/a", "root")
    assert json.loads(data["original"])["data"] == {"tag": 5, "class": "x"}
    assert data["others"] == ['INT703: `class` is the text "x", expected `int`.']
    assert "encoding" not in data


def test_a_dead_letter_is_an_event_of_its_type() -> None:
    for failed in (bad(event(data={"tag": 5})), bad(b'{"\xff"}'), bad(event(data={"tag": "x" * 3000}))):
        letter = decode_line(dead_letter(failed, RECEIVED))
        known = EventData(TYPES, "reject")
        decoded = known.decode("situ.deadletter", json.loads(letter.data))
        assert not decoded.problems
        assert msgspec.json.encode(known.encode("situ.deadletter", decoded.value)) == letter.data


def test_a_dead_letter_of_what_is_no_text_is_base64() -> None:
    data = json.loads(decode_line(dead_letter(bad(b'{"\xff"}'), RECEIVED)).data)
    assert data["encoding"] == "base64"
    assert base64.b64decode(data["original"]) == b'{"\xff"}'


def test_a_dead_letter_of_a_large_event_holds_its_beginning() -> None:
    line = event(data={"tag": "x" * 100_000})
    data = json.loads(decode_line(dead_letter(bad(line), RECEIVED)).data)
    assert data["size"] == len(line)
    assert data["original"] == line[: 64 * 1024].decode()


def test_dead_letters_of_long_names_have_a_client_of_their_own() -> None:
    names = {dead_client("x" * length) for length in range(1, 65)}
    assert len(names) == 64
    assert max(map(len, names)) <= 64


def test_tables_know_the_events_of_situ() -> None:
    assert TYPES.event("situ.deadletter") is not None
    assert TYPES.event("situ.loss") is not None
    assert "situ.deadletter" not in TYPES.as_json()["types"]
    assert "situ.deadletter" not in TYPES.events


def test_many_lines_are_written_as_each_is_alone() -> None:
    rows = [
        Row(
            pos=number,
            client="p",
            incarnation=1,
            seq=number,
            context="us@1" if number % 2 else "root",
            recv=number // 3,
            id=f'a"\n{number}',
            source="p",
            type="T",
            time=number * 1_000_000,
            ad="",
            confidence=97.5 if number % 3 == 0 else None,
            ext='"subject":"x\\ny"' if number % 4 == 0 else "",
            data=b'{"a":"\\n"}',
        )
        for number in range(20)
    ]
    assert encode_rows(rows) == [encode_row(row) for row in rows]
    assert encode_rows([]) == []
