"""One stream in the memory of a process: what JetStream does with a configuration, without JetStream.

Sequences, ids within their window, limits, and interest: what nobody waits for is not kept. Plain data; no tasks, and
time comes from the caller.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from situ.bus.interface import Ack, StreamState
from situ.catalogue import STREAM_FULL
from situ.errors import SituError
from situ.event.message import Message, Stored

_OVERHEAD = 64  # bytes a message costs beyond its content


def fits(pattern: str, subject: str) -> bool:
    """Whether a subject is one of those a pattern with ``*`` and ``>`` means."""
    wanted, given = pattern.split("."), subject.split(".")
    for place, token in enumerate(wanted):
        if token == ">":
            return len(given) > place
        if place >= len(given) or token not in ("*", given[place]):
            return False
    return len(wanted) == len(given)


@dataclass(slots=True)
class MemoryConsumer:
    """How far a durable consumer is. It has interest in what came after it was made."""

    name: str
    groups: tuple[str, ...]
    subjects: frozenset[str]
    acknowledged: int
    handed: int
    number: int = 0
    """How many messages are acknowledged."""
    guarded: bool = False


@dataclass(slots=True)
class MemoryStream:
    """A stream with the configuration that :func:`situ.bus.streams.configurations` gives."""

    configuration: Mapping[str, Any]
    last: int = 0
    size: int = 0
    consumers: dict[str, MemoryConsumer] = field(default_factory=dict)
    _messages: dict[int, Stored] = field(default_factory=dict)
    _ids: dict[str, tuple[int, int]] = field(default_factory=dict)

    def takes(self, subject: str) -> bool:
        return any(fits(pattern, subject) for pattern in self.configuration["subjects"])

    def append(self, message: Message, now: int) -> Ack:
        """Store at this time (microseconds); B103 if it refuses when full."""
        self._expire(now)
        if message.id and (before := self._ids.get(message.id)) is not None:
            return Ack(before[0], True)
        size = _size(message)
        most = self.configuration["max_bytes"]
        if self.configuration["discard"] == "new" and 0 < most < self.size + size:
            problem = STREAM_FULL(stream=self.configuration["name"], reason="maximum bytes exceeded")
            raise SituError(problem)
        self.last += 1
        if message.id:
            self._ids[message.id] = (self.last, now)
        if self._wanted(message.subject):
            self._messages[self.last] = Stored(
                seq=self.last, subject=message.subject, body=message.body, headers=dict(message.headers), at=now
            )
            self.size += size
            while 0 < most < self.size:
                self._drop(next(iter(self._messages)))
        return Ack(self.last)

    def _wanted(self, subject: str) -> bool:
        if self.configuration["retention"] != "interest":
            return True
        return any(subject in consumer.subjects for consumer in self.consumers.values())

    def _expire(self, now: int) -> None:
        window, age = self.configuration["duplicate_window"] // 1000, self.configuration["max_age"] // 1000
        for id, (_, at) in tuple(self._ids.items()):
            if at + window > now:
                break  # they are in the order of their times
            del self._ids[id]
        for seq, message in tuple(self._messages.items()) if age else ():
            if message.at + age > now:
                break
            self._drop(seq)

    def _drop(self, seq: int) -> None:
        self.size -= _size(self._messages.pop(seq))

    def state(self) -> StreamState:
        first = next(iter(self._messages), self.last + 1)
        return StreamState(first=first, last=self.last, messages=len(self._messages), size=self.size)

    def between(self, first: int, last: int, subjects: Collection[str] = ()) -> Iterator[Stored]:
        """What is held of these sequences now."""
        held = list(self._messages)
        for seq in held[bisect_left(held, first) :]:
            if seq > last:
                return
            message = self._messages.get(seq)
            if message is not None and (not subjects or any(fits(one, message.subject) for one in subjects)):
                yield message

    def find(self, at: int) -> int:
        return next((seq for seq, message in self._messages.items() if message.at >= at), self.last + 1)

    def purge(self, before: int) -> None:
        for seq in [seq for seq in self._messages if seq < before]:
            self._drop(seq)

    # ── consumers ──

    def ensure(self, name: str, groups: Sequence[str], subjects: Collection[str], *, guarded: bool = False) -> None:
        consumer = self.consumers.get(name)
        if consumer is None:
            consumer = MemoryConsumer(name, (), frozenset(), self.last, self.last)
            self.consumers[name] = consumer
        consumer.guarded = guarded
        consumer.groups, consumer.subjects = tuple(sorted(set(groups))), frozenset(subjects)
        self._release()

    def acknowledge(self, name: str, seq: int, count: int) -> None:
        """So many messages up to this one are done with."""
        consumer = self.consumers.get(name)
        if consumer is not None and consumer.acknowledged < seq <= consumer.handed:
            consumer.acknowledged = seq
            consumer.number += count
            self._release()

    def drop(self, name: str) -> None:
        if self.consumers.pop(name, None) is not None:
            self._release()

    def _release(self) -> None:
        """Nobody waits any more for what all who wanted it have acknowledged."""
        if self.configuration["retention"] != "interest":
            return
        for seq, message in tuple(self._messages.items()):
            if not any(c.acknowledged < seq and message.subject in c.subjects for c in self.consumers.values()):
                self._drop(seq)


def _size(message: Message | Stored) -> int:
    headers = sum(len(name) + len(value) for name, value in message.headers.items())
    return len(message.subject) + len(message.body) + headers + _OVERHEAD
