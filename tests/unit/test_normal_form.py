"""Conditions in extended conjunctive normal form: the rules, what is left out, what is refused."""

from __future__ import annotations

import time

import pytest

from situ.errors import Location, SituError
from situ.expr.tree import TRUE
from situ.situation.policies.normal_form import normal_form
from situ.situation.policies.policy import Is, Relation, Side, Then
from situ.situation.policies.resolved import AllOf, AnyOf, Condition, FollowedBy, Holds
from situ.situation.policies.wording import clause_text

W = 5_000_000
LIMIT = 4096


def holds(name: str, *, negated: bool = False, location: Location | None = None) -> Holds:
    relation = Relation(text=name, left=Side(alias="A", attributes=("x",), event="x"), right=None, test=TRUE)
    return Holds(Is(relation, negated), location=location)


A, B, C, D, E = (holds(name) for name in "ABCDE")
NOT_A, NOT_B = holds("A", negated=True), holds("B", negated=True)


def both(*parts: Condition) -> AllOf:
    return AllOf(parts)


def either(*parts: Condition) -> AnyOf:
    return AnyOf(parts)


def then(first: Condition, *following: Condition, within: int = W) -> Condition:
    for each in following:
        first = FollowedBy(first, each, within)
    return first


def shown(condition: Condition, limit: int = LIMIT) -> str:
    clauses = [clause_text(clause, W) for clause in normal_form(condition, limit)]
    return " and ".join(f"({each})" if " or " in each else each for each in clauses).replace(" followed-by ", "→")


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (A, "A"),
        (NOT_A, "not A"),
        (both(A, B), "A and B"),
        (either(A, B), "(A or B)"),
        (either(both(A, B), C), "(A or C) and (B or C)"),
        (either(both(A, B), both(C, D)), "(A or C) and (A or D) and (B or C) and (B or D)"),
        (then(A, B), "A→B"),
        (then(A, both(B, C)), "A→B and A→C"),
        (then(A, either(B, C)), "(A→B or A→C)"),
        (then(both(A, B), C), "A→C and B→C"),
        (then(either(A, B), C), "(A→C or B→C)"),
        (then(A, B, C), "A→B and B→C"),
        (then(A, B, C, D), "A→B and B→C and C→D"),
        (then(A, then(B, C)), "A→B and B→C"),
        (then(then(A, B), then(C, D)), "A→B and B→C and C→D"),
        (then(A, both(B, either(C, D))), "A→B and (A→C or A→D)"),
        (then(A, both(B, then(C, D)), E), "A→B and B→E and A→C and C→D and D→E"),
        (then(NOT_A, B), "not A→B"),
        (either(then(A, NOT_B), NOT_A), "(A→not B or not A)"),
        (both(then(A, B), either(C, then(D, E))), "A→B and (C or D→E)"),
    ],
)
def test_conversion(condition: Condition, expected: str) -> None:
    assert shown(condition) == expected


def test_alternatives_inside_a_sequence_are_whole_ways() -> None:
    """Not ``(A→B or A→C) and (B→D or C→D)``, which an A before a B and a C before a D would meet."""
    assert shown(then(A, either(B, C), D)) == "(A→B or A→C) and (A→B or C→D) and (B→D or A→C) and (B→D or C→D)"
    assert shown(then(either(A, B), both(C, D))) == "(A→C or B→C) and (A→C or B→D) and (A→D or B→C) and (A→D or B→D)"


def test_each_step_keeps_its_window() -> None:
    first, second, third = 1_000_000, 2_000_000, 3_000_000
    a, b, c, d = (each.literal for each in (A, B, C, D))
    chain = FollowedBy(FollowedBy(FollowedBy(A, B, first), C, second), D, third)
    assert normal_form(chain, LIMIT) == ((Then(a, b, first),), (Then(b, c, second),), (Then(c, d, third),))
    inner = FollowedBy(A, both(B, FollowedBy(C, D, second)), first)
    assert normal_form(inner, LIMIT) == ((Then(a, b, first),), (Then(a, c, first),), (Then(c, d, second),))


def test_repetition_absorbed_clauses_and_tautologies_are_left_out() -> None:
    assert shown(both(A, A, either(A, B))) == "A"
    assert shown(either(A, A)) == "A"
    assert shown(both(either(A, B), either(B, A), either(C, A, B))) == "(A or B)"
    assert shown(both(C, either(A, NOT_A))) == "C"
    assert shown(either(both(A, B), both(A, B))) == "A and B"
    assert normal_form(either(A, NOT_A), LIMIT) == ()
    assert normal_form(either(both(A, B), NOT_A, NOT_B), LIMIT) == ()


def test_an_occurrence_and_its_sequence_are_no_tautology() -> None:
    assert shown(either(then(A, B), then(A, NOT_B))) == "(A→B or A→not B)"


@pytest.mark.parametrize(
    "condition",
    [
        both(A, NOT_A),
        both(A, either(B, C), NOT_A),
        both(A, either(NOT_A, B), NOT_B),
        both(either(A, B), either(A, NOT_B), either(NOT_A, B), either(NOT_A, NOT_B)),
    ],
)
def test_contradictions_are_refused(condition: Condition) -> None:
    with pytest.raises(SituError) as refused:
        normal_form(condition, LIMIT)
    assert refused.value.code == "S151"


def test_contradiction_names_what_is_needed_for_it() -> None:
    place = Location(file="p.dpl", line=7)
    with pytest.raises(SituError) as refused:
        normal_form(both(either(C, D), holds("A", location=place), either(NOT_A, B), E, NOT_B), LIMIT)
    (problem,) = refused.value.problems
    assert problem.message == "These conditions cannot be met together: `A`, `not A or B` and `not B`."
    assert problem.location == place


def test_sequences_do_not_contradict() -> None:
    assert shown(both(then(A, B), then(B, A))) == "A→B and B→A"
    assert shown(both(then(A, B), NOT_A)) == "A→B and not A"


def test_conditions_that_explode_are_stopped_before_they_do() -> None:
    place = Location(file="p.dpl", line=3)
    pairs = tuple(both(holds(f"x{n}"), holds(f"y{n}")) for n in range(60))
    started = time.perf_counter()
    with pytest.raises(SituError) as refused:
        normal_form(both(A, AnyOf(pairs, location=place)), LIMIT)
    assert time.perf_counter() - started < 2
    (problem,) = refused.value.problems
    assert (problem.code.code, problem.location) == ("S150", place)
    assert "more than 10^19 literals before any is left out; at most 4096" in problem.message  # 60 · 2^60


def test_sequences_that_explode_are_stopped_before_they_do() -> None:
    choice = either(*(holds(f"x{n}") for n in range(20)))
    with pytest.raises(SituError) as refused:
        normal_form(then(*[choice] * 8), LIMIT)
    (problem,) = refused.value.problems
    assert problem.code.code == "S150"
    assert f"{7 * 20**8:,} literals" in problem.message


def test_limit_counts_what_is_left() -> None:
    alike = both(*(holds(f"x{n}") for n in range(64)))
    assert len(normal_form(either(alike, alike), 64)) == 64
    assert len(normal_form(both(*(holds(f"x{n}") for n in range(10))), 10)) == 10
    with pytest.raises(SituError, match="comes to 11 literals before any is left out; at most 10"):
        normal_form(both(*(holds(f"x{n}") for n in range(11))), 10)
    with pytest.raises(SituError, match="comes to 24 literals before any is left out; at most 23"):
        normal_form(either(both(A, B), both(C, D), both(E, holds("F"))), 23)


def test_long_chains_need_no_stack() -> None:
    chain = then(*(holds(f"x{n}") for n in range(3_000)))
    assert len(normal_form(chain, LIMIT)) == 2_999
