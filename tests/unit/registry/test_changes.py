"""What is proposed to the registry: what changes, what is refused, and with which problems."""

from __future__ import annotations

from typing import Any

import pytest

from situ.lang.problems import Problem, SituError
from situ.lang.records import replace
from situ.quality.model.json_form import quality_from_json
from situ.quality.model.shapes import Limit, Shape, Thin
from situ.registry import proposal as revise
from situ.registry.admin_changes import propose_added, propose_altered, propose_folder, propose_removed
from situ.registry.changes import propose_clients
from situ.registry.objects import shape_body
from situ.registry.proposal import Affected, Move, Proposal, State
from situ.routing import Advertisement, Subscription
from tests.registry_files import FILES, changed, deploy, document, following, key, state_of, subscription

PLANT = deploy()
START = state_of(PLANT)


def codes(problems: tuple[Problem, ...]) -> list[str]:
    found = []
    for problem in problems:
        each: Problem | None = problem
        while each is not None:
            found.append(each.code.code)
            each = each.cause
    return found


def declared(*things: Advertisement | Subscription, state: State = START) -> State:
    judged = propose_clients(state, things, ())
    assert not judged.said
    return following(state, judged.proposal)


def moved(proposal: Any) -> dict[str, str]:
    return {str(each): "-" if move is None else move.origin for each, move in proposal.moves.items()}


class TestFolder:
    def test_first_everything_is_new(self) -> None:
        proposal = propose_folder(State(), PLANT, {})
        assert set(moved(proposal).values()) == {"folder"}
        assert following(State(), proposal).digest == PLANT.digest

    def test_the_same_again_changes_nothing(self) -> None:
        assert propose_folder(START, deploy(), {}).moves == {}

    def test_only_what_differs_moves(self) -> None:
        new = changed("clients/c.yaml", "high(level), durable: true", "level > 5 %")
        assert moved(propose_folder(START, new, {})) == {"subscription control/high": "folder"}

    def test_what_clients_declared_stays(self) -> None:
        state = declared(subscription("desk/low", "level < 5 %"))
        new = changed("clients/c.yaml", "tank-1", "tank-2")
        after = following(state, propose_folder(state, new, {}))
        assert after.objects[key("subscription", "desk/low")].origin == "client"
        assert set(after.deployment.clients) == {"tank-2", "control", "desk"}

    def test_what_is_declared_otherwise_elsewhere_is_refused(self) -> None:
        state = declared(subscription("desk/low", "level < 5 %"))
        extra = "clients: {desk: {subscriptions: {low: {types: [Level]}}}}"
        with pytest.raises(SituError) as refused:
            propose_folder(state, deploy({**FILES, "clients/d.yaml": extra}), {})
        assert codes(refused.value.problems) == ["D103"]
        assert "desk/low" in str(refused.value)
        assert "situ remove subscription desk/low" in refused.value.hint

    def test_what_is_declared_the_same_elsewhere_becomes_the_folders(self) -> None:
        state = declared(subscription("desk/low", "level < 5 %"))
        extra = "clients: {desk: {subscriptions: {low: {types: [Level], where: level < 5 %}}}}"
        proposal = propose_folder(state, deploy({**FILES, "clients/d.yaml": extra}), {})
        assert moved(proposal) == {"client desk": "folder", "subscription desk/low": "folder"}

    def test_a_client_stays_as_long_as_it_declares_something_itself(self) -> None:
        state = declared(subscription("tank-1/low", "level < 5 %"))
        without = {**FILES, "clients/c.yaml": "clients: {}"}
        proposal = propose_folder(state, deploy(without), {})
        assert moved(proposal)["client tank-1"] == "client"
        after = following(state, proposal)
        assert set(after.deployment.clients) == {"tank-1"}

    def test_what_clients_need_cannot_go(self) -> None:
        state = declared(
            subscription("desk/low", "level < 5 %"),
            subscription("desk/high", "very_high(level)"),
            Advertisement(client="desk", name="own", type="Level"),
        )
        files = {**FILES, "clients/c.yaml": "clients: {}"}
        files["types/a.yaml"] = files["types/a.yaml"].replace("Level:", "Depth:")
        with pytest.raises(SituError) as refused:
            propose_folder(state, deploy(files), {})
        assert codes(refused.value.problems) == ["INT601"] * 3
        files["types/a.yaml"] = FILES["types/a.yaml"].replace("level: double %", "level: double m")
        files["functions/f.yaml"] = "functions: {}"
        with pytest.raises(SituError) as refused:
            propose_folder(state, deploy(files), {})
        assert sorted(codes(refused.value.problems)) == ["INT602", "INT602", "X102", "X104"]

    def test_quality_is_the_folders_and_shapes_stay_whoever_applies(self) -> None:
        shape = Shape(thin=Thin(limits=(Limit(events=10),)))
        move = Move(body=shape_body(shape), origin="api")
        shaped = replace(PLANT, shapes={"control/high": shape})
        state = following(START, Proposal(deployment=shaped, moves={key("shape", "control/high"): move}))
        body = {"expectations": [{"id": "E", "subscription": "control/high", "need": {}, "utility": 1.0}]}
        proposal = propose_folder(state, replace(PLANT, quality=quality_from_json(body)), {})
        assert moved(proposal) == {"quality quality": "folder"}
        after = following(state, proposal)
        assert dict(after.deployment.shapes) == {"control/high": shape}
        assert moved(propose_folder(after, PLANT, {})) == {"quality quality": "-"}

    def test_a_client_may_go_though_its_subscription_was_shaped(self) -> None:
        state = declared(subscription("desk/low", "level < 5 %"))
        shape = Shape(thin=Thin(limits=(Limit(events=10),)))
        move = Move(body=shape_body(shape), origin="api")
        shaped = replace(state.deployment, shapes={"desk/low": shape})
        state = following(state, Proposal(deployment=shaped, moves={key("shape", "desk/low"): move}))
        assert set(state.below("desk")) == {key("subscription", "desk/low")}
        gone = propose_clients(state, (), (subscription("desk/low", "level < 5 %"),)).proposal
        assert moved(gone) == {"client desk": "-", "subscription desk/low": "-"}
        assert dict(following(state, gone).deployment.shapes) == {"desk/low": shape}, "negotiation takes it back"

    def test_secrets_stay_outside(self) -> None:
        from situ.lang.documents import parse_yaml, substitute
        from situ.lang.problems import Problems
        from situ.settings import load_settings

        problems = Problems()
        text = "name: plant\nregistry: postgresql+psycopg://me:${PASSWORD}@host/plant\n"
        written = parse_yaml(text, "situ.yaml")
        assert written.root is not None
        root = substitute(written.root, {"PASSWORD": "hush"}, problems)
        settings = load_settings(type(written)(file="situ.yaml", root=root), problems)
        assert "hush" in settings.registry.value
        proposal = propose_folder(State(), type(PLANT)(settings=settings), {})
        assert "hush" not in repr(proposal)
        assert "hush" not in proposal.deployment.settings.registry.value


class TestClients:
    def test_the_client_comes_with_the_first_and_goes_with_the_last(self) -> None:
        first = propose_clients(START, [subscription("desk/a"), subscription("desk/b")], ())
        assert moved(first.proposal) == {
            "subscription desk/a": "client",
            "subscription desk/b": "client",
            "client desk": "client",
        }
        state = following(START, first.proposal)
        one = propose_clients(state, (), [subscription("desk/a")])
        assert moved(one.proposal) == {"subscription desk/a": "-"}
        both = propose_clients(state, (), [subscription("desk/a"), subscription("desk/b")])
        assert set(moved(both.proposal)) == {"subscription desk/a", "subscription desk/b", "client desk"}
        assert following(state, both.proposal).digest == START.digest

    def test_withdrawing_one_and_declaring_another_keeps_the_client(self) -> None:
        state = declared(subscription("desk/a"))
        judged = propose_clients(state, [subscription("desk/b")], [subscription("desk/a")])
        assert moved(judged.proposal) == {"subscription desk/a": "-", "subscription desk/b": "client"}

    def test_the_same_again_changes_nothing_whoever_declared_it(self) -> None:
        again = [
            subscription("control/high", "HIGH( level )"),
            Advertisement(client="tank-1", name="levels", type="Level"),
        ]
        again[0] = Subscription(client="control", name="high", types=("Level",), where="high(level)", durable=True)
        judged = propose_clients(START, again, ())
        assert (judged.proposal.moves, judged.said) == ({}, {})

    def test_another_spelling_is_the_same(self) -> None:
        state = declared(subscription("desk/a", "level < 5 %"))
        assert propose_clients(state, [subscription("desk/a", "level  <  5 %")], ()).proposal.moves == {}

    def test_withdrawing_and_declaring_the_same_changes_nothing(self) -> None:
        state = declared(subscription("desk/a"))
        assert propose_clients(state, [subscription("desk/a")], [subscription("desk/a")]).proposal.moves == {}

    def test_withdrawing_what_is_not_there_changes_nothing(self) -> None:
        judged = propose_clients(START, (), [subscription("desk/a")])
        assert (judged.proposal.moves, judged.said) == ({}, {})

    def test_what_belongs_to_the_folder_is_left_alone(self) -> None:
        judged = propose_clients(START, [subscription("control/high")], ())
        assert judged.proposal.moves == {}
        assert codes(judged.said[key("subscription", "control/high")]) == ["D103"]
        judged = propose_clients(START, (), [subscription("control/high")])
        assert judged.proposal.moves == {}
        assert codes(judged.said[key("subscription", "control/high")]) == ["D103"]

    def test_one_that_is_refused_does_not_keep_the_others_out(self) -> None:
        wrong = subscription("desk/wrong", "depth < 5 m")
        judged = propose_clients(START, [wrong, subscription("desk/right", "level < 5 %")], ())
        assert set(moved(judged.proposal)) == {"subscription desk/right", "client desk"}
        (problem,) = judged.said[key("subscription", "desk/wrong")]
        assert codes((problem,)) == ["INT602", "X102"]
        assert problem.location is not None
        assert (problem.location.file, problem.location.line) == ("subscription desk/wrong", 1)
        assert problem.location.text[problem.location.column - 1 :].startswith("depth")

    @pytest.mark.parametrize(
        ("thing", "expected"),
        [
            (subscription("desk/a", types=("Position",)), "INT605"),
            (subscription("desk/a", types=("Nothing",)), "INT601"),
            (subscription("desk/a", types=()), "P105"),
            (subscription("de.sk/a"), "INT110"),
            (subscription("desk/a b"), "INT110"),
            (subscription("desk/a/b"), "INT110"),
            (subscription("/a"), "INT110"),
            (Advertisement(client="desk", name="x", type="Nothing"), "INT601"),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, thing: Advertisement | Subscription, expected: str) -> None:
        judged = propose_clients(START, [thing], ())
        assert judged.proposal.moves == {}
        (said,) = judged.said.values()
        assert expected in codes(said)

    def test_warnings_are_said_and_do_not_refuse(self) -> None:
        judged = propose_clients(START, [subscription("desk/a", "level < 5 % AND level > 6 %")], ())
        assert "subscription desk/a" in moved(judged.proposal)
        assert all(not problem.is_error for problem in judged.said.get(key("subscription", "desk/a"), ()))


class TestSingle:
    def add(self, kind: str, name: str, text: str, state: State = START) -> State:
        return following(state, propose_added(state, key(kind, name), document(text))[0])

    def test_every_kind_can_be_added_and_removed(self) -> None:
        state = START
        added = [
            ("unit", "floor", "units: {floor: label}"),
            ("type", "Place", "types: {Place: {level: double floor, at: Position}}"),
            ("event", "Low", "events: {Low(Level): {place: Place}}"),
            ("function", "low", "functions: {low: '(l: double %) -> boolean = l < 5 % AND NOT high(l)'}"),
            ("source", "places", "pull: {places: {csv: places.csv, columns: {id: string, at: Place}, key: id}}"),
            ("context", "us", "context: us\nrules: {out: [Low -> short]}\nfunctions: {short: Low -> Low = value}"),
            ("context", "us.ny", "context: us.ny\nextends: us\ntypes: {Place: {street: string, at: root:Place}}"),
            ("client", "york", "clients: {york: {context: us.ny}}"),
            ("client", "desk", "clients: {desk: {}}"),
            ("advertisement", "desk/lows", "clients: {desk: {advertisements: {lows: {type: Low}}}}"),
            ("subscription", "desk/low", "clients: {desk: {subscriptions: {low: {types: [Low], where: low(level)}}}}"),
        ]
        for kind, name, text in added:
            state = self.add(kind, name, text, state)
            assert state.objects[key(kind, name)].origin == "api"
        for kind, name, _ in reversed(added):
            state = following(state, propose_removed(state, key(kind, name)))
        assert state.digest == START.digest

    def test_a_subscription_brings_its_client(self) -> None:
        state = self.add("subscription", "desk/all", "clients: {desk: {subscriptions: {all: {types: [Level]}}}}")
        assert state.objects[key("client", "desk")].origin == "api"

    def test_altered(self) -> None:
        state = self.add("function", "low", "functions: {low: '(l: double %) -> boolean = l < 5 %'}")
        new = document("functions: {low: '(l: double %) -> boolean = l < 6 %'}")
        proposal, _ = propose_altered(state, key("function", "low"), new)
        assert moved(proposal) == {"function low": "api"}
        assert following(state, proposal).deployment.functions["low"].text == "l < 6 %"

    def test_a_source_is_checked_against_the_types_in_force(self) -> None:
        state = self.add("type", "Place", "types: {Place: {at: Position}}")
        state = self.add("source", "places", "pull: {places: {csv: p.csv, columns: {at: Place}}}", state)
        with pytest.raises(SituError) as refused:
            propose_removed(state, key("type", "Place"))
        assert codes(refused.value.problems) == ["INT101"]
        with pytest.raises(SituError) as refused:
            self.add("source", "more", "pull: {more: {csv: p.csv, columns: {at: Plaice}}}", state)
        assert codes(refused.value.problems) == ["INT101"]
        new = document("pull: {places: {csv: q.csv, columns: {at: Place}, max_age: 1 h}}")
        proposal, _ = propose_altered(state, key("source", "places"), new)
        assert moved(proposal) == {"source places": "api"}
        after = following(state, proposal)
        assert after.deployment.sources["places"].place == "q.csv"
        assert after.digest == after.deployment.digest

    def test_sources_of_others_stay_beside_those_of_the_folder(self) -> None:
        state = self.add("source", "places", "pull: {places: {csv: p.csv, columns: {at: Position}}}")
        after = following(state, propose_folder(state, changed("clients/c.yaml", "tank-1", "tank-2"), {}))
        assert list(after.deployment.sources) == ["places"]
        gone = {**FILES, "types/a.yaml": "events: {Level: {tank: string, level: double %}}"}
        with pytest.raises(SituError) as refused:
            propose_folder(state, deploy(gone), {})
        assert codes(refused.value.problems) == ["INT101"]

    def test_what_is_there_cannot_be_added(self) -> None:
        with pytest.raises(SituError) as refused:
            self.add("event", "Level", "events: {Level: {tank: string}}")
        assert refused.value.code == "D109"
        assert "situ apply" in refused.value.hint
        state = self.add("client", "desk", "clients: {desk: {}}")
        with pytest.raises(SituError) as refused:
            self.add("client", "desk", "clients: {desk: {}}", state)
        assert "situ alter client desk" in refused.value.hint

    def test_what_is_not_there_cannot_be_altered_or_removed(self) -> None:
        for attempt in (
            lambda: propose_altered(START, key("event", "Levle"), document("events: {Levle: {}}")),
            lambda: propose_removed(START, key("event", "Levle")),
        ):
            with pytest.raises(SituError) as refused:
                attempt()
            assert refused.value.code == "D108"
            assert refused.value.hint == "Did you mean `Level`?"

    def test_what_belongs_to_the_folder_cannot_be_altered_or_removed(self) -> None:
        for attempt in (
            lambda: propose_altered(START, key("event", "Level"), document("events: {Level: {tank: string}}")),
            lambda: propose_removed(START, key("event", "Level")),
            lambda: propose_removed(START, key("settings", "situ.yaml")),
        ):
            with pytest.raises(SituError, match="D103"):
                attempt()

    def test_what_a_client_left_behind_can_be_removed_but_not_altered(self) -> None:
        state = declared(subscription("ghost/a"))
        proposal = propose_removed(state, key("subscription", "ghost/a"))
        assert moved(proposal) == {"subscription ghost/a": "-", "client ghost": "-"}
        assert following(state, proposal).digest == START.digest
        text = "clients: {ghost: {subscriptions: {a: {types: [Moved]}}}}"
        with pytest.raises(SituError, match="D103"):
            propose_altered(state, key("subscription", "ghost/a"), document(text))

    @pytest.mark.parametrize(
        "text",
        [
            "events: {Other: {a: int}}",
            "types: {Low: {a: int}}",
            "events: {Low: {a: int}, Lower: {a: int}}",
            "clients: {Low: {}}",
            "version: 1",
        ],
    )
    def test_the_document_must_declare_that_and_nothing_else(self, text: str) -> None:
        with pytest.raises(SituError, match="D110") as refused:
            self.add("event", "Low", text)
        assert refused.value.problems[0].location is not None

    def test_a_document_that_is_none_says_why(self) -> None:
        with pytest.raises(SituError, match="P102"):
            self.add("event", "Low", "events: {Low: [\n")

    def test_problems_have_their_place_in_the_document(self) -> None:
        with pytest.raises(SituError) as refused:
            self.add("function", "low", "functions:\n  low: '(l: double %) -> boolean = l < 5 m'\n")
        (problem,) = refused.value.problems
        assert codes((problem,)) == ["INT401", "X104"]
        assert (problem.location.file, problem.location.line) == ("new.yaml", 2)  # type: ignore[union-attr]

    def test_all_that_depends_on_what_is_removed_is_named(self) -> None:
        state = self.add("event", "Low", "events: {Low: {l: double %}}")
        state = self.add("function", "low", "functions: {low: '(l: double %) -> boolean = l < 5 %'}", state)
        state = self.add("event", "Lower", "events: {Lower(Low): {}}", state)
        state = declared(subscription("desk/a", "low(l)", types=("Low",)), state=state)
        state = declared(Advertisement(client="desk", name="b", type="Low"), state=state)
        with pytest.raises(SituError) as refused:
            propose_removed(state, key("event", "Low"))
        assert codes(refused.value.problems) == ["INT101", "INT601", "INT601"]
        with pytest.raises(SituError) as refused:
            propose_removed(state, key("function", "low"))
        assert codes(refused.value.problems) == ["INT602", "X102"]

    def test_a_client_with_declarations_cannot_be_removed(self) -> None:
        state = self.add("subscription", "desk/all", "clients: {desk: {subscriptions: {all: {types: [Level]}}}}")
        with pytest.raises(SituError, match="D111") as refused:
            propose_removed(state, key("client", "desk"))
        assert "subscription desk/all" in str(refused.value)

    def test_a_type_and_an_event_cannot_have_one_name(self) -> None:
        with pytest.raises(SituError, match="INT106"):
            self.add("type", "Level", "types: {Level: {a: int}}")


class TestAffected:
    """Only what depends on something that changed is looked at again."""

    ABOUT = (
        subscription("a/level", "level < 5 %"),
        subscription("a/high", "high(level)"),
        subscription("a/very", "very_high(level)"),
        subscription("a/all"),
        subscription("a/moved", "to.x > 1 m", types=("Moved",)),
        subscription("a/is", "type IS Moved OR level > 1 %"),
    )

    def affected(self, file: str, old: str, new: str) -> list[str]:
        affected = Affected(PLANT, changed(file, old, new))
        return [each.name for each in self.ABOUT if affected.subscription(each)]

    def test_nothing_changed(self) -> None:
        assert not Affected(PLANT, deploy())

    def test_settings_do_not_matter_unless_they_are_limits(self) -> None:
        assert self.affected("situ.yaml", "name: plant", "name: other") == []
        limited = self.affected("situ.yaml", "name: plant", "name: plant\n        limits: {literals: 5}")
        assert limited == ["level", "high", "very", "moved", "is"]

    def test_a_function_matters_to_those_that_call_it_also_through_others(self) -> None:
        assert self.affected("functions/f.yaml", "level > 95 %", "level > 96 %") == ["high", "very"]

    def test_a_part_matters_to_the_events_that_have_it(self) -> None:
        assert self.affected("types/a.yaml", "x: double m", "x: double km") == ["moved", "is"]

    def test_an_event_matters_to_all_that_want_it(self) -> None:
        found = self.affected("types/a.yaml", "tank: string", "tank: string, room: string")
        assert found == ["level", "high", "very", "all", "is"]

    def test_units_matter_to_every_filter(self) -> None:
        files = {**FILES, "types/b.yaml": "units: {floor: label}"}
        affected = Affected(PLANT, deploy(files))
        assert [each.name for each in self.ABOUT if affected.subscription(each)] == [
            "level",
            "high",
            "very",
            "moved",
            "is",
        ]

    def test_what_is_not_affected_is_not_checked(self, monkeypatch: pytest.MonkeyPatch) -> None:
        state = declared(*(subscription(f"many/s{n}", f"level > {n} %") for n in range(50)))
        seen: list[str] = []
        load = revise.load_one
        monkeypatch.setattr(revise, "load_one", lambda thing, new: seen.append(thing.id) or load(thing, new))
        new = changed("types/a.yaml", "x: double m", "x: double km")
        propose_folder(state, new, {})
        assert seen == []
        new = changed("types/a.yaml", "tank: string", "tank: string, room: string")
        propose_folder(state, new, {})
        assert len(seen) == 50
