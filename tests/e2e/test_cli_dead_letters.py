"""Dead letters: listed, shown, and published again when what was wrong is mended."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import Situ
from tests.e2e.runs import make_plant, running

BAD = {"sensor": "s1", "value": "hot"}


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = make_plant(tmp_path_factory.mktemp("plant"))
    with running(folder) as run:
        yield folder
        assert run.stop() == 0


def publish(situ: Situ, plant: Path, client: str, *data: object) -> None:
    lines = "".join(json.dumps(each) + "\n" for each in data)
    ran = situ("publish", "Reading", "--client", client, "--file", "-", cwd=plant, stdin=lines.encode())
    assert ran.code == 1


def test_they_are_listed_by_client_and_code(situ: Situ, plant: Path) -> None:
    publish(situ, plant, "one", BAD, {"sensor": "s1"})
    publish(situ, plant, "two", BAD)
    found = situ("dead-letters", "list", "--client", "one", "--json", cwd=plant).data
    assert [(each["client"], each["code"], each["path"]) for each in found] == [
        ("one", "INT703", "value"),
        ("one", "INT707", "value"),
    ]
    (only,) = situ("dead-letters", "list", "--client", "one", "--code", "int707", "--json", cwd=plant).data
    assert only == found[1]
    (latest,) = situ("dead-letters", "list", "--limit", "1", "--json", cwd=plant).data
    assert latest["client"] == "two"
    shown = situ("dead-letters", "list", "--client", "one", cwd=plant).out
    assert found[0]["id"] in shown
    assert shown.endswith("\n2 dead letters\n")
    assert situ("dead-letters", "list", "--client", "nobody", cwd=plant).out == "No dead letters.\n"


def test_one_is_shown_with_what_was_sent_and_what_to_do(situ: Situ, plant: Path) -> None:
    publish(situ, plant, "shown", {"sensor": 7, "value": "hot"})
    (letter,) = situ("dead-letters", "list", "--client", "shown", "--json", cwd=plant).data
    by_id, by_key = (situ("dead-letters", "show", letter[name], cwd=plant) for name in ("id", "key"))
    assert by_id == by_key
    assert f"Dead letter {letter['id']}\n" in by_id.out
    assert "INT703 `sensor` is the number 7, expected `string`.\n  hint: " in by_id.out
    assert "also INT703: `value` is the text" in by_id.out
    assert '"value": "hot"' in by_id.out
    assert situ("dead-letters", "show", letter["id"], "--json", cwd=plant).data == letter
    explained = situ("explain", "event", letter["key"], cwd=plant)
    assert (explained.code, explained.out) == (0, by_id.out)


def test_unknown_ones_are_told(situ: Situ, plant: Path) -> None:
    for command in ("show", "retry"):
        ran = situ("dead-letters", command, "one.1.1.decode", cwd=plant)
        assert (ran.code, ran.out) == (1, "")
        assert "error P167: There is no dead letter `one.1.1.decode`." in ran.err
    ran = situ("dead-letters", "retry", cwd=plant)
    assert ran.code == 2
    assert "name dead letters, or say --all" in ran.err


def test_published_again_they_fail_again_until_what_was_wrong_is_mended(situ: Situ, tmp_path: Path) -> None:
    plant = make_plant(tmp_path / "plant")
    types = plant / "types" / "events.yaml"
    with running(plant) as run:
        publish(situ, plant, "sensor", {"sensor": "s1", "value": 31.0, "unit": "C"}, {"sensor": "s2"})
        found = situ("dead-letters", "list", "--json", cwd=plant).data
        assert [each["code"] for each in found] == ["INT707"]
        ran = situ("dead-letters", "retry", "--all", cwd=plant)
        assert (ran.code, ran.out) == (1, "0 events published again, 1 refused\n")
        assert f"error P168: The event of dead letter `{found[0]['id']}` is refused: INT707 " in ran.err
        types.write_text(types.read_text().replace("value: double °C", "value: {type: double, unit: °C, default: 99}"))
        assert situ("apply", cwd=plant).code == 0
        ran = situ("dead-letters", "retry", found[0]["id"], "--json", cwd=plant)
        assert (ran.code, ran.data) == (0, {"published": [found[0]["id"]], "problems": []})
        hot = situ("subscribe", "--client", "board", "--durable", "hot", "--limit", "2", "--json", cwd=plant)
        events = [json.loads(line) for line in hot.out.splitlines()]
        assert [each["data"] for each in events] == [
            {"sensor": "s1", "value": 31.0},
            {"sensor": "s2", "value": 99.0},
        ]
        assert events[1]["situkey"] != found[0]["key"]
        # It stays in the list, marked; only the other letter, that of the first retry, is left to be published again.
        listed = {each["id"]: each["retried"] for each in situ("dead-letters", "list", "--json", cwd=plant).data}
        assert listed[found[0]["id"]] is True
        assert sorted(listed.values()) == [False, True]
        assert situ("dead-letters", "retry", "--all", cwd=plant).out == "1 event published again, 0 refused\n"
        assert situ("dead-letters", "retry", "--all", cwd=plant).out == "0 events published again, 0 refused\n"
        assert run.stop() == 0
