"""Events in and out from the command line, in processes of their own, beside a run on the edge engine."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Ran, Situ
from tests.e2e.runs import make_plant, running, started

US = """
context: us
events:
  Heat: {of: string, degrees: double °F}
maps:
  - out: Reading -> Heat
    attributes: {of: sensor, degrees: value}
  - in: Heat -> Reading
    attributes: {sensor: of, value: degrees}
"""


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A project that runs for all tests of this module; each uses clients and sensors of its own."""
    folder = make_plant(tmp_path_factory.mktemp("plant"))
    (folder / "contexts").mkdir()
    (folder / "contexts" / "us.yaml").write_text(US)
    with running(folder) as run:
        yield folder
        assert run.stop() == 0
        assert run.err == ""


def reading(sensor: str, value: Any = 20.5) -> dict[str, Any]:
    return {"sensor": sensor, "value": value}


def publish(situ: Situ, plant: Path, *data: dict[str, Any], client: str = "sensor") -> Ran:
    lines = "".join(json.dumps(each) + "\n" for each in data)
    return situ("publish", "Reading", "--client", client, "--file", "-", "--json", cwd=plant, stdin=lines.encode())


def events(ran: Ran) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ran.out.splitlines()]


def test_an_event_goes_from_one_process_to_another(situ: Situ, plant: Path) -> None:
    with started("subscribe", "Reading", "--where", "sensor = 'two'", "--limit", "1", cwd=plant) as subscriber:
        subscriber.until("Waiting for Reading as console-")
        ran = situ("publish", "Reading", "--data", json.dumps(reading("two")), cwd=plant)
        assert ran.code == 0
        assert ran.out.startswith("1 event stored as console-")
        assert subscriber.end() == 0
    (line,) = subscriber.lines
    assert line.split(" ", 1)[1].startswith("Reading console-")
    assert line.endswith('{"sensor": "two", "value": 20.5}\n')


def test_who_names_a_context_speaks_and_hears_in_its_terms(situ: Situ, plant: Path) -> None:
    wanted = ("subscribe", "Heat", "--context", "us", "--where", "of = 'terms' AND degrees > 100 °F", "--limit", "1")
    with (
        started(*wanted, cwd=plant) as there,
        started("subscribe", "Reading", "--where", "sensor = 'terms'", "--limit", "2", cwd=plant) as here,
    ):
        there.until("Waiting for Heat")
        here.until("Waiting for Reading")
        for degrees in (32, 212):
            data = json.dumps({"of": "terms", "degrees": degrees})
            assert situ("publish", "Heat", "--context", "us", "--data", data, cwd=plant).code == 0
        assert there.end() == here.end() == 0
    assert [line.rsplit("{", 1)[1] for line in there.lines] == ['"of": "terms", "degrees": 212.0}\n']
    assert [line.rsplit(": ", 1)[1] for line in here.lines] == ["0.0}\n", "100.0}\n"]
    ran = situ("publish", "Heat", "--context", "nobody", "--data", "{}", cwd=plant)
    assert ran.code == 1
    assert "nobody" in ran.err


def test_events_come_as_json_lines_with_all_a_program_needs(situ: Situ, plant: Path) -> None:
    with started("subscribe", "Reading", "--where", "sensor = 'json'", "--limit", "2", "--json", cwd=plant) as reader:
        with started("subscribe", "Reading", "--where", "sensor = 'json'", cwd=plant) as other:
            other.until("Waiting for")  # both were started at once, and the first is ready by now or soon
            event = {"specversion": "1.0", "id": "e-1", "source": "line-3", "type": "Reading", "data": reading("json")}
            text = json.dumps({**event, "time": "2026-11-01T08:30:00Z", "confidence": "80"})
            while not reader.lines:
                ran = situ("publish", "--client", "json-1", "--data", text, "--json", cwd=plant)
                assert ran.code == 0, ran.err
                text = text.replace('"e-', '"e-1')
            other.send(signal.SIGINT)
            assert other.end() == 0
        reader.send(signal.SIGINT)
        assert reader.end() == 0
    found = json.loads(reader.lines[0])
    assert (found["source"], found["type"], found["time"]) == ("json-1/line-3", "Reading", "2026-11-01T08:30:00Z")
    assert (found["confidence"], found["data"]) == ("80", reading("json"))
    assert found["situkey"].startswith("json-1.")
    assert int(found["situpos"]) == 1, "the first that it got"


def test_many_lines_are_stored_in_order_and_the_wrong_ones_named(situ: Situ, plant: Path, tmp_path: Path) -> None:
    good = [reading("many", float(number)) for number in range(2_000)]
    lines = [json.dumps(each) for each in good]
    lines[3:3] = ['{"sensor": "many"', "[1, 2]", json.dumps(reading("many", "warm")), ""]
    file = tmp_path / "readings.jsonl"
    file.write_text("\n".join(lines))
    ran = situ("publish", "Reading", "--client", "many", "--file", file, cwd=plant)
    assert (ran.code, ran.out) == (1, "2,000 events stored, 3 refused\n")
    assert f"{file}:4:1: error E701: " in ran.err
    assert f"{file}:5:1: error E702: " in ran.err
    assert f"{file}:6:1: error INT703: `value` is the text" in ran.err
    arguments = ("Reading", "--where", "sensor = 'many'", "--since", "begin", "--limit", "2000", "--json")
    assert [each["data"] for each in events(situ("subscribe", *arguments, cwd=plant))] == good


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(reading("whole"), indent=2),
        json.dumps([reading("whole"), reading("whole")], indent=1),
        json.dumps(reading("whole")) + "\r\n" + json.dumps(reading("whole")),
    ],
    ids=["one-value", "a-list", "windows"],
)
def test_files_of_other_forms_are_read_too(situ: Situ, plant: Path, tmp_path: Path, text: str) -> None:
    file = tmp_path / "events.json"
    file.write_bytes(text.encode())
    ran = situ("publish", "Reading", "--file", file, "--json", cwd=plant)
    assert (ran.code, ran.data["stored"]) == (0, text.count("whole"))


def test_an_id_is_published_once(situ: Situ, plant: Path) -> None:
    event = {"specversion": "1.0", "id": "once", "source": "s", "type": "Reading", "data": reading("ids")}
    ran = publish(situ, plant, event, event, client="ids")
    assert (ran.code, ran.data["stored"], ran.data["duplicates"]) == (0, 1, 1)
    again = situ("publish", "--client", "ids", "--data", json.dumps(event), cwd=plant)
    assert (again.code, again.out) == (
        0,
        "0 events stored, 1 of an id that was published before and not published again\n",
    )


def test_a_durable_subscription_goes_on_where_it_ended(situ: Situ, plant: Path) -> None:
    where = "sensor = 'durable' AND value > 30 °C"
    hot = ("subscribe", "Reading", "--where", where, "--client", "keeper", "--durable", "hot", "--json")
    ran = situ(*hot, "--timeout", "2s", cwd=plant)
    assert (ran.code, ran.out) == (1, "")
    values = [31.0, 20.0, 32.0, 33.0]
    assert publish(situ, plant, *(reading("durable", value) for value in values)).code == 0
    first = events(situ(*hot, "--limit", "1", cwd=plant))
    # It is known now: neither types nor filter need to be said.
    rest = events(situ("subscribe", *hot[4:], "--limit", "2", cwd=plant))
    assert [each["data"]["value"] for each in first + rest] == [31.0, 32.0, 33.0]
    ran = situ(*hot, "--timeout", "2s", cwd=plant)
    assert (ran.code, ran.out) == (1, "")


def test_what_came_before_is_asked_for_with_since(situ: Situ, plant: Path) -> None:
    assert publish(situ, plant, reading("before")).code == 0
    arguments = ("Reading", "--where", "sensor = 'before'", "--limit", "1", "--json")
    (event,) = events(situ("subscribe", *arguments, "--since", "1 h ago", cwd=plant))
    assert event["data"] == reading("before")
    ran = situ("subscribe", *arguments, "--timeout", "1s", cwd=plant)
    assert (ran.code, ran.out) == (1, "")


def test_interrupt_ends_a_subscriber_in_order(plant: Path) -> None:
    with started("subscribe", "Alarm", cwd=plant) as subscriber:
        subscriber.until("Waiting for Alarm")
        assert subscriber.stop() == 0
    assert subscriber.out == ""


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["subscribe", "Readin"], 1, "error INT601: There is no event type `Readin`"),
        (["subscribe", "Reading", "--where", "valu > 3"], 1, "There is no name `valu` here"),
        (["subscribe"], 2, "name the types of the events"),
        (["subscribe", "Reading", "--durable", "x"], 2, "a durable subscription belongs to a client"),
        (["subscribe", "Reading", "--since", "soon"], 2, "Write `1 h ago`"),
        (["publish", "Reading"], 2, "say what to publish"),
        (["publish", "Reading", "--data", "{}", "--file", "-"], 2, "say what to publish"),
        (["publish", "--data", "{}"], 1, "error P170: Line 1 is no CloudEvent"),
        (["publish", "Readin", "--data", "{}"], 1, "error INT601: There is no event type `Readin`"),
        (["publish", "Reading", "--file", "nowhere.jsonl"], 2, "nowhere.jsonl:1:1: error P123"),
        (["publish", "Reading", "--data", "{}", "--client", "a/b"], 1, "error R011"),
        (["replay", "--subscription", "board/hott"], 1, "error P164: There is no subscription `board/hott`"),
        (["replay", "--files", "nowhere"], 2, "error B114"),
        (["explain", "event", "nothing"], 1, "error P169: There is no event"),
    ],
)
def test_what_is_wrong_is_said(situ: Situ, plant: Path, arguments: list[str], code: int, said: str) -> None:
    ran = situ(*arguments, cwd=plant)
    assert (ran.code, said in ran.err) == (code, True), ran.err


@pytest.mark.parametrize(
    "arguments",
    [["publish", "Reading", "--data", "{}"], ["subscribe", "Reading"], ["replay"], ["explain", "event", "1"]],
)
def test_without_a_run_there_is_no_bus(situ: Situ, tmp_path: Path, arguments: list[str]) -> None:
    ran = situ(*arguments, cwd=make_plant(tmp_path / "still"))
    assert (ran.code, ran.out) == (4, "")
    assert "error B108: There is no bus to connect to: no run is active" in ran.err


def test_status_says_who_waits_for_what(situ: Situ, plant: Path) -> None:
    with started("subscribe", "Alarm", "--client", "watcher", cwd=plant) as subscriber:
        subscriber.until("Waiting for Alarm")
        found = situ("status", "--json", cwd=plant).data
        assert "watcher" in found["clients"]
        shown = situ("status", cwd=plant).out
        assert subscriber.stop() == 0
    assert (found["project"], found["zone"], found["running"], found["problem"]) == ("plant", "main", True, None)
    assert found["engines"]["edge"]["adopted"] == found["deployment"]
    assert found["engines"]["edge"]["state"] == "running"
    assert set(found["streams"]) == {"IN_main", "ROOT_main", "OUT_main", "DEAD_main", "LATE_main", "FEED_main"}
    assert "board/hot" in found["consumers"]
    assert f"plant · zone main · running as process {found['pid']} · deployment {found['deployment']}\n" in shown
    assert "\nboard/hot " in shown


def test_replay_gives_what_was_delivered(situ: Situ, plant: Path, tmp_path: Path) -> None:
    values = [40.0, 10.0, 41.0]
    assert publish(situ, plant, *(reading("replay", value) for value in values)).code == 0
    out = tmp_path / "out"
    ran = situ("replay", "--from", "1 h ago", "--subscription", "board/hot", "--out", out, "--json", cwd=plant)
    assert ran.code == 0
    lines = (out / "board_hot.jsonl").read_text().splitlines()
    assert ran.data == {"deliveries": len(lines), "subscriptions": {"board/hot": len(lines)}}
    mine = [json.loads(line)["data"] for line in lines if '"replay"' in line]
    assert mine == [reading("replay", 40.0), reading("replay", 41.0)]
    # The files can be replayed in turn, and to standard output.
    again = situ("replay", "--files", out, "--subscription", "board/hot", "--out", "-", cwd=plant)
    assert [json.loads(line)["event"] for line in again.out.splitlines()] == [json.loads(line) for line in lines]
    assert situ("replay", "--from", "2020-01-01", "--to", "2020-01-02", cwd=plant).code == 1


def test_files_as_clients_write_them_are_replayed_with_nothing_running(situ: Situ, tmp_path: Path) -> None:
    plant = make_plant(tmp_path / "still")
    event = {"specversion": "1.0", "id": "1", "source": "s", "type": "Reading", "time": "2026-11-01T08:30:00Z"}
    lines = [json.dumps({**event, "data": reading("files", value)}) for value in (40.0, 10.0, "hot")]
    (tmp_path / "events.jsonl").write_text("\n".join([*lines, "garbage"]))
    ran = situ("replay", "--files", tmp_path / "events.jsonl", cwd=plant)
    assert ran.code == 0
    assert ran.out == ("subscription   events\npanel/all           2\nboard/hot           1\n\n3 would be delivered\n")
    assert ran.err.count("warning B201: ") == 2


def test_a_subscription_is_explained_as_it_is_in_force(situ: Situ, plant: Path) -> None:
    ran = situ("explain", "subscription", "board/hot", cwd=plant)
    assert ran.code == 0
    assert "  canonical  value > 30.0 degC\n" in ran.out
    assert "  found by   the range that `data.value` lies in\n" in ran.out
    arguments = ("Reading", "--where", "length(sensor) > 3", "--client", "odd")
    with started("subscribe", *arguments, cwd=plant) as subscriber:
        subscriber.until("Waiting for Reading")
        name = next(iter(each for each in declared(situ, plant) if each.startswith("odd/")))
        ran = situ("explain", "subscription", name, cwd=plant)
        assert "warning: the filter has no part that the index can look up" in ran.out
        assert subscriber.stop() == 0


def declared(situ: Situ, plant: Path) -> list[str]:
    return [each["name"] for each in situ("get", "subscription", "--json", cwd=plant).data]


def test_an_event_is_explained_by_its_key_its_position_and_its_id(situ: Situ, plant: Path) -> None:
    key = publish(situ, plant, reading("why", 12.0)).data["last"]
    by_key = situ("explain", "event", key, "--json", cwd=plant).data
    assert (by_key["stream"], by_key["data"]) == ("ROOT_main", reading("why", 12.0))
    wanted = {each["subscription"]: each for each in by_key["subscriptions"]}
    assert wanted["panel/all"]["matched"] is True
    assert wanted["board/hot"]["matched"] is False
    part = {"text": "value > 30.0 degC", "outcome": "false", "values": {"value": "12.0 degC"}}
    assert wanted["board/hot"]["parts"] == [part]
    for name in (str(by_key["position"]), by_key["id"]):
        assert situ("explain", "event", name, "--json", cwd=plant).data["key"] == key
    shown = situ("explain", "event", key, cwd=plant).out
    assert "  board/hot  `value > 30.0 degC` is false (value = 12.0 degC)\n" in shown


def test_everything_that_is_wrong_with_an_event_is_told(situ: Situ, plant: Path) -> None:
    ran = situ("publish", "Reading", "--data", '{"sensor": 5, "value": "hot"}', cwd=plant)
    assert (ran.code, ran.out) == (1, "0 events stored, 1 refused\n")
    assert [line.split("error ")[1] for line in ran.err.splitlines() if "error " in line] == [
        "INT703: `sensor` is the number 5, expected `string`.",
        'INT703: `value` is the text "hot", expected `double`.',
    ]
    (letter,) = [each for each in situ("dead-letters", "list", "--json", cwd=plant).data if each["others"]]
    again = situ("dead-letters", "retry", letter["id"], cwd=plant)
    assert "`sensor` is" in again.err
    assert "`value` is" in again.err


TAIL = ("tail", "--since", "begin", "--json")


def test_an_operator_sees_all_events_without_a_client(situ: Situ, plant: Path) -> None:
    assert publish(situ, plant, reading("tail-1", 20), reading("tail-2", 40)).code == 0
    assert situ("publish", "Alarm", "--data", '{"text": "tail"}', cwd=plant).code == 0
    about = ("--where", "sensor LIKE 'tail-%' AND value > 30 °C")
    (hot,) = events(situ(*TAIL, "--type", "Reading", *about, "--limit", "1", cwd=plant))
    assert (hot["data"], hot["source"], hot["type"]) == ({"sensor": "tail-2", "value": 40.0}, "sensor", "Reading")
    # Without a type it is about all that have what is asked for.
    both = events(situ(*TAIL, "--where", "sensor LIKE 'tail-%'", "--limit", "2", cwd=plant))
    assert [each["data"]["sensor"] for each in both] == ["tail-1", "tail-2"]
    (alarm,) = events(situ(*TAIL, "--type", "Alarm", "--where", "text = 'tail'", "--limit", "1", cwd=plant))
    assert alarm["data"] == {"text": "tail"}
    assert not [each for each in situ("status", "--json", cwd=plant).data["clients"] if each.startswith("console")]


def test_a_tail_goes_on_and_ends(situ: Situ, plant: Path) -> None:
    with started("tail", "--where", "sensor = 'later'", "--limit", "1", cwd=plant) as tail:
        tail.until("Waiting for events")
        assert publish(situ, plant, reading("later")).code == 0
        assert tail.end() == 0
    assert tail.lines[0].endswith('{"sensor": "later", "value": 20.5}\n')
    nothing = situ("tail", "--where", "sensor = 'never'", "--timeout", "1s", cwd=plant)
    assert (nothing.code, nothing.out, "No event came in time." in nothing.err) == (1, "", True)
    assert "Did you mean `Alarm`?" in situ("tail", "--type", "Alrm", cwd=plant).err
    assert situ("tail", "--where", "nobody > 3", cwd=plant).code == 2
    unfit = situ("tail", "--type", "Alarm", "--where", "value > 3 °C", cwd=plant)
    assert (unfit.code, "INT602" in unfit.err) == (1, True)


def test_a_misspelt_client_is_not_another_one(situ: Situ, plant: Path) -> None:
    said = ("publish", "Reading", "--data", json.dumps(reading("slip")), "--client")
    for slip, meant in (("sensr", "sensor"), ("snesor", "sensor"), ("Sensor", "sensor"), ("pannel", "panel")):
        ran = situ(*said, slip, cwd=plant)
        assert (ran.code, ran.out) == (1, ""), slip
        assert f"error P173: There is no client `{slip}`" in ran.err
        assert f"Did you mean `{meant}`?" in ran.err
    assert situ("subscribe", "--durable", "hot", "--client", "borad", cwd=plant).code == 1
    assert situ(*said, "sensor-2", "--new", cwd=plant).code == 0
    assert situ(*said, "sensor-2", cwd=plant).code == 0  # it was here before
    assert situ(*said, "somebody-else", cwd=plant).code == 0


def test_a_type_of_another_context_is_told_with_it(situ: Situ, plant: Path) -> None:
    for words in (("publish", "Heat", "--data", "{}"), ("subscribe", "Heat")):
        ran = situ(*words, cwd=plant)
        assert ran.code == 1
        assert "error INT601: There is no event type `Heat` in root.\n" in ran.err
        assert "hint: `Heat` is a type of the context `us`: say `--context us`.\n" in ran.err
    ran = situ("publish", "Heta", "--data", "{}", cwd=plant)
    assert "There is no event type `Heta`.\n" in ran.err
