"""What clients say about quality, read: what it becomes, and all that is wrong with it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from situ.lang.documents import DocumentLimits
from situ.lang.problems import SituError
from situ.project.check import check_folder
from situ.protocol.messages import (
    AnswerAdvice,
    ChangeExpectation,
    ChangeProfile,
    Expect,
    MoveExpectation,
    Negotiated,
    Provide,
    RevokeProfile,
)
from situ.quality.model.allocation_problem import AllocationPlan
from situ.quality.model.declarations import Expectation
from situ.quality.negotiation.inputs_and_effects import (
    Answered,
    Providing,
    Registering,
    Resuming,
    Retracting,
    Revising,
    Revoking,
    Suspending,
    Updating,
)
from situ.quality.negotiation.state import ExpectationRecord, NegotiatorState, ProfileRecord
from situ.quality.parse.client_calls import parse_profile, parse_profile_revision
from situ.router.quality_calls import QualityCalls, RelevantProfiles
from tests.project_files import write

FILES = {
    "situ.yaml": "name: plant\n",
    "types/plant.yaml": "events: {Warm: {room: string, value: double}}\n",
    "clients/all.yaml": """
        clients:
          reader: {advertisements: {warm: {type: Warm}}}
          desk: {subscriptions: {warm: {types: [Warm]}}}
        """,
}
PROFILE = {
    "capabilities": {
        "rate": {"lb": 2, "ub": "1 Hz", "cv": 2, "cost": "0.1 * x"},
        "trust": {"lb": "low", "ub": "high", "cv": "low"},
    }
}
NEED = {"rate": {"lb": 5, "ub": 10}, "confidence": {"lb": "75 %", "ub": 95, "each": True}}


@pytest.fixture(scope="module")
def pools(tmp_path_factory: pytest.TempPathFactory) -> RelevantProfiles:
    folder: Path = write(tmp_path_factory.mktemp("plant"), FILES)
    deployment = check_folder(folder).deployment
    assert deployment is not None
    return RelevantProfiles.of(deployment)


@pytest.fixture
def calls(pools: RelevantProfiles) -> QualityCalls:
    return QualityCalls(pools, NegotiatorState(decide=lambda problem: AllocationPlan()))


def provided(calls: QualityCalls, body: Mapping[str, Any] = PROFILE) -> Providing:
    read = calls.read(1, "reader", Provide(req=1, type="Warm", body=dict(body)))
    assert isinstance(read, Providing)
    calls.state.profiles[read.profile.id] = ProfileRecord(profile=read.profile)
    return read


def codes(calls: QualityCalls, client: str, message: Negotiated) -> list[str]:
    with pytest.raises(SituError) as refused:
        calls.read(1, client, message)
    return [each.code.code for each in refused.value.problems]


def test_an_expectation_is_read_as_a_file_says_it(calls: QualityCalls) -> None:
    body = {"need": NEED, "utility": 4, "sources": "selected"}
    read = calls.read(7, "desk", Expect(req=1, expectation="M1", sub="warm", body=body, version=3))
    assert isinstance(read, Registering)
    found = read.expectation
    assert (read.ticket, found.id, found.subscription, found.version) == (7, "desk/M1", "desk/warm", 3)
    assert (found.utility, found.selected) == (4.0, True)
    assert {id: (each.lb, each.ub, each.each) for id, each in found.needs.items()} == {
        "rate": (5, 10, False),
        "confidence": (75, 95, True),
    }


def test_all_that_is_wrong_is_said_at_once(calls: QualityCalls) -> None:
    need = {"rate": {"lb": 10, "ub": 5}, "rates": {"lb": 1}, "confidence": {"lb": 175}, "latency": {"ub": "5 kg"}}
    message = Expect(req=1, expectation="M1", sub="warm", body={"need": need, "utilty": 1})
    assert sorted(codes(calls, "desk", message)) == ["P103", "Q101", "Q102", "Q103", "Q104"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            Expect(req=1, expectation="M", sub="warm", body={"need": {f"p{at}": None for at in range(4_000)}}),
            "4000 prop",
        ),
        (Expect(req=1, expectation="M", sub="warm", body={f"p{at}": 1 for at in range(9_000)}), "more than 10000 val"),
        (Provide(req=1, type="Warm", body={"capabilities": {f"p{at}": {"cv": 1} for at in range(101)}}), "101 prop"),
        (
            Provide(
                req=1,
                type="Warm",
                body={"mode": "m1", "modes": [{"name": f"m{at}", "values": {"rate": at}} for at in range(101)]},
            ),
            "101 modes",
        ),
        (
            Provide(
                req=1,
                type="Warm",
                body={"mode": "m", "modes": [{"name": "m", "values": {f"p{at}": 1 for at in range(200)}}]},
            ),
            "200 prop",
        ),
    ],
)
def test_too_much_is_refused_before_it_is_looked_at(calls: QualityCalls, body: Negotiated, said: str) -> None:
    began = time.thread_time()
    client = "reader" if isinstance(body, Provide) else "desk"
    with pytest.raises(SituError) as refused:
        calls.read(1, client, body)
    assert time.thread_time() - began < 1
    assert len(refused.value.problems) <= 3
    found = {each.code.code: each.message for each in refused.value.problems}
    assert said in found.get("Q120", found.get("P108", ""))


def test_what_a_file_says_at_length_can_be_changed(calls: QualityCalls) -> None:
    cost = {"points": [[at, at] for at in range(1_000)]}
    known = {name: {"lb": 0, "ub": 999, "cv": 5, "cost": cost} for name in ("rate", "imprecision of value")}
    found = parse_profile(
        {"capabilities": known},
        calls._around("reader"),
        publisher="reader",
        type="Warm",
        limits=DocumentLimits(size=1_000_000, nodes=100_000),
    )
    after, told = parse_profile_revision({"capabilities": {"rate": {"cv": 7}}}, calls._around("reader"), known=found)
    assert (after.capabilities["rate"].cv, told) == (7, {"rate"})


def test_an_expectation_is_about_a_subscription_of_its_client(calls: QualityCalls) -> None:
    assert codes(calls, "desk", Expect(req=1, expectation="M1", sub="cold", body={"need": {}})) == ["Q116"]
    assert codes(calls, "other", Expect(req=1, expectation="M1", sub="warm", body={"need": {}})) == ["Q116"]


def test_changes_have_only_what_was_said(calls: QualityCalls) -> None:
    message = ChangeExpectation(req=1, expectation="M1", body={"utility": 2}, version=2)
    assert calls.read(1, "desk", message) == Updating(
        ticket=1, client="desk", id="desk/M1", changes={"utility": 2.0}, version=2
    )


@pytest.mark.parametrize(("call", "kind"), [("suspend", Suspending), ("resume", Resuming), ("revoke", Revoking)])
def test_moves(calls: QualityCalls, call: str, kind: type) -> None:
    read = calls.read(1, "desk", MoveExpectation(req=1, expectation="M1", call=call))
    assert read == kind(ticket=1, client="desk", id="desk/M1")
    assert codes(calls, "desk", MoveExpectation(req=1, expectation="M1", call="forget")) == ["R101"]


def test_what_the_project_declares_for_a_client_it_may_name(calls: QualityCalls) -> None:
    calls.state.expectations["M1"] = ExpectationRecord(Expectation(id="M1", subscription="desk/warm"), declared=True)
    assert calls.expectation_id("desk", "M1") == "M1"
    assert calls.expectation_id("other", "M1") == "other/M1"
    calls.state.expectations["desk/M1"] = ExpectationRecord(Expectation(id="desk/M1", subscription="desk/warm"))
    assert calls.expectation_id("desk", "M1") == "desk/M1"


def test_a_profile_is_read_in_the_units_of_properties(calls: QualityCalls) -> None:
    profile = provided(calls).profile
    rate, trust = profile.capabilities["rate"], profile.capabilities["trust"]
    assert (profile.id, rate.lb, rate.ub, rate.cv, rate.cost.at(10)) == ("reader/Warm", 2, 60, 2, 1.0)
    assert (trust.lb, trust.ub, trust.cv) == (1, 3, 1)


def test_of_a_profile_only_what_is_named_changes(calls: QualityCalls) -> None:
    provided(calls)
    read = calls.read(2, "reader", ChangeProfile(req=1, type="Warm", body={"capabilities": {"rate": {"cv": 12}}}))
    assert isinstance(read, Revising)
    assert read.capabilities.keys() == {"rate"}
    rate = read.capabilities["rate"]
    assert (rate.lb, rate.ub, rate.cv, rate.cost.at(10), read.mode) == (2, 60, 12, 1.0, None)


def test_a_change_in_another_unit_leaves_what_stays_in_its_own(calls: QualityCalls) -> None:
    points = {"points": [[0, 0], [60, 6]]}
    provided(calls, {"capabilities": {"rate": {"lb": 2, "ub": 60, "cv": 2, "cost": points}}})
    body = {"capabilities": {"rate": {"cv": 0.5, "unit": "Hz"}}}
    read = calls.read(2, "reader", ChangeProfile(req=1, type="Warm", body=body))
    assert isinstance(read, Revising)
    rate = read.capabilities["rate"]
    assert (rate.lb, rate.ub, rate.cv, rate.cost.at(30)) == (2, 60, 30, 3.0)
    body = {"capabilities": {"rate": {"unit": "Hz", "cost": {"points": [[0, 0], ["60/min", 3]]}}}}
    read = calls.read(2, "reader", ChangeProfile(req=1, type="Warm", body=body))
    assert isinstance(read, Revising)
    rate = read.capabilities["rate"]
    assert (rate.lb, rate.ub, rate.cv, rate.cost.at(30)) == (2, 60, 2, 1.5)


def test_an_imprecision_can_be_named_in_both_ways(calls: QualityCalls) -> None:
    provided(calls, {"capabilities": {"imprecision of value": {"lb": 1, "ub": 5, "cv": 5}}})
    for name, more in (("imprecision of value", {}), ("imprecision", {"of": "value"})):
        body = {"capabilities": {name: {"cv": 3, **more}}}
        read = calls.read(2, "reader", ChangeProfile(req=1, type="Warm", body=body))
        assert isinstance(read, Revising)
        assert {id: (each.lb, each.cv) for id, each in read.capabilities.items()} == {"imprecision of value": (1, 3)}


@pytest.mark.parametrize(
    "body",
    [
        {"capabilities": ["rate"]},
        {"capabilities": {"rate": 12}},
        {"capabilities": {"rate": {"cost": {"points": [1, [2]]}}}},
        {"capabilities": {"rate": {"cv": 12, "now": 1}}},
        {"modes": []},
        {"mode": {}},
    ],
)
def test_a_change_that_is_none_is_refused(calls: QualityCalls, body: dict[str, Any]) -> None:
    provided(calls)
    assert codes(calls, "reader", ChangeProfile(req=1, type="Warm", body=body))


def test_a_change_is_checked_with_what_stays(calls: QualityCalls) -> None:
    provided(calls)
    beyond = ChangeProfile(req=1, type="Warm", body={"capabilities": {"rate": {"cv": 90}}})
    assert codes(calls, "reader", beyond) == ["Q105"]
    unknown = ChangeProfile(req=1, type="Warm", body={"mode": "eco"})
    assert codes(calls, "reader", unknown) == ["Q107"]
    assert codes(calls, "desk", beyond) == ["Q132"]


def test_the_mode_changes_by_its_name(calls: QualityCalls) -> None:
    modes = [{"name": name, "values": {"rate": rate}, "cost": 1} for name, rate in (("eco", 2), ("fast", 60))]
    provided(calls, {"modes": modes, "mode": "eco"})
    read = calls.read(1, "reader", ChangeProfile(req=1, type="Warm", body={"mode": "fast"}))
    assert isinstance(read, Revising)
    assert (read.mode, read.capabilities) == ("fast", {})


def test_what_the_middleware_determines_is_not_the_publishers_to_declare(calls: QualityCalls) -> None:
    message = Provide(req=1, type="Warm", body={"capabilities": {"latency": {"cv": 1}}})
    assert codes(calls, "reader", message) == ["Q108"]


def test_retracting(calls: QualityCalls) -> None:
    read = calls.read(1, "reader", RevokeProfile(req=1, type="Warm"))
    assert read == Retracting(ticket=1, client="reader", id="reader/Warm")


def test_answers_have_values_of_the_profile(calls: QualityCalls) -> None:
    provided(calls)
    values: dict[str, float | str] = {"rate": 30, "trust": "medium", "order": 1}
    read = calls.read(4, "reader", AnswerAdvice(req=1, advice="reader/Warm#1", verdict="refused", values=values))
    assert read == Answered(
        client="reader", advice="reader/Warm#1", verdict="refused", values={"rate": 30.0, "trust": 2.0}, ticket=4
    )
    for value, code in (({"trust": "huge"}, "Q102"), ({"rate": "much"}, "P121"), ({"rate": -1}, "Q102")):
        message = AnswerAdvice(req=1, advice="reader/Warm#1", verdict="refused", values=dict(value))
        assert codes(calls, "reader", message) == [code]
    hourly = AnswerAdvice(req=1, advice="reader/Warm#1", verdict="refused", values={"rate": "600/h"})
    told = calls.read(4, "reader", hourly)
    assert isinstance(told, Answered)
    assert told.values == {"rate": 10.0}
    assert codes(calls, "reader", AnswerAdvice(req=1, advice="reader/Warm#1", verdict="perhaps")) == ["R101"]
