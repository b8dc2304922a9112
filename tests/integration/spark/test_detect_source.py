"""Where batches of detection end, on a real bus without Spark: the log says how far, and the clock when."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.datasource import ReadMaxRows

from situ.event.message import RECEIVED, Message, StoredMessage
from situ.spark.checkpoint import BatchEnds, Offset
from situ.spark.source import TICK, BusStreamReader, DetectReader, SourceOptions
from situ.spark.state_store import ProgressStore
from situ.stages.detect.progress import DetectionProgress
from situ.storage.state_folder import open_folder
from tests.guarded import FILES
from tests.zone import Zone, event, zone

MORE = {name: text for name, text in FILES.items() if name not in ("situ.yaml", "types/building.yaml")}


def guarded() -> dict[str, Any]:
    return {"types": FILES["types/building.yaml"], "more": {**MORE, "clients/all.yaml": ""}}


def reader_of(at: Zone, folder: Path) -> DetectReader:
    return DetectReader(
        {
            "address": at.address.to_json(),
            "stream": "ROOT",
            "checkpoint": str(folder / "detect"),
            "events": str(folder / "events"),
            "folder": str(folder / "project"),
        }
    )


def next_of(reader: DetectReader, begin: Offset, most: int = 1000) -> Offset:
    return Offset.from_json(reader.latestOffset(begin.as_json(), ReadMaxRows(most)))


def see(at: Zone, number: int) -> StoredMessage:
    seq = at.send("reader", [event(f"e{number}", "Sighting", {"who": "g1", "at": {"x": 5.0, "y": 5.0}})])
    return next(iter(at.bus.read(at.names.in_stream, seq, seq)))


def received(stored: StoredMessage) -> int:
    return int(stored.headers[RECEIVED])


def log(at: Zone, stored: StoredMessage) -> int:
    """What the query of events does with a message that came in."""
    message = Message(subject=at.names.root("r1", "Sighting"), headers=stored.headers, body=stored.body)
    return at.bus.store(message).result().seq


def take(folder: Path, seq: int) -> None:
    """What Spark writes down when the query of events is done with a batch."""
    for name, text in (("offsets", f"v1\n{{}}\n{json.dumps(Offset(seq=seq).as_json())}\n"), ("commits", "v1\n{}\n")):
        (folder / "events" / name).mkdir(parents=True)
        (folder / "events" / name / "0").write_text(text)


def test_while_all_is_silent_the_clock_waits_for_what_is_on_its_way_to_the_log(tmp_path: Path) -> None:
    with zone(tmp_path, **guarded()) as at:
        reader = reader_of(at, tmp_path)
        begin = next_of(reader, Offset())
        ProgressStore(open_folder(tmp_path / "detect")).save(begin, DetectionProgress(), due=True)
        time.sleep(2 * TICK / 1e6)
        first = see(at, 1)
        time.sleep(2 * TICK / 1e6)
        until = next_of(reader, begin)
        assert (until.seq, until.clock) == (0, received(first)), "the clock went past what came in"
        ProgressStore(open_folder(tmp_path / "detect")).save(until, DetectionProgress(), due=True)
        assert next_of(reader, until) == until, "there is nothing to do before that is in the log"
        seq = log(at, first)
        take(tmp_path, first.seq)
        after = next_of(reader, until)
        assert (after.seq, after.clock) == (seq, until.clock + 1), "what comes is no silence"
        ProgressStore(open_folder(tmp_path / "detect")).save(after, DetectionProgress(), due=True)
        before = time.time_ns() // 1000
        assert next_of(reader, after).clock >= before
        reader.stop()


def test_the_clock_waits_for_what_batches_before_have_left_of_the_log(tmp_path: Path) -> None:
    with zone(tmp_path, **guarded()) as at:
        reader = reader_of(at, tmp_path)
        came = [see(at, number) for number in range(100)]
        for each in came:
            log(at, each)
        take(tmp_path, came[-1].seq)
        some = next_of(reader, Offset(), most=70)
        assert (some.seq, some.clock) == (70, received(came[0])), "batches before it have seen nothing of it"
        rest = next_of(reader, some)
        assert (rest.seq, rest.clock) == (100, received(came[70]))
        ProgressStore(open_folder(tmp_path / "detect")).save(rest, DetectionProgress(), due=True)
        time.sleep(2 * TICK / 1e6)
        assert next_of(reader, rest).clock > received(came[-1])
        reader.stop()


def test_a_batch_takes_whole_batches_of_events(tmp_path: Path) -> None:
    with zone(tmp_path, **guarded()) as at:
        reader = reader_of(at, tmp_path)
        for number in range(100):
            log(at, see(at, number))
        ends = BatchEnds(open_folder(tmp_path / "events"))
        ends.add(30)
        ends.add(80)
        assert next_of(reader, Offset()).seq == 80, "what is behind is a batch that is not done"
        first = next_of(reader, Offset(), most=70)
        assert first.seq == 30
        assert next_of(reader, first, most=70).seq == 80
        ends.add(100)
        assert next_of(reader, first).seq == 100
        reader.stop()


def test_a_batch_has_no_more_events_than_it_may(tmp_path: Path) -> None:
    """However few messages they are in; but one message at least, for a part of one is no batch."""
    sizes = [7, 1, 12, 30, 2, 2, 9] * 3

    def ends(next_of: Callable[[Offset], Offset], begin: Offset) -> list[int]:
        found = [begin.seq]
        while (end := next_of(begin)).seq > begin.seq:
            found.append(end.seq)
            begin = end
        return found

    with zone(tmp_path, **guarded()) as at:
        for number, size in enumerate(sizes):
            events = [event(f"{number}-{place}", "Note", {"text": "n"}) for place in range(size)]
            (stored,) = at.bus.read(at.names.in_stream, (seq := at.send("reader", events)), seq)
            log(at, stored)
        options = {
            "address": at.address.to_json(),
            "checkpoint": str(tmp_path / "events"),
            "folder": str(tmp_path / "project"),
        }
        reader = BusStreamReader(SourceOptions.read(options))
        detecting = DetectReader({**options, "stream": "ROOT", "events": str(tmp_path / "none"), "buckets": "2"})
        for each in (reader, detecting):
            for most in (1, 5, 30, 31, 45, 1000):

                def next_of(begin: Offset, most: int = most, each: Any = each) -> Offset:
                    return Offset.from_json(each.latestOffset(begin.as_json(), ReadMaxRows(most)))

                found = ends(next_of, Offset.from_json(each.initialOffset()))
                assert found[-1] == len(sizes)
                for first, last in itertools.pairwise(found):
                    taken = sizes[first:last]
                    assert sum(taken) <= most or len(taken) == 1, (most, first, last)
                    assert last == len(sizes) or sum(taken) + sizes[last] > most, "no smaller than it has to be"


def test_what_came_in_is_settled_when_a_batch_has_all_that_the_log_has_of_it(tmp_path: Path) -> None:
    """It is told by places, not by times: a message may have an earlier time than those that came in before it."""
    with zone(tmp_path, **guarded()) as at:
        reader = reader_of(at, tmp_path)
        came = [see(at, number) for number in range(30)]
        ends = BatchEnds(open_folder(tmp_path / "events"))
        for each in came[:20]:
            log(at, each)
        ends.add(20)
        take(tmp_path, came[19].seq)
        some = next_of(reader, Offset(), most=10)
        assert (some.seq, some.settled) == (20, came[20].seq), "a batch of events is taken whole"
        for each in came[20:]:
            log(at, each)
        assert next_of(reader, some).settled == some.settled, "the query of events is not done with the rest"
        ends.add(30)
        after = next_of(reader, some)
        assert (after.seq, after.settled) == (30, came[20].seq), "it is not said to be done"
        reader.stop()
