"""Logs for tests of the archive: a bus in memory with a root log, and archivers that are killed."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Coroutine
from datetime import timedelta
from functools import wraps
from pathlib import Path
from typing import Any

from situ.archive.archiver import Archiver
from situ.archive.format import Archive
from situ.archive.parquet import ParquetArchive
from situ.bus.memory import MemoryBus
from situ.event.lines import encode_rows
from situ.event.message import StoredMessage
from situ.event.row import Row
from situ.event.subjects import pack_root
from situ.registry.snapshots import publish_deployment
from situ.settings import Settings
from situ.settings.model import Log as LogSettings
from situ.storage.state_folder import StateFolder
from situ.testing.fixtures import load_project
from tests.project_files import write

SECOND, DAY = 1_000_000, 86_400_000_000
START = 1_793_521_800 * SECOND
TYPES = """
version: 1
events:
  Level: {tank: string, level: double, at: optional timestamp}
  Alarm: {text: string, severity: int}
  Fire(Alarm): {floor: int}
  site.Door: {door: string, open: boolean, where: optional Place}
types:
  Place: {floor: int, room: optional string}
"""


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test that is a coroutine."""

    @wraps(test)
    def run(*args: Any, **named: Any) -> None:
        asyncio.run(test(*args, **named))

    return run


class Log:
    """The root log on a bus in memory; ``now`` is the clock of the zone."""

    def __init__(self, folder: Path, seed: int = 1) -> None:
        self.now = START
        self.bus = MemoryBus(clock=lambda: self.now)
        self.folder = folder
        self.deployment = load_project(
            write(folder / "plant", {"situ.yaml": "name: plant\n", "types/a.yaml": TYPES})
        ).deployment.at_version(1)
        self._dice = random.Random(seed)
        self._seqs: dict[str, int] = {}

    async def start(self) -> Log:
        await self.bus.prepare(Settings(log=LogSettings(age=timedelta(days=3650))))
        await publish_deployment(self.bus, self.deployment)
        return self

    async def add(self, messages: int, *, days: int = 1, events: int = 5) -> None:
        """So many messages of some clients, over so many days."""
        for _ in range(messages):
            self.now += self._dice.randrange(2 * days * DAY // max(messages, 1) + 1)
            client = self._dice.choice(("gate", "crane-1"))
            rows = [self._row(client) for _ in range(self._dice.randrange(1, events + 1))]
            lines = encode_rows(rows)
            for _, message in pack_root(self.bus.names, "r1", rows, lines):
                await (await self.bus.store(message))

    def _row(self, client: str) -> Row:
        seq = self._seqs[client] = self._seqs.get(client, 0) + 1
        dice = self._dice
        type, data = dice.choice(
            (
                ("Level", {"tank": "t1", "level": dice.random() * 10, "at": "2026-11-01T08:30:00.5Z"}),
                ("Level", {"tank": 'a "b"\n', "level": 1e300}),
                ("Alarm", {"text": "ünï", "severity": 3}),
                ("Fire", {"text": "x", "severity": 9, "floor": -1}),
                ("site.Door", {"door": "d", "open": True, "where": {"floor": 2}}),
                ("site.Door", {"door": "d", "open": False}),
            )
        )
        return Row(
            pos=0,
            client=client,
            incarnation=1,
            seq=seq,
            context="root" if dice.random() < 0.8 else "metric@2",
            recv=self.now - dice.randrange(1000),
            id=f"{client}-{seq}",
            source=f"{client}/s{dice.randrange(3)}",
            type=type,
            time=self.now - dice.randrange(3 * DAY) if dice.random() < 0.2 else self.now - dice.randrange(SECOND),
            ad="levels" if dice.random() < 0.5 else "",
            confidence=97.5 if dice.random() < 0.2 else None,
            ext='"subject":"x"' if dice.random() < 0.2 else "",
            data=json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode(),
            tags=dice.randrange(3),
            epoch=dice.randrange(2),
            bits=dice.randrange(3),
        )

    @property
    def place(self) -> Path:
        return self.folder / "archive"

    def archive(self) -> ParquetArchive:
        return ParquetArchive(StateFolder(str(self.place)))

    def archiver(self, archive: Archive | None = None, *, most: int = 20, **options: Any) -> Archiver:
        given = {"project": "plant", "place": "archive", "every": timedelta(seconds=1), "clock": lambda: self.now}
        return Archiver(self.bus, archive or self.archive(), most=most, **{**given, **options})

    async def messages(self) -> list[StoredMessage]:
        return [each async for each in self.bus.read(self.bus.names.root_stream, 1)]

    async def catch_up(self, archiver: Archiver | None = None) -> Archiver:
        """Archive all there is."""
        archiver = archiver or self.archiver()
        self.now += 10 * SECOND
        while await archiver.step():
            pass
        return archiver


class Killed(BaseException):
    """What a process that is killed does not catch."""


class DyingFolder(StateFolder):
    """A folder whose process dies at its n-th write, before it or in the middle of it."""

    left = 0
    torn = False

    def write(self, name: str, content: bytes, *, sync: bool = False) -> None:
        cls = DyingFolder
        cls.left -= 1
        if cls.left == 0:
            if cls.torn:
                # What a file system shows of it begins with a dot; no name of ours does.
                path = Path(self.location) / f".{Path(name).name}.1"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content[: len(content) // 2])
            raise Killed
        super().write(name, content, sync=sync)
