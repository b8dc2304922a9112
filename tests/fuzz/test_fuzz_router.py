"""A real run, and a client with valid credentials that sends it everything: half a minute always, ten at length.

The run stays up and goes on serving others, tells the client nothing of them, and takes no more memory for it.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from situ.bus.credentials import read_client
from situ.bus.folder_lock import read_lock
from situ.client.connection import connect
from situ.protocol.permissions import inbox_of
from tests.faults.deployed import Deployed, deployed
from tests.fuzz.router_traffic import Traffic

FILES = {
    "types/all.yaml": (
        "version: 1\nevents:\n  Level: {tank: string, level: double}\n  Alarm: {text: string}\n"
        "  Secret: {word: string, n: long}\n"
    ),
    "scopes.yaml": """
version: 1
dimensions:
  house: {mode: closed, scopes: {inner: {}, outer: {}}}
clients:
  alice: {house: [inner]}
  bob: {house: [inner]}
  mallory: {house: [outer]}
""",
    "clients/all.yaml": """
version: 1
clients:
  alice: {scopes: {house: inner}, advertisements: {secrets: {type: Secret}}}
  bob: {scopes: {house: inner}, subscriptions: {secrets: {types: [Secret], durable: true}}}
  mallory: {scopes: {house: outer}, advertisements: {levels: {type: Level}}}
""",
}
WORD = "for-bobs-eyes-only"
INGRESS = "situ.main.in.r1.mallory"
MOST = 150 * 1024 * 1024
"""Bytes that the process may take more than when it was idle."""
_AT_ONCE = 64
SECONDS = float(os.environ.get("FUZZ_SECONDS", "30"))


@dataclass
class Fuzzed:
    sent: int = 0
    answered: Counter[str] = field(default_factory=Counter)
    leaked: list[bytes] = field(default_factory=list)
    delivered: list[int] = field(default_factory=list)
    slowest: float = 0.0
    memory: list[int] = field(default_factory=list)


async def fuzz(at: Deployed, credentials: Path, seconds: float, seed: int) -> Fuzzed:
    found = Fuzzed()
    folder = at.folder
    known, holder = read_client(credentials.read_text()), read_lock(folder)
    assert known is not None
    assert holder is not None
    client = Client()

    async def ignore(error: Exception) -> None:
        """What the server complains about is its own matter."""

    url = f"nats://127.0.0.1:{holder.ports['bus']}"
    await client.connect(
        [url], nkeys_seed_str=known.seed, inbox_prefix=inbox_of("mallory"), error_cb=ignore, max_reconnect_attempts=-1
    )
    outstanding: set[str] = set()

    async def hear(message: Msg) -> None:
        outstanding.discard(message.subject)
        if WORD.encode() in message.data or WORD in str(message.headers):
            found.leaked.append(message.data[:500])
        try:
            said = json.loads(message.data)
            found.answered[said.get("code", "ok") if isinstance(said, dict) else "ok"] += 1
        except ValueError:
            found.answered["events"] += 1

    for subject in (f"{inbox_of('mallory')}.>", "situ.main.live.mallory", "situ.main.feedback.*.mallory"):
        await client.subscribe(subject, cb=hear)
    process, traffic = psutil.Process(at.pid), Traffic(seed)
    inbox = inbox_of("mallory")
    until = time.monotonic() + seconds
    async with connect(folder, client="alice") as alice, connect(folder, client="bob") as bob:
        secrets = bob.events("Secret", durable="secrets")
        number = 0
        while time.monotonic() < until:
            assert at.alive, at.shown
            for _ in range(200):
                message = traffic.next()
                found.sent += 1
                reply = f"{inbox}.f{found.sent}"
                if len(outstanding) >= _AT_ONCE:
                    await asyncio.sleep(0.002)
                    outstanding.clear()  # not everything is answered
                outstanding.add(reply)
                headers = {name: value for name, value in message.headers.items() if value.isascii()}
                await client.publish(INGRESS, message.body, reply=reply, headers=headers or None)
            began = time.monotonic()
            await (await alice.publish_event("Secret", word=WORD, n=number)).stored
            async with asyncio.timeout(60):
                found.delivered.append((await anext(secrets)).data.n)
            found.slowest = max(found.slowest, time.monotonic() - began)
            number += 1
            found.memory.append(process.memory_info().rss)
        await secrets.aclose()
    await client.close()
    return found


def check(tmp_path: Path, seconds: float, seed: int) -> Fuzzed:
    credentials = tmp_path / "mallory.creds"
    with deployed(tmp_path / "plant", engine="edge", situ="overlay: {child_grace: 5 s}\n", files=FILES) as at:
        at.command("client", "add", "mallory", "--out", str(credentials))
        before = psutil.Process(at.pid).memory_info().rss
        found = asyncio.run(fuzz(at, credentials, seconds, seed))
        (figures,) = at.command("status")["engines"].values()
        print(f"{found.sent} sent, {dict(found.answered)}, slowest {found.slowest:.2f} s, {figures['codes']}")
        assert figures["state"] == "running"
        assert figures["failures"] == {}, (figures["failures"], at.log[-6000:])
        assert "E705" not in figures["codes"], at.log[-6000:]
        assert figures["restarts"] == 0
        assert at.stop() == 0
    assert not found.leaked
    assert found.delivered == list(range(len(found.delivered))), "others are served, in order"
    assert found.delivered
    assert found.answered["R101"], "some of it was understood to be nothing"
    assert found.answered["ok"], "and some to be something"
    assert found.slowest < 20
    assert max(found.memory) - before < MOST, (before, found.memory)
    return found


def test_for_half_a_minute(tmp_path: Path) -> None:
    check(tmp_path, SECONDS, seed=18)


@pytest.mark.soak
def test_for_ten_minutes(tmp_path: Path) -> None:
    found = check(tmp_path, 600, seed=time.time_ns())
    third = len(found.memory) // 3
    # What the last third takes more than the second is what leaks: caches are full by then.
    assert max(found.memory[2 * third :]) - max(found.memory[third : 2 * third]) < MOST // 5
