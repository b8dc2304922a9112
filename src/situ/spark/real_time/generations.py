"""Generations of real-time queries: what they deliver from where on, as files that the engine and they share.

A generation is written once and never changed: the version of the deployment that it speaks, for each client and
subscription what is made of records, and the offset of each partition from which on it delivers. Its queries have a
checkpoint each below it. `current` names the generation that the engine is to leave deliveries to; a batch of the
engine has that number in its offset, so a batch that is repeated leaves out the same.

Nothing is lost at a change, since both overlap. A generation begins where the engine has not read yet, and is named as
current only when its queries run. One that is current no more goes on until it has delivered all that batches left to
it: up to where the first batch begins that does not name it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping

import msgspec

from situ.lang.json_form import StoredForm
from situ.spark.checkpoint import Offset, last_batch, read_offset
from situ.storage.state_folder import StateFolder

FOLDER = "real-time"
"""Beside what else the checkpoint of the query of events has."""
_CURRENT = "current"


def partition_key(topic: str, partition: int) -> str:
    return f"{topic} {partition}"


class Generation(StoredForm, frozen=True, kw_only=True):
    """What some queries deliver."""

    number: int
    version: int
    """Of the deployment."""
    digests: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)
    """Client → subscription → what is made of its records, as a hash."""
    starts: dict[str, dict[str, int]] = msgspec.field(default_factory=dict)
    """Client → ``topic partition`` → the first offset that is delivered."""

    def is_same(self, digests: Mapping[str, Mapping[str, str]], starts: Mapping[str, Mapping[str, int]]) -> bool:
        """Whether it delivers this, of these partitions."""
        named = {client: set(each) for client, each in self.starts.items()}
        return self.digests == digests and named == {client: set(each) for client, each in starts.items()}

    def takes(self, client: str, subscription: str, digest: str, place: str, offset: int) -> bool:
        """Whether a plain record is delivered by it, in the way that is known by the digest."""
        start = self.starts.get(client, {}).get(place)
        return (
            start is not None and offset >= start and self.digests.get(client, {}).get(subscription, "") == digest != ""
        )


class Generations:
    """Those of one zone, in a folder beside the checkpoint of the engine."""

    def __init__(self, events: StateFolder) -> None:
        """``events``: the checkpoint of the query of events."""
        self._events = events
        self._folder = events / FOLDER

    def current(self) -> int:
        """The generation that the engine is to leave deliveries to; 0 if none is."""
        text = self._folder.load(_CURRENT)
        return 0 if text is None else int(json.loads(text)["generation"])

    def make_current(self, number: int) -> None:
        content = {"generation": number, "at": time.time_ns() // 1000}
        self._folder.save(_CURRENT, json.dumps(content).encode())

    def _since(self) -> int:
        """When the current one was named, in microseconds."""
        text = self._folder.load(_CURRENT)
        return 0 if text is None else int(json.loads(text)["at"])

    def load(self, number: int) -> Generation:
        """One that was written; N101 if it is not there: deliveries were left to it."""
        text = self._folder.load(_name(number))
        if text is None:
            raise self._folder.damaged("there is no such file", _name(number))
        return Generation.from_json(json.loads(text))

    def numbers(self) -> list[int]:
        """Those that are not done with."""
        names = (each.removesuffix(".json") for each in self._folder.names() if each.endswith(".json"))
        return sorted(int(each) for each in names if each.isdigit())

    def add(self, version: int, digests: dict[str, dict[str, str]], starts: dict[str, dict[str, int]]) -> Generation:
        """A new one, behind all there ever were."""
        known = [int(each) for each in self._folder.names() if each.isdigit()]  # folders of those that are done with
        number = 1 + max([*known, *self.numbers(), self.current()], default=0)
        made = Generation(number=number, version=version, digests=digests, starts=starts)
        self._folder.save(_name(number), json.dumps(made.as_json()).encode())
        return made

    def remove(self, number: int) -> None:
        """One that is done with; the folder of its checkpoints stays as a mark that the number was given."""
        self._folder.remove(_name(number))

    def checkpoint(self, number: int, client: str) -> StateFolder:
        return self._folder / str(number) / client

    # ── the engine ──

    def reached(self) -> Offset | None:
        """The offset of the engine's last batch that was begun; None if there is none yet."""
        batch = last_batch(self._events, "offsets")
        return None if batch is None else read_offset(self._events, batch)

    def left_until(self, number: int) -> Mapping[str, int] | None:
        """Up to which offset of each ``client topic partition`` batches left deliveries to a generation; None as long
        as the next one may do so.

        A batch under way may have been planned when this one was still current: only one whose time is behind the
        change tells that no other follows. Spark keeps the offsets of many batches; that of the first which does not
        name this one is looked for from behind.
        """
        batch = last_batch(self._events, "offsets")
        if batch is None or self.current() == number:
            return None
        first = read_offset(self._events, batch)
        if first.real_time == number or first.clock <= self._since():
            return None
        kept = {int(name) for name in (self._events / "offsets").names() if name.isdigit()}
        while (batch := batch - 1) in kept:
            before = read_offset(self._events, batch)
            if before.real_time == number:
                break
            first = before
        return {key: begin for key, (begin, _) in first.topics.items()}


def _name(number: int) -> str:
    return f"{number}.json"
