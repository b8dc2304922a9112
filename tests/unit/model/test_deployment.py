"""Deployments: the canonical form reads back, the digest depends on what is declared alone, changes are named."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from textwrap import dedent
from typing import Any

import pytest

from situ.lang.documents import parse_yaml
from situ.lang.expr.definitions import load_functions
from situ.lang.problems import Problems
from situ.lang.types.resolve import load_types
from situ.model import Deployment, canonical, diff_deployments
from situ.routing.load import load_clients
from situ.settings import load_settings

FILES = {
    "situ.yaml": """
        name: plant
        batch: {events: 7}
        """,
    "types/a.yaml": """
        types:
          Position: {x: double m, y: double m}
          TankId(string): {}
          Base: {id: TankId}
        events:
          Moved(Base): {to: Position, speed: {type: double, unit: km/h, default: 5}, tries: optional int}
          Level: {tank: TankId, level: double %}
        units: {EUR: currency}
        """,
    "functions/f.yaml": """
        functions:
          high: "(level: double %) -> boolean = level > 95 %"
          yards: double m -> double yd = value * 1.09
        """,
    "clients/c.yaml": """
        clients:
          tank-1: {advertisements: {levels: {type: Level}}}
          control:
            subscriptions:
              high: {types: [Level], where: high(level), durable: true}
              moves: {types: [Moved]}
        """,
}


def deploy(files: Mapping[str, str]) -> Deployment:
    """The deployment of files that are in order."""
    problems = Problems()
    documents = {name: parse_yaml(dedent(text), name) for name, text in files.items()}

    def of(kind: str) -> list[Any]:
        return [document for name, document in documents.items() if name.startswith(kind)]

    settings = load_settings(documents["situ.yaml"], problems)
    types = load_types(of("types/"), problems)
    functions = load_functions(of("functions/"), types, problems)
    clients = load_clients(of("clients/"), types, functions.callable, problems)
    assert not problems.errors, "\n".join(map(str, problems))
    return Deployment(
        settings=settings,
        types=types,
        functions=functions.defined,
        clients=clients.clients,
        advertisements=clients.advertisements,
        subscriptions=clients.subscriptions,
    )


PLANT = deploy(FILES)


def changed(file: str, old: str, new: str) -> Deployment:
    assert old in FILES[file]
    return deploy({**FILES, file: FILES[file].replace(old, new)})


# ── canonical form ────────────────────────────────────────────────────────────────────────────────


def test_the_canonical_form_reads_back() -> None:
    written = json.loads(json.dumps(PLANT.as_json()))
    read = Deployment.from_json(written)
    assert read == PLANT
    assert read.as_json() == PLANT.as_json()
    assert (read.digest, hash(read)) == (PLANT.digest, hash(PLANT))


def test_an_empty_deployment_reads_back() -> None:
    empty = deploy({"situ.yaml": "name: empty"})
    assert Deployment.from_json(empty.as_json()) == empty


def test_the_version_is_not_part_of_the_digest() -> None:
    assert PLANT.at_version(5).digest == PLANT.digest
    assert PLANT.at_version(5) != PLANT
    assert PLANT.at_version(5).as_json()["version"] == 5


def test_functions_that_can_be_called_are_apart_from_conversions() -> None:
    assert list(PLANT.functions) == ["high", "yards"]
    assert list(PLANT.definitions) == ["high"]


def test_the_digest_is_the_same_everywhere() -> None:
    """Written down, so that every machine is held to it. It changes with the form of deployments, and only then."""
    assert PLANT.digest == "bf7ae400a8cafe14206bb2ca101a74d961a9dc8b2e73dd94239d5abeb923703f"


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {**PLANT.as_json(), "version": "1"},
        {**PLANT.as_json(), "version": True},
        {**PLANT.as_json(), "more": {}},
        {**PLANT.as_json(), "settings": {}},
        {**PLANT.as_json(), "types": {"types": {"A": {}}, "events": [], "units": {}}},
        {**PLANT.as_json(), "functions": {"f": {"signature": "A -> B", "expr": "value"}}},
        {**PLANT.as_json(), "functions": None},
        {**PLANT.as_json(), "clients": {"a b": {}}},
        {**PLANT.as_json(), "clients": {"a": {"context": "us"}}},
        {**PLANT.as_json(), "clients": []},
        {**PLANT.as_json(), "contexts": []},
        {**PLANT.as_json(), "contexts": {"us": []}},
        {**PLANT.as_json(), "contexts": {"us": {"extends": "eu"}}},
        {**PLANT.as_json(), "contexts": {"us": {"extends": "root", "rules": {"out": ["Positon -> identity"]}}}},
        {**PLANT.as_json(), "advertisements": {"a": {"type": "T"}}},
        {**PLANT.as_json(), "subscriptions": {"a/b": {"types": 5}}},
    ],
)
def test_what_was_never_written_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        Deployment.from_json(copy.deepcopy(value))


def test_canonical_text_has_one_form() -> None:
    assert canonical({"b": [1, 2.5], "a": "ä"}) == '{"a":"ä","b":[1,2.5]}'


# ── what the digest depends on ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("situ.yaml", "name: plant", "# a comment\n        name:   plant"),
        ("situ.yaml", "{events: 7}", "{linger: 5 ms, events: 7}"),
        ("types/a.yaml", "unit: km/h", 'unit: "km / h"'),
        ("types/a.yaml", "optional int", "{type: int, optional: true}"),
        ("functions/f.yaml", "level > 95 %", "level  >  95%"),
        (
            "functions/f.yaml",
            "double m -> double yd = value * 1.09",
            "{expr: value*1.09, signature: double m->double yd}",
        ),
        ("clients/c.yaml", "where: high(level)", 'where: "high( level )"'),
        ("clients/c.yaml", "moves: {types: [Moved]}", "moves: {types: [Moved], durable: false}"),
    ],
)
def test_writing_it_otherwise_changes_nothing(file: str, old: str, new: str) -> None:
    other = changed(file, old, new)
    assert other.digest == PLANT.digest
    assert other == PLANT
    assert diff_deployments(PLANT, other) == ()


def test_files_and_their_order_change_nothing() -> None:
    reversed_files = dict(reversed(FILES.items()))
    split = {
        "situ.yaml": FILES["situ.yaml"],
        "clients/z.yaml": "clients: {tank-1: {advertisements: {levels: {type: Level}}}}",
        "clients/a.yaml": FILES["clients/c.yaml"].replace("tank-1: {advertisements: {levels: {type: Level}}}", ""),
        "functions/f.yaml": FILES["functions/f.yaml"],
        "types/2.yaml": "types: {TankId(string): {}}\nunits: {EUR: currency}",
        "types/1.yaml": FILES["types/a.yaml"].replace("TankId(string): {}", "").replace("units: {EUR: currency}", ""),
    }
    assert deploy(reversed_files).digest == deploy(split).digest == PLANT.digest


@pytest.mark.parametrize(
    ("file", "old", "new", "change"),
    [
        ("situ.yaml", "name: plant", "name: factory", "setting name changed"),
        ("situ.yaml", "events: 7", "events: 8", "setting batch.events changed"),
        ("types/a.yaml", "EUR: currency", "EUR: label", "unit EUR changed"),
        ("types/a.yaml", "{EUR: currency}", "{EUR: currency, USD: currency}", "unit USD added"),
        ("types/a.yaml", "x: double m, y: double m", "x: double m, y: double km", "type Position changed"),
        ("types/a.yaml", "x: double m, y: double m", "y: double m, x: double m", "type Position changed"),
        ("types/a.yaml", "default: 5", "default: 6", "event Moved changed"),
        ("types/a.yaml", "optional int", "int", "event Moved changed"),
        ("functions/f.yaml", "> 95 %", "> 96 %", "function high changed"),
        ("functions/f.yaml", "double yd", "double ft", "function yards changed"),
        ("clients/c.yaml", "durable: true", "durable: false", "subscription control/high changed"),
        ("clients/c.yaml", "where: high(level), ", "", "subscription control/high changed"),
        ("clients/c.yaml", "[Moved]", "[Moved, Level]", "subscription control/moves changed"),
        ("clients/c.yaml", "moves: {types: [Moved]}", "", "subscription control/moves removed"),
        ("clients/c.yaml", "levels: {type: Level}", "levels: {type: Moved}", "advertisement tank-1/levels changed"),
    ],
)
def test_every_change_of_meaning_changes_the_digest_and_is_named(file: str, old: str, new: str, change: str) -> None:
    other = changed(file, old, new)
    assert other.digest != PLANT.digest
    assert [str(each) for each in diff_deployments(PLANT, other)] == [change]


# ── differences ───────────────────────────────────────────────────────────────────────────────────


def test_against_nothing_everything_is_added_but_defaults() -> None:
    changes = diff_deployments(None, PLANT)
    assert {change.what for change in changes if change.name != "batch.events"} == {"added"}
    assert [str(change) for change in changes] == [
        "setting batch.events changed",
        "setting name added",
        "unit EUR added",
        "type Base added",
        "type Position added",
        "type TankId added",
        "event Level added",
        "event Moved added",
        "function high added",
        "function yards added",
        "client control added",
        "client tank-1 added",
        "advertisement tank-1/levels added",
        "subscription control/high added",
        "subscription control/moves added",
    ]


def test_a_change_tells_each_part_before_and_after() -> None:
    other = changed(
        "types/a.yaml",
        "Moved(Base): {to: Position, speed: {type: double, unit: km/h, default: 5}, tries: optional int}",
        "Moved: {to: Position, speed: double m/s, why: string}",
    )
    (change,) = diff_deployments(PLANT, other)
    assert [(detail.part, detail.before, detail.after) for detail in change.details] == [
        ("speed", "double km/h (default 5.0)", "double m/s"),
        ("why", None, "string"),
        ("extends", "Base", None),
        ("tries", "optional int", None),
    ]
    assert change.after == "Moved: {to: Position, speed: double m/s, why: string}"
    assert change.as_json()["details"][1] == {"part": "why", "before": None, "after": "string"}


def test_a_subscription_tells_its_filter() -> None:
    (change,) = diff_deployments(PLANT, changed("clients/c.yaml", "high(level)", "'level > 50 %'"))
    assert [(detail.part, detail.before, detail.after) for detail in change.details] == [
        ("where", "high(level)", "level > 50 %")
    ]
    assert change.before == "types: [Level], where: high(level), durable: true"


def test_there_and_back() -> None:
    empty = deploy({"situ.yaml": FILES["situ.yaml"]})
    there, back = diff_deployments(empty, PLANT), diff_deployments(PLANT, empty)
    assert [(change.kind, change.name) for change in there] == [(change.kind, change.name) for change in back]
    assert {change.what for change in there} == {"added"}
    assert {change.what for change in back} == {"removed"}
    assert [change.after for change in there] == [change.before for change in back]


def test_a_type_that_becomes_an_event_is_removed_and_added() -> None:
    files = {"situ.yaml": "name: p", "types/a.yaml": "types: {A: {x: int}}"}
    other = {**files, "types/a.yaml": "events: {A: {x: int}}"}
    assert [str(change) for change in diff_deployments(deploy(files), deploy(other))] == [
        "type A removed",
        "event A added",
    ]
