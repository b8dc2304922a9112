"""The monitoring desk: wants to know often enough who shows a badge at the front door, more often during an alarm.

    python programs/monitor.py

What it expects stands in `quality/badges.yaml`: five to ten badges a minute, of which it can be sure to 75 %. While a
guest is alone where he should not be it expects more, and less again afterwards. It is told what is made of that.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import situ
from situ.client.client import Client
from situ.client.events import Event
from situ.quality.negotiation.feedback import StateChange

PROJECT = Path(__file__).parents[1]
CONFIDENCE = {"lb": 75, "ub": 95}
CALM = {"rate": {"lb": 5, "ub": 10}, "confidence": CONFIDENCE}
ALERT = {"rate": {"lb": 30, "ub": 45}, "confidence": CONFIDENCE}


class Desk:
    """Expects more as long as something is wrong."""

    def __init__(self, node: Client) -> None:
        self.node = node
        self.open: set[str] = set()

    async def situation(self, event: Event) -> None:
        """A guest is alone where he should not be, or no longer."""
        before, situation = bool(self.open), event.data.situation
        if event.type.endswith(".closed"):
            self.open.discard(situation)
        else:
            self.open.add(situation)
        if before != bool(self.open):
            print(f"An alarm: {event.data.text}" if self.open else "All is well again", flush=True)
            await self.expect(ALERT if self.open else CALM)

    async def expect(self, need: dict[str, dict[str, int]]) -> None:
        rate = need["rate"]
        print(f"It wants {rate['lb']} to {rate['ub']} badges a minute, 75 % sure", flush=True)
        await self.node.expectations.update("watch", need=need)


def heard(change: StateChange) -> None:
    """What becomes of what it expects, in words."""
    if change.expectation == "watch":
        short = ", ".join(f"{each.property} {each.current:g}" for each in change.reasons if each.current is not None)
        if change.absent:
            short = ", ".join(each for each in (short, f"{change.absent} declared, not connected") if each)
        why = f" ({change.why}: {short})" if short else ""
        print(f"  {change.state}{why}", flush=True)


async def main() -> None:
    async with situ.connect(PROJECT, client="monitor") as node:
        desk = Desk(node)
        print("It wants 5 to 10 badges a minute, 75 % sure", flush=True)
        node.expectations.on_change(heard)
        await node.add_listener("policy unaccompanied-guest", desk.situation)
        async for _ in node.events(durable="badges"):
            pass


if __name__ == "__main__":
    asyncio.run(main())
