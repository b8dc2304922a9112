"""Actions: how they are declared, what a policy may say of them, what they come to, and how policies go together."""

from __future__ import annotations

import datetime as dt
import decimal
import random
from collections.abc import Iterable
from functools import cache
from itertools import combinations
from typing import Any

import pytest

from situ.lang.documents import parse_yaml, substitute
from situ.lang.expr.faults import Faults
from situ.lang.problems import Location, Problem, Problems, SituError, render
from situ.lang.records import replace
from situ.lang.types.resolve import load_types
from situ.lang.types.table import Types
from situ.policies.actions.invocations import ActionInvocation, invocation_of
from situ.policies.actions.load import actions_as_json, actions_from_json, load_actions
from situ.policies.actions.model import DeclaredActions
from situ.policies.actions.resolve import steps_of
from situ.policies.actions.templates import TemplateFacts, parse_template, render_template
from situ.policies.check import interactions as opposing
from situ.policies.check.domain import Domain
from situ.policies.check.interactions import check_interactions, opposed_actions
from situ.policies.model import Policy, PolicyAction
from situ.sources.model import Push
from tests import domains

TYPES = """
version: 1
events:
  Alarm: {text: string, level: optional int, at: optional Point m,
    speed: optional double m/s, since: optional timestamp}
  Moved: {who: string, where: Point m}
  Strolled(Moved): {}
  Bell: {tone: optional string}
"""

ACTIONS = """
actions:
  raise alarm: {publish: Alarm, data: {text: "{A} is alone in {R.id}", level: 3}}
  notify headquarters: {notify: headquarters, text: "{policy}: {A.status}"}
  open window: {command: "window-{R}", data: {open: true}}
  close window: [{command: "window-{R.id}", data: {open: false}}, {log: "closed {R} of {R.floor}", level: warning}]
  call for help: {webhook: "https://example.org/{A.status}?room={R}", headers: {Authorization: "Bearer ${TOKEN}"}}
  tell: {notify: "{1}", text: "look at {2}"}
  move: {publish: Moved, data: {who: "{A}", where: "{A.position}"}}
  stroll: {publish: Strolled, data: {who: "{A}", where: {x: 1, y: 2.5}}}
  go: {publish: Moved, data: {who: someone, where: {x: 1, y: 2.5}}}
  rest: {suspend policy: "{policy}"}
  lock up: {command: door}
  lock down: {command: door}
opposed: [[open window, close window], [lock up, lock down]]
"""

GUEST = domains.UNACCOMPANIED_GUEST


@cache
def types() -> Types:
    problems = Problems()
    found = load_types([parse_yaml(TYPES, "types.yaml")], problems)
    problems.raise_errors()
    return found


def invocations_of(
    action: PolicyAction, number: int, actions: DeclaredActions, facts: TemplateFacts, situation: Any = None
) -> tuple[ActionInvocation, ...]:
    """What all steps of the action come to."""
    places = range(len(steps_of(action, actions)))
    return tuple(invocation_of(action, number, place, actions, facts, situation) for place in places)


def loaded(text: str, environment: dict[str, str] | None = None) -> tuple[DeclaredActions, tuple[Problem, ...]]:
    document = parse_yaml(text, "actions.yaml")
    problems = Problems()
    if environment is not None and document.root is not None:
        document = replace(document, root=substitute(document.root, environment, problems))
    return load_actions([document], types(), problems), problems.sorted()


@cache
def actions() -> DeclaredActions:
    found, problems = loaded(ACTIONS)
    assert not problems, "\n".join(map(render, problems))
    return found


@cache
def building() -> Domain:
    return replace(domains.domain(domains.BUILDING, domains.BUILDING_FED, types=TYPES), actions=actions())


def doing(*lines: str, text: str = GUEST) -> str:
    return text.replace("  raise alarm\n", "".join(f"  {line}\n" for line in lines))


def found(*lines: str, text: str = GUEST) -> tuple[Problem, ...]:
    return domains.checked(doing(*lines, text=text), building())[1]


def codes(problems: tuple[Problem, ...]) -> list[str]:
    return [problem.code.code for problem in problems]


# ── declaring ─────────────────────────────────────────────────────────────────────────────────────


def test_actions_survive_their_stored_form() -> None:
    stored = actions_as_json(actions())
    assert actions_from_json(stored, types()) == actions()
    assert actions_as_json(actions_from_json(stored, types())) == stored
    assert stored["opposed"] == [["close window", "open window"], ["lock down", "lock up"]]
    assert stored["actions"]["raise alarm"] == [
        {"publish": "Alarm", "data": {"text": "{A} is alone in {R.id}", "level": 3}}
    ]


def test_nothing_is_no_actions() -> None:
    assert loaded("") == (DeclaredActions(), ())
    assert loaded("actions:\nopposed:\n") == (DeclaredActions(), ())
    with pytest.raises(ValueError, match="no actions"):
        actions_from_json(["a"], types())


def test_what_the_environment_says_is_refused_where_it_would_be_told() -> None:
    text = 'actions: {call: {publish: Alarm, data: {text: "${TOKEN}"}}}'
    found, (problem,) = loaded(text, {"TOKEN": "s3cret"})
    assert (problem.code.code, str(problem.location)) == ("S189", "actions.yaml:1:48")
    assert "s3cret" not in render(problem)
    assert found.faulty == {"call"}


def test_what_the_environment_says_is_not_stored() -> None:
    secret, problems = loaded(
        'actions: {call: {webhook: "${URL}/x", headers: {A: "${TOKEN}"}}}', {"URL": "https://a.b", "TOKEN": "s3cret"}
    )
    assert problems == ()
    assert "s3cret" not in str(actions_as_json(secret))
    (deed,) = invocations_of(
        PolicyAction(name="call"), 0, secret, TemplateFacts(environment={"URL": "https://a.b", "TOKEN": "s3cret"})
    )
    assert (deed.target, deed.headers) == ("https://a.b/x", (("A", "s3cret"),))


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("a: {publish: Alrm, data: {text: x}}", "S181", "Did you mean `Alarm`?"),
        ("a: {publish: situ.loss}", "S181", "publishes `situ.loss`, which is no event type"),
        ("a: {publish: Alarm}", "S184", "Write `data:` with `text`."),
        ("a: {publish: Alarm, data: {level: 3}}", "S184", "`data.text` of the action `a`: found nothing"),
        ("a: {publish: Alarm, data: {text: x, leve: 3}}", "S184", "Did you mean `level`?"),
        ("a: {publish: Alarm, data: {text: x, level: high}}", "S184", "found `high`, expected `int`"),
        ("a: {publish: Alarm, data: {text: 5}}", "S184", "found `5`, expected `string`"),
        ("a: {publish: Alarm, data: {text: x, level: 'about {A}'}}", "S184", "found text, expected `int`"),
        ("a: {publish: Alarm, data: {text: x, at: {x: 1}}}", "S184", "`data.at.y` of the action `a`"),
        ("a: {publish: Alarm, data: 5}", "S184", "expected `Alarm`"),
        ("a: {publish: Alarm, log: x}", "S181", "says `publish`, `log` in one"),
        ("a: {pblish: Alarm}", "S181", "Did you mean `publish`?"),
        ("a: {nonsense: 1}", "S181", "does not say what to do"),
        ("a: []", "S181", "does nothing"),
        ("a: {log: x, level: loud}", "P119", "`warning`"),
        ("a: {webhook: 'ftp://a'}", "S181", "no address"),
        ("a: {webhook: 'https://{A}/'}", "S181", "references can stand behind the host only"),
        ("a: {webhook: 'https://a', method: FETCH}", "P119", "`PATCH`"),
        ("a: {webhook: 'https://a', headers: {'a b': x}}", "S181", "Headers are letters"),
        ("a: {webhook: 'https://a', headers: {Content-Length: 3}}", "S181", "every request has its own"),
        ("a: {log: '{'}", "S182", "`{` stands alone"),
        ("a: {log: 'a {A.b.c} b'}", "S182", "`{A.b.c}` refers to nothing"),
        ("a: {log: '{}'}", "S182", "refers to nothing"),
        ("a: {publish: Alarm, data: {text: 'call ${TOKEN}'}}", "S189", "would put `${TOKEN}` into an event"),
        ("a: {publish: Alarm, data: {text: x, level: '${LEVEL}'}}", "S189", "would put `${LEVEL}` into an event"),
        ("a: {notify: '${DESK}'}", "S189", "would put `${DESK}` into an event"),
        ("a: {notify: desk, text: 'it is ${TOKEN}'}", "S189", "Secrets can be in the address"),
        ("a: {command: door, data: {pins: [{pin: '${PIN}'}]}}", "S189", "would put `${PIN}` into an event"),
        ("publish: {log: x}", "INT110", "Situ has an action of that name"),
        ("actions of mine: {log: x}", "INT110", "is a word of policies"),
        ("'!': {log: x}", "INT110", "not made of words"),
    ],
)
def test_what_is_wrong_with_a_declaration(text: str, code: str, said: str) -> None:
    _, problems = loaded(f"actions:\n  {text}\n")
    assert code in codes(problems)
    assert all(problem.location is not None and problem.hint for problem in problems)
    assert said in "\n".join(map(render, problems))


@pytest.mark.parametrize("pair", ["[a, b, c]", "[a, zz]", "[a, a]"])
def test_what_is_wrong_with_an_opposition(pair: str) -> None:
    assert codes(loaded(f"actions: {{a: {{log: x}}, b: {{log: y}}}}\nopposed: [{pair}]")[1]) == ["S186"]


def test_declared_twice() -> None:
    documents = [parse_yaml("actions: {a: {log: x}}", name) for name in ("actions.yaml", "more.yaml")]
    problems = Problems()
    load_actions(documents, types(), problems)
    assert codes(problems.sorted()) == ["INT106"]


def test_a_faulty_type_is_not_reported_again() -> None:
    problems = Problems()
    document = parse_yaml("actions: {a: {publish: Broken, data: {x: 1}}}", "actions.yaml")
    faults = Faults(types=frozenset({"Broken"}))
    assert load_actions([document], types(), problems, faults=faults).named == {}
    assert codes(problems.sorted()) == []


# ── in a policy ───────────────────────────────────────────────────────────────────────────────────


def test_the_longest_name_counts_and_the_rest_are_arguments() -> None:
    text = doing(
        "notify headquarters",
        "notify reception 'come here'",
        "suspend policy night-watch",
        "tell desk 'room ''12'''",
        "RAISE alarm",
    )
    checked = domains.policy(text, building())
    assert [(each.name, each.arguments) for each in checked.actions] == [
        ("notify headquarters", ()),
        ("notify", ("reception", "come here")),
        ("suspend policy", ("night-watch",)),
        ("tell", ("desk", "room '12'")),
        ("raise alarm", ()),
    ]


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("rise alarm", "S180", "Did you mean `raise alarm`?"),
        ("open the window", "S180", "Did you mean `open window` or"),
        ("juggle", "S180", "`publish`, `notify`, `webhook`"),
        ("raise alarm now", "S185", "needs nothing behind its name, and has one word"),
        ("tell desk", "S185", "needs 2 words behind its name, and has one word"),
        ("suspend policy", "S185", "Write `suspend policy night-watch`."),
        ("publish Alarm", "S181", "publishes `Alarm` without `text`"),
        ("publish Alrm", "S181", "Did you mean `Alarm`?"),
        ("webhook example.org", "S181", "no address"),
        ("webhook https://{A.id}/alarm", "S181", "references can stand behind the host only"),
        ("log '{X} is alone'", "S183", "it has no alias `X`"),
        ("notify desk '{A.stats}'", "S183", "Did you mean `status`?"),
        ("log {A is alone", "S182", "`{` stands alone"),
        ("log 'a {} b'", "S182", "refers to nothing"),
        ("log {1}", "S183", "only declared actions can refer to that"),
        ("notify desk ${TOKEN}", "S183", "Declare an action in `actions.yaml`"),
    ],
)
def test_what_a_policy_can_say_wrong(line: str, code: str, said: str) -> None:
    problems = found(line)
    assert codes(problems) == [code]
    (problem,) = problems
    assert problem.location is not None
    assert (problem.location.line, problem.location.column) == (11, 3)
    assert said in render(problem)


def test_what_is_built_in_needs_no_declaration() -> None:
    lines = (
        "publish Bell",
        "log 'someone'",
        "notify desk",
        "command siren-1",
        "webhook https://a.b/c",
        "delete policy x",
    )
    assert found(*lines) == ()


def test_what_is_built_in_says_what_was_detected() -> None:
    lines = ("log '{A.status} is in {R}'", "notify desk {A} alone", "webhook https://a.b/{A.status}")
    checked = domains.policy(doing(*lines), building())
    done = [
        deed for number, each in enumerate(checked.actions) for deed in invocations_of(each, number, actions(), FACTS)
    ]
    assert [(each.target, each.body) for each in done[:2]] == [("", "guest is in R 12/b"), ("desk", "1 alone")]
    assert done[2].target == "https://a.b/guest"


def test_a_faulty_action_is_not_unknown() -> None:
    known, problems = loaded("actions: {raise alarm: {publish: Alrm}}")
    assert codes(problems) == ["S181"]
    domain = replace(building(), actions=known)
    assert domains.checked(GUEST, domain)[1] == ()
    assert together(GUEST, within=domain) == []


def with_action(text: str, *lines: str) -> Domain:
    known, problems = loaded("actions:\n  it: " + text)
    assert problems == ()
    return replace(building(), actions=known)


@pytest.mark.parametrize(
    ("action", "code", "said"),
    [
        ("{log: '{X.id}'}", "S183", "it has no alias `X`"),
        ("{log: '{polcy}'}", "S183", "Did you mean `policy`?"),
        ("{log: '{A.stats}'}", "S183", "Did you mean `status`?"),
        ("{log: '{R.status}'}", "S183", "a room has no attribute `status`"),
        ("{log: '{B}'}", "S188", "`B` stands only for what does not happen"),
        ("{publish: Alarm, data: {text: x, level: '{A.status}'}}", "S184", "found `{A.status}` of type `string`"),
        ("{publish: Alarm, data: {text: '{A.speed}'}}", "S184", "expected `string`"),
        ("{publish: Alarm, data: {text: x, at: '{R.area}'}}", "S184", "`data.at`"),
        ("{publish: Alarm, data: {text: x, since: '{policy}'}}", "S184", "`data.since`"),
    ],
)
def test_what_templates_refer_to_is_looked_up_in_the_policy(action: str, code: str, said: str) -> None:
    problems = domains.checked(doing("it"), with_action(action))[1]
    assert codes(problems) == [code]
    assert said in render(problems[0])


@pytest.mark.parametrize(
    "action",
    [
        "{publish: Alarm, data: {text: '{A.status}', at: '{A.position}', speed: '{A.speed}', since: '{time}'}}",
        "{publish: Alarm, data: {text: '{policy} {situation} {detection} {time} {A.speed}'}}",
    ],
)
def test_what_fits(action: str) -> None:
    assert domains.checked(doing("it"), with_action(action))[1] == ()


def test_an_alias_that_only_some_alternatives_bind() -> None:
    text = doing("it", text=domains.conditions("A is inside R or B is inside R"))
    problems = domains.checked(text, with_action("{log: '{A} {R}'}"))[1]
    assert codes(problems) == ["S233"]
    assert "`{A}` in the action `it` is unknown where the policy is met without `A`" in problems[0].message


def test_actions_are_checked_although_conditions_are_wrong() -> None:
    assert codes(found("rise alarm", text=GUEST.replace("is inside", "is insid", 1))) == ["S153", "S180"]


# ── templates ─────────────────────────────────────────────────────────────────────────────────────

FACTS = TemplateFacts(
    policy="unaccompanied-guest",
    situation="s1",
    detection="d1",
    time=dt.datetime(2026, 11, 1, 8, tzinfo=dt.UTC),
    bindings={"A": "1", "R": "R 12/b"},
    attributes={
        "A": {"status": "guest", "speed": 1.5, "age": 5, "awake": True, "position": {"x": 1.0, "y": 2.0}, "name": None},
        "R": {"floor": "0\n1", "price": decimal.Decimal("2.50"), "since": dt.date(2026, 1, 2), "tags": ["a", "b"]},
    },
    arguments=("desk",),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("plain", "plain"),
        ("{A}", "1"),
        ("{A.id}", "1"),
        ("{A.age}", 5),
        ("{A.awake}", True),
        ("{A.position}", {"x": 1.0, "y": 2.0}),
        ("{R.price}", "2.50"),
        ("{R.since}", "2026-01-02"),
        ("{time}", "2026-11-01T08:00:00Z"),
        ("{1} {2}", "desk unknown"),
        ("{A.name}", None),
        ("{B}", None),
        ("{A.name} of {B.status}", "unknown of unknown"),
        ("{A.age} {A.awake} {A.speed} {A.position} {R.tags}", '5 true 1.5 {"x":1.0,"y":2.0} ["a","b"]'),
        ("{{A}} {policy} {situation} {detection}", "{A} unaccompanied-guest s1 d1"),
        ("5 $ and ${HOME}", "5 $ and unknown"),
    ],
)
def test_rendering(text: str, expected: object) -> None:
    template = parse_template(text, lambda offset, length: None)
    assert render_template(template, FACTS) == expected
    assert parse_template(str(template), lambda offset, length: None) == template


def test_deeds() -> None:
    (event,) = invocations_of(PolicyAction(name="raise alarm"), 0, actions(), FACTS)
    assert event == ActionInvocation(
        key="d1-0.0", verb="publish", target="Alarm", body={"text": "1 is alone in R 12/b", "level": 3}
    )
    (call,) = invocations_of(PolicyAction(name="call for help"), 1, actions(), FACTS, {"situation": "s1"})
    assert call == ActionInvocation(
        key="d1-1.0",
        verb="webhook",
        target="https://example.org/guest?room=R%2012%2Fb",
        body={"situation": "s1"},
        method="POST",
        headers=(("Authorization", "Bearer unknown"),),
    )
    (told,) = invocations_of(PolicyAction(name="notify", arguments=("desk",)), 0, actions(), FACTS)
    assert (told.target, told.body) == ("desk", "unaccompanied-guest: A = 1, R = R 12/b")
    (logged,) = invocations_of(PolicyAction(name="log", arguments=("{A}", "b")), 0, actions(), FACTS)
    assert (logged.body, logged.level) == ("1 b", "info")
    (gone,) = invocations_of(PolicyAction(name="delete policy", arguments=("x",)), 0, actions(), FACTS)
    assert (gone.verb, gone.target) == ("delete policy", "x")
    (still,) = invocations_of(PolicyAction(name="rest"), 0, actions(), FACTS)
    assert (still.verb, still.target) == ("suspend policy", "unaccompanied-guest")


def test_what_events_say_cannot_leave_its_place() -> None:
    with pytest.raises(SituError, match="names `window-R 12/b` as a device"):
        invocations_of(PolicyAction(name="open window"), 0, actions(), FACTS)
    known = replace(FACTS, bindings={"R": "R12"})
    _, line = invocations_of(PolicyAction(name="close window"), 0, actions(), known)
    assert (line.body, line.level) == ("closed R12 of 0 1", "warning")


# ── policies together ─────────────────────────────────────────────────────────────────────────────


def push(name: str, event: str, concept: str, attribute: str, id: str = "who", value: str = "where") -> Push:
    return Push(name=name, event=event, concept=concept, attribute=attribute, id=(id,), value=(value,))


PUSH = {"moved": push("moved", "Moved", "person", "position")}


def together(*texts: str, within: Domain | None = None, pushes: dict[str, Push] = PUSH) -> list[Problem]:
    domain = within or building()
    policies: dict[str, Policy] = {}
    for text in texts:
        policy = domains.policy(text, domain)
        policies[policy.name] = policy
    return list(
        check_interactions(policies, domain.actions or DeclaredActions(), domain.ontology, pushes, domain.types)
    )


def named(name: str, *lines: str, concepts: str = "person A\nroom R", conditions: str = "A is inside R") -> str:
    said = "\n".join(f"  {line}" for line in lines)
    return f"policy {name}\nconcepts\n{concepts}\nconditions\n{conditions}\nactions\n{said}\n"


def test_a_policy_that_triggers_itself_is_refused() -> None:
    (problem,) = together(named("loop", "log 'a'", "move"))
    assert problem.code.code == "S187"
    assert problem.is_error
    assert "the event `Moved` that it publishes brings what it waits for" in problem.message


def test_subtypes_trigger_too() -> None:
    assert codes(tuple(together(named("loop", "stroll")))) == ["S187"]


@pytest.mark.parametrize("line", ["raise alarm", "open window"])
def test_what_nobody_waits_for_triggers_nothing(line: str) -> None:
    assert together(named("calm", line)) == []


def test_a_policy_that_suspends_itself_ends() -> None:
    assert together(named("once", "move", "rest")) == []
    assert codes(tuple(together(named("once", "move", "suspend policy once")))) == []


def test_what_is_absent_is_not_waited_for() -> None:
    text = named("calm", "go", concepts="robot X\nperson A", conditions="X.load > 5 kg\nA is not near 5 m of X")
    domain = replace(building(), fed=building().fed | {domains.ConceptAttribute(concept="robot", attribute="load")})
    assert together(text, within=domain) == []


def test_policies_that_trigger_each_other_are_warned_of() -> None:
    rooms = {**PUSH, "belled": push("belled", "Bell", "door", "open", value="tone")}
    doors = named("doors", "go", concepts="door D\nroom R", conditions="D.open = true\nD leads R")
    problems = together(doors, named("people", "publish Bell"), named("third", "raise alarm"), pushes=rooms)
    circles = [problem for problem in problems if problem.code.code == "S231"]
    assert [problem.message for problem in circles] == [
        "These policies can trigger each other without end: `doors`, `people`."
    ]
    assert not any(problem.is_error for problem in problems)


def test_situations_trigger_whoever_waits_for_them() -> None:
    ontology = domains.BUILDING.replace("groups:", "  incident: {id: string, policy: string}\ngroups:")
    domain = replace(
        domains.domain(ontology, (*domains.BUILDING_FED, "incident.policy"), types=TYPES), actions=actions()
    )
    pushes = {"seen": push("seen", "situ.situation.opened", "incident", "policy", "situation", "policy")}
    about_all = named("all", "log a", concepts="incident I", conditions="I.policy != 'x'")
    about_others = named("others", "log a", concepts="incident I", conditions="I.policy = 'x'")
    about_it = named("it", "log a", concepts="incident I", conditions="I.policy = 'it'")
    assert codes(tuple(together(about_all, within=domain, pushes=pushes))) == ["S187"]
    assert codes(tuple(together(about_others, within=domain, pushes=pushes))) == []
    assert codes(tuple(together(about_it, within=domain, pushes=pushes))) == ["S187"]


def test_opposed_actions_for_the_same_thing() -> None:
    (problem, *_) = (
        each
        for each in together(named("cold", "close window"), named("stuffy", "open window"))
        if each.code.code == "S230"
    )
    assert "`close window` here and `open window` of the policy `stuffy`" in problem.message
    assert "for the same room" in problem.message
    assert not problem.is_error


def test_opposed_actions_for_things_that_exclude_each_other() -> None:
    cold = named("cold", "close window", concepts="person A\nroom R (floor = '1')")
    stuffy = named("stuffy", "open window", concepts="person A\nroom R (floor = '2')")
    assert "S230" not in codes(tuple(together(cold, stuffy)))
    same = stuffy.replace("'2'", "'1'")
    assert "S230" in codes(tuple(together(cold, same)))


def test_actions_that_refer_to_nothing_are_about_everything() -> None:
    people = named("one", "lock up", concepts="person A (status = 'guest')\nroom R (floor = '1')")
    others = named("two", "lock down", concepts="person A (status = 'guest')\nroom R (floor = '2')")
    assert "S230" in codes(tuple(together(people, others)))


def _in_own_file(policy: Policy) -> Policy:
    return replace(policy, actions=tuple(replace(each, location=Location(file=policy.name)) for each in policy.actions))


def test_among_many_the_same_are_opposed_as_two_by_two() -> None:
    dice = random.Random(5)
    properties = (
        "",
        "floor = '1'",
        "floor in ('1', '2')",
        "floor > '1'",
        "security = 'a'",
        "security != 'a', floor = '2'",
    )
    texts = []
    for number in range(40):
        rooms, people = dice.choice(properties), dice.choice(("", "status = 'guest'", "status = 'employee'"))
        concepts = f"person A{f' ({people})' if people else ''}\nroom R{f' ({rooms})' if rooms else ''}"
        line = dice.choice(("open window", "close window", "lock up", "lock down"))
        texts.append(named(f"p{number:02}", line, concepts=concepts))
    domain = building()
    policies = {each.name: _in_own_file(each) for each in (domains.policy(text, domain) for text in texts)}

    def told(chosen: Iterable[str]) -> set[tuple[Location | None, str]]:
        some = {name: policies[name] for name in chosen}
        return {
            (each.location, each.message)
            for each in opposed_actions(some, domain.actions or DeclaredActions(), domain.ontology)
        }

    two_by_two = set().union(*(told(pair) for pair in combinations(policies, 2)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opposing, "_MOST_OPPOSED", len(policies) ** 2)
        assert told(policies) == two_by_two
    assert 0 < len(two_by_two) < len(policies) ** 2 // 4


def test_opposed_actions_in_one_policy() -> None:
    assert "S230" in codes(tuple(together(named("torn", "open window", "close window"))))


def test_policies_that_are_not_there() -> None:
    first, second = (
        named("night-watch", "log a"),
        named("day", "suspend policy nigth-watch", conditions="A is inside R"),
    )
    problems = [each for each in together(first, second) if each.code.code == "S234"]
    assert [each.hint for each in problems] == ["Did you mean `night-watch`?"]


def test_similar_policies_are_listed() -> None:
    problems = together(
        named("one", "log a"), named("two", "log b", concepts="person X\nroom Y", conditions="X is inside Y")
    )
    assert [(each.code.code, each.message) for each in problems] == [("S232", "The policy `two` is similar to `one`.")]
    assert not any(each.is_error for each in problems)
    here, there = (named(name, "log a", concepts=f"person A\nroom R (floor = '{name}')") for name in ("one", "two"))
    assert together(here, there) == []  # the same for others
    nearer, near = (
        named(f"d{far}", "log a", conditions=f"A is within {far} m of B", concepts="person A\nperson B")
        for far in (1, 2)
    )
    assert codes(tuple(together(nearer, near))) == ["S232"]
    other = named("two", "log b", concepts="robot X\nperson Y", conditions="Y is near 5 m of X")
    assert together(named("one", "log a"), other) == []


def test_many_policies_are_judged_in_time() -> None:
    texts = [named(f"p{number}", "open window" if number % 2 else "close window") for number in range(120)]
    problems = together(*texts)
    assert {problem.code.code for problem in problems} == {"S230", "S232"}
    assert len(problems) <= 70


def test_a_bare_log_says_what_was_detected() -> None:
    assert found("log") == ()
    bound = TemplateFacts(policy="unaccompanied-guest", bindings={"A": "17", "R": "r4"})
    (deed,) = invocations_of(PolicyAction(name="log"), 0, actions(), bound)
    assert (deed.verb, deed.body, deed.level) == ("log", "unaccompanied-guest: A = 17, R = r4", "info")
