"""What commands load that speak to a run: to look at it and to speak to it needs nothing of what is declared.

Nothing here measures time: what is not loaded takes none.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.runs import make_plant, running
from tests.unit.cli.test_start_up import HEAVY, LANGUAGES, loaded_by

DECLARED = {"situ.contexts", "situ.model", "situ.policies", "situ.registry.registry", "situ.stages"}
"""What declarations mean, how they change, and what becomes of events."""

READING = ("publish", "Reading", "--data", '{"sensor": "a", "value": 20.5}')


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = make_plant(tmp_path_factory.mktemp("plant"))
    with running(folder) as run:
        yield folder
        assert run.stop() == 0


@pytest.mark.parametrize(
    "command",
    [
        ("status",),
        ("status", "--json"),
        READING,
        (*READING, "--client", "sensor"),
        (*READING, "--client", "somebody"),
        ("situations",),
        ("late",),
        ("dead-letters", "list"),
        ("quality",),
        ("actions", "list"),
    ],
    ids=" ".join,
)
def test_who_looks_or_publishes_loads_nothing_of_what_is_declared(plant: Path, command: tuple[str, ...]) -> None:
    loaded = loaded_by(*command, "--project", str(plant))
    assert "nats" in loaded or command[0] == "actions", "it asked the run"
    assert not loaded & (HEAVY | LANGUAGES | DECLARED)
    if command[0] == "status":
        assert not loaded & {"situ.lang.types.model", "situ.quality", "situ.scopes"}


def test_who_subscribes_loads_nothing_of_what_is_declared(plant: Path) -> None:
    loaded_by(*READING, "--project", str(plant))
    loaded = loaded_by("subscribe", "Reading", "--since", "begin", "--limit", "1", "--project", str(plant))
    assert "nats" in loaded
    # typer reads numbers by pydantic.
    assert not loaded & ((HEAVY - {"pydantic"}) | LANGUAGES | DECLARED | {"situ.lang.types.model"})


def test_an_operator_who_follows_the_log_loads_nothing_that_detects(plant: Path) -> None:
    loaded_by(*READING, "--project", str(plant))
    loaded = loaded_by("tail", "--since", "begin", "--limit", "1", "--project", str(plant))
    assert not loaded & {"lark", "pandas", "pyarrow", "pyspark", "sqlalchemy", "situ.stages.detect", "situ.stages.plan"}
