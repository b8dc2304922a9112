"""Operations on scopes on their way: what is written is what is read, and what is none is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from situ.scopes.graph import Grant
from situ.scopes.operations import (
    ApplyScopes,
    DropScope,
    GrantRights,
    JoinScope,
    LeaveScope,
    Operation,
    PutScope,
    RevokeRights,
    SetCarriers,
    SetFilter,
    SetLink,
    SetMode,
    operation_as_json,
    operation_from_json,
)
from tests.unit.scopes.test_load_scopes import PLANT, load

GRANT = Grant(to="site", dimension="d", may=("observe", "admin"), scopes=("a", "b"))
OPERATIONS = [
    JoinScope(member="m", scope="s", dimension="d"),
    LeaveScope(member="m", scope="s", dimension="d"),
    PutScope(dimension="d", scope="s"),
    PutScope(
        dimension="d",
        scope="s",
        containers=("a", "b"),
        output="x > 1",
        input="y",
        links={"a": ("up", None), "b": (None, "down")},
        carriers=("z",),
    ),
    DropScope(dimension="d", scope="s"),
    SetFilter(dimension="d", scope="s", side="input", text="x > 1"),
    SetFilter(dimension="d", scope="s", side="output", text=None),
    SetLink(dimension="d", member="m", scope="s", up="x"),
    SetCarriers(dimension="d", scope="s", carriers=None),
    SetCarriers(dimension="d", scope="s", carriers=("z",)),
    SetMode(dimension="d", closed=True),
    GrantRights(grant=GRANT),
    RevokeRights(grant=GRANT),
    ApplyScopes(graph=load(PLANT)[0]),
]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: type(each).__name__)
def test_there_and_back(operation: Operation) -> None:
    assert operation_from_json(json.loads(json.dumps(operation_as_json(operation)))) == operation


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        [],
        {},
        {"do": "jump"},
        {"do": ["join"]},
        {"do": "join", "member": "m", "scope": "s"},
        {"do": "join", "member": 7, "scope": "s", "dimension": "d"},
        {"do": "put", "dimension": "d", "scope": "s", "in": "a"},
        {"do": "put", "dimension": "d", "scope": "s", "links": {"a": "x"}},
        {"do": "filter", "dimension": "d", "scope": "s", "side": "both"},
        {"do": "mode", "dimension": "d", "closed": "yes"},
        {"do": "grant", "to": "x", "dimension": "d", "may": ["rule"]},
        {"do": "grant", "to": "x", "dimension": "d", "may": []},
        {"do": "apply", "document": {"dimensions": []}},
        {"do": "apply"},
    ],
)
def test_what_is_none_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"`|object|scopes"):
        operation_from_json(wrong)
