"""What tests of running zones share: a server of NATS, and zones on either bus."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.edge_zone import Zones, edge_zone
from tests.nats_server import NatsServer, nats_server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    with nats_server(tmp_path / "nats") as running:
        yield running


@pytest.fixture(params=["memory", "nats"])
def zones(request: pytest.FixtureRequest, tmp_path: Path) -> Zones:
    """Makes a zone on either bus. Tests whose zones are alike take it with what those have."""
    server = request.getfixturevalue("server") if request.param == "nats" else None
    return lambda **options: edge_zone(tmp_path, server, **options)
