"""Deployments as objects: nothing is lost or added on the way, and the digest is that of the deployment."""

from __future__ import annotations

import json

import yaml
from hypothesis import given
from hypothesis import strategies as st

from situ.lang.documents import to_data
from situ.lang.records import replace
from situ.lang.types.table import Types
from situ.model import Deployment, canonical
from situ.quality.model.json_form import quality_from_json
from situ.quality.model.shapes import Limit, Shape, Thin
from situ.registry.object_files import as_yaml, client_document, declared_in
from situ.registry.objects import Object, bodies_of, content_of, deployment_of, digest_of, revised
from tests.property.lang.test_types import tables
from tests.registry_files import FILES, deploy, document, key, state_of

PLANT = deploy()


def test_every_declared_thing_is_one_object() -> None:
    assert [str(each) for each in sorted(bodies_of(PLANT))] == [
        "advertisement tank-1/levels",
        "client control",
        "client tank-1",
        "event Level",
        "event Moved",
        "function high",
        "function very_high",
        "settings situ.yaml",
        "subscription control/high",
        "type Position",
        "unit EUR",
    ]


def test_content_is_the_canonical_form() -> None:
    expected = {name: value for name, value in PLANT.as_json().items() if name not in ("version", "versions")}
    assert content_of(bodies_of(PLANT)) == canonical(expected)
    assert digest_of(content_of(bodies_of(PLANT))) == PLANT.digest


def test_nothing_declared_has_the_digest_of_nothing() -> None:
    assert digest_of(content_of({})) == Deployment().digest


@given(tables(), st.lists(st.sampled_from(["a", "b-1", "Z9", "é".encode().hex()]), unique=True))
def test_objects_make_the_deployment_again(types: Types, clients: list[str]) -> None:
    files = {**FILES, "clients/d.yaml": json.dumps({"clients": {f"x{name}": {} for name in clients}})}
    deployment = deploy(files)
    deployment = Deployment(settings=deployment.settings, types=types, clients=deployment.clients)
    again = deployment_of(bodies_of(deployment), 7)
    assert (again.version, again.digest) == (7, deployment.digest)
    assert again.types == types


def test_files_declare_what_they_make() -> None:
    found = {each for name, text in FILES.items() for each, _ in declared_in(document(text, name))}
    assert found == bodies_of(PLANT).keys()


def test_declarations_keep_their_text_and_file() -> None:
    written = dict(declared_in(document(FILES["clients/c.yaml"], "clients/c.yaml")))
    file, text = written[key("subscription", "control/high")]
    assert (file, text) == ("clients/c.yaml", "high: {types: [Level], where: high(level), durable: true}")


def test_heads_with_supertypes_are_known_by_their_name() -> None:
    found = dict(declared_in(document("events:\n  Low(Level): {since: timestamp}\n")))
    assert list(found) == [key("event", "Low")]


def test_nonsense_declares_nothing() -> None:
    for text in ("- a list\n", "types: 3\n", "clients: [a]\n", "just text\n"):
        assert list(declared_in(document(text))) == []


def test_the_document_of_a_client_declares_it_alone() -> None:
    body = {"types": ["Level"], "where": "level > 1 %"}
    made = client_document(key("subscription", "a/b"), body)
    assert made.root is not None
    assert to_data(made.root) == {"clients": {"a": {"subscriptions": {"b": body}}}}
    alone = client_document(key("client", "a"), {})
    assert alone.root is not None
    assert to_data(alone.root) == {"clients": {"a": {}}}


def test_objects_are_shown_as_files_that_declare_them() -> None:
    for each in state_of(PLANT).objects.values():
        file = "situ.yaml" if each.kind == "settings" else "new.yaml"
        made = document(as_yaml(each, PLANT), file)
        assert made.problems == ()
        declared = {found for found, _ in declared_in(made)}
        assert each.key in declared, as_yaml(each, PLANT)
        assert len(declared) == (2 if each.kind in ("advertisement", "subscription") else 1)


def test_quality_and_shapes_are_objects_and_change_by_themselves() -> None:
    body = {
        "expectations": [{"id": "E", "subscription": "control/high", "need": {"rate": {"lb": 5.0}}, "utility": 2.0}]
    }
    shape = Shape(thin=Thin(limits=(Limit(events=10),)))
    made = replace(PLANT, quality=quality_from_json(body), shapes={"control/high": shape})
    bodies = bodies_of(made)
    assert bodies.keys() - bodies_of(PLANT).keys() == {key("quality", "quality"), key("shape", "control/high")}
    assert digest_of(content_of(bodies)) == made.digest == Deployment.from_json(made.as_json()).digest
    again = revised(PLANT, bodies, (key("quality", "quality"), key("shape", "control/high")), 3)
    assert (again.quality, dict(again.shapes), again.digest) == (made.quality, made.shapes, made.digest)
    written = Object(key=key("quality", "quality"), version=1, body=bodies[key("quality", "quality")], origin="folder")
    assert yaml.safe_load(as_yaml(written, made)) == {"version": 1, **body}
    gone = revised(again, bodies_of(PLANT), bodies.keys() - bodies_of(PLANT).keys(), 4)
    assert gone.digest == PLANT.digest
