"""What is remembered by key equals what a list of everything that came says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from situ.stages.conversion_state import VersionedStore

BEGIN = datetime(2026, 11, 1, tzinfo=UTC)


class Slow:
    """Everything that came, looked through anew for every question, as the bounds are worded."""

    def __init__(self, history: timedelta, ttl: timedelta, most: int) -> None:
        self.history, self.ttl, self.most = history, ttl, most
        self.came: dict[str, list[tuple[datetime, int]]] = {}
        self.used: list[str] = []
        self.latest = BEGIN
        self.evicted = 0

    def add(self, key: str, time: datetime, value: int) -> None:
        self.came.setdefault(key, []).append((time, value))
        self._use(key)
        self.latest = max(self.latest, time)
        for other in [each for each, came in self.came.items() if self.latest - max(came)[0] > self.ttl]:
            self._drop(other)
        while len(self.came) > self.most:
            self._drop(self.used[0])
            self.evicted += 1

    def find(self, key: str, time: datetime) -> int | None:
        came = self.came.get(key, [])
        if not came:
            return None
        begin = max(at for at, _ in came) - self.history
        valid = max((at for at, _ in came if at <= begin), default=None)
        kept = [(at, value) for at, value in came if at > begin or at == valid]
        fitting = [at for at, _ in kept if at <= time]
        if not fitting or time - max(fitting) > self.ttl:
            return None
        self._use(key)
        return next(value for at, value in reversed(kept) if at == max(fitting))

    def _use(self, key: str) -> None:
        self.used = [*(each for each in self.used if each != key), key]

    def _drop(self, key: str) -> None:
        del self.came[key]
        self.used.remove(key)


STEP = st.tuples(st.sampled_from(("add", "find")), st.sampled_from("abcde"), st.integers(0, 60))


@given(
    steps=st.lists(STEP, max_size=60),
    history=st.integers(0, 20),
    ttl=st.integers(0, 40),
    most=st.integers(1, 4),
)
def test_references_equal_a_list_of_all_that_came(
    steps: list[tuple[str, str, int]], history: int, ttl: int, most: int
) -> None:
    bounds: dict[str, Any] = {"history": timedelta(seconds=history), "ttl": timedelta(seconds=ttl), "most": most}
    fast, slow = VersionedStore(**bounds), Slow(**bounds)
    for number, (what, key, second) in enumerate(steps):
        time = BEGIN + timedelta(seconds=second)
        if what == "add":
            fast.add(key, time, {"value": number})
            slow.add(key, time, number)
        else:
            found = fast.find(key, time)
            assert (None if found is None else found["value"]) == slow.find(key, time)
    assert len(fast) == len(slow.came)
    assert fast.evicted == slow.evicted
    assert list(dict.fromkeys(key for key, _, _ in fast)) == slow.used


def test_what_came_and_went_leaves_nothing_behind() -> None:
    references = VersionedStore(history=timedelta(), ttl=timedelta(days=1), most=10)
    for number in range(10_000):
        references.add(str(number), BEGIN + timedelta(milliseconds=number), {})
    assert len(references) == 10
    assert references.evicted == 9990
    assert len(references._by_age) <= 84
    references.add("last", BEGIN + timedelta(days=3), {})
    assert len(references) == len(references._by_age) == 1


def test_a_key_with_a_long_history_is_bounded_too() -> None:
    references = VersionedStore(history=timedelta(days=1), ttl=timedelta(days=1), most=10)
    for number in range(10_000):
        references.add("a", BEGIN + timedelta(milliseconds=number), {"value": number})
    assert len(list(references)) == 4096
    assert references.find("a", BEGIN + timedelta(seconds=1)) is None
    assert references.find("a", BEGIN + timedelta(seconds=9)) == {"value": 9000}


def test_times_at_the_beginning_of_all_times() -> None:
    references = VersionedStore(history=timedelta(days=1), ttl=timedelta(days=1), most=10)
    first = datetime(1, 1, 1, tzinfo=UTC)
    references.add("a", first, {"value": 1})
    assert references.find("a", first) == {"value": 1}
