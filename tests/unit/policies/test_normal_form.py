"""Conditions in extended conjunctive normal form: the rules, what is left out, what is refused."""

from __future__ import annotations

import time

import pytest

from situ.lang.expr.tree import TRUE
from situ.lang.problems import Location, SituError
from situ.policies.check.normal_form import (
    ResolvedAll,
    ResolvedAny,
    ResolvedCondition,
    ResolvedRelation,
    ResolvedSequence,
    to_normal_form,
)
from situ.policies.logic_tree import clause_text
from situ.policies.model import (
    Absence,
    Clause,
    ConditionPart,
    Disjunction,
    Relation,
    RelationLiteral,
    SequenceGap,
    SequenceLiteral,
    Side,
)

W = 5_000_000
LIMIT = 4096


def holds(name: str, *, negated: bool = False, location: Location | None = None, place: int = 0) -> ResolvedRelation:
    relation = Relation(text=name, left=Side(alias="A", attributes=("x",), event="x"), right=None, test=TRUE)
    return ResolvedRelation(RelationLiteral(relation, negated, place), location=location)


A, B, C, D, E = (holds(name) for name in "ABCDE")
NOT_A, NOT_B = holds("A", negated=True), holds("B", negated=True)


def both(*parts: ResolvedCondition) -> ResolvedAll:
    return ResolvedAll(parts)


def either(*parts: ResolvedCondition) -> ResolvedAny:
    return ResolvedAny(parts)


def then(first: ResolvedCondition, *following: ResolvedCondition, within: int = W) -> ResolvedCondition:
    for each in following:
        first = ResolvedSequence(first, each, within)
    return first


def clauses_of(condition: ResolvedCondition, limit: int = LIMIT) -> tuple[Clause, ...]:
    return to_normal_form(condition, W, limit)[1]


def shown(condition: ResolvedCondition, limit: int = LIMIT) -> str:
    clauses = [clause_text(clause, W) for clause in clauses_of(condition, limit)]
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
def test_conversion(condition: ResolvedCondition, expected: str) -> None:
    assert shown(condition) == expected


def test_alternatives_inside_a_sequence_are_whole_ways() -> None:
    """Not ``(A→B or A→C) and (B→D or C→D)``, which an A before a B and a C before a D would meet."""
    assert shown(then(A, either(B, C), D)) == "(A→B or A→C) and (A→B or C→D) and (B→D or A→C) and (B→D or C→D)"
    assert shown(then(either(A, B), both(C, D))) == "(A→C or B→C) and (A→C or B→D) and (A→D or B→C) and (A→D or B→D)"


def test_what_is_written_twice_is_two() -> None:
    again = holds("A", place=1)
    assert shown(both(A, again)) == "A and A"
    assert shown(then(A, again)) == "A→A"
    assert shown(then(A, B, again)) == "A→B and B→A"
    assert shown(either(again, both(A, B))) == "(A or A) and (A or B)"
    assert shown(both(A, A)) == "A"


def parts(condition: ResolvedCondition) -> tuple[ConditionPart, ...]:
    return to_normal_form(condition, W, LIMIT)[0]


def test_an_or_is_one_choice() -> None:
    a, b, c, d = (each.literal for each in (A, B, C, D))
    assert parts(either(A, B)) == (Disjunction(((a,), (b,))),)
    assert parts(either(both(A, B), C)) == (Disjunction(((a, b), (c,))),)
    assert parts(either(A, either(B, C))) == (Disjunction(((a,), (b,), (c,))),)
    assert parts(either(A, both(B, either(C, D)))) == (Disjunction(((a,), (b, Disjunction(((c,), (d,)))))),)
    assert parts(then(A, either(B, C), D)) == (
        Disjunction(
            ((SequenceLiteral(a, b, W), SequenceLiteral(b, d, W)), (SequenceLiteral(a, c, W), SequenceLiteral(c, d, W)))
        ),
    )
    assert parts(then(both(A, B), either(C, D))) == (
        Disjunction(
            ((SequenceLiteral(a, c, W), SequenceLiteral(b, c, W)), (SequenceLiteral(a, d, W), SequenceLiteral(b, d, W)))
        ),
    )
    # Nothing else has a choice in it, so what is before it need not be repeated in each of the branches.
    assert parts(then(both(A, either(B, C)), D)) == (
        SequenceLiteral(a, d, W),
        Disjunction(((SequenceLiteral(b, d, W),), (SequenceLiteral(c, d, W),))),
    )
    inner = both(A, either(B, C))
    assert [
        len(each.branches) for each in parts(then(inner, both(D, either(E, A)))) if isinstance(each, Disjunction)
    ] == [2]


def test_branches_of_what_is_absent_are_one() -> None:
    a, not_a, not_b, c = (each.literal for each in (A, NOT_A, NOT_B, C))
    not_c = RelationLiteral(c.relation, negated=True)
    assert parts(either(NOT_A, NOT_B)) == (Absence((not_a, not_b)),)
    assert parts(either(NOT_A, C, NOT_B)) == (Disjunction(((c,),), (Absence((not_a, not_b)),)),)
    assert parts(either(both(NOT_A, NOT_B), ResolvedRelation(not_c))) == (
        Absence((not_a, not_c)),
        Absence((not_b, not_c)),
    )
    assert parts(either(both(A, NOT_B), C)) == (Disjunction(((a, Absence((not_b,))), (c,))),)
    assert parts(both(B, either(A, NOT_A))) == (B.literal,)
    assert parts(either(A, both(NOT_A, NOT_B))) == (Disjunction(((a,),), (Absence((not_b,)),)),)


def test_absences_belong_to_what_is_beside_them() -> None:
    a, b, c, not_a, not_b = (each.literal for each in (A, B, C, NOT_A, NOT_B))
    bounded = ResolvedSequence(ResolvedSequence(A, NOT_B, 2), C)
    assert parts(ResolvedSequence(ResolvedSequence(A, NOT_B), C)) == (SequenceLiteral(a, c, W, (SequenceGap(not_b),)),)
    assert parts(bounded) == (SequenceLiteral(a, c, W, (SequenceGap(not_b, 2),)),)
    assert parts(ResolvedSequence(ResolvedSequence(C, NOT_A, 2), NOT_B)) == (
        SequenceLiteral(c, not_b, W, (SequenceGap(not_a, 2),)),
    )
    assert parts(ResolvedSequence(ResolvedSequence(NOT_A, NOT_B), C, 2)) == (
        SequenceLiteral(not_a, c, W, (SequenceGap(not_b, 2),)),
    )
    assert parts(ResolvedSequence(ResolvedSequence(NOT_A, B), C)) == (
        SequenceLiteral(not_a, b, W),
        SequenceLiteral(b, c, W),
    )
    assert parts(ResolvedSequence(NOT_A, NOT_B)) == (Absence((SequenceLiteral(not_a, not_b, W),)),)
    shown = [clause_text(clause, W) for clause in to_normal_form(bounded, W, LIMIT)[1]]
    assert shown == ["A followed-by within 2 us not B followed-by C"]


def test_each_step_keeps_its_window() -> None:
    first, second, third = 1_000_000, 2_000_000, 3_000_000
    a, b, c, d = (each.literal for each in (A, B, C, D))
    chain = ResolvedSequence(ResolvedSequence(ResolvedSequence(A, B, first), C, second), D, third)
    assert clauses_of(chain, LIMIT) == (
        (SequenceLiteral(a, b, first),),
        (SequenceLiteral(b, c, second),),
        (SequenceLiteral(c, d, third),),
    )
    inner = ResolvedSequence(A, both(B, ResolvedSequence(C, D, second)), first)
    assert clauses_of(inner, LIMIT) == (
        (SequenceLiteral(a, b, first),),
        (SequenceLiteral(a, c, first),),
        (SequenceLiteral(c, d, second),),
    )


def test_repetition_absorbed_clauses_and_tautologies_are_left_out() -> None:
    assert shown(both(A, A, either(A, B))) == "A"
    assert shown(either(A, A)) == "A"
    assert shown(both(either(A, B), either(B, A), either(C, A, B))) == "(A or B)"
    assert shown(both(C, either(A, NOT_A))) == "C"
    assert shown(either(both(A, B), both(A, B))) == "A and B"
    assert clauses_of(either(A, NOT_A), LIMIT) == ()
    assert clauses_of(either(both(A, B), NOT_A, NOT_B), LIMIT) == ()


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
def test_contradictions_are_refused(condition: ResolvedCondition) -> None:
    with pytest.raises(SituError) as refused:
        clauses_of(condition, LIMIT)
    assert refused.value.code == "S151"


def test_contradiction_names_what_is_needed_for_it() -> None:
    place = Location(file="p.dpl", line=7)
    with pytest.raises(SituError) as refused:
        clauses_of(both(either(C, D), holds("A", location=place), either(NOT_A, B), E, NOT_B), LIMIT)
    (problem,) = refused.value.problems
    assert problem.message == "These conditions cannot be met together: `A`, `not A or B` and `not B`."
    assert problem.location == place


def test_sequences_do_not_contradict() -> None:
    assert shown(both(then(A, B), then(B, A))) == "A→B and B→A"
    assert shown(both(then(A, B), NOT_A)) == "A→B and not A"


def test_conditions_that_explode_are_stopped_before_they_do() -> None:
    place = Location(file="p.dpl", line=3)
    pairs = tuple(both(holds(f"x{n}"), holds(f"y{n}")) for n in range(60))
    started = time.process_time()
    with pytest.raises(SituError) as refused:
        clauses_of(both(A, ResolvedAny(pairs, location=place)), LIMIT)
    assert time.process_time() - started < 2
    (problem,) = refused.value.problems
    assert (problem.code.code, problem.location) == ("S150", place)
    assert "more than 10^19 literals before any is left out; at most 4096" in problem.message  # 60 · 2^60


def test_sequences_that_explode_are_stopped_before_they_do() -> None:
    choice = either(*(holds(f"x{n}") for n in range(20)))
    with pytest.raises(SituError) as refused:
        clauses_of(then(*[choice] * 8), LIMIT)
    (problem,) = refused.value.problems
    assert problem.code.code == "S150"
    assert f"{7 * 20**8:,} literals" in problem.message


def test_limit_counts_what_is_left() -> None:
    alike = both(*(holds(f"x{n}") for n in range(64)))
    assert len(clauses_of(either(alike, alike), 64)) == 64
    assert len(clauses_of(both(*(holds(f"x{n}") for n in range(10))), 10)) == 10
    with pytest.raises(SituError, match="comes to 11 literals before any is left out; at most 10"):
        clauses_of(both(*(holds(f"x{n}") for n in range(11))), 10)
    with pytest.raises(SituError, match="comes to 24 literals before any is left out; at most 23"):
        clauses_of(either(both(A, B), both(C, D), both(E, holds("F"))), 23)


def test_long_chains_need_no_stack() -> None:
    chain = then(*(holds(f"x{n}") for n in range(3_000)))
    assert len(clauses_of(chain, LIMIT)) == 2_999
