"""What detection writes down between full records: only what is another than it was, and the whole is made of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from situ.edge.detect_checkpoint import CheckpointRecord, CompletedSteps, DetectionCheckpoint, RecentRows
from situ.event.row import Row
from situ.lang.records import replace
from situ.policies.lifecycle import OpenSituation
from situ.policies.model import Cause
from situ.policies.watermark import SourceTimes
from situ.stages.detect.progress import DetectionProgress, PolicyProgress


def situation(who: str, last: int = 5) -> OpenSituation:
    return OpenSituation(
        id=f"s-{who}",
        policy="alone",
        bindings=(("A", who), ("R", "lab")),
        start=1,
        last=last,
        detections=1,
        causes=(Cause("reader", who),),
        positions=(7,),
    )


def kept(*situations: OpenSituation, digest: str = "d", reached: int | None = 5) -> PolicyProgress:
    return PolicyProgress(digest=digest, reached=reached, open={each.bindings: each for each in situations})


ANNA, BERT, CARL = situation("anna"), situation("bert"), situation("carl")
BEFORE = DetectionProgress(
    incarnation=3,
    seen={"seen": SourceTimes(5, 6, 6)},
    policies={"alone": kept(ANNA, BERT), "idle": kept(reached=None), "former": kept(CARL)},
    numbers={"alone": 2, "former": 9},
)


def after() -> DetectionProgress:
    """Anna is gone, Bert goes on, Carl is new; one policy is as it was, one is gone and one has come."""
    current = kept(situation("bert", last=8), CARL, reached=9)
    policies = {"alone": current, "idle": BEFORE.policies["idle"], "new": kept(digest="n", reached=None)}
    return replace(BEFORE, seen={"seen": SourceTimes(9, 9, 9)}, policies=policies, numbers={"alone": 4, "former": 9})


def test_changes_make_the_whole() -> None:
    stored = json.loads(json.dumps(after().changes(BEFORE)))
    assert BEFORE.changed(stored) == after()


def test_changes_hold_nothing_that_is_as_it_was() -> None:
    current = replace(BEFORE, policies={**BEFORE.policies, "alone": kept(ANNA, BERT, CARL, reached=9)})
    changes = current.changes(BEFORE)
    assert changes["policies"].keys() == {"alone"}
    assert [each["id"] for each in changes["policies"]["alone"]["open"]["open"]] == ["s-carl"]
    assert changes["policies"]["alone"]["closed"] == []
    assert changes["numbers"] == {}


def test_changes_of_another_version_are_refused() -> None:
    with pytest.raises(ValueError, match="version"):
        BEFORE.changed({**after().changes(BEFORE), "version": 99})


def test_steps_are_read_as_they_were_written(tmp_path: Path) -> None:
    remembered = DetectionCheckpoint(tmp_path / "detect")
    remembered.save(CheckpointRecord(reached=4, progress=BEFORE))
    second = replace(after(), numbers={"alone": 5, "former": 9})
    done = [
        CompletedSteps(steps=((10, (5,)),), version=1, progress=each, published=(("alone", 3, 1, "[]"),))
        for each in (after(), second)
    ]
    for each in done:
        remembered.note(each)
    remembered.close()
    (journal,) = (tmp_path / "detect").glob("*/journal")
    with journal.open("ab") as file:
        file.write(b'{"steps": [[11, [')  # the process was killed here
    record = DetectionCheckpoint(tmp_path / "detect").load()
    assert record is not None
    assert record.progress == BEFORE
    assert list(record.since) == done


# ── causes at hand ──


def row(pos: int, size: int = 10) -> Row:
    return Row(pos, "reader", 1, pos, "root", 0, str(pos), "reader", "Sighting", 0, "", None, "", b"x" * size)


def test_the_last_events_are_at_hand_and_no_more() -> None:
    at_hand = RecentRows(most=3, size=100)
    at_hand.add(map(row, range(1, 6)))
    assert at_hand.find(range(1, 7)).keys() == {3, 4, 5}
    at_hand.add([row(5), row(6, size=90)])  # five is there already
    assert at_hand.find(range(1, 7)).keys() == {5, 6}
    at_hand.add([row(7, size=200)])
    assert at_hand.find(range(1, 8)) == {}
    at_hand.add([row(8)])
    at_hand.clear()
    assert at_hand.find([8]) == {}
    at_hand.add([row(8)])
    assert at_hand.find([8]).keys() == {8}
