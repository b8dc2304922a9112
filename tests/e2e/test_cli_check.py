"""``situ check``: every problem with its place, one line that sums up, an exit code that scripts can use."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.e2e.conftest import Situ

SUMMARY = (
    r"15 files, 11 types, 4 functions, 6 sources, 3 concepts, 1 policy, 5 contexts, 27 clients"
    r" · 0 errors, 0 warnings, \d+ observations \(-v shows them\) · \d+\.\d s\n"
)


def test_a_project_in_order_gives_one_line_from_any_folder_inside(situ: Situ) -> None:
    ran = situ("check", cwd=situ.example / "clients")
    assert (ran.code, ran.err) == (0, "")
    assert re.fullmatch(SUMMARY, ran.out)


def test_quiet_says_nothing_where_nothing_is_wrong(situ: Situ) -> None:
    ran = situ("check", "--quiet", "--project", situ.example)
    assert (ran.code, ran.out, ran.err) == (0, "", "")


def test_json_has_problems_summary_and_digest(situ: Situ, broken_project: Path) -> None:
    ran = situ("check", "--json", "--project", situ.example)
    assert (ran.code, ran.err) == (0, "")
    assert ran.data.keys() == {"project", "problems", "summary", "digest"}
    assert {each["severity"] for each in ran.data["problems"]} == {"observation"}
    assert re.fullmatch("[0-9a-f]{64}", ran.data["digest"])
    summary = ran.data["summary"]
    assert summary.pop("seconds") > 0
    assert summary == {
        "files": 15,
        "types": 11,
        "functions": 4,
        "sources": 6,
        "concepts": 3,
        "policies": 1,
        "contexts": 5,
        "clients": 27,
        "errors": 0,
        "warnings": 0,
        "observations": len(ran.data["problems"]),
    }
    broken = situ("check", "--json", "--project", broken_project)
    assert broken.code == 1
    assert broken.data["digest"] is None
    (problem,) = broken.data["problems"]
    assert (problem["code"], problem["file"], problem["line"]) == ("INT105", "types/events.yaml", 4)


def test_problems_stand_with_their_line_caret_and_hint(situ: Situ, broken_project: Path) -> None:
    ran = situ("check", cwd=broken_project)
    assert (ran.code, ran.err) == (1, "")
    problem, summary = ran.out.split("\n\n")
    assert problem == (
        "types/events.yaml:4:28: error INT105: There is no unit `cmm`.\n"
        "  |   Reading: {length: double cmm, at: timestamp}\n"
        "  |                            ^^^\n"
        "  hint: Did you mean `mm` or `cm`?"
    )
    assert re.fullmatch(r"2 files · 1 error, 0 warnings · \d+\.\d s\n", summary)


def test_places_can_be_opened_from_where_the_command_was_given(situ: Situ, broken_project: Path) -> None:
    ran = situ("check", "--quiet", "--project", broken_project.name, cwd=broken_project.parent)
    assert ran.out.startswith("broken/types/events.yaml:4:28: error INT105: ")
    assert "error," not in ran.out, "no summary"


def test_observations_are_counted_and_shown_if_asked_for(situ: Situ, project: Path) -> None:
    (project / "docker-compose.yaml").write_text("services: {}\n")
    ran = situ("check", cwd=project)
    assert ran.code == 0
    assert "0 errors, 0 warnings, 1 observation (-v shows them)" in ran.out
    assert "P203" not in ran.out
    verbose = situ("check", "-v", cwd=project)
    assert verbose.code == 0
    assert verbose.out.startswith("docker-compose.yaml:1:1: observation P203: ")
    assert "1 observation · " in verbose.out


def test_a_snapshot_is_written_only_of_what_is_right(situ: Situ, project: Path, broken_project: Path) -> None:
    snapshot = project.parent / "snapshots" / "one.json"
    assert situ("check", "--snapshot", snapshot, cwd=project).code == 0
    assert snapshot.exists()
    other = project.parent / "other.json"
    assert situ("check", "--snapshot", other, cwd=broken_project).code == 1
    assert not other.exists()


def test_no_project_is_wrong_usage(situ: Situ, tmp_path: Path) -> None:
    ran = situ("check", cwd=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error P101: There is no project at ")
    assert "`situ init`" in ran.err


def test_a_project_that_is_not_there_is_wrong_usage(situ: Situ, project: Path) -> None:
    """Even inside of a project: its neighbour was meant."""
    ran = situ("check", "--project", "neighbour", cwd=project)
    assert (ran.code, ran.out) == (2, "")
    assert "neighbour:1:1: error P123: " in ran.err
    assert situ("check", "--project", "neighbour", "--json", cwd=project).data["problems"][0]["code"] == "P123"


def test_files_that_cannot_be_read_are_problems_like_others(situ: Situ, project: Path) -> None:
    (project / "types" / "folder.yaml").mkdir()
    (project / "types" / "gone.yaml").symlink_to("nowhere.yaml")
    (project / "types" / "picture.yaml").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
    (project / "types" / "latin.yaml").write_bytes("# für\n".encode("latin-1"))
    ran = situ("check", "--json", cwd=project)
    assert ran.code == 1
    found = {(problem["file"], problem["code"]) for problem in ran.data["problems"] if problem["severity"] == "error"}
    assert found >= {("types/gone.yaml", "P123"), ("types/picture.yaml", "P110"), ("types/latin.yaml", "P110")}


@pytest.mark.parametrize("command", [("explain", "types"), ("types", "export"), ("diff",)], ids=" ".join)
def test_what_needs_a_project_in_order_is_refused_with_its_errors(
    situ: Situ, broken_project: Path, command: tuple[str, ...]
) -> None:
    ran = situ(*command, cwd=broken_project)
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith("types/events.yaml:4:28: error INT105: ")


def test_refusals_are_json_too(situ: Situ, broken_project: Path) -> None:
    ran = situ("explain", "types", "--json", cwd=broken_project)
    assert (ran.code, ran.err) == (3, "")
    assert [problem["code"] for problem in ran.data["problems"]] == ["INT105"]
