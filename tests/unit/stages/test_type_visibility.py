"""Which types clients are shown, and what is suggested to them: nothing of what they could never see."""

from __future__ import annotations

from pathlib import Path

import pytest

from situ.event.message import join_lines
from situ.event.row import BadRow, Origin, Row
from situ.lang.catalogue import CONTEXT_IN_USE, PASSES_UNMAPPED, TYPE_NOT_AVAILABLE
from situ.lang.records import replace
from situ.lang.tags import NO_TAGS, TagSet
from situ.model import Deployment
from situ.project.check import check_folder
from situ.protocol.messages import Describe
from situ.registry import open_registry
from situ.router.declarations import TypeDescriptions
from situ.routing.model import Advertisement, ClientDeclaration, Subscription
from situ.scopes.dimension_plan import PossibleVisibility
from situ.scopes.filters import FilterMeanings
from situ.scopes.graph import NO_SCOPES, Dimension, Grant, ScopeGraph
from situ.settings import Settings
from situ.stages.plan import compile_plan
from situ.stages.stamp import stamp
from situ.stages.type_visibility import TypeVisibility, is_context_withheld
from tests.project_files import write
from tests.scopes import dimension, graph_of
from tests.types_files import types_of

TYPES = types_of(
    """
    events:
      Alarm: {severity: int}
      Fire(Alarm): {hall: string}
      Payroll: {pay: Pay}
      Note: {text: string}
    types:
      Pay: {salary: int}
    """
)
HOUSE = graph_of(
    dimension(
        "tenant",
        {"alpha": "house", "beta": "house", "apart": ""},
        closed=True,
        output_alpha="type IS Alarm AND severity > 3",
        input_beta="NOT type IS Fire",
    ),
    dimension("floor", {"one": "all"}),
)
GRAPH = replace(
    HOUSE,
    clients={
        "press": {"tenant": ("alpha",)},
        "ann": {"tenant": ("alpha",)},
        "eve": {"tenant": ("beta",)},
        "far": {"tenant": ("apart",)},
        "both": {"tenant": ("alpha", "apart")},
    },
    grants=(Grant(to="watch", dimension="tenant", may=("observe",)),),
)
ALPHA = TagSet.of({"tenant": "alpha", "floor": "one"})
ADS = {"alarms": "Alarm", "wages": "Payroll"}


def deploy(scopes: ScopeGraph = GRAPH, tags: TagSet = ALPHA, **more: object) -> Deployment:
    ads = [Advertisement(client="press", name=name, type=type, scopes=tags) for name, type in ADS.items()]
    return Deployment(
        settings=Settings(name="house"),
        types=TYPES,
        scopes=scopes,
        clients={name: ClientDeclaration(name=name) for name in (*scopes.clients, "watch", "nobody")},
        advertisements={each.id: each for each in ads},
        **more,  # type: ignore[arg-type]
    )


def described(deployment: Deployment, client: str, *types: str) -> set[str]:
    describing = TypeDescriptions()
    describing.adopt(deployment)
    return set(describing.describe(Describe(req=1, types=types), client).types)


@pytest.mark.parametrize(
    ("client", "seen"),
    [
        ("ann", {"Alarm", "Fire", "Payroll"}),
        ("both", {"Alarm", "Fire", "Payroll"}),
        ("watch", {"Alarm", "Fire", "Payroll"}),
        ("eve", {"Alarm"}),
        ("far", set()),
        ("nobody", set()),
    ],
)
def test_a_type_is_shown_to_those_who_could_see_one_of_its_events(client: str, seen: set[str]) -> None:
    """Of a fire nothing gets in to `beta`; what is open hides nothing."""
    assert described(deploy(), client) == seen
    assert described(deploy(), client, *TYPES.events) == seen


def test_without_closed_dimensions_everybody_is_shown_everything() -> None:
    opened = replace(GRAPH, dimensions={name: _open(each) for name, each in GRAPH.dimensions.items()})
    assert TypeVisibility.of(deploy(opened)) is None
    assert described(deploy(opened), "nobody") == set(TYPES.events)


def _open(each: Dimension) -> Dimension:
    return replace(each, closed=False)


def test_what_is_published_for_everybody_is_shown_to_those_who_are_somewhere() -> None:
    deployment = deploy(tags=TagSet.of(rest=True))
    assert described(deployment, "far") == {"Alarm", "Fire", "Payroll"}
    assert described(deployment, "nobody") == set()
    assert described(deploy(tags=NO_TAGS), "eve") == set()
    assert described(deploy(tags=NO_TAGS), "watch") == {"Alarm", "Fire", "Payroll"}
    assert described(deploy(tags=TagSet.of({"tenant": "gone"})), "ann") == set()


def test_parts_of_types_are_shown_with_them() -> None:
    assert described(deploy(), "ann", "Pay", "Payroll") == {"Pay", "Payroll"}
    assert described(deploy(), "eve", "Pay", "Payroll") == set()


def test_what_a_client_publishes_itself_it_knows_and_what_it_asks_for_it_may_have_guessed() -> None:
    note = Advertisement(client="far", name="notes", type="Note", scopes=TagSet.of({"tenant": "apart"}))
    guessed = Subscription(client="far", name="all", types=("Payroll",), scopes=TagSet.of({"tenant": "apart"}))
    deployment = deploy(subscriptions={guessed.id: guessed})
    deployment = replace(deployment, advertisements={**deployment.advertisements, note.id: note})
    assert described(deployment, "far") == {"Note"}
    assert described(deployment, "eve") == {"Alarm"}


def test_nothing_is_suggested_that_is_not_shown() -> None:
    showing = TypeVisibility.of(deploy())
    assert showing is not None
    problem = TYPE_NOT_AVAILABLE(type="Alrm", where="", nearest=("Alarm", "Payroll"), remedy="Declare it.")
    told = showing.told(problem, "eve")
    assert told.hint == "Did you mean `Alarm`?"
    assert told.message == problem.message
    assert showing.told(problem, "far").hint == "Declare it."
    outer = replace(problem, values={**problem.values, "nearest": ()}, cause=problem)
    found = showing.told(outer, "far").cause
    assert found is not None
    assert found.values["nearest"] == ()


def test_what_is_observed_names_nothing_hidden_and_nobody_else() -> None:
    describing = TypeDescriptions()
    describing.adopt(deploy())
    seen, hidden = (PASSES_UNMAPPED(type=name, context="mine", direction="out") for name in ("Alarm", "Payroll"))
    used = CONTEXT_IN_USE(name="mine", users="subscription ann/all", outcome="not", fork="x", remedy="")
    told = describing.observed([seen, hidden, used], "eve")
    assert [each.values.get("type") for each in told] == ["Alarm", None]
    assert "ann/all" not in told[1].message
    assert describing.observed([hidden], "ann") == [hidden]
    describing.adopt(deploy(NO_SCOPES))
    assert describing.observed([hidden, used], "eve") == [hidden, used]


def test_what_was_worked_out_is_kept_as_long_as_scopes_and_types_are_the_same() -> None:
    first = TypeVisibility.of(deploy())
    second = TypeVisibility.of(deploy(tags=NO_TAGS), first)
    other = TypeVisibility.of(deploy(HOUSE), first)
    assert first is not None
    assert second is not None
    assert other is not None
    assert second.could_see is first.could_see
    assert other.could_see is not first.could_see


def test_a_pair_that_depends_could_be_seen() -> None:
    could = PossibleVisibility(GRAPH, FilterMeanings(TYPES))
    assert could.ever("eve", ALPHA, "Alarm")
    assert not could.ever("eve", ALPHA, "Fire")
    assert not could.ever("eve", ALPHA, "Note")
    assert not could.ever("eve", NO_TAGS, "Alarm")


def sent(type: str, data: str, client: str = "far") -> list[Row | BadRow]:
    """What becomes of an event that a client sends."""
    plan = compile_plan(deploy())
    body = join_lines([f'{{"specversion":"1.0","id":"1","source":"s","type":"{type}","data":{data}}}'.encode()])
    origin = Origin(client=client, incarnation=1, seq=1, received=0, pos=0)
    good, bad = stamp(plan.interpretation.decode(body, origin), plan)
    return [*good, *bad]


@pytest.mark.parametrize("data", ["{}", '{"pay": {"salary": 1}}', '{"pay": 3, "more": 1}'])
def test_an_event_of_a_hidden_type_is_one_of_no_type(data: str) -> None:
    (hidden,), (unknown,) = sent("Payroll", data), sent("Payrool", data)
    assert isinstance(hidden, BadRow)
    assert isinstance(unknown, BadRow)
    assert [each[0] for each in hidden.errors] == ["INT701"]
    assert str(hidden.errors).replace("Payroll", "…") == str(unknown.errors).replace("Payrool", "…")
    assert hidden.stage == unknown.stage


def test_who_is_shown_a_type_is_told_what_is_wrong_with_an_event() -> None:
    for client, code in (("press", "INT707"), ("ann", "INT707"), ("eve", "INT701")):
        (bad,) = sent("Payroll", "{}", client)
        assert isinstance(bad, BadRow)
        assert bad.errors[0][0] == code, client
    (unadvertised,) = sent("Payroll", '{"pay": {"salary": 1}}', "ann")
    assert isinstance(unadvertised, BadRow)
    assert unadvertised.errors[0][0] == "R002"
    (broken,) = sent('Pay"', "{}")
    assert isinstance(broken, BadRow)
    assert broken.errors[0][0] != "INT701"


CLOSED = "dimensions: {d: {mode: closed, scopes: {a: {}}}}\n"
CONTEXTS = {
    "situ.yaml": "name: house\n",
    "types/e.yaml": "events:\n  Note: {text: string}\n",
    "rows.csv": "nr,role\n1,guest\n",
    "sources/s.yaml": "pull:\n  rows: {csv: rows.csv, columns: {nr: string, role: string}, key: nr}\n",
    "contexts/plain.yaml": "context: plain\nfunctions:\n  f: {signature: string -> string, expr: value}\n",
    "contexts/looked.yaml": "context: looked\nfunctions:\n"
    "  f: {signature: string -> string, lookup: {r: {source: rows, key: {nr: value}}}, value: r.role}\n",
    "contexts/below.yaml": "context: below\nextends: looked\n",
    "clients/c.yaml": "clients:\n  far: {context: plain}\n  near: {context: looked}\n  free: {}\n",
}


@pytest.mark.parametrize(
    ("client", "context", "bound", "kept"),
    [
        ("free", "plain", True, False),
        ("free", "looked", True, True),
        ("free", "below", False, True),
        ("nobody", "looked", False, True),
        ("near", "looked", True, False),
        ("near", "root", True, True),
        ("near", "root", False, False),
        ("far", "root", True, True),
        ("far", "plain", True, False),
        ("far", "none", True, False),
    ],
)
def test_who_may_not_choose_the_terms_of_a_context(
    client: str, context: str, bound: bool, kept: bool, tmp_path: Path
) -> None:
    for scopes, expected in ((CLOSED, kept), (CLOSED.replace("closed", "open"), False)):
        found = check_folder(write(tmp_path / str(expected), {**CONTEXTS, "scopes.yaml": scopes}))
        assert found.deployment is not None, found.problems
        assert is_context_withheld(found.deployment, client, context, bound=bound) is expected


def test_a_client_does_not_choose_such_terms_over_the_wire(tmp_path: Path) -> None:
    folder = write(tmp_path / "project", {**CONTEXTS, "scopes.yaml": CLOSED})
    found = check_folder(folder)
    assert found.deployment is not None
    with open_registry(folder, found.deployment.settings) as registry:
        registry.apply(found.deployment, "test")
        asked = [
            Subscription(client=client, name=f"in-{context}", types=("Note",), context=context)
            for client, context in (("free", "looked"), ("far", "root"), ("free", "plain"), ("far", "plain"))
        ]
        outcome = registry.declare([*asked, ClientDeclaration(name="new", context="below")], who="test")
        codes = [tuple(each.code.code for each in outcome.refused(each)) for each in asked]
        assert codes == [("INT501",), ("INT501",), (), ()]
        assert [each.code.code for each in outcome.refused(ClientDeclaration(name="new", context="below"))] == [
            "INT501"
        ]
