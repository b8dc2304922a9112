"""Where batches of detection end: behind whole batches of events."""

from __future__ import annotations

from pathlib import Path

from situ.spark.checkpoint import BatchEnds, whole
from situ.storage.state_folder import open_folder


def test_ends_are_remembered_in_order_and_those_of_another_log_are_not(tmp_path: Path) -> None:
    ends = BatchEnds(open_folder(tmp_path / "events"))
    assert ends.load() is None
    for last in (4, 7, 7, 9):
        ends.add(last)
    assert ends.load() == (4, 7, 9)
    ends.add(5)  # the log began anew
    assert ends.load() == (4, 5)
    (tmp_path / "events" / "ends.json").write_text("{")
    assert ends.load() is None


def test_as_many_whole_batches_as_fit_and_one_at_least() -> None:
    ends = (4, 7, 9)
    assert whole(ends, 0, 100, 12) == 9
    assert whole(ends, 0, 8, 12) == 7
    assert whole(ends, 0, 2, 12) == 4, "a batch of events is taken whole though it is large"
    assert whole(ends, 4, 3, 12) == 7
    assert whole(ends, 9, 100, 12) == 9, "what is behind is not done"
    assert whole(ends, 0, 100, 6) == 4, "the log ends before"
    assert whole((), 3, 100, 12) == 3
    assert whole(None, 3, 5, 12) == 8, "nobody says where batches end"
    assert whole(None, 3, 50, 12) == 12
