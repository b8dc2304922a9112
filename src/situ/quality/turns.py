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

from situ.quality.expectation import Expectation
from situ.quality.field import Field
from situ.quality.ground import Ground
from situ.quality.groups import Groups
from situ.quality.matching import State

_AHEAD = 256
"""Expectations that are looked at together, with all profiles: what is in between must stay small."""
_Pools = frozenset[str]
_ByPools = Mapping[_Pools, Sequence[Expectation]]
"""Expectations by the pools that are relevant to them."""
_NO_POOLS = _Pools()


class Part:
    """Those that have their turns among each other, and depend on nobody else."""

    def __init__(self, ground: Ground, wanting: _ByPools, satisfied: _ByPools) -> None:
        self.wanting = [(ground.field_of(pools), some) for pools, some in wanting.items()]
        """Those that are not satisfied as things are, and could be, by their fields."""
        self._satisfied = satisfied
        self._switched = [
            (ground.field_of(pools), satisfied[pools]) for pools in satisfied if ground.is_switched(pools)
        ]
        """Those that are, where modes were others than now before anybody had a turn."""
        self._ground = ground
        self._passed = -1
        """The place in the order of whose turn it was last."""
        self._fallen: list[tuple[int, str, Expectation]] = []
        """Of those that are satisfied as things are, who has lost somebody by the plan; a heap."""

    def unmet(self) -> Iterator[Expectation]:
        """Those that the plan does not meet when it is their turn. It may go on while they are given out."""
        for each, field in self._turns():
            self._passed = each.order
            if not field.is_met(each):
                yield each
                if self._ground.fallen:
                    self._note_fallen()

    def _turns(self) -> Iterator[tuple[Expectation, Field]]:
        """Those that come next are looked at together."""
        waiting = [(each, field) for field, some in (*self.wanting, *self._switched) for each in some]
        if len(self.wanting) + len(self._switched) > 1:
            waiting.sort(key=lambda turn: turn[0].order)
        for start in range(0, len(waiting), _AHEAD):
            coming = waiting[start : start + _AHEAD]
            fields = _by_field(turn for turn in coming if turn[0].publishers == 1)
            for field, some in fields:
                field.look_ahead(some)
            for turn in coming:
                if self._fallen:
                    yield from self._fallen_before(turn[0])
                yield turn
            for field, _ in fields:
                field.look_ahead(())
        yield from self._fallen_before(None)

    def _note_fallen(self) -> None:
        for each in self._ground.fallen:
            if each.id in self._could_fall:
                heappush(self._fallen, (each.order, each.id, each))
        self._ground.fallen.clear()

    @cached_property
    def _could_fall(self) -> frozenset[str]:
        return frozenset(each.id for some in self._satisfied.values() for each in some)

    def _fallen_before(self, other: Expectation | None) -> Iterator[tuple[Expectation, Field]]:
        while self._fallen and (other is None or self._fallen[0][0] < other.order):
            place, _, each = heappop(self._fallen)
            if place > self._passed:
                yield each, self._ground.field(each)


def parts_of(ground: Ground) -> Iterator[Part]:
    """All that have a turn."""
    wanting, satisfied = _by_pools(ground)
    asked = [*{**wanting, **satisfied}]
    for part in _joined(asked) if ground.problem.strategy.budget is None else [asked]:
        if not wanting.keys().isdisjoint(part) or any(map(ground.is_switched, part)):
            yield Part(
                ground, *({pools: some[pools] for pools in part if pools in some} for some in (wanting, satisfied))
            )


def _by_pools(ground: Ground) -> tuple[_ByPools, _ByPools]:
    """Of those that are decided on, who could be satisfied as things are, and who is."""
    problem, relevant = ground.problem, ground.problem.relevant
    asking: Sequence[Expectation] = problem.expectations
    if problem.undecided is not None:
        asking = [each for each in asking if each.id in problem.undecided]
    wanting: dict[_Pools, list[Expectation]] = defaultdict(list)
    satisfied: dict[_Pools, list[Expectation]] = defaultdict(list)
    for each, state in zip(asking, ground.states(asking), strict=True):
        if state is not State.UNSATISFIED:
            found = wanting if state is State.SATISFIABLE else satisfied
            found[relevant.get(each.subscription, _NO_POOLS)].append(each)
    return wanting, satisfied


def _joined(sets: Sequence[_Pools]) -> Iterable[Sequence[_Pools]]:
    """Sets of pools, together where they have some in common."""
    groups = Groups[str]()
    for pools in sets:
        groups.join(pools)
    parts: dict[str, list[_Pools]] = defaultdict(list)
    for pools in sets:
        parts[groups.of(min(pools, default=""))].append(pools)
    return parts.values()


def _by_field(turns: Iterable[tuple[Expectation, Field]]) -> list[tuple[Field, list[Expectation]]]:
    found: dict[int, tuple[Field, list[Expectation]]] = {}
    for each, field in turns:
        known = found.get(id(field))
        if known is None:
            known = found[id(field)] = (field, [])
        known[1].append(each)
    return list(found.values())
