"""What a run says that cannot go on: where, why, what to do; and it changes nothing."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.faults.deployed import deployed


@pytest.mark.parametrize(
    ("file", "text"),
    [("offsets/3", "v1\n{"), ("offsets/3", 'v1\n{"batchWatermarkMs":0}\n{"seq": "much"}'), ("metadata", "")],
    ids=["cut off", "no offset", "no metadata"],
)
def test_a_damaged_checkpoint_is_named_and_left_alone(tmp_path: Path, file: str, text: str) -> None:
    with deployed(tmp_path / "plant", engine="spark", start=False) as at:
        checkpoint = at.folder / ".situ" / "checkpoints" / "events"
        for name in ("metadata", "offsets/3", "commits/2"):
            (checkpoint / name).parent.mkdir(parents=True, exist_ok=True)
            (checkpoint / name).write_text('{"id":"5f6e"}' if name == "metadata" else "v1\n{}")
        (checkpoint / file).write_text(text)
        at.start()
        assert at.ended() == 5
        assert "error N101" in at.shown
        assert file in at.shown
        assert "Put the folder back from a back-up, or move it away" in at.shown
        assert (checkpoint / file).read_text() == text


def test_a_registry_that_is_locked_is_waited_for_and_then_named(tmp_path: Path) -> None:
    with deployed(tmp_path / "plant", engine="edge") as at:
        assert at.stop() == 0
        holder = sqlite3.connect(at.folder / ".situ" / "registry.db", isolation_level=None)
        try:
            holder.execute("BEGIN EXCLUSIVE")
            # What is declared already needs no writing: only a change has to wait.
            (at.folder / "types" / "more.yaml").write_text("version: 1\nevents:\n  Shift: {name: string}\n")
            at.start()
            assert at.ended() == 4
            assert "error D104" in at.shown
            holder.execute("ROLLBACK")
        finally:
            holder.close()
        at.start()
        at.ready()
        assert at.stop() == 0
