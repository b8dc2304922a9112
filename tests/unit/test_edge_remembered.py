"""What edge detection remembers on disk, written by several threads at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from situ.deployment.progress import Progress
from situ.edge.remembered import Record, Remembered


def record(reached: int) -> Record:
    states = {name: bytes(1000) for name in ("one", "two")}
    return Record(reached=reached, recent=frozenset({reached}), version=1, progress=Progress(), states=states, since=())


def test_threads_that_keep_at_once_keep_one_after_the_other(tmp_path: Path) -> None:
    remembered = Remembered(tmp_path)
    with ThreadPoolExecutor(8) as threads:
        for saved in [threads.submit(remembered.save, record(number)) for number in range(1, 65)]:
            saved.result()
    remembered.close()
    assert [each.name for each in tmp_path.iterdir()] == ["64"]
    found = Remembered(tmp_path).load()
    assert found is not None
    assert found.states == record(1).states
