"""Somebody edits the folder while the project runs: commands about what runs answer as before, and mention it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import typer

from situ.cli.app import app
from tests.e2e.conftest import PATIENCE, Situ
from tests.e2e.runs import running
from tests.integration.edge.test_detection import QUICK, SITU
from tests.project_files import write

POLICY = "unaccompanied-guest"
MENTIONED = "The folder differs from what is in force"

ASKING: dict[str, tuple[str, ...]] = {
    "status": ("status",),
    "situations": ("situations", "--json"),
    "late": ("late",),
    "quality": ("quality",),
    "replay": ("replay",),
    "replay --policy": ("replay", "--policy", POLICY),
    "get": ("get", "subscriptions"),
    "tail": ("tail", "--type", "Sighting", "--since", "begin", "--limit", "1", "--json"),
    "subscribe": ("subscribe", "Sighting", "--since", "begin", "--limit", "1", "--json"),
    "dead-letters list": ("dead-letters", "list"),
    "dead-letters show": ("dead-letters", "show", "nobody.1.1.decode"),
    "actions list": ("actions", "list"),
    "client list": ("client", "list"),
    "client configuration": ("client", "configuration"),
    "scopes": ("scopes",),
    "scopes history": ("scopes", "history"),
    "explain subscription": ("explain", "subscription", "desk/situations"),
    "explain event": ("explain", "event", "first"),
    "explain visibility": ("explain", "visibility", "first", "--to", "desk/situations"),
    "explain quality": ("explain", "quality", "nothing"),
    "explain policy": ("explain", "policy", POLICY),
    "explain detection": ("explain", "detection", "0123"),
    "explain miss": ("explain", "miss", "--policy", POLICY, "--bind", "A=nobody", "--at", "2026-11-01T08:00:00Z"),
}
"""Questions about what runs."""
NO = {"dead-letters show", "explain quality", "explain detection"}
"""Those to which the answer is no: nothing of that name."""
SILENT = {"actions list", "client list", "client configuration", "scopes history"}
"""What is about neither the folder nor what of it is in force."""

WITHOUT_JAVA = {"JAVA_HOME": "/nowhere"}
"""What runs is the edge engine, so no question about it needs Spark, whatever the settings say."""

CHANGING: dict[str, tuple[str, ...]] = {
    "publish": ("publish", "Sighting", "--client", "reader", "--data", '{"who": "g2", "at": {"x": 30, "y": 5}}'),
    "dead-letters retry": ("dead-letters", "retry", "--all"),
    "suspend": ("suspend", "policy", POLICY),
    "resume": ("resume", "policy", POLICY),
    "add": ("add", "client", "visitor", "--file", "visitor.yaml"),
    "alter": ("alter", "client", "visitor", "--file", "visitor.yaml"),
    "remove": ("remove", "client", "visitor"),
    "client add": ("client", "add", "guest"),
    "client rotate": ("client", "rotate", "guest"),
    "client remove": ("client", "remove", "guest"),
}
"""What is done to what runs, in this order."""

OF_SCOPES = {"join", "leave", "put", "drop", "link", "carriers", "mode", "grant", "revoke", "filter"}
"""Commands `situ scopes …` that are all one command: they reach the registry like `suspend` does."""
OF_FOLDER = {
    *("init", "check", "diff", "fmt", "test", "run", "transform", "apply", "schemas", "types import", "types export"),
    *("explain types", "explain expression", "explain functions", "explain context", "explain transform"),
    *("explain code", "package spark", "simulate"),
}
"""Commands about files: what they are asked about is what somebody is editing."""
OF_STATE = {"actions show", "actions retry", "actions drop"}
"""Commands that look into `.situ` and nowhere else, as `actions list` does."""


def test_every_command_is_about_what_runs_or_about_the_folder() -> None:
    """A new command has to be sorted in here."""

    def names(command: Any, *above: str) -> Iterator[str]:
        below = getattr(command, "commands", None)
        for name, each in (below or {}).items():
            yield from names(each, *above, name)
        if not below:
            yield " ".join(above)

    found = set(names(typer.main.get_command(app)))
    of_scopes = {f"scopes {each}" for each in OF_SCOPES}
    of_run = {*ASKING, *CHANGING} - {"replay --policy", "scopes"}
    assert found == OF_FOLDER | OF_STATE | of_run | of_scopes


@pytest.fixture(scope="module")
def guarded(situ: Situ, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A project that runs, with an event and a situation."""
    project = tmp_path_factory.mktemp("guarded")
    write(project, {**QUICK, "situ.yaml": f"name: guarded\nengine: spark\n{SITU}"})
    (project / "visitor.yaml").write_text("version: 1\nclients:\n  visitor: {}\n")
    with running(project, "--engine", "edge") as run:  # another one than in the settings
        sighting = {"specversion": "1.0", "id": "first", "source": "reader", "type": "Sighting"}
        line = json.dumps({**sighting, "data": {"who": "g1", "at": {"x": 5, "y": 5}}})
        published = situ("publish", "--client", "reader", "--data", line, cwd=project)
        assert published.code == 0, published.err
        deadline = time.monotonic() + PATIENCE
        while run.figures[-1]["situations"]["opened"] < 1 or run.figures[-1]["situations"]["open"]:
            assert time.monotonic() < deadline, run.figures[-1]
            time.sleep(0.05)
        yield project
        assert run.stop() == 0


def nothing_is_right(project: Path) -> None:
    """In the middle of everything: neither settings nor types nor policies can be read, and a file is gone."""
    (project / "situ.yaml").write_text("name: guarded\nengine: {\n")
    (project / "types" / "building.yaml").write_text("version: 1\nevents:\n  Sighting: {who: [\n")
    (project / "policies" / f"{POLICY}.dpl").write_text("situation nobody\nwhen\n")
    (project / "clients" / "people.yaml").unlink()


def it_leads_elsewhere(project: Path) -> None:
    """In order, and about another run."""
    (project / "situ.yaml").write_text("name: renamed\nzone: other\nbus: nats://127.0.0.1:1\n")


@contextmanager
def edited(project: Path, edit: Callable[[Path], None]) -> Iterator[None]:
    """The folder is like this for a while."""
    files = [file for file in project.rglob("*") if file.is_file() and ".situ" not in file.parts]
    before = {file: file.read_bytes() for file in files}
    edit(project)
    try:
        yield
    finally:
        for file, content in before.items():
            file.write_bytes(content)


def test_questions_about_what_runs_have_answers(situ: Situ, guarded: Path) -> None:
    sound = situ("status", cwd=guarded)
    assert (sound.code, sound.err) == (0, "")
    with edited(guarded, nothing_is_right):
        assert situ("check", cwd=guarded).code == 1
        found = {name: situ(*words, cwd=guarded, env=WITHOUT_JAVA) for name, words in ASKING.items()}
        told = situ("status", "--json", cwd=guarded).data["edited"]
    for name, ran in found.items():
        assert ran.code == (1 if name in NO else 0), (name, ran.out, ran.err)
        assert name in SILENT or "--json" in ASKING[name] or MENTIONED in ran.err, (name, ran.err)
    assert told == ["clients/people.yaml", f"policies/{POLICY}.dpl", "situ.yaml", "types/building.yaml"]
    # They tell of what is in force, and not of nothing.
    assert [each["bindings"] for each in found["situations"].data] == [{"A": "g1", "R": "lab"}]
    assert "desk/situations" in found["get"].out
    assert "A g1 is inside R lab" in found["replay --policy"].out
    assert json.loads(found["tail"].out)["data"] == json.loads(found["subscribe"].out)["data"]


def test_what_runs_can_be_changed(situ: Situ, guarded: Path) -> None:
    with edited(guarded, nothing_is_right):
        for name, words in CHANGING.items():
            ran = situ(*words, cwd=guarded)
            assert ran.code == 0, (name, ran.out, ran.err)


def test_the_run_is_found_by_the_settings_it_was_started_with(situ: Situ, guarded: Path) -> None:
    with edited(guarded, it_leads_elsewhere):
        status = situ("status", "--json", cwd=guarded).data
        assert (status["project"], status["zone"], list(status["engines"])) == ("guarded", "main", ["edge"])
        assert situ("get", "policies", cwd=guarded).code == situ(*ASKING["subscribe"], cwd=guarded).code == 0


def test_without_a_run_only_the_settings_have_to_be_in_order(situ: Situ, tmp_path: Path) -> None:
    project = write(tmp_path / "resting", {**QUICK, "situ.yaml": "name: resting\nengine: edge\n"})
    settings = (project / "situ.yaml").read_text()
    nothing_is_right(project)
    refused = situ("status", cwd=project)
    assert (refused.code, "situ.yaml:" in refused.err) == (3, True)
    (project / "situ.yaml").write_text(settings)
    assert situ("status", cwd=project).code == 1
    assert "B108" in situ("situations", cwd=project).err
