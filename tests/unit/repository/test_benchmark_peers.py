"""What comparisons with other engines rest on: files held to checksums, our own answers, differences explained."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from benchmarks.peers import JavaPeer, PeerMissing, check
from benchmarks.situation_answers import differences, same
from benchmarks.situation_one_process import detect_in_one_process, in_memory, read_json
from benchmarks.situation_recorded import Files, Recording, record, write
from situ.lang.records import replace


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return write(record(300 * 40, 300), tmp_path_factory.mktemp("recorded"), 8, json=True)


def test_a_file_that_is_another_is_refused_and_gone(tmp_path: Path) -> None:
    file = tmp_path / "engine.jar"
    file.write_bytes(b"as it was")
    digest = hashlib.sha256(b"as it was").hexdigest()
    check(file, digest)
    file.write_bytes(b"otherwise")
    with pytest.raises(PeerMissing, match=r"engine\.jar has the checksum"):
        check(file, digest)
    assert not file.exists()


def test_a_peer_that_ends_says_what_it_said_last(tmp_path: Path) -> None:
    with pytest.raises(PeerMissing, match="no such engine"):
        JavaPeer(["sh", "-c", "echo no such engine >&2"], tmp_path / "log").__enter__()


@pytest.mark.parametrize("given", [in_memory, read_json])
def test_one_process_gives_the_expected_answers(files: Files, given: object) -> None:
    done = detect_in_one_process(files, given(files))  # type: ignore[operator]
    assert done.taken.value > 0
    assert done.answers
    same(files.recording.answers, done.answers)


def test_answers_that_are_others_are_refused(files: Files) -> None:
    with pytest.raises(AssertionError, match="0 invented, 1 missed"):
        same(files.recording.answers, files.recording.answers - {min(files.recording.answers)})


def test_what_a_simpler_query_finds_is_explained(files: Files) -> None:
    recording = files.recording
    accompanied = _accompanied(recording)
    found = differences(recording, recording.answers | accompanied)
    assert found["alarms of the policy"] == len(recording.answers)
    assert sum(value for name, value in found.items() if name.startswith("more")) == len(accompanied) > 0


def test_what_nothing_explains_is_refused(files: Files) -> None:
    recording = files.recording
    without = replace(recording, detections=recording.detections.slice(1))
    with pytest.raises(AssertionError, match="no reason"):
        differences(without, recording.answers)
    with pytest.raises(AssertionError, match="1 detections are not among"):
        differences(recording, without.answers)


def _accompanied(recording: Recording) -> frozenset[tuple[str, str]]:
    """Guests in restricted rooms, of whom the policy says nothing."""
    status = {row["id"]: row["status"] for row in recording.persons.to_pylist()}
    rooms = [row for row in recording.rooms.to_pylist() if row["security"] == "restricted"]
    seen = {
        (event["id"], room["id"])
        for event in recording.events.slice(0, 3_000).to_pylist()
        for room in rooms
        if status.get(event["person"]) == "guest"
        and room["x1"] <= event["x"] <= room["x2"]
        and room["y1"] <= event["y"] <= room["y2"]
    }
    return frozenset(seen) - recording.answers
