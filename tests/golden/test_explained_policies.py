"""What ``situ explain policy`` says of policies, and how it draws them: one file a case."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from situ.cli.output import Output
from situ.cli.render.policy import draw_tree, show_policy
from situ.explain.policy import PolicyExplanation, explain_policy, find_policy
from situ.lang.problems import SituError
from situ.model import Deployment
from situ.policies.load import StoppedPolicy
from tests import domains

ROOT = Path(__file__).parents[2]
SEQUENCES = domains.conditions(
    "A is inside R followed-by within 1 min (B is inside R or A is within 5 m of B)",
    "A.status = 'guest' or A is not inside R",
    options="policy sequences\nwindow 2 s\nhold 1 min\nlateness 500 ms",
)
PAIRS = domains.conditions(
    "A is within 5 m of B",
    concepts="person A\nperson B",
    options="policy pairs\nconsumption recent",
)
BRANCHES = domains.conditions(
    "A is inside R followed-by within 1 s not A.speed > 3 [m/s] followed-by A is inside R",
    "(B is inside R and A is not within 5 m of B) or not A.speed > 5 [m/s]",
    options="policy branches\nwindow 2 s\nconsumption all",
)
BUILDING, LOGISTICS = domains.building(), domains.logistics()
CASES = {
    "unaccompanied-guest": (domains.UNACCOMPANIED_GUEST, BUILDING),
    "dangerous-goods": (domains.DANGEROUS_GOODS, LOGISTICS),
    "sequences": (SEQUENCES, BUILDING),
    "pairs": (PAIRS, BUILDING),
    "branches": (BRANCHES, BUILDING),
}

every_case = pytest.mark.parametrize("name", CASES)


def explained(name: str) -> PolicyExplanation:
    text, domain = CASES[name]
    others = [domains.policy(each, domain) for each, its in CASES.values() if its is domain]
    return explain_policy(domains.policy(text, domain), domain.ontology, others)


@every_case
def test_in_the_terminal(name: str, golden: Callable[[str, str], None]) -> None:
    out = io.StringIO()
    Output(out, out).show(show_policy(explained(name)))
    golden(f"explained-policies/{name}.txt", out.getvalue())


@every_case
def test_as_a_picture(name: str, golden: Callable[[str, str], None]) -> None:
    picture = draw_tree(explained(name).tree)
    golden(f"explained-policies/{name}.svg", picture)
    ElementTree.fromstring(picture)


def test_the_picture_of_the_documentation_is_current() -> None:
    assert (ROOT / "docs/images/policy-tree.svg").read_text() == draw_tree(explained("unaccompanied-guest").tree)


def test_as_json(golden: Callable[[str, str], None]) -> None:
    value = explained("sequences").as_json()
    golden("explained-policies/sequences.json", json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def test_nothing_in_a_policy_gets_out_of_the_picture() -> None:
    text = domains.conditions("A is inside R", concepts="person A (status = '</text><script>&\"')\nroom R")
    picture = draw_tree(explain_policy(domains.policy(text, BUILDING), BUILDING.ontology).tree)
    assert "<script>" not in picture
    root = ElementTree.fromstring(picture)
    assert any("<script>" in (each.text or "") for each in root.iter("{http://www.w3.org/2000/svg}text"))


def test_boxes_do_not_overlap() -> None:
    for name in CASES:
        picture = ElementTree.fromstring(draw_tree(explained(name).tree))
        boxes = [
            tuple(float(each.get(key, 0)) for key in ("x", "y", "width", "height"))
            for each in picture.iter("{http://www.w3.org/2000/svg}rect")
        ][1:]
        width = float(picture.get("width", 0))
        assert all(x >= 0 and x + w <= width for x, _, w, _ in boxes)
        for place, (x, y, w, h) in enumerate(boxes):
            for other_x, other_y, other_w, other_h in boxes[place + 1 :]:
                apart = x + w <= other_x or other_x + other_w <= x or y + h <= other_y or other_y + other_h <= y
                assert apart, name


def test_a_stopped_policy_says_why() -> None:
    _, problems = domains.checked(domains.UNACCOMPANIED_GUEST, LOGISTICS)
    stopped = StoppedPolicy(text=domains.UNACCOMPANIED_GUEST, reasons=problems)
    with pytest.raises(SituError) as refused:
        find_policy("guest", Deployment(stopped={"guest": stopped}))
    assert refused.value.problems == problems
