"""The table of kinds is the one list: what is added there or elsewhere alone fails here."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_args

import pytest

from situ.cli.commands.registry import Thing
from situ.model import Deployment
from situ.model.diff import diff_deployments
from situ.model.kinds import ALONE, BELOW_CLIENT, KINDS, PARTS, Kind, StoredAs, things_in
from situ.project.folder import KINDS as FILES
from situ.project.folder import POLICIES
from situ.project.schemas import schemas
from situ.registry.proposal import Documents
from situ.routing.model import Clients

SCHEMAS = schemas()
DECLARED = {kind: row for kind, row in KINDS.items() if row.file and row.file != POLICIES}


def properties(schema: dict[str, Any]) -> set[str]:
    return set(schema["properties"]) - {"version"}


def test_types_know_the_kinds_of_the_table() -> None:
    assert tuple(KINDS) == get_args(Kind)


def test_everything_that_is_declared_is_of_a_kind() -> None:
    assert {row.place[0] for row in KINDS.values()} == {key for key, part in PARTS.items() if part.content}
    assert set(PARTS) == set(Deployment().as_json()) | {key for key, part in PARTS.items() if not part.always}


def test_parts_that_are_read_by_themselves_are_fields_of_a_deployment() -> None:
    empty = Deployment()
    for name in (key for key, part in PARTS.items() if part.single):
        assert PARTS[name].read({}, empty)[name] == getattr(empty, name)


def test_all_files_declare_something() -> None:
    assert {row.file for row in DECLARED.values()} == set(FILES)


@pytest.mark.parametrize("file", sorted({row.file for row in DECLARED.values() if row.section}))
def test_a_schema_has_the_sections_of_its_kinds(file: str) -> None:
    sections = {row.section for kind, row in DECLARED.items() if row.file == file and kind not in BELOW_CLIENT}
    assert properties(SCHEMAS[file]) == sections


def test_the_schema_of_clients_has_what_clients_declare() -> None:
    client = SCHEMAS["clients"]["properties"]["clients"]["additionalProperties"]
    assert properties(client) - {"context", "scopes", "kafka"} == {KINDS[kind].section for kind in BELOW_CLIENT}
    assert {each.name for each in fields(Clients)} >= {"clients", *(KINDS[kind].section for kind in BELOW_CLIENT)}


def test_commands_and_the_registry_change_what_can_be_changed_alone() -> None:
    assert {each.value for each in Thing} == set(ALONE)
    assert {each.name for each in fields(Documents)} == {row.file for row in ALONE.values()}


def test_one_of_a_kind_has_a_name_and_is_compared_by_what_it_is_made_of() -> None:
    for row in KINDS.values():
        assert bool(row.only) == (row.form is StoredAs.WHOLE) == (row.compare_whole is not None)


def test_nothing_declared_is_but_the_settings() -> None:
    assert [kind for kind, _, _ in things_in(Deployment())] == ["settings"]
    assert diff_deployments(None, Deployment()) == ()
