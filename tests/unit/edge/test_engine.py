"""The edge engine and what comes to it again: nothing is lost, and nobody gets what was before he asked."""

from __future__ import annotations

import asyncio
from pathlib import Path

from situ.bus.interface import StoreAck
from situ.bus.memory import MemoryBus
from situ.edge.engine import EdgeEngine
from situ.event.lines import decode_line
from situ.event.message import EventKey, Message, split_lines
from situ.event.subjects import BusNames
from situ.lang.catalogue import STREAM_FULL
from situ.lang.problems import SituError
from situ.registry.snapshots import publish_deployment
from situ.routing.model import Subscription
from tests.conformance.generated import Change, Send
from tests.conformance.on_edge import run_on_edge
from tests.zone import deployment_of

GOOD = b'{"specversion":"1.0","id":"1","source":"press-1","type":"Reading","data":{"sensor":"s","value":1.5}}'
BAD = GOOD.replace(b"1.5", b'"hot"')
DEAD = Subscription(client="desk", name="dead", types=("situ.deadletter",), durable=True)


def sent(first: int, *lines: bytes) -> Send:
    return Send(EventKey("press-1", 1, first), len(lines), b"[\n" + b",\n".join(lines) + b"\n]", 1_700_000_000_000_000)


def test_dead_letters_that_come_again_are_not_for_those_who_asked_later(tmp_path: Path) -> None:
    for number, message in enumerate((sent(1, BAD), sent(1, GOOD, BAD), sent(1, BAD, GOOD))):
        steps = (Change({}), message, Change({DEAD.id: DEAD}), message)
        found = run_on_edge(tmp_path / str(number), steps)
        assert len(found.dead) == 1
        assert found.durable == {}


class _FullOnce(MemoryBus):
    """Refuses the first message for the root log."""

    refused = False

    def hand_over(self, message: Message, *, lane: str = "") -> asyncio.Future[StoreAck]:
        if self.refused or not message.subject.startswith(BusNames("main").root("r1", "")):
            return super().hand_over(message, lane=lane)
        self.refused = True
        future: asyncio.Future[StoreAck] = asyncio.get_running_loop().create_future()
        future.set_exception(SituError(STREAM_FULL(stream="ROOT", reason="its limit")))
        return future


def test_what_failed_is_taken_when_it_comes_again_though_dead_letters_came_behind_it(tmp_path: Path) -> None:
    async def main() -> list[int]:
        async with _FullOnce() as bus:
            deployment = deployment_of(tmp_path, ()).at_version(1)
            await bus.prepare(deployment.settings)
            await publish_deployment(bus, deployment)
            engine = EdgeEngine(bus, None)
            await engine.start()
            failed, behind = sent(1, GOOD), sent(2, BAD)
            taken = [await engine.take(each.key, each.count, each.body, each.received) for each in (failed, behind)]
            outcomes = await asyncio.gather(*taken, return_exceptions=True)
            assert [isinstance(each, SituError) for each in outcomes] == [True, False]
            for each in (failed, behind):
                await (await engine.take(each.key, each.count, each.body, each.received))
            await engine.stop()
            stored = [each async for each in bus.read(BusNames("main").root_stream, 1)]
            return [decode_line(line).seq for each in stored for line in split_lines(each.body)]

    assert asyncio.run(main()) == [1]
