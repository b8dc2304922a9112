"""The normal form means what the conditions mean, whatever is true; and it is as short as it promises."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from situ.lang.expr.tree import TRUE
from situ.lang.problems import SituError
from situ.policies.check.normal_form import (
    ResolvedAll,
    ResolvedAny,
    ResolvedCondition,
    ResolvedRelation,
    ResolvedSequence,
    to_normal_form,
)
from situ.policies.model import Clause, ConditionLiteral, Relation, RelationLiteral, SequenceGap, SequenceLiteral, Side

LIMIT = 100_000
RELATIONS = tuple(
    Relation(text=name, left=Side(alias="A", attributes=("x",), event="x"), right=None, test=TRUE) for name in "abcd"
)

holds = st.builds(
    ResolvedRelation, st.builds(RelationLiteral, st.sampled_from(RELATIONS), st.booleans(), st.integers(0, 1))
)


def _joined(inner: st.SearchStrategy[ResolvedCondition]) -> st.SearchStrategy[ResolvedCondition]:
    parts = st.lists(inner, min_size=1, max_size=3).map(tuple)
    return st.one_of(
        st.builds(ResolvedAll, parts),
        st.builds(ResolvedAny, parts),
        st.builds(ResolvedSequence, inner, inner, st.sampled_from((None, 1, 2))),
    )


conditions = st.recursive(holds, _joined, max_leaves=9)


@given(conditions)
def test_clauses_are_true_exactly_where_conditions_are(condition: ResolvedCondition) -> None:
    clauses = converted(condition)
    for world in worlds(literals(condition)):
        assert truth(condition, world) == all(any(is_met(each, world) for each in clause) for clause in clauses)


@given(conditions)
def test_clauses_have_nothing_to_spare(condition: ResolvedCondition) -> None:
    clauses = converted(condition)
    assert all(len(set(clause)) == len(clause) for clause in clauses)
    assert not any(is_tautology(clause) for clause in clauses)
    assert not any(set(one) <= set(other) for one, other in itertools.permutations(clauses, 2))


def converted(condition: ResolvedCondition) -> tuple[Clause, ...]:
    """A contradiction is an AND that cannot be met: one clause without literals."""
    try:
        return to_normal_form(condition, 3, LIMIT)[1]
    except SituError as refused:
        if refused.code != "S151":
            raise
        return ((),)


# ── what the conditions mean, said without any clause ─────────────────────────────────────────────


def truth(condition: ResolvedCondition, world: frozenset[ConditionLiteral]) -> bool:
    """``world`` is what holds: relations, and sequences of two literals, each for itself."""
    match condition:
        case ResolvedRelation(literal=literal):
            return is_met(literal, world)
        case ResolvedAll(parts=parts):
            return all(truth(part, world) for part in parts)
        case ResolvedAny(parts=parts):
            return any(truth(part, world) for part in parts)
        case ResolvedSequence():
            return sequence(steps(condition), world)


def sequence(chain: tuple[ResolvedCondition | int | None, ...], world: frozenset[ConditionLiteral]) -> bool:
    """Factors and the windows between them, in turn. Each ``or`` is chosen once, for all around it."""
    for place in range(0, len(chain), 2):
        if (ways := chosen(chain[place])) is not None:
            return any(sequence((*chain[:place], *steps(way), *chain[place + 1 :]), world) for way in ways)
    return all(each in world for way in _chains(chain) for each in follows(way))


def chosen(condition: ResolvedCondition) -> list[ResolvedCondition] | None:
    """A condition with each of the branches of its first ``or``; None if it has none."""
    match condition:
        case ResolvedRelation():
            return None
        case ResolvedAny(parts=parts):
            return list(parts)
        case ResolvedAll(parts=parts):
            for place, part in enumerate(parts):
                if (ways := chosen(part)) is not None:
                    return [ResolvedAll((*parts[:place], way, *parts[place + 1 :])) for way in ways]
            return None
        case ResolvedSequence(first=first, second=second, within=within):
            if (ways := chosen(first)) is not None:
                return [ResolvedSequence(way, second, within) for way in ways]
            ways = chosen(second)
            return None if ways is None else [ResolvedSequence(first, way, within) for way in ways]


def follows(chain: tuple[ResolvedCondition | int | None, ...]) -> Iterator[SequenceLiteral]:
    """From one step that is to happen to the next, with what is absent between; and at the ends."""
    at = [place for place in range(0, len(chain), 2) if not chain[place].literal.negated]
    if not at:
        yield from (
            SequenceLiteral(chain[n].literal, chain[n + 2].literal, chain[n + 1] or 3)
            for n in range(0, len(chain) - 2, 2)
        )
        return
    ends = [*([0] if at[0] else []), *at, *([len(chain) - 1] if at[-1] < len(chain) - 1 else [])]
    for start, end in itertools.pairwise(ends):
        inner = range(start + 2, end, 2)
        first, last = chain[start].literal, chain[end].literal
        if first.negated:
            yield SequenceLiteral(
                first, last, chain[1] or 3, tuple(SequenceGap(chain[n].literal, chain[n + 1] or 3) for n in inner)
            )
        else:
            unsaid = 3 if last.negated else 0
            gaps = tuple(SequenceGap(chain[n].literal, chain[n - 1] or unsaid) for n in inner)
            yield SequenceLiteral(first, last, chain[end - 1] or 3, gaps)


def steps(condition: ResolvedCondition) -> tuple[ResolvedCondition | int | None, ...]:
    if isinstance(condition, ResolvedSequence):
        return (*steps(condition.first), condition.within, *steps(condition.second))
    return (condition,)


def is_met(literal: ConditionLiteral, world: frozenset[ConditionLiteral]) -> bool:
    """Relations are true or not wherever they are written; sequences by themselves."""
    if isinstance(literal, RelationLiteral):
        return (RelationLiteral(literal.relation) in world) is not literal.negated
    return literal in world


def is_tautology(clause: Clause) -> bool:
    signs = {(each.relation, each.negated) for each in clause if isinstance(each, RelationLiteral)}
    return any((relation, not negated) in signs for relation, negated in signs)


def literals(condition: ResolvedCondition) -> list[ConditionLiteral]:
    """All that can be true or not: relations, and pairs of literals that can stand behind each other."""
    found = list(dict.fromkeys(_below(condition)))
    relations = [RelationLiteral(relation) for relation in dict.fromkeys(each.relation for each in found)]
    return [*relations, *dict.fromkeys(_sequences(condition))]


def _below(condition: ResolvedCondition) -> Iterator[RelationLiteral]:
    match condition:
        case ResolvedRelation(literal=literal):
            yield literal
        case ResolvedAll(parts=parts) | ResolvedAny(parts=parts):
            for part in parts:
                yield from _below(part)
        case ResolvedSequence(first=first, second=second):
            yield from _below(first)
            yield from _below(second)


def _sequences(condition: ResolvedCondition) -> Iterator[SequenceLiteral]:
    match condition:
        case ResolvedAll(parts=parts) | ResolvedAny(parts=parts):
            for part in parts:
                yield from _sequences(part)
        case ResolvedSequence():
            for chain in _chains(steps(condition)):
                yield from follows(chain)


def _chains(chain: tuple[ResolvedCondition | int | None, ...]) -> Iterator[tuple[ResolvedCondition | int | None, ...]]:
    """Every way through a sequence."""
    for place in range(0, len(chain), 2):
        if not isinstance(chain[place], ResolvedRelation):
            for part in chain[place].parts:
                yield from _chains((*chain[:place], *steps(part), *chain[place + 1 :]))
            return
    yield chain


_MOST = 10


def worlds(variables: list[ConditionLiteral]) -> Iterator[frozenset[ConditionLiteral]]:
    """All of them; where they are too many, those in which few are true and those in which few are not."""
    if len(variables) <= _MOST:
        for chosen in itertools.product((False, True), repeat=len(variables)):
            yield frozenset(each for each, true in zip(variables, chosen, strict=True) if true)
        return
    for number in range(3):
        for few in itertools.combinations(variables, number):
            yield frozenset(few)
            yield frozenset(variables) - frozenset(few)
