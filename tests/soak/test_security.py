"""The security scenario, from raw sensor events to alarms, for as long and as fast as one asks.

``SOAK_MINUTES`` (5) and ``SOAK_RATE`` (raw events a second, 20,000) of the environment: a machine with more cores holds
more. ``python -m tests.soak.security --search`` finds how much.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.soak.recording import PER_MESSAGE, read_messages, record
from tests.soak.security import meant, soak

MINUTES = float(os.environ.get("SOAK_MINUTES", "5"))
RATE = float(os.environ.get("SOAK_RATE", "20000"))
LONG = 3.0
"""Minutes from which memory can be judged: before, caches fill."""


@pytest.mark.soak
def test_the_security_scenario_is_sustained_and_tells_all_and_nothing_else(tmp_path: Path) -> None:
    outcome = soak(tmp_path, rate=RATE, seconds=60 * MINUTES)
    print(outcome.shown())
    assert outcome.seeded > 0
    assert not outcome.missed
    assert not outcome.invented
    assert outcome.checked > 0
    assert not outcome.differing
    assert (outcome.dead, outcome.late) == (0, 0)
    assert outcome.holds, outcome.shown()
    assert MINUTES < LONG or outcome.is_flat, outcome.shown()


def test_what_is_recorded_means_what_was_planted(tmp_path: Path) -> None:
    recording = record(tmp_path, rate=400, seconds=60)
    messages = list(read_messages(recording.messages))
    assert sum(each.count for each in messages) == recording.events
    assert recording.events == pytest.approx(400 * 60, rel=0.2)
    assert max(each.count for each in messages) <= PER_MESSAGE
    assert [each.due for each in messages] == sorted(each.due for each in messages)
    told = {each.situation.bindings for each in meant(recording)}
    planted = {(("A", each.guest), ("R", each.room)) for each in recording.noticed if each.room in recording.rooms}
    assert planted
    assert planted <= told
    assert told <= {(("A", each.guest), ("R", each.room)) for each in recording.truth}
