"""Visibility at work: what is stamped, who is left, what is asked only once, and what nobody knows any more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from situ.event.lines import (
    bare_line,
    decode_line,
    encode_row,
    encode_rows,
    handed_line,
    stamped_line,
    stamped_lines,
    stored_lines,
)
from situ.event.message import STAMP, join_lines
from situ.event.row import BadRow, Origin, Row
from situ.event.subjects import BusNames, pack_group, pack_root
from situ.lang.records import replace
from situ.lang.tags import NO_TAGS, TagSet
from situ.model import Deployment
from situ.project.check import check_folder
from situ.registry.snapshots import decode_deployment, encode_deployment
from situ.routing.delivery_groups import group_id, group_of
from situ.routing.model import Advertisement, ClientDeclaration, Subscription
from situ.routing.routing_table import RoutedRows
from situ.scopes.graph import NO_SCOPES, ScopeGraph
from situ.scopes.stamp_codec import NO_NUMBERING, StampNumbers, StampPart, read_parts, write_parts
from situ.settings import Settings
from situ.stages.pending_deliveries import DeliveryTag, PendingDeliveries
from situ.stages.plan import Plan, compile_plan
from situ.stages.root_log import dead_letter_line
from tests.project_files import write
from tests.scopes import TYPES, dimension, graph_of

PLANT = graph_of(
    dimension(
        "membership",
        {"line": "plant", "office": "plant", "guest": "office"},
        closed=True,
        output_line="severity >= 4",
        input_guest="vendor = 'acme'",
    ),
    dimension("place", {"hall": "site"}),
)
LINE = TagSet.of({"membership": "line"})
OFFICE = TagSet.of({"membership": "office"}, rest=True)
GUEST = TagSet.of({"membership": "guest"}, rest=True)
ALL = TagSet.of(rest=True)


def deploy(
    scopes: ScopeGraph = PLANT,
    *,
    tags: TagSet = LINE,
    where: str = "",
    subs: dict[str, TagSet] | None = None,
    **more: object,
) -> Deployment:
    """A press that publishes alarms, and a subscriber for each of these tag sets."""
    given = {"line": LINE, "office": OFFICE, "guest": GUEST} if subs is None else subs
    subscriptions = [
        Subscription(client=name, name=kind, types=("Alarm",), durable=kind == "kept", scopes=each)
        for name, each in given.items()
        for kind in ("kept", "live")
    ]
    return Deployment(
        settings=Settings(name="plant"),
        types=TYPES,
        scopes=scopes,
        clients={name: ClientDeclaration(name=name) for name in ("press", *given)},
        advertisements={
            "press/alarms": Advertisement(client="press", name="alarms", type="Alarm", where=where, scopes=tags)
        },
        subscriptions={each.id: each for each in subscriptions},
        **more,  # type: ignore[arg-type]
    )


def alarm(severity: int, vendor: str = "", *, client: str = "press", ad: str = "press/alarms", seq: int = 1) -> Row:
    data = {"severity": severity, **({"vendor": vendor} if vendor else {})}
    return Row(
        pos=seq, client=client, incarnation=1, seq=seq, context="root", recv=0, id=str(seq), source=client,
        type="Alarm", time=0, ad=ad, confidence=None, ext="", data=json.dumps(data).encode(),
    )  # fmt: skip


def stamped(plan: Plan, *rows: Row) -> list[Row]:
    found = [row for row in plan.stamp.each(rows) if isinstance(row, Row)]
    if plan.seeing is not None:
        plan.seeing.stamp(found)
    return found


def who(plan: Plan, routed: RoutedRows) -> set[str]:
    durable = {id for _, group in routed.durable for id in plan.routing.groups[group].subscriptions}
    return durable | {f"{client}/{name}" for _, client, names in routed.live for name in names.split(",")}


def both(*clients: str) -> set[str]:
    return {f"{each}/{kind}" for each in clients for kind in ("kept", "live")}


# ── who sees ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("severity", "vendor", "seen"),
    [(1, "", both("line")), (5, "", both("line", "office")), (5, "acme", both("line", "office", "guest"))],
)
def test_filters_at_boundaries_decide_who_gets_an_event(severity: int, vendor: str, seen: set[str]) -> None:
    plan = compile_plan(deploy())
    (row,) = stamped(plan, alarm(severity, vendor))
    assert who(plan, plan.routing.route_one(row)) == seen
    assert who(plan, plan.routing.route([row, row])) == seen


def test_without_scopes_nothing_is_stamped_and_lines_are_what_they_were() -> None:
    plan = compile_plan(deploy(NO_SCOPES, tags=NO_TAGS, subs={"desk": NO_TAGS}))
    assert plan.seeing is None
    assert plan.deployment.numbers is NO_NUMBERING
    rows = stamped(plan, alarm(1), alarm(2, seq=2))
    lines = encode_rows(rows)
    assert stamped_lines(rows, lines) is lines
    assert [decode_line(line).epoch for line in lines] == [0, 0]
    assert who(plan, plan.routing.route(rows)) == both("desk")
    assert "visibility" not in plan.deployment.as_json()
    assert group_id(("Alarm",), "") == group_of(next(iter(plan.routing.subscriptions.values())))


def test_subscriptions_with_other_tags_are_other_groups() -> None:
    plan = compile_plan(deploy(subs={"a": LINE, "b": LINE, "c": OFFICE}))
    groups = {each.subscriptions: each.scopes for each in plan.routing.groups.values()}
    assert groups == {("a/kept", "b/kept"): LINE, ("c/kept",): OFFICE}


def test_events_that_look_alike_are_asked_about_once(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = compile_plan(deploy())
    seeing = plan.seeing
    assert seeing is not None
    asked: list[TagSet] = []
    sees = seeing.sees
    monkeypatch.setattr(seeing, "sees", lambda look, tags: asked.append(tags) or sees(look, tags))
    rows = stamped(plan, *(alarm(number % 6, seq=number + 1) for number in range(60)))
    plan.routing.route(rows)
    assert len(asked) == 2 * 3, "two kinds of alarms, three tag sets"
    plan.routing.route(rows)
    for row in rows:
        plan.routing.route_one(row)
    assert len(asked) == 2 * 3


def test_bits_that_nobody_asks_for_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = compile_plan(deploy(subs={"line": LINE}))
    assert plan.seeing is not None
    calls: list[object] = []
    sees = plan.seeing.sees
    monkeypatch.setattr(plan.seeing, "sees", lambda look, tags: calls.append(look) or sees(look, tags))
    rows = stamped(plan, alarm(1), alarm(5, seq=2), alarm(5, "acme", seq=3))
    assert len({row.bits for row in rows}) == 3
    plan.routing.route(rows)
    assert len(calls) == 1


def test_only_filters_on_a_way_from_the_tags_are_evaluated() -> None:
    plan = compile_plan(deploy(tags=OFFICE))
    (row,) = stamped(plan, alarm(5, "acme"))
    number = plan.deployment.numbers.filters["vendor = 'acme'"]
    assert row.bits == 1 << number, "what leaves the line is not asked of what begins in the office"


# ── epochs ────────────────────────────────────────────────────────────────────────────────────────

OPEN = graph_of(dimension("membership", {"line": "plant", "office": "plant", "guest": "office"}, closed=True))


def test_what_is_opened_does_not_reach_back_and_what_is_closed_does() -> None:
    before = compile_plan(deploy(epoch=1))
    hidden, shown = stamped(before, alarm(1), alarm(5, "acme", seq=2))
    opened = compile_plan(deploy(OPEN, epoch=2, numbers=before.deployment.numbers), before)
    new, more = stamped(opened, alarm(1, seq=3), alarm(5, seq=4))
    assert who(opened, opened.routing.route_one(new)) == both("line", "office", "guest")
    assert who(opened, opened.routing.route_one(hidden)) == both("line")
    assert who(opened, opened.routing.route_one(shown)) == both("line", "office", "guest")
    closed = compile_plan(deploy(epoch=3), opened)
    assert who(closed, closed.routing.route_one(new)) == both("line"), "a filter that came since is asked of the event"
    assert who(closed, closed.routing.route([new, more, new])) == both("line", "office")
    assert who(closed, closed.routing.route_one(more)) == both("line", "office")


def test_of_an_epoch_or_of_tags_that_nobody_knows_nothing_is_visible() -> None:
    plan = compile_plan(deploy(epoch=4))
    (row,) = stamped(plan, alarm(5, "acme"))
    for odd in (replace_row(row, epoch=2), replace_row(row, tags=99), replace_row(row, tags=-1)):
        assert who(plan, plan.routing.route_one(odd)) == set()
    plan = compile_plan(deploy(epoch=4))
    assert plan.seeing is not None
    assert plan.seeing.missing([row, replace_row(row, epoch=2), replace_row(row, parts="0.3.0")]) == {2, 3}
    plan.seeing.know(3, None)
    plan.seeing.know(2, OPEN)
    assert who(plan, plan.routing.route_one(replace_row(row, epoch=2))) == both("line", "office", "guest")


def replace_row(row: Row, **changes: object) -> Row:
    fields = {name: getattr(row, name) for name in Row.__struct_fields__}
    return Row(**{**fields, **changes})


def test_what_came_before_there_were_scopes_is_for_those_who_name_none() -> None:
    site = graph_of(dimension("place", {"hall": "site"}))
    plan = compile_plan(
        deploy(site, tags=NO_TAGS, subs={"old": NO_TAGS, "all": ALL, "hall": TagSet.of({"place": "hall"})}, epoch=1)
    )
    assert who(plan, plan.routing.route_one(alarm(1))) == both("old", "all")


def test_scopes_that_are_gone_still_hide_what_was_stamped_with_them() -> None:
    before = compile_plan(deploy(subs={"line": LINE, "all": ALL}, epoch=1))
    (row,) = stamped(before, alarm(1))
    gone = deploy(NO_SCOPES, tags=NO_TAGS, subs={"line": NO_TAGS, "all": ALL}, numbers=before.deployment.numbers)
    plan = compile_plan(gone, before)
    assert plan.seeing is not None
    assert who(plan, plan.routing.route_one(row)) == set(), "the line is no scope any more, so nobody is in it"
    (new,) = stamped(plan, alarm(1, seq=2))
    assert not new.epoch
    assert who(plan, plan.routing.route_one(new)) == both("line", "all")


# ── situations, dead letters ──────────────────────────────────────────────────────────────────────


def test_a_situation_is_seen_where_all_its_parts_are() -> None:
    plan = compile_plan(deploy(subs={"line": LINE, "office": OFFICE}))
    assert plan.seeing is not None
    (own, hidden) = stamped(plan, alarm(5), alarm(1, seq=2))
    part = StampPart(hidden.tags, hidden.epoch, hidden.bits)
    assert who(plan, plan.routing.route_one(own)) == both("line", "office")
    own.parts = write_parts([part])
    assert who(plan, plan.routing.route([own, own])) == both("line")
    own.parts = write_parts([part._replace(released=frozenset({"membership"}))])
    assert who(plan, plan.routing.route_one(own)) == both("line", "office")


def test_parts_are_read_as_they_were_written() -> None:
    parts = {StampPart(3, 41, 0x1F), StampPart(0, -1, 0), StampPart(3, 41, 1, frozenset({"b", "a"}))}
    text = write_parts(parts)
    assert set(read_parts(text)) == parts
    assert write_parts(read_parts(text)) == text
    assert read_parts("") == ()


def bad(client: str, ad: str = "") -> BadRow:
    return BadRow(
        pos=1, client=client, incarnation=1, seq=1, context="root", recv=0, ad=ad, stage="decode",
        errors=(("E001", "", "No.", ""),), original=b"{}",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("of", "seen"),
    [
        (bad("press", "press/alarms"), both("line", "press")),
        (bad("press"), both("line", "press")),
        (bad("nobody", "nobody/none"), set()),
    ],
)
def test_a_dead_letter_is_for_its_producer_and_for_whoever_would_always_have_seen_the_event(
    of: BadRow, seen: set[str]
) -> None:
    subs = {"line": LINE, "office": OFFICE, "press": GUEST}
    deployment = deploy(subs=subs)
    letters = {id: replace(each, types=("situ.deadletter",)) for id, each in deployment.subscriptions.items()}
    plan = compile_plan(replace(deployment, subscriptions=letters))
    line = dead_letter_line(of, 0, plan)
    row = decode_line(line)
    assert row.epoch
    assert b"situtags" not in bare_line(row, line)
    assert who(plan, plan.routing.route_one(row)) == seen


# ── advertisements ────────────────────────────────────────────────────────────────────────────────


def test_an_event_that_is_not_as_advertised_is_refused() -> None:
    plan = compile_plan(deploy(NO_SCOPES, tags=NO_TAGS, where="severity > 3", subs={}))
    good, refused, failing = plan.stamp.each([alarm(4), alarm(3, seq=2), alarm(0, seq=3)])
    assert isinstance(good, Row)
    for each in (refused, failing):
        assert isinstance(each, BadRow)
        code, _, message, _ = each.errors[0]
        assert (code, "severity > 3" in message) == ("R003", True)


def test_advertisements_of_a_version_to_come_hold_with_all_they_say() -> None:
    plan = compile_plan(deploy(epoch=1))
    office = TagSet.of({"membership": "office"})
    more = Advertisement(client="press", name="more", type="Alarm", where="severity > 3", scopes=office)
    offered = replace(plan.deployment, version=2, advertisements={**plan.deployment.advertisements, more.id: more})
    plan.learn(offered)
    (row,) = stamped(plan, alarm(5, "acme", ad="press/more"))
    assert plan.seeing is not None
    assert plan.seeing.numbers.tag_set(row.tags) == office
    assert who(plan, plan.routing.route_one(row)) == both("line", "office", "guest")
    assert not stamped(plan, alarm(1, ad="press/more", seq=2))


# ── numbers ───────────────────────────────────────────────────────────────────────────────────────


def test_a_number_is_given_once() -> None:
    first = StampNumbers().with_all(PLANT, [LINE])
    assert first.of(NO_TAGS) == 0
    second = first.with_all(OPEN, [OFFICE])
    assert second.filters == first.filters, "filters that are gone keep their numbers"
    assert second.tags == (*first.tags, OFFICE)
    assert second.with_all(PLANT, [LINE, OFFICE]) is second
    assert StampNumbers.from_json(json.loads(json.dumps(second.as_json()))) == second


def test_numbers_are_carried_but_no_part_of_what_is_declared() -> None:
    deployment = deploy(epoch=3).numbered()
    assert deployment.digest == deploy().digest
    content, digest = encode_deployment(deployment.at_version(7))
    assert digest == deployment.digest
    assert decode_deployment(content, 7) == deployment.at_version(7)
    assert (
        json.dumps(json.loads(content), sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() == content
    )


def test_a_line_says_what_it_is_stamped_with_behind_everything_else() -> None:
    row = replace_row(alarm(1), tags=3, epoch=41, bits=0x1F)
    line = stamped_line(row, encode_row(row))
    assert line.endswith(b'"situpos":"1","situtags":3,"situepoch":41,"situbits":"1f"}')
    assert decode_line(line) == row
    assert bare_line(decode_line(line), line) == encode_row(row)


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ({}, "3.41.1f"),
        ({"bits": 0}, ""),
        ({"tags": 4}, ""),
        ({"epoch": 42}, ""),
        ({"tags": 0, "epoch": 0, "bits": 0}, ""),
        ({"parts": "1.1.0"}, ""),
    ],
)
def test_a_message_says_the_stamp_that_all_of_its_events_have(others: dict[str, Any], said: str) -> None:
    stamp: dict[str, Any] = {"tags": 3, "epoch": 41, "bits": 0x1F}
    rows = [replace_row(alarm(1), **stamp), replace_row(alarm(2), **{**stamp, **others})]
    for together in (rows, rows[::-1]):
        lines = [encode_row(row) for row in together]
        ((_, message),) = pack_root(BusNames("main"), "r1", together, lines)
        assert message.headers.get(STAMP, "") == said
        assert (b'"situtags"' in message.body) is not bool(said)
        assert [decode_line(line) for line in stored_lines(message)] == together
        waiting = pack_group(BusNames("main"), "g", together, lines, "5 -")
        assert waiting.headers.get(STAMP, "") == said
        assert [handed_line(line) for line in stored_lines(waiting)] == lines, "also what has no stamp"


@pytest.mark.parametrize("epoch", [0, 7])
def test_what_looks_like_a_stamp_in_the_data_is_none(epoch: int) -> None:
    row = replace_row(alarm(1), data=b'{"severity":1,"situtags":5,"situepoch":6}', epoch=epoch)
    line = stamped_line(row, encode_row(row))
    again = decode_line(line)
    assert (again.tags, again.epoch) == (0, epoch)
    assert bare_line(again, line) == encode_row(row)


@pytest.mark.parametrize("forged", [{"situtags": 1}, {"situepoch": 1}, {"situbits": "ff"}, {"situparts": "1.1.0"}])
def test_nobody_stamps_his_own_events(forged: dict[str, object]) -> None:
    plan = compile_plan(deploy())
    sent = {"specversion": "1.0", "id": "1", "source": "press", "type": "Alarm", "data": {"severity": 1}}
    origin = Origin(client="press", incarnation=1, seq=1, received=0, pos=1)
    honest, forger = (
        plan.interpretation.decode(json.dumps([{**sent, **more}]).encode(), origin)[0] for more in ({}, forged)
    )
    assert honest == forger
    assert isinstance(forger, Row)
    assert b"situ" not in forger.ext.encode()


@pytest.mark.parametrize(
    ("maps", "sent", "taken"),
    [
        ("[{out: Level -> Level}, {in: Level -> Level}]", [1.9, 2.1], [False, True]),
        ("[{in: Level -> Level}]", [1.9, 2.1], [False, False]),
    ],
)
def test_what_is_advertised_in_other_terms_is_asked_in_those(
    tmp_path: Path, maps: str, sent: list[float], taken: list[bool]
) -> None:
    """A context that does not see its own events cannot hold them to anything: then none is let in."""
    write(
        tmp_path,
        {
            "situ.yaml": "version: 1\nname: plant\n",
            "types/all.yaml": "version: 1\nevents:\n  Level: {tank: string, level: double m}\n",
            "contexts/us.yaml": (
                "version: 1\ncontext: us\nextends: root\n"
                f"events:\n  Level: {{tank: string, level: double yd}}\nmaps: {maps}\n"
            ),
            "clients/all.yaml": (
                "version: 1\nclients:\n"
                "  pump: {context: us, advertisements: {high: {type: Level, where: level > 2 yd}}}\n"
            ),
        },
    )
    checked = check_folder(tmp_path)
    assert checked.deployment is not None, checked.problems
    plan = compile_plan(checked.deployment)
    lines = [
        json.dumps(
            {"specversion": "1.0", "id": "1", "source": "pump", "type": "Level", "data": {"tank": "a", "level": level}}
        ).encode()
        for level in sent
    ]
    context = plan.interpretation.stamped("pump")
    origin = Origin(client="pump", incarnation=1, seq=1, received=0, pos=1, context=context)
    rows = plan.interpretation.into_root(plan.interpretation.decode(join_lines(lines), origin))
    assert all(isinstance(row, Row) for row in rows)
    assert [isinstance(row, Row) for row in plan.stamp.each(rows)] == taken


def test_what_waits_keeps_its_stamp_over_a_restart() -> None:
    plan = compile_plan(deploy())
    (row,) = stamped(plan, alarm(5, "acme"))
    waiting, restored = PendingDeliveries(plan.interpretation.outgoing), PendingDeliveries(plan.interpretation.outgoing)
    waiting._wait("root", row, encode_row(row), None, DeliveryTag(), frozenset())
    restored.restore(json.loads(json.dumps(waiting.as_json())))
    (said,) = restored._queues["root", "press"]
    assert (said.row, said.line) == (row, encode_row(row))
