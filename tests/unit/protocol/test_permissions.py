"""What clients may do on the bus: nothing of one is another's, and answers go to nobody else."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from situ.bus.credentials import ClientCredentials, make_seed, public_key, read_client, seed_in
from situ.bus.memory import fits
from situ.protocol.permissions import BusPrincipal, inbox_of, may_be_answered, permissions_of, users

NAMES = st.from_regex(r"[A-Za-z0-9-]{1,64}", fullmatch=True)
EVERYTHING = (
    "situ.main.raw.r1.0",
    "situ.main.root.r1._",
    "situ.main.out.g",
    "situ.main.dead.x",
    "$KV.registry.current",
)


@given(NAMES, NAMES)
def test_no_subject_of_one_is_allowed_to_another(one: str, other: str) -> None:
    if one == other:
        return
    mine, his = permissions_of("main", one), permissions_of("main", other)
    for pattern, subject in itertools.product(
        mine.publish + mine.subscribe, (*his.publish, *his.subscribe, *EVERYTHING)
    ):
        assert not fits(pattern, subject.replace("*", "r1").replace(">", "x"))


@given(NAMES, NAMES)
def test_an_answer_goes_to_its_own_inbox_or_to_one_that_nobody_can_guess(one: str, other: str) -> None:
    assert may_be_answered(one, f"{inbox_of(one)}.x.1")
    assert may_be_answered(one, "_INBOX.x.1")
    assert may_be_answered(one, f"{inbox_of(other)}.x") == (one == other)


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "_INBOX",
        "_INBOX_alice",
        "_INBOX_alic.x",
        "situ.main.live.alice",
        "$JS.API.INFO",
        "_INBOX.*",
        "_INBOX_alice.>",
        "_INBOX.x y",
    ],
)
def test_answers_go_nowhere_else(reply: str) -> None:
    assert not may_be_answered("alice", reply)


def heard(client: str) -> str:
    feedback = f'"situ.main.feedback.sub.{client}", "situ.main.feedback.pub.{client}"'
    return f'    subscribe: {{ allow: ["situ.main.live.{client}", {feedback}, "_INBOX_{client}.>"] }}'


def test_users_are_written_as_a_server_reads_them() -> None:
    text = users("main", [BusPrincipal(name="b", key="UB"), BusPrincipal(name="a", key="UA")], "{ nkey: URUN }")
    assert text.splitlines() == [
        "users = [",
        "  { nkey: URUN }",
        "  # a",
        "  { nkey: UA, permissions: {",
        '    publish: { allow: ["situ.main.in.*.a"] }',
        heard("a"),
        "  } }",
        "  # b",
        "  { nkey: UB, permissions: {",
        '    publish: { allow: ["situ.main.in.*.b"] }',
        heard("b"),
        "  } }",
        "]",
    ]


def test_a_file_of_credentials_reads_back_and_does_not_show_its_secret() -> None:
    made = ClientCredentials(client="gate", zone="main", seed=make_seed())
    assert read_client(made.text()) == made
    assert made.seed not in repr(made)
    assert seed_in(made.seed) == made.seed
    assert public_key(made.seed).startswith("U")
    assert make_seed() != make_seed()


@pytest.mark.parametrize("text", ["", "a token", "user:password", "client: x\nzone: main\n", "SU" + "A" * 56])
def test_other_files_are_no_credentials_of_a_client(text: str) -> None:
    assert read_client(text) is None
