"""What `situ subscribe --json` writes is the event as it was delivered, with all that a reader of it may need."""

from __future__ import annotations

import json

import msgspec

from situ.cli.commands.subscribe import as_json
from situ.client.events import Event, read_events
from situ.event.message import join_lines

ALL = {
    "specversion": "1.0",
    "id": "e-1",
    "source": "gate/line-3",
    "type": "Reading",
    "time": "2026-11-01T08:30:00Z",
    "subject": "hall/2",
    "confidence": "80",
    "imprecision": "0.5",
    "released": "tenancy",
    "situkey": "gate.1.1",
    "situcontext": "us@1",
    "situfrom": "eu@2",
    "situredelivered": True,
    "data": {"value": 1.5},
}
OF_ROUTERS = {"siturecv", "situsubs", "situnumber"}
"""How routers say when they got it, whom it is for and the how manieth it is: the last is written as `situpos`."""


def delivered(event: dict[str, object]) -> dict[str, object]:
    (read,) = read_events(join_lines([json.dumps(event).encode()]))
    read.number = 7
    return as_json(read)


def test_all_that_is_known_of_an_event_is_written() -> None:
    """A new attribute of `Event` has to be sorted in here."""
    known = {each.encode_name for each in msgspec.structs.fields(Event)}
    assert known | {"specversion"} == set(ALL) | OF_ROUTERS
    assert delivered(ALL) == ALL | {"situpos": "7"}


def test_what_goes_without_saying_is_not_written() -> None:
    plain = {name: ALL[name] for name in ("specversion", "id", "source", "type", "time", "data")}
    assert delivered(plain | {"situkey": "gate.1.1"}) == plain | {"situkey": "gate.1.1", "situpos": "7"}
    assert delivered(plain | {"situcontext": "us@1", "situfrom": "root"})["situcontext"] == "us@1"
