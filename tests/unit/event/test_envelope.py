"""Events: the envelope, structured and batched JSON, what is refused, what ingress does."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

from situ.event import CloudEvent as SituCloudEvent
from situ.event import (
    JsonLimits,
    Marks,
    RefusedEvent,
    accept,
    check_time,
    decode_batch,
    decode_event,
)
from situ.event.envelope import MARKS
from situ.lang.problems import Problem, SituError
from situ.lang.records import replace
from tests.encoded_events import encode_batch, encode_event

AT = datetime(2026, 11, 1, 8, 30, 0, 250_000, tzinfo=UTC)
PLAIN: dict[str, Any] = {"specversion": "1.0", "id": "17-42", "source": "reader-7", "type": "Sighting"}
FULL = SituCloudEvent(
    id="17-42",
    source="reader-7/door",
    type="building.Sighting",
    time=AT,
    data={"who": "Zoë", "at": {"x": 1.5, "y": -2}, "tags": [None, True, "a\nb"]},
    subject="door 5",
    dataschema="https://example.org/sighting.json",
    datacontenttype="application/json",
    confidence=97.5,
    extensions={"traceparent": "00-aa", "partitionkey": "7"},
    marks=Marks(
        key="reader-7.17.42",
        ad="reader-7/seen",
        context="root@4",
        origin="us@2",
        received=AT,
        tags=3,
        epoch=12,
        bits="0f",
        parts="3:12:0f 4:12:ff",
        pos="131072",
        subs="desk/sightings",
        redelivered=True,
        imprecision="0.5",
    ),
)


def written(**changes: Any) -> str:
    return json.dumps({key: value for key, value in {**PLAIN, **changes}.items() if value != "ABSENT"})


def refused(raw: bytes | str, **options: Any) -> tuple[Problem, ...]:
    with pytest.raises(SituError) as caught:
        decode_event(raw, **options)
    return caught.value.problems


def test_an_event_comes_back_as_it_was() -> None:
    assert decode_event(encode_event(FULL)) == FULL
    assert decode_batch(encode_batch([FULL, FULL])) == (FULL, FULL)
    least = SituCloudEvent(id="1", source="a", type="T")
    assert decode_event(encode_event(least)) == least


def test_structured_json_is_compact_and_in_order() -> None:
    event = replace(FULL, marks=Marks(ad="reader-7/seen", redelivered=False), data={"b": 1, "a": "ü"}, subject=None)
    assert encode_event(event).decode() == (
        '{"specversion":"1.0","id":"17-42","source":"reader-7/door","type":"building.Sighting",'
        '"time":"2026-11-01T08:30:00.250000Z","dataschema":"https://example.org/sighting.json",'
        '"datacontenttype":"application/json","confidence":"97.5","partitionkey":"7","traceparent":"00-aa",'
        '"situad":"reader-7/seen","situredelivered":false,"data":{"b":1,"a":"ü"}}'
    )


def test_a_batch_has_one_event_a_line() -> None:
    one, two = SituCloudEvent(id="1", source="a", type="T", data="x\ny"), SituCloudEvent(id="2", source="a", type="T")
    assert encode_batch([one, two]) == b"[\n" + encode_event(one) + b",\n" + encode_event(two) + b"\n]"
    assert encode_batch([]) == b"[]"
    assert decode_batch(b"[]") == decode_batch(b" [ ]\n") == decode_batch("[\n\n]") == ()


def test_every_mark_is_written_and_read() -> None:
    assert {field for field, _ in MARKS.values()} == set(Marks.__struct_fields__)
    attributes = json.loads(encode_event(FULL))
    assert attributes.keys() >= MARKS.keys()


def test_the_official_sdk_reads_what_we_write_and_writes_what_we_read() -> None:
    theirs = JSONFormat().read(None, encode_event(FULL))
    assert isinstance(theirs, CloudEvent)
    assert (theirs.get_id(), theirs.get_source(), theirs.get_type()) == (FULL.id, FULL.source, FULL.type)
    assert (theirs.get_time(), theirs.get_data()) == (FULL.time, FULL.data)
    assert (theirs.get_subject(), theirs.get_dataschema()) == (FULL.subject, FULL.dataschema)
    assert theirs.get_extension("traceparent") == "00-aa"
    assert theirs.get_extension("situkey") == "reader-7.17.42"
    assert decode_event(JSONFormat().write(theirs)) == FULL


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"time": "2026-11-01T10:30:00.250000999+02:00"}, {"time": AT}),
        ({"time": None, "subject": None, "data": None, "other": None}, {}),
        ({"confidence": "97.5 %"}, {"confidence": 97.5}),
        ({"confidence": "0"}, {"confidence": 0.0}),
        ({"confidence": 100}, {"confidence": 100.0}),
        ({"confidence": 99.9}, {"confidence": 99.9}),
        ({"datacontenttype": "application/vnd.acme+json; charset=utf-8"},
         {"datacontenttype": "application/vnd.acme+json; charset=utf-8"}),
        ({"flag": True, "count": -5, "text": ""}, {"extensions": {"flag": "true", "count": "-5", "text": ""}}),
        ({"data": 0}, {"data": 0}),
        ({"data": []}, {"data": []}),
        ({"situmore": "x"}, {"extensions": {"situmore": "x"}}),
    ],
)  # fmt: skip
def test_attributes_are_read(attributes: dict[str, Any], expected: dict[str, Any]) -> None:
    assert decode_event(written(**attributes)) == SituCloudEvent(
        id="17-42", source="reader-7", type="Sighting", **expected
    )


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "line 1, column 1: expecting value"),
        (b"hello", "line 1, column 1: expecting value"),
        (b'{"a":1,\n "b":}', "line 2, column 6: expecting value"),
        (b'{"a":1} {"b":2}', "line 1, column 9: extra data"),
        (b"{'a':1}", "expecting property name"),
        (b'{"a":"NaN",\n"b":NaN}', "line 2, column 5: NaN is no number"),
        (b'{"a":[-Infinity]}', "-Infinity is no number"),
        (b'{"a":1e999}', "line 1, column 6: the number 1e999 is beyond the range of a double"),
        (b'{"a":' + b"9" * 5000 + b"}", "thousands of digits"),
        (b'{"a":1,"b":2,"a":3}', 'the key "a" stands twice'),
        (b'{"a":{"b":1,"b":1}}', 'the key "b" stands twice'),
        (b'{"a":"\\ud800"}', "half of a surrogate pair"),
        (b'{"a":"\\uDC00\\uD800"}', "half of a surrogate pair"),
        (b'{"\\udead":1}', "half of a surrogate pair"),
        (b'{"a":"\xff"}', "byte 7 is not UTF-8"),
        (b'{"a":"\xed\xa0\x80"}', "byte 7 is not UTF-8"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        ('{"a":1}'.encode("utf-16"), "byte 1 is not UTF-8"),
        ("\ud800", "character 1 is half of a surrogate pair"),
        (b'{"a":"b\nc"}', "invalid control character"),
        (b"\x00", "expecting value"),
    ],
)
def test_what_is_not_json_is_refused_with_the_place(raw: bytes | str, reason: str) -> None:
    [problem] = refused(raw)
    assert problem.code.code == "E701"
    assert reason in problem.message
    assert len(problem.message) < 200
    problem.message.encode()


def test_whole_surrogate_pairs_are_fine() -> None:
    assert decode_event(written(data="😀")).data == "😀"
    assert "\\ud83d" in written(data="😀")


@pytest.mark.parametrize(
    ("changes", "attributes"),
    [
        ({"id": "ABSENT", "source": "ABSENT", "type": "ABSENT", "specversion": "ABSENT"},
         ["specversion", "id", "source", "type"]),
        ({"id": "", "source": 5, "type": None, "specversion": "0.3", "time": "today"},
         ["specversion", "id", "source", "type", "time"]),
        ({"id": "a\nb"}, ["id"]),
        ({"source": "a b"}, ["source"]),
        ({"type": "a\u2028b"}, ["type"]),
        ({"time": "2026-11-01T08:30:00"}, ["time"]),
        ({"time": 1793520000}, ["time"]),
        ({"subject": ""}, ["subject"]),
        ({"dataschema": "a b"}, ["dataschema"]),
        ({"dataschema": "schemas/one.json"}, ["dataschema"]),
        ({"dataschema": "//host/one.json"}, ["dataschema"]),
        ({"datacontenttype": 5}, ["datacontenttype"]),
        ({"datacontenttype": "json"}, ["datacontenttype"]),
        ({"data_base64": "e30", "data": "ABSENT"}, ["data_base64"]),
        ({"data_base64": 5, "data": "ABSENT"}, ["data_base64"]),
        ({"data_base64": "e30=", "data": {}}, ["data_base64"]),
        ({"wide": 2**31, "low": -(2**31) - 1}, ["wide", "low"]),
        ({"Upper": "x", "under_score": "x", "": "x"}, ["Upper", "under_score", ""]),
        ({"object": {}, "list": [], "number": 1.5, "huge": 2**80}, ["object", "list", "number", "huge"]),
        ({"text": "\x07"}, ["text"]),
        ({"situtags": "3", "situredelivered": 1, "siturecv": "now", "situkey": ""},
         ["situtags", "situredelivered", "siturecv", "situkey"]),
    ],
)  # fmt: skip
def test_what_is_no_cloudevent_is_refused_by_attribute(changes: dict[str, Any], attributes: list[str]) -> None:
    problems = refused(written(**changes))
    assert {problem.code.code for problem in problems} == {"E702"}
    assert sorted(problem.values["attribute"] for problem in problems) == sorted(attributes)
    assert all(problem.hint for problem in problems)


@pytest.mark.parametrize(
    ("changes", "attribute"),
    [
        ({"datacontenttype": "text/xml", "data": "<a/>"}, "datacontenttype"),
        ({"datacontenttype": "application/octet-stream", "data_base64": "e30=", "data": "ABSENT"}, "datacontenttype"),
        ({"data_base64": "AP8=", "data": "ABSENT"}, "data_base64"),
        ({"confidence": "101"}, "confidence"),
        ({"confidence": "-1"}, "confidence"),
        ({"confidence": "high"}, "confidence"),
        ({"confidence": True}, "confidence"),
        ({"confidence": "97,5"}, "confidence"),
    ],
)  # fmt: skip
def test_a_cloudevent_that_situ_does_not_carry_is_not_said_to_be_none(changes: dict[str, Any], attribute: str) -> None:
    [problem] = refused(written(**changes))
    assert (problem.code.code, problem.values["attribute"]) == ("E706", attribute)
    assert problem.message.startswith("Situ does not carry this event: ")
    assert problem.hint


def test_what_the_specification_allows_is_read() -> None:
    event = decode_event(
        written(dataschema="urn:example:one", low=-(2**31), high=2**31 - 1, time="2016-12-31T23:59:60.5Z")
    )
    assert (event.dataschema, event.extensions) == ("urn:example:one", {"low": "-2147483648", "high": "2147483647"})
    assert event.time == datetime(2017, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC)


@pytest.mark.parametrize("content_type", ["ABSENT", "application/json", "application/vnd.plant+json; charset=utf-8"])
def test_json_in_base64_is_data_like_any_other(content_type: str) -> None:
    encoded = base64.b64encode(json.dumps({"n": 7, "s": "é"}).encode()).decode()
    event = decode_event(written(data_base64=encoded, data="ABSENT", datacontenttype=content_type))
    assert event.data == {"n": 7, "s": "é"}
    assert "data_base64" not in event.extensions
    assert json.loads(encode_event(event))["data"] == event.data


def test_what_base64_holds_is_as_bounded_as_data() -> None:
    deep = base64.b64encode(b"[" * 20_000 + b"]" * 20_000).decode()
    [problem] = refused(written(data_base64=deep, data="ABSENT"))
    assert problem.code.code == "E706"


@pytest.mark.parametrize("raw", ["[]", "5", '"text"', "null", "[1, 2]"])
def test_what_is_no_object_is_no_event(raw: str) -> None:
    [problem] = refused(raw)
    assert problem.code.code == "E702"
    assert problem.hint == "An event is a JSON object: {…}."


def test_faults_say_what_to_do() -> None:
    [binary] = refused(written(datacontenttype="image/png"))
    assert "bytes as base64 text" in binary.hint
    [time] = refused(written(time="2026-11-01T08:30:00"))
    assert "offset is missing" in time.hint
    [missing] = refused(written(id="ABSENT"))
    assert missing.message == "This is no CloudEvent: `id` is missing."


def test_names_in_messages_are_harmless() -> None:
    [problem] = refused(written(**{"\x1b[2J" + "a" * 10_000: "x"}))
    assert len(problem.message) < 300
    assert problem.message.isprintable()
    assert len(refused(written(**{f"A{i}": "x" for i in range(10_000)}))) == 100


def test_size_and_depth_have_limits() -> None:
    limits = JsonLimits(event=1000, batch=5000, events=3, depth=5)
    assert decode_event(written(data="x" * 900), limits=limits)
    [large] = refused(written(data="x" * 1000), limits=limits)
    assert (large.code.code, large.values["most"]) == ("E704", 1000)
    [wide] = refused(written(data="é" * 500).encode().decode("unicode-escape"), limits=limits)
    assert wide.code.code == "E704"
    assert decode_event(written(data=[[[["{[{["] * 3]]]), limits=limits)
    [deep] = refused(written(data=[[[[[]]]]]), limits=limits)
    assert (deep.code.code, deep.values["most"]) == ("E704", 5)
    for deepest in ("[" * 1_000_000, '{"a":' * 150_000, "[" * 100_000 + "]" * 100_000):
        assert refused(deepest)[0].code.code == "E704"
    assert [type(each) for each in decode_batch(encode_batch([FULL] * 3), limits=JsonLimits(events=3))] == [
        SituCloudEvent
    ] * 3
    [many] = decode_batch(encode_batch([FULL] * 4), limits=JsonLimits(events=3))
    assert isinstance(many, RefusedEvent)
    assert many.problems[0].values["what"] == "events in a batch"
    [heavy] = decode_batch(encode_batch([FULL] * 4), limits=JsonLimits(batch=1000))
    assert isinstance(heavy, RefusedEvent)
    one_heavy = decode_batch(encode_batch([FULL, replace(FULL, data="x" * 2000), FULL]), limits=JsonLimits(event=1500))
    assert [type(each) for each in one_heavy] == [SituCloudEvent, RefusedEvent, SituCloudEvent]


@pytest.mark.parametrize("indent", [None, 0, 1, 4])
@pytest.mark.parametrize("separator", [",", ", ", ",\n"])
def test_a_batch_may_be_written_in_any_way(indent: int | None, separator: str) -> None:
    data = {"a": [{"b": 1}, {"c": "],\n[{"}], "d": {}}
    events = [{**PLAIN, "id": str(number), "data": data} for number in range(3)]
    text = json.dumps(events, indent=indent, separators=(separator, ":"))
    found = decode_batch(text)
    assert [each.id for each in found if isinstance(each, SituCloudEvent)] == ["0", "1", "2"]
    assert all(isinstance(each, SituCloudEvent) and each.data == data for each in found)


BAD = [
    ("{", "E701"),
    ("nonsense", "E701"),
    ("", "E701"),
    ('{"a":NaN}', "E701"),
    ('{"specversion":"1.0","specversion":"1.0"}', "E701"),
    ('{"id":"1"}', "E702"),
    ("5", "E702"),
    ('{"data":' + "[" * 100 + "]" * 100 + "}", "E704"),
]


@pytest.mark.parametrize(("bad", "code"), BAD)
def test_a_bad_event_in_a_batch_spoils_no_other(bad: str, code: str) -> None:
    good = [encode_event(replace(FULL, id=str(number))).decode() for number in range(3)]
    body = "[\n" + ",\n".join([good[0], bad, good[1], good[2]]) + "\n]"
    found = decode_batch(body)
    assert [each.id if isinstance(each, SituCloudEvent) else "refused" for each in found] == ["0", "refused", "1", "2"]
    assert isinstance(found[1], RefusedEvent)
    assert found[1].original == bad
    assert found[1].problems[0].code.code == code
    if bad != "{":  # without lines, nothing says where an object that is not closed ends
        assert decode_batch(body.replace("\n", " "))[0] == found[0]
        assert [type(each) for each in decode_batch(body.replace("\n", " "))] == [
            SituCloudEvent,
            RefusedEvent,
            SituCloudEvent,
            SituCloudEvent,
        ]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("", "E701"),
        ("{}", "E702"),
        ("5", "E702"),
        ("[1", "E701"),
        ("[{]", "E701"),
        ("[] []", "E701"),
        ("\ufeff[]", "E701"),
    ],
)
def test_what_is_no_batch_is_refused_as_a_whole(body: str, code: str) -> None:
    [found] = decode_batch(body)
    assert isinstance(found, RefusedEvent)
    assert found.original == body
    assert found.problems[0].code.code == code


def test_hostile_batches_take_no_time() -> None:
    for body in ('\\"' * 500_000, "[" + '"\\' * 500_000, "[" + "[]," * 300_000, "[\n{" + "},\n{" * 200_000 + "}\n]"):
        assert any(isinstance(each, RefusedEvent) for each in decode_batch(body))


def test_a_time_too_far_ahead_is_refused() -> None:
    ahead = timedelta(minutes=5)
    assert check_time(FULL, AT - ahead, ahead) is None
    assert check_time(replace(FULL, time=None), AT, ahead) is None
    problem = check_time(FULL, AT - ahead - timedelta(microseconds=1), ahead)
    assert problem is not None
    assert problem.code.code == "E703"
    assert problem.message == (
        "The event says 2026-11-01T08:30:00.250000Z, but was received at 2026-11-01T08:25:00.249999Z, "
        "more than PT5M before that."
    )


def test_ingress_lets_nobody_speak_for_another() -> None:
    sent = written(
        situad="desk/news", situkey="forged", siturecv="junk", situtags=7, imprecision="0", other="x", situnew="y"
    )
    accepted = accept(decode_event(sent, marked=False), client="desk", received=AT)
    assert accepted.dropped == ("imprecision", "situkey", "situnew", "siturecv", "situtags")
    event = accepted.event
    assert event.marks == Marks(ad="desk/news", received=AT)
    assert event.extensions == {"other": "x"}
    assert event.time == AT
    assert event.source == "desk/reader-7"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("desk", "desk"),
        ("desk/a", "desk/a"),
        ("deskother", "desk/deskother"),
        ("urn:x", "desk/urn:x"),
        ("Desk", "desk/Desk"),
    ],
)
def test_a_source_belongs_to_its_client(source: str, expected: str) -> None:
    event = SituCloudEvent(id="1", source=source, type="T", time=AT)
    assert accept(event, client="desk", received=AT + timedelta(1)).event == SituCloudEvent(
        id="1", source=expected, type="T", time=AT, marks=Marks(received=AT + timedelta(1))
    )


@pytest.mark.parametrize(
    ("value", "text"), [(97.5, "97.5"), (97.0, "97"), (0.0, "0"), (1e-7, "0.0000001"), (100.0, "100")]
)
def test_confidence_is_written_as_a_plain_number(value: float, text: str) -> None:
    raw = encode_event(SituCloudEvent(id="1", source="a", type="T", confidence=value))
    assert json.loads(raw)["confidence"] == text
    assert decode_event(raw).confidence == pytest.approx(value, abs=0, rel=1e-12)
