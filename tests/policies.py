"""Policies for tests: the ones of the literature, in our language, and trees that hypothesis makes up."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import strategies as st

from situ.policies.language.syntax import (
    ActionText,
    AllOf,
    AnyOf,
    AttributeOf,
    Comparison,
    ConceptDefinition,
    Condition,
    ConsumptionMode,
    FollowedBy,
    MeasureOf,
    Name,
    PolicyText,
    PropertyText,
    RelationText,
    ValueText,
    When,
)

SECURITY = """\
concepts
  person A (status='guest')
  person B (status='employee')
  room R (security='restricted')
conditions
  A is inside R
  A is not within 5m of B or B is not inside R
actions
  raise alarm
"""

LOGISTICS = """\
concepts
    truck T
    substance A (dangerous='yes')
    substance B (dangerous='yes')
conditions
    A is inside T
    B is inside T
    distance(A, B) < minimumDistance(A, B)
actions
    notify headquarters
"""

# The first form of the security policy has its properties inside the conditions, which no grammar of it allows; these
# are its words, with the concepts where they belong.
SECURITY_IN_CAPITALS = """\
CONCEPTS
  person A with property status='guest'
  room R with property security='restricted'
  person B with property status='employee'
CONDITIONS
  A IS INSIDE R AND
  (B IS NOT WITHIN 5m of A OR B IS NOT INSIDE R)
ACTIONS
  sound alarm
"""

ONE_EMPLOYEE = """\
concepts
  person A with property status='employee'
  room R
  exhibit E
conditions
  A IS INSIDE R AND
  A IS FACING E
actions
  raise alarm
"""

TWO_EMPLOYEES = """\
concepts
  person A with property status='employee'
  person B with property status='employee'
  room R
  exhibit E
conditions
  A IS INSIDE R AND
  B IS FACING E
actions
  raise alarm
"""

LIKELY_MEANT = """\
concepts
  person A
  person B
  room R
conditions
  (A IS INSIDE R) FOLLOWED-BY (B IS NOT INSIDE R)
actions
  raise alarm
"""

REALLY_MEANT = """\
concepts
  person A
  person B
  room R
conditions
  ((A IS INSIDE R) FOLLOWED-BY (B IS NOT INSIDE R)) OR (A IS NOT INSIDE R)
actions
  raise alarm
"""

ROOM_TO_ROOM = """\
concepts
  person A
  room R
  room Q
conditions
  A inside R FOLLOWED-BY A inside Q
actions
  raise alarm
"""

BUILDING = """\
concepts
  person A (status='guest')
  person B (status='employee')
  room R (status='restricted')
  building U (securityStaff='no')
conditions
  A is inside R
  R belongsTo U
  A is not within 5 m of B
actions
  raise alarm
"""

OF_THE_LITERATURE = {
    "security": SECURITY,
    "security-in-capitals": SECURITY_IN_CAPITALS,
    "logistics": LOGISTICS,
    "one-employee": ONE_EMPLOYEE,
    "two-employees": TWO_EMPLOYEES,
    "likely-meant": LIKELY_MEANT,
    "really-meant": REALLY_MEANT,
    "room-to-room": ROOM_TO_ROOM,
    "building": BUILDING,
}


def policy(
    *,
    options: str = "",
    concepts: str = "person A\nperson B\nroom R",
    conditions: str = "A is inside R",
    head: str = "actions",
    actions: str = "raise alarm",
) -> str:
    """A policy that is right but for what is given."""
    parts = [options, "concepts", _indented(concepts), "conditions", _indented(conditions), head, _indented(actions)]
    return "\n".join(part for part in parts if part) + "\n"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n")) if text else ""


# ── made up ───────────────────────────────────────────────────────────────────────────────────────

RESERVED = ("and", "or", "not", "is", "of", "followed-by")
_words = st.sampled_from(
    ("A", "B", "R", "x1", "within", "window", "in", "like", "with", "property", "policy", "änger", "next-to", "every",
     "close", "true_", "inside", "_a", "date", "on", "AND_", "isnt")
)  # fmt: skip
names = st.one_of(_words, st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True)).filter(
    lambda word: word.lower() not in (*RESERVED, "true", "false", "concepts", "conditions", "actions")
)
policy_names = st.from_regex(r"[A-Za-z0-9-]{1,64}", fullmatch=True)
texts = st.text(st.characters(exclude_characters="\r\n'", exclude_categories=("Cs", "Cc"))).map(
    lambda text: f"'{text}'"
)
numbers = st.one_of(st.integers(-1000, 1000).map(str), st.sampled_from(("0.5", "-2.25", "1e3", "7.0")))
quantities = st.one_of(
    numbers, st.builds("{} {}".format, numbers, st.sampled_from(("m", "s", "°C", "%", "[km/h]", "[in]", "kg", "ms")))
)
typed = st.sampled_from(("DATE '2026-11-01'", "TIMESTAMP '2026-11-01T08:00:00Z'", "DURATION 'PT5S'"))
parameters = st.one_of(quantities, texts, typed)
scalars = st.one_of(parameters, st.sampled_from(("TRUE", "FALSE")))
durations = st.integers(1, 10**12).map(lambda number: timedelta(microseconds=number))
compared = st.sampled_from(("=", "!=", "<", ">", "<=", ">="))


def _named(values: st.SearchStrategy[str]) -> st.SearchStrategy[Name]:
    return values.map(Name)


def _lists() -> st.SearchStrategy[str]:
    return st.lists(scalars, min_size=1, max_size=3).map(lambda values: f"({', '.join(values)})")


properties = st.one_of(
    st.builds(PropertyText, _named(names), compared, scalars.map(ValueText)),
    st.builds(PropertyText, _named(names), st.just("like"), texts.map(ValueText)),
    st.builds(PropertyText, _named(names), st.just("in"), _lists().map(ValueText)),
)
# Words that could begin `with property` or an option must not stand where those could.
concepts = st.builds(
    ConceptDefinition,
    _named(names.filter(lambda word: word.lower() not in ("with", "window", "lateness", "hold", "consumption"))),
    _named(names.filter(lambda word: word.lower() != "with")),
    st.lists(properties, max_size=3).map(tuple),
)
# Behind `followed-by`, `within` begins a duration.
firsts = names.filter(lambda word: word.lower() != "within")
operands = st.one_of(
    st.builds(MeasureOf, _named(firsts), _named(names), _named(names)),
    st.builds(AttributeOf, _named(firsts), _named(names)),
    scalars.map(ValueText),
)
relations = st.builds(
    RelationText,
    _named(firsts),
    _named(names),
    _named(names),
    negated=st.booleans(),
    parameter=st.none() | parameters.map(ValueText),
    says_is=st.booleans(),
    says_of=st.booleans(),
)
atoms = st.one_of(relations, st.builds(Comparison, operands, compared, operands, st.booleans()))


def _deeper(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Condition]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(
        st.builds(AllOf, several), st.builds(AnyOf, several), st.builds(FollowedBy, inner, inner, st.none() | durations)
    )


conditions = st.recursive(atoms, _deeper, max_leaves=8)
words = st.from_regex(r"[A-Za-z0-9:/@._-]{1,10}|'[a-z ]{0,5}'", fullmatch=True)
actions = st.lists(words.map(Name), min_size=1, max_size=4).map(tuple).map(ActionText)


@st.composite
def policies(draw: st.DrawFn) -> PolicyText:
    lines = draw(st.lists(conditions, min_size=1, max_size=3))
    return PolicyText(
        name=draw(st.none() | _named(policy_names)),
        window=draw(st.none() | durations),
        lateness=draw(st.none() | durations),
        hold=draw(st.none() | durations),
        consumption=draw(st.none() | st.sampled_from(ConsumptionMode)),
        concepts=tuple(draw(st.lists(concepts, min_size=1, max_size=4))),
        conditions=lines[0] if len(lines) == 1 else AllOf(tuple(lines), lines=True),
        when=draw(st.none() | st.sampled_from(When)),
        actions=tuple(draw(st.lists(actions, min_size=1, max_size=3))),
    )
