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

from situ.quality.measurement.panes import Pane, pane_of

Events = Mapping[tuple[str, str], int]
"""Publisher and type → events."""

_MOST_LOTS = 64
"""That are told apart of what waits for one reader."""


@dataclass(slots=True)
class StoredBatch:
    """Messages that were stored for a delivery group, and the events in them of publishers that are counted."""

    first: int
    """The lowest sequence of a message, and the highest."""
    last: int
    messages: int = 0
    events: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, other: StoredBatch) -> None:
        self.first, self.last = min(self.first, other.first), max(self.last, other.last)
        self.messages += other.messages
        for origin, count in other.events.items():
            self.events[origin] = self.events.get(origin, 0) + count


@dataclass(slots=True)
class StoredBatches:
    """What was stored since somebody looked last, by delivery group."""

    by_group: dict[str, StoredBatch] = field(default_factory=dict)

    def stored(self, group: str, seq: int, events: Events) -> None:
        """A message of a group was stored. Those without counted events have to be told as well."""
        self._add(group, StoredBatch(seq, seq, 1, dict(events)))

    def add(self, other: StoredBatches) -> None:
        for group, lot in other.by_group.items():
            self._add(group, lot)

    def _add(self, group: str, lot: StoredBatch) -> None:
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
    def from_json(cls, value: Mapping[str, Any]) -> StoredBatches:
        found = {}
        for group, (first, last, messages, events) in value.items():
            found[group] = StoredBatch(first, last, messages, {(origin, type): count for origin, type, count in events})
        return cls(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerProgress:
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
class DeliveryCounts:
    """Deliveries of events whose fate is known: how many, and how many of them were acknowledged."""

    accepted: int = 0
    delivered: float = 0.0

    def __add__(self, other: DeliveryCounts) -> DeliveryCounts:
        return DeliveryCounts(self.accepted + other.accepted, self.delivered + other.delivered)


def sum_up(whole: dict[tuple[str, str], DeliveryCounts], part: Mapping[tuple[str, str], DeliveryCounts]) -> None:
    """Add a part to the whole, by publisher and type."""
    for origin, each in part.items():
        whole[origin] = whole[origin] + each if origin in whole else each


def panes_of_counts(settled: Mapping[tuple[str, str], DeliveryCounts], until: int) -> tuple[Pane, ...]:
    """What has become known, as panes. They are those in which it became known: the events may be of long ago, and
    their windows closed."""
    return tuple(
        Pane(publisher=publisher, type=type, start=pane_of(until), accepted=each.accepted, delivered=each.delivered)
        for (publisher, type), each in settled.items()
    )


@dataclass(slots=True)
class _ConsumerAccount:
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
    lots: list[StoredBatch] = field(default_factory=list)
    """Not settled."""
    size: int = 1
    """How many messages are in a lot, at most, that more are added to."""

    def begin(self, reader: ConsumerProgress) -> None:
        """Only what was stored behind what it has acknowledged now is counted."""
        self.begun, self.base = True, reader.number
        self.lots = [each for each in self.lots if each.first > reader.acknowledged]

    def put(self, lot: StoredBatch) -> None:
        """Lots grow with what waits, all to about the same size."""
        if not self.lots:
            self.size = 1
        if self.lots and self.lots[-1].messages + lot.messages <= self.size:
            self.lots[-1].add(lot)
            return
        self.lots.append(StoredBatch(lot.first, lot.last, lot.messages, dict(lot.events)))
        if len(self.lots) > _MOST_LOTS:
            self.size = 2 * max(self.size, *(each.messages for each in self.lots))
            for one, other in zip(self.lots[::2], self.lots[1::2], strict=False):
                one.add(other)
            self.lots = self.lots[::2]

    def settle(self, reader: ConsumerProgress, first: int) -> dict[tuple[str, str], DeliveryCounts]:
        """What has become known by how far a reader is, and by the first message that there still is."""
        settled, self.lots = _part(self.lots, lambda lot: _is_settled(lot, reader, first))
        if not settled:
            return {}
        messages = sum(each.messages for each in settled)
        self.owed += messages
        missing = self.owed - (reader.number - self.base) - self.lost
        lost = min(max(missing, 0), messages)
        self.lost += lost
        found: dict[tuple[str, str], DeliveryCounts] = {}
        for lot in settled:
            sum_up(
                found,
                {id: DeliveryCounts(each, each * (messages - lost) / messages) for id, each in lot.events.items()},
            )
        return found


def _is_settled(lot: StoredBatch, reader: ConsumerProgress, first: int) -> bool:
    """Whether a reader is past all of it. What a reader has in hand may be gone and be acknowledged nevertheless."""
    return lot.last <= reader.acknowledged or (lot.last < first and lot.first > reader.handed)


def _part(
    lots: Iterable[StoredBatch], is_such: Callable[[StoredBatch], bool]
) -> tuple[list[StoredBatch], list[StoredBatch]]:
    found: tuple[list[StoredBatch], list[StoredBatch]] = ([], [])
    for each in lots:
        found[0 if is_such(each) else 1].append(each)
    return found


class AckTracker:
    """Follows what was stored for the readers of a zone."""

    def __init__(self) -> None:
        self.new = StoredBatches()
        """What was stored since the last look."""
        self._accounts: dict[str, _ConsumerAccount] = {}

    def look(self, first: int, last: int, readers: Iterable[ConsumerProgress]) -> dict[tuple[str, str], DeliveryCounts]:
        """What has become known of deliveries. ``first`` and ``last`` are those of the messages that there still are;
        they have to be older than what is known of the readers, or what was acknowledged in between counts as lost."""
        new, self.new = self.new, StoredBatches()
        before, self._accounts = self._accounts, {}
        found: dict[tuple[str, str], DeliveryCounts] = {}
        for reader in readers:
            account = before.get(reader.name)
            if account is None or account.groups != reader.groups or reader.number < account.number:
                account = _ConsumerAccount(reader.groups, since=last)  # who is another one is owed nothing
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
