"""What receipts say of deliveries is what became of them, however readers, losses and looks are interleaved."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field

import pytest

from situ.quality.measurement.acknowledgements import (
    AckTracker,
    ConsumerProgress,
    DeliveryCounts,
    StoredBatches,
    panes_of_counts,
    sum_up,
)
from situ.quality.measurement.panes import pane_of
from tests.volume import cases

GROUPS = ("g1", "g2", "g3")
ORIGINS = (("plant", "Reading"), ("press", "Reading"), ("press", "Alarm"))


@dataclass
class Subscriber:
    """Takes messages in order, some at a time, and acknowledges later."""

    name: str
    groups: tuple[str, ...]
    acknowledged: int = 0
    number: int = 0
    handed: int = 0
    in_hand: list[int] = field(default_factory=list)
    got: list[int] = field(default_factory=list)

    def state(self, queue: Queue) -> ConsumerProgress:
        waiting = self.in_hand or any(seq > self.handed for seq in queue.left_for(self))
        return ConsumerProgress(
            name=self.name,
            groups=self.groups,
            acknowledged=self.acknowledged,
            number=self.number,
            handed=self.handed,
            idle=not waiting,
        )


@dataclass
class Queue:
    """A stream that drops its oldest messages, and those that everybody has acknowledged."""

    subscribers: list[Subscriber]
    stored: dict[int, tuple[str, dict[tuple[str, str], int]]] = field(default_factory=dict)
    left: dict[int, str] = field(default_factory=dict)
    last: int = 0

    @property
    def first(self) -> int:
        return min(self.left, default=self.last + 1)

    def left_for(self, subscriber: Subscriber) -> list[int]:
        return [seq for seq, group in self.left.items() if group in subscriber.groups]

    def store(self, group: str, events: dict[tuple[str, str], int]) -> int:
        self.last += 1
        self.stored[self.last] = group, events
        if any(group in each.groups for each in self.subscribers):
            self.left[self.last] = group
        return self.last

    def push_out(self, count: int) -> None:
        for seq in sorted(self.left)[:count]:
            del self.left[seq]

    def hand(self, subscriber: Subscriber, count: int) -> None:
        for seq in sorted(each for each in self.left_for(subscriber) if each > subscriber.handed)[:count]:
            subscriber.handed = seq
            subscriber.in_hand.append(seq)

    def acknowledge(self, subscriber: Subscriber, count: int) -> None:
        done, subscriber.in_hand = subscriber.in_hand[:count], subscriber.in_hand[count:]
        if done:
            subscriber.acknowledged = done[-1]
            subscriber.number += len(done)
            subscriber.got += done
        wanting = self.subscribers
        for seq, group in tuple(self.left.items()):
            if not any(group in each.groups and each.acknowledged < seq for each in wanting):
                del self.left[seq]


def look(receipts: AckTracker, queue: Queue, found: dict[tuple[str, str], DeliveryCounts]) -> None:
    first, last = queue.first, queue.last
    sum_up(found, receipts.look(first, last, [each.state(queue) for each in queue.subscribers]))


@cases(50, 20_000)
def test_receipts_know_what_became_of_deliveries(cases: int) -> None:
    lossy = 0
    for seed in range(cases):
        dice = random.Random(seed)
        subscribers = [
            Subscriber(f"s{number}", tuple(sorted(dice.sample(GROUPS, dice.randint(1, 2))))) for number in range(3)
        ]
        queue, receipts = Queue(subscribers), AckTracker()
        found: dict[tuple[str, str], DeliveryCounts] = {}
        look(receipts, queue, found)
        loses = dice.random() < 0.5
        for _ in range(dice.choice((10, 100, 400))):
            match dice.randrange(5):
                case 0 | 1:
                    events = {dice.choice(ORIGINS): 2} if dice.random() < 0.8 else {}
                    group = dice.choice(GROUPS)
                    receipts.new.stored(group, queue.store(group, events), events)
                case 2:
                    queue.hand(dice.choice(subscribers), dice.randint(1, 5))
                case 3:
                    queue.acknowledge(dice.choice(subscribers), dice.randint(1, 5))
                case _:
                    if loses and dice.random() < 0.3:
                        queue.push_out(dice.randint(1, 5))
                    elif dice.random() < 0.5:
                        look(receipts, queue, found)
        known = sum(each.accepted for each in found.values())
        assert known <= sum(sum(events.values()) for _, events in queue.stored.values()) * len(subscribers)
        for group in GROUPS:  # one more, which everybody gets: what lies before it is known then
            receipts.new.stored(group, queue.store(group, {}), {})
        for each in subscribers:
            queue.hand(each, queue.last)
            queue.acknowledge(each, queue.last)
        look(receipts, queue, found)
        owed: dict[tuple[str, str], int] = dict.fromkeys(ORIGINS, 0)
        got = 0
        for subscriber in subscribers:
            for seq, (group, events) in queue.stored.items():
                for origin, count in events.items() if group in subscriber.groups else ():
                    owed[origin] += count
                    got += count if seq in subscriber.got else 0
        messages = sum(group in each.groups for group, _ in queue.stored.values() for each in subscribers)
        lost = messages - sum(each.number for each in subscribers)
        assert {origin: each.accepted for origin, each in found.items()} == {id: n for id, n in owed.items() if n}
        if not lost:
            assert all(each.delivered == each.accepted for each in found.values())
        delivered = sum(each.delivered for each in found.values())
        # Which messages were lost is not known, how many is: each has at most two events that count.
        assert abs(delivered - got) <= 2 * lost
        lossy += lost > 0 and delivered < sum(owed.values())
    assert lossy > cases / 5


@cases(25, 100)
def test_of_messages_alike_exactly_the_lost_are_missing(cases: int) -> None:
    for seed in range(cases):
        dice = random.Random(seed)
        subscriber = Subscriber("s", ("g1",))
        queue, receipts = Queue([subscriber]), AckTracker()
        found: dict[tuple[str, str], DeliveryCounts] = {}
        look(receipts, queue, found)
        for _ in range(200):
            for _ in range(dice.randint(0, 6)):
                receipts.new.stored("g1", queue.store("g1", {ORIGINS[0]: 1}), {ORIGINS[0]: 1})
            queue.push_out(max(0, len(queue.left) - 20))
            queue.hand(subscriber, 3 - len(subscriber.in_hand))
            queue.acknowledge(subscriber, dice.randint(0, 3))
            if dice.random() < 0.2:
                look(receipts, queue, found)
        queue.hand(subscriber, queue.last)
        queue.acknowledge(subscriber, queue.last)
        look(receipts, queue, found)
        assert found[ORIGINS[0]].accepted == queue.last
        assert found[ORIGINS[0]].delivered == pytest.approx(subscriber.number)
        assert subscriber.number < queue.last


def test_what_waits_is_neither_and_takes_little_room() -> None:
    subscriber = Subscriber("s", ("g1",))
    queue, receipts = Queue([subscriber]), AckTracker()
    found: dict[tuple[str, str], DeliveryCounts] = {}
    look(receipts, queue, found)
    for _ in range(1000):
        receipts.new.stored("g1", queue.store("g1", {ORIGINS[0]: 1}), {ORIGINS[0]: 1})
        look(receipts, queue, found)
    assert found == {}
    (account,) = receipts._accounts.values()
    assert len(account.lots) <= 64
    queue.push_out(400)
    look(receipts, queue, found)
    early = found[ORIGINS[0]]
    assert 0 < early.accepted <= 400
    assert early.delivered == 0
    queue.hand(subscriber, queue.last)
    queue.acknowledge(subscriber, queue.last)
    look(receipts, queue, found)
    assert found[ORIGINS[0]] == DeliveryCounts(1000, pytest.approx(600))


def test_what_a_reader_was_owed_before_is_not_counted() -> None:
    subscriber = Subscriber("s", ("g1",))
    queue, receipts = Queue([subscriber]), AckTracker()
    for _ in range(100):
        queue.store("g1", {})
    found: dict[tuple[str, str], DeliveryCounts] = {}
    look(receipts, queue, found)
    queue.push_out(50)
    receipts.new.stored("g1", queue.store("g1", {ORIGINS[0]: 1}), {ORIGINS[0]: 1})
    queue.hand(subscriber, 50)
    queue.acknowledge(subscriber, 50)
    look(receipts, queue, found)
    assert found == {}
    queue.hand(subscriber, 1)
    queue.acknowledge(subscriber, 1)
    look(receipts, queue, found)
    assert found == {ORIGINS[0]: DeliveryCounts(1, 1.0)}


def test_whoever_reads_other_groups_is_counted_anew() -> None:
    subscriber, other = Subscriber("s", ("g1",)), Subscriber("t", ("g2",))
    queue, receipts = Queue([subscriber, other]), AckTracker()
    found: dict[tuple[str, str], DeliveryCounts] = {}
    look(receipts, queue, found)
    receipts.new.stored("g2", queue.store("g2", {ORIGINS[0]: 1}), {ORIGINS[0]: 1})
    subscriber.groups, subscriber.handed = ("g2",), queue.last  # it gets what comes from now on
    queue.hand(other, 1)
    queue.acknowledge(other, 1)
    look(receipts, queue, found)
    look(receipts, queue, found)
    assert found == {ORIGINS[0]: DeliveryCounts(1, 1.0)}


def test_whoever_subscribes_again_is_counted_anew() -> None:
    subscriber = Subscriber("s", ("g1",))
    queue, receipts = Queue([subscriber]), AckTracker()
    found: dict[tuple[str, str], DeliveryCounts] = {}
    look(receipts, queue, found)
    for _ in range(10):
        receipts.new.stored("g1", queue.store("g1", {ORIGINS[0]: 1}), {ORIGINS[0]: 1})
    queue.hand(subscriber, 4)
    queue.acknowledge(subscriber, 4)
    look(receipts, queue, found)
    queue.subscribers = [Subscriber("s", ("g1",), acknowledged=queue.last, handed=queue.last)]
    queue.left.clear()
    look(receipts, queue, found)
    look(receipts, queue, found)
    assert found == {}, "what was not acknowledged is not owed any more"


def test_lots_have_a_json_form_and_settled_deliveries_are_panes() -> None:
    lots = StoredBatches()
    assert lots.as_json() == {}
    for seq in (7, 3, 9):
        lots.stored("g1", seq, {ORIGINS[0]: 2})
    lots.stored("g2", 8, {})
    assert StoredBatches.from_json(json.loads(json.dumps(lots.as_json()))) == lots
    assert (lots.by_group["g1"].first, lots.by_group["g1"].last, lots.by_group["g1"].messages) == (3, 9, 3)
    until = 1_700_000_003_000_000
    (pane,) = panes_of_counts({ORIGINS[0]: DeliveryCounts(4, 3.0)}, until)
    assert (pane.profile, pane.start, pane.events, pane.last) == ("plant/Reading", pane_of(until), 0, None)
    assert (pane.accepted, pane.delivered) == (4, 3.0)
