"""How every expectation stands against all profiles, kept while either come, change and go.

States are those of matching against all relevant profiles, found by the skylines of their pools. Each expectation that
is not unsatisfied has a *witness*, a profile that makes its state so. When a profile changes, those whose witness it is
are matched again unless it still is one, and of the others those are raised that its new points raise; nobody else is
touched. Who wants several publishers is matched against all profiles, as skylines do not suffice for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from situ.quality.expectation import Expectation
from situ.quality.matching import Match, State, composed
from situ.quality.pools import Pool
from situ.quality.profile import Profile
from situ.quality.rows import Numbers, first_that_meet
from situ.quality.skyline import Skyline

Pools = frozenset[str]
"""The pools that are relevant to an expectation."""
_NOBODY = -1
_NONE = int(State.UNSATISFIED)
_ABLE = int(State.SATISFIABLE)
_NOW = int(State.SATISFIED)


@dataclass(slots=True)
class _Numbered:
    """Numbers from 0 for names, given again when they are free."""

    numbers: dict[str, int] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    free: list[int] = field(default_factory=list)

    def take(self, name: str) -> int:
        if self.free:
            number = self.free.pop()
            self.names[number] = name
        else:
            number = len(self.names)
            self.names.append(name)
        self.numbers[name] = number
        return number

    def give_back(self, name: str) -> int:
        number = self.numbers.pop(name)
        self.free.append(number)
        return number


@dataclass(slots=True)
class _Entry:
    expectation: Expectation
    pools: Pools


class Standing:
    """States of expectations, by their ids. Whatever changes something tells whose state is another than before."""

    def __init__(self) -> None:
        self._pools: dict[str, Pool] = {}
        self._pool_of: dict[str, str] = {}
        """Profile → its pool."""
        self._entries: dict[str, _Entry] = {}
        self._several: dict[str, set[str]] = {}
        """Pool → the expectations of several publishers to which it is relevant."""
        self._expectations = _Numbered()
        self._profiles = _Numbered()
        self._states: NDArray[np.int8] = np.zeros(0, dtype=np.int8)
        self._witnesses: Numbers = np.zeros(0, dtype=np.int64)

    # ── asking ────────────────────────────────────────────────────────────────────────────────────

    def state(self, id: str) -> State:
        return State(int(self._states[self._expectations.numbers[id]]))

    def states(self) -> Mapping[str, State]:
        """Of all expectations."""
        by_value = {int(state): state for state in State}
        states = self._states.tolist()
        return {id: by_value[states[number]] for id, number in self._expectations.numbers.items()}

    def witness(self, id: str) -> str | None:
        """A profile that makes the state so; none where it is unsatisfied or takes several."""
        number = int(self._witnesses[self._expectations.numbers[id]])
        return None if number == _NOBODY else self._profiles.names[number]

    def candidates(self, id: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Of all relevant profiles those that satisfy it, and those that do not but could be adapted to it; by id."""
        entry = self._entries[id]
        asked = entry.expectation.asked
        now: list[str] = []
        able: list[str] = []
        for pool in self._relevant(entry.pools):
            for found, more in zip((now, able), pool.candidates(asked), strict=True):
                found += more
        return tuple(sorted(now)), tuple(sorted(able))

    def match(self, id: str) -> Match:
        """The state with all candidates."""
        now, able = self.candidates(id)
        return Match(state=self.state(id), now=now, able=able)

    def relevant(self, id: str) -> tuple[str, ...]:
        """All profiles that are relevant to it, by id."""
        return tuple(sorted(each for pool in self._relevant(self._entries[id].pools) for each in pool.profiles))

    def profile(self, id: str) -> Profile:
        return self._pools[self._pool_of[id]].profiles[id]

    # ── changing ──────────────────────────────────────────────────────────────────────────────────

    def put_profile(self, profile: Profile, pool: str) -> frozenset[str]:
        """A profile is there, is another, or is in another pool."""
        before: dict[int, int] = {}
        if self._pool_of.get(profile.id, pool) != pool:
            self._take_out(profile.id, before)
        if profile.id not in self._pool_of:
            self._pool_of[profile.id] = pool
            self._profiles.take(profile.id)
        place = self._pools.setdefault(pool, Pool())
        if place.put(profile):
            self._reconsider(profile, place, before)
            self._recount(pool, before)
        return self._changed(before)

    def drop_profile(self, id: str) -> frozenset[str]:
        before: dict[int, int] = {}
        if id in self._pool_of:
            self._take_out(id, before)
        return self._changed(before)

    def put_expectation(self, expectation: Expectation, pools: Pools) -> frozenset[str]:
        """An expectation is there or is another; one that is new always counts as changed."""
        return self.put_many(expectations=[(expectation, pools)])

    def drop_expectation(self, id: str) -> frozenset[str]:
        if id in self._entries:
            self._forget(id)
            self._expectations.give_back(id)
        return frozenset()

    def put_many(
        self,
        profiles: Iterable[tuple[Profile, str]] = (),
        expectations: Iterable[tuple[Expectation, Pools]] = (),
    ) -> frozenset[str]:
        """Many at once. Every expectation of a pool that gets new profiles is matched anew."""
        before: dict[int, int] = {}
        new: set[str] = set()
        touched = self._take_in(profiles)
        numbers = set(self._put_floors(expectations, before, new))
        for name in touched:
            numbers.update(self._pools[name].floors.numbers.tolist())
        chosen = np.fromiter(sorted(numbers), dtype=np.int64, count=len(numbers))
        self._note(before, chosen)
        self._match(chosen)
        for name in touched:
            self._recount(name, before)
            self._tidy(name)
        return self._changed(before) | new

    # ── profiles ──────────────────────────────────────────────────────────────────────────────────

    def _take_in(self, profiles: Iterable[tuple[Profile, str]]) -> set[str]:
        """Put profiles into their pools, and tell which pools are not what they were."""
        touched: set[str] = set()
        by_pool: dict[str, list[Profile]] = {}
        for profile, pool in {profile.id: (profile, pool) for profile, pool in profiles}.values():
            if profile.id in self._pool_of:
                touched.add(self._remove(profile.id)[0])
            by_pool.setdefault(pool, []).append(profile)
        for name, news in by_pool.items():
            for each in news:
                self._pool_of[each.id] = name
                self._profiles.take(each.id)
            self._pools.setdefault(name, Pool()).put_new(news)
        return touched.union(by_pool)

    def _remove(self, id: str) -> tuple[str, int]:
        """Take a profile out of its pool, and tell which that was and which number it had."""
        name = self._pool_of.pop(id)
        self._pools[name].drop(id)
        return name, self._profiles.give_back(id)

    def _take_out(self, id: str, before: dict[int, int]) -> None:
        name, number = self._remove(id)
        numbers = self._pools[name].floors.numbers
        lost = numbers[self._witnesses[numbers] == number]
        self._note(before, lost)
        self._match(lost)
        self._recount(name, before)
        self._tidy(name)

    def _reconsider(self, profile: Profile, pool: Pool, before: dict[int, int]) -> None:
        """A profile of a pool has other points than before: raise what it raises, match again what it let fall."""
        number = self._profiles.numbers[profile.id]
        numbers = pool.floors.numbers
        now, able = pool.met_by(profile)
        states = self._states[numbers]
        reached = np.where(now, _NOW, np.where(able, _ABLE, _NONE)).astype(np.int8)
        raised = reached > states
        fallen = (self._witnesses[numbers] == number) & (reached < states)
        self._note(before, numbers[raised | fallen])
        self._states[numbers[raised]] = reached[raised]
        self._witnesses[numbers[raised]] = number
        self._match(numbers[fallen])

    # ── expectations ──────────────────────────────────────────────────────────────────────────────

    def _put_floors(
        self, expectations: Iterable[tuple[Expectation, Pools]], before: dict[int, int], new: set[str]
    ) -> list[int]:
        """Write down what is asked of which pool, and tell the numbers of all that skylines decide."""
        by_pool: dict[str, dict[int, Expectation]] = {}
        decided: list[int] = []
        for expectation, pools in {each.id: (each, pools) for each, pools in expectations}.values():
            number = self._enter(expectation, pools, before, new)
            if expectation.publishers > 1:
                for pool in pools:
                    self._several.setdefault(pool, set()).add(expectation.id)
                self._count(expectation.id)
                continue
            decided.append(number)
            for pool in pools:
                by_pool.setdefault(pool, {})[number] = expectation
        for name, asking in by_pool.items():
            place = self._pools.setdefault(name, Pool())
            asked = place.columns.matrix([each.asked for each in asking.values()])
            place.floors.put_new(list(asking), asked)
        return decided

    def _enter(self, expectation: Expectation, pools: Pools, before: dict[int, int], new: set[str]) -> int:
        id = expectation.id
        if id in self._entries:
            number = self._expectations.numbers[id]
            self._note(before, np.asarray([number]))
            self._forget(id)
        else:
            number = self._expectations.take(id)
            new.add(id)
            if number >= len(self._states):
                self._states = np.resize(self._states, 2 * number + 4)
                self._witnesses = np.resize(self._witnesses, 2 * number + 4)
            self._states[number] = _NONE
        self._witnesses[number] = _NOBODY
        self._entries[id] = _Entry(expectation, pools)
        return number

    def _forget(self, id: str) -> None:
        """Take out what an expectation asks."""
        entry = self._entries.pop(id)
        for pool in entry.pools:
            if entry.expectation.publishers > 1:
                self._several[pool].remove(id)
            else:
                self._pools[pool].floors.drop(self._expectations.numbers[id])
                self._tidy(pool)

    def _tidy(self, name: str) -> None:
        """Nothing is kept of a pool in which nothing is left."""
        if not self._pools[name].profiles and not len(self._pools[name].floors):
            del self._pools[name]

    # ── matching ──────────────────────────────────────────────────────────────────────────────────

    def _match(self, numbers: Numbers) -> None:
        """Match expectations, by their numbers, against the skylines of all their pools."""
        if not len(numbers):
            return
        self._states[numbers] = _NONE
        self._witnesses[numbers] = _NOBODY
        by_pool: dict[str, list[int]] = {}
        for number in numbers.tolist():
            for name in self._entries[self._expectations.names[number]].pools:
                by_pool.setdefault(name, []).append(number)
        asking = [(pool, each) for name, each in by_pool.items() if (pool := self._pools[name]).profiles]
        for pool, each in asking:
            self._raise(_NOW, pool, pool.now, each)
        for pool, each in asking:
            self._raise(_ABLE, pool, pool.able, each)

    def _raise(self, state: int, pool: Pool, skyline: Skyline, asking: list[int]) -> None:
        """Raise those to a state that a member of the skyline meets and that are not there yet."""
        numbers = np.asarray(asking)
        numbers = numbers[self._states[numbers] == _NONE]
        if not len(numbers):
            return
        found = first_that_meet(pool.floors.of(numbers.tolist()), skyline.members.values)
        met = found >= 0
        witnesses = np.asarray([self._profiles.numbers[id] for id, _ in skyline.members.keys])
        self._states[numbers[met]] = state
        self._witnesses[numbers[met]] = witnesses[found[met]]

    def _recount(self, pool: str, before: dict[int, int]) -> None:
        """Count again for those that want several publishers and can get some of this pool."""
        for id in self._several.get(pool, ()):
            self._note(before, np.asarray([self._expectations.numbers[id]]))
            self._count(id)

    def _count(self, id: str) -> None:
        now, able = ([self.profile(each) for each in found] for found in self.candidates(id))
        self._states[self._expectations.numbers[id]] = composed(self._entries[id].expectation, now, able)

    # ── what changed ──────────────────────────────────────────────────────────────────────────────

    def _relevant(self, pools: Pools) -> list[Pool]:
        return [self._pools[each] for each in sorted(pools) if each in self._pools]

    def _note(self, before: dict[int, int], numbers: Numbers) -> None:
        """Remember the states of expectations that may change."""
        for number, state in zip(numbers.tolist(), self._states[numbers].tolist(), strict=True):
            before.setdefault(number, state)

    def _changed(self, before: Mapping[int, int]) -> frozenset[str]:
        numbers = np.fromiter(before, dtype=np.int64, count=len(before))
        former = np.fromiter(before.values(), dtype=np.int8, count=len(before))
        names = self._expectations.names
        return frozenset(names[number] for number in numbers[self._states[numbers] != former].tolist())
