"""A broker that asks for TLS and a password, and what is said to whoever has not the right ones."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from situ.app.topics import Topics
from situ.bus.event_loop import end
from situ.bus.nats import open_bus
from situ.kafka.connection import VARIABLE, KafkaAddress
from situ.kafka.positions import Extent, TopicPositions
from situ.lang.problems import SituError
from tests.integration.kafka.projects import CLIENTS, TYPES, until
from tests.kafka_server import PASSWORD, KafkaServer
from tests.zone import Zone, zone


def _address(broker: KafkaServer, **options: str) -> KafkaAddress:
    return KafkaAddress(broker.secure_servers, options=tuple(broker.options(**options).items()))


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"password": "wrong-one"}, "invalid credentials"), ({"ca": "stranger"}, "certificate verify failed")],
)
def test_who_is_not_let_in_is_told_why(broker: KafkaServer, options: dict[str, str], reason: str) -> None:
    positions = TopicPositions(_address(broker, **options))
    with pytest.raises(SituError, match=f"N160 .*{reason}") as failed:
        positions.partitions(["any"], "plant")
    assert "wrong-one" not in str(failed.value)
    positions.close()


def test_a_run_tells_why_spark_cannot_read(
    broker: KafkaServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The processes that find it out are Spark's, and nobody reads their log."""

    async def run(at: Zone) -> None:
        bus = await open_bus(at.address, name="topics")
        topics = asyncio.create_task(Topics(bus, _address(broker, password="wrong-one"), None).run())
        await until(lambda: any(each.name == "situ.host" for each in caplog.records))
        await end([topics])
        await bus.close()

    files = {"types/all.yaml": TYPES, "clients/all.yaml": CLIENTS.partition("  desk:")[0]}
    with zone(tmp_path, more=files, situ=f"kafka: {{servers: '{broker.secure_servers}'}}\n") as at:
        asyncio.run(run(at))
    told = [each.getMessage() for each in caplog.records if each.name == "situ.host"]
    assert re.match("N160 .*invalid credentials", told[0])


def test_certificates_go_along_to_other_machines(broker: KafkaServer, monkeypatch: pytest.MonkeyPatch) -> None:
    broker.create("carried")
    variables = _address(broker).variables(files=True)
    assert str(broker.certificates) not in variables[VARIABLE]
    monkeypatch.setenv(VARIABLE, variables[VARIABLE])
    address = KafkaAddress.of_process()
    assert PASSWORD not in repr(address)
    positions = TopicPositions(address)
    assert positions.extents([("carried", 0)]) == {("carried", 0): Extent(0, 0)}
    positions.close()


def test_certificates_that_are_not_there_and_options_that_are_none(broker: KafkaServer, tmp_path: Path) -> None:
    address = KafkaAddress("127.0.0.1:1", options=(("ssl.ca.location", str(tmp_path / "none.pem")),))
    with pytest.raises(SituError, match=r"N160 .*none\.pem.*No such file"):
        address.variables(files=True)
    with pytest.raises(SituError, match=r"N160 .*no\.such\.option"):
        KafkaAddress("127.0.0.1:1", options=(("no.such.option", "secret"),)).consumer("g")
