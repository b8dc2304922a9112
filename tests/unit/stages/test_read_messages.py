"""The root log, read once for detection: messages say what their events say one by one, and show policies the same."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from situ.event.lines import encode_row
from situ.event.message import STAMP, StoredMessage, join_lines, position, split_lines
from situ.event.row import Row
from situ.event.subjects import BusNames, pack_root
from situ.lang.records import replace
from situ.stages.detect.step import PolicyObservations, read_messages, read_rows
from tests.scoped import SCOPES, SECOND, Flow, T, project

NO_EVENT = b'{"id":5}'


def happened(folder: Path, dice: random.Random) -> Flow:
    """What readers of both sites say and policies publish, under the scopes of two epochs."""
    flow = Flow(project(folder / "one"))
    for epoch in (1, 2):
        if epoch == 2:
            flow.use(project(folder / "two", (), **{"scopes.yaml": SCOPES.replace("at.x < 8", "at.x < 6")}), epoch)
        for number in range(12):
            x = dice.choice((1.0, 7.0, 9.0))
            flow.see(dice.choice(("reader-e", "reader-w")), "g1", x, T + (40 * epoch + number) * SECOND)
        flow.wait(since=T + 40 * (epoch + 1) * SECOND)
    return flow


def stored(flow: Flow, dice: random.Random, broken: bool = False) -> tuple[list[StoredMessage], list[Row]]:
    """The log as messages of some events each, and the rows of it; ``broken``: with lines that are no events."""
    by_client: dict[str, list[Row]] = {}
    for row in flow.log.values():
        by_client.setdefault(row.client, []).append(row)
    messages, rows, seq = [], [], 0
    for some in by_client.values():
        while some:
            count = dice.randint(1, 6)
            taken, some = some[:count], some[count:]
            seq += 1
            bare = [encode_row(replace(row, pos=0)) for row in taken]
            ((_, message),) = pack_root(BusNames("main"), "r1", taken, bare)
            body, shift = message.body, 0
            if broken:
                body, shift = join_lines([NO_EVENT, *split_lines(body)]), 1
            headers, at = dict(message.headers), taken[0].recv
            messages.append(StoredMessage(seq=seq, subject=message.subject, body=body, headers=headers, at=at))
            rows += [replace(row, pos=position(seq, place + shift)) for place, row in enumerate(taken)]
    return messages, rows


def said(read: PolicyObservations) -> tuple[Any, ...]:
    observed = sorted(repr(row) for each in read.observed for row in each.rows.to_pylist())
    return observed, dict(read.seen), {reads: sorted(positions.tolist()) for reads, positions in read.hidden.items()}


def test_messages_say_and_show_what_their_events_do(tmp_path: Path) -> None:
    dice = random.Random(5)
    flow = happened(tmp_path, dice)
    plan = flow.plan
    for turn in range(6):
        messages, rows = stored(flow, dice, broken=bool(turn % 2))
        assert {bool(each.headers.get(STAMP)) for each in messages} == {True, False}
        for reading in (plan.reading, None):
            expected = read_rows(plan.detecting, reading, rows)
            assert said(read_messages(plan.detecting, reading, messages)) == said(expected)
        assert len(expected.observed) == 2, "of readers and of policies"
    hidden = said(read_rows(plan.detecting, plan.reading, rows))[2]
    assert plan.reading is not None
    assert len(hidden) < len(plan.reading.readers), "some see everything"
    assert 0 < max(map(len, hidden.values())) < len(rows)
