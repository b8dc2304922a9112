"""``make run``: the show of what Situ does, each step with the exit code it should have."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.e2e.conftest import Situ

SHOW = Path(__file__).parents[2] / "scripts" / "show.sh"


def test_the_show_runs_to_its_end_from_any_folder(tmp_path: Path) -> None:
    ran = subprocess.run(
        [SHOW], cwd=tmp_path, env=Situ.environment(), capture_output=True, text=True, timeout=180, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "\n$ situ check\n6 files, 14 types" in ran.stdout
    assert "\nResult for event 000000000001 of tracker\n  TRUE\n" in ran.stdout
    assert "because X104: " in ran.stdout
    assert "\n0 added, 0 removed, 1 changed\n" in ran.stdout
    assert not list(tmp_path.iterdir())
