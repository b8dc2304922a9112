"""Things by their ids, and by the client whose they are."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from situ.quality.negotiation.state import ClientIndex


@dataclass(frozen=True)
class Thing:
    client: str
    number: int = 0


def test_those_of_a_client_are_those_that_are_there() -> None:
    things = ClientIndex[Thing]()
    things["a"], things["b"], things["c"] = Thing("desk"), Thing("hall"), Thing("desk")
    assert things.of("desk") == {"a": Thing("desk"), "c": Thing("desk")}
    things["a"] = Thing("desk", 2)
    del things["c"]
    assert things.of("desk") == {"a": Thing("desk", 2)}
    assert things.pop("b") == Thing("hall")
    assert things.of("hall") == things.of("nobody") == {}
    assert dict(things) == {"a": Thing("desk", 2)}


def test_what_is_of_another_client_now_is_no_more_of_the_one_before() -> None:
    things = ClientIndex[Thing]()
    things["a"] = Thing("desk")
    things["a"] = Thing("hall")
    assert (things.of("desk"), things.of("hall")) == ({}, {"a": Thing("hall")})


def test_what_is_not_there_cannot_be_taken_out() -> None:
    things = ClientIndex[Thing]()
    with pytest.raises(KeyError):
        del things["a"]
    with pytest.raises(KeyError):
        things.pop("a")


def test_those_of_a_client_stay_what_they_were_while_they_are_taken_out() -> None:
    things = ClientIndex[Thing]()
    things["a"], things["b"] = Thing("desk"), Thing("desk")
    for id in things.of("desk"):
        del things[id]
    assert not things
