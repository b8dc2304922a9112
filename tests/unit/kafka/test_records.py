"""Records as events and events as records."""

from __future__ import annotations

import json
from typing import Any

import pytest

from situ.event.message import TOPICS, client_of, lane_of, split_lines
from situ.kafka.connection import KafkaAddress, group_of
from situ.kafka.formats import RecordWriter
from situ.kafka.positions import Extent, first_offset, taken_of, within
from situ.kafka.records import EVENTS, KafkaRecord, RecordReader, incarnation_of, pack_records
from situ.lang.problems import SituError
from situ.routing.topics import TopicSource, TopicTarget

PLAIN = TopicSource(topics=("t",), format="json", type="Reading", time="at", id="n", source="by", key="sensor")
Headers = tuple[tuple[str, bytes | None], ...]


def _record(value: bytes | None, offset: int = 0, headers: Headers = (), key: bytes | None = b"s1") -> KafkaRecord:
    return KafkaRecord("t", 3, offset, key, value, headers, 1_700_000_000_123)


def _event(source: TopicSource, record: KafkaRecord) -> Any:
    return json.loads(RecordReader(source).line(record))


def test_a_record_is_the_data_of_an_event() -> None:
    value = b'{"at": "2026-01-01T00:00:00Z", "n": 7,\n "by": "gate", "value": 1.50}'
    assert _event(PLAIN, _record(value)) == {
        "specversion": "1.0",
        "type": "Reading",
        "time": "2026-01-01T00:00:00Z",
        "id": "7",
        "source": "gate",
        "data": {"sensor": "s1", "at": "2026-01-01T00:00:00Z", "n": 7, "by": "gate", "value": 1.5},
    }


def test_numbers_are_passed_on_as_they_were_written() -> None:
    line = RecordReader(TopicSource(topics=("t",), format="json", type="R")).line(_record(b'{"a": 1.50, "b": 1e400}'))
    assert b'"data":{"a": 1.50, "b": 1e400}' in line


def test_without_a_field_the_time_is_that_of_the_record() -> None:
    source = TopicSource(topics=("t",), format="json", type="R")
    assert _event(source, _record(b"{}"))["time"] == "2023-11-14T22:13:20.123000Z"
    source = TopicSource(topics=("t",), format="json", type="R", time="at")
    assert _event(source, _record(b'{"at": 5}'))["time"] == "1970-01-01T00:00:00.005000Z"


def test_what_the_record_says_itself_is_not_replaced_by_its_key() -> None:
    value = b'{"at": 1, "n": 1, "by": "x", "sensor": "own"}'
    assert _event(PLAIN, _record(value))["data"]["sensor"] == "own"
    assert "sensor" not in _event(PLAIN, _record(b'{"at": 1, "n": 1, "by": "x"}', key=None))["data"]


@pytest.mark.parametrize(
    ("value", "code", "says"),
    [
        (b"garbage", "E760", "no JSON object"),
        (b"[1]", "E760", "no JSON object"),
        (b"", "E760", "no JSON object"),
        (None, "E760", "no value"),
        (b"\xff\xfe", "E760", "UTF-8"),
        (b'{"at": 1},\n{"at": 2}', "E760", "no JSON object"),
        (b'{"n": 1, "by": "x"}', "E763", "`at`"),
        (b'{"at": true, "n": 1, "by": "x"}', "E763", "neither a text nor milliseconds"),
        (b'{"at": 99999999999999999999, "n": 1, "by": "x"}', "E763", "neither a text nor milliseconds"),
        (b'{"at": 1, "n": [], "by": "x"}', "E763", "`n`"),
        (b'{"at": 1, "n": 1}', "E763", "`by`"),
    ],
)
def test_what_is_no_event_is_refused(value: bytes | None, code: str, says: str) -> None:
    with pytest.raises(SituError) as refused:
        RecordReader(PLAIN).line(_record(value))
    assert refused.value.code == code
    assert says in str(refused.value)


def test_cloudevents_in_binary_mode() -> None:
    headers: Headers = (
        ("ce_specversion", b"1.0"),
        ("ce_type", b"Reading"),
        ("ce_id", b"1"),
        ("content-type", b"application/json; charset=utf-8"),
        ("other", b"x"),
    )
    source = TopicSource(topics=("t",))
    assert _event(source, _record(b'{"value":\r\n 1}', headers=headers)) == {
        "specversion": "1.0",
        "type": "Reading",
        "id": "1",
        "data": {"value": 1},
    }
    assert "data" not in _event(source, _record(None, headers=headers))
    for wrong, says in ((b"nope", "not JSON"), (b'{"a":1} x', "not JSON")):
        with pytest.raises(SituError, match=says):
            RecordReader(source).line(_record(wrong, headers=headers))
    with pytest.raises(SituError, match="text/xml"):
        RecordReader(source).line(_record(b"<a/>", headers=(("ce_specversion", b"1.0"), ("content-type", b"text/xml"))))


def test_cloudevents_in_structured_mode() -> None:
    source = TopicSource(topics=("t",))
    value = b'{"specversion": "1.0",\n"type": "Reading", "data": {"value": 1}}'
    headers: Headers = (("content-type", b"application/cloudevents+json"), ("ce_specversion", b"1.0"))
    assert _event(source, _record(value, headers=headers)) == json.loads(value)
    assert b"\n" not in RecordReader(source).line(_record(value))
    with pytest.raises(SituError, match="no value"):
        RecordReader(source).line(_record(None))


def _pack(*records: KafkaRecord) -> list[tuple[int, int, tuple[str, ...]]]:
    reader = RecordReader(TopicSource(topics=("t",), format="json", type="R"))
    return [
        (each.key.seq, each.count, tuple(code for code, *_ in each.errors))
        for each in pack_records(records, "plant", reader)
    ]


def test_messages_are_cut_at_gaps_and_fixed_offsets_and_around_garbage() -> None:
    some = [_record(b"{}", offset) for offset in (5, 6, 9, EVENTS - 1, EVENTS, EVENTS + 1)]
    assert _pack(*some) == [(6, 2, ()), (10, 1, ()), (EVENTS, 1, ()), (EVENTS + 1, 2, ())]
    assert _pack(_record(b"{}", 1), _record(b"x", 2), _record(b"{}", 3)) == [(2, 1, ()), (3, 1, ("E760",)), (4, 1, ())]
    # Whatever was read together: behind a fixed offset messages are the same.
    whole = _pack(*(_record(b"{}", offset) for offset in range(3 * EVENTS)))
    later = _pack(*(_record(b"{}", offset) for offset in range(EVENTS, 3 * EVENTS)))
    assert whole[1:] == later
    assert [count for _, count, _ in whole] == [EVENTS] * 3


def test_keys_follow_from_topic_partition_and_offset() -> None:
    reader = RecordReader(TopicSource(topics=("t",), format="json", type="R"))
    (message,) = pack_records([_record(b"{}", 41)], "plant", reader)
    assert message.key.client == "plant"
    assert message.key.incarnation == incarnation_of("t", 3) >= TOPICS
    assert message.key.seq == 42
    assert message.end == 42
    assert len(split_lines(message.body)) == 1
    assert len({incarnation_of(topic, number) for topic in ("a", "b") for number in range(100)}) == 200
    lane = lane_of("plant", message.key.incarnation)
    assert lane != "plant"
    assert client_of(lane) == client_of("plant") == "plant"
    assert lane_of("plant", 1_700_000_000_000) == "plant"
    assert taken_of({lane: (message.key.incarnation, 42)}, "plant", ("t", 3)) == 42
    assert taken_of({"plant": (1, 7)}, "plant", ("t", 3)) == 0


def test_where_a_partition_is_begun(caplog: pytest.LogCaptureFixture) -> None:
    source, from_end = TopicSource(topics=("t",)), TopicSource(topics=("t",), start="end")
    extent = Extent(10, 20)
    assert first_offset(source, extent, None, 0, ("t", 0), "c") == 10
    assert first_offset(from_end, extent, None, 0, ("t", 0), "c") == 20
    assert first_offset(from_end, extent, 12, 15, ("t", 0), "c") == 15
    assert not caplog.records
    assert first_offset(source, extent, 4, 0, ("t", 0), "c") == 10
    assert "N163" in caplog.text
    assert "6 records were deleted" in caplog.text
    assert within(25, extent, ("t", 0), "c") == 25
    assert "created anew" in caplog.text


LINE = (
    b'{"specversion":"1.0","id":"7","source":"gate","type":"Reading","time":"2026-01-01T00:00:00Z",'
    b'"situkey":"plant.1.8","situfrom":"us","data":{"sensor":"s1","value":1.5,"on":true},"situpos":"65536"}'
)


def test_an_event_is_written_in_binary_mode() -> None:
    record = RecordWriter(TopicTarget(topic="out", key="sensor")).record(LINE)
    assert record.key == b"s1"
    assert record.value == b'{"sensor":"s1","value":1.5,"on":true}'
    assert dict(record.headers) == {
        "content-type": b"application/json",
        "situkey": b"plant.1.8",
        "ce_specversion": b"1.0",
        "ce_id": b"7",
        "ce_source": b"gate",
        "ce_type": b"Reading",
        "ce_time": b"2026-01-01T00:00:00Z",
    }
    assert RecordWriter(TopicTarget(topic="out")).record(LINE).key == b"plant.1.8"
    assert RecordWriter(TopicTarget(topic="out", key="value")).record(LINE).key == b"1.5"
    assert RecordWriter(TopicTarget(topic="out", key="absent")).record(LINE).key is None


def test_an_event_is_written_as_a_whole_and_can_be_read_again() -> None:
    written = RecordWriter(TopicTarget(topic="out", format="cloudevents")).record(LINE)
    again = _event(TopicSource(topics=("out",)), _record(written.value, headers=written.headers))
    assert again["data"] == {"sensor": "s1", "value": 1.5, "on": True}
    assert not [name for name in again if name.startswith("situ")]


def test_an_address_shows_no_secret() -> None:
    address = KafkaAddress("host:9092", "http://u:secret@r", (("sasl.password", "secret"),))
    assert "secret" not in repr(address)
    assert "secret" not in str(address.away("it is away"))
    (variable,) = address.variables()
    assert "SECRET" in variable


def test_groups_are_named_by_project_zone_and_client() -> None:
    assert group_of("plant", "main", "desk/hot") == "situ.plant.main.desk.hot"
    assert group_of("plant", "main", "desk", "own") == "own"
