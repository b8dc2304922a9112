"""The normal form means what the conditions mean, whatever is true; and it is as short as it promises."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from situ.errors import SituError
from situ.expr.tree import TRUE
from situ.situation.policies.normal_form import normal_form
from situ.situation.policies.policy import Clause, Gap, Is, Literal, Relation, Side, Then
from situ.situation.policies.resolved import AllOf, AnyOf, Condition, FollowedBy, Holds

LIMIT = 100_000
RELATIONS = tuple(
    Relation(text=name, left=Side(alias="A", attributes=("x",), event="x"), right=None, test=TRUE) for name in "abcd"
)

holds = st.builds(Holds, st.builds(Is, st.sampled_from(RELATIONS), st.booleans(), st.integers(0, 1)))


def _joined(inner: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
    parts = st.lists(inner, min_size=1, max_size=3).map(tuple)
    return st.one_of(
        st.builds(AllOf, parts),
        st.builds(AnyOf, parts),
        st.builds(FollowedBy, inner, inner, st.sampled_from((None, 1, 2))),
    )


conditions = st.recursive(holds, _joined, max_leaves=9)


@given(conditions)
def test_clauses_are_true_exactly_where_conditions_are(condition: Condition) -> None:
    clauses = converted(condition)
    for world in worlds(literals(condition)):
        assert truth(condition, world) == all(any(is_met(each, world) for each in clause) for clause in clauses)


@given(conditions)
def test_clauses_have_nothing_to_spare(condition: Condition) -> None:
    clauses = converted(condition)
    assert all(len(set(clause)) == len(clause) for clause in clauses)
    assert not any(is_tautology(clause) for clause in clauses)
    assert not any(set(one) <= set(other) for one, other in itertools.permutations(clauses, 2))


def converted(condition: Condition) -> tuple[Clause, ...]:
    """A contradiction is an AND that cannot be met: one clause without literals."""
    try:
        return normal_form(condition, 3, LIMIT)[1]
    except SituError as refused:
        if refused.code != "S151":
            raise
        return ((),)


# ── what the conditions mean, said without any clause ─────────────────────────────────────────────


def truth(condition: Condition, world: frozenset[Literal]) -> bool:
    """``world`` is what holds: relations, and sequences of two literals, each for itself."""
    match condition:
        case Holds(literal=literal):
            return is_met(literal, world)
        case AllOf(parts=parts):
            return all(truth(part, world) for part in parts)
        case AnyOf(parts=parts):
            return any(truth(part, world) for part in parts)
        case FollowedBy():
            return sequence(steps(condition), world)


def sequence(chain: tuple[Condition | int | None, ...], world: frozenset[Literal]) -> bool:
    """Factors and the windows between them, in turn. Each ``or`` is chosen once, for all around it."""
    for place in range(0, len(chain), 2):
        if (ways := chosen(chain[place])) is not None:
            return any(sequence((*chain[:place], *steps(way), *chain[place + 1 :]), world) for way in ways)
    return all(each in world for way in _chains(chain) for each in follows(way))


def chosen(condition: Condition) -> list[Condition] | None:
    """A condition with each of the branches of its first ``or``; None if it has none."""
    match condition:
        case Holds():
            return None
        case AnyOf(parts=parts):
            return list(parts)
        case AllOf(parts=parts):
            for place, part in enumerate(parts):
                if (ways := chosen(part)) is not None:
                    return [AllOf((*parts[:place], way, *parts[place + 1 :])) for way in ways]
            return None
        case FollowedBy(first=first, second=second, within=within):
            if (ways := chosen(first)) is not None:
                return [FollowedBy(way, second, within) for way in ways]
            ways = chosen(second)
            return None if ways is None else [FollowedBy(first, way, within) for way in ways]


def follows(chain: tuple[Condition | int | None, ...]) -> Iterator[Then]:
    """From one step that is to happen to the next, with what is absent between; and at the ends."""
    at = [place for place in range(0, len(chain), 2) if not chain[place].literal.negated]
    if not at:
        yield from (
            Then(chain[n].literal, chain[n + 2].literal, chain[n + 1] or 3) for n in range(0, len(chain) - 2, 2)
        )
        return
    ends = [*([0] if at[0] else []), *at, *([len(chain) - 1] if at[-1] < len(chain) - 1 else [])]
    for start, end in itertools.pairwise(ends):
        inner = range(start + 2, end, 2)
        first, last = chain[start].literal, chain[end].literal
        if first.negated:
            yield Then(first, last, chain[1] or 3, tuple(Gap(chain[n].literal, chain[n + 1] or 3) for n in inner))
        else:
            unsaid = 3 if last.negated else 0
            gaps = tuple(Gap(chain[n].literal, chain[n - 1] or unsaid) for n in inner)
            yield Then(first, last, chain[end - 1] or 3, gaps)


def steps(condition: Condition) -> tuple[Condition | int | None, ...]:
    if isinstance(condition, FollowedBy):
        return (*steps(condition.first), condition.within, *steps(condition.second))
    return (condition,)


def is_met(literal: Literal, world: frozenset[Literal]) -> bool:
    """Relations are true or not wherever they are written; sequences by themselves."""
    if isinstance(literal, Is):
        return (Is(literal.relation) in world) is not literal.negated
    return literal in world


def is_tautology(clause: Clause) -> bool:
    signs = {(each.relation, each.negated) for each in clause if isinstance(each, Is)}
    return any((relation, not negated) in signs for relation, negated in signs)


def literals(condition: Condition) -> list[Literal]:
    """All that can be true or not: relations, and pairs of literals that can stand behind each other."""
    found = list(dict.fromkeys(_below(condition)))
    relations = [Is(relation) for relation in dict.fromkeys(each.relation for each in found)]
    return [*relations, *dict.fromkeys(_sequences(condition))]


def _below(condition: Condition) -> Iterator[Is]:
    match condition:
        case Holds(literal=literal):
            yield literal
        case AllOf(parts=parts) | AnyOf(parts=parts):
            for part in parts:
                yield from _below(part)
        case FollowedBy(first=first, second=second):
            yield from _below(first)
            yield from _below(second)


def _sequences(condition: Condition) -> Iterator[Then]:
    match condition:
        case AllOf(parts=parts) | AnyOf(parts=parts):
            for part in parts:
                yield from _sequences(part)
        case FollowedBy():
            for chain in _chains(steps(condition)):
                yield from follows(chain)


def _chains(chain: tuple[Condition | int | None, ...]) -> Iterator[tuple[Condition | int | None, ...]]:
    """Every way through a sequence."""
    for place in range(0, len(chain), 2):
        if not isinstance(chain[place], Holds):
            for part in chain[place].parts:
                yield from _chains((*chain[:place], *steps(part), *chain[place + 1 :]))
            return
    yield chain


_MOST = 10


def worlds(variables: list[Literal]) -> Iterator[frozenset[Literal]]:
    """All of them; where they are too many, those in which few are true and those in which few are not."""
    if len(variables) <= _MOST:
        for chosen in itertools.product((False, True), repeat=len(variables)):
            yield frozenset(each for each, true in zip(variables, chosen, strict=True) if true)
        return
    for number in range(3):
        for few in itertools.combinations(variables, number):
            yield frozenset(few)
            yield frozenset(variables) - frozenset(few)
