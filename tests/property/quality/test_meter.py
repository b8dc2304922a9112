"""What meters measure of parts of a stream, joined, is what a slow look at all of it finds."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence

from situ.event.row import Row
from situ.quality.measurement.meter import Meter, MeteredPart, PaneMerger
from situ.quality.measurement.panes import Pane, SequenceRange, Sketch, merge_panes, pane_of
from situ.quality.shaping.watermark import LatenessBounds
from tests.histories import SECOND, START, event, history, portions
from tests.volume import cases

PATIENT = LatenessBounds(lateness=2 * SECOND, idle=10 * SECOND)


def through_json(part: MeteredPart) -> MeteredPart:
    found = MeteredPart.from_json(json.loads(json.dumps(part.as_json())))
    assert found == part
    return found


def slowly(rows: Sequence[Row], delay: int) -> dict[tuple[str, str, int], Pane]:
    """The panes, found by looking at everything before each event."""
    found = []
    for place, row in enumerate(rows):
        before = [each for each in rows[:place] if each.client == row.client and each.type == row.type]
        same = [each.time for each in before if each.source == row.source]
        now = row.recv + delay
        found.append(
            Pane(
                publisher=row.client,
                type=row.type,
                start=pane_of(row.time),
                events=1,
                last=row.time,
                confidence=row.confidence or 0.0,
                confident=int(row.confidence is not None),
                latency=Sketch.of([now - row.recv]),
                freshness=Sketch.of([now - row.time]),
                ahead=int(row.time > now),
                numbers={row.incarnation: SequenceRange(row.seq, row.seq, 1)},
                gap=max(row.time - max(same), 0) if same else None,
                disordered=int(bool(same) and row.time < max(same)),
                disordered_across=int(bool(before) and row.time < max(each.time for each in before)),
            )
        )
    return merge_panes(found)


@cases(40, 10_000)
def test_parts_that_are_measured_apart_make_the_whole(cases: int) -> None:
    gaps = disordered = in_order = 0
    for seed in range(cases):
        dice = random.Random(seed)
        rows = history(dice, lateness=2 * SECOND)
        delay = dice.choice([0, 1, 1500, 7 * SECOND])
        expected = {key: pane for key, pane in slowly(rows, delay).items() if key[0] == "p"}
        joined, found = PaneMerger(PATIENT), []
        meter = Meter({"p"})
        for some in portions(dice, rows):
            for row in some:
                meter.take([row], row.recv + delay)
            if dice.random() < 0.5:
                found += joined.join([through_json(meter.drain())])
        found += joined.join([through_json(meter.drain())])
        got = merge_panes(found)
        assert got.keys() == expected.keys(), seed
        for key, pane in got.items():
            wanted = expected[key]
            assert math.isclose(pane.confidence, wanted.confidence), seed
            for name in ("events", "last", "confident", "ahead", "numbers", "latency", "freshness"):
                assert getattr(pane, name) == getattr(wanted, name), (seed, name)
            # Of what comes first in a part it is known what was before, of the others only among themselves.
            assert (pane.gap is None) == (wanted.gap is None), seed
            assert (pane.gap or 0) >= (wanted.gap or 0), seed
            if all(each.disordered == 0 for each in expected.values()):
                assert pane.gap == wanted.gap, seed
                in_order += 1
            assert pane.disordered <= wanted.disordered, seed
            assert pane.disordered_across <= wanted.disordered_across, seed
        gaps += sum(pane.gap is not None for pane in got.values())
        disordered += sum(pane.disordered for pane in got.values())
    assert gaps > cases
    assert in_order > cases
    assert disordered > cases


def test_what_is_measured_at_once_is_measured_exactly() -> None:
    for seed in range(150):
        dice = random.Random(seed)
        rows = history(dice, lateness=2 * SECOND)
        meter = Meter({"p", "q"})
        for client in ("p", "q"):
            for row in rows:
                if row.client == client:
                    meter.take([row], row.recv + 1500)
        part = meter.drain()
        assert merge_panes(part.panes) == slowly(rows, 1500), seed
        assert len(part.ends) == len({(row.client, row.source) for row in rows})


@cases(8, 30)
def test_times_of_thousands_of_years_are_told_apart(cases: int) -> None:
    """Whoever lies about times must not have what others do measured wrongly, nor itself."""
    year = 366 * 24 * 3_600 * SECOND
    for seed in range(cases):
        dice = random.Random(seed)
        rows = [
            event(
                number,
                dice.randrange(-1900 * year, 7900 * year),
                client="p",
                source=f"s{dice.randrange(90)}",
                received=0,
            )
            for number in range(400)
        ]
        meter = Meter({"p"})
        for row in rows:
            meter.take([row], START + 8000 * year)
        part = meter.drain()
        expected, got = slowly(rows, 8000 * year), merge_panes(part.panes)
        assert {key: (each.gap, each.disordered, each.disordered_across) for key, each in got.items()} == {
            key: (each.gap, each.disordered, each.disordered_across) for key, each in expected.items()
        }, seed
        for end in part.ends:
            times = [row.time for row in rows if row.source == end.source]
            assert (end.first, end.latest) == (times[0], max(times)), seed


def test_nobody_else_is_measured() -> None:
    dice = random.Random(1)
    rows = history(dice, lateness=2 * SECOND)
    meter = Meter(())
    meter.take(rows, rows[-1].recv)
    assert meter.drain() == MeteredPart()
    assert PaneMerger(PATIENT).until(rows[-1].recv) is None


def test_what_is_complete_goes_on_in_silence() -> None:
    rows = [event(0, 0), event(1, 5 * SECOND), event(2, 4 * SECOND, received=6 * SECOND)]
    meter, joining = Meter({"plant"}), PaneMerger(PATIENT)
    meter.take(rows, START + 6 * SECOND)
    joining.join([meter.drain()])
    assert joining.until(START + 16 * SECOND) == START + 3 * SECOND
    assert joining.until(START + 17 * SECOND) == START + 15 * SECOND
