"""Families of filter sets: minimal, nested where they would be too many, and equal in both forms."""

from __future__ import annotations

import itertools
import pickle
import random

import pytest

from situ.lang.problems import SituError
from situ.scopes import filter_sets as families
from situ.scopes.epochs import large_families
from situ.scopes.filter_sets import (
    ALWAYS,
    NEVER,
    NO_NUMBERS,
    WORD,
    Family,
    FilterNumbers,
    FilterSets,
    NestedFilterSets,
    bits_of,
    from_words,
    give_numbers,
    minimal,
    numbers_in,
    product,
    suppose,
    through,
    to_words,
    union,
)
from situ.scopes.graph import BoundaryFilter, Dimension, Scope
from situ.scopes.visibility_plan import (
    ALWAYS_PAIR,
    NEVER_PAIR,
    TagSetPair,
    Verdict,
    VisibilityPlan,
    compile_visibility,
    number_filters,
)
from tests.oracles.visibility_expression import to_expression
from tests.scopes import graph_of, tags


def test_sets_that_contain_others_are_dropped() -> None:
    assert minimal([0b111, 0b011, 0b100, 0b1001, 0b011]) == (0b100, 0b011, 0b1001)
    assert minimal([0b1, 0]) == (0,)
    assert minimal([]) == ()


def test_never_and_always_are_found_whatever_they_are_made_of() -> None:
    assert through([]) is NEVER
    assert union([NEVER, NEVER]) is NEVER
    assert union([FilterSets((1,)), ALWAYS]) is ALWAYS
    assert product([FilterSets((1,)), NEVER]) is NEVER
    assert product([ALWAYS, ALWAYS]) is ALWAYS
    assert through([(0b1, ALWAYS)]) == FilterSets((1,))
    assert suppose(FilterSets((0b01, 0b10)), 0b01, 0) is ALWAYS
    assert suppose(FilterSets((0b01, 0b10)), 0, 0b11) is NEVER
    large = diamonds(8)
    assert suppose(large, large.filters, 0) is ALWAYS
    assert suppose(large, 0, large.filters) is NEVER


def diamonds(count: int) -> Family:
    """So many choices between two filters, one after the other: two to the power of that many sets."""
    family: Family = ALWAYS
    for number in range(count):
        family = through([(1 << 2 * number, family), (2 << 2 * number, family)])
    return family


def test_64_sets_are_written_out_and_more_are_not() -> None:
    assert len(diamonds(6).program) == 1
    assert isinstance(diamonds(6), FilterSets)
    assert isinstance(diamonds(7), NestedFilterSets)


def test_nested_families_grow_with_what_they_are_made_of_and_not_with_their_sets() -> None:
    large = diamonds(3_000)
    assert sum(len(step) for step in large.program) < 3 * 3_000 + 64
    assert large.holds(bits_of(range(0, 6_000, 2)))
    assert not large.holds(bits_of(range(2, 6_000, 2)))
    again = pickle.loads(pickle.dumps(large))
    assert again == large
    assert hash(again) == hash(large)
    assert repr(large).endswith("6000 filters)")


def random_family(dice: random.Random, depth: int) -> Family:
    if depth == 0:
        return dice.choice((ALWAYS, NEVER, *(FilterSets((1 << number,)) for number in range(6))))
    parts = [random_family(dice, depth - 1) for _ in range(dice.randint(1, 3))]
    return dice.choice((union, product))(parts)


@pytest.mark.parametrize("most", [1, 2, 64])
def test_all_forms_of_a_family_hold_for_the_same_bits(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(150):
        written_out = random_family(random.Random(seed), 3)
        with monkeypatch.context() as patch:
            patch.setattr(families, "MOST_SETS", most)
            family = random_family(random.Random(seed), 3)
            true, false = seed % 7, 8 * (seed % 5)
            supposed = suppose(family, true, false)
        assert isinstance(written_out, FilterSets)
        for bits in range(64):
            assert family.holds(bits) == written_out.holds(bits), (seed, bits)
            assert supposed.holds(bits) == family.holds((bits | true) & ~false), (seed, bits)
        assert (family is ALWAYS) == (written_out is ALWAYS)
        assert (family is NEVER) == (written_out is NEVER)
        assert pickle.loads(pickle.dumps(family)) == family


def test_never_and_always_stay_what_they_are_when_they_are_stored() -> None:
    assert pickle.loads(pickle.dumps(ALWAYS)) is ALWAYS
    assert pickle.loads(pickle.dumps(NEVER)) is NEVER


# ── numbers and bits ──────────────────────────────────────────────────────────────────────────────


def test_numbers_are_given_once_and_never_again() -> None:
    first = give_numbers(NO_NUMBERS, ["b", "a", "b"])
    assert dict(first.given) == {"a": 0, "b": 1}
    second = give_numbers(first, ["c"])
    assert dict(give_numbers(second, ["a", "c"]).given) == {"a": 0, "b": 1, "c": 2}
    assert give_numbers(second, ["b"]) is second
    only_the_last = FilterNumbers(given={"z": 9})
    assert give_numbers(only_the_last, ["a"])["a"] == 10, "what is gone is not given to another"
    assert second.texts() == {0: "a", 1: "b", 2: "c"}
    assert len(second) == 3


def test_bits_in_words_of_63() -> None:
    numbers = [0, 5, WORD - 1, WORD, 2 * WORD + 3]
    bits = bits_of(numbers)
    assert list(numbers_in(bits)) == numbers
    words = to_words(bits)
    assert len(words) == 3
    assert all(0 <= word < 2**63 for word in words)
    assert from_words(words) == bits
    assert to_words(0) == ()
    assert to_words(1, least=3) == (1, 0, 0)


# ── pairs ─────────────────────────────────────────────────────────────────────────────────────────


def serial_diamonds(count: int) -> VisibilityPlan:
    """``k0 ◁ l0, r0 ◁ k1 ◁ …``, each side with a filter of its own."""
    scopes: dict[str, Scope] = {f"k{count}": Scope(name=f"k{count}")}
    for number in range(count):
        for side in ("l", "r"):
            output = BoundaryFilter(text=f"severity <> {number} OR event.source = '{side}'")
            scopes[f"{side}{number}"] = Scope(name=f"{side}{number}", containers=(f"k{number + 1}",), output=output)
        scopes[f"k{number}"] = Scope(name=f"k{number}", containers=(f"l{number}", f"r{number}"))
    graph = graph_of(Dimension(name="d", scopes=scopes))
    ads, subs = [tags("k0", graph)], [tags(f"k{count}", graph), tags("k0", graph)]
    return compile_visibility(graph, ads, subs, number_filters(graph, NO_NUMBERS))


def test_serial_diamonds_do_not_explode_and_are_named() -> None:
    plan = serial_diamonds(3_333)
    (ad,), (far, near) = plan.ads, plan.subs
    assert list(plan.too_large()) == [(ad, far)]
    assert plan.pair(ad, near) is ALWAYS_PAIR
    (warning,) = large_families(plan)
    assert warning.code.code == "V109"
    assert "From `k0` to `k3333` in the dimension `d`" in warning.message
    pair = plan.pair(ad, far)
    numbers = plan.numbers
    left = bits_of(number for text, number in numbers.given.items() if text.endswith("'l'"))
    assert pair.filters == bits_of(numbers.given.values())
    assert pair.visible(left)
    assert not pair.visible(left & ~(1 << numbers["severity <> 77 OR event.source = 'l'"]))
    with pytest.raises(SituError, match="characters of a visibility expression"):
        to_expression(pair, numbers)


def test_the_expression_of_serial_diamonds_grows_with_their_number() -> None:
    lengths = []
    for count in (10, 20, 40):
        plan = serial_diamonds(count)
        (ad,), (far, _) = plan.ads, plan.subs
        lengths.append(len(to_expression(plan.pair(ad, far), plan.numbers)))
    assert lengths[2] < 5 * lengths[0], "what diamonds share is written once"


def test_expressions_of_pairs() -> None:
    numbers = give_numbers(NO_NUMBERS, ["a", "b", "c"])
    both = TagSetPair(Verdict.DEPENDS, (FilterSets((0b001, 0b110)), FilterSets((0b100,))))
    assert to_expression(both, numbers) == "((a) OR ((b) AND (c))) AND (c)"
    assert to_expression(NEVER_PAIR, numbers) == "FALSE"
    assert to_expression(TagSetPair(Verdict.ALWAYS), numbers) == "TRUE"
    assert [both.visible(bits) for bits in range(8)] == [
        bool(c and (a or b)) for c, b, a in itertools.product((0, 1), repeat=3)
    ]
