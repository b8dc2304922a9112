"""Policies tried in Python, and the clock that such a test moves on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from scripts.reference.yard import YARD
from situ import SituError
from situ.testing import Clock, PolicyCase

TRUCKS = [{"id": "LY-204", "owner": "Lyra"}, {"id": "XX-999", "owner": "Vega"}]


def case(clock: Clock | None = None) -> PolicyCase:
    found = PolicyCase(YARD, "speeding", clock=clock)
    found.rows("trucks", TRUCKS)
    return found


def test_situations_say_who_and_when() -> None:
    trying = case(Clock("2026-11-01T08:00:00+01:00"))
    trying.event("TruckSeen", truck="LY-204", speed=31.0)
    trying.clock.advance(seconds=30)
    trying.event("TruckSeen", truck="LY-204", speed=80.0)
    trying.event("TruckSeen", {"truck": "XX-999"}, speed=80.0)
    [found] = trying.situations()
    assert (found.policy, found.bindings, found.detections) == ("speeding", {"T": "LY-204"}, 1)
    assert found.start == datetime(2026, 11, 1, 7, 0, 30, tzinfo=UTC)
    assert found.end is not None


def test_what_is_decided_depends_on_the_clock() -> None:
    trying = case()
    trying.event("TruckSeen", truck="LY-204", speed=80.0)
    assert trying.situations(settled=False) == []
    trying.clock.advance(seconds=0.5)
    [found] = trying.situations(settled=False)
    assert found.end is None
    trying.clock.advance(minutes=1)
    assert trying.situations(settled=False)[0].end is not None


def test_an_event_may_have_happened_before_it_is_received() -> None:
    trying = case()
    trying.clock.advance(seconds=10)
    trying.event("TruckSeen", truck="LY-204", speed=80.0, time=trying.clock.now - timedelta(milliseconds=50))
    assert trying.situations()[0].start == trying.clock.now - timedelta(milliseconds=50)


def test_tables_that_are_not_given_are_empty() -> None:
    trying = PolicyCase(YARD)
    trying.event("TruckSeen", truck="LY-204", speed=80.0)
    assert trying.situations() == []


def test_what_is_not_declared_is_refused_with_what_is() -> None:
    with pytest.raises(SituError, match="no policy `speedy`"):
        PolicyCase(YARD, "speedy")
    with pytest.raises(SituError, match="truckz"):
        case().rows("truckz", [])
    with pytest.raises(SituError, match="speed"):
        case().event("TruckSeen", truck="LY-204", speed="fast")
    with pytest.raises(SituError):
        PolicyCase({"situ.yaml": "name: yard\nengine: steam\n"})


def test_a_folder_without_a_project_is_none(tmp_path: Path) -> None:
    with pytest.raises(SituError):
        PolicyCase(tmp_path)


def test_a_clock_goes_on_when_it_is_told_to() -> None:
    clock = Clock()
    assert clock.now == datetime(2000, 1, 1, tzinfo=UTC)
    clock.advance(1, minutes=1, hours=1, days=1)
    assert clock.now == datetime(2000, 1, 2, 1, 1, 1, tzinfo=UTC)
    assert clock() == int(clock.now.timestamp()) * 1_000_000
    with pytest.raises(ValueError, match="does not go back"):
        clock.advance(-1)
    with pytest.raises(ValueError, match="time zone"):
        Clock("2026-11-01T08:00:00")
