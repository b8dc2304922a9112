"""After what it was decided on an expectation, as an explanation tells it; also after a restart, and without names."""

from __future__ import annotations

from situ.lang.records import replace
from situ.quality.explanation.explain import explain_expectation
from situ.quality.explanation.text import as_text
from situ.quality.model.declarations import Quality
from situ.quality.negotiation.inputs_and_effects import (
    Answered,
    Came,
    Gone,
    Providing,
    Resuming,
    Retracting,
    Revising,
    Suspending,
    Updating,
)
from situ.quality.negotiation.state import PROJECT_CHANGED, STARTED, DecisionCause, ExpectationDecision, StepCauses
from tests.negotiating import Host, all_relevant, expects, need, provides
from tests.unit.quality.test_negotiator import DESK, HALL, READER, expect, watch, zone


def after(host: Host, id: str = "desk/M1", *, named: bool = True) -> str | None:
    """What an explanation says; the same if the router is started again in between."""
    found = explain_expectation(host.state, id, named=named)
    again = Host(quality=host.quality, relevance=host.relevance, now=host.now + 5, kept=dict(host.kept)).start()
    if host.state.begun and id in again.state.expectations:
        later = explain_expectation(again.state, id, named=named)
        assert (later.after, later.since) == (found.after, found.since), "it survives a restart"
    if found.after:
        assert f"after {found.after}" in as_text(found)
    return found.after


def test_what_its_client_does() -> None:
    host = zone(provides("reader", rate=(2, 60, 7)))
    expect(host, rate=(5, 10))
    assert after(host) == "it was registered"
    began = host.now
    host.pass_time(10)
    host.call(Updating, client="desk", id="desk/M1", changes={"needs": {"rate": need("rate", 6, 10)}})
    assert after(host) == "it was updated"
    assert host.state.expectations["desk/M1"].decided is not None
    assert host.state.expectations["desk/M1"].decided.at == began + 10
    host.call(Suspending, client="desk", id="desk/M1")
    assert after(host) is None
    host.call(Resuming, client="desk", id="desk/M1")
    assert after(host) == "it was resumed"


def test_what_publishers_do() -> None:
    host = zone(READER)
    host.on_advice = None
    expect(host, rate=(5, 10))
    host.call(Revising, client="reader", id="reader/badge", values={"rate": 6.0})
    assert after(host) == "reader was updated"
    assert after(host, named=False) == "publisher 1 was updated"
    host.call(Revising, client="reader", id="reader/badge", values={"rate": 7.0})
    host.pass_time(2)
    assert after(host) == "reader was updated"
    host.call(Retracting, client="reader", id="reader/badge")
    assert after(host) == "reader/badge was revoked"
    assert after(host, named=False) == "a publisher was revoked"
    host.call(Providing, client="reader", profile=provides("reader", rate=(2, 60, 6)))
    assert after(host) == "reader was registered"
    host.give(Gone(client="reader"))
    assert after(host) == "reader/badge left"


def test_what_was_decided_again_as_before_keeps_its_cause() -> None:
    host = zone(provides("reader", rate=(2, 60, 7)))
    expect(host, rate=(5, 10))
    host.call(Providing, client="late", profile=provides("late", rate=(2, 60, 8)))
    host.pass_time(5)
    assert after(host) == "it was registered"


def test_what_becomes_of_advice() -> None:
    host = zone(READER)
    expect(host, rate=(5, 10))
    sent = host.state.profiles["reader/badge"].course.open
    assert sent is not None
    host.give(Answered(client="reader", advice=sent.id, verdict="refused", values={"rate": 3.0}))
    assert after(host) == "reader refused an advice"
    other = zone(READER)
    expect(other, rate=(5, 10))
    other.pass_time(11)
    assert after(other) == "reader did not answer an advice"
    other.pass_time(60)
    assert after(other) == "reader may be asked again"
    third = zone(READER)
    expect(third, rate=(5, 10))
    sent = third.state.profiles["reader/badge"].course.open
    assert sent is not None
    third.give(Answered(client="reader", advice=sent.id, verdict="accepted"))
    assert after(third) == "it was registered", "it is adapted to as before"
    third.pass_time(181)
    assert after(third) == "reader did not do what it had accepted"


def test_what_is_measured() -> None:
    host = zone(provides("reader", rate=(2, 60, 60)))
    expect(host, rate=(50, 60))
    watch(host, 30, 4)
    assert after(host) == "reader was measured to have rate 30"


def test_what_others_do_is_told_without_their_names() -> None:
    host = zone(READER)
    expect(host, rate=(5, 10))
    expect(host, "desk/other", rate=(5, 10))
    held = host.state.expectations["desk/M1"]
    assert held.decided is not None
    for id, shown in (("hall/N", "another expectation"), ("desk/other", "desk/other")):
        held.decided = replace(held.decided, cause=DecisionCause(what="was revoked", expectation=id))
        assert explain_expectation(host.state, "desk/M1", named=True).after == f"{id} was revoked"
        assert explain_expectation(host.state, "desk/M1", named=False).after == f"{shown} was revoked"


def test_a_declared_one_whose_client_comes_back() -> None:
    wanted = expects("M1", rate=(5, 10))
    quality = Quality(expectations={"M1": wanted}, profiles={READER.id: READER})
    host = Host(quality=quality, relevance=all_relevant(("reader",), (DESK, HALL))).start()
    assert after(host, "M1") == STARTED
    host.give(Came(client="reader"))
    assert after(host, "M1") == "reader came"
    host.give(Gone(client="reader"))
    assert after(host, "M1") == "reader/badge left"
    host.give(Came(client="reader"))
    assert after(host, "M1") == "reader came back"
    host.give(Gone(client="desk"))
    assert after(host, "M1") == "reader came back", "who was never there cannot leave"
    host.give(Came(client="desk"))
    host.give(Gone(client="desk"))
    host.give(Came(client="desk"))
    assert after(host, "M1") == "it came back"
    host.deploy(quality=Quality(expectations={"M1": wanted}))
    assert after(host, "M1") == PROJECT_CHANGED


def test_of_several_causes_the_nearest_counts() -> None:
    host = zone(READER)
    expect(host, rate=(5, 10))
    expect(host, "desk/other", rate=(5, 10))
    held = host.state.expectations["desk/M1"]
    own, alternative = DecisionCause(what="x", expectation="desk/M1"), DecisionCause(what="x", expectation="desk/other")
    claimed, somewhere = (
        DecisionCause(what="x", profile="reader/badge"),
        DecisionCause(what="x", profile="nobody/badge"),
    )
    order = [somewhere, alternative, claimed, own]
    for count in range(1, len(order) + 1):
        found = StepCauses()
        for each in order[:count]:
            found.add(host.state, each)
        assert found.concerning(host.state, held) == order[count - 1]
    assert StepCauses().concerning(host.state, held) is None


def test_the_form_in_which_it_is_kept() -> None:
    for cause in (None, DecisionCause(what="was updated", profile="reader/badge")):
        decided = ExpectationDecision(outcome=("1", "satisfied", ""), at=5.0, cause=cause)
        assert ExpectationDecision.from_json(decided.as_json()) == decided
