"""Turns: on whom a plan that is made one expectation at a time has to decide, and in which order.

Whoever is not satisfied as things are, and could be, has a turn. Who is satisfied needs none, as what is free only gets
better. Only where a mode becomes another may somebody lose who satisfied it: then it has a turn as well, unless its
place in the order has passed. Who shares no profile with others, nor a budget, has turns apart from theirs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from heapq import heappop, heappush
from operator import itemgetter

from situ.quality.expectation import Expectation
from situ.quality.field import Field
from situ.quality.ground import Ground
from situ.quality.groups import Groups
from situ.quality.matching import State

_AHEAD = 256
"""Expectations that are looked at together, with all profiles: what is in between must stay small."""
_Pools = frozenset[str]
_Places = Mapping[_Pools, Sequence[int]]
"""Places of expectations in the order of turns, by the pools that are relevant to them."""
_Turn = tuple[int, Expectation, Field]
"""Whose it is, and its place in the order."""
_NO_POOLS = _Pools()


class Asking:
    """All that are decided on, in the order of turns."""

    def __init__(self, ground: Ground) -> None:
        problem = ground.problem
        self.ground = ground
        self.every: Sequence[Expectation] = problem.expectations
        if problem.undecided is not None:
            self.every = [each for each in self.every if each.id in problem.undecided]

    @cached_property
    def wanting(self) -> _Places:
        """Those that are not satisfied as things are, and could be."""
        return self._by_pools(State.SATISFIABLE)

    @cached_property
    def satisfied(self) -> _Places:
        """Those that are satisfied as things are."""
        return self._by_pools(State.SATISFIED)

    def _by_pools(self, state: State) -> _Places:
        standing, relevant = self.ground.problem.standing, self.ground.problem.relevant
        if standing is not None:
            return standing.by_pools(self._numbers, state)
        found: dict[_Pools, list[int]] = defaultdict(list)
        for place, each in enumerate(self.every):
            if self.ground.state(each) is state:
                found[relevant.get(each.subscription, _NO_POOLS)].append(place)
        return found

    @cached_property
    def _numbers(self) -> Sequence[int]:
        """By which they are known to what is kept of all."""
        standing = self.ground.problem.standing
        return standing.numbers(self.every) if standing is not None else ()


class Part:
    """Those that have their turns among each other, and depend on nobody else."""

    def __init__(self, asking: Asking, sets: Sequence[_Pools]) -> None:
        """``sets`` are the pools that are relevant to somebody of this part."""
        ground, wanting = asking.ground, asking.wanting
        self._ground = ground
        self._asking = asking
        self._sets = sets
        self._open = [(ground.field_of(pools), wanting[pools]) for pools in sets if pools in wanting]
        self._switched = [
            (ground.field_of(pools), places)
            for pools in filter(ground.is_switched, sets)
            if (places := asking.satisfied.get(pools))
        ]
        """Those that are satisfied as things are, where modes were others than now before anybody had a turn."""
        self.lost: list[Expectation] = []
        """Those of all that are satisfied as things are, who were not by the plan when it was their turn."""
        self._passed = -1
        """The place of whose turn it was last."""
        self._fallen: list[int] = []
        """Places of those that are satisfied as things are, and have lost somebody by the plan; a heap."""
        self._has_fallen = False
        self._looking: list[tuple[Field, list[Expectation]]] = []

    @cached_property
    def wanting(self) -> Sequence[tuple[Field, Sequence[Expectation]]]:
        """Those that are not satisfied as things are, and could be, by their fields."""
        every = self._asking.every
        return [(field, [every[place] for place in places]) for field, places in self._open]

    def unmet(self) -> Iterator[Expectation]:
        """Those that the plan does not meet when it is their turn. It may go on while they are given out."""
        for place, each, field in self._turns():
            self._passed = place
            if not field.is_met(each):
                if (self._has_fallen or self._switched) and each.id in self._could_fall:
                    self.lost.append(each)
                yield each
                if self._ground.fallen:
                    self._note_fallen()

    def _turns(self) -> Iterator[_Turn]:
        """Those that come next are looked at together."""
        fields, every = (*self._open, *self._switched), self._asking.every
        waiting = [(place, every[place], field) for field, places in fields for place in places]
        if len(fields) > 1:
            waiting.sort(key=itemgetter(0))
        for start in range(0, len(waiting), _AHEAD):
            coming = waiting[start : start + _AHEAD]
            self.look_away()
            self._looking = _by_field(coming)
            for field, some in self._looking:
                field.look_ahead(some)
            for turn in coming:
                if self._fallen:
                    yield from self._fallen_before(turn[0])
                yield turn
        yield from self._fallen_before(len(every))

    def look_away(self) -> None:
        """Nobody comes next. Until then it is known of the last ones what they ask."""
        for field, _ in self._looking:
            field.look_ahead(())

    def _note_fallen(self) -> None:
        self._has_fallen = True
        for each in self._ground.fallen:
            place = self._could_fall.get(each.id, -1)
            if place > self._passed:
                heappush(self._fallen, place)
        self._ground.fallen.clear()

    @cached_property
    def _could_fall(self) -> Mapping[str, int]:
        satisfied, every = self._asking.satisfied, self._asking.every
        return {every[place].id: place for pools in self._sets for place in satisfied.get(pools, ())}

    def _fallen_before(self, end: int) -> Iterator[_Turn]:
        while self._fallen and self._fallen[0] < end:
            place = heappop(self._fallen)
            if place > self._passed:  # it may have fallen twice
                each = self._asking.every[place]
                yield place, each, self._ground.field(each)


def parts_of(ground: Ground) -> Iterator[Part]:
    """All that have a turn."""
    asking = Asking(ground)
    sets = list(dict.fromkeys([*asking.wanting, *asking.satisfied]))
    for part in _joined(sets) if ground.problem.strategy.budget is None else [sets]:
        if not asking.wanting.keys().isdisjoint(part) or any(map(ground.is_switched, part)):
            yield Part(asking, part)


def _joined(sets: Sequence[_Pools]) -> Iterable[Sequence[_Pools]]:
    """Sets of pools, together where they have some in common."""
    groups = Groups[str]()
    for pools in sets:
        groups.join(pools)
    parts: dict[str, list[_Pools]] = defaultdict(list)
    for pools in sets:
        parts[groups.of(min(pools, default=""))].append(pools)
    return parts.values()


def _by_field(turns: Iterable[_Turn]) -> list[tuple[Field, list[Expectation]]]:
    """Those that one publisher is enough for."""
    found: dict[int, tuple[Field, list[Expectation]]] = {}
    for _, each, field in turns:
        if each.publishers == 1:
            known = found.get(id(field))
            if known is None:
                known = found[id(field)] = (field, [])
            known[1].append(each)
    return list(found.values())
