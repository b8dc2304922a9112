"""Situations among scopes: what policies see, what their situations carry, what is let go, and what is kept of that."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from situ.event.instants import print_instant
from situ.event.lines import encode_row, put_parts, stamped_line, with_parts, without_parts
from situ.event.message import CLIENT, RECEIVED, StoredMessage, join_lines
from situ.event.row import BadRow, Row
from situ.explain.situations import SituationRecord, _take
from situ.lang.records import replace
from situ.lang.tags import NO_TAGS
from situ.policies.actions.action_events import ActionEvent
from situ.policies.model import PolicyStart
from situ.policies.policy_tests import GivenEvent, PolicyTest
from situ.scopes.graph import NO_SCOPES, Release, ScopeGraph
from situ.scopes.stamp_codec import StampPart, merge_parts, read_parts, write_parts
from situ.sources.table import make_table
from situ.stages.derived_visibility import Releases, released_event
from situ.stages.detect.backfill import Backfill, start_from_backfill
from situ.stages.detect.detection_plan import DetectionPlan
from situ.stages.detect.policy_tests import run_policy_test, tables_of
from situ.stages.detect.progress import DetectionProgress
from situ.stages.detect.step import PolicyReader
from situ.stages.plan import compile_plan
from tests.scoped import EAST, GROUP, KNOWN, OTHER, PROJECT, SCOPES, SECOND, WEST, Flow, T, inside, project

NOTICE = {"to": "desk", "text": "g1 is alone", "policy": "p", "situation": "s"}
SITES = {"east": EAST, "west": WEST, "group": GROUP, "other": OTHER}


def told(rows: list[Row], policy: str, what: str = "opened") -> dict[str, Row]:
    """What was told of the situations of a policy, by who it is about."""
    found = {}
    for row in rows:
        if row.client == policy and row.type == f"situ.situation.{what}":
            bindings = {each["alias"]: each["id"] for each in json.loads(row.data)["bindings"]}
            found[bindings.get("A", "")] = row
    return found


def sites(flow: Flow, row: Row) -> set[str]:
    return {name for name, tags in SITES.items() if flow.sees(row, tags)}


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_policy_sees_what_is_visible_to_what_it_reads_as(tmp_path: Path) -> None:
    flow = Flow(project(tmp_path))
    flow.see("reader-e", "g1", 5)
    flow.see("reader-e", "g2", 9)  # does not get out of the east
    flow.see("reader-w", "g3", 9)
    rows = flow.wait()
    assert set(told(rows, "presence")) == {"g1", "g2", "g3"}
    assert set(told(rows, "everywhere")) == {"g1", "g3"}


def test_a_policy_without_an_entry_says_nothing_and_sees_nothing_where_it_is_closed(tmp_path: Path) -> None:
    scopes = "\n".join(line for line in SCOPES.splitlines() if not line.startswith("  presence: "))
    flow = Flow(project(tmp_path, ("presence",), **{"scopes.yaml": scopes}))
    flow.see("reader-e", "g1", 5)
    assert flow.wait() == []


def test_what_is_hidden_from_a_policy_does_not_tell_it_the_time_and_is_not_late_for_it(tmp_path: Path) -> None:
    flow = Flow(project(tmp_path, ("presence", "everywhere")))
    flow.see("reader-e", "g1", 5, time=T - 10 * SECOND, received=T)
    flow.see("reader-e", "g2", 9, time=T)
    reached = {name: kept.reached for name, kept in flow.progress.policies.items()}
    assert reached == {"presence": T - 100_000, "everywhere": T - 10 * SECOND - 100_000}
    hidden = flow.see("reader-e", "g3", 9, time=T - 5 * SECOND, received=T)
    shown = flow.see("reader-e", "g3", 5, time=T - 5 * SECOND, received=T)
    assert flow.late == {hidden.pos: ["presence"], shown.pos: ["presence"]}
    flow.wait()
    assert set(told(list(flow.log.values()), "everywhere")) == {"g1", "g3"}


def test_what_a_policy_saw_and_may_not_see_any_more_makes_no_situation(tmp_path: Path) -> None:
    deployment = project(tmp_path, ("everywhere",))
    narrower = project(tmp_path, ("everywhere",), **{"scopes.yaml": SCOPES.replace("at.x < 8", "at.x < 4")})
    for changed, found in ((deployment, {"g1", "g2"}), (narrower, {"g2"})):
        flow = Flow(deployment)
        flow.see("reader-e", "g1", 5)
        flow.see("reader-e", "g2", 3)
        flow.use(changed, 2 if changed is narrower else 1)
        assert set(told(flow.wait(), "everywhere")) == found
        assert len(flow.progress.policies["everywhere"].open) == 0


def test_widening_does_not_reach_back(tmp_path: Path) -> None:
    flow = Flow(project(tmp_path, ("everywhere",)))
    flow.see("reader-e", "g1", 9)
    flow.use(project(tmp_path, ("everywhere",), **{"scopes.yaml": SCOPES.replace("at.x < 8", "at.x < 20")}), 2)
    flow.see("reader-e", "g2", 9)
    assert set(told(flow.wait(), "everywhere")) == {"g2"}


def test_a_policy_that_does_not_see_a_table_detects_nothing(tmp_path: Path) -> None:
    flow = Flow(project(tmp_path, **{"sources/building.yaml": PROJECT["sources/building.yaml"].replace("any", "none")}))
    assert flow.plan.meeting is not None
    assert flow.plan.meeting.unseen("presence") == ("persons", "rooms")
    assert flow.plan.meeting.unseen("again") == (), "it asks for nothing but events"
    flow.see("reader-e", "g1", 5)
    assert flow.wait() == []


# ── what situations carry ─────────────────────────────────────────────────────────────────────────────


def test_a_situation_is_seen_by_those_who_see_all_that_caused_it(tmp_path: Path) -> None:
    flow = Flow(project(tmp_path))
    flow.see("reader-e", "g1", 5)
    flow.see("reader-e", "g2", 9)
    flow.see("reader-w", "g3", 9)
    rows = flow.wait()
    for what in ("opened", "closed"):
        for policy in ("presence", "again"):
            found = {who: sites(flow, row) for who, row in told(rows, policy, what).items()}
            assert found == {
                "g1": {"east", "west", "group"},
                "g2": {"east"},
                "g3": {"east", "west", "group"},
            }, (policy, what)
    alarms = {json.loads(row.data)["text"]: sites(flow, row) for row in rows if row.client == "again" and row.ext == ""}
    assert alarms["g2 again"] == {"east"}
    assert alarms["g1 again"] == {"east", "west", "group"}


def test_a_policy_tells_nothing_of_tables_that_it_does_not_ask_for(tmp_path: Path) -> None:
    flow = Flow(project(tmp_path))
    flow.see("reader-e", "g1", 5)
    asked = {row.client: json.loads(row.data) for row in flow.wait() if row.type == "situ.action"}
    known = json.loads(asked["presence"]["attributes"])
    assert known == {"A": {"status": "guest"}, "R": {"id": "lab", "security": "restricted", "area": known["R"]["area"]}}
    text = inside("bare").replace("raise alarm", "log x")
    scopes = SCOPES.replace("presence", "bare")
    flow = Flow(project(tmp_path / "bare", ("again",), **{"policies/bare.dpl": text, "scopes.yaml": scopes}))
    assert flow.plan.meeting is not None
    assert flow.plan.meeting.tables("bare") == {"rooms"}
    flow.see("reader-e", "g1", 5)
    (asked_for,) = [json.loads(row.data) for row in flow.wait() if row.type == "situ.action"]
    assert json.loads(asked_for["attributes"])["A"] == {}


def test_a_situation_in_a_situation_brings_its_own_stamp_and_its_parts(tmp_path: Path) -> None:
    flow = Flow(project(tmp_path))
    seen = flow.see("reader-e", "g1", 5)
    rows = flow.wait()
    inner, outer = told(rows, "presence")["g1"], told(rows, "again")["g1"]
    assert StampPart(seen.tags, 1, seen.bits) in read_parts(inner.parts)
    assert set(read_parts(outer.parts)) == {*read_parts(inner.parts), StampPart(inner.tags, 1, inner.bits)}


def test_what_is_told_later_counts_what_came_first(tmp_path: Path) -> None:
    flow = Flow(project(tmp_path, ("presence",)))
    flow.see("reader-e", "g1", 9)
    flow.see("reader-e", "g1", 5, time=T + SECOND)
    flow.again()
    flow.wait()
    rows = list(flow.log.values())
    (first,) = told(rows, "presence").values()
    (second,) = told(rows, "presence", "continued").values()
    (last,) = told(rows, "presence", "closed").values()
    assert [sites(flow, row) for row in (first, second, last)] == [{"east"}] * 3, "it says when it began"
    assert set(read_parts(first.parts)) < set(read_parts(second.parts)) == set(read_parts(last.parts))


def test_stamps_outlive_a_process_and_the_log(tmp_path: Path) -> None:
    flow = Flow(project(tmp_path, ("presence",)))
    flow.see("reader-e", "g1", 9)
    opened = told([*flow.wait(0.4)], "presence")["g1"]
    flow.again()
    (kept,) = flow.progress.policies["presence"].open.values()
    assert kept.parts == opened.parts
    for row in list(flow.log.values()):
        flow.log[row.pos] = replace_stamp(row)  # what the log says now is another thing
    closed = told(flow.wait(), "presence", "closed")["g1"]
    assert closed.parts == opened.parts


def replace_stamp(row: Row) -> Row:
    return Row(*(getattr(row, name) for name in Row.__struct_fields__[:-4]))


def test_of_a_cause_that_the_log_has_no_more_nobody_knows_anything(tmp_path: Path) -> None:
    flow = Flow(project(tmp_path, ("presence",)))
    seen = flow.see("reader-e", "g1", 5)
    assert flow.plan.meeting is not None
    del flow.log[seen.pos]
    assert flow.wait() == [], "whether the policy may see it is not known either"


def test_absence_is_seen_where_what_did_not_come_always_is(tmp_path: Path) -> None:
    flow = Flow(project(tmp_path))
    flow.see("reader-e", "g1", 5)  # which gets out of the east
    rows = flow.wait()
    assert sites(flow, told(rows, "unaccompanied-guest")["g1"]) == {"east"}
    assert sites(flow, told(rows, "presence")["g1"]) == {"east", "west", "group"}


@pytest.mark.parametrize(
    ("output", "seen"), [("type IS Sighting", {"east", "west", "group"}), ("type IS Note", {"east"})]
)
def test_what_did_not_come_passes_the_filters_that_its_type_passes(tmp_path: Path, output: str, seen: set[str]) -> None:
    scopes = SCOPES.replace("at.x < 8 [m]", output)
    flow = Flow(project(tmp_path, ("unaccompanied-guest",), **{"scopes.yaml": scopes}))
    flow.see("reader-e", "g1", 5)
    assert sites(flow, told(flow.wait(), "unaccompanied-guest")["g1"]) == seen


def test_absence_of_what_another_policy_tells_is_absence_of_what_that_one_reads(tmp_path: Path) -> None:
    text = inside("quiet", "  A is not flagged R\n")
    scopes = SCOPES.replace("presence", "quiet")
    flow = Flow(project(tmp_path, ("again", "quiet"), **{"policies/quiet.dpl": text, "scopes.yaml": scopes}))
    assert flow.plan.meeting is not None
    named = {flow.plan.deployment.numbers.tag_set(each.tags) for each in flow.plan.meeting.always("quiet")}
    assert {flow.plan.deployment.scopes.tags_of("again").publishes, EAST, WEST} < named, "it is told by `quiet`, too"
    assert not {EAST, WEST} & {
        flow.plan.deployment.numbers.tag_set(each.tags) for each in flow.plan.meeting.always("again")
    }


def test_an_advertisement_that_the_policy_could_not_see_says_nothing_of_absence(tmp_path: Path) -> None:
    hidden = SCOPES.replace("at.x < 8 [m]", 'at.x < 8 [m]", input: "type IS Note')
    for scopes, counted in ((SCOPES, {EAST, WEST}), (hidden.replace("west:  { in: [group] }", "west:  {}"), {EAST})):
        flow = Flow(project(tmp_path, ("unaccompanied-guest",), **{"scopes.yaml": scopes}))
        assert flow.plan.meeting is not None
        always = flow.plan.meeting.always("unaccompanied-guest")
        found = {flow.plan.deployment.numbers.tag_set(each.tags) for each in always}
        assert found & {EAST, WEST} == counted


@pytest.mark.parametrize("count", [64, 65])
def test_beyond_sixty_four_those_of_one_tag_set_and_epoch_are_merged(count: int) -> None:
    parts = {StampPart(1 + number % 2, 1, 1 << number | 1 << 100) for number in range(count)}
    kept, gone = merge_parts(parts)
    if count == 64:
        assert (kept, gone) == (parts, 0)
    else:
        assert kept == {StampPart(1, 1, 1 << 100), StampPart(2, 1, 1 << 100)}
        assert gone == count - 2
    released = merge_parts([*parts, StampPart(1, 1, 1 << 100, frozenset({"site"}))], most=1)[0]
    assert StampPart(1, 1, 1 << 100, frozenset({"site"})) in released, "what was let go stays apart from what was not"


# ── releases ──────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_released_is_seen_elsewhere_says_so_and_tells_little(tmp_path: Path) -> None:
    flow = Flow(project(tmp_path))
    flow.see("reader-e", "g2", 9)
    rows = [row for row in flow.wait() if row.client == "counted"]
    by_type = {row.type: row for row in rows}
    opened, alarm, action = (by_type[name] for name in ("situ.situation.opened", "GuestAlone", "situ.action"))
    assert sites(flow, opened) == sites(flow, alarm) == set(SITES)
    assert opened.ext == alarm.ext == '"released":"site"'
    assert json.loads(alarm.data) == {"text": "g2 alone in lab", "status": "guest"}
    said = json.loads(opened.data)
    assert (said["bindings"], said["causes"]) == ([], [])
    assert said["start"] == said["last"]
    assert "detection" not in said
    assert said["text"] == "A g2 is inside R lab", "that is kept"
    assert (sites(flow, action), action.ext) == ({"east"}, ""), "who does it needs all of it"
    released = [id for message in flow.published for id in message.released]
    assert released == [row.id for row in rows if row.ext]


@pytest.mark.parametrize(
    "keep",
    ["text, status", "text, status, bindings", "text, status, start, last, end, reason, detection, bindings"],
)
def test_released_situations_are_listed_as_if_nothing_had_been_taken_out(tmp_path: Path, keep: str) -> None:
    """The policies `counted` and `presence` are met by the same; only the first is released."""
    scopes = SCOPES.replace("keep: [text, status]", f"keep: [{keep}]")
    flow = Flow(project(tmp_path, ("counted", "presence"), **{"scopes.yaml": scopes}))
    flow.see("reader-e", "g1", 5)
    flow.wait(0.8)
    flow.see("reader-e", "g1", 6, time=T + SECOND)
    flow.see("reader-w", "g3", 9, time=T + SECOND)
    flow.wait(1.5)
    listed: dict[str, list[dict[str, object]]] = {}
    for closed in (False, True):
        if closed:
            flow.wait(30)
        found: dict[str, SituationRecord] = {}
        _take(found, [stamped_line(row, encode_row(row)) for row in flow.log.values()])
        for name in ("counted", "presence"):
            some = [each.as_json() for each in found.values() if each.policy == name]
            listed[name] = [{**each, "id": "", "policy": ""} for each in sorted(some, key=lambda each: each["start"])]
        assert [bool(each["end"]) for each in listed["counted"]] == [closed, closed]
        assert listed["counted"] == listed["presence"]
    ends = [row for row in flow.log.values() if row.client == "counted" and row.type == "situ.situation.closed"]
    for row in ends:
        said = json.loads(row.data)
        assert said["end"] == print_instant(row.time), "that it is over is no secret to whom it was told"
        assert bool(said["bindings"]) == ("bindings" in keep), "who it was about is, unless it is kept"
        assert said["causes"] == []


def test_where_nothing_was_released_parts_count(tmp_path: Path) -> None:
    scopes = SCOPES.replace(
        "reader-e:  { site: [east], floor: [ground] }", "reader-e:  { site: [east], floor: [ground] }"
    )
    clients = PROJECT["clients/people.yaml"].replace("{site: east, rest: any}, adv", "{site: east, floor: ground}, adv")
    flow = Flow(project(tmp_path, ("counted",), **{"scopes.yaml": scopes, "clients/people.yaml": clients}))
    flow.see("reader-e", "g2", 9)
    opened = told(flow.wait(), "counted")[""]
    assert flow.sees(opened, OTHER), "it may be of any floor"
    narrow = replace(OTHER, rest=False)
    assert not flow.sees(opened, narrow), "and who says nothing of floors does not see the event"


def test_what_a_policy_leaves_open_is_closed_for_those_who_saw_it(tmp_path: Path) -> None:
    flow = Flow(project(tmp_path, ("counted",)))
    flow.see("reader-e", "g2", 9)
    flow.wait(0.4)
    before = set(flow.log)
    (tmp_path / "policies/counted.dpl").unlink()
    flow.use(project(tmp_path, ("presence",)), 1)
    (closed,) = [row for pos, row in flow.log.items() if pos not in before]
    assert (closed.type, closed.client) == ("situ.situation.closed", "counted")
    assert (sites(flow, closed), closed.ext) == (set(SITES), '"released":"site"'), "the release is still there"


# ── on the way ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("parts", ["", "3.41.1f", "3.41.1f;4.40.0.geography+network"])
@pytest.mark.parametrize("data", ['{"a":1}', '{"a":1,"situparts":"x"}', '{"a":",\\"situparts\\":\\"x\\"}"}', "{}"])
def test_stamps_stand_behind_the_lines_of_policies(parts: str, data: str) -> None:
    line = b'{"specversion":"1.0","data":%b}' % data.encode()
    body, found = without_parts(join_lines([with_parts(line, parts), line]))
    assert body == join_lines([line, line])
    assert list(found) in ([], [parts, ""])
    row = Row(0, "p", 1, 8, "root", 0, "1", "p", "X", 0, "", None, "", b"{}")
    put_parts([row], found, 8)
    assert row.parts == parts


def test_without_scopes_nothing_is_carried(tmp_path: Path) -> None:
    plan = compile_plan(replace(project(tmp_path), scopes=NO_SCOPES))
    assert (plan.seeing, plan.reading, plan.meeting) == (None, None, None)
    assert all(watch.reads is None for watch in plan.detecting.watches.values())


def test_parts_are_one_text_whatever_their_order() -> None:
    parts = [StampPart(3, 41, 31, frozenset({"b", "a"})), StampPart(0, -1, 0), StampPart(-1, 0, 0)]
    assert set(read_parts(write_parts(parts))) == set(parts)
    assert write_parts(parts) == write_parts(reversed(parts))


# ── in the past ───────────────────────────────────────────────────────────────────────────────────────


def test_a_policy_that_begins_in_the_past_sees_of_it_what_it_may(tmp_path: Path) -> None:
    flow = Flow(project(tmp_path, ("presence",)))
    for who, x in (("g1", 5.0), ("g2", 9.0)):
        flow.see("reader-e", who, x)
    plan = compile_plan(replace(project(tmp_path, ("everywhere",)), epoch=1), flow.plan)
    sightings = [row for row in flow.log.values() if row.type == "Sighting"]
    messages = [
        StoredMessage(
            subject="x",
            headers={CLIENT: row.client, RECEIVED: str(row.recv)},
            body=join_lines([stamped_line(row, encode_row(row))]),
            seq=row.pos // 65536,
            at=row.recv,
        )
        for row in sightings
    ]
    only = plan.detecting.only(["everywhere"])
    filling = Backfill(only, KNOWN, 1, 0, reading=PolicyReader.of(only, plan.seeing))
    filling.take(messages)
    filling._clock = T + 60 * SECOND
    before, _ = DetectionProgress().adopted(only, None)
    filled = filling.filled()
    begun = start_from_backfill(before, only, {"everywhere": PolicyStart(at=0)}, [filled])
    assert [dict(each.situation.bindings)["A"] for each in begun.told if each.detection] == ["g1"]
    assert start_from_backfill(before, only, {"everywhere": PolicyStart(at=0)}, [filled], ["everywhere"]).told == ()


def test_who_says_nothing_is_no_part_of_a_closed_dimension(tmp_path: Path) -> None:
    flow = Flow(project(tmp_path, ("presence",)))
    flow.see("reader-e", "g1", 5)
    assert not any(flow.sees(row, NO_TAGS) for row in flow.wait())


def test_tests_of_policies_are_about_policies_whatever_they_may_see(tmp_path: Path) -> None:
    deployment = project(tmp_path, ("presence",))
    detecting = DetectionPlan.of(deployment)
    assert detecting.watches["presence"].reads == EAST
    data = {"who": "g1", "at": {"x": 5.0, "y": 5.0}}
    given = GivenEvent(type="Sighting", data=data, id="1", source="reader", time=T, received=T)
    rooms = {"id": ["lab"], "security": ["restricted"], "area": [{"x1": 0.0, "y1": 0.0, "x2": 10.0, "y2": 10.0}]}
    tables = {
        "persons": make_table(deployment.sources["persons"], {"nr": ["g1"], "role": ["guest"]}),
        "rooms": make_table(deployment.sources["rooms"], rooms),
    }
    test = PolicyTest(name="t", policies=(), events=(given,), pull=tables)
    (found,) = run_policy_test(test, detecting, tables_of(test, detecting, deployment.sources), deployment.types).found
    assert dict(found.bindings)["A"] == "g1"


def test_a_value_that_is_kept_has_the_stamp_of_its_event(tmp_path: Path) -> None:
    sources = PROJECT["sources/building.yaml"].replace("value: at}", "value: at, keep: last 5 s}")
    flow = Flow(project(tmp_path, ("presence",), **{"sources/building.yaml": sources}))
    flow.see("reader-e", "g1", 9)
    flow.wait(0.4)
    flow.again()
    flow.wait(20)
    rows = list(flow.log.values())
    again = [row for row in rows if row.type == "situ.situation.continued"]
    assert len(again) == 5
    (opened,) = told(rows, "presence").values()
    assert {row.parts for row in again} == {opened.parts}
    assert {frozenset(sites(flow, row)) for row in again} == {frozenset({"east"})}


# ── what is left of events that are released ──────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("type", "data", "keep", "left"),
    [
        ("Alarm", {"hall": "a", "who": "x"}, {"hall"}, {"hall": "a"}),
        ("situ.notice", NOTICE, {"hall"}, {**NOTICE, "text": ""}),
        ("situ.notice", NOTICE, {"text"}, NOTICE),
        ("situ.command", {"data": '{"hall":"a","who":"x","situation":"s"}'}, {"hall"}, '{"hall":"a","situation":"s"}'),
        ("situ.command", {"data": '["x"]'}, {"hall"}, "null"),
    ],
)
def test_only_what_is_kept_is_left_of_an_event(
    type: str, data: dict[str, str], keep: set[str], left: dict[str, str] | str
) -> None:
    event = ActionEvent(type=type, id="1", data=json.dumps(data).encode())
    found = json.loads(released_event(event, keep).data)
    assert found == ({"data": left} if isinstance(left, str) else left)


def test_of_several_releases_only_what_all_keep_is_left() -> None:
    graph = ScopeGraph(
        releases=(
            Release(policy="p", dimensions=("d",), keep=("a", "b"), by="x"),
            Release(policy="p", dimensions=("e",), keep=("b", "c"), by="y"),
            Release(policy="q", dimensions=(), keep=("b",), by="y"),
        )
    )
    releases = Releases(graph)
    assert releases.get("q") is None
    found = releases.get("p")
    assert found is not None
    assert (found.dimensions, found.keep, found.by, found.text) == ({"d", "e"}, {"b"}, "x, y", "d,e")
    assert list(releases.let_go("p", [StampPart(1, 1, 0, frozenset({"z"}))])) == [
        StampPart(1, 1, 0, frozenset({"d", "e", "z"}))
    ]


def test_stamps_get_through_the_frames_of_spark() -> None:
    from situ.spark.frames import row_batches, rows_of

    def row(pos: int, parts: str = "") -> Row:
        return Row(pos, "p", 1, pos, "root", 0, str(pos), "p", "X", 0, "", None, "", b"{}", parts=parts)

    bad = BadRow(65537, "p", 1, 9, "root", 0, "", "decode", (("E701", "", "x", ""),), b"{")
    for given in ([[row(1, "3.1.1f"), row(2)]], [[row(1), row(2)]], [[row(1, "3.1.0")], [bad]]):
        assert list(rows_of(row_batches(given, 100))) == given
