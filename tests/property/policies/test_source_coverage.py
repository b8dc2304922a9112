"""The smallest set of sources is the smallest: against trying all of them."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from situ.policies.source_coverage import smallest_cover

ATTRIBUTES = "abcdef"
given_sets = st.dictionaries(
    st.text("pqrstu", min_size=1, max_size=2), st.frozensets(st.sampled_from(ATTRIBUTES)), min_size=1, max_size=7
)


def by_trying_all(needed: frozenset[str], sets: dict[str, frozenset[str]]) -> tuple[str, ...]:
    for count in range(len(sets) + 1):
        found = [
            names for names in combinations(sorted(sets), count) if needed <= frozenset().union(*map(sets.get, names))
        ]  # type: ignore[arg-type]
        if found:
            return min(found)
    raise AssertionError("the caller asks for what is there")


@given(given_sets, st.frozensets(st.sampled_from(ATTRIBUTES)))
def test_the_fewest_sources_and_the_first_of_them_by_name(
    sets: dict[str, frozenset[str]], wanted: frozenset[str]
) -> None:
    needed = wanted & frozenset().union(*sets.values())
    assert smallest_cover(needed, sets) == by_trying_all(needed, sets)


def test_many_sources_are_no_trouble() -> None:
    attributes = [f"a{number}" for number in range(30)]
    sets = {f"s{number:02}": frozenset(attributes[number : number + 3]) for number in range(28)}
    assert len(smallest_cover(frozenset(attributes), sets)) == 10
