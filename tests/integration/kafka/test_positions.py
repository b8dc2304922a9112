"""What Kafka is asked, and what is said when it cannot be."""

from __future__ import annotations

import logging

import pytest

from situ.kafka.connection import KafkaAddress, library
from situ.kafka.positions import TopicPositions
from situ.lang.problems import SituError
from tests.kafka_server import KafkaServer


def test_a_topic_that_is_not_there_is_told_of_once(broker: KafkaServer, caplog: pytest.LogCaptureFixture) -> None:
    broker.create("there", partitions=2)
    positions = TopicPositions(KafkaAddress(servers=broker.servers))
    with caplog.at_level(logging.WARNING, logger="situ.kafka"):
        assert positions.partitions(["there", "nowhere"], "plant") == [("there", 0), ("there", 1)]
        positions._known.clear()  # as if it was long ago
        assert positions.partitions(["nowhere"], "plant") == []
    (told,) = caplog.messages
    assert told.startswith("N161")
    assert "nowhere" in told


def test_a_library_that_is_not_installed_is_named() -> None:
    with pytest.raises(SituError, match=r"N164 .*confluent_kafka_that_is_not_there"), library():
        import confluent_kafka_that_is_not_there  # type: ignore[import-not-found]  # noqa: F401 - it is not there
