"""Policies over what the log holds: the clock of the log, what counts, and where they go on from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from situ.event.instants import print_instant
from situ.event.message import CLIENT, RECEIVED, EventKey, StoredMessage, join_lines
from situ.policies.model import InstancesByConcept, PolicyStart
from situ.stages.detect.backfill import Backfill, policies_to_backfill, start_from_backfill
from situ.stages.detect.detection_plan import DetectionPlan
from situ.stages.detect.progress import DetectionProgress
from tests.guarded import FILES
from tests.zone import deployment_of

T, SECOND = 1_790_000_000_000_000, 1_000_000
NAME = "unaccompanied-guest"
KEY = str(EventKey(NAME, 1, 1))
ROOM = {"id": "lab", "security": "restricted", "area": {"x1": 0.0, "y1": 0.0, "x2": 10.0, "y2": 10.0}}
KNOWN: InstancesByConcept = {
    "person": {who: {"id": who, "status": "guest"} for who in ("g1", "g2")},
    "room": {"lab": ROOM},
}


def detecting_of(folder: Path) -> DetectionPlan:
    more = {name: text for name, text in FILES.items() if name not in ("situ.yaml", "types/building.yaml")}
    situ = "defaults: {lateness: 100 ms, idle: 1 s}\n"
    types = FILES["types/building.yaml"]
    return DetectionPlan.of(deployment_of(folder, (), types=types, situ=situ, more={**more, "clients/all.yaml": ""}))


def seen(seq: int, who: str, at: int, *, on_the_way: int = 500_000) -> StoredMessage:
    data = {"who": who, "at": {"x": 5.0, "y": 5.0}}
    event = {"id": f"e{seq}", "source": "x", "type": "Sighting", "time": print_instant(at), "data": data}
    event |= {"specversion": "1.0", "siturecv": print_instant(at)}
    headers = {CLIENT: "reader", RECEIVED: str(at)}
    body = join_lines([json.dumps(event).encode()])
    return StoredMessage(subject="x", headers=headers, body=body, seq=seq, at=at + on_the_way)


@pytest.mark.parametrize("buckets", [1, 3])
def test_what_the_log_holds_is_told_and_what_is_under_way_is_decided_later(tmp_path: Path, buckets: int) -> None:
    detecting = detecting_of(tmp_path)
    messages = [seen(1, "g1", T), seen(2, "g2", T + 60 * SECOND)]
    parts = []
    for bucket in range(buckets):
        filling = Backfill(detecting, KNOWN, 1, 0, bucket=bucket, buckets=buckets)
        filling.take(messages)
        parts.append(filling.filled())
    before, _ = DetectionProgress().adopted(detecting, None)
    begun = start_from_backfill(before, detecting, {NAME: PolicyStart(at=0)}, parts)
    assert [each.stage.value for each in begun.told] == ["opened", "closed"]
    assert begun.past == {each.id for each in begun.told}
    assert {dict(each.situation.bindings)["A"] for each in begun.told} == {"g1"}
    found = 0
    for bucket, part in enumerate(parts):
        kernel = detecting.kernel(NAME, bucket, buckets)
        state = kernel.load(kernel.save(part.states[NAME]))
        assert state is not None
        _, later = kernel.step(state, {}, T + 90 * SECOND, KNOWN)
        found += later.batch.num_rows
    assert found == 1, "on its way into the log the second guest was not late"


def test_what_happened_before_the_beginning_or_was_told_does_not_count(tmp_path: Path) -> None:
    detecting = detecting_of(tmp_path)
    messages = [seen(1, "g1", T), seen(2, "g2", T + 60 * SECOND), seen(3, "g1", T + 120 * SECOND)]
    before, _ = DetectionProgress().adopted(detecting, None)
    filling = Backfill(detecting, KNOWN, 2, T + 30 * SECOND)
    filling.take(messages)
    (opened, closed) = start_from_backfill(
        before, detecting, {NAME: PolicyStart(at=0, acts=True)}, [filling.filled()]
    ).told
    assert dict(opened.situation.bindings)["A"] == "g2"
    line = {"id": opened.id, "source": NAME, "type": "situ.situation.opened", "time": print_instant(T), "data": {}}
    told = StoredMessage(
        subject="x",
        headers={CLIENT: NAME},
        body=join_lines([json.dumps({"specversion": "1.0", "situkey": KEY, **line}, separators=(",", ":")).encode()]),
        seq=4,
        at=T + 121 * SECOND,
    )
    again = Backfill(detecting, KNOWN, 2, T + 30 * SECOND)
    again.take([*messages, told])
    begun = start_from_backfill(before, detecting, {NAME: PolicyStart(at=0, acts=True)}, [again.filled()])
    assert ([each.id for each in begun.told], begun.past) == ([closed.id], frozenset())


def test_only_policies_that_nothing_is_remembered_of_begin_in_the_past(tmp_path: Path) -> None:
    detecting = detecting_of(tmp_path)
    assert policies_to_backfill(
        detecting, {NAME: PolicyStart(at=7), "gone": PolicyStart(at=7)}, DetectionProgress()
    ) == {7: (NAME,)}
    known, _ = DetectionProgress().adopted(detecting, None)
    assert policies_to_backfill(detecting, {NAME: PolicyStart(at=7)}, known) == {}
