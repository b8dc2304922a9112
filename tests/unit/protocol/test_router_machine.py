"""The router's machine: what each message asks and does, and what a stale, repeated or malformed one gets."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from situ.event.message import EventKey
from situ.lang.records import replace
from situ.lang.tags import TagSet
from situ.protocol.effects import (
    Adopted,
    Answer,
    Declare,
    Declared,
    Define,
    Defined,
    Deployed,
    Effect,
    Garbled,
    Input,
    Link,
    Look,
    Negotiate,
    Presence,
    Received,
    Record,
    Refused,
    Report,
    Rescope,
    Rescoped,
    Send,
    SetTimer,
    Start,
    Store,
    Stored,
    StoreFailed,
    Suspended,
    Timer,
    Withdraw,
)
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
    Disconnect,
    Expect,
    FromClient,
    FullList,
    FullListAck,
    FullListRequest,
    Heartbeat,
    History,
    Loss,
    MoveExpectation,
    Nack,
    Notice,
    OfferedAdvertisement,
    Provide,
    Publish,
    PublishAck,
    RevokeProfile,
    ScopeAck,
    SubAck,
    Subscribe,
    Tags,
    Terms,
    Unadvertise,
    Unsubscribe,
    UseContext,
    WantedSubscription,
)
from situ.protocol.router_machine import step
from situ.protocol.router_state import RouterState
from situ.routing.model import Advertisement, ClientDeclaration, Subscription
from situ.scopes.operations import JoinScope, operation_as_json

SESSION = 7
PUMP = Advertisement(client="pump", name="flow", type="Flow")
BOARD = Subscription(client="pump", name="board", types=("Level",), where="level > 5", durable=True)
LIVE = Subscription(client="pump", name="live", types=("Level",))


class Machine:
    """A machine, and what it said to each input."""

    def __init__(self) -> None:
        self.state = RouterState(zone="main", router="r1", incarnation=1000)
        self.now = 0.0
        self.tickets = 0
        self.inputs: list[tuple[Input, float]] = []
        self.outputs: list[tuple[Effect, ...]] = []
        self.do(Deployed(version=1, advertisements={}, subscriptions={}, terms=Terms()))
        self.do(Adopted(version=1))
        self.do(Start())

    def do(self, given: Input) -> tuple[Effect, ...]:
        self.inputs.append((given, self.now))
        self.outputs.append(step(self.state, given, self.now))
        return self.outputs[-1]

    def say(self, message: FromClient, *, session: int = SESSION, client: str = "pump") -> tuple[Effect, ...]:
        self.tickets += 1
        return self.do(Received(client=client, session=session, message=message, ticket=10_000 + self.tickets))

    def connect(self, *, session: int = SESSION, incarnation: int = 50, client: str = "pump") -> None:
        self.say(Connect(incarnation=incarnation), session=session, client=client)
        self.say(FullList(), session=session, client=client)

    def publish(self, first: int, count: int = 1, *, session: int = SESSION) -> tuple[Effect, ...]:
        return self.say(publication(first, count), session=session)


def publication(first: int, count: int = 1, *, client: str = "pump", incarnation: int = 50) -> Publish:
    return Publish(key=EventKey(client, incarnation, first), count=count, body=b"[]")


@pytest.fixture
def machine() -> Machine:
    made = Machine()
    made.connect()
    return made


def the(kind: type, effects: tuple[Effect, ...]) -> object:
    found = [each for each in effects if isinstance(each, kind)]
    assert len(found) == 1, effects
    return found[0]


def answered(effects: tuple[Effect, ...]) -> object:
    answer = the(Answer, effects)
    assert isinstance(answer, Answer)
    return answer.message


def is_nack(effect: Effect) -> bool:
    return isinstance(effect, Answer) and isinstance(effect.message, Nack)


def refusal(effects: tuple[Effect, ...]) -> Nack:
    nack = answered(effects)
    assert isinstance(nack, Nack), nack
    assert nack.message.endswith(".")
    assert nack.hint
    return nack


# ── every message that only a connected client may send ───────────────────────────────────────────

ANY = [
    Heartbeat(),
    Advertise(req=3, ad="flow", type="Flow"),
    Unadvertise(req=3, ad="flow"),
    Subscribe(req=3, sub="board", types=("Level",)),
    Unsubscribe(req=3, sub="board"),
    publication(1),
    Loss(from_seq=1, to_seq=2),
    Describe(req=3),
    History(req=3, sub="board"),
    ChangeScopes(req=3, operation={"do": "drop", "dimension": "d", "scope": "s"}),
]
every = pytest.mark.parametrize("message", ANY, ids=lambda each: type(each).__name__)


@every
def test_who_is_not_connected_is_told_so(message: FromClient) -> None:
    machine = Machine()
    before = copy.deepcopy(machine.state)
    nack = refusal(machine.say(message))
    assert (nack.code, nack.of, nack.req) == ("R001", type(message).__name__, getattr(message, "req", 0))
    assert nack.retry
    assert machine.state == before


@every
def test_who_has_not_told_everything_is_not_connected(message: FromClient) -> None:
    machine = Machine()
    machine.say(Connect(incarnation=50))
    assert refusal(machine.say(message)).code == "R001"


@every
def test_an_old_session_is_over(machine: Machine, message: FromClient) -> None:
    before = copy.deepcopy(machine.state)
    effects = machine.say(message, session=SESSION - 1)
    nack = refusal(effects)
    assert (nack.code, nack.expected) == ("R005", SESSION + 1)
    assert isinstance(the(Report, effects), Report)
    assert machine.state == before


@every
def test_a_session_nobody_opened_is_not_connected(machine: Machine, message: FromClient) -> None:
    assert refusal(machine.say(message, session=SESSION + 1)).code == "R001"


@every
def test_a_name_that_is_none_has_no_rights(machine: Machine, message: FromClient) -> None:
    assert refusal(machine.say(message, client="no_name")).code == "R011"


@pytest.mark.parametrize("kind", ["Connect", "FullList", "Publish", "Subscribe", "Nonsense"])
def test_what_is_no_message_is_refused_and_reported(machine: Machine, kind: str) -> None:
    before = copy.deepcopy(machine.state)
    effects = machine.do(Garbled(client="pump", kind=kind, reason="it is torn", ticket=5))
    nack = refusal(effects)
    assert (nack.code, nack.of) == ("R101", kind)
    assert the(Report, effects) == Report(client="pump", code="R101", text=nack.message)
    assert machine.state == before


# ── Connect, FullList, Disconnect, silence ────────────────────────────────────────────────────────


def test_connect_is_answered_recorded_and_followed_by_a_question() -> None:
    machine = Machine()
    effects = machine.say(Connect(incarnation=50))
    assert answered(effects) == ConnectAck(zone="main", router="r1", incarnation=1000, version=1, terms=Terms())
    assert the(Record, effects) == Record(client="pump", session=SESSION)
    assert the(Send, effects) == Send(client="pump", message=FullListRequest(incarnation=1000))


def test_a_newer_session_takes_over_and_the_older_one_is_told(machine: Machine) -> None:
    effects = machine.say(Connect(incarnation=51), session=SESSION + 1)
    assert Send(client="pump", message=Closed(session=SESSION + 1)) in effects
    assert refusal(machine.publish(1)).code == "R005"


def test_connect_of_the_same_session_again_is_no_take_over(machine: Machine) -> None:
    effects = machine.say(Connect(incarnation=50))
    assert isinstance(answered(effects), ConnectAck)
    assert not [each for each in effects if isinstance(each, Record)]
    assert not [each for each in effects if isinstance(each, Send) and isinstance(each.message, Closed)]


def test_connect_with_an_old_session_says_which_would_be_new(machine: Machine) -> None:
    nack = refusal(machine.say(Connect(incarnation=60), session=3))
    assert (nack.code, nack.expected) == ("R005", SESSION + 1)


def test_connect_with_an_old_incarnation_says_which_would_be_new(machine: Machine) -> None:
    nack = refusal(machine.say(Connect(incarnation=49), session=SESSION + 1))
    assert (nack.code, nack.expected, nack.name) == ("R005", 51, "incarnation")


@pytest.mark.parametrize(("session", "incarnation"), [(0, 5), (5, 0)])
def test_connect_needs_numbers(session: int, incarnation: int) -> None:
    assert refusal(Machine().say(Connect(incarnation=incarnation), session=session)).code == "R101"


def test_full_list_declares_what_is_new_and_withdraws_what_is_gone_and_passing() -> None:
    machine = Machine()
    machine.do(Start(owned=(PUMP, BOARD, LIVE)))
    machine.say(Connect(incarnation=50))
    other = {"other": WantedSubscription(types=("Level", "Flow", "Level"), filter="", durable=True)}
    effects = machine.say(FullList(subs=other))
    assert the(Withdraw, effects) == Withdraw(ticket=None, what=(PUMP, LIVE))
    declare = the(Declare, effects)
    assert isinstance(declare, Declare)
    assert declare.what == Subscription(client="pump", name="other", types=("Flow", "Level"), durable=True)
    assert isinstance(answered(effects), FullListAck)
    assert refusal(machine.say(Unsubscribe(req=1, sub="live"))).code == "R002"


def test_full_list_of_what_stands_changes_nothing_and_says_what_there_is() -> None:
    machine = Machine()
    declared = Deployed(
        version=2, advertisements={PUMP.id: PUMP}, subscriptions={BOARD.id: BOARD, "desk/x": LIVE}, terms=Terms()
    )
    machine.do(declared)
    machine.say(Connect(incarnation=50))
    effects = machine.say(FullList(ads={"flow": "Flow"}))
    wanted = WantedSubscription(types=("Level",), filter="level > 5", durable=True, context="root")
    assert effects == (
        Answer(ticket=10_002, message=FullListAck(version=2, ads={"flow": "Flow"}, subs={"board": wanted})),
        Presence(client="pump", here=True),
        Send(client="pump", message=AdAck(ad="flow", state="accepted", version=2)),
    )
    # Whoever waits for the word that it is installed gets it from this router, too.
    assert machine.do(Adopted(version=2)) == (
        Send(client="pump", message=AdAck(ad="flow", state="installed", version=2)),
    )


def test_full_list_sets_the_next_number() -> None:
    machine = Machine()
    machine.say(Connect(incarnation=50))
    machine.say(FullList(acked=41))
    assert isinstance(the(Store, machine.publish(42)), Store)


def test_full_list_with_a_bad_name_is_refused_whole(machine: Machine) -> None:
    machine.say(Connect(incarnation=50))
    assert refusal(machine.say(FullList(ads={"no.name": "Flow"}))).code == "R101"
    assert refusal(machine.publish(1)).code == "R001"


def test_disconnect_withdraws_what_is_passing_and_keeps_what_is_durable(machine: Machine) -> None:
    machine.do(Start(owned=(PUMP, BOARD, LIVE)))
    effects = machine.say(Disconnect())
    assert answered(effects) == Ack()
    assert the(Record, effects) == Record(client="pump", session=None)
    assert the(Withdraw, effects) == Withdraw(ticket=None, what=(PUMP, LIVE))
    assert refusal(machine.say(Disconnect())).code == "R001"


def test_a_client_that_is_silent_too_long_is_gone(machine: Machine) -> None:
    machine.do(Start(owned=(LIVE,)))
    machine.now = 29.0
    assert the(SetTimer, machine.do(Timer(name="grace"))) == SetTimer(name="grace", after=5.0)
    machine.say(Heartbeat())
    machine.now = 58.0
    assert not [each for each in machine.do(Timer(name="grace")) if isinstance(each, Record)]
    machine.now = 59.0
    effects = machine.do(Timer(name="grace"))
    assert the(Record, effects) == Record(client="pump", session=None)
    assert the(Withdraw, effects) == Withdraw(ticket=None, what=(LIVE,))
    assert isinstance(the(Report, effects), Report)
    assert refusal(machine.say(Heartbeat())).code == "R001"


def test_a_link_that_is_up_is_a_sign_of_life(machine: Machine) -> None:
    machine.now = 29.0
    assert machine.do(Link(client="pump", up=True)) == ()
    assert machine.do(Link(client="unknown", up=True)) == ()
    machine.now = 45.0
    machine.do(Timer(name="grace"))
    assert isinstance(answered(machine.say(Heartbeat())), Ack)


def test_a_timer_nobody_set_is_reported(machine: Machine) -> None:
    assert isinstance(the(Report, machine.do(Timer(name="other"))), Report)


def test_who_was_here_before_the_router_started_is_asked_to_come_again() -> None:
    machine = Machine()
    effects = machine.do(Start(sessions={"pump": 7}, owned=(LIVE, replace(PUMP, client="gone"), BOARD)))
    assert Send(client="pump", message=FullListRequest(incarnation=1000)) in effects
    assert refusal(machine.publish(1, session=6)).code == "R005"
    assert refusal(machine.publish(1, session=7)).code == "R001"
    machine.connect(session=7)
    machine.now = 30.0
    machine.say(Heartbeat())
    effects = machine.do(Timer(name="grace"))
    assert the(Withdraw, effects) == Withdraw(ticket=None, what=(replace(PUMP, client="gone"),))


def test_heartbeat_is_acknowledged(machine: Machine) -> None:
    assert answered(machine.say(Heartbeat())) == Ack()


# ── Publish ───────────────────────────────────────────────────────────────────────────────────────


def stored(machine: Machine, effects: tuple[Effect, ...], dead: tuple[DeadEvent, ...] = ()) -> tuple[Effect, ...]:
    store = the(Store, effects)
    assert isinstance(store, Store)
    return machine.do(Stored(ticket=store.ticket, dead=dead))


def test_events_are_stored_and_then_acknowledged(machine: Machine) -> None:
    effects = machine.publish(1, 3)
    assert not [each for each in effects if isinstance(each, Answer)]
    store = the(Store, effects)
    assert isinstance(store, Store)
    assert (store.key, store.count) == (EventKey("pump", 50, 1), 3)
    assert answered(machine.do(Stored(ticket=store.ticket))) == PublishAck(up_to=3)


def test_dead_letters_are_told_with_the_acknowledgement(machine: Machine) -> None:
    dead = (DeadEvent(seq=1, code="R003", message="No.", hint="Yes."),)
    assert answered(stored(machine, machine.publish(1), dead)) == PublishAck(up_to=1, dead=dead)


def test_acknowledgements_go_out_in_order_whatever_is_stored_first(machine: Machine) -> None:
    first, second = machine.publish(1, 2), machine.publish(3, 2)
    assert stored(machine, second) == ()
    effects = stored(machine, first)
    assert [each.message for each in effects if isinstance(each, Answer)] == [PublishAck(up_to=2), PublishAck(up_to=4)]


def test_a_gap_names_what_is_expected(machine: Machine) -> None:
    stored(machine, machine.publish(1, 2))
    effects = machine.publish(4)
    nack = refusal(effects)
    assert (nack.code, nack.expected, nack.retry) == ("R006", 3, True)
    assert isinstance(the(Report, effects), Report)
    assert isinstance(the(Store, machine.publish(3)), Store)


def test_a_repeated_message_is_acknowledged_once_more_and_not_stored(machine: Machine) -> None:
    stored(machine, machine.publish(1, 2))
    effects = machine.publish(1, 2)
    assert answered(effects) == PublishAck(up_to=2)
    assert not [each for each in effects if isinstance(each, Store)]


def test_a_message_repeated_while_it_is_being_stored_waits_with_the_first(machine: Machine) -> None:
    first = machine.publish(1, 2)
    assert machine.publish(1, 2) == ()
    effects = stored(machine, first)
    assert [each.ticket for each in effects if isinstance(each, Answer)] == [10_003, 10_004]


def test_other_boundaries_than_before_are_a_gap(machine: Machine) -> None:
    machine.publish(1, 2)
    assert refusal(machine.publish(2, 2)).code == "R006"


def test_a_failure_refuses_everything_behind_it(machine: Machine) -> None:
    first, second, third = machine.publish(1), machine.publish(2), machine.publish(3)
    store = the(Store, second)
    assert isinstance(store, Store)
    effects = machine.do(StoreFailed(ticket=store.ticket, reason="the stream is full"))
    nacks = [each.message for each in effects if isinstance(each, Answer)]
    assert [(nack.code, nack.expected, nack.retry) for nack in nacks if isinstance(nack, Nack)] == [
        ("R016", 2, True)
    ] * 2
    assert stored(machine, third) == ()  # it was stored all the same: sent again, it will be a duplicate
    assert answered(stored(machine, first)) == PublishAck(up_to=1)
    assert refusal(machine.publish(3)).expected == 2
    assert isinstance(the(Store, machine.publish(2)), Store)


def test_an_outcome_nobody_waits_for_changes_nothing(machine: Machine) -> None:
    before = copy.deepcopy(machine.state)
    assert machine.do(Stored(ticket=99)) == ()
    assert machine.do(StoreFailed(ticket=99, reason="late")) == ()
    assert machine.do(Declared(ticket=99, version=9)) == ()
    assert machine.do(Refused(ticket=99, code="D1", message="", hint="")) == ()
    assert machine.state == before


def test_nobody_publishes_events_of_another(machine: Machine) -> None:
    nack = refusal(machine.say(publication(1, client="valve")))
    assert nack.code == "R011"
    assert not nack.retry


def test_events_of_another_incarnation_are_of_an_old_session(machine: Machine) -> None:
    assert refusal(machine.say(publication(1, incarnation=49))).code == "R005"


def test_what_was_stored_for_a_session_that_is_over_is_not_answered(machine: Machine) -> None:
    effects = machine.publish(1)
    nack = refusal(tuple(each for each in machine.say(Connect(incarnation=51), session=SESSION + 1) if is_nack(each)))
    assert (nack.code, nack.of, nack.retry) == ("R001", "Publish", True)
    machine.say(FullList(), session=SESSION + 1)
    assert stored(machine, effects) == ()
    assert isinstance(the(Store, machine.say(publication(1, incarnation=51), session=SESSION + 1)), Store)


def test_events_without_keys_get_them(machine: Machine) -> None:
    plain = Publish(key=None, count=2, body=b"[{},{}]")
    first = machine.say(plain, session=0, client="mqtt")
    store = the(Store, first)
    assert isinstance(store, Store)
    assert store.key == EventKey("mqtt", 1000, 1)
    second = the(Store, machine.say(plain, session=0, client="mqtt"))
    assert isinstance(second, Store)
    assert second.key == EventKey("mqtt", 1000, 3)
    assert answered(machine.do(Stored(ticket=store.ticket))) == PublishAck(up_to=0)
    nack = refusal(machine.do(StoreFailed(ticket=second.ticket, reason="full")))
    assert (nack.code, nack.retry) == ("R016", True)


def test_keys_given_are_above_those_the_client_gave_itself(machine: Machine) -> None:
    machine.connect(client="mqtt", incarnation=2000)
    plain = Publish(key=None, count=1, body=b"{}")
    assert refusal(machine.say(plain, session=0, client="mqtt")).code == "R011"
    machine.say(Disconnect(), client="mqtt")
    store = the(Store, machine.say(plain, session=0, client="mqtt"))
    assert isinstance(store, Store)
    assert store.key == EventKey("mqtt", 2001, 1)


def test_a_loss_closes_the_gap(machine: Machine) -> None:
    effects = machine.say(Loss(from_seq=1, to_seq=4, reason="queue full"))
    assert answered(effects) == Ack()
    report = the(Report, effects)
    assert isinstance(report, Report)
    assert "1 to 4: queue full" in report.text
    assert isinstance(the(Store, machine.publish(5)), Store)


def test_a_loss_is_reported_with_the_tags_of_what_was_lost(machine: Machine) -> None:
    tagged = replace(PUMP, scopes=TagSet.of({"site": "east"}, rest=True))
    machine.do(Deployed(version=2, advertisements={tagged.id: tagged}, subscriptions={}, terms=Terms()))
    report = the(Report, machine.say(Loss(from_seq=1, to_seq=2, counts={tagged.name: 2, "other": 1}, reason="full")))
    assert isinstance(report, Report)
    assert report.text == "lost 1 to 2 in site east, rest any: full"


@pytest.mark.parametrize(("first", "last"), [(2, 3), (1, 0)])
def test_a_loss_that_does_not_follow_is_a_gap(machine: Machine, first: int, last: int) -> None:
    nack = refusal(machine.say(Loss(from_seq=first, to_seq=last)))
    assert (nack.code, nack.expected) == ("R006", 1)


# ── declarations ──────────────────────────────────────────────────────────────────────────────────

DECLARE = [
    (Advertise(req=3, ad="flow", type="Flow"), PUMP, AdAck, {"ad": "flow"}),
    (
        Subscribe(req=3, sub="board", types=("Level",), filter="level > 5", durable=True),
        BOARD,
        SubAck,
        {"sub": "board"},
    ),
]
declarations = pytest.mark.parametrize(("message", "what", "ack", "named"), DECLARE, ids=["Advertise", "Subscribe"])


@declarations
def test_a_declaration_is_accepted_and_later_installed(
    machine: Machine, message: FromClient, what: Advertisement | Subscription, ack: type, named: dict[str, str]
) -> None:
    declare = the(Declare, machine.say(message))
    assert isinstance(declare, Declare)
    assert declare.what == what
    effects = machine.do(Declared(ticket=declare.ticket, version=2))
    assert answered(effects) == ack(req=3, state="accepted", version=2, **named)
    assert machine.do(Adopted(version=1)) == ()
    effects = machine.do(Adopted(version=2, missing=("spark",)))
    message_told = the(Send, effects)
    assert isinstance(message_told, Send)
    assert message_told.message == ack(req=3, state="accepted", version=2, missing=("spark",), **named)
    effects = machine.do(Adopted(version=3))
    assert effects == (Send(client="pump", message=ack(req=3, state="installed", version=2, **named)),)
    assert machine.do(Adopted(version=3)) == ()


@declarations
def test_a_repeated_declaration_is_installed_at_once(
    machine: Machine, message: FromClient, what: Advertisement | Subscription, ack: type, named: dict[str, str]
) -> None:
    declare = the(Declare, machine.say(message))
    assert isinstance(declare, Declare)
    machine.do(Declared(ticket=declare.ticket, version=2))
    assert answered(machine.say(message)) == ack(req=3, state="accepted", version=2, **named)
    assert len([each for each in machine.do(Adopted(version=2)) if isinstance(each, Send)]) == 1
    effects = machine.say(message)
    assert not [each for each in effects if isinstance(each, Declare)]
    assert answered(effects) == ack(req=3, state="installed", version=2, **named)


@declarations
def test_a_refused_declaration_says_why(
    machine: Machine, message: FromClient, what: Advertisement | Subscription, ack: type, named: dict[str, str]
) -> None:
    declare = the(Declare, machine.say(message))
    assert isinstance(declare, Declare)
    effects = machine.do(Refused(ticket=declare.ticket, code="INT601", message="No.", hint="Yes."))
    nack = refusal(effects)
    assert (nack.code, nack.of, nack.req, nack.name) == ("INT601", type(message).__name__, 3, what.name)
    assert isinstance(the(Declare, machine.say(message)), Declare)


@pytest.mark.parametrize("message", [Advertise(req=1, ad="a_b", type="T"), Subscribe(req=1, sub="", types=("T",))])
def test_a_declaration_needs_a_name(machine: Machine, message: FromClient) -> None:
    assert refusal(machine.say(message)).code == "R101"


@pytest.mark.parametrize(
    ("message", "back"),
    [
        (Advertise(req=1, ad="flow", type="Flow"), Unadvertise(req=2, ad="flow")),
        (Subscribe(req=1, sub="live", types=("Level",)), Unsubscribe(req=2, sub="live")),
    ],
    ids=["Unadvertise", "Unsubscribe"],
)
def test_what_was_declared_can_be_taken_back_once(machine: Machine, message: FromClient, back: FromClient) -> None:
    declare = the(Declare, machine.say(message))
    assert isinstance(declare, Declare)
    machine.do(Declared(ticket=declare.ticket, version=2))
    withdraw = the(Withdraw, machine.say(back))
    assert isinstance(withdraw, Withdraw)
    assert withdraw.what == (declare.what,)
    assert answered(machine.do(Declared(ticket=withdraw.ticket or 0, version=3))) == Ack(req=2)
    assert machine.do(Adopted(version=3)) == ()
    assert refusal(machine.say(back)).code == "R002"


def test_what_the_project_declares_is_not_the_client_s_to_take_back(machine: Machine) -> None:
    machine.do(Deployed(version=2, advertisements={PUMP.id: PUMP}, subscriptions={}, terms=Terms()))
    assert refusal(machine.say(Unadvertise(req=1, ad="flow"))).code == "R002"
    machine.do(Adopted(version=2))
    assert answered(machine.say(Advertise(req=1, ad="flow", type="Flow"))) == AdAck(
        req=1, ad="flow", state="installed", version=2
    )


def test_what_is_being_withdrawn_is_declared_anew(machine: Machine) -> None:
    machine.do(Start(owned=(PUMP,)))
    machine.do(Deployed(version=2, advertisements={PUMP.id: PUMP}, subscriptions={}, terms=Terms()))
    machine.say(Disconnect())
    machine.connect(session=8)
    assert isinstance(the(Declare, machine.say(Advertise(req=1, ad="flow", type="Flow"), session=8)), Declare)


def test_a_declaration_of_who_has_left_is_withdrawn(machine: Machine) -> None:
    declare = the(Declare, machine.say(Subscribe(req=1, sub="live", types=("Level",))))
    assert isinstance(declare, Declare)
    machine.say(Disconnect())
    effects = machine.do(Declared(ticket=declare.ticket, version=2))
    assert the(Withdraw, effects) == Withdraw(ticket=None, what=(LIVE,))


def test_a_refusal_of_something_listed_is_told(machine: Machine) -> None:
    machine.say(Connect(incarnation=50))
    declare = the(Declare, machine.say(FullList(ads={"flow": "Flow"})))
    assert isinstance(declare, Declare)
    effects = machine.do(Refused(ticket=declare.ticket, code="INT601", message="No.", hint="Yes."))
    told = the(Send, effects)
    assert isinstance(told, Send)
    assert isinstance(told.message, Nack)
    assert told.message.name == "flow"


# ── questions ─────────────────────────────────────────────────────────────────────────────────────


def test_questions_are_passed_on(machine: Machine) -> None:
    asked = Describe(req=1, types=("Level",))
    assert machine.say(asked) == (Look(ticket=10_003, message=asked, client="pump"),)


def going_over(machine: Machine, context: str, *, kept: tuple[str, ...] = ()) -> ContextAck:
    declare = the(Declare, machine.say(UseContext(req=9, context=context)))
    assert isinstance(declare, Declare)
    assert declare.what == ClientDeclaration(name="pump", context=context)
    message = answered(machine.do(Declared(ticket=declare.ticket, version=5, kept=kept)))
    assert isinstance(message, ContextAck)
    return message


def test_what_a_client_declared_goes_over_with_it(machine: Machine) -> None:
    for what in (PUMP, LIVE):
        machine.state.owned.setdefault("pump", {})[type(what), what.name] = what
    told = going_over(machine, "us")
    assert (told.context, told.state, told.version, told.gone) == ("us", "accepted", 5, ("flow",))
    owned = machine.state.owned["pump"]
    assert owned[Subscription, "live"] == replace(LIVE, context="us")
    assert (Advertisement, "flow") not in owned
    sent = machine.do(Adopted(version=5))
    assert Send(client="pump", message=ContextAck(req=9, context="us", state="installed", version=5)) in sent
    assert answered(machine.say(UseContext(req=10, context="us"))) == ContextAck(
        req=10, context="us", state="installed", version=5
    )
    subscribe = the(Declare, machine.say(Subscribe(req=11, sub="more", types=("Level",))))
    assert isinstance(subscribe, Declare)
    assert isinstance(subscribe.what, Subscription)
    assert subscribe.what.context == "us"
    other = the(Declare, machine.say(Subscribe(req=12, sub="other", types=("Level",), context="eu")))
    assert isinstance(other, Declare)
    assert isinstance(other.what, Subscription)
    assert other.what.context == "eu"


def test_whoever_leaves_leaves_the_context(machine: Machine) -> None:
    going_over(machine, "us")
    withdrawn = the(Withdraw, machine.say(Disconnect()))
    assert isinstance(withdrawn, Withdraw)
    assert withdrawn.what == (ClientDeclaration(name="pump", context="us"),)
    machine.connect()
    machine.do(
        Deployed(version=6, advertisements={}, subscriptions={}, contexts={"pump": "us"}, terms=Terms()),
    )
    declared = the(Declare, machine.say(UseContext(req=1, context="us")))
    assert isinstance(declared, Declare), "it is still deployed, but not for long"


def test_a_context_that_cannot_be_is_refused_and_changes_nothing(machine: Machine) -> None:
    declare = the(Declare, machine.say(UseContext(req=9, context="uss")))
    assert isinstance(declare, Declare)
    nack = refusal(machine.do(Refused(ticket=declare.ticket, code="INT501", message="No.", hint="Yes.")))
    assert (nack.of, nack.req, nack.code) == ("UseContext", 9, "INT501")
    assert machine.state.owned == {}


def test_full_lists_name_the_context_before_what_is_in_it(machine: Machine) -> None:
    machine.say(Connect(incarnation=50))
    wanted = WantedSubscription(types=("Level",))
    effects = machine.say(FullList(context="us", ads={"flow": "Flow"}, subs={"live": wanted}))
    declared = [each.what for each in effects if isinstance(each, Declare)]
    assert declared == [ClientDeclaration(name="pump", context="us"), PUMP, replace(LIVE, context="us")]


def test_contexts_are_defined(machine: Machine) -> None:
    define = the(Define, machine.say(DefineContext(req=3, context="us", text="context: us")))
    assert isinstance(define, Define)
    assert define == Define(ticket=define.ticket, client="pump", context="us", text="context: us")
    said = (Notice(code="INT504", message="In use."),)
    message = answered(machine.do(Defined(ticket=define.ticket, context="us.v2", version=4, said=said)))
    assert message == ContextAck(req=3, context="us.v2", state="accepted", version=4, said=said)
    define = the(Define, machine.say(DefineContext(req=4, context="us", text="context: {}")))
    assert isinstance(define, Define)
    nack = refusal(machine.do(Refused(ticket=define.ticket, code="P105", message="No.", hint="Yes.")))
    assert (nack.of, nack.req, nack.code) == ("DefineContext", 4, "P105")
    assert machine.state.defining == {}


def test_history_is_of_a_subscription_of_the_client(machine: Machine) -> None:
    asked = History(req=1, sub="board")
    assert refusal(machine.say(asked)).code == "R002"
    machine.do(Deployed(version=2, advertisements={}, subscriptions={BOARD.id: BOARD}, terms=Terms()))
    assert machine.say(asked) == (Look(ticket=10_004, message=asked, wanted=BOARD),)


def test_an_older_deployment_is_not_taken(machine: Machine) -> None:
    machine.do(Deployed(version=3, advertisements={}, subscriptions={BOARD.id: BOARD}, terms=Terms()))
    machine.do(Deployed(version=2, advertisements={}, subscriptions={}, terms=Terms()))
    assert isinstance(the(Look, machine.say(History(req=1, sub="board"))), Look)


# ── the machine as a whole ────────────────────────────────────────────────────────────────────────


def test_the_same_inputs_give_the_same_effects(machine: Machine) -> None:
    for _ in range(3):
        stored(machine, machine.publish(machine.state.children["pump"].last + 1, 2))
    machine.publish(99)
    machine.say(Subscribe(req=1, sub="live", types=("Level",)))
    machine.now = 40.0
    machine.do(Timer(name="grace"))
    again = RouterState(zone="main", router="r1", incarnation=1000)
    assert [step(again, given, now) for given, now in machine.inputs] == machine.outputs
    assert again == machine.state


# ── scopes ────────────────────────────────────────────────────────────────────────────────────────

LINE = {"membership": "line"}
TAGGED = Subscription(client="pump", name="live", types=("Level",), scopes=TagSet.of(LINE))
JOIN = JoinScope(member="desk", scope="line", dimension="membership")
GONE = {"code": "V006", "message": "Not yours.", "hint": "Ask."}


def deployed(version: int, *subscriptions: Subscription, suspended: tuple[Suspended, ...] = ()) -> Deployed:
    return Deployed(
        version=version,
        advertisements={},
        subscriptions={each.id: each for each in subscriptions},
        terms=Terms(),
        suspended=suspended,
        epoch=version,
    )


def test_declarations_carry_filters_and_scopes(machine: Machine) -> None:
    message = Advertise(req=1, ad="flow", type="Flow", filter="x > 1", scopes={**LINE, "rest": "any"})
    declare = the(Declare, machine.say(message))
    assert isinstance(declare, Declare)
    tags = TagSet.of(LINE, rest=True)
    assert declare.what == replace(PUMP, where="x > 1", scopes=tags)
    offered = OfferedAdvertisement(type="Flow", filter="x > 1", scopes={**LINE, "rest": "any"})
    subs = {"live": WantedSubscription(types=("Level",), scopes=LINE)}
    machine.say(Connect(incarnation=50))
    declared = [each.what for each in machine.say(FullList(ads={"flow": offered}, subs=subs)) if hasattr(each, "what")]
    assert declared == [declare.what, TAGGED]


@pytest.mark.parametrize(
    ("scopes", "code"),
    [({"membership": ("line", "office")}, "V016"), ({"membership": "⊥"}, "V007"), ({"rest": "some"}, "P119")],
)
def test_what_is_no_tag_set_is_refused(machine: Machine, scopes: Tags, code: str) -> None:
    before = copy.deepcopy(machine.state)
    assert refusal(machine.say(Subscribe(req=1, sub="live", types=("Level",), scopes=scopes))).code == code
    assert refusal(machine.say(Advertise(req=1, ad="flow", type="Flow", scopes=scopes))).code == code
    assert (
        refusal(machine.say(FullList(subs={"live": WantedSubscription(types=("Level",), scopes=scopes)}))).code == code
    )
    assert machine.state.owned == before.owned
    assert machine.state.declaring == before.declaring


def test_a_declaration_is_owned_as_it_was_taken(machine: Machine) -> None:
    declare = the(Declare, machine.say(Subscribe(req=1, sub="live", types=("Level",))))
    assert isinstance(declare, Declare)
    machine.do(Declared(ticket=declare.ticket, version=2, what=TAGGED))
    look = the(Look, machine.say(History(req=2, sub="live")))
    assert isinstance(look, Look)
    assert look.wanted == TAGGED, "history is decided by the tags in force"


def test_a_change_of_scopes_is_pending_until_every_engine_has_it(machine: Machine) -> None:
    rescope = the(Rescope, machine.say(ChangeScopes(req=4, operation=operation_as_json(JOIN), epoch=7)))
    assert isinstance(rescope, Rescope)
    assert (rescope.client, rescope.operation, rescope.epoch) == ("pump", JOIN, 7)
    done = Rescoped(ticket=rescope.ticket, epoch=8, version=3)
    assert answered(machine.do(done)) == ScopeAck(req=4, epoch=8, state="pending", version=3)
    assert machine.do(done) == (), "once"
    late = the(Send, machine.do(Adopted(version=3, missing=("edge",))))
    assert late == Send(client="pump", message=ScopeAck(req=4, epoch=8, state="pending", version=3, missing=("edge",)))
    complete = the(Send, machine.do(Adopted(version=3)))
    assert complete == Send(client="pump", message=ScopeAck(req=4, epoch=8, state="complete", version=3))
    assert machine.do(Adopted(version=3)) == ()
    again = the(Rescope, machine.say(ChangeScopes(req=5, operation=operation_as_json(JOIN))))
    assert isinstance(again, Rescope)
    answer = answered(machine.do(Rescoped(ticket=again.ticket, epoch=8, version=3)))
    assert answer == ScopeAck(req=5, epoch=8, state="complete", version=3)


def test_a_change_of_scopes_that_is_refused_or_none(machine: Machine) -> None:
    rescope = the(Rescope, machine.say(ChangeScopes(req=4, operation=operation_as_json(JOIN))))
    assert isinstance(rescope, Rescope)
    nack = answered(machine.do(Refused(ticket=rescope.ticket, code="V014", message="No.", hint="Ask.")))
    assert nack == Nack(of="ChangeScopes", req=4, code="V014", message="No.", hint="Ask.")
    for wrong in ({}, {"do": "jump"}, {"do": "join", "member": 1}):
        assert refusal(machine.say(ChangeScopes(req=5, operation=wrong))).code == "R101"


def test_what_is_suspended_is_the_clients_no_more_and_it_is_told_once(machine: Machine) -> None:
    declare = the(Declare, machine.say(Subscribe(req=1, sub="live", types=("Level",), scopes=LINE)))
    assert isinstance(declare, Declare)
    machine.do(Declared(ticket=declare.ticket, version=2))
    machine.do(deployed(2, TAGGED))
    suspended = (Suspended(what=TAGGED, version=5, **GONE),)
    told = Send(client="pump", message=Nack(of="Subscribe", name="live", **GONE))
    assert machine.do(deployed(3, suspended=suspended)) == (told,)
    assert machine.do(deployed(4, suspended=suspended)) == ()
    assert refusal(machine.say(History(req=2, sub="live"))).code == "R002"
    assert refusal(machine.say(Unsubscribe(req=3, sub="live"))).code == "R002"
    assert machine.do(Adopted(version=4)) == (), "it is not told to be installed"
    anew = the(Declare, machine.say(Subscribe(req=4, sub="live", types=("Level",), scopes=LINE)))
    assert isinstance(anew, Declare)
    machine.do(Declared(ticket=anew.ticket, version=5))
    assert machine.do(deployed(5, TAGGED)) == ()
    again = (Suspended(what=TAGGED, version=7, **GONE),)
    assert machine.do(deployed(6, suspended=again)) == (told,)


def test_who_is_not_here_is_not_told(machine: Machine) -> None:
    machine.say(Disconnect())
    assert machine.do(deployed(2, suspended=(Suspended(what=TAGGED, version=5, **GONE),))) == ()


def test_what_somebody_else_took_out_has_to_be_declared_anew(machine: Machine) -> None:
    declare = the(Declare, machine.say(Subscribe(req=1, sub="board", types=("Level",), durable=True)))
    assert isinstance(declare, Declare)
    machine.do(Declared(ticket=declare.ticket, version=2))
    kept = Subscription(client="pump", name="board", types=("Level",), durable=True)
    machine.do(deployed(2, kept))
    machine.do(deployed(3))
    again = machine.say(Subscribe(req=2, sub="board", types=("Level",), durable=True))
    assert isinstance(the(Declare, again), Declare)


def test_what_is_lost_before_it_is_known_to_be_there_is_not_owned(machine: Machine) -> None:
    declare = the(Declare, machine.say(Subscribe(req=1, sub="live", types=("Level",), scopes=LINE)))
    assert isinstance(declare, Declare)
    effects = machine.do(deployed(3, suspended=(Suspended(what=TAGGED, version=5, **GONE),)))
    assert isinstance(the(Send, effects), Send)
    machine.do(Declared(ticket=declare.ticket, version=2))
    assert refusal(machine.say(History(req=2, sub="live"))).code == "R002"


def test_what_is_suspended_goes_with_its_client_unless_it_is_durable(machine: Machine) -> None:
    kept = replace(TAGGED, name="kept", durable=True)
    lost = tuple(Suspended(what=each, version=5, **GONE) for each in (TAGGED, kept))
    machine.do(deployed(2, suspended=lost))
    effects = machine.say(Disconnect())
    assert the(Withdraw, effects) == Withdraw(ticket=None, what=(TAGGED,))
    again = Machine()
    again.do(deployed(2, suspended=lost))
    assert Withdraw(ticket=None, what=(TAGGED,)) in again.do(Timer(name="grace")), "nor does it outlive the router"


def test_a_change_of_scopes_that_is_asked_for_again_is_made_once(machine: Machine) -> None:
    asked = ChangeScopes(req=4, operation=operation_as_json(JOIN), epoch=7)
    rescope = the(Rescope, machine.say(asked))
    assert isinstance(rescope, Rescope)
    assert machine.say(asked) == (), "it is under way"
    done = machine.do(Rescoped(ticket=rescope.ticket, epoch=8, version=1))
    assert the(Answer, done) == Answer(
        ticket=10_000 + machine.tickets, message=ScopeAck(req=4, epoch=8, state="complete", version=1)
    )
    assert answered(machine.say(asked)) == ScopeAck(req=4, epoch=8, state="complete", version=1)
    refused = the(Rescope, machine.say(replace(asked, req=5)))
    assert isinstance(refused, Rescope)
    machine.do(Refused(ticket=refused.ticket, code="V015", message="No.", hint="Look."))
    assert answered(machine.say(replace(asked, req=5))).code == "V015"  # type: ignore[attr-defined]
    machine.connect(session=SESSION + 1, incarnation=51)
    assert isinstance(the(Rescope, machine.say(replace(asked, req=5), session=SESSION + 1)), Rescope)


# ── quality ──


@pytest.mark.parametrize(
    "message",
    [
        Expect(req=1, expectation="M1", sub="board", body={"need": {}}),
        ChangeExpectation(req=1, expectation="M1", body={"utility": 2}),
        MoveExpectation(req=1, expectation="M1", call="revoke"),
        Provide(req=1, type="Flow", body={}),
        ChangeProfile(req=1, type="Flow", body={"mode": "eco"}),
        RevokeProfile(req=1, type="Flow"),
        AnswerAdvice(req=1, advice="a1", verdict="accepted"),
        AskQuality(req=1),
    ],
)
def test_what_is_said_of_quality_is_passed_on(machine: Machine, message: Any) -> None:
    (effect,) = machine.say(message)
    assert effect == Negotiate(ticket=10_003, client="pump", message=message)


def test_who_is_not_connected_negotiates_nothing() -> None:
    answer = answered(Machine().say(Provide(req=4, type="Flow", body={})))
    assert isinstance(answer, Nack)
    assert (answer.of, answer.req, answer.code, answer.retry) == ("Provide", 4, "R001", True)


def presences(effects: tuple[Effect, ...]) -> list[bool]:
    return [each.here for each in effects if isinstance(each, Presence)]


def test_a_client_is_here_when_it_has_told_everything_and_until_it_leaves() -> None:
    machine = Machine()
    assert presences(machine.say(Connect(incarnation=50))) == [False]  # whoever had the name before
    assert presences(machine.say(FullList())) == [True]
    assert presences(machine.say(Disconnect())) == [False]


def test_the_same_process_that_connects_again_was_never_gone(machine: Machine) -> None:
    assert presences(machine.say(Connect(incarnation=50))) == []
    assert presences(machine.say(FullList())) == [True]


def test_another_process_under_the_name_ends_what_the_one_before_agreed_on(machine: Machine) -> None:
    assert presences(machine.say(Connect(incarnation=51), session=SESSION + 1)) == [False]


def test_a_silent_client_is_gone(machine: Machine) -> None:
    machine.now = 31.0
    assert presences(machine.do(Timer(name="grace"))) == [False]


def test_who_was_here_before_the_router_started_is_gone_if_it_does_not_come_back() -> None:
    machine = Machine()
    machine.do(Start(sessions={"pump": SESSION, "valve": 3}))
    assert presences(machine.say(Connect(incarnation=50))) == []
    machine.say(FullList())
    effects = machine.do(Timer(name="grace"))
    assert [each for each in effects if isinstance(each, Presence)] == [Presence(client="valve", here=False)]
