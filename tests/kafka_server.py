"""A real broker of Kafka for tests: KRaft, one node, on loopback, from Maven Central in a cache; killed at will.

It has two listeners: one for whoever comes, and one with TLS that asks for a name and a password.
"""

from __future__ import annotations

import base64
import subprocess
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.certificates import make_certificates
from tests.nats_server import free_port
from tests.s3_server import fetched

_JARS = (
    "org/apache/kafka/kafka-clients/4.3.1/kafka-clients-4.3.1.jar",
    "org/scala-lang/scala-library/2.13.18/scala-library-2.13.18.jar",
    "org/apache/logging/log4j/log4j-core/2.25.4/log4j-core-2.25.4.jar",
    "com/fasterxml/jackson/core/jackson-databind/2.21.2/jackson-databind-2.21.2.jar",
    "org/apache/kafka/kafka-metadata/4.3.1/kafka-metadata-4.3.1.jar",
    "org/apache/kafka/kafka_2.13/4.3.1/kafka_2.13-4.3.1.jar",
    "org/apache/kafka/kafka-server-common/4.3.1/kafka-server-common-4.3.1.jar",
    "org/apache/kafka/kafka-server/4.3.1/kafka-server-4.3.1.jar",
    "org/apache/kafka/kafka-raft/4.3.1/kafka-raft-4.3.1.jar",
    "org/apache/kafka/kafka-storage/4.3.1/kafka-storage-4.3.1.jar",
    "com/fasterxml/jackson/core/jackson-core/2.21.2/jackson-core-2.21.2.jar",
    "org/apache/logging/log4j/log4j-api/2.25.4/log4j-api-2.25.4.jar",
    "org/apache/kafka/kafka-coordinator-common/4.3.1/kafka-coordinator-common-4.3.1.jar",
    "org/apache/kafka/kafka-group-coordinator/4.3.1/kafka-group-coordinator-4.3.1.jar",
    "com/yammer/metrics/metrics-core/2.2.0/metrics-core-2.2.0.jar",
    "net/sf/jopt-simple/jopt-simple/5.0.4/jopt-simple-5.0.4.jar",
    "com/fasterxml/jackson/core/jackson-annotations/2.21/jackson-annotations-2.21.jar",
    "org/hdrhistogram/HdrHistogram/2.2.2/HdrHistogram-2.2.2.jar",
    "org/apache/kafka/kafka-transaction-coordinator/4.3.1/kafka-transaction-coordinator-4.3.1.jar",
    "org/pcollections/pcollections/4.0.2/pcollections-4.0.2.jar",
    "org/slf4j/slf4j-api/1.7.36/slf4j-api-1.7.36.jar",
    "com/fasterxml/jackson/dataformat/jackson-dataformat-yaml/2.21.2/jackson-dataformat-yaml-2.21.2.jar",
    "org/apache/kafka/kafka-share-coordinator/4.3.1/kafka-share-coordinator-4.3.1.jar",
    "org/apache/kafka/kafka-group-coordinator-api/4.3.1/kafka-group-coordinator-api-4.3.1.jar",
    "com/typesafe/scala-logging/scala-logging_2.13/3.9.6/scala-logging_2.13-3.9.6.jar",
    "commons-validator/commons-validator/1.10.1/commons-validator-1.10.1.jar",
    "com/google/re2j/re2j/1.8/re2j-1.8.jar",
    "jakarta/servlet/jakarta.servlet-api/6.0.0/jakarta.servlet-api-6.0.0.jar",
    "at/yawk/lz4/lz4-java/1.10.2/lz4-java-1.10.2.jar",
    "org/apache/kafka/kafka-storage-api/4.3.1/kafka-storage-api-4.3.1.jar",
    "org/yaml/snakeyaml/2.5/snakeyaml-2.5.jar",
    "com/github/luben/zstd-jni/1.5.6-10/zstd-jni-1.5.6-10.jar",
    "commons-logging/commons-logging/1.3.5/commons-logging-1.3.5.jar",
    "net/sourceforge/argparse4j/argparse4j/0.7.0/argparse4j-0.7.0.jar",
)
_CONNECTOR = (
    "org/apache/spark/spark-sql-kafka-0-10_2.13/4.2.0/spark-sql-kafka-0-10_2.13-4.2.0.jar",
    "org/apache/spark/spark-token-provider-kafka-0-10_2.13/4.0.0/spark-token-provider-kafka-0-10_2.13-4.0.0.jar",
    "org/apache/kafka/kafka-clients/3.9.2/kafka-clients-3.9.2.jar",
    "org/apache/commons/commons-pool2/2.13.1/commons-pool2-2.13.1.jar",
)
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},SASL_SSL://127.0.0.1:{secure},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},SASL_SSL://127.0.0.1:{secure}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT
sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
ssl.keystore.type=PEM
ssl.keystore.location={folder}/server-chain.pem
connection.failed.authentication.delay.ms=10
log.dirs={folder}/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
log.retention.check.interval.ms=1000
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=300
"""
_PATIENCE = 120.0
PASSWORD = "se:cret-of-kafka"
"""Of the user `situ`."""


def spark_connector() -> str:
    """Spark's connector for Kafka, as the setting `spark.connector` has it."""
    return ",".join(str(fetched(each)) for each in _CONNECTOR)


class KafkaServer:
    """One broker that keeps its port and what it stores over restarts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port, self.secure_port, self._controller = free_port(), free_port(), free_port()
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        self._settings = folder / "server.properties"
        ports = {"port": self.port, "secure": self.secure_port, "controller": self._controller}
        self._settings.write_text(_PROPERTIES.format(folder=folder, **ports))
        self.certificates = make_certificates(folder)
        chain = [(folder / name).read_text() for name in ("server.key", "server.pem", "ca.pem")]
        (folder / "server-chain.pem").write_text("".join(chain))
        # One that began with a dash would be taken for an option.
        cluster = "A" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")[1:]
        command = self._command("kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(self._settings))
        command += ["--add-scram", f"SCRAM-SHA-512=[name=situ,password={PASSWORD}]"]
        subprocess.run(command, check=True, capture_output=True, cwd=folder)

    def _command(self, *arguments: str) -> list[str]:
        classes = ":".join(str(fetched(each)) for each in _JARS)
        return ["java", "-Xmx384m", "-cp", classes, *arguments]

    @property
    def servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def secure_servers(self) -> str:
        return f"127.0.0.1:{self.secure_port}"

    def options(self, password: str = PASSWORD, ca: str = "ca") -> dict[str, str]:
        """Of librdkafka, for the listener with TLS."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "situ",
            "sasl.password": password,
            "ssl.ca.location": str(self.certificates / f"{ca}.pem"),
        }

    def start(self) -> None:
        with (self.folder / "server.log").open("ab") as log:
            command = self._command("kafka.Kafka", str(self._settings))
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder)
        deadline = time.monotonic() + _PATIENCE
        while True:
            assert self._process.poll() is None, (self.folder / "server.log").read_text()[-2000:]
            try:
                AdminClient({"bootstrap.servers": self.servers, "log_level": 0}).list_topics(timeout=1)
                return
            except Exception:  # noqa: BLE001 - it is not there yet
                assert time.monotonic() < deadline, "the broker did not start"
                time.sleep(0.1)

    def kill(self) -> None:
        """As by SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    # ── what tests do with it ──

    def create(self, *topics: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        new = [NewTopic(each, partitions, 1, config=dict(config or {})) for each in topics]
        admin = AdminClient({"bootstrap.servers": self.servers})
        for done in admin.create_topics(new).values():
            done.result(30)

    def write(self, topic: str, records: Iterable[Any], *, partition: int = -1, transaction: str = "") -> None:
        """Values, or pairs of key and value, or key, value and headers."""
        own = {"transactional.id": transaction} if transaction else {}
        producer = Producer({"bootstrap.servers": self.servers, "enable.idempotence": True, "log_level": 2, **own})
        if transaction:
            producer.init_transactions(30)
            producer.begin_transaction()
        for each in records:
            key, value, headers = (
                (each if len(each) == 3 else (*each, [])) if isinstance(each, tuple) else (None, each, [])
            )
            at = {"partition": partition} if partition >= 0 else {}
            while True:
                try:
                    producer.produce(topic, value, key, headers=headers, **at)
                    break
                except BufferError:
                    producer.poll(0.1)
        if transaction:
            producer.commit_transaction(30)
        assert producer.flush(60) == 0

    def read(self, topic: str) -> list[Message]:
        """All committed records that there are now."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": f"test-{uuid.uuid4().hex}",
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 20,
                "log_level": 2,
            }
        )
        partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
        consumer.assign([TopicPartition(topic, each, 0) for each in partitions])
        found: list[Message] = []
        open_ones = set(partitions)
        deadline = time.monotonic() + _PATIENCE
        while open_ones and time.monotonic() < deadline:
            for message in consumer.consume(5000, timeout=0.05):
                error = message.error()
                if error is None:
                    found.append(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    open_ones.discard(message.partition())
        consumer.close()
        return found

    def committed(self, group: str, topic: str, partition: int = 0) -> int:
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": group})
        (found,) = consumer.committed([TopicPartition(topic, partition)], timeout=30)
        consumer.close()
        return int(found.offset)


@contextmanager
def kafka_server(folder: Path) -> Iterator[KafkaServer]:
    server = KafkaServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.kill()
