"""What detection writes for a policy that is gone is taken in; what anybody else says in its name is not."""

from __future__ import annotations

import json

import pytest

from situ.event.message import OWN, Message, StoredMessage, join_lines
from situ.event.subjects import BusNames
from situ.model import Deployment
from situ.spark.detect_query import raw_message
from situ.spark.partitions import decode
from situ.stages.detect.situation_events import PolicyMessage
from situ.stages.plan import compile_plan
from situ.stages.stamp import stamp

CLOSED = {
    "policy": "gone",
    "situation": "s",
    "text": "",
    "bindings": [],
    "causes": [],
    "start": "2026-11-15T10:00:00Z",
    "last": "2026-11-15T10:00:01Z",
    "end": "2026-11-15T10:00:02Z",
    "detections": 1,
    "reason": "policy removed",
}


def written(data: dict[str, object]) -> Message:
    line = {"specversion": "1.0", "id": "s.closed", "type": "situ.situation.closed", "data": data}
    body = join_lines([json.dumps(line).encode()])
    return raw_message(BusNames("main"), PolicyMessage(policy="gone", incarnation=1, first=1, count=1, body=body), 5)


@pytest.mark.parametrize("own", [True, False])
def test_only_detection_speaks_for_policies_that_are_gone(own: bool) -> None:
    message = written(CLOSED)
    headers = {name: value for name, value in message.headers.items() if own or name != OWN}
    stored = StoredMessage(seq=1, subject=message.subject, headers=headers, body=message.body, at=5)
    plan = compile_plan(Deployment())
    (rows,) = decode([stored], plan, {}, lambda version: None)
    good, bad = stamp(rows, plan)
    if own:
        assert [(row.client, row.ad) for row in good] == [("gone", "")]
        assert not bad
    else:
        assert not good
        assert [row.errors[0][0] for row in bad] == ["R002"]
