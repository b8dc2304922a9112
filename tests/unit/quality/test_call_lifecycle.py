"""Which call is allowed when, and what versions do."""

from __future__ import annotations

from typing import get_args

import pytest

from situ.lang.problems import SituError
from situ.quality.negotiation.calls import (
    ACTIVE,
    NEXT,
    SUSPENDED,
    UNKNOWN,
    Call,
    LifecycleStep,
    RegistrationState,
    life_step,
)


@pytest.mark.parametrize(
    ("call", "life", "after"),
    [
        ("register", UNKNOWN, ACTIVE),
        ("update", ACTIVE, ACTIVE),
        ("update", SUSPENDED, SUSPENDED),
        ("suspend", ACTIVE, SUSPENDED),
        ("resume", SUSPENDED, ACTIVE),
        ("revoke", ACTIVE, UNKNOWN),
        ("revoke", SUSPENDED, UNKNOWN),
    ],
)
def test_calls_lead_where_they_should(call: Call, life: RegistrationState, after: RegistrationState) -> None:
    found = life_step(call, "E", life, 3)
    assert found.life is after
    assert found.happens


@pytest.mark.parametrize("call", ["update", "suspend", "resume"])
def test_what_is_not_registered_can_only_be_registered(call: Call) -> None:
    with pytest.raises(SituError) as failed:
        life_step(call, "E", UNKNOWN)
    assert failed.value.code == "Q111"
    assert "it is not registered" in failed.value.problems[0].message


def test_every_call_in_every_state_is_decided() -> None:
    refused = {(call, life) for call in get_args(Call) for life in RegistrationState if (call, life) not in NEXT}
    assert refused == {("update", UNKNOWN), ("suspend", UNKNOWN), ("resume", UNKNOWN)}


@pytest.mark.parametrize(
    ("call", "life"), [("suspend", SUSPENDED), ("resume", ACTIVE), ("revoke", UNKNOWN), ("register", ACTIVE)]
)
def test_the_same_call_again_does_nothing(call: Call, life: RegistrationState) -> None:
    assert life_step(call, "E", life, 3) == LifecycleStep(life, 3, happens=False)


def test_an_update_is_the_next_version_and_again_it_is_nothing() -> None:
    assert life_step("update", "E", ACTIVE, 3) == LifecycleStep(ACTIVE, 4, happens=True)
    assert life_step("update", "E", ACTIVE, 3, 4) == LifecycleStep(ACTIVE, 4, happens=True)
    assert life_step("update", "E", ACTIVE, 4, 4) == LifecycleStep(ACTIVE, 4, happens=False)


@pytest.mark.parametrize("call", get_args(Call))
@pytest.mark.parametrize("life", [ACTIVE, SUSPENDED])
def test_an_older_version_is_refused(call: Call, life: RegistrationState) -> None:
    with pytest.raises(SituError) as failed:
        life_step(call, "E", life, 3, 2)
    assert failed.value.code == "Q112"


def test_who_comes_back_registers_what_it_has() -> None:
    assert life_step("register", "E", UNKNOWN, version=5) == LifecycleStep(ACTIVE, 5, happens=True)
    assert life_step("register", "E", ACTIVE, 5, 5) == LifecycleStep(ACTIVE, 5, happens=False)
    assert life_step("register", "E", SUSPENDED, 5, 6) == LifecycleStep(SUSPENDED, 6, happens=True)


def test_a_name_that_is_taken_is_not_taken_over() -> None:
    with pytest.raises(SituError) as failed:
        life_step("register", "E", ACTIVE, 1, same=False)
    assert failed.value.code == "Q111"
    assert failed.value.problems[0].hint == "Update it, or take another id."
