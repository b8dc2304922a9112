"""Events as applications get them, instants as they name them, names nobody gave, errors that came over the wire."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

import situ
from situ.client.events import read_events
from situ.client.publisher import listener_target, name_of_type, types_in
from situ.client.subscriptions import history_start
from situ.lang.problems import SituError
from situ.protocol.messages import Nack
from situ.protocol.wire import error_from_nack

LINE = (
    b'{"situsubs":"a,b","specversion":"1.0","id":"1-7","source":"pump/2","type":"Level","time":"2026-11-01T08:30:00.5Z",'
    b'"confidence":"97.5","situkey":"pump.1.7","situad":"pump/levels","siturecv":"2026-11-01T08:30:01Z",'
    b'"situpos":"131073","data":{"at":{"x":1.5},"tags":[{"n":1},2,[{"m":3}]],"items":"text"}}'
)


def test_an_event_has_its_envelope_and_its_data() -> None:
    (event,) = read_events(b"[\n" + LINE + b"\n]")
    assert (event.id, event.source, event.type, event.key) == ("1-7", "pump/2", "Level", "pump.1.7")
    assert event.pos == 0, "no number of the log: it gets one of its subscription's when it is given to somebody"
    assert event.time == datetime(2026, 11, 1, 8, 30, 0, 500_000, tzinfo=UTC)
    assert event.received == datetime(2026, 11, 1, 8, 30, 1, tzinfo=UTC)
    assert (event.context, event.confidence, event.redelivered) == ("root", "97.5", False)
    assert event.subscriptions == "a,b"
    assert "pump.1.7" in repr(event)


def test_data_is_reached_by_names_and_by_keys() -> None:
    (event,) = read_events(b"[" + LINE + b"]")
    data = event.data
    assert data is event.data
    assert data.at.x == data["at"]["x"] == 1.5
    assert data.tags[0].n == 1
    assert data.tags[2][0].m == 3
    assert data["items"] == "text"  # where a name means something to dictionaries, the key is meant
    with pytest.raises(AttributeError, match="no 'att'; it has at"):
        _ = data.att


NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        ("begin", 0),
        ("1 h ago", datetime(2026, 11, 15, 11, 0, tzinfo=UTC)),
        ("2026-11-01", datetime(2026, 11, 1, tzinfo=UTC)),
        ("2026-11-01T08:30:00+01:00", datetime(2026, 11, 1, 7, 30, tzinfo=UTC)),
        (timedelta(minutes=5), datetime(2026, 11, 15, 11, 55, tzinfo=UTC)),
        (datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 1, tzinfo=UTC)),
        (datetime(1960, 1, 1, tzinfo=UTC), 0),
    ],
)
def test_instants_are_named_in_several_ways(since: str | datetime | timedelta, expected: int | datetime) -> None:
    wanted = expected if isinstance(expected, int) else round(expected.timestamp() * 1_000_000)
    assert history_start(since, NOW) == wanted


def test_an_instant_that_is_none_is_refused() -> None:
    with pytest.raises(SituError) as error:
        history_start("yesterday", NOW)
    assert error.value.code == "P121"


@pytest.mark.parametrize(
    ("type", "name"), [("Sighting", "Sighting"), ("plant.Level_Low", "plant-Level-Low"), ("A" * 80, "A" * 64)]
)
def test_an_advertisement_is_named_after_its_type(type: str, name: str) -> None:
    assert name_of_type(type) == name


@pytest.mark.parametrize(
    ("what", "types"),
    [
        ("Sighting", ("Sighting",)),
        (" plant.Level ", ("plant.Level",)),
        ("type IS Sighting AND at.x < 5 m", ("Sighting",)),
        ("type is B or Type IS A and note <> 'type IS C'", ("A", "B")),
    ],
)
def test_what_a_listener_wants_names_its_types(what: str, types: tuple[str, ...]) -> None:
    assert types_in(what) == types


@pytest.mark.parametrize("what", ["at.x < 5", "type IS NOT Sighting", "note = 'type IS C'", ""])
def test_a_listener_for_no_type_is_refused(what: str) -> None:
    with pytest.raises(SituError) as error:
        types_in(what)
    assert error.value.code == "R102"


@pytest.mark.parametrize(
    ("what", "types", "where"),
    [
        ("Level", ("Level",), None),
        ("type IS Level AND level > 5", ("Level",), "type IS Level AND level > 5"),
        ("policy night-watch", ("situ.situation",), "policy = 'night-watch'"),
        ("policy", ("policy",), None),
    ],
)
def test_listeners_are_for_types_expressions_and_policies(what: str, types: tuple[str, ...], where: str | None) -> None:
    assert listener_target(what) == (types, where)


def test_an_error_from_the_wire_keeps_its_words() -> None:
    error = error_from_nack(Nack(of="Subscribe", code="INT602", message="No {such} thing.", hint="Try `{}`."))
    assert (error.code, error.problems[0].message, error.hint) == ("INT602", "No {such} thing.", "Try `{}`.")
    assert str(error) == "INT602 No {such} thing."


def test_the_package_gives_what_connects_and_nothing_it_does_not_have() -> None:
    assert situ.connect.__name__ == "connect"
    assert situ.connect_blocking.__name__ == "connect_blocking"
    with pytest.raises(AttributeError):
        _ = situ.disconnect


def test_importing_the_package_loads_no_bus() -> None:
    program = "import sys, situ; print(*sorted({'nats', 'numpy', 'msgspec', 'sqlalchemy'} & sys.modules.keys()))"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (answer.returncode, answer.stdout.strip(), answer.stderr) == (0, "", "")
