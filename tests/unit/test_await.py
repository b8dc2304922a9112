"""Scripts that do something beside a run wait for what happens, not for the clock, and say what never came."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(tmp_path: Path, steps: str, patience: int = 60) -> subprocess.CompletedProcess[str]:
    """The steps beside a run that touches ``ended`` when it is over."""
    program = f"""
    set -eu
    missing={tmp_path}/missing ended={tmp_path}/ended
    stop_run() {{ touch {tmp_path}/stopped; }}
    . {ROOT}/scripts/await.sh
    direct() {{
    {steps}
    touch {tmp_path}/done
    }}
    direct &
    wait $! || true
    say_missing
    """
    return subprocess.run(
        ["sh", "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        env={"PATH": "/bin:/usr/bin", "PATIENCE": str(patience)},
    )


def test_it_goes_on_when_it_has_happened(tmp_path: Path) -> None:
    happens = f"{{ sleep 0.2; touch {tmp_path}/it; }} &"
    done = run(tmp_path, f"{happens}\nawait 'it to happen' test -e {tmp_path}/it")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "done").exists()
    assert not (tmp_path / "stopped").exists()


def test_what_never_happens_is_named_and_the_run_is_stopped(tmp_path: Path) -> None:
    done = run(tmp_path, f"await 'pigs to fly' test -e {tmp_path}/pigs", patience=1)
    assert done.returncode == 1
    assert done.stderr == "This waited 1 s for pigs to fly.\n"
    assert (tmp_path / "stopped").exists()
    assert not (tmp_path / "done").exists()


def test_nobody_waits_for_a_run_that_is_over(tmp_path: Path) -> None:
    (tmp_path / "ended").touch()
    done = run(tmp_path, "await 'pigs to fly' false")
    assert done.returncode == 1
    assert done.stderr == "The run ended while this waited for pigs to fly.\n"


def test_a_condition_that_fails_in_another_way_shows_no_traceback(tmp_path: Path) -> None:
    done = run(tmp_path, "await 'an answer' sh -c 'python3 -c raise; exit 1'", patience=1)
    assert done.stderr == "This waited 1 s for an answer.\n"
