"""Policies that are none, one file a case: the text, and everything that is said about it.

``pytest --update-golden tests/golden/test_malformed_policies.py`` writes the files anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from situ.lang.problems import SituError, render
from situ.policies.language.parse import parse_condition, parse_policy
from tests.policies import SECURITY, policy

CASES: dict[str, str] = {
    # ── sections ──
    "empty": "",
    "only-a-comment": "# nothing yet\n",
    "no-concepts": "conditions\n  A is inside R\nactions\n  raise alarm\n",
    "no-conditions": "concepts\n  person A\nactions\n  raise alarm\n",
    "no-actions": "concepts\n  person A\nconditions\n  A is inside R\n",
    "empty-concepts": "concepts\nconditions\n  A is inside R\nactions\n  raise alarm\n",
    "empty-conditions": "concepts\n  person A\nconditions\n  # later\nactions\n  raise alarm\n",
    "empty-actions": "concepts\n  person A\nconditions\n  A is inside R\nactions\n",
    "section-twice": SECURITY + "concepts\n  person C\n",
    "sections-out-of-order": "conditions\n  A is inside R\nconcepts\n  person A\n  room R\nactions\n  raise alarm\n",
    "section-misspelled": SECURITY.replace("conditions", "condtions"),
    "section-in-the-singular": SECURITY.replace("concepts", "Concept").replace("actions", "Action"),
    "section-with-colon": SECURITY.replace("concepts", "concepts:").replace("actions", "actions :"),
    "if-then": "IF\n  person A with property status='guest' IS INSIDE\n  room R\nTHEN\n  sound alarm\n",
    "sql": "SELECT * FROM person WHERE status = 'guest'\n",
    "yaml": "policy: night-watch\nconcepts: [person A]\n",
    "two-policies": "policy one\n" + SECURITY + "\npolicy two\n" + SECURITY.replace("5m", "5 B"),
    "two-names": "policy one\npolicy two\n" + SECURITY,
    "second-policy-without-sections": SECURITY + "policy two\n",
    # ── name and options ──
    "name-with-underscore": policy(options="policy night_watch"),
    "name-in-quotes": policy(options="policy 'night-watch'"),
    "name-of-two-words": policy(options="policy night watch"),
    "name-missing": policy(options="policy"),
    "name-too-long": policy(options=f"policy {'x' * 65}"),
    "name-with-dot": policy(options="policy night.watch"),
    "option-unknown": policy(options="windw 5 s"),
    "option-of-elsewhere": policy(options="priority 5"),
    "option-twice": policy(options="window 5 s\nwindow 6 s"),
    "option-with-equals": policy(options="window = 5 s"),
    "option-with-colon": policy(options="lateness: 2 s"),
    "option-behind-concepts": "concepts\n  person A\nwindow 5 s\nconditions\n  A is inside R\nactions\n  raise alarm\n",
    "duration-without-unit": policy(options="window 5"),
    "duration-without-number": policy(options="window s"),
    "duration-in-metres": policy(options="window 5 m"),
    "duration-of-a-month": policy(options="hold 1 month"),
    "duration-of-unknown-unit": policy(options="hold 5 sekunden"),
    "duration-negative": policy(options="lateness -5 s"),
    "duration-of-nothing": policy(options="window 0 s"),
    "duration-missing": policy(options="window"),
    "duration-too-fine": policy(options="window 0.1 us"),
    "consumption-unknown": policy(options="consumption recnt"),
    "consumption-missing": policy(options="consumption"),
    "stray-sign": policy(options="- window 5 s"),
    # ── concepts ──
    "alias-missing": policy(concepts="person\nroom R"),
    "alias-missing-before-properties": policy(concepts="person (status = 'guest')"),
    "concept-missing": policy(concepts="person A\nA (status = 'guest')"),
    "alias-is-a-number": policy(concepts="person 1"),
    "concepts-with-comma": policy(concepts="person A, person B"),
    "concept-with-colon": policy(concepts="A: person"),
    "concept-with-as": policy(concepts="person as A"),
    "properties-without-parentheses": policy(concepts="person A status = 'guest'"),
    "properties-with-where": policy(concepts="person A where status = 'guest'"),
    "properties-with-with": policy(concepts="person A with status = 'guest'"),
    "properties-empty": policy(concepts="person A ()"),
    "properties-with-or": policy(concepts="person A (status = 'guest' or status = 'visitor')"),
    "properties-with-alias": policy(concepts="person A (A.status = 'guest')"),
    "properties-in-brackets": policy(concepts="person A [status = 'guest']"),
    "property-with-is": policy(concepts="person A (status is 'guest')"),
    "property-without-operator": policy(concepts="person A (status 'guest')"),
    "property-without-value": policy(concepts="person A (status = )"),
    "property-without-quotes": policy(concepts="person A (status = guest)"),
    "property-is-null": policy(concepts="person A (status = null)"),
    "property-in-without-list": policy(concepts="person A (status in 'guest')"),
    "property-in-empty-list": policy(concepts="person A (status in ())"),
    "property-like-number": policy(concepts="person A (name like 5)"),
    "property-behind-number": policy(concepts="person A (age > 5 status = 'guest')"),
    "parenthesis-not-closed": policy(concepts="person A (status = 'guest'\nperson B"),
    "parenthesis-not-opened": policy(concepts="person A status = 'guest')"),
    "text-not-closed": policy(concepts="person A (status = 'guest)\nroom R"),
    "text-in-double-quotes": policy(concepts='person A (status = "guest")'),
    "text-in-smart-quotes": policy(concepts="person A (status = \u2018guest\u2019, name = \u201cAnn\u201d)"),
    "text-in-backticks": policy(concepts="person A (status = `guest`)"),
    # ── conditions ──
    "double-equals": policy(conditions="A.status == 'guest'"),
    "different-in-sql": policy(conditions="A.status <> 'guest'"),
    "less-or-equal-turned": policy(conditions="A.age =< 5"),
    "mathematical-signs": policy(conditions="A.age ≤ 5 and B.age ≥ 5 or A.age ≠ B.age"),
    "and-of-c": policy(conditions="A is inside R && B is inside R"),
    "or-of-c": policy(conditions="A is inside R || B is inside R"),
    "not-of-c": policy(conditions="!A is inside R"),
    "arrow": policy(conditions="A is inside R -> B is inside R"),
    "followed-by-apart": policy(conditions="A is inside R followed by B is inside R"),
    "then": policy(conditions="A is inside R then B is inside R"),
    "semicolon": policy(conditions="A is inside R;"),
    "braces": policy(conditions="{A is inside R}"),
    "comment-of-c": policy(conditions="A is inside R // a guest"),
    "contraction": policy(conditions="A isn't inside R"),
    "not-before-parenthesis": policy(conditions="not (A is inside R followed-by B is inside R)"),
    "not-before-alternatives": policy(conditions="not (A is inside R or B is inside R)"),
    "not-before-one": policy(conditions="not (A is inside R)"),
    "not-followed-by": policy(conditions="A is inside R not followed-by within 10 s B is inside R"),
    "not-before-deep-sequence": policy(conditions="not (A is inside R followed-by (B is inside R or A is near B))"),
    "not-before-relation": policy(conditions="not A is inside R"),
    "not-behind-relationship": policy(conditions="A is inside not R"),
    "not-before-comparison-in-parentheses": policy(conditions="not (A.speed > 50 %)"),
    "not-before-comparisons": policy(conditions="not (A.speed > 5 and B.speed > 5)"),
    "not-behind-attribute": policy(conditions="A.state not = 'closed'"),
    "not-behind-is-and-attribute": policy(conditions="A is inside R and A.state is not 'closed'"),
    "not-before-value": policy(conditions="A.speed > not 3"),
    "is-between-values": policy(conditions="A.state is 'closed'"),
    "not-before-duration": policy(conditions="A is inside R followed-by not within 10 min A.speed > 8"),
    "not-inside-duration": policy(conditions="A is inside R followed-by within 10 not min A.speed > 8"),
    "not-before-duration-of-relation": policy(conditions="A.speed > 8 followed-by not within 10 min A is inside R"),
    "not-before-relation-that-follows": policy(conditions="A.speed > 8 followed-by within 1 s not A inside R"),
    "not-twice": policy(conditions="A is not not inside R"),
    "not-before-is": policy(conditions="A not is inside R"),
    "number-without-unit-or-of": policy(conditions="A is within 5 B"),
    "unit-without-number": policy(conditions="A is within m of B"),
    "compound-unit": policy(conditions="A.speed > 90 km/h"),
    "decimal-comma": policy(conditions="A is within 2,5 m of B"),
    "second-alias-missing": policy(conditions="A is inside"),
    "second-alias-missing-behind-of": policy(conditions="A is within 5 m of"),
    "second-alias-missing-in-the-middle": policy(conditions="A is inside and B is inside R"),
    "relationship-missing": policy(conditions="A is\nB is not"),
    "alias-alone": policy(conditions="A"),
    "relationship-of-two-words": policy(conditions="A is next to B"),
    "begins-with-operator": policy(conditions="A is inside R\nor B is inside R"),
    "ends-with-operator": policy(conditions="A is inside R or"),
    "operator-twice": policy(conditions="A is inside R and or B is inside R"),
    "operator-misspelled": policy(conditions="A is inside R adn B is inside R"),
    "two-conditions-in-a-line": policy(conditions="A is inside R B is inside R"),
    "several-aliases": policy(conditions="A, B is inside R"),
    "line-break-in-parentheses": policy(conditions="(A is inside R\n B is inside R)"),
    "attribute-without-alias": policy(conditions="status = 'guest'"),
    "alias-compared": policy(conditions="A = B"),
    "part-of-attribute": policy(conditions="A.position.x > 5 m"),
    "comparison-unfinished": policy(conditions="A.age >"),
    "comparison-without-quotes": policy(conditions="A.status = guest"),
    "comparison-of-three": policy(conditions="1 m < distance(A, B) < 5 m"),
    "measure-of-one": policy(conditions="distance(A) < 5 m"),
    "measure-of-three": policy(conditions="distance(A, B, R) < 5 m"),
    "measure-alone": policy(conditions="distance(A, B)"),
    "arithmetic": policy(conditions="A.age + 5 > B.age"),
    "parentheses-empty": policy(conditions="() and A is inside R"),
    "condition-not-closed": policy(conditions="(A is inside R or B is inside R\nA is inside R"),
    "condition-not-opened": policy(conditions="A is inside R) or B is inside R"),
    "followed-by-without-duration": policy(conditions="A is inside R followed-by within B is inside R"),
    "followed-by-within-metres": policy(conditions="A is inside R followed-by within 5 m B is inside R"),
    "followed-by-nothing": policy(conditions="A is inside R followed-by"),
    "too-deep": policy(conditions="(" * 40 + "A is inside R" + ")" * 40),
    "sequence-too-long": policy(conditions=" followed-by ".join(["A is inside R"] * 40)),
    "keyword-as-alias": policy(conditions="and is inside R"),
    # ── actions ──
    "actions-on-something": policy(head="actions on closing"),
    "actions-on-nothing": policy(head="actions on"),
    "actions-on-every": policy(head="actions on every"),
    "action-with-apostrophe": policy(actions="page Bob's pager"),
    # ── letters ──
    "nul": policy(conditions="A is \x00inside R"),
    "invisible-letter": policy(conditions="A is\u200b inside R"),
    "symbol": policy(conditions="A is inside R ☂"),
    "several-at-once": policy(
        options="policy a_b\nwindow 5", concepts="person\nroom R (x == 1)", conditions="A is\nB in not R", actions=""
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_refused_with_place_and_remedy(name: str, golden: Callable[[str, str], None]) -> None:
    with pytest.raises(SituError) as refused:
        parse_policy(CASES[name], f"{name}.dpl")
    problems = refused.value.problems
    assert all(problem.location is not None and problem.hint for problem in problems)
    shown = CASES[name].replace("\x00", "\N{SYMBOL FOR NULL}")
    golden(f"malformed_policies/{name}.txt", "\n\n".join([shown.rstrip(), *map(render, problems)]) + "\n")


def test_there_are_a_hundred() -> None:
    assert len(CASES) >= 100


_PROPOSED = re.compile(r"`([^`…]*\bnot\b[^`…]*)`")


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith(("not-b", "not-i", "not-f"))])
def test_what_is_proposed_for_a_negation_can_be_written(name: str) -> None:
    """A hint that is refused in turn sends the reader in a circle."""
    with pytest.raises(SituError) as refused:
        parse_policy(CASES[name], f"{name}.dpl")
    hints = " ".join(problem.hint for problem in refused.value.problems)
    proposed = [each for each in _PROPOSED.findall(hints) if re.search(r"[=<>]| is ", each)]
    assert proposed or "Write `" in hints
    for each in proposed:
        if "X followed-by" not in each:  # said in general
            parse_condition(f"A.x = 1 {each}" if each.startswith("followed-by") else each)
