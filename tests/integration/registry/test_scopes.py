"""Scopes in the registry: operations one epoch each, what they suspend, who did it, and the folder beside them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from situ.lang.problems import SituError
from situ.lang.tags import TagSet
from situ.model import Deployment
from situ.project.apply import find_written
from situ.project.check import check_folder
from situ.registry import Applied, Key, Registry, open_registry
from situ.routing import Advertisement, Subscription
from situ.scopes.graph import Grant
from situ.scopes.operations import (
    DropScope,
    GrantRights,
    JoinScope,
    LeaveScope,
    Operation,
    PutScope,
    RevokeRights,
    SetFilter,
    SetMode,
)
from situ.scopes.rights import Principal
from tests import scoped
from tests.project_files import write
from tests.registry_files import document

M = "membership"
OPERATOR = Principal(name="ann", operator=True)
SITE = Principal(name="site-admin")
SCOPES = """
version: 1
dimensions:
  membership:
    mode: closed
    scopes:
      plant:  {}
      line:   { in: [plant], output: "severity >= 4" }
      office: { in: [plant] }
      attic:  {}
clients:
  press: { membership: [line] }
  desk:  { membership: [office] }
  watch: { membership: [office] }
grants:
  - { to: site-admin, dimension: membership, may: [admin], scopes: [plant] }
  - { to: safety, dimension: membership, may: [observe] }
"""
FILES = {
    "situ.yaml": "version: 1\nname: plant\n",
    "types/all.yaml": "version: 1\nevents:\n  Alarm: {text: string, severity: int}\n",
    "clients/all.yaml": """
version: 1
clients:
  press: {advertisements: {alarms: {type: Alarm, scopes: {membership: line}}}}
  desk: {subscriptions: {all: {types: [Alarm], durable: true, scopes: {membership: office}}}}
""",
}


def folder(path: Path, scopes: str = SCOPES) -> Deployment:
    write(path, {**FILES, "scopes.yaml": scopes})
    checked = check_folder(path)
    assert checked.deployment is not None, checked.problems
    return checked.deployment


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return tmp_path / "project"


@pytest.fixture
def registry(project: Path) -> Iterator[Registry]:
    deployment = folder(project)
    with open_registry(project, deployment.settings) as opened:
        opened.apply(deployment, "ann")
        yield opened


def join(member: str, scope: str) -> JoinScope:
    return JoinScope(member=member, scope=scope, dimension=M)


def leave(member: str, scope: str) -> LeaveScope:
    return LeaveScope(member=member, scope=scope, dimension=M)


def refused(registry: Registry, operation: Operation, by: Principal = OPERATOR, epoch: int | None = None) -> list[str]:
    before = registry.current()
    with pytest.raises(SituError) as error:
        registry.change_scopes(operation, by, epoch=epoch)
    assert registry.current() == before
    return [each.code.code for each in error.value.problems]


def codes(applied: Applied) -> list[str]:
    return [each.code.code for each in applied.problems]


ASKED = Subscription(client="guest", name="own", types=("Alarm",), scopes=TagSet.of({M: "office"}))


class TestOperations:
    def test_each_makes_one_epoch_and_again_makes_none(self, registry: Registry) -> None:
        applied = registry.change_scopes(join("guest", "office"), SITE)
        assert (applied.version, applied.deployment.epoch) == (2, 2)
        assert applied.deployment.scopes.memberships("guest", M) == ("office",)
        again = registry.change_scopes(join("guest", "office"), SITE)
        assert (again.version, again.deployment.epoch, again.changes) == (2, 2, ())
        assert registry.change_scopes(leave("guest", "office"), Principal(name="guest")).deployment.epoch == 3

    def test_what_another_process_reads_is_what_was_written(self, registry: Registry, project: Path) -> None:
        with open_registry(project, registry.current().settings) as other:
            assert other.current().epoch == 1
            registry.change_scopes(leave("desk", "office"), SITE)
            assert other.current() == registry.current()
            assert other.current().epoch == 2
            assert other.suspended() == registry.suspended()
            assert other.current().types is other.current().types

    def test_of_two_writers_who_saw_the_same_one_is_told_that_it_is_over(
        self, registry: Registry, project: Path
    ) -> None:
        with open_registry(project, registry.current().settings) as other:
            assert other.current().epoch == registry.current().epoch == 1
            assert registry.change_scopes(join("one", "office"), SITE, epoch=1).deployment.epoch == 2
            assert refused(other, join("two", "office"), SITE, epoch=1) == ["V015"]
            assert refused(other, join("one", "office"), SITE, epoch=1) == ["V015"]
            assert other.change_scopes(join("two", "office"), SITE, epoch=2).deployment.epoch == 3

    def test_all_that_is_wrong_is_told_and_nothing_is_changed(self, registry: Registry) -> None:
        put = PutScope(dimension=M, scope="desk", containers=("nowhere", "office"), output="colour = 3")
        assert sorted(refused(registry, put, epoch=9)) == ["V002", "V003", "V015"]
        wrong = SetFilter(dimension=M, scope="line", side="output", text="severity")
        assert refused(registry, wrong) == ["V010"]
        assert refused(registry, DropScope(dimension=M, scope="office")) == ["V013"]
        assert refused(registry, join("plant", "line")) == ["V004"]
        assert refused(registry, JoinScope(member="desk", scope="line", dimension="colour")) == ["V001"]

    def test_a_stranger_does_not_learn_whether_a_scope_is_there(self, registry: Registry) -> None:
        said = set()
        for scope in ("attic", "nowhere"):
            with pytest.raises(SituError) as error:
                registry.change_scopes(join("guest", scope), SITE)
            said.add((error.value.code, str(error.value).replace(scope, "…"), error.value.hint))
        assert len(said) == 1
        assert said.pop()[0] == "V014"

    def test_a_release_holds_as_long_as_its_author_has_the_right(self, registry: Registry, project: Path) -> None:
        reads = "policies:\n  watch: { reads: { membership: office }, publishes: { membership: office } }\n"
        released = f"{SCOPES}{reads}releases:\n  - {{ policy: watch, dimensions: [membership], by: site-admin }}\n"
        registry.apply(folder(project, released), "ann")
        revoke = RevokeRights(grant=Grant(to="site-admin", dimension=M, may=("admin",), scopes=("plant",)))
        assert refused(registry, revoke) == ["V014"]


class TestSuspension:
    def test_what_lost_its_membership_leaves_the_deployment_and_comes_back_when_declared_anew(
        self, registry: Registry
    ) -> None:
        applied = registry.change_scopes(leave("press", "line"), SITE)
        assert codes(applied) == ["V112"]
        assert applied.deployment.advertisements == {}
        (gone,) = registry.suspended()
        assert (gone.key, gone.origin, gone.suspended) == (Key("advertisement", "press/alarms"), "folder", True)
        registry.change_scopes(join("press", "line"), SITE)
        assert registry.current().advertisements == {}, "who joins again declares anew"
        assert [each.key for each in registry.suspended()] == [gone.key]
        made = Advertisement(client="press", name="alarms", type="Alarm", scopes=TagSet.of({M: "line"}))
        assert not registry.declare([made], who="press").refused(made)
        assert registry.current().advertisements == {"press/alarms": made}
        assert registry.suspended() == ()

    def test_what_clients_declared_is_suspended_with_a_grant_or_a_mode(self, registry: Registry) -> None:
        seen = Subscription(client="safety", name="own", types=("Alarm",), scopes=TagSet.of({M: "any"}))
        rest = Subscription(client="roof", name="own", types=("Alarm",), scopes=TagSet.of(rest=True))
        registry.change_scopes(SetMode(dimension=M, closed=False), OPERATOR)
        assert registry.declare([seen, rest], who="safety, roof").problems == {}
        assert codes(registry.change_scopes(SetMode(dimension=M, closed=True), OPERATOR)) == ["V112"]
        assert [each.name for each in registry.suspended()] == ["roof/own"]
        assert "roof" not in registry.current().clients
        observe = RevokeRights(grant=Grant(to="safety", dimension=M, may=("observe",)))
        registry.change_scopes(observe, OPERATOR)
        assert [each.name for each in registry.suspended("subscription")] == ["roof/own", "safety/own"]
        registry.change_scopes(GrantRights(grant=observe.grant), OPERATOR)
        assert "safety/own" not in registry.current().subscriptions
        registry.remove("subscription", "roof/own", who="ann")
        assert [each.name for each in registry.suspended()] == ["safety/own"]

    def test_who_goes_takes_along_what_was_suspended(self, registry: Registry) -> None:
        registry.change_scopes(join("guest", "office"), SITE)
        registry.declare([ASKED], who="guest")
        registry.change_scopes(leave("guest", "office"), SITE)
        before = registry.current()
        registry.withdraw([ASKED], who="guest")
        assert registry.suspended() == ()
        assert registry.current().digest == before.digest

    @pytest.mark.parametrize(
        ("tags", "code"),
        [
            ({M: "line"}, "V006"),
            ({M: "nowhere"}, "V006"),
            ({M: "any"}, "V011"),
            ({"colour": "red"}, "V001"),
        ],
    )
    def test_nobody_declares_what_is_not_his_to_name(self, registry: Registry, tags: dict[str, str], code: str) -> None:
        asked = Subscription(client="desk", name="own", types=("Alarm",), scopes=TagSet.of(tags))
        outcome = registry.declare([asked], who="desk")
        assert [each.code.code for each in outcome.refused(asked)] == [code]
        offered = Advertisement(client="desk", name="own", type="Alarm", scopes=TagSet.of(tags))
        expected = "V012" if code == "V011" else code
        assert [each.code.code for each in registry.declare([offered], who="desk").refused(offered)] == [expected]


class TestOthers:
    """What is no declaration of a client and has tags, too."""

    def test_a_table_keeps_what_its_tags_need(self, registry: Registry, project: Path) -> None:
        write(project, {"tables/staff.csv": "id\nann\n"})
        table = "{csv: tables/staff.csv, columns: {id: string}, key: [id], scopes: {membership: office}}"
        write(project, {"sources/all.yaml": f"version: 1\npull:\n  staff: {table}\n"})
        member = SCOPES.replace("desk:  {", "staff: { membership: [office] }\n  desk:  {")
        registry.apply(folder(project, member), "ann")
        assert refused(registry, leave("staff", "office")) == ["V006"]
        with pytest.raises(SituError) as error:
            registry.add("source", "other", document(f"pull: {{other: {table}}}"), who="ann")
        assert error.value.code == "V006"

    def test_a_policy_rests_when_it_loses_its_tags_and_is_not_woken_without_them(self, tmp_path: Path) -> None:
        deployment = scoped.project(tmp_path / "guarded", only=("presence", "everywhere"))
        with open_registry(tmp_path / "guarded", deployment.settings) as registry:
            registry.apply(deployment, "ann")
            out = LeaveScope(member="presence", scope="east", dimension="site")
            applied = registry.change_scopes(out, OPERATOR)
            assert codes(applied) == ["V112"]
            assert "presence" in str(applied.problems[0])
            assert set(applied.deployment.running) == {"everywhere"}
            with pytest.raises(SituError) as error:
                registry.resume("presence", who="ann")
            assert error.value.code == "V006"
            registry.change_scopes(JoinScope(member="presence", scope="east", dimension="site"), OPERATOR)
            assert set(registry.current().running) == {"everywhere"}
            registry.resume("presence", who="ann")
            assert set(registry.current().running) == {"everywhere", "presence"}
            revoke = RevokeRights(grant=Grant(to="everywhere", dimension="site", may=("broadcast",)))
            assert set(registry.change_scopes(revoke, OPERATOR).deployment.running) == {"presence"}


class TestHistory:
    def test_every_change_is_there_with_who_when_what_and_what_it_suspended(self, registry: Registry) -> None:
        registry.change_scopes(join("guest", "office"), SITE, reason="asked by the client")
        registry.declare([ASKED], who="guest")
        registry.change_scopes(leave("guest", "office"), OPERATOR, reason="left")
        newest, joined, first = registry.epochs()
        assert (newest.epoch, newest.before, newest.who, newest.reason) == (3, 2, "ann", "left")
        assert [str(each) for each in newest.difference.changes] == ["removed: client guest in membership/office"]
        assert newest.difference.narrows
        assert newest.suspended == (Key("subscription", "guest/own"),)
        assert (joined.epoch, joined.who, joined.difference.narrows) == (2, "site-admin", False)
        assert (first.epoch, first.before) == (1, None)
        assert newest.at >= joined.at >= first.at
        shown = newest.as_json()
        assert shown["suspended"] == [{"kind": "subscription", "name": "guest/own"}]
        assert shown["changes"][0]["what"] == ["client", "guest", "in", "membership/office"]
        assert [each.state for each in registry.changes(kind="subscription", name="guest/own")] == [
            "suspended",
            "active",
        ]


class TestFolder:
    def test_the_folder_unchanged_leaves_what_others_changed(self, registry: Registry, project: Path) -> None:
        registry.change_scopes(join("guest", "office"), SITE)
        applied = registry.apply(folder(project), "ann")
        assert (applied.changes, applied.deployment.epoch) == ((), 2)

    def test_the_folder_changed_is_one_epoch_beside_what_others_changed(
        self, registry: Registry, project: Path
    ) -> None:
        registry.change_scopes(join("guest", "office"), SITE)
        changed = SCOPES.replace("severity >= 4", "severity >= 5").replace("attic:  {}", "cellar: { in: [plant] }")
        graph = registry.apply(folder(project, changed), "ann").deployment.scopes
        assert graph.memberships("guest", M) == ("office",)
        assert {"cellar"} <= graph.dimensions[M].scopes.keys()
        assert "attic" not in graph.dimensions[M].scopes
        assert registry.current().epoch == 3
        taken = changed.replace("desk:  {", "guest: { membership: [office] }\n  desk:  {")
        assert registry.apply(folder(project, taken), "ann").deployment.epoch == 3, "the same is no change"
        registry.change_scopes(leave("guest", "office"), SITE)
        assert registry.apply(folder(project, taken), "ann").deployment.scopes.memberships("guest", M) == ()
        assert registry.apply(folder(project, changed), "ann").deployment.epoch == 4

    def test_what_both_changed_is_refused(self, registry: Registry, project: Path) -> None:
        registry.change_scopes(SetFilter(dimension=M, scope="line", side="output", text="severity >= 6"), SITE)
        before = registry.current()
        changed = folder(project, SCOPES.replace("severity >= 4", "severity >= 5"))
        with pytest.raises(SituError) as error:
            registry.apply(changed, "ann", written=find_written(project, changed))
        assert error.value.code == "V022"
        place = error.value.problems[0].location
        assert place is not None
        assert place.file == "scopes.yaml"
        assert "severity >= 6" in str(error.value)
        assert registry.current() == before
        same = registry.apply(folder(project, SCOPES.replace("severity >= 4", "severity >= 6")), "ann")
        assert same.deployment.epoch == 2

    def test_what_stands_in_something_that_the_folder_took_away_is_refused(
        self, registry: Registry, project: Path
    ) -> None:
        registry.change_scopes(PutScope(dimension=M, scope="box", containers=("attic",)), OPERATOR)
        with pytest.raises(SituError) as error:
            registry.apply(folder(project, SCOPES.replace("      attic:  {}\n", "")), "ann")
        assert error.value.code == "V002"

    def test_what_the_folder_declares_and_nobody_has_a_right_to_stays_suspended(
        self, registry: Registry, project: Path
    ) -> None:
        registry.change_scopes(leave("desk", "office"), SITE)
        applied = registry.apply(folder(project), "ann")
        assert (applied.changes, codes(applied)) == ((), ["V112"])
        assert "desk/all" not in applied.deployment.subscriptions
        registry.change_scopes(join("desk", "office"), SITE)
        again = registry.apply(folder(project), "ann")
        assert "desk/all" in again.deployment.subscriptions, "to apply it is to declare it anew"
        assert (codes(again), registry.suspended()) == ([], ())

    def test_clients_lose_what_the_folder_takes_from_them(self, registry: Registry, project: Path) -> None:
        registry.change_scopes(join("guest", "office"), SITE)
        registry.declare([ASKED], who="guest")
        registry.change_scopes(leave("guest", "office"), SITE)
        with_guest = SCOPES.replace("desk:  {", "guest: { membership: [office] }\n  desk:  {")
        registry.apply(folder(project, with_guest), "ann")
        registry.declare([ASKED], who="guest")
        applied = registry.apply(folder(project), "ann")
        assert codes(applied) == ["V112"]
        assert [each.name for each in registry.suspended()] == ["guest/own"]
