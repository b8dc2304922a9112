"""Receipts: what became of deliveries that are acknowledged → how reliable publishers are delivered.

A delivery is settled when its reader has acknowledged it, or when it is gone without that: too old, or pushed out by
newer ones. What waits for a reader is neither, however long. Single messages are not followed: of a reader it is known
how far it acknowledged and how many messages that were. Where that are fewer than were stored for it up to there, the
others are lost; which ones, nobody can tell, so all that were stored there bear an equal share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from situ.quality.panes import Pane, pane_of

Events = Mapping[tuple[str, str], int]
"""Publisher and type → events."""

_MOST_LOTS = 64
"""That are told apart of what waits for one reader."""


@dataclass(slots=True)
class Lot:
    """Messages that were stored for a delivery group, and the events in them of publishers that are counted."""

    first: int
    """The lowest sequence of a message, and the highest."""
    last: int
    messages: int = 0
    events: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, other: Lot) -> None:
        self.first, self.last = min(self.first, other.first), max(self.last, other.last)
        self.messages += other.messages
        for origin, count in other.events.items():
            self.events[origin] = self.events.get(origin, 0) + count


@dataclass(slots=True)
class Lots:
    """What was stored since somebody looked last, by delivery group."""

    by_group: dict[str, Lot] = field(default_factory=dict)

    def stored(self, group: str, seq: int, events: Events) -> None:
        """A message of a group was stored. Those without counted events have to be told as well."""
        self._add(group, Lot(seq, seq, 1, dict(events)))

    def add(self, other: Lots) -> None:
        for group, lot in other.by_group.items():
            self._add(group, lot)

    def _add(self, group: str, lot: Lot) -> None:
        known = self.by_group.get(group)
        if known is None:
            self.by_group[group] = lot
        else:
            known.add(lot)

    def as_json(self) -> dict[str, Any]:
        """Plain data; nothing of nothing."""
        return {
            group: [lot.first, lot.last, lot.messages, [[*origin, count] for origin, count in lot.events.items()]]
            for group, lot in self.by_group.items()
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Lots:
        found = {}
        for group, (first, last, messages, events) in value.items():
            found[group] = Lot(first, last, messages, {(origin, type): count for origin, type, count in events})
        return cls(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """How far the reader of a durable subscription is, by sequences of messages."""

    name: str
    groups: tuple[str, ...]
    acknowledged: int
    number: int
    """How many messages were acknowledged, ever."""
    handed: int
    """The last message that it was handed."""
    idle: bool
    """Nothing waits for it."""


@dataclass(frozen=True, slots=True)
class Settled:
    """Deliveries of events whose fate is known: how many, and how many of them were acknowledged."""

    accepted: int = 0
    delivered: float = 0.0

    def __add__(self, other: Settled) -> Settled:
        return Settled(self.accepted + other.accepted, self.delivered + other.delivered)


def sum_up(whole: dict[tuple[str, str], Settled], part: Mapping[tuple[str, str], Settled]) -> None:
    """Add a part to the whole, by publisher and type."""
    for origin, each in part.items():
        whole[origin] = whole[origin] + each if origin in whole else each


def panes_of_settled(settled: Mapping[tuple[str, str], Settled], until: int) -> tuple[Pane, ...]:
    """What has become known, as panes. They are those in which it became known: the events may be of long ago, and
    their windows closed."""
    return tuple(
        Pane(publisher=publisher, type=type, start=pane_of(until), accepted=each.accepted, delivered=each.delivered)
        for (publisher, type), each in settled.items()
    )


@dataclass(slots=True)
class _Account:
    """What one reader is owed, from the moment on that nothing is owed to it from before."""

    groups: tuple[str, ...]
    since: int
    """The last message there was when it was first seen to read these groups."""
    begun: bool = False
    number: int = 0
    """Messages that it had acknowledged when somebody looked last."""
    base: int = 0
    """Messages that it had acknowledged when it began."""
    owed: int = 0
    """Messages of lots that are settled."""
    lost: int = 0
    """Messages that are known to be lost."""
    lots: list[Lot] = field(default_factory=list)
    """Not settled."""
    size: int = 1
    """How many messages are in a lot, at most, that more are added to."""

    def begin(self, reader: Reader) -> None:
        """Only what was stored behind what it has acknowledged now is counted."""
        self.begun, self.base = True, reader.number
        self.lots = [each for each in self.lots if each.first > reader.acknowledged]

    def put(self, lot: Lot) -> None:
        """Lots grow with what waits, all to about the same size."""
        if not self.lots:
            self.size = 1
        if self.lots and self.lots[-1].messages + lot.messages <= self.size:
            self.lots[-1].add(lot)
            return
        self.lots.append(Lot(lot.first, lot.last, lot.messages, dict(lot.events)))
        if len(self.lots) > _MOST_LOTS:
            self.size = 2 * max(self.size, *(each.messages for each in self.lots))
            for one, other in zip(self.lots[::2], self.lots[1::2], strict=False):
                one.add(other)
            self.lots = self.lots[::2]

    def settle(self, reader: Reader, first: int) -> dict[tuple[str, str], Settled]:
        """What has become known by how far a reader is, and by the first message that there still is."""
        settled, self.lots = _part(self.lots, lambda lot: _is_settled(lot, reader, first))
        if not settled:
            return {}
        messages = sum(each.messages for each in settled)
        self.owed += messages
        missing = self.owed - (reader.number - self.base) - self.lost
        lost = min(max(missing, 0), messages)
        self.lost += lost
        found: dict[tuple[str, str], Settled] = {}
        for lot in settled:
            sum_up(found, {id: Settled(each, each * (messages - lost) / messages) for id, each in lot.events.items()})
        return found


def _is_settled(lot: Lot, reader: Reader, first: int) -> bool:
    """Whether a reader is past all of it. What a reader has in hand may be gone and be acknowledged nevertheless."""
    return lot.last <= reader.acknowledged or (lot.last < first and lot.first > reader.handed)


def _part(lots: Iterable[Lot], is_such: Callable[[Lot], bool]) -> tuple[list[Lot], list[Lot]]:
    found: tuple[list[Lot], list[Lot]] = ([], [])
    for each in lots:
        found[0 if is_such(each) else 1].append(each)
    return found


class Receipts:
    """Follows what was stored for the readers of a zone."""

    def __init__(self) -> None:
        self.new = Lots()
        """What was stored since the last look."""
        self._accounts: dict[str, _Account] = {}

    def look(self, first: int, last: int, readers: Iterable[Reader]) -> dict[tuple[str, str], Settled]:
        """What has become known of deliveries. ``first`` and ``last`` are those of the messages that there still are;
        they have to be older than what is known of the readers, or what was acknowledged in between counts as lost."""
        new, self.new = self.new, Lots()
        before, self._accounts = self._accounts, {}
        found: dict[tuple[str, str], Settled] = {}
        for reader in readers:
            account = before.get(reader.name)
            if account is None or account.groups != reader.groups or reader.number < account.number:
                account = _Account(reader.groups, since=last)  # who is another one is owed nothing
            self._accounts[reader.name] = account
            account.number = reader.number
            for group in reader.groups:
                if (lot := new.by_group.get(group)) is not None:
                    account.put(lot)
            if not account.begun and (reader.idle or reader.acknowledged >= account.since):
                account.begin(reader)
            elif account.begun:
                sum_up(found, account.settle(reader, first))
        return found
