"""Generations of real-time queries: what the engine leaves to them, and when they are done."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from situ.kafka.connection import KafkaAddress
from situ.kafka.records import KafkaRecord
from situ.lang.problems import SituError
from situ.spark.checkpoint import Offset
from situ.spark.real_time.generations import Generations, partition_key
from situ.spark.real_time.java_options import java_options
from situ.spark.real_time.leave_out import PlainOffsets
from situ.storage.state_folder import StateFolder
from tests.real_time import NOW, OrdinaryWay
from tests.real_time import project as declared

PLACE = partition_key("readings", 0)
DIGESTS = {"meter": {"desk/every": "abc"}}


class _Engine:
    """Writes offsets of batches as Spark does."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "offsets"
        self._folder.mkdir(parents=True)
        self._number = 0

    def batch(self, begin: int, end: int, *, real_time: int, clock: int) -> None:
        offset = Offset(seq=1, version=1, clock=clock, topics={f"meter {PLACE}": (begin, end)}, real_time=real_time)
        (self._folder / str(self._number)).write_text(f"v1\n{{}}\n{json.dumps(offset.as_json())}")
        self._number += 1


def test_a_generation_takes_what_it_was_made_for(tmp_path: Path) -> None:
    generations = Generations(StateFolder(str(tmp_path)))
    made = generations.add(3, DIGESTS, {"meter": {PLACE: 10}})
    assert generations.load(made.number) == made
    assert made.takes("meter", "desk/every", "abc", PLACE, 10)
    assert not made.takes("meter", "desk/every", "abc", PLACE, 9)
    assert not made.takes("meter", "desk/every", "other", PLACE, 10)
    assert not made.takes("meter", "desk/every", "abc", partition_key("readings", 1), 10)
    assert not made.takes("meter", "desk/other", "", PLACE, 10)
    assert made.is_same(DIGESTS, {"meter": {PLACE: 99}})
    assert not made.is_same(DIGESTS, {"meter": {PLACE: 99, partition_key("readings", 1): 0}})


def test_numbers_are_not_given_twice(tmp_path: Path) -> None:
    generations = Generations(StateFolder(str(tmp_path)))
    first = generations.add(1, DIGESTS, {})
    (tmp_path / "real-time" / str(first.number) / "meter").mkdir(parents=True)  # its checkpoint
    generations.remove(first.number)
    assert generations.numbers() == []
    assert generations.add(1, DIGESTS, {}).number > first.number
    with pytest.raises(SituError, match="N101"):
        generations.load(first.number)


def test_an_old_one_is_done_where_the_first_batch_begins_that_does_not_name_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generations, engine = Generations(StateFolder(str(tmp_path))), _Engine(tmp_path)
    now = 0
    monkeypatch.setattr("situ.spark.real_time.generations.time.time_ns", lambda: now * 1000)
    engine.batch(0, 5, real_time=0, clock=5)
    generations.make_current(1)
    assert generations.left_until(1) is None
    engine.batch(5, 10, real_time=1, clock=20)
    now = 30
    generations.make_current(2)
    assert generations.left_until(1) is None  # it is named by the last batch
    engine.batch(10, 15, real_time=1, clock=29)  # planned just before
    assert generations.left_until(1) is None
    engine.batch(15, 20, real_time=2, clock=31)
    assert generations.left_until(1) == {f"meter {PLACE}": 15}
    engine.batch(20, 25, real_time=2, clock=40)
    assert generations.left_until(1) == {f"meter {PLACE}": 15}
    assert generations.left_until(2) is None


def test_a_batch_planned_before_a_change_may_still_name_an_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was current for a moment: the last batch does not name it, the one under way may."""
    generations, engine = Generations(StateFolder(str(tmp_path))), _Engine(tmp_path)
    monkeypatch.setattr("situ.spark.real_time.generations.time.time_ns", lambda: 30_000)
    engine.batch(0, 5, real_time=0, clock=20)
    generations.make_current(0)
    assert generations.left_until(1) is None
    engine.batch(5, 9, real_time=0, clock=31)
    assert generations.left_until(1) == {f"meter {PLACE}": 0}


def test_messages_say_which_of_their_events_come_from_plain_records(tmp_path: Path) -> None:
    plain = OrdinaryWay(declared(tmp_path)).real_time.clients["plant"].plain
    values = [b'{"sensor":"s","value":1}', b'{"sensor":"s","value":1e1}', b'{"sensor":"s","value":2}', None]
    records = [KafkaRecord("readings", 0, 40 + n, None, each, (), NOW) for n, each in enumerate(values)]
    noted = PlainOffsets(records, plain)
    assert list(noted) == records
    assert noted.header(40, 2) == {"Situ-Plain": "1"}
    assert noted.header(42, 2) == {"Situ-Plain": "1"}
    assert noted.header(44, 2) == {}


def test_options_are_told_to_java(tmp_path: Path) -> None:
    authority = tmp_path / "ca.pem"
    authority.write_text("CA")
    options = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "situ",
        "sasl.password": 'a"b\\c',
        "ssl.ca.location": str(authority),
        "socket.timeout.ms": "1000",
    }
    made = java_options(KafkaAddress(servers="a:1,b:2", options=tuple(options.items())))
    login = "org.apache.kafka.common.security.scram.ScramLoginModule"
    assert made == {
        "bootstrap.servers": "a:1,b:2",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f'{login} required username="situ" password="a\\"b\\\\c";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "CA",
    }
    with pytest.raises(SituError, match="oauthbearer") as refused:
        java_options(KafkaAddress(servers="a:1", options=(("sasl.oauthbearer.config", "x"),)))
    assert refused.value.code == "N165"
