"""Policies as text: what is printed reads back as the same tree, and formatting changes nothing but the form."""

from __future__ import annotations

import re

from hypothesis import assume, given
from hypothesis import strategies as st

from situ.lang.problems import Problem, SituError
from situ.policies.language.format import format_policy
from situ.policies.language.parse import parse_policy
from situ.policies.language.print import print_policy
from situ.policies.language.syntax import PolicyText
from tests.policies import OF_THE_LITERATURE, policies
from tests.volume import examples


@examples(40, 10_000)
@given(policies())
def test_what_is_printed_reads_back(policy: PolicyText) -> None:
    text = print_policy(policy)
    assume(not _heads(policy))
    found = parse_policy(text, "a.dpl")
    assert found == policy
    assert print_policy(found) == text
    assert format_policy(text, "a.dpl") == text


@examples(25, 10_000)
@given(policies(), st.data())
def test_comments_and_blanks_change_nothing(policy: PolicyText, data: st.DataObject) -> None:
    assume(not _heads(policy))
    lines = []
    for line in print_policy(policy).splitlines():
        before, behind = data.draw(st.sampled_from(("", "# one", "  # it's (", "\t"))), data.draw(st.booleans())
        lines += [*([before] if before else []), line + ("  # \"two' ) and" if behind else "")]
    written = "\r\n".join(lines)
    tidied = format_policy(written, "a.dpl")
    assert parse_policy(written, "a.dpl") == parse_policy(tidied, "a.dpl") == policy
    assert format_policy(tidied, "a.dpl") == tidied
    assert tidied.count("#") == written.count("#")


_POLICIES = [*OF_THE_LITERATURE.values()]


@examples(30, 10_000)
@given(st.sampled_from(_POLICIES), st.data())
def test_a_damaged_policy_is_read_or_refused_with_places(text: str, data: st.DataObject) -> None:
    """Whatever is cut out, put in or doubled: an answer, and a place and a remedy for every problem."""
    pieces = re.findall(r"\w+|\s+|.", text)
    for _ in range(data.draw(st.integers(1, 4))):
        index = data.draw(st.integers(0, len(pieces) - 1))
        new = data.draw(
            st.sampled_from(
                (
                    "",
                    "(",
                    ")",
                    "'",
                    '"',
                    " and ",
                    " not ",
                    "\n",
                    ",",
                    "5",
                    ".",
                    "#",
                    "is",
                    "é",
                    "\x00",
                    pieces[index] * 2,
                )
            )
        )
        pieces[index] = new
    _assert_answered("".join(pieces))


@given(st.binary(max_size=200) | st.text(max_size=200))
def test_anything_is_refused_with_places(data: str | bytes) -> None:
    assert _assert_answered(data), "nobody writes a policy by chance"


def _assert_answered(data: str | bytes) -> tuple[Problem, ...]:
    """Read, or refused with places and remedies; the problems."""
    try:
        parse_policy(data, "a.dpl")
    except SituError as error:
        problems = error.problems
    else:
        problems = ()
    assert all(problem.location is not None and problem.hint for problem in problems)
    return problems


def _heads(policy: PolicyText) -> bool:
    """Whether an action begins like a section or another policy: those words are taken."""
    first = [action.words[0].text.lower() for action in policy.actions]
    return bool({"policy", "concepts", "conditions", "actions", "concept", "condition", "action"} & set(first))
