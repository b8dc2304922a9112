"""Messages of clients and routers: what is written is read back, and whatever else comes is malformed."""

from __future__ import annotations

import pytest

from situ.event.message import COUNT, KEY, MESSAGE, SESSION, EventKey
from situ.protocol.messages import (
    Ack,
    AdAck,
    Advertise,
    AnswerAdvice,
    AskQuality,
    ChangeExpectation,
    ChangeProfile,
    ChangeScopes,
    Closed,
    Connect,
    ConnectAck,
    ContextAck,
    DeadEvent,
    DefineContext,
    Describe,
    DescribeAck,
    Description,
    Disconnect,
    Expect,
    Explain,
    ExplainAck,
    FromClient,
    FromRouter,
    FullList,
    FullListAck,
    FullListRequest,
    Heartbeat,
    History,
    HistoryAck,
    Loss,
    MoveExpectation,
    Nack,
    Notice,
    OfferedAdvertisement,
    Provide,
    Publish,
    PublishAck,
    QualityAck,
    RevokeProfile,
    ScopeAck,
    SubAck,
    Subscribe,
    Unadvertise,
    Unsubscribe,
    UseContext,
    WantedSubscription,
)
from situ.protocol.wire import Malformed, decode_from_client, decode_from_router, encode, session_of

WANTED = WantedSubscription(types=("A", "B"), filter="x > 1", durable=True)
FROM_CLIENT = [
    Connect(incarnation=5, principal="me"),
    FullList(version=1, acked=7, ads={"a": "A"}, subs={"s": WANTED}),
    Heartbeat(),
    Disconnect(reason="done"),
    Advertise(req=1, ad="a", type="A"),
    Advertise(req=1, ad="a", type="A", filter="x > 1", scopes={"d": "s", "e": ("s", "t"), "rest": "any"}),
    FullList(ads={"a": OfferedAdvertisement(type="A", filter="x > 1", scopes={"d": "s"})}),
    ChangeScopes(req=4, operation={"do": "drop", "dimension": "d", "scope": "s"}, epoch=3),
    Expect(
        req=10, expectation="M1", sub="s", body={"need": {"rate": {"lb": 5}}, "utility": 2.5}, version=3, suspended=True
    ),
    ChangeExpectation(req=11, expectation="M1", body={"utility": 4}, version=4),
    MoveExpectation(req=12, expectation="M1", call="suspend"),
    Provide(req=13, type="A", body={"capabilities": {"rate": {"cv": 2}}}),
    ChangeProfile(req=14, type="A", body={"mode": "eco"}, version=2),
    RevokeProfile(req=15, type="A"),
    AnswerAdvice(req=16, advice="7", verdict="refused", values={"rate": 12.5, "trust": "low"}),
    AskQuality(req=17, about="M1"),
    Unadvertise(req=2, ad="a"),
    Subscribe(req=3, sub="s", types=("A", "B"), filter="x > 1", durable=True),
    Unsubscribe(req=4, sub="s"),
    UseContext(req=7, context="us"),
    DefineContext(req=8, context="us", text="context: us\n"),
    Publish(key=EventKey("pump", 5, 1), count=2, body=b"[\n{},\n{}\n]"),
    Loss(from_seq=1, to_seq=3, counts={"a": 3}, reason="full"),
    Describe(req=5, types=("A",)),
    Explain(req=9, to="desk/all", event="pump.5.1", ad="pump/a", sample="{}"),
    History(req=6, sub="s", after="65536", since=1_700_000_000_000_000, limit=10),
]
FROM_ROUTER = [
    ConnectAck(zone="main", router="r1", incarnation=9),
    FullListRequest(incarnation=9),
    FullListAck(version=3, ads={"a": "A"}, subs={"s": WANTED}),
    FullListAck(version=3, ads={"a": OfferedAdvertisement(type="A", scopes={"d": "s"})}),
    ScopeAck(req=4, epoch=4, state="pending", version=9, missing=("edge",), said=(Notice(code="V108", message="x"),)),
    QualityAck(req=10, body={"id": "M1", "version": 1}, text="satisfied"),
    AdAck(req=1, ad="a", state="accepted", version=4),
    SubAck(req=1, sub="s", state="installed", version=4, missing=("spark",)),
    ContextAck(context="us.v2", state="accepted", version=4, said=(Notice(code="INT504", message="No."),), gone=("a",)),
    PublishAck(up_to=9, dead=(DeadEvent(seq=8, code="R003", message="No.", hint="Yes."),)),
    HistoryAck(after="131_072", more=True, count=1, body=b"[\n{}\n]"),
    Ack(req=5),
    Nack(of="Publish", code="R006", message="A gap.", hint="Again.", retry=True, expected=4),
    Closed(session=8),
    ExplainAck(req=9, visible=False, text="not visible", answer="{}"),
    DescribeAck(req=1, version=2, types={"A": Description(event=True, above=("B",), attributes={"x": "int"})}),
]


@pytest.mark.parametrize("message", FROM_CLIENT, ids=lambda each: type(each).__name__)
def test_what_a_client_writes_is_read_back(message: FromClient) -> None:
    headers, body = encode(message, 42)
    assert headers[MESSAGE] == type(message).__name__
    assert session_of(headers) == 42
    assert decode_from_client(headers, body) == message


@pytest.mark.parametrize("message", FROM_ROUTER, ids=lambda each: type(each).__name__)
def test_what_a_router_writes_is_read_back(message: FromRouter) -> None:
    headers, body = encode(message)
    assert SESSION not in headers
    assert decode_from_router(headers, body) == message


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({MESSAGE: "Nonsense"}, b"{}"),
        ({MESSAGE: "ConnectAck"}, b"{}"),
        ({MESSAGE: "Connect"}, b""),
        ({MESSAGE: "Connect"}, b'{"incarnation": "five"}'),
        ({MESSAGE: "Connect"}, b"[1]"),
        ({MESSAGE: "Connect"}, b"\xff\xfe"),
        ({MESSAGE: "Subscribe"}, b'{"req": 1, "sub": "s"}'),
        ({MESSAGE: "FullList"}, b"[" * 100_000),
        ({MESSAGE: "Publish", KEY: "pump.1"}, b"[]"),
        ({MESSAGE: "Publish", KEY: "pump.1.1"}, b"[]"),
        ({MESSAGE: "Publish", KEY: "pump.1.1", COUNT: "many"}, b"[]"),
        ({MESSAGE: "Publish", KEY: "pump.1.1", COUNT: "0"}, b"[]"),
        ({MESSAGE: "Publish", KEY: "pump.1.1", COUNT: "65537"}, b"[]"),
        ({MESSAGE: "Publish", KEY: "pump.1.0", COUNT: "1"}, b"[]"),
    ],
)
def test_what_is_no_message_of_a_client_is_malformed(headers: dict[str, str], body: bytes) -> None:
    with pytest.raises(Malformed):
        decode_from_client(headers, body)


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({}, b"{}"),
        ({MESSAGE: "Connect"}, b'{"incarnation": 1}'),
        ({MESSAGE: "HistoryAck"}, b"[]"),
        ({MESSAGE: "PublishNack"}, b"{}"),
        ({MESSAGE: "SubAck"}, b'{"sub": 1, "state": "x"}'),
    ],
)
def test_what_is_no_message_of_a_router_is_malformed(headers: dict[str, str], body: bytes) -> None:
    with pytest.raises(Malformed):
        decode_from_router(headers, body)


@pytest.mark.parametrize("text", ["", "-1", "1.5", "\u0663", "9" * 20])
def test_a_session_is_a_number(text: str) -> None:
    with pytest.raises(Malformed):
        session_of({SESSION: text})


def test_who_names_no_session_has_none() -> None:
    assert session_of({}) == 0


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (b"[\n{},\n{}\n]", 2),
        (b'  [{"a": 1}, {"b": [1, 2]}, {}]', 3),
        (b"[]", 1),
        (b"", 1),
        (b"[\n{},\n{,\n{}\n]", 5),  # torn: as many as it could be at most
        (b"nonsense", 1),
    ],
)
def test_a_plain_body_gets_as_many_keys_as_it_may_need(body: bytes, count: int) -> None:
    assert decode_from_client({}, body) == Publish(key=None, count=count, body=body)


def test_one_event_alone_is_a_batch_of_one() -> None:
    assert decode_from_client({}, b' {"id": "1"}') == Publish(key=None, count=1, body=b'[\n {"id": "1"}\n]')
