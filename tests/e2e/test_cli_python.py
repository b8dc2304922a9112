"""Functions of Python on the command line: found by a check, marked by ``explain``, run by ``situ transform``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import Situ

FILES = {
    "situ.yaml": "name: plant\n",
    "types/all.yaml": "events: {Level: {tank: string, depth: double m, inside: double degC}}\n",
    "contexts/us.yaml": """\
context: us
events: {Gauge: {tank: string, depth: double yd, inside: double degF}}
maps: [{out: Level -> Gauge}]
""",
    "functions/depths.py": """\
import pyarrow.compute as pc

from situ import conv_function


@conv_function("m", "yd")
def yards(metres):
    if pc.any(pc.less(metres, 0.0)).as_py():
        raise ValueError("below the ground")
    return pc.multiply(metres, 2.0)
""",
    "clients/all.yaml": """\
clients:
  desk: {context: us, subscriptions: {deep: {types: [Gauge], where: depth > 5 yd AND tank = 'a'}}}
""",
}
LEVEL = {"tank": "a", "depth": 3.5, "inside": 20}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("plant")
    for name, text in FILES.items():
        (made / name).parent.mkdir(exist_ok=True)
        (made / name).write_text(text)
    return made


def test_a_check_counts_the_file_and_observes_what_waits_for_python(situ: Situ, folder: Path) -> None:
    ran = situ("check", "-v", cwd=folder)
    assert ran.code == 0
    assert "observation INT604: `desk/deep` is decided for events of type `Level` after routing" in ran.out
    assert "its filter reads what `yards` gives" in ran.out


def test_a_check_does_not_load_arrow(folder: Path) -> None:
    """Nothing is called, and Arrow takes as long to load as all the rest."""
    script = (
        "import sys; from situ.cli.main import main; assert main(['check']) == 0; assert 'pyarrow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], cwd=folder, env=Situ.environment(), capture_output=True, check=True)


def test_explain_marks_it_and_shows_what_it_gives(situ: Situ, folder: Path) -> None:
    sample = json.dumps(LEVEL).encode()
    ran = situ("explain", "transform", "--context", "us", "--out", "-", "--type", "Level", cwd=folder, stdin=sample)
    assert ran.code == 0, ran.err
    assert "   arrow   needs Python depths.yards   lossy: no" in ran.out
    assert "functions/depths.py:7   yards" in ran.out
    assert "3.5 → 7" in ran.out


def test_explain_shows_what_of_a_filter_waits(situ: Situ, folder: Path) -> None:
    ran = situ(
        *("explain", "transform", "--context", "us", "--out", "-", "--type", "Level"),
        *("--filter", "depth > 5 yd AND tank = 'a'"),
        cwd=folder,
        stdin=json.dumps(LEVEL).encode(),
    )
    lines = {line.split()[0]: line for line in ran.out.splitlines() if line.strip()}
    assert lines["simplified"].endswith("tank = 'a'")
    assert "depth > 5" in lines["then"]
    assert lines["then"].endswith("once that is known")
    assert lines["for"].endswith("TRUE")


def test_transform_runs_it_and_says_what_fails(situ: Situ, folder: Path) -> None:
    sent = "\n".join(json.dumps({**LEVEL, "depth": depth}) for depth in (3.5, -1.0)).encode()
    ran = situ("transform", "--to", "us", "--type", "Level", cwd=folder, stdin=sent)
    assert ran.code == 1
    assert json.loads(ran.out) == {"tank": "a", "depth": 7.0, "inside": 68.0}
    assert "INT704" in ran.err
    assert "-1.0 gives ValueError, below the ground" in ran.err


def test_explain_subscription_says_what_is_asked_after_routing(situ: Situ, folder: Path) -> None:
    ran = situ("explain", "subscription", "desk/deep", cwd=folder)
    assert ran.code == 0, ran.err
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert "canonical tank = 'a'" in lines
    assert "then the whole filter, which reads what `yards` gives" in lines
