"""Finding and reading the project folder, whatever lies in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from situ.lang.documents import to_data
from situ.lang.problems import SituError
from situ.project import folder as folder_module
from situ.project.folder import Folder, find_project, kind_of, list_files, read_folder, remark
from tests.project_files import MINIMAL, write


def said(folder: Folder) -> list[str]:
    return [f"{problem.location or '-'} {problem.code.code}" for problem in folder.problems]


# ── finding ───────────────────────────────────────────────────────────────────────────────────────


def test_the_nearest_folder_upwards_is_the_project(tmp_path: Path) -> None:
    write(tmp_path, {"situ.yaml": "name: outer", "inner/situ.yaml": "name: inner", "inner/types/a.yaml": ""})
    assert find_project(tmp_path / "inner" / "types") == tmp_path / "inner"
    assert find_project(tmp_path / "inner") == tmp_path / "inner"
    assert find_project(tmp_path) == tmp_path


def test_without_a_project_there_is_a_hint(tmp_path: Path) -> None:
    (tmp_path / "situ.yaml").mkdir()
    with pytest.raises(SituError) as raised:
        find_project(tmp_path / "missing")
    assert raised.value.code == "P101"
    assert "situ init" in raised.value.hint


# ── reading ───────────────────────────────────────────────────────────────────────────────────────


def test_files_are_read_by_kind_in_order_of_their_names(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            **MINIMAL,
            "types/b.yaml": "b: 1",
            "types/a.yaml": "a: 1",
            "clients/c.yaml": "c: 1",
            "functions/f.yaml": "f: 1",
            "README.md": "hello",
            "data/people.csv": "id,name",
            ".git/config.yaml": "hidden",
            ".situ/schemas/x.yaml": "hidden",
        },
    )
    read = read_folder(tmp_path, {})
    assert read.files == ("situ.yaml", "types/a.yaml", "types/b.yaml", "functions/f.yaml", "clients/c.yaml")
    assert [document.file for document in read.of("types")] == ["types/a.yaml", "types/b.yaml"]
    assert said(read) == []


def test_the_environment_is_put_in(tmp_path: Path) -> None:
    write(tmp_path, {"situ.yaml": 'a: ${A}\nb: ${B}\nc: $${A}\nd: "\\u0024{A}"\n'})
    (document,) = read_folder(tmp_path, {"A": "7"}).of("situ")
    assert document.root is not None
    assert to_data(document.root) == {"a": 7, "b": "${B}", "c": "${A}", "d": "7"}
    assert [str(problem.code.code) for problem in document.problems] == ["P109"]


def test_progress_is_told_file_by_file(tmp_path: Path) -> None:
    write(tmp_path, {**MINIMAL, "types/a.yaml": "", "types/b.yaml": ""})
    told: list[tuple[str, int, int]] = []
    read_folder(tmp_path, {}, lambda *step: told.append(step))
    assert told == [("situ.yaml", 1, 3), ("types/a.yaml", 2, 3), ("types/b.yaml", 3, 3)]


def test_a_folder_that_is_none_gives_a_problem(tmp_path: Path) -> None:
    write(tmp_path, {"types/a.yaml": "types: {}"})
    assert said(read_folder(tmp_path, {})) == ["- P101"]
    assert said(read_folder(tmp_path / "missing", {})) == ["- P101"]
    assert said(read_folder(tmp_path / "types" / "a.yaml", {})) == ["- P101"]


def test_what_is_no_text_is_a_problem_of_the_document(tmp_path: Path) -> None:
    write(
        tmp_path,
        {**MINIMAL, "types/a.yaml": b"\xff\xfe", "types/b.yaml": b"a: 1\x00", "types/c.yaml": b" " * 5_000_000},
    )
    read = read_folder(tmp_path, {})
    assert said(read) == []
    assert [document.problems[0].code.code for document in read.of("types")] == ["P110", "P114", "P108"]


# ── hostile folders ───────────────────────────────────────────────────────────────────────────────


def test_links_inside_are_followed_and_links_that_leave_are_refused(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside", {"secret.yaml": "password: 1"})
    project = write(tmp_path / "project", {**MINIMAL, "types/a.yaml": "a: 1"})
    (project / "types" / "b.yaml").symlink_to("a.yaml")
    (project / "types" / "c.yaml").symlink_to("../../outside/secret.yaml")
    (project / "types" / "d.yaml").symlink_to(outside / "secret.yaml")
    (project / "types" / "e.yaml").symlink_to("/etc/passwd")
    (project / "clients").symlink_to(outside, target_is_directory=True)
    (project / "functions").symlink_to("types", target_is_directory=True)
    read = read_folder(project, {})
    assert [document.file for document in read.of("types")] == ["types/a.yaml", "types/b.yaml"]
    assert [document.file for document in read.of("functions")] == ["functions/a.yaml", "functions/b.yaml"]
    assert read.of("clients") == ()
    assert sorted(said(read)) == [
        "clients:1:1 P124",
        "functions/c.yaml:1:1 P124",
        "functions/d.yaml:1:1 P124",
        "functions/e.yaml:1:1 P124",
        "types/c.yaml:1:1 P124",
        "types/d.yaml:1:1 P124",
        "types/e.yaml:1:1 P124",
    ]


def test_a_project_behind_a_link_is_a_project(tmp_path: Path) -> None:
    write(tmp_path / "real", {**MINIMAL, "types/a.yaml": "a: 1"})
    (tmp_path / "link").symlink_to("real", target_is_directory=True)
    assert said(read_folder(tmp_path / "link", {})) == []


def test_links_to_nothing_and_in_circles(tmp_path: Path) -> None:
    write(tmp_path, {**MINIMAL, "types/a.yaml": ""})
    (tmp_path / "types" / "gone.yaml").symlink_to("nowhere.yaml")
    (tmp_path / "types" / "loop.yaml").symlink_to("loop.yaml")
    (tmp_path / "types" / "up").symlink_to("..", target_is_directory=True)
    assert said(read_folder(tmp_path, {})) == ["types/gone.yaml:1:1 P123", "types/loop.yaml:1:1 P123"]


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    write(tmp_path, {**MINIMAL, "types/a.yaml": ""})
    os.mkfifo(tmp_path / "types" / "pipe.yaml")
    assert said(read_folder(tmp_path, {})) == ["types/pipe.yaml:1:1 P123"]


def test_a_folder_named_like_a_file_is_looked_into_like_any_other(tmp_path: Path) -> None:
    write(tmp_path, {**MINIMAL, "types/a.yaml/b.yaml": ""})
    assert said(read_folder(tmp_path, {})) == ["types/a.yaml/b.yaml:1:1 P201"]


def test_files_are_bounded_in_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {**MINIMAL, **{f"types/{number}.yaml": "" for number in range(5)}})
    monkeypatch.setattr(folder_module, "_MOST_FILES", 3)
    read = read_folder(tmp_path, {})
    assert said(read) == ["- P125"]
    assert len(read.files) == 3
    monkeypatch.setattr(folder_module, "_MOST_LOOKED_AT", 2)
    assert "- P125" in said(read_folder(tmp_path, {}))


def test_folders_are_bounded_in_depth(tmp_path: Path) -> None:
    write(tmp_path, MINIMAL)
    deep = tmp_path
    for _ in range(50):
        deep = deep / "d"
        deep.mkdir()
    (deep / "a.yaml").touch()
    assert list_files(tmp_path) == ("situ.yaml",)


# ── what stands where ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("situ.yaml", "situ"),
        ("types/a.yaml", "types"),
        ("functions/a.b.yaml", "functions"),
        ("clients/x.yaml", "clients"),
        ("types/a.yml", None),
        ("types/deep/a.yaml", None),
        ("types/situ.yaml/x", None),
        ("a.yaml", None),
        ("clients/situ.yaml", "clients"),
    ],
)
def test_kinds_of_files(file: str, kind: str | None) -> None:
    assert kind_of(file) == kind


@pytest.mark.parametrize(
    ("file", "code", "hint"),
    [
        ("typs/foo.yaml", "P201", "Did you mean `types/foo.yaml`?"),
        ("client/desk.yaml", "P201", "Did you mean `clients/desk.yaml`?"),
        ("Functions/f.yaml", "P201", "Did you mean `functions/f.yaml`?"),
        ("contxts/us.yaml", "P201", "Did you mean `contexts/us.yaml`?"),
        ("types/foo.yml", "P201", "Did you mean `types/foo.yaml`?"),
        ("types/deep/foo.yaml", "P201", "Move it into `types/` itself."),
        ("situ.yml", "P201", "Did you mean `situ.yaml`?"),
        ("stiu.yaml", "P201", "Did you mean `situ.yaml`?"),
        ("types.yaml", "P201", "Did you mean `types/types.yaml`?"),
        ("scope.yaml", "P201", "Did you mean `scopes.yaml`?"),
        ("ontolgy.yaml", "P201", "Did you mean `ontology.yaml`?"),
        ("action.yaml", "P201", "Did you mean `actions.yaml`?"),
        ("policies/us.yaml", "P201", "Policies end with `.dpl`"),
        ("contexts/deep/us.xml", "P201", "Move it into `contexts/` itself."),
        ("policies/deep/alone.dpl", "P201", "Move it into `policies/` itself."),
        ("polices/alone.dpl", "P201", "Move it into `policies/` itself."),
        ("quality/deep/q.yaml", "P201", "Move it into `quality/` itself."),
        ("functions/deep/convert.py", "P201", "Move it into `functions/` itself."),
        ("docker-compose.yaml", "P203", "Declarations stand in"),
        ("deploy/values.yml", "P203", "Declarations stand in"),
    ],
)
def test_a_file_that_is_not_read_is_explained(file: str, code: str, hint: str) -> None:
    problem = remark(file)
    assert problem is not None
    assert not problem.is_error
    assert problem.code.code == code
    assert problem.hint.startswith(hint)


@pytest.mark.parametrize(
    "file",
    [
        "README.md",
        "data/people.csv",
        "types/notes.md",
        "types/a.yaml~",
        "LICENSE",
        "x/y.json",
        "policies/alone.test.yaml",
    ],
)
def test_other_files_are_nobodys_business(file: str) -> None:
    assert remark(file) is None
