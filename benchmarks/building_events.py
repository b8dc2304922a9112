"""The sensors of the smart-building example, in root's own terms, as the benchmarks of the pipeline use them."""

from __future__ import annotations

import json
import random
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.zones import Sent
from situ.event.message import join_lines
from situ.routing.model import Subscription

EXAMPLE = Path(__file__).parent.parent / "examples" / "smart-building"
PER_MESSAGE = 500

# As many clients, with as many events, in the one half of the shards as in the other.
CLIENTS = ("reader-1", "reader-4", "reader-2", "reader-5", "reader-3", "reader-7", "camera-1", "camera-4")

ARRIVALS = Subscription(
    client="desk", name="arrivals", types=("TagSeen",), where="reader = 'reader-1' AND tag LIKE 'T-1%'", durable=True
)
AT_RACKS = Subscription(
    client="security",
    name="tags-at-racks",
    types=("TagSeen",),
    where="reader = 'reader-7' AND cartesian.dx BETWEEN 0 m AND 2 m",
    durable=True,
)
FACES = Subscription(
    client="security", name="faces-close", types=("FaceSeen",), where="polar.r < 3 m", durable=True
)  # feet in the event, metres in the question
SUBSCRIPTIONS = (ARRIVALS, AT_RACKS, FACES)


SENSORS = """\
version: 1
types:
  Cartesian: {dx: double cm, dy: double cm}
  Polar: {r: double ft, theta: double deg}
events:
  TagSeen: {reader: string, tag: TagId, cartesian: Cartesian}
  FaceSeen: {camera: string, face: FaceId, polar: Polar}
"""


def project_files(*, situ: str = "") -> dict[str, str]:
    """The example's types, functions and publishers; its subscribers are left to the benchmark."""
    names = ("types/building.yaml", "functions/building.yaml", "clients/sensors.yaml")
    files = {name: (EXAMPLE / name).read_text() for name in names}
    # Their contexts and scopes are not declared here.
    files["clients/sensors.yaml"] = re.sub(r"context: \w+, |scopes: {[^}]*}, ", "", files["clients/sensors.yaml"])
    return {"situ.yaml": f"version: 1\nname: bench\n{situ}", "types/sensors.yaml": SENSORS, **files}


def messages(per_message: int = PER_MESSAGE) -> list[Sent]:
    """A few different messages of each client, in turns; events have about 200 bytes."""
    dice = random.Random(7)
    return [
        Sent(client, join_lines(_event(client, number, dice) for number in range(per_message)), per_message)
        for _ in range(4)
        for client in CLIENTS
    ]


def _event(client: str, number: int, dice: random.Random) -> bytes:
    time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    type, data = ("TagSeen", _tag) if client.startswith("reader") else ("FaceSeen", _face)
    event = {
        "specversion": "1.0",
        "id": f"{dice.randrange(16**8):08x}-{number}",
        "source": client,
        "type": type,
        "time": time,
        "situad": f"{client}/seen",
        "data": data(client, dice),
    }
    return json.dumps(event, separators=(",", ":")).encode()


def _tag(client: str, dice: random.Random) -> dict[str, Any]:
    place = {"dx": round(dice.uniform(0, 800), 1), "dy": round(dice.uniform(-400, 400), 1)}
    return {"reader": client, "tag": f"T-{dice.randrange(1000)}", "cartesian": place}


def _face(client: str, dice: random.Random) -> dict[str, Any]:
    place = {"r": round(dice.uniform(2, 40), 2), "theta": round(dice.uniform(-60, 60), 2)}
    return {"camera": client, "face": f"F-{dice.randrange(1000)}", "polar": place}
