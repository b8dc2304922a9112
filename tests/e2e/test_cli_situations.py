"""A project with a policy, run by the command: how it is, what it came to, and what others would have detected."""

from __future__ import annotations

import json
import time
from pathlib import Path

from tests.e2e.conftest import PATIENCE, Situ
from tests.e2e.runs import Run, running
from tests.integration.edge.test_detection import QUICK, SITU
from tests.project_files import write

NAME = "unaccompanied-guest"


def until_closed(run: Run) -> None:
    deadline = time.monotonic() + PATIENCE
    while run.figures[-1]["situations"]["opened"] < 1 or run.figures[-1]["situations"]["open"]:
        assert time.monotonic() < deadline, run.figures[-1]
        time.sleep(0.1)


def test_what_policies_do_is_seen_and_others_are_tried_on_the_log(situ: Situ, tmp_path: Path) -> None:
    project = tmp_path / "guarded"
    write(project, {**QUICK, "situ.yaml": f"name: guarded\nengine: edge\n{SITU}"})
    other = tmp_path / "anybody.dpl"
    other.write_text(QUICK[f"policies/{NAME}.dpl"].replace(NAME, "anybody").replace(" (status = 'guest')", ""))
    sightings = [{"who": who, "at": {"x": x, "y": 5}} for who, x in (("g1", 5), ("e1", 30), ("x9", 30))]
    with running(project) as run:
        lines = "".join(f"{json.dumps(each)}\n" for each in sightings).encode()
        published = situ("publish", "Sighting", "--client", "reader", "--file", "-", cwd=project, stdin=lines)
        assert published.code == 0, published.err
        until_closed(run)
        status = situ("status", "--json", cwd=project).data["engines"]["edge"]["situations"]
        shown = situ("status", cwd=project).out
        replayed = situ("replay", "--policy", NAME, "--from", "1 h ago", "--json", cwd=project)
        tried = situ("replay", "--policy", other, "-v", cwd=project)
        before = situ("replay", "--policy", NAME, "--to", "1 h ago", cwd=project)
        wrong = situ("replay", "--policy", NAME, "--out", "x", cwd=project)
        assert run.stop() == 0
    policy, push = status["policies"][NAME], status["push"]["seen"]
    assert (policy["state"], policy["opened"], policy["detections"]) == ("running", 1, 1)
    assert (push["events"], push["unknown"], push["sample"]) == (3, 1, "person x9")
    assert f"{NAME}   running" in shown
    assert [each["bindings"] for each in replayed.data["situations"]] == [{"A": "g1", "R": "lab"}]
    assert (replayed.code, tried.code) == (0, 0)
    assert "because of " in tried.out
    assert tried.out.count("anybody  A = g1, R = lab") == 1
    blind = "unaccompanied-guest had nothing to look at: in this time the log has no event of its push source seen.\n"
    assert (before.code, before.out) == (1, blind)
    assert wrong.code == 2


def test_where_a_policy_starts_is_said_when_it_is_added(situ: Situ, tmp_path: Path) -> None:
    project = tmp_path / "guarded"
    without = {name: text for name, text in QUICK.items() if NAME not in name}
    write(project, {**without, "situ.yaml": f"name: guarded\nengine: edge\n{SITU}"})
    file = tmp_path / "anybody.dpl"
    file.write_text(QUICK[f"policies/{NAME}.dpl"].replace(NAME, "anybody"))
    assert situ("apply", cwd=project).code == 0
    added = situ("add", "policy", "anybody", "--file", file, "--from", "2026-11-01T08:00:00Z", cwd=project)
    assert (added.code, "anybody" in added.out) == (0, True), added.err
    got = situ("get", "policy", "anybody", cwd=project)
    assert "since 2026-11-01T08:00:00Z" in got.out + got.err
    (project / "policies" / f"{NAME}.dpl").parent.mkdir(exist_ok=True)
    (project / "policies" / f"{NAME}.dpl").write_text(QUICK[f"policies/{NAME}.dpl"])
    assert situ("apply", "--from", "begin", "--act", cwd=project).code == 0
    started = situ("get", "start", NAME, "--json", cwd=project).data
    assert started["body"] == {"at": "1970-01-01T00:00:00Z", "acts": True}
    for wrong in (
        ("alter", "policy", "anybody", "--file", file, "--from", "1 h ago"),
        ("add", "client", "x", "--from", "1 h ago"),
        ("apply", "--act"),
    ):
        refused = situ(*wrong, cwd=project)
        assert (refused.code, "--from" in refused.err or "--act" in refused.err) == (2, True)
