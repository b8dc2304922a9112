"""Who sees more or less by another version of a project: which pairs, and in which direction."""

from __future__ import annotations

from pathlib import Path

import pytest

from situ.model import Deployment
from situ.model.visibility_diff import visibility_changes
from situ.project.check import check_folder
from situ.scopes.filter_sets import FilterSets, NestedFilterSets
from situ.scopes.visibility_plan import ALWAYS_PAIR, NEVER_PAIR, TagSetPair, Verdict, VisibilityShift, compare_pairs
from tests.project_files import write

SCOPES = """
version: 1
dimensions:
  membership:
    scopes:
      plant:  {}
      line:   { in: [plant], output: "severity >= 4" }
      office: { in: [plant] }
      attic:  {}
clients:
  press: { membership: [line] }
  desk:  { membership: [office, attic] }
  crew:  { membership: [line] }
"""
CLIENTS = """
version: 1
clients:
  press: {scopes: {membership: line}, advertisements: {alarms: {type: Alarm}, levels: {type: Level}}}
  desk: {scopes: {membership: office}, subscriptions: {all: {types: [Alarm]}}, advertisements: {own: {type: Alarm}}}
  crew: {scopes: {membership: line}, subscriptions: {all: {types: [Fire, Level]}}}
"""
TYPES = """
version: 1
events: {Alarm: {severity: int}, Fire(Alarm): {floor: int}, Level: {level: double}}
"""


def deploy(folder: Path, scopes: str = SCOPES, clients: str = CLIENTS) -> Deployment:
    files = {"situ.yaml": "version: 1\nname: plant\n", "types/all.yaml": TYPES, "clients/all.yaml": clients}
    write(folder, {**files, "scopes.yaml": scopes})
    checked = check_folder(folder)
    assert checked.deployment is not None, checked.problems
    return checked.deployment


def changes(folder: Path, *, scopes: str = SCOPES, clients: str = CLIENTS) -> list[tuple[str, ...]]:
    found = visibility_changes(deploy(folder / "before"), deploy(folder / "after", scopes, clients))
    return [(each.publishes, each.receives, each.before, each.after, each.direction.value) for each in found]


def test_the_same_changes_nothing(tmp_path: Path) -> None:
    assert changes(tmp_path) == []


def test_a_filter_that_goes_makes_it_wider(tmp_path: Path) -> None:
    open_ = SCOPES.replace(', output: "severity >= 4"', "")
    assert changes(tmp_path, scopes=open_) == [("press/alarms", "desk/all", "depends", "always", "wider")]


def test_another_filter_makes_it_another(tmp_path: Path) -> None:
    other = SCOPES.replace("severity >= 4", "severity >= 5")
    assert changes(tmp_path, scopes=other) == [("press/alarms", "desk/all", "depends", "depends", "other")]


def test_one_filter_more_makes_it_narrower(tmp_path: Path) -> None:
    more = SCOPES.replace("office: { in: [plant] }", 'office: { in: [plant], input: "severity < 9" }')
    assert changes(tmp_path, scopes=more) == [("press/alarms", "desk/all", "depends", "depends", "narrower")]


def test_other_tags_hide_it_and_what_goes_is_not_there(tmp_path: Path) -> None:
    away = CLIENTS.replace("{membership: office}, sub", "{membership: attic}, sub")
    assert changes(tmp_path, clients=away) == [
        ("desk/own", "crew/all", "always", "never", "narrower"),
        ("press/alarms", "desk/all", "depends", "never", "narrower"),
    ]
    gone = CLIENTS.replace("advertisements: {alarms: {type: Alarm}, levels", "advertisements: {levels")
    assert changes(tmp_path, clients=gone) == [
        ("press/alarms", "crew/all", "always", "not declared", "narrower"),
        ("press/alarms", "desk/all", "depends", "not declared", "narrower"),
    ]


def depends(*families: tuple[int, ...]) -> TagSetPair:
    return TagSetPair(Verdict.DEPENDS, tuple(FilterSets(each) for each in families))


NESTED = TagSetPair(Verdict.DEPENDS, (NestedFilterSets([(1, ()), (2, ())]),))


@pytest.mark.parametrize(
    ("before", "after", "direction"),
    [
        (NEVER_PAIR, ALWAYS_PAIR, VisibilityShift.WIDER),
        (ALWAYS_PAIR, NEVER_PAIR, VisibilityShift.NARROWER),
        (NEVER_PAIR, depends((1,)), VisibilityShift.WIDER),
        (depends((1,)), ALWAYS_PAIR, VisibilityShift.WIDER),
        (depends((1,)), depends((1, 2)), VisibilityShift.WIDER),
        (depends((1,)), depends((3,)), VisibilityShift.NARROWER),
        (depends((1,)), depends((1,), (2,)), VisibilityShift.NARROWER),
        (depends((1,)), depends((2,)), VisibilityShift.OTHER),
        (depends((1,), (2,)), depends((2,), (1,)), VisibilityShift.SAME),
        (NESTED, NESTED, VisibilityShift.SAME),
        (NESTED, depends((1,)), VisibilityShift.OTHER),
    ],
)
def test_directions(before: TagSetPair, after: TagSetPair, direction: VisibilityShift) -> None:
    assert compare_pairs(before, after) is direction
