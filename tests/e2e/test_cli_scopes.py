"""``situ scopes``, and scopes in ``situ check`` and ``situ diff``, as a user meets them."""

from __future__ import annotations

from pathlib import Path
from xml.dom import minidom

import pytest

from situ.project.check import check_folder
from situ.registry import open_registry
from tests.e2e.conftest import Situ
from tests.project_files import write
from tests.unit.scopes.test_load_scopes import CLIENTS, EVENTS, HERE


@pytest.fixture
def plant(tmp_path: Path) -> Path:
    files = {"situ.yaml": "name: plant\n", "types/e.yaml": EVENTS, "scopes.yaml": HERE, "clients/c.yaml": CLIENTS}
    return write(tmp_path / "plant", files)


def test_scopes_are_drawn(situ: Situ, plant: Path) -> None:
    ran = situ("scopes", "--project", plant, "--dimension", "membership")
    assert ran.code == 0
    assert ran.out == (
        "membership  closed\n"
        "└── group\n"
        "    └── plant-lyon  output type IS Alarm AND severity >= 4\n"
        "        ├── maintenance  input type IS Alarm OR type IS MachineState\n"
        "        │   ├── line-a  press-7  output NOT (type IS CycleCount)  link up type IS MachineState AND "
        "machine_class = 'press'\n"
        "        │   └── supplier-acme  acme-remote  output type IS ServiceNote  input type IS Alarm AND "
        "vendor = 'acme'\n"
        "        └── operations  evacuation  output type IS Alarm OR type IS ShiftReport\n"
        "            └── line-a  press-7  output NOT (type IS CycleCount)\n"
    )


def test_scopes_as_a_picture_and_as_data(situ: Situ, plant: Path, tmp_path: Path) -> None:
    picture = tmp_path / "scopes.svg"
    ran = situ("scopes", "--project", plant, "--svg", picture, "--json")
    assert ran.code == 0
    assert list(ran.data["dimensions"]) == ["geography", "membership", "network"]
    drawn = minidom.parse(str(picture))
    assert len(drawn.getElementsByTagName("rect")) == 1 + 12  # the ground, and each scope
    assert len(drawn.getElementsByTagName("path")) == 10  # each membership of a scope
    words = "".join(each.firstChild.data for each in drawn.getElementsByTagName("text") if each.firstChild)
    assert "supplier-acme" in words
    assert "output: NOT (type IS CycleCount)" in words


def test_a_dimension_that_is_not_there(situ: Situ, plant: Path) -> None:
    ran = situ("scopes", "--project", plant, "-d", "membershp")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "error V001: There is no dimension `membershp`.\n  hint: Did you mean `membership`?\n"


def test_a_project_without_scopes(situ: Situ, plant: Path) -> None:
    (plant / "scopes.yaml").unlink()
    (plant / "clients/c.yaml").unlink()
    ran = situ("scopes", "--project", plant)
    assert (ran.code, ran.out) == (0, "There are no scopes: everybody sees everything.\n")


def test_problems_of_scopes_are_shown_with_their_place(situ: Situ, plant: Path) -> None:
    text = HERE.replace("in: [group],      output", "in: [line-a],     output")
    (plant / "scopes.yaml").write_text(text)
    ran = situ("check", "--project", plant)
    assert ran.code == 1
    assert "scopes.yaml:7:28: error V004: With `plant-lyon` in `line-a` a scope would be inside itself:" in ran.out


def test_what_changed_in_scopes(situ: Situ, plant: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "other", {"situ.yaml": "name: plant\n", "types/e.yaml": EVENTS, "clients/c.yaml": CLIENTS})
    (other / "scopes.yaml").write_text(HERE.replace("severity >= 4", "severity >= 5"))
    ran = situ("diff", "--project", plant, "--against", other, "--json")
    assert ran.code == 1
    assert [f"{each['kind']} {each['name']}" for each in ran.data["changes"]] == ["scope membership/plant-lyon"]


@pytest.fixture
def applied(plant: Path) -> Path:
    """The plant with its folder in force."""
    deployment = check_folder(plant).deployment
    assert deployment is not None
    with open_registry(plant, deployment.settings) as registry:
        registry.apply(deployment, "ann")
    return plant


IN = ("-d", "membership")


def test_scopes_are_changed_one_epoch_each(situ: Situ, applied: Path) -> None:
    ran = situ("scopes", "join", "desk", "line-a", *IN, "--reason", "new shift", cwd=applied)
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[-1] == "Epoch 2, version 2, in force with the next `situ run`."
    again = situ("scopes", "join", "desk", "line-a", *IN, "--json", cwd=applied).data
    assert (again["epoch"], again["changes"], again["complete"]) == (2, [], True)
    steps = (
        ("put", "line-b", *IN, "--in", "operations", "--output", "type IS Alarm", "--input", "severity > 1"),
        ("filter", "line-b", "output", "severity > 2", *IN),
        ("filter", "line-b", "output", *IN),
        ("link", "line-b", "operations", "--up", "severity > 3", *IN),
        ("carriers", "line-b", "main", *IN),
        ("drop", "line-b", *IN),
        ("mode", "geography", "closed"),
        ("grant", "desk", "observe", "admin", *IN, "--scope", "plant-lyon"),
        ("revoke", "desk", "admin", *IN, "--scope", "plant-lyon"),
        ("leave", "desk", "line-a", *IN),
    )
    for number, step in enumerate(steps, 3):
        ran = situ("scopes", *step, "--json", cwd=applied)
        assert ran.code == 0, ran.err
        assert ran.data["epoch"] == number, step
    history = situ("scopes", "history", "--json", cwd=applied).data
    assert [each["epoch"] for each in history] == [*range(12, 0, -1)]
    assert (history[10]["reason"], history[10]["changes"][0]["what"]) == (
        "new shift",
        ["client", "desk", "in", "membership/line-a"],
    )
    assert "client desk in membership/line-a" in situ("scopes", "history", cwd=applied).out
    assert len(situ("scopes", "history", "--limit", "3", "--json", cwd=applied).data) == 3


def test_changes_of_scopes_that_are_refused(situ: Situ, applied: Path) -> None:
    wrong = {
        "V001": ("join", "desk", "line-a", "-d", "membershp"),
        "V002": ("join", "desk", "nowhere", *IN),
        "V004": ("join", "group", "line-a", *IN),
        "V008": ("filter", "line-a", "output", "colour = 3", *IN),
        "V013": ("drop", "line-a", *IN),
        "V015": ("join", "desk", "line-a", *IN, "--epoch", "7"),
    }
    for code, step in wrong.items():
        ran = situ("scopes", *step, cwd=applied)
        assert (ran.code, ran.out) == (3, "")
        assert f"error {code}" in ran.err
    assert situ("scopes", "join", "desk", "line-a", cwd=applied).code == 2
    assert len(situ("scopes", "history", "--json", cwd=applied).data) == 1


def test_what_is_suspended_is_shown(situ: Situ, applied: Path) -> None:
    ahead = situ("scopes", "leave", "press-7", "line-a", *IN, "--dry-run", "--json", cwd=applied).data
    assert (ahead["epoch"], ahead["problems"][0]["code"]) == (1, "V112")
    ran = situ("scopes", "leave", "press-7", "line-a", *IN, cwd=applied)
    assert ran.code == 0
    assert "warning V112: The advertisement `press-7/" in ran.err
    got = situ("get", "advertisements", "--json", cwd=applied).data
    assert {each["name"].partition("/")[0] for each in got if each["state"] == "suspended"} == {"press-7"}
    found = next(each for each in got if each["state"] == "suspended")
    assert "suspended · " in situ("get", "advertisements", cwd=applied).out
    assert "suspended" in situ("get", "advertisement", found["name"], cwd=applied).err
    assert "suspended" in situ("get", "changes", "2", cwd=applied).out


def test_who_sees_more_or_less_than_by_another_version(situ: Situ, plant: Path, tmp_path: Path) -> None:
    files = {"situ.yaml": "name: plant\n", "types/e.yaml": EVENTS, "clients/c.yaml": CLIENTS, "scopes.yaml": HERE}
    other = write(tmp_path / "other", files)
    ran = situ("check", "--project", plant, "--against", other)
    assert ran.code == 0
    assert "nobody sees more or less" in ran.out
    (plant / "scopes.yaml").write_text(HERE.replace("NOT (type IS CycleCount)", "type IS CycleCount"))
    changed = situ("check", "--project", plant, "--against", other, "--json").data["against"]
    assert all(each["publishes"].startswith("press-7/") for each in changed)
    (other / "scopes.yaml").write_text("version: 2\n")
    assert situ("check", "--project", plant, "--against", other).code == 3
