"""Ontology, push sources and policies as parts of a project: checked, deployed, compared, changed in the registry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from situ.lang.documents import parse_yaml
from situ.lang.problems import Problem, SituError
from situ.lang.records import replace
from situ.model import Deployment, diff_deployments
from situ.policies.model import PolicyStart
from situ.project.apply import find_written
from situ.project.check import CheckedProject, check_folder
from situ.registry.admin_changes import (
    propose_added,
    propose_altered,
    propose_folder,
    propose_removed,
    propose_suspended,
)
from situ.registry.object_files import as_yaml, policy_document
from situ.registry.objects import Key, bodies_of, content_of, deployment_of, digest_of
from situ.registry.proposal import State
from tests.project_files import MINIMAL, diff_folders, write
from tests.registry_files import following, state_of

FILES = {
    **MINIMAL,
    "types/a.yaml": "events: {Sighting: {who: string, at: Point m}, Alarm: {text: string}}\n",
    "actions.yaml": """
        actions:
          raise alarm: {publish: Alarm, data: {text: "{A.id} alone in {R.id}"}}
          open window: {log: open}
          close window: [{log: close}, {notify: desk}]
        opposed: [[open window, close window]]
        """,
    "ontology.yaml": """
        version: 1
        concepts:
          person: {id: string, status: string, position: Point m}
          room: {id: string, security: string, area: Box m}
          visitor(person): {host: string}
        groups: {known: [person, room]}
        containers: {person: room}
        relationships:
          inside: {between: [person.position, room.area], function: inside}
          within: {between: [person.position, person.position], function: within,
                   parameter: {name: distance, unit: m}, symmetric: true}
        measures:
          distance: {between: [person.position, person.position], function: distance, unit: m}
        """,
    "sources/a.yaml": """
        pull:
          persons:
            {csv: people.csv, columns: {nr: string, role: string}, concept: person, key: nr, attributes: {status: role}}
          rooms:
            {xml: floor.xml, rows: //room, columns: {id: {type: string, xpath: "@id"}, area: {type: Box m, xpath: box},
             security: string}, concept: room, key: id}
        push:
          seen: {event: Sighting, concept: person, id: who, attribute: position, value: at, keep: last 1 min}
        """,
    "policies/alone.dpl": """
        window 5 s
        concepts
          person A (status = 'guest')
          person B (status = 'employee')
          room R (security = 'restricted')
        conditions
          A is inside R
          A is not within 5 m of B or B is not inside R
        actions
          raise alarm
        """,
    "policies/other.dpl": """
        policy two-together
        consumption all
        concepts
          person A
          person B
        conditions
          distance(A, B) < 1 m
        actions
          log two persons
        """,
    "policies/alone.test.yaml": "given: {}\n",
}


def check(folder: Path, **changed: str) -> CheckedProject:
    files = {name: changed.get(name.partition(".")[0].replace("/", "_"), text) for name, text in FILES.items()}
    write(folder, {"people.csv": "nr,role\n", "floor.xml": "<floor/>\n"})
    return check_folder(write(folder, files), {})


def deployed(folder: Path, **changed: str) -> Deployment:
    checked = check(folder, **changed)
    assert checked.deployment is not None, "\n".join(map(str, checked.problems))
    return checked.deployment


def codes(problems: tuple[Problem, ...]) -> list[str]:
    return [each.code.code for each in problems]


class TestCheck:
    def test_all_of_it_is_there(self, tmp_path: Path) -> None:
        checked = check(tmp_path)
        assert codes(checked.problems) == ["S241"], "two persons of one kind"
        deployment = checked.deployment
        assert deployment is not None
        assert list(deployment.policies) == ["alone", "two-together"]
        assert list(deployment.push) == ["seen"]
        assert "policies/alone.dpl" in checked.files
        assert deployment.policies["two-together"].window == 5_000_000

    def test_a_policy_that_is_wrong_is_refused_with_its_place(self, tmp_path: Path) -> None:
        checked = check(tmp_path, policies_other=FILES["policies/other.dpl"].replace("person B", "persn B"))
        assert checked.deployment is None
        assert [str(each.location) for each in checked.errors] == ["policies/other.dpl:6:3"]

    def test_policies_are_held_against_the_ontology(self, tmp_path: Path) -> None:
        checked = check(tmp_path, ontology=FILES["ontology.yaml"].replace("status: string, ", ""))
        assert {each.location.file for each in checked.errors if each.location} == {
            "policies/alone.dpl",
            "sources/a.yaml",
        }

    def test_what_is_wrong_in_the_ontology_is_not_said_of_policies_again(self, tmp_path: Path) -> None:
        checked = check(tmp_path, ontology=FILES["ontology.yaml"].replace("function: distance", "function: distnce"))
        assert "S126" in codes(checked.errors)

    def test_what_nobody_provides_is_told(self, tmp_path: Path) -> None:
        checked = check(tmp_path, sources_a=FILES["sources/a.yaml"].replace(", attributes: {status: role}", ""))
        assert codes(checked.problems) == ["S203", "S241"]
        assert "`status` of `person`" in checked.problems[0].message

    @pytest.mark.parametrize("action", ["log {A}", "log {A.id} and {B.id}", "raise alarm"])
    def test_who_is_meant_is_known_from_events(self, tmp_path: Path, action: str) -> None:
        """No table has to say it, so that none does is no reason to warn, whatever an action says of whom."""
        near = "person A\nperson B\nconditions\n  distance(A, B) < 1 m\nactions\n"
        changed = {
            "sources_a": FILES["sources/a.yaml"].partition("push:")[2].join(("push:", "")),
            "actions": FILES["actions.yaml"].replace("{A.id} alone in {R.id}", "{A.id} with {B.id}"),
            "policies_other": FILES["policies/other.dpl"].replace("log two persons", action),
            "policies_alone": f"window 5 s\nconcepts\n{near}  log again\n",
        }
        checked = check(tmp_path, **changed)
        assert checked.deployment is not None
        assert "S203" not in codes(checked.problems), [str(each) for each in checked.problems]
        named = {**changed, "policies_other": changed["policies_other"].replace(action, "log {A.status}")}
        assert "S203" in codes(check(tmp_path, **named).problems)

    def test_a_name_is_given_once(self, tmp_path: Path) -> None:
        checked = check(tmp_path, policies_other=FILES["policies/other.dpl"].replace("two-together", "alone"))
        assert codes(checked.errors) == ["INT106"]

    def test_a_client_is_not_called_like_a_policy(self, tmp_path: Path) -> None:
        write(tmp_path, {"clients/a.yaml": "clients: {desk: {}, alone: {}}"})
        (problem,) = check(tmp_path).errors
        assert (problem.code.code, str(problem.location)) == ("R017", "clients/a.yaml:1:21")
        assert "`alone` is a policy" in problem.message
        assert "another name" in problem.hint

    def test_a_name_must_be_one(self, tmp_path: Path) -> None:
        write(tmp_path, {"policies/a_b.dpl": FILES["policies/alone.dpl"]})
        assert codes(check(tmp_path).errors) == ["INT110"]


class TestDeployment:
    def test_it_reads_back(self, tmp_path: Path) -> None:
        found = deployed(tmp_path)
        again = Deployment.from_json(json.loads(json.dumps(found.as_json())))
        assert again == found
        assert again.digest == found.digest
        assert again.policies["alone"].clauses == found.policies["alone"].clauses

    def test_its_objects_make_it_again(self, tmp_path: Path) -> None:
        found = deployed(tmp_path)
        bodies = bodies_of(found)
        assert digest_of(content_of(bodies)) == found.digest
        assert deployment_of(bodies, 0) == found
        assert Key("container", "person") in bodies

    def test_without_situations_nothing_is_said_of_them(self) -> None:
        assert not {"ontology", "push", "actions", "policies"} & Deployment().as_json().keys()

    def test_a_policy_that_does_not_fit_is_stopped(self, tmp_path: Path) -> None:
        body = deployed(tmp_path).as_json()
        del body["ontology"]["relationships"]["within"]
        found = Deployment.from_json(body)
        assert list(found.policies) == ["two-together"]
        assert list(found.stopped) == ["alone"]
        assert found.stopped["alone"].reasons
        assert found.as_json() == body

    def test_differences_are_named(self, tmp_path: Path) -> None:
        old = deployed(tmp_path / "old")
        new = deployed(
            tmp_path / "new",
            ontology=FILES["ontology.yaml"].replace("host: string", "host: string, since: date"),
            sources_a=FILES["sources/a.yaml"].replace("keep: last 1 min", "keep: last 2 min"),
            policies_other=FILES["policies/other.dpl"].replace("1 m\n", "2 m\n"),
        )
        assert [str(each) for each in diff_deployments(old, new)] == [
            "concept visitor changed",
            "push seen changed",
            "policy two-together changed",
        ]
        assert [(each.part, each.after) for each in diff_deployments(old, new)[0].details] == [("since", "date")]
        assert [str(each) for each in diff_folders(tmp_path / "new", tmp_path / "old", {})]
        assert {str(each) for each in diff_deployments(None, old)} >= {
            "group known added",
            "relationship inside added",
            "action raise alarm added",
            "opposed close window and open window added",
        }


def state(deployment: Deployment) -> State:
    return following(State(), propose_folder(State(), deployment, {}))


class TestRegistry:
    def test_files_and_texts_are_found(self, tmp_path: Path) -> None:
        written = find_written(tmp_path, deployed(tmp_path), {})
        assert written[Key("policy", "two-together")].file == "policies/other.dpl"
        assert written[Key("concept", "visitor")].text == "visitor(person): {host: string}"
        assert written[Key("push", "seen")].file == "sources/a.yaml"

    def test_everything_can_be_shown_as_a_file(self, tmp_path: Path) -> None:
        start = state(deployed(tmp_path))
        shown = {str(each): as_yaml(value, start.deployment) for each, value in start.objects.items()}
        assert shown["concept visitor"] == "version: 1\nconcepts:\n  visitor(person): {host: string}\n"
        assert shown["container person"] == "version: 1\ncontainers: {person: room}\n"
        assert shown["policy two-together"].startswith("policy two-together\n")
        assert "function: inside" in shown["relationship inside"]
        assert shown["push seen"].startswith("version: 1\npush:\n  seen: {event: Sighting")

    def test_a_policy_comes_changes_and_goes(self, tmp_path: Path) -> None:
        start = state(deployed(tmp_path))
        text = FILES["policies/other.dpl"].replace("two-together", "close").replace("1 m", "2 m")
        added, problems = propose_added(start, Key("policy", "close"), policy_document("close", text, "close.dpl"))
        assert [str(each.message) for each in problems] == ["The policy `two-together` is similar to `close`."]
        after = following(start, added)
        assert "close" in after.deployment.policies
        assert after.objects[Key("policy", "close")].origin == "api"
        text = text.replace("2 m", "3 m")
        altered, _ = propose_altered(after, Key("policy", "close"), policy_document("close", text, "close.dpl"))
        assert set(altered.moves) == {Key("policy", "close")}
        assert "3 m" in following(after, altered).deployment.policies["close"].text
        removed = propose_removed(after, Key("policy", "close"))
        assert "close" not in following(after, removed).deployment.policies

    @pytest.mark.parametrize(
        ("text", "code"),
        [
            ("policy x\nconcepts\n persn A\nconditions\n A is inside A\nactions\n log that\n", "S121"),
            (FILES["policies/other.dpl"], "D110"),
        ],
    )
    def test_a_policy_that_is_wrong_is_refused(self, tmp_path: Path, text: str, code: str) -> None:
        start = state(deployed(tmp_path))
        with pytest.raises(SituError) as caught:
            propose_added(start, Key("policy", "x"), policy_document("x", text, "x.dpl"))
        assert code in codes(caught.value.problems)

    def test_clients_and_policies_have_different_names_wherever_they_come_from(self, tmp_path: Path) -> None:
        found = deployed(tmp_path / "one")
        start = state(found)
        client = parse_yaml("clients: {alone: {}}", "c.yaml")
        with pytest.raises(SituError) as caught:
            propose_added(start, Key("client", "alone"), client)
        assert [str(each.location) for each in caught.value.problems] == ["c.yaml:1:11"]
        assert codes(caught.value.problems) == ["R017"]
        other = parse_yaml("clients: {close: {}}", "c.yaml")
        start = following(start, propose_added(start, Key("client", "close"), other)[0])
        text = FILES["policies/other.dpl"].replace("two-together", "close")
        with pytest.raises(SituError, match="R017"):
            propose_added(start, Key("policy", "close"), policy_document("close", text, "close.dpl"))
        folder = deployed(tmp_path / "two", policies_other=text)
        with pytest.raises(SituError, match="R017"):
            propose_folder(start, folder, {})

    def test_a_policy_that_is_suspended_rests_until_it_is_resumed(self, tmp_path: Path) -> None:
        found = deployed(tmp_path)
        start = state(found)
        proposal = propose_suspended(start, "alone")
        after = following(start, proposal)
        assert list(after.deployment.running) == ["two-together"]
        assert list(after.deployment.policies) == ["alone", "two-together"]
        assert Deployment.from_json(after.deployment.as_json()) == after.deployment
        assert (
            digest_of(content_of({each: value.body for each, value in after.objects.items()}))
            == after.deployment.digest
        )
        assert [str(each) for each in diff_deployments(start.deployment, after.deployment)] == ["suspended alone added"]
        assert propose_suspended(after, "alone").moves == {}
        again = propose_folder(after, found, {})
        assert again.moves == {}
        assert again.deployment.suspended == {"alone"}
        resumed = following(after, propose_suspended(after, "alone", resume=True))
        assert resumed.deployment == start.deployment.at_version(resumed.deployment.version)
        with pytest.raises(SituError) as caught:
            propose_suspended(start, "alon")
        assert codes(caught.value.problems) == ["D108"]

    def test_what_is_removed_is_not_suspended_any_more(self, tmp_path: Path) -> None:
        start = state(deployed(tmp_path))
        text = FILES["policies/other.dpl"].replace("two-together", "close")
        start = following(start, propose_added(start, Key("policy", "close"), policy_document("close", text, "c"))[0])
        start = following(start, propose_suspended(start, "close"))
        after = following(start, propose_removed(start, Key("policy", "close")))
        assert after.deployment.suspended == frozenset()
        assert Key("suspended", "close") not in after.objects

    def test_where_a_policy_starts_is_kept_until_it_rests_or_goes(self, tmp_path: Path) -> None:
        first, text = state(deployed(tmp_path)), FILES["policies/other.dpl"].replace("two-together", "close")
        begin = PolicyStart(at=1_790_000_000_000_000, acts=True)
        document = policy_document("close", text, "c")
        after = following(first, propose_added(first, Key("policy", "close"), document, start=begin)[0])
        assert after.deployment.starts == {"close": begin}
        assert Deployment.from_json(after.deployment.as_json()) == after.deployment
        bodies = {each: value.body for each, value in after.objects.items()}
        assert digest_of(content_of(bodies)) == after.deployment.digest
        assert [str(each) for each in diff_deployments(first.deployment, after.deployment)] == [
            "policy close added",
            "start close added",
        ]
        again = propose_folder(after, deployed(tmp_path), {})
        assert (again.moves, again.deployment.starts) == ({}, {"close": begin})
        for gone in (propose_suspended(after, "close"), propose_removed(after, Key("policy", "close"))):
            assert Key("start", "close") not in following(after, gone).objects
            assert following(after, gone).deployment.starts == {}

    def test_policies_of_a_folder_start_where_it_is_said_if_they_are_new(self, tmp_path: Path) -> None:
        found, begin = deployed(tmp_path), PolicyStart(at=1_790_000_000_000_000)
        none = replace(found, policies={})
        with_none = state(none)
        after = following(with_none, propose_folder(with_none, found, {}, start=begin))
        assert after.deployment.starts == {"alone": begin, "two-together": begin}
        later = propose_folder(after, found, {}, start=PolicyStart(at=1_791_000_000_000_000))
        assert later.moves == {}, "they have begun"
        without = following(after, propose_folder(after, none, {}))
        assert without.deployment.starts == {}
        assert Key("start", "alone") not in without.objects

    def test_a_policy_is_judged_beside_the_others(self, tmp_path: Path) -> None:
        start = state(deployed(tmp_path))
        text = "actions: {move: {publish: Sighting, data: {who: somebody, at: {x: 1, y: 2}}}}"
        after = following(start, propose_added(start, Key("action", "move"), parse_yaml(text, "a.yaml"))[0])
        loop = FILES["policies/other.dpl"].replace("two-together", "loop").replace("log two persons", "move")
        with pytest.raises(SituError) as caught:
            propose_added(after, Key("policy", "loop"), policy_document("loop", loop, "loop.dpl"))
        assert codes(caught.value.problems) == ["S187"]

    def test_push_sources_and_concepts_come_while_policies_run(self, tmp_path: Path) -> None:
        start = state(deployed(tmp_path))
        text = "push: {near: {event: Sighting, concept: visitor, id: who, attribute: position, value: at}}"
        after = following(start, propose_added(start, Key("push", "near"), parse_yaml(text, "a.yaml"))[0])
        assert list(after.deployment.push) == ["near", "seen"]
        text = "concepts: {robot: {id: string, position: Point m}}"
        after = following(after, propose_added(after, Key("concept", "robot"), parse_yaml(text, "a.yaml"))[0])
        assert "robot" in after.deployment.ontology.concepts
        with pytest.raises(SituError) as caught:
            propose_added(
                after,
                Key("push", "far"),
                parse_yaml(
                    "push: {far: {event: Sighting, concept: car, id: who, attribute: position, value: at}}", "a"
                ),
            )
        assert codes(caught.value.problems) == ["S121"]

    def test_an_ontology_that_changes_stops_what_no_longer_fits(self, tmp_path: Path) -> None:
        files = {**FILES, "ontology.yaml": "concepts: {}"}
        files = {name: text for name, text in files.items() if not name.startswith(("policies", "sources"))}
        checked = check_folder(write(tmp_path / "bare", files), {})
        assert checked.deployment is not None
        start = state(checked.deployment)
        whole = deployed(tmp_path / "whole")
        bodies = {each: body for each, body in bodies_of(whole).items() if each not in start.objects}
        start = _with(start, bodies)
        assert list(start.deployment.policies) == ["alone", "two-together"]
        proposal = propose_removed(start, Key("measure", "distance"))
        after = following(start, proposal)
        assert list(after.deployment.policies) == ["alone"]
        assert list(after.deployment.stopped) == ["two-together"]
        assert Key("policy", "two-together") in after.objects
        text = "measures: {distance: {between: [person.position, person.position], function: distance, unit: m}}"
        again, problems = propose_added(after, Key("measure", "distance"), parse_yaml(text, "a.yaml"))
        assert problems == ()
        assert list(following(after, again).deployment.policies) == ["alone", "two-together"]
        text = "measures: {distance: {between: [room.id, room.id], function: '='}}"
        _, problems = propose_altered(start, Key("measure", "distance"), parse_yaml(text, "a.yaml"))
        assert codes(problems) == ["S204"]
        assert problems[0].cause is not None

    def test_actions_come_and_go_and_policies_that_use_them_stop(self, tmp_path: Path) -> None:
        start = state(deployed(tmp_path))
        document = parse_yaml("actions: {call somebody: {notify: desk, text: Come here}}", "a.yaml")
        after = following(start, propose_added(start, Key("action", "call somebody"), document)[0])
        assert set(after.deployment.actions.named) == {"call somebody", "close window", "open window", "raise alarm"}
        assert after.deployment.actions.opposed
        text = FILES["policies/other.dpl"].replace("two-together", "close").replace("log two persons", "call somebody")
        added, _ = propose_added(after, Key("policy", "close"), policy_document("close", text, "close.dpl"))
        after = following(after, added)
        after = following(after, propose_removed(after, Key("action", "call somebody")))
        assert list(after.deployment.stopped) == ["close"]
        assert codes(after.deployment.stopped["close"].reasons) == ["S180"]

    def test_a_folder_keeps_policies_of_others_and_stops_them_if_need_be(self, tmp_path: Path) -> None:
        start = state(deployed(tmp_path))
        text = FILES["policies/other.dpl"].replace("two-together", "close")
        start = following(start, propose_added(start, Key("policy", "close"), policy_document("close", text, "c"))[0])
        ontology = FILES["ontology.yaml"].replace("distance: {between", "gap: {between")
        other = FILES["policies/other.dpl"].replace("distance(", "gap(")
        new = deployed(tmp_path / "new", ontology=ontology, policies_other=other)
        proposal = propose_folder(start, new, {})
        after = following(start, proposal)
        assert list(after.deployment.policies) == ["alone", "two-together"]
        assert list(after.deployment.stopped) == ["close"]
        assert codes(proposal.problems) == ["S204"]


def _with(start: State, bodies: dict[Key, str]) -> State:
    """The state with these objects, too, of which nobody but the registry knows."""
    made = {each: value.body for each, value in start.objects.items()}
    found = state_of(deployment_of({**made, **bodies}, 1))
    objects: Any = {
        each: type(value)(key=value.key, version=1, body=value.body, origin="api")
        for each, value in found.objects.items()
    }
    return State(version=1, digest=found.digest, objects=objects, deployment=found.deployment)


class TestFilesOfSources:
    """Files that sources name and that are not there are told before anything runs."""

    def test_those_that_are_there_are_not_mentioned(self, tmp_path: Path) -> None:
        assert "S206" not in codes(check(tmp_path).problems)

    @pytest.mark.parametrize("file", ["people.csv", "floor.xml"])
    def test_one_that_is_not_there_is_named(self, tmp_path: Path, file: str) -> None:
        check(tmp_path)
        (tmp_path / file).unlink()
        (found,) = [each for each in check_folder(tmp_path, {}).problems if each.code.code == "S206"]
        assert (found.values["file"], found.is_error) == (file, False)
        assert found.location is not None
        assert found.location.file == "sources/a.yaml"

    def test_a_name_from_the_environment_is_looked_up_there(self, tmp_path: Path) -> None:
        sources = FILES["sources/a.yaml"].replace("people.csv", '"${PEOPLE}"')
        check(tmp_path, sources_a=sources)
        for place, expected in (("people.csv", 0), ("nowhere.csv", 1)):
            found = check_folder(tmp_path, {"PEOPLE": place}).problems
            assert codes(found).count("S206") == expected
