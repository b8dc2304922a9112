"""Conversions that remember other events: the truck moves between two status events, in and out of order."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from situ.app.replay import Replay
from situ.event.lines import encode_rows
from situ.event.row import BadRow, Row
from situ.project.check import CheckedProject, check_folder
from situ.stages.interpret import Interpretation
from situ.stages.pending_deliveries import DeliveryTag, PendingDeliveries
from situ.stages.plan import Plan, compile_plan
from tests.project_files import write

TYPES = """
version: 1
types:
  Position: {x: double m, y: double m}
events:
  ProductStatus: {product: string, pos: Position}
  TruckPosition: {truck: string, lat: double deg, lon: double deg}
  FastPosition(TruckPosition): {speed: double}
"""
US = """
version: 1
context: us
extends: root
types:
  LatLon: {lat: double deg, lon: double deg}
events:
  Status: {product: string, pos: optional LatLon}
maps:
  - out: ProductStatus -> Status
rules:
  out: [Position -> to_latlon]
functions:
  to_latlon:
    signature: Position -> LatLon
    key: event.source
    state:
      ref: {event: TruckPosition, key: truck, keep: {lat: lat, lon: lon}, history: 10 min, ttl: 24 h, max_keys: 3}
    missing: MISSING
    expr: struct(ref.lat + value.y / 100000 AS lat, ref.lon + value.x / 100000 AS lon)
"""
IN = """
version: 1
context: scale
extends: root
events:
  Weighed: {product: string, at: string}
maps:
  - in: Weighed -> ProductStatus
    attributes: {pos: at}
rules:
  in: [Weighed.at -> to_position]
functions:
  to_position:
    signature: string -> Position
    key: value
    state: {ref: {event: TruckPosition, key: truck, keep: {lat: lat, lon: lon}, ttl: 1 h, max_keys: 9}}
    expr: struct(ref.lon AS x, ref.lat AS y)
"""
BEGIN = datetime(2026, 11, 1, 8, tzinfo=UTC)


def trip_files(missing: str, where: str = "", more: str = "") -> dict[str, str]:
    asked = f', where: "{where}"' if where else ""
    return {
        "situ.yaml": "version: 1\nname: trips\n",
        "types/all.yaml": TYPES,
        "contexts/us.yaml": US.replace("MISSING", missing),
        "contexts/scale.yaml": IN,
        "clients/all.yaml": f"""
version: 1
clients:
  desk: {{context: us, subscriptions: {{all: {{types: [Status]{asked}}}}}}}
  hall: {{subscriptions: {{all: {{types: [ProductStatus]}}}}}}
{more}""",
    }


class Trip:
    """An engine in small: messages of one event, each with a second of event time."""

    def __init__(
        self,
        folder: Path,
        missing: str = "error",
        where: str = "",
        more: str = "",
        checked: CheckedProject | None = None,
    ) -> None:
        self.checked = checked or check_folder(write(folder, trip_files(missing, where, more)))
        assert self.checked.deployment is not None, [str(each) for each in self.checked.errors]
        self.plan: Plan = compile_plan(self.checked.deployment)
        self.interpretation: Interpretation = self.plan.interpretation
        self.interpretation.outgoing.holds = True
        self.holding = PendingDeliveries(self.interpretation.outgoing)
        self.heard: list[Any] = []
        self.in_hall: list[str] = []
        self.dead: list[BadRow] = []
        self.number = 0

    def row(self, type: str, source: str, second: float, data: dict[str, Any], client: str = "") -> Row:
        self.number += 1
        time = int((BEGIN + timedelta(seconds=second)).timestamp() * 1_000_000)
        text = json.dumps(data).encode()
        key = (65536 * self.number, client or source, 1, self.number)
        return Row(*key, "root", 0, str(self.number), source, type, time, "", None, "", text)

    def come(self, *rows: Row, tag: DeliveryTag | None = None) -> None:
        for said in self.holding.word(rows, encode_rows(rows), self.plan, tag):
            for _, client, _, line in said.worded.live:
                event = json.loads(line)
                if client == "desk":
                    self.heard.append((event["data"]["product"], event["data"].get("pos")))
                else:
                    self.in_hall.append(event["data"]["product"])
            self.dead += said.worded.bad

    def truck(self, second: float, lat: float, truck: str = "t7", type: str = "TruckPosition") -> None:
        more = {"speed": 1.0} if type == "FastPosition" else {}
        self.come(self.row(type, truck, second, {"truck": truck, "lat": lat, "lon": 9.0, **more}))

    def status(self, second: float, product: str, truck: str = "t7") -> None:
        self.come(self.row("ProductStatus", truck, second, {"product": product, "pos": {"x": 0.0, "y": 0.0}}))

    @property
    def lats(self) -> list[tuple[str, float | None]]:
        return [(product, None if pos is None else pos["lat"]) for product, pos in self.heard]


def test_the_truck_moves_between_two_status_events(tmp_path: Path) -> None:
    trip = Trip(tmp_path)
    trip.truck(0, 50.0)
    trip.status(1, "a")
    trip.truck(10, 51.0)
    trip.status(11, "b")
    assert trip.lats == [("a", 50.0), ("b", 51.0)]


def test_a_late_event_finds_the_reference_of_its_time(tmp_path: Path) -> None:
    trip = Trip(tmp_path)
    trip.truck(0, 50.0)
    trip.truck(20, 52.0)
    trip.truck(10, 51.0)  # late itself
    for second, product in ((21, "c"), (11, "b"), (1, "a"), (10, "exactly"), (-1, "before")):
        trip.status(second, product)
    assert trip.lats == [("c", 52.0), ("b", 51.0), ("a", 50.0), ("exactly", 51.0)]
    [letter] = trip.dead
    assert letter.errors[0][:2] == ("INT706", "pos")
    assert "`to_latlon` remembers nothing as `ref` for the key '" in letter.errors[0][2]
    assert trip.in_hall == ["c", "b", "a", "exactly", "before"]


def test_later_than_history_only_what_was_valid_then_is_found(tmp_path: Path) -> None:
    trip = Trip(tmp_path)
    for minute in range(0, 30, 5):
        trip.truck(minute * 60, 50.0 + minute)
    for minute in (26, 19, 16, 14):
        trip.status(minute * 60, str(minute))
    assert trip.lats == [("26", 75.0), ("19", 65.0), ("16", 65.0)]
    assert [each.errors[0][0] for each in trip.dead] == ["INT706"]


def test_what_is_older_than_it_may_be_is_forgotten(tmp_path: Path) -> None:
    trip = Trip(tmp_path, missing="null")
    trip.truck(0, 50.0)
    trip.status(86_400, "a day")
    trip.status(86_401, "more")
    assert trip.lats == [("a day", 50.0), ("more", None)]


def test_the_key_that_was_not_used_for_longest_goes_first(tmp_path: Path) -> None:
    trip = Trip(tmp_path, missing="null")
    for number in range(3):
        trip.truck(number, 50.0 + number, f"t{number}")
    trip.status(4, "a", "t0")
    trip.truck(5, 53.0, "t3")
    for number in range(4):
        trip.status(6, str(number), f"t{number}")
    assert trip.lats == [("a", 50.0), ("0", 50.0), ("1", None), ("2", 52.0), ("3", 53.0)]
    assert trip.interpretation.outgoing.evicted == 1


def test_events_of_a_subtype_are_references_too(tmp_path: Path) -> None:
    trip = Trip(tmp_path)
    trip.truck(0, 50.0, type="FastPosition")
    trip.status(1, "a")
    assert trip.lats == [("a", 50.0)]


def test_an_event_waits_for_its_reference_and_keeps_those_behind_it_back(tmp_path: Path) -> None:
    trip = Trip(tmp_path, missing="hold 5 s")
    trip.truck(0, 60.0, "t8")
    tag = DeliveryTag()
    row = trip.row("ProductStatus", "t7", 2, {"product": "a", "pos": {"x": 0.0, "y": 0.0}})
    trip.come(row, tag=tag)
    trip.status(3, "b")
    trip.status(3, "other", "t8")
    assert trip.lats == [("other", 60.0)]
    assert (tag.waiting, len(trip.holding)) == (1, 2)
    assert trip.in_hall == ["a", "b", "other"]
    trip.truck(1, 50.0)
    assert trip.lats == [("other", 60.0), ("a", 50.0), ("b", 50.0)]
    assert (tag.waiting, len(trip.holding), trip.dead) == (0, 0, [])


def test_an_event_that_waited_long_enough_is_a_dead_letter(tmp_path: Path) -> None:
    trip = Trip(tmp_path, missing="hold 5 s")
    trip.status(2, "a")
    trip.status(3, "b")
    trip.truck(6, 60.0, "t8")
    assert (len(trip.holding), trip.dead) == (2, [])
    trip.truck(7, 60.0, "t8")
    assert [each.errors[0][0] for each in trip.dead] == ["INT706"]
    assert "although it waited for 5 s" in trip.dead[0].errors[0][2]
    trip.truck(2.5, 50.0)
    assert trip.lats == [("b", 50.0)]
    assert len(trip.holding) == 0


def test_what_follows_in_the_same_message_waits_as_well(tmp_path: Path) -> None:
    trip = Trip(tmp_path, missing="hold 5 s")
    data = {"pos": {"x": 0.0, "y": 0.0}}
    trip.truck(2, 51.0)
    rows = [trip.row("ProductStatus", "t7", second, {"product": str(second), **data}) for second in (2, 1, 3)]
    trip.come(*rows)
    assert trip.lats == [("2", 51.0)]
    trip.truck(0, 50.0)
    assert trip.lats == [("2", 51.0), ("1", 50.0), ("3", 51.0)]


def test_a_message_waits_until_what_was_held_of_it_is_on_its_way(tmp_path: Path) -> None:
    trip = Trip(tmp_path, missing="hold 5 s")
    tag = DeliveryTag()
    trip.come(trip.row("ProductStatus", "t7", 2, {"product": "a", "pos": {"x": 0.0, "y": 0.0}}), tag=tag)
    row = trip.row("TruckPosition", "t7", 1, {"truck": "t7", "lat": 50.0, "lon": 9.0})
    saying = trip.holding.word([row], encode_rows([row]), trip.plan, DeliveryTag())
    said = next(saying)
    assert (said.tag, tag.waiting) == (tag, 1)
    next(saying)
    assert tag.waiting == 0


def test_no_more_wait_than_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("situ.stages.pending_deliveries.MOST", 2)
    trip = Trip(tmp_path, missing="hold 5 s")
    for number in range(4):
        trip.status(1, str(number))
    assert len(trip.holding) == 2
    assert [json.loads(each.original)["data"]["product"] for each in trip.dead] == ["0", "1"]


@pytest.mark.parametrize("where", ["pos.lat > 50.5 deg", "pos.lat > 50.5 deg AND product <> 'x'"])
def test_filters_on_what_is_remembered(tmp_path: Path, where: str) -> None:
    trip = Trip(tmp_path, missing="hold 5 s", where=where)
    assert [each.code.code for each in trip.checked.problems if each.code.code == "INT604"] == ["INT604"]
    trip.status(2, "a")
    trip.truck(0, 50.0)
    trip.truck(10, 51.0)
    trip.status(11, "b")
    assert trip.lats == [("b", 51.0)]
    assert not trip.dead


def test_what_is_written_down_goes_on_elsewhere(tmp_path: Path) -> None:
    first = Trip(tmp_path, missing="hold 5 s")
    first.truck(0, 50.0)
    first.truck(10, 51.0)
    first.truck(3, 60.0, "t8")
    first.status(9, "waits", "t9")
    first.status(9.5, "behind", "t9")
    written = [json.loads(first.interpretation.outgoing.as_text()), first.holding.as_json()]
    second = Trip(tmp_path, missing="hold 5 s")
    second.interpretation.outgoing.restore(written[0])
    second.holding.restore(written[1])
    assert second.interpretation.outgoing.as_text() == first.interpretation.outgoing.as_text()
    for trip in (first, second):
        trip.heard.clear()
        trip.number = 10
        trip.status(4, "a")
        trip.status(4, "b", "t8")
        trip.truck(5, 70.0, "t9")
        trip.status(11, "c")
    assert first.lats == second.lats == [("a", 50.0), ("b", 60.0), ("waits", 70.0), ("behind", 70.0), ("c", 51.0)]


def test_what_is_remembered_outlives_a_change_of_the_deployment(tmp_path: Path) -> None:
    trip = Trip(tmp_path)
    trip.truck(0, 50.0)
    again = Trip(tmp_path, more="  more: {}\n").checked.deployment
    assert again is not None
    changed = (
        (tmp_path / "contexts" / "us.yaml")
        .read_text()
        .replace("product: string, pos", "product: string, at: optional string, pos")
    )
    (tmp_path / "contexts" / "us.yaml").write_text(changed)
    other = check_folder(tmp_path).deployment
    assert other is not None
    for deployment in (again, other):
        trip.plan = compile_plan(deployment, trip.plan)
        trip.status(1, "a")
    assert trip.lats == [("a", 50.0), ("a", 50.0)]


def test_what_nobody_asks_for_any_more_is_forgotten(tmp_path: Path) -> None:
    trip = Trip(tmp_path)
    (tmp_path / "contexts" / "us.yaml").write_text(
        US.replace("MISSING", "error")
        .replace("ref.lat + value.y", "value.y")
        .replace("ref.lon + value.x", "value.x")
        .partition("    key:")[0]
        + "    expr: struct(value.y AS lat, value.x AS lon)\n"
    )
    without = check_folder(tmp_path).deployment
    assert without is not None
    assert not trip.interpretation.outgoing.is_empty
    plan = compile_plan(without, trip.plan)
    assert plan.interpretation.outgoing is trip.interpretation.outgoing
    assert plan.interpretation.outgoing.is_empty
    trip.truck(0, 50.0)
    trip.status(1, "taken before")  # by the plan before, which still is at work
    assert trip.lats == [("taken before", 50.0)]


def test_on_the_way_in_it_is_what_came_before(tmp_path: Path) -> None:
    trip = Trip(tmp_path)
    plan = trip.plan

    def weigh() -> Row | BadRow:
        row = trip.row("Weighed", "s1", 5, {"product": "a", "at": "t7"})
        row.context = "scale"
        return plan.interpretation.into_root([row])[0]

    found = weigh()
    assert isinstance(found, BadRow)
    assert found.errors[0][0] == "INT706"
    plan.interpretation.incoming.note([trip.row("TruckPosition", "t7", 0, {"truck": "t7", "lat": 50.0, "lon": 9.0})])
    found = weigh()
    assert isinstance(found, Row)
    assert json.loads(found.data) == {"product": "a", "pos": {"x": 9.0, "y": 50.0}}


def test_nothing_can_wait_on_the_way_in(tmp_path: Path) -> None:
    trip = Trip(tmp_path)
    text = (tmp_path / "contexts" / "scale.yaml").read_text()
    (tmp_path / "contexts" / "scale.yaml").write_text(text.replace("    expr:", "    missing: hold 1 s\n    expr:"))
    checked = check_folder(tmp_path)
    assert [each.code.code for each in checked.problems if each.code.code == "INT418"] == ["INT418"]
    assert checked.deployment is not None
    row = trip.row("Weighed", "s1", 5, {"product": "a", "at": "t7"})
    row.context = "scale"
    [bad] = compile_plan(checked.deployment).interpretation.into_root([row])
    assert isinstance(bad, BadRow)
    assert bad.errors[0][0] == "INT711"


def test_replay_remembers_as_the_engine_does(tmp_path: Path) -> None:
    trip = Trip(tmp_path, missing="hold 5 s")
    rows = [
        trip.row("ProductStatus", "t7", 2, {"product": "waits", "pos": {"x": 0.0, "y": 0.0}}),
        trip.row("TruckPosition", "t7", 0, {"truck": "t7", "lat": 50.0, "lon": 9.0}),
        trip.row("TruckPosition", "t7", 4, {"truck": "t7", "lat": 51.0, "lon": 9.0}),
        trip.row("ProductStatus", "t7", 3, {"product": "late", "pos": {"x": 0.0, "y": 0.0}}),
    ]
    replay = Replay(compile_plan(trip.plan.deployment))
    for row, line in zip(rows, encode_rows(rows), strict=True):
        replay.add(row, line)
    found = [json.loads(each.line)["data"] for each in replay.finish() if each.subscription == "desk/all"]
    assert [(each["product"], each["pos"]["lat"]) for each in found] == [("waits", 50.0), ("late", 50.0)]
