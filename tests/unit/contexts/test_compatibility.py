"""Contexts changed while somebody uses them: what is allowed, what is kept from those below, what is forked."""

from __future__ import annotations

import json
from typing import Any

import pytest

from situ.contexts.compatibility import ChangeOptions, augments, changed_event_types, is_grown
from situ.contexts.load import load_contexts
from situ.contexts.model import Direction
from situ.contexts.transform.converter import Converter
from situ.contexts.transform.transformation import transformations
from situ.event.lines import decode_line
from situ.event.message import StoredMessage, join_lines, split_lines
from situ.lang.problems import Problem, Problems, SituError
from situ.lang.types.model import DOUBLE, STRING, Attribute, ListOf, Struct
from situ.lang.types.resolve import load_types
from situ.registry.admin_changes import propose_added, propose_altered, propose_folder
from situ.registry.objects import deployment_of
from situ.registry.proposal import Proposal, State
from situ.stages.interpret import Interpretation
from situ.stages.root_log import upgrade_message
from tests.registry_files import deploy, document, following, key, state_of

FILES = {
    "situ.yaml": "name: parcels\nregistry: embedded\n",
    "types/t.yaml": """
        types:
          Position: {x: double m, y: double m}
          Crate: {spare: Position}
        events:
          Moved: {to: Position, crate: Crate, way: double m}
          Checked(Moved): {}
        """,
    "contexts/root.yaml": """
        context: root
        functions: {twice: "Position -> Position = struct(value.x * 2 AS x, value.y * 2 AS y)"}
        """,
    "contexts/us.yaml": """
        context: us
        types: {Place: {x: double ft, y: double ft}}
        events: {Moved: {to: Place, crate: Crate, way: double ft}}
        maps: [out: Moved -> Moved]
        rules: {out: [Moved.to -> in_feet, Crate -> identity]}
        functions: {in_feet: "Position -> Place = struct(value.x * 3 AS x, value.y * 3 AS y)"}
        """,
    "contexts/ny.yaml": "context: us.ny\nextends: us\n",
    "clients/c.yaml": """
        clients:
          ann: {context: us, subscriptions: {all: {types: [Moved]}}}
          york: {context: us.ny, subscriptions: {all: {types: [Moved]}}}
        """,
}
START = state_of(deploy(FILES))
ONLY_YORK = FILES["clients/c.yaml"].replace("ann: {context: us, subscriptions: {all: {types: [Moved]}}}", "ann: {}")


def changed(**texts: str) -> dict[str, str]:
    """The files with others in place of those called so, without folders and endings."""
    names = {name.rpartition("/")[2].removesuffix(".yaml"): name for name in FILES}
    return {**FILES, **{names.get(name, f"contexts/{name}.yaml"): text for name, text in texts.items()}}


def us(old: str, new: str) -> str:
    assert FILES["contexts/us.yaml"].count(old) == 1
    return FILES["contexts/us.yaml"].replace(old, new)


def codes(problems: tuple[Problem, ...]) -> list[str]:
    return [
        problem.code.code for problem in problems if problem.code.code not in ("INT305", "INT306", "INT307", "INT413")
    ]


def body(state: State, id: str) -> Any:
    return json.loads(state.objects[key("context", id)].body)


def applied(state: State, files: dict[str, str], allowed: ChangeOptions = ChangeOptions()) -> tuple[State, Proposal]:  # noqa: B008
    proposal = propose_folder(state, deploy(files), {}, allowed)
    return following(state, proposal), proposal


def refused(state: State, files: dict[str, str], allowed: ChangeOptions = ChangeOptions()) -> list[str]:  # noqa: B008
    with pytest.raises(SituError) as error:
        propose_folder(state, deploy(files), {}, allowed)
    return codes(error.value.problems)


class TestAugmented:
    MORE = us("Crate -> identity]", "Crate -> identity, Checked.to -> further]").replace(
        "functions: {", 'functions: {further: "Position -> Place = struct(value.x * 4 AS x, value.y * 4 AS y)", '
    )

    def test_what_is_new_holds_in_the_context_and_nothing_of_it_below(self) -> None:
        state, proposal = applied(START, changed(us=self.MORE))
        assert codes(proposal.problems) == ["INT505"]
        said = str(proposal.problems[0])
        assert "us.ny" in said
        assert "Checked.to -> keep" in said
        assert "`Moved.to -> in_feet` applies" in said
        assert body(state, "us.ny")["kept"] == {"out": ["Checked.to -> keep"]}
        assert state.objects[key("context", "us.ny")].origin == "folder"
        old, new = START.deployment.contexts, state.deployment.contexts
        assert changed_event_types(old.by_id["us.ny"], new.by_id["us.ny"]) == ()
        assert changed_event_types(old.by_id["us"], new.by_id["us"]) == ("out Checked", "out Moved")

    def test_rules_put_in_stay_when_the_same_folder_is_applied_again(self) -> None:
        state, _ = applied(START, changed(us=self.MORE))
        again = propose_folder(state, deploy(changed(us=self.MORE)), {})
        assert (again.moves, again.problems) == ({}, ())

    def test_they_go_with_what_they_were_put_in_against(self) -> None:
        state, _ = applied(START, changed(us=self.MORE, c=ONLY_YORK))
        state, _ = applied(state, changed(c=ONLY_YORK))
        assert "kept" not in body(state, "us.ny")

    def test_whoever_says_it_himself_needs_none(self) -> None:
        own = "context: us.ny\nextends: us\nrules: {out: [Checked.to -> in_feet]}"
        state, _ = applied(START, changed(us=self.MORE))
        state, proposal = applied(state, changed(us=self.MORE, ny=own))
        assert "kept" not in body(state, "us.ny")
        assert proposal.problems == ()

    def test_propagated_it_holds_below_too(self) -> None:
        for start in (START, applied(START, changed(us=self.MORE))[0]):
            state, proposal = applied(start, changed(us=self.MORE), ChangeOptions(propagate=True))
            assert proposal.problems == ()
            assert "kept" not in body(state, "us.ny")
            ways = changed_event_types(
                START.deployment.contexts.by_id["us.ny"], state.deployment.contexts.by_id["us.ny"]
            )
            assert ways == ("out Checked", "out Moved")

    def test_a_pattern_that_was_seen_from_further_up_keeps_its_function(self) -> None:
        root = FILES["contexts/root.yaml"] + "rules: {out: [Checked.way -> identity, Moved.crate.spare -> twice]}"
        quiet = us(", Crate -> identity]", "]").replace("way: double ft", "way: double m")
        before, _ = applied(State(), changed(root=root, us=quiet))
        more = quiet.replace("[Moved.to", "[Moved.crate.spare -> identity, Moved.to")
        state, proposal = applied(before, changed(root=root, us=more))
        assert codes(proposal.problems) == ["INT505"]
        assert body(state, "us.ny")["kept"] == {"out": ["Moved.crate.spare -> twice"]}
        old, new = before.deployment.contexts, state.deployment.contexts
        assert changed_event_types(old.by_id["us.ny"], new.by_id["us.ny"]) == ()
        assert changed_event_types(old.by_id["us"], new.by_id["us"]) != ()

    def test_root_is_augmented_like_any_other(self) -> None:
        plain = us("rules: {out: [Moved.to -> in_feet, Crate -> identity]}", "rules: {out: [Moved.to -> in_feet]}")
        before, _ = applied(State(), changed(us=plain))
        root = FILES["contexts/root.yaml"] + "rules: {out: [Crate.spare -> twice, Moved.crate.spare -> twice]}"
        state, proposal = applied(before, changed(us=plain, root=root))
        assert codes(proposal.problems) == ["INT505"]
        assert body(state, "us")["kept"] == {"out": ["Moved.crate.spare -> keep"]}
        assert "kept" not in body(state, "us.ny"), "it inherits the rule that was put in above it"

    def test_types_that_rules_derive_stay_as_well(self) -> None:
        files = {
            "situ.yaml": FILES["situ.yaml"],
            "types/t.yaml": FILES["types/t.yaml"],
            "contexts/d.yaml": "context: d\nderive: true\ntypes: {Place: {x: double ft}}\n"
            "rules: {out: [Moved.to -> place]}\n"
            'functions: {place: "Position -> Place = struct(value.x AS x)"}',
            "contexts/e.yaml": "context: d.e\nextends: d\n",
            "clients/c.yaml": _client("d.e"),
        }
        before, _ = applied(State(), files)
        more = files["contexts/d.yaml"].replace("[Moved.to -> place]", "[Moved.to -> place, Position -> place]")
        state, proposal = applied(before, {**files, "contexts/d.yaml": more})
        assert codes(proposal.problems) == ["INT505"]
        old, new = before.deployment.contexts.by_id["d.e"], state.deployment.contexts.by_id["d.e"]
        assert new.types.types["Moved"] == old.types.types["Moved"]
        assert changed_event_types(old, new) == ()
        again = deployment_of({key: each.body for key, each in state.objects.items()}, state.version)
        assert again.contexts.by_id["d.e"].types == new.types

    def test_what_rules_cannot_keep_apart_is_a_change(self) -> None:
        """A function by which units are converted from now on, and a mapping of a subtype."""
        function = us("functions: {", "functions: {feet: double m -> double ft = value * 3.3, ")
        mapping = us("maps: [out: Moved -> Moved]", "maps: [out: Moved -> Moved, out: Checked -> Checked]").replace(
            "events: {", "events: {Checked: {way: double ft}, "
        )
        for text in (function, mapping):
            state, proposal = applied(START, changed(us=text))
            assert codes(proposal.problems) == ["INT504"]
            assert body(state, "us") == body(START, "us")
            nobody_below = changed(
                us=text, c=FILES["clients/c.yaml"].replace("york: {context: us.ny", "york: {context: us")
            )
            before, _ = applied(State(), {**FILES, "clients/c.yaml": nobody_below["clients/c.yaml"]})
            assert applied(before, nobody_below)[1].problems == ()


class TestInUse:
    OTHER = us("value.x * 3 AS x", "value.x * 3.28 AS x")

    def test_it_stays_and_a_fork_has_what_is_new(self) -> None:
        state, proposal = applied(START, changed(us=self.OTHER))
        assert codes(proposal.problems) == ["INT504"]
        said = str(proposal.problems[0])
        assert "subscription ann/all, subscription york/all" in said
        assert "`us.v2`" in said
        assert body(state, "us") == body(START, "us")
        fork = body(state, "us.v2")
        assert fork["extends"] == "us"
        assert fork.keys() == {"extends", "functions"}
        assert state.objects[key("context", "us.v2")].origin == "api"
        wanted = deploy(changed(us=self.OTHER)).contexts.by_id["us"]
        assert changed_event_types(wanted, state.deployment.contexts.by_id["us.v2"]) == ()

    def test_once(self) -> None:
        state, _ = applied(START, changed(us=self.OTHER))
        again = propose_folder(state, deploy(changed(us=self.OTHER)), {})
        assert (again.moves, codes(again.problems)) == ({}, ["INT504"])
        state, proposal = applied(state, changed(us=self.OTHER.replace("3.28", "3.281")))
        assert "`us.v3`" in str(proposal.problems[0])
        assert {"us.v2", "us.v3"} <= state.deployment.contexts.by_id.keys()

    def test_or_is_refused(self) -> None:
        assert refused(START, changed(us=self.OTHER), ChangeOptions(fork=False)) == ["INT504"]

    def test_what_is_used_below_is_in_use(self) -> None:
        before, _ = applied(State(), changed(c=ONLY_YORK))
        assert codes(applied(before, changed(c=ONLY_YORK, us=self.OTHER))[1].problems) == ["INT504"]

    def test_without_users_everything_may_change(self) -> None:
        nobody = "clients: {ann: {context: us}}"
        before, _ = applied(State(), changed(c=nobody))
        state, proposal = applied(before, changed(c=nobody, us=self.OTHER))
        assert proposal.problems == ()
        assert "3.28" in json.dumps(body(state, "us"))

    def test_whoever_leaves_with_the_change_does_not_count(self) -> None:
        moved = "clients: {ann: {subscriptions: {all: {types: [Moved]}}}}"
        _, proposal = applied(START, changed(us=self.OTHER, c=moved))
        assert proposal.problems == ()

    def test_what_nobody_notices_may_change(self) -> None:
        unused = us("functions: {", "functions: {other: double m -> double km = value / 1000, ")
        before, _ = applied(START, changed(us=unused))
        _, proposal = applied(before, changed(us=unused.replace("/ 1000", "/ 1001")))
        assert proposal.problems == ()

    def test_rules_taken_out_are_overridden_in_the_fork(self) -> None:
        fine = us("Crate -> identity]", "Crate -> identity, Moved.crate.spare -> twice]").replace(
            "Crate -> identity, ", ""
        )
        before, _ = applied(State(), changed(us=fine))
        state, proposal = applied(before, changed(us=fine.replace(", Moved.crate.spare -> twice", "")))
        assert codes(proposal.problems) == ["INT504"]
        assert body(state, "us.v2") == {"extends": "us", "rules": {"out": ["Moved.crate.spare -> keep"]}}

    def test_what_cannot_be_said_by_overriding_is_refused(self) -> None:
        without = us("maps: [out: Moved -> Moved]", "maps: []").replace("events: {Moved", "events: {Moving")
        people = FILES["clients/c.yaml"].replace("types: [Moved]", "types: [Moved]")
        assert refused(START, changed(us=without, c=people))[:1] in (["INT504"], ["INT601"])
        texas = "context: texas\nextends: us"
        before, _ = applied(State(), {**FILES, "contexts/t.yaml": texas, "clients/d.yaml": _client("texas")})
        other = {**FILES, "contexts/t.yaml": "context: texas", "clients/d.yaml": _client("texas")}
        assert refused(before, other) == ["INT504"]

    def test_root_cannot_be_forked(self) -> None:
        rules = us("Crate -> identity]", "Moved.crate.spare -> twice]")
        before, _ = applied(State(), changed(us=rules))
        root = FILES["contexts/root.yaml"].replace("value.x * 2", "value.x * 2.5")
        assert refused(before, changed(us=rules, root=root)) == ["INT504"]


class TestReplaced:
    """Position gets a height, then a name."""

    HIGH = FILES["types/t.yaml"].replace(
        "Position: {x: double m, y: double m}", "Position: {x: double m, y: double m, z: double m}"
    )
    NAMED = HIGH.replace("z: double m}", "z: double m, name: string}")
    FORMER = """
        context: root.v1
        types: {Position: {x: double m, y: double m}}
        rules: {in: [Position -> lift], out: ["root:Position -> flatten"]}
        functions:
          lift: "Position -> root:Position = struct(value.x AS x, value.y AS y, 0.0 AS z)"
          flatten: "root:Position -> Position = struct(value.x AS x, value.y AS y)"
        """
    SECOND = """
        context: root.v2
        types: {Position: {x: double m, y: double m, z: double m}}
        rules: {in: [Position -> name], out: ["root:Position -> unname"]}
        functions:
          name: "Position -> root:Position = struct(value.x AS x, value.y AS y, value.z AS z, 'x' AS name)"
          unname: "root:Position -> Position = struct(value.x AS x, value.y AS y, value.z AS z)"
        """
    ROOT = "context: root"
    EU = """
        context: eu
        types: {Place: {lat: double m, lon: double m}}
        events: {Moved: {to: Place, way: double km}}
        maps:
          - out: Moved -> Moved
          - {in: Moved -> Moved, attributes: {crate.spare: to}}
        rules: {out: [Position -> from_root], in: [Place -> to_root]}
        functions:
          from_root: "Position -> Place = struct(value.x AS lat, value.y AS lon)"
          to_root: "Place -> Position = struct(value.lat AS x, value.lon AS y)"
        """
    PEOPLE = "clients: {eve: {context: eu, subscriptions: {all: {types: [Moved]}}, advertisements: {m: {type: Moved}}}}"

    def start(self) -> State:
        files = {
            "situ.yaml": FILES["situ.yaml"],
            "types/t.yaml": FILES["types/t.yaml"],
            "contexts/root.yaml": self.ROOT,
        }
        return applied(State(), {**files, "contexts/eu.yaml": self.EU, "clients/c.yaml": self.PEOPLE})[0]

    def files(self, types: str, **contexts: str) -> dict[str, str]:
        files = {"situ.yaml": FILES["situ.yaml"], "types/t.yaml": types, "clients/c.yaml": self.PEOPLE}
        found = {"root": self.ROOT, **contexts}
        return {**files, **{f"contexts/{name}.yaml": text for name, text in found.items()}}

    OVER = EU.replace("context: eu\n", "context: eu\n        extends: root.v1\n")

    def test_without_ways_forth_and_back_it_is_refused(self) -> None:
        readers = self.EU.replace("- {in: Moved -> Moved, attributes: {crate.spare: to}}", "").replace(
            "], in: [Place -> to_root]", "]"
        )
        only_out = readers.replace("to_root:", "unused:").replace(
            "-> Position = struct(value.lat AS x, value.lon AS y)", "-> Place = value"
        )
        people = self.PEOPLE.replace(", advertisements: {m: {type: Moved}}", "")
        before, _ = applied(State(), {**self.files(FILES["types/t.yaml"], eu=only_out), "clients/c.yaml": people})
        renamed = FILES["types/t.yaml"].replace("x: double m, y", "x: double cm, y")
        with pytest.raises(SituError) as error:
            propose_folder(before, deploy({**self.files(renamed, eu=only_out), "clients/c.yaml": people}), {})
        assert codes(error.value.problems) == ["INT507"]
        assert "`Position`" in str(error.value)
        assert "root.v1" in error.value.problems[0].hint

    def test_another_unit_is_another_type_though_no_expression_says_so(self) -> None:
        for old, new in (("y: double m}", "y: double cm}"), ("Position: {x: double m", "Position: {x: double km")):
            types = FILES["types/t.yaml"].replace(old, new)
            assert refused(self.start(), self.files(types, eu=self.EU)) == ["INT507"]

    def test_what_need_not_be_there_is_no_replacement(self) -> None:
        grown = self.HIGH.replace("z: double m", "z: optional double m")
        state, proposal = applied(self.start(), self.files(grown, eu=self.EU))
        assert proposal.problems == ()
        assert body(state, "eu")["extends"] == "root"

    def test_contexts_that_know_the_old_type_go_on(self) -> None:
        start = self.start()
        files = self.files(self.HIGH, eu=self.OVER, **{"root.v1": self.FORMER})
        state, proposal = applied(start, files)
        assert proposal.problems == ()
        out, back = self.ways(start), self.ways(state)
        old = {"to": {"x": 1.0, "y": 2.0}, "crate": {"spare": {"x": 3.0, "y": 4.0}}, "way": 5000.0}
        high = {"to": {"x": 1.0, "y": 2.0, "z": 9.0}, "crate": {"spare": {"x": 3.0, "y": 4.0, "z": 8.0}}, "way": 5000.0}
        theirs = {"to": {"lat": 1.0, "lon": 2.0}, "way": 5.0}
        assert out[Direction.OUT].data({}, old) == back[Direction.OUT].data({}, high) == theirs
        lifted = {"x": 1.0, "y": 2.0, "z": 0.0}
        assert back[Direction.IN].data({}, theirs) == {"to": lifted, "crate": {"spare": lifted}, "way": 5000.0}

    def test_replacements_follow_each_other(self) -> None:
        state, _ = applied(self.start(), self.files(self.HIGH, eu=self.OVER, **{"root.v1": self.FORMER}))
        formers = {"root.v1": self.FORMER, "root.v2": self.SECOND}
        state, proposal = applied(state, self.files(self.NAMED, eu=self.OVER, **formers))
        assert proposal.problems == ()
        assert body(state, "root.v1")["extends"] == "root.v2"
        lifted = {"x": 1.0, "y": 2.0, "z": 0.0, "name": "x"}
        theirs = {"to": {"lat": 1.0, "lon": 2.0}, "way": 5.0}
        again = deployment_of({key: each.body for key, each in state.objects.items()}, state.version)
        assert again == state.deployment
        ways = self.ways(state)
        found = ways[Direction.IN].data({}, theirs)
        assert found == {"to": lifted, "crate": {"spare": lifted}, "way": 5000.0}
        assert ways[Direction.OUT].data({}, found) == theirs

    def test_what_fails_on_the_way_is_named(self) -> None:
        former = self.FORMER.replace("0.0 AS z", "1 / value.x AS z")
        way = self.ways(applied(self.start(), self.files(self.HIGH, eu=self.OVER, **{"root.v1": former}))[0])
        found = way[Direction.IN].faults({}, {"to": {"lat": 0.0, "lon": 2.0}, "way": 5.0})
        assert [(each.code.code, each.values["path"], each.values["function"]) for each in found] == [
            ("INT704", "to", "lift"),
            ("INT704", "crate.spare", "lift"),
        ]
        found = way[Direction.IN].faults({}, {"to": {"lat": 1.0, "lon": 2.0}, "way": 5.0})
        assert found == ()

    def test_tables_are_asked_in_the_terms_of_now(self) -> None:
        """A context that looks up, below a root that was replaced."""
        files = {
            "situ.yaml": FILES["situ.yaml"],
            "types/t.yaml": "types: {Amount: {of: string, n: double}}\nevents: {Paid: {what: Amount, all: '[Amount]'}}",
            "contexts/us.yaml": """
                context: us
                types: {Dollars: {n: double}}
                events: {Paid: {what: Dollars, all: "[Dollars]"}}
                maps: [out: Paid -> Paid]
                rules: {out: [Amount -> dollars]}
                functions:
                  dollars:
                    signature: Amount -> Dollars
                    lookup: {r: {source: rates, key: {name: value.of}}}
                    expr: struct(value.n * r.rate AS n)
                """,
            "contexts/root.v1.yaml": """
                context: root.v1
                types: {Amount: {of: string, n: double}}
                rules: {in: [Amount -> forth], out: ["root:Amount -> back"]}
                functions:
                  forth: "Amount -> root:Amount = struct(value.of AS of, value.n AS n, lower(value.of) AS code)"
                  back: "root:Amount -> Amount = struct(upper(value.code) AS of, value.n AS n)"
                """,
        }
        files["types/t.yaml"] = files["types/t.yaml"].replace("n: double}}", "n: double, code: string}}")
        files["contexts/us.yaml"] = files["contexts/us.yaml"].replace(
            "context: us", "context: us\n                extends: root.v1"
        )
        problems = Problems()
        types = load_types([document(files["types/t.yaml"])], problems)
        documents = [document(text, name) for name, text in files.items() if name.startswith("contexts/")]
        rates = Struct("", (Attribute(name="name", type=STRING), Attribute(name="rate", type=DOUBLE)))
        contexts = load_contexts(documents, types, {}, problems, sources={"rates": rates})
        assert not problems.errors, list(map(str, problems))
        way = transformations(contexts.by_id["us"], Direction.OUT, Problems())["Paid"]
        asked: list[Any] = []

        def find(name: str) -> dict[str, Any]:
            asked.append(name)
            return {"name": name, "rate": 2.0}

        found = Converter(way, dict.fromkeys(way.externals, find))
        amount = {"of": "x", "n": 4.0, "code": "eur"}
        paid = {"what": amount, "all": [amount, {**amount, "code": "gbp", "n": 1.0}]}
        assert found.data({}, paid) == {"what": {"n": 8.0}, "all": [{"n": 8.0}, {"n": 2.0}]}
        assert set(asked) == {"EUR", "GBP"}

    def test_messages_of_the_log_are_brought_up_from_any_root(self) -> None:
        formers = {"root.v1": self.FORMER.replace("0.0 AS z", "1 / value.x AS z"), "root.v2": self.SECOND}
        state, _ = applied(self.start(), self.files(self.NAMED, eu=self.OVER, **formers))
        now = Interpretation.of(state.deployment)
        assert now.generation == 3

        def read(generation: int, *xs: float, **more: object) -> list[tuple[str, Any]]:
            lines = [_moved({"x": x, "y": 2.0, **more}) for x in xs]
            headers = {"Situ-Root": str(generation)} if generation > 1 else {}
            stored = StoredMessage(seq=1, subject="", body=join_lines(lines), headers=headers, at=0)
            rows = [decode_line(line) for line in split_lines(upgrade_message(stored, now).body)]
            assert {(row.client, row.context) for row in rows} == {("gate", "eu@1")}
            return [(row.type, json.loads(row.data)["to"]) for row in rows]

        lifted = {"x": 4.0, "y": 2.0, "z": 0.25, "name": "x"}
        first, lost, last = read(1, 4.0, 0.0, 4.0)
        assert first == last == ("Moved", lifted)
        assert lost[0] == "situ.lost", "there is no height for it"
        assert read(2, 4.0, z=1.0) == [("Moved", {"x": 4.0, "y": 2.0, "z": 1.0, "name": "x"})]
        assert read(3, 4.0, z=1.0, name="n") == [("Moved", {"x": 4.0, "y": 2.0, "z": 1.0, "name": "n"})]

    def test_a_file_that_does_not_say_so_goes_on_with_the_old_root_until_it_is_edited(self) -> None:
        reads = """
            context: eu
            types: {Place: {lat: double m, lon: double m}}
            events: {Moved: {to: Place, way: double km}}
            maps: [out: Moved -> Moved]
            rules: {out: [Position -> from_root]}
            functions: {from_root: "Position -> Place = struct(value.x AS lat, value.y AS lon)"}
            """
        people = self.PEOPLE.replace(", advertisements: {m: {type: Moved}}", "")
        before, _ = applied(State(), {**self.files(FILES["types/t.yaml"], eu=reads), "clients/c.yaml": people})
        files = {**self.files(self.HIGH, eu=reads, **{"root.v1": self.FORMER}), "clients/c.yaml": people}
        state, _ = applied(before, files)
        assert body(state, "eu")["extends"] == "root.v1"
        assert propose_folder(state, deploy(files), {}).moves == {}
        edited = reads.replace("types: {", "types: {More: {a: string}, ")
        state, _ = applied(state, {**files, "contexts/eu.yaml": edited})
        assert body(state, "eu")["extends"] == "root"

    def ways(self, state: State) -> dict[Direction, Converter]:
        eu = state.deployment.contexts.by_id["eu"]
        return {way: Converter(transformations(eu, way, Problems())["Moved"]) for way in Direction}

    @pytest.mark.parametrize(
        ("old", "new", "expected"),
        [
            ('out: ["root:Position -> flatten"]', "out: []", ["INT507"]),
            ("in: [Position -> lift]", "in: []", ["INT507"]),
            (
                'lift: "Position -> root:Position = struct(value.x AS x, value.y AS y, 0.0 AS z)"',
                "lift: {signature: Position -> root:Position, python: f.lift}",
                ["INT507"],
            ),
            ("y: double m}}", "y: double m, w: double m}}", ["INT506", "INT508"]),
            ("0.0 AS z", "1.0 AS z", []),
            ('value.x AS x, value.y AS y)"', 'value.x + 1 AS x, value.y AS y)"', ["INT508"]),
        ],
    )
    def test_what_is_asked_of_a_replacement(self, old: str, new: str, expected: list[str]) -> None:
        text = self.FORMER.replace(old, new)
        text = text.replace("AS y)", "AS y, 0.0 AS w)") if "w: double" in new else text
        text = text.replace("AS y, 0.0 AS z)", "AS y, value.w * 0 AS z)") if "w: double" in new else text
        problems = Problems()
        types = load_types([document(self.HIGH, "types/t.yaml")], problems)
        load_contexts([document(text, "contexts/root.v1.yaml")], types, {}, problems)
        found = [problem.code.code for problem in problems]
        assert [code for code in found if code.startswith("INT50")] == expected


def _moved(place: dict[str, Any]) -> bytes:
    data = json.dumps({"to": place, "crate": {"spare": place}, "way": 1.0})
    return (
        '{"specversion":"1.0","id":"1","source":"gate","type":"Moved","time":"2026-01-01T00:00:00Z",'
        f'"situkey":"gate.1.1","situcontext":"eu@1","data":{data}}}'
    ).encode()


def _client(context: str) -> str:
    return f"clients: {{eve: {{context: {context}, subscriptions: {{all: {{types: [Moved]}}}}}}}}"


def test_single_contexts_follow_the_same_rules() -> None:
    state = following(START, propose_added(START, key("context", "eu"), document("context: eu\nextends: us"))[0])
    state = following(state, propose_added(state, key("client", "bo"), document("clients: {bo: {context: eu}}"))[0])
    text = "clients: {bo: {subscriptions: {all: {types: [Moved]}}}}"
    state = following(state, propose_added(state, key("subscription", "bo/all"), document(text))[0])
    finer = "context: eu\nextends: us\nrules: {out: [Checked.to -> in_feet]}"
    proposal, problems = propose_altered(state, key("context", "eu"), document(finer))
    assert codes(problems) == []
    state = following(state, proposal)
    other = finer.replace("[Checked", "[Checked.crate -> identity, Checked")
    away = 'context: eu\nextends: us\nfunctions: {in_feet: "Position -> Place = struct(value.x AS x, value.y AS y)"}'
    assert codes(propose_altered(state, key("context", "eu"), document(other))[1]) == []
    proposal, problems = propose_altered(state, key("context", "eu"), document(away))
    assert codes(problems) == ["INT504"]
    assert [str(each) for each in proposal.moves] == ["context eu.v2"]
    with pytest.raises(SituError) as error:
        propose_altered(state, key("context", "eu"), document(away), ChangeOptions(fork=False))
    assert codes(error.value.problems) == ["INT504"]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {"rules": {"out": ["A -> f"]}}, True),
        ({"rules": {"out": ["A -> f"]}}, {"rules": {"out": ["A -> f", "B -> f"]}}, True),
        ({"rules": {"out": ["A -> f"]}}, {"rules": {"out": ["A -> f", "A -> g"]}}, False),
        ({"rules": {"out": ["A -> f"]}}, {"rules": {"out": ["A -> g"]}}, False),
        ({"rules": {"out": ["A -> f"]}}, {}, False),
        ({"kept": {"out": ["A -> keep"]}}, {}, True),
        ({"maps": [{"out": "A -> B"}]}, {"maps": [{"out": "A -> B"}, {"in": "A -> B"}]}, True),
        ({"maps": [{"out": "A -> B"}]}, {"maps": [{"out": "A -> B"}, {"out": "A -> C"}]}, False),
        ({"types": {"A": {}}}, {"types": {"A": {}, "B": {}}}, True),
        ({"types": {"A": {}}}, {"types": {"A": {"base": "string"}}}, False),
        ({"events": ["A"]}, {}, False),
        ({"units": {"EUR": "currency"}}, {"units": {"EUR": "label"}}, False),
        ({"extends": "us"}, {"extends": "eu"}, False),
        ({"derive": True}, {}, False),
        ({"functions": [{"name": "f"}]}, {"functions": [{"name": "f"}, {"name": "g"}]}, True),
        ({"functions": [{"name": "f"}]}, {"functions": [{"name": "f", "lossy": True}]}, False),
    ],
)
def test_augmentations(before: dict[str, Any], after: dict[str, Any], expected: bool) -> None:
    assert augments(before, after) is expected


def test_types_that_grew() -> None:
    x, y = Attribute(name="x", type=DOUBLE), Attribute(name="y", type=DOUBLE)
    one, two = Struct("A", (x,)), Struct("A", (x, y))
    optional = Struct("A", (x, Attribute(name="y", type=DOUBLE, optional=True)))
    assert is_grown(one, one)
    assert is_grown(one, optional)
    assert is_grown(ListOf(one), ListOf(optional))
    assert not is_grown(one, two)
    assert not is_grown(two, one)
    assert not is_grown(one, Struct("B", (x,)))
