"""The memory transport: ordered links between anybody, and the store of a zone with its streams and keys.

Links keep order, and lose or repeat what a fault makes them. The store is one place for all routers of its zone;
without a quorum, or cut off, it answers nobody. A request that got no answer may have been done all the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

WINDOW = 32
"""Entries of a stream that a reader has in hand."""


@dataclass(slots=True)
class Stream:
    """Entries from place 1 on; ids of all of them; who reads it, and up to where they were sent entries."""

    entries: list[Any] = field(default_factory=list)
    ids: dict[str, int] = field(default_factory=dict)
    committed: int = 0
    """All up to here are committed."""
    ahead: set[int] = field(default_factory=set)
    """Places that are committed behind one that is not."""
    readers: dict[str, int] = field(default_factory=dict)
    waiting: list[tuple[set[int], str, int]] = field(default_factory=list)
    """Places, router and ticket of who wants to know when they are committed."""

    def is_committed(self, place: int) -> bool:
        return place <= self.committed or place in self.ahead


class Store:
    """The store of a zone: what is done to it happens at once and as a whole."""

    def __init__(self, zone: str) -> None:
        self.zone = zone
        self.up = True
        self.keys: dict[str, Any] = {}
        self.streams: dict[str, Stream] = {}
        self.published: dict[str, tuple[str, int]] = {}
        """Id of an event of the root log, which is one for the zone → its slice and place."""

    def stream(self, name: str) -> Stream:
        found = self.streams.get(name)
        if found is None:
            found = self.streams[name] = Stream()
        return found

    def append(self, name: str, entries: Iterable[tuple[str, Any]]) -> tuple[tuple[str, int], ...]:
        """Where each entry is; one that was there before stays where it was."""
        stream = self.stream(name)
        is_root = name.startswith("root/")
        places: list[tuple[str, int]] = []
        for id, item in entries:
            if is_root:
                known = self.published.get(id)
                if known is None:
                    stream.entries.append(item)
                    known = self.published[id] = (name, len(stream.entries))
                places.append(known)
                continue
            place = stream.ids.get(id)
            if place is None:
                stream.entries.append(item)
                place = stream.ids[id] = len(stream.entries)
            places.append((name, place))
        return tuple(places)

    def compare_and_set(self, key: str, expected: Any, value: Any) -> bool:
        if self.keys.get(key) != expected:
            return False
        if value is None:
            self.keys.pop(key, None)
        else:
            self.keys[key] = value
        return True

    def commit(self, name: str, place: int) -> list[tuple[str, int]]:
        """Commit a place; the tickets of those who waited for it."""
        stream = self.stream(name)
        if stream.is_committed(place):
            return []
        stream.ahead.add(place)
        while stream.committed + 1 in stream.ahead:
            stream.committed += 1
            stream.ahead.discard(stream.committed)
        done: list[tuple[str, int]] = []
        for places, router, ticket in stream.waiting:
            places.discard(place)
            if not places:
                done.append((router, ticket))
        if done:
            stream.waiting = [each for each in stream.waiting if each[0]]
        return done

    def wait(self, name: str, place: int, client: str, router: str, ticket: int) -> bool:
        """Whether a place, or all that a client has in a stream, is committed; else the router is told when it is."""
        stream = self.stream(name)
        places = {place} if place else {at for at, item in enumerate(stream.entries, 1) if item.key.client == client}
        left = {at for at in places if not stream.is_committed(at)}
        if left:
            stream.waiting.append((left, router, ticket))
        return not left
