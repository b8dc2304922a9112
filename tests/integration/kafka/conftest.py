"""One broker for all tests with topics: each has topics of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kafka_server import KafkaServer, kafka_server


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    with kafka_server(tmp_path_factory.mktemp("kafka")) as server:
        yield server
