"""A publisher in a process of its own, whose event time runs faster than the clock.

    python -m tests.quality_publisher FOLDER SERVER CLIENT --rate 2 --most 60 [--tells]

It publishes as many events a minute of event time as it operates at, and follows advice. With ``--tells`` it says so;
without, what it does has to be measured. Each line that it writes is a word and what it is about.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from datetime import UTC, datetime, timedelta

import situ
from situ.client.capabilities import Accept, ReactionManager
from situ.client.client import Client
from situ.quality.negotiation.feedback import Advice


class Publisher:
    def __init__(self, node: Client, options: argparse.Namespace) -> None:
        self.node = node
        self.rate: float = options.rate
        self.most: float = options.most
        self.tells: bool = options.tells
        self.speed: float = options.speed
        self.begun: float = options.begun or time.time()

    def follow(self, advice: Advice) -> Accept:
        if "rate" in advice.values:
            self.rate = float(advice.values["rate"])
        print(f"{advice.kind} {self.rate:g}", flush=True)
        return Accept()

    def adapt(self, advice: Advice) -> None:
        self.follow(advice)

    async def run(self) -> None:
        capability = {"lb": 1, "ub": self.most, "cv": self.rate, "cost": "0.1 * x"}
        await self.node.capabilities.register("Level", {"rate": capability})
        if self.tells:
            ReactionManager(self.node.capabilities, self.adapt)
        else:
            self.node.capabilities.on_advice(self.follow)
        print("ready", flush=True)
        number, at = 0, self.seconds()
        while True:
            await asyncio.sleep((at - self.seconds()) / self.speed)
            number += 1
            when = datetime.fromtimestamp(self.begun + at, UTC) - timedelta(hours=12)
            await self.node.publish_event("Level", tank=self.node.client, level=number, time=when)
            at += 60 / self.rate

    def seconds(self) -> float:
        """How far event time is, for all publishers that began together."""
        return (time.time() - self.begun) * self.speed


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("server")
    parser.add_argument("client")
    parser.add_argument("--rate", type=float, default=2)
    parser.add_argument("--most", type=float, default=60)
    parser.add_argument("--speed", type=float, default=120)
    parser.add_argument("--begun", type=float, default=0, help="when event time began, in seconds since the epoch")
    parser.add_argument("--tells", action="store_true")
    options = parser.parse_args()
    servers = [options.server] if options.server else []
    async with situ.connect(options.folder, client=options.client, servers=servers) as node:
        await Publisher(node, options).run()


if __name__ == "__main__":
    asyncio.run(main())
