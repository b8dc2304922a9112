"""Batches of Spark that read topics, without Spark: how far they read, what tasks make of it, what a repeat does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from situ.kafka.connection import VARIABLE, KafkaAddress, use_settings
from situ.lang.problems import SituError
from situ.settings import Settings
from situ.spark.checkpoint import ClientOffsetStore, Offset
from situ.spark.dispatch import dispatch_part
from situ.spark.partitions import Batches, partitions_of_batch
from situ.spark.source import SourceOptions
from situ.spark.topics import TopicCommits, TopicPlanner
from situ.storage.state_folder import open_folder
from situ.testing.fixtures import load_project
from tests.integration.kafka.projects import CLIENTS, TYPES, project, value
from tests.kafka_server import KafkaServer
from tests.zone import Zone, zone


@pytest.fixture(autouse=True)
def _no_address_is_left() -> Iterator[None]:
    yield
    use_settings(Settings())


class _Query:
    """What Spark does with the source of events, step by step."""

    def __init__(self, at: Zone, folder: Path) -> None:
        options = {"address": at.address.to_json(), "content": "rows", "checkpoint": str(folder / "checkpoint")}
        self.options = SourceOptions.read(options)
        self.batches = Batches(self.options)
        self.checkpoint = open_folder(folder / "checkpoint")
        self.carries = ClientOffsetStore(self.checkpoint)
        self.at = at

    def next(self, begin: Offset, most: int = 1000) -> Offset:
        return self.batches.next(begin, ReadMaxRows(most))

    def run(self, begin: Offset, end: Offset) -> int:
        """How many events the tasks of a batch took in."""
        parts = partitions_of_batch(self.options, begin, end)
        counts = [dispatch_part(self.at.address, self.checkpoint, begin, end, each) for each in range(len(parts))]
        carry = self.carries.load(begin.mark)
        self.carries.save(end.mark, carry.advanced(each.highest for each in counts))
        return sum(sum(each.types.values()) for each in counts)


def test_batches_read_topics_as_far_as_their_offsets_say(broker: KafkaServer, tmp_path: Path) -> None:
    broker.create("batched", partitions=3)
    clients = CLIENTS.replace("[readings]", "[batched]")
    folder = project(tmp_path / "p", broker.servers, engine="spark", clients=clients)
    files = {"types/all.yaml": TYPES, "clients/all.yaml": clients}
    situ = f"kafka: {{servers: '{broker.servers}'}}\n"
    settings = load_project(folder).settings
    use_settings(settings)
    with zone(tmp_path, more=files, situ=situ) as at:
        declared = load_project(folder).deployment
        at.publish(declared)
        query = _Query(at, tmp_path)
        begin = query.batches.first()
        empty = query.next(begin)
        assert empty.topics.keys() == {f"plant batched {number}" for number in range(3)}
        assert query.run(begin, empty) == 0
        assert query.next(empty) == empty  # Spark begins no batch with that

        broker.write("batched", [("k", value(each)) for each in range(3000)], partition=0)
        broker.write("batched", [value(each, sensor="x") for each in range(3000, 3010)], partition=2)
        broker.write("batched", [value(9999, sensor="x")], partition=2, transaction="committed")
        broker.write("batched", [b"garbage"], partition=1)
        end = query.next(empty, most=900)
        # A share of what fits for each partition; behind the transaction is its mark.
        assert end.topics == {"plant batched 0": (0, 300), "plant batched 1": (0, 1), "plant batched 2": (0, 12)}
        assert end.spread
        assert query.run(empty, end) == 311
        logged = [row.key for row in at.root()]
        assert len(logged) == len(set(logged)) == 311
        # The same batch again, from what it started from: all of it is stored already.
        assert query.run(empty, end) == 311
        assert [row.key for row in at.root()] == logged
        assert [each["code"] for each in at.dead()] == ["E760"]

        # On from there.
        last = end
        while (following := query.next(last, most=2000)) != last:
            query.run(last, following)
            last = following
        assert len(at.root()) == 3011
        assert sorted({row.id for row in at.root()}, key=int) == [*map(str, range(3010)), "9999"]
        commits = TopicCommits(KafkaAddress.of(settings))
        commits.done(last, declared)
        commits.close()

        # A checkpoint that is gone: what the root log has is known by its keys, and Kafka knows how far the group is.
        gone = TopicPlanner(lambda _: {})
        found = gone.next(declared, Offset(), 10)
        gone.close()
        assert {begin for begin, _ in found.values()} <= {0, 1, 12, 3000}

        # The broker dies: other clients' events go on.
        broker.kill()
        assert query.next(last).topics == last.topics
        broker.start()
        query.batches.close()


def test_a_process_that_was_not_given_the_address_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    use_settings(Settings())
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(SituError, match="N160"):
        KafkaAddress.of_process()
    address = KafkaAddress("host:1", options=(("a", "b"),))
    monkeypatch.setenv(VARIABLE, address.variables()[VARIABLE])
    assert KafkaAddress.of_process() == address
