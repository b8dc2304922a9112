"""The monitoring desk: wants to know often enough who shows a badge at the front door, more often during an alarm.

    python programs/monitor.py

What it expects stands in `quality/badges.yaml`: five to ten badges a minute, of which it can be sure to 75 %. While a
guest is alone where he should not be it expects more, and less again afterwards. It is told what is made of that.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import situ

PROJECT = Path(__file__).parents[1]
CONFIDENCE = {"lb": 75, "ub": 95}
CALM = {"rate": {"lb": 5, "ub": 10}, "confidence": CONFIDENCE}
ALERT = {"rate": {"lb": 30, "ub": 45}, "confidence": CONFIDENCE}


class Desk:
    """Expects more as long as something is wrong."""

    def __init__(self, client: situ.Client) -> None:
        self.client = client
        self.open: set[str] = set()

    async def situation(self, event: situ.Event) -> None:
        """A guest is alone where he should not be, or no longer."""
        before, situation = bool(self.open), situ.Situation.of(event)
        if situation.end is None:
            self.open.add(situation.id)
        else:
            self.open.discard(situation.id)
        if before != bool(self.open):
            print(f"An alarm: {situation.text}" if self.open else "All is well again", flush=True)
            await self.expect(ALERT if self.open else CALM)

    async def expect(self, need: dict[str, dict[str, int]]) -> None:
        rate = need["rate"]
        print(f"It wants {rate['lb']} to {rate['ub']} badges a minute, 75 % sure", flush=True)
        await self.client.expectations.update("watch", need=need)


def heard(change: situ.StateChange) -> None:
    """What becomes of what it expects, in words."""
    if change.expectation == "watch":
        short = ", ".join(f"{each.property} {each.current:g}" for each in change.reasons if each.current is not None)
        if change.absent:
            short = ", ".join(each for each in (short, f"{change.absent} declared, not connected") if each)
        why = f" ({change.why}: {short})" if short else ""
        print(f"  {change.state}{why}", flush=True)


async def main() -> None:
    async with situ.connect(PROJECT, client="monitor") as client:
        desk = Desk(client)
        print("It wants 5 to 10 badges a minute, 75 % sure", flush=True)
        client.expectations.on_change(heard)
        await client.add_listener("policy unaccompanied-guest", desk.situation)
        async for _ in client.events(durable="badges"):
            pass


if __name__ == "__main__":
    asyncio.run(main())
