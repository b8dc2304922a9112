"""``situ scopes``, and scopes in ``situ check`` and ``situ diff``, as a user meets them."""

from __future__ import annotations

from pathlib import Path
from xml.dom import minidom

import pytest

from tests.e2e.conftest import Situ
from tests.project_files import write
from tests.unit.test_load_scopes import CLIENTS, EVENTS, HERE


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
