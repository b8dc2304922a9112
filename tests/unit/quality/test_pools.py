"""Groups: who belongs together after what was joined."""

from __future__ import annotations

from situ.quality.allocation.search_space import DisjointSets


def test_whoever_is_joined_is_known_by_the_least_of_them() -> None:
    groups = DisjointSets[str]()
    groups.join(["c", "b"])
    groups.join(["d", "e"])
    assert [groups.of(each) for each in "abcde"] == ["a", "b", "b", "d", "d"]
    groups.join(["e", "c"])
    assert {groups.of(each) for each in "bcde"} == {"b"}
    assert groups.of("a") == "a"


def test_joining_one_or_none_changes_nothing() -> None:
    groups = DisjointSets[int]()
    groups.join([])
    groups.join([3])
    assert (groups.of(3), groups.of(1)) == (3, 1)
