"""What edge detection remembers on disk, written by several threads at once, or beside the steps."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from situ.edge.detect_checkpoint import CheckpointRecord, CompletedSteps, DetectionCheckpoint
from situ.lang.records import replace
from situ.stages.detect.progress import DetectionProgress


def record(reached: int) -> CheckpointRecord:
    states = {name: bytes(1000) for name in ("one", "two")}
    return CheckpointRecord(
        reached=reached, recent=frozenset({reached}), version=1, progress=DetectionProgress(), states=states, since=()
    )


def test_threads_that_keep_at_once_keep_one_after_the_other(tmp_path: Path) -> None:
    remembered = DetectionCheckpoint(tmp_path)
    with ThreadPoolExecutor(8) as threads:
        for saved in [threads.submit(remembered.save, record(number)) for number in range(1, 65)]:
            saved.result()
    remembered.close()
    assert [each.name for each in tmp_path.iterdir()] == ["64"]
    found = DetectionCheckpoint(tmp_path).load()
    assert found is not None
    assert found.states == record(1).states


def done(clock: int) -> CompletedSteps:
    progress = replace(DetectionProgress(), numbers={"policy": clock})
    return CompletedSteps(steps=((clock, (clock,)),), version=1, progress=progress)


def found(folder: Path) -> tuple[int, list[int]]:
    """What a process that starts now has to go on from: the record, and the steps since. It leaves all as it is."""
    loaded = [each for each in folder.iterdir() if each.name.isdigit()]
    record = DetectionCheckpoint(folder)._read(max(loaded, key=lambda each: int(each.name)))
    assert all(each.progress.numbers == {"policy": each.steps[0][0]} for each in record.since)
    return record.reached, [each.steps[0][0] for each in record.since]


def test_whenever_a_process_dies_that_makes_a_record_beside_it_left_one_with_all_steps_since(tmp_path: Path) -> None:
    remembered = DetectionCheckpoint(tmp_path)
    remembered.save(record(10))
    remembered.note(done(11))
    beside = remembered.begin()
    assert beside is not None
    assert found(tmp_path) == (10, [11])
    remembered.note(done(12))
    remembered.follow(beside, done(12).progress)
    remembered.note(done(13))
    assert found(tmp_path) == (10, [11, 12, 13])
    remembered.write(beside, replace(record(12), progress=done(12).progress))
    assert found(tmp_path) == (12, [13])
    remembered.note(done(14))
    assert found(tmp_path) == (12, [13, 14])
    remembered.finish(beside)
    remembered.note(done(15))
    assert found(tmp_path) == (12, [13, 14, 15])
    remembered.tidy()
    remembered.note(done(16))
    remembered.close()
    assert found(tmp_path) == (12, [13, 14, 15, 16])
    assert [each.name for each in tmp_path.iterdir()] == ["2"]


def test_a_record_that_was_given_up_leaves_nothing_behind(tmp_path: Path) -> None:
    remembered = DetectionCheckpoint(tmp_path)
    remembered.save(record(10))
    beside = remembered.begin()
    assert beside is not None
    remembered.follow(beside, DetectionProgress())
    remembered.note(done(11))
    remembered.save(replace(record(11), progress=done(11).progress))
    remembered.note(done(12))
    remembered.close()
    assert found(tmp_path) == (11, [12])
    assert DetectionCheckpoint(tmp_path).load() is not None
    assert [each.name for each in tmp_path.iterdir()] == ["2"]


def test_without_a_folder_nothing_is_kept() -> None:
    remembered = DetectionCheckpoint(None)
    remembered.save(record(1))
    assert remembered.begin() is None
    remembered.note(done(2))
    assert remembered.load() is None
    remembered.close()
