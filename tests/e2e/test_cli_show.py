"""``make run``: the show of what Situ does, each step with the exit code it should have."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.e2e.conftest import Situ

SHOW = Path(__file__).parents[2] / "scripts" / "show.sh"


def test_the_show_runs_to_its_end_from_any_folder(tmp_path: Path) -> None:
    ran = subprocess.run(
        [SHOW], cwd=tmp_path, env=Situ.environment(), capture_output=True, text=True, timeout=300, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "\n$ situ check\n6 files, 14 types" in ran.stdout
    assert "because X104: " in ran.stdout
    assert "smart-building runs with the spark engine." in ran.stdout
    accepted = re.search(
        r"^([0-9,]+) events accepted, ([0-9,]+) delivered, ([0-9,]+) dead letters · ", ran.stdout, re.MULTILINE
    )
    assert accepted is not None
    taken, delivered, dead = (int(number.replace(",", "")) for number in accepted.groups())
    assert taken > 1_000
    assert delivered > 50
    assert dead > 0
    assert " is in the lobby\n" in ran.stdout
    assert re.search(r"^(camera|reader|tracker|doors|climate)[^ ]*\.decode ", ran.stdout, re.MULTILINE)
    # The log once more gives what was delivered.
    live, replayed = re.findall(r"\bdesk/arrivals +([0-9,]+)\n", ran.stdout)
    assert live == replayed
    assert not list(tmp_path.iterdir())
