"""Why something was detected, and why something was not."""

from __future__ import annotations

import random

from situ.explain.match_report import detection_lines, miss_lines
from situ.explain.policy_match import LackReason, explain_detection, explain_miss
from situ.policies.model import InstancesByConcept, Observation, Policy
from situ.policies.reference import OccurrenceSet, detect
from tests.situations import ONTOLOGY, generate, policy, saw
from tests.volume import seeds

ALONE = policy(
    "thing A (status = 'guest'), thing B (status = 'staff'), place R",
    "A.where = R.id",
    "not A.near = B.id or not B.where = R.id",
)
PEOPLE: InstancesByConcept = {
    "thing": {
        "1": {"status": "guest"},
        "5": {"status": "guest"},
        **{each: {"status": "staff"} for each in ("101", "105", "142", "143")},
    },
    "place": {"R12": {}, "R123": {}},
}
TABLE_5_3 = (
    saw("1", "where", "R12", 0),
    saw("101", "where", "R12", 1),
    saw("5", "where", "R123", 2),
    saw("1", "near", "105", 3),
    saw("1", "near", "101", 4),
    saw("5", "near", "142", 5),
    saw("143", "where", "R123", 6),
)


def happened(meant: Policy, *seen: Observation, instances: InstancesByConcept = PEOPLE) -> OccurrenceSet:
    return OccurrenceSet(meant, ONTOLOGY, seen, instances, {})


def test_a_detection_is_explained_clause_by_clause() -> None:
    known = happened(ALONE, *TABLE_5_3)
    [found] = detect(ALONE, ONTOLOGY, TABLE_5_3, PEOPLE)
    why = explain_detection(known, found.id[:8])
    assert why is not None
    assert detection_lines(ALONE, why, str) == [
        "p: A = 5, R = R123",
        f"  detection {found.id}",
        "  activated at 2, settled at 7",
        "because",
        '  2  s/5-where-2: thing 5, where = "R123" (where)',
        "so that",
        "  met: A.where = R.id",
        "    A = 5, R = R123 at 2, by s/5-where-2",
        "  met: not A.near = B.id or not B.where = R.id",
        "    not A.near = B.id: to the contrary, but not together with the rest,",
        "      A = 5, B = 142 at 5, by s/5-near-5",
        "    not B.where = R.id: to the contrary, but not together with the rest,",
        "      B = 143, R = R123 at 6, by s/143-where-6",
    ]
    assert explain_detection(known, "nothing like that") is None


def test_a_sequence_is_explained_by_its_parts() -> None:
    meant = policy("thing A", "A.where = 'r1' -> A.where = 'r2' or A.x > 9", "not A.near = '2'")
    seen = saw("1", "where", "r1", 0), saw("1", "where", "r2", 3)
    why = explain_detection(happened(meant, *seen), "")
    assert why is not None
    assert detection_lines(meant, why, str)[-6:] == [
        "  met: A.where = 'r1' followed-by A.where = 'r2' or A.x > 9",
        "    A.where = 'r1' followed-by A.where = 'r2': A = 1 at 3, by s/1-where-0, s/1-where-3",
        "      A.where = 'r1': A = 1 at 0, by s/1-where-0",
        "      A.where = 'r2': A = 1 at 3, by s/1-where-3",
        "  met: not A.near = '2'",
        "    not A.near = '2': nothing to the contrary from -2 to 8",
    ]


def test_a_miss_shows_the_counterexample() -> None:
    assert miss_lines(ALONE, explain_miss(happened(ALONE, *TABLE_5_3), {"A": "1"}, 5), str) == [
        "p: A = 1 around 5",
        "  nearest to it: A = 1, R = R12, activated at 0",
        "  met: A.where = R.id",
        "    A = 1, R = R12 at 0, by s/1-where-0",
        "  not met: not A.near = B.id or not B.where = R.id",
        "    not A.near = B.id: refuted, A = 1, B = 101 at 4, by s/1-near-4",
        "    not B.where = R.id: refuted, B = 101, R = R12 at 1, by s/101-where-1",
    ]


def test_what_was_detected_is_no_miss() -> None:
    why = explain_miss(happened(ALONE, *TABLE_5_3), {"A": "5"}, 7)
    assert [each.time for each in why.detected] == [7]
    assert why.failed == ()
    assert miss_lines(ALONE, why, str)[1].startswith("  was detected: ")


def missed(meant: Policy, *seen: Observation, at: int = 5, **bindings: str) -> tuple[LackReason, str]:
    """What is lacking in the only literal of the only clause that failed, and how it reads."""
    why = explain_miss(happened(meant, *seen), bindings, at)
    [failed] = why.failed
    [lack] = failed.lacks
    text = next(line for line in miss_lines(meant, why, str)[::-1] if line.startswith("    ") and line[4] != " ")
    return lack.why, text.split(": ", 1)[1]


THERE = policy("thing A (status = 'guest'), place R", "A.where = R.id")
HERE = saw("1", "where", "R12", 0)


def test_what_is_lacking_in_a_relation() -> None:
    assert missed(THERE, HERE, A="101")[0] is LackReason.UNSEEN
    assert missed(THERE, HERE, saw("101", "where", "R12", 1), A="101") == (
        LackReason.CONSTRAINT,
        "A = 101 does not satisfy `status = 'guest'`",
    )
    assert missed(THERE, HERE, R="R9") == (LackReason.UNKNOWN, "no pull source knows R = R9")
    assert missed(THERE, HERE, A="1", R="R123") == (
        LackReason.OTHER_IDENTITY,
        "not for R = R123; it occurred for others, A = 1, R = R12 at 0, by s/1-where-0",
    )
    assert missed(THERE, HERE, A="1", at=40) == (
        LackReason.OTHER_TIME,
        "it occurred 40 us away, A = 1, R = R12 at 0, by s/1-where-0",
    )
    assert missed(policy("thing A", "A.x > 9"), saw("1", "x", 3.0, 1), A="1") == (
        LackReason.UNTRUE,
        "`A.x > 9` was not true of what was seen",
    )


def test_what_is_lacking_between_two_events() -> None:
    close = policy("thing A, place B", "A.x = B.temp")
    assert missed(close, saw("1", "x", 1.0, 0), saw("r", "temp", 1.0, 9))[0] is LackReason.APART
    assert missed(close, saw("1", "x", 1.0, 0), saw("r", "temp", 2.0, 4))[0] is LackReason.UNTRUE
    spent = saw("1", "x", 1.0, 0), saw("2", "x", 1.0, 1), saw("r", "temp", 1.0, 2)
    assert missed(close, *spent, A="2") == (
        LackReason.SPENT,
        "it would have been true, but an event was spent on another pair (chronicle)",
    )


def test_what_is_lacking_in_a_sequence() -> None:
    first, second = saw("1", "where", "r1", 4), saw("1", "where", "r2", 3)
    follows = policy("thing A", "A.where = 'r1' -> A.where = 'r2'")
    assert missed(follows, second)[0] is LackReason.FIRST
    assert missed(follows, first)[0] is LackReason.SECOND
    assert missed(follows, first, second) == (LackReason.ORDER, "both occurred, but the second 1 us before the first")
    assert missed(follows, first, saw("1", "where", "r2", 19)) == (LackReason.ORDER, "both occurred, but 15 us apart")
    broken = policy("thing A", "A.where = 'r1' -> not A.where = 'r2'")
    assert missed(broken, first, saw("1", "where", "r2", 6)) == (
        LackReason.BROKEN,
        "`A.where = 'r2'` should have been absent, but was not, A = 1 at 6, by s/1-where-6",
    )
    chain = policy("thing A", "A.where = 'r1' -> A.where = 'r2' -> A.where = 'r3'")
    early = saw("1", "where", "r2", 0), saw("1", "where", "r3", 2)
    assert (
        missed(chain, *early, saw("1", "where", "r1", 1), saw("1", "where", "r2", 3))[0] is LackReason.OTHER_OCCURRENCE
    )


def test_clauses_about_absence_are_not_judged_if_nothing_happened() -> None:
    assert miss_lines(ALONE, explain_miss(happened(ALONE), {}, 5), str) == [
        "p: anything around 5",
        "  nothing of it happened around that time",
        "  not met: A.where = R.id",
        "    A.where = R.id: no event said anything about A that `A.where = R.id` looks at",
        "  not judged: not A.near = B.id or not B.where = R.id",
    ]


@seeds(range(25), range(100))
def test_everything_generated_can_be_explained(seeds: range) -> None:
    for seed in seeds:
        case, dice = generate(seed), random.Random(seed)
        known = OccurrenceSet(case.policy, case.ontology, case.observations, case.instances, case.keep)
        found = detect(case.policy, case.ontology, case.observations, case.instances, keep=case.keep)
        for detection in found[:2]:
            why = explain_detection(known, detection.id)
            assert why is not None
            assert why.detection == detection
            assert detection_lines(case.policy, why)
        asked = {dice.choice(case.policy.aliases).name: dice.choice(case.observations).identity}
        missing = explain_miss(known, asked, dice.choice(case.observations).time)
        assert missing.detected or missing.failed
        assert miss_lines(case.policy, missing)


# ── branches, steps and absences between them ──


def test_a_branch_is_explained_by_its_own_parts() -> None:
    meant = policy("thing A", "[A.where = 'r1' and A.x > 1 and not A.near = '2'] or A.x > 9")
    seen = saw("1", "where", "r1", 0), saw("1", "x", 3.0, 1)
    why = explain_detection(happened(meant, *seen), "")
    assert why is not None
    assert detection_lines(meant, why, str)[-4:] == [
        "  met: (A.where = 'r1' and A.x > 1 and not A.near = '2') or A.x > 9",
        "    A.where = 'r1': A = 1 at 0, by s/1-where-0",
        "    A.x > 1: A = 1 at 1, by s/1-x-1",
        "    not A.near = '2': nothing to the contrary from -4 to 6",
    ]


def test_a_miss_says_what_each_branch_lacked() -> None:
    meant = policy("thing A", "[A.where = 'r1' and A.x > 1] or A.x > 9")
    why = explain_miss(happened(meant, saw("1", "where", "r1", 0), saw("1", "x", 0.5, 1)), {"A": "1"}, 2)
    assert miss_lines(meant, why, str) == [
        "p: A = 1 around 2",
        "  nearest to it: A = 1, activated at 0",
        "  not met: (A.where = 'r1' and A.x > 1) or A.x > 9",
        "    A.x > 1: `A.x > 1` was not true of what was seen",
        "      1  s/1-x-1: thing 1, x = 0.5 (x)",
        "    A.x > 9: `A.x > 9` was not true of what was seen",
        "      1  s/1-x-1: thing 1, x = 0.5 (x)",
    ]


def test_what_is_lacking_in_a_sequence_with_an_absence_inside() -> None:
    between = policy("thing A", "A.where = 'r1' -> not A.x > 1 -> A.where = 'r2'")
    ends = saw("1", "where", "r1", 0), saw("1", "where", "r2", 4)
    assert missed(between, *ends, saw("1", "x", 3.0, 2)) == (
        LackReason.BROKEN,
        "`A.x > 1` should have been absent, but was not, A = 1 at 2, by s/1-x-2",
    )
    assert missed(between, ends[0])[0] is LackReason.SECOND
    assert missed(between, ends[0], saw("1", "where", "r2", -1)) == (
        LackReason.ORDER,
        "both occurred, but the second 1 us before the first",
    )
    bounded = policy("thing A", "A.where = 'r1' ->4 not A.x > 1 -> A.where = 'r2'")
    assert missed(bounded, *ends) == (LackReason.ORDER, "both occurred, but only 4 us apart")
    after = policy("thing A", "A.where = 'r1' ->2 not A.x > 1 ->3 not A.near = '2'")
    assert missed(after, ends[0], saw("1", "near", "2", 4))[1].startswith("`A.near = '2'` should have been absent")


def test_a_step_that_is_written_again_is_told_each_time() -> None:
    meant = policy("thing A", "A.where = 'r1' -> A.where = 'r1'")
    why = explain_detection(happened(meant, saw("1", "where", "r1", 0), saw("1", "where", "r1", 3)), "")
    assert why is not None
    assert detection_lines(meant, why, str)[-2:] == [
        "      A.where = 'r1': A = 1 at 0, by s/1-where-0",
        "      A.where = 'r1': A = 1 at 3, by s/1-where-3",
    ]
