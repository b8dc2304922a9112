"""Contexts in the registry: objects like others, which clients are in, and which nothing may break."""

from __future__ import annotations

import json

import pytest
import yaml

from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.model import diff_deployments
from situ.registry.admin_changes import propose_added, propose_altered, propose_defined, propose_folder, propose_removed
from situ.registry.changes import Declaration, propose_clients
from situ.registry.object_files import as_yaml, declared_in
from situ.registry.objects import bodies_of, deployment_of
from situ.registry.proposal import State
from situ.routing import Advertisement, ClientDeclaration, Subscription
from tests.registry_files import FILES, deploy, document, following, key, state_of, subscription

IN_CONTEXTS = {
    **FILES,
    "contexts/root.yaml": """
        context: root
        units: {GBP: currency}
        types: {Valve: {open: double %}}
        functions: {feet: double m -> double ft = value * 3.28}
        """,
    "contexts/us.yaml": """
        context: us
        types: {Position: {x: double ft, y: double ft}}
        events:
          Moved: {to: Position, at: {type: double, unit: GBP, default: 5}, valve: optional Valve}
        maps:
          - out: Moved -> Moved
            attributes: {at: {default: 7}}
        rules: [Position -> feet_of]
        functions:
          feet_of: root:Position -> Position = struct(value.x * 3.28 AS x, value.y * 3.28 AS y)
        """,
    "contexts/ny.yaml": "context: us.ny\nextends: us\n",
    "clients/d.yaml": "clients: {york: {context: us.ny, subscriptions: {all: {types: [Moved]}}}}",
}
PLANT = deploy(IN_CONTEXTS)
START = state_of(PLANT)


def codes(error: SituError) -> list[str]:
    return [problem.code.code for problem in error.problems]


def test_each_context_is_one_object_and_root_has_only_what_is_its_own() -> None:
    bodies = bodies_of(PLANT)
    assert [each.name for each in sorted(bodies) if each.kind == "context"] == ["root", "us", "us.ny"]
    assert json.loads(bodies[key("context", "root")]).keys() == {"functions"}
    assert {key("unit", "GBP"), key("type", "Valve")} <= bodies.keys()
    assert json.loads(bodies[key("client", "york")]) == {"context": "us.ny"}
    assert deployment_of(bodies, 3) == PLANT.at_version(3)


def test_files_declare_what_they_make() -> None:
    found = {each for name, text in IN_CONTEXTS.items() for each, _ in declared_in(document(text, name))}
    assert found == bodies_of(PLANT).keys()


def test_contexts_are_shown_as_files_that_declare_them() -> None:
    for id in ("root", "us", "us.ny"):
        text = as_yaml(START.objects[key("context", id)], PLANT)
        assert [each for each, _ in declared_in(document(text))] == [key("context", id)], text
    text = as_yaml(START.objects[key("context", "us")], PLANT)
    assert list(yaml.safe_load(text)) == [
        "version",
        "context",
        "extends",
        "types",
        "events",
        "maps",
        "rules",
        "functions",
    ]
    state = following(START, propose_folder(START, deploy(FILES), {}))
    again = following(
        state,
        propose_added(state, key("context", "us"), document(text.replace("GBP", "EUR").replace("Valve", "string")))[0],
    )
    assert again.deployment.contexts.by_id["us"].rules == PLANT.contexts.by_id["us"].rules


def test_a_folder_without_changes_changes_nothing_and_one_with_changes_what_differs() -> None:
    assert propose_folder(START, deploy(IN_CONTEXTS), {}).moves == {}
    new = deploy({**IN_CONTEXTS, "contexts/ny.yaml": "context: us.ny\nextends: us\nderive: true\n"})
    assert list(propose_folder(START, new, {}).moves) == [key("context", "us.ny")]


def test_contexts_that_were_added_stay_beside_those_of_the_folder() -> None:
    new = document("context: eu\nextends: us\nrules: {out: [Moved.to -> feet_of]}")
    state = following(START, propose_added(START, key("context", "eu"), new)[0])
    state = following(state, propose_folder(state, deploy({**IN_CONTEXTS, "clients/d.yaml": ""}), {}))
    assert state.objects[key("context", "eu")].origin == "api"
    without = {name: text for name, text in IN_CONTEXTS.items() if name not in ("contexts/us.yaml", "clients/d.yaml")}
    del without["contexts/ny.yaml"]
    with pytest.raises(SituError) as refused:
        propose_folder(state, deploy(without), {})
    assert codes(refused.value) == ["INT501"]


def test_altered() -> None:
    state = following(START, propose_added(START, key("context", "eu"), document("context: eu"))[0])
    proposal, _ = propose_altered(state, key("context", "eu"), document("context: eu\nextends: us"))
    assert list(proposal.moves) == [key("context", "eu")]
    parent = proposal.deployment.contexts.by_id["eu"].parent
    assert parent is not None
    assert parent.id == "us"
    with pytest.raises(SituError) as refused:
        propose_altered(state, key("context", "eu"), document("context: eu\nextends: uss"))
    assert codes(refused.value) == ["INT501"]


def test_a_document_of_root_with_types_declares_more_than_the_context() -> None:
    state = state_of(deploy())
    with pytest.raises(SituError) as refused:
        propose_added(state, key("context", "root"), document("context: root\nunits: {GBP: currency}"))
    assert codes(refused.value) == ["D110"]
    text = "context: root\nfunctions: {feet: double m -> double ft = value * 3.28}"
    added = propose_added(state, key("context", "root"), document(text))[0]
    assert "feet" in following(state, added).deployment.contexts.root.functions


def _added(state: State, kind: str, name: str, text: str) -> State:
    return following(state, propose_added(state, key(kind, name), document(text))[0])


def test_nothing_that_a_context_needs_can_go() -> None:
    state = _added(state_of(deploy()), "type", "Valve", "types: {Valve: {open: double %}}")
    state = _added(state, "context", "eu", "context: eu\ntypes: {Tap: {valve: Valve}}")
    state = _added(state, "context", "eu.de", "context: eu.de\nextends: eu")
    state = _added(state, "client", "bonn", "clients: {bonn: {context: eu.de}}")
    for kind, name, expected in (
        ("type", "Valve", ["INT101"]),
        ("context", "eu", ["INT504"]),
        ("context", "eu.de", ["INT504"]),
    ):
        with pytest.raises(SituError) as refused:
            propose_removed(state, key(kind, name))
        assert codes(refused.value) == expected, name
    assert "in use (client bonn): it is not removed" in str(refused.value)
    state = following(state, propose_removed(state, key("client", "bonn")))
    with pytest.raises(SituError) as refused:
        propose_removed(state, key("context", "eu"))  # in use by nobody, but eu.de would have no parent
    assert codes(refused.value) == ["INT501"]
    state = following(state, propose_removed(state, key("context", "eu.de")))
    assert list(propose_removed(state, key("context", "eu")).moves) == [key("context", "eu")]


def in_ny(id: str, where: str) -> Subscription:
    return replace(subscription(id, where, types=("Moved",)), context="us.ny")


def test_what_clients_declare_is_looked_up_in_their_context() -> None:
    judged = propose_clients(START, [in_ny("york/ft", "to.x > 3 ft")], ())
    assert judged.said == {}
    made = judged.proposal.deployment.subscriptions["york/ft"]
    assert (made.context, made.where) == ("us.ny", "to.x > 3 ft")
    assert judged.proposal.deployment.clients["york"].context == "us.ny"
    judged = propose_clients(START, [in_ny("york/valves", "valve.open > 5 %")], ())
    # Nothing of root is a valve there: that is worth a warning, and no reason to refuse.
    assert [problem.code.code for problem in judged.said[key("subscription", "york/valves")]] == ["INT603"]
    assert "york/valves" in judged.proposal.deployment.subscriptions
    judged = propose_clients(START, [subscription("bonn/valves", "valve.open > 5 %", types=("Moved",))], ())
    assert [problem.code.code for problem in judged.said[key("subscription", "bonn/valves")]] == ["INT602"]


def test_a_change_of_a_context_must_suit_those_who_are_in_it() -> None:
    state = following(START, propose_clients(START, [in_ny("york/v", "valve.open > 5 %")], ()).proposal)
    without = IN_CONTEXTS["contexts/us.yaml"].replace(", valve: optional Valve", "")
    with pytest.raises(SituError) as refused:
        propose_folder(state, deploy({**IN_CONTEXTS, "contexts/us.yaml": without}), {})
    assert codes(refused.value) == ["INT602"]


def test_a_client_goes_into_another_context_only_with_all_it_declares() -> None:
    state = _added(state_of(deploy()), "context", "eu", "context: eu\nevents: {Tap: {open: boolean}}")
    state = _added(state, "client", "bonn", "clients: {bonn: {context: eu}}")
    state = _added(state, "advertisement", "bonn/taps", "clients: {bonn: {advertisements: {taps: {type: Tap}}}}")
    assert state.deployment.clients["bonn"].context == "eu"
    with pytest.raises(SituError) as refused:
        propose_altered(state, key("client", "bonn"), document("clients: {bonn: {}}"))
    assert codes(refused.value) == ["INT601"]
    state = following(state, propose_removed(state, key("advertisement", "bonn/taps")))
    altered = propose_altered(state, key("client", "bonn"), document("clients: {bonn: {}}"))[0]
    assert following(state, altered).deployment.clients["bonn"].context == "root"


def test_what_differs_is_named_in_the_words_of_the_file() -> None:
    us = IN_CONTEXTS["contexts/us.yaml"].replace("{default: 7}", "{default: 8}").replace("x: double ft", "x: double yd")
    new = deploy({**IN_CONTEXTS, "contexts/us.yaml": us, "clients/d.yaml": "clients: {york: {}}"})
    changes = {str(each): each for each in diff_deployments(PLANT, new)}
    assert list(changes) == ["context us changed", "client york changed", "subscription york/all removed"]
    details = [(each.part, each.before, each.after) for each in changes["context us changed"].details]
    assert details == [
        ("types Position", '{"x":"double ft","y":"double ft"}', '{"x":"double yd","y":"double ft"}'),
        ("out Moved becomes", 'Moved {"at":{"default":7.0}}', 'Moved {"at":{"default":8.0}}'),
    ]
    (detail,) = changes["client york changed"].details
    assert (detail.part, detail.before, detail.after) == ("context", "us.ny", None)


class TestGoingOver:
    ADS = Advertisement(client="bus", name="moved", type="Moved")

    def entered(self, context: str, *more: Declaration) -> State:
        return following(
            START, propose_clients(START, [ClientDeclaration(name="bus", context=context), *more], ()).proposal
        )

    def test_a_client_is_where_it_says(self) -> None:
        state = self.entered("us")
        found = state.objects[key("client", "bus")]
        assert (found.origin, json.loads(found.body)) == ("client", {"context": "us"})
        assert propose_clients(state, [ClientDeclaration(name="bus", context="us")], ()).proposal.moves == {}

    def test_what_it_declares_with_it_is_judged_there(self) -> None:
        feet = replace(subscription("bus/ft", "to.x > 3 ft", types=("Moved",)), context="us")
        judged = propose_clients(START, [feet, ClientDeclaration(name="bus", context="us")], ())
        assert judged.said == {}
        assert {str(each) for each in judged.proposal.moves} == {"client bus", "subscription bus/ft"}

    def test_what_it_declared_goes_along(self) -> None:
        own = replace(subscription("bus/own", types=("Moved",)), context="us")
        elsewhere = replace(subscription("bus/other", types=("Level",)), context="root")
        state = self.entered("us", own, elsewhere)
        after = following(state, propose_clients(state, [ClientDeclaration(name="bus", context="us.ny")], ()).proposal)
        held = after.deployment.subscriptions
        assert (held["bus/own"].context, held["bus/other"].context) == ("us.ny", "root")

    def test_a_subscription_that_means_nothing_there_keeps_it_where_it_is(self) -> None:
        feet = replace(subscription("bus/ft", "at > 3 GBP", types=("Moved",)), context="us")
        state = self.entered("us", feet)
        judged = propose_clients(state, [ClientDeclaration(name="bus")], ())
        assert judged.proposal.moves == {}
        assert [problem.code.code for problem in judged.said[key("client", "bus")]] == ["INT602"]

    def test_an_advertisement_that_means_nothing_there_is_dropped(self) -> None:
        tap = document(
            "context: taps\nevents: {Tapped: {n: int}}\nmaps: [{in: Tapped -> Level, attributes: "
            "{tank: {default: a}, level: {default: 1}}}]"
        )
        start = following(START, propose_added(START, key("context", "taps"), tap)[0])
        ad = Advertisement(client="bus", name="taps", type="Tapped")
        state = following(
            start, propose_clients(start, [ClientDeclaration(name="bus", context="taps"), ad], ()).proposal
        )
        judged = propose_clients(state, [ClientDeclaration(name="bus", context="us")], ())
        assert judged.said == {}
        assert judged.proposal.moves[key("advertisement", "bus/taps")] is None

    def test_it_cannot_be_where_nothing_is_or_the_folder_says_otherwise(self) -> None:
        for client, expected in (
            (ClientDeclaration(name="bus", context="uss"), "INT501"),
            (ClientDeclaration(name="york", context="us"), "D103"),
        ):
            judged = propose_clients(START, [client], ())
            assert judged.proposal.moves == {}
            assert [problem.code.code for problem in judged.said[key("client", client.name)]] == [expected]

    def test_it_leaves_with_what_it_had_or_stays_for_what_is_left(self) -> None:
        lasting = replace(subscription("bus/all", types=("Level",)), durable=True)
        state = self.entered("us", self.ADS, lasting)
        here = ClientDeclaration(name="bus", context="us")
        left = following(state, propose_clients(state, (), [self.ADS, here]).proposal)
        assert json.loads(left.objects[key("client", "bus")].body) == {}
        gone = following(left, propose_clients(left, (), [lasting]).proposal)
        assert key("client", "bus") not in gone.objects
        alone = self.entered("us")
        assert propose_clients(alone, (), [here]).proposal.moves == {key("client", "bus"): None}
        with_ad = self.entered("us", self.ADS)
        kept = following(with_ad, propose_clients(with_ad, (), [self.ADS]).proposal)
        assert json.loads(kept.objects[key("client", "bus")].body) == {"context": "us"}, "it is there by itself"


class TestDefined:
    TEXT = "context: eu\nextends: us\nrules: {out: [Moved.price -> identity]}"

    def test_clients_define_and_change_what_clients_defined(self) -> None:
        state = following(START, propose_defined(START, key("context", "eu"), document(self.TEXT), "desk")[0])
        assert state.objects[key("context", "eu")].origin == "client"
        other = self.TEXT.replace("out: [Moved.price", "out: [Moved.to -> feet_of, Moved.price")
        again = following(state, propose_defined(state, key("context", "eu"), document(other), "desk")[0])
        assert len(again.deployment.contexts.by_id["eu"].rules) == 2

    def test_nothing_else(self) -> None:
        with pytest.raises(SituError) as refused:
            propose_defined(START, key("context", "us"), document("context: us"), "desk")
        assert codes(refused.value) == ["D103"]
        for name in ("root", "root.v1"):
            with pytest.raises(SituError) as refused:
                propose_defined(state_of(deploy()), key("context", name), document(f"context: {name}"), "desk")
            assert codes(refused.value) == ["INT503"]
        for body in ("python: files.f", "lookup: {r: {source: s, key: {a: value}}}, value: r.b"):
            text = f"context: eu\nfunctions: {{f: {{signature: double m -> double ft, {body}}}}}"
            with pytest.raises(SituError) as refused:
                propose_defined(START, key("context", "eu"), document(text), "desk")
            assert codes(refused.value) == ["INT411"]
