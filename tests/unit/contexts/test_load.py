"""Contexts: what is written loads to what it means, and everything that is wrong is said, each fault once."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from textwrap import dedent, indent

import pytest

from situ.contexts.check import check_contexts
from situ.contexts.declarations import LONGEST_ID
from situ.contexts.function_bodies import ANY_EVENT, body_for, key_for, keys_for, missing_in, reads
from situ.contexts.load import contexts_from_json
from situ.contexts.model import Context, Direction, FromDefault, FromExpression, FromPath, MissingValue
from situ.contexts.table import Contexts
from situ.lang.expr.tree import Read, walk
from situ.lang.problems import Problems, Severity
from situ.lang.types.model import DOUBLE, STRING, Attribute, Named, Struct, Type
from situ.project.check import check_folder
from tests import looked_up_files
from tests.context_files import LOGISTICS, SOURCES, load
from tests.project_files import MINIMAL, write

TYPES = """\
types:
  Position: {x: double m, y: double m}
  High(Position): {z: double m}
  Money: {currency: string, amount: "decimal(18,2)"}
  TagId(string): {}
events:
  Status: {id: string, tag: TagId, pos: Position, price: Money EUR, lines: [Money], note: optional string}
  Check: {pos: Position}
units: {EUR: currency, USD: currency, GBP: currency, here: label}
"""
CLEAN = {"types/t.yaml": TYPES}


def with_context(text: str, id: str = "us") -> dict[str, str]:
    return {**CLEAN, f"contexts/{id}.yaml": f"context: {id}\n" + dedent(text)}


def found(files: dict[str, str]) -> list[str]:
    """What is wrong: place and code; the name of the folder left out."""
    return [f"{each.location}".removeprefix("contexts/") + f" {each.code.code}" for each in load(files)[1]]


def codes(text: str) -> list[str]:
    return [each.code.code for each in load(with_context(text))[1]]


def context(text: str, id: str = "us") -> Context:
    contexts, problems = load(with_context(text, id))
    assert [str(problem) for problem in problems if problem.is_error] == []
    return contexts.by_id[id]


def round_trip(contexts: Contexts) -> Contexts:
    form = json.loads(json.dumps(contexts.as_json(), sort_keys=True))
    return contexts_from_json(form, contexts.root.types, {}, sources=SOURCES)


# ── a whole project ───────────────────────────────────────────────────────────────────────────────


def test_a_project_in_four_contexts_loads_without_a_remark() -> None:
    contexts, problems = load(LOGISTICS)
    assert [str(problem) for problem in problems] == []
    assert list(contexts.by_id) == ["root", "us", "europe", "german"]
    us, german = contexts.by_id["us"], contexts.by_id["german"]
    assert [str(rule) for rule in us.rules][:2] == ["Position -> to_latlon", "DangerCheck.Position -> identity"]
    assert us.mappings[1].source == contexts.root.types.event("PositionUpdate")
    assert us.mappings[1].target == us.types.event("PositionUpdate") != us.mappings[1].source
    assert us.mappings[0].attributes == {("price",): FromPath(path=("dynamicPrice",))}
    assert german.parent is contexts.by_id["europe"]
    assert [mapping.direction for mapping in contexts.by_id["europe"].mappings] == [Direction.OUT, Direction.IN]
    assert us.conversion("meters_to_yards") is contexts.root.functions["meters_to_yards"]


def test_the_canonical_form_reads_back() -> None:
    contexts, _ = load(LOGISTICS)
    again = round_trip(contexts)
    assert again == contexts
    assert again.as_json() == contexts.as_json()
    assert again.by_id["us"].functions == contexts.by_id["us"].functions
    assert again.by_id["us"].rules == contexts.by_id["us"].rules
    assert again.by_id["us"].types == contexts.by_id["us"].types


def test_what_is_remembered_and_looked_up_is_declared() -> None:
    us = load(LOGISTICS)[0].by_id["us"]
    latlon, dollars = us.functions["to_latlon"], us.functions["to_dollars"]
    (state,) = latlon.states
    assert (state.ttl, state.history, state.max_keys) == (timedelta(hours=24), timedelta(minutes=10), 50_000)
    assert [(each.name, each.type) for each in state.row.attributes] == [("lat", DOUBLE), ("lon", DOUBLE)]
    assert (latlon.missing, latlon.hold) == (MissingValue.HOLD, timedelta(seconds=5))
    key = key_for(latlon, ANY_EVENT)
    assert isinstance(key, Read)
    assert (key.variable, key.path) == ("event", ("source",))
    assert {each.variable for each in walk(body_for(latlon, ANY_EVENT)) if isinstance(each, Read)} == {"ref", "value"}
    (lookup,) = dollars.lookups
    assert [column for column, _ in keys_for(dollars, lookup, ANY_EVENT)] == ["base", "quote"]
    assert (dollars.time, lookup.as_of) == ("event", "valid_from")


def test_contexts_are_found_by_id_and_version() -> None:
    contexts = load(LOGISTICS)[0]
    assert contexts.get("us") is contexts.get("us@1") is contexts.by_id["us"]
    assert contexts.get("us@2") is None
    assert contexts.get("asia") is None
    assert [each.id for each in contexts.children("root")] == ["europe", "us"]
    assert [each.id for each in contexts.children("europe")] == ["german"]


def test_a_lookup_by_an_attribute_of_the_event_is_settled_for_each_event_type() -> None:
    def row(**columns: Type) -> Struct:
        return Struct("", tuple(Attribute(name=name, type=type) for name, type in columns.items()))

    building = {
        "types/all.yaml": looked_up_files.TYPES,
        "contexts/root.yaml": looked_up_files.ROOT,
        "contexts/cameras.yaml": looked_up_files.CAMERAS,
    }
    sources = {
        "cameras": row(id=STRING, x=DOUBLE, y=DOUBLE, heading=DOUBLE),
        "faces": row(face=STRING, person=Named("PersonId", STRING)),
    }
    contexts, problems = load(building, sources)
    assert [str(problem) for problem in problems] == []
    found = Problems()
    check_contexts(contexts, found)
    assert [str(problem) for problem in found.errors] == []
    cameras = contexts.by_id["cameras"]
    function, seen = cameras.functions["polar_to_building"], cameras.types.event("Seen")
    assert seen is not None
    ((column, key),) = keys_for(function, function.lookups[0], seen)
    assert isinstance(key, Read)
    assert (column, key.variable, key.path) == ("id", "data", ("camera",))
    assert missing_in(function, seen) == ()
    sighting = contexts.root.types.event("Sighting")
    assert sighting is not None
    assert missing_in(function, sighting) == ("camera",)


# ── names and types ───────────────────────────────────────────────────────────────────────────────


def test_a_type_of_the_context_hides_that_of_root_which_can_still_be_reached() -> None:
    us = context("""
        types:
          Money: {cents: long}
          Purse: {now: Money, before: root:Money, all: ["root:Money"]}
        functions:
          cents: "root:Money -> Money = struct(to_long(value.amount * 100) AS cents)"
        rules: {out: [Money -> cents], in: [Money -> identity, "root:Money -> identity"]}
        """)
    root = us.root.types.get("Money")
    purse = us.types.get("Purse")
    assert isinstance(purse, Struct)
    assert [each.type for each in purse.attributes[:2]] == [us.types.get("Money"), root]
    assert us.types.get("Money") != root
    assert us.functions["cents"].parameter.type == root
    assert [rule.pattern.head for rule in us.rules] == [root, us.types.get("Money"), root]
    contexts = load(with_context("types: {Money: {cents: long}, Purse: {a: root:Money, b: '[root:Money]', c: Money}}"))[
        0
    ]
    assert round_trip(contexts).by_id["us"].types == contexts.by_id["us"].types


def test_what_is_below_a_hidden_type_is_not_below_the_one_that_hides_it() -> None:
    us = context("types: {Position: {lat: double}, Higher(Position): {alt: double}}")
    position = us.types.get("Position")
    assert position is not None
    assert [str(each) for each in us.types.subtypes(position)] == ["Position", "Higher"]
    assert [str(each) for each in us.root.types.subtypes(us.root.types.types["Position"])] == ["Position", "High"]


def test_types_and_units_of_the_file_of_root_are_those_of_the_project() -> None:
    files = {
        "types/t.yaml": "events: {A: {p: Part, c: double XAU}}\n",
        "contexts/root.yaml": "context: root\ntypes: {Part: {x: int}}\nunits: {XAU: metal}\n",
        "contexts/us.yaml": "context: us\nunits: {XAG: metal}\ntypes: {B: {x: double XAG, y: double XAU}}\n",
    }
    contexts, problems = load(files)
    assert problems == ()
    assert "Part" in contexts.root.types.types
    assert contexts.as_json() == {
        "us": {
            "extends": "root",
            "types": {
                "B": {
                    "attributes": [
                        {"name": "x", "type": "double", "unit": "XAG"},
                        {"name": "y", "type": "double", "unit": "XAU"},
                    ]
                }
            },
            "units": {"XAG": "metal"},
        }
    }


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("types: {A: {x: Nothing}}", "INT101"),
        ("types: {A(B): {}, B(A): {}}", "INT102"),
        ("types: {A(Position): {x: string}}", "INT103"),
        ("types: {A: {b: B}, B: {a: A}}", "INT104"),
        ("types: {A: {x: double florin}}", "INT105"),
        ("types: {A: {x: int}}\nevents: {A: {y: int}}", "INT106"),
        ("types: {'root:A': {x: int}}", "INT109"),
        ("types: {A: {x: root:Nothing}}", "INT101"),
    ],
)
def test_types_of_contexts_are_checked_as_those_of_the_project(text: str, code: str) -> None:
    assert codes(text) == [code]


def test_a_subtype_in_a_context_must_not_contain_what_contains_it() -> None:
    """Root's Status holds a Position, and where one is expected, the context's can stand."""
    assert codes("types: {Deep(Position): {inside: Status}}") == ["INT104"]
    assert codes("types: {Position: {inside: Status}}") == []


# ── identifiers and parents ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("id", ["Us", "us.", ".us", "us@2", "u s", "1us", "", "situ", "situ.x", "root.x", "a" * 65])
def test_bad_identifiers(id: str) -> None:
    assert found({**CLEAN, "contexts/a.yaml": f"context: '{id}'\n"}) == ["a.yaml:1:10 INT503"]


@pytest.mark.parametrize("id", ["us", "acme.us", "acme.us.v2", "a-b_c.2", "situation", "rooted", "a" * LONGEST_ID])
def test_good_identifiers(id: str) -> None:
    assert found({**CLEAN, "contexts/a.yaml": f"context: {id}\n"}) == []


def test_unknown_parents() -> None:
    files = with_context("extends: europ\n") | {"contexts/europe.yaml": "context: europe\n"}
    assert found(files) == ["us.yaml:2:10 INT501"]
    assert load(files)[1][0].hint == "Did you mean `europe`?"
    files["contexts/us.yaml"] = files["contexts/us.yaml"].replace("europ", "europe")
    assert found(files) == []


def test_root_extends_nothing() -> None:
    assert found({**CLEAN, "contexts/root.yaml": "context: root\nextends: root\n"}) == ["root.yaml:2:10 INT501"]
    assert found({**CLEAN, "contexts/root.yaml": "context: root\n"}) == []


def test_circles() -> None:
    files = {
        **CLEAN,
        "contexts/a.yaml": "context: a\nextends: b\nrules: {out: [Nothing -> identity, Money -> nothing]}\n",
        "contexts/b.yaml": "context: b\nextends: a\n",
        "contexts/c.yaml": "context: c\nextends: b\n",
        "contexts/d.yaml": "context: d\nextends: d\n",
    }
    problems = load(files)[1]
    assert [(each.code.code, each.values.get("cycle")) for each in problems if each.code.code == "INT502"] == [
        ("INT502", "a → b → a"),
        ("INT502", "d → d"),
    ]


def test_what_may_stand_in_an_unknown_parent_is_not_called_unknown_but_all_else_is() -> None:
    text = """
        extends: nowhere
        types: {A: {x: Inherited}, B(B): {}}
        rules: {out: [Inherited.Type -> inherited, Money -> to_text, Money -> f]}
        functions:
          to_text: string -> string = upper(value)
          f: Money -> Money = value +
        """
    assert sorted(codes(text)) == ["INT102", "INT209", "INT401", "INT501"]


def test_a_context_is_declared_once() -> None:
    files = {
        **CLEAN,
        "contexts/a.yaml": "context: us\n",
        "contexts/b.yaml": "context: us\nrules: {out: [No -> identity]}\n",
    }
    assert found(files) == ["b.yaml:1:10 INT106", "b.yaml:2:15 INT202"]


# ── mappings ──────────────────────────────────────────────────────────────────────────────────────

EVENTS = "events:\n  Bill: {id: string, text: string, at: Position, price: Money USD, lines: [Money]}\n"


def mapped(text: str) -> list[str]:
    """What is wrong with the mapping of a Status to a Bill with these attributes, by place in its line."""
    files = with_context(f"{EVENTS}maps:\n  - out: Status -> Bill\n    attributes: {text}\n")
    return [
        f"{each.location.column - 17 if each.location else ''} {each.code.code} {each.values.get('reason', '')}"
        for each in load(files)[1]
    ]


def test_where_attributes_come_from() -> None:
    us = context(
        f"""
        {EVENTS.strip().replace(chr(10), chr(10) + " " * 8)}
        maps:
          - out: Status -> Bill
            attributes: {{text: price.currency, at.x: pos.y, at.y: {{expr: "pos.x * 2"}}, id: {{default: none}}}}
          - in: Bill -> Status
            attributes: {{tag: {{expr: "upper(text)"}}}}
        """.replace("\n        ", "\n")
    )
    out, into = us.mappings
    assert out.attributes[("text",)] == FromPath(path=("price", "currency"))
    assert out.attributes[("at", "x")] == FromPath(path=("pos", "y"))
    assert isinstance(out.attributes["at", "y"], FromExpression)
    assert out.attributes[("id",)] == FromDefault(value="none")
    assert (into.direction, into.source, into.target) == (Direction.IN, out.target, out.source)
    assert round_trip(Contexts([us.root, us])) == Contexts([us.root, us])


def test_a_mapping_both_ways_turns_its_paths_round() -> None:
    us = context(f"{EVENTS}maps:\n  - both: Status <-> Bill\n    attributes: {{text: note, at: pos}}\n")
    out, into = us.mappings
    assert out.attributes == {("text",): FromPath(path=("note",)), ("at",): FromPath(path=("pos",))}
    assert into.attributes == {("note",): FromPath(path=("text",)), ("pos",): FromPath(path=("at",))}
    assert into.source == out.target


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{txt: note}", ["1 INT308 the target `Bill` has no `txt`, but `text`"]),
        ("{text: nte}", ["7 INT308 the source `Status` has no `nte`, but `note`"]),
        ("{text: lines.amount}", ["7 INT308 the source has a list at `lines`, into which no path leads"]),
        ("{text.a: note}", ["1 INT308 the target has a `string` at `text`, which has no attributes"]),
        ("{at: pos, at.x: pos.y}", ["10 INT308 `at` is mapped already"]),
        ("{text: {expr: note + 1}}", ["14 INT308 its expression cannot be used"]),
        ("{text: {expr: 5}}", ["14 INT308 its expression is no text"]),
        ("{text: {exp: note}}", ["8 INT308 `exp` is no form"]),
        ("{text: {expr: note, default: a}}", ["7 INT308 it has another form"]),
        ("{text: {default: 5}}", ["17 INT308 the value does not fit `string`"]),
        ("{text: [note]}", ["7 INT308 it has another form"]),
        ("{text: {expr: note}, at: {default: {x: 1, y: 2}}, id: price.currency}", []),
    ],
)
def test_entries_of_attributes(text: str, expected: list[str]) -> None:
    assert mapped(text) == expected


def test_only_paths_go_both_ways() -> None:
    text = f"{EVENTS}maps:\n  - both: Status <-> Bill\n    attributes: {{text: {{default: a}}, at: pos}}\n"
    assert codes(text) == ["INT308"]
    assert codes(text.replace("{default: a}", "note")) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("out: Statsu -> Bill", ["INT301"]),
        ("out: Status -> Bil", ["INT301"]),
        ("out: Bill -> Status", ["INT301"]),
        ("in: Status -> Bill", ["INT301"]),
        ("out: Money -> Bill", ["INT301"]),
        ("out: Stauts -> Bil", ["INT301", "INT301"]),
        ("out: Status -> root:Status", []),
        ("out: root:Status -> Bill", []),
        ("in: Bill -> Status", []),
        ("out: Status", ["P105"]),
        ("both: Status -> Bill", ["P105"]),
        ("out: Status <-> Bill", ["P105"]),
        ("{}", ["P105"]),
        ("{in: Bill -> Status, out: Status -> Bill}", ["P105"]),
    ],
)
def test_types_of_mappings(text: str, expected: list[str]) -> None:
    assert codes(f"{EVENTS}maps:\n  - {text}\n") == expected


def test_of_two_mappings_of_one_type_the_last_counts() -> None:
    text = f"{EVENTS}maps: [out: Status -> Bill, out: Check -> Bill, out: Status -> Status]\n"
    files = with_context(text)
    assert found(files) == ["us.yaml:4:54 INT302"]
    assert load(files)[1][0].severity is Severity.WARNING
    assert codes(f"{EVENTS}maps: [out: Status -> Bill, in: Bill -> Status, out: Check -> Bill]\n") == []


# ── rules ─────────────────────────────────────────────────────────────────────────────────────────

FUNCTIONS = "functions: {flat: Position -> Position = value, cents: double -> long = to_long(value)}\n"


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("{out: [Position -> flat, Status.pos -> flat, High -> flat, Money -> identity]}", []),
        ("{out: [Position -> falt]}", ["INT208"]),
        ("{out: [Money -> flat]}", ["INT209"]),
        ("{out: [Status.Money -> flat]}", ["INT209"]),
        ("{out: [Status.price -> flat]}", ["INT209"]),
        ("{out: [Positoin -> flat]}", ["INT202"]),
        ("{out: [Positoin -> falt, Money -> flat]}", ["INT202", "INT208", "INT209"]),
        ("[Position -> flat]", ["INT210"]),
        ("[Positoin -> falt]", ["INT208", "INT210"]),
        ("{out: [Position]}", ["P105"]),
        ("{out: [Position -> flat()]}", ["P105"]),
        ("{out: Position -> flat}", ["P105"]),
        ("flat", ["P105"]),
        ("{both: [Position -> flat]}", ["P103"]),
        ("{out: , in: []}", []),
        ("", []),
    ],
)
def test_rules(rules: str, expected: list[str]) -> None:
    assert sorted(codes(f"{FUNCTIONS}rules: {rules}\n")) == expected


@pytest.mark.parametrize(
    ("maps", "expected"),
    [
        ("[out: Check -> Check]", [Direction.OUT]),
        ("[in: Check -> Check, in: Status -> Status]", [Direction.IN]),
        ("[in: Check -> Check, out: Status -> Status]", None),
        ("[both: Check <-> Check]", None),
        ("[]", None),
    ],
)
def test_a_flat_list_means_the_direction_of_the_mappings(maps: str, expected: list[Direction] | None) -> None:
    text = f"{FUNCTIONS}maps: {maps}\nrules: [Position -> flat]\n"
    assert codes(text) == (["INT210"] if expected is None else [])
    if expected is not None:
        assert [rule.direction for rule in context(text).rules] == expected


def test_a_flat_list_below_a_parent_means_the_direction_it_inherits() -> None:
    files = with_context("maps: [in: Check -> Check]\n", "above") | {
        "contexts/below.yaml": "context: below\nextends: above\nrules: [Position -> identity]\n"
    }
    contexts, problems = load(files)
    assert problems == ()
    assert [rule.direction for rule in contexts.by_id["below"].rules] == [Direction.IN]


# ── functions ─────────────────────────────────────────────────────────────────────────────────────


def function(text: str) -> list[str]:
    return codes("functions:\n  f:\n" + indent(dedent(text), "    "))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f: double -> string = value", ["INT401"]),
        ("f: double -> double = value * wort", ["INT401"]),
        ("f: double -> double = value *", ["INT401"]),
        ("f: doubel -> double = value", ["INT101"]),
        ("f: double m -> double florin = value", ["INT105"]),
        ("f: double -> double", ["INT416"]),
        ("f: '(a: double) -> double = a'", ["INT416"]),
        ("f: {expr: value}", ["P104"]),
        ("f: {signature: double -> double}", ["P104"]),
        ("f: {signature: double -> double, expr: value, value: value.x}", ["P105"]),
        ("f: {signature: double -> double, expr: value, exp: value}", ["P103"]),
        ("identity: double -> double = value", ["INT110"]),
        ("keep: double -> double = value", ["INT416"]),
        ("round: double -> double = value", ["INT110"]),
        ("{f: double -> double = value, F: double -> double = value}", ["INT106"]),
        ("f: double -> double = value", []),
        ("f: double m -> double yd = value * 1.09", []),
        ("f: {signature: double -> double, python: a.calibrate}", ["INT419"]),
        ("f: {signature: double -> double, python: a.f, code: 'def f(x): return x'}", []),
        ("f: {signature: double -> double, python: a.f, code: 'def f(x): return x', key: value}", ["INT420"]),
        ("f: {signature: double -> double, expr: value, nulls: call, lossy: true}", []),
        ("f: {signature: double -> optional string, expr: event.id || event.source || event.type}", []),
        ("f: {signature: double -> string, expr: event}", ["INT401"]),
    ],
)
def test_functions(text: str, expected: list[str]) -> None:
    braces = text.startswith("{")
    assert codes(f"functions: {text}\n" if braces else f"functions:\n  {text}\n") == expected


def test_a_function_that_is_called_for_null_must_cope_with_it() -> None:
    struct = "signature: string -> TagOf\nexpr: struct(value AS tag)\n"
    types = "types: {TagOf: {tag: string}}\n"
    text = f"{types}functions:\n  f:\n{indent(struct, '    ')}"
    assert codes(text) == []
    assert codes(f"{text}    nulls: call\n") == ["INT401"]


def test_what_a_function_reads_of_the_event_is_checked_event_by_event() -> None:
    us = context("functions: {f: TagId -> string = value || event.id || data.id || event.note}\n")
    function = us.functions["f"]
    status, check = us.types.event("Status"), us.types.event("Check")
    assert status is not None
    assert check is not None
    assert reads(function) == ("id", "note")
    assert function.body is None
    assert missing_in(function, status) == ()
    assert missing_in(function, check) == ("id", "note")
    read = [(each.variable, each.path) for each in walk(body_for(function, status)) if isinstance(each, Read)]
    assert read == [("value", ()), ("event", ("id",)), ("data", ("id",)), ("data", ("note",))]


def test_a_function_must_work_for_some_event_type() -> None:
    assert codes("functions: {f: TagId -> double = event.pos.x + data.pos.y}\n") == []
    assert codes("functions: {f: TagId -> double = event.pos.z}\n") == ["INT401"]
    assert codes("functions: {f: TagId -> double = event.poss.x}\n") == ["INT401"]
    assert codes("functions: {f: TagId -> string = event.note, g: TagId -> string = event.nope}\n") == ["INT401"]


def test_variables_of_lambdas_hide_the_event() -> None:
    us = context("functions: {f: '[Money] -> [string] = transform(value, event -> event.currency)'}\n")
    assert reads(us.functions["f"]) == ()
    assert us.functions["f"].body is not None


MONEY = "struct('USD' AS currency, value.amount AS amount)"


@pytest.mark.parametrize(
    ("signature", "more", "expected"),
    [
        ("Money EUR -> Money USD", "", ["INT405"]),
        ("Money EUR -> Money USD", "time: now", ["INT406"]),
        ("Money EUR -> Money USD", "time: event", []),
        ("Money EUR -> Money USD", "time: 2026-11-01", []),
        ("Money EUR -> Money USD", "time: evnt", ["P119"]),
        ("Money EUR -> Money USD", "time: tomorrow morning", ["P121"]),
        ("Money EUR -> Money EUR", "", []),
        ("Money EUR -> Money", "", []),
        ("Money here -> Money USD", "", []),
    ],
)
def test_currencies_need_a_time(signature: str, more: str, expected: list[str]) -> None:
    assert function(f"signature: {signature}\nexpr: {MONEY}\n{more}\n") == expected


def test_two_functions_between_the_same_units() -> None:
    text = "functions:\n  a: double m -> double yd = value\n  b: double {} -> double yd = value * 1.09\n"
    assert codes(text.format("m")) == ["INT408"]
    assert codes(text.format("ft")) == []
    files = with_context(text.format("m"))
    (problem,) = load(files)[1]
    assert (problem.severity, problem.values["name"], problem.values["other"]) == (Severity.WARNING, "b", "a")
    assert round_trip(load(files)[0]).by_id["us"].functions.keys() == load(files)[0].by_id["us"].functions.keys()


def test_an_override_keeps_the_signature() -> None:
    above = with_context("functions: {f: double m -> double yd = value}\n", "above")
    below = "context: below\nextends: above\nfunctions: {{f: {} = value * 2}}\n"
    assert found({**above, "contexts/below.yaml": below.format("double m -> double yd")}) == []
    for other in ("double m -> double ft", "double -> double yd", "double m -> optional double yd"):
        assert found({**above, "contexts/below.yaml": below.format(other)}) == ["below.yaml:3:13 INT414"]


def test_conversions_of_the_project_are_in_every_context() -> None:
    files = with_context("rules: {out: [Position -> flat]}\n") | {
        "functions/f.yaml": "functions: {flat: Position -> Position = value, twice: '(a: double) -> double = 2 * a'}\n"
    }
    assert found(files) == []
    assert found({**files, "contexts/root.yaml": "context: root\nfunctions: {flat: double -> double = value}\n"}) == [
        "root.yaml:2:13 INT106",
        "us.yaml:2:27 INT209",
    ]
    calls = "functions: {f: double -> double = twice(value)}\n"
    assert found({**files, "contexts/us.yaml": f"context: us\n{calls}"}) == []


def test_inverses() -> None:
    text = (
        "functions:\n  f: {{signature: double -> string, expr: to_string(1), inverse: {}}}\n  g: {} -> double = 1.0\n"
    )
    assert codes(text.format("g", "string")) == []
    assert codes(text.format("h", "string")) == ["INT208"]
    assert codes(text.format("g", "long")) == ["INT401"]


# ── lookups and states ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("lookup", "expr", "expected"),
    [
        ("{fx: {source: fx_rates, key: {base: value}, as_of: valid_from}}", "fx.quote", []),
        ("{fx: {source: fx_rats, key: {base: value}}}", "fx.quote", ["INT412"]),
        ("{fx: {source: fx_rates, key: {bse: value}}}", "fx.quote", ["INT412"]),
        ("{fx: {source: fx_rates, key: {base: value}, as_of: valid}}", "fx.quote", ["INT412"]),
        ("{fx: {source: fx_rates, key: {base: value}, as_of: quote}}", "fx.quote", ["INT412"]),
        ("{fx: {source: fx_rates, key: {base: value}}}", "fx.qoute", ["INT401"]),
        ("{fx: {source: fx_rates, key: {base: size(value)}}}", "fx.quote", ["INT401"]),
        ("{fx: {source: fx_rates, key: {base: 5}}}", "fx.quote", ["P105"]),
        ("{fx: {source: fx_rates}}", "fx.quote", ["P104"]),
        ("{value: {source: fx_rates, key: {base: value}}}", "value", ["P105"]),
        ("{fx: {source: nowhere, key: {base: value}}}", "fx.quote || nothing", ["INT401", "INT412"]),
    ],
)
def test_lookups(lookup: str, expr: str, expected: list[str]) -> None:
    assert sorted(function(f"signature: string -> string\nlookup: {lookup}\nexpr: {expr}\n")) == expected


def test_the_result_of_a_lookup_can_be_a_column() -> None:
    text = "lookup: {fx: {source: fx_rates, key: {base: value}}}\n    value: fx.quote\n"
    us = context(f"functions:\n  f:\n    signature: string -> string\n    missing: {{default: none}}\n    {text}")
    assert (us.functions["f"].missing, us.functions["f"].default) == (MissingValue.DEFAULT, "none")
    assert us.functions["f"].text == "fx.quote"
    again = round_trip(Contexts([us.root, us])).by_id["us"].functions["f"]
    assert (again.missing, again.default, again.lookups) == (MissingValue.DEFAULT, "none", us.functions["f"].lookups)


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        ("error", []),
        ("null", []),
        ("'null'", []),
        ("hold 5 s", []),
        ("hold five", ["P121"]),
        ("never", ["P105"]),
        ("{default: 5}", ["INT111"]),
        ("{defalt: a}", ["P104", "P103"]),
    ],
)
def test_what_happens_where_nothing_is_found(missing: str, expected: list[str]) -> None:
    lookup = "{fx: {source: fx_rates, key: {base: value}}}"
    text = f"signature: string -> string\nlookup: {lookup}\nvalue: fx.quote\nmissing: {missing}\n"
    assert function(text) == expected


WHOLE = "event: Check, key: event_key, keep: {x: pos.x}, ttl: 1 h, max_keys: 5".replace("event_key", "'1'")


@pytest.mark.parametrize(
    ("key", "state", "expected"),
    [
        ("event.source", WHOLE, []),
        ("", WHOLE, ["INT410"]),
        ("event.source", WHOLE.replace(", ttl: 1 h", ""), ["INT410"]),
        ("event.source", WHOLE.replace(", max_keys: 5", ""), ["INT410"]),
        ("event.source", WHOLE.replace(", key: '1'", ""), ["INT410"]),
        ("event.source", WHOLE.replace("Check", "Chek"), ["INT301"]),
        ("event.source", WHOLE.replace("pos.x", "pos.q"), ["INT401"]),
        ("event.source", WHOLE.replace("'1'", "poss"), ["INT401"]),
        ("event.source", WHOLE.replace("1 h", "1 m"), ["P121"]),
        ("event.source", WHOLE.replace("max_keys: 5", "max_keys: 0"), ["P105"]),
        ("event.sauce", WHOLE, ["INT401"]),
        ("event.source", WHOLE.replace("event: Check, ", ""), ["P104"]),
    ],
)
def test_states_are_bounded(key: str, state: str, expected: list[str]) -> None:
    own = f"key: {key}\n" if key else ""
    assert function(f"signature: double -> double\n{own}state: {{ref: {{{state}}}}}\nexpr: value + ref.x\n") == expected


# ── all at once ───────────────────────────────────────────────────────────────────────────────────


def test_one_fault_hides_no_other(tmp_path: Path) -> None:
    """A folder with faults of many kinds, each of which is reported, and nothing that merely follows from one."""
    files = {
        "types/t.yaml": TYPES,
        "contexts/root.yaml": "context: root\nfunctions: {yards: double m -> double yd = value * one}\n",
        "contexts/us.yaml": """\
            context: us
            extends: rot
            events:
              Bill: {id: string, price: Mony}
            maps:
              - out: Status -> Bill
                attributes: {idd: id, price: prise}
              - out: Chek -> Bill
            rules:
              out: [Position -> nothing, Status.prize -> identity, Money -> flat]
            functions:
              flat: Position -> Position = value
              pay: {signature: Money EUR -> Money USD, expr: value}
            """,
        "contexts/eu.yaml": """\
            context: eu
            types: {Faulty: {x: nothing}}
            events: {Log: {entry: Faulty, x: double parsec, y: double parsek}}
            maps: [in: Log -> Check]
            rules: [Faulty -> yards, Check.pos -> identity, Lok -> identity]
            functions: {f: double -> double = vlaue, g: Faulty -> double = value.x}
            """,
        "contexts/x.yaml": "context: X\nextends: eu\nmaps: [out: A]\n",
        "clients/c.yaml": """\
            clients:
              a: {context: eu, advertisements: {l: {type: Log}, m: {type: Logg}}}
              b: {context: ue, subscriptions: {l: {types: [Log], durable: maybe}}}
              c: {context: us, subscriptions: {l: {types: [Unknown, Unknown]}}}
            """,
    }
    checked = check_folder(write(tmp_path, {**MINIMAL, **files}), {})
    assert [f"{each.location}".removeprefix("contexts/") + f" {each.code.code}" for each in checked.problems] == [
        "clients/c.yaml:2:63 INT601",
        "clients/c.yaml:3:16 INT501",
        "clients/c.yaml:3:63 P105",
        "clients/c.yaml:4:57 INT106",
        "eu.yaml:2:21 INT101",
        "eu.yaml:3:59 INT105",
        "eu.yaml:5:19 INT209",
        "eu.yaml:5:49 INT202",
        "eu.yaml:6:35 INT401",
        "root.yaml:2:52 INT401",
        "us.yaml:2:10 INT501",
        "us.yaml:7:18 INT308",
        "us.yaml:7:34 INT308",
        "us.yaml:10:65 INT209",
        "us.yaml:13:3 INT405",
        "x.yaml:1:10 INT503",
        "x.yaml:3:13 P105",
    ]
    assert checked.deployment is None


US = """\
    context: us
    types: {Flat: {a: double, b: double}, Cents: {cents: long}}
    events: {Seen: {at: Flat, paid: Cents, tag: string, who: string}}
    maps:
      - out: Status -> Seen
        attributes: {at: pos, paid: price, who: id}
    rules: {out: [Position -> flat, Money -> cents]}
    functions:
      flat: Position -> Flat = struct(value.x AS a, value.y AS b)
      cents: Money -> Cents = struct(to_long(value.amount * 100) AS cents)
    """


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"Position -> flat, ": ""}, ["INT304"] * 4),
        ({"Position -> flat": "Positon -> flat"}, ["INT202"]),
        ({"Position -> flat": "Positon -> flat", "paid: Cents": "paid: Flat"}, ["INT202", "INT303"]),
        ({"Position -> flat": "Position -> flt", "tag: string": "tag: long"}, ["INT208", "INT303"]),
        ({"Position -> flat": "Position -> cents", "tag: string": "tag: long"}, ["INT209", "INT303"]),
        ({"rules: {out: [Position -> flat, Money -> cents]}": "rules: [Position -> flat, Money -> cents]"}, []),
        ({"at: pos": "at: poss", "who: id": "who: it"}, ["INT308", "INT308"]),
        ({"at: pos": "at: poss", "tag: string": "label: string"}, ["INT304", "INT308"]),
        ({"value.x AS a": "value.z AS a", "tag: string": "tag: long"}, ["INT303", "INT401"]),
        ({"Flat: {a: double": "Flat: {a: doubel", "Money -> cents]": "Mony -> cents]"}, ["INT101", "INT202"]),
    ],
)
def test_what_follows_from_a_fault_is_no_second_one(
    changes: dict[str, str], expected: list[str], tmp_path: Path
) -> None:
    text = US
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    checked = check_folder(write(tmp_path, {**MINIMAL, **CLEAN, "contexts/us.yaml": text}), {})
    assert sorted(each.code.code for each in checked.problems if each.severity is not Severity.OBSERVATION) == expected


def test_a_project_folder_with_contexts_is_a_deployment(tmp_path: Path) -> None:
    source = """\
        pull:
          fx_rates:
            csv: fx.csv
            columns: {base: string, quote: string, rate: "decimal(18,6)", valid_from: timestamp}
            key: [base, quote]
            as_of: valid_from
        """
    clients = """\
        clients:
          truck: {advertisements: {positions: {type: TruckPosition}}}
          shop:
            context: us
            subscriptions:
              near: {types: [PositionUpdate], where: "distanceRemaining < 100 yd"}
              raw: {types: [PositionUpdate], where: "distanceRemaining < 100 m", context: root}
        """
    files = {**MINIMAL, **LOGISTICS, "sources/s.yaml": source, "clients/c.yaml": clients}
    checked = check_folder(write(tmp_path, files), {})
    assert [str(problem) for problem in checked.errors] == []
    deployment = checked.deployment
    assert deployment is not None
    assert deployment.clients["shop"].context == deployment.subscriptions["shop/near"].context == "us"
    assert deployment.subscriptions["shop/raw"].context == "root"
    assert type(deployment).from_json(json.loads(json.dumps(deployment.as_json()))) == deployment
