"""What advertisements promise reaches the match index, in whatever terms it is said, and old events are not lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from situ.event.row import Row
from situ.lang.records import replace
from situ.model import Deployment
from situ.routing import pruned_index
from situ.routing.model import Advertisement, Subscription
from situ.stages.deliver import route
from situ.stages.plan import Plan, compile_plan
from tests.zone import deployment_of

TYPES = "version: 1\nevents:\n  Reading: {value: double m, note: string}\n"
FILES = {
    "contexts/feet.yaml": "version: 1\ncontext: feet\nevents:\n  Reading: {value: double ft, note: string}\n"
    "maps: [{both: Reading <-> Reading}]\n",
    "clients/all.yaml": "version: 1\nclients: {gate: {}, toe: {context: feet}, desk: {}}\n",
}
LOW, HIGH = "length(note) > 0 AND value < 2 [m]", "length(note) > 0 AND value > 2 [m]"


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_FEW_TESTS", "_LOOK", "_LEAST_FILTERS"):
        monkeypatch.setattr(pruned_index, name, 0)


@pytest.fixture
def declared(tmp_path: Path) -> Deployment:
    asked = [Subscription(client="desk", name=name, types=("Reading",), where=where) for name, where in
             (("low", LOW), ("high", HIGH))]  # fmt: skip
    return replace(
        deployment_of(tmp_path, (), types=TYPES, more=FILES), subscriptions={each.id: each for each in asked}
    )


def with_promises(declared: Deployment, **promises: str) -> Deployment:
    ads = [Advertisement(client=client, name="a", type="Reading", where=where) for client, where in promises.items()]
    return replace(declared, advertisements={each.id: each for each in ads})


def reading(client: str, metres: float) -> Row:
    data = f'{{"value":{metres},"note":"x"}}'.encode()
    return Row(1, client, 1, 1, "root", 0, "a", client, "Reading", 0, f"{client}/a", None, "", data)


def wanting(plan: Plan, row: Row) -> list[str]:
    return [names for _, _, names in route([row], plan, queued=True).live]


def left(plan: Plan, client: str) -> list[str]:
    """The filters in the index that was made for the promise of a client."""
    assert plan.routing._pruned is not None
    pruning = plan.routing._pruned._by_ad["Reading", f"{client}/a"]
    assert pruning is not None
    assert pruning.pruned is not None
    wanted = [each for segment in pruning.pruned.segments for each in segment.filters]
    return sorted(each.name for filter_ in wanted for each in plan.routing.wanted.members[filter_].values())


def test_a_promise_in_the_terms_of_a_context_prunes_the_index_of_root(declared: Deployment) -> None:
    plan = compile_plan(with_promises(declared, gate="value > 3 [m]", toe="value < 6 [ft]"))
    for _ in range(2):
        assert wanting(plan, reading("gate", 4.0)) == ["high"]
        assert wanting(plan, reading("toe", 1.0)) == ["low"]
    assert left(plan, "gate") == ["high"]
    assert left(plan, "toe") == ["low"]


def test_events_from_before_a_promise_are_matched_as_if_there_was_none(declared: Deployment) -> None:
    before = compile_plan(with_promises(declared, gate="value > 3 [m]"))
    row = reading("gate", 4.0)
    assert wanting(before, row) == ["high"]
    after = compile_plan(with_promises(declared, gate="value < 1 [m]"), before)
    for _ in range(2):
        assert wanting(after, reading("gate", 0.5)) == ["low"]
        assert wanting(after, row) == ["high"]
    assert left(after, "gate") == ["low"]


def test_without_promises_there_is_nothing_to_prune(declared: Deployment) -> None:
    plan = compile_plan(with_promises(declared, gate=""))
    assert wanting(plan, reading("gate", 4.0)) == ["high"]
    assert plan.routing._pruned is None
