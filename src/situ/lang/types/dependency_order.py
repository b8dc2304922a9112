"""Dependency order: what must be built before what, and where that runs in circles.

A plain graph algorithm over names, without recursion, linear in names and needs. It knows nothing of types.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping
from typing import Generic, TypeVar

import msgspec

N = TypeVar("N", bound=Hashable)

_MOST_SHOWN = 12


class Circle(msgspec.Struct, Generic[N], frozen=True):
    """``names[0]`` needs ``names[1]`` and so on, and the last needs the first. A long one is cut in the middle."""

    names: tuple[N, ...]
    cut: bool = False

    @property
    def closing(self) -> tuple[N, N]:
        """The need (from, to) that closes it: without this one it is none."""
        return self.names[-1], self.names[0]

    def __str__(self) -> str:
        shown = [str(name) for name in (*self.names, self.names[0])]
        if self.cut:
            shown.insert(-2, "…")
        return " → ".join(shown)


def dependency_order(needs: Mapping[N, Collection[N]]) -> tuple[list[N], list[Circle[N]]]:
    """All names with what they need before them, and the circles found on the way.

    The closing need of every circle is ignored in the order, and taking all of these out leaves no circle. Needs that
    are no names are skipped.
    """
    order: list[N] = []
    circles: list[Circle[N]] = []
    done: set[N] = set()
    for start in needs:
        if start not in done:
            _visit(start, needs, done, order, circles)
    return order, circles


def entangled(needs: Mapping[N, Collection[N]]) -> set[N]:
    """The names in circles, and those on ways between circles: what is left when ends are taken off again and again."""
    forth = {name: {need for need in each if need in needs} for name, each in needs.items()}
    back: dict[N, set[N]] = {name: set() for name in needs}
    for name, each in forth.items():
        for need in each:
            back[need].add(name)
    left = _without_ends(set(needs), forth, back)
    return _without_ends(left, back, forth)


def _without_ends(names: set[N], ahead: Mapping[N, set[N]], behind: Mapping[N, set[N]]) -> set[N]:
    left = set(names)
    ways_on = {name: len(ahead[name] & names) for name in names}
    loose = [name for name, ways in ways_on.items() if not ways]
    while loose:
        end = loose.pop()
        left.discard(end)
        for name in behind[end] & left:
            ways_on[name] -= 1
            if not ways_on[name]:
                loose.append(name)
    return left


def _visit(start: N, needs: Mapping[N, Collection[N]], done: set[N], order: list[N], circles: list[Circle[N]]) -> None:
    way: list[tuple[N, Iterator[N]]] = [(start, iter(needs[start]))]
    place: dict[N, int] = {start: 0}
    while way:
        current, rest = way[-1]
        following = next((name for name in rest if name in needs and name not in done), None)
        if following is None:
            way.pop()
            del place[current]
            done.add(current)
            order.append(current)
        elif following in place:
            circles.append(_circle(way, place[following]))
        else:
            place[following] = len(way)
            way.append((following, iter(needs[following])))


def _circle(way: list[tuple[N, Iterator[N]]], first: int) -> Circle[N]:
    if len(way) - first <= _MOST_SHOWN:
        return Circle(tuple(name for name, _ in way[first:]))
    shown = [name for name, _ in way[first : first + _MOST_SHOWN - 1]]
    return Circle((*shown, way[-1][0]), cut=True)
