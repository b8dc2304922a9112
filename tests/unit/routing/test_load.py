"""Clients, advertisements, subscriptions: what can be declared, and all that can be wrong with it."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import pytest

from situ.lang.documents import parse_yaml
from situ.lang.expr.definitions import load_functions
from situ.lang.expr.limits import DEFAULT_LIMITS, ExpressionLimits
from situ.lang.problems import Problem, Problems, render
from situ.routing import Advertisement, ClientDeclaration, Clients, Subscription
from situ.routing.load import load_clients
from tests.types_files import types_of

TYPES = types_of(
    """
    types:
      RoomId(string): {}
      Size: {w: double m, h: double m}
    events:
      RoomEvent: {room: RoomId}
      DoorUsed(RoomEvent): {door: string, size: optional Size}
      RoomClimate(RoomEvent): {temperature: double °C, sizes: [Size]}
      Sighting: {who: string, at: Point m}
    """
)
FUNCTIONS = load_functions(
    [parse_yaml('functions: {warm: "(t: double °C) -> boolean = t > 30 °C"}', "functions/f.yaml")], TYPES, Problems()
).callable


def load(*texts: str, limits: ExpressionLimits = DEFAULT_LIMITS) -> tuple[Clients, tuple[Problem, ...]]:
    problems = Problems()
    documents = [parse_yaml(dedent(text), f"clients/{number}.yaml") for number, text in enumerate(texts, 1)]
    return load_clients(documents, TYPES, FUNCTIONS, problems, limits=limits), problems.sorted()


def subscription(body: str) -> tuple[Problem, ...]:
    return load(f"clients:\n  desk:\n    subscriptions:\n      s: {body}\n")[1]


def codes(problems: tuple[Problem, ...]) -> list[str]:
    return [f"{p.code.code} {p.cause.code.code}" if p.cause else p.code.code for p in problems]


def test_clients_with_what_they_publish_and_want() -> None:
    clients, problems = load(
        """
        version: 1
        clients:
          desk:
            subscriptions:
              arrivals: {types: [Sighting], where: "at.x  < 5 m", durable: true}
              rooms: {types: [RoomEvent, Sighting]}
          reader-7:
            advertisements: {seen: {type: Sighting}}
          watcher:
        """
    )
    assert not problems
    assert dict(clients.clients) == {name: ClientDeclaration(name=name) for name in ("desk", "reader-7", "watcher")}
    assert dict(clients.advertisements) == {
        "reader-7/seen": Advertisement(client="reader-7", name="seen", type="Sighting")
    }
    assert dict(clients.subscriptions) == {
        "desk/arrivals": Subscription(
            client="desk", name="arrivals", types=("Sighting",), where="at.x < 5 m", durable=True
        ),
        "desk/rooms": Subscription(client="desk", name="rooms", types=("RoomEvent", "Sighting")),
    }


def test_clients_may_stand_in_any_file_in_any_order() -> None:
    one, _ = load("clients: {a: {}, b: {}}", "clients: {c: {advertisements: {x: {type: Sighting}}}}")
    other, _ = load("clients: {c: {advertisements: {x: {type: Sighting}}}, b: }", "clients:\n  a:\n")
    assert one == other
    assert list(one.clients) == ["a", "b", "c"]


def test_empty_files_and_sections_are_fine() -> None:
    clients, problems = load("", "clients:\n", "clients: {a: {subscriptions: , advertisements: }}")
    assert not problems
    assert list(clients.clients) == ["a"]


@pytest.mark.parametrize(
    "where",
    [
        "at.x < 5 ft AND who LIKE 'p%'",
        "event.source = 'reader-1' OR event.confidence > 50 %",
        "type IS Sighting AND event.time > TIMESTAMP '2026-01-01T00:00:00Z'",
        "warm(20 °C) OR who = 'x'",
    ],
)
def test_filters_that_are_right(where: str) -> None:
    assert subscription(f"{{types: [Sighting], where: {where!r}}}") == ()


def test_dead_letters_can_be_subscribed_to() -> None:
    assert subscription("{types: [situ.deadletter], where: \"code = 'INT703' AND stage <> 'stamp'\"}") == ()
    assert codes(subscription("{types: [situ.deadletter], where: \"cod = 'INT703'\"}")) == ["INT602 X102"]


def test_a_filter_on_a_supertype_may_ask_for_the_subtype() -> None:
    assert subscription("{types: [RoomEvent], where: \"type IS DoorUsed AND room = 'lab'\"}") == ()


def test_a_filter_is_checked_for_each_of_the_types() -> None:
    problems = subscription("{types: [DoorUsed, RoomClimate, Sighting], where: \"room = 'lab' AND door = 'D1'\"}")
    assert [(problem.values["type"], problem.cause.values["name"]) for problem in problems if problem.cause] == [
        ("Sighting", "room"),
        ("RoomClimate", "door"),
        ("Sighting", "door"),
    ]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("{types: [Sihgting]}", ["INT601"]),
        ("{types: [Size]}", ["INT605"]),
        ("{types: [RoomId]}", ["INT605"]),
        ("{types: [double]}", ["INT605"]),
        ("{types: [Sighting, Sighting]}", ["INT106"]),
        ("{types: []}", ["P105"]),
        ("{types: Sighting}", ["P105"]),
        ("{types: [[Sighting]]}", ["P105"]),
        ("{types: [5]}", ["P105"]),
        ("{types: }", ["P105"]),
        ("{where: who = 'x'}", ["P104"]),
        ("{types: [Sighting], wher: who = 'x'}", ["P103"]),
        ("{types: [Sighting], scopes: {tenant: [x, y]}}", ["V016"]),
        ("{types: [Sighting], durable: yes}", ["P105"]),
        ("{types: [Sighting], durable: 1}", ["P105"]),
        ("{types: [Sighting], where: true}", ["P105"]),
        ("{types: [Sighting], where: [a]}", ["P105"]),
        ("Sighting", ["P105"]),
        ("{types: [Sighting], where: ''}", ["INT602 X101"]),
        ("{types: [Sighting], where: 'at.x <'}", ["INT602 X101"]),
        ("{types: [Sighting], where: 'at.z < 5 m'}", ["INT602 X102"]),
        ("{types: [Sighting], where: 'at.x < 5 s'}", ["INT602 X104"]),
        ("{types: [Sighting], where: 'at.x < 5'}", []),
        ("{types: [Sighting], where: 'at.x + 1 m'}", ["INT602 X103"]),
        ("{types: [Sighting], where: 'at.x / 0 > 1 m'}", ["INT602 X105"]),
        ("{types: [Sighting], where: 'warm(at)'}", ["INT602 X103"]),
        ("{types: [Sighting], where: 'warm()'}", ["INT602 X106"]),
        ("{types: [Sighting], where: 'cold(at.x)'}", ["INT602 X102"]),
        ("{types: [Sighting], where: 'lambda x: x'}", ["INT602 X101"]),
        ("{types: [Sighting], where: 'FALSE'}", ["INT603"]),
        ("{types: [Sighting], where: 'NULL'}", ["INT603"]),
        ("{types: [Sighting], where: '1 = 2'}", ["INT603"]),
        ("{types: [Sighting], where: 'TRUE'}", ["INT606"]),
        ("{types: [Sighting], where: 'who IS NOT NULL'}", ["INT606"]),
        ("{types: [RoomClimate], where: 'sizes.w > 1 m'}", ["INT602 X103"]),
    ],
)
def test_what_is_wrong_with_a_subscription(body: str, found: list[str]) -> None:
    assert codes(subscription(body)) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("clients: [desk]", ["1:10 P105"]),
        ("client: {desk: {}}", ["1:1 P103"]),
        ("version: 3", ["1:10 P111"]),
        ("clients: {front desk: {}}", ["1:11 INT110"]),
        ("clients: {front_desk: {}}", ["1:11 INT110"]),
        ("clients: {'': {}}", ["1:11 INT110"]),
        (f"clients: {{{'d' * 65}: {{}}}}", ["1:11 INT110"]),
        ("clients: {desk: {advertisements: {a.b: {type: Sighting}}}}", ["1:35 INT110"]),
        ("clients: {desk: {subscriptions: {a/b: {types: [Sighting]}}}}", ["1:34 INT110"]),
        ("clients: {desk: seen}", ["1:17 P105"]),
        ("clients: {desk: {context: us}}", ["1:27 INT501"]),
        ("clients: {desk: {scope: {tenant: any}}}", ["1:18 P103"]),
        ("clients: {desk: {advertisement: {}}}", ["1:18 P103"]),
        ("clients: {desk: {advertisements: {a: Sighting}}}", ["1:38 P105"]),
        ("clients: {desk: {advertisements: {a: {}}}}", ["1:35 P104"]),
        ("clients: {desk: {advertisements: {a: {type: [Sighting]}}}}", ["1:45 P105"]),
        ("clients: {desk: {advertisements: {a: {type: Sighting, where: 'who.x > 1'}}}}", ["1:63 INT602"]),
        ("clients: {desk: {advertisements: {a: {type: Sighting, until: 'TRUE'}}}}", ["1:55 P103"]),
        ("clients: {desk: {advertisements: {a: {type: Sigthing}}}}", ["1:45 INT601"]),
        ("clients: {desk: {advertisements: {a: {type: Size}}}}", ["1:45 INT605"]),
        ("clients: {desk: {advertisements: {a: {type: situ.deadletter}}}}", ["1:45 INT608"]),
    ],
)
def test_what_is_wrong_with_a_client(text: str, found: list[str]) -> None:
    problems = load(text)[1]
    assert [f"{p.location}".removeprefix("clients/1.yaml:") + f" {p.code.code}" for p in problems] == found


def test_a_client_twice_is_refused_and_both_are_checked() -> None:
    clients, problems = load("clients: {a: {}}", "clients: {a: {advertisements: {x: {type: Unknown}}}}")
    assert codes(problems) == ["INT106", "INT601"]
    assert "clients/1.yaml:1:11" in problems[0].message
    assert list(clients.clients) == ["a"]


def test_a_fault_in_a_filter_is_shown_where_it_stands() -> None:
    (problem,) = subscription("{types: [Sighting], where: \"who = 'x' AND at.q < 5 m\"}")
    assert render(problem) == dedent(
        """\
        clients/1.yaml:4:52: error INT602: The filter of `desk/s` cannot be used on `Sighting`.
          |       s: {types: [Sighting], where: "who = 'x' AND at.q < 5 m"}
          |                                                    ^^^^
          because X102: There is no attribute `q` here.
          hint: Point has the attributes `x`, `y`."""
    )


def test_a_part_is_pointed_to_the_events_that_have_it() -> None:
    (problem,) = subscription("{types: [Size]}")
    assert problem.hint == "Events that have it are `DoorUsed` or `RoomClimate`."
    (problem,) = subscription("{types: [double]}")
    assert problem.hint.startswith("Events that have it are `RoomClimate`")


def test_what_is_never_true_runs_with_a_warning() -> None:
    clients, problems = load("clients: {a: {subscriptions: {s: {types: [Sighting], where: '1 > 2'}}}}")
    assert not problems[0].is_error
    assert "FALSE" in problems[0].hint
    assert "a/s" in clients.subscriptions


def test_limits_of_the_project_hold() -> None:
    text = "clients: {a: {subscriptions: {s: {types: [Sighting], where: 'at.x > 1 m AND at.y > 2 m'}}}}"
    assert codes(load(text)[1]) == []
    assert codes(load(text, limits=ExpressionLimits(nodes=4))[1]) == ["INT602 X108"]


@pytest.mark.parametrize(
    "each",
    [
        Advertisement(client="a", name="b", type="T"),
        Subscription(client="a", name="b", types=("S", "T"), where="x < 5", durable=True),
        Subscription(client="a", name="b", types=("S",)),
    ],
)
def test_read_back_from_json(each: Advertisement | Subscription) -> None:
    assert type(each).from_json(each.id, each.as_json()) == each


@pytest.mark.parametrize(
    ("id", "value"),
    [
        ("a", {"types": ["T"]}),
        ("a/b/c", {"types": ["T"]}),
        ("a/b", {}),
        ("a/b", {"types": [1]}),
        ("a/b", {"types": ["T"], "where": 5}),
        ("a/b", {"types": ["T"], "durable": 1}),
    ],
)
def test_what_was_never_written_is_refused(id: str, value: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError, KeyError)):
        Subscription.from_json(id, value)
