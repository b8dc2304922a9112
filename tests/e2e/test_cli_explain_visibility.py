"""``situ explain visibility`` as a user meets it: about a sample, without a run; and how it is called."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.conftest import Ran, Situ
from tests.e2e.runs import running
from tests.golden.test_explained_visibility import CLIENTS, SCOPES, TYPES
from tests.project_files import write

STATE = {"machine_class": "press", "bytes": 100, "sampled": True}


@pytest.fixture
def plant(tmp_path: Path) -> Path:
    files = {"situ.yaml": "name: plant\n", "types/e.yaml": TYPES, "scopes.yaml": SCOPES, "clients/c.yaml": CLIENTS}
    return write(tmp_path / "plant", files)


def explain(situ: Situ, plant: Path, *arguments: str, data: object = STATE) -> Ran:
    return situ("explain", "visibility", "--project", plant, *arguments, stdin=json.dumps(data).encode())


def test_a_sample_is_explained_from_the_folder(situ: Situ, plant: Path) -> None:
    ran = explain(situ, plant, "--from", "press-7/state", "--data", "-", "--to", "acme-remote/notes")
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0] == "an event as in the sample  MachineState  from press-7/state"
    assert lines[1] == "membership  line-a → supplier-acme  NOT VISIBLE"
    assert "input(supplier-acme)  vendor = 'acme'           NULL: data.vendor is missing" in lines[4]
    assert lines[4].endswith("scopes.yaml:13:51")
    assert lines[-1].startswith("not visible (membership, geography); would be visible if: vendor = 'acme', and")


def test_a_whole_event_as_a_sample_and_as_json(situ: Situ, plant: Path) -> None:
    event = {
        "specversion": "1.0",
        "id": "1",
        "source": "x",
        "type": "MachineState",
        "data": {**STATE, "vendor": "acme"},
    }
    ran = explain(
        situ, plant, "--from", "press-7/state", "--data", "-", "--to", "acme-remote/notes", "--json", data=event
    )
    assert ran.code == 0
    found = {each["dimension"]: each for each in ran.data["itself"]["now"]["dimensions"]}
    assert (ran.data["visible"], ran.data["to"], ran.data["type"]) == (False, "acme-remote/notes", "MachineState")
    assert {name: (each["visible"], each["code"]) for name, each in found.items()} == {
        "membership": (True, "between"),
        "geography": (False, "scope_against_nothing"),
        "network": (True, "between"),
    }
    assert [step["to"] for step in found["membership"]["way"]] == ["maintenance", "supplier-acme"]
    assert found["membership"]["way"][1]["asked"][0]["place"] == "scopes.yaml:13:51"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--from", "press-7/states", "--data", "-", "--to", "acme-remote/notes"), "R002"),
        (("--from", "press-7/state", "--data", "-", "--to", "acme-remote/note"), "P164"),
    ],
)
def test_what_is_not_there_is_said(situ: Situ, plant: Path, arguments: tuple[str, ...], code: str) -> None:
    ran = explain(situ, plant, *arguments)
    assert (ran.code, ran.out) == (1, "")
    assert f"error {code}:" in ran.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("--to", "acme-remote/notes"),
        ("1", "--from", "press-7/state", "--data", "-", "--to", "acme-remote/notes"),
        ("--from", "press-7/state", "--to", "acme-remote/notes"),
        ("1",),
    ],
)
def test_an_event_or_a_sample_is_named_and_a_subscription(situ: Situ, plant: Path, arguments: tuple[str, ...]) -> None:
    assert explain(situ, plant, *arguments).code == 2


def test_without_scopes_everything_is_visible(situ: Situ, plant: Path) -> None:
    (plant / "scopes.yaml").unlink()
    write(plant, {"clients/c.yaml": "\n".join(line for line in CLIENTS.splitlines() if "scopes:" not in line)})
    ran = explain(situ, plant, "--from", "press-7/state", "--data", "-", "--to", "acme-remote/notes")
    assert ran.code == 0
    assert ran.out.splitlines()[1:] == ["there are no scopes", "visible"]


def test_a_sample_in_the_terms_of_its_client(situ: Situ) -> None:
    def asked(data: bytes, to: str) -> Ran:
        sample = ("--from", "reader-1/seen", "--data", "-", "--to", to)
        return situ("explain", "visibility", "--project", situ.example, *sample, stdin=data)

    event = (situ.example / "samples" / "tag.json").read_bytes()
    ran = asked(event, "aurora/all")
    assert ran.code == 0
    assert "Sighting  from reader-1/seen" in ran.out
    assert "tenancy  house → tenant-a" in ran.out
    assert "not visible (tenancy)" in ran.out
    data = json.dumps(json.loads(event)["data"]).encode()
    assert asked(data, "cleaners/all").out.endswith("\nvisible\n")
    assert "INT703" in asked(event.replace(b"240.0", b'"far"'), "aurora/all").err
    assert asked(b"", "aurora/all").code == 1


def test_of_a_run_operators_and_clients_are_told_what_they_may_know(situ: Situ, plant: Path, tmp_path: Path) -> None:
    write(plant, {"situ.yaml": "name: plant\nengine: edge\n"})
    with running(plant) as run:
        made = situ("client", "add", "acme-remote", "--out", tmp_path / "acme.creds", cwd=plant)
        assert made.code == 0, made.err
        sent = ("publish", "MachineState", "--client", "press-7", "--data", json.dumps(STATE), "--json")
        key = situ(*sent, cwd=plant).data["last"]
        told = situ("explain", "visibility", key, "--to", "acme-remote/notes", cwd=plant)
        assert told.code == 0, told.err
        assert "stamped in epoch 1" in told.out
        assert "NULL: data.vendor is missing   scopes.yaml:13:51" in told.out
        asked = ("explain", "visibility", key, "--to", "acme-remote/notes", "--credentials", tmp_path / "acme.creds")
        own = situ(*asked, cwd=plant)
        assert own.code == 0, own.err
        assert own.out == f"event {key}\nmembership  supplier-acme\nnetwork  wan\nnot visible\n"
        foreign = situ("explain", "visibility", key, "--to", "press-7/none", *asked[-2:], cwd=plant)
        assert (foreign.code, foreign.out) == (1, "")
        assert "error R011:" in foreign.err
        assert run.stop() == 0
