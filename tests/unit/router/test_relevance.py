"""Which pool a profile is in, and to which subscriptions a pool matters."""

from __future__ import annotations

from pathlib import Path

import pytest

from situ.lang.records import replace
from situ.model import Deployment
from situ.project.check import check_folder
from situ.router.quality_calls import RelevantProfiles
from tests.project_files import write

PLAIN = {
    "situ.yaml": "name: plant\n",
    "types/plant.yaml": """
        events:
          Reading: {room: string, value: double}
          Warm(Reading): {by: string}
          Other: {text: string}
        """,
    "clients/all.yaml": """
        clients:
          a: {advertisements: {all: {type: Reading}}}
          b: {advertisements: {all: {type: Reading}}}
          lab: {advertisements: {all: {type: Reading, where: "room = 'lab'"}}}
          warm: {advertisements: {all: {type: Warm}}}
          mute: {}
          desk:
            subscriptions:
              readings: {types: [Reading]}
              warm: {types: [Warm]}
              hall: {types: [Reading], where: "room = 'hall'"}
              others: {types: [Other]}
        """,
}
SCOPED = {
    "scopes.yaml": """
        version: 1
        dimensions:
          site:
            mode: closed
            scopes:
              group: {}
              east: {in: [group], output: "type IS Warm"}
              west: {in: [group]}
        clients:
          a: {site: [east]}
          b: {site: [west]}
          warm: {site: [east]}
          desk: {site: [west]}
        """,
    "clients/all.yaml": """
        clients:
          a: {scopes: {site: east}, advertisements: {all: {type: Reading}}}
          b: {scopes: {site: west}, advertisements: {all: {type: Reading}}}
          warm: {scopes: {site: east}, advertisements: {all: {type: Warm}}}
          desk: {scopes: {site: west}, subscriptions: {readings: {types: [Reading]}}}
        """,
}


def deployed(folder: Path, files: dict[str, str]) -> Deployment:
    write(folder, files)
    checked = check_folder(folder)
    assert checked.deployment is not None, "\n".join(map(str, checked.problems))
    return checked.deployment


@pytest.fixture
def plain(tmp_path: Path) -> RelevantProfiles:
    return RelevantProfiles.of(deployed(tmp_path, PLAIN))


def relevant(pools: RelevantProfiles, subscription: str, *profiles: tuple[str, str]) -> list[tuple[str, str]]:
    found = pools.relevance()
    return [each for each in profiles if found.pools.get("/".join(each)) in found.relevant[subscription]]


def test_publishers_that_advertise_alike_share_a_pool(plain: RelevantProfiles) -> None:
    pools = plain.relevance().pools
    assert pools["a/Reading"] == pools["b/Reading"]
    assert pools["a/Reading"] != pools["a/Warm"]
    assert pools["lab/Reading"] != pools["a/Reading"]


def test_who_advertises_nothing_of_the_kind_matters_to_nobody(plain: RelevantProfiles) -> None:
    pools = plain.relevance().pools
    assert not {"mute/Reading", "nobody/Reading", "a/Other", "warm/Reading"} & pools.keys()
    assert relevant(plain, "desk/readings", ("mute", "Reading")) == []


def test_types_below_the_subscribed_one_matter_and_those_above_do_not(plain: RelevantProfiles) -> None:
    profiles = [("a", "Reading"), ("a", "Warm"), ("warm", "Warm")]
    assert relevant(plain, "desk/readings", *profiles) == profiles
    assert relevant(plain, "desk/warm", *profiles) == [("a", "Warm"), ("warm", "Warm")]
    assert relevant(plain, "desk/others", *profiles) == []


def test_a_filter_that_contradicts_the_advertised_one_leaves_it_out(plain: RelevantProfiles) -> None:
    profiles = [("a", "Reading"), ("lab", "Reading")]
    assert relevant(plain, "desk/hall", *profiles) == [("a", "Reading")]
    assert relevant(plain, "desk/readings", *profiles) == profiles


def test_every_subscription_is_listed_and_no_other(plain: RelevantProfiles) -> None:
    assert plain.relevance().relevant.keys() == plain.deployment.subscriptions.keys()


def test_what_can_never_be_visible_does_not_matter(tmp_path: Path) -> None:
    scoped = RelevantProfiles.of(deployed(tmp_path, {**PLAIN, **SCOPED}))
    profiles = [("a", "Reading"), ("b", "Reading"), ("warm", "Warm"), ("a", "Warm")]
    # Of the east only what is warm gets out.
    assert relevant(scoped, "desk/readings", *profiles) == [("b", "Reading"), ("warm", "Warm"), ("a", "Warm")]


def test_the_next_deployment_is_looked_at_anew(tmp_path: Path) -> None:
    before = RelevantProfiles.of(deployed(tmp_path, PLAIN))
    assert relevant(before, "desk/hall", ("a", "Reading"), ("b", "Reading")) == [("a", "Reading"), ("b", "Reading")]
    subscriptions = dict(before.deployment.subscriptions)
    subscriptions["desk/hall"] = replace(subscriptions["desk/hall"], types=("Other",), where="")
    moved = replace(before.deployment, subscriptions=subscriptions)
    assert relevant(RelevantProfiles.of(moved, before), "desk/hall", ("a", "Reading")) == []
    advertisements = {id: ad for id, ad in before.deployment.advertisements.items() if ad.client != "a"}
    silent = RelevantProfiles.of(replace(before.deployment, advertisements=advertisements), before)
    assert "a/Reading" not in silent.relevance().pools
    assert relevant(silent, "desk/hall", ("a", "Reading"), ("b", "Reading")) == [("b", "Reading")]
    back = RelevantProfiles.of(before.deployment, silent)
    assert back.relevance() == before.relevance()


def test_what_is_no_longer_wanted_is_forgotten(tmp_path: Path) -> None:
    pools = RelevantProfiles.of(deployed(tmp_path, PLAIN))
    hall = pools.deployment.subscriptions["desk/hall"]
    for number in range(9):
        other = replace(hall, where=f"room = '{number}'")
        pools = RelevantProfiles.of(replace(pools.deployment, subscriptions={"desk/hall": other}), pools)
        assert pools.relevance().relevant.keys() == {"desk/hall"}
    assert len(pools._found) == 1
