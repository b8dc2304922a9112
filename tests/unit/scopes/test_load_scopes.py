"""``scopes.yaml``: what it means, and everything that can be wrong with it, at its place."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from situ.lang.documents import parse_yaml
from situ.lang.expr.format import print_expression
from situ.lang.problems import Problem, Problems, render
from situ.lang.tags import NO_TAGS, TagSet
from situ.model.diff import diff_deployments
from situ.project.check import CheckedProject, check_folder
from situ.registry.proposal import load_one
from situ.routing.model import Subscription
from situ.scopes.filters import FilterMeanings
from situ.scopes.graph import BoundaryFilter, Grant, ScopeGraph, ScopeLink, effective_carriers
from situ.scopes.json_form import scopes_as_json, scopes_from_json
from situ.scopes.load_scopes import load_scopes
from situ.scopes.rights import TagRequest, check_tags, may
from tests.guarded import FILES as GUARDED
from tests.project_files import write
from tests.types_files import types_of
from tests.unit.project.test_situations import FILES as SITUATIONS
from tests.volume import cases

EVENTS = """
events:
  Alarm: {severity: int, at: Place, vendor: optional string}
  Fire(Alarm): {hall: string}
  ShiftReport: {text: string}
  MachineState: {machine_class: string, vendor: optional string, bytes: long, sampled: boolean, severity: string}
  CycleCount: {n: int, at: Spot}
  ServiceNote: {note: string}
types:
  Place: {floor: int}
  Spot: {row: int}
"""
FILTERS = FilterMeanings(types_of(EVENTS))

PLANT = """version: 1
dimensions:
  membership:
    mode: closed
    scopes:
      group:        {}
      plant-lyon:   { in: [group],      output: "type IS Alarm AND severity >= 4" }
      operations:   { in: [plant-lyon], output: "type IS Alarm OR type IS ShiftReport" }
      maintenance:  { in: [plant-lyon], input:  "type IS Alarm OR type IS MachineState" }
      line-a:       { in: [operations, maintenance],
                      output: "NOT (type IS CycleCount)",
                      links: { maintenance: { up: "type IS MachineState AND machine_class = 'press'" } } }
      supplier-acme: { in: [maintenance], input: "type IS Alarm AND vendor = 'acme'", output: "type IS ServiceNote" }
  geography:
    scopes: { eu: {}, lyon: { in: [eu], carriers: [zone-lyon, zone-paris] }, hall-2: { in: [lyon] } }
  network:
    scopes: { wan: {}, ot-lan: { in: [wan] }, bus-2: { in: [ot-lan], output: "type IS Alarm" } }
clients:
  press-7:     { membership: [line-a], geography: [hall-2], network: [bus-2] }
  acme-remote: { membership: [supplier-acme], network: [wan] }
  evacuation:  { membership: [operations] }
policies:
  evacuation:  { reads: { membership: operations, rest: any }, publishes: { membership: any, geography: any } }
grants:
  - { to: safety-office, dimension: membership, may: [observe] }
  - { to: evacuation,    dimension: membership, may: [broadcast] }
  - { to: site-admin,    dimension: membership, may: [admin], scopes: [plant-lyon] }
releases:
  - { policy: evacuation, dimensions: [membership], keep: [hall, level], by: site-admin }
"""


def load(text: str, clients: tuple[str, ...] = (), functions: tuple[str, ...] = ()) -> tuple[ScopeGraph, list[Problem]]:
    problems = Problems()
    graph = load_scopes([parse_yaml(text, "scopes.yaml")], FILTERS, problems, clients=clients, functions=functions)
    return graph, list(problems.sorted())


def said(text: str, **known: tuple[str, ...]) -> list[str]:
    return [f"{each.location} {each.code.code}".removeprefix("scopes.yaml:") for each in load(text, **known)[1]]


def scopes(body: str) -> str:
    return f"dimensions: {{d: {{scopes: {{{body}}}}}}}"


def test_the_example_of_the_specification() -> None:
    graph, problems = load(PLANT)
    assert problems == []
    assert list(graph.dimensions) == ["geography", "membership", "network"]
    membership = graph.dimensions["membership"]
    assert membership.closed
    assert not graph.dimensions["network"].closed
    assert membership.containers("line-a") == ("maintenance", "operations")
    assert membership.members("plant-lyon") == ("maintenance", "operations")
    assert membership.above("line-a") == {"line-a", "maintenance", "operations", "plant-lyon", "group"}
    order = membership.upwards()
    assert all(order.index(name) < order.index(each) for name in order for each in membership.containers(name))
    link = ScopeLink(up=BoundaryFilter(text="type IS MachineState AND machine_class = 'press'"))
    assert membership.scopes["line-a"].links == (("maintenance", link),)
    up = membership.up("line-a", "maintenance")
    assert [each.text for each in up] == [
        "NOT (type IS CycleCount)",
        "type IS MachineState AND machine_class = 'press'",
    ]
    assert [str(each.place) for each in up] == ["scopes.yaml:11:32", "scopes.yaml:12:52"]
    assert membership.down("plant-lyon", "operations") == ()
    assert graph.memberships("press-7", "geography") == ("hall-2",)
    assert graph.clients_in("membership", "operations") == ("evacuation",)
    assert graph.tags_of("evacuation").reads == TagSet.of({"membership": "operations"}, rest=True)
    assert graph.tags_of("nobody").publishes == TagSet()
    assert graph.dimension_of("hall-2") == "geography"
    assert graph.dimension_of("hall-3") is None
    assert Grant(to="site-admin", dimension="membership", may=("admin",), scopes=("plant-lyon",)) in graph.grants
    assert graph.releases[0].keep == ("hall", "level")
    assert scopes_from_json(scopes_as_json(graph)) == graph


def test_carriers_come_from_above() -> None:
    carried = effective_carriers(load(PLANT)[0].dimensions["geography"])
    assert carried == {"eu": None, "lyon": {"zone-lyon", "zone-paris"}, "hall-2": {"zone-lyon", "zone-paris"}}


def test_administration_reaches_below() -> None:
    graph = load(PLANT)[0]
    assert may(graph, "site-admin", "admin", "membership", "line-a")
    assert may(graph, "site-admin", "admin", "membership", "plant-lyon")
    assert not may(graph, "site-admin", "admin", "membership", "group")
    assert not may(graph, "site-admin", "admin", "membership", "nowhere")
    assert not may(graph, "site-admin", "admin", "membership")
    assert not may(graph, "site-admin", "observe", "membership", "line-a")
    assert may(graph, "safety-office", "observe", "membership")


@pytest.mark.parametrize("text", ["", "version: 1", "dimensions:\nclients:\ngrants:\n", "dimensions: {d: }"])
def test_what_is_about_to_be_written(text: str) -> None:
    assert said(text) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("clients: {c: {d: [a]}}", ["1:15 V001"]),
        ("grants: [{to: x, dimension: d, may: [admin]}]", ["1:29 V001"]),
        ("policies: {p: {reads: {d: a}}}", ["1:27 V001"]),
        ("releases: [{policy: p, dimensions: [d], by: x}]", ["1:37 V001"]),
        (scopes("a: {in: [b]}"), ["1:36 V002"]),
        (scopes("a: {}") + "\nclients: {c: {d: [b]}}", ["2:19 V002"]),
        (scopes("a: {}") + "\ngrants: [{to: x, dimension: d, may: [admin], scopes: [b]}]", ["2:55 V002"]),
        (scopes("a: {}") + "\npolicies: {p: {publishes: {d: b}}}", ["2:31 V002"]),
        ("dimensions: {d: {scopes: {a: {}}}, e: {scopes: {a: {}}}}", ["1:49 V003"]),
        (scopes("a: {}") + "\nclients: {a: {}}", ["1:27 V003"]),
        (scopes("a: {in: [a]}"), ["1:36 V004"]),
        (scopes("a: {in: [b]}, b: {in: [c]}, c: {in: [a]}"), ["1:64 V004"]),
        (scopes("a: {in: [c]}") + "\nclients: {c: {}}", ["1:36 V005"]),
        (scopes("a: {}") + "\nclients: {c: {d: [e]}, e: {}}", ["2:19 V005"]),
        (scopes("a: {}") + "\npolicies: {p: {reads: {d: a}}}", ["2:27 V006"]),
        (scopes("any: {}"), ["1:27 V007"]),
        (scopes("a: {in: [any]}"), ["1:36 V007"]),
        (scopes("a: {}") + "\nclients: {c: {d: [any]}}", ["2:19 V007"]),
        (scopes("a: {}") + "\npolicies: {p: {reads: {d: ⊤}}}", ["2:27 V007"]),
        (scopes("a: {output: 'severty > 4'}"), ["1:40 V008"]),
        (scopes("a: {input: 'type IS Alrm'}"), ["1:47 V008"]),
        (scopes("a: {input: 'event.speed > 4'}"), ["1:39 V008"]),
        (scopes("a: {input: 'at.flor > 4'}"), ["1:39 V008"]),
        (scopes("a: {output: 'now() > event.time'}"), ["1:40 V009"]),
        (scopes("a: {output: 'rand() > 0.5'}"), ["1:40 V009"]),
        (scopes("a: {output: 'count(severity) > 1'}"), ["1:40 V009"]),
        (scopes("a: {output: '(SELECT 1) = 1'}"), ["1:48 V009"]),
        (scopes("a: {output: 'lookup(severity) = 1'}"), ["1:40 V009"]),
        (scopes("a: {output: 'event.latency < 5'}"), ["1:40 V009"]),
        (scopes("a: {output: 'freshness < 5'}"), ["1:40 V009"]),
        (scopes("a: {output: 'n'}"), ["1:40 V010"]),
        (scopes("a: {output: 'n >'}"), ["1:42 V010"]),
        (scopes("a: {output: \"n = 'x'\"}"), ["1:44 V010"]),
        ("dimensions: {d: {mode: closed}}\npolicies: {p: {reads: {d: any}}}", ["2:27 V011"]),
        ("dimensions: {d: {mode: closed}}\npolicies: {p: {reads: {rest: any}}}", ["2:30 V011"]),
        ("dimensions: {d: {mode: closed}}\npolicies: {p: {publishes: {d: any}}}", ["2:31 V012"]),
        (scopes("a: {}") + "\nreleases: [{policy: p, dimensions: [d], by: x}]", ["2:45 V014"]),
        (scopes("a: {}") + "\npolicies: {p: {reads: {d: [a, b]}}}", ["2:27 V016"]),
        (scopes("a: {carriers: [x]}, b: {in: [a], carriers: [y]}"), ["1:56 V017"]),
        (scopes("a: {carriers: [x]}, b: {carriers: [y]}, c: {in: [a, b]}"), ["1:76 V017", "1:79 V017"]),
        (scopes("a: {output: 'severity > 4'}"), ["1:40 V108"]),
        (scopes("a: {}") + "\nclients: {c.d: {}, c_d: {}}", ["2:11 INT110"]),
        (scopes("a_b: {}"), ["1:27 INT110"]),
        (scopes("a: {carriers: [Zone]}"), ["1:42 INT110"]),
        ("dimensions: {rest: {}}", ["1:14 INT110"]),
        (scopes("a: {in: [b, b]}, b: {}"), ["1:39 INT106"]),
        (scopes("a: {in: [b], links: {c: {up: 'TRUE'}}}, b: {}, c: {}"), ["1:48 P103"]),
        (scopes("a: {out: x}"), ["1:31 P103"]),
        ("dimensions: {d: {mode: shut}}", ["1:24 P119"]),
        ("grants: [{to: x, dimension: d, may: [rule]}]", ["1:38 P119"]),
        ("grants: [{to: x}]", ["1:10 P104", "1:10 P104"]),
        (scopes("a: {}") + "\npolicies: {p: {reads: {rest: all}}}", ["2:30 P119"]),
        ("version: 2", ["1:10 P111"]),
    ],
)  # fmt: skip
def test_what_is_wrong_with_scopes(text: str, found: list[str]) -> None:
    assert said(text) == found


def test_all_problems_come_at_once_and_say_what_to_do() -> None:
    text = PLANT.replace("in: [group]", "in: [gruop]").replace("machine_class =", "machine_clas =")
    text = text.replace("may: [broadcast]", "may: [observe]")
    graph, problems = load(text)
    assert [each.code.code for each in problems] == ["V002", "V008", "V012"]
    assert [each.hint for each in problems[:2]] == ["Did you mean `group`?", "Did you mean `machine_class`?"]
    assert "grant `broadcast` to `evacuation`" in problems[2].hint
    assert problems[1].cause is not None
    assert "plant-lyon" in graph.dimensions["membership"].scopes


def test_the_message_prints_the_cycle() -> None:
    problem = load(scopes("a: {in: [b]}, b: {in: [c]}, c: {in: [a]}"))[1][0]
    assert "c → a → b → c" in render(problem)


def test_clients_and_functions_of_the_project_count() -> None:
    assert said(scopes("desk: {}"), clients=("desk",)) == ["1:27 V003"]
    assert said(scopes("a: {output: 'near(at)'}"), functions=("near",)) == ["1:40 V009"]
    assert said(scopes("a: {output: 'near(at)'}")) == ["1:40 V008"]


# ── what filters mean ──


@pytest.mark.parametrize(
    ("text", "type", "node"),
    [
        ("type IS Alarm AND severity >= 4", "Fire", "severity >= 4"),
        ("type IS Alarm AND severity >= 4", "MachineState", "FALSE"),
        ("type IS Alarm AND severity >= 4", "CycleCount", "FALSE"),
        ("type IS MachineState OR severity >= 4", "MachineState", "TRUE"),
        ("severity >= 4", "Alarm", "severity >= 4"),
        ("severity >= 4", "MachineState", "FALSE"),
        ("severity = 'high'", "MachineState", "severity = 'high'"),
        ("severity = 'high'", "Alarm", "FALSE"),
        ("NOT (type IS CycleCount)", "situ.deadletter", "TRUE"),
        ("NOT (severity >= 4)", "ServiceNote", "FALSE"),
        ("hall IS NULL", "Alarm", "TRUE"),
        ("type IS Alarm OR at.row > 3", "Alarm", "TRUE"),
        ("at.row > 3", "Alarm", "FALSE"),
        ("at.row > 3 OR at.floor = 1", "CycleCount", "at.row > 3"),
        ("coalesce(vendor, 'x') = 'x'", "ShiftReport", "TRUE"),
        ("event.type = 'Alarm'", "Fire", "FALSE"),
        ("event.confidence > 50 [%]", "Fire", "event.confidence > 50.0 [%]"),
        ("TRUE", "Fire", "TRUE"),
        ("TRUE", "NoSuchType", "FALSE"),
    ],
)
def test_what_a_filter_means_to_events_of_a_type(text: str, type: str, node: str) -> None:
    assert print_expression(FILTERS.node(text, type)) == node


@pytest.mark.parametrize(
    ("text", "types", "names"),
    [
        ("type IS Alarm AND severity >= 4", (), ()),
        ("type IS Alarm OR sampled", ("CycleCount", "ServiceNote", "ShiftReport"), ("sampled",)),
        ("severity >= 4", ("CycleCount", "MachineState", "ServiceNote", "ShiftReport"), ("severity",)),
        ("hall IS NULL", (), ()),
        ("n > 1 OR type IS Alarm OR type IS MachineState OR note = 'x'", ("ShiftReport",), ("n", "note")),
    ],
)
def test_which_types_a_filter_blocks(text: str, types: tuple[str, ...], names: tuple[str, ...]) -> None:
    assert FILTERS.blocked(text) == (types, names)


# ── tags ──


def tagging(graph: ScopeGraph, who: str, tags: TagSet, **given: object) -> list[str]:
    by = TagRequest(who=who, **{"publishes": True, **given})  # type: ignore[arg-type]
    return [each.code.code for each in check_tags(graph, tags, by)]


def test_tags_that_a_client_may_name() -> None:
    graph = load(PLANT)[0]
    line = TagSet.of({"membership": "line-a"})
    assert tagging(graph, "press-7", line) == []
    assert tagging(graph, "press-7", TagSet.of({"membership": "plant-lyon"})) == ["V006"]
    assert tagging(graph, "press-7", TagSet.of({"geography": "any"})) == []
    assert tagging(graph, "press-7", TagSet.of({"membership": "any"})) == ["V012"]
    assert tagging(graph, "evacuation", TagSet.of({"membership": "any"})) == []
    assert tagging(graph, "evacuation", TagSet.of({"membership": "any"}), publishes=False) == ["V011"]
    assert tagging(graph, "safety-office", TagSet.of(rest=True), publishes=False) == []
    assert tagging(graph, "press-7", TagSet.of({"membership": "line-a"}, rest=True)) == []
    assert tagging(graph, "press-7", TagSet.of({"geography": "hall-2"}, rest=True)) == ["V012"]
    assert tagging(graph, "press-7", TagSet.of({"geography": "hall-2"}), zone="zone-paris") == []
    assert tagging(graph, "press-7", TagSet.of({"geography": "hall-2"}), zone="main") == ["V018"]
    assert tagging(graph, "press-7", TagSet.of({"altitude": "any"})) == ["V001"]


def test_a_foreign_scope_and_one_that_is_not_there_read_alike() -> None:
    graph = load(PLANT)[0]
    by = TagRequest(who="press-7", publishes=False)

    def refusal(scope: str) -> str:
        (problem,) = check_tags(graph, TagSet.of({"membership": scope}), by)
        return render(problem).replace(scope, "it")

    assert refusal("group") == refusal("nowhere")
    (told,) = check_tags(
        graph, TagSet.of({"membership": "gruop"}), TagRequest(who="x", publishes=False, knows_all=True)
    )
    assert told.code.code == "V002"
    assert told.hint == "Did you mean `group`?"


# ── in a project ──


def checked(tmp_path: Path, clients: str, scopes: str = PLANT, **files: str) -> CheckedProject:
    write(
        tmp_path,
        {
            "situ.yaml": "name: plant\n",
            "types/events.yaml": EVENTS,
            "clients/all.yaml": clients,
            "scopes.yaml": scopes,
            **files,
        },
    )
    return check_folder(tmp_path, {})


CLIENTS = """clients:
  press-7:
    scopes: {membership: line-a, geography: hall-2}
    advertisements:
      state: {type: MachineState}
      alarm: {type: Alarm, where: "severity > 1", scopes: {membership: line-a}}
  acme-remote:
    subscriptions:
      notes: {types: [Alarm], scopes: {membership: supplier-acme}}
"""
HERE = PLANT.replace("[zone-lyon, zone-paris]", "[main]")


def test_a_project_with_scopes(tmp_path: Path) -> None:
    found = checked(tmp_path, CLIENTS, HERE)
    assert [str(each) for each in found.problems] == []
    deployment = found.deployment
    assert deployment is not None
    default = TagSet.of({"membership": "line-a", "geography": "hall-2"})
    assert deployment.clients["press-7"].scopes == default
    assert deployment.advertisements["press-7/state"].scopes == default
    assert deployment.advertisements["press-7/alarm"].scopes == TagSet.of({"membership": "line-a"})
    assert deployment.advertisements["press-7/alarm"].where == "severity > 1"
    assert deployment.subscriptions["acme-remote/notes"].scopes == TagSet.of({"membership": "supplier-acme"})
    again = type(deployment).from_json(deployment.as_json())
    assert (again.scopes, again.digest) == (deployment.scopes, deployment.digest)


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("scopes: {membership: supplier-acme}", "scopes: {membership: [supplier-acme, group]}",
         ["9:52 V016"]),
        ("scopes: {membership: supplier-acme}", "scopes: {membership: group}", ["9:52 V006"]),
        ("scopes: {membership: supplier-acme}", "scopes: {membership: acme}", ["9:52 V002"]),
        ("scopes: {membership: supplier-acme}", "scopes: {member: group}", ["9:48 V001"]),
        ("scopes: {membership: supplier-acme}", "scopes: {membership: any}", ["9:52 V011"]),
        (", scopes: {membership: supplier-acme}", "", []),
        ("hall-2}", "hall-2, rest: any}", []),
        ("membership: line-a, geo", "geo", []),
        ("{membership: line-a}", "{rest: any}", ["6:66 V012"]),
        ('where: "severity > 1"', 'where: "severty > 1"', ["6:36 INT602"]),
    ],
)  # fmt: skip
def test_tags_of_a_project(tmp_path: Path, old: str, new: str, found: list[str]) -> None:
    assert old in CLIENTS
    problems = checked(tmp_path, CLIENTS.replace(old, new), HERE).problems
    assert [f"{each.location} {each.code.code}".removeprefix("clients/all.yaml:") for each in problems] == found


def test_a_tag_in_a_zone_that_does_not_carry_it(tmp_path: Path) -> None:
    problems = checked(tmp_path, CLIENTS).problems
    assert [str(each) for each in problems] == [
        "clients/all.yaml:3:45: V018 The zone `main` does not carry the scope `hall-2` of the dimension `geography`."
    ]
    assert problems[0].hint == "It is carried by `zone-lyon` or `zone-paris`."


def test_the_one_scope_of_a_client_is_its_tag_where_a_dimension_is_closed(tmp_path: Path) -> None:
    """What is written and what follows from scopes.yaml is the same deployment, but for what clients say themselves."""
    silent = CLIENTS.replace("membership: line-a, ", "").replace(", scopes: {membership: line-a}", "")
    silent = silent.replace(", scopes: {membership: supplier-acme}", "")
    found = checked(tmp_path / "silent", silent, HERE)
    assert [str(each) for each in found.problems] == []
    written = checked(tmp_path / "written", CLIENTS, HERE).deployment
    deployment = found.deployment
    assert deployment is not None
    assert written is not None
    assert deployment.advertisements["press-7/state"] == written.advertisements["press-7/state"]
    assert deployment.subscriptions == written.subscriptions
    # What a client declares while events flow, too: it need not say more than one that the project declares.
    asked = Subscription(client="acme-remote", name="more", types=("Alarm",))
    loaded, problems = load_one(asked, deployment)
    assert problems == ()
    assert loaded.subscriptions["acme-remote/more"].scopes == TagSet.of({"membership": "supplier-acme"})
    # Between several it has to choose, what it says counts, and nothing follows in an open dimension.
    several = HERE.replace(
        "acme-remote: { membership: [supplier-acme]", "acme-remote: { membership: [supplier-acme, group]"
    )
    assert several != HERE
    assert [each.code.code for each in checked(tmp_path / "several", silent, several).problems] == ["V107"]
    said = silent.replace("notes: {types: [Alarm]}", "notes: {types: [Alarm], scopes: {membership: group}}")
    assert "V107" not in [each.code.code for each in checked(tmp_path / "said", said, several).problems]
    opened = checked(tmp_path / "open", silent, HERE.replace("mode: closed", "mode: open")).deployment
    assert opened is not None
    assert opened.subscriptions["acme-remote/notes"].scopes == NO_TAGS


def test_the_difference_of_two_projects(tmp_path: Path) -> None:
    old = checked(tmp_path / "old", CLIENTS, HERE).deployment
    changed = HERE.replace("in: [operations, maintenance]", "in: [maintenance]").replace("mode: closed", "mode: open")
    changed = changed.replace("{ to: safety-office, ", "{ to: night-watch, ")
    new = checked(tmp_path / "new", CLIENTS.replace("severity > 1", "severity > 2"), changed).deployment
    assert old is not None
    assert new is not None
    assert [str(each) for each in diff_deployments(old, new)] == [
        "dimension membership changed",
        "scope membership/line-a changed",
        "grant night-watch in membership added",
        "grant safety-office in membership removed",
        "advertisement press-7/alarm changed",
    ]


# ── large ──


@cases(1_000, 3_333)
def test_thousands_of_scopes_with_serial_diamonds(cases: int) -> None:
    lines = ["dimensions:", "  d:", "    scopes:", "      t0: {}"]
    for number in range(cases):
        top, bottom = f"t{number}", f"t{number + 1}"
        lines.append(f"      l{number}: {{in: [{top}], output: 'type IS Alarm AND severity > {number % 9}'}}")
        lines.append(f"      r{number}: {{in: [{top}], output: 'type IS Alarm AND severity < {number % 9}'}}")
        lines.append(f"      {bottom}: {{in: [l{number}, r{number}], carriers: [main]}}")
    text = (
        "\n".join(lines)
        + f"\nclients: {{c: {{d: [t{cases}]}}}}\ngrants: [{{to: x, dimension: d, may: [admin], scopes: [t1]}}]"
    )
    before = time.process_time()
    graph, problems = load(text)
    assert problems == []
    assert len(graph.dimensions["d"].scopes) == 3 * cases + 1
    assert may(graph, "x", "admin", "d", f"t{cases}")
    assert scopes_from_json(scopes_as_json(graph)) == graph
    assert (
        list(check_tags(graph, TagSet.of({"d": f"t{cases}"}), TagRequest(who="c", publishes=True, zone="main"))) == []
    )
    assert time.process_time() - before < cases / 60
    closing = text.replace("t0: {}", f"t0: {{in: [t{cases}]}}")
    assert {each.code.code for each in load(closing)[1]} == {"V004"}


# ── once all is compiled ──


def test_many_ways_between_two_tags_are_named(tmp_path: Path) -> None:
    lines = ["dimensions:", "  d:", "    scopes:", "      t0: {}"]
    for number in range(8):
        top, bottom = f"t{number}", f"t{number + 1}"
        lines.append(f"      l{number}: {{in: [{top}], output: 'type IS Alarm AND severity > {number}'}}")
        lines.append(f"      r{number}: {{in: [{top}], output: 'type IS Alarm AND severity < {number}'}}")
        lines.append(f"      {bottom}: {{in: [l{number}, r{number}]}}")
    lines.append("clients: {a: {d: [t8]}, b: {d: [t0]}}")
    clients = (
        "clients: {a: {advertisements: {x: {type: Alarm, scopes: {d: t8}}}},\n"
        "  b: {subscriptions: {y: {types: [Alarm], scopes: {d: t0}}}}}"
    )
    found = checked(tmp_path, clients, "\n".join(lines))
    assert [each.code.code for each in found.problems] == ["V109"]
    assert "From `t8` to `t0`" in found.problems[0].message


def test_situations_that_reach_nobody(tmp_path: Path) -> None:
    files = {
        **{name: text for name, text in SITUATIONS.items() if not name.startswith(("policies/", "clients/"))},
        "sources/a.yaml": re.sub("{(csv|xml):", r"{scopes: {rest: any}, \1:", SITUATIONS["sources/a.yaml"]),
        "policies/watch.dpl": "concepts\n  person A\n  room R\nconditions\n  A is inside R\nactions\n  raise alarm\n",
        "clients/all.yaml": (
            "clients: {desk: {subscriptions: {told: {types: [situ.situation], scopes: {tenant: x}}}},\n"
            "  reader: {advertisements: {seen: {type: Sighting, scopes: {tenant: y}}}}}"
        ),
    }
    scopes = (
        "dimensions: {tenant: {scopes: {x: {}, y: {}}}}\n"
        "clients: {desk: {tenant: [x]}, reader: {tenant: [y]}, watch: {tenant: [x, y]}}\n"
        "policies:\n  watch: {reads: {tenant: y}, publishes: {tenant: x}}\n"
    )
    released = (
        scopes
        + "grants: [{to: boss, dimension: tenant, may: [admin]}]\n"
        + ("releases: [{policy: watch, dimensions: [tenant], keep: [text], by: boss}]\n")
    )

    def codes(scopes: str) -> list[str]:
        write(tmp_path, {**files, "scopes.yaml": scopes})
        found = check_folder(tmp_path, {}).problems
        return [f"{each.location} {each.code.code}" for each in found if each.code.code.startswith("V")]

    assert codes(scopes) == ["scopes.yaml:4:3 V110"]
    assert codes(scopes.replace("y: {}", "y: {in: [x]}")) == []
    assert codes(released) == []
    assert codes(released.replace("publishes: {tenant: x}", "publishes: {tenant: y}")) == ["scopes.yaml:4:3 V110"]


def test_a_policy_that_does_not_see_its_tables_detects_nothing(tmp_path: Path) -> None:
    policies = "policies:\n  watch: {reads: {tenant: x}}\n"
    scopes = "dimensions: {tenant: {scopes: {x: {}, y: {}}}}\nclients: {watch: {tenant: [x]}, rooms: {tenant: [x]}}\n"
    files = {
        **{name: text for name, text in GUARDED.items() if not name.startswith(("policies/", "clients/"))},
        "policies/watch.dpl": "concepts\n  person A (status = 'guest')\n  room R\nconditions\n  A is inside R\n"
        "actions\n  raise alarm\n",
        "scopes.yaml": scopes + policies,
    }
    sources = GUARDED["sources/building.yaml"]

    def codes(sources: str) -> list[str]:
        write(tmp_path, {**files, "sources/building.yaml": sources})
        return [f"{each.location} {each.code.code}" for each in check_folder(tmp_path, {}).problems]

    assert codes(sources) == ["scopes.yaml:4:3 V111"] * 2
    tagged = sources.replace("csv: rooms.csv", "scopes: {tenant: x}\n            csv: rooms.csv")
    assert codes(tagged) == ["scopes.yaml:4:3 V111"], "the persons"
    assert codes(tagged.replace("csv: people", "scopes: {rest: any}\n            csv: people")) == []
    (not_its_own,) = codes(tagged.replace("tenant: x", "tenant: y"))
    assert not_its_own.endswith(" V006")
    assert not_its_own.startswith("sources/building.yaml:")


@pytest.mark.parametrize("reads", ["{reads: {tenant: x}}", "{reads: {tenant: x, place: a}}", "{reads: {rest: any}}"])
@pytest.mark.parametrize("closed", [(), ("tenant",), ("tenant", "place")])
def test_what_is_said_about_unseen_tables_lets_them_be_seen(
    tmp_path: Path, closed: tuple[str, ...], reads: str
) -> None:
    """Each hint is followed to the letter, and neither it nor another comes again."""

    def dimension(name: str, scope: str) -> str:
        return f"{name}: {{mode: {'closed' if name in closed else 'open'}, scopes: {{{scope}: {{}}}}}}"

    scopes = f"dimensions: {{{dimension('tenant', 'x')}, {dimension('place', 'a')}}}\n"
    scopes += "clients: {watch: {tenant: [x], place: [a]}}\n"
    sources = GUARDED["sources/building.yaml"]
    grants = [f"{{to: watch, dimension: {name}, may: [observe]}}" for name in closed]
    files = {
        **{name: text for name, text in GUARDED.items() if not name.startswith(("policies/", "clients/"))},
        "policies/watch.dpl": "concepts\n  person A (status = 'guest')\n  room R\nconditions\n  A is inside R\n"
        "actions\n  raise alarm\n",
    }
    for _ in range(4):
        policies = f"policies:\n  watch: {reads}\n"
        granted = f"grants: [{', '.join(grants)}]\n"
        write(tmp_path, {**files, "scopes.yaml": scopes + policies + granted, "sources/building.yaml": sources})
        found = check_folder(tmp_path, {}).problems
        assert {each.code.code for each in found} <= {"V111"}, [str(each) for each in found]
        if not found:
            return
        hint, source = found[0].hint, found[0].values["source"]
        for name in re.findall(r"`reads: {(\w+): …}`", hint):
            reads = reads.replace("{reads: {", f"{{reads: {{{name}: {'x' if name == 'tenant' else 'a'}, ")
        if "`scopes: {rest: any}`" in hint and "say what it reads" not in hint.lower():
            file = "people.csv" if source == "persons" else "rooms.csv"
            sources = sources.replace(f"csv: {file}", f"scopes: {{rest: any}}\n            csv: {file}")
            grants += re.findall(r"`- ({to: [^`]*)`", hint)
    raise AssertionError("the hints do not come to an end")


RELEASE = """
dimensions: {tenant: {scopes: {x: {}}}}
clients: {unaccompanied-guest: {tenant: [x]}}
policies: {unaccompanied-guest: {reads: {tenant: x, rest: any}}}
grants: [{to: boss, dimension: tenant, may: [admin]}]
releases: [{policy: unaccompanied-guest, dimensions: [tenant], by: boss, keep: [KEEP]}]
"""


@pytest.mark.parametrize(
    ("keep", "found"),
    [
        ("text, status, start, bindings", []),
        ("text, stats", ["6:87 V020"]),
        ("causes, text", ["6:81 V020"]),
        ("status", ["6:12 V021"]),
    ],
)
def test_what_a_release_keeps_is_there_and_enough(tmp_path: Path, keep: str, found: list[str]) -> None:
    sources = GUARDED["sources/building.yaml"].replace("csv:", "scopes: {rest: any}\n            csv:")
    scopes = RELEASE.replace("KEEP", keep)
    write(tmp_path, {**GUARDED, "sources/building.yaml": sources, "scopes.yaml": scopes})
    said = [each for each in check_folder(tmp_path, {}).problems if each.code.code.startswith("V02")]
    assert [f"{each.location} {each.code.code}".replace("scopes.yaml:", "") for each in said] == found
