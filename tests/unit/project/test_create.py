"""New projects: they check without a word, and nothing that was there is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from situ.lang.problems import SituError
from situ.project.check import check_folder
from situ.project.create import create_project, example_folder
from situ.project.format import format_folder


def test_a_new_project_is_in_order(tmp_path: Path) -> None:
    target = tmp_path / "my plant"
    written = create_project(target)
    assert all(file.is_file() for file in written)
    assert {file.relative_to(target).parts[0] for file in written} == {
        ".gitignore", ".situ", "clients", "functions", "situ.yaml", "types",
    }  # fmt: skip
    checked = check_folder(target, {})
    assert checked.problems == ()
    assert checked.deployment is not None
    assert checked.deployment.settings.name == "my-plant"
    assert list(checked.deployment.subscriptions) == ["board/warm"]
    assert format_folder(target, write=False) == ()
    assert ".situ/" in (target / ".gitignore").read_text().splitlines()


def test_every_file_names_its_schema(tmp_path: Path) -> None:
    for file in create_project(tmp_path / "p"):
        if file.suffix == ".yaml":
            first = file.read_text().splitlines()[0]
            assert first.startswith("# yaml-language-server: $schema=")
            assert (file.parent / first.partition("=")[2]).is_file()


def test_the_example_is_copied_whole(tmp_path: Path) -> None:
    create_project(tmp_path / "p", example=True)
    source = example_folder()
    copied = {path.relative_to(tmp_path / "p") for path in (tmp_path / "p").rglob("*") if path.is_file()}
    original = {path.relative_to(source) for path in source.rglob("*") if path.is_file() and ".situ" not in path.parts}
    assert original <= copied
    one, other = check_folder(tmp_path / "p", {}), check_folder(source, {})
    assert one.errors == ()
    assert one.deployment is not None
    assert other.deployment is not None
    assert one.deployment.digest == other.deployment.digest


@pytest.mark.parametrize("name", ["plant.7", "7", "1.5", "true", "Null", "1e5", "0x1F"])
@pytest.mark.parametrize("example", [False, True])
def test_the_name_can_be_chosen(tmp_path: Path, name: str, example: bool) -> None:
    create_project(tmp_path / "p", name=name, example=example)
    deployment = check_folder(tmp_path / "p", {}).deployment
    assert deployment is not None
    assert deployment.settings.name == name


@pytest.mark.parametrize("name", ["", "a b", "-x", "x: y", "[1]", "x\nzone: y", "${HOME}", "'"])
@pytest.mark.parametrize("example", [False, True])
def test_a_name_that_cannot_be_one_makes_nothing(tmp_path: Path, name: str, example: bool) -> None:
    with pytest.raises(SituError):
        create_project(tmp_path / "p", name=name, example=example)
    assert not (tmp_path / "p").exists()


def test_a_folder_without_a_usable_name_gets_one(tmp_path: Path) -> None:
    create_project(tmp_path / "…")
    deployment = check_folder(tmp_path / "…", {}).deployment
    assert deployment is not None
    assert deployment.settings.name == "project"


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(SituError) as raised:
        create_project(tmp_path)
    assert raised.value.code == "P122"
    assert "notes.txt" in str(raised.value)
    with pytest.raises(SituError) as raised:
        create_project(tmp_path / "notes.txt", example=True)
    assert raised.value.code == "P122"
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_an_empty_repository_is_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    create_project(tmp_path)
    assert check_folder(tmp_path, {}).problems == ()
