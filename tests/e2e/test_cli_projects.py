"""``situ init``, ``fmt``, ``diff``, ``schemas``: making a project, keeping it in form, seeing what changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.conftest import Situ

# ── init ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("options", [(), ("--example",)], ids=["small", "example"])
def test_a_new_project_is_in_order_and_in_form(situ: Situ, tmp_path: Path, options: tuple[str, ...]) -> None:
    ran = situ("init", "plant", *options, cwd=tmp_path)
    assert (ran.code, ran.err) == (0, "")
    assert "\n  plant/situ.yaml\n" in ran.out
    assert "\nNext:\n  cd plant\n  situ check " in ran.out
    checked = situ("check", "--json", cwd=tmp_path / "plant")
    assert checked.code == 0
    assert [each for each in checked.data["problems"] if each["severity"] != "observation"] == []
    assert checked.data["summary"]["types"] > 0
    assert situ("fmt", "--check", cwd=tmp_path / "plant").code == 0


def test_files_of_a_new_project_lead_editors_to_their_schemas(situ: Situ, project: Path) -> None:
    marked = [file for file in project.rglob("*.yaml") if "yaml-language-server" in file.read_text()]
    assert len(marked) == len(list(project.rglob("*.yaml"))) > 0
    for file in marked:
        _, _, schema = file.read_text().splitlines()[0].partition("$schema=")
        assert json.loads((file.parent / schema).read_text())["type"] == "object"


def test_the_current_folder_will_do_and_the_name_can_be_given(situ: Situ, tmp_path: Path) -> None:
    ran = situ("init", "--name", "my-plant", "--json", cwd=tmp_path)
    assert ran.code == 0
    assert "situ.yaml" in ran.data["files"]
    assert "\nname: my-plant\n" in (tmp_path / "situ.yaml").read_text()


def test_a_folder_with_something_in_it_is_left_alone(situ: Situ, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("irreplaceable\n")
    ran = situ("init", tmp_path)
    assert (ran.code, ran.out) == (3, "")
    assert "error P122: " in ran.err
    assert "`thesis.txt`" in ran.err
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"]
    assert situ("init", tmp_path / "thesis.txt").code == 3


def test_a_name_that_is_none_is_wrong_usage_and_nothing_is_made(situ: Situ, tmp_path: Path) -> None:
    ran = situ("init", tmp_path / "new", "--name", "a/b: c")
    assert (ran.code, ran.out) == (2, "")
    assert not (tmp_path / "new").exists()


def test_schemas_are_written_again(situ: Situ, project: Path) -> None:
    schema = project / ".situ" / "schemas" / "types.json"
    before = schema.read_text()
    schema.write_text("{}")
    ran = situ("schemas", "--json", cwd=project)
    assert ran.code == 0
    assert str(schema) in ran.data["files"]
    assert schema.read_text() == before
    assert str(schema) in situ("schemas", "--project", project).out


# ── fmt ───────────────────────────────────────────────────────────────────────────────────────────

UNTIDY = "version: 1\nevents:   \n  Reading: {length: double   m}   # of the rod\n"
TIDY = "version: 1\nevents:\n  Reading: {length: double m}   # of the rod\n"


@pytest.fixture
def untidy(project: Path) -> Path:
    file = project / "types" / "events.yaml"
    file.write_text(UNTIDY)
    (project / "clients" / "clients.yaml").unlink()
    return file


def test_fmt_says_what_it_changed_and_has_nothing_to_do_then(situ: Situ, untidy: Path) -> None:
    project = untidy.parents[1]
    checked = situ("fmt", "--check", cwd=project)
    assert (checked.code, checked.out) == (1, "types/events.yaml\n")
    assert untidy.read_text() == UNTIDY
    ran = situ("fmt", cwd=project)
    assert (ran.code, ran.out) == (0, "types/events.yaml\n")
    assert untidy.read_text() == TIDY
    again = situ("fmt", "--json", cwd=project)
    assert (again.code, again.data) == (0, {"changed": [], "written": True})


def test_fmt_takes_single_files_from_wherever_they_are_named(situ: Situ, untidy: Path) -> None:
    ran = situ("fmt", "project/types/events.yaml", cwd=untidy.parents[2])
    assert (ran.code, ran.out) == (0, "project/types/events.yaml\n")
    assert untidy.read_text() == TIDY


def test_fmt_shows_a_context_of_xml_in_yaml(situ: Situ, project: Path) -> None:
    file = project / "contexts" / "us.xml"
    file.parent.mkdir()
    file.write_text("<types><type name='a.Small'><attribute name='n' type='long' unit='m'/></type></types>")
    ran = situ("fmt", "--to", "yaml", "contexts/us.xml", cwd=project)
    assert (ran.code, ran.out) == (0, "context: us\nextends: root\ntypes:\n  Small:\n    n: long m\n")
    as_json = situ("fmt", "--to", "yaml", "contexts/us.xml", "--json", cwd=project)
    assert as_json.data == {"file": "contexts/us.xml", "form": "yaml", "text": ran.out}
    assert situ("fmt", "contexts/us.xml", cwd=project).code == 0
    assert situ("fmt", "--to", "yaml", cwd=project).code == 2
    file.write_text("<types><typ/></types>")
    broken = situ("fmt", "--to", "yaml", "contexts/us.xml", cwd=project)
    assert (broken.code, broken.out) == (1, "")
    assert broken.err.startswith("contexts/us.xml:1:8: error INT509: ")


def test_fmt_refuses_what_it_does_not_know_and_changes_nothing(situ: Situ, untidy: Path) -> None:
    project = untidy.parents[1]
    (project / "README.yaml").write_text("a:   b   \n")
    other = situ("fmt", "types/events.yaml", "README.yaml", cwd=project)
    assert (other.code, other.out) == (2, "")
    assert "README.yaml:1:1: error P166: " in other.err
    (project / "types" / "broken.yaml").write_text("types: {a: [}\n")
    broken = situ("fmt", "types/events.yaml", "types/broken.yaml", cwd=project)
    assert (broken.code, broken.out) == (1, "")
    assert broken.err.startswith("types/broken.yaml:1:")
    gone = situ("fmt", "types/events.yaml", "types/gone.yaml", cwd=project)
    assert (gone.code, gone.out) == (2, "")
    assert untidy.read_text() == UNTIDY
    assert situ("fmt", project / "types" / "events.yaml", "--project", situ.example).code == 2


# ── diff ──────────────────────────────────────────────────────────────────────────────────────────


def test_diff_shows_what_changed_by_kind(situ: Situ, project: Path) -> None:
    snapshot = project.parent / "before.json"
    assert situ("check", "--snapshot", snapshot, cwd=project).code == 0
    same = situ("diff", "--against", snapshot, cwd=project)
    assert (same.code, same.out) == (0, "Nothing differs.\n")
    types = project / "types" / "events.yaml"
    types.write_text(
        types.read_text().replace("temperature: double °C", "temperature: double K, note: optional string")
    )
    (project / "types" / "more.yaml").write_text(
        "# written in another way, and something new\nevents: {Opened: {door: string}}\n"
    )
    clients = project / "clients" / "clients.yaml"
    clients.write_text(clients.read_text().replace("sensor-1", "sensor-2"))
    ran = situ("diff", "--against", snapshot, cwd=project)
    assert (ran.code, ran.err) == (1, "")
    assert ran.out == (
        "events\n"
        "  + Opened  {door: string}\n"
        "  ~ Reading\n"
        "      ~ temperature: double degC → double K\n"
        "      + note: optional string\n"
        "clients\n"
        "  - sensor-1\n"
        "  + sensor-2\n"
        "advertisements\n"
        "  - sensor-1/readings  type: Reading\n"
        "  + sensor-2/readings  type: Reading\n"
        "\n"
        "3 added, 2 removed, 1 changed\n"
    )
    assert situ("diff", "--quiet", "--against", snapshot, cwd=project).out == ran.out.partition("\n\n")[0] + "\n"


def test_diff_between_folders_and_against_nothing(situ: Situ, project: Path) -> None:
    ran = situ("diff", "--json", "--against", situ.example, "--project", project)
    assert ran.code == 1
    assert {"kind": "client", "name": "desk", "what": "removed"}.items() <= next(
        change for change in ran.data["changes"] if (change["kind"], change["name"]) == ("client", "desk")
    ).items()
    assert ran.data["digests"]["before"] != ran.data["digests"]["after"]
    new = situ("diff", "--json", "--project", project)
    assert new.code == 1
    assert {change["what"] for change in new.data["changes"] if change["kind"] != "setting"} == {"added"}
    assert new.data["digests"]["before"] is None


def test_diff_against_what_is_no_project_and_no_snapshot(situ: Situ, project: Path, broken_project: Path) -> None:
    empty = project.parent / "empty"
    empty.mkdir()
    picture = project.parent / "picture.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n")
    other = project.parent / "other.json"
    other.write_text('{"situ": "registry"}')
    expected = {
        empty: (2, "P101"),
        project.parent / "gone.json": (2, "P123"),
        picture: (3, "P110"),
        other: (3, "D101"),
        broken_project: (3, "INT105"),
    }
    for path, (code, problem) in expected.items():
        ran = situ("diff", "--against", path, cwd=project)
        assert (ran.code, ran.out) == (code, ""), path
        assert f"error {problem}: " in ran.err
