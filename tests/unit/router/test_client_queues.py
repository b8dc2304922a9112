"""What clients send waits in bounded queues, and no client waits for another."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from situ.router.client_queues import ClientQueues, QueueLimits

LIMITS = QueueLimits(messages=8, size=64 * 1024, all=256 * 1024, round=4096, under_way=4, under_way_size=32 * 1024)


def served(queues: ClientQueues[int], count: int) -> list[str]:
    found = []
    for _ in range(count):
        taken = queues.next()
        if taken is None:
            break
        found.append(taken[0])
    return found


def test_what_does_not_fit_is_refused_and_costs_nothing() -> None:
    queues: ClientQueues[int] = ClientQueues(LIMITS)
    taken = [queues.put("one", number, 100) for number in range(1000)]
    assert taken == [True] * 8 + [False] * 992
    assert len(queues) == 8
    assert queues.put("two", 0, 100), "others have room"


def test_large_messages_fill_a_queue_by_their_size() -> None:
    queues: ClientQueues[int] = ClientQueues(LIMITS)
    assert [queues.put("one", number, 30_000) for number in range(4)] == [True, True, False, False]


def test_a_message_larger_than_a_queue_is_taken_alone() -> None:
    queues: ClientQueues[int] = ClientQueues(LIMITS)
    assert queues.put("one", 0, 200_000)
    assert not queues.put("one", 1, 1)
    assert queues.next() == ("one", 0)


def test_the_messages_of_a_client_come_in_their_order() -> None:
    queues: ClientQueues[int] = ClientQueues(LIMITS)
    for number in range(8):
        queues.put("one", number, number * 1000)
    assert [queues.next() for _ in range(8)] == [("one", number) for number in range(8)]
    assert queues.next() is None


@pytest.mark.parametrize("size", [0, 3000, 60_000])
def test_another_client_is_served_within_a_round_however_much_one_sends(size: int) -> None:
    queues: ClientQueues[int] = ClientQueues(LIMITS)
    while queues.put("flood", 0, size):
        pass
    queues.put("other", 0, 100)
    assert "other" in served(queues, 2 + LIMITS.round // 1024)


def test_bytes_are_shared_not_messages() -> None:
    """Who sends large messages gets no more of a router than who sends small ones."""
    queues: ClientQueues[int] = ClientQueues(QueueLimits(messages=10_000, size=1 << 30, all=1 << 31, round=4096))
    for number in range(2000):
        queues.put("large", number, 9 * 1024)
        queues.put("small", number, 0)
    share = Counter(served(queues, 1000))
    assert 8 <= share["small"] / share["large"] <= 12


def test_together_they_hold_no_more_than_is_allowed_and_who_has_little_is_taken_in() -> None:
    queues: ClientQueues[int] = ClientQueues(LIMITS)
    for client in range(100):
        for number in range(8):
            queues.put(f"c{client}", number, 7000)
    assert queues.size <= LIMITS.all + 100 * 1024 * 8
    assert queues.put("late", 0, 100)


def test_a_client_with_much_under_way_waits_alone() -> None:
    queues: ClientQueues[int] = ClientQueues(LIMITS)
    for number in range(4):
        queues.begin("one", number)
    queues.put("one", 0, 0)
    queues.put("two", 0, 0)
    assert served(queues, 2) == ["two"]
    queues.done("one", 3)
    assert served(queues, 2) == ["one"]


def test_bytes_under_way_count_too_and_are_forgotten_with_the_client() -> None:
    queues: ClientQueues[int] = ClientQueues(LIMITS)
    queues.begin("one", "x", 40_000)
    queues.put("one", 0, 0)
    assert queues.next() is None
    queues.forget("one")
    assert queues.next() == ("one", 0)
    queues.done("one", "x")  # what comes later of it is nothing to anybody


def test_nothing_overtakes_what_is_done_alone() -> None:
    queues: ClientQueues[int] = ClientQueues(LIMITS)
    queues.begin("one", "x", alone=True)
    queues.put("one", 0, 0)
    assert queues.next() is None
    queues.done("one", "x")
    assert queues.next() == ("one", 0)


def test_against_plain_queues_nothing_is_lost_added_or_reordered() -> None:
    chance = random.Random(7)
    for _ in range(50):
        queues: ClientQueues[int] = ClientQueues(LIMITS)
        plain: dict[str, list[int]] = {}
        for number in range(400):
            client = chance.choice("abcde")
            if chance.random() < 0.6:
                if queues.put(client, number, chance.choice((0, 500, 20_000))):
                    plain.setdefault(client, []).append(number)
            elif (taken := queues.next()) is not None:
                assert plain[taken[0]].pop(0) == taken[1]
        while (taken := queues.next()) is not None:
            assert plain[taken[0]].pop(0) == taken[1]
        assert not any(plain.values())
        assert (len(queues), queues.size) == (0, 0)
