"""What ``situ explain quality`` says: the worked example, and every other way in which an expectation can stand."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from situ.lang.records import replace
from situ.quality.explanation.explain import ExplanationCase, explain, explain_expectation, explain_publisher
from situ.quality.explanation.text import as_text, publisher_as_text
from situ.quality.model.costs import LevelCost, PiecewiseCost, read_formula
from situ.quality.model.declarations import BUILT_IN, Capability, Expectation, Mode, Need, Profile, Quality, Strategy
from situ.quality.negotiation.feedback import Advice
from situ.quality.negotiation.inputs_and_effects import Answered, Came, Providing, Registering, Suspending
from tests.explanations import misfits
from tests.negotiating import Host, all_relevant, can, expects, need

Golden = Callable[[str, str], None]
TRUST = BUILT_IN["trust"]
PLANT_P = Profile(
    publisher="plant-P",
    type="temperatureEvent",
    capabilities={
        "trust": Capability(about=TRUST, lb=1, ub=3, cv=1, cost=LevelCost(((1.0, 0.0), (2.0, 2.0), (3.0, 5.0))))
    },
    modes=(
        Mode(name="eco", values={"rate": 2.0, "confidence": 90.0}, cost=1.0),
        Mode(name="mid", values={"rate": 10.0, "confidence": 88.0}, cost=2.0),
        Mode(name="fast", values={"rate": 60.0, "confidence": 80.0}, cost=8.0),
    ),
    mode="eco",
    moded={"rate": BUILT_IN["rate"], "confidence": BUILT_IN["confidence"]},
)
PLANT_Q = Profile(
    publisher="plant-Q",
    type="temperatureEvent",
    capabilities={
        "rate": can("rate", 1, 60, 60, read_formula("0.1 * x")),
        "confidence": can("confidence", 40, 70, 55, read_formula("4 * x / 15")),
    },
)
M1 = expects("monitor/M1", "monitor/temperature", utility=10.0, rate=(5, 10), confidence=(75, 95))
M2 = expects("monitor/M2", "monitor/temperature", utility=6.0, rate=(30, 45), confidence=(50, 60))
NOON = 1_800_014_400.0


def plant(*expectations: Expectation, strategy: Strategy | None = None) -> Host:
    host = Host(
        quality=Quality(strategies={"default": strategy or Strategy()}),
        relevance=all_relevant(
            ("plant-P", "plant-Q"), ("monitor/temperature", "other/temperature"), type="temperatureEvent"
        ),
        now=NOON,
    ).start()
    for each in (PLANT_P, PLANT_Q):
        host.call(Providing, client=each.publisher, profile=each)
    for expectation in expectations:
        host.now += 1
        host.call(Registering, client=expectation.client, expectation=expectation)
    return host


def told(host: Host, id: str, *, named: bool = True) -> str:
    found = explain_expectation(host.state, id, named=named)
    assert misfits("situ explain quality EXPECTATION", found.as_json()) == []
    return as_text(found) + "\n"


def test_the_worked_example(golden: Golden) -> None:
    host = plant(M2, M1)
    golden("explained-quality/declined.txt", told(host, "monitor/M1"))
    golden("explained-quality/satisfied.txt", told(host, "monitor/M2"))
    found = explain_expectation(host.state, "monitor/M1", named=True).as_json()
    golden("explained-quality/declined.json", json.dumps(found, indent=2) + "\n")


def test_who_publishes_is_not_told_to_everybody(golden: Golden) -> None:
    text = told(plant(M2, M1), "monitor/M1", named=False)
    assert "plant" not in text
    golden("explained-quality/without-names.txt", text)


def test_what_is_under_way(golden: Golden) -> None:
    host = plant(M1)
    golden("explained-quality/adapting.txt", told(host, "monitor/M1"))
    golden("explained-quality/publisher-advised.txt", of_publisher(host))
    advice = host.of(Advice)[-1]
    host.give(Answered(client="plant-P", advice=advice.id, verdict="accepted"))
    golden("explained-quality/publisher-accepted.txt", of_publisher(host))
    golden("explained-quality/publisher.json", json.dumps(publisher_json(host), indent=2) + "\n")


def of_publisher(host: Host) -> str:
    return publisher_as_text(explain_publisher(host.state, "plant-P")) + "\n"


def publisher_json(host: Host) -> list[object]:
    found = explain_publisher(host.state, "plant-P").as_json()
    assert misfits("situ explain quality --publisher CLIENT", found) == []
    return list(found["profiles"])


def test_who_is_declared_and_not_connected(golden: Golden) -> None:
    host = Host(
        quality=Quality(expectations={"M1": replace(M1, id="M1")}, profiles={PLANT_P.id: PLANT_P, PLANT_Q.id: PLANT_Q}),
        relevance=all_relevant(("plant-P", "plant-Q"), ("monitor/temperature",), type="temperatureEvent"),
        now=NOON,
    ).start()
    nobody = told(host, "M1")
    host.give(Came(client="plant-Q"))
    golden("explained-quality/absent.txt", nobody + told(host, "M1") + told(host, "M1", named=False))
    golden("explained-quality/publisher-absent.txt", of_publisher(host))


def test_who_is_nobody_and_who_is_not_asked(golden: Golden) -> None:
    host = plant()
    assert explain_publisher(host.state, "nobody").profiles == ()
    golden("explained-quality/publisher-unasked.txt", of_publisher(host))


@pytest.mark.parametrize(
    ("case", "expectation", "strategy"),
    [
        ("out-of-reach", expects("monitor/X", "monitor/temperature", rate=(80, 90), confidence=(85, 95)), None),
        ("missing", expects("monitor/X", "monitor/temperature", freshness=(0, 5), rate=(5, 10)), None),
        (
            "worth",
            expects("monitor/X", "monitor/temperature", utility=0.5, rate=(5, 10), confidence=(75, 95)),
            "utility",
        ),
        ("empty", expects("monitor/X", "monitor/temperature"), None),
    ],
)
def test_why_it_is_not_so(case: str, expectation: Expectation, strategy: str | None, golden: Golden) -> None:
    host = plant(expectation, strategy=None if strategy is None else Strategy(name=strategy))
    golden(f"explained-quality/{case}.txt", told(host, "monitor/X"))


def test_a_budget_that_does_not_allow_it(golden: Golden) -> None:
    host = plant(M1, strategy=Strategy(budget=0.5))
    golden("explained-quality/budget.txt", told(host, "monitor/M1"))


def test_somebody_else_would_lose_what_it_has(golden: Golden) -> None:
    sure = expects("other/sure", "other/temperature", confidence=(89, 100))
    golden("explained-quality/harm.txt", told(plant(sure, M1), "monitor/M1"))


def test_suspended(golden: Golden) -> None:
    host = plant(M2)
    host.call(Suspending, client="monitor", id="monitor/M2")
    golden("explained-quality/suspended.txt", told(host, "monitor/M2"))


def test_what_is_done_to_the_events_and_what_that_drops(golden: Golden) -> None:
    sure = Need(about=BUILT_IN["confidence"], lb=50, ub=60, each=True)
    picky = replace(M2, needs={**M2.needs, "confidence": sure}, selected=True)
    host = plant(picky)
    drops = {"below the floor": 3, "thinned": 17}
    for named in (True, False):
        found = explain_expectation(host.state, "monitor/M2", named=named, drops=drops)
        text = as_text(found) + "\n"
        assert named or "plant" not in text + json.dumps(found.as_json())
        golden(f"explained-quality/shaped-{'named' if named else 'without-names'}.txt", text)


def test_levels_and_what_is_better_when_less(golden: Golden) -> None:
    """Also what is measured against what is said, and a search that was not exact."""
    trusted = Need(about=TRUST, lb=2, ub=3)
    quick = need("freshness", 0, 5)
    asked = Expectation(id="desk/fine", subscription="desk/events", needs={"trust": trusted, "freshness": quick})
    cost = PiecewiseCost(((1.0, 6.0), (60.0, 0.0)))
    slow = Capability(about=BUILT_IN["freshness"], lb=4, ub=60, cv=20, cost=cost)
    low = Capability(about=TRUST, lb=0, ub=2, cv=1)
    profile = Profile(publisher="reader", type="badge", capabilities={"trust": low, "freshness": slow})
    said = replace(profile, capabilities={"trust": low, "freshness": replace(slow, cv=6)})
    found = explain(
        ExplanationCase(
            expectation=asked,
            profiles=[profile],
            names={profile.id: "reader"},
            declared={said.id: said},
            measured={profile.id: {"freshness": 20.0}},
        )
    )
    golden("explained-quality/levels.txt", as_text(found) + "\n")
