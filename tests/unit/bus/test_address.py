"""Names on the bus and addresses of it: pure text."""

from __future__ import annotations

import pickle
from datetime import timedelta
from pathlib import Path

import pytest

from situ.bus.address import Address, resolve_address
from situ.bus.memory import fits
from situ.bus.streams import configurations
from situ.event.subjects import SHARDS, BusNames, consumer_of, shard_of, subscription_of
from situ.settings import Settings
from situ.settings.kinds import BusSettings, plain
from situ.settings.model import Log, Overlay, Retention

NAMES = BusNames("main")


def test_subjects_of_a_zone() -> None:
    assert NAMES.ingress("r1", "desk") == "situ.main.in.r1.desk"
    assert NAMES.ingress("r1") == "situ.main.in.r1.*"
    assert NAMES.raw("r1", 3) == "situ.main.raw.r1.3"
    assert NAMES.root("r1", "Seen") == "situ.main.root.r1.Seen"
    assert NAMES.root("r1") == "situ.main.root.r1._"
    assert NAMES.out("0123456789abcdef") == "situ.main.out.0123456789abcdef"
    assert NAMES.live("desk") == "situ.main.live.desk"
    assert NAMES.dead("desk") == "situ.main.dead.desk"
    assert NAMES.dead("") == NAMES.dead() == "situ.main.dead._"
    assert NAMES.group_of(NAMES.out("g1")) == "g1"


def test_every_stored_subject_belongs_to_one_stream() -> None:
    assert NAMES.streams == ("IN_main", "ROOT_main", "OUT_main", "DEAD_main", "LATE_main", "FEED_main")
    subjects = (NAMES.raw("r1", 0), NAMES.root("r1", "A.B"), NAMES.out("g"), NAMES.dead("a"), NAMES.late("A.B"))
    subjects += (NAMES.feedback("sub", "a"), NAMES.feedback("pub", "a"))
    for subject in subjects:
        assert sum(fits(NAMES.subjects_of(stream), subject) for stream in NAMES.streams) == 1
    for subject in (NAMES.live("a"), NAMES.ingress("r1", "a")):
        assert not any(fits(NAMES.subjects_of(stream), subject) for stream in NAMES.streams)


def test_subscriptions_read_back_from_consumers() -> None:
    assert consumer_of("desk/seen") == "desk_seen"
    assert subscription_of("desk_seen") == "desk/seen"


def test_a_client_stays_in_its_shard() -> None:
    shards = [shard_of(f"client-{n}") for n in range(1000)]
    assert set(shards) == set(range(SHARDS))
    # In every release: what is stored under a shard is looked for there.
    assert [shard_of(client) for client in ("a", "b", "desk", "reader-7")] == [3, 9, 6, 11]


@pytest.mark.parametrize(
    ("pattern", "subject", "expected"),
    [
        ("a.b", "a.b", True),
        ("a.b", "a.b.c", False),
        ("a.b.c", "a.b", False),
        ("a.*", "a.b", True),
        ("a.*", "a.b.c", False),
        ("*.b", "a.b", True),
        ("a.>", "a.b.c", True),
        ("a.>", "a", False),
        (">", "a", True),
    ],
)
def test_patterns_mean_subjects_as_in_nats(pattern: str, subject: str, expected: bool) -> None:
    assert fits(pattern, subject) is expected


def test_streams_follow_the_settings() -> None:
    settings = Settings(
        name="x",
        log=Log(age=timedelta(minutes=1), size=1000),
        overlay=Overlay(groups=Retention(age=timedelta(hours=1), size=2000)),
    )
    by_name = {one["name"]: one for one in configurations(NAMES, settings)}
    into, root, out = by_name["IN_main"], by_name["ROOT_main"], by_name["OUT_main"]
    assert (into["discard"], into["max_bytes"], into["max_age"]) == ("new", 1000, 0)
    assert (root["discard"], root["max_bytes"], root["max_age"]) == ("old", 1000, 60 * 10**9)
    assert root["duplicate_window"] == 60 * 10**9  # never longer than messages are kept
    assert into["duplicate_window"] == 600 * 10**9
    assert (out["retention"], out["max_bytes"], out["max_age"]) == ("interest", 2000, 3600 * 10**9)
    assert {"KV_registry", "KV_clients_main", "KV_metrics_main", "OBJ_deployments"} <= by_name.keys()
    assert all(one["allow_direct"] and one["storage"] == "file" for one in by_name.values())


def test_an_address_travels_and_shows_no_secret() -> None:
    address = Address(zone="z", servers=("nats://u:secret@host:4222", "nats://other"), token_file="/t")
    assert str(address) == "nats://host:4222, nats://other"
    assert "secret" not in repr(address)
    assert pickle.loads(pickle.dumps(address)) == Address.from_json(address.to_json()) == address
    assert len({address, Address.from_json(address.to_json())}) == 1


def test_the_address_of_a_server_of_ones_own_comes_from_the_settings() -> None:
    bus = BusSettings(
        kind="nats", servers=(plain("nats://h:1"),), ca=plain("tls/ca.pem"), credentials=plain("/abs/creds")
    )
    address = resolve_address(Path("/project"), Settings(name="x", zone="z", bus=bus))
    assert (address.zone, address.servers, address.cert) == ("z", ("nats://h:1",), "")
    assert (address.ca, address.credentials) == ("/project/tls/ca.pem", "/abs/creds")
