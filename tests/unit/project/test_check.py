"""Checking a whole folder: all problems at once, none twice, and a digest that holds everywhere."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from situ.lang.problems import Severity
from situ.model import Deployment
from situ.project.check import CheckedProject, check_folder
from situ.project.create import example_folder
from tests.project_files import MINIMAL, write
from tests.volume import cases


def check(
    tmp_path: Path, files: Mapping[str, str | bytes], environment: Mapping[str, str] | None = None
) -> CheckedProject:
    return check_folder(write(tmp_path, files), environment or {})


def found(checked: CheckedProject) -> list[str]:
    result = []
    for problem in checked.problems:
        cause = f" {problem.cause.code.code}" if problem.cause else ""
        result.append(f"{problem.location or '-'} {problem.code.code}{cause}")
    return result


def test_the_example_is_clean() -> None:
    checked = check_folder(example_folder(), {})
    assert [str(problem) for problem in checked.problems if problem.severity is not Severity.OBSERVATION] == []
    assert checked.deployment is not None
    assert checked.deployment.settings.name == "smart-building"
    assert len(checked.files) == 15
    assert "security/restricted" in checked.deployment.subscriptions
    assert Deployment.from_json(checked.deployment.as_json()) == checked.deployment


def test_a_name_is_enough(tmp_path: Path) -> None:
    checked = check(tmp_path, MINIMAL)
    assert checked.problems == ()
    assert checked.deployment is not None


def test_there_is_a_deployment_exactly_without_errors(tmp_path: Path) -> None:
    warned = check(tmp_path, {**MINIMAL, "typs/a.yaml": "", "docker-compose.yaml": ""})
    assert {problem.severity for problem in warned.problems} == {Severity.WARNING, Severity.OBSERVATION}
    assert warned.deployment is not None
    assert warned.errors == ()
    wrong = check(tmp_path, {"situ.yaml": "name: [x]"})
    assert wrong.deployment is None
    assert len(wrong.errors) == 1


def test_problems_of_all_files_come_in_the_order_of_places(tmp_path: Path) -> None:
    checked = check(
        tmp_path,
        {
            "situ.yaml": "name: x\nengine: y\nzone: Z\n",
            "types/b.yaml": "types: {A: {x: foo}}",
            "types/a.yaml": "types: {A: {x: int}}\n\n\nother: 1\n",
            "clients/a.yaml": "clients: {a: {advertisements: {x: {type: Gone}}}}",
            "functions/a.yaml": "functions: {f: int -> bar = value}",
        },
    )
    assert found(checked) == [
        "clients/a.yaml:1:42 INT601",
        "functions/a.yaml:1:23 INT101",
        "situ.yaml:2:9 P119",
        "situ.yaml:3:7 INT110",
        "types/a.yaml:4:1 P103",
        "types/b.yaml:1:9 INT106",
    ]


def test_without_situ_yaml_the_rest_is_checked_all_the_same(tmp_path: Path) -> None:
    checked = check(tmp_path, {"types/a.yaml": "types: {A: {x: foo}}"})
    assert found(checked) == ["- P101", "types/a.yaml:1:16 INT101"]


def test_the_environment_is_an_argument(tmp_path: Path) -> None:
    files = {"situ.yaml": "name: ${NAME}\n"}
    checked = check(tmp_path, files, {"NAME": "plant"})
    assert checked.deployment is not None
    assert checked.deployment.settings.name == "plant"
    assert found(check(tmp_path, files)) == ["situ.yaml:1:7 P109"]


def test_limits_of_situ_yaml_hold_for_filters(tmp_path: Path) -> None:
    files = {
        "situ.yaml": "name: x\nlimits: {expression_nodes: 3}\n",
        "types/a.yaml": "events: {A: {x: int}}",
        "functions/a.yaml": 'functions: {f: "(x: int) -> int = x + 1 + 2"}',
        "clients/a.yaml": 'clients: {a: {subscriptions: {s: {types: [A], where: "x > 1 AND x < 5"}}}}',
    }
    assert [each.split()[1:] for each in found(check(tmp_path, files))] == [["INT602", "X108"], ["INT401", "X108"]]


# ── what follows from a fault is not reported again, and nothing is hidden ────────────────────────────

CLIENT = 'clients: {{a: {{subscriptions: {{s: {{types: [E], where: "{where}"}}}}}}}}'


@pytest.mark.parametrize(
    ("types", "where", "in_types", "in_clients"),
    [
        ("events: {E: {x: foo, y: int}}", "x > 1", "1:17 INT101", ""),
        ("events: {E: {x: foo, y: int}}", "x > 1 AND z > 2", "1:17 INT101", "1:65 INT602 X102"),
        ("events: {E: {x: double mm2}}", "x > 1 m", "1:24 INT105", ""),
        ("types: {P: {q: foo}}\nevents: {E: {p: P}}", "p.q > 1", "1:16 INT101", ""),
        ("types: {P: {q: foo}}\nevents: {E: {p: [P]}}", "exists(p, x -> x.q > 1)", "1:16 INT101", ""),
        ("types: {P: {q: foo}}\nevents: {E: {r: int}}", "q > 1", "1:16 INT101", "1:55 INT602 X102"),
        ("events: {B: {q: foo}, E(B): {}}", "q > 1", "1:17 INT101", ""),
        ("events: {situ.E: {x: int}}", "x > 1", "1:10 INT110", "1:43 INT601"),
    ],
)
def test_consequences_are_left_out(tmp_path: Path, types: str, where: str, in_types: str, in_clients: str) -> None:
    checked = check(tmp_path, {**MINIMAL, "types/a.yaml": types, "clients/a.yaml": CLIENT.format(where=where)})
    expected = [f"clients/a.yaml:{in_clients}"] if in_clients else []
    assert found(checked) == [*expected, f"types/a.yaml:{in_types}"]
    assert checked.deployment is None


def test_a_type_that_does_not_resolve_is_reported_once(tmp_path: Path) -> None:
    files = {
        **MINIMAL,
        "types/a.yaml": "events: {situ.E: {x: int}, F: {e: situ.E}}",
        "functions/a.yaml": "functions: {f: situ.E -> int = value.x}",
        "clients/a.yaml": "clients: {a: {advertisements: {s: {type: situ.E}}}}",
    }
    assert found(check(tmp_path, files)) == ["types/a.yaml:1:10 INT110", "types/a.yaml:1:35 INT101"]


def test_a_faulty_function_is_reported_once(tmp_path: Path) -> None:
    files = {
        **MINIMAL,
        "types/a.yaml": "events: {E: {x: int}}",
        "functions/a.yaml": 'functions: {f: "(x: int) -> int = y"}',
        "clients/a.yaml": CLIENT.format(where="f(x) > 1 AND g(x) > 2"),
    }
    assert found(check(tmp_path, files)) == ["clients/a.yaml:1:68 INT602 X102", "functions/a.yaml:1:35 INT401 X102"]


def test_a_type_that_is_missing_from_a_broken_file(tmp_path: Path) -> None:
    """What a file that cannot be read declares is not known: whoever uses it is told."""
    files = {**MINIMAL, "types/a.yaml": "events:\n\tE: {x: int}\n", "clients/a.yaml": CLIENT.format(where="x > 1")}
    assert found(check(tmp_path, files)) == ["clients/a.yaml:1:43 INT601", "types/a.yaml:2:1 P102"]


def declarations(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.suffix in (".yaml", ".dpl")]


# ── digest ────────────────────────────────────────────────────────────────────────────────────────


def test_the_digest_does_not_depend_on_hash_seed_or_order_of_files(tmp_path: Path) -> None:
    source = example_folder()
    program = (
        "import sys; from pathlib import Path; from situ.project.check import check_folder; "
        "checked = check_folder(Path(sys.argv[1]), {}); print(checked.deployment.digest)"
    )
    digests = set()
    for seed, backwards in (("1", True), ("424242", False)):
        copy = tmp_path / seed
        names = sorted((path.relative_to(source) for path in declarations(source)), reverse=backwards)
        for name in names:
            write(copy, {name.as_posix(): (source / name).read_bytes()})
        answer = subprocess.run(
            [sys.executable, "-c", program, str(copy)],
            env={**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": "C"},
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(answer.stdout.strip())
    expected = check_folder(source, {}).deployment
    assert expected is not None
    assert digests == {expected.digest}


def test_comments_and_blanks_do_not_change_the_digest(tmp_path: Path) -> None:
    source = example_folder()
    for name in (path.relative_to(source).as_posix() for path in declarations(source)):
        lines = (source / name).read_text().splitlines()
        text = "# new\n\n" + "".join(
            f"{line}\n" if line.endswith(("(", ",")) else f"{line}   # more\n\n" if line.strip() else "\n\n"
            for line in lines
        )  # a text that goes on in the next line has no place for comments
        write(tmp_path, {name: text.encode()})
    original, copy = check_folder(source, {}).deployment, check_folder(tmp_path, {}).deployment
    assert original is not None
    assert copy is not None
    assert copy.digest == original.digest


# ── size ──────────────────────────────────────────────────────────────────────────────────────────


@cases(125, 500)
def test_hundreds_of_types_in_hundreds_of_files(tmp_path: Path, cases: int) -> None:
    files = dict(MINIMAL)
    for number in range(cases):
        above = f"(E{number // 7})" if number else ""
        files[f"types/{number}.yaml"] = (
            f"types:\n  P{number}: {{x{number}: double m, name: string}}\n"
            f"events:\n  E{number}{above}: {{a{number}: double km/h, p{number}: P{number}}}\n"
        )
        where = f"a{number} > {number} [km/h] AND p{number}.x{number} < 5 m"
        files[f"clients/{number}.yaml"] = (
            f"clients:\n  c{number}:\n    subscriptions:\n      s: {{types: [E{number}], where: '{where}'}}\n"
        )
    write(tmp_path, files)
    start = time.process_time()
    checked = check_folder(tmp_path, {})
    seconds = time.process_time() - start
    assert checked.problems == ()
    assert len(checked.files) == 2 * cases + 1
    assert seconds < cases / 40, "a bound with room for a slow machine; half a second on a common one"


@pytest.mark.parametrize(
    ("bus", "hosts"),
    [
        ("nats://broker:4222", ["broker"]),
        ("nats://10.1.2.3", ["10.1.2.3"]),
        ("nats://user:secret@broker", ["broker"]),
        ("'nats://[fe80::1]:4222'", ["fe80::1"]),
        ("{nats: [nats://localhost, nats://one, tls://two]}", ["one"]),
        ("tls://broker:4222", []),
        ("nats://127.0.0.1:4222", []),
        ("nats://localhost", []),
        ("'nats://[::1]:4222'", []),
        ("{nats: [nats://broker], tls: {ca: ca.pem}}", []),
        ("embedded", []),
    ],
)
def test_a_bus_on_another_host_without_tls_is_warned_of(tmp_path: Path, bus: str, hosts: list[str]) -> None:
    checked = check(tmp_path, {"situ.yaml": f"name: plant\nbus: {bus}\n"})
    assert checked.deployment is not None
    warned = [each for each in checked.problems if each.code.code == "B202"]
    assert [each.values["host"] for each in warned] == hosts
    assert all(str(each.location) == "situ.yaml:2:1" for each in warned)


def test_an_archive_in_a_form_that_nothing_can_write_is_refused(tmp_path: Path) -> None:
    checked = check(tmp_path, {"situ.yaml": "name: plant\nlog: {archive: kept, archive_format: parket}\n"})
    (problem,) = checked.problems
    assert (problem.code.code, str(problem.location)) == ("N174", "situ.yaml:2:38")
    assert problem.values["nearest"] == ("parquet",)


def test_situs_own_publisher_is_no_name_for_a_client_or_a_policy(tmp_path: Path) -> None:
    files = {
        "situ.yaml": "name: plant\n",
        "clients/all.yaml": "clients: {situ-workers: }\n",
        "types/all.yaml": "events: {Seen: {who: string, badge: string}}\n",
        "ontology.yaml": "concepts: {person: {id: string, badge: string}}\n",
        "sources/all.yaml": "push: {seen: {event: Seen, concept: person, id: who, attribute: badge, value: badge}}\n",
        "policies/own.dpl": """policy situ-workers
            window 1 s
            concepts
              person P
            conditions
              P.badge = 'x'
            actions
              log 'x'
        """,
    }
    found = {(each.code.code, str(each.location)) for each in check(tmp_path, files).problems if each.is_error}
    assert found >= {("INT110", "clients/all.yaml:1:11"), ("INT110", "policies/own.dpl:1:1")}


def test_sources_outside_of_the_project_are_warned_of_unless_allowed(tmp_path: Path) -> None:
    project, shared = tmp_path / "plant", tmp_path / "shared"
    shared.mkdir()
    (shared / "rows.csv").write_text("nr\n1\n")
    project.mkdir()
    (project / "link.csv").symlink_to(shared / "rows.csv")
    files = {
        "situ.yaml": "name: plant\n",
        "sources/all.yaml": f"""
            pull:
              inside: {{csv: rows.csv, columns: {{nr: string}}}}
              above: {{csv: ../shared/rows.csv, columns: {{nr: string}}}}
              far: {{csv: {shared}/rows.csv, columns: {{nr: string}}}}
              linked: {{csv: link.csv, columns: {{nr: string}}}}
              named: {{csv: "${{WHERE}}/rows.csv", columns: {{nr: string}}}}
              database: {{url: "sqlite:///../shared/rows.db", sql: rows, columns: {{nr: string}}}}
              server: {{url: "postgresql://host/base", sql: rows, columns: {{nr: string}}}}
            """,
    }
    env = {"WHERE": str(shared)}

    def warned(situ: str) -> dict[str, str]:
        checked = check(project, {**files, "situ.yaml": situ}, env)
        assert checked.deployment is not None, checked.problems
        return {each.values["source"]: str(each.location) for each in checked.problems if each.code.code == "S205"}

    found = warned("name: plant\n")
    assert set(found) == {"above", "far", "linked", "named", "database"}
    assert all(place.startswith("sources/all.yaml:") for place in found.values())
    assert warned(f"name: plant\noutside: [{shared}]\n") == {}
    assert warned("name: plant\noutside: [../shared]\n") == {}
    assert set(warned("name: plant\noutside: [../other]\n")) == set(found)
