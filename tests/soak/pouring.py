"""A program that publishes recorded messages through the router, each when it is due, as clients do.

Messages are put together beforehand: what is measured is not who publishes. Run as a module with the folder of the
project, the file of messages and one to write to: how many are stored, and how far behind it is, every second.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path

import situ
from situ.client.client import Client
from situ.client.publish_queue import Packet
from tests.soak.recording import GATEWAYS, Recorded, read_messages

PATIENCE = 300.0
_MOST = 64
"""Messages of a gateway that may wait to be stored."""


class Gateway:
    """A client that has its messages ready."""

    def __init__(self, node: Client) -> None:
        self._sender = node._sender  # the library makes messages of events one by one, which takes time
        self.published = 0

    async def publish(self, message: Recorded) -> None:
        sender = self._sender
        while len(sender._packets) >= _MOST:
            await asyncio.sleep(0.002)
        packet = Packet(sender.client, sender.incarnation, sender.seq + 1)
        packet.body, packet.size = message.body, len(message.body) + 2 * message.count
        sender.seq = packet.last = sender.seq + message.count
        sender._bytes += len(message.body)
        sender._packets.append(packet)
        sender._empty.clear()
        sender._send()
        self.published += message.count

    @property
    def stored(self) -> int:
        return self._sender.stored


async def pour(folder: str, messages: str, output: str) -> None:
    async with AsyncExitStack() as stack:
        gateways = [
            Gateway(await stack.enter_async_context(situ.connect(folder, client=name, timeout=PATIENCE)))
            for name in GATEWAYS
        ]
        out = Path(output)
        began, told = time.time(), 0.0

        def tell(behind: float, *, done: bool = False) -> None:
            about = {
                "began": began,
                "stored": sum(each.stored for each in gateways),
                "published": sum(each.published for each in gateways),
                "behind": behind,
                "done": done,
            }
            beside = out.with_suffix(".new")
            beside.write_text(json.dumps(about))
            beside.replace(out)

        tell(0.0)
        for message in read_messages(Path(messages)):
            due = began + message.due / 1e6
            if (wait := due - time.time()) > 0:
                await asyncio.sleep(wait)
            await gateways[message.gateway].publish(message)
            if (now := time.time()) - told > 0.5:
                told = now
                tell(now - due)
        while sum(each.stored for each in gateways) < sum(each.published for each in gateways):
            await asyncio.sleep(0.05)
        tell(0.0, done=True)
        await asyncio.Event().wait()  # until somebody who has looked at this process ends it


if __name__ == "__main__":
    asyncio.run(pour(*sys.argv[1:]))
