"""What is said of situations: data of the declared type, and sentences."""

from __future__ import annotations

import msgspec

from situ.event.row import Row
from situ.lang.types.json_codec import decode
from situ.lang.types.table import RESERVED_EVENTS, Types
from situ.policies.lifecycle import SITUATION_TYPES, situation_data, situation_sentence, step
from situ.policies.model import Cause, Detection, Policy
from tests import domains
from tests.domains import UNACCOMPANIED_GUEST

SECOND = 1_000_000


def security() -> Policy:
    return domains.policy(UNACCOMPANIED_GUEST, domains.building())


def guest(time: int = 5 * SECOND) -> Detection:
    return Detection(
        policy="unaccompanied-guest",
        bindings=(("A", "17"), ("R", "r4")),
        causes=(Cause("reader-1", "e1"),),
        time=time,
        activation=0,
    )


def row() -> Row:
    data = b'{"who":"17","at":{"x":1.5,"y":-2.0},"seen":true,"tags":["a","b"]}'
    return Row(7, "reader-1", 1, 1, "root", 0, "e1", "reader-1", "Sighting", 0, "", None, "", data)


def test_its_events_are_of_the_declared_types() -> None:
    policy = security()
    state, told = step({}, [guest(), guest(6 * SECOND)], 100 * SECOND, policy.hold)
    assert not state
    assert [each.stage.value for each in told] == ["opened", "continued", "closed"]
    for each in told:
        type = RESERVED_EVENTS[SITUATION_TYPES[each.stage]]
        data = msgspec.json.decode(situation_data(each, policy, [row()]))
        value = decode(type, data, Types(types={}))
        assert value["bindings"] == [
            {"alias": "A", "concept": "person", "id": "17"},
            {"alias": "R", "concept": "room", "id": "r4"},
        ]
        (cause,) = value["causes"]
        assert cause["values"][:3] == [
            {"path": "who", "text": "17"},
            {"path": "at.x", "number": 1.5},
            {"path": "at.y", "number": -2.0},
        ]
        assert ("end" in value) == (each.stage.value == "closed")


def test_sentences_name_who_it_is_and_what_was_missing() -> None:
    policy = security()
    said = situation_sentence(policy, guest().bindings)
    assert said == ("A 17 is inside R r4; within 5 s there was no B with: A 17 is within 5 m of B and B is inside R r4")
    _, told = step({}, [guest(), guest(6 * SECOND)], 100 * SECOND, policy.hold)
    assert [situation_sentence(policy, guest().bindings, each).split(":")[0] for each in told[1:]] == [
        "still",
        "over after 1 s",
    ]
