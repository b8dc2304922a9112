"""Clients under load: programs that publish numbered events or write down what they get, and what each should get.

An event is a function of its publisher and its number, so that what every subscriber must have can be worked out
without asking anybody. The programs are ``publish``, ``pour``, ``record`` and ``follow``, with the folder of a project.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import situ
from situ.lang.problems import SituError
from tests.faults.deployed import PATIENCE, Deployed, Forked, wait_for

BAD_EVERY = 997
ALARM_EVERY = 10


def event_of(number: int) -> tuple[str, dict[str, Any]]:
    """Type and data of an event; one in a thousand is not what its type says."""
    if number % ALARM_EVERY == 0:
        return "Alarm", {"text": f"alarm {number}", "level": number // ALARM_EVERY % 5, "number": number}
    value: Any = (number * 7919) % 100
    if number % BAD_EVERY == 0:
        value = "unknown"
    return "Reading", {"sensor": f"s{number % 7}", "value": value, "number": number}


def is_bad(number: int) -> bool:
    return event_of(number)[1].get("value") == "unknown"


@dataclass(frozen=True, slots=True)
class Wish:
    """A durable subscription, with the same filter once for Situ and once for this test."""

    client: str
    types: tuple[str, ...]
    where: str
    wants: Callable[[str, Mapping[str, Any]], bool]

    def expected(self, count: int) -> list[int]:
        """The numbers of one publisher's events that it must get, in order."""
        return [number for number in range(1, count + 1) if not is_bad(number) and self.wants(*event_of(number))]


WISHES = (
    Wish("board", ("Alarm", "Reading"), "", lambda type, data: True),
    Wish("desk", ("Reading",), "value > 50", lambda type, data: type == "Reading" and data["value"] > 50),
    Wish("guard", ("Alarm",), "level >= 3", lambda type, data: type == "Alarm" and data["level"] >= 3),
)


# ── the programs ──────────────────────────────────────────────────────────────────────────────────


async def publish(folder: str, client: str, count: int, rate: float, output: str) -> None:
    """Publish events 1 to ``count``, at most ``rate`` a second, and write how many are stored when all are.

    Ends before that when a file beside the output asks it to.
    """
    enough = Path(f"{output}.enough")
    async with situ.connect(folder, client=client, timeout=PATIENCE, queue_timeout=PATIENCE) as node:
        for type in ("Reading", "Alarm"):
            await node.advertise(type)
        Path(output).touch()
        began, first = time.monotonic(), 1
        while first <= count and not enough.exists():
            due = min(int((time.monotonic() - began) * rate), count)
            for number in range(first, due + 1):
                type, data = event_of(number)
                await node.publish_event(type, data)
            first = max(due + 1, first)
            await asyncio.sleep(0.02)
        assert await node.flush(PATIENCE), "everything published is stored in the end"
        status = await node.status()
        Path(output).write_text(json.dumps({"stored": status.stored, "reconnects": status.reconnects}))


async def pour(folder: str, client: str, events: str, rate: float, output: str) -> None:
    """Publish the events of a file, a line each, at most ``rate`` a second; their number when all are stored."""
    async with situ.connect(folder, client=client, timeout=PATIENCE, queue_timeout=PATIENCE) as node:
        Path(output).touch()
        began = time.monotonic()
        lines = Path(events).read_text().splitlines()
        for number, line in enumerate(lines):
            await asyncio.sleep(max(began + number / rate - time.monotonic(), 0))
            about = json.loads(line)
            await node.publish_event(about.pop("type"), about.pop("data"), **about)
        assert await node.flush(PATIENCE), "everything published is stored in the end"
        Path(output).write_text(str(len(lines)))


async def record(folder: str, client: str, types: str, where: str, output: str) -> None:
    """Append a line for each event of a durable subscription, for ever."""
    while True:
        try:
            await _record(folder, client, types.split(","), where or None, output)
        except SituError as error:
            if error.code != "B108":
                raise
            await asyncio.sleep(0.2)  # no run is there just now


async def _record(folder: str, client: str, types: list[str], where: str | None, output: str) -> None:
    async with situ.connect(folder, client=client, timeout=PATIENCE) as node:
        await node.register_for_events(*types, where=where, durable="all", wait=False)
        with open(output, "ab", buffering=0) as file:  # noqa: PTH123 - unbuffered: a line is written before the next event
            file.write(b"ready\n")
            async for event in node.events(*types, where=where, durable="all"):
                file.write(f"{event.key} {event.data.number} {int(event.redelivered)}\n".encode())


async def follow(folder: str, client: str, types: str, output: str) -> None:
    """Append the source, id and time of each event of a durable subscription, for ever."""
    while True:
        try:
            async with situ.connect(folder, client=client, timeout=PATIENCE) as node:
                await node.register_for_events(*types.split(","), durable="all", wait=False)
                with open(output, "ab", buffering=0) as file:  # noqa: PTH123 - as above
                    file.write(b"ready\n")
                    async for event in node.events(*types.split(","), durable="all"):
                        file.write(f"{event.source} {event.id} {event.time.timestamp():.6f}\n".encode())
        except SituError as error:
            if error.code != "B108":
                raise
            await asyncio.sleep(0.2)  # no run is there just now


# ── starting them ─────────────────────────────────────────────────────────────────────────────────


class Program:
    """One of the programs above, as a process."""

    def __init__(self, name: str, *arguments: object, log: Path) -> None:
        self._command = [name, *map(str, arguments)]
        self._log = log
        self.process: Forked | None = None

    def start(self) -> None:
        self.process = Forked(work, self._command, folder=Path.cwd(), out=self._log, err=self._log)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def check(self) -> None:
        """It runs, or ended well."""
        assert self.process is not None
        if self.process.poll():
            raise AssertionError(f"{self._command} ended:\n{self._log.read_text()[-3000:]}")

    @property
    def done(self) -> bool:
        self.check()
        assert self.process is not None
        return self.process.poll() is not None


class Publisher(Program):
    def __init__(self, folder: Path, client: str, count: int, rate: float) -> None:
        self.client, self.count = client, count
        self._output = folder.parent / f"{client}.stored"
        super().__init__("publish", folder, client, count, rate, self._output, log=folder.parent / f"{client}.log")

    def enough(self) -> None:
        """Stop publishing: ``count`` is then what was stored."""
        Path(f"{self._output}.enough").touch()
        wait_for(lambda: self.done, f"{self.client} is done")
        self.count = self.stored

    @property
    def ready(self) -> bool:
        self.check()
        return self._output.exists()

    @property
    def stored(self) -> int:
        return int(json.loads(self._output.read_text())["stored"])


@dataclass(frozen=True, slots=True)
class Seen:
    """A line of a recorder."""

    key: str
    number: int
    redelivered: bool

    @property
    def client(self) -> str:
        return self.key.split(".")[0]


class Recorder(Program):
    def __init__(self, folder: Path, wish: Wish) -> None:
        self.wish, self.client = wish, wish.client
        self.output = folder.parent / f"{wish.client}.seen"
        self.output.touch()
        log = folder.parent / f"{wish.client}.log"
        super().__init__("record", folder, wish.client, ",".join(wish.types), wish.where, self.output, log=log)

    @property
    def ready(self) -> bool:
        self.check()
        return b"ready" in self.output.read_bytes()

    @property
    def count(self) -> int:
        """About how many events came."""
        return self.output.read_bytes().count(b"\n")

    def seen(self) -> list[Seen]:
        # The last line may be cut off where the process was killed while it wrote.
        lines = self.output.read_text().split("\n")[:-1]
        return [Seen(key, int(number), again == "1") for key, number, again in map(str.split, filter_events(lines))]


def filter_events(lines: Iterable[str]) -> list[str]:
    return [line for line in lines if line != "ready"]


def start_all(programs: Iterable[Program]) -> None:
    for program in programs:
        program.start()


def kill_all(programs: Iterable[Program]) -> None:
    for program in programs:
        program.kill()


def wait_ready(programs: Iterable[Publisher | Recorder]) -> None:
    """All of them are connected: who comes while no run is there is told so, and goes."""
    for program in programs:
        wait_for(lambda program=program: program.ready, f"{program.client} is connected")


def working(at: Deployed, recorders: list[Recorder]) -> list[Recorder]:
    """These, of which none has ended, nor has the run."""
    at.check()
    for each in recorders:
        each.check()
    return recorders


def check_seen(recorder: Recorder, publishers: Iterable[Publisher], *, killed: bool = False) -> None:
    """Every event it wanted, once, in each publisher's order. One that was killed may see what it died at again."""
    seen = recorder.seen()
    times = Counter(each.key for each in seen)
    if killed:
        first: set[str] = set()
        for each in seen:
            assert each.key not in first or each.redelivered, (
                f"{recorder.wish.client}: {each} does not say it is a repeat"
            )
            first.add(each.key)
    else:
        repeats = {key: count for key, count in times.items() if count > 1}
        assert not repeats, f"{recorder.wish.client} saw {len(repeats)} events twice: {list(repeats.items())[:5]}"
    once = {each.key: each for each in reversed(seen)}
    got: dict[str, list[int]] = {publisher.client: [] for publisher in publishers}
    for each in reversed(once.values()):
        got[each.client].append(each.number)
    for publisher in publishers:
        expected, found = recorder.wish.expected(publisher.count), got[publisher.client]
        who = f"{recorder.wish.client} from {publisher.client}"
        missing = sorted(set(expected) - set(found))
        assert not missing, f"{who}: {len(missing)} of {len(expected)} are missing: {missing[:10]}"
        extra = sorted(set(found) - set(expected))
        assert not extra, f"{who}: {len(extra)} too many: {extra[:10]}"
        wrong = next((n for n, (one, other) in enumerate(zip(found, expected, strict=True)) if one != other), None)
        assert wrong is None, f"{who}: order broken at {wrong}: {found[max(wrong - 2, 0) : wrong + 5]}"


def work(command: list[str]) -> None:
    name, *arguments = command
    if name == "publish":
        folder, client, count, rate, output = arguments
        asyncio.run(publish(folder, client, int(count), float(rate), output))
    elif name == "pour":
        folder, client, events, rate, output = arguments
        asyncio.run(pour(folder, client, events, float(rate), output))
    elif name == "follow":
        asyncio.run(follow(*arguments))
    else:
        asyncio.run(record(*arguments))
