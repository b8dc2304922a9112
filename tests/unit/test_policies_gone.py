"""What detection writes for a policy that is gone is taken in; what anybody else says in its name is not."""

from __future__ import annotations

import json

import pytest

from situ.bus.names import Names
from situ.deployment import Deployment
from situ.deployment.happening import Published
from situ.deployment.plan import compile_plan
from situ.event.message import OWN, Message, Stored, join_lines
from situ.event.row import Bad, Row
from situ.pipeline.decode import decode
from situ.pipeline.detecting import raw_message
from situ.pipeline.stamp import stamp

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
    return raw_message(Names("main"), Published(policy="gone", incarnation=1, first=1, count=1, body=body), 5)


@pytest.mark.parametrize("own", [True, False])
def test_only_detection_speaks_for_policies_that_are_gone(own: bool) -> None:
    message = written(CLOSED)
    headers = {name: value for name, value in message.headers.items() if own or name != OWN}
    stored = Stored(seq=1, subject=message.subject, headers=headers, body=message.body, at=5)
    plan = compile_plan(Deployment())
    (rows,) = decode([stored], plan, {}, lambda version: None)
    (row,) = stamp(rows, plan)
    if own:
        assert isinstance(row, Row), row
        assert (row.client, row.ad) == ("gone", "")
    else:
        assert isinstance(row, Bad)
        assert row.errors[0][0] == "R002"
