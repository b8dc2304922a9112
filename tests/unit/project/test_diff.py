"""Comparing projects with projects and with snapshots of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from situ.cli.render.registry import show_difference
from situ.lang.problems import SituError
from situ.model import DeploymentChange
from situ.project.check import check_folder
from situ.project.create import example_folder
from situ.project.snapshot import read_snapshot, write_snapshot
from tests.project_files import MINIMAL, diff_folders, read_deployment, write

TYPES = "events: {A: {x: double m}}\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write(tmp_path / "project", {**MINIMAL, "types/a.yaml": TYPES})


@pytest.fixture
def snapshot(project: Path, tmp_path: Path) -> Path:
    deployment = check_folder(project, {}).deployment
    assert deployment is not None
    write_snapshot(deployment, tmp_path / "kept" / "before.json")
    return tmp_path / "kept" / "before.json"


def test_a_snapshot_reads_back(snapshot: Path, project: Path) -> None:
    assert read_snapshot(snapshot) == check_folder(project, {}).deployment
    assert [path.name for path in snapshot.parent.iterdir()] == ["before.json"]


def test_the_example_reads_back(tmp_path: Path) -> None:
    deployment = check_folder(example_folder(), {}).deployment
    assert deployment is not None
    write_snapshot(deployment, tmp_path / "s.json")
    assert read_snapshot(tmp_path / "s.json") == deployment


def test_a_project_against_its_snapshot(snapshot: Path, project: Path) -> None:
    assert diff_folders(snapshot, project, {}) == ()
    write(project, {"types/a.yaml": TYPES.replace("double m", "double km")})
    (change,) = diff_folders(snapshot, project, {})
    assert (change.kind, change.name, change.what) == ("event", "A", "changed")
    (back,) = diff_folders(project, snapshot, {})
    assert (back.before, back.after) == (change.after, change.before)


def test_two_projects(project: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "other", {"situ.yaml": "name: other"})
    assert [str(change) for change in diff_folders(project, other, {})] == ["setting name changed", "event A removed"]


def test_a_project_with_errors_cannot_be_compared(project: Path, snapshot: Path) -> None:
    write(project, {"types/a.yaml": "events: {A: {x: dobule, y: strnig}}\n"})
    with pytest.raises(SituError) as raised:
        diff_folders(snapshot, project, {})
    assert [problem.code.code for problem in raised.value.problems] == ["INT101", "INT101"]


def test_secrets_are_not_in_a_snapshot(tmp_path: Path) -> None:
    folder = write(tmp_path / "p", {"situ.yaml": "name: p\nregistry: postgresql+psycopg://u:${PW}@h/d\n"})
    first = read_deployment(folder, {"PW": "hunter2"})
    write_snapshot(first, tmp_path / "s.json")
    assert "hunter2" not in (tmp_path / "s.json").read_text()
    assert diff_folders(tmp_path / "s.json", folder, {"PW": "another"}) == ()


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("", "P112"),
        ("{", "P112"),
        ("[]", "D101"),
        ("{}", "D101"),
        ('{"situ": "deployment", "format": 2}', "D101"),
        ('{"situ": "deployment", "format": 1}', "D101"),
        ('{"situ": "deployment", "format": 1, "deployment": {"version": 1}}', "D101"),
    ],
)
def test_a_file_that_is_no_snapshot(tmp_path: Path, content: str, code: str) -> None:
    file = tmp_path / "s.json"
    file.write_text(content)
    with pytest.raises(SituError) as raised:
        read_snapshot(file)
    assert raised.value.code == code
    assert str(file) in str(raised.value)


def test_a_snapshot_that_was_changed_by_hand(snapshot: Path) -> None:
    content = json.loads(snapshot.read_text())
    content["deployment"]["settings"]["batch"]["events"] = 501
    snapshot.write_text(json.dumps(content))
    with pytest.raises(SituError) as raised:
        read_snapshot(snapshot)
    assert raised.value.code == "D102"


def test_what_is_not_there(tmp_path: Path, project: Path) -> None:
    with pytest.raises(SituError) as raised:
        diff_folders(tmp_path / "gone.json", project, {})
    assert raised.value.code == "P123"
    assert "--snapshot" in raised.value.hint


def test_of_a_policy_the_lines_that_changed_are_shown() -> None:
    before = "policy alone\nwindow 1 s\nconcepts\n  person A\n"
    change = DeploymentChange(
        kind="policy", name="alone", what="changed", before=before, after=before.replace("1 s", "2 s"), details=()
    )
    shown = [each.plain for each in show_difference([change], summary=False)]
    assert shown == ["policies", "  ~ alone", "      - window 1 s", "      + window 2 s"]
