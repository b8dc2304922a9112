"""Skylines: kept while points come, change and go, they are what a look at all points finds; wards have guards."""

from __future__ import annotations

import random

import pytest

from situ.quality.match import pools as skylines
from situ.quality.match.point_matrix import PropertyColumns
from situ.quality.match.pools import Key, Skyline, dominates
from situ.quality.model.declarations import Point
from tests.volume import cases

NORMAL, LONG = 45, 4_000


def undominated(points: dict[Key, Point]) -> set[Key]:
    """Those that nobody is better than: the definition, pair by pair."""

    def falls_to(below: Key, above: Key) -> bool:
        if not dominates(points[above], points[below]):
            return False
        return not dominates(points[below], points[above]) or above < below

    return {each for each in points if not any(other != each and falls_to(each, other) for other in points)}


def make_point(dice: random.Random, dimensions: int, levels: int) -> Point:
    had = [id for id in "abcde"[:dimensions] if dice.random() < 0.8]
    return {id: float(dice.randint(-levels, levels)) for id in had}


def assert_is_skyline(skyline: Skyline, points: dict[Key, Point]) -> None:
    members = set(skyline.members.keys)
    assert members == undominated(points)
    assert set(skyline.points.keys) == set(points)
    assert set(skyline._guards) == set(points) - members
    for ward, guard in skyline._guards.items():
        assert guard in members
        assert dominates(points[guard], points[ward])
        assert guard < ward or not dominates(points[ward], points[guard])


@pytest.mark.parametrize("few", [0, 10])
@cases(NORMAL, LONG)
def test_a_kept_skyline_is_the_one_that_is_found_anew(cases: int, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skylines, "_FEW", few)
    sizes: list[float] = []
    for seed in range(cases):
        dice = random.Random(seed)
        dimensions, levels = dice.randint(1, 5), dice.choice((1, 3, 100))
        skyline, points = Skyline(PropertyColumns()), dict[Key, Point]()
        keys = [(f"p{number}", mode) for number in range(dice.choice((3, 8, 25))) for mode in range(2)]
        for _ in range(dice.choice((10, 60))):
            if dice.random() < 0.15:
                news = [key for key in dice.sample(keys, dice.randint(1, len(keys))) if key not in points]
                made = {key: make_point(dice, dimensions, levels) for key in news}
                skyline.put_new(news, skyline.points.columns.matrix(list(made.values())))
                points |= made
            elif points and dice.random() < 0.5:
                gone = dice.choice(sorted(points))
                skyline.drop(gone)
                del points[gone]
            else:
                key, point = dice.choice(keys), make_point(dice, dimensions, levels)
                assert skyline.put(key, point) == (points.get(key) != point), seed
                points[key] = point
            assert set(skyline.sufficient.keys) >= undominated(points), seed
            if dice.random() < 0.5 or not few:
                assert_is_skyline(skyline, points)
        if points:
            sizes.append(len(skyline.members) / len(points))
    assert min(sizes) < 0.2
    assert max(sizes) > 0.9


def test_many_at_once_in_any_order_and_any_parts_give_the_same() -> None:
    dice = random.Random(3)
    points = {(f"p{number}", 0): make_point(dice, 4, 50) for number in range(600)}
    expected = undominated(points)
    assert 20 < len(expected) < 300
    for parts in (1, 2, 7):
        keys = list(points)
        dice.shuffle(keys)
        skyline = Skyline(PropertyColumns())
        for part in (keys[start::parts] for start in range(parts)):
            skyline.put_new(part, skyline.points.columns.matrix([points[key] for key in part]))
        assert set(skyline.members.keys) == expected
        assert_is_skyline(skyline, points)


def test_of_equal_points_the_smallest_key_stands_for_all() -> None:
    skyline = Skyline(PropertyColumns())
    for name in ("b", "c", "a", "d"):
        skyline.put((name, 0), {"rate": 1.0})
    assert skyline.members.keys == [("a", 0)]
    skyline.drop(("a", 0))
    assert skyline.members.keys == [("b", 0)]


def test_a_richer_point_dominates_a_poorer_and_never_the_other_way_round() -> None:
    rich, poor = {"rate": 1.0, "trust": 0.0}, {"rate": 1.0}
    assert dominates(rich, poor)
    assert not dominates(poor, rich)
    skyline = Skyline(PropertyColumns())
    skyline.put(("poor", 0), poor)
    skyline.put(("rich", 0), rich)
    assert skyline.members.keys == [("rich", 0)]
