"""Numbers that clients get are sealed: the same for the same, of no use for counting, and opened only by who sealed."""

from __future__ import annotations

import json
import random
from itertools import pairwise

from situ.event.lines import dead_letter, decode_line, encode_row, placed_line
from situ.event.row import BadRow, Row
from situ.event.seal import Seal, seal_of
from situ.protocol.dedup_window import DedupWindow, TokenSet, split_key

SEAL = Seal("secret")
FORMER = {
    "NnxjxhwrGM47rf_LJLDKngn6-hUSuhYr": (0, 0),
    "FFeM6tOoitBR93beDXaTCT9vnP-pNDDd": (1790000000000, 4711),
    "-D9f_XElQAbfHwfCj_kt_1dajHsKR7iZ": (18446744073709551615, 9223372036854775808),
}


def row(seq: int, **changed: object) -> Row:
    fields: dict[str, object] = {
        "pos": 0,
        "client": "turbine7",
        "incarnation": 1_790_000_000_000,
        "seq": seq,
        "context": "root",
        "recv": 1_790_000_000_000_000,
        "id": f"1790000000000-{seq}",
        "source": "turbine7",
        "type": "Notice",
        "time": 1_790_000_000_000_000,
        "ad": "turbine7/a",
        "confidence": None,
        "ext": "",
        "data": b'{"text":"x"}',
    }
    return Row(**{**fields, **changed})  # type: ignore[arg-type]


def sealed(one: Row, pos: int = 131_073) -> dict[str, object]:
    line = encode_row(one)
    found: dict[str, object] = json.loads(SEAL.line(line if one.pos else placed_line(line, pos)))
    return found


def test_tokens_open_with_their_own_seal_only() -> None:
    dice = random.Random(1)
    for _ in range(500):
        numbers = dice.randrange(1 << 64), dice.randrange(1 << 20)
        token = SEAL.token(*numbers)
        assert SEAL.opened(token) == numbers
        assert SEAL.token(*numbers) == token
        assert Seal("other").opened(token) is None
        place = dice.randrange(len(token))
        forged = token[:place] + ("A" if token[place] != "A" else "B") + token[place + 1 :]
        assert SEAL.opened(forged) is None
    for text in ("", "x", "1790000000000-5", "ä" * 32, "=" * 32, "a" * 31 + "\n"):
        assert SEAL.opened(text) is None


def test_tokens_of_before_still_open() -> None:
    """Made by BLAKE2 with the same secret."""
    for token, numbers in FORMER.items():
        assert SEAL.opened(token) == numbers
        assert SEAL.token(*numbers) != token
        assert Seal("other").opened(token) is None


def test_nothing_of_what_is_next_to_it_can_be_seen_in_a_token() -> None:
    tokens = [SEAL.token(1_790_000_000_000, seq) for seq in range(2000)]
    assert len(set(tokens)) == 2000
    order = sorted(range(2000), key=tokens.__getitem__)
    rising = sum(second > first for first, second in pairwise(order))
    assert 900 < rising < 1100, "no order"
    for place in range(32):
        assert max(map([each[place] for each in tokens].count, {each[place] for each in tokens})) < 100


def test_a_line_has_none_of_the_numbers_that_others_counted() -> None:
    found = sealed(row(4711))
    assert "4711" not in json.dumps(found)
    assert "situpos" not in found
    client, _, token = str(found["situkey"]).partition(".")
    assert (client, SEAL.opened(token)) == ("turbine7", (1_790_000_000_000, 4711))
    assert found["id"] == token
    assert found["data"] == {"text": "x"}


def test_what_an_application_says_is_its_own() -> None:
    data = b'{"text":"\\"situkey\\":\\"a.1.2\\" ,\\"situpos\\":\\"5\\"}"}'
    for ext in ("", '"subject":"1790000000000-7","traceparent":"x"'):
        found = sealed(row(7, id="order 7", data=data, ext=ext))
        assert found["id"] == "order 7"
        assert found["data"] == json.loads(data)
        assert not ext or found["subject"] == "1790000000000-7"
    inside = row(7, data=b'{"situpos":"5"}')
    assert json.loads(SEAL.line(encode_row(inside)))["data"] == {"situpos": "5"}, "data that looks like a position"


def test_a_dead_letter_names_the_sealed_key() -> None:
    bad = BadRow(
        pos=65_537, client="turbine7", incarnation=1_790_000_000_000, seq=4711, context="root", recv=5, ad="",
        stage="decode", errors=(("INT701", "", "x", ""),), original=b'{"n": ".1790000000000.4711"}',
    )  # fmt: skip
    line = dead_letter(bad, 6)
    found = json.loads(SEAL.line(line))
    key = SEAL.key("turbine7.1790000000000.4711")
    assert found["data"]["key"] == key
    assert found["id"] == f"{key}.decode"
    assert found["situkey"] == f"dead-{key}"
    assert "situpos" not in found
    assert found["data"]["original"] == '{"n": ".1790000000000.4711"}', "what was sent stays what was sent"
    assert SEAL.handed([line], "turbine7") == [line], "its own numbers its producer may know"
    assert SEAL.handed([line], "turbine") != [line]


def test_a_situation_names_sealed_causes() -> None:
    place = '"source":"turbine7","type":"N","time":"2026-11-18T00:00:00Z","pos"'
    causes = f'{{"id":"1790000000000-4711",{place}:131074,"values":[]}},{{"id":"o1",{place}:131075,"values":[]}}'
    bindings = '{"alias":"A","concept":"c","id":"1790000000000-4711"}'
    data = f'{{"situation":"s","bindings":[{bindings}],"causes":[{causes}]}}'
    found = sealed(row(3, type="situ.situation.opened", id="s.opened", data=data.encode()))
    first, second = found["data"]["causes"]  # type: ignore[index]
    assert (first["id"], first["pos"]) == (SEAL.token(1_790_000_000_000, 4711), 0)
    assert (second["id"], second["pos"]) == ("o1", 0)
    assert found["data"]["bindings"][0]["id"] == "1790000000000-4711", "what an instance is called"  # type: ignore[index]


def test_lines_stay_readable() -> None:
    """For readers; engines never read what was sealed."""
    line = encode_row(row(9))
    assert decode_line(line).seq == 9
    assert split_key(json.loads(SEAL.line(line))["situkey"])[:2] == ("turbine7", None)
    assert split_key("turbine7.5.9") == ("turbine7", 5, "9")


def test_copies_are_told_by_sealed_keys() -> None:
    window = DedupWindow()
    keys = [SEAL.key(f"{client}.1.{seq}") for client in ("a", "b") for seq in range(100)]
    assert all(window.add_key(key) for key in keys)
    assert not any(window.add_key(key) for key in keys)
    assert all(window.has_key(key) for key in keys)
    assert not window.has_key(SEAL.key("c.1.5"))
    assert window.add_key("a.1.5"), "a plain key is another"


def test_the_last_sealed_keys_are_remembered_and_no_more_than_that() -> None:
    tokens = TokenSet(recent=100)
    for number in range(1000):
        assert tokens.add(number)
        assert all(tokens.has(each) for each in range(max(0, number - 99), number + 1))
    assert len(list(tokens)) <= 200
    again = TokenSet(recent=100)
    for each in tokens:
        again.add(each)
    assert set(again) == set(tokens)


def test_one_seal_for_one_secret() -> None:
    assert seal_of("x") is seal_of("x")
    assert seal_of("x").token(1, 2) == Seal("x").token(1, 2)
