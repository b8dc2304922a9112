"""The negotiator: what is advised, shaped, told and taken back, and what happens to those who misbehave."""

from __future__ import annotations

import json
from typing import Any

import pytest

from situ.lang.problems import Problem as Refused
from situ.lang.records import replace
from situ.quality.allocation.strategies import BUILT_IN_STRATEGIES
from situ.quality.measurement.panes import Pane
from situ.quality.model.allocation_problem import AllocationPlan, AllocationProblem
from situ.quality.model.declarations import Capability, Mode, Need, Profile, Quality, QualityProperty, Strategy
from situ.quality.model.shapes import Limit
from situ.quality.negotiation.feedback import Advice, StateChange, Usage
from situ.quality.negotiation.inputs_and_effects import (
    Answered,
    Came,
    DeployedQuality,
    Gone,
    Measured,
    Providing,
    Registering,
    Relevance,
    Restored,
    Resuming,
    Retracting,
    Revising,
    Revoking,
    Suspending,
    Updating,
    Verdict,
)
from situ.quality.negotiation.negotiator import new_state
from tests.negotiating import START, Host, all_relevant, can, expects, in_modes, need, provides
from tests.volume import cases

DESK = "desk/events"
HALL = "hall/events"


def zone(*profiles: Profile, adapts: bool = False, **options: Any) -> Host:
    """A zone with these publishers, in which everybody gets everything."""
    publishers = tuple(each.publisher for each in profiles)
    host = Host(relevance=all_relevant((*publishers, "late"), (DESK, HALL)), **options).start()
    for each in profiles:
        host.call(Providing, client=each.publisher, profile=each)
    if adapts:
        host.on_advice = follow
    return host


def follow(host: Host, advice: Advice) -> None:
    """A publisher that does as it is told."""
    client = advice.profile.partition("/")[0]
    if advice.kind == "withdraw":
        return
    if advice.kind == "raise":
        host.later(Answered(client=client, advice=advice.id, verdict="accepted"))
    values = {id: float(value) for id, value in advice.values.items()}
    host.tickets += 1
    host.later(Revising(ticket=host.tickets, client=client, id=advice.profile, values=values, mode=advice.mode or None))


def expect(host: Host, id: str = "desk/M1", **options: Any) -> Any:
    wanted = expects(id, **options)
    return host.call(Registering, client=wanted.client, expectation=wanted)


READER = provides("reader", rate=(2, 60, 2), confidence=(80, 80, 80))


def test_satisfied_at_once() -> None:
    host = zone(provides("reader", rate=(2, 60, 7)))
    assert expect(host, rate=(5, 10)).version == 1
    (told,) = host.of(StateChange)
    assert (told.state, told.why, told.in_force, told.since) == ("satisfied", "", "desk/M1", host.now)
    assert host.advices() == []
    assert host.shapes == {}


def test_advice_followed() -> None:
    host = zone(READER, adapts=True)
    expect(host, rate=(5, 10), confidence=(75, 95))
    assert host.advices() == [("raise", {"rate": 5}, "")]
    host.pass_time(1)
    assert [(each.state, each.why) for each in host.of(StateChange)] == [("unsatisfied", "adapting"), ("satisfied", "")]
    assert host.of(StateChange)[0].reasons[0].current == 2
    assert host.of(StateChange)[0].reasons[0].reachable == 60


def test_nobody_is_named() -> None:
    host = zone(READER, adapts=True)
    expect(host, rate=(5, 10))
    host.pass_time(120)
    for message, (client, kind) in zip(host.heard, host.heard_by, strict=True):
        assert (client, kind) == (("desk", "sub") if isinstance(message, StateChange) else ("reader", "pub"))
        text = str(message.as_json())
        assert ("reader" not in text) if kind == "sub" else ("desk" not in text and "M1" not in text)


def said_again(host: Host) -> list[tuple[str, dict[str, Any], int]]:
    """What a publisher that comes back is told."""
    host.start_again()  # it does not matter whether its router was away, too
    known = host.state.profiles["reader/badge"]
    return [(each.kind, dict(each.values), each.number) for each in known.course.to_be_heard(known.profile)]


def test_who_was_away_hears_what_it_may_fall_back_to() -> None:
    host = zone(provides("reader", rate=(2, 60, 2), confidence=(50, 90, 60)), adapts=True)
    expect(host, rate=(5, 10))
    expect(host, "hall/N", subscription=HALL, confidence=(80, 90))
    host.pass_time(5)
    assert said_again(host) == [], "it has followed"
    host.on_advice = None  # away
    host.call(Revoking, client="desk", id="desk/M1")
    host.pass_time(61)
    host.call(Revoking, client="hall", id="hall/N")
    host.pass_time(61)
    told = [each for each in host.of(Advice) if each.kind == "relax"]
    assert [dict(each.values) for each in told] == [{"rate": 2}, {"confidence": 60}]
    assert said_again(host) == [("relax", dict(each.values), each.number) for each in told], "under the same numbers"
    host.call(Revising, client="reader", id="reader/badge", values={"confidence": 60.0})
    assert said_again(host) == [("relax", {"rate": 2}, told[0].number)], "of the other it has told"
    expect(host, rate=(7, 10))
    (sent,) = said_again(host)
    assert sent[:2] == ("raise", {"rate": 7}), "what was said before about it is of no use any more"
    host.call(Revising, client="reader", id="reader/badge", values={"rate": 7.0})
    assert said_again(host) == []


def test_who_registers_what_it_was_to_fall_back_to_need_not_hear_it() -> None:
    host = zone(READER, adapts=True)
    expect(host, rate=(5, 10))
    host.on_advice = None
    host.call(Revoking, client="desk", id="desk/M1")
    host.pass_time(61)
    assert [each[0] for each in said_again(host)] == ["relax"]
    host.call(Providing, client="reader", profile=READER)
    assert said_again(host) == []


def test_raised_once_and_thinned_for_those_who_want_less() -> None:
    host = zone(READER, adapts=True)
    expect(host, rate=(5, 10))
    expect(host, "hall/N", subscription=HALL, rate=(30, 45))
    assert host.advices() == [("raise", {"rate": 5}, "")]
    host.pass_time(2)
    assert host.advices()[1:] == [("raise", {"rate": 30}, "")]
    assert host.state.in_force == {DESK: "desk/M1", HALL: "hall/N"}
    assert host.shapes.keys() == {DESK}
    thin = host.shapes[DESK].thin
    assert thin is not None
    assert thin.limits == (Limit(events=10, minutes=1, form="quota"),)
    host.call(Revoking, client="hall", id="hall/N")
    host.pass_time(59)
    assert len(host.advices()) == 2
    host.pass_time(2)
    assert host.advices()[2:] == [("relax", {"rate": 5}, "")]
    assert host.shapes == {}, "when the rate is below the goal again the filter goes"


def test_revoked_everything_restores_the_baseline() -> None:
    host = zone(READER, adapts=True)
    expect(host, rate=(5, 10))
    before = host.relevance
    host.deploy(relevance=all_relevant(("reader",), (HALL,)))
    host.pass_time(61)
    assert host.advices() == [("raise", {"rate": 5}, ""), ("relax", {"rate": 2}, "")]
    known = host.state.profiles["reader/badge"]
    assert known.profile.capabilities["rate"].cv == 2
    assert not known.ledger
    state = host.state
    assert state.expectations == {}, "who unsubscribes expects nothing any more"
    for left in (state.by_subscription, state.by_pool, state.in_force, state.shapes, state.claimed, state.declined):
        assert not left
    assert not any(kind == "tell" for kind, _ in state.times)
    assert not any(key.startswith("expectation") for key in host.kept)
    host.deploy(relevance=before)
    expect(host, rate=(5, 10))
    host.pass_time(1)
    assert host.last("desk/M1").state == "satisfied", "what is called so again is heard of"


def test_needed_again_within_the_grace() -> None:
    host = zone(READER, adapts=True)
    expect(host, rate=(5, 10))
    host.call(Revoking, client="desk", id="desk/M1")
    host.pass_time(30)
    expect(host, rate=(4, 10))
    host.pass_time(29)
    assert len(host.advices()) == 1
    host.pass_time(10)
    assert host.advices()[1:] == [("relax", {"rate": 4}, "")], "no more than what relies on it"
    assert host.last("desk/M1").state == "satisfied"


def test_advice_withdrawn_when_nobody_waits_for_it() -> None:
    host = zone(READER)
    expect(host, rate=(5, 10))
    host.call(Suspending, client="desk", id="desk/M1")
    assert [kind for kind, _, _ in host.advices()] == ["raise", "withdraw"]
    assert len({each.id for each in host.of(Advice)}) == 1
    told = len(host.of(StateChange))
    host.pass_time(300)
    assert len(host.of(StateChange)) == told
    assert len(host.advices()) == 2
    host.call(Resuming, client="desk", id="desk/M1")
    assert [kind for kind, _, _ in host.advices()] == ["raise", "withdraw", "raise"]
    assert host.last("desk/M1").why == "adapting"


def test_done_late_is_done_on_advice() -> None:
    host = zone(READER)
    expect(host, rate=(5, 10))
    host.call(Revoking, client="desk", id="desk/M1")
    host.call(Revising, client="reader", id="reader/badge", values={"rate": 5})
    host.pass_time(61)
    assert host.advices()[-1] == ("relax", {"rate": 2}, "")


def test_ignored_advice() -> None:
    host = zone(READER, provides("spare", rate=(1, 20, 1), confidence=(90, 90, 90)))
    expect(host, rate=(5, 10))
    host.pass_time(4.9)
    assert [each.profile for each in host.of(Advice)] == ["reader/badge"]
    host.pass_time(0.2)
    first, again = host.of(Advice)
    assert (first.id, again.number > first.number) == (again.id, True), "sent once more"
    host.pass_time(5)
    assert [each.profile for each in host.of(Advice)][2:] == ["spare/badge"], "the next candidate is tried"
    assert host.last("desk/M1").why == "adapting"
    host.pass_time(11)
    assert host.last("desk/M1").why == "declined"


def test_frozen_after_two() -> None:
    host = zone(READER)
    expect(host, rate=(5, 10))
    host.pass_time(11)
    assert host.last("desk/M1").why == "declined"
    assert len(host.of(Advice)) == 2
    host.pass_time(60)
    assert len(host.of(Advice)) == 3, "it had a rest and is asked once more"
    host.pass_time(11)
    assert len(host.of(Advice)) == 4
    host.pass_time(590)
    assert len(host.of(Advice)) == 4, "frozen"
    host.pass_time(22)
    assert len(host.of(Advice)) == 6
    host.pass_time(1190)
    assert len(host.of(Advice)) == 6, "frozen for twice as long"
    host.on_advice = follow
    host.call(Revising, client="reader", id="reader/badge", values={"rate": 3})
    host.pass_time(1)
    assert host.last("desk/M1").state == "satisfied", "who changes its profile is asked again"


def test_refused_with_what_it_can_do() -> None:
    host = zone(READER)
    expect(host, rate=(30, 45))
    (advice,) = host.of(Advice)
    host.give(Answered(client="reader", advice=advice.id, verdict="refused", values={"rate": 20}))
    host.pass_time(1)
    told = host.last("desk/M1")
    assert (told.why, told.reasons[0].reachable) == ("declined", 20)
    expect(host, "hall/N", subscription=HALL, rate=(15, 45))
    host.pass_time(1)
    assert host.advices()[1:] == [("raise", {"rate": 15}, "")]


def test_refused_with_as_much_as_was_asked_for() -> None:
    host = zone(READER)
    host.on_advice = lambda host, advice: host.later(
        Answered(client="reader", advice=advice.id, verdict="refused", values={"rate": 50})
    )
    expect(host, rate=(30, 45))
    host.pass_time(60)
    assert host.advices() == [("raise", {"rate": 30}, "")], "nobody is asked again what it has refused"
    assert host.last("desk/M1").why == "declined"


def test_accepted_and_not_done() -> None:
    host = zone(READER)
    expect(host, rate=(5, 10))
    (advice,) = host.of(Advice)
    host.give(Answered(client="reader", advice=advice.id, verdict="accepted"))
    host.pass_time(179)
    assert host.last("desk/M1").why == "adapting"
    host.pass_time(2)
    assert host.last("desk/M1").why == "declined"
    assert host.state.profiles["reader/badge"].course.limits == {"rate": 2}


def test_answers_of_others_and_old_ones_say_nothing() -> None:
    host = zone(READER)
    expect(host, rate=(5, 10))
    (advice,) = host.of(Advice)
    for given in (("spare", advice.id), ("reader", "reader/badge#999"), ("reader", "nobody/badge#1"), ("reader", "x")):
        host.give(Answered(client=given[0], advice=given[1], verdict="refused"))
    assert host.state.profiles["reader/badge"].course.open is not None


def test_publisher_vanishes_and_an_alternative_takes_over() -> None:
    host = zone(provides("reader", rate=(2, 60, 40)), provides("spare", rate=(1, 8, 6)))
    expect(host, "desk/best", rate=(30, 60), utility=10)
    expect(host, "desk/plain", rate=(5, 10), utility=2)
    assert host.state.in_force[DESK] == "desk/best"
    host.pass_time(2)
    host.give(Gone(client="reader"))
    told = host.last("desk/best")
    assert (told.state, told.why, told.in_force) == ("unsatisfied", "out-of-reach", "desk/plain")
    assert host.last("desk/plain").in_force == "desk/plain"
    host.give(Gone(client="spare"))
    host.pass_time(1)
    assert host.last("desk/plain").why == "no-publisher"


def test_modes_are_changed_as_planned_and_back() -> None:
    eco, mid, fast = (
        Mode(name="eco", values={"rate": 2, "confidence": 90}, cost=1),
        Mode(name="mid", values={"rate": 10, "confidence": 88}, cost=2),
        Mode(name="fast", values={"rate": 60, "confidence": 80}, cost=8),
    )
    host = zone(in_modes("plant", "eco", eco, mid, fast), adapts=True)
    expect(host, rate=(5, 10), confidence=(75, 95))
    assert host.advices() == [("raise", {}, "mid")]
    host.pass_time(2)
    expect(host, "hall/N", subscription=HALL, rate=(30, 45), confidence=(50, 60))
    assert host.advices()[1:] == [("raise", {}, "fast")]
    host.pass_time(2)
    assert host.last("desk/M1").state == host.last("hall/N").state == "satisfied"
    host.call(Revoking, client="hall", id="hall/N")
    host.pass_time(62)
    assert host.advices()[2:] == [("relax", {}, "mid")]
    host.call(Revoking, client="desk", id="desk/M1")
    host.pass_time(62)
    assert host.advices()[3:] == [("relax", {}, "eco")]
    assert not host.state.profiles["plant/badge"].ledger


def test_calls_that_are_not_allowed() -> None:
    host = zone(READER)
    refused: list[tuple[Any, dict[str, Any], str]] = [
        (Registering, {"client": "desk", "expectation": expects("hall/M1", HALL)}, "Q111"),
        (Registering, {"client": "desk", "expectation": expects("desk/M1", "desk/other")}, "Q111"),
        (Updating, {"client": "desk", "id": "desk/M9", "changes": {"utility": 2.0}}, "Q111"),
        (Suspending, {"client": "desk", "id": "desk/M9"}, "Q111"),
        (Providing, {"client": "desk", "profile": READER}, "Q111"),
        (Providing, {"client": "reader", "profile": provides("reader", type="other", rate=(1, 2, 1))}, "Q111"),
        (Providing, {"client": "reader", "profile": provides("reader", rate=(1, 2, 1))}, "Q111"),
        (Revising, {"client": "desk", "id": "reader/badge", "values": {"rate": 5}}, "Q111"),
        (Revising, {"client": "reader", "id": "reader/badge", "values": {"rate": 61}}, "Q105"),
        (Revising, {"client": "reader", "id": "reader/badge", "values": {"order": 1}}, "Q101"),
        (Revising, {"client": "reader", "id": "reader/badge", "mode": "fast"}, "Q107"),
        (Revising, {"client": "reader", "id": "nobody/badge", "values": {"rate": 5}}, "Q111"),
        (Retracting, {"client": "desk", "id": "reader/badge"}, "Q111"),
    ]
    for make, values, code in refused:
        result = host.call(make, **values)
        assert isinstance(result, Refused), (make, values)
        assert result.code.code == code, (make, values)
        assert result.message
        assert result.hint
    assert host.state.profiles["reader/badge"].profile == READER


def test_versions() -> None:
    host = zone(READER)
    expect(host, rate=(5, 10))
    again = expect(host, rate=(5, 10))
    assert again.version == 1
    assert len(host.of(StateChange)) == 1, "the same again: nothing happens"
    assert expect(host, rate=(6, 10)).code.code == "Q111", "another thing under the same name"
    changes = {"needs": {"rate": need("rate", 1, 10)}}
    updated = host.call(Updating, client="desk", id="desk/M1", changes=changes)
    assert (updated.version, updated.order) == (2, again.order)
    host.pass_time(1)
    assert (host.last("desk/M1").version, host.last("desk/M1").state) == (2, "satisfied")
    assert host.call(Updating, client="desk", id="desk/M1", changes={}, version=2).version == 2
    assert host.call(Updating, client="desk", id="desk/M1", changes={}, version=1).code.code == "Q112"
    assert host.call(Updating, client="desk", id="desk/M1", changes={"order": 1}).code.code == "Q111"
    assert host.call(Revoking, client="desk", id="desk/M1") is None
    assert host.call(Revoking, client="desk", id="desk/M1") is None


def test_usage_is_told_when_it_begins_and_ends() -> None:
    host = zone(provides("reader", rate=(2, 60, 7)))
    host.pass_time(120)
    assert host.of(Usage) == []
    expect(host, rate=(5, 10))
    host.pass_time(2)
    (told,) = host.of(Usage)
    assert (told.used, told.subscriptions, told.expectations, dict(told.floors)) == (True, 1, 1, {"rate": 5})
    expect(host, "hall/N", subscription=HALL, rate=(6, 10))
    host.pass_time(30)
    assert len(host.of(Usage)) == 1, "figures each minute"
    host.pass_time(60)
    assert dict(host.of(Usage)[-1].floors) == {"rate": 6}
    assert host.of(Usage)[-1].subscriptions == 2
    for client in ("desk", "hall"):
        host.give(Gone(client=client))
    host.pass_time(2)
    assert not host.of(Usage)[-1].used
    assert len(host.of(Usage)) == 3


def test_usage_is_told_each_minute_while_there_is_some() -> None:
    host = zone(provides("reader", rate=(2, 60, 7)))
    expect(host, rate=(5, 10))
    host.pass_time(2)
    kept = host.kept["profile/reader/badge"]
    host.pass_time(600)
    told = host.of(Usage)
    assert len(told) == 11
    assert {str(replace(each, number=0)) for each in told} == {str(replace(told[0], number=0))}
    assert host.kept["profile/reader/badge"] == kept, "what is said again is not written again"
    host.call(Updating, client="desk", id="desk/M1", changes={"needs": {"rate": need("rate", 6, 10)}})
    host.pass_time(60)
    assert dict(host.of(Usage)[-1].floors) == {"rate": 6}, "also if the same one is in force"
    host.start_again()
    host.pass_time(61)
    assert len(host.of(Usage)) == 13
    host.give(Gone(client="desk"))
    host.pass_time(600)
    assert [each.used for each in host.of(Usage)[12:]] == [True, False], "who is not used need not hear it again"


def test_who_relies_on_others_now_is_not_counted() -> None:
    """The alternative in force changes by something that happens to another publisher, of another pool."""
    relevance = Relevance(
        pools={"one/badge": "p1", "other/badge": "p2"}, relevant={DESK: frozenset(("p1", "p2")), HALL: frozenset()}
    )
    host = Host(relevance=relevance).start()
    host.call(Providing, client="one", profile=provides("one", rate=(2, 10, 7)))
    host.call(Providing, client="other", profile=provides("other", rate=(2, 4, 2)))
    expect(host, "desk/low", utility=1, rate=(1, 10))
    expect(host, "desk/high", utility=9, rate=(50, 60))
    host.pass_time(120)
    assert host.state.in_force == {DESK: "desk/low"}
    assert {each.profile: each.expectations for each in host.of(Usage)} == {"one/badge": 1, "other/badge": 1}
    host.call(Revising, client="one", id="one/badge", capabilities={"rate": can("rate", 2, 60, 60)})
    host.pass_time(2)
    assert host.state.in_force == {DESK: "desk/high"}
    assert {each.profile: each.expectations for each in host.of(Usage)} == {"one/badge": 1, "other/badge": 0}


def test_no_storm_of_messages() -> None:
    host = zone(provides("reader", rate=(2, 60, 7)))
    many = 100
    for number in range(many):
        expect(host, f"desk/{number}", rate=(5 + number % 3, 10))
    host.pass_time(5)
    before = host.messages
    for flip in range(40):
        host.call(Revising, client="reader", id="reader/badge", values={"rate": 4.0 if flip % 2 == 0 else 7.0})
    assert host.messages - before <= many + 1, "each at most once in that second, and one advice"
    host.pass_time(10)
    assert host.messages - before <= 2 * many + 5
    told = {number: host.last(f"desk/{number}").state for number in range(many)}
    assert set(told.values()) == {"satisfied"}, "and the latest in the end"


def test_oscillating_publisher_is_not_asked_more_than_once_a_second() -> None:
    host = zone(READER, adapts=True)
    expect(host, rate=(5, 10))
    for _ in range(50):
        host.call(Revising, client="reader", id="reader/badge", values={"rate": 2})
        host.pass_time(0.1)
    assert 4 <= len(host.of(Advice)) <= 7


def test_declared_things_wait_for_their_client() -> None:
    quality = Quality(
        expectations={"M1": expects("M1", rate=(5, 10))},
        profiles={"reader/badge": provides("reader", rate=(2, 60, 7))},
    )
    host = Host(quality=quality, relevance=all_relevant(("reader",), (DESK,))).start()
    host.give(Came(client="reader"))
    host.pass_time(1)
    assert host.last("M1").state == "satisfied"
    host.give(Gone(client="reader"))
    host.pass_time(1)
    assert host.last("M1").why == "no-publisher"
    host.give(Came(client="reader"))
    host.pass_time(1)
    assert host.last("M1").state == "satisfied"
    count = len(host.heard)
    host.deploy()
    host.pass_time(1)
    assert len([each for each in host.heard[count:] if not isinstance(each, Usage)]) == 0
    updated = host.call(Updating, client="desk", id="M1", changes={"needs": {"rate": need("rate", 8, 10)}})
    assert updated.version == 2
    assert host.advices()[-1] == ("raise", {"rate": 8}, "")
    host.deploy()
    assert host.state.expectations["M1"].expectation.version == 2, "a declaration that did not change says nothing new"
    host.deploy(quality=Quality(profiles=quality.profiles))
    assert host.state.expectations == {}
    assert host.advices()[-1][0] == "withdraw"


def test_what_rests_is_registered_as_that() -> None:
    host = zone(READER, adapts=True)
    assert expect(host, rate=(5, 10), suspended=True).suspended
    host.pass_time(5)
    assert (host.heard, host.shapes) == ([], {}), "it is not matched, and nobody is told of it"
    host.call(Resuming, client="desk", id="desk/M1")
    host.pass_time(1)
    assert host.last("desk/M1").state == "satisfied"
    host.call(Suspending, client="desk", id="desk/M1")
    again = expects("desk/M1", rate=(5, 10), version=2)
    assert host.call(Registering, client="desk", expectation=again).suspended, "who says nothing of it changes nothing"


def test_who_lost_all_memory_is_heard() -> None:
    host = zone(READER, adapts=True)
    for floor in (5, 6, 7):
        expect(host, f"desk/M{floor}", rate=(floor, 10))
        host.pass_time(2)
    host.kept, count = {}, len(host.heard)
    host.state = new_state()
    host.give(Restored(number=2 * 10**12))
    host.give(DeployedQuality(quality=host.quality, relevance=host.relevance))
    host.call(Providing, client="reader", profile=READER)
    expect(host, "desk/M5", rate=(5, 10))
    host.pass_time(2)
    assert [each.state for each in host.heard[count:] if isinstance(each, StateChange)][-1] == "satisfied"
    again = Restored(kept={key: json.loads(value) for key, value in host.kept.items()}, number=5 * 10**12)
    number, host.state = host.state.number, new_state()
    host.give(again)
    host.give(DeployedQuality(quality=host.quality, relevance=host.relevance))
    assert number <= host.state.number < 3 * 10**12, "who remembers goes on from there"


@pytest.mark.parametrize("others", [0, 1, 30])
def test_numbers_of_messages_say_nothing_of_messages_to_others(others: int) -> None:
    """Neither how many there are nor, in between two of one's own, how many there were."""
    host = zone(provides("reader", rate=(2, 60, 7)), provides("late", rate=(2, 60, 2)))
    for number in range(others):
        expect(host, f"hall/N{number}", subscription=HALL, rate=(5, 10))
    expect(host, "desk/M1", rate=(5, 10))
    for number in range(others):
        host.call(Revoking, client="hall", id=f"hall/N{number}")
        expect(host, f"hall/N{number}", subscription=HALL, rate=(50, 60))
    host.pass_time(30)
    expect(host, "desk/M2", rate=(70, 80))
    heard = [each.number for each in host.of(StateChange) if each.expectation.startswith("desk/")]
    assert heard[:1] == [int(START * 1_000_000)]
    assert heard[-1] == int((START + 30) * 1_000_000)


def declared_zone(*profiles: Profile) -> Host:
    """A zone whose project declares these, and an expectation of the desk's."""
    quality = Quality(
        expectations={"M1": expects("M1", rate=(5, 10))}, profiles={each.id: each for each in (profiles or (READER,))}
    )
    return Host(quality=quality, relevance=all_relevant(("reader", "spare"), (DESK,))).start()


def test_what_is_declared_for_somebody_who_never_came_is_a_promise() -> None:
    host = declared_zone(READER, provides("spare", rate=(1, 4, 1)))
    told = host.last("M1")
    assert (told.state, told.why, told.absent) == ("unsatisfied", "no-publisher", 2)
    host.pass_time(60)
    assert host.advices() == [], "nobody is there to be advised"
    host.give(Came(client="spare"))
    host.pass_time(1)
    assert (host.last("M1").why, host.last("M1").absent) == ("out-of-reach", 1)
    host.on_advice = follow
    host.give(Came(client="reader"))
    host.pass_time(1)
    assert host.advices() == [("raise", {"rate": 5}, "")]
    assert host.last("M1").state == "satisfied"


def test_who_was_there_before_a_restart_is_waited_for() -> None:
    host = declared_zone(provides("reader", rate=(2, 60, 7)))
    host.give(Came(client="reader"))
    host.pass_time(1)
    count = len(host.of(StateChange))
    assert host.last("M1").state == "satisfied"
    host.start_again()
    host.pass_time(5)
    host.give(Came(client="reader"))
    host.pass_time(5)
    assert len(host.of(StateChange)) == count
    host.give(Gone(client="reader"))
    host.start_again()
    host.pass_time(5)
    assert host.last("M1").why == "no-publisher"


def test_what_an_earlier_release_kept_says_who_is_gone_only() -> None:
    host = declared_zone(provides("reader", rate=(2, 60, 7)))
    host.give(Came(client="reader"))
    host.pass_time(1)
    count = len(host.of(StateChange))
    del host.kept["here/reader"], host.kept["presence"]
    host.start_again()
    host.pass_time(5)
    assert len(host.of(StateChange)) == count


def test_who_is_connected_when_something_is_declared_for_it_is_there() -> None:
    host = Host(relevance=all_relevant(("reader",), (DESK,))).start()
    host.give(Came(client="reader"))
    host.give(Came(client="passer-by"))
    assert host.kept == {}, "of those for whom nothing is declared nothing is kept"
    quality = Quality(
        expectations={"M1": expects("M1", rate=(5, 10))}, profiles={"reader/badge": provides("reader", rate=(2, 60, 7))}
    )
    host.deploy(quality=quality)
    assert host.last("M1").state == "satisfied"
    host.start_again()
    host.pass_time(5)
    assert host.last("M1").state == "satisfied"


def test_who_publishes_without_ever_connecting_is_there_and_is_not_advised() -> None:
    host = declared_zone(READER)
    watch(host, 12, 3)
    assert host.last("M1").state == "satisfied", "what it does counts"
    watch(host, 0, 4)
    assert host.last("M1").state == "unsatisfied"
    assert host.advices() == [], "nobody would hear it"
    host.give(Came(client="reader"))
    host.pass_time(1)
    assert [kind for kind, _, _ in host.advices()] == ["raise"]


def test_what_was_published_before_somebody_left_does_not_bring_it_back() -> None:
    host = declared_zone(provides("reader", rate=(2, 60, 7)))
    host.give(Came(client="reader"))
    before = host.now
    host.pass_time(20)
    host.give(Gone(client="reader"))
    host.pass_time(1)
    last = round(before * 1_000_000)
    pane = Pane(publisher="reader", type="badge", start=last // 10_000_000 * 10_000_000, events=5, last=last)
    host.give(Measured(panes=(pane,), until=last))
    host.pass_time(2)
    assert host.last("M1").why == "no-publisher"


def test_property_that_is_no_more() -> None:
    own = QualityProperty(name="calm", lo=0, hi=1)
    host = Host(quality=Quality(properties={"calm": own}), relevance=all_relevant(("reader",), (DESK,))).start()
    wanted = expects("desk/M1", needs={"calm": Need(about=own, lb=0.5, ub=1)})
    host.call(Registering, client="desk", expectation=wanted)
    host.deploy(quality=Quality())
    assert host.last("desk/M1").state == "revoked"
    assert host.state.expectations == {}
    assert not any(key.startswith("expectation") for key in host.kept)


def _calm(*levels: str) -> QualityProperty:
    return QualityProperty(name="calm", lo=0, hi=len(levels) - 1, levels=levels, determined_by="publisher")


@pytest.mark.parametrize("restarted", [False, True])
def test_levels_that_have_other_places(restarted: bool) -> None:
    """What was done before, claimed and advised stays what it was called, wherever that stands now."""
    before, after = _calm("low", "high", "highest"), _calm("none", "low", "medium", "high", "highest")
    capability = Capability(about=before, lb=0, ub=2, cv=0)
    reader = Profile(publisher="reader", type="badge", capabilities={"calm": capability})
    host = Host(quality=Quality(properties={"calm": before}), relevance=all_relevant(("reader",), (DESK,))).start()
    host.on_advice = _follow_levels
    host.call(Providing, client="reader", profile=reader)
    wanted = expects("desk/M1", needs={"calm": Need(about=before, lb=1, ub=2)})
    host.call(Registering, client="desk", expectation=wanted)
    host.pass_time(1)
    assert host.last("desk/M1").state == "satisfied"
    assert host.advices() == [("raise", {"calm": "high"}, "")]
    host.quality = Quality(properties={"calm": after})
    if restarted:
        host.start_again()
    else:
        host.deploy()
    host.pass_time(1)
    known = host.state.profiles["reader/badge"]
    assert known.ledger.baseline == {"calm": 1}, "low"
    assert known.course.unproven == {"calm": 3}, "high"
    assert known.course.asked is not None
    assert known.course.asked.values == {"calm": 3}
    assert host.last("desk/M1").state == "satisfied"
    host.call(Revoking, client="desk", id="desk/M1")
    host.pass_time(70)
    assert host.advices()[-1] == ("relax", {"calm": "low"}, "")


def test_a_level_that_is_no_more() -> None:
    before, after = _calm("low", "high", "highest"), _calm("high", "highest")
    capability = Capability(about=before, lb=0, ub=2, cv=0)
    reader = Profile(publisher="reader", type="badge", capabilities={"calm": capability})
    host = Host(quality=Quality(properties={"calm": before}), relevance=all_relevant(("reader",), (DESK,))).start()
    host.on_advice = _follow_levels
    host.call(Providing, client="reader", profile=reader)
    host.call(
        Registering,
        client="desk",
        expectation=expects("desk/M1", needs={"calm": Need(about=before, lb=1, ub=2)}),
    )
    host.call(Revising, client="reader", id="reader/badge", capabilities={"calm": replace(capability, lb=1, cv=1)})
    host.deploy(quality=Quality(properties={"calm": after}))
    host.pass_time(70)
    known = host.state.profiles["reader/badge"]
    assert known.ledger.baseline in ({}, {"calm": 0})
    assert known.profile.capabilities["calm"].cv == 0


def _follow_levels(host: Host, advice: Advice) -> None:
    """As :func:`follow`, for levels."""
    known = host.state.profiles[advice.profile].profile.capabilities
    values = {id: float(known[id].about.levels.index(value)) for id, value in advice.values.items()}
    if advice.kind == "raise":
        host.later(Answered(client="reader", advice=advice.id, verdict="accepted"))
    host.tickets += 1
    host.later(Revising(ticket=host.tickets, client="reader", id=advice.profile, values=values))


# ── measured ──


def watch(host: Host, rate: int, minutes: float, publishers: tuple[str, ...] = ("reader",)) -> None:
    """Minutes of events at a rate, in time and in event time alike."""
    for _ in range(round(minutes * 6)):
        start = host.state.mark or 0
        events = round(rate / 6)
        last = start + 9_999_999 if events else None
        panes = tuple(Pane(publisher=each, type="badge", start=start, events=events, last=last) for each in publishers)
        host.pass_time(10)
        host.give(Measured(panes=panes, until=start + 10_000_000))


def test_lying_publisher() -> None:
    host = zone(provides("reader", rate=(2, 60, 60)))
    expect(host, rate=(40, 60))
    host.pass_time(3)
    watch(host, 60, 3)
    assert [each.state for each in host.of(StateChange)] == ["satisfied"]
    watch(host, 30, 2.2)
    told = host.last("desk/M1")
    assert (told.state, told.why) == ("unsatisfied", "violated")
    assert told.reasons[0].current == 30
    usage = host.of(Usage)[-1]
    assert usage.violated == ("rate",)
    assert host.advices()[0] == ("raise", {"rate": 40}, ""), "what is affected is negotiated anew"
    watch(host, 60, 8)
    assert host.last("desk/M1").state == "satisfied"
    assert host.of(Usage)[-1].violated == ()
    assert host.state.profiles["reader/badge"].estimate.corrected == {}


def test_publisher_whose_events_do_not_arrive() -> None:
    host = zone(provides("reader", rate=(2, 60, 60), reliability=(0, 1, 1)))
    expect(host, reliability=(0.9, 1))

    def settled(delivered: float, minutes: int) -> None:
        for _ in range(minutes * 6):
            start = host.state.mark or 0
            came = Pane(publisher="reader", type="badge", start=start, events=10, last=start + 9_999_999)
            known = Pane(publisher="reader", type="badge", start=start, accepted=20, delivered=delivered)
            host.pass_time(10)
            host.give(Measured(panes=(came, known), until=start + 10_000_000))

    settled(20, 3)
    assert host.last("desk/M1").state == "satisfied"
    settled(14.5, 3)
    assert (host.last("desk/M1").state, host.last("desk/M1").why) == ("unsatisfied", "violated")
    assert host.state.profiles["reader/badge"].estimate.corrected == {"reliability": pytest.approx(0.725, abs=0.05)}
    assert host.of(Usage)[-1].violated == ("reliability",)
    settled(20, 8)
    assert host.last("desk/M1").state == "satisfied"
    watch(host, 60, 3)
    assert host.last("desk/M1").state == "satisfied", "what nobody was to acknowledge says nothing"


def test_trembling_publisher() -> None:
    host = zone(provides("reader", rate=(2, 60, 60)))
    expect(host, rate=(60, 60))
    host.pass_time(70)
    heard = len(host.heard)
    for place in range(100):
        watch(host, 54 if place % 2 else 60, 1 / 6)
    said = {str(replace(each, number=0)) for each in host.heard[heard:] if isinstance(each, Usage)}
    assert len(said) == 1, "what is told each minute says nothing new"
    assert all(isinstance(each, Usage) for each in host.heard[heard:])
    assert len(host.heard) - heard == 16


def test_measured_effect_of_advice() -> None:
    host = zone(provides("reader", rate=(2, 120, 30)))
    watch(host, 30, 3)
    expect(host, rate=(60, 60))
    (advice,) = host.of(Advice)
    host.give(Answered(client="reader", advice=advice.id, verdict="accepted"))
    watch(host, 60, 2.5)
    assert host.last("desk/M1").state == "satisfied", "it does not say so, but it does so"
    assert host.state.profiles["reader/badge"].course.open is None


def test_who_says_it_did_and_did_not() -> None:
    host = zone(provides("reader", rate=(2, 120, 30)), adapts=True)
    watch(host, 30, 3)
    expect(host, rate=(60, 60))
    host.pass_time(2)
    assert host.last("desk/M1").state == "satisfied", "by its word"
    watch(host, 30, 4)
    assert host.last("desk/M1").why == "violated"
    known = host.state.profiles["reader/badge"]
    assert known.course.limits == {"rate": 30}, "that is the best to be had of it"
    assert known.course.failures == 1
    watch(host, 30, 30)
    raised = [each for each in host.advices() if each[0] == "raise"]
    assert len(raised) == 1, "nobody is asked again and again for what it does not do"


def test_silent_publisher() -> None:
    host = zone(provides("reader", rate=(2, 60, 60)), provides("spare", rate=(2, 60, 60)))
    expect(host, rate=(40, 60))
    expect(host, "hall/N", subscription=HALL, rate=(40, 60), publishers=2)
    watch(host, 60, 3, ("reader", "spare"))
    watch(host, 60, 0.5, ("spare",))
    assert host.last("desk/M1").state == "satisfied", "another takes over"
    told = host.last("hall/N")
    assert (told.state, told.why) == ("unsatisfied", "violated")
    watch(host, 0, 0.5, ("spare",))
    assert host.last("desk/M1").why == "violated"


@cases(300, 10_000)
def test_many_changed_at_once(cases: int) -> None:
    """Each is told once of what has become of it, however often it changes within a second."""
    subscriptions = tuple(f"s{number % 100}/events" for number in range(cases))

    def declared(floor: float) -> Quality:
        wanted = {f"e{place}": expects(f"e{place}", each, rate=(floor, 60)) for place, each in enumerate(subscriptions)}
        return Quality(expectations=wanted, profiles={"reader/badge": provides("reader", rate=(2, 60, 20))})

    host = Host(relevance=all_relevant(("reader",), subscriptions)).start()
    host.give(Came(client="reader"))
    host.deploy(declared(10))
    assert host.messages == cases
    host.pass_time(5)
    for floor in (30, 5, 30, 5, 40):
        before = host.messages
        host.deploy(declared(floor))
        assert host.messages - before <= cases + 1
    total = host.messages
    host.pass_time(5)
    assert host.messages - total <= cases + 4
    assert {host.last(f"e{place}").version for place in range(cases)} == {6}
    assert {host.last(f"e{place}").why for place in range(cases)} == {"adapting"}
    assert len([each for each in host.of(Advice) if each.profile == "reader/badge"]) <= 4


def test_strategy_that_fails() -> None:
    def fails(problem: AllocationProblem) -> AllocationPlan:
        raise ZeroDivisionError(problem.strategy.name)

    host = zone(READER)
    host.state = new_state({"pareto": BUILT_IN_STRATEGIES["pareto"], "ours": fails})
    host.give(Restored(kept={key: json.loads(value) for key, value in host.kept.items()}))
    host.deploy(Quality(strategies={"default": Strategy(name="ours"), "badge": Strategy(name="nobody-has-it")}))
    expect(host, rate=(5, 10))
    host.deploy(Quality(strategies={"default": Strategy(name="ours")}))
    expect(host, "hall/N", subscription=HALL, rate=(6, 10))
    assert {each: host.last(each).why for each in ("desk/M1", "hall/N")} == {
        "desk/M1": "adapting",
        "hall/N": "adapting",
    }


def test_subscription_that_comes_and_goes() -> None:
    quality = Quality(expectations={"M1": expects("M1", rate=(5, 10))})
    host = Host(quality=quality, relevance=all_relevant(("reader",), ())).start()
    assert host.heard == []
    host.deploy(relevance=all_relevant(("reader",), (DESK,)))
    assert host.last("M1").why == "no-publisher"
    host.call(Providing, client="reader", profile=provides("reader", rate=(2, 60, 7)))
    host.pass_time(1)
    assert host.last("M1").state == "satisfied"
    expect(host, rate=(5, 10))
    host.deploy(relevance=all_relevant(("reader",), ()))
    assert host.state.expectations.keys() == {"M1"}, "what its client registered is revoked"
    assert host.state.in_force == {}
    host.deploy(relevance=all_relevant((), (DESK,)))
    assert host.state.profiles == {}, "a profile goes with its advertisement"
    host.pass_time(1)
    assert host.last("M1").why == "no-publisher"


def test_a_property_that_becomes_a_matter_of_modes_while_it_is_advised() -> None:
    host = zone(READER)
    expect(host, rate=(5, 10))
    assert host.advices() == [("raise", {"rate": 5}, "")]
    modes = Mode(name="slow", values={"rate": 1}), Mode(name="fast", values={"rate": 60}, cost=2)
    host.call(Providing, client="reader", profile=replace(in_modes("reader", "slow", *modes), version=2))
    host.pass_time(3)
    assert host.advices()[1:] == [("withdraw", {}, ""), ("raise", {}, "fast")]


@pytest.mark.parametrize("verdict", ["refused", "failed"])
def test_advice_of_which_a_part_has_become_a_matter_of_modes(verdict: Verdict) -> None:
    host = zone(provides("reader", rate=(2, 60, 2), confidence=(50, 90, 50)))
    expect(host, rate=(5, 10), confidence=(75, 95))
    (advice,) = host.of(Advice)
    assert dict(advice.values) == {"rate": 5, "confidence": 75}
    modes = Mode(name="slow", values={"rate": 1}), Mode(name="fast", values={"rate": 60}, cost=2)
    moded = in_modes("reader", "slow", *modes)
    mixed = replace(moded, capabilities={"confidence": can("confidence", 50, 90, 50)}, version=2)
    host.call(Providing, client="reader", profile=mixed)
    known = host.state.profiles["reader/badge"]
    (waits,) = known.course.to_be_heard(known.profile)
    assert (waits.id, dict(waits.values), waits.deadline) == (advice.id, {"confidence": 75}, advice.deadline)
    host.give(Answered(client="reader", advice=advice.id, verdict=verdict, values={"confidence": 60}))
    assert known.course.limits == {"confidence": 60}
    assert not list(known.course.to_be_heard(known.profile))


def test_clients_that_come_and_go_leave_nothing_behind() -> None:
    host = zone(READER)
    for name in ("desk", "hall"):
        expect(host, f"{name}/M1", subscription=f"{name}/events", rate=(5, 10))
        host.give(Gone(client=name))
    assert host.state.gone == set()
    assert "gone" not in host.kept


def test_a_clock_that_is_ahead_misleads_nobody() -> None:
    """One event of the far future: neither is event time there, nor is the publisher silent until then."""
    host = zone(provides("reader", rate=(2, 60, 60)), provides("spare", rate=(2, 60, 60)))
    expect(host, rate=(40, 60))
    watch(host, 60, 2, ("reader", "spare"))
    mark = host.state.mark
    assert mark is not None
    ahead = 250_000_000_000_000_000
    pane = Pane(publisher="spare", type="badge", start=ahead, events=1, last=ahead)
    host.give(Measured(panes=(pane,), until=mark))
    assert host.state.mark == mark
    assert host.state.gathered.panes["spare/badge"].keys() == host.state.gathered.panes["reader/badge"].keys()
    watch(host, 0, 11, ("reader", "spare"))
    assert host.state.profiles["spare/badge"].estimate.corrected["rate"] < 1
