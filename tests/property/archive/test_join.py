"""Archive and bus together are the log, wherever one ends and the other begins."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

from situ.archive.history import ArchivedBus
from tests.archives import Log
from tests.volume import cases


@cases(12, 600)
def test_the_log_is_read_as_one_for_any_cut(tmp_path: Path, cases: int) -> None:
    for seed in range(cases):
        asyncio.run(_read_with_cuts(tmp_path / str(seed), seed))


async def _read_with_cuts(folder: Path, seed: int) -> None:
    dice = random.Random(seed)
    log = await Log(folder, seed).start()
    stream = log.bus.names.root_stream
    await log.add(dice.randrange(1, 25), days=2)
    archiver = await log.catch_up(log.archiver(most=dice.randrange(1, 12)))
    await log.add(dice.randrange(0, 8))
    messages = await log.messages()
    archived = archiver.metrics.last
    # The bus may lose what is archived, before it is read and while it is.
    await log.bus.purge(stream, dice.randrange(1, archived + 2))
    joined = ArchivedBus(log.bus, log.archive())
    for _ in range(4):
        first = dice.randrange(1, len(messages) + 1)
        last = dice.choice((None, dice.randrange(first, len(messages) + 1)))
        wanted = [each for each in messages if each.seq >= first and (last is None or each.seq <= last)]
        found = []
        async for message in joined.read(stream, first, last):
            found.append(message)
            if dice.random() < 0.2:
                await log.bus.purge(stream, dice.randrange(1, archived + 2))
        assert found == wanted, (seed, first, last)
