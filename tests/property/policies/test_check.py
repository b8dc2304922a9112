"""Whatever a policy says, it is checked or refused with places; what is stored of it means the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from situ.lang.expr.emit.python import compile_test
from situ.policies.model import Policy, RelationKind
from situ.policies.plan import leaves_of, relations_of
from tests import domains

BUILDING = domains.building()
ALIASES = ("A", "B", "R", "M", "V", "X")
CONCEPTS = ("person", "visitor", "robot", "room", "mobile", "door", "house")
PROPERTIES = (
    "status = 'guest'",
    "status in ('guest', 'employee')",
    "status like 'g%'",
    "security != 'open'",
    "speed > 3 [m/s]",
    "open = true",
    "load > 5 m",
)

aliases = st.sampled_from(ALIASES)
distances = st.sampled_from(("5 m", "200 cm", "3", "5 s", "-1 m"))
relations = st.one_of(
    st.builds("{} is {}inside {}".format, aliases, st.sampled_from(("", "not ")), aliases),
    st.builds("{} is {}within {} of {}".format, aliases, st.sampled_from(("", "not ")), distances, aliases),
    st.builds("{} is {}close {} of {}".format, aliases, st.sampled_from(("", "not ")), distances, aliases),
    st.builds("{} {}visits {}".format, aliases, st.sampled_from(("", "not ")), aliases),
    st.builds("distance({}, {}) < {}".format, aliases, aliases, distances),
    st.builds("{}.{} > 3 [m/s]".format, aliases, st.sampled_from(("speed", "pace", "status"))),
    st.builds("{}.status = {}.status".format, aliases, aliases),
)
VALID = (
    "A is inside R",
    "A is not inside R",
    "B is inside R",
    "A is within 5 m of B",
    "B is not within 200 cm of A",
    "A is near 3 m of M",
    "M is close 3 m of V",
    "A visits B",
    "A not visits V",
    "distance(A, B) <= 3 m",
    "gap(A, M) > 1 m",
    "B.speed > 3 [m/s]",
    "A.status = B.status",
)


def _joined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    words = st.sampled_from((" and ", " or ", " followed-by ", " followed-by within 1 min "))
    return st.builds(lambda first, word, second: f"({first}{word}{second})", inner, words, inner)


def lines_of(single: st.SearchStrategy[str]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.recursive(single, _joined, max_leaves=4), min_size=1, max_size=3)


likely = st.just("person A (status = 'guest')\nperson B\nroom R (security != 'open')\nrobot M\nvisitor V")
unlikely = st.lists(
    st.builds("{} {} ({})".format, st.sampled_from(CONCEPTS), aliases, st.sampled_from(PROPERTIES)),
    min_size=1,
    max_size=4,
).map("\n".join)


def written(concepts: str, lines: list[str], options: str) -> str:
    return domains.conditions(*lines, concepts=concepts, options=options)


options = st.sampled_from(("", "window 2 s", "consumption all", "hold 1 s"))
policies = st.one_of(
    st.builds(written, likely, lines_of(st.sampled_from(VALID)), options),
    st.builds(written, likely, lines_of(relations), options),
    st.builds(written, unlikely, lines_of(relations), options),
)


@given(policies)
def test_policies_are_checked_or_refused_with_places(text: str) -> None:
    policy, problems = domains.checked(text, BUILDING)
    assert (policy is None) == any(problem.is_error for problem in problems)
    assert all(problem.location is not None for problem in problems)
    if policy is not None:
        assert is_whole(policy)
        again, _ = domains.checked(policy.text, BUILDING)
        assert again == policy
        assert again.text == policy.text


def is_whole(policy: Policy) -> bool:
    """Every relation can be evaluated, has a leaf for each event-based side, and at least one of them happens."""
    known = {alias.name for alias in policy.aliases}
    relations = relations_of(policy)
    for relation in relations:
        assert set(relation.aliases) <= known
        assert len(leaves_of(policy, relation)) == relation.kind.value
        compile_test(relation.test, ("left", "right")[: len(relation.sides)])
    return any(relation.kind is not RelationKind.CONSTRAINT for relation in relations)
