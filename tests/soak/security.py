"""The security scenario of the smart building on Spark, from raw sensor events to alarms, for minutes.

``python -m tests.soak.security --rate 20000 --minutes 5`` records what sensors send, runs the project, pours it in and
says what was seen: how far behind each part was, how much memory each process took and how it grew, how soon alarms
came, which processes the time went to; and whether every guest who went astray was told, and nobody else. ``--search``
tries short runs at growing rates first, and takes the highest that holds.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil

from benchmarks.running import Run, percentile, situ_run
from benchmarks.spark_running import slope
from situ.app.metrics import kind_of
from situ.bus.address import resolve_address
from situ.bus.sync_bus import BlockingBus
from situ.event.lines import decode_line, stored_lines
from situ.event.row import Row
from situ.event.subjects import BusNames
from situ.policies import lifecycle
from situ.policies.reference import detect
from situ.project.check import check_folder
from tests.soak.recording import Recording, record

POLICY = "unaccompanied-guest"
MARGIN, DRIFT = 8.0, 3.0
"""Seconds that detection may be behind what is sent, and by how much more a minute: who keeps up does not fall back."""
REACH = 0.1
"""Metres around a room in which people are looked at to judge what happens in it."""
LATENESS = 2.0
WARM = 0.3
"""The share of a run in which memory may grow: heaps and caches fill."""
SETTLED = 15.0
GROWTH = 2.0
"""Percent a minute: what memory may grow after that, of what is measured so coarsely."""
STEPS = (5_000, 10_000, 15_000, 20_000, 25_000, 30_000, 40_000, 50_000, 60_000, 80_000, 100_000)
# Fewer, larger batches, as one has them at high rates: alarms come two seconds after the event at the earliest anyway.
# Java takes its heap at once: what it takes later would look like growth, and is none.
SITU = "spark: {trigger: 1 s, conf: {spark.driver.extraJavaOptions: '-Xms2g -XX:+AlwaysPreTouch'}}\n"


@dataclass(slots=True, kw_only=True)
class Sample:
    """One look at the run."""

    at: float
    """Seconds since sensors began."""
    waiting: int
    """Events in the ingress stream, about."""
    behind: float
    """Seconds that sensors are behind, because nobody takes what they send."""
    lag: float
    """Seconds between what is sent now and what detection has seen last."""
    memory: Mapping[str, int]


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What a run came to."""

    rate: float
    seconds: float
    events: int
    samples: list[Sample] = field(default_factory=list)
    processor: dict[str, float] = field(default_factory=dict)
    """Seconds of the processor, by kind of process, while sensors sent."""
    whole: dict[str, float] = field(default_factory=dict)
    """The same until all was told, also what was behind when sensors were done."""
    alarms: list[float] = field(default_factory=list)
    """Seconds from the earliest instant at which each situation could be told until it was."""
    seeded: int = 0
    missed: list[str] = field(default_factory=list)
    invented: list[str] = field(default_factory=list)
    checked: int = 0
    """Transitions in the rooms of which all is known."""
    differing: list[str] = field(default_factory=list)
    dead: int = 0
    late: int = 0

    @property
    def lag(self) -> float:
        """The highest after the first seconds."""
        return max((each.lag + each.behind for each in self._steady), default=0.0)

    @property
    def lag_growth(self) -> float:
        """Seconds a minute."""
        return slope([(each.at / 60, each.lag + each.behind) for each in self._steady])

    @property
    def growth(self) -> dict[str, float]:
        """Of memory in percent a minute, by kind of process."""
        found = {}
        for kind in {kind for each in self._steady for kind in each.memory}:
            points = [(each.at / 60, each.memory.get(kind, 0) / 1e6) for each in self._steady]
            found[kind] = 100 * slope(points) / max(points[-1][1], 1.0)
        return found

    @property
    def _steady(self) -> list[Sample]:
        return [each for each in self.samples if each.at > WARM * self.seconds]

    @property
    def is_right(self) -> bool:
        """Whether everything was told, and nothing else."""
        return self.seeded > 0 and not (self.missed or self.invented or self.differing or self.dead or self.late)

    @property
    def holds(self) -> bool:
        """Whether it keeps up."""
        return bool(self.samples) and self.lag < MARGIN and self.lag_growth < DRIFT

    @property
    def is_flat(self) -> bool:
        return all(growth <= GROWTH for growth in self.growth.values())

    def shown(self) -> str:
        last = self.samples[-1].memory
        lags = sorted(each.lag for each in self._steady)
        alarms = sorted(self.alarms)
        total = sum(self.processor.values()) or 1.0
        shares = ", ".join(f"{kind} {100 * each / total:.0f} %" for kind, each in sorted(self.processor.items()))
        shown = ", ".join(f"{kind} {1e6 * each / self.events:.1f}" for kind, each in sorted(self.whole.items()))
        lines = [
            f"{self.events:,} raw events in {self.seconds:g} s: {self.events / self.seconds:,.0f} events/s",
            f"  behind     p50 {percentile(lags, 0.5):.2f} s, highest {self.lag:.2f} s, {self.lag_growth:+.2f} s/min",
            f"  waiting    {max(each.waiting for each in self._steady):,} events at most",
            f"  memory     {', '.join(f'{kind} {size / 1e6:,.0f} MB' for kind, size in sorted(last.items()))}",
            f"  growth     {', '.join(f'{kind} {each:+.1f} %/min' for kind, each in sorted(self.growth.items()))}",
            f"  processor  {total / self.seconds:.2f} cores: {shares}",
            f"  an event   {1e6 * sum(self.whole.values()) / self.events:.1f} µs: {shown}",
            f"  situations {self.seeded} seeded, {len(self.missed)} missed, {len(self.invented)} invented",
            f"  by meaning {self.checked} transitions in rooms of which all is known, {len(self.differing)} differ",
            f"  others     {self.dead} dead letters, {self.late} messages of late events",
        ]
        if alarms:
            lines.append(
                f"  told       p50 {percentile(alarms, 0.5):.2f} s, p95 {percentile(alarms, 0.95):.2f} s later"
            )
        return "\n".join(lines)


def soak(folder: Path, *, rate: float, seconds: float, seed: int = 7) -> Outcome:
    """Record, run, pour, look, and judge."""
    recording = record(folder, rate=rate, seconds=seconds, seed=seed, situ=SITU)
    outcome = Outcome(rate=rate, seconds=seconds, events=recording.events, seeded=len(recording.noticed))
    with situ_run(recording.folder, {}, engine="spark") as run:
        poured = folder / "poured.json"
        pouring = subprocess.Popen(
            [sys.executable, "-m", "tests.soak.pouring", str(recording.folder), str(recording.messages), str(poured)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        try:
            began, before = _watch(run, pouring, poured, recording, outcome)
        finally:
            pouring.kill()
            pouring.wait()
        outcome.whole = _wait_told(run, before)
        _judge(recording, began, outcome)
    return outcome


# ── watching ──


def _watch(
    run: Run, pouring: subprocess.Popen[bytes], poured: Path, recording: Recording, outcome: Outcome
) -> tuple[float, Processor]:
    """Look at the run every second until all is poured; when sensors began, and what processes had taken by then."""
    while not poured.exists():
        assert pouring.poll() is None, "the sensors are gone"
        time.sleep(0.05)
    processes = _processes(run.process.pid)
    before = _seconds(processes)
    while not (about := json.loads(poured.read_text()))["done"]:
        assert pouring.poll() is None, "the sensors are gone"
        assert run.process.poll() is None, (run.folder / "run.log").read_text()[-2000:]
        time.sleep(1.0)
        at = time.time() - about["began"]
        figures = run.figures
        seen = figures.get("situations", {}).get("push", {}).get("seen", {}).get("latest")
        reached = (seen - recording.start) / 1e6 if seen is not None else 0.0
        sample = Sample(
            at=at,
            waiting=max(about["stored"] - figures.get("taken", 0), 0),
            behind=max(about["behind"], 0.0),
            lag=max(at - about["behind"] - reached, 0.0),
            memory={**figures.get("memory", {}), "sensors": psutil.Process(pouring.pid).memory_info().rss},
        )
        outcome.samples.append(sample)
        if sample.at > outcome.seconds + 60:
            break  # it does not keep up, and all that is left would take for ever
    after = _seconds({**processes, **_processes(run.process.pid)})
    outcome.processor = {kind: after[kind] - before.get(kind, 0.0) for kind in after}
    outcome.processor["sensors"] = _used(psutil.Process(pouring.pid)) if pouring.poll() is None else 0.0
    return float(about["began"]), (processes, before)


Processor = tuple[Mapping[int, tuple[str, psutil.Process]], Counter[str]]
"""Processes, and the seconds of the processor they have taken, by kind."""


def _processes(pid: int) -> dict[int, tuple[str, psutil.Process]]:
    me = psutil.Process(pid)
    found = {pid: ("situ", me)}
    for child in me.children(recursive=True):
        with suppress(psutil.Error):
            found[child.pid] = (kind_of(child.name()), child)
    return found


def _seconds(processes: Mapping[int, tuple[str, psutil.Process]]) -> Counter[str]:
    used: Counter[str] = Counter()
    for kind, process in processes.values():
        with suppress(psutil.Error):
            used[kind] += _used(process)  # type: ignore[assignment]  # seconds are no whole numbers
    return used


def _used(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def _wait_told(run: Run, start: Processor) -> dict[str, float]:
    """Until nothing waits, nothing is open, and nothing happens any more; what processes have taken until then."""
    deadline, since, last = time.monotonic() + 180, time.monotonic(), None
    known, before = start
    after = before
    while time.monotonic() - since < SETTLED and time.monotonic() < deadline:
        situations = run.figures.get("situations", {})
        now = (run.figures.get("waiting"), situations.get("open"), situations.get("detections"))
        if now != last or now[0] or now[1]:
            last, since = now, time.monotonic()
            after = _seconds({**known, **_processes(run.process.pid)})
        time.sleep(0.5)
    return {kind: after[kind] - before.get(kind, 0.0) for kind in after}


# ── judging ──


def _judge(recording: Recording, began: float, outcome: Outcome) -> None:
    """Every guest who went astray was told, and nobody else; where all is known, exactly as the policy means it."""
    told, stored, dead, late = _told(recording.folder)
    outcome.dead, outcome.late = dead, late
    opened = [row for row in told if row.type == "situ.situation.opened"]
    outcome.alarms = [stored[row.id] - (began + (row.time - recording.start) / 1e6 + LATENESS) for row in opened]
    seen: dict[tuple[str, str], list[int]] = {}
    for row in opened:
        bound = _bound(row)
        seen.setdefault((bound["A"], bound["R"]), []).append(row.time)
    for each in recording.truth:
        entered, left = each.entered.timestamp() * 1e6, each.left.timestamp() * 1e6
        times = seen.get((each.guest, each.room), [])
        # Reported a window after it was noticed.
        if not (fitting := [time for time in times if entered <= time <= left + 5_000_000]):
            if each in recording.noticed:
                outcome.missed.append(f"{each.guest} in {each.room}")
        else:
            seen[each.guest, each.room] = [time for time in times if time not in fitting]
    outcome.invented = [f"{guest} in {room}" for (guest, room), times in seen.items() for _ in times]
    found = {
        (row.id, row.type.rpartition(".")[2], tuple(sorted(_bound(row).items())))
        for row in told
        if _bound(row)["R"] in recording.rooms
    }
    meaning = {(each.id, each.stage.value, each.situation.bindings) for each in meant(recording)}
    outcome.checked = len(meaning)
    outcome.differing = [f"not told: {each}" for each in sorted(meaning - found)]
    outcome.differing += [f"told: {each}" for each in sorted(found - meaning)]


def meant(recording: Recording) -> list[lifecycle.SituationTransition]:
    """What the policy tells of the rooms of which all is known, by definition."""
    deployment = check_folder(recording.folder).deployment
    assert deployment is not None
    policy = deployment.policies[POLICY]
    told: list[lifecycle.SituationTransition] = []
    for id, room in recording.rooms.items():
        area = room["area"]
        seen = [
            each
            for each in recording.seen
            if area["x1"] - REACH <= each.value["x"] <= area["x2"] + REACH
            and area["y1"] - REACH <= each.value["y"] <= area["y2"] + REACH
        ]
        found = detect(policy, deployment.ontology, seen, {"person": recording.people, "room": {id: room}})
        told += lifecycle.step({}, found, 1 << 60, policy.hold)[1]
    return told


def _bound(row: Row) -> dict[str, str]:
    return {each["alias"]: each["id"] for each in json.loads(row.data)["bindings"]}


def _told(folder: Path) -> tuple[list[Row], dict[str, float], int, int]:
    """What was told of situations, and when; how many dead letters there are, and messages of what came late."""
    deployment = check_folder(folder).deployment
    assert deployment is not None
    names = BusNames("main")
    with BlockingBus(resolve_address(folder, deployment.settings), name="soak") as bus:
        state = bus.state(names.root_stream)
        # Messages of policies have types of their own, or several: sightings are left out, which are nearly all.
        wanted = [
            names.root("*", type)
            for type in ("situ.situation.opened", "situ.situation.continued", "situ.situation.closed")
        ]
        messages = bus.read(names.root_stream, state.first, state.last, subjects=[*wanted, names.root("*")])
        rows = [(decode_line(line), message.at / 1e6) for message in messages for line in stored_lines(message)]
        dead, late = bus.state(names.dead_stream).messages, bus.state(names.late_stream).messages
    told = {row.id: row for row, _ in rows if row.type.startswith("situ.situation.")}
    return list(told.values()), {row.id: at for row, at in rows if row.id in told}, dead, late


# ── the command ──


def search(folder: Path, *, seconds: float, steps: Sequence[int] = STEPS) -> int:
    """The highest of these rates that a short run holds."""
    best = 0
    for rate in steps:
        beside = folder / f"try-{rate}"
        beside.mkdir()
        outcome = soak(beside, rate=rate, seconds=seconds)
        print(outcome.shown(), flush=True)
        shutil.rmtree(beside)
        if not outcome.holds:
            break
        best = rate
    return best


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.security", description=__doc__)
    parser.add_argument("--rate", type=float, default=20_000, help="raw events a second")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--search", action="store_true", help="find the highest rate that holds first")
    parser.add_argument("--step", type=float, default=60.0, metavar="SECONDS", help="of each try of the search")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all that was seen here, too")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="situ-soak-"))
    try:
        rate = search(folder, seconds=options.step) if options.search else options.rate
        outcome = soak(folder, rate=rate, seconds=60 * options.minutes)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(outcome.shown())
    for each in (*outcome.missed, *outcome.invented, *outcome.differing):
        print(f"  {each}")
    if options.json:
        options.json.write_text(json.dumps(asdict(outcome), indent=1))
    return 0 if outcome.is_right and outcome.holds else 1


if __name__ == "__main__":
    sys.exit(main())
