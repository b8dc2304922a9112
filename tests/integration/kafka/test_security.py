"""A broker that asks for TLS and a password, and what is said to whoever has not the right ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from situ.kafka.connection import VARIABLE, KafkaAddress
from situ.kafka.positions import Extent, TopicPositions
from situ.lang.problems import SituError
from tests.kafka_server import PASSWORD, KafkaServer


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
    with pytest.raises(SituError, match=r"B112 .*none\.pem"):
        address.variables(files=True)
    with pytest.raises(SituError, match=r"N160 .*no\.such\.option"):
        KafkaAddress("127.0.0.1:1", options=(("no.such.option", "secret"),)).consumer("g")
