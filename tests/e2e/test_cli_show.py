"""``make run``: the show of what Situ does, each step with the exit code it should have."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.reference.examples import agrees
from tests.e2e.conftest import Situ

ROOT = Path(__file__).parents[2]
SHOW = ROOT / "scripts" / "show.sh"


def test_the_show_runs_to_its_end_from_any_folder(tmp_path: Path) -> None:
    check_show(tmp_path, 1200)


@pytest.mark.soak
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system keeps no process to one core")
def test_the_show_runs_to_its_end_on_half_a_core(tmp_path: Path) -> None:
    """It waits for what happens and not for the clock, so on a slow machine it only takes longer."""
    everywhere = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(everywhere)})  # what is started here inherits it
    try:
        with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
            try:
                check_show(tmp_path, 3600)
            finally:
                busy.kill()
    finally:
        os.sched_setaffinity(0, everywhere)


def check_show(tmp_path: Path, patience: float) -> None:
    ran = subprocess.run(
        [SHOW], cwd=tmp_path, env=Situ.environment(), capture_output=True, text=True, timeout=patience, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.fullmatch(r"Epoch 1, version \d+\.\n", ran.stderr), "what `situ scopes` notes of a run that is up"
    assert "\n$ situ check\n15 files, 11 types" in ran.stdout
    assert "because X104: " in ran.stdout
    accepted = re.search(
        r"^([0-9,]+) events accepted, ([0-9,]+) delivered, ([0-9,]+) dead letters · ", ran.stdout, re.MULTILINE
    )
    assert accepted is not None
    taken, delivered, dead = (int(number.replace(",", "")) for number in accepted.groups())
    assert taken > 1_000
    assert delivered > 50
    assert dead > 0
    assert re.search(r"^(camera|reader|doors|climate)[^ ]*\.decode ", ran.stdout, re.MULTILINE)
    # The log once more gives what was delivered, in whosever terms.
    for subscription in ("desk/arrivals", "us-desk/lobby(?: in us)?"):
        live, replayed = re.findall(rf"(?<![\w-]){subscription} +([0-9,]+)\n", ran.stdout)
        assert live == replayed
    assert_two_dialects_in_and_two_out(ran.stdout)
    assert_guests_alone_are_found(ran.stdout)
    assert_three_views(ran.stdout)
    assert_what_is_enough_is_negotiated(ran.stdout)
    assert agrees(shown_in_readme(), ran.stdout), ran.stdout
    assert not list(tmp_path.iterdir())


def shown_in_readme() -> str:
    """What the README says that the show says."""
    block = re.search(
        r'^```text title="make run"\n(.*?)^```$', (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL
    )
    assert block is not None
    return block[1]


def assert_guests_alone_are_found(shown: str) -> None:
    found = re.findall(r"  unaccompanied-guest  A = (p\d+), R = (\S+)  \d+ detections?  closed ", shown)
    assert sorted(room for _, room in found) == ["lab", "server"]
    for guest, room in found:
        assert f"A {guest} is inside R {room}; within 5 s there was no B with: A {guest} is within 5 m of B" in shown
    alarms = re.findall(
        r'Alarm unaccompanied-guest \{"room": "(\S+)", "text": ".* is alone in \S+", "who": "(\S+)"\}', shown
    )
    assert sorted({(who, room) for room, who in alarms}) == sorted(found)


def assert_what_is_enough_is_negotiated(shown: str) -> None:
    """Met by advice, raised during an alarm; what is needed falls again afterwards."""
    calm, alert = "It wants 5 to 10 badges a minute, 75 % sure\n", "It wants 30 to 45 badges a minute, 75 % sure\n"
    desk = re.search(rf"{calm}(.*?)An alarm: .*\n{alert}(.*?)All is well again\n{calm}(.*?)\n\$ ", shown, re.DOTALL)
    assert desk is not None
    assert all("  satisfied" in part for part in desk.groups())
    reader = [
        "It looks for badges 2 times a minute",
        "It is asked to look more often: from 2 to 5 a minute",
        "It is asked to look more often: from 5 to 30 a minute",
    ]
    places = [shown.index(line) for line in reader]
    assert places == sorted(places)
    assert re.search(r"^watch +monitor/badges +confidence 75..95 % +satisfied", shown, re.MULTILINE)


def assert_three_views(shown: str) -> None:
    """Security sees everything, a tenant its own rooms, cleaners places without names."""
    views, counts = {}, {}
    for who, lines, number in re.findall(
        r"^\$ situ subscribe --client ([\w-]+) --durable all\n((?:\d\d:\d\d:.*\n)+)… ([0-9]+) events$",
        shown,
        re.MULTILINE,
    ):
        views[who], counts[who] = lines, int(number)
    assert set(views) == {"control-room", "aurora", "cleaners"}
    assert counts["control-room"] > counts["cleaners"] > counts["aurora"] > 0
    places = re.findall(r'"at": \{"x": ([0-9.]+), "y": ([0-9.]+)\}', views["aurora"])
    assert places
    assert all(float(x) >= 14 and float(y) <= 6 for x, y in places)
    assert '"place"' in views["cleaners"]
    assert '"who"' not in views["cleaners"]


def assert_two_dialects_in_and_two_out(shown: str) -> None:
    # One of a camera's events, before anything runs.
    assert re.search(r'^who ← face .* face_to_person +"face-c86da" → "p01"$', shown, re.MULTILINE)
    assert re.search(r"^at ← polar .*\{r: 9\.84, theta: -0\.13\} → \{x: 2\.39\d+, y: 1\.79\d+\}$", shown, re.MULTILINE)
    # A filter in feet, asked in metres.
    assert "canonical  at.x < 4.8768 m AND at.y < 6.096 m" in shown
    # What came in from whom, and what went out in whose terms.
    counted = dict(re.findall(r"(Sighting(?: from \w+)?|us-desk/lobby in us) +([0-9,]+)\n", shown))
    sighted, by_readers, by_cameras, located = (
        int(counted[name].replace(",", ""))
        for name in ("Sighting", "Sighting from readers", "Sighting from cameras", "us-desk/lobby in us")
    )
    assert sighted == by_readers + by_cameras
    assert min(by_readers, by_cameras, located) > 10
    # As sent, and as two desks got it.
    assert re.search(r'^reader-\d+ sends TagSeen \{"reader": .*"cartesian": \{"dx": ', shown, re.MULTILINE)
    assert re.search(r'^camera-\d+ sends FaceSeen \{"camera": .*"polar": \{"r": ', shown, re.MULTILINE)
    assert re.search(r" is in the lobby: \d\.\d m, \d\.\d m, says (reader|camera)-\d+$", shown, re.MULTILINE)
    located_at = re.findall(r'PersonLocated \S+ \{"person": "p\d+", "position": (\{.*?\})\}$', shown, re.MULTILINE)
    assert located_at
    assert all(json.loads(each)["x"] < 16 and json.loads(each)["y"] < 20 for each in located_at)
