"""How every expectation stands against all profiles, kept while either come, change and go.

States are those of matching against all relevant profiles, found by the skylines of their pools. Each expectation that
is not unsatisfied has a *witness*, a profile that makes its state so. When a profile changes, those whose witness it is
are matched again unless it still is one, and of the others those are raised that its new points raise; nobody else is
touched. Who wants several publishers is matched against all profiles, as skylines do not suffice for that.

Expectations that are suspended are none of its business: they are dropped and put again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from situ.quality.match.point_matrix import Matrix, Numbers, first_that_meet, floors_of
from situ.quality.match.pools import Pool, ProfileMatrix
from situ.quality.match.satisfaction import QualityMatch, Satisfaction, satisfaction_of
from situ.quality.model.declarations import Expectation, Profile

Pools = frozenset[str]
"""The pools that are relevant to an expectation."""
_NOBODY = -1
_NONE = int(Satisfaction.UNSATISFIED)
_ABLE = int(Satisfaction.SATISFIABLE)
_NOW = int(Satisfaction.SATISFIED)
_STATES = tuple(Satisfaction)
"""By their values."""
_FEW = 16
"""Expectations per pool, below which those that are asked about are looked up one by one."""


_ID: Callable[[Expectation], str] = attrgetter("id")
_NO_EXPECTATION = Expectation(id="", subscription="")


class _PoolSlot(NamedTuple):
    number: int
    pool: str


class MatchIndex:
    """States of expectations, by their ids. Whatever changes something tells whose state is another than before."""

    def __init__(self) -> None:
        self._pools: dict[str, Pool] = {}
        self._homes: dict[str, _PoolSlot] = {}
        """Of profiles, by id."""
        self._publishing: list[str] = []
        """Profiles by number. Numbers of those that are gone are given again."""
        self._free_homes: list[int] = []
        self._numbers: dict[str, int] = {}
        """Of expectations, by id. What is known of each is in columns, by its number; numbers are given again, too."""
        self._asking: list[Expectation] = []
        self._looking: list[Pools] = []
        """The pools that are relevant to it."""
        self._free_numbers: list[int] = []
        self._together: dict[str, tuple[int, ...]] = {}
        """Subscription → the numbers of its expectations."""
        self._several: dict[str, set[str]] = {}
        """Pool → the expectations of several publishers to which it is relevant."""
        self._states: NDArray[np.int8] = np.zeros(0, dtype=np.int8)
        self._witnesses: Numbers = np.zeros(0, dtype=np.int64)

    # ── asking ────────────────────────────────────────────────────────────────────────────────────

    def state(self, id: str) -> Satisfaction:
        return _STATES[int(self._states[self._numbers[id]])]

    def states(self) -> Mapping[str, Satisfaction]:
        """Of all expectations."""
        states = self._states.tolist()
        return {id: _STATES[states[number]] for id, number in self._numbers.items()}

    def by_pools(self, numbers: Sequence[int], state: Satisfaction) -> Mapping[Pools, Sequence[int]]:
        """Of many expectations the places of those in a state, by the pools that are relevant to them."""
        looking = self._looking
        found: dict[Pools, list[int]] = defaultdict(list)
        for place in np.flatnonzero(self._states.take(numbers) == state).tolist():
            found[looking[numbers[place]]].append(place)
        return found

    def candidates(self, id: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Of all relevant profiles those that satisfy it, and those that do not but could be adapted to it; by id."""
        asked = self._asking[self._numbers[id]].asked
        now: list[str] = []
        able: list[str] = []
        for pool in self._relevant(id):
            for found, more in zip((now, able), pool.candidates(asked), strict=True):
                found += more
        return tuple(sorted(now)), tuple(sorted(able))

    def match(self, id: str) -> QualityMatch:
        """The state with all candidates."""
        now, able = self.candidates(id)
        return QualityMatch(state=self.state(id), now=now, able=able)

    def relevant(self, id: str) -> tuple[str, ...]:
        """All profiles that are relevant to it, by id."""
        return tuple(sorted(each for pool in self._relevant(id) for each in pool.profiles))

    def profile(self, id: str) -> Profile:
        return self._pools[self._homes[id].pool].profiles[id]

    def leading(self, id: str) -> tuple[Profile, ...]:
        """Those of the relevant profiles that nobody does better than now: the closest of all is among them."""
        return tuple(pool.profiles[each] for pool in self._relevant(id) for each, _ in pool.now.members.keys)

    def relying(self, profile: str) -> tuple[str, ...]:
        """The expectations that a profile meets as it is now, of those that one publisher is enough for."""
        pool = self._pools[self._homes[profile].pool]
        met, _ = pool.met_by(pool.profiles[profile])
        return tuple(self._asking[number].id for number in pool.floors.numbers[met].tolist())

    def pool(self, name: str) -> Pool | None:
        """All that is known of a pool; it changes with what is put and dropped."""
        return self._pools.get(name)

    def numbers(self, expectations: Iterable[Expectation]) -> list[int]:
        """By which pools know expectations."""
        return list(map(self._numbers.__getitem__, map(_ID, expectations)))

    def expectation(self, number: int) -> Expectation:
        return self._asking[number]

    def alternatives(self, subscription: str) -> Sequence[Expectation]:
        """The expectations of a subscription."""
        return [self._asking[number] for number in self._together.get(subscription, ())]

    def wanting_several(self, pool: str) -> tuple[Expectation, ...]:
        """Those that want several publishers and can get some of this pool; no pool has their floors."""
        return tuple(self._asking[self._numbers[id]] for id in sorted(self._several.get(pool, ())))

    # ── changing ──────────────────────────────────────────────────────────────────────────────────

    def put_profile(self, profile: Profile, pool: str) -> frozenset[str]:
        """A profile is there, is another, or is in another pool."""
        before: dict[int, int] = {}
        if profile.id in self._homes and self._homes[profile.id].pool != pool:
            self._take_out(profile.id, before)
        if profile.id not in self._homes:
            self._settle(profile.id, pool)
        place = self._made(pool)
        if place.put(profile):
            self._reconsider(profile, place, before)
            self._recount(pool, before)
        return self._changed(before)

    def drop_profile(self, id: str) -> frozenset[str]:
        before: dict[int, int] = {}
        if id in self._homes:
            self._take_out(id, before)
        return self._changed(before)

    def put_expectation(self, expectation: Expectation, pools: Pools) -> frozenset[str]:
        """An expectation is there or is another; one that is new always counts as changed."""
        return self.put_many(expectations=[(expectation, pools)])

    def drop_expectation(self, id: str) -> frozenset[str]:
        if id in self._numbers:
            self._free_numbers.append(self._forget(id))
        return frozenset()

    def put_many(
        self,
        profiles: Iterable[tuple[Profile, str]] = (),
        expectations: Iterable[tuple[Expectation, Pools]] = (),
    ) -> frozenset[str]:
        """Many at once. Every expectation of a pool that gets new profiles is matched anew."""
        before: dict[int, int] = {}
        touched = self._take_in(profiles)
        decided, new = self._enter(expectations, before)
        chosen = np.zeros(len(self._asking), dtype=np.bool_)
        for name in touched & self._pools.keys():
            chosen[self._pools[name].floors.numbers] = True
        chosen[new] = False
        self._note(before, np.flatnonzero(chosen))
        chosen[decided] = True
        self._match(np.flatnonzero(chosen))
        for name in touched:
            self._recount(name, before)
            self._tidy(name)
        return self._changed(before).union([self._asking[number].id for number in new])

    # ── profiles ──────────────────────────────────────────────────────────────────────────────────

    def _take_in(self, profiles: Iterable[tuple[Profile, str]]) -> set[str]:
        """Put profiles into their pools, and tell which pools are not what they were."""
        touched: set[str] = set()
        latest = {profile.id: (profile, pool) for profile, pool in profiles}
        by_pool: dict[str, list[int]] = defaultdict(list)
        for place, (id, (_, name)) in enumerate(latest.items()):
            if id in self._homes:
                touched.add(self._remove(id).pool)
            self._settle(id, name)
            by_pool[name].append(place)
        known = [(id, profile) for id, (profile, _) in latest.items()]
        provided = ProfileMatrix(dict(known))
        for name, places in by_pool.items():
            pool = self._made(name)
            pool.put_new(dict([known[place] for place in places]), provided.of(places, pool.columns))
        return touched.union(by_pool)

    def _settle(self, id: str, pool: str) -> None:
        number = self._free_homes.pop() if self._free_homes else len(self._publishing)
        self._homes[id] = _PoolSlot(number, pool)
        self._publishing[number : number + 1] = (id,)

    def _remove(self, id: str) -> _PoolSlot:
        """Take a profile out of its pool, and tell where it was."""
        home = self._homes.pop(id)
        self._pools[home.pool].drop(id)
        self._free_homes.append(home.number)
        return home

    def _take_out(self, id: str, before: dict[int, int]) -> None:
        home = self._remove(id)
        numbers = self._pools[home.pool].floors.numbers
        lost = numbers[self._witnesses[numbers] == home.number]
        self._note(before, lost)
        self._match(lost)
        self._recount(home.pool, before)
        self._tidy(home.pool)

    def _reconsider(self, profile: Profile, pool: Pool, before: dict[int, int]) -> None:
        """A profile of a pool has other points than before: raise what it raises, match again what it let fall."""
        number = self._homes[profile.id].number
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

    def _enter(
        self, expectations: Iterable[tuple[Expectation, Pools]], before: dict[int, int]
    ) -> tuple[list[int], list[int]]:
        """Write down who asks what; tell the numbers of those that skylines decide on, and of those that are new."""
        latest = {pair[0].id: pair for pair in expectations}
        again = [id for id in latest if id in self._numbers] if self._numbers else []
        self._note(before, np.asarray([self._numbers[id] for id in again], dtype=np.int64))
        known = {id: self._forget(id) for id in again}
        new = numbers = self._new_numbers(len(latest) - len(known))
        if known:
            unused = iter(new)
            numbers = [known[id] if id in known else next(unused) for id in latest]
        self._numbers.update(zip(latest, numbers, strict=True))
        asking, looking, together = self._asking, self._looking, self._together
        decided: list[int] = []
        several: list[int] = []
        for number, (each, pools) in zip(numbers, latest.values(), strict=True):
            asking[number], looking[number] = each, pools
            others = together.get(each.subscription)
            together[each.subscription] = (number,) if others is None else (*others, number)
            (decided if each.publishers == 1 else several).append(number)
        self._put_floors(decided)
        for number in several:
            self._put_several(number)
        return decided, new

    def _new_numbers(self, count: int) -> list[int]:
        """Numbers that nobody has."""
        again = max(len(self._free_numbers) - count, 0)
        found = self._free_numbers[again:]
        del self._free_numbers[again:]
        first, last = len(self._asking), len(self._asking) + count - len(found)
        self._asking += [_NO_EXPECTATION] * (last - first)
        self._looking += [frozenset()] * (last - first)
        missing = len(self._asking) - len(self._states)
        if missing > 0:
            missing += len(self._asking)
            self._states = np.concatenate([self._states, np.full(missing, _NONE, dtype=np.int8)])
            self._witnesses = np.concatenate([self._witnesses, np.full(missing, _NOBODY, dtype=np.int64)])
        return [*found, *range(first, last)]

    def _put_floors(self, numbers: list[int]) -> None:
        asked = floors_of([self._asking[number] for number in numbers])
        by_pool: dict[str, list[int]] = defaultdict(list)
        for place, number in enumerate(numbers):
            for name in self._looking[number]:
                by_pool[name].append(place)
        for name, places in by_pool.items():
            pool = self._made(name)
            (floors,) = asked.of(places, pool.columns)
            pool.floors.put_new([numbers[place] for place in places], floors)

    def _put_several(self, number: int) -> None:
        for name in self._looking[number]:
            self._several.setdefault(name, set()).add(self._asking[number].id)
        self._witnesses[number] = _NOBODY
        self._count(number)

    def _forget(self, id: str) -> int:
        """Take out what an expectation asks, and tell the number that it had."""
        number = self._numbers.pop(id)
        expectation = self._asking[number]
        together = tuple(each for each in self._together.pop(expectation.subscription) if each != number)
        if together:
            self._together[expectation.subscription] = together
        for name in self._looking[number]:
            if expectation.publishers > 1:
                self._several[name].remove(id)
            else:
                self._pools[name].floors.drop(number)
                self._tidy(name)
        return number

    def _made(self, name: str) -> Pool:
        pool = self._pools.get(name)
        if pool is None:
            pool = self._pools[name] = Pool()
        return pool

    def _tidy(self, name: str) -> None:
        """Nothing is kept of a pool in which nothing is left."""
        pool = self._pools.get(name)
        if pool is not None and not pool.profiles and not len(pool.floors):
            del self._pools[name]

    # ── matching ──────────────────────────────────────────────────────────────────────────────────

    def _match(self, numbers: Numbers) -> None:
        """Match expectations, by their numbers, against the skylines of all their pools."""
        if not len(numbers):
            return
        self._states[numbers] = _NONE
        self._witnesses[numbers] = _NOBODY
        asking = self._looked_up(numbers) if len(numbers) < _FEW * len(self._pools) else self._sifted(numbers)
        for pool, chosen, floors in asking:
            self._raise(pool, chosen, floors)

    def _looked_up(self, numbers: Numbers) -> list[tuple[Pool, Numbers, Matrix]]:
        """Pools with profiles, which of these expectations they are relevant to, and what those ask."""
        by_pool: dict[str, list[int]] = {}
        for number in numbers.tolist():
            for name in self._looking[number]:
                by_pool.setdefault(name, []).append(number)
        asking = [(pool, each) for name, each in by_pool.items() if (pool := self._pools[name]).profiles]
        return [(pool, np.asarray(each), pool.floors.of(each)) for pool, each in asking]

    def _sifted(self, numbers: Numbers) -> list[tuple[Pool, Numbers, Matrix]]:
        """The same for many: each pool is asked which of them it has."""
        wanted = np.zeros(len(self._asking), dtype=np.bool_)
        wanted[numbers] = True
        found: list[tuple[Pool, Numbers, Matrix]] = []
        for pool in self._pools.values():
            if pool.profiles:
                chosen = wanted[pool.floors.numbers]
                found.append((pool, pool.floors.numbers[chosen], pool.floors.values[:, chosen]))
        return found

    def _raise(self, pool: Pool, numbers: Numbers, floors: Matrix) -> None:
        """Raise those to a state that somebody of a pool has them in and that are not there yet."""
        now, able = pool.now.sufficient, pool.able.sufficient
        first = first_that_meet(floors, np.concatenate([now.values, able.values], axis=1))
        reached = np.where(first < 0, _NONE, np.where(first < len(now), _NOW, _ABLE)).astype(np.int8)
        raised = reached > self._states[numbers]
        witnesses = np.asarray([self._homes[id].number for id, _ in (*now.keys, *able.keys)], dtype=np.int64)
        numbers = numbers[raised]
        self._states[numbers] = reached[raised]
        self._witnesses[numbers] = witnesses[first[raised]]

    def _recount(self, pool: str, before: dict[int, int]) -> None:
        """Count again for those that want several publishers and can get some of this pool."""
        for id in self._several.get(pool, ()):
            number = self._numbers[id]
            self._note(before, np.asarray([number]))
            self._count(number)

    def _count(self, number: int) -> None:
        expectation = self._asking[number]
        now, able = ([self.profile(each) for each in found] for found in self.candidates(expectation.id))
        self._states[number] = satisfaction_of(expectation, now, able)

    def _relevant(self, id: str) -> list[Pool]:
        return [self._pools[name] for name in self._looking[self._numbers[id]] if name in self._pools]

    # ── what changed ──────────────────────────────────────────────────────────────────────────────

    def _note(self, before: dict[int, int], numbers: Numbers) -> None:
        """Remember the states of expectations that may change."""
        for number, state in zip(numbers.tolist(), self._states[numbers].tolist(), strict=True):
            before.setdefault(number, state)

    def _changed(self, before: Mapping[int, int]) -> frozenset[str]:
        numbers = np.fromiter(before, dtype=np.int64, count=len(before))
        former = np.fromiter(before.values(), dtype=np.int8, count=len(before))
        different = numbers[self._states[numbers] != former].tolist()
        return frozenset(self._asking[number].id for number in different)
